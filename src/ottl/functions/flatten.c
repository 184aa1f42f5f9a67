/* SPDX-License-Identifier: Apache-2.0 */
/* flatten: nested maps and lists of a map become entries of the map, named by their paths. Runs on
 * the processor's thread. */
#include <stdio.h>

#include "src/base/error.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/tables.h"

enum { PREFIX = 1, DEPTH, RESOLVE_CONFLICTS };

struct flattening {
    struct ottl_call *call;
    struct key_index result;
    uint32_t *conflicts; /* by entry: names that were made for its key */
    uint32_t conflicts_capacity;
    int64_t depth_max;
    bool resolves;
};

static bool prepare_flatten(const struct ottl_preparation *preparation, void **ret_state,
                            struct error *error)
{
    const int64_t depth = ottl_literal_int(preparation, DEPTH, 1);
    *ret_state = NULL;
    return depth >= 1 ||
           error_set(error, "invalid depth '%lld' for flatten function, must be greater than 0",
                     (long long)depth);
}

/* prefix, point (if there is a prefix and it wants one), name. */
static bool join(struct ottl_call *call, struct slice prefix, const char *point, struct slice name,
                 struct slice *ret)
{
    const size_t between = strlen(point);
    const size_t size = prefix.size + between + name.size;
    /* Any number of names may have the same prefix. */
    uint8_t *room = ottl_spend(call, size) ? ottl_alloc(call, size) : NULL;
    if (room == NULL)
        return false;
    if (prefix.size > 0)
        memcpy(room, prefix.data, prefix.size);
    memcpy(room + prefix.size, point, between);
    if (name.size > 0)
        memcpy(room + prefix.size + between, name.data, name.size);
    *ret = slice_of(room, size);
    return true;
}

static bool join_number(struct ottl_call *call, struct slice prefix, const char *point,
                        uint32_t number, struct slice *ret)
{
    char digits[12];
    snprintf(digits, sizeof(digits), "%u", number);
    return join(call, prefix, point, slice_of_text(digits), ret);
}

/* The counters of the entries that there are now. */
static bool count_conflicts(struct flattening *flattening)
{
    enum { FIRST = 64 };
    uint32_t wanted = flattening->result.map->count;
    if (wanted <= flattening->conflicts_capacity)
        return true;
    uint32_t capacity =
        flattening->conflicts_capacity > 0 ? 2 * flattening->conflicts_capacity : FIRST;
    uint32_t *moved = ottl_alloc(flattening->call, capacity * sizeof(*moved));
    if (moved == NULL)
        return false;
    memset(moved, 0, capacity * sizeof(*moved));
    if (flattening->conflicts_capacity > 0)
        memcpy(moved, flattening->conflicts, flattening->conflicts_capacity * sizeof(*moved));
    flattening->conflicts = moved;
    flattening->conflicts_capacity = capacity;
    return true;
}

static bool put(struct flattening *flattening, struct slice key, const struct ottl_value *value)
{
    struct ottl_map *map = flattening->result.map;
    struct ottl_entry *same =
        flattening->resolves ? key_index_find(&flattening->result, key, map->count) : NULL;
    if (same != NULL && !join_number(flattening->call, key, ".",
                                     flattening->conflicts[same - map->entries]++, &key))
        return false;
    struct ottl_entry *entry = key_index_put(&flattening->result, key);
    if (entry == NULL || !count_conflicts(flattening))
        return false;
    return ottl_map_set(map, entry, value) || ottl_no_memory(flattening->call);
}

static bool flatten_value(struct flattening *flattening, struct slice prefix, struct slice name,
                          const struct ottl_value *value, int64_t depth);

/* Recursion is bounded by the depth of values. prefix ends with a point, or is empty. */
static bool flatten_map(struct flattening *flattening, struct ottl_map *map, struct slice prefix,
                        int64_t depth)
{
    if (prefix.size > 0 && !join(flattening->call, prefix, ".", slice_of(NULL, 0), &prefix))
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_value value;
        if (!ottl_map_read(map, &map->entries[i], &value))
            return ottl_no_memory(flattening->call);
        if (!flatten_value(flattening, prefix, map->entries[i].key, &value, depth))
            return false;
    }
    return true;
}

/* A list in a list: Go puts no point before its numbers. */
static bool flatten_inner_list(struct flattening *flattening, struct ottl_list *list,
                               struct slice prefix, int64_t depth)
{
    for (uint32_t i = 0; i < list->count; i++) {
        char digits[12];
        struct ottl_value value;
        snprintf(digits, sizeof(digits), "%u", i);
        if (!ottl_list_read(list, i, &value))
            return ottl_no_memory(flattening->call);
        if (!flatten_value(flattening, prefix, slice_of_text(digits), &value, depth + 1))
            return false;
    }
    return true;
}

static bool flatten_item(struct flattening *flattening, struct slice key, uint32_t number,
                         const struct ottl_value *item, int64_t depth)
{
    struct slice name;
    if (flattening->resolves && (item->type != OTTL_MAP && item->type != OTTL_LIST))
        return put(flattening, key, item);
    if (!join_number(flattening->call, key, ".", number, &name))
        return false;
    if (item->type == OTTL_MAP && depth + 1 < flattening->depth_max)
        return flatten_map(flattening, item->map, name, depth + 2);
    if (item->type == OTTL_LIST && depth + 1 < flattening->depth_max)
        return flatten_inner_list(flattening, item->list, name, depth + 2);
    return put(flattening, flattening->resolves ? key : name, item);
}

/* Recursion is bounded by the depth of values. */
static bool flatten_value(struct flattening *flattening, struct slice prefix, struct slice name,
                          const struct ottl_value *value, int64_t depth)
{
    struct slice key;
    if (!join(flattening->call, prefix, "", name, &key))
        return false;
    if (value->type == OTTL_MAP && depth < flattening->depth_max)
        return flatten_map(flattening, value->map, key, depth + 1);
    if (value->type != OTTL_LIST || depth >= flattening->depth_max)
        return put(flattening, key, value);
    for (uint32_t i = 0; i < value->list->count; i++) {
        struct ottl_value item;
        if (!ottl_list_read(value->list, i, &item))
            return ottl_no_memory(flattening->call);
        if (!flatten_item(flattening, key, i, &item, depth))
            return false;
    }
    return true;
}

/* Nothing to do: no entry holds others, and no two have one key. */
static bool is_flat(struct ottl_call *call, struct ottl_map *map, bool *ret)
{
    struct key_index index;
    key_index_init(&index, call, map);
    *ret = true;
    for (uint32_t i = 0; i < map->count && *ret; i++) {
        struct ottl_value value;
        if (!ottl_map_read(map, &map->entries[i], &value))
            return ottl_no_memory(call);
        *ret = value.type != OTTL_MAP && value.type != OTTL_LIST &&
               key_index_find(&index, map->entries[i].key, i) == NULL;
        if (!key_index_note(&index, i))
            return false;
    }
    return true;
}

static bool flatten(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    struct flattening flattening = {.call = call, .depth_max = INT64_MAX};
    struct slice prefix = slice_of(NULL, 0);
    bool is_done;
    (void)ret;
    if (!ottl_get_map(call, 0, &map) ||
        (ottl_has(call, PREFIX) && !ottl_get_string(call, PREFIX, &prefix)) ||
        (ottl_has(call, DEPTH) && !ottl_get_int(call, DEPTH, &flattening.depth_max)) ||
        (ottl_has(call, RESOLVE_CONFLICTS) &&
         !ottl_get_bool(call, RESOLVE_CONFLICTS, &flattening.resolves)) ||
        !is_flat(call, map, &is_done))
        return false;
    if (is_done && prefix.size == 0)
        return true;
    struct ottl_map *result = ottl_map_create(call->memory);
    if (result == NULL)
        return ottl_no_memory(call);
    key_index_init(&flattening.result, call, result);
    if (!flatten_map(&flattening, map, prefix, 0))
        return false;
    return ottl_map_copy(map, result) || ottl_no_memory(call);
}

static const struct ottl_parameter flatten_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Prefix", OTTL_TEXT_LITERAL, true, false},
    {"Depth", OTTL_INT_LITERAL, true, false},
    {"ResolveConflicts", OTTL_BOOL_LITERAL, true, false},
    {.name = NULL}};

const struct ottl_function ottl_flatten_functions[] = {
    {.name = "flatten",
     .parameters = flatten_parameters,
     .evaluate = flatten,
     .prepare = prepare_flatten,
     .users = OTTL_FOR_TRANSFORM,
     .spends = true},
    {.name = NULL},
};
