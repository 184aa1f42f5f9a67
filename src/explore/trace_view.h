/* SPDX-License-Identifier: Apache-2.0 */
/* One trace as a waterfall: its spans depth first, children by start, with what the page draws of
 * each. Spans whose parent is missing, or in a circle, stand at the top. On the explore worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/explore/trace_query.h"
#include "src/explore/trace_store.h"

struct budget;

#define VIEW_NONE UINT32_MAX

struct view_row {
    uint64_t span_id;
    uint64_t start_ns; /* unix */
    uint64_t duration_ns;
    uint64_t self_ns; /* not covered by children */
    uint64_t cpu_ns;  /* of its profile's samples */
    uint32_t samples;
    uint32_t parent;  /* row; VIEW_NONE: none */
    uint32_t subtree; /* rows, with itself */
    uint32_t depth;
    uint32_t service; /* index into the view's services */
    uint32_t name;    /* number in the store's strings */
    uint32_t block;   /* low bits of the number of its block */
    uint16_t events;
    uint16_t links;
    uint8_t kind;
    uint8_t status;
    bool is_critical;
    bool is_orphan; /* its parent is missing */
};

struct view_service {
    uint32_t name;
    uint32_t spans;
    uint64_t samples;
};

struct trace_view {
    uint64_t number;        /* of its trace; 0: the view is empty */
    uint32_t spans;         /* that the trace had */
    uint64_t profiles_seen; /* of the profile store, when samples were filled in */
    uint64_t used_at;       /* to keep the ones that were used last */
    uint32_t count;
    struct view_row *rows;
    uint32_t *slots; /* by span id: row + 1 */
    uint32_t slots_mask;
    uint64_t seed; /* of the slots' hashes */
    struct view_service *services;
    uint32_t services_count;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t charged;
    struct budget *budget;
};

/* Assembles the trace of that number. On failure the view is empty. */
enum explore_result trace_view_build(struct trace_view *view, struct trace_store *store,
                                     uint64_t number, struct span_row *rows, struct budget *budget,
                                     const struct explore_limit *limit);
void trace_view_fini(struct trace_view *view);
/* VIEW_NONE: it has no such span. */
uint32_t trace_view_find(const struct trace_view *view, uint64_t span_id);
