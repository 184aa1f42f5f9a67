/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP requests concatenate, so a pending batch is a list of slices; small requests are copied into
 * one buffer. Profiles have to be merged, which happens when they are cut. Runs on its owner's
 * lane.
 */
#include "src/pipeline/batcher.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/receipt.h"

enum {
    BATCHER_ENTRIES_FIRST = 16,
    BATCHER_PARTS_FIRST = 16,
    /* Up to this size a copy is cheaper than keeping the buffer alive in a part of its own. */
    BATCHER_COPY_BYTES_MAX = 2048,
    BATCHER_SPLIT_PARTS_MAX = 64,
    BATCHER_COPIES_BYTES_MIN = 4096,
    BATCHER_COPIES_BYTES_MAX = 64 * 1024 - sizeof(struct buffer), /* allocates 64 KiB */
};

static void drop_copies(struct batcher *batcher)
{
    buffer_unref(batcher->copies);
    batcher->copies = NULL;
}

void batcher_init(struct batcher *batcher, enum signal_kind signal, struct budget *budget,
                  struct client_info *client)
{
    assert(signal < SIGNAL_KINDS);
    *batcher = (struct batcher){.signal = signal, .budget = budget};
    batcher->client = client != NULL ? client_info_ref(client) : NULL;
    profile_queue_init(&batcher->profiles, budget);
}

void batcher_fini(struct batcher *batcher)
{
    assert(batcher->pending == NULL);
    assert(batcher->entries_count == 0);
    mem_free(batcher->entries);
    batcher->entries = NULL;
    drop_copies(batcher);
    profile_queue_fini(&batcher->profiles);
    client_info_unref(batcher->client);
}

uint64_t batcher_items(const struct batcher *batcher)
{
    return batcher->pending != NULL ? batcher->pending->items : 0;
}

uint64_t batcher_bytes(const struct batcher *batcher)
{
    return batcher->pending != NULL ? batcher->pending->bytes : 0;
}

/* Copies a small request behind the previous copies, with which it becomes one part. False: it is
 * too large for that, or the budget refuses; refer to it instead. */
static bool append_copy(struct batcher *batcher, const struct batch *batch)
{
    assert(batch->signal != PROFILES);
    if (batch->bytes > BATCHER_COPY_BYTES_MAX || batcher->pending->parts_count == 0)
        return false;
    struct buffer *copies = batcher->copies;
    if (copies == NULL || copies->capacity - copies->size < batch->bytes) {
        /* As large as the pending bytes, so that few requests do not hold much. */
        uint64_t capacity = batcher->pending->bytes;
        if (capacity < BATCHER_COPIES_BYTES_MIN)
            capacity = BATCHER_COPIES_BYTES_MIN;
        if (capacity > BATCHER_COPIES_BYTES_MAX)
            capacity = BATCHER_COPIES_BYTES_MAX;
        drop_copies(batcher);
        copies = batcher->copies = buffer_try_create(batcher->budget, (size_t)capacity);
        if (copies == NULL)
            return false;
    }
    uint8_t *copy = copies->data + copies->size;
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice bytes = batch->parts[i].bytes;
        memcpy(copies->data + copies->size, bytes.data, bytes.size);
        copies->size += bytes.size;
    }
    batch_append(batcher->pending, copies, slice_of(copy, batch->bytes));
    batch_take_in(batcher->pending, batch);
    return true;
}

void batcher_add(struct batcher *batcher, struct batch *batch, struct receipt *receipt)
{
    assert(batch->signal == batcher->signal);
    assert(batcher->pending == NULL || batcher->pending->skips == batch->skips);
    if (batcher->pending == NULL) {
        batcher->pending = batch_create(batcher->signal, BATCHER_PARTS_FIRST);
        batcher->pending->arrival_ns = batch->arrival_ns;
        batcher->pending->skips = batch->skips;
        batcher->pending->skipped = batch->skipped;
        batcher->pending->is_stored = batch->is_stored;
        batcher->pending->client =
            batcher->client != NULL ? client_info_ref(batcher->client) : NULL;
    }
    /* A mixed batch counts as acknowledged: a drop is never counted as a rejection. */
    batcher->pending->is_acknowledged |= receipt == NULL || batch->is_acknowledged;
    batcher->pending->is_stored &= batch->is_stored;
    batcher->pending->is_joint |= batch->is_joint;
    if (batch->signal == PROFILES) {
        profile_queue_add(&batcher->profiles, batch);
        batcher->pending->items += batch->items;
        batcher->pending->bytes += batch->bytes;
    } else if (!append_copy(batcher, batch)) {
        batch_append_batch(batcher->pending, batch);
    }
    if (batcher->entries_first + batcher->entries_count == batcher->entries_capacity) {
        if (batcher->entries_first > batcher->entries_count) {
            /* More have been cut off than are left: reuse their space. Each entry is moved once on
             * average. */
            memcpy(batcher->entries, batcher->entries + batcher->entries_first,
                   batcher->entries_count * sizeof(batcher->entries[0]));
            batcher->entries_first = 0;
        } else {
            batcher->entries_capacity = batcher->entries_capacity > 0
                                            ? 2 * batcher->entries_capacity
                                            : BATCHER_ENTRIES_FIRST;
            batcher->entries = mem_resize(batcher->entries,
                                          batcher->entries_capacity * sizeof(batcher->entries[0]));
        }
    }
    size_t at = batcher->entries_first + batcher->entries_count++;
    batcher->entries[at] = (struct batcher_entry){.receipt = receipt, .items = batch->items};
}

/* Attributes the first `items` of the pending requests to the cut, in order of arrival. The last
 * request waits for what is left, if only for parts without items, as large empty profiles are. */
static void attribute(struct batcher *batcher, struct export_batch *cut, uint64_t items,
                      bool is_last)
{
    struct batcher_entry *entries = batcher->entries + batcher->entries_first;
    size_t whole = 0;     /* entries whose remaining items are all in the cut */
    uint64_t covered = 0; /* their items */
    assert(batcher->entries_count > 0);
    assert(cut->shares_count == 0);
    while (whole < batcher->entries_count &&
           (is_last || (whole + 1 < batcher->entries_count && (covered < items || whole == 0) &&
                        covered + entries[whole].items <= items)))
        covered += entries[whole++].items;
    bool has_rest = !is_last && (covered < items || whole == 0);
    size_t used = whole + has_rest;
    assert(used <= batcher->entries_count);
    uint64_t cut_off = 0; /* of the rest */
    if (has_rest)
        cut_off = items - covered < entries[whole].items ? items - covered : entries[whole].items;
    for (size_t i = 0; i < used; i++) {
        const struct export_share share = {.receipt = entries[i].receipt,
                                           .items = i < whole ? entries[i].items : cut_off};
        if (share.receipt == NULL)
            continue;
        receipt_expect(share.receipt, i < whole ? 0 : 1);
        if (cut->shares_count == 1) {
            struct export_share first = cut->shares.one;
            cut->shares.many = mem_alloc(used * sizeof(cut->shares.many[0]));
            cut->shares.many[0] = first;
        }
        if (cut->shares_count == 0)
            cut->shares.one = share;
        else
            cut->shares.many[cut->shares_count] = share;
        cut->shares_count++;
    }
    if (has_rest)
        entries[whole].items -= cut_off;
    batcher->entries_first += whole;
    batcher->entries_count -= whole;
    if (batcher->entries_count == 0)
        batcher->entries_first = 0;
}

/* Cuts the first batch; the rest stays pending. */
static struct batch *cut_records(struct batcher *batcher, struct otlp_limit limit)
{
    struct batch *pending = batcher->pending;
    struct batch *head = pending;
    bool fits = (limit.items_max == 0 || pending->items <= limit.items_max) &&
                (limit.bytes_max == 0 || pending->bytes <= limit.bytes_max);
    assert(pending->signal != PROFILES);
    batcher->pending = NULL;
    drop_copies(batcher);
    if (fits)
        return head;
    /* Each cut refers to every part of the rest. Many small parts, as edits leave them, are joined
     * before the first cut, if there is memory. */
    struct batch_part whole;
    if (pending->parts_count > BATCHER_SPLIT_PARTS_MAX && pending->sorted_levels == 0 &&
        batch_join(pending, batcher->budget, &whole)) {
        struct batch *joined = batch_create_like(pending, 1);
        batch_append(joined, whole.owner, whole.bytes);
        joined->items = pending->items;
        assert(joined->bytes == pending->bytes);
        buffer_unref(whole.owner);
        batch_unref(pending);
        pending = joined;
    }
    otlp_split(pending, limit, batcher->budget, &head, &batcher->pending);
    batch_unref(pending);
    return head;
}

struct export_batch batcher_cut(struct batcher *batcher, struct otlp_limit limit)
{
    struct export_batch cut = {0};
    if (batcher->signal == PROFILES) {
        struct batch *pending = batcher->pending;
        bool is_last;
        cut.batch = profile_queue_cut(&batcher->profiles, pending, limit, &is_last);
        assert(cut.batch->items <= pending->items);
        pending->items -= cut.batch->items;
        pending->bytes -= cut.batch->bytes < pending->bytes ? cut.batch->bytes : pending->bytes - 1;
        if (is_last) {
            assert(pending->items == 0);
            batch_unref(pending);
            batcher->pending = NULL;
        }
    } else {
        cut.batch = cut_records(batcher, limit);
    }
    attribute(batcher, &cut, cut.batch->items, batcher->pending == NULL);
    return cut;
}

struct export_batch export_batch_of(struct batch *batch, struct receipt *receipt)
{
    return (struct export_batch){.batch = batch,
                                 .shares_count = 1,
                                 .shares = {.one = {.receipt = receipt, .items = batch->items}}};
}

const struct export_share *export_batch_shares(const struct export_batch *cut)
{
    return cut->shares_count > 1 ? cut->shares.many : &cut->shares.one;
}

void export_batch_resolve(struct export_batch *cut, const struct outcome *outcome)
{
    const struct export_share *shares = export_batch_shares(cut);
    uint64_t rejected = outcome->rejected_items;
    for (size_t i = 0; i < cut->shares_count; i++) {
        struct outcome part = *outcome;
        part.rejected_items = rejected < shares[i].items ? rejected : shares[i].items;
        rejected -= part.rejected_items;
        /* The exporter has counted these. */
        part.invalid_items = part.too_large_items = part.delivered_items = 0;
        receipt_resolve(shares[i].receipt, &part);
    }
    if (cut->shares_count > 1)
        mem_free(cut->shares.many);
    batch_unref(cut->batch);
    *cut = (struct export_batch){0};
}
