/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which series are shown: by name of the family, then fewer labels first, then by the
 * labels' values, as the Go client has them. What came since the last scrape is sorted by pieces of
 * seven bytes, each read once (Bentley and Sedgewick, Fast Algorithms for Sorting and Searching
 * Strings, 1997, with the bytes beside the series), then merged. What all of a group begin with is
 * skipped; pieces are sorted by their bytes, the last one first. Any thread. */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/prometheus/metric_series.h"
#include "src/base/budget.h"
#include "src/base/mem.h"

enum {
    KEY_BYTES = 7,
    KEY_GOES_ON = KEY_BYTES + 1, /* in the last byte of a key; else how many bytes it has */
    BYTE_VALUES = 256,
    INSERTED_MAX = 24, /* so many are sorted by insertion */
};

/* What is compared: the name, the number of labels, the values one after the other. */
enum { STAGE_NAME, STAGE_COUNT, STAGE_VALUES };

struct item {
    uint64_t key;
    const struct series *series;
    uint32_t place;  /* among those to be sorted */
    uint32_t own_at; /* in the series' own values: see struct group */
};

/* Items that agree in all stages before, and in so many bytes of this one. */
struct group {
    struct item *items;
    struct item *room; /* for as many */
    size_t count;
    uint32_t stage;
    size_t offset;
    uint32_t label; /* whose value is the first that own_at of each has not passed */
    bool has_one_family;
    bool has_one_shape;
};

/* Bytes from the offset on, so that keys are in the order of what they are of: the shorter of two
 * that are equal otherwise comes first. */
static uint64_t key_of(struct slice text, size_t offset)
{
    uint64_t key = 0;
    const size_t rest = text.size - offset;
    if (rest > KEY_BYTES) {
        memcpy(&key, text.data + offset, sizeof(key));
        return (be64toh(key) & ~(uint64_t)UINT8_MAX) | KEY_GOES_ON;
    }
    for (size_t i = 0; i < rest; i++)
        key |= (uint64_t)text.data[offset + i] << (56 - 8 * i);
    return key | rest;
}

static size_t bytes_of_key(uint64_t key)
{
    const size_t size = key & UINT8_MAX;
    return size < KEY_BYTES ? size : KEY_BYTES;
}

static struct slice text_in_stage(struct item *item, const struct group *group)
{
    const struct series *series = item->series;
    if (group->stage == STAGE_NAME)
        return series->family->name;
    struct label_cursor cursor = {.own = series->values + item->own_at, .index = group->label};
    struct slice value = label_value(series->shape, &cursor, group->stage - STAGE_VALUES);
    item->own_at = (uint32_t)(cursor.own - series->values);
    return value;
}

/* Bytes that both begin with, of so many. */
static size_t common_bytes(struct slice a, struct slice b, size_t from, size_t most)
{
    size_t at = from;
    most = a.size < most ? a.size : most;
    most = b.size < most ? b.size : most;
    while (at < most && a.data[at] == b.data[at])
        at++;
    return at;
}

/* Reads the keys. Returns whether they are all the same; then *ret_common bytes are, and *ret_ends:
 * there are no more. */
static bool read_keys(struct group *group, size_t *ret_common, bool *ret_ends)
{
    const struct series *first = group->items[0].series;
    struct slice first_text = {.size = 0};
    bool has_one_key = true;
    bool has_one_family = true;
    bool has_one_shape = true;
    size_t common = SIZE_MAX;
    size_t longest = 0;
    for (size_t i = 0; i < group->count; i++) {
        struct item *item = &group->items[i];
        struct slice text = {.size = 0};
        if (i + SERIES_AHEAD < group->count)
            series_prefetch(item[SERIES_AHEAD].series);
        if (group->stage == STAGE_COUNT) {
            item->key = (uint64_t)item->series->shape->labels_count << 8;
        } else {
            text = text_in_stage(item, group);
            item->key = key_of(text, group->offset);
        }
        if (i == 0)
            first_text = text;
        has_one_key = has_one_key && item->key == group->items[0].key;
        if (has_one_key) {
            common =
                common_bytes(first_text, text, group->offset + bytes_of_key(item->key), common);
            longest = text.size > longest ? text.size : longest;
        }
        has_one_family = has_one_family && item->series->family == first->family;
        has_one_shape = has_one_shape && item->series->shape == first->shape;
    }
    if (group->stage >= STAGE_VALUES)
        group->label = group->stage - STAGE_VALUES;
    group->has_one_family = has_one_family;
    group->has_one_shape = has_one_shape;
    *ret_common = common;
    *ret_ends = longest == common;
    return has_one_key;
}

/* Goes on behind what all have in common: so many bytes, or all of this stage. False: they are
 * equal. */
static bool move_on(struct group *group, size_t common, bool ends)
{
    group->offset = ends ? 0 : common;
    group->stage += ends;
    if (group->stage == STAGE_NAME && group->has_one_family) {
        group->stage++;
        group->offset = 0;
    }
    group->stage += group->stage == STAGE_COUNT && group->has_one_shape;
    const struct label_shape *shape = group->items[0].series->shape;
    while (group->stage >= STAGE_VALUES && group->has_one_shape &&
           group->stage - STAGE_VALUES < shape->labels_count &&
           !label_is_own(shape, group->stage - STAGE_VALUES)) {
        group->stage++;
        group->offset = 0;
    }
    return group->stage < STAGE_VALUES || group->stage - STAGE_VALUES < shape->labels_count;
}

static void sort_by_byte(const struct item *from, struct item *to, size_t count, unsigned shift)
{
    size_t ends[BYTE_VALUES + 1] = {0};
    for (size_t i = 0; i < count; i++)
        ends[(from[i].key >> shift & UINT8_MAX) + 1]++;
    for (size_t i = 1; i < BYTE_VALUES; i++)
        ends[i] += ends[i - 1];
    for (size_t i = 0; i < count; i++)
        to[ends[from[i].key >> shift & UINT8_MAX]++] = from[i];
}

/* Sorts by key; of equal ones none passes another. */
static void sort_by_key(const struct group *group)
{
    struct item *items = group->items;
    struct item *from = group->items;
    struct item *to = group->room;
    if (group->count <= INSERTED_MAX) {
        for (size_t i = 1; i < group->count; i++) {
            const struct item item = items[i];
            size_t at = i;
            for (; at > 0 && items[at - 1].key > item.key; at--)
                items[at] = items[at - 1];
            items[at] = item;
        }
        return;
    }
    uint64_t differing = 0;
    for (size_t i = 1; i < group->count; i++)
        differing |= items[i].key ^ items[0].key;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((differing >> shift & UINT8_MAX) == 0)
            continue;
        sort_by_byte(from, to, group->count, shift);
        struct item *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items)
        memcpy(items, from, group->count * sizeof(items[0]));
}

/* Sorts a group: recurs into all parts of it but the largest, so at most 32 deep. */
static void sort_group(struct group group)
{
    while (group.count > 1) {
        size_t common;
        bool ends;
        if (read_keys(&group, &common, &ends)) {
            if (!move_on(&group, common, ends))
                return;
            continue;
        }
        sort_by_key(&group);
        struct group largest = {.count = 0};
        for (size_t i = 0, end; i < group.count; i = end) {
            const uint64_t key = group.items[i].key;
            for (end = i + 1; end < group.count && group.items[end].key == key;)
                end++;
            struct group part = group;
            part.items = group.items + i;
            part.count = end - i;
            ends = (key & UINT8_MAX) != KEY_GOES_ON;
            if (part.count == 1 || !move_on(&part, part.offset + KEY_BYTES, ends))
                continue;
            if (part.count > largest.count) {
                struct group other = largest;
                largest = part;
                part = other;
            }
            if (part.count > 0)
                sort_group(part);
        }
        group = largest;
    }
}

static int compare_shown(const struct shown *a, const struct shown *b)
{
    int order = 0;
    if (a->series->family != b->series->family)
        order = slice_compare(a->series->family->name, b->series->family->name);
    if (order != 0)
        return order;
    const struct label_values left = series_values(a->series);
    const struct label_values right = series_values(b->series);
    return label_values_compare(&left, &right);
}

/* What sort_news takes. */
static size_t sort_bytes(size_t count)
{
    return 2 * count * sizeof(struct item);
}

/* Fills sorted with the news in order. False: no memory. */
static bool sort_news(const struct shown *news, size_t count, struct shown *sorted)
{
    const size_t bytes = sort_bytes(count);
    struct item *items = mem_try_alloc_large(bytes);
    if (items == NULL)
        return false;
    assert(count <= UINT32_MAX);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct item){.series = news[i].series, .place = (uint32_t)i};
    sort_group((struct group){.items = items, .room = items + count, .count = count});
    for (size_t i = 0; i < count; i++)
        sorted[i] = news[items[i].place];
    mem_free_large(items, bytes);
    return true;
}

bool metric_snapshot_sort(struct metric_snapshot *snapshot, struct budget *budget)
{
    struct shown *list = snapshot->shown;
    size_t old_count = snapshot->sorted_count;
    size_t new_count = snapshot->count - old_count;
    snapshot->is_sorted = true;
    snapshot->has_news = new_count > 0;
    if (new_count == 0)
        return true;
    const size_t bytes = new_count * sizeof(struct shown);
    const size_t charged = bytes + sort_bytes(new_count);
    if (budget != NULL && !budget_try_take(budget, charged)) {
        snapshot->is_sorted = false;
        return false;
    }
    struct shown *news = mem_try_alloc_large(bytes);
    snapshot->is_sorted = news != NULL && sort_news(list + old_count, new_count, news);
    for (size_t at = snapshot->count; snapshot->is_sorted && new_count > 0; at--) {
        bool is_new =
            old_count == 0 || compare_shown(&news[new_count - 1], &list[old_count - 1]) >= 0;
        list[at - 1] = is_new ? news[--new_count] : list[--old_count];
    }
    mem_free_large(news, bytes);
    if (budget != NULL)
        budget_return(budget, charged);
    return snapshot->is_sorted;
}
