/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion is merging: of one file, or of several, after each was converted to the wanted format.
 * Main thread of a command. */
#include "src/cli/profile/profile_convert.h"

#include <assert.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/cli/profile/profile_file.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/pprof/otlp_to_pprof_merge.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_to_otlp.h"

/* Merges the file as OTLP. False: error has the reason. */
static bool merge_otlp(struct profile_merge *merge, const struct profile_file *file,
                       struct error *error)
{
    struct buffer *request = NULL;
    struct slice bytes = file->bytes;
    if (file->format == FORMAT_PPROF) {
        struct arena arena;
        struct pprof pprof;
        const struct pprof_to_otlp_source source = {.pprof = &pprof};
        arena_init(&arena, 4 * PROFILE_FILE_BYTES_MAX);
        if (!pprof_read(&arena, file->bytes, &pprof, error))
            error_prefix(error, "%s: invalid pprof", file->path);
        else if (!pprof_to_otlp(&source, NULL, &request, NULL))
            error_set(error,
                      "%s: more than %d sample types, long label values repeated too often, or not "
                      "enough memory to convert it to OTLP",
                      file->path, PPROF_TO_OTLP_TYPES_MAX);
        arena_clear(&arena);
        if (request == NULL)
            return false;
        bytes = buffer_slice(request);
    }
    struct profile_source source;
    const struct otlp_limit limit = {.bytes_max = PROFILE_FILE_BYTES_MAX};
    bool is_taken = profile_source_open(&source, bytes, merge);
    if (!is_taken) {
        error_set(error, "%s: its dictionary takes more than %llu MiB to index", file->path,
                  (unsigned long long)(PROFILE_INDEX_BYTES_MAX / MIB));
    } else {
        is_taken = profile_merge_take(merge, &source, limit);
        if (!is_taken)
            error_set(error, "%s: with it the result is larger than %llu MiB; take fewer files",
                      file->path, (unsigned long long)(PROFILE_FILE_BYTES_MAX / MIB));
        profile_source_close(&source);
    }
    buffer_unref(request);
    return is_taken;
}

struct buffer *profile_convert_to_otlp(const struct profile_file *files, size_t count,
                                       struct error *error)
{
    struct profile_merge merge;
    struct buffer *request = NULL;
    bool is_taken = true;
    assert(count > 0);
    profile_merge_init(&merge, NULL);
    for (size_t i = 0; is_taken && i < count; i++)
        is_taken = merge_otlp(&merge, &files[i], error);
    if (is_taken)
        request = profile_merge_finish(&merge, NULL);
    if (is_taken && request == NULL)
        request = buffer_create(NULL, 0);
    profile_merge_fini(&merge);
    return request;
}

static bool merge_as_pprof(struct pprof_merge *merge, const struct profile_file *file,
                           struct convert_losses *losses, struct error *error)
{
    const struct otlp_to_pprof_merge_source source = {.request = file->bytes};
    struct otlp_to_pprof_figures figures = {.zero = 0};
    if (file->format == FORMAT_PPROF)
        return pprof_merge_bytes(merge, file->bytes, error);
    assert(file->format == FORMAT_OTLP);
    bool is_merged = otlp_to_pprof_merge(merge, &source, &figures, &losses->resources, error);
    losses->zero_samples += figures.zero;
    losses->negative_samples += figures.negative;
    return is_merged;
}

struct buffer *profile_convert_to_pprof(const struct profile_file *files, size_t count,
                                        struct convert_losses *ret_losses, struct error *error)
{
    struct pprof_merge merge;
    struct buffer *bytes = NULL;
    bool is_merged = true;
    assert(count > 0);
    *ret_losses = (struct convert_losses){.resources = 0};
    pprof_merge_init(&merge, NULL);
    for (size_t i = 0; is_merged && i < count; i++) {
        is_merged = merge_as_pprof(&merge, &files[i], ret_losses, error);
        if (!is_merged)
            error_prefix(error, "%s", files[i].path);
    }
    if (is_merged)
        bytes = pprof_merge_take(&merge, error);
    pprof_merge_fini(&merge);
    return bytes;
}
