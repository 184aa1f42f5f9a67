/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which series are shown: by name of the family, then fewer labels first, then by the
 * labels' values, as the Go client has them. What came since the last scrape is sorted by pieces of
 * seven bytes, each read once (Bentley and Sedgewick, Fast Algorithms for Sorting and Searching
 * Strings, 1997, with the bytes beside the series), then merged. Any thread. */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/prometheus/metric_series.h"
#include "src/base/mem.h"

enum {
    KEY_BYTES = 7,
    KEY_GOES_ON = KEY_BYTES + 1, /* in the last byte of a key; else how many bytes it has */
};

/* What is compared: the name, the number of labels, the values one after the other. */
enum { STAGE_NAME, STAGE_COUNT, STAGE_VALUES };

struct item {
    uint64_t key;
    const struct series *series;
    struct label_cursor values;
    uint32_t place; /* among those to be sorted */
};

/* Items that agree in all stages before, and in so many bytes of this one. */
struct group {
    struct item *items;
    size_t count;
    uint32_t stage;
    uint32_t offset;
    bool has_one_family;
    bool has_one_shape;
};

static int compare_keys(const void *a, const void *b)
{
    const struct item *left = a;
    const struct item *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

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

static uint64_t key_in_stage(struct item *item, const struct group *group)
{
    const struct series *series = item->series;
    if (group->stage == STAGE_NAME)
        return key_of(series->family->name, group->offset);
    if (group->stage == STAGE_COUNT)
        return (uint64_t)series->shape->labels_count << 8;
    return key_of(label_value(series->shape, &item->values, group->stage - STAGE_VALUES),
                  group->offset);
}

/* Reads the keys. Returns whether they are all the same. */
static bool read_keys(struct group *group)
{
    const struct series *first = group->items[0].series;
    bool has_one_key = true;
    bool has_one_family = true;
    bool has_one_shape = true;
    for (size_t i = 0; i < group->count; i++) {
        struct item *item = &group->items[i];
        if (i + SERIES_AHEAD < group->count)
            series_prefetch(item[SERIES_AHEAD].series);
        item->key = key_in_stage(item, group);
        has_one_key = has_one_key && item->key == group->items[0].key;
        has_one_family = has_one_family && item->series->family == first->family;
        has_one_shape = has_one_shape && item->series->shape == first->shape;
    }
    group->has_one_family = has_one_family;
    group->has_one_shape = has_one_shape;
    return has_one_key;
}

/* Goes on behind what all have in common. False: they are equal. */
static bool move_on(struct group *group, uint64_t key)
{
    if ((key & UINT8_MAX) == KEY_GOES_ON) {
        group->offset += KEY_BYTES;
    } else {
        group->stage++;
        group->offset = 0;
    }
    if (group->stage == STAGE_NAME && group->has_one_family)
        group->stage++;
    const struct label_shape *shape = group->items[0].series->shape;
    while (group->stage >= STAGE_VALUES && group->has_one_shape &&
           group->stage - STAGE_VALUES < shape->labels_count &&
           !label_is_own(shape, group->stage - STAGE_VALUES)) {
        group->stage++;
        group->offset = 0;
    }
    return group->stage < STAGE_VALUES || group->stage - STAGE_VALUES < shape->labels_count;
}

/* Sorts a group: recurs into all parts of it but the largest, so at most 32 deep. */
static void sort_group(struct group group)
{
    while (group.count > 1) {
        if (read_keys(&group)) {
            if (!move_on(&group, group.items[0].key))
                return;
            continue;
        }
        qsort(group.items, group.count, sizeof(group.items[0]), compare_keys);
        struct group largest = {.count = 0};
        for (size_t i = 0, end; i < group.count; i = end) {
            for (end = i + 1; end < group.count && group.items[end].key == group.items[i].key;)
                end++;
            struct group part = group;
            part.items = group.items + i;
            part.count = end - i;
            if (part.count == 1 || !move_on(&part, part.items[0].key))
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

/* Fills sorted with the news in order. False: no memory. */
static bool sort_news(const struct shown *news, size_t count, struct shown *sorted)
{
    struct item *items = mem_try_alloc(count * sizeof(*items));
    if (items == NULL)
        return false;
    assert(count <= UINT32_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct label_values values = series_values(news[i].series);
        items[i] = (struct item){
            .series = news[i].series, .values = label_cursor_of(&values), .place = (uint32_t)i};
    }
    sort_group((struct group){.items = items, .count = count});
    for (size_t i = 0; i < count; i++)
        sorted[i] = news[items[i].place];
    mem_free(items);
    return true;
}

bool metric_snapshot_sort(struct metric_snapshot *snapshot)
{
    struct shown *list = snapshot->shown;
    size_t old_count = snapshot->sorted_count;
    size_t new_count = snapshot->count - old_count;
    snapshot->is_sorted = true;
    snapshot->has_news = new_count > 0;
    if (new_count == 0)
        return true;
    struct shown *news = mem_try_alloc(new_count * sizeof(*news));
    snapshot->is_sorted = news != NULL && sort_news(list + old_count, new_count, news);
    for (size_t at = snapshot->count; snapshot->is_sorted && new_count > 0; at--) {
        bool is_new =
            old_count == 0 || compare_shown(&news[new_count - 1], &list[old_count - 1]) >= 0;
        list[at - 1] = is_new ? news[--new_count] : list[--old_count];
    }
    mem_free(news);
    return snapshot->is_sorted;
}
