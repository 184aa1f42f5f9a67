/* SPDX-License-Identifier: Apache-2.0 */
/* What the profiles that are kept say of each span, for questions about very many of them: one
 * table of all, filled once, asked once per span. On the explore worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/explore/trace_query.h"

struct budget;
struct profile_store;

struct span_cpu_entry {
    uint64_t hash; /* of trace and span id; 0: free */
    uint64_t cpu_ns;
    uint64_t samples;
};

struct span_cpu {
    struct span_cpu_entry *entries;
    size_t places; /* a power of two */
    uint64_t seed; /* of the hashes: clients choose ids */
    struct budget *budget;
};

/* Unless EXPLORE_DONE the table has nothing to release. */
enum explore_result span_cpu_init(struct span_cpu *table, const struct profile_store *store,
                                  struct budget *budget, const struct explore_limit *limit);
void span_cpu_fini(struct span_cpu *table);
/* NULL: it has no samples. */
const struct span_cpu_entry *span_cpu_find(const struct span_cpu *table,
                                           const uint8_t trace_id[static 16], uint64_t span_id);
