/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic cumulative sums and histograms become deltas, as in the Go collector's
 * cumulativetodelta. Streams are remembered in a table that all editors share. One per thread. */
#pragma once

#include "src/base/arena.h"
#include "src/records/metric_stream.h"
#include "src/records/stream_table.h"

struct pattern;

enum delta_initial { DELTA_INITIAL_AUTO, DELTA_INITIAL_KEEP, DELTA_INITIAL_DROP };
enum delta_type { DELTA_SUM, DELTA_HISTOGRAM, DELTA_EXPONENTIAL, DELTA_TYPES };
enum delta_loss {
    DELTA_LOST_INITIAL,
    DELTA_LOST_RESET,
    DELTA_LOST_BUCKETS,
    DELTA_LOST_FULL,
    DELTA_LOSSES
};

/* Metrics by name and type. */
struct delta_match {
    size_t names_count; /* 0: all */
    const char *const *names;
    struct pattern **patterns; /* NULL: names are compared */
    bool has_types;
    bool types[DELTA_TYPES];
};

struct delta_settings {
    enum delta_initial initial;
    uint64_t started_ns; /* Unix time: the start of the component */
    const struct delta_match *include;
    const struct delta_match *exclude;
};

struct delta_figures {
    uint64_t converted[DELTA_TYPES];
    uint64_t dropped[DELTA_TYPES][DELTA_LOSSES];
};

struct delta_editor {
    struct delta_settings settings;
    struct stream_table *table; /* borrowed */
    struct metric_stream stream;
    struct arena arena;
    uint64_t now_ns;              /* Unix time of the request */
    struct delta_figures figures; /* of the last request */
};

/* The table for the editors of all pipelines. */
struct stream_table *delta_table_create(struct budget *budget);
/* Removes streams of a shard whose last point, or its arrival if that was earlier, is older; Unix
 * time. */
void delta_table_sweep(struct stream_table *table, unsigned shard, uint64_t before_ns);

void delta_editor_init(struct delta_editor *editor, const struct delta_settings *settings,
                       struct stream_table *table, struct budget *budget);
void delta_editor_fini(struct delta_editor *editor);
/* As record_edit_run. Not refused once a point has been remembered. */
struct batch *delta_editor_run(struct delta_editor *editor, struct record_edit *edit,
                               struct batch *batch);
