/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/duration.c: Go's duration syntax. */
#include "src/config/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    int64_t ns;
} valid[] = {
    {"0", 0},
    {"-0", 0},
    {"0s", 0},
    {"5s", 5000000000},
    {"200ms", 200000000},
    {"1h30m", 5400000000000},
    {"1.5s", 1500000000},
    {".5s", 500000000},
    {"1.h", 3600000000000},
    {"-1.5s", -1500000000},
    {"+3us", 3000},
    {"3\xc2\xb5s", 3000},
    {"3\xce\xbcs", 3000},
    {"7ns", 7},
    {"0.5ns", 0},
    {"1h1m1s1ms1us1ns", 3661001001001},
    {"0.000000001h", 3600},
    {"2562047h47m16.854775807s", INT64_MAX},
};

static const struct {
    const char *text;
    const char *problem;
} invalid[] = {
    {"", "time: invalid duration"},
    {"-", "time: invalid duration"},
    {".", "time: invalid duration"},
    {"s", "time: invalid duration"},
    {"5s\n", "time: unknown unit"},
    {"5", "time: missing unit in duration"},
    {"1.2.3s", "time: missing unit in duration"},
    {"1d", "time: unknown unit"},
    {"1S", "time: unknown unit"},
    {"5 s", "time: unknown unit"},
    {"2562047h47m16.854775808s", "time: invalid duration"},
    {"99999999999999999999s", "time: invalid duration"},
};

static void durations_are_read_as_in_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
        int64_t ns = -1;
        const char *problem = text_to_duration_ns(valid[i].text, &ns);
        if (problem != NULL || ns != valid[i].ns)
            fail_msg("\"%s\": %s, %lld", valid[i].text, problem != NULL ? problem : "fine",
                     (long long)ns);
    }
}

static void bad_durations_get_the_errors_of_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
        int64_t ns = -1;
        const char *problem = text_to_duration_ns(invalid[i].text, &ns);
        assert_non_null(problem);
        assert_string_equal(problem, invalid[i].problem);
        assert_int_equal(ns, -1);
    }
}

static void durations_are_written_in_whole_units(void **state)
{
    (void)state;
    assert_string_equal(duration_to_text(0).text, "0s");
    assert_string_equal(duration_to_text(200000000).text, "200ms");
    assert_string_equal(duration_to_text(90000000000).text, "1m30s");
    assert_string_equal(duration_to_text(-1).text, "-1ns");
}

static void the_longest_duration_fits_its_text(void **state)
{
    int64_t ns;
    (void)state;
    assert_null(text_to_duration_ns(duration_to_text(INT64_MAX).text, &ns));
    assert_int_equal(ns, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read_as_in_go),
        cmocka_unit_test(bad_durations_get_the_errors_of_go),
        cmocka_unit_test(durations_are_written_in_whole_units),
        cmocka_unit_test(the_longest_duration_fits_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
