/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and histograms of deltas become cumulative, as in the Go collector's deltatocumulative.
 * Streams are remembered in a table that all editors share. One per thread. */
#pragma once

#include "src/base/arena.h"
#include "src/records/metric_stream.h"
#include "src/records/stream_table.h"

enum sum_loss { SUM_NOT_LOST, SUM_LOST_LIMIT, SUM_LOST_OLDER, SUM_LOST_ORDER, SUM_LOSSES };

struct sum_editor {
    struct stream_table *table; /* borrowed */
    struct metric_stream stream;
    struct arena arena;
    uint64_t now_ns;             /* of the request, on clock_now_ns's scale */
    uint64_t points[SUM_LOSSES]; /* of the last request */
};

/* The table for the editors of all pipelines. */
struct stream_table *sum_table_create(uint64_t streams_max, struct budget *budget);
/* Removes streams of a shard that had no point since then, on clock_now_ns's scale. */
void sum_table_sweep(struct stream_table *table, unsigned shard, uint64_t before_ns);

void sum_editor_init(struct sum_editor *editor, struct stream_table *table, struct budget *budget);
void sum_editor_fini(struct sum_editor *editor);
/* As record_edit_run. Not refused once a point has been remembered. */
struct batch *sum_editor_run(struct sum_editor *editor, struct record_edit *edit,
                             struct batch *batch);
