/* SPDX-License-Identifier: Apache-2.0 */
/* Whose samples a flame graph shows: a trace's, some spans' with or without those below them, a
 * service's, spans' of one name (all, the slow ones, the others), other traces' of one root name.
 * On the explore worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/explore/explore_asking.h"

enum explore_mode {
    SELECT_ALL,    /* linked or not, by service and time */
    SELECT_TRACE,  /* all of one trace */
    SELECT_SPANS,  /* a set of spans */
    SELECT_TRACES, /* a set of traces */
};

struct explore_selection {
    enum explore_mode mode;
    struct slice service; /* the query's; no data: any */
    uint64_t start_ns;    /* unix; start <= t < end */
    uint64_t end_ns;
    uint8_t trace_id[16];
    bool is_of_trace;    /* SPANS: they are all of that one */
    uint64_t longest_ns; /* of the spans that are named; 0: unknown */
    uint64_t seed;       /* of the hashes: clients choose ids */
    uint64_t *set;       /* hashes of ids; 0: free; charged … */
    size_t set_places;
    size_t set_count;
    struct budget *budget; /* … to this one */
};

/* False: the answer is an error. */
bool explore_selection_read(struct asking *asking, const struct explore_query *query,
                            struct explore_selection *ret_selection);
/* Does not forget mode and ids, which messages may still need. */
void explore_selection_fini(struct explore_selection *selection);
bool explore_selection_has(const struct explore_selection *selection, const uint8_t *trace_id,
                           const uint8_t *span_id);

struct profile_block;
/* Whether samples that it picks may be in a block of profiles. service: the number of its service's
 * name. */
bool explore_selection_wants(const struct explore_selection *selection,
                             const struct profile_block *block, uint32_t service);

/* Why there are no samples, in words for the person. */
enum { EXPLORE_WHY_BYTES_MAX = 320 };
void explore_why(const struct explore_data *data, const struct explore_selection *selection,
                 char why[EXPLORE_WHY_BYTES_MAX]);
/* Writes that as a string. */
void put_reason(struct asking *asking, const struct explore_selection *selection);
/* Writes "types":[…] of what it picks. */
void put_types(struct asking *asking, struct explore_selection *selection);
