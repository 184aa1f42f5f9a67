/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates compiled conditions and values. Runs on the processor's thread, for each record. */
#include <assert.h>
#include <stdio.h>

#include "src/base/mem.h"
#include "src/base/short_bytes.h"
#include "src/ottl/ottl_access.h"
#include "src/ottl/ottl_dictionary.h"
#include "src/ottl/ottl_node.h"
#include "src/ottl/ottl_record.h"

bool ottl_run_fail(struct ottl_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(run->error, sizeof(run->error), format, args);
    va_end(args);
    return false;
}

bool ottl_run_no_budget(struct ottl_run *run, uint64_t bytes)
{
    run->is_out_of_memory = true;
    run->missed_bytes = bytes;
    return ottl_run_fail(run, "no memory");
}

/* Whether its last refusal was by its own limit; told once. */
static bool take_limit(struct ottl_memory *memory)
{
    const bool has_met_limit = memory->has_met_limit;
    memory->has_met_limit = false;
    return has_met_limit;
}

bool ottl_run_no_memory(struct ottl_run *run)
{
    bool has_met_limit = run->dictionary != NULL && take_limit(&run->dictionary->memory);
    bool is_too_deep = run->memory != NULL && run->memory->is_too_deep;
    if (run->memory != NULL)
        run->memory->is_too_deep = false;
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        if (run->records[i] == NULL)
            continue;
        struct ottl_memory *memory = &run->records[i]->memory;
        has_met_limit = take_limit(memory) || has_met_limit;
        is_too_deep = is_too_deep || memory->is_too_deep;
        memory->is_too_deep = false;
    }
    if (is_too_deep)
        return ottl_run_fail(run, "the value is nested more than %d lists or %d maps deep",
                             OTTL_VALUE_LEVELS_MAX / OTTL_LIST_LEVELS,
                             OTTL_VALUE_LEVELS_MAX / OTTL_MAP_LEVELS);
    run->is_out_of_memory = !has_met_limit;
    return ottl_run_fail(
        run, has_met_limit ? "the record becomes larger than statements may make it" : "no memory");
}

void ottl_run_work(struct ottl_run *run, uint64_t bytes)
{
    run->work_left -= bytes < run->work_left ? bytes : run->work_left;
}

bool ottl_run_fail_used_up(struct ottl_run *run)
{
    return ottl_run_fail(run,
                         "statements have read more than %d times the request's bytes in records "
                         "around theirs, such as the Resource of spans, or in the dictionary of "
                         "profiles, or have copied as much, or their patterns take as long",
                         OTTL_OUTER_FACTOR_MAX);
}

bool ottl_run_spend(struct ottl_run *run, uint64_t bytes)
{
    ottl_run_work(run, bytes);
    return run->work_left > 0 || ottl_run_fail_used_up(run);
}

/* The size of a map, which is the attributes of a record as they came, or any other. */
static uint64_t map_bytes(const struct ottl_run *run, const struct ottl_value *value)
{
    for (unsigned i = 0; i < OTTL_CONTEXTS && !value->map->base.has_changed; i++) {
        const struct ottl_record *record = run->records[i];
        if (record != NULL && value->map == &record->attributes)
            return record->attributes_end - record->attributes_begin;
    }
    return ottl_value_encoded_size(value);
}

void ottl_run_charge(struct ottl_run *run, const struct ottl_value *value)
{
    enum { ITEM_BYTES = 64 }; /* going on to the next entry or item takes as long */
    if (value->type == OTTL_STRING || value->type == OTTL_BYTES)
        ottl_run_work(run, value->size);
    else if (value->type == OTTL_LIST)
        ottl_run_work(run,
                      (uint64_t)value->list->count * ITEM_BYTES + ottl_value_encoded_size(value));
    else if (value->type == OTTL_MAP)
        ottl_run_work(run, (uint64_t)value->map->count * ITEM_BYTES + map_bytes(run, value));
}

bool ottl_node_constant(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    (void)run;
    *ret = node->constant;
    return true;
}

bool ottl_node_path(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    return node->path.row->get(run, &node->path, ret);
}

bool ottl_node_text(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    const struct ottl_record *record = run->records[node->path.context];
    if (!record->is_scanned)
        return ottl_get_text(run, &node->path, ret);
    *ret = ottl_string(ottl_field_bytes(record, node->path.row->field));
    return true;
}

/* Of a record whose slots are not known yet, or a value that is not in the usual form. */
static __attribute__((noinline)) bool get_any_attribute(const struct ottl_node *node,
                                                        struct ottl_run *run,
                                                        struct ottl_value *ret)
{
    struct ottl_record *record = run->records[node->path.context];
    if (!ottl_record_find_slots(record))
        return ottl_run_no_memory(run);
    struct ottl_entry *entry = ottl_record_slot(record, (uint32_t)node->path.slot);
    *ret = ottl_nil();
    return entry == NULL || ottl_map_read(&record->attributes, entry, ret) ||
           ottl_run_no_memory(run);
}

bool ottl_node_attribute(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_record *record = run->records[node->path.context];
    if (!ottl_record_knows_slots(record))
        return get_any_attribute(node, run, ret);
    const struct ottl_entry *entry = ottl_record_slot(record, (uint32_t)node->path.slot);
    if (entry == NULL)
        *ret = ottl_nil();
    else if (entry->value.type != OTTL_ENCODED)
        *ret = entry->value;
    else if (ottl_is_plain_text(&entry->value))
        *ret = ottl_plain_text(&entry->value);
    else
        return get_any_attribute(node, run, ret);
    return true;
}

/* In the memory of the innermost record that it depends on, and remembers the result. Errors are
 * remembered, too: what finds one at its end took as long. */
static __attribute__((noinline)) bool evaluate_once(const struct ottl_node *node,
                                                    struct ottl_run *run,
                                                    struct ottl_remembered *remembered,
                                                    uint64_t generations)
{
    struct ottl_memory *memory = run->memory;
    const int innermost = 31 - __builtin_clz(node->uses);
    run->memory = &run->records[innermost]->memory;
    const bool is_done = node->is_path ? ottl_node_path(node, run, &remembered->value)
                                       : ottl_node_call(node, run, &remembered->value);
    run->memory = memory;
    remembered->generations = 0;
    if (!is_done && run->is_out_of_memory)
        return false;
    remembered->generations = generations;
    remembered->result = is_done;
    if (is_done)
        return true;
    if (remembered->error == NULL)
        remembered->error = mem_alloc(OTTL_ERROR_BYTES_MAX);
    memcpy(remembered->error, run->error, OTTL_ERROR_BYTES_MAX);
    return true;
}

bool ottl_node_memo(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_remembered *remembered = &run->remembered[node->place];
    uint64_t generations = 1;
    for (unsigned left = node->uses; left != 0; left &= left - 1)
        generations += run->records[__builtin_ctz(left)]->generation;
    if (remembered->generations != generations &&
        !evaluate_once(node, run, remembered, generations))
        return false;
    *ret = remembered->value;
    return remembered->result != 0 || ottl_run_fail(run, "%s", remembered->error);
}

/* Containers in list literals are copies, as in Go. */
bool ottl_node_list(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_list *list = ottl_list_create(run->memory);
    if (list == NULL)
        return ottl_run_no_memory(run);
    for (uint32_t i = 0; i < node->list.count; i++) {
        struct ottl_value item;
        if (!node->list.items[i]->get(node->list.items[i], run, &item))
            return false;
        if (!ottl_list_append(list, &item))
            return ottl_run_no_memory(run);
    }
    *ret = ottl_list_value(list, OTTL_FORM_ANY);
    return true;
}

bool ottl_node_map(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_map *map = ottl_map_create(run->memory);
    if (map == NULL)
        return ottl_run_no_memory(run);
    for (uint32_t i = 0; i < node->list.count; i++) {
        struct ottl_value item;
        if (!node->list.items[i]->get(node->list.items[i], run, &item))
            return false;
        if (!ottl_value_is_storable(&item))
            return ottl_run_fail(run, "<Invalid value type %s>", ottl_type_name(&item));
        if (!ottl_map_put(map, node->list.keys[i], &item))
            return ottl_run_no_memory(run);
    }
    *ret = ottl_map_value(map);
    return true;
}

bool ottl_node_math(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_value left;
    struct ottl_value right;
    if (!node->math.left->get(node->math.left, run, &left) ||
        (node->math.right != NULL && !node->math.right->get(node->math.right, run, &right)))
        return false;
    if (node->math.right != NULL && left.type == OTTL_INT && right.type == OTTL_INT &&
        node->math.op <= OTTL_SUBTRACT) { /* they wrap, as in Go */
        const uint64_t a = (uint64_t)left.integer;
        const uint64_t b = (uint64_t)right.integer;
        *ret = ottl_int((int64_t)(node->math.op == OTTL_ADD ? a + b : a - b));
        return true;
    }
    const char *failure = node->math.right != NULL
                              ? ottl_calculate(&left, node->math.op, &right, ret)
                              : ottl_negate(&left, ret);
    return failure == NULL || ottl_run_fail(run, "%s", failure);
}

/* A key that is an expression. */
static bool evaluate_key(struct ottl_run *run, const struct ottl_key *key, struct ottl_value *ret)
{
    if (key->node == NULL) {
        *ret = key->is_text ? ottl_string(key->text) : ottl_int(key->index);
        return true;
    }
    return key->node->get(key->node, run, ret);
}

bool ottl_key_text(struct ottl_run *run, const struct ottl_key *key, struct slice *ret)
{
    struct ottl_value value;
    if (key->is_text) {
        *ret = key->text;
        return true;
    }
    if (key->node == NULL)
        return ottl_run_fail(run, "unable to resolve a string index in map: invalid key type");
    if (!evaluate_key(run, key, &value))
        return false;
    if (value.type != OTTL_STRING)
        return ottl_run_fail(run,
                             "unable to resolve a string index in map: could not resolve key for "
                             "map/slice, expecting 'string' but got '%s'",
                             ottl_type_name(&value));
    *ret = ottl_slice(&value);
    return true;
}

static bool index_key(struct ottl_run *run, const struct ottl_key *key, int64_t *ret)
{
    struct ottl_value value;
    if (key->is_text)
        return ottl_run_fail(run, "unable to resolve an integer index in slice: invalid key type");
    if (!evaluate_key(run, key, &value))
        return false;
    if (value.type != OTTL_INT)
        return ottl_run_fail(run,
                             "unable to resolve an integer index in slice: could not resolve key "
                             "for map/slice, expecting 'int64' but got '%s'",
                             ottl_type_name(&value));
    *ret = value.integer;
    return true;
}

static const char *pdata_name(const struct ottl_value *value)
{
    static const char *const names[] = {"Empty", "Bool", "Int", "Double", "Str", "Bytes"};
    return value->type <= OTTL_BYTES ? names[value->type] : ottl_type_name(value);
}

bool ottl_select(struct ottl_run *run, const struct ottl_value *value, const struct ottl_key *keys,
                 uint32_t count, struct ottl_value *ret)
{
    struct ottl_value found = *value;
    for (uint32_t i = 0; i < count; i++) {
        if (found.type == OTTL_MAP) {
            struct slice key;
            if (!ottl_key_text(run, &keys[i], &key))
                return false;
            struct ottl_entry *entry = ottl_map_find(found.map, key);
            if (entry == NULL) {
                *ret = ottl_nil();
                return true;
            }
            if (!ottl_map_read(found.map, entry, &found))
                return ottl_run_no_memory(run);
        } else if (found.type == OTTL_LIST) {
            int64_t index;
            if (!index_key(run, &keys[i], &index))
                return false;
            if (index < 0 || index >= found.list->count)
                return ottl_run_fail(run, "index %lld out of bounds", (long long)index);
            if (!ottl_list_read(found.list, (uint32_t)index, &found))
                return ottl_run_no_memory(run);
        } else {
            return ottl_run_fail(run, "type %s does not support string indexing",
                                 pdata_name(&found));
        }
    }
    *ret = found;
    return true;
}

/* The entry that the first key names, or NULL. False: the key has no text. */
static bool find_entry(struct ottl_run *run, struct ottl_map *map, const struct ottl_path *path,
                       struct slice *ret_key, struct ottl_entry **ret)
{
    if (path->slot >= 0) {
        *ret_key = path->keys[0].text;
        *ret = ottl_record_slot(run->records[path->context], (uint32_t)path->slot);
        return true;
    }
    if (!ottl_key_text(run, &path->keys[0], ret_key))
        return false;
    *ret = ottl_map_find(map, *ret_key);
    return true;
}

bool ottl_map_select(struct ottl_run *run, struct ottl_map *map, const struct ottl_path *path,
                     struct ottl_value *ret)
{
    struct slice key;
    struct ottl_entry *entry;
    struct ottl_value value;
    if (!find_entry(run, map, path, &key, &entry))
        return false;
    if (entry == NULL) {
        *ret = ottl_nil();
        return true;
    }
    if (!ottl_map_read(map, entry, &value))
        return ottl_run_no_memory(run);
    if (path->keys_count == 1) {
        *ret = value;
        return true;
    }
    return ottl_select(run, &value, path->keys + 1, path->keys_count - 1, ret);
}

/* Elements that a list cannot hold become empty; the last element's failure is reported. */
static bool storable_list(struct ottl_run *run, const struct ottl_value *value,
                          struct ottl_value *ret, bool *ret_fits)
{
    *ret = *value;
    *ret_fits = true;
    if (value->list->count > 0)
        *ret_fits = ottl_value_is_storable(&value->list->items[value->list->count - 1]);
    bool is_plain = true;
    for (uint32_t i = 0; i < value->list->count && is_plain; i++)
        is_plain = ottl_value_is_storable(&value->list->items[i]);
    if (is_plain)
        return true;
    struct ottl_list *list = ottl_list_create(run->memory);
    const struct ottl_value empty = ottl_nil();
    for (uint32_t i = 0; list != NULL && i < value->list->count; i++) {
        const struct ottl_value *item = &value->list->items[i];
        if (!ottl_list_append(list, ottl_value_is_storable(item) ? item : &empty))
            list = NULL;
    }
    if (list == NULL)
        return ottl_run_no_memory(run);
    *ret = ottl_list_value(list, OTTL_FORM_ANY);
    return true;
}

/* Of the value's type. */
static bool make_empty(struct ottl_memory *memory, struct ottl_container *parent,
                       struct ottl_value *value)
{
    if (value->type == OTTL_MAP) {
        struct ottl_map *map = ottl_map_create(memory);
        if (map == NULL)
            return false;
        map->base.parent = parent;
        *value = ottl_map_value(map);
        return true;
    }
    struct ottl_list *list = ottl_list_create(memory);
    if (list == NULL)
        return false;
    list->base.parent = parent;
    *value = ottl_list_value(list, OTTL_FORM_PDATA);
    return true;
}

bool ottl_assign(struct ottl_run *run, struct ottl_container *owner, struct ottl_value *target,
                 const struct ottl_value *value)
{
    struct ottl_value stored = *value;
    bool fits = true;
    if (value->type == OTTL_NIL)
        return true;
    if (value->type <= OTTL_BYTES && !owner->memory->copies_text) {
        *target = *value;
        ottl_container_touch(owner);
        return true;
    }
    if (!ottl_value_is_storable(value))
        return ottl_run_fail(run, "unsupported type %s for set operation; current value type is %s",
                             ottl_type_name(value), pdata_name(target));
    if (value->type == OTTL_LIST && !storable_list(run, value, &stored, &fits))
        return false;
    /* What holds the target is copied without it: Go makes it empty first. */
    for (const struct ottl_container *outer = owner; outer != NULL; outer = outer->parent)
        if ((stored.type == OTTL_MAP && outer == &stored.map->base) ||
            (stored.type == OTTL_LIST && outer == &stored.list->base)) {
            struct ottl_value empty = stored;
            if (!make_empty(owner->memory, owner, &empty))
                return ottl_run_no_memory(run);
            *target = empty;
        }
    struct ottl_value copy;
    if (!ottl_value_copy(owner->memory, owner, &stored, &copy))
        return ottl_run_no_memory(run);
    *target = copy;
    ottl_container_touch(owner);
    return fits || ottl_run_fail(run, "unsupported type for set operation in a list");
}

/* Makes an empty value a map or list, as the key wants it, and returns the element it names. */
static bool grow_empty(struct ottl_run *run, struct ottl_container **owner,
                       struct ottl_value **target, const struct ottl_key *key)
{
    enum { LIST_ITEMS_MAX = 1 << 16 };
    struct ottl_value value;
    if (!evaluate_key(run, key, &value))
        return ottl_run_fail(
            run, "neither a string nor an int index was given, this is an error in the OTTL");
    if (value.type == OTTL_STRING) {
        struct ottl_map *map = ottl_map_create((*owner)->memory);
        struct ottl_entry *entry;
        if (!ottl_container_takes(*owner, OTTL_MAP_LEVELS) || map == NULL ||
            (entry = ottl_map_append(map, ottl_slice(&value))) == NULL)
            return ottl_run_no_memory(run);
        map->base.parent = *owner;
        **target = ottl_map_value(map);
        ottl_container_touch(*owner);
        *owner = &map->base;
        *target = &entry->value;
        return true;
    }
    if (value.type != OTTL_INT)
        return ottl_run_fail(
            run, "neither a string nor an int index was given, this is an error in the OTTL");
    if (value.integer >= LIST_ITEMS_MAX)
        return ottl_run_fail(run, "index %lld is too large for a new list",
                             (long long)value.integer);
    struct ottl_list *list = ottl_list_create((*owner)->memory);
    const struct ottl_value empty = ottl_nil();
    if (!ottl_container_takes(*owner, OTTL_LIST_LEVELS))
        list = NULL;
    for (int64_t i = 0; list != NULL && i <= (value.integer > 0 ? value.integer : 0); i++)
        if (!ottl_list_append(list, &empty))
            list = NULL;
    if (list == NULL)
        return ottl_run_no_memory(run);
    list->base.parent = *owner;
    **target = ottl_list_value(list, OTTL_FORM_PDATA);
    ottl_container_touch(*owner);
    *owner = &list->base;
    *target = &list->items[list->count - 1];
    return true;
}

/* Steps from a value to the one that a key names in it, which is made if a map lacks it. */
static bool step_into(struct ottl_run *run, struct ottl_container **owner,
                      struct ottl_value **target, const struct ottl_key *key)
{
    if ((*target)->type == OTTL_ENCODED &&
        !ottl_value_decode((*owner)->memory, *owner, ottl_slice(*target), *target))
        return ottl_run_no_memory(run);
    struct ottl_value value = **target;
    if (value.type == OTTL_MAP) {
        struct slice text;
        if (!ottl_key_text(run, key, &text))
            return false;
        struct ottl_entry *entry = ottl_map_find(value.map, text);
        if (entry == NULL)
            entry = ottl_map_append(value.map, text);
        if (entry == NULL)
            return ottl_run_no_memory(run);
        *owner = &value.map->base;
        *target = &entry->value;
        return true;
    }
    if (value.type == OTTL_LIST) {
        int64_t index;
        if (!index_key(run, key, &index))
            return false;
        if (index < 0 || index >= value.list->count)
            return ottl_run_fail(run, "index %lld out of bounds", (long long)index);
        *owner = &value.list->base;
        *target = &value.list->items[index];
        return true;
    }
    if (value.type == OTTL_NIL)
        return grow_empty(run, owner, target, key);
    return ottl_run_fail(run, "type %s does not support string indexing", pdata_name(&value));
}

bool ottl_assign_at(struct ottl_run *run, struct ottl_container *owner, struct ottl_value *target,
                    const struct ottl_key *keys, uint32_t count, const struct ottl_value *value)
{
    for (uint32_t i = 0; i < count; i++)
        if (!step_into(run, &owner, &target, &keys[i]))
            return false;
    return ottl_assign(run, owner, target, value);
}

/* Whether a key behind the first is an expression: it may read all attributes, which moves those
 * with slots. */
static bool has_inner_expression(const struct ottl_path *path)
{
    for (uint32_t i = 1; i < path->keys_count; i++)
        if (path->keys[i].node != NULL)
            return true;
    return false;
}

bool ottl_map_assign(struct ottl_run *run, struct ottl_map *map, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    struct slice key;
    struct ottl_entry *entry;
    if (path->slot >= 0 && has_inner_expression(path) &&
        !ottl_record_load(run->records[path->context]))
        return ottl_run_no_memory(run);
    if (!find_entry(run, map, path, &key, &entry))
        return false;
    if (entry == NULL)
        entry = path->slot >= 0
                    ? ottl_record_append(run->records[path->context], (uint32_t)path->slot)
                    : ottl_map_append(map, key);
    if (entry == NULL)
        return ottl_run_no_memory(run);
    if (path->keys_count == 1 && value->type != OTTL_NIL)
        entry->is_new = true;
    return ottl_assign_at(run, &map->base, &entry->value, path->keys + 1, path->keys_count - 1,
                          value);
}

/* Of converters: a missing key is an error. */
static bool index_result(struct ottl_run *run, const struct ottl_key *keys, uint32_t count,
                         struct ottl_value *value)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ottl_value key;
        if (!evaluate_key(run, &keys[i], &key))
            return false;
        if (key.type == OTTL_NIL)
            return ottl_run_fail(run, "key expression returned nil, expected an int or string");
        if (key.type != OTTL_STRING && key.type != OTTL_INT)
            return ottl_run_fail(run, "key expression must evaluate to string or int, got %s",
                                 ottl_type_name(&key));
        if (key.type == OTTL_STRING) {
            if (value->type != OTTL_MAP)
                return ottl_run_fail(run, "type %s does not support string indexing",
                                     ottl_type_name(value));
            struct ottl_entry *entry = ottl_map_find(value->map, ottl_slice(&key));
            if (entry == NULL)
                return ottl_run_fail(run, "key not found in map");
            if (!ottl_map_read(value->map, entry, value))
                return ottl_run_no_memory(run);
            continue;
        }
        uint32_t size = value->type == OTTL_LIST    ? value->list->count
                        : value->type == OTTL_BYTES ? value->size
                                                    : 0;
        if (value->type != OTTL_LIST && value->type != OTTL_BYTES)
            return ottl_run_fail(run, "type %s does not support int indexing",
                                 ottl_type_name(value));
        if (key.integer < 0 || key.integer >= size)
            return ottl_run_fail(run, "index %lld out of bounds", (long long)key.integer);
        if (value->type == OTTL_BYTES)
            *value = ottl_int(value->bytes[key.integer]);
        else if (!ottl_list_read(value->list, (uint32_t)key.integer, value))
            return ottl_run_no_memory(run);
    }
    return true;
}

static inline bool invoke(const struct ottl_invocation *invocation, struct ottl_run *run,
                          struct ottl_value *ret)
{
    struct ottl_call call; /* lent_value is set with lent */
    call.function = invocation->function;
    call.arguments = invocation->arguments;
    call.state = invocation->state;
    call.memory = run->memory;
    call.run = run;
    call.lent = NULL;
    *ret = ottl_nil();
    return invocation->function->evaluate(&call, ret) &&
           (call.lent == NULL || call.lent->row->set(run, call.lent, &call.lent_value));
}

bool ottl_invoke(const struct ottl_invocation *invocation, struct ottl_run *run,
                 struct ottl_value *ret)
{
    return invoke(invocation, run, ret);
}

bool ottl_node_call(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret)
{
    return invoke(&node->call, run, ret) &&
           (node->call.keys_count == 0 ||
            index_result(run, node->call.keys, node->call.keys_count, ret));
}

int ottl_test_literal(const struct ottl_test *test, struct ottl_run *run)
{
    (void)run;
    return test->is_true;
}

int ottl_test_and(const struct ottl_test *test, struct ottl_run *run)
{
    for (uint32_t i = 0; i < test->chain.count; i++) {
        int result = test->chain.items[i]->test(test->chain.items[i], run);
        if (result != OTTL_TRUE)
            return result;
    }
    return OTTL_TRUE;
}

int ottl_test_or(const struct ottl_test *test, struct ottl_run *run)
{
    for (uint32_t i = 0; i < test->chain.count; i++) {
        int result = test->chain.items[i]->test(test->chain.items[i], run);
        if (result != OTTL_FALSE)
            return result;
    }
    return OTTL_FALSE;
}

int ottl_test_not(const struct ottl_test *test, struct ottl_run *run)
{
    int result = test->chain.items[0]->test(test->chain.items[0], run);
    return result == OTTL_FAILED ? result : !result;
}

/* Counts what is compared where both sides come from records around that of the statement: one that
 * is its own, or constant, is a bound by itself. */
static __attribute__((noinline)) void charge_comparison(struct ottl_run *run,
                                                        const struct ottl_value *a,
                                                        const struct ottl_value *b)
{
    if (a->type != b->type)
        return;
    if (a->type == OTTL_STRING || a->type == OTTL_BYTES)
        ottl_run_work(run, a->size < b->size ? a->size : b->size);
    else
        ottl_run_charge(run, a);
}

int ottl_test_compare(const struct ottl_test *test, struct ottl_run *run)
{
    const struct ottl_node *left = test->compare.left;
    const struct ottl_node *right = test->compare.right;
    struct ottl_value a;
    struct ottl_value room;
    const struct ottl_value *b = &room;
    if (!left->get(left, run, &a))
        return OTTL_FAILED;
    if (right->get == ottl_node_constant)
        b = &right->constant;
    else if (!right->get(right, run, &room))
        return OTTL_FAILED;
    if (test->compare.is_outer)
        charge_comparison(run, &a, b);
    if (a.type == OTTL_STRING && b->type == OTTL_STRING && test->compare.op <= OTTL_NE)
        return (a.size == b->size && short_equal(a.bytes, b->bytes, a.size)) ==
               (test->compare.op == OTTL_EQ);
    if (a.type == OTTL_INT && b->type == OTTL_INT)
        return ottl_ints_hold(a.integer, test->compare.op, b->integer);
    return ottl_compare(&a, test->compare.op, b);
}

static __attribute__((noinline)) int test_out_of_memory(struct ottl_run *run)
{
    ottl_run_no_memory(run);
    return OTTL_FAILED;
}

int ottl_test_text(const struct ottl_test *test, struct ottl_run *run)
{
    const struct ottl_path *path = &test->compare.left->path;
    const struct ottl_value *text = &test->compare.right->constant;
    struct ottl_record *record = run->records[path->context];
    if (!record->is_scanned && !ottl_record_scan(record))
        return test_out_of_memory(run);
    const struct slice bytes = ottl_field_bytes(record, path->row->field);
    return (bytes.size == text->size && short_equal(bytes.data, text->bytes, bytes.size)) ==
           (test->compare.op == OTTL_EQ);
}

int ottl_test_attribute(const struct ottl_test *test, struct ottl_run *run)
{
    const struct ottl_path *path = &test->compare.left->path;
    struct ottl_record *record = run->records[path->context];
    if (!record->has_slots && !ottl_record_load_slots(record))
        return test_out_of_memory(run);
    const struct ottl_entry *entry = ottl_record_slot(record, (uint32_t)path->slot);
    const struct slice encoded = test->compare.encoded;
    if (entry == NULL) /* nil, which the constant is not */
        return test->compare.op == OTTL_NE;
    /* A text that is written as it should be equals the constant only byte by byte. */
    if (encoded.size > 0 && ottl_is_plain_text(&entry->value))
        return (entry->value.size == encoded.size &&
                short_equal(entry->value.bytes, encoded.data, encoded.size)) ==
               (test->compare.op == OTTL_EQ);
    return ottl_test_compare(test, run);
}

int ottl_test_node(const struct ottl_test *test, struct ottl_run *run)
{
    struct ottl_value value;
    if (!test->node->get(test->node, run, &value))
        return OTTL_FAILED;
    if (value.type == OTTL_BOOL)
        return value.boolean;
    ottl_run_fail(run,
                  "value returned from Converter in constant expression must be bool but got %s",
                  ottl_type_name(&value));
    return OTTL_FAILED;
}

int ottl_test_memo(const struct ottl_test *test, struct ottl_run *run)
{
    struct ottl_remembered *remembered = &run->remembered[test->memo.place];
    uint64_t generations = 1;
    for (unsigned left = test->uses; left != 0; left &= left - 1)
        generations += run->records[__builtin_ctz(left)]->generation;
    if (remembered->generations == generations)
        return remembered->result;
    int result = test->memo.inner->test(test->memo.inner, run);
    if (result != OTTL_FAILED)
        *remembered =
            (struct ottl_remembered){.generations = generations, .result = (int8_t)result};
    return result;
}
