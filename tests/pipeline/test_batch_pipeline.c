/* SPDX-License-Identifier: Apache-2.0 */
/* The batch processor in a pipeline: when it sends, how much, whose receipts it resolves, and that
 * it loses nothing while the next stage is busy. */
#include "tests/support/harness.h"

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/telemetry_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PIPELINE                                                                                   \
    "service: {pipelines: {traces: {receivers: [test], processors: [batch], exporters: "           \
    "[test]}}}\n"
/* No queue: what the batch processor sends is attempted at once. */
#define DIRECT "exporters: {test: {sending_queue: {enabled: false}}}\n" PIPELINE

static void expect_sizes(const struct test_exporter *exporter, const uint64_t *sizes, size_t count)
{
    assert_int_equal(exporter->attempts_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(exporter->attempts[i].items, sizes[i]);
}

static void an_item_waits_for_the_timeout_and_its_client_does_not(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 200ms}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    struct test_request *request = harness_send_now(h, 3);
    assert_true(request->is_resolved);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    harness_advance(h, 199 * MS);
    assert_int_equal(exporter->attempts_count, 0);
    harness_advance(h, 1 * MS);
    expect_sizes(exporter, (const uint64_t[]){3}, 1);
    harness_destroy(h);
}

static void ticks_come_every_timeout_after_the_last_flush(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 200ms}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    harness_send_now(h, 1);
    harness_advance(h, 200 * MS);
    harness_advance(h, 350 * MS);
    harness_send_now(h, 1);
    harness_advance(h, 49 * MS);
    assert_int_equal(exporter->attempts_count, 1);
    harness_advance(h, 1 * MS);
    assert_int_equal(exporter->attempts_count, 2);
    harness_destroy(h);
}

static void a_flush_by_size_starts_the_timeout_anew(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 200ms, send_batch_size: 10, "
                                       "send_batch_max_size: 10}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    harness_send_now(h, 4);
    harness_advance(h, 150 * MS);
    harness_send_now(h, 8);
    expect_sizes(exporter, (const uint64_t[]){10}, 1);
    harness_advance(h, 199 * MS);
    assert_int_equal(exporter->attempts_count, 1);
    harness_advance(h, 1 * MS);
    expect_sizes(exporter, (const uint64_t[]){10, 2}, 2);
    assert_int_equal(exporter->doubled_items, 0);
    harness_destroy(h);
}

struct size_case {
    const char *name;
    const char *yaml;
    uint64_t sent[4];
    uint64_t got[8]; /* at once, without a tick */
};

static const struct size_case size_cases[] = {
    {"send_batch_size is a trigger, not a cap", "{timeout: 1h, send_batch_size: 5}", {3, 9}, {12}},
    {"send_batch_max_size cuts what is larger",
     "{timeout: 1h, send_batch_size: 4, send_batch_max_size: 4}",
     {11},
     {4, 4}},
    {"a cap above the trigger is kept and the rest waits",
     "{timeout: 1h, send_batch_size: 4, send_batch_max_size: 10}",
     {3, 20},
     {10, 10}},
    {"what is left over may itself be enough",
     "{timeout: 1h, send_batch_size: 4, send_batch_max_size: 10}",
     {25},
     {10, 10, 5}},
    {"timeout 0 passes on at once", "{timeout: 0s, send_batch_size: 100}", {1, 2}, {1, 2}},
    {"timeout 0 still keeps the cap",
     "{timeout: 0s, send_batch_size: 2, send_batch_max_size: 2}",
     {5},
     {2, 2, 1}},
    {"send_batch_size 0 passes on at once", "{timeout: 1h, send_batch_size: 0}", {7, 1}, {7, 1}},
    {"below the trigger nothing is sent", "{timeout: 1h, send_batch_size: 8192}", {8191}, {0}},
};

static void sizes_decide_what_is_sent_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(size_cases) / sizeof(size_cases[0]); i++) {
        const struct size_case *row = &size_cases[i];
        char yaml[1024];
        print_message("  %s\n", row->name);
        snprintf(yaml, sizeof(yaml), "processors: {batch: %s}\n" DIRECT, row->yaml);
        struct harness *h = harness_create(yaml);
        struct test_exporter *exporter = harness_exporter(h, "test");
        uint64_t sent = 0;
        for (size_t j = 0; row->sent[j] > 0; sent += row->sent[j++])
            harness_send_now(h, row->sent[j]);
        size_t count = 0;
        while (row->got[count] > 0)
            count++;
        expect_sizes(exporter, row->got, count);
        harness_stop(h);
        harness_turn(h);
        assert_int_equal(exporter->delivered_items, sent);
        assert_int_equal(exporter->doubled_items, 0);
        harness_destroy(h);
    }
}

/* What later stages do with a batch whose clients have their OK is no longer refused. */
static void a_batch_is_small_beside_the_budget(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 1h, send_batch_size: 10}, "
                       "memory_limiter: {check_interval: 1s, limit_mib: 1}}\n"
                       "exporters: {test: {}}\nservice: {pipelines: {traces: {receivers: [test], "
                       "processors: [memory_limiter, batch], exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    harness_send_now(h, 600);
    expect_sizes(exporter, (const uint64_t[]){256, 256, 88}, 3);
    harness_destroy(h);
}

static void requests_gather_in_one_batch_in_order(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 1h, send_batch_size: 10}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    for (int i = 0; i < 10; i++)
        harness_send(h, 1);
    harness_turn(h);
    expect_sizes(exporter, (const uint64_t[]){10}, 1);
    /* The first as it came, and the others copied together behind it. */
    assert_int_equal(exporter->attempts[0].parts, 2);
    for (int i = 0; i < 10; i++)
        assert_int_equal(exporter->seen[i], 1);
    harness_destroy(h);
}

static void an_empty_request_is_taken_and_holds_nothing_up(void **state)
{
    (void)state;
    static const char *const timings[] = {"{timeout: 200ms}", "{timeout: 0s}"};
    for (size_t i = 0; i < 2; i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "processors: {batch: %s}\n" DIRECT, timings[i]);
        struct harness *h = harness_create(yaml);
        struct test_request *request = harness_send_now(h, 0);
        assert_true(request->is_resolved);
        assert_int_equal(request->outcome.verdict, ACCEPTED);
        harness_stop(h);
        harness_turn(h);
        assert_true(h->has_stopped);
        harness_destroy(h);
    }
}

static void a_refused_batch_is_kept_and_offered_again(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s}}\n"
        "exporters: {test: {sending_queue: {queue_size: 1, num_consumers: 1}}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    struct test_request *refused = harness_send_now(h, 1);
    assert_int_equal(refused->outcome.verdict, REFUSED);
    assert_int_equal(refused->outcome.code, STATUS_UNAVAILABLE);
    assert_true(refused->outcome.retry_after_ns > 0);
    harness_advance(h, 100 * MS);
    assert_int_equal(exporter->attempts_count, 1);
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
    harness_advance(h, 20 * MS);
    assert_int_equal(exporter->delivered_items, 2);
    assert_int_equal(exporter->doubled_items, 0);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    assert_int_equal(harness_totals(h, TRACES).by_reason[LOSS_BUSY], 1);
    harness_destroy(h);
}

static void a_full_batch_is_gathered_while_one_waits_and_no_more(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1h, send_batch_size: 4}}\n"
        "exporters: {test: {sending_queue: {queue_size: 1, num_consumers: 1}}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    unsigned accepted = 0;
    exporter->result = RESULT_HOLD;
    for (int i = 0; i < 20; i++)
        accepted += harness_send_now(h, 1)->outcome.verdict == ACCEPTED;
    assert_int_equal(accepted, 12); /* one at the exporter, one refused, one gathered */
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
    harness_advance(h, 100 * MS);
    expect_sizes(exporter, (const uint64_t[]){4, 4, 4}, 3);
    harness_destroy(h);
}

static void what_can_never_fit_the_queue_is_lost_and_counted(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1h, send_batch_size: 10}}\n"
        "exporters: {test: {sending_queue: {queue_size: 5, sizer: items}}}\n" PIPELINE);
    struct test_exporter *exporter = harness_exporter(h, "test");
    assert_int_equal(harness_send_now(h, 10)->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.dropped, 10);
    assert_int_equal(totals.by_reason[LOSS_TOO_LARGE], 10);
    assert_int_equal(exporter->attempts_count, 0);
    assert_int_equal(harness_send_now(h, 3)->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void a_permanent_error_is_a_drop_after_the_client_got_its_ok(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 0s}}\n" DIRECT);
    harness_exporter(h, "test")->result = RESULT_PERMANENT;
    assert_int_equal(harness_send_now(h, 5)->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, TRACES);
    assert_int_equal(totals.dropped, 5);
    assert_int_equal(totals.by_reason[LOSS_PERMANENT], 5);
    harness_destroy(h);
}

static void wait_for_result_resolves_when_all_pieces_have_a_result(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 1h, send_batch_size: 4, "
                                       "send_batch_max_size: 4, wait_for_result: true}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    struct test_request *small = harness_send_now(h, 3);
    struct test_request *large = harness_send_now(h, 4);
    assert_int_equal(exporter->attempts_count, 1);
    assert_false(small->is_resolved);
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(small->is_resolved);
    assert_false(large->is_resolved);
    struct test_request *last = harness_send_now(h, 1);
    test_exporter_release(exporter, RESULT_PERMANENT);
    harness_turn(h);
    assert_int_equal(small->outcome.verdict, ACCEPTED);
    assert_int_equal(large->outcome.verdict, LOST);
    assert_int_equal(last->outcome.verdict, LOST);
    assert_int_equal(harness_totals(h, TRACES).rejected, 4);
    assert_int_equal(harness_totals(h, TRACES).delivered, 4);
    harness_destroy(h);
}

static void what_never_fits_is_rejected_when_the_client_waits(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s, wait_for_result: true}}\n"
        "exporters: {test: {sending_queue: {queue_size: 5, sizer: items}}}\n" PIPELINE);
    struct test_request *request = harness_send_now(h, 6);
    assert_int_equal(request->outcome.verdict, LOST);
    assert_int_equal(request->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(harness_totals(h, TRACES).rejected, 6);
    harness_destroy(h);
}

static void wrong_configurations_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        const char *problem;
    } rows[] = {
        {"{send_batch_size: 10, send_batch_max_size: 9}",
         "send_batch_max_size must be greater or equal to send_batch_size"},
        {"{send_batch_max_size: 8191}",
         "send_batch_max_size must be greater or equal to send_batch_size"},
        {"{metadata_keys: [a, b, A]}",
         "duplicate entry in metadata_keys: \"A\" (case-insensitive)"},
        {"{timeout: -1s}", "timeout"},
        {"{send_batch_sise: 1}", "send_batch_size"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml), "processors: {batch: %s}\n" DIRECT, rows[i].keys);
        assert_true(harness_is_wrong(yaml, rows[i].problem));
    }
}

static void metadata_keys_keep_clients_apart_up_to_a_limit(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 100ms, metadata_keys: [Tenant],"
                       " metadata_cardinality_limit: 2}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    static const char *const tenants[] = {"a", "b", "a", "c"};
    struct test_request *requests[4];
    for (int i = 0; i < 4; i++) {
        struct client_metadata rows[] = {{"other", "x"}, {"tenant", tenants[i]}};
        struct client_info *client = client_info_create("10.0.0.1", rows, 2);
        requests[i] = harness_offer(h, (struct harness_offer){.items = 1, .client = client});
        client_info_unref(client);
    }
    harness_turn(h);
    assert_int_equal(requests[3]->outcome.verdict, REFUSED);
    assert_false(requests[3]->outcome.is_permanent);
    assert_int_equal(requests[3]->outcome.code, STATUS_UNAVAILABLE);
    assert_string_equal(requests[3]->text, "too many batcher metadata-value combinations");
    harness_advance(h, 100 * MS);
    assert_int_equal(exporter->attempts_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(exporter->attempts[i].items,
                         strcmp(exporter->attempts[i].client, "a") == 0 ? 2 : 1);
    assert_string_not_equal(exporter->attempts[0].client, exporter->attempts[1].client);
    harness_destroy(h);
}

static struct test_request *offer_as(struct harness *h, const char *tenant)
{
    struct client_metadata row = {"tenant", tenant};
    struct client_info *client = client_info_create("10.0.0.1", &row, 1);
    struct test_request *request =
        harness_offer(h, (struct harness_offer){.items = 1, .client = client});
    client_info_unref(client);
    return request;
}

static void made_up_tenants_lock_no_client_out(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 100ms, metadata_keys: [tenant],"
                       " metadata_cardinality_limit: 100}}\n" DIRECT);
    struct test_request *last = NULL;
    for (int i = 0; i < 150; i++) {
        char tenant[24];
        snprintf(tenant, sizeof(tenant), "made-up %d", i);
        last = offer_as(h, tenant);
    }
    struct test_request *anonymous = offer_as(h, "");
    struct test_request *without = harness_offer(h, (struct harness_offer){.items = 1});
    harness_turn(h);
    assert_int_equal(last->outcome.verdict, REFUSED);
    assert_int_equal(anonymous->outcome.verdict, REFUSED);
    assert_int_equal(without->outcome.verdict, ACCEPTED);
    harness_advance(h, 100 * MS);
    harness_advance(h, 1000 * MS);
    struct test_request *real = offer_as(h, "real");
    harness_turn(h);
    assert_int_equal(real->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void more_outputs_than_may_be_under_way_wait_their_turn(void **state)
{
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 0s}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    for (int i = 0; i < 300; i++)
        assert_int_equal(harness_send_now(h, 1)->is_resolved, i < 16);
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    for (int i = 0; i < 300; i++)
        assert_int_equal(h->requests[i]->outcome.verdict, ACCEPTED);
    assert_int_equal(exporter->delivered_items, 300);
    harness_destroy(h);
}

/* A slow back-end meets no limit that is configured, so clients wait for their response. */
static void while_exports_are_slow_input_waits_and_a_stop_lets_it_go(void **state)
{
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1s, send_batch_size: 4, send_batch_max_size: 4}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    for (int i = 0; i < 100; i++)
        harness_send_now(h, 1);
    /* 16 batches are under way and one is gathered. */
    for (int i = 0; i < 100; i++)
        assert_int_equal(h->requests[i]->is_resolved, i < 17 * 4);
    harness_advance(h, 60 * S);
    assert_false(h->requests[99]->is_resolved);
    harness_stop(h);
    harness_turn(h);
    assert_false(h->has_stopped);
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
    harness_turn(h);
    assert_true(h->has_stopped);
    assert_int_equal(exporter->delivered_items, 100);
    assert_int_equal(exporter->doubled_items, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(h->requests[i]->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

/* They would wait as long as what is before them. */
static void while_the_next_stage_refuses_waiting_clients_are_told(void **state)
{
    enum { REQUESTS = 20, UNDER_WAY = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s}, resource: {attributes: [{key: k, value: v, action: "
        "insert}]}}\nexporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 1, pipelines: {traces: {receivers: [test], processors: [batch, "
        "resource], exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->has_own_items = true;
    exporter->result = RESULT_HOLD;
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(harness_send_now(h, 1)->is_resolved, i < UNDER_WAY);
    /* The first of those that wait is taken, and kept out by want of memory. */
    budget_take(&h->service->budget, 2 * MIB);
    exporter->result = RESULT_OK;
    test_exporter_release(exporter, RESULT_OK);
    harness_advance(h, 4 * S);
    for (int i = UNDER_WAY; i < REQUESTS; i++)
        assert_int_equal(h->requests[i]->is_resolved, i == UNDER_WAY);
    harness_advance(h, 3 * S);
    for (int i = UNDER_WAY + 1; i < REQUESTS; i++) {
        assert_true(h->requests[i]->is_resolved);
        assert_int_equal(h->requests[i]->outcome.verdict, REFUSED);
        assert_int_equal(h->requests[i]->outcome.code, STATUS_UNAVAILABLE);
    }
    budget_return(&h->service->budget, 2 * MIB);
    harness_advance(h, 2 * S);
    assert_int_equal(harness_totals(h, TRACES).delivered, UNDER_WAY + 1);
    assert_int_equal(harness_send_now(h, 1)->outcome.verdict, ACCEPTED);
    harness_destroy(h);
}

static void the_metrics_page_says_why_batches_were_sent(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 100ms, send_batch_size: 10}}\n" DIRECT);
    harness_send_now(h, 12);
    harness_send_now(h, 1);
    harness_advance(h, 100 * MS);
    char *page = harness_metrics(h);
    static const char *const lines[] = {
        "otelcol_processor_batch_batch_size_trigger_send{processor=\"batch\"} 1\n",
        "otelcol_processor_batch_timeout_trigger_send{processor=\"batch\"} 1\n",
        "otelcol_processor_batch_batch_send_size_bucket{processor=\"batch\",le=\"10\"} 1\n",
        "otelcol_processor_batch_batch_send_size_bucket{processor=\"batch\",le=\"25\"} 2\n",
        "otelcol_processor_batch_batch_send_size_sum{processor=\"batch\"} 13\n",
        "otelcol_processor_batch_metadata_cardinality{processor=\"batch\"} 1\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (strstr(page, lines[i]) == NULL)
            fail_msg("missing: %s", lines[i]);
    free(page);
    harness_destroy(h);
}

/* Each of them has a copy of the resource: all together are many times the budget. */
static void profiles_are_cut_one_at_a_time_once_the_budget_is_used_up(void **state)
{
    enum { SAMPLES = 900, NOTE_BYTES = 800 };
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
        "processors: {batch: {timeout: 1h, send_batch_size: 1, send_batch_max_size: 1}}\n"
        "exporters: {test: {}}\n"
        "service: {budget_mib: 1, pipelines: {profiles: {receivers: [test], processors: [batch], "
        "exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    struct test_request *sent = harness_offer_bytes(h, 0, PROFILES, request, SAMPLES);
    assert_int_equal(sent->outcome.verdict, ACCEPTED);
    harness_advance(h, 1 * S);
    assert_in_range(harness_budget_used(h), MIB - MIB / BUDGET_LEAVING_PART, MIB + MIB / 8);
    harness_let_go(h);
    harness_advance(h, 10 * S);
    assert_int_equal(harness_totals(h, PROFILES).delivered, SAMPLES);
    assert_int_equal(exporter->attempts_count, SAMPLES);
    harness_destroy(h);
    mem_free((void *)(uintptr_t)request.data);
}

/* The pieces that were sent wait in the exporter while others use the budget up. */
static void pieces_that_memory_keeps_back_are_sent_once_there_is_room(void **state)
{
    enum { UNDER_WAY = 16, SAMPLES = 5, TAKEN = 2 * MIB };
    static const struct sketch_sample one = {
        .stack = "leaf;main", .values_count = 1, .values = {1}};
    struct sketch_sample samples[UNDER_WAY];
    struct sketch_profile profile = {.type = {"cpu", "nanoseconds"}, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    (void)state;
    for (unsigned i = 0; i < UNDER_WAY; i++)
        samples[i] = one;
    profile.samples_count = UNDER_WAY;
    struct slice first = sketch_request(&sketch);
    profile.samples_count = SAMPLES;
    struct slice second = sketch_request(&sketch);
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 0s, send_batch_size: 1, send_batch_max_size: 1}}\n"
        "exporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 1, pipelines: {profiles: {receivers: [test], processors: [batch], "
        "exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    harness_offer_bytes(h, 0, PROFILES, first, UNDER_WAY);
    harness_offer_bytes(h, 0, PROFILES, second, SAMPLES);
    harness_turn(h);
    test_exporter_release_first(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, UNDER_WAY + 1);
    /* The last that may be under way is sent while memory is short. */
    budget_take(&h->service->budget, TAKEN);
    test_exporter_release_first(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, UNDER_WAY + 2);
    budget_return(&h->service->budget, TAKEN);
    harness_advance(h, 1 * S);
    /* One more may be, and it is short again. */
    budget_take(&h->service->budget, TAKEN);
    test_exporter_release_first(exporter, RESULT_OK);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->attempts_count, UNDER_WAY + 2);
    budget_return(&h->service->budget, TAKEN);
    harness_advance(h, 1 * S);
    assert_int_equal(exporter->attempts_count, UNDER_WAY + 3);
    harness_let_go(h);
    harness_advance(h, 1 * S);
    assert_int_equal(harness_totals(h, PROFILES).delivered, UNDER_WAY + SAMPLES);
    harness_destroy(h);
    mem_free((void *)(uintptr_t)first.data);
    mem_free((void *)(uintptr_t)second.data);
}

static void put_profile_of(struct harness *h, const char *tenant, unsigned samples_count)
{
    static struct test_request requests[8];
    static unsigned used;
    static struct sketch_sample samples[100];
    for (unsigned i = 0; i < samples_count; i++)
        samples[i] = (struct sketch_sample){.stack = "leaf;main", .values_count = 1, .values = {1}};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = samples_count, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    struct slice bytes = sketch_request(&sketch);
    struct batch *batch = plain_request(NULL, PROFILES, bytes, samples_count);
    struct client_metadata row = {"x-scope-orgid", tenant};
    batch->client = client_info_create("10.0.0.1", &row, 1);
    requests[used] = (struct test_request){.items = samples_count};
    test_receiver_offer(harness_receiver(h, "test", 0), batch, &requests[used++]);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)bytes.data);
}

/* A batch that becomes full while memory is short does not wait for the timeout of its partition.
 */
static void a_full_batch_that_memory_keeps_back_waits_for_memory_alone(void **state)
{
    enum { UNDER_WAY = 16 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 1h, send_batch_size: 4, send_batch_max_size: 4}}\n"
        "exporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {budget_mib: 1, pipelines: {profiles: {receivers: [test], processors: [batch], "
        "exporters: [test]}}}\n");
    struct test_exporter *exporter = harness_exporter_on(h, "test", 0, PROFILES);
    exporter->result = RESULT_HOLD;
    put_profile_of(h, "b", 2);
    put_profile_of(h, "a", 4 * (UNDER_WAY + 1) + 2);
    harness_turn(h);
    put_profile_of(h, "b", 2); /* its timer is running */
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, UNDER_WAY);
    budget_take(&h->service->budget, 2 * MIB);
    test_exporter_release_first(exporter, RESULT_OK);
    harness_turn(h);
    assert_string_equal(exporter->attempts[UNDER_WAY].client, "a");
    test_exporter_release_first(exporter, RESULT_OK);
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, UNDER_WAY + 1);
    budget_return(&h->service->budget, 2 * MIB);
    harness_advance(h, 60 * S);
    assert_int_equal(exporter->attempts_count, UNDER_WAY + 2);
    assert_string_equal(exporter->attempts[UNDER_WAY + 1].client, "b");
    harness_let_go(h);
    harness_advance(h, 1 * S);
    harness_destroy(h);
}

/* One client's full batches take all the room there is whenever the other's timeout is over. */
static void a_batch_whose_timeout_is_over_goes_when_there_is_room(void **state)
{
    enum { UNDER_WAY = 16, ROUNDS = 100 };
    (void)state;
    struct harness *h = harness_create(
        "processors: {batch: {timeout: 10s, send_batch_size: 4, send_batch_max_size: 4, "
        "metadata_keys: [tenant]}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->result = RESULT_HOLD;
    offer_as(h, "quiet");
    for (int i = 0; i < 4 * (UNDER_WAY + ROUNDS); i++)
        offer_as(h, "busy");
    harness_turn(h);
    assert_int_equal(exporter->attempts_count, UNDER_WAY);
    size_t quiet = 0;
    for (int i = 0; i < ROUNDS; i++) {
        harness_advance(h, 1 * S);
        test_exporter_release_first(exporter, RESULT_OK);
        harness_turn(h);
        quiet += strcmp(exporter->attempts[exporter->attempts_count - 1].client, "quiet") == 0;
    }
    harness_let_go(h);
    harness_advance(h, 60 * S);
    assert_int_equal(quiet, 1);
    harness_destroy(h);
}

/* The client waits for the result, and the stop for the client. */
static void a_stop_does_not_wait_for_the_timeout(void **state)
{
    (void)state;
    struct harness *h =
        harness_create("processors: {batch: {timeout: 1h, wait_for_result: true}}\n" DIRECT);
    struct test_request *request = harness_send_now(h, 1);
    assert_false(request->is_resolved);
    harness_stop(h);
    harness_advance(h, 1 * S);
    assert_true(request->is_resolved);
    assert_true(h->has_stopped);
    assert_false(h->was_forced);
    assert_int_equal(harness_exporter(h, "test")->delivered_items, 1);
    harness_destroy(h);
}

/* Merging profiles holds the lane, so that no more bytes gather than it has time for. */
static void so_many_bytes_of_profiles_are_sent_at_once(void **state)
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
        "processors: {batch: {timeout: 1h}}\nexporters: {test: {}}\n"
        "service: {budget_mib: 64, pipelines: {profiles: {receivers: [test], processors: [batch], "
        "exporters: [test]}}}\n");
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

/* A split may be many times the bytes of its request, and debug, for one, works on each piece at
 * once. */
static void a_turn_ends_when_its_time_is_over(void **state)
{
    enum { ITEMS = 60, LATER = 7 };
    static const char *const timings[] = {"1h", "0s"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "processors: {batch: {timeout: %s, send_batch_size: 1, send_batch_max_size: "
                 "1}}\n" DIRECT,
                 timings[i]);
        struct harness *h = harness_create(yaml);
        struct test_exporter *exporter = harness_exporter(h, "test");
        exporter->cost_ns = DOWNSTREAM_TURN_NS / 2;
        struct test_request *request = harness_send(h, ITEMS);
        while (!request->is_resolved || exporter->attempts_count == 0)
            lane_turn(h->lanes[0]);
        assert_int_equal(exporter->attempts_count, 2);
        struct test_request *later = harness_send_now(h, LATER);
        assert_true(later->is_resolved);
        assert_int_equal(exporter->delivered_items, ITEMS + LATER);
        assert_int_equal(exporter->most_in_turn, 2);
        harness_destroy(h);
    }
}

/* What is left goes on while it stops. */
static void a_stop_goes_on_in_further_turns(void **state)
{
    enum { ITEMS = 20 };
    (void)state;
    struct harness *h = harness_create("processors: {batch: {timeout: 1h, send_batch_size: 1, "
                                       "send_batch_max_size: 1}}\n" DIRECT);
    struct test_exporter *exporter = harness_exporter(h, "test");
    exporter->cost_ns = 2 * DOWNSTREAM_TURN_NS;
    harness_send(h, ITEMS);
    while (exporter->attempts_count == 0)
        lane_turn(h->lanes[0]);
    harness_stop(h);
    harness_turn(h);
    assert_true(h->has_stopped);
    assert_int_equal(exporter->delivered_items, ITEMS);
    assert_int_equal(exporter->most_in_turn, 1);
    harness_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_waits_for_the_timeout_and_its_client_does_not),
        cmocka_unit_test(ticks_come_every_timeout_after_the_last_flush),
        cmocka_unit_test(a_flush_by_size_starts_the_timeout_anew),
        cmocka_unit_test(sizes_decide_what_is_sent_at_once),
        cmocka_unit_test(a_batch_is_small_beside_the_budget),
        cmocka_unit_test(requests_gather_in_one_batch_in_order),
        cmocka_unit_test(an_empty_request_is_taken_and_holds_nothing_up),
        cmocka_unit_test(a_refused_batch_is_kept_and_offered_again),
        cmocka_unit_test(a_full_batch_is_gathered_while_one_waits_and_no_more),
        cmocka_unit_test(what_can_never_fit_the_queue_is_lost_and_counted),
        cmocka_unit_test(a_permanent_error_is_a_drop_after_the_client_got_its_ok),
        cmocka_unit_test(wait_for_result_resolves_when_all_pieces_have_a_result),
        cmocka_unit_test(what_never_fits_is_rejected_when_the_client_waits),
        cmocka_unit_test(wrong_configurations_are_named),
        cmocka_unit_test(metadata_keys_keep_clients_apart_up_to_a_limit),
        cmocka_unit_test(made_up_tenants_lock_no_client_out),
        cmocka_unit_test(more_outputs_than_may_be_under_way_wait_their_turn),
        cmocka_unit_test(while_exports_are_slow_input_waits_and_a_stop_lets_it_go),
        cmocka_unit_test(while_the_next_stage_refuses_waiting_clients_are_told),
        cmocka_unit_test(the_metrics_page_says_why_batches_were_sent),
        cmocka_unit_test(a_turn_ends_when_its_time_is_over),
        cmocka_unit_test(a_stop_goes_on_in_further_turns),
        cmocka_unit_test(profiles_are_cut_one_at_a_time_once_the_budget_is_used_up),
        cmocka_unit_test(pieces_that_memory_keeps_back_are_sent_once_there_is_room),
        cmocka_unit_test(a_full_batch_that_memory_keeps_back_waits_for_memory_alone),
        cmocka_unit_test(a_batch_whose_timeout_is_over_goes_when_there_is_room),
        cmocka_unit_test(a_stop_does_not_wait_for_the_timeout),
        cmocka_unit_test(so_many_bytes_of_profiles_are_sent_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
