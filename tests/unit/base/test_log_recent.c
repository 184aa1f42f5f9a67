/* SPDX-License-Identifier: Apache-2.0 */
/* The latest warnings stay readable, newest first, in bounded room. */
#include "src/base/log_recent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    size_t count;
    char lines[LOG_RECENT_LINES + 1][LOG_RECENT_LINE_BYTES_MAX];
};

static void collect(const char *line, void *arg)
{
    struct seen *seen = arg;
    assert_in_range(seen->count, 0, LOG_RECENT_LINES - 1);
    snprintf(seen->lines[seen->count++], LOG_RECENT_LINE_BYTES_MAX, "%s", line);
}

static struct seen visit(void)
{
    struct seen seen = {.count = 0};
    log_recent_visit(collect, &seen);
    return seen;
}

static void nothing_was_noted_at_first(void **state)
{
    (void)state;
    assert_int_equal(visit().count, 0);
}

static void lines_come_back_newest_first_without_tabs(void **state)
{
    (void)state;
    log_recent_note("one\twarn", 8);
    log_recent_note("two", 3);
    struct seen seen = visit();
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.lines[0], "two");
    assert_string_equal(seen.lines[1], "one warn");
}

static void a_long_line_is_cut(void **state)
{
    char line[2 * LOG_RECENT_LINE_BYTES_MAX];
    (void)state;
    memset(line, 'x', sizeof(line));
    log_recent_note(line, sizeof(line));
    assert_int_equal(strlen(visit().lines[0]), LOG_RECENT_LINE_BYTES_MAX - 1);
}

static void the_oldest_goes(void **state)
{
    char text[16];
    (void)state;
    for (int i = 0; i < 3 * LOG_RECENT_LINES; i++)
        log_recent_note(text, (size_t)snprintf(text, sizeof(text), "line %d", i));
    struct seen seen = visit();
    assert_int_equal(seen.count, LOG_RECENT_LINES);
    snprintf(text, sizeof(text), "line %d", 3 * LOG_RECENT_LINES - 1);
    assert_string_equal(seen.lines[0], text);
    snprintf(text, sizeof(text), "line %d", 2 * LOG_RECENT_LINES);
    assert_string_equal(seen.lines[LOG_RECENT_LINES - 1], text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_was_noted_at_first),
        cmocka_unit_test(lines_come_back_newest_first_without_tabs),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(the_oldest_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
