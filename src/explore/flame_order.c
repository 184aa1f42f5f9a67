/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort from the most significant bytes on: a range of stacks is sorted by the four bytes that
 * follow what all of them have in common, then each range with the same four. Owner's thread. */
#include "src/explore/flame_order.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "src/explore/flame_parts.h"
#include "src/profiles/otlp/profile_dictionary.h"

enum {
    KEY_BYTES = sizeof(uint32_t),
    RANGE_MIN = 3, /* the order of two does not matter */
    FEW = 48,      /* are sorted by insertion */
    DIGITS = 256,
};

struct order_item {
    uint32_t key;
    uint32_t stack;
};

/* Stacks that have so many bytes in common. */
struct order_range {
    uint32_t begin;
    uint32_t end;
    uint32_t common;
    bool has_short; /* one ends with the key that it was sorted by, or before */
};

struct sorting {
    struct flame_tree *tree;
    struct order_item *items;
    struct order_item *room; /* as many */
    const struct profile_entry *entries;
    const uint8_t *request;
};

bool flame_order_begin(struct flame_order *order, struct flame_memory *memory, uint32_t most)
{
    order->count = 0;
    return flame_room_unset(memory, &order->items, 2 * (size_t)most * sizeof(struct order_item)) !=
           NULL;
}

void flame_order_add(struct flame_order *order, uint32_t stack)
{
    struct order_item *items = order->items.memory;
    assert(2 * (order->count + (size_t)1) * sizeof(items[0]) <= order->items.bytes);
    items[order->count++].stack = stack;
}

uint32_t flame_order_at(const struct flame_order *order, uint32_t index)
{
    assert(index < order->count);
    return ((const struct order_item *)order->items.memory)[index].stack;
}

void flame_order_fini(struct flame_order *order, struct flame_memory *memory)
{
    flame_release(memory, &order->items);
    flame_release(memory, &order->ranges);
    order->count = 0;
}

/* The bytes of a stack but for so many at its end. */
static struct slice rest_of(const struct sorting *sorting, uint32_t stack, uint32_t common)
{
    const struct profile_entry *entry = &sorting->entries[stack];
    uint32_t size = entry->size > common ? entry->size - common : 0;
    return slice_of(sorting->request + entry->offset, size);
}

/* The last bytes; the very last one weighs most. */
static uint32_t key_of(struct slice rest)
{
    uint32_t key = 0;
    if (rest.size >= KEY_BYTES) {
        memcpy(&key, rest.data + rest.size - KEY_BYTES, KEY_BYTES);
        return le32toh(key);
    }
    for (size_t i = 0; i < rest.size; i++)
        key = key >> 8 | (uint32_t)rest.data[i] << 24;
    return key;
}

static void sort_few(struct order_item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct order_item item = items[i];
        uint32_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static void sort_many(struct order_item *items, struct order_item *room, uint32_t count)
{
    uint32_t counts[KEY_BYTES][DIGITS] = {{0}};
    struct order_item *from = items;
    struct order_item *to = room;
    for (uint32_t i = 0; i < count; i++)
        for (unsigned byte = 0; byte < KEY_BYTES; byte++)
            counts[byte][items[i].key >> 8 * byte & 0xff]++;
    for (unsigned byte = 0; byte < KEY_BYTES; byte++) {
        uint32_t *places = counts[byte];
        uint32_t place = 0;
        if (places[from[0].key >> 8 * byte & 0xff] == count)
            continue;
        for (unsigned digit = 0; digit < DIGITS; digit++) {
            uint32_t here = places[digit];
            places[digit] = place;
            place += here;
        }
        for (uint32_t i = 0; i < count; i++)
            to[places[from[i].key >> 8 * byte & 0xff]++] = from[i];
        struct order_item *done = from;
        from = to;
        to = done;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(items[0]));
}

/* Fetches what an item is compared by. Inline: gcc drops calls of functions that do nothing else.
 */
static inline __attribute__((always_inline)) void fetch_item(const struct sorting *sorting,
                                                             const struct order_range *range,
                                                             uint32_t at)
{
    enum { AHEAD = 12 };
    if (range->end - at > 2 * AHEAD)
        __builtin_prefetch(&sorting->entries[sorting->items[at + 2 * AHEAD].stack]);
    if (range->end - at <= AHEAD)
        return;
    struct slice rest = rest_of(sorting, sorting->items[at + AHEAD].stack, range->common);
    __builtin_prefetch(rest.data + rest.size - sizeof(uint64_t));
}

/* Sorts a range by what follows the bytes that all have in common, which are counted. False: the
 * tree says stop. */
static bool sort_range(struct sorting *sorting, struct order_range *range)
{
    struct order_item *items = sorting->items;
    struct slice first = rest_of(sorting, items[range->begin].stack, range->common);
    const uint8_t *end = first.data + first.size;
    uint32_t same = (uint32_t)first.size;
    for (uint32_t i = range->begin + 1; i < range->end && same > 0; i++) {
        fetch_item(sorting, range, i);
        same = (uint32_t)slice_common_end(slice_of(end - same, same),
                                          rest_of(sorting, items[i].stack, range->common));
        if (flame_must_stop(sorting->tree, 1 + same / sizeof(uint64_t)))
            return false;
    }
    range->common += same;
    range->has_short = false;
    for (uint32_t i = range->begin; i < range->end; i++) {
        fetch_item(sorting, range, i);
        struct slice rest = rest_of(sorting, items[i].stack, range->common);
        range->has_short |= rest.size <= KEY_BYTES;
        items[i].key = key_of(rest);
    }
    uint32_t count = range->end - range->begin;
    if (count <= FEW)
        sort_few(items + range->begin, count);
    else
        sort_many(items + range->begin, sorting->room, count);
    return !flame_must_stop(sorting->tree, count);
}

/* Whether all stacks of a range go on behind the bytes that they have in common. Others are as
 * good as the same: were they sorted on, one that is long would cost its length for each of them.
 */
static bool goes_on(const struct sorting *sorting, const struct order_range *range)
{
    for (uint32_t i = range->begin; i < range->end; i++)
        if (rest_of(sorting, sorting->items[i].stack, range->common).size == 0)
            return false;
    return true;
}

enum flame_result flame_order_sort(struct flame_order *order, struct flame_tree *tree,
                                   const struct profile_dictionary *dictionary)
{
    size_t ranges_max = order->count / RANGE_MIN + (size_t)1;
    struct order_range *ranges =
        flame_room_unset(&tree->memory, &order->ranges, ranges_max * sizeof(ranges[0]));
    struct order_item *items = order->items.memory;
    size_t ranges_count = 0;
    if (ranges == NULL)
        return FLAME_NO_MEMORY;
    struct sorting sorting = {
        .tree = tree,
        .items = items,
        .room = items + order->count,
        .entries = dictionary->entries[PROFILE_STACKS],
        .request = dictionary->request.data,
    };
    if (order->count >= RANGE_MIN)
        ranges[ranges_count++] = (struct order_range){.end = order->count};
    while (ranges_count > 0) {
        struct order_range range = ranges[--ranges_count];
        if (!sort_range(&sorting, &range))
            return FLAME_STOPPED;
        for (uint32_t begin = range.begin, end; begin < range.end; begin = end) {
            for (end = begin + 1; end < range.end && items[end].key == items[begin].key;)
                end++;
            struct order_range part = {
                .begin = begin, .end = end, .common = range.common + KEY_BYTES};
            if (end - begin < RANGE_MIN || (range.has_short && !goes_on(&sorting, &part)))
                continue;
            assert(ranges_count < ranges_max);
            ranges[ranges_count++] = part;
        }
    }
    return FLAME_ADDED;
}
