/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest base modules: errors, clock, random numbers, the allocator, names of signals,
 * spellings of bytes. */
#include "src/base/base64.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/base/short_bytes.h"
#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void bytes_are_two_digits_each(void **state)
{
    static const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    char room[2 * sizeof(bytes) + 1] = "";
    (void)state;
    struct slice digits = hex_write(bytes, sizeof(bytes), room);
    assert_ptr_equal(digits.data, room);
    assert_int_equal(digits.size, 2 * sizeof(bytes));
    assert_string_equal(room, "000fa5ff");
    assert_int_equal(hex_write(NULL, 0, room).size, 0);
}

static void characters_of_utf8_are_measured(void **state)
{
    static const struct {
        const char *text;
        size_t size;
    } rows[] = {
        {"a", 1},
        {"\x7f", 1},
        {"\xc3\x9f", 2},
        {"\xe2\x82\xac", 3},
        {"\xed\x9f\xbf", 3},
        {"\xf0\x9f\x94\xa5", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0},             /* a follower first */
        {"\xc0\x80", 0},         /* two bytes for what takes one */
        {"\xe0\x9f\xbf", 0},     /* three for two */
        {"\xf0\x8f\xbf\xbf", 0}, /* four for three */
        {"\xed\xa0\x80", 0},     /* a surrogate */
        {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xe2\x82", 0},         /* cut off */
        {"\xe2\x82"
         "a",
         0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(utf8_size(slice_of_text(rows[i].text)), rows[i].size);
}

/* The vectors of RFC 4648 §10. */
static void base64_is_read_as_strictly_as_go_does(void **state)
{
    static const struct {
        const char *text;
        const char *expected; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm\r\n9v\n", "foo"},
        {"Zm9v\n", "foo"},
        {"++//", "\xfb\xef\xff"},
        {"Zh==", "f"}, /* bits that say nothing */
        {"Zg", NULL},
        {"Zg=", NULL},
        {"Z", NULL},
        {"Z===", NULL},
        {"====", NULL},
        {"Zg==Zg==", NULL},
        {"Zg=v", NULL},
        {"Zm9v=", NULL},
        {"Zm9-", NULL},
        {"Zm 9v", NULL},
        {"Zm9\x80", NULL},
        {"Zg==\n=", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t room[16];
        size_t size = 0;
        struct slice text = slice_of_text(rows[i].text);
        bool is_read = base64_decode(text, room, &size);
        if (is_read != (rows[i].expected != NULL))
            fail_msg("\"%s\" is %s", rows[i].text, is_read ? "read" : "refused");
        if (is_read)
            assert_true(slice_equal_text(slice_of(room, size), rows[i].expected));
    }
}

static void base64_is_that_of_its_rfc(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xbe", "+/++"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[16] = {0};
        struct slice bytes = slice_of_text(rows[i].text);
        assert_int_equal(base64_size(bytes.size), strlen(rows[i].expected));
        base64_encode(bytes, room);
        assert_string_equal(room, rows[i].expected);
    }
}

static void an_error_gains_prefixes(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    assert_false(error_set(&error, "port %d is taken", 4317));
    assert_false(error_prefix(&error, "cannot start \"%s\"", "otlp"));
    assert_false(error_prefix(&error, "service"));
    assert_string_equal(error.text, "service: cannot start \"otlp\": port 4317 is taken");
}

static void a_long_error_is_cut_at_its_end(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    char large[2 * ERROR_TEXT_MAX];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    for (size_t size = ERROR_TEXT_MAX - 5; size < ERROR_TEXT_MAX + 5; size++) {
        error_set(&error, "%.*s", (int)size, large);
        assert_true(strlen(error.text) < ERROR_TEXT_MAX);
        error_prefix(&error, "where");
        assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 1);
        assert_memory_equal(error.text, "where: xxx", 10);
        error_prefix(&error, "%.*s", (int)size, large);
        assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 1);
    }
}

static void the_fake_clock_moves_by_hand_alone(void **state)
{
    (void)state;
    uint64_t real_ns = clock_now_ns();
    clock_fake_start(7, 9);
    clock_fake_advance(3);
    assert_int_equal(clock_now_ns(), 10);
    assert_int_equal(clock_wall_ns(), 12);
    clock_fake_stop();
    assert_true(clock_now_ns() >= real_ns);
    assert_true(clock_wall_ns() > 1500000000 * (uint64_t)NS_PER_S);
}

static void random_numbers_are_spread_over_the_unit(void **state)
{
    (void)state;
    unsigned cells[10] = {0};
    for (int i = 0; i < 100000; i++) {
        double value = random_uniform();
        assert_true(value >= 0 && value < 1);
        cells[(int)(value * 10)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(cells[i], 9000, 11000);
    random_fix(0.25);
    assert_true(random_uniform() == 0.25);
    random_fix(-1);
    assert_true(random_uniform() != random_uniform());
}

static void the_nth_try_is_refused_and_no_other(void **state)
{
    (void)state;
    mem_refuse_nth(3);
    for (int i = 1; i <= 5; i++) {
        void *memory = i % 2 == 0 ? mem_try_alloc(8) : mem_try_resize(NULL, 8);
        assert_true((memory == NULL) == (i == 3));
        mem_free(memory);
    }
    mem_refuse_nth(1);
    void *bounded = mem_alloc(8); /* is not asked */
    assert_null(mem_try_alloc(1));
    mem_refuse_nth(0);
    mem_free(bounded);
    mem_free(NULL);
}

static void size_0_is_allowed(void **state)
{
    (void)state;
    mem_free(mem_alloc(0));
    mem_free(mem_zalloc(0));
    mem_free(mem_copy(NULL, 0));
    mem_free(mem_resize(mem_alloc(5), 0));
    char *copy = mem_copy_text("text");
    assert_string_equal(copy, "text");
    mem_free(copy);
}

static void slices_compare_by_content(void **state)
{
    (void)state;
    assert_true(slice_equal_text(slice_of("abc", 3), "abc"));
    assert_false(slice_equal_text(slice_of("abc", 3), "ab"));
    assert_false(slice_equal_text(slice_of("abd", 3), "abc"));
    assert_true(slice_equal(slice_of(NULL, 0), slice_of_text("")));
}

static void short_bytes_are_copied_and_compared_in_bounds(void **state)
{
    (void)state;
    enum { SIZE_MAX_TRIED = 40 };
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
        /* Of that size, so that one byte more would be noticed. */
        uint8_t *from = mem_alloc(size + 1);
        uint8_t *to = mem_alloc(size + 1);
        for (size_t i = 0; i < size; i++)
            from[i] = (uint8_t)(i * 7 + 1);
        from = mem_resize(from, size > 0 ? size : 1);
        to = mem_resize(to, size > 0 ? size : 1);
        short_copy(to, from, size);
        assert_true(size == 0 || memcmp(to, from, size) == 0);
        assert_true(short_equal(to, from, size));
        for (size_t i = 0; i < size; i++) {
            to[i] ^= 0x80;
            assert_false(short_equal(to, from, size));
            to[i] ^= 0x80;
        }
        mem_free(from);
        mem_free(to);
    }
}

static void signals_are_called_as_in_yaml_and_metrics(void **state)
{
    (void)state;
    assert_string_equal(signal_name(TRACES), "traces");
    assert_string_equal(signal_items(TRACES), "spans");
    assert_string_equal(signal_items(METRICS), "metric_points");
    assert_string_equal(signal_items(LOGS), "log_records");
    assert_string_equal(signal_items(PROFILES), "profile_samples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_gains_prefixes),
        cmocka_unit_test(characters_of_utf8_are_measured),
        cmocka_unit_test(bytes_are_two_digits_each),
        cmocka_unit_test(base64_is_that_of_its_rfc),
        cmocka_unit_test(base64_is_read_as_strictly_as_go_does),
        cmocka_unit_test(a_long_error_is_cut_at_its_end),
        cmocka_unit_test(the_fake_clock_moves_by_hand_alone),
        cmocka_unit_test(random_numbers_are_spread_over_the_unit),
        cmocka_unit_test(the_nth_try_is_refused_and_no_other),
        cmocka_unit_test(size_0_is_allowed),
        cmocka_unit_test(slices_compare_by_content),
        cmocka_unit_test(short_bytes_are_copied_and_compared_in_bounds),
        cmocka_unit_test(signals_are_called_as_in_yaml_and_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
