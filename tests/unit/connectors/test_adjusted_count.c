/* SPDX-License-Identifier: Apache-2.0 */
/* Adjusted counts; the expected columns are those of the Go collector's pkg/sampling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "connectors/span_metrics/adjusted_count.h"
#include "src/base/random.h"

static void thresholds_give_counts(void **state)
{
    static const struct {
        const char *text;
        bool is_extrapolated;
        uint64_t count;
    } rows[] = {
        {"", false, 1},
        {"ot=th:8", true, 2},
        {"ot=th:c", true, 4},
        {"ot=th:0", true, 1},
        {"ot=th:C", true, 4},
        {"ot=th:ffffffffffffff", true, UINT64_C(1) << 56},
        {"ot=rv:00000000000001;th:e", true, 8},
        {"a=b,ot=th:8", true, 2},
        {" , ot=th:8\t,x@y=1", true, 2},
        {"ot=th:8,ot=rv:00000000000001", false, 1},
        {"ot=a1:B.c-_;th:8", true, 2},
        {"ot=", false, 1},
        {"ot=th:", false, 1},
        {"ot=th:8;", false, 1},
        {"ot=th:8 x", false, 1},
        {"ot=th:g", false, 1},
        {"ot=th:123456789012345", false, 1},
        {"ot=rv:1;th:8", false, 1},
        {"ot=1a:x;th:8", false, 1},
        {"ot=;th:8", false, 1},
        {"ot=th", false, 1},
        {"OT=th:8", false, 1},
        {"Bad=1,ot=th:8", false, 1},
        {"b=\x7f,ot=th:8", false, 1},
        {"@y=1,ot=th:8", false, 1},
        {"x@=1,ot=th:8", false, 1},
        {"x@abcdefghijklmno=1,ot=th:8", false, 1},
        {"xot=th:8", false, 1},
        {"ot", false, 1},
        {"=1,ot=th:8", false, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct adjusted_count count = adjusted_count_read(slice_of_text(rows[i].text));
        if (count.is_extrapolated != rows[i].is_extrapolated || count.whole != rows[i].count ||
            count.rest != 0)
            fail_msg("\"%s\"", rows[i].text);
        assert_true(adjusted_count_draw(&count) == rows[i].count);
    }
}

static void limits_are_those_of_go(void **state)
{
    char text[2048] = "";
    (void)state;
    for (unsigned i = 0; i < 30; i++)
        strcat(text, "a=b,");
    strcat(text, "ot=th:8");
    assert_true(adjusted_count_read(slice_of_text(text)).whole == 2);
    memmove(text + 4, text, strlen(text) + 1);
    memcpy(text, "a=b,", 4);
    assert_true(adjusted_count_read(slice_of_text(text)).whole == 1);
    memset(text, 0, sizeof(text));
    strcpy(text, "a=");
    memset(text + 2, 'x', 256);
    strcat(text, ",ot=th:8");
    assert_true(adjusted_count_read(slice_of_text(text)).whole == 2);
    memset(text + 2, 'x', 257);
    strcpy(text + 259, ",ot=th:8");
    assert_true(adjusted_count_read(slice_of_text(text)).whole == 1);
}

static void rests_are_rounded_by_chance(void **state)
{
    (void)state;
    /* 2^56 / (2^56 * 3 / 4): one and a third. */
    struct adjusted_count count = adjusted_count_read(slice_of_text("ot=th:4"));
    assert_true(count.is_extrapolated && count.whole == 1 && count.rest > 0);
    random_fix(0.33);
    assert_true(adjusted_count_draw(&count) == 2);
    random_fix(0.34);
    assert_true(adjusted_count_draw(&count) == 1);
    random_fix(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_give_counts),
        cmocka_unit_test(limits_are_those_of_go),
        cmocka_unit_test(rests_are_rounded_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
