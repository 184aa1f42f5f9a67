/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: lists of views into counted buffers. Counted, any thread; filled by one holder, then
 * immutable. */
#include "src/core/batch.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/client_info.h"

/* Lists of up to so many parts are small beside their bytes and not charged. Longer ones are, along
 * with what an outgoing connection needs for each part while it is sent. */
enum { PARTS_UNCHARGED_MAX = 64, PART_SEND_BYTES = 40 };
#define PART_BYTES (sizeof(struct batch_part) + PART_SEND_BYTES)

static uint64_t charge_of(const struct batch *batch)
{
    bool is_charged = batch->budget != NULL && batch->parts_capacity > PARTS_UNCHARGED_MAX;
    return is_charged ? batch->parts_capacity * PART_BYTES : 0;
}

/* Charges beyond the budget's limit if need be; both lists while parts are copied. */
static void make_room(struct batch *batch, size_t parts_capacity, struct budget *budget)
{
    assert(parts_capacity > batch->parts_capacity);
    bool is_inside = batch->parts == &batch->first_part;
    uint64_t before = charge_of(batch);
    batch->budget = batch->budget != NULL ? batch->budget : budget;
    batch->parts_capacity = parts_capacity;
    if (charge_of(batch) > 0)
        budget_take(batch->budget, charge_of(batch));
    batch->parts =
        mem_resize(is_inside ? NULL : batch->parts, parts_capacity * sizeof(batch->parts[0]));
    if (is_inside)
        batch->parts[0] = batch->first_part;
    if (before > 0)
        budget_return(batch->budget, before);
}

static struct batch *create(enum signal_kind signal, size_t parts_capacity, struct budget *budget)
{
    assert(signal < SIGNAL_KINDS);
    struct batch *batch = mem_zalloc(sizeof(*batch));
    atomic_init(&batch->refs, 1);
    batch->signal = signal;
    batch->arrival_ns = clock_now_ns();
    batch->parts_capacity = 1;
    batch->parts = &batch->first_part;
    if (parts_capacity > 1)
        make_room(batch, parts_capacity, budget);
    return batch;
}

struct batch *batch_create(enum signal_kind signal, size_t parts_capacity)
{
    return create(signal, parts_capacity, NULL);
}

struct batch *batch_create_like(const struct batch *model, size_t parts_capacity)
{
    struct budget *budget = model->parts_count > 0 ? model->parts[0].owner->budget : NULL;
    struct batch *batch = create(model->signal, parts_capacity, budget);
    batch->arrival_ns = model->arrival_ns;
    batch->is_acknowledged = model->is_acknowledged;
    batch->is_stored = model->is_stored;
    batch->is_joint = model->is_joint;
    batch->skips = model->skips;
    batch->skipped = model->skipped;
    batch->client = model->client != NULL ? client_info_ref(model->client) : NULL;
    return batch;
}

bool batch_may_exceed(const struct batch *batch)
{
    return batch->is_acknowledged && !batch->is_stored;
}

bool batch_has_room(const struct batch *batch, const struct budget *budget, uint64_t bytes)
{
    enum { USUAL_GROWTH = 2 };
    if (!batch_may_exceed(batch))
        return budget_has_room(budget, bytes);
    if (budget == NULL)
        return true;
    const uint64_t margin = budget_limit(budget) / BUDGET_MARGIN_PART;
    if (bytes <= USUAL_GROWTH * batch->bytes && bytes <= margin)
        return !budget_is_overdrawn(budget);
    budget_begin_late();
    const bool has_room = budget_has_room(budget, bytes);
    budget_end_late();
    return has_room;
}

bool batch_never_fits(const struct batch *batch, const struct budget *budget, uint64_t bytes)
{
    return batch->bytes + bytes > budget_room_max(budget, batch_may_exceed(batch));
}

void batch_begin_work(const struct batch *batch)
{
    if (batch_may_exceed(batch))
        budget_begin_late();
}

void batch_end_work(const struct batch *batch)
{
    if (batch_may_exceed(batch))
        budget_end_late();
}

uint64_t batch_uncharged_bytes(const struct batch *batch)
{
    const bool is_list = batch->parts != &batch->first_part && charge_of(batch) == 0;
    return mem_taken(sizeof(*batch)) +
           (is_list ? mem_taken(batch->parts_capacity * sizeof(batch->parts[0])) : 0);
}

struct batch *batch_ref(struct batch *batch)
{
    unsigned old = atomic_fetch_add_explicit(&batch->refs, 1, memory_order_relaxed);
    assert(old > 0);
    return batch;
}

bool batch_is_shared(const struct batch *batch)
{
    return atomic_load_explicit(&batch->refs, memory_order_acquire) > 1;
}

/* Edited batches have parts of two buffers in turn: each is released once for many parts. */
static void unref_owners(const struct batch *batch)
{
    struct buffer *owners[2] = {NULL, NULL};
    unsigned holders[2] = {0, 0};
    unsigned last = 0;
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct buffer *owner = batch->parts[i].owner;
        if (owner != owners[last]) {
            last = !last;
            if (owner != owners[last]) {
                if (holders[last] > 0)
                    buffer_unref_many(owners[last], holders[last]);
                owners[last] = owner;
                holders[last] = 0;
            }
        }
        holders[last]++;
    }
    for (unsigned i = 0; i < 2; i++)
        if (holders[i] > 0)
            buffer_unref_many(owners[i], holders[i]);
}

void batch_unref(struct batch *batch)
{
    if (batch == NULL)
        return;
    unsigned old = atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel);
    assert(old > 0);
    if (old > 1)
        return;
    unref_owners(batch);
    client_info_unref(batch->client);
    if (batch->parts != &batch->first_part) {
        if (charge_of(batch) > 0)
            budget_return(batch->budget, charge_of(batch));
        mem_free(batch->parts);
    }
    mem_free(batch);
}

static bool is_inside(const struct buffer *owner, struct slice bytes)
{
    return bytes.data >= owner->data && bytes.data + bytes.size <= owner->data + owner->capacity;
}

static __attribute__((noinline)) bool append_to_full(struct batch *batch, struct buffer *owner,
                                                     struct slice bytes)
{
    make_room(batch, 2 * batch->parts_capacity, owner->budget);
    batch->parts[batch->parts_count++] = (struct batch_part){.owner = owner, .bytes = bytes};
    return true;
}

bool batch_append_held(struct batch *batch, struct buffer *owner, struct slice bytes)
{
    assert(atomic_load_explicit(&batch->refs, memory_order_relaxed) == 1);
    assert(is_inside(owner, bytes));
    if (bytes.size == 0)
        return false;
    batch->bytes += bytes.size;
    struct batch_part *last = batch->parts_count > 0 ? &batch->parts[batch->parts_count - 1] : NULL;
    if (last != NULL && last->owner == owner && last->bytes.data + last->bytes.size == bytes.data) {
        last->bytes.size += bytes.size;
        return false;
    }
    if (batch->parts_count == batch->parts_capacity)
        return append_to_full(batch, owner, bytes);
    batch->parts[batch->parts_count++] = (struct batch_part){.owner = owner, .bytes = bytes};
    return true;
}

void batch_append_parts_held(struct batch *batch, const struct batch_part *parts, size_t count)
{
    assert(count > 0);
    assert(atomic_load_explicit(&batch->refs, memory_order_relaxed) == 1);
    if (batch->parts_count + count > batch->parts_capacity)
        make_room(batch, 2 * batch->parts_capacity + count, parts[0].owner->budget);
    struct batch_part *to = &batch->parts[batch->parts_count];
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        assert(parts[i].bytes.size > 0 && is_inside(parts[i].owner, parts[i].bytes));
        to[i] = parts[i];
        bytes += parts[i].bytes.size;
    }
    batch->bytes += bytes;
    batch->parts_count += count;
}

void batch_append(struct batch *batch, struct buffer *owner, struct slice bytes)
{
    if (batch_append_held(batch, owner, bytes))
        buffer_ref(owner);
}

void batch_take_in(struct batch *batch, const struct batch *other)
{
    assert(other != batch);
    batch->items += other->items;
    if (other->arrival_ns < batch->arrival_ns)
        batch->arrival_ns = other->arrival_ns;
}

void batch_append_batch(struct batch *batch, const struct batch *other)
{
    assert(other != batch);
    assert(batch->signal == other->signal);
    for (size_t i = 0; i < other->parts_count; i++)
        batch_append(batch, other->parts[i].owner, other->parts[i].bytes);
    batch_take_in(batch, other);
}

static void fill_whole(const struct batch *batch, struct buffer *whole)
{
    assert(whole->size == 0);
    assert(whole->capacity >= batch->bytes);
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice bytes = batch->parts[i].bytes;
        memcpy(whole->data + whole->size, bytes.data, bytes.size);
        whole->size += bytes.size;
    }
}

bool batch_join(const struct batch *batch, struct budget *budget, struct batch_part *ret_whole)
{
    if (batch->parts_count == 1) {
        *ret_whole = batch->parts[0];
        buffer_ref(ret_whole->owner);
        return true;
    }
    struct buffer *whole = buffer_try_create(budget, batch->bytes);
    if (whole == NULL)
        return false;
    fill_whole(batch, whole);
    *ret_whole = (struct batch_part){.owner = whole, .bytes = buffer_slice(whole)};
    return true;
}

bool batch_join_owed(const struct batch *batch, struct budget *budget, struct batch_part *ret_whole)
{
    if (!batch_may_exceed(batch) || batch->parts_count == 1)
        return batch_join(batch, budget, ret_whole);
    if (!batch_has_room(batch, budget, batch->bytes))
        return false;
    struct buffer *whole = buffer_create(budget, batch->bytes);
    fill_whole(batch, whole);
    *ret_whole = (struct batch_part){.owner = whole, .bytes = buffer_slice(whole)};
    return true;
}

struct batch *batch_in_one_part(struct batch *batch, struct budget *budget)
{
    assert(batch->bytes > 0);
    if (batch->parts_count == 1)
        return batch_ref(batch);
    struct buffer *buffer = buffer_create(budget, batch->bytes);
    struct batch *whole = batch_create_like(batch, 1);
    fill_whole(batch, buffer);
    batch_append(whole, buffer, buffer_slice(buffer));
    whole->items = batch->items;
    buffer_unref(buffer);
    return whole;
}
