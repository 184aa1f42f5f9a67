/* SPDX-License-Identifier: Apache-2.0 */
/* tail_sampling in a pipeline on the fake clock: what waits how long, what goes on, and what is
 * counted. Policies one by one are in tests/unit/processors. */
#include "tests/support/trace_sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "processors/tail_sampling/tail_split.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/harness.h"
#include "tests/support/pumps.h"
#include "tests/support/telemetry_bytes.h"

#define TAIL(options, policies)                                                                    \
    "processors: {tail_sampling: {" options "policies: [" policies "]}}\n"                         \
    "exporters: {test: {sending_queue: {enabled: false}}}\n"                                       \
    "service: {pipelines: {traces: {receivers: [test], processors: [tail_sampling], exporters: "   \
    "[test]}}}\n"
#define ALWAYS "{name: all, type: always_sample}"
#define ERRORS "{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}"
#define SLOW   "{name: slow, type: latency, latency: {threshold_ms: 100}}"
#define NEVER  "{name: none, type: probabilistic, probabilistic: {sampling_percentage: 0}}"
#define LAST   "{name: last, type: span_count, span_count: {min_spans: 1, max_spans: 9}}"
#define BUSY   "{name: busy, type: rate_limiting, rate_limiting: {spans_per_second: 2}}"

enum { ERROR_STATUS = 2 };

static struct harness *start(const char *yaml)
{
    struct harness *h = harness_create(yaml);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    exporter->has_own_items = true;
    return h;
}

static void assert_held(struct harness *h, const char *expected)
{
    char *held = trace_held(harness_exporter(h, "test"));
    assert_string_equal(held, expected);
    free(held);
}

/* The value of the first series on the metrics page whose name and labels contain the text, or -1.
 */
static long metric(struct harness *h, const char *text)
{
    char *page = harness_metrics(h);
    long value = -1;
    for (char *line = strtok(page, "\n"); line != NULL && value < 0; line = strtok(NULL, "\n"))
        if (line[0] != '#' && strstr(line, text) != NULL)
            value = strtol(strrchr(line, ' ') + 1, NULL, 10);
    free(page);
    return value;
}

#define METRIC "otelcol_processor_tail_sampling_"

static void send_one(struct harness *h, struct trace_span span)
{
    trace_offer(h, 0, NULL, &span, 1);
}

static void a_trace_is_decided_when_its_wait_is_over(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 3s, ", BUSY));
    harness_advance(h, 500 * MS);
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    harness_advance(h, 2 * S);
    send_one(h, (struct trace_span){.trace = 1, .span = 2, .parent = 1});
    send_one(h, (struct trace_span){.trace = 2, .span = 3});
    assert_int_equal(harness_totals(h, TRACES).in_flight, 3);
    assert_int_equal(metric(h, METRIC "new_trace_id_received"), 2);
    harness_advance(h, 1499 * MS);
    assert_held(h, "");
    harness_advance(h, MS); /* 4 s: the tick that begins 3 s after that of its first span */
    assert_held(h, "1:1/1:2");
    harness_advance(h, 1999 * MS);
    assert_held(h, "1:1/1:2");
    harness_advance(h, MS);
    assert_held(h, "1:1/1:2|2:3");
    assert_int_equal(metric(h, METRIC "count_traces_sampled{decision=\"sampled\",policy=\"busy\""),
                     2);
    assert_int_equal(metric(h, METRIC "global_count_traces_sampled{decision=\"sampled\""), 2);
    assert_int_equal(metric(h, METRIC "sampling_traces_on_memory"), 2);
    harness_destroy(h);
}

/* With a name of its own the processor shows in its policies' labels. */
static void metrics_name_the_processor_of_a_policy(void **state)
{
    (void)state;
    struct harness *h =
        start("processors: {tail_sampling/late: {decision_wait: 1s, policies: [" BUSY "]}}\n"
              "exporters: {test: {sending_queue: {enabled: false}}}\n"
              "service: {pipelines: {traces: {receivers: [test], processors: [tail_sampling/late], "
              "exporters: [test]}}}\n");
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    harness_advance(h, 2 * S);
    assert_int_equal(metric(h,
                            METRIC "count_traces_sampled{decision=\"sampled\",policy=\"late.busy\","
                                   "processor=\"tail_sampling/late\",sampled=\"true\"}"),
                     1);
    assert_int_equal(metric(h, METRIC "sampling_policy_execution_count{policy=\"late.busy\""), 1);
    harness_destroy(h);
}

static void conditions_remember_what_came_first(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, ",
                                   "{name: a, type: ottl_condition, ottl_condition: {error_mode: "
                                   "propagate, span: ['attributes[\"l\"] == 1', "
                                   "'attributes[\"k\"][\"x\"] == 1']}}, " ERRORS));
    const struct trace_span matches = {.trace = 1, .span = 1, .attributes = {"l=#1"}};
    const struct trace_span fails = {.trace = 1, .span = 2, .attributes = {"k=a"}};
    struct trace_span span = matches;
    send_one(h, span);
    send_one(h, fails);
    span = fails;
    span.trace = 2;
    send_one(h, span);
    span = matches;
    span.trace = 2;
    send_one(h, span);
    harness_advance(h, 2 * S);
    assert_held(h, "1:1|1:2");
    harness_destroy(h);
}

static void fractions_of_seconds_do_not_count(void **state)
{
    static const char *const waits[] = {"decision_wait: 10ms, ", "decision_wait: 1900ms, ",
                                        "decision_wait: -5s, "};
    (void)state;
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml), TAIL("%s", BUSY), waits[i]);
        struct harness *h = start(yaml);
        send_one(h, (struct trace_span){.trace = 1, .span = 1});
        harness_advance(h, 1999 * MS);
        assert_held(h, "");
        harness_advance(h, MS);
        assert_held(h, "1:1");
        harness_destroy(h);
    }
}

static void a_request_is_taken_apart_by_trace(void **state)
{
    static const struct trace_resource resource = {.attributes = {"service.name=shop"},
                                                   .schema = "https://example.org/1"};
    static const struct trace_span spans[] = {
        {.trace = 1, .span = 1, .scope = "a"}, {.trace = 2, .span = 2, .scope = "a"},
        {.trace = 1, .span = 3, .scope = "a"}, {.trace = 2, .span = 4, .scope = "b"},
        {.trace = 3, .span = 5, .scope = "c"}, {.trace = 1, .span = 6, .scope = "c"},
    };
    static const size_t parts[3][3] = {{0, 2, 5}, {1, 3}, {4}};
    static const size_t sizes[3] = {3, 2, 1};
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, ", BUSY ", " ALWAYS));
    struct test_exporter *exporter = harness_exporter(h, "test");
    trace_offer(h, 0, &resource, spans, sizeof(spans) / sizeof(spans[0]));
    assert_held(h, "1:1 1:3 1:6/2:2 2:4/3:5");
    /* As if each trace had been sent alone, schema URLs included. */
    size_t expected = 0;
    for (size_t i = 0; i < 3; i++) {
        struct trace_span own[3];
        for (size_t k = 0; k < sizes[i]; k++)
            own[k] = spans[parts[i][k]];
        struct slice alone = trace_sketch(&resource, own, sizes[i]);
        expected += alone.size;
        mem_free((void *)(uintptr_t)alone.data);
    }
    /* The sketch pads its lengths. */
    assert_int_equal(exporter->held_count, 1);
    assert_true(exporter->held[0].batch->bytes <= expected);
    assert_true(exporter->held[0].batch->bytes + sizeof(sizes) >= expected);
    harness_destroy(h);
}

/* Traces that are decided at the same time go on in their order, in few messages. */
static void traces_share_messages_that_are_not_large(void **state)
{
    enum { TRACES_COUNT = 600, LARGE = 5, TEXT = 100000 };
    static struct trace_span spans[TRACES_COUNT];
    static const uint64_t items[] = {256, 256, 88, 3, 2};
    char *text = mem_alloc(TEXT + 1);
    (void)state;
    memset(text, 'x', TEXT);
    memcpy(text, "k=", 2);
    text[TEXT] = '\0';
    /* At the decision, and at once. */
    for (unsigned i = 0; i < 2; i++) {
        struct harness *h = start(i == 0 ? TAIL("decision_wait: 1s, ", LAST) : TAIL("", ALWAYS));
        struct test_exporter *exporter = harness_exporter(h, "test");
        for (uint64_t k = 0; k < TRACES_COUNT; k++)
            spans[k] = (struct trace_span){.trace = 1 + k, .span = 1 + k};
        trace_offer(h, 0, NULL, spans, TRACES_COUNT);
        for (uint64_t k = 0; k < LARGE; k++)
            spans[k] = (struct trace_span){
                .trace = 1 + TRACES_COUNT + k, .span = 1 + k, .attributes = {text}};
        if (i == 0)
            harness_advance(h, 2 * S);
        trace_offer(h, 0, NULL, spans, LARGE);
        harness_advance(h, 2 * S);
        assert_int_equal(exporter->held_count, sizeof(items) / sizeof(items[0]));
        uint64_t trace = 1;
        for (size_t k = 0; k < exporter->held_count; k++) {
            char *words = trace_words(exporter->held[k].batch);
            unsigned count = 0;
            for (char *word = strtok(words, "/"); word != NULL; word = strtok(NULL, "/"), count++)
                assert_int_equal(strtoul(word, NULL, 10), trace++);
            free(words);
            assert_int_equal(count, items[k]);
            assert_int_equal(exporter->held[k].batch->items, items[k]);
        }
        harness_destroy(h);
    }
    mem_free(text);
}

/* A trace of one request with so many Resource… messages, of one span each. */
static void offer_fragments(struct harness *h, unsigned count, size_t text_bytes)
{
    char *text = mem_alloc(text_bytes + 1);
    memset(text, 'x', text_bytes);
    memcpy(text, "k=", 2);
    text[text_bytes] = '\0';
    const struct trace_span span = {.trace = 1, .span = 1, .attributes = {text}};
    struct slice one = trace_sketch(NULL, &span, 1);
    uint8_t *all = mem_alloc(count * one.size);
    for (unsigned i = 0; i < count; i++)
        memcpy(all + i * one.size, one.data, one.size);
    harness_offer_bytes(h, 0, TRACES, slice_of(all, count * one.size), count);
    mem_free(all);
    mem_free((void *)(uintptr_t)one.data);
    mem_free(text);
}

/* As it is, and as copies with the policy's name. */
static void a_large_trace_goes_on_in_several_messages(void **state)
{
    static const struct {
        unsigned fragments;
        size_t text_bytes;
        uint64_t items[4]; /* of the messages; then 0 */
    } rows[] = {
        {10000, 8, {4096, 4096, 1808}},
        {9, 1 << 20, {4, 4, 1}},
        {4096, 8, {4096}},
    };
    static const char *const gates[] = {NULL, "processor.tailsamplingprocessor.recordpolicy"};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned k = 0; k < 2; k++) {
            harness_set_gates(gates[k]);
            struct harness *h =
                start(TAIL("decision_wait: 1s, maximum_trace_size_bytes: 1000000000, ", ALWAYS));
            const struct test_exporter *exporter = harness_exporter(h, "test");
            offer_fragments(h, rows[i].fragments, rows[i].text_bytes);
            harness_advance(h, 2 * S);
            size_t messages = 0;
            for (; rows[i].items[messages] > 0; messages++) {
                assert_true(messages < exporter->held_count);
                assert_int_equal(exporter->held[messages].batch->items, rows[i].items[messages]);
            }
            assert_int_equal(exporter->held_count, messages);
            harness_destroy(h);
        }
    }
    harness_set_gates(NULL);
}

/* While the next stage is busy, what is left of it waits, and then goes on. */
static void the_rest_of_a_large_trace_waits_for_the_next_stage(void **state)
{
    enum { FRAGMENTS = 100000 };
    (void)state;
    struct harness *h =
        start(TAIL("decision_wait: 1s, maximum_trace_size_bytes: 1000000000, ", ALWAYS));
    const struct test_exporter *exporter = harness_exporter(h, "test");
    offer_fragments(h, FRAGMENTS, 8);
    harness_advance(h, 2 * S);
    assert_int_equal(exporter->held_count, 16); /* DOWNSTREAM_BATCHES_MAX */
    send_one(h, (struct trace_span){.trace = 2, .span = 1});
    harness_advance(h, 2 * S);
    assert_int_equal(exporter->held_count, 16);
    harness_stop(h);
    harness_let_go(h);
    harness_advance(h, S);
    assert_true(h->has_stopped);
    assert_int_equal(harness_totals(h, TRACES).delivered, FRAGMENTS + 1);
    harness_destroy(h);
}

static void what_cannot_change_is_not_waited_for(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 5s, ", ERRORS ", " BUSY));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    assert_held(h, "");
    send_one(h, (struct trace_span){.trace = 1, .span = 2, .status = ERROR_STATUS});
    assert_held(h, "1:1/1:2");
    send_one(h, (struct trace_span){.trace = 1, .span = 3});
    assert_held(h, "1:1/1:2|1:3");
    assert_int_equal(metric(h, METRIC "global_count_traces_sampled{decision=\"sampled\""), -1);
    harness_advance(h, 6 * S);
    assert_int_equal(metric(h, METRIC "global_count_traces_sampled{decision=\"sampled\""), 1);
    assert_int_equal(
        metric(h, METRIC "count_traces_sampled{decision=\"sampled\",policy=\"errors\""), 1);
    /* 3 spans are more than the others may have. */
    assert_int_equal(metric(h, METRIC "count_traces_sampled{decision=\"sampled\",policy=\"busy\""),
                     1);
    harness_destroy(h);
}

/* Policies that are a bit, that are the opposite of one, and that are more than a bit. */
static void the_outlook_is_that_of_all_policies(void **state)
{
    static const struct {
        const char *policies;
        const char *first; /* what has gone on after one span, and after two */
        const char *second;
    } rows[] = {
        {ERRORS ", {name: a, type: not, not: {not_sub_policy: {name: b, type: probabilistic, "
                "probabilistic: {sampling_percentage: 0}}}}",
         "1:1", "1:1|1:2"},
        {ERRORS ", {name: a, type: span_count, span_count: {min_spans: 2}}", "", "1:1/1:2"},
        {ERRORS ", {name: a, type: not, not: {not_sub_policy: " ERRORS "}}", "", ""},
        {ERRORS ", " SLOW, "", ""},
        {ERRORS ", " NEVER, "", ""},
        {ERRORS ", {name: a, type: and, and: {and_sub_policy: [{name: b, type: always_sample}, "
                "{name: c, type: always_sample}]}}",
         "1:1", "1:1|1:2"},
        {ERRORS ", {name: a, type: drop, drop: {drop_sub_policy: [{name: b, type: "
                "always_sample}]}}",
         "", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml), TAIL("decision_wait: 5s, ", "%s"), rows[i].policies);
        struct harness *h = start(yaml);
        send_one(h, (struct trace_span){.trace = 1, .span = 1});
        assert_held(h, rows[i].first);
        send_one(h, (struct trace_span){.trace = 1, .span = 2});
        assert_held(h, rows[i].second);
        harness_exporter(h, "test")->result = RESULT_OK;
        harness_destroy(h);
    }
}

static void what_will_not_be_sampled_takes_no_memory(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 5s, ", NEVER));
    struct test_request *request =
        trace_offer(h, 0, NULL, &(struct trace_span){.trace = 1, .span = 1}, 1);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 0);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 1);
    harness_advance(h, 6 * S);
    assert_held(h, "");
    assert_int_equal(metric(h, METRIC "global_count_traces_sampled{decision=\"not_sampled\""), 1);
    harness_destroy(h);
}

static void a_policy_that_may_drop_makes_all_wait(void **state)
{
    (void)state;
    struct harness *h =
        start(TAIL("decision_wait: 1s, ",
                   ALWAYS ", {name: noise, type: drop, drop: {drop_sub_policy: [{name: n, type: "
                          "boolean_attribute, boolean_attribute: {key: noise, value: true}}]}}"));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    send_one(h, (struct trace_span){.trace = 2, .span = 2});
    assert_held(h, "");
    send_one(h, (struct trace_span){.trace = 2, .span = 3, .attributes = {"noise=?true"}});
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 2);
    harness_advance(h, 2 * S);
    assert_held(h, "1:1");
    assert_int_equal(metric(h, METRIC "global_count_traces_sampled{decision=\"dropped\""), 1);
    assert_int_equal(metric(h, METRIC "count_traces_sampled{decision=\"dropped\",policy=\"noise\""),
                     1);
    assert_int_equal(metric(h, METRIC "count_traces_sampled{decision=\"sampled\",policy=\"all\""),
                     1);
    harness_destroy(h);
}

static void the_root_shortens_the_wait(void **state)
{
    (void)state;
    struct harness *h =
        start(TAIL("decision_wait: 10s, decision_wait_after_root_received: 2900ms, ", BUSY));
    send_one(h, (struct trace_span){.trace = 1, .span = 2, .parent = 1});
    harness_advance(h, 3500 * MS);
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    harness_advance(h, 2499 * MS);
    assert_held(h, "");
    harness_advance(h, MS); /* 6 s: the tick 2 s later */
    assert_held(h, "1:2/1:1");
    /* A root that comes when less is left changes nothing. */
    send_one(h, (struct trace_span){.trace = 2, .span = 2, .parent = 1});
    harness_advance(h, 9500 * MS);
    send_one(h, (struct trace_span){.trace = 2, .span = 1});
    harness_advance(h, 1500 * MS);
    assert_held(h, "1:2/1:1|2:2/2:1");
    harness_destroy(h);
}

static void beyond_num_traces_the_oldest_is_decided(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 5s, num_traces: 2, ", BUSY));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    send_one(h, (struct trace_span){.trace = 2, .span = 2});
    assert_held(h, "");
    send_one(h, (struct trace_span){.trace = 3, .span = 3});
    assert_held(h, "1:1");
    assert_int_equal(metric(h, "early_decisions{processor=\"tail_sampling\",reason=\"num_traces\""),
                     1);
    /* It is new again. */
    send_one(h, (struct trace_span){.trace = 1, .span = 4});
    assert_held(h, "1:1|2:2");
    assert_int_equal(metric(h, METRIC "new_trace_id_received"), 4);
    assert_int_equal(metric(h, METRIC "sampling_traces_on_memory"), 2);
    harness_advance(h, 6 * S);
    assert_held(h, "1:1|2:2|3:3/1:4");
    harness_destroy(h);
}

static void senders_wait_where_they_are_to_be_blocked(void **state)
{
    (void)state;
    struct harness *h =
        start(TAIL("decision_wait: 1s, num_traces: 2, block_on_overflow: true, ", BUSY));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    send_one(h, (struct trace_span){.trace = 2, .span = 2});
    struct test_request *third =
        trace_offer(h, 0, NULL, &(struct trace_span){.trace = 3, .span = 3}, 1);
    struct test_request *fourth =
        trace_offer(h, 0, NULL, &(struct trace_span){.trace = 1, .span = 4}, 1);
    assert_false(third->is_resolved);
    assert_false(fourth->is_resolved);
    harness_advance(h, 2 * S);
    assert_true(third->is_resolved);
    assert_true(fourth->is_resolved);
    assert_held(h, "1:1/2:2"); /* 3 took the place of 1 */
    harness_advance(h, 2 * S);
    assert_held(h, "1:1/2:2|3:3/1:4");
    /* Decided traces leave for new ones. */
    for (uint64_t i = 0; i < 10; i++) {
        send_one(h, (struct trace_span){.trace = 10 + i, .span = 1});
        harness_advance(h, 2 * S);
    }
    assert_int_equal(metric(h, METRIC "sampling_traces_on_memory"), 2);
    harness_destroy(h);
}

/* Many that wait are taken in turns, as one large request is. */
static void senders_that_waited_share_turns(void **state)
{
    enum { REQUESTS = 200, SPANS = 1000, TURNS_MAX = 1000 };
    /* A turn by hand may be as many as three of the loop. */
    enum { TURN_MAX = 3 * (TAIL_STEP_SPANS_MAX / SPANS + 1) };
    static struct trace_span spans[SPANS];
    struct test_request *requests[REQUESTS];
    (void)state;
    struct harness *h =
        harness_create(TAIL("decision_wait: 1s, num_traces: 1, block_on_overflow: true, ", BUSY));
    harness_exporter(h, "test")->has_own_items = true;
    for (unsigned i = 0; i < SPANS; i++)
        spans[i] = (struct trace_span){.trace = 1, .span = 1 + i};
    send_one(h, spans[0]);
    for (unsigned i = 0; i < REQUESTS; i++)
        requests[i] = trace_offer(h, 0, NULL, spans, SPANS);
    assert_false(requests[0]->is_resolved);
    clock_fake_advance(2 * S);
    unsigned before = 0;
    for (unsigned turn = 0; before < REQUESTS && turn < TURNS_MAX; turn++) {
        unsigned resolved = 0;
        lane_turn(h->lanes[0]);
        for (unsigned i = 0; i < REQUESTS; i++)
            resolved += requests[i]->is_resolved;
        assert_true(resolved - before <= TURN_MAX);
        before = resolved;
    }
    assert_int_equal(before, REQUESTS);
    harness_destroy(h);
}

/* The client gets its response when the lane that owns the trace has taken it. */
static void senders_wait_for_the_lane_of_the_trace(void **state)
{
    enum { REQUESTS = 12 };
    struct test_request *requests[REQUESTS];
    unsigned waiting = 0;
    (void)state;
    struct harness *h = harness_create_on(
        TAIL("decision_wait: 1s, num_traces: 4, block_on_overflow: true, ", BUSY), 2);
    for (unsigned lane = 0; lane < 2; lane++)
        harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct trace_span span = {.trace = 1 + i, .span = 1};
        requests[i] = trace_offer(h, 0, NULL, &span, 1);
        waiting += !requests[i]->is_resolved;
    }
    assert_true(waiting >= REQUESTS - 6);
    for (int i = 0; i < 40; i++)
        harness_advance(h, S);
    for (size_t i = 0; i < REQUESTS; i++)
        assert_int_equal(requests[i]->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 0);
    harness_destroy(h);
}

/* A request that waits is taken when decisions have made room, and only for that: at least
 * num_traces traces in each decision_wait, whatever else is configured. */
static void senders_are_blocked_no_longer_than_decisions_take(void **state)
{
    enum { REQUESTS = 60, NUM_TRACES = 5, WAIT_S = 2 };
    static const struct {
        const char *options;
        unsigned lanes;
        unsigned traces; /* of a request, each with two spans */
        bool share;      /* requests share some of their traces */
        uint64_t rounds; /* of decision_wait and the tick it begins in, at most */
    } rows[] = {
        {"", 1, 1, false, REQUESTS / NUM_TRACES},
        {"", 1, 5, false, REQUESTS},
        {"", 1, 12, false, REQUESTS},
        {"", 1, 3, true, REQUESTS / 2},
        /* Each lane has a part of num_traces, three, and all may belong to one. */
        {"", 2, 1, false, REQUESTS / 3},
        {"", 2, 12, false, REQUESTS},
        {"decision_wait_after_root_received: 1s, ", 1, 1, false, REQUESTS / NUM_TRACES},
        {"decision_cache: {sampled_cache_size: 3, non_sampled_cache_size: 3}, ", 1, 3, true,
         REQUESTS / 2},
        {"sampling_strategy: span-ingest, ", 1, 5, false, REQUESTS},
        {"maximum_trace_size_bytes: 80, ", 1, 5, false, REQUESTS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[1024];
        struct test_request *requests[REQUESTS];
        struct trace_span spans[24] = {{.trace = 0}};
        snprintf(yaml, sizeof(yaml),
                 TAIL("decision_wait: 2s, num_traces: 5, block_on_overflow: true, %s", "%s"),
                 rows[i].options, strstr(rows[i].options, "ingest") != NULL ? NEVER : BUSY);
        struct harness *h = harness_create_on(yaml, rows[i].lanes);
        for (unsigned lane = 0; lane < rows[i].lanes; lane++)
            harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
        for (uint64_t n = 0; n < REQUESTS; n++) {
            for (unsigned k = 0; k < 2 * rows[i].traces; k++)
                spans[k] = (struct trace_span){
                    .trace = 1 + (rows[i].share ? n + k / 2 : n * rows[i].traces + k / 2),
                    .span = 1 + k % 2,
                    .parent = k % 2};
            requests[n] =
                trace_offer(h, (unsigned)n % rows[i].lanes, NULL, spans, 2 * rows[i].traces);
        }
        uint64_t seconds = 0;
        const uint64_t most = rows[i].rounds * (WAIT_S + 1) + WAIT_S + 1;
        uint64_t resolved = 0;
        while (resolved < REQUESTS && seconds <= most) {
            harness_advance(h, S);
            seconds++;
            resolved = 0;
            for (size_t n = 0; n < REQUESTS; n++)
                resolved += requests[n]->is_resolved && requests[n]->outcome.verdict == ACCEPTED;
        }
        if (resolved < REQUESTS || seconds > most)
            fail_msg("row %zu: %d of %d requests after %d s", i, (int)resolved, REQUESTS,
                     (int)seconds);
        harness_advance(h, (WAIT_S + 1) * S);
        assert_int_equal(harness_totals(h, TRACES).in_flight, 0);
        harness_destroy(h);
    }
}

/* A stop lets in what waits: receivers would wait for it, and what has its OK would be lost. */
static void a_stop_ends_the_wait_of_senders(void **state)
{
    (void)state;
    struct harness *h = harness_create(TAIL("num_traces: 1, block_on_overflow: true, ", BUSY));
    harness_exporter(h, "test")->has_own_items = true;
    struct test_request *last = NULL;
    for (uint64_t i = 0; i < 20; i++)
        last = trace_offer(h, 0, NULL, &(struct trace_span){.trace = 1 + i, .span = 1}, 1);
    assert_false(last->is_resolved);
    harness_stop(h);
    harness_advance(h, S);
    assert_true(h->has_stopped);
    assert_int_equal(last->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 0);
    harness_destroy(h);
}

static void late_spans_follow_the_decision(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, ", BUSY));
    static const struct trace_span many[] = {{.trace = 2, .span = 1},
                                             {.trace = 2, .span = 2},
                                             {.trace = 2, .span = 3},
                                             {.trace = 2, .span = 4},
                                             {.trace = 2, .span = 5}};
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    trace_offer(h, 0, NULL, many, 5);
    harness_advance(h, 2 * S);
    assert_held(h, "1:1");
    send_one(h, (struct trace_span){.trace = 1, .span = 2});
    send_one(h, (struct trace_span){.trace = 2, .span = 6});
    assert_held(h, "1:1|1:2");
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 6);
    harness_advance(h, 12 * S);
    send_one(h, (struct trace_span){.trace = 1, .span = 3});
    assert_int_equal(
        metric(h, METRIC "sampling_late_span_age_bucket{processor=\"tail_sampling\",le=\"0\""), 2);
    assert_int_equal(
        metric(h, METRIC "sampling_late_span_age_bucket{processor=\"tail_sampling\",le=\"25\""), 3);
    harness_destroy(h);
}

static void caches_remember_decisions(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, num_traces: 10, decision_cache: "
                                   "{sampled_cache_size: 2, non_sampled_cache_size: 2}, ",
                                   ERRORS));
    for (uint64_t i = 1; i <= 4; i++)
        send_one(
            h, (struct trace_span){.trace = i, .span = i, .status = i % 2 == 0 ? ERROR_STATUS : 0});
    harness_advance(h, 2 * S);
    assert_held(h, "2:2|4:4");
    assert_int_equal(metric(h, METRIC "sampling_traces_on_memory"), 0);
    send_one(h, (struct trace_span){.trace = 2, .span = 5});
    send_one(h, (struct trace_span){.trace = 1, .span = 6, .status = ERROR_STATUS});
    assert_held(h, "2:2|2:5|4:4");
    assert_int_equal(
        metric(h, METRIC "early_releases_from_cache_decision{processor=\"tail_sampling\",sampled="
                         "\"true\""),
        1);
    assert_int_equal(
        metric(h, METRIC "early_releases_from_cache_decision{processor=\"tail_sampling\",sampled="
                         "\"false\""),
        1);
    /* The least recently used is forgotten. */
    send_one(h, (struct trace_span){.trace = 6, .span = 7, .status = ERROR_STATUS});
    harness_advance(h, 2 * S);
    send_one(h, (struct trace_span){.trace = 4, .span = 8});
    send_one(h, (struct trace_span){.trace = 2, .span = 9});
    assert_held(h, "2:2|2:5|2:9|4:4|6:7");
    harness_destroy(h);
}

static void large_traces_are_dropped(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, maximum_trace_size_bytes: 200, ", ALWAYS));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    send_one(h, (struct trace_span){.trace = 2, .span = 2});
    assert_held(h, ""); /* it may become too large */
    for (uint64_t i = 0; i < 3; i++)
        send_one(h, (struct trace_span){.trace = 1, .span = 3 + i});
    assert_int_equal(metric(h, METRIC "traces_dropped_too_large"), 1);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 4);
    harness_advance(h, 2 * S);
    assert_held(h, "2:2");
    for (uint64_t i = 0; i < 3; i++)
        send_one(h, (struct trace_span){.trace = 2, .span = 13 + i});
    assert_held(h, "2:13|2:14|2:15|2:2");
    assert_int_equal(metric(h, METRIC "traces_dropped_too_large"), 1);
    harness_destroy(h);
}

static void what_waits_is_decided_on_a_stop(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("", BUSY));
    for (uint64_t i = 0; i < 40; i++)
        send_one(h, (struct trace_span){.trace = 1 + i % 4, .span = 1 + i});
    harness_exporter(h, "test")->result = RESULT_OK;
    harness_stop(h);
    harness_advance(h, S);
    assert_true(h->has_stopped);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], 40);
    harness_destroy(h);
    h = start(TAIL("", BUSY));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    harness_exporter(h, "test")->result = RESULT_OK;
    harness_stop(h);
    harness_advance(h, S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    harness_destroy(h);
}

static void what_waits_is_dropped_on_a_stop_if_wanted(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("drop_pending_traces_on_shutdown: true, ", ALWAYS));
    send_one(h, (struct trace_span){.trace = 1, .span = 1});
    assert_held(h, "");
    harness_stop(h);
    harness_advance(h, S);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_SHUTDOWN], 1);
    harness_destroy(h);
}

static void with_span_ingest_each_part_is_judged_alone(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, sampling_strategy: span-ingest, ",
                                   SLOW ", {name: count, type: span_count, span_count: "
                                        "{min_spans: 4}}"));
    send_one(h, (struct trace_span){.trace = 1, .span = 1, .start_ms = 1, .end_ms = 2});
    send_one(h, (struct trace_span){.trace = 1, .span = 2, .start_ms = 199, .end_ms = 200});
    assert_held(h, "");
    send_one(h, (struct trace_span){.trace = 1, .span = 3, .start_ms = 1, .end_ms = 101});
    assert_held(h, "1:1/1:2/1:3");
    send_one(h, (struct trace_span){.trace = 1, .span = 4, .start_ms = 1, .end_ms = 2});
    assert_held(h, "1:1/1:2/1:3|1:4");
    for (uint64_t i = 0; i < 4; i++)
        send_one(h, (struct trace_span){.trace = 2, .span = i, .start_ms = 1, .end_ms = 1});
    assert_held(h, "1:1/1:2/1:3|1:4|2:0/2:1/2:2/2:3");
    send_one(h, (struct trace_span){.trace = 3, .span = 1, .start_ms = 1, .end_ms = 2});
    harness_advance(h, 2 * S);
    assert_int_equal(metric(h, METRIC "global_count_traces_sampled{decision=\"not_sampled\""), 1);
    assert_int_equal(metric(h, METRIC "sampling_traces_on_memory"), 2);
    harness_destroy(h);
}

static void refused_messages_are_offered_again(void **state)
{
    (void)state;
    struct harness *h = start(TAIL("decision_wait: 1s, ", BUSY));
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_BUSY;
    for (uint64_t i = 0; i < 2; i++)
        send_one(h, (struct trace_span){.trace = 1 + i, .span = 1});
    harness_advance(h, 2 * S);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 2);
    exporter->result = RESULT_OK;
    harness_advance(h, 10 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 2);
    harness_destroy(h);
}

static void spans_of_a_trace_meet_on_one_lane(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(
        TAIL("decision_wait: 1s, ", "{name: n, type: span_count, span_count: {min_spans: 3, "
                                    "max_spans: 5}}"),
        3);
    for (unsigned lane = 0; lane < 3; lane++) {
        harness_exporter_on(h, "test", lane, TRACES)->result = RESULT_HOLD;
        harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
    }
    for (uint64_t trace = 1; trace <= 20; trace++)
        for (unsigned lane = 0; lane < 3; lane++) {
            struct trace_span span = {.trace = trace, .span = 1 + lane};
            struct test_request *request = trace_offer(h, lane, NULL, &span, 1);
            assert_int_equal(request->outcome.verdict, ACCEPTED);
        }
    assert_int_equal(harness_totals(h, TRACES).in_flight, 60);
    harness_advance(h, 2 * S);
    size_t count = 0;
    for (unsigned lane = 0; lane < 3; lane++) {
        const struct test_exporter *exporter = harness_exporter_on(h, "test", lane, TRACES);
        assert_true(exporter->held_count > 0);
        for (size_t i = 0; i < exporter->held_count; i++) {
            char *words = trace_words(exporter->held[i].batch);
            count += exporter->held[i].batch->items;
            /* Each with those of its other requests. */
            for (char *word = strtok(words, " /"); word != NULL; word = strtok(NULL, " /")) {
                const unsigned long trace = strtoul(word, NULL, 10);
                for (int k = 1; k < 3; k++)
                    assert_int_equal(strtoul(strtok(NULL, " /"), NULL, 10), trace);
            }
            free(words);
        }
    }
    assert_int_equal(count, 60);
    assert_int_equal(metric(h, METRIC "new_trace_id_received"), 20);
    harness_destroy(h);
}

static void limits_by_rate_are_those_of_all_lanes(void **state)
{
    (void)state;
    struct harness *h = harness_create_on(TAIL("decision_wait: 1s, ", BUSY), 3);
    for (unsigned lane = 0; lane < 3; lane++)
        harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
    for (uint64_t trace = 1; trace <= 30; trace++) {
        struct trace_span span = {.trace = trace, .span = 1};
        trace_offer(h, (unsigned)(trace % 3), NULL, &span, 1);
    }
    harness_advance(h, 2 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, 4); /* the burst */
    harness_destroy(h);
}

/* Traces that wait fill the budget: the oldest are decided, and none is lost unseen. */
static void when_memory_is_short_the_oldest_are_decided(void **state)
{
    enum { REQUESTS = 3000, TEXT = 1000 };
    char text[TEXT + 1];
    (void)state;
    memset(text, 'x', TEXT);
    text[0] = 'k';
    text[1] = '=';
    text[TEXT] = '\0';
    struct harness *h = start("processors: {tail_sampling: {decision_wait: 1h, policies: [" BUSY
                              ", {name: some, type: probabilistic, probabilistic: "
                              "{sampling_percentage: 0}}]}}\n"
                              "exporters: {test: {sending_queue: {enabled: false}}}\n"
                              "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], "
                              "processors: [tail_sampling], exporters: [test]}}}\n");
    harness_exporter(h, "test")->result = RESULT_OK;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct trace_span span = {.trace = 1 + i, .span = 1, .attributes = {text}};
        struct test_request *request = trace_offer(h, 0, NULL, &span, 1);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        assert_true(harness_budget_used(h) <= 1 << 20);
    }
    struct harness_totals totals = harness_totals(h, TRACES);
    long early = metric(h, "early_decisions{processor=\"tail_sampling\",reason=\"memory\"");
    assert_true(early > REQUESTS / 2);
    assert_int_equal(totals.delivered + totals.dropped, early);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], totals.dropped);
    assert_true(totals.in_flight > 300);
    harness_destroy(h);
}

/* Traces may have all of the budget but the room for requests: the larger it is, the smaller a part
 * that is. */
static void no_trace_is_decided_early_while_there_is_room(void **state)
{
    enum { TEXT = 1 << 20, TRACES_THAT_FIT = 124, BUDGET_MIB = 160, ROOM_MIB = 32 };
    char *text = mem_alloc(TEXT + 1);
    (void)state;
    memset(text, 'x', TEXT);
    memcpy(text, "k=", 2);
    text[TEXT] = '\0';
    struct harness *h =
        start("processors: {tail_sampling: {decision_wait: 1h, policies: [" ERRORS "]}}\n"
              "exporters: {test: {sending_queue: {enabled: false}}}\n"
              "service: {budget_mib: 160, pipelines: {traces: {receivers: [test], "
              "processors: [tail_sampling], exporters: [test]}}}\n");
    for (uint64_t i = 0; i < BUDGET_MIB; i++) {
        struct trace_span span = {.trace = 1 + i, .span = 1, .attributes = {text}};
        assert_int_equal(trace_offer(h, 0, NULL, &span, 1)->outcome.verdict, ACCEPTED);
        assert_true(harness_budget_used(h) <= (uint64_t)(BUDGET_MIB - ROOM_MIB / 2) << 20);
        long early = metric(h, "early_decisions{processor=\"tail_sampling\",reason=\"memory\"");
        if (i < TRACES_THAT_FIT)
            assert_true(early <= 0);
        else if (i == BUDGET_MIB - 1)
            assert_true(early > 0);
    }
    mem_free(text);
    harness_destroy(h);
}

static void a_request_of_many_traces_makes_room_for_itself(void **state)
{
    enum { REQUESTS = 20, REQUEST = 3000, TEXT = 200 };
    static struct trace_span spans[REQUEST];
    char text[TEXT + 1];
    (void)state;
    memset(text, 'x', TEXT);
    memcpy(text, "k=", 2);
    text[TEXT] = '\0';
    struct harness *h =
        start("processors: {tail_sampling: {decision_wait: 1h, policies: [" ERRORS "]}}\n"
              "exporters: {test: {sending_queue: {enabled: false}}}\n"
              "service: {budget_mib: 6, pipelines: {traces: {receivers: [test], "
              "processors: [tail_sampling], exporters: [test]}}}\n");
    for (uint64_t i = 0; i < REQUESTS; i++) {
        for (uint64_t k = 0; k < REQUEST; k++)
            spans[k] =
                (struct trace_span){.trace = 1 + i * REQUEST + k, .span = 1, .attributes = {text}};
        assert_int_equal(trace_offer(h, 0, NULL, spans, REQUEST)->outcome.verdict, ACCEPTED);
    }
    assert_true(metric(h, "early_decisions{processor=\"tail_sampling\",reason=\"memory\"") >
                REQUEST);
    harness_destroy(h);
}

/* Spans of a few bytes, of which each is a trace with its own copy of the Resource. */
static void tiny_traces_stay_within_the_budget(void **state)
{
    enum { SPANS = 100000, BUDGET_MIB = 32, STEP_MIB = 10, TEXT = 150 };
    static struct trace_span spans[SPANS];
    char text[TEXT + 1];
    const struct trace_resource resource = {.attributes = {text}};
    (void)state;
    memset(text, 'x', TEXT);
    memcpy(text, "k=", 2);
    text[TEXT] = '\0';
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        struct harness *h = harness_create_on(
            "processors: {tail_sampling: {decision_wait: 1h, num_traces: 1000000, policies: "
            "[" ERRORS "]}}\nexporters: {test: {sending_queue: {enabled: false}}}\n"
            "service: {budget_mib: 32, pipelines: {traces: {receivers: [test], processors: "
            "[tail_sampling], exporters: [test]}}}\n",
            lanes);
        for (uint64_t i = 0; i < SPANS; i++)
            spans[i] = (struct trace_span){.trace = i + 1, .span = 1};
        struct test_request *request = trace_offer(h, 0, &resource, spans, SPANS);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        harness_turn(h);
        assert_true(harness_budget_peak(h) <= (uint64_t)(BUDGET_MIB + STEP_MIB) << 20);
        struct harness_totals totals = harness_totals(h, TRACES);
        assert_int_equal(totals.received, SPANS);
        assert_int_equal(totals.in_flight + totals.dropped, SPANS);
        assert_int_equal(totals.by_reason[LOSS_MEMORY], 0);
        assert_true(totals.dropped > 0);
        harness_destroy(h);
    }
}

/* Those that the next stage has not taken make no room: what goes beyond is lost, and counted. */
static void tiny_traces_without_room_are_lost(void **state)
{
    enum { SPANS = 100000, BUDGET_MIB = 32, STEP_MIB = 12, TEXT = 150 };
    static struct trace_span spans[SPANS];
    char text[TEXT + 1];
    const struct trace_resource resource = {.attributes = {text}};
    (void)state;
    memset(text, 'x', TEXT);
    memcpy(text, "k=", 2);
    text[TEXT] = '\0';
    struct harness *h = start(
        "processors: {tail_sampling: {decision_wait: 1h, num_traces: 1000000, policies: [" BUSY
        ", " ALWAYS "]}}\nexporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 32, pipelines: {traces: {receivers: [test], processors: "
        "[tail_sampling], exporters: [test]}}}\n");
    for (uint64_t i = 0; i < SPANS; i++)
        spans[i] = (struct trace_span){.trace = i + 1, .span = 1};
    struct test_request *request = trace_offer(h, 0, &resource, spans, SPANS);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_true(harness_budget_peak(h) <= (uint64_t)(BUDGET_MIB + STEP_MIB) << 20);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_true(totals.by_reason[LOSS_MEMORY] > 0);
    assert_int_equal(totals.by_reason[LOSS_MEMORY], totals.dropped);
    assert_int_equal(totals.in_flight + totals.dropped, SPANS);
    harness_destroy(h);
}

/* Behind batch it may take the budget's margin, and beyond that wait. */
static void an_acknowledged_request_is_kept_when_the_limit_is_exceeded(void **state)
{
    enum { SPANS = 8, EXCESS_KIB = 16 };
    struct trace_span spans[SPANS];
    (void)state;
    for (uint64_t i = 0; i < SPANS; i++)
        spans[i] = (struct trace_span){.trace = i + 1, .span = 1};
    for (unsigned i = 0; i < 4; i++) {
        const unsigned lanes = 1 + i / 2;
        const bool is_overdrawn = i % 2 == 1;
        struct harness *h = harness_create_on(
            "processors: {batch: {timeout: 1s}, tail_sampling: {decision_wait: 1s, num_traces: "
            "1000, policies: [" ALWAYS "]}}\nexporters: {test: {sending_queue: {enabled: false}}}\n"
            "service: {budget_mib: 8, pipelines: {traces: {receivers: [test], processors: [batch, "
            "tail_sampling], exporters: [test]}}}\n",
            lanes);
        struct budget *budget = &h->service->budget;
        const uint64_t limit = budget_limit(budget);
        for (unsigned lane = 0; lane < lanes; lane++)
            harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
        assert_int_equal(trace_offer(h, 0, NULL, spans, SPANS)->outcome.verdict, ACCEPTED);
        const uint64_t others = limit - budget_used(budget) + (EXCESS_KIB << 10) +
                                (is_overdrawn ? limit / BUDGET_MARGIN_PART : 0);
        budget_take(budget, others);
        harness_advance(h, 5 * S);
        assert_int_equal(harness_totals(h, TRACES).dropped, 0);
        assert_int_equal(harness_totals(h, TRACES).delivered, is_overdrawn ? 0 : SPANS);
        budget_return(budget, others);
        harness_advance(h, 5 * S);
        assert_int_equal(harness_totals(h, TRACES).delivered, SPANS);
        harness_destroy(h);
    }
}

/* A long Resource is not copied for each lane and each step: parts that wait lie in the request. */
static void parts_of_a_request_take_as_much_as_it(void **state)
{
    enum { SPANS = 100000, TEXT = 2 << 20, LANES = 4 };
    static struct trace_span spans[SPANS];
    char *text = mem_alloc(TEXT + 1);
    (void)state;
    memset(text, 'x', TEXT);
    memcpy(text, "k=", 2);
    text[TEXT] = '\0';
    for (uint64_t i = 0; i < SPANS; i++)
        spans[i] = (struct trace_span){.trace = i + 1, .span = 1};
    /* With a schema URL, which follows the scopes, its fields lie in two pieces. */
    static const char *const schemas[] = {NULL, "url"};
    for (size_t i = 0; i < 2; i++) {
        const struct trace_resource resource = {.attributes = {text}, .schema = schemas[i]};
        struct harness *h = harness_create_on(
            "processors: {tail_sampling: {decision_wait: 1h, num_traces: 4, block_on_overflow: "
            "true, policies: [" ERRORS "]}}\nexporters: {test: {sending_queue: {enabled: false}}}\n"
            "service: {budget_mib: 64, pipelines: {traces: {receivers: [test], processors: "
            "[tail_sampling], exporters: [test]}}}\n",
            LANES);
        struct slice bytes = trace_sketch(&resource, spans, SPANS);
        const uint64_t before = harness_budget_used(h);
        struct test_request *request = trace_offer(h, 0, &resource, spans, SPANS);
        assert_false(request->is_resolved); /* most of it waits */
        assert_true(harness_budget_used(h) - before <= 4 * bytes.size);
        harness_stop(h);
        harness_advance(h, S);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 0);
        mem_free((void *)(uintptr_t)bytes.data);
        harness_destroy(h);
    }
    mem_free(text);
}

/* When the next stage takes nothing, either, there is no room: senders are asked to come back. */
static void without_any_room_senders_are_refused(void **state)
{
    enum { REQUESTS = 3000, TEXT = 1000 };
    char text[TEXT + 1];
    size_t refused = 0;
    (void)state;
    memset(text, 'x', TEXT);
    text[1] = '=';
    text[TEXT] = '\0';
    struct harness *h =
        start("processors: {tail_sampling: {decision_wait: 1s, policies: [" ALWAYS "]}}\n"
              "exporters: {test: {sending_queue: {enabled: false}}}\n"
              "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], "
              "processors: [tail_sampling], exporters: [test]}}}\n");
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct trace_span span = {.trace = 1 + i, .span = 1, .attributes = {text}};
        struct test_request *request = trace_offer(h, 0, NULL, &span, 1);
        refused += request == NULL || request->outcome.verdict == REFUSED;
        assert_true(harness_budget_used(h) <= (1 << 20) + (1 << 16));
    }
    assert_true(refused > REQUESTS / 2);
    assert_int_equal(harness_totals(h, TRACES).dropped, 0);
    assert_int_equal(harness_totals(h, TRACES).in_flight, REQUESTS - refused);
    harness_destroy(h);
}

/* What a trace takes beside its bytes. */
static void a_trace_takes_little_memory(void **state)
{
    enum { TRACES_COUNT = 100000, REQUEST = 1000 };
    static struct trace_span spans[REQUEST];
    (void)state;
    struct harness *h =
        start(TAIL("num_traces: 1000000, ", ERRORS ", " SLOW ", {name: a, type: string_attribute, "
                                                   "string_attribute: {key: k, values: [v]}}"));
    uint64_t before = harness_budget_used(h);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < TRACES_COUNT; i += REQUEST) {
        for (uint64_t k = 0; k < REQUEST; k++)
            spans[k] = (struct trace_span){.trace = i + k, .span = 1};
        trace_offer(h, 0, NULL, spans, REQUEST);
        /* Of each its own Resource… and scope messages. */
        struct slice alone = trace_sketch(NULL, spans, 1);
        bytes += REQUEST * alone.size;
        mem_free((void *)(uintptr_t)alone.data);
    }
    uint64_t taken = harness_budget_used(h) - before;
    if (taken > bytes + (uint64_t)128 * TRACES_COUNT)
        fail_msg("%zu bytes for each trace", (size_t)((taken - bytes) / TRACES_COUNT));
    harness_destroy(h);
}

static void large_requests_are_taken_in_turns(void **state)
{
    enum { SPANS = 40000 };
    static struct trace_span spans[SPANS];
    (void)state;
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
        struct harness *h = harness_create_on(
            TAIL("decision_wait: 1s, ", "{name: n, type: span_count, span_count: {min_spans: "
                                        "39999, max_spans: 50000}}"),
            lanes);
        for (unsigned lane = 0; lane < lanes; lane++)
            harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
        for (uint64_t i = 0; i < SPANS; i++)
            spans[i] = (struct trace_span){.trace = 1, .span = i + 1};
        struct test_request *request = trace_offer(h, 0, NULL, spans, SPANS);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        harness_advance(h, 3 * S);
        assert_int_equal(harness_totals(h, TRACES).delivered, SPANS);
        harness_destroy(h);
    }
}

/* A stop while spans go from lane to lane. */
static void a_stop_waits_for_spans_between_lanes(void **state)
{
    enum { REQUESTS = 100 };
    (void)state;
    struct harness *h = harness_create_on(TAIL("", "{name: n, type: span_count, span_count: "
                                                   "{min_spans: 2, max_spans: 3}}"),
                                          3);
    for (unsigned lane = 0; lane < 3; lane++)
        harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct trace_span span = {.trace = i / 2, .span = i + 1};
        struct slice bytes = trace_sketch(NULL, &span, 1);
        harness_put_bytes(h, (unsigned)(i % 3), TRACES, bytes, 1);
        mem_free((void *)(uintptr_t)bytes.data);
    }
    harness_stop(h);
    harness_advance(h, S);
    assert_true(h->has_stopped);
    assert_int_equal(harness_totals(h, TRACES).delivered, REQUESTS);
    harness_destroy(h);
}

static void gates_count_and_record_policies(void **state)
{
    (void)state;
    harness_set_gates("processor.tailsamplingprocessor.recordpolicy,processor."
                      "tailsamplingprocessor.metricstatcountspanssampled,processor."
                      "tailsamplingprocessor.metricstatcountbytessampled");
    struct harness *h = start(
        TAIL("decision_wait: 1s, decision_cache: {sampled_cache_size: 5}, ", SLOW ", " ERRORS));
    struct test_exporter *exporter = harness_exporter(h, "test");
    send_one(h, (struct trace_span){.trace = 1, .span = 1, .status = ERROR_STATUS});
    send_one(h, (struct trace_span){.trace = 1, .span = 2});
    assert_held(h, ""); /* another policy may yet be the first */
    harness_advance(h, 2 * S);
    assert_held(h, "1:1/1:2");
    send_one(h, (struct trace_span){.trace = 1, .span = 3});
    assert_held(h, "1:1/1:2|1:3");
    static const char *const marks[2][2] = {{"tailsampling.policy", "errors"},
                                            {"tailsampling.cached_decision", "errors"}};
    for (size_t i = 0; i < 2; i++) {
        struct slice bytes = exporter->held[i].batch->parts[0].bytes;
        for (size_t k = 0; k < 2; k++)
            assert_non_null(memmem(bytes.data, bytes.size, marks[i][k], strlen(marks[i][k])));
    }
    assert_int_equal(metric(h, METRIC "count_spans_sampled{decision=\"sampled\",policy=\"errors\""),
                     2);
    assert_true(metric(h, METRIC "count_bytes_sampled{decision=\"sampled\",policy=\"errors\"") >
                100);
    harness_set_gates(NULL);
    harness_destroy(h);
    h = start(TAIL("decision_wait: 1s, ", ERRORS));
    send_one(h, (struct trace_span){.trace = 1, .span = 1, .status = ERROR_STATUS});
    assert_int_equal(metric(h, METRIC "count_spans_sampled"), -1);
    harness_destroy(h);
}

enum { ROUNDS = 400, BURST = 20, THREAD_TRACES = 50 };

static void offer_round(struct component *receiver, unsigned lane, size_t round,
                        struct test_request *request)
{
    struct trace_span spans[3];
    for (size_t i = 0; i < 3; i++)
        spans[i] = (struct trace_span){
            .trace = (round + i * 17) % THREAD_TRACES, .span = 1 + lane, .status = round % 9 == 0};
    struct slice bytes = trace_sketch(NULL, spans, 3);
    struct batch *batch = plain_request(receiver->budget, TRACES, bytes, 3);
    test_receiver_offer(receiver, batch, request);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)bytes.data);
}

/* Where the thread sanitizer looks on. */
static void lanes_may_be_threads(void **state)
{
    static const char *const yamls[] = {
        TAIL("decision_wait: 1s, num_traces: 20, ", BUSY ", " ERRORS),
        TAIL("decision_wait: 1s, num_traces: 20, decision_cache: {sampled_cache_size: 10, "
             "non_sampled_cache_size: 10}, ",
             BUSY ", " NEVER),
    };
    static const struct pump_plan plan = {
        .rounds = ROUNDS, .burst = BURST, .round_requests = 1, .offer = offer_round};
    (void)state;
    for (size_t i = 0; i < sizeof(yamls) / sizeof(yamls[0]); i++) {
        struct harness *h = harness_create_on(yamls[i], PUMPS);
        for (unsigned lane = 0; lane < PUMPS; lane++)
            harness_exporter_on(h, "test", lane, TRACES)->has_own_items = true;
        pumps_run(h, &plan);
        struct harness_totals totals = harness_totals(h, TRACES);
        assert_int_equal(totals.received, (uint64_t)PUMPS * ROUNDS * 3);
        assert_int_equal(totals.in_flight, 0);
        harness_discard(h);
    }
}

/* Each allocation of the start that may fail; and caches that are larger than the budget. */
static void a_start_without_memory_fails(void **state)
{
    static const char yaml[] =
        TAIL("decision_cache: {sampled_cache_size: 1000, non_sampled_cache_size: 1000}, ", ALWAYS);
    static const char large[] =
        "processors: {tail_sampling: {decision_cache: {sampled_cache_size: 10000000}}}\n"
        "exporters: {test: {}}\n"
        "service: {budget_mib: 16, pipelines: {traces: {receivers: [test], processors: "
        "[tail_sampling], exporters: [test]}}}\n";
    struct error error;
    unsigned failed = 0;
    (void)state;
    for (uint64_t n = 1; n <= 5; n++) {
        struct harness *h = harness_try_build(yaml, 1);
        mem_refuse_nth(n);
        bool is_started = service_start(h->service, &error);
        mem_refuse_nth(0);
        failed += !is_started;
        if (!is_started)
            assert_non_null(strstr(error.text, "\"tail_sampling\" processor"));
        harness_stop(h);
        harness_advance(h, S);
        assert_true(h->has_stopped);
        assert_int_equal(harness_budget_used(h), 0);
        harness_discard(h);
    }
    assert_int_equal(failed, 5);
    struct harness *h = harness_try_build(large, 1);
    assert_false(service_start(h->service, &error));
    assert_non_null(strstr(error.text, "decision_cache::sampled_cache_size smaller"));
    harness_stop(h);
    harness_advance(h, S);
    harness_discard(h);
}

static void a_request_that_can_never_fit_is_refused_for_good(void **state)
{
    enum { TEXT = 600000 };
    char *text = mem_zalloc(TEXT + 1);
    (void)state;
    memset(text, 'x', TEXT);
    text[1] = '=';
    struct harness *h = start("processors: {tail_sampling: {policies: [" BUSY "]}}\n"
                              "exporters: {test: {sending_queue: {enabled: false}}}\n"
                              "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], "
                              "processors: [tail_sampling], exporters: [test]}}}\n");
    struct trace_span span = {.trace = 1, .span = 1, .attributes = {text}};
    struct test_request *request = trace_offer(h, 0, NULL, &span, 1);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_true(request->outcome.is_permanent);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_TOO_LARGE], 1);
    harness_destroy(h);
    mem_free(text);
}

static void wrong_configurations_are_refused(void **state)
{
    static const struct {
        const char *yaml;
        const char *text;
    } rows[] = {
        {TAIL("", "{name: '', type: always_sample}"), "policy name cannot be empty"},
        {TAIL("", ALWAYS ", " ALWAYS), "duplicate policy name \"all\""},
        {TAIL("", "{name: a, type: sometimes}"), "unknown sampling policy type \"sometimes\""},
        {TAIL("", "{name: a, type: status_code}"), "expected at least one status code"},
        {TAIL("", "{name: a, type: status_code, status_code: {status_codes: [BAD]}}"),
         "unknown status code \"BAD\""},
        {TAIL("", "{name: a, type: numeric_attribute, numeric_attribute: {key: k}}"),
         "min_value and max_value are both 0"},
        {TAIL("", "{name: a, type: string_attribute, string_attribute: {key: k, values: ['('], "
                  "enabled_regex_matching: true}}"),
         "invalid regex `(`"},
        {TAIL("", "{name: a, type: ottl_condition}"), "expected at least one OTTL condition"},
        {TAIL("",
              "{name: a, type: composite, composite: {max_total_spans_per_second: 9, policy_order: "
              "[b], composite_sub_policy: [{name: b, type: and, and: {and_sub_policy: [{name: c, "
              "type: not, not: {not_sub_policy: {name: d, type: ottl_condition, ottl_condition: "
              "{span: ['nam == 1']}}}}]}}]}}"),
         "nam"},
        {TAIL("", "{name: a, type: ottl_condition, ottl_condition: {span: ['nam == 1']}}"), "nam"},
        {TAIL("",
              "{name: a, type: ottl_condition, ottl_condition: {spanevent: ['log.body == 1']}}"),
         "log"},
        {TAIL("",
              "{name: a, type: ottl_condition, ottl_condition: {error_mode: x, span: ['true']}}"),
         "unknown error mode"},
        {TAIL("", "{name: a, type: and, and: {and_sub_policy: [{name: b, type: composite}]}}"),
         "unknown sampling policy type \"composite\""},
        {TAIL("", "{name: a, type: not, not: {not_sub_policy: {name: b, type: and}}}"),
         "unknown sampling policy type \"and\""},
        {TAIL("", "{name: a, type: composite, composite: {composite_sub_policy: [{name: b, type: "
                  "not}]}}"),
         "unknown sampling policy type \"not\""},
        {TAIL("sampling_strategy: span-ingest, ", BUSY), "policy \"busy\" is stateful"},
        {TAIL("sampling_strategy: sometimes, ", BUSY), "sampling_strategy"},
        {TAIL("tail_storage: file_storage, ", BUSY), "tail_storage"},
        {TAIL("decision_wait: 25h, ", BUSY), "decision_wait"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(harness_is_wrong(rows[i].yaml, rows[i].text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_is_decided_when_its_wait_is_over),
        cmocka_unit_test(metrics_name_the_processor_of_a_policy),
        cmocka_unit_test(conditions_remember_what_came_first),
        cmocka_unit_test(fractions_of_seconds_do_not_count),
        cmocka_unit_test(a_request_is_taken_apart_by_trace),
        cmocka_unit_test(traces_share_messages_that_are_not_large),
        cmocka_unit_test(a_large_trace_goes_on_in_several_messages),
        cmocka_unit_test(the_rest_of_a_large_trace_waits_for_the_next_stage),
        cmocka_unit_test(what_cannot_change_is_not_waited_for),
        cmocka_unit_test(the_outlook_is_that_of_all_policies),
        cmocka_unit_test(what_will_not_be_sampled_takes_no_memory),
        cmocka_unit_test(a_policy_that_may_drop_makes_all_wait),
        cmocka_unit_test(the_root_shortens_the_wait),
        cmocka_unit_test(beyond_num_traces_the_oldest_is_decided),
        cmocka_unit_test(senders_wait_where_they_are_to_be_blocked),
        cmocka_unit_test(senders_that_waited_share_turns),
        cmocka_unit_test(senders_wait_for_the_lane_of_the_trace),
        cmocka_unit_test(senders_are_blocked_no_longer_than_decisions_take),
        cmocka_unit_test(a_stop_ends_the_wait_of_senders),
        cmocka_unit_test(late_spans_follow_the_decision),
        cmocka_unit_test(caches_remember_decisions),
        cmocka_unit_test(large_traces_are_dropped),
        cmocka_unit_test(what_waits_is_decided_on_a_stop),
        cmocka_unit_test(what_waits_is_dropped_on_a_stop_if_wanted),
        cmocka_unit_test(with_span_ingest_each_part_is_judged_alone),
        cmocka_unit_test(refused_messages_are_offered_again),
        cmocka_unit_test(spans_of_a_trace_meet_on_one_lane),
        cmocka_unit_test(limits_by_rate_are_those_of_all_lanes),
        cmocka_unit_test(when_memory_is_short_the_oldest_are_decided),
        cmocka_unit_test(tiny_traces_stay_within_the_budget),
        cmocka_unit_test(tiny_traces_without_room_are_lost),
        cmocka_unit_test(an_acknowledged_request_is_kept_when_the_limit_is_exceeded),
        cmocka_unit_test(parts_of_a_request_take_as_much_as_it),
        cmocka_unit_test(without_any_room_senders_are_refused),
        cmocka_unit_test(no_trace_is_decided_early_while_there_is_room),
        cmocka_unit_test(a_request_of_many_traces_makes_room_for_itself),
        cmocka_unit_test(a_trace_takes_little_memory),
        cmocka_unit_test(large_requests_are_taken_in_turns),
        cmocka_unit_test(a_stop_waits_for_spans_between_lanes),
        cmocka_unit_test(gates_count_and_record_policies),
        cmocka_unit_test(lanes_may_be_threads),
        cmocka_unit_test(a_start_without_memory_fails),
        cmocka_unit_test(a_request_that_can_never_fit_is_refused_for_good),
        cmocka_unit_test(wrong_configurations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
