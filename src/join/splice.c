/* SPDX-License-Identifier: Apache-2.0 */
/* An opened message gets its place in the list before its content, so the list is always in order.
 * Runs on the owner's thread. */
#include "src/join/splice.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/batch_writer.h"
#include "src/otlp/rope.h"

enum { ITEMS_FIRST = 64, ITEMS_KEPT_MAX = 1024 };

void splice_list_init(struct splice_list *list, struct budget *budget)
{
    *list = (struct splice_list){.inserts.budget = budget};
}

/* A small list is kept from batch to batch and not charged. */
static uint64_t charge_of(size_t capacity)
{
    return capacity > ITEMS_KEPT_MAX ? capacity * sizeof(struct splice) : 0;
}

void splice_list_forget(struct splice_list *list)
{
    splice_list_clear(list);
    profile_bytes_fini(&list->inserts);
    if (list->capacity <= ITEMS_KEPT_MAX)
        return;
    mem_free(list->items);
    if (list->inserts.budget != NULL)
        budget_return(list->inserts.budget, charge_of(list->capacity));
    list->items = NULL;
    list->capacity = 0;
}

void splice_list_fini(struct splice_list *list)
{
    splice_list_forget(list);
    mem_free(list->items);
    list->items = NULL;
    list->capacity = 0;
}

void splice_list_clear(struct splice_list *list)
{
    list->count = 0;
    list->growth = 0;
    list->inserts.size = 0;
}

static size_t next_capacity(const struct splice_list *list)
{
    return list->capacity > 0 ? 2 * list->capacity : ITEMS_FIRST;
}

uint64_t splice_list_growth(const struct splice_list *list, size_t count, uint64_t bytes)
{
    uint64_t items = list->count + count > list->capacity ? next_capacity(list) : 0;
    while (items > 0 && items < list->count + count)
        items *= 2;
    return items * sizeof(list->items[0]) + profile_bytes_growth(&list->inserts, bytes);
}

/* Both lists exist while items are copied. */
static void __attribute__((noinline)) grow(struct splice_list *list)
{
    struct budget *budget = list->inserts.budget;
    size_t capacity = next_capacity(list);
    if (budget != NULL)
        budget_take(budget, charge_of(capacity));
    list->items = mem_resize(list->items, capacity * sizeof(list->items[0]));
    if (budget != NULL)
        budget_return(budget, charge_of(list->capacity));
    list->capacity = capacity;
}

static struct splice *append(struct splice_list *list)
{
    assert(list->count <= list->capacity);
    if (list->count == list->capacity)
        grow(list);
    return &list->items[list->count++];
}

void splice_add_from(struct splice_list *list, uint64_t at, uint64_t removed, size_t begin)
{
    assert(begin <= list->inserts.size);
    assert(list->count == 0 || at >= list->items[list->count - 1].at);
    size_t bytes = list->inserts.size - begin;
    struct splice *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
    list->growth += (int64_t)bytes - (int64_t)removed;
    /* Extends the last splice when adjacent to it, which is frequent. */
    if (last != NULL && !last->is_header && at == last->at + last->removed &&
        begin == last->insert + last->insert_bytes) {
        last->removed += removed;
        last->insert_bytes += bytes;
        return;
    }
    *append(list) =
        (struct splice){.at = at, .removed = removed, .insert = begin, .insert_bytes = bytes};
}

size_t splice_open(struct splice_list *list, uint64_t begin, uint64_t content)
{
    assert(content > begin);
    assert(list->count == 0 || begin >= list->items[list->count - 1].at);
    *append(list) = (struct splice){
        .at = begin, .removed = content - begin, .is_header = true, .growth_before = list->growth};
    return list->count - 1;
}

void splice_close(struct splice_list *list, size_t opened, uint32_t number, uint64_t content_bytes)
{
    struct splice *splice = &list->items[opened];
    int64_t growth = list->growth - splice->growth_before;
    assert(opened < list->count);
    assert((int64_t)content_bytes + growth >= 0);
    if (opened == list->count - 1) {
        list->count--; /* nothing inside */
        return;
    }
    uint8_t *at = profile_bytes_room(&list->inserts, PROFILE_HEADER_BYTES_MAX);
    uint8_t *end = profile_put_varint(at, wire_tag(number, WIRE_BYTES));
    end = profile_put_varint(end, content_bytes + (uint64_t)growth);
    splice->insert = list->inserts.size;
    splice->insert_bytes = (size_t)(end - at);
    list->inserts.size += splice->insert_bytes;
    list->growth += (int64_t)splice->insert_bytes - (int64_t)splice->removed;
}

void splice_rewind(struct splice_list *list, size_t opened)
{
    assert(opened < list->count);
    list->growth = list->items[opened].growth_before;
    list->count = opened;
}

struct batch *splice_apply(const struct splice_list *list, struct batch *batch,
                           struct budget *budget)
{
    struct batch *edited = batch_create_like(batch, batch->parts_count + 4);
    struct batch_writer writer;
    struct rope rope = rope_of(batch);
    batch_writer_init(&writer, edited, budget);
    for (size_t i = 0; i < list->count; i++) {
        const struct splice *splice = &list->items[i];
        assert(splice->at >= rope.at);
        uint64_t before = splice->at - rope.at;
        batch_writer_borrow(&writer, rope, before);
        rope_skip(&rope, before + splice->removed);
        if (splice->insert_bytes > 0)
            batch_writer_copy(&writer,
                              slice_of(list->inserts.data + splice->insert, splice->insert_bytes));
    }
    batch_writer_borrow(&writer, rope, batch->bytes - rope.at);
    batch_writer_fini(&writer);
    edited->items = batch->items;
    assert((int64_t)edited->bytes == (int64_t)batch->bytes + list->growth);
    return edited;
}

/* All of it may be runs so short that they are copied; the last buffer is not full. */
uint64_t splice_apply_bytes_max(const struct splice_list *list, const struct batch *batch)
{
    assert((int64_t)batch->bytes + list->growth >= 0);
    uint64_t bytes = (uint64_t)((int64_t)batch->bytes + list->growth);
    uint64_t spare = bytes < BATCH_WRITER_BYTES_MAX ? bytes : BATCH_WRITER_BYTES_MAX;
    return bytes + spare + BATCH_WRITER_BYTES_FIRST;
}
