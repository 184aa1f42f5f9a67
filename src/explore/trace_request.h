/* SPDX-License-Identifier: Apache-2.0 */
/* Kept spans as a request again. On the explore worker. */
#pragma once

#include "src/explore/trace_store.h"

struct nested_output;

/* Adds the block's rows from first to end: a ResourceSpans for each run of spans with one context,
 * or for each resource where those would be very large. bodies and rows are the block's. False: no
 * memory, and nothing is added. */
bool trace_request_put(struct nested_output *output, const struct trace_store *store,
                       const struct block_view *block, struct slice bodies,
                       const struct span_row *rows, uint32_t first, uint32_t end)
    __attribute__((warn_unused_result));
