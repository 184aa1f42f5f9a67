/* SPDX-License-Identifier: Apache-2.0 */
/* Editors of values and maps. Runs on the processor's thread. */
#include "src/base/error.h"
#include "src/base/pattern.h"
#include "src/ottl/functions/go_text.h"
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

static bool count_keys(struct ottl_call *call, const struct ottl_regex *regex,
                       const struct ottl_map *map)
{
    size_t bytes = 0;
    if (regex->made.pattern == NULL)
        return true;
    for (uint32_t i = 0; i < map->count; i++)
        bytes += map->entries[i].key.size;
    return ottl_count_search(call, regex, bytes, 0);
}

static bool keep_by_pattern(struct ottl_call *call,
                            bool (*keeps)(void *arg, struct ottl_entry *entry))
{
    struct ottl_map *map;
    struct ottl_regex regex;
    if (!ottl_get_pattern(call, 1, call->state, false, &regex))
        return false;
    const bool is_fine = ottl_get_map(call, 0, &map) && count_keys(call, &regex, map);
    if (is_fine)
        ottl_map_keep(map, keeps, (void *)(uintptr_t)regex.pattern);
    ottl_release_pattern(call, &regex);
    return is_fine;
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
    if (!ottl_map_index(target))
        return ottl_no_memory(call);
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

/* limit */

static bool prepare_limit(const struct ottl_preparation *preparation, void **ret_state,
                          struct error *error)
{
    const int64_t limit = ottl_literal_int(preparation, 1, 0);
    const unsigned keys = ottl_literal_items(preparation, 2);
    *ret_state = NULL;
    if (limit < 0)
        return error_set(error, "invalid limit for limit function, %lld cannot be negative",
                         (long long)limit);
    return limit >= keys ||
           error_set(error,
                     "invalid limit for limit function, %lld cannot be less than number of "
                     "priority attributes %u",
                     (long long)limit, keys);
}

struct limited {
    struct kept_keys priority;
    int64_t count; /* of what is kept or has to be */
    int64_t limit;
};

static bool is_within(void *arg, struct ottl_entry *entry)
{
    struct limited *limited = arg;
    if (is_kept(&limited->priority, entry))
        return true;
    return limited->count < limited->limit && ++limited->count > 0;
}

static bool limit(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    struct limited limited = {.priority.count = ottl_items(call, 2)};
    (void)ret;
    if (!ottl_get_map(call, 0, &map) || !ottl_get_int(call, 1, &limited.limit))
        return false;
    if (map->count <= limited.limit) {
        ottl_leave(call);
        return true;
    }
    struct slice *keys = ottl_alloc(call, limited.priority.count * sizeof(*keys));
    if (keys == NULL)
        return false;
    for (unsigned i = 0; i < limited.priority.count; i++) {
        if (!ottl_get_item_string(call, 2, i, &keys[i]))
            return false;
        limited.count += ottl_map_find(map, keys[i]) != NULL;
    }
    limited.priority.keys = keys;
    ottl_map_keep(map, is_within, &limited);
    return true;
}

static const struct ottl_parameter limit_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Limit", OTTL_INT_LITERAL, false, false},
    {"PriorityKeys", OTTL_TEXT_LITERAL, false, true},
    {.name = NULL}};

/* truncate_all */

static bool prepare_truncate_all(const struct ottl_preparation *preparation, void **ret_state,
                                 struct error *error)
{
    const int64_t limit_bytes = ottl_literal_int(preparation, 1, 0);
    *ret_state = NULL;
    return limit_bytes >= 0 ||
           error_set(error, "invalid limit for truncate_all function, %lld cannot be negative",
                     (long long)limit_bytes);
}

static bool truncate_all(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    int64_t limit_bytes;
    bool is_whole = true;
    (void)ret;
    if (!ottl_get_map(call, 0, &map) || !ottl_get_int(call, 1, &limit_bytes) ||
        (ottl_has(call, 2) && !ottl_get_bool(call, 2, &is_whole)))
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_entry *entry = &map->entries[i];
        struct ottl_value value;
        if (entry->value.type == OTTL_ENCODED && entry->value.size <= limit_bytes)
            continue;
        if (!ottl_map_read(map, entry, &value))
            return ottl_no_memory(call);
        if (value.type != OTTL_STRING || value.size <= limit_bytes)
            continue;
        uint32_t size = (uint32_t)limit_bytes;
        while (is_whole && size > 0 && (value.bytes[size] & 0xc0) == 0x80)
            size--;
        value.size = size;
        if (!ottl_map_set(map, entry, &value))
            return ottl_no_memory(call);
    }
    return true;
}

static const struct ottl_parameter truncate_all_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Limit", OTTL_INT_LITERAL, false, false},
    {"Utf8Safe", OTTL_BOOL_LITERAL, true, false},
    {.name = NULL}};

static bool stringify_all(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    (void)ret;
    if (!ottl_get_map(call, 0, &map))
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_value value;
        struct slice text;
        if (!ottl_map_read(map, &map->entries[i], &value))
            return ottl_no_memory(call);
        if (value.type == OTTL_STRING)
            continue;
        if (!go_as_string(call, &value, &text))
            return false;
        value = ottl_string(text);
        if (!ottl_map_set(map, &map->entries[i], &value))
            return ottl_no_memory(call);
    }
    return true;
}

static const struct ottl_parameter one_map_path[] = {{"Target", OTTL_MAP_PATH, false, false},
                                                     {.name = NULL}};

static bool keys_of(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    if (!ottl_get_map(call, 0, &map))
        return false;
    struct ottl_list *list = ottl_list_create(call->memory);
    if (list == NULL)
        return ottl_no_memory(call);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct ottl_value key = ottl_string(map->entries[i].key);
        if (!ottl_list_append(list, &key))
            return ottl_no_memory(call);
    }
    *ret = ottl_list_value(list, OTTL_FORM_PDATA);
    return true;
}

static bool values_of(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    if (!ottl_get_map(call, 0, &map))
        return false;
    struct ottl_list *list = ottl_list_create(call->memory);
    if (list == NULL)
        return ottl_no_memory(call);
    for (uint32_t i = 0; i < map->count; i++)
        if (!ottl_list_append(list, &map->entries[i].value))
            return ottl_no_memory(call);
    *ret = ottl_list_value(list, OTTL_FORM_PDATA);
    return true;
}

static const struct ottl_parameter one_map[] = {{"Target", OTTL_MAPS_ONLY, false, false},
                                                {.name = NULL}};

const struct ottl_function ottl_map_functions[] = {
    {.name = "set", .parameters = set_parameters, .evaluate = set, .users = OTTL_FOR_TRANSFORM},
    {.name = "delete_key",
     .is_lookup = true,
     .parameters = delete_key_parameters,
     .evaluate = delete_key,
     .users = OTTL_FOR_TRANSFORM | OTTL_FOR_ROUTING},
    {.name = "keep_keys",
     .parameters = keep_keys_parameters,
     .evaluate = keep_keys,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "keep_matching_keys",
     .parameters = matching_keys_parameters,
     .evaluate = keep_matching_keys,
     .prepare = prepare_second_pattern,
     .release = release_pattern,
     .spends_by = 1,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "delete_matching_keys",
     .parameters = matching_keys_parameters,
     .evaluate = delete_matching_keys,
     .prepare = prepare_second_pattern,
     .release = release_pattern,
     .spends_by = 1,
     .users = OTTL_FOR_TRANSFORM | OTTL_FOR_ROUTING},
    {.name = "merge_maps",
     .parameters = merge_maps_parameters,
     .evaluate = merge_maps,
     .prepare = prepare_merge,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "limit",
     .parameters = limit_parameters,
     .evaluate = limit,
     .prepare = prepare_limit,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "truncate_all",
     .parameters = truncate_all_parameters,
     .evaluate = truncate_all,
     .prepare = prepare_truncate_all,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "stringify_all",
     .parameters = one_map_path,
     .evaluate = stringify_all,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "Keys", .parameters = one_map, .evaluate = keys_of},
    {.name = "Values", .parameters = one_map, .evaluate = values_of},
    {.name = NULL},
};
