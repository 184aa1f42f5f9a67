/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that runs OTTL over every request and passes on what is left. What does not change is
 * shared with the request that arrived; a request that does not change at all goes on as it is. */
#pragma once

#include "processors/shared/edit_stage.h"
#include "src/ottl/ottl_runner.h"
#include "src/records/log_flattening.h"

struct statement_stage_counters {
    struct edit_stage_counters stage; /* first */
    counter filtered[SIGNAL_KINDS];
};

/* First member of the instance. */
struct statement_stage {
    struct edit_stage stage;
    struct ottl_plan **plans; /* run one after the other; owned */
    size_t plans_count;
    struct ottl_runner *runners[EDIT_PLACES]; /* one for each plan */
    const char *failure_message; /* of the log, for what error_mode ignore passes over */
    bool flattens;               /* logs: each record has its own Resource and scope meanwhile */
    struct log_flattening flattenings[EDIT_PLACES];
};

/* Called by create, with finished plans, which it takes over. prunes: messages without items are
 * removed. */
void statement_stage_init(struct statement_stage *self, struct ottl_plan *const *plans,
                          size_t count, bool prunes, const char *failure_message);
/* After that, of logs: each record is edited with a Resource and a scope of its own. */
void statement_stage_flatten(struct statement_stage *self);
/* Slot of the factory; a stage that was not initialized is fine. */
void statement_stage_destroy(struct component *component);
