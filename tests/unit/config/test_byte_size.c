/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them. */
#include "src/config/byte_size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void strings_become_sizes_in_bytes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"0", 0},
        {"4096", 4096},
        {"1B", 1},
        {"64KiB", 65536},
        {"64MiB", 67108864},
        {"64 MiB", 67108864},
        {"1.5GiB", 1610612736},
        {"2TiB", 2199023255552},
        {"5kB", 5000},
        {"5KB", 5000},
        {"0.25MB", 250000},
        {"3GB", 3000000000},
        {"1TB", 1000000000000},
        {"18446744073709551615", UINT64_MAX},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes = 1;
        assert_true(text_to_bytes(rows[i].text, &bytes));
        assert_int_equal(bytes, rows[i].bytes);
    }
}

static void other_strings_are_no_sizes(void **state)
{
    static const char *const rows[] = {
        "",      "MiB",  "-1",   "1.",   "1.MiB",       ".5MiB",
        "64mib", "64M",  "1e3B", "64Mi", "99999999TiB", "18446744073709551616",
        "1 2",   "0x10",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes;
        assert_false(text_to_bytes(rows[i], &bytes));
    }
}

static void units_may_be_in_any_case(void **state)
{
    uint64_t bytes = 0;
    (void)state;
    assert_true(text_to_bytes_in_any_case("64mib", &bytes));
    assert_int_equal(bytes, 64 << 20);
    assert_true(text_to_bytes_in_any_case("2kb", &bytes));
    assert_int_equal(bytes, 2000);
    assert_false(text_to_bytes_in_any_case("64m", &bytes));
}

static void bytes_are_printed_in_the_largest_whole_unit(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1000, "1000"},
        {1024, "1KiB"},
        {67108864, "64MiB"},
        {67108865, "67108865"},
        {3221225472, "3GiB"},
        {INT64_MAX, "9223372036854775807"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(bytes_to_text(rows[i].bytes).text, rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_become_sizes_in_bytes),
        cmocka_unit_test(other_strings_are_no_sizes),
        cmocka_unit_test(units_may_be_in_any_case),
        cmocka_unit_test(bytes_are_printed_in_the_largest_whole_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
