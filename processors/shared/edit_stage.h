/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that makes one request of each that arrives: edited, or without what the
 * configuration drops. What it drops is booked in the ledger once the rest has its result, since a
 * client sends a refused request again whole. Runs on its pipeline's lane; the lane's helper edits
 * large requests, and those that take long. Requests of metrics do not overtake each other. */
#pragma once

#include "src/base/counter.h"
#include "src/core/component.h"

struct edit_stage;
struct outcome;

/* Requests are edited at two places, each on one thread at a time. What an edit writes to, its
 * owner keeps once for each. */
enum edit_place { EDIT_ON_LANE, EDIT_ON_HELPER, EDIT_PLACES };

/* Counters of the component begin with these. */
struct edit_stage_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
};
#define EDIT_STAGE_ROWS(signals)                                                                   \
    COUNTER_BY_SIGNAL(struct edit_stage_counters, incoming, COUNTER_SUM,                           \
                      "otelcol_processor_incoming_items", signals, NULL, NULL,                     \
                      "Items passed to the processor."),                                           \
        COUNTER_BY_SIGNAL(struct edit_stage_counters, outgoing, COUNTER_SUM,                       \
                          "otelcol_processor_outgoing_items", signals, NULL, NULL,                 \
                          "Items emitted from the processor.")

/* Numbers that an edit counts in its request; what they are, its owner knows. */
enum { EDIT_FIGURES_MAX = 16 };

struct edit_result {
    enum {
        EDIT_DONE,
        EDIT_NO_ROOM,    /* the budget has no room now */
        EDIT_NEVER_FITS, /* the edit takes more than the whole budget */
        EDIT_FAILED,     /* the client may send it again; `failure` says why */
        EDIT_LONG,       /* on the lane: it takes long, and the helper has to begin it anew */
    } verdict;
    struct batch *batch; /* DONE: a reference; NULL: nothing is left */
    uint64_t dropped;    /* DONE: items that are not in batch */
    uint64_t made;       /* DONE: items that are new; not both */
    const char *failure; /* FAILED: stays valid until the next edit at this place */
    uint64_t figures[EDIT_FIGURES_MAX];
};

struct edit_stage_ops {
    /* On the lane or on its helper. */
    struct edit_result (*edit)(struct edit_stage *self, enum edit_place place, struct batch *batch);
    /* The others on the lane; NULL: nothing. */
    /* After each edit that is done, with what it has returned: the helper may be at the next one.
     */
    void (*edited)(struct edit_stage *self, const struct edit_result *result);
    /* Items were dropped for good. */
    void (*dropped)(struct edit_stage *self, const struct batch *dropped);
    /* After the last request, before the stage has stopped. */
    void (*stopped)(struct edit_stage *self);
    /* Responses to EDIT_NO_ROOM and EDIT_NEVER_FITS. */
    const char *no_room;
    const char *never_fits;
};

/* First member of the instance. */
struct edit_stage {
    struct component base;
    const struct edit_stage_ops *ops; /* set by create */
    unsigned helped;                  /* requests that are with the helper */
    bool is_stopping;
};

/* Slots of the factory. */
void edit_stage_consume(struct component *component, struct batch *batch, struct receipt *receipt);
void edit_stage_stop(struct component *component);
