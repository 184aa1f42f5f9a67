/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of lists, and those that take any value with parts. Runs on the processor's thread. */
#include <stdio.h>

#include "src/base/error.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"
#include "src/ottl/ottl_compare.h"

static const struct ottl_parameter one_value[] = {{"Target", OTTL_ANY, false, false},
                                                  {.name = NULL}};

static bool is_list(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value value;
    if (!ottl_get(call, 0, &value))
        return false;
    *ret = ottl_bool(value.type == OTTL_LIST);
    return true;
}

static bool len(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value value;
    if (!ottl_get(call, 0, &value))
        return false;
    if (value.type == OTTL_STRING || value.type == OTTL_BYTES)
        *ret = ottl_int(value.size);
    else if (value.type == OTTL_MAP)
        *ret = ottl_int(value.map->count);
    else if (value.type == OTTL_LIST)
        *ret = ottl_int(value.list->count);
    else if (value.type == OTTL_MESSAGE && value.form >= OTTL_EVENTS)
        *ret = ottl_int(value.integer);
    else
        return ottl_fail(call,
                         "Len: unsupported target type %s. target arg must be of type string, "
                         "[]any, map[string]any, pcommon.Map, pcommon.Slice, pcommon.Value (of "
                         "type String, Map, Slice) or a supported slice type from the plog, "
                         "pmetric or ptrace packages",
                         ottl_type_name(&value));
    return true;
}

static bool coalesce(struct ottl_call *call, struct ottl_value *ret)
{
    *ret = ottl_nil();
    for (unsigned i = 0; i < ottl_items(call, 0) && ret->type == OTTL_NIL; i++)
        if (!ottl_get_item(call, 0, i, ret))
            return false;
    return true;
}

static bool prepare_coalesce(const struct ottl_preparation *preparation, void **ret_state,
                             struct error *error)
{
    *ret_state = NULL;
    return ottl_literal_items(preparation, 0) > 0 ||
           error_set(error, "Coalesce requires at least one argument");
}

static const struct ottl_parameter coalesce_parameters[] = {{"Values", OTTL_ANY, false, true},
                                                            {.name = NULL}};

/* The first item that equals the value, or -1. Items that hold others compare as Go's plain lists
 * and maps do. */
static bool find_item(struct ottl_call *call, struct ottl_list *list,
                      const struct ottl_value *value, int64_t *ret)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct ottl_value item;
        if (!ottl_list_read(list, i, &item))
            return ottl_no_memory(call);
        if (item.type == OTTL_MAP || item.type == OTTL_LIST)
            item.form = OTTL_FORM_ANY;
        if (ottl_compare(&item, OTTL_EQ, value)) {
            *ret = i;
            return true;
        }
    }
    *ret = -1;
    return true;
}

static bool contains_value(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_list *list;
    struct ottl_value value;
    int64_t place;
    if (!ottl_get_list(call, 0, &list) || !ottl_get(call, 1, &value) ||
        !find_item(call, list, &value, &place))
        return false;
    *ret = ottl_bool(place >= 0);
    return true;
}

static const struct ottl_parameter contains_value_parameters[] = {
    {"Target", OTTL_LISTS_ONLY, false, false}, {"Item", OTTL_ANY, false, false}, {.name = NULL}};

static bool index_of(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value target, value;
    int64_t place = -1;
    if (!ottl_get(call, 0, &target) || !ottl_get(call, 1, &value))
        return false;
    if (target.type == OTTL_STRING) {
        if (value.type != OTTL_STRING)
            return ottl_fail(call, "invalid value type for Index function, value must be a string");
        const uint8_t *found = value.size == 0 ? target.bytes
                               : value.size > target.size
                                   ? NULL
                                   : memmem(target.bytes, target.size, value.bytes, value.size);
        if (value.size == 0)
            place = 0;
        else if (found != NULL)
            place = found - target.bytes;
        *ret = ottl_int(place);
        return true;
    }
    if (target.type != OTTL_LIST)
        return ottl_fail(call, "expected pcommon.Slice but got %s",
                         target.type == OTTL_NIL ? "nil" : ottl_type_name(&target));
    if (!find_item(call, target.list, &value, &place))
        return false;
    *ret = ottl_int(place);
    return true;
}

static const struct ottl_parameter index_parameters[] = {
    {"Target", OTTL_ANY, false, false}, {"Value", OTTL_ANY, false, false}, {.name = NULL}};

/* append: the target becomes a list if it is none. */

/* Go makes the list of plain values: maps and lists of paths are none. */
static bool add_to(struct ottl_call *call, struct ottl_list *list, const struct ottl_value *value)
{
    if (!ottl_value_is_storable(value) || value->type == OTTL_MAP ||
        (value->type == OTTL_LIST && value->form != OTTL_FORM_ANY))
        return ottl_fail(call, "<Invalid value type %s>", ottl_type_name(value));
    for (uint32_t i = 0; value->type == OTTL_LIST && i < value->list->count; i++)
        if (!ottl_value_is_storable(&value->list->items[i]))
            return ottl_fail(call, "<Invalid value type %s>",
                             ottl_type_name(&value->list->items[i]));
    return ottl_list_append(list, value) || ottl_no_memory(call);
}

static bool append(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value target, value;
    (void)ret;
    if (!ottl_get(call, 0, &target))
        return false;
    struct ottl_list *list = ottl_list_create(call->memory);
    if (list == NULL)
        return ottl_no_memory(call);
    if (target.type == OTTL_LIST && target.form >= OTTL_FORM_UINTS)
        return ottl_fail(call, "<Invalid value type %s>", ottl_type_name(&target));
    if (target.type == OTTL_LIST) {
        for (uint32_t i = 0; i < target.list->count; i++)
            if (!ottl_list_append(list, &target.list->items[i]))
                return ottl_no_memory(call);
    } else if (target.type != OTTL_NIL && !add_to(call, list, &target)) {
        return false;
    }
    if (ottl_has(call, 1) && (!ottl_get(call, 1, &value) || !add_to(call, list, &value)))
        return false;
    for (unsigned i = 0; ottl_has(call, 2) && i < ottl_items(call, 2); i++)
        if (!ottl_get_item(call, 2, i, &value) || !add_to(call, list, &value))
            return false;
    value = ottl_list_value(list, OTTL_FORM_PDATA);
    return ottl_set(call, 0, &value);
}

static bool prepare_append(const struct ottl_preparation *preparation, void **ret_state,
                           struct error *error)
{
    *ret_state = NULL;
    return ottl_is_given(preparation, 1) || ottl_is_given(preparation, 2) ||
           error_set(error, "at least one of the optional arguments ('value' or 'values') must be "
                            "provided");
}

static const struct ottl_parameter append_parameters[] = {{"Target", OTTL_PATH, false, false},
                                                          {"Value", OTTL_ANY, true, false},
                                                          {"Values", OTTL_ANY, true, true},
                                                          {.name = NULL}};

static bool delete_index(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_list *list;
    int64_t begin, end;
    (void)ret;
    if (!ottl_get_list(call, 0, &list) || !ottl_get_int(call, 1, &begin))
        return false;
    end = (int64_t)((uint64_t)begin + 1);
    if (ottl_has(call, 2) && !ottl_get_int(call, 2, &end))
        return false;
    const int64_t count = list->count;
    if (begin == 0 && end == count) {
        ottl_list_clear(list);
        return true;
    }
    if (begin < 0 || begin >= count)
        return ottl_fail(call, "startIndex %lld out of bounds for slice of length %lld",
                         (long long)begin, (long long)count);
    if (end < begin)
        return ottl_fail(call, "endIndex %lld cannot be less than startIndex %lld", (long long)end,
                         (long long)begin);
    if (end > count)
        return ottl_fail(call, "deletion range [%lld:%lld] out of bounds for slice of length %lld",
                         (long long)begin, (long long)end, (long long)count);
    if (begin == end)
        return true;
    memmove(list->items + begin, list->items + end, (size_t)(count - end) * sizeof(*list->items));
    list->count -= (uint32_t)(end - begin);
    ottl_container_touch(&list->base);
    return true;
}

static const struct ottl_parameter delete_index_parameters[] = {
    {"Target", OTTL_LIST_PATH, false, false},
    {"StartIndex", OTTL_INTS_ONLY, false, false},
    {"EndIndex", OTTL_INTS_ONLY, true, false},
    {.name = NULL}};

/* Sort */

struct sorted {
    struct ottl_value value; /* what counts */
    struct ottl_value original;
};

static bool prepare_sort(const struct ottl_preparation *preparation, void **ret_state,
                         struct error *error)
{
    struct slice order = ottl_literal_text(preparation, 1);
    *ret_state = NULL;
    return !ottl_is_given(preparation, 1) || slice_equal_text(order, "asc") ||
           slice_equal_text(order, "desc") ||
           error_set(error, "invalid arguments: %.*s. Order should be either \"asc\" or \"desc\"",
                     (int)order.size, (const char *)order.data);
}

/* As Go's cmp.Compare: NaN is less than all numbers. Both have one type. */
static int compare(const struct ottl_value *a, const struct ottl_value *b)
{
    if (a->type == OTTL_STRING)
        return slice_compare(ottl_slice(a), ottl_slice(b));
    if (a->type == OTTL_DOUBLE) {
        bool is_nan = a->real != a->real;
        if (is_nan || b->real != b->real)
            return (b->real != b->real) - is_nan;
        return (a->real > b->real) - (a->real < b->real);
    }
    return (a->integer > b->integer) - (a->integer < b->integer);
}

/* Merges runs of growing length; equal ones keep their order. */
static struct sorted *merge_sort(struct sorted *items, struct sorted *room, size_t count,
                                 bool is_descending)
{
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * run) {
            size_t middle = begin + run < count ? begin + run : count;
            size_t end = begin + 2 * run < count ? begin + 2 * run : count;
            size_t left = begin;
            size_t right = middle;
            for (size_t at = begin; at < end; at++) {
                bool takes_left = left < middle;
                if (takes_left && right < end)
                    takes_left = is_descending
                                     ? compare(&items[right].value, &items[left].value) <= 0
                                     : compare(&items[left].value, &items[right].value) <= 0;
                room[at] = takes_left ? items[left++] : items[right++];
            }
        }
        struct sorted *sorted = room;
        room = items;
        items = sorted;
    }
    return items;
}

/* INT, DOUBLE, STRING: how the items compare; NIL: they do not. */
static bool common_type(struct ottl_call *call, struct ottl_list *list, enum ottl_type *ret)
{
    bool has_text = false;
    bool has_int = false;
    bool has_double = false;
    *ret = OTTL_NIL;
    for (uint32_t i = 0; i < list->count; i++) {
        struct ottl_value value;
        if (!ottl_list_read(list, i, &value))
            return ottl_no_memory(call);
        if (value.type == OTTL_INT)
            has_int = true;
        else if (value.type == OTTL_DOUBLE)
            has_double = true;
        else if (value.type <= OTTL_STRING)
            has_text = true;
        else
            return true;
    }
    *ret = has_text ? OTTL_STRING : has_double ? OTTL_DOUBLE : has_int ? OTTL_INT : OTTL_NIL;
    return true;
}

static bool sort(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice order;
    enum ottl_type type;
    bool is_descending = false;
    if (!ottl_get(call, 0, ret) || (ottl_has(call, 1) && !ottl_get_string(call, 1, &order)))
        return false;
    if (ottl_has(call, 1))
        is_descending = slice_equal_text(order, "desc");
    if (ret->type != OTTL_LIST)
        return ottl_fail(call, "sort with unsupported type: '%s'. Target is not a list",
                         ottl_type_name(ret));
    struct ottl_list *list = ret->list;
    const uint32_t count = list->count;
    const uint8_t form = ret->form;
    for (uint32_t i = 0; i < count && form == OTTL_FORM_ANY; i++)
        if (!ottl_value_is_storable(&list->items[i]))
            return ottl_fail(call, "sort with unsupported type: '[]interface {}'. Target is not a "
                                   "list of primitive types");
    if (!common_type(call, list, &type))
        return false;
    if (type == OTTL_NIL || count == 0) {
        if (form == OTTL_FORM_ANY)
            ret->form = OTTL_FORM_PDATA;
        return true;
    }
    struct sorted *items = ottl_alloc(call, 2 * (size_t)count * sizeof(*items));
    struct ottl_list *made = ottl_list_create(call->memory);
    if (items == NULL || made == NULL)
        return ottl_no_memory(call);
    for (uint32_t i = 0; i < count; i++) {
        struct ottl_value value = list->items[i];
        struct slice text;
        items[i].original = value;
        if (type == OTTL_DOUBLE && value.type == OTTL_INT)
            value = ottl_double((double)value.integer);
        else if (type == OTTL_STRING) {
            if (!go_as_string(call, &value, &text))
                return false;
            value = ottl_string(text);
        }
        items[i].value = value;
    }
    const struct sorted *sorted = merge_sort(items, items + count, count, is_descending);
    for (uint32_t i = 0; i < count; i++)
        if (!ottl_list_append(made, &sorted[i].original))
            return ottl_no_memory(call);
    *ret = ottl_list_value(made, form == OTTL_FORM_PDATA ? OTTL_FORM_ANY : (enum ottl_form)form);
    return true;
}

static const struct ottl_parameter sort_parameters[] = {
    {"Target", OTTL_ANY, false, false}, {"Order", OTTL_TEXT_LITERAL, true, false}, {.name = NULL}};

/* SliceToMap */

/* What the argument's path names in a map. */
static bool extract(struct ottl_call *call, struct ottl_map *map, unsigned parameter,
                    const char *what, uint32_t element, struct ottl_value *ret)
{
    const unsigned count = ottl_items(call, parameter);
    if (count == 0)
        return ottl_fail(call,
                         "could not extract %s from element %u: must provide at least one path "
                         "item",
                         what, element);
    *ret = ottl_map_value(map);
    for (unsigned i = 0; i < count; i++) {
        struct slice name;
        if (!ottl_get_item_string(call, parameter, i, &name))
            return false;
        struct ottl_entry *entry = ret->type == OTTL_MAP ? ottl_map_find(ret->map, name) : NULL;
        if (entry == NULL)
            return ottl_fail(call,
                             "could not extract %s from element %u: provided object does not "
                             "contain the path, which ends at \"%.*s\"",
                             what, element, (int)name.size, (const char *)name.data);
        if (!ottl_map_read(ret->map, entry, ret))
            return ottl_no_memory(call);
    }
    return true;
}

static bool slice_to_map(struct ottl_call *call, struct ottl_value *ret)
{
    enum { KEY_PATH = 1, VALUE_PATH };
    struct ottl_list *list;
    struct key_index index;
    const bool has_key = ottl_has(call, KEY_PATH);
    const bool has_value = ottl_has(call, VALUE_PATH);
    if (!ottl_get_list(call, 0, &list))
        return false;
    struct ottl_map *map = ottl_map_create(call->memory);
    if (map == NULL)
        return ottl_no_memory(call);
    key_index_init(&index, call, map);
    for (uint32_t i = 0; i < list->count; i++) {
        struct ottl_value item, value, name;
        if (!ottl_list_read(list, i, &item))
            return ottl_no_memory(call);
        value = item;
        if ((has_key || has_value) && item.type != OTTL_MAP)
            return ottl_fail(call,
                             "slice elements must be maps when using `key_path` or `value_path`, "
                             "but could not cast element of type `%s` to a map",
                             go_value_type(&item));
        char digits[12];
        snprintf(digits, sizeof(digits), "%u", i);
        struct slice key = slice_of_text(digits);
        if (has_key) {
            if (!extract(call, item.map, KEY_PATH, "key", i, &name))
                return false;
            if (name.type != OTTL_STRING)
                return ottl_fail(call,
                                 "element %u: extracted key attribute is not of type string, got "
                                 "\"%s\"",
                                 i, go_value_type(&name));
            key = ottl_slice(&name);
        } else if (!text_keep(call, key, &key)) {
            return false;
        }
        if (has_value && !extract(call, item.map, VALUE_PATH, "value", i, &value))
            return false;
        if (!ottl_value_is_storable(&value))
            return ottl_fail(call, "<Invalid value type %s>", ottl_type_name(&value));
        struct ottl_entry *entry = key_index_put(&index, key);
        if (entry == NULL)
            return false;
        if (!ottl_map_set(map, entry, &value))
            return ottl_no_memory(call);
    }
    *ret = ottl_map_value(map);
    return true;
}

static const struct ottl_parameter slice_to_map_parameters[] = {
    {"Target", OTTL_LISTS_ONLY, false, false},
    {"KeyPath", OTTL_TEXT_LITERAL, true, true},
    {"ValuePath", OTTL_TEXT_LITERAL, true, true},
    {.name = NULL}};

const struct ottl_function ottl_list_functions[] = {
    {.name = "append",
     .parameters = append_parameters,
     .evaluate = append,
     .prepare = prepare_append,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "delete_index",
     .parameters = delete_index_parameters,
     .evaluate = delete_index,
     .users = OTTL_FOR_TRANSFORM},
    {.name = "IsList", .parameters = one_value, .evaluate = is_list},
    {.name = "Len", .parameters = one_value, .evaluate = len, .is_lookup = true},
    {.name = "Coalesce",
     .parameters = coalesce_parameters,
     .evaluate = coalesce,
     .prepare = prepare_coalesce},
    {.name = "ContainsValue", .parameters = contains_value_parameters, .evaluate = contains_value},
    {.name = "Index", .parameters = index_parameters, .evaluate = index_of},
    {.name = "Sort", .parameters = sort_parameters, .evaluate = sort, .prepare = prepare_sort},
    {.name = "SliceToMap", .parameters = slice_to_map_parameters, .evaluate = slice_to_map},
    {.name = NULL},
};
