/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions as the Go collector makes them; the expected columns were printed by Go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "tests/support/random_otlp.h"

static void strings_become_integers_as_strconv_parses_them(void **state)
{
    static const struct {
        const char *text;
        bool is_number;
        int64_t number;
    } rows[] = {
        {"+5", true, 5},
        {"-5", true, -5},
        {"-0", true, 0},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"1_000", false, 0},
        {"0x10", false, 0},
        {" 5", false, 0},
        {"5 ", false, 0},
        {"1.0", false, 0},
        {"", false, 0},
        {"+", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t number = 0;
        if (string_to_int(slice_of_text(rows[i].text), &number) != rows[i].is_number)
            fail_msg("\"%s\"", rows[i].text);
        assert_true(number == rows[i].number);
    }
}

static void strings_become_doubles_as_strconv_parses_them(void **state)
{
    static const struct {
        const char *text;
        bool is_number;
        double real;
    } rows[] = {
        {"1_000", true, 1000},
        {"1_0.5e1_0", true, 1.05e11},
        {"1e5_0", true, 1e50},
        {"0x1p4", true, 16},
        {"0x1_0p4", true, 256},
        {"0x.8p1", true, 1},
        {"0x_1p4", true, 16},
        {"0X1P-2", true, 0.25},
        {"inf", true, INFINITY},
        {"+Inf", true, INFINITY},
        {"-INFINITY", true, -INFINITY},
        {"1e-400", true, 0},
        {"4.9e-324", true, 4.9e-324},
        {"1.", true, 1},
        {".5", true, 0.5},
        {"+.5e-3", true, 0.0005},
        {"00012", true, 12},
        {"_1", false, 0},
        {"1_", false, 0},
        {"1__0", false, 0},
        {"1_.0", false, 0},
        {"1_e5", false, 0},
        {"-0x_1p4", true, -16},
        {"0x1", false, 0},
        {"infinit", false, 0},
        {"+nan", false, 0},
        {"-nan", false, 0},
        {"nan(1)", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"", false, 0},
        {"1e400", false, 0},
        {"1.7976931348623159e308", false, 0},
        {".", false, 0},
        {"1e", false, 0},
        {"1e+", false, 0},
        {"0b1", false, 0},
        {"1f", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double real = 0;
        if (string_to_double(slice_of_text(rows[i].text), &real) != rows[i].is_number)
            fail_msg("\"%s\"", rows[i].text);
        assert_true(real == rows[i].real);
    }
    double real = 0;
    assert_true(string_to_double(slice_of_text("NaN"), &real) && isnan(real));
    assert_false(string_to_double(slice_of("1\0", 2), &real));
}

static void doubles_are_written_with_the_fewest_digits(void **state)
{
    static const struct {
        double real;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {100, "100"},
        {123456.789, "123456.789"},
        {1e20, "100000000000000000000"},
        {1e21, "1e+21"},
        {1.5e300, "1.5e+300"},
        {1e-6, "0.000001"},
        {1.5e-7, "1.5e-7"},
        {1e-10, "1e-10"},
        {5e-324, "5e-324"},
        {0.30000000000000004, "0.30000000000000004"},
        {NAN, "NaN"},
        {INFINITY, "Infinity"},
        {-INFINITY, "-Infinity"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[DOUBLE_STRING_BYTES_MAX] = {0};
        text[double_to_string(rows[i].real, text)] = '\0';
        assert_string_equal(text, rows[i].text);
    }
}

static void decimals_have_no_exponent(void **state)
{
    static const struct {
        double real;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.25, "-0.25"},
        {100, "100"},
        {1e22, "10000000000000000000000"},
        {5e-7, "0.0000005"},
        {1.5e-10, "0.00000000015"},
        {NAN, "NaN"},
        {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[DOUBLE_STRING_BYTES_MAX] = {0};
        text[double_to_decimal(rows[i].real, text)] = '\0';
        assert_string_equal(text, rows[i].text);
    }
    char text[DOUBLE_STRING_BYTES_MAX];
    assert_int_equal(double_to_decimal(5e-324, text), 326);
    assert_int_equal(double_to_decimal(-DBL_MAX, text), 310);
}

/* How many digits the number needs, found the long way. */
static size_t digits_needed(double real)
{
    char text[64];
    size_t precision = 0;
    do
        snprintf(text, sizeof(text), "%.*e", (int)precision++, real);
    while (strtod(text, NULL) != real);
    return precision;
}

static size_t digits_of(const char *text)
{
    size_t count = 0;
    size_t zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        count += count > 0 || *text != '0';
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return count > zeros ? count - zeros : 1; /* those at the end of 1000 are none */
}

static void doubles_of_every_size_have_the_fewest_digits(void **state)
{
    struct random_source random = {.state = 1};
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        char text[DOUBLE_STRING_BYTES_MAX];
        double real;
        uint64_t bits = random_below(&random, UINT64_MAX);
        memcpy(&real, &bits, sizeof(real));
        if (i % 4 == 1)
            real = (double)(int64_t)random_below(&random, UINT64_C(1) << random_below(&random, 63));
        if (i % 4 == 2)
            real = (double)random_below(&random, 1000000) / 1000;
        if (i % 4 == 3)
            real = (double)random_below(&random, UINT64_C(1) << 60) / 1e14;
        if (!isfinite(real))
            continue;
        text[double_to_string(real, text)] = '\0';
        if (strtod(text, NULL) != real || digits_of(text) != digits_needed(real))
            fail_msg("%.17g became %s", real, text);
    }
}

static void lists_and_maps_become_json_with_sorted_keys(void **state)
{
    static const struct config_value elements[] = {
        {.type = CONFIG_VALUE_DOUBLE, .real = 1e21},
        {.type = CONFIG_VALUE_INT, .integer = -3},
        {.type = CONFIG_VALUE_NULL},
        {.type = CONFIG_VALUE_BOOL, .boolean = true},
        {.type = CONFIG_VALUE_LIST},
        {.type = CONFIG_VALUE_MAP},
    };
    static const struct config_value items[] = {
        {.type = CONFIG_VALUE_TEXT,
         .text = "<>&\"\\/\b\f\n\r\t\x01\x7f\xff\xe2\x80\xa8\xc3\xa9\xed\xa0\x80"},
        {.type = CONFIG_VALUE_LIST, .count = 6, .items = elements},
        {.type = CONFIG_VALUE_TEXT, .text = "the last of equal keys"},
        {.type = CONFIG_VALUE_TEXT, .text = ""},
    };
    static const char *const keys[] = {"b", "a", "aa", "aa"};
    static const struct config_value map = {
        .type = CONFIG_VALUE_MAP, .count = 4, .items = items, .keys = keys};
    struct arena arena;
    struct slice text;
    (void)state;
    arena_init(&arena, 1 << 20);
    struct slice encoded = value_from_config(&map);
    assert_true(value_to_string(&arena, encoded, &text));
    static const char expected[] = "{\"a\":[1e+21,-3,null,true,[],{}],\"aa\":\"\",\"b\":\"<>&"
                                   "\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f"
                                   "\\ufffd\\u2028\xc3\xa9\\ufffd\\ufffd\\ufffd\"}";
    assert_int_equal(text.size, sizeof(expected) - 1);
    assert_memory_equal(text.data, expected, text.size);
    mem_free((void *)(uintptr_t)encoded.data);
    arena_clear(&arena);
}

static void check_text(const char *encoded, size_t size, const char *expected)
{
    struct arena arena;
    struct slice text;
    arena_init(&arena, 1 << 20);
    assert_true(value_to_string(&arena, slice_of(encoded, size), &text));
    assert_int_equal(text.size, strlen(expected));
    if (text.size > 0)
        assert_memory_equal(text.data, expected, text.size);
    arena_clear(&arena);
}

static void every_type_has_a_text(void **state)
{
    (void)state;
    check_text("", 0, "");
    check_text("\x0a\x02hi", 4, "hi");
    check_text("\x10\x01", 2, "true");
    check_text("\x10\x00", 2, "false");
    check_text("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "-1");
    check_text("\x21\0\0\0\0\0\0\xf8\x3f", 9, "1.5");
    check_text("\x3a\x02hi", 4, "aGk=");
    check_text("\x3a\x03"
               "abc",
               5, "YWJj");
    check_text("\x3a\x01"
               "a",
               3, "YQ==");
    check_text("\x2a\x00", 2, "[]");
    check_text("\x32\x00", 2, "{}");
    check_text("\x2a\x06\x0a\x04\x3a\x02hi", 8, "[\"aGk=\"]");
    check_text("\x0a\x02hi\x18\x05", 6, "5"); /* the last one wins */
    check_text("\x40\x05", 2, "");            /* a reference into a dictionary that is not there */
    check_text("\x3a\x00", 2, "");
    check_text("\x2a\x04\x0a\x02\x3a\x00", 6, "[null]"); /* bytes without a byte */
    /* NaN in a list has no JSON form. */
    check_text("\x2a\x0b\x0a\x09\x21\0\0\0\0\0\0\xf8\x7f", 13, "");
}

static void attributes_of_a_message_become_json_for_the_web(void **state)
{
    /* Field 1 is another one; field 3: b = "<&>", a = NaN, b = 5. */
    static const char message[] = "\x0a\x03xyz"
                                  "\x1a\x0a\x0a\x01"
                                  "b\x12\x05\x0a\x03<&>"
                                  "\x1a\x0e\x0a\x01"
                                  "a\x12\x09\x21\0\0\0\0\0\0\xf8\x7f"
                                  "\x1a\x0c\x0a\x01"
                                  "c\x12\x07\x0a\x05x>\"\ny"
                                  "\x1a\x07\x0a\x01"
                                  "b\x12\x02\x18\x05";
    static const char expected[] = "{\"a\":\"NaN\",\"b\":5,\"c\":\"x\\u003e\\\"\\ny\"}";
    struct arena arena;
    struct slice text;
    (void)state;
    arena_init(&arena, 1 << 20);
    assert_true(attributes_to_json(&arena, slice_of(message, sizeof(message) - 1), 3, &text));
    assert_true(slice_equal_text(text, expected));
    assert_true(attributes_to_json(&arena, slice_of(message, 5), 3, &text));
    assert_true(slice_equal_text(text, "{}"));
    arena_clear(&arena);
    arena_init(&arena, 16);
    assert_false(attributes_to_json(&arena, slice_of(message, sizeof(message) - 1), 3, &text));
    arena_clear(&arena);
}

static void a_string_that_is_too_long_for_the_arena_is_refused(void **state)
{
    struct arena arena;
    struct slice text;
    char list[2 + 120 * 2];
    (void)state;
    memset(list, 0, sizeof(list));
    list[0] = 0x2a;
    list[1] = 120;
    for (size_t i = 0; i < 60; i++)
        list[2 + 2 * i] = 0x0a;
    arena_init(&arena, 256);
    assert_false(value_to_string(&arena, slice_of(list, 122), &text));
    arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_become_integers_as_strconv_parses_them),
        cmocka_unit_test(strings_become_doubles_as_strconv_parses_them),
        cmocka_unit_test(doubles_are_written_with_the_fewest_digits),
        cmocka_unit_test(decimals_have_no_exponent),
        cmocka_unit_test(doubles_of_every_size_have_the_fewest_digits),
        cmocka_unit_test(lists_and_maps_become_json_with_sorted_keys),
        cmocka_unit_test(every_type_has_a_text),
        cmocka_unit_test(attributes_of_a_message_become_json_for_the_web),
        cmocka_unit_test(a_string_that_is_too_long_for_the_arena_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
