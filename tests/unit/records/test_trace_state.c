/* SPDX-License-Identifier: Apache-2.0 */
/* Tracestates and thresholds, as the W3C and the Go collector have them. */
#include "src/records/trace_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void states_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        bool is_fine;
        const char *written;
    } rows[] = {
        {"", true, ""},
        {"a=1", true, "a=1"},
        {" a=1 ,\tb=2,,c=3", true, "a=1,b=2,c=3"},
        {"a=1,ot=th:8;rv:00000000000001;x:y,b=2", true, "ot=rv:00000000000001;th:8;x:y,a=1,b=2"},
        {"ot=th:80", true, "ot=th:80"},
        {"ot=th:AB", true, "ot=th:AB"},
        {"t@v=1", true, "t@v=1"},
        {"0t@v=1", true, "0t@v=1"},
        {"a=b c", true, "a=b c"},
        /* Errors of the whole leave nothing, those of a member the others. */
        {"A=1", false, ""},
        {"a", false, ""},
        {"=1", false, ""},
        {"a=", false, ""},
        {"a=b=c", false, ""},
        {"a=\x7f", false, ""},
        {"0a=1", false, ""},
        {"t@0v=1", false, ""},
        {"t@=1", false, ""},
        {"a=1,ot=th:8;", false, "a=1"},
        {"a=1,ot=th:8;;x:y", false, "a=1"},
        {"a=1,ot=TH:8", false, "a=1"},
        {"a=1,ot=th:8g;x:y", false, "ot=x:y,a=1"},
        {"a=1,ot=th:;x:y", false, "ot=x:y,a=1"},
        {"ot=rv:123;th:8", false, "ot=th:8"},
        {"ot=th:123456789abcdef", false, ""},
        {"a@abcdefghijklmno=1,b=2", false, "b=2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trace_state found;
        char room[TRACE_STATE_WRITTEN_MAX];
        bool is_fine = trace_state_read(slice_of_text(rows[i].text), &found);
        struct slice written = trace_state_write(&found, room);
        if (is_fine != rows[i].is_fine || !slice_equal_text(written, rows[i].written))
            fail_msg("\"%s\": %d \"%.*s\"", rows[i].text, is_fine, (int)written.size,
                     (const char *)written.data);
    }
}

static void long_ones_are_errors(void **state)
{
    char text[TRACE_STATE_BYTES_MAX + 2];
    struct trace_state found;
    char room[TRACE_STATE_WRITTEN_MAX];
    size_t size = 0;
    (void)state;
    /* 31 members are read, as in Go. */
    for (int i = 0; i < 32; i++) {
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%sk%d=v", i > 0 ? "," : "", i);
        assert_int_equal(trace_state_read(slice_of(text, size), &found), i < 31);
        assert_int_equal(found.members_count, i < 31 ? i + 1 : 31);
    }
    /* The longest is read and written. */
    memset(text, ',', sizeof(text));
    memcpy(text, "ot=", 3);
    for (size_t i = 3; i < 259; i++)
        text[i] = (char)("a:b;"[(i - 3) % 4]);
    text[258] = ',';
    assert_false(trace_state_read(slice_of(text, TRACE_STATE_BYTES_MAX + 1), &found));
    assert_int_equal(trace_state_write(&found, room).size, 0);
    memset(text, 'v', sizeof(text));
    memcpy(text, "k=", 2);
    assert_true(trace_state_read(slice_of(text, 258), &found));
    assert_false(trace_state_read(slice_of(text, 259), &found));
}

static void thresholds_keep_the_precision(void **state)
{
    static const struct {
        double ratio;
        int64_t precision;
        const char *digits; /* NULL: out of range */
    } rows[] = {
        {1, 4, "0"},
        {0.5, 4, "8"},
        {0.25, 4, "c"},
        {1.0 / 3, 4, "aaab"},
        {1.0 / 3, 14, "aaaaaaaaaaaaac"},
        {1.0 / 3, 0, "aaaaaaaaaaaaac"},
        {0.01, 4, "fd70a"},
        {0.99, 4, "028f6"},
        {0x1p-56, 4, "ffffffffffffff"},
        {0.3, -20, "0"},
        {0x1p-57, 4, NULL},
        {0, 4, NULL},
        {1.01, 4, NULL},
        {-1, 4, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char room[SAMPLING_DIGITS];
        uint64_t threshold;
        uint64_t again;
        bool is_valid = sampling_threshold_of(rows[i].ratio, rows[i].precision, &threshold);
        assert_int_equal(is_valid, rows[i].digits != NULL);
        if (!is_valid)
            continue;
        struct slice digits = sampling_write_threshold(threshold, room);
        if (!slice_equal_text(digits, rows[i].digits))
            fail_msg("%g: %.*s", rows[i].ratio, (int)digits.size, (const char *)digits.data);
        assert_true(sampling_read_threshold(digits, &again));
        assert_true(again == threshold);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_read_and_written),
        cmocka_unit_test(long_ones_are_errors),
        cmocka_unit_test(thresholds_keep_the_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
