/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of counters. One writer. */
#include "src/base/counter.h"

#include <assert.h>

void histogram_record(struct histogram *histogram, const uint64_t *bounds, size_t bounds_count,
                      uint64_t value)
{
    assert(bounds_count <= HISTOGRAM_BOUNDS_MAX);
    size_t cell = 0;
    while (cell < bounds_count && value > bounds[cell])
        cell++;
    counter_add(&histogram->cells[cell], 1);
    counter_add(&histogram->sum, value);
}
