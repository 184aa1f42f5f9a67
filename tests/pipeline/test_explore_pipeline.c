/* SPDX-License-Identifier: Apache-2.0 */
/* Exporter and extension explore together: traces and profiles go in through a pipeline, and the
 * page's API says what came, over a real socket and from its own thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/component.h"
#include "tests/support/harness.h"
#include "tests/support/loopback.h"
#include "tests/support/profile_sketch.h"
#include "tests/unit/explore/span_request.h"

enum { LANES = 2, YAML_MAX = 1024, SPAN = 7 };
#define START_NS (1700000000 * S)
#define TRACE_1  "abababababababab0000000000000001"
#define TRACE_2  "abababababababab0000000000000002"
#define PIPELINES                                                                                  \
    "pipelines: {traces: {receivers: [test], exporters: [explore]}, "                              \
    "profiles: {receivers: [test], exporters: [explore]}}"

extern const struct component_factory explore_exporter_factory;
extern const struct component_factory explore_extension_factory;
static const struct component_factory *const components[] = {
    &test_receiver_factory,
    &test_exporter_factory,
    &explore_exporter_factory,
    &explore_extension_factory,
    NULL,
};

struct page {
    struct harness *harness;
    char address[32];
    struct loopback *answer; /* the last one */
};

/* The body of what the API answers; valid until the next question. */
static const char *ask(struct page *page, const char *path)
{
    char head[512];
    struct loopback *answer = loopback_connect(page->harness->lanes[0], page->address);
    if (page->answer != NULL)
        loopback_close(page->answer);
    page->answer = answer;
    snprintf(head, sizeof(head),
             "GET /api/v1/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    loopback_send(answer, head);
    loopback_expect_end(answer);
    assert_non_null(strstr(answer->text, "HTTP/1.1 200 OK\r\n"));
    const char *body = strstr(answer->text, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

static void expect(struct page *page, const char *path, const char *text)
{
    const char *body = ask(page, path);
    if (strstr(body, text) == NULL)
        fail_msg("%s: %s is not in %s", path, text, body);
}

struct wanted {
    struct page *page;
    const char *text;
};

static bool has_come(void *arg)
{
    const struct wanted *wanted = arg;
    return strstr(ask(wanted->page, "status"), wanted->text) != NULL;
}

/* The page's own thread takes what came when it has time. */
static void await_status(struct page *page, const char *text)
{
    struct wanted wanted = {.page = page, .text = text};
    harness_await(page->harness, has_come, &wanted, text);
}

static struct page *open_page(void)
{
    char yaml[YAML_MAX];
    struct page *page = mem_zalloc(sizeof(*page));
    loopback_find_port(page->address);
    snprintf(yaml, sizeof(yaml),
             "exporters: {explore: {}}\nextensions: {explore: {endpoint: \"%s\"}}\n"
             "service: {extensions: [explore], " PIPELINES "}\n",
             page->address);
    harness_set_components(components);
    page->harness = harness_create_on(yaml, LANES);
    return page;
}

static void close_page(struct page *page)
{
    if (page->answer != NULL)
        loopback_close(page->answer);
    harness_destroy(page->harness);
    harness_set_components(NULL);
    mem_free(page);
}

static void send_traces(struct page *page)
{
    static const struct test_span rows[LANES][2] = {
        {{1, SPAN, 0, "shop", "GET /cart", START_NS, 100 * MS, 0, 0, "a", 0},
         {1, SPAN + 1, SPAN, "till", "query", START_NS + 10 * MS, 50 * MS, 2, 0, NULL, 0}},
        {{2, SPAN, 0, "shop", "GET /", START_NS + S, 20 * MS, 0, 0, NULL, 0},
         {2, SPAN + 1, SPAN, "shop", "render", START_NS + S, 5 * MS, 0, 0, NULL, 0}},
    };
    for (unsigned lane = 0; lane < LANES; lane++) {
        struct buffer *request = span_request(rows[lane], 2);
        assert_non_null(harness_offer_bytes(page->harness, lane, TRACES, buffer_slice(request), 2));
        buffer_unref(request);
        await_status(page, lane == 0 ? "\"traces\":1," : "\"traces\":2,");
    }
}

static void send_profile(struct page *page)
{
    uint8_t trace_id[16];
    static const char span_id[8] = {0, 0, 0, 0, 0, 0, 0, SPAN};
    trace_id_of(1, trace_id);
    const struct sketch_sample samples[] = {
        {.stack = "parse;main",
         .values_count = 1,
         .values = {30000000},
         .trace_id = (const char *)trace_id,
         .span_id = span_id},
        {.stack = "wait;main", .values_count = 1, .values = {10000000}},
    };
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .period_type = {"cpu", "nanoseconds"},
                                           .period = 10000000,
                                           .time_ns = START_NS,
                                           .duration_ns = S,
                                           .samples_count = 2,
                                           .samples = samples};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    assert_non_null(harness_offer_bytes(page->harness, 1, PROFILES, request, 2));
    mem_free((void *)(uintptr_t)request.data);
    await_status(page, "\"samples\":2,");
}

static void what_comes_through_pipelines_is_shown(void **state)
{
    struct page *page = open_page();
    (void)state;
    expect(page, "flame?service=shop", "no profiles have come so far");
    send_traces(page);
    send_profile(page);
    for (int signal = TRACES; signal <= PROFILES; signal++) {
        struct harness_totals totals = harness_totals(page->harness, (enum signal_kind)signal);
        assert_int_equal(totals.delivered, signal == TRACES ? 4 : signal == PROFILES ? 2 : 0);
    }

    expect(page, "traces", "\"total\":2");
    expect(page, "traces?service=till", "\"total\":1");
    expect(page, "traces?service=till", "\"id\":\"" TRACE_1 "\"");
    expect(page, "traces?min=50ms", "\"id\":\"" TRACE_1 "\"");
    expect(page, "traces?max=50ms", "\"id\":\"" TRACE_2 "\"");
    expect(page, "traces?attr=key%3Da&error=1", "\"total\":1");
    expect(page, "traces?profile=1", "\"total\":1");
    expect(page, "services", "\"name\":\"till\"");
    expect(page, "traces/" TRACE_1, "\"spans\":2");
    expect(page, "traces/" TRACE_1 "/rows?from=0&count=10", "query");

    /* The span's own sample, the whole service's, and a trace without any. */
    expect(page, "flame?trace=" TRACE_1 "&span=0000000000000007",
           "\"names\":[\"all\",\"main\",\"parse\"],"
           "\"tree\":[[0,30000000,0,1],[1,30000000,0,1],[2,30000000,30000000,0]]");
    expect(page, "flame?service=shop",
           "\"names\":[\"all\",\"main\",\"parse\",\"wait\"],"
           "\"tree\":[[0,40000000,0,1],[1,40000000,0,2],[2,30000000,30000000,0],"
           "[3,10000000,10000000,0]]");
    expect(page, "flame?trace=" TRACE_2, "none has come yet for this trace");
    assert_string_equal(ask(page, "download?service=shop&format=folded"),
                        "main;parse 30000000\nmain;wait 10000000\n");
    close_page(page);
}

static void the_exporter_needs_its_extension(void **state)
{
    (void)state;
    harness_set_components(components);
    assert_true(harness_is_wrong("exporters: {explore: {}}\nservice: {" PIPELINES "}\n",
                                 "found no extension \"explore\""));
    harness_set_components(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_through_pipelines_is_shown),
        cmocka_unit_test(the_exporter_needs_its_extension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
