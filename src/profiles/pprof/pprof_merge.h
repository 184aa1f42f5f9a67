/* SPDX-License-Identifier: Apache-2.0 */
/* Merges pprof profiles: every value type gets a column, equal samples are summed, and what they
 * refer to is stored once. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profiles/otlp/profile_set.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pprof/pprof_writer.h"

struct budget;
struct buffer;
struct error;

enum { PPROF_COLUMNS_MAX = 64 };

struct pprof_merge {
    struct budget *budget; /* NULL: not charged */
    struct pprof_writer writer;
    struct profile_set columns; /* type and unit, as strings of the writer; from 1 on */
    struct profile_set functions;
    struct profile_set mappings;
    struct pprof_mapping *mapping_rows; /* by id; written at the end, when their flags are known */
    uint32_t mapping_rows_capacity;
    struct profile_set locations;
    struct profile_set samples; /* stacks with their labels */
    struct profile_set times;   /* time and duration of the merged profiles */
    struct profile_set comments;
    int64_t *values;          /* columns_room for each of samples */
    uint32_t values_capacity; /* the same, counted in samples */
    uint32_t columns_room;
    uint64_t *words; /* scratch for one key */
    uint32_t words_capacity;
    uint64_t charged_bytes; /* for rows and values; sets and the writer charge their own */
    bool is_full;           /* the budget has no room for what it was given */
    struct pprof head;      /* fields that exist once: the first profile that sets one wins */
};

/* The merged profile may be much larger than what it is made of: each sample has its stack. */
void pprof_merge_init(struct pprof_merge *merge, struct budget *budget);
void pprof_merge_fini(struct pprof_merge *merge);
/* False: more value types than PPROF_COLUMNS_MAX, or the budget has no room; nothing more may be
 * added. */
bool pprof_merge_add(struct pprof_merge *merge, const struct pprof *pprof, struct error *error);
/* The profile, owned by the caller; NULL: larger than the limit of files, or than the budget has
 * room for. */
struct buffer *pprof_merge_take(struct pprof_merge *merge, struct error *error);
