/* SPDX-License-Identifier: Apache-2.0 */
/* Each Profile message is converted by itself, in parts, which are merged. Runs on the thread of
 * the owner. */
#include "src/profiles/pprof/otlp_to_pprof_merge.h"

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/pprof/pprof_reader.h"

enum { DEPTH_MAX = 4096, LABEL_BYTES_MAX = 1024 };

/* Nothing of a profile is dropped: the limits are those of files. */
static const struct otlp_to_pprof_rules whole = {
    .labels = {.has_trace_id = true,
               .has_numbers = true,
               .keeps_dots = true,
               .keeps_service = true,
               .names_max = OTLP_LABEL_NAMES_MAX,
               .value_bytes_max = LABEL_BYTES_MAX},
    .samples_max = UINT64_MAX,
    .bytes_max = PROFILE_FILE_BYTES_MAX,
    .depth_max = DEPTH_MAX,
};

bool pprof_merge_bytes(struct pprof_merge *merge, struct slice bytes, struct error *error)
{
    struct arena arena;
    struct pprof pprof;
    arena_init_charged(&arena, 4 * PROFILE_FILE_BYTES_MAX, merge->budget);
    bool is_added =
        pprof_read(&arena, bytes, &pprof, error) && pprof_merge_add(merge, &pprof, error);
    arena_clear(&arena);
    return is_added;
}

/* A request that is being merged. */
struct merging {
    const struct otlp_to_pprof_merge_source *source;
    struct pprof_merge *merge;
    struct otlp_to_pprof conversion;
};

static bool picks(void *arg, const struct profile *profile, const struct profile_sample *sample)
{
    struct merging *merging = arg;
    return merging->source->picks(merging->source->arg, merging->conversion.dictionary, profile,
                                  sample);
}

/* Merges the parts of one Profile message that are pprof profiles. */
static bool merge_profile(struct merging *merging, const struct profile *profile,
                          struct error *error)
{
    struct otlp_to_pprof *conversion = &merging->conversion;
    const struct profile_type_texts texts = {
        .type = profile_string_at(conversion->dictionary, profile->sample_type.type),
        .unit = profile_string_at(conversion->dictionary, profile->sample_type.unit),
        .period_type = profile_string_at(conversion->dictionary, profile->period_type.type),
        .period_unit = profile_string_at(conversion->dictionary, profile->period_type.unit),
    };
    const struct profile_type type = profile_type_plain(&texts);
    const struct otlp_to_pprof_source source = {
        .profile = profile,
        .type = &type,
        .picks = merging->source->picks != NULL ? picks : NULL,
        .arg = merging,
    };
    bool is_merged = true;
    otlp_to_pprof_begin(conversion, &source);
    while (is_merged && otlp_to_pprof_fill(conversion)) {
        struct buffer *part = otlp_to_pprof_take(conversion, profile->time_unix_ns);
        is_merged = part != NULL && pprof_merge_bytes(merging->merge, buffer_slice(part), error);
        buffer_unref(part);
    }
    if (otlp_to_pprof_has_failed(conversion))
        return error_set(error, "not enough memory to convert it to pprof");
    return is_merged;
}

bool otlp_to_pprof_merge(struct pprof_merge *merge, const struct otlp_to_pprof_merge_source *source,
                         struct otlp_to_pprof_figures *figures, uint64_t *resources,
                         struct error *error)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    struct merging merging = {.source = source, .merge = merge};
    arena_init_charged(&arena, PROFILE_INDEX_BYTES_MAX, merge->budget);
    if (!profile_dictionary_open(&dictionary, &arena, source->request)) {
        arena_clear(&arena);
        return error_set(error, "its dictionary takes more than %llu MiB to index%s",
                         (unsigned long long)(PROFILE_INDEX_BYTES_MAX / MIB),
                         merge->budget != NULL ? ", or than the memory budget has room for" : "");
    }
    struct wire_reader reader = wire_reader_of(source->request);
    struct profile_resource resource;
    bool is_merged = true;
    otlp_to_pprof_init(&merging.conversion, &whole, &dictionary, merge->budget);
    while (is_merged && profile_next_resource(&reader, &resource)) {
        struct profile_iterator at = profile_iterator_of_resource(resource.bytes);
        if (source->takes != NULL && !source->takes(source->arg, &resource))
            continue;
        *resources += resource.resource.size > 0;
        while (is_merged && profile_iterator_next(&at))
            is_merged = merge_profile(&merging, &at.profile, error);
    }
    figures->zero += merging.conversion.figures.zero;
    figures->negative += merging.conversion.figures.negative;
    figures->written += merging.conversion.figures.written;
    figures->too_large += merging.conversion.figures.too_large;
    figures->cut += merging.conversion.figures.cut;
    otlp_to_pprof_fini(&merging.conversion);
    arena_clear(&arena);
    return is_merged;
}
