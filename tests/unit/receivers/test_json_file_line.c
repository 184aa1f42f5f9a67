/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of OTLP/JSON as requests, and the attributes of their file. */
#include "receivers/otlp_json_file/json_file_line.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES };

static char given[16384]; /* each request as JSON, and a line end */
static uint64_t items;

static void give(struct batch *batch, void *arg)
{
    (void)arg;
    struct buffer *text = json_write_batch(batch, NULL);
    assert_non_null(text);
    snprintf(given + strlen(given), sizeof(given) - strlen(given), "%.*s\n", (int)text->size,
             (const char *)text->data);
    items += batch->items;
    buffer_unref(text);
    batch_unref(batch);
}

static enum json_line_result read_line(const char *line, unsigned signals, bool replaces,
                                       const struct json_file_attributes *attributes,
                                       struct budget *budget, char *reason)
{
    static const struct json_file_attributes none = {.count = 0};
    given[0] = '\0';
    items = 0;
    return json_line_read(slice_of_text(line), signals, replaces,
                          attributes != NULL ? attributes : &none, budget, give, NULL, reason);
}

#define SPANS(attributes)                                                                          \
    "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":["               \
    "{\"name\":\"a\"" attributes ",\"status\":{}}]}]}]}"
#define METRICS_LINE(metadata)                                                                     \
    "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{},\"metrics\":["         \
    "{\"name\":\"m\",\"gauge\":{\"dataPoints\":[{\"asInt\":\"1\"}]}" metadata "}]}]}]}"
#define LOGS_LINE(attributes)                                                                      \
    "{\"resourceLogs\":[{\"resource\":{},\"scopeLogs\":[{\"scope\":{},\"logRecords\":["            \
    "{\"severityText\":\"l\",\"body\":{}" attributes "}]}]}]}"
#define PROFILES_LINE                                                                              \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"values\":[\"1\"]}" \
    "]"                                                                                            \
    "}]}]}],\"dictionary\":{\"stringTable\":[\"\"]}}"
#define NAME_IS(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"

struct line_case {
    const char *line;
    unsigned signals;
    enum json_line_result result;
    unsigned items;
};

static const struct line_case lines[] = {
    {SPANS(""), ALL, JSON_LINE_READ, 1},
    {SPANS(""), SIGNAL_LOGS, JSON_LINE_READ, 0}, /* not wanted */
    {METRICS_LINE(""), ALL, JSON_LINE_READ, 1},
    {LOGS_LINE(""), ALL, JSON_LINE_READ, 1},
    {PROFILES_LINE, ALL, JSON_LINE_READ, 1},
    {"{}", ALL, JSON_LINE_READ, 0},
    {"{\"other\":[1,{\"a\":null}]}", ALL, JSON_LINE_READ, 0},
    {"{\"resourceSpans\":[]}", ALL, JSON_LINE_READ, 0},
    {"{\"resource_spans\":[{\"scope_spans\":[{\"spans\":[{}]}]}]}", ALL, JSON_LINE_READ, 1},
    {"{\"resource\\u0053pans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]}", ALL, JSON_LINE_READ, 1},
    {"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}],"
     "\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{},{}]}]}]}",
     ALL, JSON_LINE_READ, 3},
    {"", ALL, JSON_LINE_WRONG, 0},
    {"no JSON", ALL, JSON_LINE_WRONG, 0},
    {"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}]}]}]", ALL, JSON_LINE_WRONG, 0},
    {"{\"resourceSpans\":7}", ALL, JSON_LINE_WRONG, 0},
    {"{\"resourceSpans\":7}", SIGNAL_LOGS, JSON_LINE_READ, 0},
    {"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"12\"}]}]}]}", ALL,
     JSON_LINE_WRONG, 0},
};

static void lines_become_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char reason[JSON_REASON_BYTES_MAX] = "";
        enum json_line_result result =
            read_line(lines[i].line, lines[i].signals, true, NULL, NULL, reason);
        print_message("   %s %s\n", lines[i].line, reason);
        assert_int_equal(result, lines[i].result);
        assert_int_equal(items, lines[i].items);
        assert_int_equal(reason[0] != '\0', result == JSON_LINE_WRONG);
    }
}

static const struct json_file_attributes two = {
    .count = 2,
    .list = {{.key = {.data = (const uint8_t *)"file", .size = 4},
              .value = {.data = (const uint8_t *)"a.json", .size = 6}},
             {.key = {.data = (const uint8_t *)"k", .size = 1},
              .value = {.data = (const uint8_t *)"new", .size = 3}}},
};
#define BOTH NAME_IS("file", "a.json") "," NAME_IS("k", "new")

/* As in the Go collector: put into a map, so that a key that is there gets the value. */
static const struct {
    const char *line;
    const char *result;
} edits[] = {
    {SPANS(""), SPANS(",\"attributes\":[" BOTH "]")},
    {SPANS(",\"attributes\":[" NAME_IS("x", "y") "]"),
     SPANS(",\"attributes\":[" NAME_IS("x", "y") "," BOTH "]")},
    {SPANS(",\"attributes\":[" NAME_IS("k", "old") "," NAME_IS("x", "y") "]"),
     SPANS(",\"attributes\":[" NAME_IS("k", "new") "," NAME_IS("x", "y") "," NAME_IS(
         "file", "a.json") "]")},
    {SPANS(",\"attributes\":[" NAME_IS("k", "1") "," NAME_IS("k", "2") "]"),
     SPANS(",\"attributes\":[" NAME_IS("k", "new") "," NAME_IS("k", "2") "," NAME_IS(
         "file", "a.json") "]")},
    {METRICS_LINE(""), METRICS_LINE(",\"metadata\":[" BOTH "]")},
    {LOGS_LINE(""), LOGS_LINE(",\"attributes\":[" BOTH "]")},
};

static void records_get_the_attributes_of_their_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        char reason[JSON_REASON_BYTES_MAX];
        char expected[2048];
        assert_int_equal(read_line(edits[i].line, ALL, true, &two, NULL, reason), JSON_LINE_READ);
        snprintf(expected, sizeof(expected), "%s\n", edits[i].result);
        assert_string_equal(given, expected);
    }
    char reason[JSON_REASON_BYTES_MAX];
    assert_int_equal(read_line(PROFILES_LINE, ALL, true, &two, NULL, reason), JSON_LINE_READ);
    assert_null(strstr(given, "a.json"));
}

static void bytes_that_are_no_utf8_are_replaced(void **state)
{
    char reason[JSON_REASON_BYTES_MAX];
    (void)state;
    assert_int_equal(read_line("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":"
                               "[{\"severityText\":\"a\xff"
                               "b\"}]}]}]}",
                               ALL, true, NULL, NULL, reason),
                     JSON_LINE_READ);
    assert_non_null(strstr(given, "a\xef\xbf\xbd"
                                  "b"));
}

static void a_full_budget_delays_and_a_small_one_refuses(void **state)
{
    struct budget budget;
    char reason[JSON_REASON_BYTES_MAX];
    (void)state;
    budget_init(&budget, 1 << 20);
    assert_true(budget_try_take(&budget, 1 << 20));
    assert_int_equal(read_line(SPANS(""), ALL, true, &two, &budget, reason), JSON_LINE_NO_MEMORY);
    budget_return(&budget, 1 << 20);
    assert_int_equal(read_line(SPANS(""), ALL, true, &two, &budget, reason), JSON_LINE_READ);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    /* Each record repeats the attribute. */
    enum { SPANS_MAX = 2000, VALUE_BYTES = 4000, LINE_BYTES = SPANS_MAX * 3 + 100 };
    static char value[VALUE_BYTES];
    static char line[LINE_BYTES];
    memset(value, 'v', sizeof(value));
    struct json_file_attributes large = {.count = 1, .list = {{.key = slice_of("k", 1)}}};
    large.list[0].value = slice_of(value, sizeof(value));
    strcpy(line, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{}");
    for (int i = 1; i < SPANS_MAX; i++)
        strcat(line, ",{}");
    strcat(line, "]}]}]}");
    budget_init(&budget, 1 << 20);
    assert_int_equal(read_line(line, ALL, true, &large, &budget, reason), JSON_LINE_WRONG);
    assert_non_null(strstr(reason, "memory budget"));
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void drop(struct batch *batch, void *arg)
{
    (void)arg;
    batch_unref(batch);
}

static void every_allocation_may_fail(void **state)
{
    static const char *const some[] = {SPANS(""), METRICS_LINE(""), LOGS_LINE(""), PROFILES_LINE};
    char reason[JSON_REASON_BYTES_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        uint64_t before = mem_tries();
        assert_int_equal(read_line(some[i], ALL, true, &two, NULL, reason), JSON_LINE_READ);
        uint64_t tries = mem_tries() - before;
        for (uint64_t n = 1; n <= tries; n++) {
            mem_refuse_nth(n);
            struct json_file_attributes none = {.count = 0};
            enum json_line_result result =
                json_line_read(slice_of_text(some[i]), ALL, true, i % 2 == 0 ? &two : &none, NULL,
                               drop, NULL, reason);
            mem_refuse_nth(0);
            assert_true(result == JSON_LINE_NO_MEMORY || result == JSON_LINE_READ);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_requests),
        cmocka_unit_test(records_get_the_attributes_of_their_file),
        cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(a_full_budget_delays_and_a_small_one_refuses),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
