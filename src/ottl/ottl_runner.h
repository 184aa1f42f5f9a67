/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan over batches. One runner per thread that does; reused from batch to batch. */
#pragma once

#include "src/ottl/ottl_dictionary.h"
#include "src/ottl/ottl_edit.h"
#include "src/ottl/ottl_plan.h"
#include "src/ottl/ottl_rewrite.h"

struct batch;

/* What a run does with a record for which a condition holds. */
enum ottl_purpose {
    OTTL_DROPS,        /* it goes; or the plan has statements */
    OTTL_VISITS,       /* a visitor sees every record */
    OTTL_EDITS,        /* of a division: a statement runs, and what was decided is noted */
    OTTL_LEAVES,       /* of a division: it goes, and what was decided is noted */
    OTTL_LEAVES_NOTED, /* the same, as was noted */
    OTTL_PICKS,        /* of a division: it stays, the others go */
    OTTL_PICKS_NOTED,  /* the same, as was noted */
};

struct ottl_runner {
    const struct ottl_plan *plan;
    struct budget *budget;
    enum ottl_context item; /* the records of the signal */
    /* Called for each failure that error_mode ignore reports. May be NULL. */
    void (*on_failure)(void *arg, const char *text, const char *error);
    void *arg;
    struct ottl_run run;
    struct ottl_record records[OTTL_CONTEXTS];
    struct ottl_dictionary dictionary;
    struct ottl_edits edits;
    bool prunes;      /* messages without items are removed, whatever emptied them */
    uint64_t dropped; /* items, of this batch */
    struct ottl_rewrite rewrite;
    struct ottl_edits detached; /* of a metric that is appended */
    uint64_t made;              /* items, of this batch */
    bool is_aborted;            /* the run's error says why */
    const struct lane *lane;    /* set by the owner, see OTTL_TOO_LONG. NULL: it may take long */
    unsigned steps;             /* records, and KiB of them, since it looked at the clock */
    bool is_too_long;
    bool is_too_large;    /* a limit of records or edits refused memory that had to be */
    uint64_t outer_bytes; /* of a batch that is held beside the one at hand */
    /* Of a division: */
    enum ottl_purpose purpose;
    struct scratch noted;               /* a bit for each record: a condition held */
    uint64_t decided;                   /* records, of this run */
    uint64_t matches;                   /* those for which a condition held */
    uint64_t resources;                 /* that are left */
    const struct ottl_visitor *visitor; /* VISITS */
};

/* Who sees the records of a batch, each while it and those around it are open in the runner. False:
 * the visit ends, for want of memory or with the run's error. */
struct ottl_visitor {
    /* Before and after the records of a Resource. */
    bool (*begin_resource)(void *arg);
    bool (*end_resource)(void *arg);
    bool (*record)(void *arg, enum ottl_context context);
    void *arg;
};

enum ottl_verdict {
    OTTL_PASSED,    /* batch is the result; maybe the one that was given */
    OTTL_EMPTIED,   /* nothing is left */
    OTTL_REFUSED,   /* error_mode propagate: error has the reason */
    OTTL_NO_MEMORY, /* the budget has no room, or a limit of ottl_limits.h is met */
    /* On a lane: what reads more than OTTL_LANE_OUTER_…, has a record of more than
     * OTTL_LANE_RECORD_BYTES_MAX, or still runs when the lane has been held for LANE_EDIT_NS, is
     * for another runner, on a thread that may take longer. */
    OTTL_TOO_LONG,
};

struct ottl_result {
    enum ottl_verdict verdict;
    struct batch *batch; /* PASSED: a reference */
    uint64_t dropped;    /* items */
    uint64_t made;       /* items that are new */
    bool never_fits;     /* NO_MEMORY: more than the whole budget is needed, or than a limit */
    const char *error;   /* of the runner */
};

/* The plan is finished and outlives the runner. */
void ottl_runner_init(struct ottl_runner *runner, const struct ottl_plan *plan,
                      struct budget *budget);
void ottl_runner_fini(struct ottl_runner *runner);
/* For a batch whose client has got its OK the budget has a margin (budget_begin_late). */
struct ottl_result ottl_runner_run(struct ottl_runner *runner, struct batch *batch);

/* The records for which a condition holds, and the others, each with the messages around them. */
struct ottl_division {
    enum ottl_verdict verdict; /* PASSED, REFUSED or NO_MEMORY */
    struct batch *matched;     /* a reference; NULL: none */
    struct batch *rest;        /* the same */
    bool never_fits;
    const char *error; /* of the runner */
};

/* Divides a batch by a plan of one context, which has conditions and no statements, or one
 * statement and no conditions: that runs first, and the records for which it did match. is_copy:
 * only what matches is taken, and rest has all records. Except among whole Resources, messages
 * without items belong to neither part. Each condition is evaluated once. */
struct ottl_division ottl_runner_divide(struct ottl_runner *runner, struct batch *batch,
                                        bool is_copy);

/* Shows all records of the contexts that ottl_plan_visit has named; nothing changes. Returns
 * PASSED, without a batch, REFUSED or NO_MEMORY. */
struct ottl_result ottl_runner_visit(struct ottl_runner *runner, struct batch *batch,
                                     const struct ottl_visitor *visitor);
/* Whether a condition of the sequence holds for the record that is open, for a visitor: OTTL_FALSE,
 * _TRUE, or _FAILED with the run's error. A sequence without conditions holds. */
int ottl_runner_test(struct ottl_runner *runner, const struct ottl_sequence *sequence);
/* Whether a plan of ottl_runner_divide, on otelcol, matches the request. OTTL_FAILED: it failed
 * with error_mode propagate, and the run's error says why, or it is too long for the lane. */
int ottl_runner_test_request(struct ottl_runner *runner, struct batch *batch);

/* For those who come to spans one by one, with a plan of conditions on spans and their events.
 * Memory is charged to the budget of _init, beyond its limit if need be: at most
 * OTTL_RECORD_BYTES_MAX for each of a resource, a scope, a span and an event. */

/* What the conditions may read of records around theirs from now on, in bytes, and what is left of
 * it: those that read more fail. From _init and _rest on it is OTTL_OUTER_BYTES_MIN. */
static inline void ottl_runner_allow(struct ottl_runner *runner, uint64_t bytes)
{
    runner->run.work_left = bytes;
}

static inline uint64_t ottl_runner_allowed(const struct ottl_runner *runner)
{
    return runner->run.work_left;
}

/* The Resource, or the scope, of the spans that follow. fields: of the message around it, without
 * what repeats below; they stay valid for these spans. False: memory is refused. */
bool ottl_runner_enter(struct ottl_runner *runner, enum ottl_context head, struct slice fields);
/* OTTL_TRUE: a condition holds for the span, or for one of its events. OTTL_FAILED: one failed
 * before, with error_mode propagate. */
int ottl_runner_test_span(struct ottl_runner *runner, struct slice span);
/* Before other work comes between: what is charged is freed. What was entered is forgotten. */
void ottl_runner_rest(struct ottl_runner *runner);
