/* SPDX-License-Identifier: Apache-2.0 */
/* Converters between types, and questions about them. Runs on the processor's thread. */
#include <math.h>

#include "src/otlp/json/value_string.h"
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

/* The natural logarithm. */
static bool logarithm(struct ottl_call *call, struct ottl_value *ret)
{
    char text[DOUBLE_STRING_BYTES_MAX];
    double real;
    bool has;
    if (!ottl_get_double_like(call, 0, &real, &has))
        return false;
    if (!has)
        return ottl_fail(call, "invalid input: <nil>");
    if (real <= 0)
        return ottl_fail(call, "invalid input: expected number greater than zero but got %.*s",
                         (int)double_to_string(real, text), text);
    *ret = ottl_double(log(real));
    return true;
}

/* The check digit of card numbers (ISO/IEC 7812-1, annex B), blanks left out. */
static bool is_valid_luhn(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    bool has;
    unsigned sum = 0;
    size_t digits = 0;
    if (!ottl_get_string_like(call, 0, &text, &has))
        return false;
    if (!has)
        return ottl_fail(call, "invalid input: <nil>");
    for (size_t i = text.size; i > 0; i--) {
        uint8_t byte = text.data[i - 1];
        if (byte == ' ')
            continue;
        if (byte < '0' || byte > '9')
            return ottl_fail(call, "strconv.Atoi: parsing \"%c\": invalid syntax", byte);
        unsigned digit = byte - '0';
        if (digits++ % 2 == 1)
            digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
        sum = (sum + digit) % 10;
    }
    *ret = ottl_bool(digits > 0 && sum == 0);
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
    {.name = "Log", .parameters = double_like_target, .evaluate = logarithm},
    {.name = "IsValidLuhn", .parameters = string_like_target, .evaluate = is_valid_luhn},
    {.name = NULL},
};
