/* SPDX-License-Identifier: Apache-2.0 */
/* The sending queue in a pipeline: what it takes, counts and refuses, what waits for what, its
 * consumers, and its batching. */
#include "tests/support/harness.h"
#include "tests/support/profile_sketch.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/client_info.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PIPELINE    "service: {pipelines: {traces: {receivers: [test], exporters: [test]}}}\n"
#define QUEUE(keys) "exporters: {test: {sending_queue: {" keys "}}}\n" PIPELINE

static struct harness *create_held(const char *yaml)
{
    struct harness *h = harness_create(yaml);
    harness_exporter(h, "test")->result = RESULT_HOLD;
    return h;
}

static void release_all(struct harness *h)
{
    harness_exporter(h, "test")->result = RESULT_OK;
    test_exporter_release(harness_exporter(h, "test"), RESULT_OK);
    harness_turn(h);
}

static void the_queue_acknowledges_what_it_takes(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE(""));
    struct test_request *request = harness_send_now(h, 5);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).in_flight, 5);
    release_all(h);
    assert_int_equal(harness_totals(h, TRACES).delivered, 5);
    harness_destroy(h);
}

static void a_full_queue_refuses_and_resumes_after_it_drained(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("queue_size: 3, num_consumers: 2"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    struct test_request *refused = harness_send_now(h, 7);
    assert_int_equal(refused->outcome.verdict, REFUSED);
    assert_int_equal(refused->outcome.code, STATUS_UNAVAILABLE);
    assert_false(refused->outcome.is_permanent);
    assert_true(refused->outcome.retry_after_ns > 0);
    assert_string_equal(refused->text, "sending queue is full");
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_BUSY], 7);
    assert_int_equal(harness_exporter(h, "test")->attempts_count, 2);
    release_all(h);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test")->delivered_items, 4);
    harness_destroy(h);
}

static void room_is_held_until_the_export_has_ended(void **state)
{
    (void)state;
    struct harness *h = harness_create(QUEUE("queue_size: 1"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->script[0] = RESULT_BUSY;
    exporter->script_count = 1;
    harness_send_now(h, 1);
    assert_int_equal(exporter->attempts_count, 1);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, REFUSED);
    harness_advance(h, 5 * S);
    assert_int_equal(exporter->attempts_count, 2);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

struct sizer_case {
    const char *name;
    const char *keys;
    uint64_t sent[4];
    unsigned taken;
    const char *message; /* of the first that is not */
};

/* Numbered spans take 12 bytes each and 4 for the messages around them. */
static const struct sizer_case sizer_cases[] = {
    {"requests count one each", "queue_size: 2", {1000, 1, 1}, 2, "sending queue is full"},
    {"items are counted", "queue_size: 10, sizer: items", {4, 6, 1}, 2, "sending queue is full"},
    {"bytes are counted", "queue_size: 56, sizer: bytes", {2, 2, 1}, 2, "sending queue is full"},
    {"one item too many", "queue_size: 10, sizer: items", {11}, 0, "element size too large"},
    {"one byte too many", "queue_size: 27, sizer: bytes", {2}, 0, "element size too large"},
};

static void the_sizer_says_what_queue_size_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizer_cases) / sizeof(sizer_cases[0]); i++) {
        const struct sizer_case *row = &sizer_cases[i];
        char yaml[512];
        print_message("  %s\n", row->name);
        snprintf(yaml, sizeof(yaml), "exporters: {test: {sending_queue: {%s}}}\n" PIPELINE,
                 row->keys);
        struct harness *h = create_held(yaml);
        for (unsigned j = 0; j < 4 && row->sent[j] > 0; j++) {
            struct test_request *request = harness_send_now(h, row->sent[j]);
            assert_int_equal(request->outcome.verdict, j < row->taken ? ACCEPTED : REFUSED);
            if (j == row->taken)
                assert_string_equal(request->text, row->message);
        }
        harness_destroy(h);
    }
}

static void an_element_larger_than_the_queue_is_unavailable_for_good(void **state)
{
    (void)state;
    struct harness *h = harness_create(QUEUE("queue_size: 10, sizer: items"));
    struct test_request *request = harness_send_now(h, 11);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_true(request->outcome.is_permanent);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_TOO_LARGE], 11);
    harness_destroy(h);
}

static void block_on_overflow_makes_the_client_wait_for_room(void **state)
{
    (void)state;
    struct harness *h =
        create_held(QUEUE("queue_size: 1, num_consumers: 1, block_on_overflow: true"));
    harness_send_now(h, 1);
    struct test_request *second = harness_send_now(h, 1);
    struct test_request *third = harness_send_now(h, 1);
    harness_advance(h, 60 * S);
    assert_false(second->is_resolved);
    assert_false(third->is_resolved);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "otelcol_exporter_enqueue_failed_spans{exporter=\"test\"} 0\n"));
    free(page);
    release_all(h);
    assert_int_equal(second->outcome.verdict, ACCEPTED);
    assert_int_equal(third->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test")->delivered_items, 3);
    harness_destroy(h);
}

static void what_never_fits_does_not_wait_for_room(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("queue_size: 5, sizer: items, block_on_overflow: true"));
    struct test_request *request = harness_send_now(h, 6);
    assert_int_equal(request->outcome.verdict, REFUSED);
    harness_destroy(h);
}

static unsigned count_results(const struct harness *h, enum verdict verdict)
{
    unsigned count = 0;
    for (size_t i = 0; i < h->requests_count; i++)
        count += h->requests[i]->is_resolved && h->requests[i]->outcome.verdict == verdict;
    return count;
}

enum { MANY_REQUESTS = 4000 };

static void all_wait_before_a_blocked_queue_and_none_is_refused(void **state)
{
    (void)state;
    struct harness *h =
        create_held(QUEUE("queue_size: 1, num_consumers: 1, block_on_overflow: true"));
    for (int i = 0; i < MANY_REQUESTS; i++)
        harness_send(h, 1);
    harness_advance(h, 60 * S);
    assert_int_equal(count_results(h, ACCEPTED), 1);
    assert_int_equal(count_results(h, REFUSED), 0);
    release_all(h);
    assert_int_equal(count_results(h, ACCEPTED), MANY_REQUESTS);
    assert_int_equal(harness_exporter(h, "test")->delivered_items, MANY_REQUESTS);
    harness_destroy(h);
}

/* One is in the queue and one at the fan-out; the others wait before batch. */
static void batch_waits_for_a_blocked_queue_and_refuses_nothing(void **state)
{
    (void)state;
    struct harness *h =
        create_held("processors: {batch: {timeout: 0s}}\n"
                    "exporters: {test: {sending_queue: {queue_size: 1, num_consumers: 1, "
                    "block_on_overflow: true}}}\n"
                    "service: {pipelines: {traces: {receivers: [test], processors: [batch], "
                    "exporters: [test]}}}\n");
    for (int i = 0; i < 300; i++)
        harness_send_now(h, 1);
    harness_advance(h, 60 * S);
    assert_int_equal(count_results(h, ACCEPTED), 1 + 1);
    assert_int_equal(count_results(h, REFUSED), 0);
    harness_exporter(h, "test")->result = RESULT_OK;
    test_exporter_release(harness_exporter(h, "test"), RESULT_OK);
    harness_advance(h, 1 * S);
    assert_int_equal(count_results(h, ACCEPTED), 300);
    assert_int_equal(harness_exporter(h, "test")->delivered_items, 300);
    harness_destroy(h);
}

/* All partitions of batch time out at once. */
static void several_batches_wait_at_a_blocked_queue(void **state)
{
    (void)state;
    struct harness *h =
        create_held("processors: {batch: {timeout: 1s, metadata_keys: [k]}}\n"
                    "exporters: {test: {sending_queue: {queue_size: 1, num_consumers: 1, "
                    "block_on_overflow: true}}}\n"
                    "service: {pipelines: {traces: {receivers: [test], processors: [batch], "
                    "exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    for (char c = 'a'; c <= 'h'; c++) {
        const struct client_metadata row = {.key = "k", .value = (char[]){c, '\0'}};
        struct client_info *client = client_info_create("127.0.0.1", &row, 1);
        harness_offer(h, (struct harness_offer){.items = 1, .client = client});
        client_info_unref(client);
    }
    harness_advance(h, 60 * S);
    assert_int_equal(exporter->attempts_count, 1);
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
    /* At this instant, not after a pause. */
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, 8);
    assert_int_equal(exporter->delivered_items, 8);
    assert_int_equal(exporter->doubled_items, 0);
    harness_destroy(h);
}

static void what_waits_before_a_blocked_queue_is_bounded_by_the_budget(void **state)
{
    (void)state;
    struct harness *h =
        create_held(QUEUE("queue_size: 1, num_consumers: 1, block_on_overflow: true"));
    struct budget *budget = &h->service->budget;
    harness_exporter(h, "test")->has_own_items = true;
    size_t left = (size_t)(budget_limit(budget) - budget_used(budget));
    struct buffer *rest = buffer_try_create(budget, left - 100 * (size_t)KIB);
    assert_non_null(rest);
    /* Their bytes are not charged here: what the pipeline itself needs for them is. */
    while (count_results(h, REFUSED) == 0) {
        assert_in_range(h->requests_count, 0, 1000);
        harness_offer_bytes(h, 0, TRACES, slice_of_text("spans"), 1);
    }
    struct test_request *refused = h->requests[h->requests_count - 1];
    assert_string_equal(refused->text, "the memory budget is used up, try again later");
    assert_int_equal(refused->outcome.code, STATUS_UNAVAILABLE);
    assert_true(refused->outcome.retry_after_ns > 0);
    assert_in_range(h->requests_count, 200, 1000);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_MEMORY], 1);
    char *page = harness_metrics(h);
    assert_non_null(strstr(page, "spanflame_budget_refusals 1\n"));
    assert_non_null(
        strstr(page, "spanflame_ring_refusals{ring=\"pipeline\",owner=\"traces\"} 1\n"));
    free(page);
    buffer_unref(rest);
    release_all(h);
    assert_int_equal(count_results(h, ACCEPTED), h->requests_count - 1);
    harness_destroy(h);
}

static void requests_without_items_take_no_room_of_an_items_sizer(void **state)
{
    (void)state;
    struct harness *h = create_held(
        QUEUE("queue_size: 2, sizer: items, num_consumers: 1, block_on_overflow: true"));
    harness_send_now(h, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(harness_send_now(h, 0)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_exporter(h, "test")->attempts_count, 1);
    release_all(h);
    assert_int_equal(harness_exporter(h, "test")->attempts_count, 5);
    harness_destroy(h);
}

static const struct {
    const char *name;
    unsigned lanes;
    const char *yaml;
} crowd_cases[] = {
    {"a queue with room for all", 1, QUEUE("queue_size: 5000")},
    {"no queue", 1, QUEUE("enabled: false")},
    {"memory_limiter and batch", 1,
     "processors: {memory_limiter: {check_interval: 1s, limit_mib: 100}, batch: }\n"
     "exporters: {test: }\n"
     "service: {pipelines: {traces: {receivers: [test], processors: [memory_limiter, batch], "
     "exporters: [test]}}}\n"},
    {"two pipelines on two lanes", 2,
     "processors: {batch: }\n"
     "exporters: {test: , test/other: {sending_queue: {enabled: false}}}\n"
     "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: [test]}, "
     "traces/2: {receivers: [test], exporters: [test/other]}}}\n"},
};

/* One turn of the loop can bring any number: no stage may be too small for them while a configured
 * limit has room. */
static void thousands_of_requests_in_one_turn_are_all_taken(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof(crowd_cases) / sizeof(crowd_cases[0]); row++) {
        print_message("  %s\n", crowd_cases[row].name);
        struct harness *h = harness_create_on(crowd_cases[row].yaml, crowd_cases[row].lanes);
        for (unsigned i = 0; i < MANY_REQUESTS; i++)
            assert_non_null(harness_offer(
                h, (struct harness_offer){.items = 1, .lane = i % crowd_cases[row].lanes}));
        harness_advance(h, 1 * S);
        assert_int_equal(count_results(h, ACCEPTED), MANY_REQUESTS);
        assert_int_equal(harness_totals(h, TRACES).rejected, 0);
        harness_destroy(h);
    }
}

static void wait_for_result_resolves_at_the_end_of_the_export(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("wait_for_result: true"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    struct test_request *good = harness_send_now(h, 2);
    assert_false(good->is_resolved);
    test_exporter_release(exporter, RESULT_PARTIAL);
    harness_turn(h);
    assert_int_equal(good->outcome.verdict, ACCEPTED);
    assert_int_equal(good->outcome.rejected_items, 1);
    struct test_request *bad = harness_send_now(h, 3);
    test_exporter_release(exporter, RESULT_PERMANENT);
    harness_turn(h);
    assert_int_equal(bad->outcome.verdict, LOST);
    assert_int_equal(bad->outcome.code, STATUS_INVALID_ARGUMENT);
    assert_int_equal(harness_totals(h, TRACES).rejected, 1 + 3);
    assert_int_equal(harness_totals(h, TRACES).delivered, 1);
    harness_destroy(h);
}

static void without_a_queue_the_client_gets_the_result_of_the_export(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("enabled: false"));
    struct test_request *request = harness_send_now(h, 2);
    assert_false(request->is_resolved);
    test_exporter_release(harness_exporter(h, "test"), RESULT_BUSY);
    harness_turn(h);
    assert_false(request->is_resolved); /* a retry is due */
    harness_advance(h, 5 * S);
    test_exporter_release(harness_exporter(h, "test"), RESULT_PERMANENT);
    harness_turn(h);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_string_equal(request->text, "back-end says no");
    assert_int_equal(harness_totals(h, TRACES).rejected, 2);
    harness_destroy(h);
}

static void so_many_consumers_export_at_once(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("num_consumers: 3"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    for (int i = 0; i < 8; i++)
        harness_send(h, 1);
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, 3);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, 6);
    harness_destroy(h);
}

struct part_case {
    const char *name;
    const char *keys;
    enum test_result result;
    const char *lines[5];
};

#define SENT(count)   "otelcol_exporter_sent_spans{exporter=\"test\"} " count "\n"
#define FAILED(count) "otelcol_exporter_send_failed_spans{exporter=\"test\"} " count "\n"
#define BOOKED(which, why, count)                                                                  \
    "spanflame_items_" which "{signal=\"traces\",reason=\"" why "\"} " count "\n"

/* Each request has seven items. Clients that wait for the result get it; those that have got OK do
 * not. */
static const struct part_case part_cases[] = {
    {"one refused by the back-end",
     "wait_for_result: true",
     RESULT_PARTIAL,
     {SENT("6"), FAILED("1"), BOOKED("rejected", "permanent", "1")}},
    {"one refused after the queue said OK",
     "",
     RESULT_PARTIAL,
     {SENT("6"), FAILED("1"), BOOKED("dropped", "permanent", "1")}},
    {"left out by the exporter",
     "",
     RESULT_LEFT_OUT,
     {SENT("3"), FAILED("4"), BOOKED("dropped", "invalid", "1"),
      BOOKED("dropped", "too_large", "2"), BOOKED("dropped", "permanent", "1")}},
    {"given up when one had arrived",
     "wait_for_result: true",
     RESULT_BROKEN_OFF,
     {SENT("1"), FAILED("6"), BOOKED("rejected", "retries_over", "6")}},
};

static void parts_of_a_request_are_counted_where_they_belong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(part_cases) / sizeof(part_cases[0]); i++) {
        const struct part_case *row = &part_cases[i];
        char yaml[512];
        print_message("  %s\n", row->name);
        snprintf(yaml, sizeof(yaml),
                 "exporters: {test: {retry_on_failure: {enabled: false}, sending_queue: "
                 "{%s}}}\n" PIPELINE,
                 row->keys);
        struct harness *h = create_held(yaml);
        harness_send_now(h, 7);
        test_exporter_release(harness_exporter(h, "test"), row->result);
        harness_turn(h);
        char *page = harness_metrics(h);
        for (size_t k = 0; k < 5 && row->lines[k] != NULL; k++)
            if (strstr(page, row->lines[k]) == NULL)
                fail_msg("missing: %s in\n%s", row->lines[k], page);
        free(page);
        harness_destroy(h);
    }
}

static void the_metrics_page_shows_the_queue(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("queue_size: 2, num_consumers: 1"));
    for (int i = 0; i < 3; i++)
        harness_send_now(h, 4);
    char *page = harness_metrics(h);
    static const char *const lines[] = {
        "otelcol_exporter_queue_size{data_type=\"traces\",exporter=\"test\"} 2\n",
        "otelcol_exporter_queue_capacity{data_type=\"traces\",exporter=\"test\"} 2\n",
        "otelcol_exporter_enqueue_failed_spans{exporter=\"test\"} 4\n",
        "spanflame_ring_depth{ring=\"sending_queue\",owner=\"traces/test\"} 1\n",
        "spanflame_ring_high_water{ring=\"sending_queue\",owner=\"traces/test\"} 1\n",
        "spanflame_ring_capacity{ring=\"sending_queue\",owner=\"traces/test\"} 16\n",
        "spanflame_ring_refusals{ring=\"sending_queue\",owner=\"traces/test\"} 1\n",
        "spanflame_ring_depth{ring=\"pipeline\",owner=\"traces\"} 0\n",
        "spanflame_ring_high_water{ring=\"pipeline\",owner=\"traces\"} 1\n",
        "spanflame_ring_capacity{ring=\"pipeline\",owner=\"traces\"} 16\n",
        "spanflame_ring_refusals{ring=\"pipeline\",owner=\"traces\"} 0\n",
        "spanflame_items_received{signal=\"traces\"} 12\n",
        "spanflame_items_in_flight{signal=\"traces\"} 8\n",
        "spanflame_items_rejected{signal=\"traces\",reason=\"busy\"} 4\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (strstr(page, lines[i]) == NULL)
            fail_msg("missing: %s in\n%s", lines[i], page);
    free(page);
    harness_destroy(h);
}

static void a_batch_in_the_queue_waits_for_min_size_or_the_flush_timeout(void **state)
{
    (void)state;
    struct harness *h = harness_create(QUEUE("batch: {min_size: 10, flush_timeout: 200ms}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    assert_int_equal(harness_send_now(h, 4)->outcome.verdict, ACCEPTED);
    harness_advance(h, 150 * MS);
    harness_send_now(h, 6);
    assert_int_equal(exporter->attempts_count, 1);
    assert_int_equal(exporter->attempts[0].items, 10);
    harness_send_now(h, 3);
    harness_advance(h, 199 * MS);
    assert_int_equal(exporter->attempts_count, 1);
    harness_advance(h, 1 * MS);
    assert_int_equal(exporter->attempts[1].items, 3);
    harness_destroy(h);
}

static void max_size_cuts_and_a_short_rest_waits_anew(void **state)
{
    (void)state;
    struct harness *h =
        harness_create(QUEUE("batch: {min_size: 4, max_size: 4, flush_timeout: 200ms}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    harness_send_now(h, 3);
    harness_advance(h, 100 * MS);
    harness_send_now(h, 7);
    assert_int_equal(exporter->attempts_count, 2);
    harness_advance(h, 199 * MS);
    assert_int_equal(exporter->attempts_count, 2);
    harness_advance(h, 1 * MS);
    assert_int_equal(exporter->attempts_count, 3);
    assert_int_equal(exporter->attempts[2].items, 2);
    assert_int_equal(exporter->doubled_items, 0);
    harness_destroy(h);
}

static void a_request_holds_its_room_until_all_its_pieces_are_done(void **state)
{
    (void)state;
    struct harness *h = create_held(QUEUE("queue_size: 2, num_consumers: 10, wait_for_result: true,"
                                          "batch: {min_size: 2, max_size: 2, sizer: items}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    struct test_request *first = harness_send_now(h, 3);
    struct test_request *second = harness_send_now(h, 3);
    assert_int_equal(exporter->attempts_count, 3);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, REFUSED);
    assert_false(first->is_resolved || second->is_resolved);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(first->is_resolved && second->is_resolved);
    assert_false(harness_send_now(h, 1)->is_resolved);
    harness_destroy(h);
}

/* Each of them has a copy of the resource: all together are many times the budget. */
static void profiles_are_cut_one_at_a_time_once_the_budget_is_used_up(void **state)
{
    enum { SAMPLES = 600, NOTE_BYTES = 800 };
    static struct sketch_sample samples[SAMPLES];
    static char notes[SKETCH_ATTRIBUTES_MAX][NOTE_BYTES];
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = SAMPLES, .samples = samples};
    struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++)
        samples[i] =
            (struct sketch_sample){.stack = "leaf;main", .values_count = 1, .values = {i + 1}};
    for (unsigned i = 0; i < SKETCH_ATTRIBUTES_MAX; i++) {
        snprintf(notes[i], NOTE_BYTES, "note%u=%0*u", i, NOTE_BYTES - 16, i);
        sketch.resource[i] = notes[i];
    }
    struct slice request = sketch_request(&sketch);
    struct harness *h = harness_create(
        "exporters: {test: {sending_queue: {num_consumers: 1000, batch: {min_size: 1, max_size: "
        "1, flush_timeout: 1h, sizer: items}}}}\n"
        "service: {budget_mib: 1, pipelines: {profiles: {receivers: [test], exporters: "
        "[test]}}}\n");
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    struct test_request *sent = harness_offer_bytes(h, 0, PROFILES, request, SAMPLES);
    assert_int_equal(sent->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    assert_in_range(harness_budget_used(h), MIB, MIB + MIB / 8);
    harness_let_go(h);
    harness_advance(h, 10 * S);
    assert_int_equal(harness_totals(h, PROFILES).delivered, SAMPLES);
    assert_int_equal(exporter->attempts_count, SAMPLES);
    harness_destroy(h);
    mem_free((void *)(uintptr_t)request.data);
}

/* Others have used the budget up, and give it back while an export is under way for long. */
static void pieces_that_memory_keeps_back_are_exported_once_there_is_room(void **state)
{
    enum { SAMPLES = 4, TAKEN = 2 * MIB };
    static const struct sketch_sample one = {
        .stack = "leaf;main", .values_count = 1, .values = {1}};
    struct sketch_sample samples[SAMPLES] = {one, one, one, one};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = SAMPLES, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    (void)state;
    struct slice request = sketch_request(&sketch);
    struct harness *h = harness_create(
        "exporters: {test: {sending_queue: {num_consumers: 2, batch: {min_size: 1, max_size: 1, "
        "flush_timeout: 1h, sizer: items}}}}\n"
        "service: {budget_mib: 1, pipelines: {profiles: {receivers: [test], exporters: "
        "[test]}}}\n");
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    harness_offer_bytes(h, 0, PROFILES, request, SAMPLES);
    assert_int_equal(exporter->attempts_count, 2);
    budget_take(&h->service->budget, TAKEN);
    test_exporter_release_first(exporter, RESULT_OK);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->attempts_count, 2);
    budget_return(&h->service->budget, TAKEN);
    harness_advance(h, 60 * S);
    assert_int_equal(exporter->attempts_count, 3);
    harness_let_go(h);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, PROFILES).delivered, SAMPLES);
    harness_destroy(h);
    mem_free((void *)(uintptr_t)request.data);
}

/* Together they would take the memory from each other again. */
static void exports_that_lacked_memory_are_tried_one_at_a_time(void **state)
{
    enum { EXPORTS = 3 };
    (void)state;
    struct harness *h = harness_create(
        "exporters: {test: {retry_on_failure: {initial_interval: 1s, max_interval: 1s, "
        "randomization_factor: 0}}}\n"
        "service: {pipelines: {traces: {receivers: [test], exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    exporter->script_count = EXPORTS;
    for (unsigned i = 0; i < EXPORTS; i++) {
        exporter->script[i] = RESULT_NO_MEMORY;
        harness_send_now(h, 1);
    }
    assert_int_equal(exporter->attempts_count, EXPORTS);
    for (unsigned i = 1; i <= EXPORTS; i++) {
        harness_advance(h, 2 * S);
        assert_int_equal(exporter->attempts_count, EXPORTS + i);
        assert_int_equal(exporter->held_count, 1);
        test_exporter_release(exporter, RESULT_OK);
    }
    harness_turn(h);
    assert_int_equal(exporter->delivered_items, EXPORTS);
    harness_destroy(h);
}

/* The client waits for the result, and the stop for the client. */
static void a_stop_does_not_wait_for_the_flush_timeout(void **state)
{
#define GATHERING "sizer: items, queue_size: 4, batch: {min_size: 4, flush_timeout: 1h}"
    static const char *const yamls[] = {QUEUE("wait_for_result: true, " GATHERING),
                                        QUEUE("block_on_overflow: true, " GATHERING)};
    (void)state;
    for (size_t i = 0; i < sizeof(yamls) / sizeof(yamls[0]); i++) {
        struct harness *h = harness_create(yamls[i]);
        harness_send_now(h, 3);
        /* The second has no room before the first has gone. */
        struct test_request *last = i == 0 ? h->requests[0] : harness_send_now(h, 2);
        assert_false(last->is_resolved);
        harness_stop(h);
        harness_advance(h, 1 * S);
        assert_true(last->is_resolved);
        assert_true(h->has_stopped);
        assert_false(h->was_forced);
        assert_int_equal(harness_exporter(h, "test")->delivered_items, i == 0 ? 3 : 5);
        harness_destroy(h);
    }
}

/* Merging profiles holds the lane, so that no more bytes gather than it has time for. */
static void so_many_bytes_of_profiles_are_exported_at_once(void **state)
{
    enum { SAMPLES = 300, TIMES = 400 }; /* more than half of the limit */
    static struct sketch_sample samples[SAMPLES];
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = SAMPLES, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++)
        samples[i] = (struct sketch_sample){
            .stack = "leaf;main", .values_count = 1, .values = {1}, .timestamps_count = TIMES};
    struct slice request = sketch_request(&sketch);
    struct harness *h = harness_create(
        "exporters: {test: {sending_queue: {batch: {flush_timeout: 1h}}}}\n"
        "service: {budget_mib: 64, pipelines: {profiles: {receivers: [test], exporters: "
        "[test]}}}\n");
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    for (unsigned i = 0; i < 5; i++) {
        harness_offer_bytes(h, 0, PROFILES, request, SAMPLES);
        harness_turn(h);
        assert_int_equal(exporter->attempts_count, (i + 1) / 2);
    }
    assert_int_equal(exporter->attempts[0].items, 2 * SAMPLES);
    harness_destroy(h);
    mem_free((void *)(uintptr_t)request.data);
}

static void one_failed_piece_fails_the_requests_in_it(void **state)
{
    (void)state;
    struct harness *h =
        harness_create(QUEUE("wait_for_result: true, batch: {min_size: 2, max_size: 2}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->script[0] = RESULT_OK;
    exporter->script[1] = RESULT_PERMANENT;
    exporter->script_count = 2;
    struct test_request *whole = harness_send(h, 2);
    struct test_request *torn = harness_send(h, 4);
    harness_turn(h);
    assert_int_equal(whole->outcome.verdict, ACCEPTED);
    assert_int_equal(torn->outcome.verdict, LOST);
    assert_int_equal(harness_totals(h, TRACES).delivered, 4);
    assert_int_equal(harness_totals(h, TRACES).rejected, 2);
    harness_destroy(h);
}

static void bytes_cut_too_and_what_cannot_be_cut_is_lost(void **state)
{
    (void)state;
    struct harness *h = harness_create(QUEUE("batch: {sizer: bytes, min_size: 20, max_size: 40}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    harness_send_now(h, 6);
    harness_advance(h, 200 * MS);
    assert_int_equal(exporter->delivered_items, 6);
    for (size_t i = 0; i < exporter->attempts_count; i++)
        assert_true(exporter->attempts[i].bytes <= 40);
    harness_destroy(h);
    h = harness_create(QUEUE("batch: {sizer: bytes, min_size: 2, max_size: 15}"));
    harness_send_now(h, 3);
    harness_advance(h, 200 * MS);
    assert_int_equal(harness_exporter(h, "test")->attempts_count, 0);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_TOO_LARGE], 3);
    assert_int_equal(harness_totals(h, TRACES).dropped, 3);
    harness_destroy(h);
}

static void a_turn_ends_when_its_time_is_over(void **state)
{
    enum { ITEMS = 60, LATER = 7 };
    static const char *const batches[] = {
        "batch: {min_size: 1, max_size: 1, flush_timeout: 1h}",
        "batch: {min_size: 100, max_size: 100, flush_timeout: 1h}, queue_size: 1000",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), QUEUE("%s"), batches[i]);
        struct harness *h = harness_create(yaml);
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->cost_ns = EXPORTER_TURN_NS / 2;
        if (i == 0)
            harness_send(h, ITEMS);
        else
            for (unsigned sent = 0; sent < ITEMS; sent++)
                harness_send(h, 100);
        harness_turn(h);
        harness_send_now(h, i == 0 ? LATER : 100);
        assert_int_equal(exporter->delivered_items, i == 0 ? ITEMS + LATER : (ITEMS + 1) * 100);
        assert_int_equal(exporter->most_in_turn, 2);
        harness_destroy(h);
    }
}

static void partitions_keep_clients_apart(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        QUEUE("batch: {min_size: 2, flush_timeout: 100ms, partition: {metadata_keys: [tenant]}}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    static const char *const tenants[] = {"a", "b", "a", "c"};
    for (int i = 0; i < 4; i++) {
        struct client_metadata row = {"tenant", tenants[i]};
        struct client_info *client = client_info_create("10.0.0.1", &row, 1);
        harness_offer(h, (struct harness_offer){.items = 1, .client = client});
        client_info_unref(client);
    }
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, 1);
    assert_string_equal(exporter->attempts[0].client, "a");
    assert_int_equal(exporter->attempts[0].items, 2);
    harness_advance(h, 100 * MS);
    assert_int_equal(exporter->attempts_count, 3);
    harness_destroy(h);
}

static void full_consumers_hold_the_gathering_back_and_lose_nothing(void **state)
{
    (void)state;
    struct harness *h =
        create_held(QUEUE("num_consumers: 1, batch: {min_size: 1, flush_timeout: 10ms}"));
    struct test_exporter *exporter = harness_exporter(h, "test");
    for (int i = 0; i < 20; i++) {
        harness_send_now(h, 1);
        harness_advance(h, 15 * MS);
    }
    assert_int_equal(exporter->attempts_count, 1);
    release_all(h);
    harness_advance(h, 100 * MS);
    assert_int_equal(exporter->delivered_items, 20);
    assert_int_equal(exporter->doubled_items, 0);
    harness_destroy(h);
}

static void wrong_configurations_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        const char *problem;
    } rows[] = {
        {"queue_size: 0", "queue_size"},
        {"num_consumers: 0", "num_consumers"},
        {"sizer: spans", "sizer"},
        {"batch: {flush_timeout: 0s}", "flush_timeout"},
        {"batch: {sizer: requests}", "`batch` supports only `items` or `bytes` sizer"},
        {"batch: {min_size: 10, max_size: 9}",
         "`max_size` (9) must be greater or equal to `min_size` (10)"},
        {"batch: {partition: {metadata_keys: [k, K]}}", "duplicate entry in metadata_keys: \"K\""},
        {"sizer: items, batch: {}", "`min_size` must be less than or equal to `queue_size`"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "exporters: {test: {sending_queue: {%s}}}\n" PIPELINE,
                 rows[i].keys);
        assert_true(harness_is_wrong(yaml, rows[i].problem));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_queue_acknowledges_what_it_takes),
        cmocka_unit_test(a_full_queue_refuses_and_resumes_after_it_drained),
        cmocka_unit_test(room_is_held_until_the_export_has_ended),
        cmocka_unit_test(the_sizer_says_what_queue_size_counts),
        cmocka_unit_test(an_element_larger_than_the_queue_is_unavailable_for_good),
        cmocka_unit_test(block_on_overflow_makes_the_client_wait_for_room),
        cmocka_unit_test(what_never_fits_does_not_wait_for_room),
        cmocka_unit_test(all_wait_before_a_blocked_queue_and_none_is_refused),
        cmocka_unit_test(batch_waits_for_a_blocked_queue_and_refuses_nothing),
        cmocka_unit_test(several_batches_wait_at_a_blocked_queue),
        cmocka_unit_test(what_waits_before_a_blocked_queue_is_bounded_by_the_budget),
        cmocka_unit_test(requests_without_items_take_no_room_of_an_items_sizer),
        cmocka_unit_test(thousands_of_requests_in_one_turn_are_all_taken),
        cmocka_unit_test(wait_for_result_resolves_at_the_end_of_the_export),
        cmocka_unit_test(without_a_queue_the_client_gets_the_result_of_the_export),
        cmocka_unit_test(so_many_consumers_export_at_once),
        cmocka_unit_test(parts_of_a_request_are_counted_where_they_belong),
        cmocka_unit_test(the_metrics_page_shows_the_queue),
        cmocka_unit_test(a_batch_in_the_queue_waits_for_min_size_or_the_flush_timeout),
        cmocka_unit_test(max_size_cuts_and_a_short_rest_waits_anew),
        cmocka_unit_test(profiles_are_cut_one_at_a_time_once_the_budget_is_used_up),
        cmocka_unit_test(pieces_that_memory_keeps_back_are_exported_once_there_is_room),
        cmocka_unit_test(exports_that_lacked_memory_are_tried_one_at_a_time),
        cmocka_unit_test(a_stop_does_not_wait_for_the_flush_timeout),
        cmocka_unit_test(so_many_bytes_of_profiles_are_exported_at_once),
        cmocka_unit_test(a_request_holds_its_room_until_all_its_pieces_are_done),
        cmocka_unit_test(one_failed_piece_fails_the_requests_in_it),
        cmocka_unit_test(bytes_cut_too_and_what_cannot_be_cut_is_lost),
        cmocka_unit_test(a_turn_ends_when_its_time_is_over),
        cmocka_unit_test(partitions_keep_clients_apart),
        cmocka_unit_test(wrong_configurations_are_named),
        cmocka_unit_test(full_consumers_hold_the_gathering_back_and_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
