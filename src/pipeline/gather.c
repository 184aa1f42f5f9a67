/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering and cutting. OTLP requests concatenate, so gathering is a list of slices, small ones
 * copied together; but profiles must be merged, which happens when they are cut. Runs on its
 * owner's lane. */
#include "src/pipeline/gather.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/receipt.h"

enum {
    GATHER_ENTRIES_FIRST = 16,
    GATHER_PARTS_FIRST = 16,
    /* Up to this size a copy costs less than a buffer that lives on, a part, and later its way back
     * through the caches. */
    GATHER_COPY_BYTES_MAX = 2048,
    GATHER_SPLIT_PARTS_MAX = 64,
    GATHER_COPIES_BYTES_MIN = 4096,
    GATHER_COPIES_BYTES_MAX = 64 * 1024 - sizeof(struct buffer), /* 64 KiB are allocated */
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

/* Makes room behind the entries: where at least as many have been cut off as are left, their place,
 * so that each entry is moved once on average; else twice as much. */
static void make_entry_room(struct gather *gather)
{
    assert(gather->entries_first + gather->entries_count == gather->entries_capacity);
    if (gather->entries_first > gather->entries_count) {
        memcpy(gather->entries, gather->entries + gather->entries_first,
               gather->entries_count * sizeof(gather->entries[0]));
        gather->entries_first = 0;
        return;
    }
    gather->entries_capacity =
        gather->entries_capacity > 0 ? 2 * gather->entries_capacity : GATHER_ENTRIES_FIRST;
    gather->entries =
        mem_resize(gather->entries, gather->entries_capacity * sizeof(gather->entries[0]));
}

static void add_entry(struct gather *gather, struct receipt *receipt, uint64_t items)
{
    if (gather->entries_first + gather->entries_count == gather->entries_capacity)
        make_entry_room(gather);
    size_t at = gather->entries_first + gather->entries_count++;
    assert(at < gather->entries_capacity);
    gather->entries[at] = (struct gather_entry){.receipt = receipt, .items = items};
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

/* capacity: how many may come at most. */
static void add_receipt(struct piece *piece, struct receipt *receipt, size_t capacity)
{
    struct receipt *first = piece->receipts.one;
    if (piece->receipts_count == 0) {
        piece->receipts.one = receipt;
    } else {
        if (piece->receipts_count == 1) {
            piece->receipts.many =
                (struct receipt **)mem_alloc(capacity * sizeof(struct receipt *));
            piece->receipts.many[0] = first;
        }
        piece->receipts.many[piece->receipts_count] = receipt;
    }
    piece->receipts_count++;
}

/* Attributes the first `items` of what was gathered to the piece, in order of arrival. The last
 * request waits for what is left, if only for parts without items, as large empty profiles are. */
static void attribute(struct gather *gather, struct piece *piece, uint64_t items, bool is_last)
{
    struct gather_entry *entries = gather->entries + gather->entries_first;
    size_t whole = 0;     /* entries of which the piece has all that was left */
    uint64_t covered = 0; /* their items */
    assert(gather->entries_count > 0);
    assert(piece->receipts_count == 0);
    while (whole < gather->entries_count &&
           (is_last || (whole + 1 < gather->entries_count && (covered < items || whole == 0) &&
                        covered + entries[whole].items <= items)))
        covered += entries[whole++].items;
    bool has_rest = !is_last && (covered < items || whole == 0);
    size_t used = whole + has_rest;
    assert(used <= gather->entries_count);
    for (size_t i = 0; i < used; i++)
        if (entries[i].receipt != NULL) {
            receipt_expect(entries[i].receipt, i < whole ? 0 : 1);
            add_receipt(piece, entries[i].receipt, used);
        }
    if (has_rest)
        entries[whole].items -=
            items - covered < entries[whole].items ? items - covered : entries[whole].items;
    gather->entries_first += whole;
    gather->entries_count -= whole;
    if (gather->entries_count == 0)
        gather->entries_first = 0;
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

/* Each cut refers to every part of what is left. Many small ones, as edits leave them, are joined
 * before the first cut, if there is memory. */
static struct batch *join_many(struct gather *gather, struct batch *pending)
{
    struct batch_part whole;
    if (pending->parts_count <= GATHER_SPLIT_PARTS_MAX || pending->sorted_levels > 0 ||
        !batch_join(pending, gather->budget, &whole))
        return pending;
    struct batch *joined = batch_create_like(pending, 1);
    batch_append(joined, whole.owner, whole.bytes);
    joined->items = pending->items;
    assert(joined->bytes == pending->bytes);
    buffer_unref(whole.owner);
    batch_unref(pending);
    return joined;
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
        pending = join_many(gather, pending);
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

struct piece piece_of(struct batch *batch, struct receipt *receipt)
{
    return (struct piece){.batch = batch, .receipts_count = 1, .receipts = {.one = receipt}};
}

struct receipt *const *piece_receipts(const struct piece *piece)
{
    return piece->receipts_count > 1 ? piece->receipts.many : &piece->receipts.one;
}

void piece_resolve(struct piece *piece, const struct outcome *outcome)
{
    for (size_t i = 0; i < piece->receipts_count; i++)
        receipt_resolve(piece_receipts(piece)[i], outcome);
    if (piece->receipts_count > 1)
        mem_free((void *)piece->receipts.many);
    batch_unref(piece->batch);
    *piece = (struct piece){0};
}
