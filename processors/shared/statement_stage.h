/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that runs OTTL over every request and passes on what is left. What does not change is
 * shared with the request that arrived; a request that does not change at all goes on as it is.
 * Runs on its pipeline's lane; the lane's helper works on large requests. */
#pragma once

#include "src/base/counter.h"
#include "src/core/component.h"
#include "src/ottl/ottl_runner.h"

struct statement_stage_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
    counter filtered[SIGNAL_KINDS];
};

#define STATEMENT_STAGE_COUNTERS(signals)                                                          \
    COUNTER_BY_SIGNAL(struct statement_stage_counters, incoming, COUNTER_SUM,                      \
                      "otelcol_processor_incoming_items", signals, NULL, NULL,                     \
                      "Items passed to the processor."),                                           \
        COUNTER_BY_SIGNAL(struct statement_stage_counters, outgoing, COUNTER_SUM,                  \
                          "otelcol_processor_outgoing_items", signals, NULL, NULL,                 \
                          "Items emitted from the processor.")

/* First member of the instance. */
struct statement_stage {
    struct component base;
    struct ottl_plan **plans; /* run one after the other; owned */
    size_t plans_count;
    struct ottl_runner *runners;        /* one for each plan */
    struct ottl_runner *helper_runners; /* the same, for the lane's helper */
    const char *failure_message;        /* of the log, for what error_mode ignore passes over */
    unsigned helped;                    /* requests that are with the helper */
    bool is_stopping;
};

/* Called by create, with finished plans, which it takes over. prunes: messages without items are
 * removed. */
void statement_stage_init(struct statement_stage *self, struct ottl_plan *const *plans,
                          size_t count, bool prunes, const char *failure_message);
/* Slots of the factory. */
void statement_stage_consume(struct component *component, struct batch *batch,
                             struct receipt *receipt);
void statement_stage_stop(struct component *component);
void statement_stage_destroy(struct component *component);
