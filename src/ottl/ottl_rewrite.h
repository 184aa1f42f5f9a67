/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that make other metrics of a metric: they read its bytes with all changes so far, put
 * others in their place, or append metrics to the scope. Runs on the processor's thread. */
#pragma once

#include "src/ottl/ottl_edit.h"
#include "src/ottl/ottl_node.h"

/* A metric that a statement appends for each data point of the metric at hand. */
struct ottl_made {
    const void *statement;
    struct slice bytes; /* no data: it appends none */
    struct ottl_made *next;
};

struct ottl_rewrite {
    struct ottl_edits edits; /* of the metric at hand, by places in its content */
    bool is_rewritten;       /* the metric at hand: its record's bytes are new ones */
    /* Metrics that the scope at hand gets, each as its size (a uint64_t) and its bytes, which are
     * filled up to OTTL_APPENDED_ALIGNMENT. Charged to the budget of the edits. */
    struct scratch appended;
    size_t appended_bytes;
    uint64_t left_bytes;    /* that may still be appended to the batch */
    struct ottl_made *made; /* in the memory of the metric's record, of these generations */
    uint64_t made_generations;
};

enum { OTTL_APPENDED_ALIGNMENT = 8 };

void ottl_rewrite_init(struct ottl_rewrite *rewrite, struct budget *budget);
/* Frees what is charged; begins with a batch of so many bytes. */
void ottl_rewrite_begin(struct ottl_rewrite *rewrite, uint64_t batch_bytes);
void ottl_rewrite_fini(struct ottl_rewrite *rewrite);

/* For functions. False: the run's error is set. */
/* The metric with all that statements have changed in it and in its data, though not in its data
 * points: a Metric. */
bool ottl_metric_current(struct ottl_run *run, struct slice *ret_metric);
/* The metric becomes this one. The bytes are in the run's memory. */
void ottl_metric_replace(struct ottl_run *run, struct slice metric);
/* Appends a metric to the scope; statements of the group will run on it, too. Copies the bytes. */
bool ottl_metric_append(struct ottl_run *run, struct slice metric);
/* What a statement on data points makes of the whole metric is made once, since it is the same for
 * all of them as long as nothing but them changes. NULL: it is not made yet. */
const struct ottl_made *ottl_metric_made(struct ottl_run *run, const void *statement);
/* Keeps it for the other points. Copies the bytes. */
bool ottl_metric_keep(struct ottl_run *run, const void *statement, struct slice metric);

/* For the runner. Opens the record of the metric's data: the last field that has some. */
void ottl_metric_open_data(struct ottl_run *run);
/* The message `content` with the edits, in memory. False: it is refused. */
bool ottl_rewrite_apply(struct ottl_edits *edits, struct slice content, struct ottl_memory *memory,
                        struct slice *ret);
/* Forgets edits, but keeps their memory. */
void ottl_edits_reuse(struct ottl_edits *edits);
