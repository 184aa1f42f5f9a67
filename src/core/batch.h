/* SPDX-License-Identifier: Apache-2.0 */
/* One signal's worth of telemetry: an encoded OTLP Export…ServiceRequest as a list of parts, each a
 * view into a counted buffer. The parts in order, concatenated, are the message (repeated field 1,
 * so concatenated requests are one request). Immutable once handed on; an edit makes a new batch
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

/* Of skips: the destinations that store have bits of their own, the others this one together. */
enum { STORING_MAX = 31 };
#define SKIP_OTHERS (UINT32_C(1) << STORING_MAX)

/* By how much an edit may go beyond the budget, margin or not, if batch_may_exceed: what holds the
 * memory may be batches that wait for the edit. */
enum { BATCH_LATE_BYTES_FREE = 1 << 20 };

struct batch_part {
    struct buffer *owner; /* the batch holds a reference; parts may share a buffer */
    struct slice bytes;   /* inside owner */
};

struct batch {
    _Atomic unsigned refs;
    enum signal_kind signal;
    bool is_joint;        /* of a record in a journal: other destinations get it, too */
    bool is_acknowledged; /* its clients got an OK: a later failure is a drop, not a rejection */
    bool is_stored;       /* a journal has it: refused for the moment, it comes again */
    uint32_t skips;       /* destinations of its pipeline that do not get it; 0: all get it */
    uint32_t skipped;     /* how many those are */
    uint64_t items;       /* spans, data points, log records or samples */
    uint64_t bytes;       /* sum of the parts */
    uint64_t arrival_ns;  /* of its oldest request, on clock_now_ns's scale */
    /* Set by otlp_split on the rest: down to which depth of the first Resource… message, following
     * the first child, all other fields precede the children, and how many bytes they take at each
     * depth (from 1 on). The next cut skips them. */
    unsigned sorted_levels;
    uint64_t sorted_bytes[BATCH_SORTED_LEVELS_MAX + 1];
    struct client_info *client; /* NULL: not needed, or merged from several */
    size_t parts_count;
    size_t parts_capacity;
    struct budget *budget;    /* a long list of parts is charged to it; NULL: not charged */
    struct batch_part *parts; /* &first_part, or allocated */
    struct batch_part first_part;
};

/* Returns an empty batch with one reference and room for parts_capacity parts (it grows). Its
 * arrival is now. */
struct batch *batch_create(enum signal_kind signal, size_t parts_capacity);
/* Returns an empty batch with the same signal, arrival, client and acknowledgement. */
struct batch *batch_create_like(const struct batch *model, size_t parts_capacity);
/* Whether work on the batch goes beyond the budget rather than refuse it: nobody would send it
 * again. How far, batch_has_room says. */
bool batch_may_exceed(const struct batch *batch);
/* Whether so many bytes may be taken for work on the batch: there is room in the budget; or, if
 * batch_may_exceed, in its margin, or they are no more than the margin and than twice the batch's
 * own, as for most work, while not more than the margin is in use. False: it waits for what others
 * hold. A NULL budget has room. */
bool batch_has_room(const struct batch *batch, const struct budget *budget, uint64_t bytes);
/* Whether it would wait for ever: they and the batch, which is in the budget, are more than that
 * has for work on it. */
bool batch_never_fits(const struct batch *batch, const struct budget *budget, uint64_t bytes);
/* Between these, work on the batch on this thread may use the budget's margin if batch_may_exceed
 * (budget_begin_late). May nest. */
void batch_begin_work(const struct batch *batch);
void batch_end_work(const struct batch *batch);
/* What the batch takes beside its data, as far as no budget is charged with it. In bytes. */
uint64_t batch_uncharged_bytes(const struct batch *batch);
/* Takes a reference. Returns batch. */
struct batch *batch_ref(struct batch *batch);
/* Releases a reference; the last one frees the batch. NULL is a no-op. */
void batch_unref(struct batch *batch);
/* True when there are other references. */
bool batch_is_shared(const struct batch *batch);

/* Only while the batch has one reference. Takes a reference to owner; joins a part that continues
 * the last one. */
void batch_append(struct batch *batch, struct buffer *owner, struct slice bytes);
/* The same without the reference. True: there is another part, and the caller takes a reference for
 * it (buffer_ref_many) before anyone else sees the batch. */
bool batch_append_held(struct batch *batch, struct buffer *owner, struct slice bytes)
    __attribute__((warn_unused_result));
/* Appends parts as they are, none of them empty, without references: the caller takes one for each
 * before anyone else sees the batch. */
void batch_append_parts_held(struct batch *batch, const struct batch_part *parts, size_t count);
/* Adds the items and the arrival of other, whose bytes have been appended already. */
void batch_take_in(struct batch *batch, const struct batch *other);
/* Appends every part of other and adds its items. */
void batch_append_batch(struct batch *batch, const struct batch *other);
/* Returns all parts in one piece: the only part, with a new reference to its owner, or a copy.
 * False: the budget refuses the copy. */
bool batch_join(const struct batch *batch, struct budget *budget, struct batch_part *ret_whole)
    __attribute__((warn_unused_result));
/* The same, but as far as batch_has_room: what it holds comes free once it has been read. */
bool batch_join_owed(const struct batch *batch, struct budget *budget, struct batch_part *ret_whole)
    __attribute__((warn_unused_result));
/* The same as a batch, with a new reference: batch itself when it has one part. Never refused: for
 * the few bytes that finish what was already accepted. */
struct batch *batch_in_one_part(struct batch *batch, struct budget *budget);
