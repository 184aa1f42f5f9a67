/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/scalar.c: what plain YAML scalars are in Go's yaml.v3. */
#include "src/config/scalar.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *text;
    struct scalar expected;
};

#define INT_ROW(text, value)                                                                       \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_INT, .integer = (value)                                                   \
        }                                                                                          \
    }
#define DOUBLE_ROW(text, value)                                                                    \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_DOUBLE, .real = (value)                                                   \
        }                                                                                          \
    }
#define TEXT_ROW(text)                                                                             \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_TEXT                                                                      \
        }                                                                                          \
    }
#define BOOL_ROW(text, value)                                                                      \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_BOOL, .boolean = (value)                                                  \
        }                                                                                          \
    }
#define NULL_ROW(text)                                                                             \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_NULL                                                                      \
        }                                                                                          \
    }
#define TIME_ROW(text)                                                                             \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_TIME                                                                      \
        }                                                                                          \
    }
#define BOOL_ROW(text, value)                                                                      \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_BOOL, .boolean = (value)                                                  \
        }                                                                                          \
    }
#define NULL_ROW(text)                                                                             \
    {                                                                                              \
        text,                                                                                      \
        {                                                                                          \
            .kind = NODE_NULL                                                                      \
        }                                                                                          \
    }

static const struct row rows[] = {
    NULL_ROW(""),
    NULL_ROW("~"),
    NULL_ROW("null"),
    NULL_ROW("Null"),
    NULL_ROW("NULL"),
    TEXT_ROW("nULL"),
    BOOL_ROW("true", true),
    BOOL_ROW("True", true),
    BOOL_ROW("TRUE", true),
    BOOL_ROW("false", false),
    TEXT_ROW("tRUE"),
    TEXT_ROW("yes"),
    TEXT_ROW("no"),
    TEXT_ROW("on"),
    TEXT_ROW("off"),
    TEXT_ROW("y"),
    INT_ROW("0", 0),
    INT_ROW("-0", 0),
    INT_ROW("+12", 12),
    INT_ROW("0123", 83),
    INT_ROW("0o17", 15),
    INT_ROW("0O17", 15),
    INT_ROW("0b11", 3),
    INT_ROW("-0b11", -3),
    INT_ROW("0x1F", 31),
    INT_ROW("0xdeadbeef", 3735928559),
    INT_ROW("1_000", 1000),
    INT_ROW("9223372036854775807", INT64_MAX),
    INT_ROW("-9223372036854775808", INT64_MIN),
    DOUBLE_ROW("9223372036854775808", 9223372036854775808.0),
    DOUBLE_ROW("18446744073709551616", 18446744073709551616.0),
    DOUBLE_ROW("089", 89),
    DOUBLE_ROW("0.5", 0.5),
    DOUBLE_ROW(".5", 0.5),
    DOUBLE_ROW("5.", 5),
    DOUBLE_ROW("-1.5e3", -1500),
    DOUBLE_ROW("1e3", 1000),
    DOUBLE_ROW("1_0.5", 10.5),
    DOUBLE_ROW(".inf", INFINITY),
    DOUBLE_ROW("-.Inf", -INFINITY),
    DOUBLE_ROW("+.INF", INFINITY),
    TEXT_ROW("inf"),
    TEXT_ROW("1e999"),
    TEXT_ROW("0x"),
    TEXT_ROW("0xg"),
    TEXT_ROW("0b12"),
    TEXT_ROW("1.2.3"),
    TEXT_ROW("127.0.0.1:4317"),
    TEXT_ROW("-"),
    TEXT_ROW("+"),
    TEXT_ROW("."),
    TEXT_ROW(".e3"),
    TEXT_ROW("1e"),
    TIME_ROW("2006-01-02"),
    TIME_ROW("2006-1-2"),
    TIME_ROW("2004-02-29"),
    TEXT_ROW("2006-02-29"),
    TEXT_ROW("2006-13-01"),
    TEXT_ROW("2006-01"),
    TEXT_ROW("2006-01-02x"),
    TEXT_ROW("206-01-02"),
    TIME_ROW("2006-01-02T15:04:05Z"),
    TIME_ROW("2006-01-02t15:4:5.5+07:00"),
    TIME_ROW("2006-01-02 15:04:05"),
    TEXT_ROW("2006-01-02T15:04:05"),
    TEXT_ROW("2006-01-02 15:04:05Z"),
    TEXT_ROW("2006-01-02T25:04:05Z"),
    TEXT_ROW("12:30:45"),
    TEXT_ROW("5s"),
    TEXT_ROW("::1"),
};

static void plain_scalars_are_what_yaml_v3_makes_of_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scalar found = text_to_scalar(rows[i].text);
        const struct scalar *expected = &rows[i].expected;
        if (found.kind != expected->kind || found.boolean != expected->boolean ||
            found.integer != expected->integer || found.real != expected->real)
            fail_msg("\"%s\": kind %d, integer %lld, real %g", rows[i].text, (int)found.kind,
                     (long long)found.integer, found.real);
    }
}

static void not_a_number_is_a_double(void **state)
{
    (void)state;
    assert_int_equal(text_to_scalar(".nan").kind, NODE_DOUBLE);
    assert_true(isnan(text_to_scalar(".NaN").real));
}

static void a_number_of_a_thousand_digits_is_a_string(void **state)
{
    char digits[1001];
    (void)state;
    memset(digits, '9', sizeof(digits) - 1);
    digits[sizeof(digits) - 1] = '\0';
    assert_int_equal(text_to_scalar(digits).kind, NODE_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_are_what_yaml_v3_makes_of_them),
        cmocka_unit_test(not_a_number_is_a_double),
        cmocka_unit_test(a_number_of_a_thousand_digits_is_a_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
