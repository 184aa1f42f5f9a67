/* SPDX-License-Identifier: Apache-2.0 */
/* The profile_limits processor in a pipeline, from YAML to bytes and ledger: what it leaves out is
 * a drop once the rest is accepted, and nothing at all while the rest is refused. */
#include "tests/support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/service/service_parts.h"
#include "tests/support/profile_sketch.h"

#define PIPELINE                                                                                   \
    "exporters: {test: {sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}\n"   \
    "service: {pipelines: {profiles: {receivers: [test], processors: [profile_limits], "           \
    "exporters: [test]}}}\n"

static const struct sketch_sample samples[] = {
    {.stack = "secret_work;main", .values_count = 1, .values = {5}},
    {.stack = "idle;main", .values_count = 1, .values = {3}},
    {.stack = "rest;more;main", .values_count = 1, .values = {1}},
};

/* A request of three samples and an unknown field, offered to the receiver; it stays valid
 * until the harness is gone. */
static struct test_request *offer_with(struct harness *h, size_t unknown_bytes)
{
    static const struct sketch_profile profile = {
        .type = {"samples", "count"}, .samples_count = 3, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct slice bytes = sketch_request(&sketch);
    struct profile_bytes out = {0};
    profile_bytes_room(&out, unknown_bytes);
    memset(out.data, 'u', unknown_bytes);
    out.size = unknown_bytes;
    profile_bytes_wrap(&out, 0, 15);
    profile_bytes_add(&out, bytes);
    struct test_request *request =
        harness_offer_bytes(h, 0, PROFILES, slice_of(out.data, out.size), 3);
    profile_bytes_fini(&out);
    mem_free((void *)(uintptr_t)bytes.data);
    return request;
}

static struct test_request *offer(struct harness *h)
{
    return offer_with(h, 0);
}

static bool contains(const struct batch *batch, const char *text)
{
    assert_int_equal(batch->parts_count, 1);
    return memmem(batch->parts[0].bytes.data, batch->parts[0].bytes.size, text, strlen(text)) !=
           NULL;
}

static void what_is_left_out_is_dropped_in_the_ledger_once_the_rest_is_accepted(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {profile_limits: {max_samples: 2, drop_frames: [^idle$], "
                       "rename: [{pattern: secret_(\\w+), replacement: $$1}]}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    struct test_request *request = offer(h);
    assert_int_equal(exporter->held_count, 1);
    const struct batch *batch = exporter->held[0].batch;
    assert_int_equal(batch->items, 2);
    assert_true(contains(batch, "work"));
    assert_false(contains(batch, "secret"));
    assert_false(contains(batch, "idle"));
    assert_false(contains(batch, "rest"));
    assert_int_equal(harness_totals(h, PROFILES).dropped, 0);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, 3);
    assert_int_equal(totals.delivered, 2);
    assert_int_equal(totals.dropped, 1);
    assert_int_equal(totals.by_reason[LOSS_TOO_LARGE], 1);
    char *metrics = harness_metrics(h);
    assert_non_null(strstr(metrics, "otelcol_processor_profile_limits_dropped_samples"));
    assert_non_null(strstr(metrics, "otelcol_processor_profile_limits_renamed"));
    free(metrics);
    harness_destroy(h);
}

/* The lane's helper does it. */
static void a_large_request_is_limited_as_a_small_one(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {profile_limits: {drop_frames: [^idle$]}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    struct test_request *request = offer_with(h, HELPED_PROFILES_BYTES_MIN);
    assert_false(request->is_resolved);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 3);
    assert_true(contains(exporter->held[0].batch, "secret_work"));
    assert_false(contains(exporter->held[0].batch, "idle"));
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void a_refused_request_is_counted_as_a_whole_and_nothing_as_dropped(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {profile_limits: {max_samples: 1}}\n" PIPELINE);
    harness_exporter_on(h, "test", 0, PROFILES)->result = RESULT_BUSY;
    struct test_request *request = offer(h);
    assert_true(request->is_resolved);
    assert_int_not_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, totals.rejected + totals.dropped);
    assert_int_equal(totals.delivered, 0);
    harness_destroy(h);
}

/* batch has answered for it: it waits until there is memory. */
static void an_acknowledged_request_waits_for_memory(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {profile_limits: {max_samples: 2}, batch: {timeout: 1s}}\n"
        "exporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {pipelines: {profiles: {receivers: [test], processors: [batch, profile_limits], "
        "exporters: [test]}}}\n");
    struct budget *budget = &h->service->budget;
    struct test_request *request = offer(h);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    uint64_t rest = budget_limit(budget) - budget_used(budget);
    assert_true(budget_try_take(budget, rest));
    harness_advance(h, 3 * (uint64_t)NS_PER_S);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.dropped + totals.delivered, 0);
    budget_return(budget, rest);
    harness_advance(h, 60 * (uint64_t)NS_PER_S);
    totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.delivered, 2);
    assert_int_equal(totals.by_reason[LOSS_TOO_LARGE], 1);
    harness_destroy(h);
}

/* Replacements may be many times as long. */
static void longer_names_wait_for_memory(void **state)
{
    enum { LONG = 4000, FRAMES = 100 };
    static const unsigned budgets_mib[] = {4, 1};
    char yaml[LONG + 1024];
    char stack[FRAMES * 4];
    size_t size = 0;
    (void)state;
    for (unsigned i = 0; i < FRAMES; i++)
        size += (size_t)snprintf(stack + size, sizeof(stack) - size, i == 0 ? "%u" : ";%u", i);
    const struct sketch_sample deep = {.stack = stack, .values_count = 1, .values = {1}};
    const struct sketch_profile profile = {
        .type = {"samples", "count"}, .samples_count = 1, .samples = &deep};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct slice bytes = sketch_request(&sketch);
    for (size_t i = 0; i < 2; i++) {
        snprintf(yaml, sizeof(yaml),
                 "processors: {profile_limits: {rename: [{pattern: .+, replacement: %0*d}]}}\n"
                 "exporters: {test: {sending_queue: {enabled: false}}}\n"
                 "service: {budget_mib: %u, pipelines: {profiles: {receivers: [test], processors: "
                 "[profile_limits], exporters: [test]}}}\n",
                 LONG, 0, budgets_mib[i]);
        struct harness *h = harness_create(yaml);
        const bool is_hopeless = budgets_mib[i] == 1;
        struct budget *budget = &h->service->budget;
        const uint64_t taken = is_hopeless ? 0 : budget_limit(budget) - MIB;
        budget_take(budget, taken);
        struct test_request *request = harness_offer_bytes(h, 0, PROFILES, bytes, 1);
        assert_int_equal(request->outcome.verdict, REFUSED);
        assert_int_equal(request->outcome.is_permanent, is_hopeless);
        budget_return(budget, taken);
        request = harness_offer_bytes(h, 0, PROFILES, bytes, 1);
        assert_int_equal(request->outcome.verdict, is_hopeless ? REFUSED : ACCEPTED);
        harness_destroy(h);
    }
    mem_free((void *)(uintptr_t)bytes.data);
}

static void wrong_settings_are_reported(void **state)
{
    static const char *const rows[][2] = {
        {"{}", "nothing is limited: set at least one of max_stack_depth"},
        {"{rename: [{replacement: x}]}", "rename::0::pattern: missing required field \"pattern\""},
        {"{rename: [{pattern: \"(\", replacement: x}]}", "rename::0::pattern: invalid pattern"},
        {"{rename: [{pattern: a, replacement: $$1}]}",
         "rename::0::replacement: replacement \"$1\": found group"},
        {"{drop_frames: [a, \"[\"]}", "drop_frames::1: invalid pattern"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "processors: {profile_limits: %s}\n" PIPELINE, rows[i][0]);
        assert_true(harness_is_wrong(yaml, rows[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_dropped_in_the_ledger_once_the_rest_is_accepted),
        cmocka_unit_test(a_refused_request_is_counted_as_a_whole_and_nothing_as_dropped),
        cmocka_unit_test(a_large_request_is_limited_as_a_small_one),
        cmocka_unit_test(an_acknowledged_request_waits_for_memory),
        cmocka_unit_test(longer_names_wait_for_memory),
        cmocka_unit_test(wrong_settings_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
