/* SPDX-License-Identifier: Apache-2.0 */
/* trace_profile_join in pipelines, on the fake clock: what samples and resources get, what the
 * index takes, and which settings are wrong. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"

enum { MIB = 1 << 20 };

static void a_sample_gets_its_link_at_once_when_the_span_is_there(void **state)
{
    (void)state;
    struct harness *h =
        join_start(JOIN("attributes: [span_name, http.route, status_class, duration_bucket, "
                        "span.http.response.status_code, resource.container.id]"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->held_count, 1);
    assert_false(request->is_resolved);
    assert_int_equal(join_metric(h, JOIN_METRIC "hits{"), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "enriched_samples{"), 1);
    assert_true(join_says(exporter, 0, 0, "span_name"));
    assert_true(join_says(exporter, 0, 0, "checkout"));
    assert_true(join_says(exporter, 0, 0, "/cart/{id}"));
    assert_true(join_says(exporter, 0, 0, "5xx"));
    assert_true(join_says(exporter, 0, 0, "<1s"));
    assert_true(join_says(exporter, 0, 0, "503"));
    assert_true(join_says(exporter, 0, 0, "c1"));
    join_let_go(exporter);
    harness_destroy(h);
}

/* Whatever is left of the budget, a sample that is accepted gets what its span says, or is counted.
 */
static void samples_without_room_pass_and_are_counted(void **state)
{
    (void)state;
    struct harness *h = join_start_with("hold: 0s");
    struct budget *budget = harness_receiver(h, "test", 0)->budget;
    uint64_t accepted = 0;
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    for (uint64_t left = 0; left < 256 * 1024; left += 512) {
        uint64_t taken = budget_limit(budget) - budget_used(budget) - left;
        budget_take(budget, taken);
        const struct test_request *request =
            join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
        budget_return(budget, taken);
        assert_true(request->is_resolved);
        accepted += request->outcome.verdict == ACCEPTED;
        assert_int_equal(join_metric(h, JOIN_METRIC "enriched_samples{") +
                             join_metric(h, JOIN_METRIC "unenriched_samples{"),
                         accepted);
    }
    assert_true(join_metric(h, JOIN_METRIC "enriched_samples{") > 0);
    assert_true(join_metric(h, JOIN_METRIC "unenriched_samples{") > 0);
    harness_destroy(h);
}

static uint64_t limit_with(const char *yaml)
{
    struct harness *h = join_start(yaml);
    uint64_t limit = budget_limit(harness_receiver(h, "test", 0)->budget);
    harness_destroy(h);
    return limit;
}

static void the_index_is_set_aside_from_the_budget(void **state)
{
    (void)state;
    assert_int_equal(limit_with(JOIN("index: {bytes: 8MiB}")) -
                         limit_with(JOIN("index: {bytes: 24MiB}")),
                     16 << 20);
}

/* It takes half of a small budget, unless that is too little for each lane. */
static void an_index_that_does_not_fit_is_smaller(void **state)
{
    static const char small[] = "processors: {trace_profile_join: {index: {bytes: 8MiB}}}\n"
                                "exporters: {test: }\n"
                                "service: {budget_mib: 1, pipelines: {profiles: {receivers: "
                                "[test], processors: [trace_profile_join], exporters: [test]}}}\n";
    (void)state;
    struct harness *h = harness_try_build(small, 1);
    assert_non_null(h);
    assert_int_equal(budget_limit(harness_receiver(h, "test", 0)->budget), 512 << 10);
    harness_destroy(h);
    assert_null(harness_try_build(small, 4));
}

static void labels_of_profilers_become_links(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a;main",
         .values_count = 1,
         .values = {1},
         .attributes = {"profile_id=7370616e2d2d2d31", "thread=t1"}},
        {.stack = "b;main",
         .values_count = 1,
         .values = {2},
         .attributes = {"trace_id=41414141414141414141414141414141", "span_id=7370616e2d2d2d31",
                        "span_name=mine"}},
        {.stack = "c;main",
         .values_count = 1,
         .values = {3},
         .attributes = {"trace_id=4242424242424242424242424242424242", "span_id=00"}},
    };
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "service.name=shop", samples, 3);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "checkout"));
    assert_true(join_says(exporter, 0, 0, "t1"));
    assert_false(join_says(exporter, 0, 0, "profile_id"));
    assert_true(join_says(exporter, 0, 1, "mine"));
    assert_false(join_says(exporter, 0, 1, "checkout"));
    assert_false(join_says(exporter, 0, 1, "trace_id"));
    assert_true(join_says(exporter, 0, 2, "trace_id"));
    assert_false(join_says(exporter, 0, 2, "checkout"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void two_spans_with_one_id_are_not_guessed_at(void **state)
{
    static const struct sketch_span spans[] = {
        {.trace_id = TRACE_A, .span_id = "span---1", .name = "one"},
        {.trace_id = TRACE_B, .span_id = "span---1", .name = "other"},
    };
    static const struct sketch_sample sample = {.stack = "a;main",
                                                .values_count = 1,
                                                .values = {1},
                                                .attributes = {"profile_id=7370616e2d2d2d31"}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, spans, 2);
    join_offer_samples(h, 0, "service.name=shop", &sample, 1);
    assert_int_equal(exporter->held_count, 1); /* waiting would not help */
    assert_true(join_says(exporter, 0, 0, "profile_id"));
    assert_false(join_says(exporter, 0, 0, "span_name"));
    assert_int_equal(join_metric(h, "reason=\"ambiguous\""), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_sample_may_get_the_id_of_the_local_root(void **state)
{
    static const struct sketch_span spans[] = {
        {.trace_id = TRACE_A,
         .span_id = "span---1",
         .parent_id = "span---2",
         .name = "query",
         .kind = KIND_INTERNAL,
         .flags = 0x100},
        {.trace_id = TRACE_A,
         .span_id = "span---2",
         .parent_id = "span---3",
         .name = "handle",
         .kind = KIND_SERVER,
         .flags = 0x300},
    };
    (void)state;
    struct harness *h = join_start(JOIN("span_id: root"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, spans, 2);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "handle"));
    assert_false(join_says(exporter, 0, 0, "query"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_profile_without_service_takes_that_of_its_container(void **state)
{
    static const struct sketch_sample unlinked = {
        .stack = "work;main", .values_count = 1, .values = {5}};
    (void)state;
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, &join_checkout, 1);
    join_offer_samples(h, 0, "container.id=c1", &unlinked, 1);
    join_offer_samples(h, 0, "container.id=c2", &unlinked, 1);
    assert_int_equal(exporter->held_count, 2);
    assert_true(join_says(exporter, 0, 0, "shop"));
    assert_false(join_says(exporter, 1, 0, "shop"));
    assert_int_equal(join_metric(h, JOIN_METRIC "repaired_resources{"), 1);
    join_let_go(exporter);
    harness_destroy(h);
}

/* Its resources, of 26 bytes, would get 800 each. */
static void many_small_resources_take_little_of_their_service(void **state)
{
    enum { RESOURCES = 20000, NAME = 200 };
    static const char resource[] = "\x0a\x18\x0a\x16\x0a\x14\x0a\x0c"
                                   "container.id"
                                   "\x12\x04\x0a\x02"
                                   "c1";
    static const struct sketch_sample unlinked = {
        .stack = "work;main", .values_count = 1, .values = {5}};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 1, .samples = &unlinked};
    const struct sketch sketch = {
        .resource = {"container.id=c1"}, .profiles_count = 1, .profiles = &profile};
    char name[NAME + 1];
    (void)state;
    memset(name, 'n', NAME);
    name[NAME] = '\0';
    const char *const shop[] = {"service.name", name, "service.namespace", name, "container.id",
                                "c1",           NULL};
    struct harness *h = join_start(JOIN(""));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, shop, &join_checkout, 1);
    struct slice first = sketch_request(&sketch);
    size_t size = first.size + RESOURCES * (sizeof(resource) - 1);
    uint8_t *request = mem_alloc(size);
    memcpy(request, first.data, first.size);
    for (size_t i = 0; i < RESOURCES; i++)
        memcpy(request + first.size + i * (sizeof(resource) - 1), resource, sizeof(resource) - 1);
    harness_offer_bytes(h, 0, PROFILES, slice_of(request, size), 1);
    assert_int_equal(exporter->held_count, 1);
    assert_in_range(exporter->held[0].batch->bytes, size + MIB, MIB + 6 * size);
    assert_in_range(join_metric(h, JOIN_METRIC "repaired_resources{"), 500, RESOURCES / 2);
    join_let_go(exporter);
    harness_destroy(h);
    mem_free(request);
    mem_free((void *)(uintptr_t)first.data);
}

static void lanes_share_the_index(void **state)
{
    (void)state;
    struct harness *h = join_start_on(JOIN(""), 2);
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_samples(h, 0, "service.name=shop", &join_work, 1);
    join_offer_spans(h, 1, join_shop, &join_checkout, 1);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->held_count, 1);
    assert_true(join_says(exporter, 0, 0, "checkout"));
    join_let_go(exporter);
    harness_destroy(h);
}

static void values_beyond_the_cap_are_other(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("cap: 2"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    for (unsigned i = 0; i < 4; i++) {
        char id[32];
        char name[32];
        snprintf(id, sizeof(id), "span--%02u", i);
        snprintf(name, sizeof(name), "name-%u", i);
        struct sketch_span span = {.trace_id = TRACE_A, .span_id = id, .name = name};
        struct sketch_sample sample = join_work;
        sample.span_id = id;
        join_offer_spans(h, 0, join_shop, &span, 1);
        join_offer_samples(h, 0, "service.name=shop", &sample, 1);
        assert_int_equal(exporter->held_count, i + 1);
        assert_true(join_says(exporter, i, 0, i < 2 ? name : "other"));
    }
    assert_int_equal(join_metric(h, JOIN_METRIC "other_values{"), 2);
    join_let_go(exporter);
    harness_destroy(h);
}

static void wrong_settings_are_reported(void **state)
{
    static const char *const rows[][2] = {
        {"{attributes: [span_nam]}", ":2:48: processors::trace_profile_join::attributes::0: "
                                     "found \"span_nam\", expected span_name"},
        {"{attributes: [span.]}", "attributes::0: found \"span.\""},
        {"{attributes: [span.a, resource.a]}", "give samples the same attribute"},
        {"{attributes: [http.route, span.http.route]}", "give samples the same attribute"},
        {"{duration_buckets: [1s, 1s]}", "expected more than the previous bound"},
        {"{duration_buckets: [x]}", "duration_buckets::0: found \"x\""},
        {"{duration_buckets: []}", "found 0 bounds, expected 1"},
        {"{hold: -1s}", "expected a duration from 0s to 5m"},
        {"{hold_bytes: lots}", "expected a number of bytes from 0 to 64GiB, such as \"64MiB\""},
        {"{mark: roots}", "expected one of"},
        {"{cap: 0}", "expected a whole number from 1 to 100000"},
        {"{count_for: [span, roots]}", "count_for::1: found \"roots\", expected span, root or"},
        {"{count_for: [span, root, root]}", "count_for::2: \"root\" is given twice"},
        {"{count_for: [root]}", "count_for: span is missing"},
        {"{count_for: []}", "count_for: span is missing"},
        {"{keep: error}", "keep: expected a list"},
        {"{keep: [errors]}",
         "keep::0: found \"errors\", expected slow: <duration>, error or sampled"},
        {"{keep: [error, error]}", "keep::1: \"error\" is given twice"},
        {"{keep: [slow: 1s, slow: 2s]}", "keep::1: slow is given twice"},
        {"{keep: [slow: 1]}", "keep::0: slow: expected a duration with its unit"},
        {"{keep: [slow: fast]}", "keep::0: slow: found \"fast\""},
        {"{keep: [slow: 0s]}", "keep::0: slow: found \"0s\", expected a duration above 0"},
        {"{keep: [{slow: 1s, error: 1}]}", "keep::0: expected a list"},
        {"{control: {endpoint: \"0.0.0.0:1\"}}",
         "trace_profile_join::control::endpoint: control::token is missing"},
        {"{control: {endpoint: \":1\"}}",
         "trace_profile_join::control::endpoint: control::token is missing"},
        {"{control: {endpoint: localhost}}",
         ":2:55: processors::trace_profile_join::control::endpoint"},
        {"{control: {token: x}}",
         "control::token: control::token has no effect without control::endpoint"},
        {"{links: {profile: x}}", "links::profile: byte 0: expected a URL that begins with"},
        {"{links: {profile: \"http://g/{spam_id}\"}}",
         "links::profile: byte 9: found {spam_id}, expected one of {service_name}"},
        {"{links: {profile: \"http://g/{profile_type}\"}}", "byte 9: found {profile_type}"},
        {"{holds: 1s}", "hold"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml), "processors: {trace_profile_join: %s}\n" JOIN_PIPELINES,
                 rows[i][0]);
        assert_true(harness_is_wrong(yaml, rows[i][1]));
    }
}

/* With less and less in use of a budget of 64 MiB, the request takes no more than there is, and in
 * the end gets all that it is to get. */
static void offer_within_budgets(const char *keys, const struct sketch_sample *many, size_t count)
{
    enum { FREE_STEPS = 19, STEP_MIB = 3 };
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = count, .samples = many};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    uint64_t unenriched = 0;
    for (unsigned step = 1; step < FREE_STEPS; step++) {
        char yaml[1024];
        snprintf(yaml, sizeof(yaml),
                 "processors: {trace_profile_join: {hold: 0s, index: {bytes: 1MiB}, %s}}\n"
                 "exporters: {test: {sending_queue: {enabled: false}}}\n"
                 "service: {budget_mib: 64, pipelines: {traces: {receivers: [test], processors: "
                 "[trace_profile_join], exporters: [test]}, profiles: {receivers: [test], "
                 "processors: [trace_profile_join], exporters: [test]}}}\n",
                 keys);
        struct harness *h = join_start(yaml);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        struct budget *budget = harness_receiver(h, "test", 0)->budget;
        const uint64_t limit = budget_limit(budget);
        uint64_t taken = limit - budget_used(budget) - (uint64_t)STEP_MIB * step * MIB;
        budget_take(budget, taken);
        harness_offer_bytes(h, 0, PROFILES, request, count);
        assert_in_range(harness_budget_peak(h), 0, limit + MIB / 2);
        budget_return(budget, taken);
        unenriched = join_metric(h, JOIN_METRIC "unenriched_samples{");
        join_let_go(exporter);
        harness_destroy(h);
    }
    assert_int_equal(unenriched, 0);
    mem_free((void *)(uintptr_t)request.data);
}

/* Each label that names a span becomes a link. */
static void links_are_added_within_the_budget(void **state)
{
    enum { MANY = 80000 };
    char(*texts)[2][64] = mem_alloc(MANY * sizeof(texts[0]));
    struct sketch_sample *many = mem_zalloc(MANY * sizeof(many[0]));
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(texts[i][0], sizeof(texts[i][0]), "trace_id=%032zx", i + 1);
        snprintf(texts[i][1], sizeof(texts[i][1]), "span_id=%016zx", i + 1);
        many[i] = (struct sketch_sample){
            .values_count = 1, .values = {1}, .attributes = {texts[i][0], texts[i][1]}};
    }
    offer_within_budgets("attributes: []", many, MANY);
    mem_free(many);
    mem_free(texts);
}

/* What the request says of its own accord is indexed, lest it be added again. */
static void attributes_that_came_are_indexed_within_the_budget(void **state)
{
    enum { MANY = 200000 };
    char(*texts)[40] = mem_alloc(MANY * sizeof(texts[0]));
    struct sketch_sample *many = mem_zalloc(MANY * sizeof(many[0]));
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof(texts[i]), "http.route=%zu", i);
        many[i] = (struct sketch_sample){.values_count = 1,
                                         .values = {1},
                                         .attributes = {texts[i]},
                                         .trace_id = TRACE_A,
                                         .span_id = "unknown-"};
    }
    offer_within_budgets("attributes: [http.route]", many, MANY);
    mem_free(many);
    mem_free(texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_gets_its_link_at_once_when_the_span_is_there),
        cmocka_unit_test(samples_without_room_pass_and_are_counted),
        cmocka_unit_test(the_index_is_set_aside_from_the_budget),
        cmocka_unit_test(an_index_that_does_not_fit_is_smaller),
        cmocka_unit_test(labels_of_profilers_become_links),
        cmocka_unit_test(two_spans_with_one_id_are_not_guessed_at),
        cmocka_unit_test(a_sample_may_get_the_id_of_the_local_root),
        cmocka_unit_test(a_profile_without_service_takes_that_of_its_container),
        cmocka_unit_test(many_small_resources_take_little_of_their_service),
        cmocka_unit_test(lanes_share_the_index),
        cmocka_unit_test(values_beyond_the_cap_are_other),
        cmocka_unit_test(wrong_settings_are_reported),
        cmocka_unit_test(links_are_added_within_the_budget),
        cmocka_unit_test(attributes_that_came_are_indexed_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
