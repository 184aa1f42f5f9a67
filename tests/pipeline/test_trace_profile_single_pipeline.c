/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with one trace, on the fake clock: profiles without links and spans in the orders in
 * which programs send them, which profiles wait for them and how long. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/join/join_limits.h"

#define HOLD       (7 * S)
#define TRACE_HEX  "42424242424242424242424242424242"
#define ROOT_HEX   "6e696768746c792d"
#define OF_JOB     "service.name=job"
#define OF_ONE_JOB OF_JOB, "host.name=h", "process.pid=7"

enum { EVENTS_MAX = 5 };

/* A job's spans, from the 100th second on: two children, then the root of both. */
static const struct sketch_span spans[] = {
    {TRACE_B, "rows---1", "nightly-", "rows", KIND_INTERNAL, 102 * S, 103 * S, {NULL}, 0, 0},
    {TRACE_B, "rows---2", "nightly-", "rows", KIND_INTERNAL, 108 * S, 109 * S, {NULL}, 0, 0},
    {TRACE_B, "nightly-", NULL, "nightly", KIND_INTERNAL, 100 * S, 130 * S, {NULL}, 0, 0},
    {TRACE_B, "serves--", NULL, "serves", KIND_SERVER, 100 * S, 130 * S, {NULL}, 0, 0},
};
enum { EARLY_CHILD, LATE_CHILD, ROOT, OF_SERVER };

static const char *const job[] = {"service.name", "job", NULL};

static void send_span(struct harness *h, size_t span)
{
    join_offer_spans(h, 0, job, &spans[span], 1);
}

/* Ten seconds of a profile that names no span. */
static struct test_request *send_profile(struct harness *h, const char *const *resource,
                                         uint64_t from_s)
{
    static const struct sketch_sample step = {
        .stack = "step;main", .values_count = 1, .values = {5}};
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .time_ns = from_s * S,
                                           .duration_ns = 10 * S,
                                           .samples_count = 1,
                                           .samples = &step};
    struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    for (size_t i = 0; resource[i] != NULL; i++)
        sketch.resource[i] = resource[i];
    return join_offer_sketch(h, 0, &sketch);
}

static struct test_request *send_profile_of_job(struct harness *h, uint64_t from_s)
{
    static const char *const resource[] = {OF_JOB, NULL};
    return send_profile(h, resource, from_s);
}

static bool has_trace(const struct test_exporter *exporter, size_t held)
{
    bool has_id = join_says(exporter, held, 0, TRACE_HEX);
    assert_true(join_says(exporter, held, 0, ROOT_HEX) == has_id);
    return has_id;
}

static void a_job_gets_its_trace_in_any_order_of_arrival(void **state)
{
    enum { PROFILE = 100, END };
    static const struct {
        const char *what;
        int events[EVENTS_MAX]; /* PROFILE, or a span; half a second apart */
        const char *released;   /* the counter of those that had to wait */
        uint64_t waited;
        bool is_labelled;
    } rows[] = {
        {"profile, then a child", {PROFILE, EARLY_CHILD, END}, "complete", 1, true},
        {"profile, then the root alone", {PROFILE, ROOT, END}, "complete", 1, true},
        {"a child, then the profile", {EARLY_CHILD, PROFILE, END}, "complete", 0, true},
        {"the root, then the profile", {ROOT, PROFILE, END}, "complete", 0, true},
        {"a child that began late does not yet tell, the root does",
         {PROFILE, LATE_CHILD, ROOT, END},
         "complete",
         1,
         true},
        {"the same with the profile in between",
         {LATE_CHILD, PROFILE, ROOT, END},
         "complete",
         1,
         true},
        {"nothing but a late child", {PROFILE, LATE_CHILD, END}, "timeout", 1, false},
        {"the request of a server", {PROFILE, OF_SERVER, END}, "complete", 1, false},
        {"no span at all", {PROFILE, END}, "timeout", 1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(JOIN(""));
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        char counter[64];
        for (const int *event = rows[i].events; *event != END; event++) {
            if (*event == PROFILE)
                assert_int_equal(send_profile_of_job(h, 100)->items, 1);
            else
                send_span(h, (size_t)*event);
            harness_advance(h, S / 2);
        }
        if (strcmp(rows[i].released, "timeout") == 0)
            harness_advance(h, HOLD);
        snprintf(counter, sizeof(counter), "reason=\"%s\"", rows[i].released);
        if (exporter->held_count != 1 || has_trace(exporter, 0) != rows[i].is_labelled ||
            join_metric(h, counter) != rows[i].waited)
            fail_msg("%s: %zu gone on", rows[i].what, exporter->held_count);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

/* What is known when it comes, if nothing of it is waited for. */
static void only_those_wait_that_may_get_something(void **state)
{
    static const struct {
        const char *yaml;
        const char *resource[5];
        uint64_t from_s;
        bool waits;
    } rows[] = {
        {JOIN(""), {OF_JOB}, 100, true},
        {JOIN(""), {OF_ONE_JOB}, 100, true},
        {JOIN(""), {OF_JOB, "trace_id=own"}, 100, true},
        {JOIN(""), {OF_JOB, "trace_id=own", "root_span_id=own"}, 100, false},
        {JOIN(""), {"host.name=h", "process.pid=7"}, 100, false},
        {JOIN(""), {OF_JOB}, 0, false}, /* says not when */
        {JOIN("single_trace: off"), {OF_JOB}, 100, false},
        {JOIN("hold: 0s"), {OF_JOB}, 100, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(rows[i].yaml);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
        send_profile(h, rows[i].resource, rows[i].from_s);
        if (exporter->delivered_items != !rows[i].waits)
            fail_msg("row %zu", i);
        harness_advance(h, HOLD);
        assert_int_equal(exporter->delivered_items, 1);
        harness_destroy(h);
    }
}

static void a_service_whose_profilers_name_spans_does_not_wait_for_others(void **state)
{
    static const char *const shop[] = {"service.name=shop", NULL};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    harness_advance(h, HOLD);
    assert_int_equal(exporter->delivered_items, 1);
    send_profile(h, shop, 100);
    assert_int_equal(exporter->delivered_items, 2);
    harness_destroy(h);
}

static void a_service_without_spans_is_waited_for_until_it_is_known_to_have_none(void **state)
{
    static const char *const pods[][4] = {
        {OF_JOB, "container.id=c1"}, {OF_JOB, "container.id=c2"}, {OF_JOB, "container.id=c3"}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    uint64_t sent = 0;
    uint64_t waited = 0;
    for (uint64_t now_s = 0; now_s < 200; now_s += 10) {
        send_profile(h, pods[now_s / 10 % 3], 100 + now_s); /* its pods come and go */
        sent++;
        waited += exporter->delivered_items < sent;
        assert_true((exporter->delivered_items < sent) == (now_s * S <= JOIN_WARM_UP_NS));
        harness_advance(h, 10 * S);
        assert_int_equal(exporter->delivered_items, sent);
    }
    assert_int_equal(join_metric(h, "reason=\"timeout\""), waited);
    harness_advance(h, JOIN_WARM_UP_NS); /* a process that comes after a silence is new */
    send_profile(h, pods[0], 400);
    assert_int_equal(exporter->delivered_items, sent);
    harness_destroy(h);
}

/* Two pods of one job at a time: neither gets the other's trace. */
static void a_process_waits_for_its_own_spans_not_for_those_of_its_service(void **state)
{
    static const char *const other_job[] = {"service.name", "job", "host.name", "h",
                                            "process.pid",  "8",   NULL};
    static const char *const this_job[] = {"service.name", "job", "host.name", "h",
                                           "process.pid",  "7",   NULL};
    static const char *const resource[] = {OF_ONE_JOB, NULL};
    struct sketch_span other = spans[EARLY_CHILD];
    other.trace_id = TRACE_A;
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, other_job, &other, 1);
    send_profile(h, resource, 100);
    harness_advance(h, S);
    assert_int_equal(exporter->held_count, 0);
    join_offer_spans(h, 0, this_job, &spans[EARLY_CHILD], 1);
    harness_advance(h, S);
    assert_int_equal(exporter->held_count, 1);
    assert_true(has_trace(exporter, 0));
    join_let_go(exporter);
    harness_destroy(h);
}

/* One that names a span is worth more. */
static void those_that_may_wait_in_vain_take_a_quarter_of_the_room(void **state)
{
    static const char *const shop[] = {"service.name=shop", NULL};
    (void)state;
    struct harness *h = join_start(JOIN("hold_bytes: 2KiB"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct test_request *linked = join_offer_samples(h, 0, "service.name=linked", &join_work, 1);
    uint64_t sent = 0;
    assert_int_equal(linked->outcome.verdict, ACCEPTED);
    while (exporter->delivered_items == 0 && sent < 100) {
        send_profile(h, shop, 100);
        sent++;
    }
    assert_true(sent > 1);
    uint64_t held = join_metric(h, JOIN_METRIC "held_bytes{");
    assert_true(held > 0 && held <= 2048 / JOIN_PENDING_SHARE);
    assert_int_equal(join_metric(h, JOIN_METRIC "held_requests{"), sent);
    assert_int_equal(join_metric(h, "reason=\"pressure\""), 0);
    harness_advance(h, HOLD);
    assert_int_equal(exporter->delivered_items, sent + 1);
    harness_destroy(h);
}

/* Which attributes a program has set itself, where they stand, and which of the trace's come. */
static const struct own_case {
    const char *resource;
    const char *profile;
    const char *sample;
    bool gets_trace;
    bool gets_root;
} own_cases[] = {
    {"trace_id=own", NULL, NULL, false, true}, {"root_span_id=own", NULL, NULL, true, false},
    {NULL, "trace_id=own", NULL, false, true}, {NULL, "root_span_id=own", NULL, true, false},
    {NULL, NULL, "trace_id=own", false, true}, {NULL, NULL, "root_span_id=own", true, false},
};

static void what_a_program_says_stays_and_the_rest_is_added(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(own_cases) / sizeof(own_cases[0]); i++) {
        const struct own_case *row = &own_cases[i];
        struct harness *h = join_start(JOIN(""));
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        const struct sketch_sample sample = {
            .stack = "step;main", .values_count = 1, .values = {5}, .attributes = {row->sample}};
        const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                               .time_ns = 105 * S,
                                               .duration_ns = 10 * S,
                                               .samples_count = 1,
                                               .samples = &sample,
                                               .attributes = {row->profile}};
        const struct sketch sketch = {
            .resource = {OF_JOB, row->resource}, .profiles_count = 1, .profiles = &profile};
        send_span(h, ROOT);
        join_offer_sketch(h, 0, &sketch);
        assert_int_equal(exporter->held_count, 1);
        if (!join_says(exporter, 0, 0, "own") ||
            join_says(exporter, 0, 0, TRACE_HEX) != row->gets_trace ||
            join_says(exporter, 0, 0, ROOT_HEX) != row->gets_root)
            fail_msg("row %zu", i);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

static void when_memory_is_scarce_nothing_waits(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct budget *budget = harness_receiver(h, "test", 0)->budget;
    uint64_t most = budget_limit(budget) - budget_limit(budget) / 8;
    send_profile_of_job(h, 100);
    assert_int_equal(exporter->delivered_items, 0);
    budget_take(budget, most);
    harness_advance(h, S);
    assert_int_equal(exporter->delivered_items, 1);
    assert_int_equal(join_metric(h, "reason=\"pressure\""), 1);
    send_profile_of_job(h, 110);
    assert_int_equal(exporter->delivered_items, 2);
    budget_return(budget, most);
    harness_destroy(h);
}

static void what_waits_at_a_stop_goes_on(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct test_request *request = send_profile_of_job(h, 100);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(exporter->delivered_items, 0);
    harness_stop(h);
    harness_turn(h);
    assert_int_equal(exporter->delivered_items, 1);
    assert_int_equal(join_metric(h, "reason=\"stop\""), 1);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_gets_its_trace_in_any_order_of_arrival),
        cmocka_unit_test(only_those_wait_that_may_get_something),
        cmocka_unit_test(a_service_whose_profilers_name_spans_does_not_wait_for_others),
        cmocka_unit_test(a_service_without_spans_is_waited_for_until_it_is_known_to_have_none),
        cmocka_unit_test(a_process_waits_for_its_own_spans_not_for_those_of_its_service),
        cmocka_unit_test(those_that_may_wait_in_vain_take_a_quarter_of_the_room),
        cmocka_unit_test(what_a_program_says_stays_and_the_rest_is_added),
        cmocka_unit_test(when_memory_is_scarce_nothing_waits),
        cmocka_unit_test(what_waits_at_a_stop_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
