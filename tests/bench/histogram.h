/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies in logarithmic buckets: each value is known to within 1/64, from 1 ns up. */
#pragma once

#include <stdint.h>

enum { HISTOGRAM_STEPS = 64, HISTOGRAM_BUCKETS = 59 * HISTOGRAM_STEPS };

struct histogram {
    uint64_t count;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
/* The upper end of the bucket in which the given share (0 to 1) of all values is reached. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);
