/* SPDX-License-Identifier: Apache-2.0 */
/* Converters between types, and questions about them. Runs on the processor's thread. */
#include "src/ottl/functions/tables.h"

static bool is_type(struct ottl_call *call, enum ottl_type type, struct ottl_value *ret)
{
    struct ottl_value value;
    if (!ottl_get(call, 0, &value))
        return false;
    *ret = ottl_bool(value.type == type);
    return true;
}

static bool is_string(struct ottl_call *call, struct ottl_value *ret)
{
    return is_type(call, OTTL_STRING, ret);
}

static bool is_int(struct ottl_call *call, struct ottl_value *ret)
{
    return is_type(call, OTTL_INT, ret);
}

static bool is_double(struct ottl_call *call, struct ottl_value *ret)
{
    return is_type(call, OTTL_DOUBLE, ret);
}

static bool is_bool(struct ottl_call *call, struct ottl_value *ret)
{
    return is_type(call, OTTL_BOOL, ret);
}

static bool is_map(struct ottl_call *call, struct ottl_value *ret)
{
    return is_type(call, OTTL_MAP, ret);
}

static bool to_int(struct ottl_call *call, struct ottl_value *ret)
{
    int64_t integer;
    bool has;
    if (!ottl_get_int_like(call, 0, &integer, &has))
        return false;
    *ret = has ? ottl_int(integer) : ottl_nil();
    return true;
}

static bool to_double(struct ottl_call *call, struct ottl_value *ret)
{
    double real;
    bool has;
    if (!ottl_get_double_like(call, 0, &real, &has))
        return false;
    *ret = has ? ottl_double(real) : ottl_nil();
    return true;
}

static bool to_bool(struct ottl_call *call, struct ottl_value *ret)
{
    bool boolean;
    bool has;
    if (!ottl_get_bool_like(call, 0, &boolean, &has))
        return false;
    *ret = has ? ottl_bool(boolean) : ottl_nil();
    return true;
}

static bool to_string(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    bool has;
    if (!ottl_get_string_like(call, 0, &text, &has))
        return false;
    *ret = has ? ottl_string(text) : ottl_nil();
    return true;
}

#define ONE_PARAMETER(table, type)                                                                 \
    static const struct ottl_parameter table[] = {{"Target", type, false, false}, {.name = NULL}}

ONE_PARAMETER(string_target, OTTL_STRINGS_ONLY);
ONE_PARAMETER(int_target, OTTL_INTS_ONLY);
ONE_PARAMETER(double_target, OTTL_DOUBLES_ONLY);
ONE_PARAMETER(bool_target, OTTL_BOOLS_ONLY);
ONE_PARAMETER(map_target, OTTL_MAPS_ONLY);
ONE_PARAMETER(string_like_target, OTTL_STRING_LIKE);
ONE_PARAMETER(int_like_target, OTTL_INT_LIKE);
ONE_PARAMETER(double_like_target, OTTL_DOUBLE_LIKE);
ONE_PARAMETER(bool_like_target, OTTL_BOOL_LIKE);

const struct ottl_function ottl_type_functions[] = {
    {.name = "IsString", .parameters = string_target, .evaluate = is_string},
    {.name = "IsInt", .parameters = int_target, .evaluate = is_int},
    {.name = "IsDouble", .parameters = double_target, .evaluate = is_double},
    {.name = "IsBool", .parameters = bool_target, .evaluate = is_bool},
    {.name = "IsMap", .parameters = map_target, .evaluate = is_map},
    {.name = "Int", .parameters = int_like_target, .evaluate = to_int},
    {.name = "Double", .parameters = double_like_target, .evaluate = to_double},
    {.name = "Bool", .parameters = bool_like_target, .evaluate = to_bool},
    {.name = "String", .parameters = string_like_target, .evaluate = to_string},
    {.name = NULL},
};
