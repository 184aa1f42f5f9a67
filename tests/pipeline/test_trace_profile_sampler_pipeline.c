/* SPDX-License-Identifier: Apache-2.0 */
/* trace_profile_join and tail_sampling in one pipeline of traces, on the fake clock: policies learn
 * of samples, and samples of traces that were dropped are dropped, too. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/core/batch.h"
#include "tests/support/pumps.h"
#include "tests/support/telemetry_bytes.h"
#include "tests/support/trace_sketch.h"

#define EXPORTER                                                                                   \
    "exporters: {test: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}\n"
#define PROCESSORS(join, sampler)                                                                  \
    "processors: {trace_profile_join: {" join "}, tail_sampling: {" sampler "}}\n" EXPORTER
#define PIPELINES(traces)                                                                          \
    "service: {pipelines: {"                                                                       \
    "traces: {receivers: [test], processors: [" traces "], exporters: [test]}, "                   \
    "profiles: {receivers: [test], processors: [trace_profile_join], exporters: [test]}}}\n"
#define BOTH(join, sampler) PROCESSORS(join, sampler) PIPELINES("trace_profile_join, tail_sampling")

#define PROFILED "{name: hot, type: profile, profile: {min_samples: 1}}"
#define HOT      "{name: hot, type: profile, profile: {min_cpu: 50ms}}"
#define ERRORS   "{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}"
#define NEVER    "{name: none, type: probabilistic, probabilistic: {sampling_percentage: 0}}"
#define FLAGGED  "{name: f, type: boolean_attribute, boolean_attribute: {key: f, value: true}}"

enum { STATUS_ERROR = 2 };

static struct harness *start(const char *yaml)
{
    struct harness *h = join_start(yaml);
    join_profiles_sink(h, RESULT_HOLD);
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, TRACES);
    exporter->result = RESULT_HOLD;
    exporter->has_own_items = true;
    return h;
}

/* Ends all that is held. */
static void stop(struct harness *h)
{
    join_let_go(harness_exporter_on(h, "test", 0, PROFILES));
    harness_destroy(h);
}

static void assert_traces(struct harness *h, const char *expected)
{
    char *held = trace_held(harness_exporter_on(h, "test", 0, TRACES));
    assert_string_equal(held, expected);
    free(held);
}

static void send_span(struct harness *h, uint64_t trace, uint64_t span, unsigned status)
{
    const struct trace_resource shop = {.attributes = {"service.name=shop"}};
    const struct trace_span sent = {.trace = trace, .span = span, .status = status};
    trace_offer(h, 0, &shop, &sent, 1);
}

/* The ids of trace_sketch, as a Link has them. */
struct ids {
    char trace[17];
    char span[9];
};

static struct ids ids_of(uint64_t trace, uint64_t span)
{
    struct ids ids = {.trace = {0}};
    for (unsigned i = 0; i < 8; i++) {
        ids.trace[15 - i] = (char)(trace >> 8 * i);
        ids.span[7 - i] = (char)(span >> 8 * i);
    }
    return ids;
}

/* A profile with one sample, of so many milliseconds of CPU time. */
static struct test_request *profile(struct harness *h, uint64_t trace, uint64_t span, int64_t ms)
{
    const struct ids ids = ids_of(trace, span);
    const struct sketch_sample sample = {.stack = "work;main",
                                         .values_count = 1,
                                         .values = {ms * 1000000},
                                         .trace_id = ids.trace,
                                         .span_id = ids.span};
    return join_offer_samples(h, 0, "service.name=shop", &sample, 1);
}

static size_t profiles_held(struct harness *h)
{
    return harness_exporter_on(h, "test", 0, PROFILES)->held_count;
}

static void traces_with_samples_are_sampled(void **state)
{
    (void)state;
    struct harness *h = start(BOTH("", "decision_wait: 10s, policies: [" PROFILED "]"));
    send_span(h, 1, 1, 0);
    send_span(h, 2, 2, 0);
    send_span(h, 3, 3, 0);
    profile(h, 1, 1, 5);
    profile(h, 3, 4, 0); /* of another span of it, which does not come */
    harness_advance(h, 9 * S);
    assert_traces(h, "");
    harness_advance(h, 2 * S);
    assert_traces(h, "1:1/3:3");
    profile(h, 2, 2, 5); /* too late */
    harness_advance(h, 11 * S);
    assert_traces(h, "1:1/3:3");
    stop(h);
}

static void cpu_time_of_all_spans_and_profiles_counts(void **state)
{
    (void)state;
    struct harness *h = start(BOTH("", "decision_wait: 10s, policies: [" HOT "]"));
    for (uint64_t trace = 1; trace <= 2; trace++) {
        send_span(h, trace, 10 * trace, 0);
        send_span(h, trace, 10 * trace + 1, 0);
    }
    profile(h, 1, 10, 20);
    profile(h, 1, 11, 20);
    profile(h, 2, 20, 20);
    profile(h, 2, 20, 29);
    harness_advance(h, S);
    profile(h, 1, 10, 10);
    harness_advance(h, 11 * S);
    assert_traces(h, "1:10/1:11");
    stop(h);
}

/* Whatever it is called, and counted once where samples and time are both there. */
static void cpu_time_is_read_from_profiles_of_cpu_time(void **state)
{
    static const struct {
        const char *type[2];
        const char *period_type[2];
        int64_t period;
        size_t values_count;
        int64_t value;
        size_t timestamps;
        bool is_hot;
    } rows[] = {
        {{"cpu", "nanoseconds"}, {NULL}, 0, 1, 50000000, 0, true},
        {{"cpu", "nanoseconds"}, {NULL}, 0, 1, 49999999, 0, false},
        {{"cpu", "nanoseconds"}, {NULL}, 0, 1, -1, 0, false},
        {{"samples", "count"}, {"cpu", "nanoseconds"}, 10000000, 1, 5, 0, true},
        {{"samples", "count"}, {"cpu", "nanoseconds"}, 10000000, 1, 4, 0, false},
        {{"samples", "count"}, {"cpu", "nanoseconds"}, 10000000, 0, 0, 5, true},
        {{"samples", "count"}, {"cpu", "nanoseconds"}, 10000000, 0, 0, 4, false},
        {{"wall", "nanoseconds"}, {NULL}, 0, 1, 50000000, 0, false},
        {{"alloc_space", "bytes"}, {NULL}, 0, 1, 50000000, 0, false},
        {{"cpu", "nanoseconds"}, {NULL}, 0, 1, INT64_MAX, 0, true},
        {{"samples", "count"}, {"cpu", "nanoseconds"}, INT64_MAX, 1, INT64_MAX, 0, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = start(BOTH("", "decision_wait: 2s, policies: [" HOT "]"));
        const struct ids ids = ids_of(1, 1);
        const struct sketch_sample sample = {.stack = "work;main",
                                             .values_count = rows[i].values_count,
                                             .values = {rows[i].value},
                                             .timestamps_count = rows[i].timestamps,
                                             .trace_id = ids.trace,
                                             .span_id = ids.span};
        const struct sketch_profile sketched = {
            .type = {rows[i].type[0], rows[i].type[1]},
            .period_type = {rows[i].period_type[0], rows[i].period_type[1]},
            .period = rows[i].period,
            .samples_count = 1,
            .samples = &sample};
        const struct sketch sketch = {
            .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &sketched};
        send_span(h, 1, 1, 0);
        join_offer_sketch(h, 0, &sketch);
        harness_advance(h, 4 * S);
        assert_traces(h, rows[i].is_hot ? "1:1" : "");
        stop(h);
    }
}

/* As SDKs do that name the local root by a label. */
static void samples_may_name_the_span_alone(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a;main",
         .values_count = 1,
         .values = {30000000},
         .attributes = {"span_id=0000000000000001"}},
        {.stack = "b;main",
         .values_count = 1,
         .values = {30000000},
         .attributes = {"span_id=0000000000000002"}},
    };
    (void)state;
    struct harness *h = start(BOTH("", "decision_wait: 20s, policies: [" HOT "]"));
    send_span(h, 1, 1, 0);
    for (unsigned i = 0; i < 2; i++) /* of the second one, before its span, twice */
        join_offer_samples(h, 0, "service.name=shop", samples, 2);
    harness_advance(h, 9 * S); /* longer than they wait */
    send_span(h, 2, 2, 0);
    send_span(h, 3, 3, 0);
    harness_advance(h, 30 * S);
    assert_traces(h, "1:1|2:2");
    stop(h);
}

static void policies_of_profiles_combine_with_others(void **state)
{
    (void)state;
    struct harness *h = start(BOTH(
        "", "decision_wait: 5s, policies: [{name: both, type: and, and: {and_sub_policy: ["
            "{name: a, type: profile}, {name: b, type: status_code, status_code: {status_codes: "
            "[ERROR]}}]}}, {name: cold, type: and, and: {and_sub_policy: [{name: c, type: not, "
            "not: {not_sub_policy: {name: d, type: profile}}}, " FLAGGED "]}}]"));
    const struct trace_resource shop = {.attributes = {"service.name=shop"}};
    send_span(h, 1, 1, STATUS_ERROR);
    send_span(h, 2, 2, STATUS_ERROR);
    send_span(h, 3, 3, 0);
    for (uint64_t trace = 4; trace <= 5; trace++) {
        const struct trace_span span = {.trace = trace, .span = trace, .attributes = {"f=?true"}};
        trace_offer(h, 0, &shop, &span, 1);
    }
    profile(h, 1, 1, 5);
    profile(h, 3, 3, 5);
    profile(h, 4, 4, 5);
    harness_advance(h, 7 * S);
    assert_traces(h, "1:1/5:5");
    stop(h);
}

static void samples_of_dropped_traces_are_dropped(void **state)
{
    (void)state;
    struct harness *h =
        start(BOTH("keep: [sampled], hold: 30s", "decision_wait: 10s, policies: [" ERRORS "]"));
    send_span(h, 1, 1, STATUS_ERROR);
    send_span(h, 2, 2, 0);
    profile(h, 1, 1, 5);
    profile(h, 2, 2, 5);
    const struct sketch_sample none = {.stack = "x;main", .values_count = 1, .values = {5}};
    join_offer_samples(h, 0, "service.name=shop", &none, 1); /* names no span */
    harness_advance(h, S);
    assert_int_equal(profiles_held(h), 2); /* the trace with an error will be sampled for sure */
    harness_advance(h, 8 * S);
    assert_int_equal(profiles_held(h), 2);
    harness_advance(h, 3 * S);
    assert_int_equal(profiles_held(h), 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), 0);
    /* Once it is decided nothing waits. */
    profile(h, 1, 1, 5);
    profile(h, 2, 2, 5);
    assert_int_equal(profiles_held(h), 3);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 2);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.by_reason[LOSS_UNWANTED], 2);
    stop(h);
}

static void what_will_be_dropped_is_known_at_once(void **state)
{
    (void)state;
    struct harness *h =
        start(BOTH("keep: [sampled], hold: 30s", "decision_wait: 10s, policies: [" NEVER "]"));
    send_span(h, 2, 2, 0);
    profile(h, 2, 2, 5);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 1);
    assert_int_equal(profiles_held(h), 0);
    stop(h);
}

static void undecided_samples_are_kept_in_the_end(void **state)
{
    (void)state;
    struct harness *h =
        start(BOTH("keep: [sampled], hold: 3s", "decision_wait: 10s, policies: [" ERRORS "]"));
    send_span(h, 1, 1, 0);
    profile(h, 1, 1, 5);
    harness_advance(h, 2 * S);
    assert_int_equal(profiles_held(h), 0);
    harness_advance(h, 2 * S);
    assert_int_equal(profiles_held(h), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 0);
    stop(h);
}

static void other_rules_keep_samples_of_dropped_traces(void **state)
{
    (void)state;
    struct harness *h = start(BOTH("keep: [error, sampled], hold: 30s, keep_unlinked: false",
                                   "decision_wait: 2s, policies: [" FLAGGED "]"));
    send_span(h, 1, 1, STATUS_ERROR);
    send_span(h, 2, 2, 0);
    profile(h, 1, 1, 5);
    profile(h, 2, 2, 5);
    harness_advance(h, S);
    assert_int_equal(profiles_held(h), 1);
    harness_advance(h, 5 * S);
    assert_int_equal(profiles_held(h), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 1);
    stop(h);
}

/* The join behind tail_sampling sees no spans of traces that are dropped. */
static void the_order_of_the_two_does_not_matter_to_keep(void **state)
{
    (void)state;
    struct harness *h =
        start(PROCESSORS("keep: [sampled], hold: 8s", "decision_wait: 2s, policies: [" ERRORS "]")
                  PIPELINES("tail_sampling, trace_profile_join"));
    send_span(h, 1, 1, STATUS_ERROR);
    send_span(h, 2, 2, 0);
    profile(h, 1, 1, 5);
    profile(h, 2, 2, 5);
    profile(h, 3, 3, 5); /* of a trace that nobody knows */
    harness_advance(h, 20 * S);
    assert_int_equal(profiles_held(h), 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 1);
    stop(h);
}

/* Another pipeline exports all traces that pass the same join. */
static void a_pipeline_without_tail_sampling_keeps_all(void **state)
{
    (void)state;
    struct harness *h =
        start(PROCESSORS("keep: [sampled]", "decision_wait: 2s, policies: [" NEVER
                                            "]") "service: {pipelines: {"
                                                 "traces: {receivers: [test], processors: "
                                                 "[trace_profile_join, tail_sampling], exporters: "
                                                 "[test]}, "
                                                 "traces/all: {receivers: [test], processors: "
                                                 "[trace_profile_join], exporters: [test]}, "
                                                 "profiles: {receivers: [test], processors: "
                                                 "[trace_profile_join], exporters: [test]}}}\n");
    send_span(h, 1, 1, 0);
    profile(h, 1, 1, 5);
    harness_advance(h, 5 * S);
    assert_int_equal(profiles_held(h), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "unwanted_samples{"), 0);
    stop(h);
}

/* What both say reaches the lane that needs it. */
static void lanes_tell_one_another(void **state)
{
    enum { LANES = 3, TRACES_SENT = 40 };
    (void)state;
    struct harness *h = join_start_on(BOTH("keep: [sampled], keep_unlinked: false, hold: 30s",
                                           "decision_wait: 5s, policies: [" HOT "]"),
                                      LANES);
    for (unsigned lane = 0; lane < LANES; lane++)
        harness_exporter_on(h, "test", lane, TRACES)->result = RESULT_OK;
    const struct trace_resource shop = {.attributes = {"service.name=shop"}};
    for (unsigned trace = 1; trace <= TRACES_SENT; trace++) {
        const struct trace_span span = {.trace = trace, .span = trace};
        const struct ids ids = ids_of(trace, trace);
        const struct sketch_sample sample = {.stack = "work;main",
                                             .values_count = 1,
                                             .values = {(int64_t)(trace % 2) * 60000000},
                                             .trace_id = ids.trace,
                                             .span_id = ids.span};
        trace_offer(h, trace % LANES, &shop, &span, 1);
        join_offer_samples(h, (trace + 1) % LANES, "service.name=shop", &sample, 1);
        harness_turn(h);
    }
    harness_advance(h, 8 * S);
    harness_advance(h, S);
    assert_int_equal(harness_totals(h, TRACES).delivered, TRACES_SENT / 2);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_UNWANTED], TRACES_SENT / 2);
    assert_int_equal(harness_totals(h, PROFILES).delivered, TRACES_SENT / 2);
    assert_int_equal(harness_totals(h, PROFILES).by_reason[LOSS_UNWANTED], TRACES_SENT / 2);
    harness_destroy(h);
}

static void without_the_join_there_is_no_such_policy(void **state)
{
    static const struct {
        const char *yaml;
        const char *text;
    } rows[] = {
        {PROCESSORS("", "policies: [" ERRORS ", " PROFILED "]") PIPELINES("tail_sampling"),
         "policies of type profile learn of samples from trace_profile_join"},
        {BOTH("", "policies: [{name: a, type: profile, profile: {min_samples: 0}}]"),
         "min_samples and min_cpu are both 0"},
        {BOTH("", "policies: [{name: a, type: profile, profile: {min_cpu: -1s}}]"), "min_cpu"},
        {BOTH("", "sampling_strategy: span-ingest, policies: [" HOT "]"), "is stateful"},
        {PROCESSORS(
             "index: {entries: 10000000, bytes: 1MiB}",
             "policies: [" HOT
             "]") "service: {budget_mib: 64, pipelines: {traces: {receivers: [test], processors: "
                  "[trace_profile_join, tail_sampling], exporters: [test]}}}\n",
         "more than a quarter of the memory for requests"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_true(harness_is_wrong(rows[i].yaml, rows[i].text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_with_samples_are_sampled),
        cmocka_unit_test(cpu_time_of_all_spans_and_profiles_counts),
        cmocka_unit_test(cpu_time_is_read_from_profiles_of_cpu_time),
        cmocka_unit_test(samples_may_name_the_span_alone),
        cmocka_unit_test(policies_of_profiles_combine_with_others),
        cmocka_unit_test(samples_of_dropped_traces_are_dropped),
        cmocka_unit_test(what_will_be_dropped_is_known_at_once),
        cmocka_unit_test(undecided_samples_are_kept_in_the_end),
        cmocka_unit_test(other_rules_keep_samples_of_dropped_traces),
        cmocka_unit_test(the_order_of_the_two_does_not_matter_to_keep),
        cmocka_unit_test(a_pipeline_without_tail_sampling_keeps_all),
        cmocka_unit_test(lanes_tell_one_another),
        cmocka_unit_test(without_the_join_there_is_no_such_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
