/* SPDX-License-Identifier: Apache-2.0 */
/* Adds exponential histograms: scales, zero buckets and offsets may differ
 * (opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram). The result has about
 * 160 buckets on each side at most; its scale falls as it must. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct metric_values;

/* What a sum takes at most in an arena, all steps of _add included, and encoded. Bytes. */
uint64_t exponential_sum_bytes_max(void);
/* The values with as few buckets as a sum has; they stay as they are. What has changed is in the
 * arena. False: it has no room. */
bool exponential_limit(struct arena *arena, const struct metric_values *values,
                       struct metric_values *ret_values);
/* Adds `more`, which changes, to sum, whose arrays are in the arena or replaced by ones there.
 * False: the arena has no room, and sum is undefined. */
bool exponential_add(struct arena *arena, struct metric_values *sum, struct metric_values *more);
