/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the series as OTLP metrics. Under the store's lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "connectors/service_graph/graph_store.h"
#include "connectors/shared/metric_flush.h"
#include "src/base/slice.h"

struct batch;
struct budget;

enum {
    GRAPH_PIECE_SERIES = 256,                 /* series of one request … */
    GRAPH_PIECE_ATTRIBUTE_BYTES = 128 * 1024, /* … which ends earlier after that much */
};

/* Constant. */
struct graph_page {
    /* Names of the dimensions' attributes on each side, "client_…" and "server_…". */
    const struct slice *labels[GRAPH_SIDES];
    bool has_virtual_label; /* virtual_node_extra_label */
    uint64_t offset_ns;     /* metrics_timestamp_offset */
};

/* Writes the next series from *at on, which begins as 0, as one request with all their metrics. The
 * caller owns the batch. wall_ns: Unix time now. */
enum metric_piece graph_metrics_write(const struct graph_store *store,
                                      const struct graph_page *page, uint64_t wall_ns,
                                      struct budget *budget, size_t *at, struct batch **ret_batch);
