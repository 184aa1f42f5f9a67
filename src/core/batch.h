/* SPDX-License-Identifier: Apache-2.0 */
/* One signal's worth of telemetry: an encoded OTLP Export…ServiceRequest as a list of parts, each a
 * view into a counted buffer. The parts in order, concatenated, are the message (repeated field 1,
 * so concatenated requests are one request). Immutable once handed on; who edits makes a new batch
 * that shares every byte it did not touch. Counted, any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct budget;
struct buffer;
struct client_info;

/* Resource…, Scope…, Metric, its Gauge, Sum or the like. */
enum { BATCH_SORTED_LEVELS_MAX = 4 };

struct batch_part {
    struct buffer
        *owner; /* a reference of the batch's own; the same buffer may stand behind many parts */
    struct slice bytes; /* inside owner */
};

struct batch {
    _Atomic unsigned refs;
    enum signal_kind signal;
    bool is_acknowledged; /* its senders were told OK: a later failure is a drop, not a rejection */
    uint64_t items;       /* spans, data points, log records or samples */
    uint64_t bytes;       /* sum of the parts */
    uint64_t arrival_ns;  /* of its oldest request, on clock_now_ns's scale */
    /* Set by otlp_split on what it leaves over: how deep in the first Resource… message, always
     * following the first child, everything else stands before the children, and how many bytes
     * that is at each depth (from 1 on). The next cut need not look at them again. */
    unsigned sorted_levels;
    uint64_t sorted_bytes[BATCH_SORTED_LEVELS_MAX + 1];
    struct client_info *client; /* NULL: nobody asked for it, or merged from several */
    size_t parts_count;
    size_t parts_capacity;
    struct budget *budget;    /* what a long list of parts is charged to; NULL: none is */
    struct batch_part *parts; /* &first_part, or allocated */
    struct batch_part first_part;
};

/* An empty batch, which has one holder, with room for parts_capacity parts (it grows). It arrives
 * now. */
struct batch *batch_create(enum signal_kind signal, size_t parts_capacity);
/* A batch of the same signal, arrival, client and acknowledgement, with no parts and no items yet.
 */
struct batch *batch_create_like(const struct batch *model, size_t parts_capacity);
/* One more holder. Returns batch. */
struct batch *batch_ref(struct batch *batch);
/* The last one frees it, with its references to buffers. NULL is tolerated. */
void batch_unref(struct batch *batch);
/* Whether somebody else holds a reference, too. */
bool batch_is_shared(const struct batch *batch);

/* Only while the batch has one holder. Takes a reference to owner of its own; joins a part that
 * continues the last one. */
void batch_append(struct batch *batch, struct buffer *owner, struct slice bytes);
/* Other's items and its arrival count as this batch's, whose bytes are there already. */
void batch_take_in(struct batch *batch, const struct batch *other);
/* Appends every part of other and adds its items. */
void batch_append_batch(struct batch *batch, const struct batch *other);
/* All parts in one piece: the only part itself, whose owner then gets one more holder, or a copy.
 * False: the budget refuses the copy. */
bool batch_join(const struct batch *batch, struct budget *budget, struct batch_part *ret_whole)
    __attribute__((warn_unused_result));
/* The same as a batch, a new reference: batch itself when it has one part. Never refused: for the
 * few bytes that finish what was already taken. */
struct batch *batch_in_one_part(struct batch *batch, struct budget *budget);
