/* SPDX-License-Identifier: Apache-2.0 */
/* debug with outputs of its own: what is printed where, and how often. */
#include "src/base/clock.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "tests/unit/exporters/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct component_factory debug_exporter_factory;
extern const struct component_factory nop_exporter_factory;

/* A request with one span named "a", nothing else. */
static const uint8_t span_bytes[] = {0x0a, 0x07, 0x12, 0x05, 0x12, 0x03, 0x2a, 0x01, 'a'};
static const struct slice span = {.data = span_bytes, .size = sizeof(span_bytes)};

struct fixture {
    struct lane *lane;
    char path[64];
    struct exporter_fixture exporter;
};

static void set_up(struct fixture *fixture, const char *options, enum signal_kind signal)
{
    char yaml[512];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1136214245 * (uint64_t)NS_PER_S);
    snprintf(fixture->path, sizeof(fixture->path), "/tmp/spanflame-test-debug-XXXXXX");
    int fd = mkstemp(fixture->path);
    assert_true(fd >= 0);
    close(fd);
    fixture->lane = lane_create(0);
    snprintf(yaml, sizeof(yaml), "{use_internal_logger: false, output_paths: ['%s'], %s}",
             fixture->path, options);
    exporter_open(&fixture->exporter, fixture->lane, &debug_exporter_factory, yaml, signal);
}

static void check_output(const struct fixture *fixture, const char *expected)
{
    char *text;
    size_t size;
    assert_int_equal(file_read_whole(fixture->path, 1 << 20, &text, &size), 0);
    assert_string_equal(text, expected);
    mem_free(text);
}

static void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    lane_destroy(fixture->lane);
    unlink(fixture->path);
    clock_fake_stop();
}

struct output_case {
    enum signal_kind signal;
    const char *options;
    const char *expected;
};

static const struct output_case outputs[] = {
    {TRACES, "verbosity: basic", "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"},
    {METRICS, "", "Metrics\t{\"resource metrics\": 1, \"metrics\": 1, \"data points\": 1}\n"},
    {LOGS, "", "Logs\t{\"resource logs\": 1, \"log records\": 1}\n"},
    {TRACES, "verbosity: normal",
     "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"
     "ResourceTraces #0\nScopeTraces #0\na  \n\n"},
    {TRACES, "verbosity: Normal",
     "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"
     "ResourceTraces #0\nScopeTraces #0\na  \n\n"},
    {TRACES, "verbosity: 1",
     "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"
     "ResourceTraces #0\nScopeTraces #0\na  \n\n"},
    {TRACES, "verbosity: ", "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"},
    {TRACES, "logLevel: info",
     "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"
     "ResourceTraces #0\nScopeTraces #0\na  \n\n"},
    {TRACES, "loglevel: warn", "Traces\t{\"resource spans\": 1, \"spans\": 1}\n"},
    {LOGS, "verbosity: normal",
     "Logs\t{\"resource logs\": 1, \"log records\": 1}\nResourceLog #0\nScopeLog #0\n \n\n"},
};

static void each_verbosity_prints_its_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        struct fixture fixture;
        set_up(&fixture, outputs[i].options, outputs[i].signal);
        exporter_export(&fixture.exporter, span, 1);
        assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
        check_output(&fixture, outputs[i].expected);
        tear_down(&fixture);
    }
}

static void sampling_keeps_the_first_and_every_third_of_a_second(void **state)
{
    static const char line[] = "Traces\t{\"resource spans\": 1, \"spans\": 1}\n";
    struct fixture fixture;
    char expected[512] = "";
    (void)state;
    set_up(&fixture, "sampling_initial: 1, sampling_thereafter: 3", TRACES);
    for (int i = 0; i < 7; i++)
        exporter_export(&fixture.exporter, span, 1);
    for (int i = 0; i < 3; i++) /* the 1st, 4th and 7th */
        strcat(expected, line);
    check_output(&fixture, expected);
    clock_fake_advance(NS_PER_S);
    exporter_export(&fixture.exporter, span, 1);
    strcat(expected, line);
    check_output(&fixture, expected);
    tear_down(&fixture);
}

static void negative_sampling_is_as_in_the_go_collector(void **state)
{
    static const char line[] = "Traces\t{\"resource spans\": 1, \"spans\": 1}\n";
    static const struct {
        const char *options;
        int printed; /* of 5 */
    } rows[] = {
        {"sampling_initial: -1, sampling_thereafter: 0", 5},
        {"sampling_initial: 2, sampling_thereafter: -1", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        char expected[512] = "";
        set_up(&fixture, rows[i].options, TRACES);
        for (int j = 0; j < 5; j++)
            exporter_export(&fixture.exporter, span, 1);
        for (int j = 0; j < rows[i].printed; j++)
            strcat(expected, line);
        check_output(&fixture, expected);
        tear_down(&fixture);
    }
}

enum { NAME_BYTES = 20000 };

/* A request with one span with a name of NAME_BYTES. */
static struct slice large_span(void)
{
    /* Lengths of the resource, scope and span around the name, each a varint of three bytes. */
    static const uint8_t head[] = {0x0a, 0xac, 0x9c, 0x01, 0x12, 0xa8, 0x9c, 0x01,
                                   0x12, 0xa4, 0x9c, 0x01, 0x2a, 0xa0, 0x9c, 0x01};
    static uint8_t bytes[sizeof(head) + NAME_BYTES];
    memcpy(bytes, head, sizeof(head));
    memset(bytes + sizeof(head), 'x', NAME_BYTES);
    return slice_of(bytes, sizeof(bytes));
}

/* The helper writes the text of a large batch, and of those behind it. A stop waits for both. */
static void batches_are_printed_in_their_order(void **state)
{
    struct fixture fixture;
    char *text;
    size_t size;
    (void)state;
    set_up(&fixture, "verbosity: normal", TRACES);
    exporter_offer(&fixture.exporter, large_span(), 1);
    exporter_offer(&fixture.exporter, span, 1);
    assert_int_equal(fixture.exporter.results, 0);
    check_output(&fixture, "");
    exporter_close(&fixture.exporter);
    assert_int_equal(fixture.exporter.results, 2);
    assert_int_equal(file_read_whole(fixture.path, 1 << 20, &text, &size), 0);
    const char *large = strstr(text, "ScopeTraces #0\nxxx");
    const char *small = strstr(text, "ScopeTraces #0\na  \n");
    assert_true(large != NULL && small > large);
    mem_free(text);
    lane_destroy(fixture.lane);
    unlink(fixture.path);
    clock_fake_stop();
}

static void large_text_reaches_the_log_whole(void **state)
{
    char path[] = "/tmp/spanflame-test-debug-XXXXXX";
    struct log_settings settings = log_settings_default();
    struct exporter_fixture exporter;
    char *text;
    size_t size;
    (void)state;
    settings.fds[0] = mkstemp(path);
    assert_true(settings.fds[0] >= 0);
    log_configure(&settings);
    struct lane *lane = lane_create(0);
    exporter_open(&exporter, lane, &debug_exporter_factory, "{verbosity: normal}", TRACES);
    exporter_export(&exporter, large_span(), 1);
    exporter_close(&exporter);
    lane_destroy(lane);
    close(settings.fds[0]);
    settings = log_settings_default();
    log_configure(&settings);
    assert_int_equal(file_read_whole(path, 1 << 20, &text, &size), 0);
    assert_non_null(strstr(text, "Traces\t{"));
    const char *name = strstr(text, "ScopeTraces #0\n");
    assert_non_null(name);
    assert_int_equal(strspn(name + strlen("ScopeTraces #0\n"), "x"), NAME_BYTES);
    assert_non_null(strstr(text, "x  \n\t{\"otelcol.component.id\": \"debug\"}\n"));
    mem_free(text);
    unlink(path);
}

static void nop_accepts_everything(void **state)
{
    struct exporter_fixture exporter;
    struct lane *lane = lane_create(0);
    (void)state;
    exporter_open(&exporter, lane, &nop_exporter_factory, "", LOGS);
    exporter_export(&exporter, span, 1);
    assert_int_equal(exporter.outcome.verdict, ACCEPTED);
    exporter_close(&exporter);
    lane_destroy(lane);
}

struct config_case {
    const char *yaml;
    const char *problem; /* NULL: it loads */
};

static const struct config_case configs[] = {
    {"", NULL},
    {"{verbosity: DETAILED, sampling_initial: 5, sampling_thereafter: 200,"
     " sending_queue: {queue_size: 3}}",
     NULL},
    {"{output_paths: [stdout]}", "output_paths is not supported when use_internal_logger is true"},
    {"{verbosity: none}", "none"},
    {"{loglevel: DEBUG}", NULL},
    {"{logLevel: loud}", "loud"},
    {"{verbosty: basic}", "verbosty"},
};

static void configurations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        char problems[2048];
        struct config *config;
        bool is_loaded = exporter_try_load(&debug_exporter_factory, configs[i].yaml, &config,
                                           problems, sizeof(problems));
        print_message("   %s\n", is_loaded ? configs[i].yaml : problems);
        assert_int_equal(is_loaded, configs[i].problem == NULL);
        if (configs[i].problem != NULL)
            assert_non_null(strstr(problems, configs[i].problem));
        config_destroy(config);
    }
}

/* Else nothing that waits would ever come free. */
static void a_budget_that_the_queue_fills_does_not_keep_it_waiting(void **state)
{
    struct fixture fixture;
    (void)state;
    set_up(&fixture, "", TRACES);
    fixture.exporter.has_two_parts = true;
    struct budget *budget = &fixture.exporter.budget;
    const uint64_t all = budget_limit(budget) + budget_limit(budget) / BUDGET_MARGIN_PART;
    budget_take(budget, all);
    exporter_export(&fixture.exporter, span, 1);
    exporter_wait_for_memory(&fixture.exporter);
    exporter_export(&fixture.exporter, span, 1);
    assert_int_equal(fixture.exporter.outcome.verdict, ACCEPTED);
    budget_return(budget, all);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verbosity_prints_its_form),
        cmocka_unit_test(sampling_keeps_the_first_and_every_third_of_a_second),
        cmocka_unit_test(negative_sampling_is_as_in_the_go_collector),
        cmocka_unit_test(batches_are_printed_in_their_order),
        cmocka_unit_test(a_budget_that_the_queue_fills_does_not_keep_it_waiting),
        cmocka_unit_test(large_text_reaches_the_log_whole),
        cmocka_unit_test(nop_accepts_everything),
        cmocka_unit_test(configurations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
