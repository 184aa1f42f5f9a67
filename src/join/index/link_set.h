/* SPDX-License-Identifier: Apache-2.0 */
/* The distinct spans that a profiles request names, each with what is known of it. A place is a
 * number that stays, while the entries may move. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

struct budget;

/* How a span is named; equal bytes are the same span. */
struct link_key {
    uint64_t trace[2];
    uint64_t span;
    uint64_t has_trace;
};

/* No place. */
#define LINK_NONE UINT32_MAX

/* Three cache lines: what its samples want, what the index knows, what they get. */
struct join_link {
    struct link_key key;
    uint8_t found;           /* enum span_found */
    bool is_known;           /* some such samples are of a service whose spans have been seen */
    bool is_lifted;          /* some of its samples name it by labels */
    bool is_as_it_came;      /* samples that have a link keep it */
    bool is_unsettled;       /* FOUND, but keep or count_for needs more (profile_keep_unsettled) */
    uint32_t wanted;         /* bits of the attributes that some of its samples lack */
    uint32_t given;          /* bits of those that the span has */
    uint32_t above;          /* place of its parent in the same process (profile_copies); 0: none */
    uint32_t index;          /* in the link table with the additions; 0: none */
    struct span_facts facts; /* FOUND: of the span, or of its local root */
    uint32_t attributes[JOIN_ATTRIBUTES_MAX]; /* in the attribute table, likewise */
};

struct link_set {
    struct budget *budget;   /* NULL: nothing is charged */
    struct join_link *items; /* by place; the first is none */
    uint32_t count;          /* with that */
    uint32_t capacity;
    uint32_t *slots; /* places by key: open addressing, at most half full; 0: empty */
    uint32_t slots_count;
    uint64_t seed;
};

void link_set_init(struct link_set *set, struct budget *budget);
void link_set_fini(struct link_set *set);
/* Removes all links; the memory stays. */
void link_set_clear(struct link_set *set);
/* Makes room in an empty set for the expected links, or for the first of very many. False: no
 * memory. */
bool link_set_reserve(struct link_set *set, uint32_t expected);
/* The place of that key, which is added if it is new; LINK_NONE: no memory. */
uint32_t link_set_place(struct link_set *set, const struct link_key *key);
