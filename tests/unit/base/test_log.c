/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines through a pipe: both forms, what is escaped, what is cut, and what is sampled out. */
#include "src/base/log.h"

#include "src/base/clock.h"
#include "src/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 16 };

static int ends[2];
static char text[TEXT_MAX];

static struct log_settings settings_for(bool is_json)
{
    struct log_settings settings = log_settings_default();
    settings.is_json = is_json;
    settings.has_caller = false;
    settings.is_sampled = false;
    settings.fds[0] = ends[1];
    settings.service_version = "1.2.3";
    settings.service_instance_id = "id";
    return settings;
}

static void configure(bool is_json)
{
    struct log_settings settings = settings_for(is_json);
    log_configure(&settings);
}

/* What was written since the last call. */
static const char *written(void)
{
    ssize_t size = read(ends[0], text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    return text;
}

static int set_up(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    clock_fake_start(1, 1700000000 * (uint64_t)NS_PER_S + 44 * (uint64_t)NS_PER_MS);
    return pipe2(ends, O_NONBLOCK);
}

static int tear_down(void **state)
{
    (void)state;
    struct log_settings standard = log_settings_default();
    log_configure(&standard);
    clock_fake_stop();
    close(ends[0]);
    close(ends[1]);
    return 0;
}

#define STAMP            "2023-11-14T22:13:20.044Z"
#define JSON_HEAD(level) "{\"level\":\"" level "\",\"ts\":\"" STAMP "\",\"msg\":\"hello\""
#define RESOURCE                                                                                   \
    ",\"resource\":{\"service.instance.id\":\"id\",\"service.name\":\"spanflame\","                \
    "\"service.version\":\"1.2.3\"}"

static const struct logger speaker = {
    .component_id = "otlp", .component_kind = "receiver", .pipeline_id = "", .signal = "traces"};

static void the_console_form_is_tab_separated_with_json_fields(void **state)
{
    (void)state;
    configure(false);
    log_info(NULL, "hello");
    assert_string_equal(written(), STAMP "\tinfo\thello\n");
    log_warn(&speaker, "hello", log_text("error", "no"), log_int("count", -3),
             log_double("ratio", 0.5));
    assert_string_equal(written(),
                        STAMP "\twarn\thello\t{\"otelcol.component.id\": \"otlp\", "
                              "\"otelcol.component.kind\": \"receiver\", \"otelcol.signal\": "
                              "\"traces\", \"error\": \"no\", \"count\": -3, \"ratio\": 0.5}\n");
}

static void the_json_form_is_one_object_per_line(void **state)
{
    (void)state;
    configure(true);
    log_error(NULL, "hello");
    assert_string_equal(written(), JSON_HEAD("error") RESOURCE "}\n");
    log_info(&speaker, "hello", log_int("count", 3));
    assert_string_equal(written(), JSON_HEAD("info") RESOURCE
                        ",\"otelcol.component.id\":\"otlp\",\"otelcol.component.kind\":"
                        "\"receiver\",\"otelcol.signal\":\"traces\",\"count\":3}\n");
}

static void the_caller_can_be_shown(void **state)
{
    (void)state;
    struct log_settings settings = settings_for(false);
    settings.has_caller = true;
    log_configure(&settings);
    log_write(NULL, LOG_INFO, "src/x.c", 7, "hello", (struct log_field){.type = LOG_FIELD_END});
    assert_string_equal(written(), STAMP "\tinfo\tsrc/x.c:7\thello\n");
    settings.is_json = true;
    log_configure(&settings);
    log_write(NULL, LOG_INFO, "../src/x.c", 7, "hello", (struct log_field){.type = LOG_FIELD_END});
    assert_non_null(strstr(written(), "\"caller\":\"src/x.c:7\",\"msg\":"));
}

static const struct {
    const char *raw;
    const char *escaped;
} escapes[] = {
    {"plain", "plain"},
    {"a\"b\\c", "a\\\"b\\\\c"},
    {"two\nlines\tand\rmore", "two\\nlines\\tand\\rmore"},
    {"\x01\x1f\x7f", "\\u0001\\u001f\\u007f"},
    {"gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\xa5", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\xa5"},
    {"bad \xff\xfe", "bad \\ufffd\\ufffd"},
    {"cut \xe2\x82", "cut \\ufffd\\ufffd"},
    {"overlong \xc0\xaf", "overlong \\ufffd\\ufffd"},
    {"surrogate \xed\xa0\x80", "surrogate \\ufffd\\ufffd\\ufffd"},
    {"beyond \xf4\x90\x80\x80", "beyond \\ufffd\\ufffd\\ufffd\\ufffd"},
};

static void strings_cannot_forge_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        char expected[256];
        configure(false);
        log_info(NULL, "hello", log_text("t", escapes[i].raw));
        snprintf(expected, sizeof(expected), STAMP "\tinfo\thello\t{\"t\": \"%s\"}\n",
                 escapes[i].escaped);
        assert_string_equal(written(), expected);
        configure(true);
        log_info(NULL, "hello", log_text("t", escapes[i].raw));
        snprintf(expected, sizeof(expected), ",\"t\":\"%s\"}\n", escapes[i].escaped);
        assert_non_null(strstr(written(), expected));
    }
}

/* Braces and quotes of a line that was cut still match. */
static void expect_well_formed(const char *line)
{
    int depth = 0;
    bool is_quoted = false;
    const char *start = strchr(line, '{');
    assert_non_null(start);
    for (const char *c = start; *c != '\n'; c++) {
        assert_true(*c != '\0');
        if (*c == '\\')
            c++;
        else if (*c == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted)
            depth += *c == '{' ? 1 : *c == '}' ? -1 : 0;
    }
    assert_false(is_quoted);
    assert_int_equal(depth, 0);
}

static void long_strings_are_cut_and_the_line_stays_well_formed(void **state)
{
    (void)state;
    char *large = mem_alloc(20001);
    for (size_t size = 6000; size <= 20000; size += 37) {
        memset(large, size % 2 == 0 ? 'x' : '\n', size);
        large[size] = '\0';
        for (int is_json = 0; is_json < 2; is_json++) {
            configure(is_json);
            log_info(&speaker, "hello", log_text("error", large), log_text("more", large),
                     log_int("n", 1));
            expect_well_formed(written());
            assert_int_equal(strlen(strchr(text, '\n')), 1);
        }
    }
    mem_free(large);
}

static void a_large_message_is_printed_whole(void **state)
{
    (void)state;
    char *large = mem_alloc(30001);
    memset(large, 'm', 30000);
    large[30000] = '\0';
    for (int is_json = 0; is_json < 2; is_json++) {
        configure(is_json);
        log_info(NULL, large, log_int("n", 1));
        assert_non_null(strstr(written(), large));
        expect_well_formed(text);
    }
    mem_refuse_nth(1); /* then what fits is printed */
    log_info(NULL, large, log_int("n", 1));
    assert_true(strlen(written()) > 4000);
    expect_well_formed(text);
    mem_refuse_nth(0);
    mem_free(large);
}

static void levels_below_the_configured_one_are_silent(void **state)
{
    (void)state;
    struct log_settings settings = settings_for(false);
    settings.level = LOG_WARN;
    log_configure(&settings);
    assert_false(log_is_enabled(LOG_INFO));
    log_debug(NULL, "no");
    log_info(NULL, "no");
    assert_string_equal(written(), "");
    log_warn(NULL, "yes");
    assert_string_equal(written(), STAMP "\twarn\tyes\n");
}

static unsigned lines_written(void)
{
    unsigned lines = 0;
    for (const char *c = written(); *c != '\0'; c++)
        lines += *c == '\n';
    return lines;
}

static void repeated_messages_are_sampled_by_level_and_tick(void **state)
{
    (void)state;
    struct log_settings settings = settings_for(false);
    settings.is_sampled = true;
    log_configure(&settings);
    for (int i = 0; i < 310; i++)
        log_info(NULL, "again");
    assert_int_equal(lines_written(), 10 + 3);
    log_warn(NULL, "again");
    assert_int_equal(lines_written(), 1);
    clock_fake_advance(10 * (uint64_t)NS_PER_S);
    log_info(NULL, "again");
    assert_int_equal(lines_written(), 1);
    settings.sampling_thereafter = 0;
    log_configure(&settings);
    for (int i = 0; i < 310; i++)
        log_info(NULL, "again");
    assert_int_equal(lines_written(), 9);
}

static void the_defaults_stay_the_defaults_after_a_change(void **state)
{
    (void)state;
    struct log_settings settings = settings_for(true);
    settings.service_name = "other";
    log_configure(&settings);
    struct log_settings standard = log_settings_default();
    assert_string_equal(standard.service_name, "spanflame");
    assert_false(standard.is_json);
    assert_int_equal(standard.fds[0], STDERR_FILENO);
}

static void lines_go_to_all_outputs(void **state)
{
    int others[2];
    char other[TEXT_MAX];
    struct log_settings settings = settings_for(false);
    (void)state;
    assert_int_equal(pipe2(others, O_NONBLOCK), 0);
    settings.fds[0] = open("/dev/full", O_WRONLY); /* one that fails does not block the rest */
    settings.fds[1] = ends[1];
    settings.fds[2] = others[1];
    settings.fds_count = 3;
    assert_true(settings.fds[0] >= 0);
    log_configure(&settings);
    log_info(NULL, "hello");
    assert_non_null(strstr(written(), "hello"));
    ssize_t size = read(others[0], other, sizeof(other));
    assert_true(size > 0);
    assert_memory_equal(other, text, (size_t)size);
    close(settings.fds[0]);
    close(others[0]);
    close(others[1]);
}

static void errno_survives(void **state)
{
    (void)state;
    configure(false);
    errno = ENOENT;
    log_info(NULL, "hello");
    assert_int_equal(errno, ENOENT);
    log_debug(NULL, "hello");
    assert_int_equal(errno, ENOENT);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(lines_go_to_all_outputs),
        LOG_TEST(the_console_form_is_tab_separated_with_json_fields),
        LOG_TEST(the_json_form_is_one_object_per_line),
        LOG_TEST(the_caller_can_be_shown),
        LOG_TEST(strings_cannot_forge_lines),
        LOG_TEST(long_strings_are_cut_and_the_line_stays_well_formed),
        LOG_TEST(a_large_message_is_printed_whole),
        LOG_TEST(levels_below_the_configured_one_are_silent),
        LOG_TEST(repeated_messages_are_sampled_by_level_and_tick),
        LOG_TEST(the_defaults_stay_the_defaults_after_a_change),
        LOG_TEST(errno_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
