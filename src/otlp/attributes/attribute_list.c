/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes while they are edited. One owner, one thread at a time. */
#include "src/otlp/attributes/attribute_list.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/otlp/wire.h"

/* Capacity beyond CAPACITY_KEPT_MAX is freed between messages: a request may need millions. */
enum {
    KEY = 1,
    VALUE = 2,
    CAPACITY_FIRST = 32,
    CAPACITY_KEPT_MAX = 1024,
    ARENA_BYTES_KEPT = 64 * 1024,
};

void attribute_list_init(struct attribute_list *list, size_t arena_bytes_max, struct budget *budget)
{
    *list = (struct attribute_list){.budget = budget};
    arena_init_charged(&list->arena, arena_bytes_max, budget);
}

/* The capacity kept between messages is not charged. */
static uint64_t charge_of(size_t capacity)
{
    return capacity > CAPACITY_KEPT_MAX ? capacity * sizeof(struct attribute) : 0;
}

static void drop_items(struct attribute_list *list)
{
    mem_free(list->items);
    if (list->budget != NULL && list->capacity > 0)
        budget_return(list->budget, charge_of(list->capacity));
    list->items = NULL;
    list->capacity = 0;
}

void attribute_list_fini(struct attribute_list *list)
{
    arena_clear(&list->arena);
    drop_items(list);
}

void attribute_list_clear(struct attribute_list *list)
{
    assert(list->count <= list->capacity);
    arena_clear(&list->arena);
    list->count = 0;
    list->has_changed = false;
    list->has_failed = false;
    if (list->capacity > CAPACITY_KEPT_MAX)
        drop_items(list);
}

void attribute_list_next(struct attribute_list *list)
{
    if (list->arena.used_bytes > ARENA_BYTES_KEPT || list->arena.refused_bytes > 0 ||
        list->capacity > CAPACITY_KEPT_MAX) {
        attribute_list_clear(list);
        return;
    }
    list->count = 0;
    list->has_changed = false;
    list->has_failed = false;
}

static bool charge(struct attribute_list *list, uint64_t bytes)
{
    if (list->budget == NULL)
        return true;
    if (!list->may_exceed)
        return budget_try_take(list->budget, bytes);
    if (bytes <= list->free_bytes) {
        budget_take(list->budget, bytes);
        return true;
    }
    budget_begin_late();
    const bool is_charged = budget_try_take(list->budget, bytes);
    budget_end_late();
    return is_charged;
}

/* Without memory it returns a dummy and sets has_failed: the caller discards the list. */
static struct attribute *append(struct attribute_list *list)
{
    static _Thread_local struct attribute dummy;
    assert(list->count <= list->capacity);
    if (list->count == list->capacity) {
        /* Both lists are charged while items are copied. */
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : CAPACITY_FIRST;
        if (!charge(list, charge_of(capacity))) {
            list->has_failed = true;
            dummy = (struct attribute){0};
            return &dummy;
        }
        list->items = mem_resize(list->items, capacity * sizeof(list->items[0]));
        if (list->budget != NULL)
            budget_return(list->budget, charge_of(list->capacity));
        list->capacity = capacity;
    }
    struct attribute *attribute = &list->items[list->count++];
    *attribute = (struct attribute){0};
    return attribute;
}

/* A value in several fields is one message, their contents joined; without memory the last one
 * counts. */
static struct slice joined_values(struct arena *arena, struct slice key_value, size_t size,
                                  struct slice last)
{
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    uint8_t *joined = arena_try_alloc(arena, size);
    size_t at = 0;
    if (joined == NULL)
        return last;
    while (wire_read_field(&reader, &field)) {
        if (field.number != VALUE || field.bytes.size == 0)
            continue;
        memcpy(joined + at, field.bytes.data, field.bytes.size);
        at += field.bytes.size;
    }
    assert(at == size);
    return slice_of(joined, size);
}

void attribute_list_add(struct attribute_list *list, struct slice key_value)
{
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    struct attribute *attribute = append(list);
    size_t values_bytes = 0;
    attribute->whole = key_value;
    while (wire_read_field(&reader, &field)) {
        if (field.number == KEY)
            attribute->key = field.bytes;
        if (field.number != VALUE || field.bytes.size == 0)
            continue;
        values_bytes += field.bytes.size;
        attribute->value = field.bytes;
    }
    assert(reader.failure == NULL);
    if (values_bytes > attribute->value.size)
        attribute->value = joined_values(&list->arena, key_value, values_bytes, attribute->value);
}

struct attribute *attribute_list_find(const struct attribute_list *list, struct slice key)
{
    for (size_t i = 0; i < list->count; i++)
        if (slice_equal(list->items[i].key, key))
            return &list->items[i];
    return NULL;
}

void attribute_list_set(struct attribute_list *list, struct attribute *attribute,
                        struct slice value)
{
    assert(attribute >= list->items);
    assert(attribute < list->items + list->count);
    if (slice_equal(attribute->value, value))
        return;
    attribute->value = value;
    attribute->has_new_value = true;
    list->has_changed = true;
}

void attribute_list_put(struct attribute_list *list, struct slice key, struct slice value)
{
    assert(key.data != NULL || key.size == 0);
    struct attribute *attribute = attribute_list_find(list, key);
    if (attribute != NULL) {
        attribute_list_set(list, attribute, value);
        return;
    }
    attribute = append(list);
    attribute->key = key;
    attribute->value = value;
    attribute->has_new_value = true;
    list->has_changed = true;
}

void attribute_list_remove(struct attribute_list *list, struct slice key)
{
    struct attribute *attribute = attribute_list_find(list, key);
    if (attribute == NULL)
        return;
    *attribute = list->items[--list->count];
    list->has_changed = true;
}

void attribute_list_remove_matching(struct attribute_list *list, const struct pattern *pattern)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!pattern_matches(pattern, list->items[i].key))
            list->items[kept++] = list->items[i];
    list->has_changed |= kept < list->count;
    list->count = kept;
}

void attribute_list_remove_doomed(struct attribute_list *list)
{
    size_t before = list->count;
    /* What comes into a gap from the end has its turn when those before it have had theirs: after
     * this loop, the last gap first. */
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].is_doomed)
            list->items[i] = list->items[--list->count];
    for (size_t i = list->count; i-- > 0;)
        if (list->items[i].is_doomed)
            list->items[i] = list->items[--list->count];
    list->has_changed |= list->count < before;
}

/* Fields of a changed KeyValue that are neither key nor value are kept. */
static size_t other_bytes(const struct attribute *attribute, struct wire_writer *writer)
{
    size_t size = 0;
    struct wire_reader reader = wire_reader_of(attribute->whole);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number == KEY || field.number == VALUE)
            continue;
        size += field.whole.size;
        if (writer != NULL)
            wire_write_raw(writer, field.whole);
    }
    return size;
}

static size_t content_bytes(const struct attribute *attribute)
{
    assert(attribute->has_new_value || attribute->whole.data != NULL || attribute->whole.size == 0);
    if (!attribute->has_new_value)
        return attribute->whole.size;
    return wire_field_size(KEY, attribute->key.size) +
           wire_field_size(VALUE, attribute->value.size) + other_bytes(attribute, NULL);
}

size_t attribute_list_bytes(const struct attribute_list *list, unsigned number)
{
    assert(number > 0);
    size_t size = 0;
    for (size_t i = 0; i < list->count; i++)
        size += wire_field_size(number, content_bytes(&list->items[i]));
    return size;
}

void attribute_list_write(const struct attribute_list *list, unsigned number,
                          struct wire_writer *writer)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct attribute *attribute = &list->items[i];
        wire_write_header(writer, number, content_bytes(attribute));
        if (!attribute->has_new_value) {
            wire_write_raw(writer, attribute->whole);
            continue;
        }
        wire_write_bytes(writer, KEY, attribute->key);
        wire_write_bytes(writer, VALUE, attribute->value);
        other_bytes(attribute, writer);
    }
}
