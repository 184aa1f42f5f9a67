/* SPDX-License-Identifier: Apache-2.0 */
/* Names of services and spans, each stored once and found by number. Counted: a block of spans
 * holds a reference to each of its names, and a name without references is freed. Number 0 is the
 * empty string and always there. One owner (the explore worker). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct string_entry;

struct string_table {
    struct string_entry **entries; /* by number; NULL: free */
    uint32_t *buckets;             /* chains of numbers; 0 ends */
    uint32_t *unused;              /* numbers to use again */
    uint32_t entries_count;
    uint32_t entries_capacity;
    uint32_t unused_count;
    uint32_t buckets_count; /* a power of two */
    uint32_t live;
    uint64_t seed;
    uint64_t bytes; /* of memory */
};

void string_table_init(struct string_table *table);
void string_table_fini(struct string_table *table);
/* The number of the text, cut to EXPLORE_STRING_BYTES_MAX. Adds no reference: an entry that nobody
 * refers to stays until _unref. `mark` is stored with it; *ret_is_new: it had another mark, so
 * the caller has not met it under this one. */
uint32_t string_table_add(struct string_table *table, struct slice text, uint64_t mark,
                          bool *ret_is_new);
/* 0: not in the table (or empty). */
uint32_t string_table_find(const struct string_table *table, struct slice text);
struct slice string_table_at(const struct string_table *table, uint32_t number);
/* 0 is a no-op in both. */
void string_table_ref(struct string_table *table, uint32_t number);
void string_table_unref(struct string_table *table, uint32_t number);
