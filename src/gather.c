/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering and cutting. OTLP requests concatenate, so gathering is a list of slices, small ones
 * copied together; but profiles must be merged, which happens when they are cut. Runs on its
 * owner's lane. */
#include "src/gather.h"

#include <assert.h>
#include <string.h>

#include "src/batch.h"
#include "src/buffer.h"
#include "src/client_info.h"
#include "src/mem.h"
#include "src/receipt.h"

enum {
    GATHER_ENTRIES_FIRST = 16,
    GATHER_PARTS_FIRST = 16,
    /* Up to this size a copy costs less than a buffer that lives on, a part, and later its way back
     * through the caches. */
    GATHER_COPY_BYTES_MAX = 2048,
    GATHER_COPIES_BYTES_MIN = 4096,
    GATHER_COPIES_BYTES_MAX = 64 * 1024,
};

static void drop_copies(struct gather *gather)
{
    assert(gather != NULL);
    buffer_unref(gather->copies);
    gather->copies = NULL;
}

void gather_init(struct gather *gather, enum signal_kind signal, struct budget *budget,
                 struct client_info *client)
{
    assert(gather != NULL);
    assert(signal < SIGNAL_KINDS);
    *gather = (struct gather){.signal = signal, .budget = budget};
    gather->client = client != NULL ? client_info_ref(client) : NULL;
    profile_queue_init(&gather->profiles, budget);
}

void gather_fini(struct gather *gather)
{
    assert(gather != NULL);
    assert(gather->pending == NULL);
    assert(gather->entries_count == 0);
    mem_free(gather->entries);
    gather->entries = NULL;
    drop_copies(gather);
    profile_queue_fini(&gather->profiles);
    client_info_unref(gather->client);
}

uint64_t gather_items(const struct gather *gather)
{
    assert(gather != NULL);
    return gather->pending != NULL ? gather->pending->items : 0;
}

uint64_t gather_bytes(const struct gather *gather)
{
    assert(gather != NULL);
    return gather->pending != NULL ? gather->pending->bytes : 0;
}

static void add_entry(struct gather *gather, struct receipt *receipt, uint64_t items)
{
    assert(gather->entries_count <= gather->entries_capacity);
    if (gather->entries_count == gather->entries_capacity) {
        gather->entries_capacity =
            gather->entries_capacity > 0 ? 2 * gather->entries_capacity : GATHER_ENTRIES_FIRST;
        gather->entries =
            mem_resize(gather->entries, gather->entries_capacity * sizeof(gather->entries[0]));
    }
    gather->entries[gather->entries_count++] =
        (struct gather_entry){.receipt = receipt, .items = items};
}

/* As large as what is pending, so that few requests do not hold much. False: the budget refuses. */
static bool make_copies(struct gather *gather)
{
    assert(gather->pending != NULL);
    uint64_t capacity = gather->pending->bytes;
    if (capacity < GATHER_COPIES_BYTES_MIN)
        capacity = GATHER_COPIES_BYTES_MIN;
    if (capacity > GATHER_COPIES_BYTES_MAX)
        capacity = GATHER_COPIES_BYTES_MAX;
    drop_copies(gather);
    gather->copies = buffer_try_create(gather->budget, (size_t)capacity);
    return gather->copies != NULL;
}

/* Behind the copies before, with which it becomes one part. False: it has to be referred to. */
static bool append_copy(struct gather *gather, const struct batch *batch)
{
    assert(batch->signal != PROFILES);
    if (batch->bytes > GATHER_COPY_BYTES_MAX || gather->pending->parts_count == 0)
        return false;
    struct buffer *copies = gather->copies;
    bool has_room = copies != NULL && copies->capacity - copies->size >= batch->bytes;
    if (!has_room && !make_copies(gather))
        return false;
    copies = gather->copies;
    uint8_t *copy = copies->data + copies->size;
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice bytes = batch->parts[i].bytes;
        memcpy(copies->data + copies->size, bytes.data, bytes.size);
        copies->size += bytes.size;
    }
    batch_append(gather->pending, copies, slice_of(copy, batch->bytes));
    batch_take_in(gather->pending, batch);
    return true;
}

void gather_add(struct gather *gather, struct batch *batch, struct receipt *receipt)
{
    assert(batch != NULL);
    assert(gather != NULL);
    assert(batch->signal == gather->signal);
    if (gather->pending == NULL) {
        gather->pending = batch_create(gather->signal, GATHER_PARTS_FIRST);
        gather->pending->arrival_ns = batch->arrival_ns;
        gather->pending->client = gather->client != NULL ? client_info_ref(gather->client) : NULL;
    }
    /* Mixed company counts as acknowledged: a drop is never booked as a rejection. */
    gather->pending->is_acknowledged |= receipt == NULL || batch->is_acknowledged;
    if (batch->signal == PROFILES) {
        profile_queue_add(&gather->profiles, batch);
        gather->pending->items += batch->items;
        gather->pending->bytes += batch->bytes;
    } else if (!append_copy(gather, batch)) {
        batch_append_batch(gather->pending, batch);
    }
    add_entry(gather, receipt, batch->items);
}

/* Attributes the first `items` of what was gathered to the piece, in order of arrival. The last
 * request waits for what is left, if only for parts without items, as large empty profiles are. */
static void attribute(struct gather *gather, struct piece *piece, uint64_t items, bool is_last)
{
    assert(gather->entries_count > 0);
    assert(piece->receipts == NULL);
    size_t used = 0;
    piece->receipts =
        (struct receipt **)mem_alloc(gather->entries_count * sizeof(struct receipt *));
    for (; used < gather->entries_count; used++) {
        struct gather_entry *entry = &gather->entries[used];
        bool is_whole = is_last || (entry->items <= items && used + 1 < gather->entries_count);
        if (entry->receipt != NULL) {
            receipt_expect(entry->receipt, is_whole ? 0 : 1);
            piece->receipts[piece->receipts_count++] = entry->receipt;
        }
        if (!is_whole) {
            entry->items -= items < entry->items ? items : entry->items;
            break;
        }
        items -= is_last ? 0 : entry->items;
        if (items == 0 && !is_last) {
            used++;
            break;
        }
    }
    gather->entries_count -= used;
    for (size_t i = 0; i < gather->entries_count; i++)
        gather->entries[i] = gather->entries[used + i];
}

/* The first piece of what is pending, which then is what is left. */
static struct batch *cut_profiles(struct gather *gather, struct otlp_limit limit)
{
    struct batch *pending = gather->pending;
    bool is_last;
    struct batch *batch = profile_queue_cut(&gather->profiles, pending, limit, &is_last);
    assert(batch->items <= pending->items);
    pending->items -= batch->items;
    pending->bytes -= batch->bytes < pending->bytes ? batch->bytes : pending->bytes - 1;
    if (is_last) {
        assert(pending->items == 0);
        batch_unref(pending);
        gather->pending = NULL;
    }
    return batch;
}

static struct batch *cut_records(struct gather *gather, struct otlp_limit limit)
{
    struct batch *pending = gather->pending;
    struct batch *head = pending;
    bool fits = (limit.items_max == 0 || pending->items <= limit.items_max) &&
                (limit.bytes_max == 0 || pending->bytes <= limit.bytes_max);
    assert(pending->signal != PROFILES);
    gather->pending = NULL;
    drop_copies(gather);
    if (!fits) {
        otlp_split(pending, limit, gather->budget, &head, &gather->pending);
        batch_unref(pending);
    }
    return head;
}

struct piece gather_cut(struct gather *gather, struct otlp_limit limit)
{
    struct piece piece = {0};
    assert(gather->pending != NULL);
    piece.batch =
        gather->signal == PROFILES ? cut_profiles(gather, limit) : cut_records(gather, limit);
    attribute(gather, &piece, piece.batch->items, gather->pending == NULL);
    return piece;
}

void piece_resolve(struct piece *piece, const struct outcome *outcome)
{
    assert(piece != NULL);
    assert(outcome != NULL);
    for (size_t i = 0; i < piece->receipts_count; i++)
        receipt_resolve(piece->receipts[i], outcome);
    mem_free((void *)piece->receipts);
    batch_unref(piece->batch);
    *piece = (struct piece){0};
}
