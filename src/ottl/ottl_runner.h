/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan over batches. One runner per thread that does; reused from batch to batch. */
#pragma once

#include "src/ottl/ottl_edit.h"
#include "src/ottl/ottl_plan.h"

struct batch;

struct ottl_runner {
    const struct ottl_plan *plan;
    struct budget *budget;
    enum ottl_context item; /* the records of the signal */
    /* Called for each failure that error_mode ignore reports. May be NULL. */
    void (*on_failure)(void *arg, const char *text, const char *error);
    void *arg;
    struct ottl_run run;
    struct ottl_record records[OTTL_CONTEXTS];
    struct ottl_edits edits;
    bool prunes;      /* messages without items are removed, whatever emptied them */
    uint64_t dropped; /* items, of this batch */
    bool is_aborted;  /* the run's error says why */
};

enum ottl_verdict {
    OTTL_PASSED,    /* batch is the result; maybe the one that was given */
    OTTL_EMPTIED,   /* nothing is left */
    OTTL_REFUSED,   /* error_mode propagate: error has the reason */
    OTTL_NO_MEMORY, /* the budget has no room */
};

struct ottl_result {
    enum ottl_verdict verdict;
    struct batch *batch; /* PASSED: a reference */
    uint64_t dropped;    /* items */
    bool never_fits;     /* NO_MEMORY: more than the whole budget is needed */
    const char *error;   /* of the runner */
};

/* The plan is finished and outlives the runner. */
void ottl_runner_init(struct ottl_runner *runner, const struct ottl_plan *plan,
                      struct budget *budget);
void ottl_runner_fini(struct ottl_runner *runner);
/* A batch whose client has got its OK may exceed the budget: it cannot be refused any more. */
struct ottl_result ottl_runner_run(struct ottl_runner *runner, struct batch *batch);
