/* SPDX-License-Identifier: Apache-2.0 */
/* Editors of values and maps. Runs on the processor's thread. */
#include "src/base/error.h"
#include "src/base/pattern.h"
#include "src/ottl/functions/regex.h"
#include "src/ottl/functions/tables.h"

/* nil sets nothing: no field takes it. */
static bool set(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value value;
    (void)ret;
    return ottl_get(call, 1, &value) && (value.type == OTTL_NIL || ottl_set(call, 0, &value));
}

static const struct ottl_parameter set_parameters[] = {
    {"Target", OTTL_PATH, false, false}, {"Value", OTTL_ANY, false, false}, {.name = NULL}};

static bool delete_key(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    struct slice key;
    (void)ret;
    if (!ottl_get_map(call, 0, &map) || !ottl_get_string(call, 1, &key))
        return false;
    struct ottl_entry *entry = ottl_map_find(map, key);
    if (entry != NULL)
        ottl_map_remove(map, entry);
    return true;
}

static const struct ottl_parameter delete_key_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Key", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

struct kept_keys {
    const struct slice *keys;
    unsigned count;
};

static bool is_kept(void *arg, struct ottl_entry *entry)
{
    const struct kept_keys *kept = arg;
    for (unsigned i = 0; i < kept->count; i++)
        if (slice_equal(kept->keys[i], entry->key))
            return true;
    return false;
}

static bool keep_keys(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    struct kept_keys kept = {.count = ottl_items(call, 1)};
    (void)ret;
    if (!ottl_get_map(call, 0, &map))
        return false;
    struct slice *keys = ottl_alloc(call, kept.count * sizeof(*keys));
    if (keys == NULL)
        return false;
    for (unsigned i = 0; i < kept.count; i++)
        if (!ottl_get_item_string(call, 1, i, &keys[i]))
            return false;
    kept.keys = keys;
    ottl_map_keep(map, is_kept, &kept);
    return true;
}

static const struct ottl_parameter keep_keys_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Keys", OTTL_STRINGS_ONLY, false, true},
    {.name = NULL}};

static bool prepare_second_pattern(const struct ottl_preparation *preparation, void **ret_state,
                                   struct error *error)
{
    struct pattern *pattern;
    bool is_fine = ottl_prepare_pattern(preparation, 1, &pattern, error);
    *ret_state = pattern;
    return is_fine;
}

static void release_pattern(void *state)
{
    pattern_destroy(state);
}

static bool matches(void *arg, struct ottl_entry *entry)
{
    return pattern_matches(arg, entry->key);
}

static bool matches_not(void *arg, struct ottl_entry *entry)
{
    return !pattern_matches(arg, entry->key);
}

static bool keep_by_pattern(struct ottl_call *call,
                            bool (*keeps)(void *arg, struct ottl_entry *entry))
{
    struct ottl_map *map;
    const struct pattern *pattern;
    struct pattern *owned;
    if (!ottl_get_pattern(call, 1, call->state, &pattern, &owned))
        return false;
    bool has_map = ottl_get_map(call, 0, &map);
    if (has_map)
        ottl_map_keep(map, keeps, (void *)(uintptr_t)pattern);
    pattern_destroy(owned);
    return has_map;
}

static bool keep_matching_keys(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return keep_by_pattern(call, matches);
}

static bool delete_matching_keys(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return keep_by_pattern(call, matches_not);
}

static const struct ottl_parameter matching_keys_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Pattern", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

enum strategy { INSERT, UPDATE, UPSERT };

static bool read_strategy(struct slice text, enum strategy *ret)
{
    static const char *const names[] = {"insert", "update", "upsert"};
    for (unsigned i = 0; i <= UPSERT; i++) {
        *ret = (enum strategy)i;
        if (slice_equal_text(text, names[i]))
            return true;
    }
    return false;
}

static bool prepare_merge(const struct ottl_preparation *preparation, void **ret_state,
                          struct error *error)
{
    enum strategy strategy;
    struct slice text = ottl_literal_text(preparation, 2);
    *ret_state = NULL;
    return read_strategy(text, &strategy) ||
           error_set(error,
                     "invalid value for strategy, \"%.*s\", must be 'insert', 'update' or 'upsert'",
                     (int)text.size, (const char *)text.data);
}

static bool merge_maps(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *target;
    struct ottl_map *source;
    struct slice text;
    enum strategy strategy;
    (void)ret;
    if (!ottl_get_map(call, 0, &target) || !ottl_get_map(call, 1, &source) ||
        !ottl_get_string(call, 2, &text) || !read_strategy(text, &strategy))
        return false;
    const uint32_t count = source->count; /* it may be the target */
    for (uint32_t i = 0; i < count; i++) {
        struct slice key = source->entries[i].key;
        struct ottl_value value;
        bool is_there = ottl_map_find(target, key) != NULL;
        if (is_there ? strategy == INSERT : strategy == UPDATE)
            continue;
        if (source == target && strategy == UPDATE)
            continue;
        /* Go empties the entry before it copies, which may be the same one. */
        if (source == target)
            value = ottl_nil();
        else if (!ottl_map_read(source, &source->entries[i], &value))
            return ottl_no_memory(call);
        if (!ottl_map_put(target, key, &value))
            return ottl_no_memory(call);
    }
    return true;
}

static const struct ottl_parameter merge_maps_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Source", OTTL_MAPS_ONLY, false, false},
    {"Strategy", OTTL_TEXT_LITERAL, false, false},
    {.name = NULL}};

const struct ottl_function ottl_map_functions[] = {
    {.name = "set", .parameters = set_parameters, .evaluate = set, .users = OTTL_FOR_TRANSFORM},
    {.name = "delete_key",
     .parameters = delete_key_parameters,
     .evaluate = delete_key,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "keep_keys",
     .parameters = keep_keys_parameters,
     .evaluate = keep_keys,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "keep_matching_keys",
     .parameters = matching_keys_parameters,
     .evaluate = keep_matching_keys,
     .prepare = prepare_second_pattern,
     .release = release_pattern,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "delete_matching_keys",
     .parameters = matching_keys_parameters,
     .evaluate = delete_matching_keys,
     .prepare = prepare_second_pattern,
     .release = release_pattern,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "merge_maps",
     .parameters = merge_maps_parameters,
     .evaluate = merge_maps,
     .prepare = prepare_merge,
     .users = OTTL_FOR_TRANSFORM},
    {.name = NULL},
};
