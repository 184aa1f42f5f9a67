/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and maps of the configuration tree. Entries keep the order of the file; keys are found
 * by hash once there are many. Main thread. */
#include "src/config/node.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/arena.h"

enum { FIRST_CAPACITY = 4, FIRST_SLOTS = 64, SHOWN_BYTES_MAX = 60 };

static uint32_t hash_of(const char *key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *key != '\0'; key++)
        hash = (hash ^ (uint8_t)*key) * 16777619u;
    return hash;
}

static void make_room(struct arena *arena, struct node *node)
{
    assert(node->count <= node->capacity);
    if (node->count < node->capacity)
        return;
    size_t capacity = node->capacity == 0 ? FIRST_CAPACITY : 2 * node->capacity;
    struct node_entry *entries = arena_alloc(arena, capacity * sizeof(*entries));
    if (node->count > 0)
        memcpy(entries, node->entries, node->count * sizeof(*entries));
    node->entries = entries;
    node->capacity = capacity;
}

void node_append(struct arena *arena, struct node *list, struct node *value)
{
    assert(list != NULL && list->kind == NODE_LIST);
    make_room(arena, list);
    list->entries[list->count++] = (struct node_entry){.value = value, .position = value->position};
}

/* Of the entry with that key, or the empty one where it belongs. */
static uint32_t *slot_of(const struct node *map, const char *key, uint32_t hash)
{
    size_t mask = map->slots_count - 1;
    size_t at = hash & mask;
    for (; map->slots[at] != 0; at = (at + 1) & mask) {
        const struct node_entry *entry = &map->entries[map->slots[at] - 1];
        if (entry->hash == hash && strcmp(entry->key, key) == 0)
            break;
    }
    return &map->slots[at];
}

void node_add(struct arena *arena, struct node *map, struct node_entry entry)
{
    assert(map != NULL && map->kind == NODE_MAP);
    make_room(arena, map);
    entry.hash = hash_of(entry.key);
    map->entries[map->count++] = entry;
    if (2 * map->count >= map->slots_count && map->count >= FIRST_SLOTS / 4) {
        size_t count = FIRST_SLOTS;
        assert(map->count <= UINT32_MAX / 4);
        while (count <= 2 * map->count)
            count *= 2;
        map->slots = arena_alloc(arena, count * sizeof(*map->slots));
        map->slots_count = count;
        memset(map->slots, 0, count * sizeof(*map->slots));
        for (size_t i = 0; i < map->count; i++)
            *slot_of(map, map->entries[i].key, map->entries[i].hash) = (uint32_t)(i + 1);
    } else if (map->slots != NULL) {
        *slot_of(map, entry.key, entry.hash) = (uint32_t)map->count;
    }
}

struct node_entry *node_find(const struct node *map, const char *key)
{
    if (map == NULL || map->kind != NODE_MAP)
        return NULL;
    uint32_t hash = hash_of(key);
    if (map->slots != NULL) {
        uint32_t place = *slot_of(map, key, hash);
        return place > 0 ? &map->entries[place - 1] : NULL;
    }
    for (size_t i = 0; i < map->count; i++)
        if (map->entries[i].hash == hash && strcmp(map->entries[i].key, key) == 0)
            return &map->entries[i];
    return NULL;
}

struct node *node_value(const struct node *map, const char *key)
{
    struct node_entry *entry = node_find(map, key);
    return entry != NULL ? entry->value : NULL;
}

static const char *kind_name(enum node_kind kind)
{
    static const char *const names[] = {
        [NODE_NULL] = "null",       [NODE_BOOL] = "a boolean", [NODE_INT] = "a number",
        [NODE_DOUBLE] = "a number", [NODE_TEXT] = "a string",  [NODE_TIME] = "a date",
        [NODE_LIST] = "a list",     [NODE_MAP] = "a map",      [NODE_BROKEN] = "nothing usable",
    };
    assert((size_t)kind < sizeof(names) / sizeof(names[0]));
    return names[kind];
}

/* How many bytes to show: up to the first line break, and only whole characters. */
static int shown_bytes(const char *text)
{
    size_t size = strcspn(text, "\r\n");
    if (size > SHOWN_BYTES_MAX)
        size = SHOWN_BYTES_MAX;
    while (size > 0 && ((uint8_t)text[size] & 0xc0) == 0x80)
        size--;
    return (int)size;
}

struct node_description node_describe_secret(const struct node *node)
{
    struct node_description description;
    if (node->reference != NULL)
        snprintf(description.text, sizeof(description.text), "%s from %.*s", kind_name(node->kind),
                 shown_bytes(node->reference), node->reference);
    else
        snprintf(description.text, sizeof(description.text), "%s", kind_name(node->kind));
    return description;
}

struct node_description node_describe(const struct node *node)
{
    struct node_description description;
    bool is_literal = node->reference == NULL && node->text != NULL;
    if (is_literal && node->kind == NODE_TEXT) {
        int shown = shown_bytes(node->text);
        snprintf(description.text, sizeof(description.text), "the string \"%.*s%s\"", shown,
                 node->text, node->text[shown] != '\0' ? "…" : "");
        return description;
    }
    if (!is_literal || node->kind == NODE_NULL)
        return node_describe_secret(node);
    snprintf(description.text, sizeof(description.text), "the %s %.*s",
             node->kind == NODE_BOOL   ? "boolean"
             : node->kind == NODE_TIME ? "date"
                                       : "number",
             shown_bytes(node->text), node->text);
    return description;
}
