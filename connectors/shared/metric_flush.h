/* SPDX-License-Identifier: Apache-2.0 */
/* Sends what a connector has counted to the pipelines of metrics, in pieces of one request each,
 * one a turn of the loop. One flush at a time: while requests of the last one are on their way, all
 * that is asked for becomes the next one. What is refused comes again with the next flush, since
 * the metrics are cumulative. On the lane of its connector. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/lane.h"

struct batch;
struct component;

enum metric_piece { PIECE_WRITTEN, PIECE_END, PIECE_NO_ROOM };

struct metric_flush {
    struct component *owner;
    /* Writes the next piece, from the first one on when is_first is set. wall_ns: Unix time of the
     * flush. The caller owns *ret_batch; with PIECE_WRITTEN it may be NULL: nothing to send was
     * found yet. PIECE_END: there is none. PIECE_NO_ROOM: the budget refuses; the flush ends. */
    enum metric_piece (*write)(struct component *owner, uint64_t wall_ns, bool is_first,
                               struct batch **ret_batch);
    /* All that was asked for is done, and nothing is on its way. */
    void (*idle)(struct component *owner);
    struct lane_job next; /* piece */
    uint64_t wall_ns;
    unsigned offers; /* requests that were not answered yet */
    bool is_first;
    bool is_under_way;
    bool is_wanted; /* another flush */
};

void metric_flush_init(struct metric_flush *flush, struct component *owner,
                       enum metric_piece (*write)(struct component *, uint64_t, bool,
                                                  struct batch **),
                       void (*idle)(struct component *));
/* Asks for a flush. Calls idle at its end, maybe before it returns. */
void metric_flush_ask(struct metric_flush *flush);
/* Calls idle, now or at the end of the flush that is under way. */
void metric_flush_finish(struct metric_flush *flush);
