/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of tail_sampling one by one, with what the Go collector (0.155) decides. */
#include "tests/support/trace_sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "tests/support/harness.h"

enum { SPANS_MAX = 4, OK_STATUS = 1, ERROR_STATUS = 2, YAML_MAX = 2048 };

struct row {
    const char *policy; /* without its name */
    struct trace_resource resource;
    size_t count; /* 0: one */
    struct trace_span spans[SPANS_MAX];
    bool is_sampled;
};

#define STRING(more)    "type: string_attribute, string_attribute: {key: k, " more "}"
#define NUMERIC(more)   "type: numeric_attribute, numeric_attribute: {key: k, " more "}"
#define BOOLEAN(more)   "type: boolean_attribute, boolean_attribute: {key: k, " more "}"
#define STATE(more)     "type: trace_state, trace_state: {key: v, " more "}"
#define LATENCY(more)   "type: latency, latency: {" more "}"
#define COUNT(more)     "type: span_count, span_count: {" more "}"
#define STATUS(more)    "type: status_code, status_code: {status_codes: [" more "]}"
#define SUB(name, rest) "{name: " name ", " rest "}"
#define AND(subs)       "type: and, and: {and_sub_policy: [" subs "]}"
#define NOT(sub)        "type: not, not: {not_sub_policy: {name: n, " sub "}}"
#define OTTL(more)      "type: ottl_condition, ottl_condition: {" more "}"
#define YES             "type: always_sample"
#define NO              "type: probabilistic, probabilistic: {sampling_percentage: 0}"

static const struct row rows[] = {
    {.policy = YES, .is_sampled = true},
    {.policy = NO},
    {.policy = "type: probabilistic, probabilistic: {sampling_percentage: 100}",
     .is_sampled = true},
    {.policy = "type: probabilistic, probabilistic: {sampling_percentage: 101}",
     .is_sampled = true},
    /* OTTL */
    {.policy = OTTL("span: ['attributes[\"k\"] == \"a\"']"),
     .count = 2,
     .spans = {{.attributes = {"k=b"}}, {.attributes = {"k=a"}}},
     .is_sampled = true},
    {.policy = OTTL("span: ['span.attributes[\"k\"] == \"a\"', 'name == \"none\"']"),
     .spans = {{.attributes = {"k=b"}}}},
    {.policy = OTTL("span: ['resource.attributes[\"k\"] == \"a\"']"),
     .resource = {.attributes = {"k=a"}},
     .is_sampled = true},
    {.policy = OTTL("spanevent: ['true']"), .spans = {{.attributes = {"k=a"}}}},
    /* A condition that fails does not hold; with propagate the policy is out. */
    {.policy = OTTL("span: ['attributes[\"k\"][\"x\"] == 1', 'true']"),
     .spans = {{.attributes = {"k=a"}}},
     .is_sampled = true},
    {.policy = OTTL("error_mode: propagate, span: ['attributes[\"k\"][\"x\"] == 1', 'true']"),
     .spans = {{.attributes = {"k=a"}}}},
    {.policy = NOT(OTTL("error_mode: propagate, span: ['attributes[\"k\"][\"x\"] == 1']")),
     .spans = {{.attributes = {"k=a"}}}},
    {.policy = NOT(OTTL("error_mode: ignore, span: ['attributes[\"k\"][\"x\"] == 1']")),
     .spans = {{.attributes = {"k=a"}}},
     .is_sampled = true},
    /* What comes first counts. */
    {.policy = OTTL("error_mode: propagate, span: ['attributes[\"l\"] == 1', "
                    "'attributes[\"k\"][\"x\"] == 1']"),
     .count = 2,
     .spans = {{.attributes = {"l=#1"}}, {.attributes = {"k=a"}}},
     .is_sampled = true},
    {.policy = OTTL("error_mode: propagate, span: ['attributes[\"l\"] == 1', "
                    "'attributes[\"k\"][\"x\"] == 1']"),
     .count = 2,
     .spans = {{.attributes = {"k=a"}}, {.attributes = {"l=#1"}}}},
    /* strings */
    {.policy = STRING("values: [a, b]"), .spans = {{.attributes = {"k=b"}}}, .is_sampled = true},
    {.policy = STRING("values: [a, b]"), .spans = {{.attributes = {"k=c"}}}},
    {.policy = STRING("values: [a]"), .spans = {{.attributes = {"other=a"}}}},
    {.policy = STRING("values: [a]"), .resource = {.attributes = {"k=a"}}, .is_sampled = true},
    /* The first of two counts. */
    {.policy = STRING("values: [a]"), .spans = {{.attributes = {"k=b", "k=a"}}}},
    {.policy = STRING("values: [a]"),
     .spans = {{.attributes = {"k=a", "k=b"}}},
     .is_sampled = true},
    {.policy = STRING("values: ['']"), .spans = {{.attributes = {"k="}}}},
    {.policy = STRING("values: ['#5']"), .spans = {{.attributes = {"k=#5"}}}},
    {.policy = STRING("values: ['b+'], enabled_regex_matching: true"),
     .spans = {{.attributes = {"k=abbc"}}},
     .is_sampled = true},
    {.policy = STRING("values: ['^b'], enabled_regex_matching: true"),
     .spans = {{.attributes = {"k=abbc"}}}},
    {.policy = STRING("values: ['^$'], enabled_regex_matching: true"),
     .spans = {{.attributes = {"k="}}}},
    {.policy = STRING("values: ['^$'], enabled_regex_matching: true"),
     .resource = {.attributes = {"k="}},
     .is_sampled = true},
    {.policy = STRING("values: ['^$'], enabled_regex_matching: true"),
     .resource = {.attributes = {"k=#7"}},
     .is_sampled = true},
    {.policy = STRING("values: [a], invert_match: true"),
     .spans = {{.attributes = {"k=b"}}},
     .is_sampled = true},
    {.policy = STRING("values: [a], invert_match: true"), .is_sampled = true},
    {.policy = STRING("values: [a], invert_match: true"),
     .count = 2,
     .spans = {{.attributes = {"k=b"}}, {.attributes = {"k=a"}}}},
    {.policy = STRING("values: [a], invert_match: true"), .resource = {.attributes = {"k=a"}}},
    /* numbers */
    {.policy = NUMERIC("min_value: 5, max_value: 7"),
     .spans = {{.attributes = {"k=#5"}}},
     .is_sampled = true},
    {.policy = NUMERIC("min_value: 5, max_value: 7"),
     .spans = {{.attributes = {"k=#7"}}},
     .is_sampled = true},
    {.policy = NUMERIC("min_value: 5, max_value: 7"), .spans = {{.attributes = {"k=#8"}}}},
    {.policy = NUMERIC("min_value: 5, max_value: 7"), .spans = {{.attributes = {"k=6"}}}},
    {.policy = NUMERIC("max_value: 7"),
     .spans = {{.attributes = {"k=text"}}}, /* 0 */
     .is_sampled = true},
    {.policy = NUMERIC("min_value: 5"), .resource = {.attributes = {"k=#9"}}, .is_sampled = true},
    {.policy = NUMERIC("min_value: 5, invert_match: true"), .spans = {{.attributes = {"k=#9"}}}},
    {.policy = NUMERIC("min_value: 5, invert_match: true"), .is_sampled = true},
    /* booleans */
    {.policy = BOOLEAN("value: true"), .spans = {{.attributes = {"k=?true"}}}, .is_sampled = true},
    {.policy = BOOLEAN("value: true"), .spans = {{.attributes = {"k=?false"}}}},
    {.policy = BOOLEAN("value: true"), .spans = {{.attributes = {"k=true"}}}},
    {.policy = BOOLEAN("value: false"), .spans = {{.attributes = {"k=text"}}}, .is_sampled = true},
    {.policy = BOOLEAN("value: false")},
    {.policy = BOOLEAN("value: true, invert_match: true"), .spans = {{.attributes = {"k=?true"}}}},
    {.policy = BOOLEAN("value: true, invert_match: true"), .is_sampled = true},
    /* status, flags, trace state */
    {.policy = STATUS("ERROR"), .spans = {{.status = ERROR_STATUS}}, .is_sampled = true},
    {.policy = STATUS("ERROR"), .spans = {{.status = OK_STATUS}}},
    {.policy = STATUS("UNSET"), .is_sampled = true},
    {.policy = STATUS("OK, UNSET"), .spans = {{.status = ERROR_STATUS}}},
    {.policy = STATUS("OK"),
     .count = 2,
     .spans = {{.status = ERROR_STATUS}, {.status = OK_STATUS}},
     .is_sampled = true},
    {.policy = "type: trace_flags", .spans = {{.flags = 0x101}}, .is_sampled = true},
    {.policy = "type: trace_flags", .spans = {{.flags = 0x300}}},
    {.policy = STATE("values: [x, y]"), .spans = {{.state = "a=1,v=y"}}, .is_sampled = true},
    {.policy = STATE("values: [x, y]"), .spans = {{.state = "a=1, v=y "}}, .is_sampled = true},
    {.policy = STATE("values: [x, y]"), .spans = {{.state = "v=z"}}},
    {.policy = STATE("values: [x, y]"), .spans = {{.state = "v=y,B=1"}}}, /* no valid key */
    {.policy = STATE("values: [x, y]"), .spans = {{.state = "v=y,v=x"}}},
    {.policy = STATE("values: ['']"), .spans = {{.state = "a=1"}}},
    /* latency */
    {.policy = LATENCY("threshold_ms: 10"),
     .spans = {{.start_ms = 5, .end_ms = 15}},
     .is_sampled = true},
    {.policy = LATENCY("threshold_ms: 10"), .spans = {{.start_ms = 5, .end_ms = 14}}},
    {.policy = LATENCY("threshold_ms: 10"),
     .count = 2,
     .spans = {{.start_ms = 5, .end_ms = 6}, {.start_ms = 14, .end_ms = 15}},
     .is_sampled = true},
    {.policy = LATENCY("threshold_ms: 10, upper_threshold_ms: 20"),
     .spans = {{.start_ms = 5, .end_ms = 15}}}, /* not more than 10 */
    {.policy = LATENCY("threshold_ms: 10, upper_threshold_ms: 20"),
     .spans = {{.start_ms = 5, .end_ms = 25}},
     .is_sampled = true},
    /* Judged span by span: the first two are enough. */
    {.policy = LATENCY("threshold_ms: 10, upper_threshold_ms: 20"),
     .count = 3,
     .spans = {{.start_ms = 5, .end_ms = 6},
               {.start_ms = 20, .end_ms = 21},
               {.start_ms = 90, .end_ms = 99}},
     .is_sampled = true},
    {.policy = LATENCY("threshold_ms: 10, upper_threshold_ms: 20"),
     .count = 3,
     .spans = {{.start_ms = 5, .end_ms = 6},
               {.start_ms = 90, .end_ms = 99},
               {.start_ms = 20, .end_ms = 21}}},
    /* counts */
    {.policy = COUNT("min_spans: 2"), .count = 2, .is_sampled = true},
    {.policy = COUNT("min_spans: 2")},
    {.policy = COUNT("min_spans: 2, max_spans: 3"), .count = 4},
    {.policy = COUNT("min_spans: 2, max_spans: 3"), .count = 3, .is_sampled = true},
    {.policy = COUNT("max_spans: -1")},
    /* limits: a burst of twice the rate, and as a bound on one trace */
    {.policy = "type: rate_limiting, rate_limiting: {spans_per_second: 1}",
     .count = 2,
     .is_sampled = true},
    {.policy = "type: rate_limiting, rate_limiting: {spans_per_second: 1}", .count = 3},
    {.policy = "type: rate_limiting, rate_limiting: {spans_per_second: 1, burst_capacity: 3}",
     .count = 3,
     .is_sampled = true},
    {.policy = "type: bytes_limiting, bytes_limiting: {bytes_per_second: 1000}",
     .is_sampled = true},
    {.policy = "type: bytes_limiting, bytes_limiting: {bytes_per_second: 20}"},
    /* and, not, drop, composite */
    {.policy = AND(""), .is_sampled = true},
    {.policy = AND(SUB("a", YES) ", " SUB("b", COUNT("min_spans: 2"))),
     .count = 2,
     .is_sampled = true},
    {.policy = AND(SUB("a", YES) ", " SUB("b", COUNT("min_spans: 2")))},
    {.policy = AND(SUB("a", NOT(NO)) ", " SUB("b", YES)), .is_sampled = true},
    {.policy = NOT(YES)},
    {.policy = NOT(COUNT("min_spans: 2")), .is_sampled = true},
    {.policy = "type: drop, drop: {drop_sub_policy: [" SUB("a", NO) "]}"},
    {.policy = "type: composite, composite: {max_total_spans_per_second: 10, composite_sub_policy: "
               "[" SUB("a", YES) "], rate_allocation: [{policy: a, percent: 20}]}",
     .count = 2,
     .is_sampled = true},
    {.policy = "type: composite, composite: {max_total_spans_per_second: 10, composite_sub_policy: "
               "[" SUB("a", YES) "], rate_allocation: [{policy: a, percent: 20}]}",
     .count = 3},
    /* Without an entry there is nothing for it; 0 is an equal part. */
    {.policy = "type: composite, composite: {max_total_spans_per_second: 10, composite_sub_policy: "
               "[" SUB("a", YES) "]}"},
    {.policy = "type: composite, composite: {max_total_spans_per_second: 6, composite_sub_policy: "
               "[" SUB("a", NO) ", " SUB(
                   "b", AND(SUB("c", YES))) "], rate_allocation: [{policy: b, percent: 0}]}",
     .count = 3,
     .is_sampled = true},
    /* The first that samples ends the search, although there is no room for it. */
    {.policy =
         "type: composite, composite: {max_total_spans_per_second: 6, composite_sub_policy: "
         "[" SUB("a", YES) ", " SUB("b", YES) "], rate_allocation: [{policy: b, percent: 100}]}"},
};

static void policies_decide_as_the_go_collector(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        size_t count = row->count > 0 ? row->count : 1;
        struct trace_span spans[SPANS_MAX];
        char yaml[YAML_MAX];
        /* The second time behind a policy that keeps the first from being certain. */
        for (int waits = 0; waits < 2; waits++) {
            snprintf(yaml, sizeof(yaml),
                     "processors: {tail_sampling: {decision_wait: 1s, maximum_trace_size_bytes: "
                     "%d, policies: [{name: p, %s}]}}\n"
                     "exporters: {test: {sending_queue: {enabled: false}}}\n"
                     "service: {pipelines: {traces: {receivers: [test], processors: "
                     "[tail_sampling], exporters: [test]}}}\n",
                     waits * 1000000, row->policy);
            struct harness *h = harness_create(yaml);
            harness_exporter(h, "test")->has_own_items = true;
            for (size_t k = 0; k < count; k++) {
                spans[k] = row->spans[k];
                spans[k].trace = 7;
                spans[k].span = k + 1;
            }
            /* One request, and then each span alone. */
            if (waits == 0)
                trace_offer(h, 0, &row->resource, spans, count);
            else
                for (size_t k = 0; k < count; k++)
                    trace_offer(h, 0, &row->resource, &spans[k], 1);
            harness_advance(h, 2 * S);
            uint64_t delivered = harness_totals(h, TRACES).delivered;
            if (delivered != (row->is_sampled ? count : 0))
                fail_msg("row %zu: %s", i, row->policy);
            harness_destroy(h);
        }
    }
}

#define POLICIES(list)                                                                             \
    "processors: {tail_sampling: {decision_wait: 1s, policies: [" list "]}}\n"                     \
    "exporters: {test: {sending_queue: {enabled: false}}}\n"                                       \
    "service: {pipelines: {traces: {receivers: [test], processors: [tail_sampling], exporters: "   \
    "[test]}}}\n"

static uint64_t delivered_of(struct harness *h, unsigned spans)
{
    static uint64_t trace;
    uint64_t before = harness_totals(h, TRACES).delivered;
    trace++;
    for (unsigned i = 0; i < spans; i++)
        trace_offer(h, 0, NULL, &(struct trace_span){.trace = trace, .span = i + 1}, 1);
    harness_advance(h, S);
    harness_advance(h, S);
    return harness_totals(h, TRACES).delivered - before;
}

static void buckets_fill_again(void **state)
{
    (void)state;
    struct harness *h = harness_create(POLICIES(
        "{name: r, type: rate_limiting, rate_limiting: {spans_per_second: 1, burst_capacity: 4}}"));
    harness_exporter(h, "test")->has_own_items = true;
    assert_int_equal(delivered_of(h, 4), 4);
    assert_int_equal(delivered_of(h, 3), 0); /* 2 are there */
    assert_int_equal(delivered_of(h, 4), 4); /* 4 */
    harness_advance(h, 100 * S);
    assert_int_equal(delivered_of(h, 5), 0);
    assert_int_equal(delivered_of(h, 4), 4);
    harness_destroy(h);
}

static void composites_count_by_the_second(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        POLICIES("{name: c, type: composite, composite: {max_total_spans_per_second: 3, "
                 "composite_sub_policy: [" SUB("a", YES) "], rate_allocation: [{policy: a, "
                                                         "percent: 100}]}}"));
    harness_exporter(h, "test")->has_own_items = true;
    assert_int_equal(delivered_of(h, 3), 3);
    assert_int_equal(delivered_of(h, 2), 2);
    /* Two in one second. */
    for (uint64_t i = 0; i < 4; i++)
        trace_offer(h, 0, NULL, &(struct trace_span){.trace = 100 + i / 2, .span = i + 1}, 1);
    harness_advance(h, 2 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 7);
    harness_destroy(h);
}

/* As computed there, of 1000 ids: the first that are sampled, and how many. */
static void hashes_are_those_of_the_go_collector(void **state)
{
    static const struct {
        const char *settings;
        uint64_t first[3];
        uint64_t count;
    } expected[] = {
        {"sampling_percentage: 10", {2, 9, 26}, 98},
        {"sampling_percentage: 33.3, hash_salt: other", {3, 12, 14}, 333},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        char yaml[YAML_MAX];
        snprintf(yaml, sizeof(yaml),
                 POLICIES("{name: p, type: probabilistic, probabilistic: {%s}}"),
                 expected[i].settings);
        struct harness *h = harness_create(yaml);
        harness_exporter(h, "test")->has_own_items = true;
        uint64_t count = 0;
        for (uint64_t trace = 1; trace <= 1000; trace++) {
            uint64_t before = harness_totals(h, TRACES).delivered;
            struct trace_span span = {.trace = trace * UINT64_C(0x9e3779b97f4a7c15), .span = 1};
            trace_offer(h, 0, NULL, &span, 1);
            if (harness_totals(h, TRACES).delivered == before)
                continue;
            if (count < 3)
                assert_int_equal(trace, expected[i].first[count]);
            count++;
        }
        assert_int_equal(count, expected[i].count);
        harness_destroy(h);
    }
}

/* What conditions read of it takes several turns, in which other requests come and go. */
static void conditions_read_long_resources_in_turns(void **state)
{
    enum { SPANS = 20, TEXT_BYTES = 1 << 20 };
    (void)state;
    struct harness *h = harness_create(POLICIES(
        "{name: o, " OTTL("span: ['Len(Concat([resource.attributes[\"k\"], name], \"\")) > 5 and "
                          "attributes[\"last\"] == \"y\"']") "}"));
    harness_exporter(h, "test")->has_own_items = true;
    char *text = mem_zalloc(TEXT_BYTES);
    memset(text, 'v', TEXT_BYTES - 1);
    text[0] = 'k';
    text[1] = '=';
    struct trace_span spans[SPANS];
    for (uint64_t trace = 1; trace <= 2; trace++) {
        for (unsigned i = 0; i < SPANS; i++)
            spans[i] = (struct trace_span){.trace = trace, .span = i + 1};
        spans[SPANS - 1].attributes[0] = "last=y";
        trace_offer(h, 0, &(struct trace_resource){.attributes = {text}}, spans, SPANS);
        trace_offer(h, 0, &(struct trace_resource){.attributes = {"k=vvvvv"}}, spans, SPANS);
    }
    mem_free(text);
    harness_advance(h, 2 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 4 * SPANS);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_decide_as_the_go_collector),
        cmocka_unit_test(buckets_fill_again),
        cmocka_unit_test(composites_count_by_the_second),
        cmocka_unit_test(conditions_read_long_resources_in_turns),
        cmocka_unit_test(hashes_are_those_of_the_go_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
