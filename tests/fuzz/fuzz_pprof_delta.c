/* SPDX-License-Identifier: Apache-2.0 */
/* A size, and two profiles, the first of that size: differences of the second to the first are not
 * below 0 and sum up to no more than what the second has. Nothing stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/profiles/pprof/pprof_delta.h"
#include "src/profiles/pprof/pprof_reader.h"

enum { BUDGET_BYTES = 8 << 20, ARENA_BYTES_MAX = 8 << 20, SIZE_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As uploads have it: without samples below 0. */
static void keep_positive(struct pprof *pprof)
{
    size_t kept = 0;
    for (size_t i = 0; i < pprof->samples_count; i++) {
        bool is_negative = false;
        for (size_t k = 0; k < pprof->sample_types_count; k++)
            is_negative |= pprof->samples[i].values[k] < 0;
        if (!is_negative)
            pprof->samples[kept++] = pprof->samples[i];
    }
    pprof->samples_count = kept;
}

static double total(const struct pprof *pprof, size_t type)
{
    double sum = 0;
    for (size_t i = 0; i < pprof->samples_count; i++) {
        assert(pprof->samples[i].values[type] >= 0);
        sum += (double)pprof->samples[i].values[type];
    }
    return sum;
}

static void take(struct pprof_delta *delta, struct slice bytes)
{
    struct arena arena;
    struct pprof pprof;
    struct error error;
    double before[64];
    arena_init(&arena, ARENA_BYTES_MAX);
    if (pprof_read(&arena, bytes, &pprof, &error) && pprof.sample_types_count <= 64) {
        keep_positive(&pprof);
        size_t samples = pprof.samples_count;
        for (size_t k = 0; k < pprof.sample_types_count; k++)
            before[k] = total(&pprof, k);
        enum pprof_delta_result result = pprof_delta_take(delta, &pprof, &arena);
        assert(pprof.samples_count <= samples);
        for (size_t k = 0; k < pprof.sample_types_count; k++)
            assert(total(&pprof, k) <= before[k]);
        assert(result != PPROF_DELTA_NO_MEMORY || !delta->has_profile);
    }
    arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct budget budget;
    struct pprof_delta delta;
    if (size < SIZE_BYTES)
        return 0;
    size_t first = (size_t)data[0] << 8 | data[1];
    data += SIZE_BYTES;
    size -= SIZE_BYTES;
    if (first > size)
        first = size;
    budget_init(&budget, BUDGET_BYTES);
    pprof_delta_init(&delta, &budget);
    take(&delta, slice_of(data, first));
    take(&delta, slice_of(data + first, size - first));
    pprof_delta_fini(&delta);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
