/* SPDX-License-Identifier: Apache-2.0 */
/* Delta metrics: when each series was last sent, which is where its next data point starts, so that
 * points follow each other without a gap. Keeps the last used ones. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "connectors/span_metrics/dimensions.h"
#include "src/base/hash_table.h"

struct budget;
struct delta_time;

struct delta_times {
    struct hash_table table;
    struct delta_time *newest;
    struct delta_time *oldest;
    uint64_t max;
    struct budget *budget; /* NULL: not charged */
};

void delta_times_init(struct delta_times *times, uint64_t max, struct budget *budget);
void delta_times_fini(struct delta_times *times);
/* Unix time; 0: unknown. */
uint64_t delta_times_get(const struct delta_times *times, struct text_hash key);
/* The longest unused one goes when there are too many, or there is no memory. */
void delta_times_set(struct delta_times *times, struct text_hash key, uint64_t wall_ns);
