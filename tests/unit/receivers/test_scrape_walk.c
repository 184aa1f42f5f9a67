/* SPDX-License-Identifier: Apache-2.0 */
/* Scrapes of the prometheus receiver, from a body to a request: samples into data points, labels,
 * series that end, limits, failures. What is expected was recorded from the Go collector 0.155. */
#include "receivers/prometheus/scrape_walk.h"
#include "receivers/scrape/scrape_duration.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/otlp/metrics/metric_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TIME_MS = 1000, LINES_BYTES = 65536 };

static struct budget budget;
static struct codec_box *codecs;
static struct relabel_labels labels;
static struct scrape_memory memory;
static struct scrape_global_config global;
static struct scrape_job_config config;
static struct scrape_job *job;
static struct scrape_target *target;
static struct scrape_walk walk;
static char lines[LINES_BYTES]; /* of the last scrape: a line for each data point */
static size_t lines_size;
static bool is_end; /* of the next scrape */

static int set_up(void **state)
{
    (void)state;
    budget_init(&budget, UINT64_MAX);
    codecs = codec_box_create(&budget);
    relabel_labels_init(&labels);
    scrape_memory_init(&memory, &budget);
    const struct scrape_limits_config unset = {.interval = "", .timeout = ""};
    global = (struct scrape_global_config){.limits = unset};
    config = (struct scrape_job_config){
        .job_name = "app",
        .limits = unset,
        .honor_timestamps = true,
        .fallback_protocol = "",
        .metrics_path = "/metrics",
        .http = {.bearer_token = "", .bearer_token_file = "", .proxy_url = ""},
    };
    return 0;
}

static void open_target(void)
{

    struct error error = {.text = ""};
    job = scrape_job_create(&global, &config, &error);
    assert_string_equal(error.text, "");
    const struct prometheus_label env = {.name = slice_of_text("env"),
                                         .value = slice_of_text("test")};
    target =
        scrape_target_create(&job->start, slice_of_text("shop:80"), &env, 1, &labels, NULL, &error);
    assert_non_null(target);
}

static int tear_down(void **state)
{
    (void)state;
    scrape_target_unref(target);
    scrape_job_destroy(job);
    target = NULL;
    job = NULL;
    scrape_memory_fini(&memory);
    relabel_labels_fini(&labels);
    codec_box_destroy(codecs);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lines_size +=
        (size_t)vsnprintf(lines + lines_size, LINES_BYTES - lines_size, format, arguments);
    va_end(arguments);
    assert_true(lines_size < LINES_BYTES);
}

static struct slice field_of(struct slice message, uint32_t number)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice bytes;
    return metric_items_next(&items, &bytes) ? bytes : (struct slice){.size = 0};
}

static void put_attributes(struct slice message, uint32_t number)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice pair;
    while (metric_items_next(&items, &pair)) {
        struct slice key = field_of(pair, 1);
        struct slice value = field_of(field_of(pair, 2), 1);
        put(" %.*s=%.*s", (int)key.size, (const char *)key.data, (int)value.size,
            (const char *)value.data);
    }
}

static void put_point(const struct metric *metric, struct slice bytes)
{
    struct metric_point point = metric_point_read(metric->kind, bytes);
    put("%.*s", (int)metric->name.size, (const char *)metric->name.data);
    put_attributes(bytes, metric_point_attributes(metric->kind));
    if (point.time_ns != (uint64_t)TIME_MS * 1000000)
        put(" @%llu", (unsigned long long)point.time_ns);
    if (point.start_ns != 0)
        put(" since %llu", (unsigned long long)point.start_ns);
    if (point.is_absent)
        put(" ended");
    else if (metric->kind == METRIC_HISTOGRAM || metric->kind == METRIC_SUMMARY)
        put(" count %llu sum %g", (unsigned long long)point.count, point.sum);
    else
        put(" %g", metric_point_value(&point));
    if (metric->kind == METRIC_HISTOGRAM) {
        struct metric_numbers counts = metric_counts(&point);
        uint64_t count;
        while (metric_numbers_next(&counts, &count))
            put(" %llu", (unsigned long long)count);
    }
    put("\n");
}

/* Scrapes the body and writes a line for each point of the request. */
static void scrape(const char *body)
{
    walk = (struct scrape_walk){
        .job = job,
        .target = target,
        .external_labels = &global.external_labels,
        .memory = &memory,
        .labels = &labels,
        .codecs = codecs,
        .budget = &budget,
        .body = slice_of_text(body != NULL ? body : ""),
        .protocol = EXPOSITION_PROTOCOL_TEXT,
        .time_ms = TIME_MS,
        .is_end = is_end,
    };
    if (body == NULL && !is_end)
        snprintf(walk.failure, sizeof(walk.failure), "connection refused");
    lines_size = 0;
    scrape_walk_run(&walk);
    assert_non_null(walk.request);
    struct metric_items resources = metric_items_of(buffer_slice(walk.request), 1);
    struct slice resource;
    while (metric_items_next(&resources, &resource)) {
        struct slice metric_bytes;
        put("resource");
        put_attributes(field_of(resource, 1), 1);
        put("\n");
        struct metric_items metrics = metric_items_of(field_of(resource, 2), 2);
        while (metric_items_next(&metrics, &metric_bytes)) {
            struct metric metric = metric_read(metric_bytes);
            struct metric_items points = metric_items_of(metric.data, 1);
            struct slice point;
            while (metric_items_next(&points, &point))
                put_point(&metric, point);
        }
    }
    buffer_unref(walk.request);
}

static bool has(const char *line)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    bool is_there =
        strstr(lines, whole) != NULL || strncmp(lines, whole + 1, strlen(line) + 1) == 0;
    if (!is_there)
        print_message("missing: %s\n%s", line, lines);
    return is_there;
}

static void samples_of_a_family_become_points(void **state)
{
    (void)state;
    open_target();
    scrape("# TYPE req counter\nreq{code=\"200\"} 7\nreq{code=\"400\",job=\"x\"} 2 5000\n"
           "# TYPE lat histogram\nlat_bucket{le=\"1\"} 3\nlat_bucket{le=\"+Inf\"} 5\nlat_sum 9\n"
           "lat_count 5\n# TYPE rpc summary\nrpc{quantile=\"0.5\"} 4\nrpc_sum 8\nrpc_count 2\n"
           "free 1\ntarget_info{version=\"2\"} 1\n");
    assert_true(has("resource service.name=app server.address=shop service.instance.id=shop:80 "
                    "server.port=80 url.scheme=http env=test version=2"));
    assert_true(has("req code=200 env=test 7"));
    assert_true(has("req code=400 env=test exported_job=x @5000000000 2"));
    assert_true(has("lat env=test count 5 sum 9 3 2"));
    assert_true(has("rpc env=test count 2 sum 8"));
    assert_true(has("free env=test 1"));
    assert_true(has("up env=test 1"));
    assert_true(has("scrape_samples_scraped env=test 11"));
    assert_true(has("scrape_samples_post_metric_relabeling env=test 11"));
    assert_true(has("scrape_series_added env=test 11"));
}

static void series_that_are_gone_end_once(void **state)
{
    (void)state;
    open_target();
    scrape("# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\nb 3 7000\n");
    scrape("# TYPE a gauge\na{x=\"2\"} 2\n");
    assert_true(has("a env=test x=1 ended"));
    assert_true(has("a env=test x=2 2"));
    assert_null(strstr(lines, "b env"));
    assert_true(has("scrape_series_added env=test 0"));
    scrape(NULL);
    assert_true(has("a env=test x=2 ended"));
    assert_null(strstr(lines, "x=1"));
    assert_true(has("up env=test 0"));
    scrape(NULL);
    assert_null(strstr(lines, "ended"));
}

static void all_ends_with_the_target(void **state)
{
    (void)state;
    open_target();
    scrape("# TYPE a gauge\na{x=\"1\"} 1\nb 3 7000\n");
    is_end = true;
    scrape(NULL);
    is_end = false;
    assert_true(has("a env=test x=1 ended"));
    assert_true(has("up env=test ended"));
    assert_true(has("scrape_duration_seconds env=test ended"));
    assert_true(has("scrape_series_added env=test ended"));
    assert_null(strstr(lines, "b env"));
    assert_string_equal(walk.failure, "");
}

static void a_broken_body_gives_no_samples(void **state)
{
    (void)state;
    open_target();
    scrape("a 1\nb 2\n");
    scrape("a 1\nc 2\nbroken{\n");
    assert_non_null(strstr(walk.failure, "line 3"));
    assert_true(has("up env=test 0"));
    assert_true(has("b env=test ended"));
    assert_null(strstr(lines, "a env"));
    assert_true(has("scrape_samples_scraped env=test 2"));
    /* What it had before the failure ends with the next scrape. */
    scrape("a 1\n");
    assert_true(has("c env=test ended"));
    assert_true(has("a env=test 1"));
}

static void limits_fail_the_scrape(void **state)
{
    (void)state;
    config.limits.samples_max = 2;
    config.limits.labels_max = 4;
    open_target();
    scrape("a 1\nb 2\nc 3\nd 4\n");
    assert_non_null(strstr(walk.failure, "sample_limit"));
    assert_true(has("scrape_samples_scraped env=test 4"));
    assert_true(has("scrape_samples_post_metric_relabeling env=test 4"));
    scrape("a{x=\"1\"} 1\n");
    assert_non_null(strstr(walk.failure, "label_limit"));
    scrape("a 1\na 2\n");
    assert_string_equal(walk.failure, "");
    assert_int_equal(walk.duplicates, 1);
    assert_true(has("a env=test 1"));
}

static void labels_are_changed_by_rules_and_honored(void **state)
{
    (void)state;
    static const char *const name[] = {"__name__"};
    struct scrape_relabel_config rules[] = {
        {.source_labels = {.count = 1, .texts = name},
         .separator = ";",
         .regex = "go_.*",
         .target_label = "",
         .replacement = "$1",
         .action = "drop"},
        {.separator = ";",
         .regex = "secret",
         .target_label = "",
         .replacement = "$1",
         .action = "labeldrop"},
    };
    config.metric_relabel_configs = (struct config_sections){.count = 2, .items = rules};
    config.honor_labels = true;
    open_target();
    scrape("go_threads 4\na{secret=\"x\",env=\"own\"} 1\n");
    assert_null(strstr(lines, "go_threads"));
    assert_true(has("a env=own 1"));
    assert_true(has("scrape_samples_scraped env=test 2"));
    assert_true(has("scrape_samples_post_metric_relabeling env=test 1"));
}

/* A hundred times the same: the memory of what was there does not grow. */
static void memory_stays_as_it_is(void **state)
{
    (void)state;
    char body[8192] = "";
    size_t size = 0;
    open_target();
    for (int i = 0; i < 100; i++)
        size += (size_t)snprintf(body + size, sizeof(body) - size, "a{x=\"%d\"} %d\n", i, i);
    scrape(body);
    uint64_t used = budget_used(&budget);
    for (int i = 0; i < 100; i++) {
        char broken[64];
        snprintf(broken, sizeof(broken), "new{x=\"%d\"} 1\n{\n", i);
        scrape(i % 2 == 0 ? body : broken);
    }
    scrape(body);
    assert_true(budget_used(&budget) <= 2 * used);
}

/* The most that the budget was charged with while the body was read. */
static uint64_t charged_for(const char *body)
{
    atomic_store(&budget.high_water, budget_used(&budget));
    scrape(body);
    return budget.high_water - budget_used(&budget);
}

/* What is made in passing: escapes that are read, boundaries that are sorted. */
static void memory_in_passing_is_charged(void **state)
{
    (void)state;
    enum { BOUNDS = 500, BOUND_BYTES = 24, VALUE_BYTES = 30000, BODY_BYTES = 40000 };
    static char body[BODY_BYTES];
    uint64_t charged[2];
    open_target();
    for (int i = 0; i < 2; i++) {
        size_t size = (size_t)snprintf(body, sizeof(body), "# TYPE h histogram\n");
        for (int k = 0; k < BOUNDS; k++)
            size += (size_t)snprintf(body + size, sizeof(body) - size, "h_bucket{le=\"%d\"} 1\n",
                                     i == 0 ? 1000 + k : 1000 + BOUNDS - k);
        snprintf(body + size, sizeof(body) - size, "h_bucket{le=\"+Inf\"} 1\n");
        (void)charged_for(body);
        charged[i] = charged_for(body);
    }
    assert_true(charged[1] >= charged[0] + (uint64_t)BOUNDS * BOUND_BYTES);
    for (int i = 0; i < 2; i++) {
        snprintf(body, sizeof(body), "a{b=\"%s%*s\"} 1\n{\n", i == 0 ? "xx" : "\\\\", VALUE_BYTES,
                 "");
        (void)charged_for(body);
        charged[i] = charged_for(body);
    }
    assert_true(charged[1] >= charged[0] + VALUE_BYTES);
}

/* A response is bounded by body_size_limit, and by how much gzip makes of it. */
static void compressed_responses_are_bounded(void **state)
{
    (void)state;
    enum { PLAIN_BYTES = 22 << 20, LIMIT = 1 << 20, TEXT_BYTES = 10 };
    static const struct {
        uint64_t bytes_max;
        size_t plain_bytes;
        const char *failure;
        int64_t body_bytes;
    } cases[] = {
        {UINT64_MAX, TEXT_BYTES, "", 0},
        {UINT64_MAX, PLAIN_BYTES,
         " inflates to more than 20971520, expected no more than 200 times its size", 0},
        {LIMIT, PLAIN_BYTES,
         "body_size_limit exceeded: the response inflates to more than 1048576 bytes", -1},
    };
    struct buffer *plain = buffer_create(NULL, PLAIN_BYTES);
    assert_true(codec_prepare(CODEC_GZIP, &(struct error){.text = ""}));
    memset(plain->data, '\n', PLAIN_BYTES);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct batch_part part = {.bytes = slice_of(plain->data, cases[i].plain_bytes)};
        const struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        struct buffer *coded;
        struct buffer *body = NULL;
        assert_int_equal(codec_deflate(codecs, CODEC_GZIP, &input, &coded), CODEC_OK);
        walk = (struct scrape_walk){.codecs = codecs};
        bool is_inflated =
            scrape_walk_inflate(&walk, buffer_slice(coded), cases[i].bytes_max, &body);
        assert_int_equal(is_inflated, i == 0);
        assert_int_equal(walk.body_bytes, cases[i].body_bytes);
        assert_non_null(strstr(walk.failure, cases[i].failure));
        if (is_inflated)
            assert_int_equal(body->size, cases[i].plain_bytes);
        buffer_unref(body);
        buffer_unref(coded);
    }
    buffer_unref(plain);
}

static void durations_are_those_of_prometheus(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
        const char *printed;
    } rows[] = {{"15s", 15000, "15s"},         {"1m30s", 90000, "1m30s"}, {"500ms", 500, "500ms"},
                {"1d12h", 129600000, "1d12h"}, {"2w", 1209600000, "2w"},  {"0", 0, "0s"},
                {"1y", 31536000000, "1y"},     {"90m", 5400000, "1h30m"}};
    static const char *const wrong[] = {"", "15", "s", "1.5s", "1s1m", "1s1s", "-1s", "1us"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ns;
        char text[SCRAPE_DURATION_BYTES_MAX];
        assert_true(scrape_duration_parse(rows[i].text, &ns));
        assert_int_equal(ns, rows[i].ms * 1000000);
        scrape_duration_print(ns, text);
        assert_string_equal(text, rows[i].printed);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint64_t ns;
        assert_false(scrape_duration_parse(wrong[i], &ns));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_ends_with_the_target),
        TEST(samples_of_a_family_become_points),
        TEST(series_that_are_gone_end_once),
        TEST(a_broken_body_gives_no_samples),
        TEST(limits_fail_the_scrape),
        TEST(labels_are_changed_by_rules_and_honored),
        TEST(memory_stays_as_it_is),
        TEST(memory_in_passing_is_charged),
        TEST(compressed_responses_are_bounded),
        TEST(durations_are_those_of_prometheus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
