/* SPDX-License-Identifier: Apache-2.0 */
/* Opens pprof files. Runs on the thread of the owner. */
#include "src/profiles/pyroscope/pprof_upload.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/codec/gzip.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_to_otlp.h"

#include <assert.h>

enum {
    DEFLATE_RATIO_MAX = 1032,
    /* Per byte of the file, and besides. Tables: files of profilers need six bytes, the worst that
     * can be written forty. What edits add to them: names with the files of their functions. */
    TABLES_GROWTH_MAX = 48,
    EDITS_GROWTH_MAX = 8,
    TABLES_BYTES_MORE = 64 * 1024,
};

bool pprof_upload_is_busy(const struct pprof_upload *upload)
{
    const struct arena *arena = &upload->arena;
    return arena->refused_bytes > 0 && arena->refused_bytes <= arena->max_bytes;
}

static enum pprof_upload_verdict read_tables(struct pprof_upload *upload, struct slice bytes,
                                             struct error *error)
{
    struct arena *arena = &upload->arena;
    arena_init_charged(arena, TABLES_BYTES_MORE + TABLES_GROWTH_MAX * bytes.size, upload->budget);
    if (pprof_read(arena, bytes, &upload->pprof, error)) {
        arena->max_bytes = arena->used_bytes + TABLES_BYTES_MORE + EDITS_GROWTH_MAX * bytes.size;
        upload->is_open = true;
        return PPROF_UPLOAD_OPEN;
    }
    bool is_busy = pprof_upload_is_busy(upload);
    arena_clear(arena);
    return is_busy ? PPROF_UPLOAD_BUSY : PPROF_UPLOAD_REFUSED;
}

enum pprof_upload_verdict pprof_upload_open(struct pprof_upload *upload, struct gzip *gzip,
                                            struct budget *budget, struct slice bytes,
                                            uint64_t bytes_max, struct error *error)
{
    *upload = (struct pprof_upload){.budget = budget};
    if (bytes.size >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b) {
        /* How far it is inflated before it fails is not known. */
        upload->plain_bytes = bytes.size * DEFLATE_RATIO_MAX;
        if (upload->plain_bytes > bytes_max)
            upload->plain_bytes = bytes_max;
        switch (gzip_inflate(gzip, budget, bytes.data, bytes.size, bytes_max, &upload->plain)) {
        case GZIP_OK:
            break;
        case GZIP_NO_BUDGET:
            return PPROF_UPLOAD_BUSY;
        case GZIP_TOO_LARGE:
            error_set(error, "the profile is larger than %llu bytes, or inflates out of proportion",
                      (unsigned long long)bytes_max);
            return PPROF_UPLOAD_REFUSED;
        case GZIP_MALFORMED:
        default:
            error_set(error, "gzip: invalid header or checksum, or truncated");
            return PPROF_UPLOAD_REFUSED;
        }
        bytes = buffer_slice(upload->plain);
    } else if (bytes.size > bytes_max) {
        error_set(error, "the profile has %zu bytes, expected at most %llu", bytes.size,
                  (unsigned long long)bytes_max);
        return PPROF_UPLOAD_REFUSED;
    }
    upload->plain_bytes = bytes.size;
    enum pprof_upload_verdict verdict = read_tables(upload, bytes, error);
    if (verdict != PPROF_UPLOAD_OPEN) {
        buffer_unref(upload->plain);
        return verdict;
    }
    struct pprof *pprof = &upload->pprof;
    if (pprof->sample_types_count > PPROF_TO_OTLP_TYPES_MAX) {
        error_set(error, "found %zu sample types, expected at most %d", pprof->sample_types_count,
                  PPROF_TO_OTLP_TYPES_MAX);
        pprof_upload_close(upload);
        return PPROF_UPLOAD_REFUSED;
    }

    /* A sample with a negative value is left out with its other values, as on the server. */
    size_t kept = 0;
    for (size_t i = 0; i < pprof->samples_count; i++) {
        bool is_negative = false;
        for (size_t k = 0; k < pprof->sample_types_count; k++)
            is_negative |= pprof->samples[i].values[k] < 0;
        if (!is_negative)
            pprof->samples[kept++] = pprof->samples[i];
    }
    upload->negative = pprof->samples_count - kept;
    pprof->samples_count = kept;
    return verdict;
}

void pprof_upload_close(struct pprof_upload *upload)
{
    assert(upload->is_open);
    arena_clear(&upload->arena);
    buffer_unref(upload->plain);
}

uint64_t pprof_upload_items(const struct pprof_upload *upload)
{
    assert(upload->is_open);
    const struct pprof *pprof = &upload->pprof;
    uint64_t items = 0;
    for (size_t i = 0; i < pprof->samples_count; i++)
        for (size_t k = 0; k < pprof->sample_types_count; k++)
            items += pprof->samples[i].values[k] != 0;
    return items;
}
