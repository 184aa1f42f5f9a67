/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that people grep for and alert on: text, level and fields as the Go collector's. */
#include "tests/support/harness.h"

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/service/service_parts.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PIPELINE "service: {pipelines: {traces: {receivers: [test], exporters: [test]}}}\n"
#define SPEAKER                                                                                    \
    "\t{\"otelcol.component.id\": \"test\", \"otelcol.component.kind\": \"exporter\", "            \
    "\"otelcol.signal\": \"traces\", "
#define LIMITER                                                                                    \
    "\t{\"otelcol.component.id\": \"memory_limiter\", \"otelcol.component.kind\": \"processor\", " \
    "\"otelcol.pipeline.id\": \"traces\", \"otelcol.signal\": \"traces\", "

static int ends[2];
static char lines[1 << 16];

static int set_up(void **state)
{
    (void)state;
    struct log_settings settings = log_settings_default();
    if (pipe2(ends, O_NONBLOCK) != 0)
        return -1;
    settings.fds[0] = ends[1];
    settings.has_caller = false;
    settings.is_sampled = false;
    log_configure(&settings);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct log_settings settings = log_settings_default();
    log_configure(&settings);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void forget_lines(void)
{
    while (read(ends[0], lines, sizeof(lines)) > 0) {
    }
}

/* Exactly one line was written since the last call, and this is it, but for its time. */
static void expect_line(const char *expected)
{
    ssize_t size = read(ends[0], lines, sizeof(lines) - 1);
    lines[size > 0 ? size : 0] = '\0';
    const char *tab = strchr(lines, '\t');
    if (tab == NULL)
        fail_msg("nothing was written, expected: %s", expected);
    assert_string_equal(tab + 1, expected);
}

struct interval_case {
    const char *interval;
    const char *printed;
};

static void a_retry_is_announced_with_its_interval(void **state)
{
    (void)state;
    static const struct interval_case cases[] = {
        {"100ms", "100ms"}, {"1500us", "1.5ms"},
        {"1s", "1s"},       {"4684931278ns", "4.684931278s"},
        {"60s", "1m0s"},    {"62500ms", "1m2.5s"},
        {"2h", "2h0m0s"},   {"3723s", "1h2m3s"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "exporters: {test: {retry_on_failure: {initial_interval: %s, max_interval: 3h, "
                 "max_elapsed_time: 0}}}\n" PIPELINE,
                 cases[i].interval);
        struct harness *h = harness_create(text);
        harness_exporter(h, "test")->result = RESULT_BUSY;
        forget_lines();
        harness_send_now(h, 1);
        snprintf(text, sizeof(text),
                 "info\tExporting failed. Will retry the request after interval." SPEAKER
                 "\"error\": \"back-end is busy\", \"interval\": \"%s\"}\n",
                 cases[i].printed);
        expect_line(text);
        harness_destroy(h);
    }
}

struct loss_case {
    const char *keys; /* of the exporter */
    enum test_result result;
    unsigned requests;
    const char *line; /* of the last request */
};

static const struct loss_case loss_cases[] = {
    {"", RESULT_PERMANENT, 1,
     "error\tExporting failed. Dropping data." SPEAKER
     "\"error\": \"not retryable error: back-end says no\", \"dropped_items\": 3}\n"},
    {"retry_on_failure: {initial_interval: 2s, max_interval: 2s, max_elapsed_time: 2s}",
     RESULT_HINT, 1,
     "error\tExporting failed. Dropping data." SPEAKER
     "\"error\": \"no more retries left: back-end is busy\", \"dropped_items\": 3}\n"},
    {"retry_on_failure: {enabled: false}", RESULT_BUSY, 1,
     "error\tExporting failed. Dropping data. Try enabling retry_on_failure config option to retry "
     "on retryable errors." SPEAKER "\"error\": \"back-end is busy\", \"dropped_items\": 3}\n"},
    {"sending_queue: {enabled: false}", RESULT_PERMANENT, 1,
     "error\tExporting failed. Rejecting data. Try enabling sending_queue to survive temporary "
     "failures." SPEAKER
     "\"error\": \"not retryable error: back-end says no\", \"rejected_items\": 3}\n"},
    {"sending_queue: {enabled: false}, retry_on_failure: {enabled: false}", RESULT_BUSY, 1,
     "error\tExporting failed. Rejecting data. Try enabling retry_on_failure config option to "
     "retry on retryable errors. Try enabling sending_queue to survive temporary failures." SPEAKER
     "\"error\": \"back-end is busy\", \"rejected_items\": 3}\n"},
    {"sending_queue: {queue_size: 1}", RESULT_HOLD, 2,
     "error\tExporting failed. Rejecting data." SPEAKER
     "\"error\": \"sending queue is full\", \"rejected_items\": 3}\n"},
    {"sending_queue: {queue_size: 2, sizer: items}", RESULT_OK, 1,
     "error\tExporting failed. Rejecting data." SPEAKER
     "\"error\": \"element size too large\", \"rejected_items\": 3}\n"},
};

static void a_loss_says_why_and_what_would_help(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(loss_cases) / sizeof(loss_cases[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "exporters: {test: {%s}}\n" PIPELINE, loss_cases[i].keys);
        struct harness *h = harness_create(yaml);
        harness_exporter(h, "test")->result = loss_cases[i].result;
        harness_exporter(h, "test")->hint_ns = 3 * S;
        forget_lines();
        for (unsigned j = 0; j < loss_cases[i].requests; j++)
            harness_send_now(h, 3);
        expect_line(loss_cases[i].line);
        harness_destroy(h);
    }
}

static void memory_is_reported_when_it_becomes_short_and_when_it_is_back(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {memory_limiter: {check_interval: 1s, limit_mib: 10}}\n"
        "exporters: {test: {}}\nservice: {pipelines: {traces: {receivers: [test], processors: "
        "[memory_limiter], exporters: [test]}}}\n");
    forget_lines();
    budget_take(&h->service->budget, 9 * MIB);
    harness_send_now(h, 1);
    expect_line("warn\tMemory usage is above soft limit. Refusing data." LIMITER
                "\"cur_mem_mib\": 9}\n");
    harness_send_now(h, 1);
    budget_return(&h->service->budget, 9 * MIB);
    harness_send_now(h, 1);
    expect_line("info\tMemory usage back within limits. Resuming normal operation." LIMITER
                "\"cur_mem_mib\": 0}\n");
    harness_destroy(h);
}

static void start_and_stop_are_announced(void **state)
{
    (void)state;
    struct harness *h = harness_create("exporters: {test: {}}\n" PIPELINE);
    expect_line("info\tEverything is ready. Begin running and processing data.\n");
    harness_stop(h);
    expect_line("info\tStarting shutdown...\n");
    harness_destroy(h);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(a_retry_is_announced_with_its_interval),
        LOG_TEST(a_loss_says_why_and_what_would_help),
        LOG_TEST(memory_is_reported_when_it_becomes_short_and_when_it_is_back),
        LOG_TEST(start_and_stop_are_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
