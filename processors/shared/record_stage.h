/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that edits or leaves out records of each request and passes the rest on. What it
 * leaves out is counted in the ledger as unwanted, once the rest has its result: the client sends a
 * refused request again unchanged. Runs on its pipeline's lane; the lane's helper edits large
 * requests. */
#pragma once

#include "src/base/counter.h"
#include "src/core/component.h"
#include "src/records/record_edit.h"

struct record_stage;

/* A request's edit, on one thread at a time: the lane edits with the first, its helper with the
 * second. */
enum { RECORD_STAGE_EDITORS = 2 };

struct record_stage_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
};
/* Rows of these, for the counters struct `owner` of the component, which begins with them. */
#define RECORD_STAGE_ROWS(mask)                                                                    \
    COUNTER_BY_SIGNAL(struct record_stage_counters, incoming, COUNTER_SUM,                         \
                      "otelcol_processor_incoming_items", mask, NULL, NULL,                        \
                      "Items passed to the processor."),                                           \
        COUNTER_BY_SIGNAL(struct record_stage_counters, outgoing, COUNTER_SUM,                     \
                          "otelcol_processor_outgoing_items", mask, NULL, NULL,                    \
                          "Items emitted from the processor.")

/* As record_edit_run. */
typedef struct batch *(*record_stage_fn)(void *editor, struct record_edit *edit,
                                         struct batch *batch);
/* On the lane, after each request that was passed on, or of which nothing was left. */
typedef void (*record_stage_done_fn)(struct record_stage *stage, void *editor);

/* First member of the instance. */
struct record_stage {
    struct component base;
    bool has_edits;
    record_stage_fn run;
    record_stage_done_fn done; /* NULL: nothing */
    /* After the last request, before the stage has stopped. NULL: nothing. */
    void (*stopped)(struct record_stage *stage);
    void *editors[RECORD_STAGE_EDITORS];
    struct record_edit edits[RECORD_STAGE_EDITORS];
    unsigned helped; /* requests that are with the helper */
    bool is_stopping;
};

/* Called by create. The editors are the owner's and outlive the stage's destroy. */
void record_stage_init(struct record_stage *self, record_stage_fn run, void *first, void *second);
/* Slots of the factory. */
void record_stage_consume(struct component *component, struct batch *batch,
                          struct receipt *receipt);
void record_stage_stop(struct component *component);
void record_stage_destroy(struct component *component);
