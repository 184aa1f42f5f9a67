/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of one message while they are edited, with the rules of Go's pcommon.Map: keys may
 * occur twice, lookups find the first, removal moves the last one into the gap. Slices point into
 * the message or into the arena. One owner; reused from message to message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/arena.h"
#include "src/base/slice.h"

struct budget;
struct pattern;
struct wire_writer;

struct attribute {
    struct slice key;
    struct slice value; /* encoded AnyValue */
    struct slice whole; /* the original KeyValue; no data when it is new */
    bool has_new_value;
    bool is_doomed; /* for attribute_list_remove_doomed */
};

struct attribute_list {
    struct arena arena;
    struct attribute *items;
    size_t count;
    size_t capacity;
    bool has_changed;
    bool has_failed;       /* the budget had no room: some attributes are missing */
    bool may_exceed;       /* the budget's limit, because the data cannot be refused any more: up to
                              free_bytes, then within its margin */
    uint64_t free_bytes;   /* see may_exceed */
    struct budget *budget; /* NULL: not charged */
};

/* arena_bytes_max: for the new values of one message. The list is charged to budget (NULL: not
 * charged), which may refuse. */
void attribute_list_init(struct attribute_list *list, size_t arena_bytes_max,
                         struct budget *budget);
void attribute_list_fini(struct attribute_list *list);
/* Removes all attributes. */
void attribute_list_clear(struct attribute_list *list);
/* The same, but keeps memory that the next message is likely to need: between two of many. Values
 * of the one before are valid no more. */
void attribute_list_next(struct attribute_list *list);
/* Appends an encoded KeyValue. */
void attribute_list_add(struct attribute_list *list, struct slice key_value);
/* The first with that key, or NULL. */
struct attribute *attribute_list_find(const struct attribute_list *list, struct slice key);
/* value is an encoded AnyValue that lives as long as the message or the arena. */
void attribute_list_set(struct attribute_list *list, struct attribute *attribute,
                        struct slice value);
/* Sets the first with that key, or appends one. */
void attribute_list_put(struct attribute_list *list, struct slice key, struct slice value);
/* Removes the first with that key; the last attribute takes its place. */
void attribute_list_remove(struct attribute_list *list, struct slice key);
/* The others keep their order. */
void attribute_list_remove_matching(struct attribute_list *list, const struct pattern *pattern);

/* Removes the doomed ones, as if one after the other by attribute_list_remove, in linear time. */
void attribute_list_remove_doomed(struct attribute_list *list);

/* The size, and the bytes, as repeated field `number`. */
size_t attribute_list_bytes(const struct attribute_list *list, unsigned number);
void attribute_list_write(const struct attribute_list *list, unsigned number,
                          struct wire_writer *writer);
