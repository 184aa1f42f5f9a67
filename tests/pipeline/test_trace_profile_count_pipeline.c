/* SPDX-License-Identifier: Apache-2.0 */
/* count_for of trace_profile_join, on the fake clock: what each span has in each type of profile,
 * read by the oracle, and what the ledger shows of the copies. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/join/join_limits.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/random_otlp.h"

#define SPAN(id, parent, of_kind)                                                                  \
    {                                                                                              \
        .trace_id = TRACE_A, .span_id = id, .parent_id = (parent), .name = "name of " id,          \
        .kind = (of_kind), .start_ns = S, .end_ns = 2 * S                                          \
    }

/* Of one request. Its client, in another process, is no ancestor. */
static const struct sketch_span spans[] = {
    SPAN("root----", "client--", KIND_SERVER),
    SPAN("middle--", "root----", KIND_INTERNAL),
    SPAN("leaf----", "middle--", KIND_INTERNAL),
};
enum { SPANS = sizeof(spans) / sizeof(spans[0]) };

#define SAMPLE(function, id, value)                                                                \
    {                                                                                              \
        .stack = function ";main", .values_count = 1, .values = {value},                           \
        .attributes = {"thread.name=" function}, .trace_id = TRACE_A, .span_id = id                \
    }

static const struct sketch_sample samples[] = {
    SAMPLE("serves", "root----", 1),
    SAMPLE("checks", "middle--", 20),
    SAMPLE("hashes", "leaf----", 300),
    {.stack = "idles;main", .values_count = 1, .values = {4000}},
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* What one span has in one type. */
struct total {
    const char *type;
    const char *span; /* "": samples that name none */
    int64_t value;
};

static struct oracle_items items_of(const struct test_exporter *exporter, size_t held)
{
    struct oracle_items items = {0};
    struct slice request = joined_parts(exporter->held[held].batch);
    assert_null(profile_oracle_complaint(request));
    profile_oracle_list(&items, request, PROFILE_WHOLE);
    assert_int_equal(items.count, exporter->held[held].batch->items);
    mem_free((void *)(uintptr_t)request.data);
    return items;
}

static void put_hex(char *to, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++)
        snprintf(to + 2 * i, 3, "%02x", (unsigned)(uint8_t)text[i]);
}

/* Whether the oracle's text is of a sample of that type and span. */
static bool is_of(const char *item, const struct total *total)
{
    char type[64];
    char link[64] = "/";
    const char *sample = strstr(item, " : ");
    assert_non_null(sample);
    snprintf(type, sizeof(type), "%s/nanoseconds ", total->type);
    const char *at = strstr(item, type);
    bool begins = at != NULL && at < sample && (at == item || at[-1] == ' ');
    put_hex(link + 1, total->span);
    if (total->span[0] == '\0')
        return begins && strstr(sample, "/6") == NULL && strstr(sample, "/7") == NULL;
    return begins && strstr(sample, link) != NULL;
}

static int64_t sum_of(const struct oracle_items *items, const struct total *total)
{
    int64_t sum = 0;
    for (size_t i = 0; i < items->count; i++)
        if (is_of(items->texts[i], total))
            sum += strtoll(strrchr(items->texts[i], ' '), NULL, 10);
    return sum;
}

static void check_total(const struct oracle_items *items, const struct total *total)
{
    int64_t sum = sum_of(items, total);
    if (sum != total->value)
        for (size_t i = 0; i < items->count; i++)
            print_message("%s\n", items->texts[i]);
    assert_int_equal(sum, total->value);
}

static void check_ledger(const struct harness *h, uint64_t received)
{
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, received);
    assert_int_equal(totals.received,
                     totals.delivered + totals.rejected + totals.dropped + totals.in_flight);
}

static const struct {
    const char *keys;
    uint64_t copies;
    struct total totals[12];
} counts[] = {
    {"", 0, {{"cpu", "root----", 1}, {"cpu", "middle--", 20}, {"cpu", "leaf----", 300}}},
    {"count_for: [span]", 0, {{"cpu_root", "root----", 0}, {"cpu_ancestors", "root----", 0}}},
    {"count_for: [span, root]",
     3,
     {{"cpu", "root----", 1},
      {"cpu", "middle--", 20},
      {"cpu", "leaf----", 300},
      {"cpu", "", 4000},
      {"cpu_root", "root----", 321},
      {"cpu_root", "middle--", 0},
      {"cpu_root", "leaf----", 0},
      {"cpu_root", "", 0},
      {"cpu_ancestors", "root----", 0}}},
    {"count_for: [ancestors, span]",
     3,
     {{"cpu", "root----", 1},
      {"cpu", "middle--", 20},
      {"cpu", "leaf----", 300},
      {"cpu_root", "root----", 0},
      {"cpu_ancestors", "root----", 320},
      {"cpu_ancestors", "middle--", 300},
      {"cpu_ancestors", "leaf----", 0},
      {"cpu_ancestors", "", 0}}},
    {"count_for: [span, root, ancestors]",
     6,
     {{"cpu", "leaf----", 300},
      {"cpu_root", "root----", 321},
      {"cpu_ancestors", "root----", 320},
      {"cpu_ancestors", "middle--", 300}}},
    {"count_for: [span, root, ancestors], span_id: root",
     3,
     {{"cpu", "root----", 321}, {"cpu_root", "root----", 321}, {"cpu_ancestors", "root----", 0}}},
};

static void samples_count_for_the_spans_that_are_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct harness *h = join_start_with(counts[i].keys);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        join_offer_spans(h, 0, join_shop, spans, SPANS);
        join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
        struct oracle_items items = items_of(exporter, 0);
        assert_int_equal(items.count, SAMPLES + counts[i].copies);
        for (size_t k = 0; k < 12 && counts[i].totals[k].type != NULL; k++)
            check_total(&items, &counts[i].totals[k]);
        assert_int_equal(join_metric(h, JOIN_METRIC "copied_samples{"), counts[i].copies);
        assert_int_equal(join_metric(h, JOIN_METRIC "uncopied_samples{"), 0);
        oracle_clear(&items);
        join_let_go(exporter);
        check_ledger(h, SAMPLES + counts[i].copies);
        harness_destroy(h);
    }
}

static void what_came_is_the_same_with_copies_and_without(void **state)
{
    static const char *const keys[] = {"count_for: [span]", "count_for: [span, root, ancestors]"};
    struct oracle_items lists[2];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct harness *h = join_start_with(keys[i]);
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        join_offer_spans(h, 0, join_shop, spans, SPANS);
        join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
        lists[i] = items_of(exporter, 0);
        join_let_go(exporter);
        harness_destroy(h);
    }
    for (size_t i = 0; i < SAMPLES; i++)
        assert_string_equal(lists[0].texts[i], lists[1].texts[i]);
    oracle_clear(&lists[0]);
    oracle_clear(&lists[1]);
}

/* Labels instead of a link, and a name that the profiler gave: the copy has neither. */
static void a_copy_says_what_its_own_span_says(void **state)
{
    static const struct sketch_sample labelled = {
        .stack = "hashes;main",
        .values_count = 1,
        .values = {300},
        .attributes = {"span_id=6c6561662d2d2d2d", "span_name=own", "thread.name=worker"}};
    (void)state;
    struct harness *h = join_start(JOIN("count_for: [span, root]"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    join_offer_samples(h, 0, "service.name=shop", &labelled, 1);
    struct oracle_items items = items_of(exporter, 0);
    assert_int_equal(items.count, 2);
    check_total(&items, &(struct total){"cpu", "leaf----", 300});
    check_total(&items, &(struct total){"cpu_root", "root----", 300});
    assert_true(join_says(exporter, 0, 0, "own"));
    assert_false(join_says(exporter, 0, 0, "name of"));
    assert_false(join_says(exporter, 0, 1, "own"));
    assert_true(join_says(exporter, 0, 1, "name of root----"));
    assert_true(join_says(exporter, 0, 1, "worker"));
    assert_true(join_says(exporter, 0, 1, "hashes"));
    assert_non_null(strstr(items.texts[1], " 77+0 ")); /* its time is that of the original */
    oracle_clear(&items);
    join_let_go(exporter);
    harness_destroy(h);
}

static void a_profile_waits_for_the_root_that_it_counts_for(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("count_for: [span, root]"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, &spans[1], 2);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", &samples[2], 1);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    assert_int_equal(exporter->held_count, 0);
    check_ledger(h, 1);
    join_offer_spans(h, 0, join_shop, spans, 1);
    harness_advance(h, S);
    assert_int_equal(exporter->held_count, 1);
    assert_int_equal(exporter->held[0].batch->items, 2);
    assert_int_equal(harness_totals(h, PROFILES).in_flight, 2);
    join_let_go(exporter);
    check_ledger(h, 2);
    assert_int_equal(harness_totals(h, PROFILES).delivered, 2);
    harness_destroy(h);
}

/* Neither a span whose parent is in its process but never came, nor one in a circle has a root. A
 * span whose flags do not say that the parent is local counts as a root. */
static void without_a_root_there_is_no_copy_for_it(void **state)
{
    struct sketch_span flagged[] = {spans[1], spans[2]};
    static const struct sketch_span circle[] = {
        SPAN("middle--", "leaf----", KIND_INTERNAL),
        SPAN("leaf----", "middle--", KIND_INTERNAL),
    };
    const struct {
        const struct sketch_span *spans;
        int64_t of_middle;
        int64_t of_root;
    } rows[] = {{flagged, 300, 0}, {&spans[1], 300, 300}, {circle, 0, 0}};
    (void)state;
    flagged[0].flags = flagged[1].flags = 0x100;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(JOIN("count_for: [span, root, ancestors], hold: 2s"));
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
        join_offer_spans(h, 0, join_shop, rows[i].spans, 2);
        join_offer_samples(h, 0, "service.name=shop", &samples[2], 1);
        harness_advance(h, 2 * S);
        struct oracle_items items = items_of(exporter, 0);
        assert_int_equal(items.count, 1 + rows[i].of_middle / 300 + rows[i].of_root / 300);
        check_total(&items, &(struct total){"cpu_ancestors", "middle--", rows[i].of_middle});
        check_total(&items, &(struct total){"cpu_root", "middle--", rows[i].of_root});
        oracle_clear(&items);
        join_let_go(exporter);
        harness_destroy(h);
    }
}

static void copies_that_are_refused_are_in_the_ledger_once(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("count_for: [span, root, ancestors]"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_BUSY);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_not_equal(request->outcome.verdict, ACCEPTED);
    struct harness_totals totals = harness_totals(h, PROFILES);
    assert_int_equal(totals.received, SAMPLES + 6);
    assert_int_equal(totals.rejected, SAMPLES + 6);
    exporter->result = RESULT_OK;
    request = join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    check_ledger(h, 2 * (SAMPLES + 6));
    assert_int_equal(harness_totals(h, PROFILES).delivered, SAMPLES + 6);
    harness_destroy(h);
}

/* A processor behind that refuses: nothing else has counted what it was offered. */
static void what_the_next_stage_refuses_takes_its_copies_along(void **state)
{
    (void)state;
    struct harness *h = join_start(
        "processors: {trace_profile_join: {count_for: [span, root], index: {bytes: 1MiB}}, "
        "memory_limiter: {check_interval: 1s, limit_mib: 20, spike_limit_mib: 12}}\n"
        "exporters: {test: {sending_queue: {enabled: false}}}\n"
        "service: {pipelines: {traces: {receivers: [test], processors: [trace_profile_join], "
        "exporters: [test]}, profiles: {receivers: [test], processors: [trace_profile_join, "
        "memory_limiter], exporters: [test]}}}\n");
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct budget *budget = harness_receiver(h, "test", 0)->budget;
    uint64_t most = budget_limit(budget) - (1 << 20);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    budget_take(budget, most);
    struct test_request *request = join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(request->outcome.verdict, REFUSED);
    assert_int_equal(exporter->attempts_count, 0);
    check_ledger(h, SAMPLES + 3);
    assert_int_equal(harness_totals(h, PROFILES).by_reason[LOSS_MEMORY], SAMPLES + 3);
    assert_int_equal(harness_totals(h, PROFILES).in_flight, 0);
    budget_return(budget, most);
    request = join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(request->outcome.verdict, ACCEPTED);
    check_ledger(h, 2 * (SAMPLES + 3));
    assert_int_equal(harness_totals(h, PROFILES).delivered, SAMPLES + 3);
    harness_destroy(h);
}

static struct slice request_of(const char *type, const struct sketch_sample *of, size_t count)
{
    const struct sketch_profile profile = {
        .type = {type, "nanoseconds"}, .samples_count = count, .samples = of, .time_ns = 77};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    return sketch_request(&sketch);
}

/* Its dictionary first, as protobuf allows. */
static void turn_round(struct slice request, uint8_t *to)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field first;
    assert_true(wire_next_field(&reader, &first));
    assert_int_equal(first.number, 1);
    size_t rest = request.size - first.whole.size;
    memcpy(to, request.data + first.whole.size, rest);
    memcpy(to + rest, first.whole.data, first.whole.size);
}

static void a_dictionary_that_comes_first_is_added_to_as_well(void **state)
{
    (void)state;
    struct harness *h = join_start(JOIN("count_for: [span, root, ancestors]"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    struct slice request = request_of("cpu", samples, SAMPLES);
    uint8_t *turned = mem_alloc(request.size);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    turn_round(request, turned);
    harness_offer_bytes(h, 0, PROFILES, slice_of(turned, request.size), SAMPLES);
    struct oracle_items items = items_of(exporter, 0);
    assert_int_equal(items.count, SAMPLES + 6);
    check_total(&items, &(struct total){"cpu_root", "root----", 321});
    check_total(&items, &(struct total){"cpu_ancestors", "middle--", 300});
    assert_int_equal(join_metric(h, JOIN_METRIC "copied_samples{"), 6);
    oracle_clear(&items);
    join_let_go(exporter);
    check_ledger(h, SAMPLES + 6);
    mem_free(turned);
    mem_free((void *)(uintptr_t)request.data);
    harness_destroy(h);
}

/* As when two of these stand in a row. */
static void copies_are_not_copied_again(void **state)
{
    static const struct {
        const char *type;
        uint64_t copies;
    } rows[] = {{"cpu", 6}, {"cpu_root", 0}, {"cpu_ancestors", 0}, {"root", 6}, {"", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct harness *h = join_start(JOIN("count_for: [span, root, ancestors]"));
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
        struct slice request = request_of(rows[i].type, samples, SAMPLES);
        join_offer_spans(h, 0, join_shop, spans, SPANS);
        harness_offer_bytes(h, 0, PROFILES, request, SAMPLES);
        assert_int_equal(exporter->delivered_items, SAMPLES + rows[i].copies);
        mem_free((void *)(uintptr_t)request.data);
        harness_destroy(h);
    }
}

enum { DEPTH = 50, MANY = 6000 };

/* A chain of spans, each the parent of the next, and samples that were all taken in the last. */
static void offer_deep_spans(struct harness *h, char ids[DEPTH][9])
{
    for (size_t i = 0; i < DEPTH; i++) {
        struct sketch_span span = SPAN("deep----", i > 0 ? ids[i - 1] : NULL, KIND_INTERNAL);
        snprintf(ids[i], 9, "deep%04zu", i);
        span.span_id = ids[i];
        join_offer_spans(h, 0, join_shop, &span, 1);
        harness_turn(h);
    }
}

static void copies_have_a_most_and_the_rest_is_counted(void **state)
{
    char ids[DEPTH][9];
    (void)state;
    struct harness *h = join_start(JOIN("count_for: [span, ancestors], attributes: []"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    offer_deep_spans(h, ids);
    struct sketch_sample *many = mem_zalloc(MANY * sizeof(many[0]));
    for (size_t i = 0; i < MANY; i++)
        many[i] = (struct sketch_sample)SAMPLE("hashes", ids[DEPTH - 1], 1);
    struct slice request = request_of("cpu", many, MANY);
    harness_offer_bytes(h, 0, PROFILES, request, MANY);
    uint64_t copied = join_metric(h, JOIN_METRIC "copied_samples{");
    uint64_t all = (uint64_t)MANY * (DEPTH - 1);
    assert_true(copied > JOIN_COPIES_MAX - DEPTH && copied <= JOIN_COPIES_MAX);
    assert_int_equal(join_metric(h, JOIN_METRIC "uncopied_samples{"), all - copied);
    assert_int_equal(exporter->delivered_items, MANY + copied);
    check_ledger(h, MANY + copied);
    mem_free((void *)(uintptr_t)request.data);
    mem_free(many);
    harness_destroy(h);
}

/* The message with so many times more in its first sample, which is `depth` messages below it. */
static void put_with_times(struct profile_bytes *out, struct slice message, unsigned depth,
                           size_t count)
{
    static const uint32_t path[] = {0, 2, 2, 2, 1}; /* by depth */
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    bool is_done = depth == 0;
    while (wire_next_field(&reader, &field)) {
        size_t begin = out->size;
        if (is_done || field.number != path[depth]) {
            profile_bytes_add(out, field.whole);
            continue;
        }
        put_with_times(out, field.bytes, depth - 1, count);
        profile_bytes_wrap(out, begin, field.number);
        is_done = true;
    }
    if (depth > 0)
        return;
    size_t begin = out->size;
    memset(profile_bytes_room(out, count * sizeof(uint64_t)), 1, count * sizeof(uint64_t));
    out->size += count * sizeof(uint64_t);
    profile_bytes_wrap(out, begin, 5);
}

/* With the dictionary first, copies are made twice, and the second time its additions stand before
 * them: the first sample, which all but filled the room for copies, then has none, and the second,
 * which had none, must not get the room. */
static void copies_beyond_the_most_are_the_same_in_any_order(void **state)
{
    static const struct sketch_span others[] = {
        {.trace_id = TRACE_B,
         .span_id = "root-b--",
         .name = "b",
         .kind = KIND_SERVER,
         .start_ns = S,
         .end_ns = 2 * S},
        {.trace_id = TRACE_B,
         .span_id = "leaf-b--",
         .parent_id = "root-b--",
         .name = "b",
         .kind = KIND_INTERNAL,
         .start_ns = S,
         .end_ns = 2 * S},
    };
    struct sketch_sample small = SAMPLE("hashes", "leaf-b--", 1);
    (void)state;
    small.trace_id = TRACE_B;
    const struct sketch_sample both[] = {SAMPLE("hashes", "leaf----", 1), small};
    struct harness *h = join_start(JOIN("count_for: [span, root], attributes: []"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
    struct profile_bytes out = {0};
    struct slice sketched = request_of("cpu", both, 2);
    put_with_times(&out, sketched, 4, (JOIN_COPIES_BYTES_MAX - 24) / sizeof(uint64_t));
    const struct slice request = slice_of(out.data, out.size);
    uint8_t *turned = mem_alloc(request.size);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    join_offer_spans(h, 0, join_shop, others, 2);
    harness_offer_bytes(h, 0, PROFILES, request, 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "copied_samples{"), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "uncopied_samples{"), 1);
    turn_round(request, turned);
    harness_offer_bytes(h, 0, PROFILES, slice_of(turned, request.size), 2);
    assert_int_equal(join_metric(h, JOIN_METRIC "copied_samples{"), 1);
    assert_int_equal(join_metric(h, JOIN_METRIC "uncopied_samples{"), 3);
    assert_int_equal(exporter->delivered_items, 2 + 2 + 1);
    check_ledger(h, 5);
    mem_free(turned);
    profile_bytes_fini(&out);
    mem_free((void *)(uintptr_t)sketched.data);
    harness_destroy(h);
}

static void what_keep_leaves_out_is_not_copied(void **state)
{
    (void)state;
    struct harness *h =
        join_start(JOIN("count_for: [span, root], keep: [slow: 1s], keep_unlinked: false"));
    struct test_exporter *exporter = join_profiles_sink(h, RESULT_HOLD);
    join_offer_spans(h, 0, join_shop, spans, SPANS);
    join_offer_samples(h, 0, "service.name=shop", samples, SAMPLES);
    assert_int_equal(exporter->held[0].batch->items, 6);
    struct oracle_items items = items_of(exporter, 0);
    check_total(&items, &(struct total){"cpu_root", "root----", 321});
    oracle_clear(&items);
    join_let_go(exporter);
    check_ledger(h, SAMPLES + 3);
    assert_int_equal(harness_totals(h, PROFILES).by_reason[LOSS_UNWANTED], 1);
    assert_int_equal(harness_totals(h, PROFILES).delivered, 6);
    harness_destroy(h);
}

/* A small request may have thousands of copies. */
static void copies_are_written_within_the_budget(void **state)
{
    enum { FREE_STEPS = 14 };
    char ids[DEPTH][9];
    uint64_t copied_before = 0;
    struct sketch_sample *many = mem_zalloc(MANY * sizeof(many[0]));
    (void)state;
    for (unsigned free_mib = 1; free_mib < FREE_STEPS; free_mib++) {
        struct harness *h = join_start(
            "processors: {trace_profile_join: {count_for: [span, ancestors], attributes: [], "
            "index: {bytes: 1MiB}}}\n"
            "exporters: {test: {sending_queue: {enabled: false}}}\n"
            "service: {budget_mib: 128, pipelines: {traces: {receivers: [test], processors: "
            "[trace_profile_join], exporters: [test]}, profiles: {receivers: [test], processors: "
            "[trace_profile_join], exporters: [test]}}}\n");
        struct test_exporter *exporter = join_profiles_sink(h, RESULT_OK);
        struct budget *budget = harness_receiver(h, "test", 0)->budget;
        const uint64_t limit = budget_limit(budget);
        offer_deep_spans(h, ids);
        for (size_t i = 0; i < MANY; i++) {
            many[i] = (struct sketch_sample)SAMPLE("hashes", ids[DEPTH - 1], 1);
            many[i].timestamps_count = 20;
        }
        struct slice request = request_of("cpu", many, MANY);
        uint64_t taken = limit - budget_used(budget) - 6 * free_mib * MIB;
        budget_take(budget, taken);
        harness_offer_bytes(h, 0, PROFILES, request, MANY);
        uint64_t copied = join_metric(h, JOIN_METRIC "copied_samples{");
        assert_in_range(harness_budget_peak(h), 0, limit + limit / BUDGET_MARGIN_PART);
        assert_int_equal(exporter->delivered_items, MANY + copied);
        assert_in_range(copied, copied_before, UINT64_MAX);
        copied_before = copied;
        budget_return(budget, taken);
        check_ledger(h, MANY + copied);
        mem_free((void *)(uintptr_t)request.data);
        harness_destroy(h);
    }
    assert_in_range(copied_before, 50000, UINT64_MAX);
    mem_free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_count_for_the_spans_that_are_asked_for),
        cmocka_unit_test(what_came_is_the_same_with_copies_and_without),
        cmocka_unit_test(a_copy_says_what_its_own_span_says),
        cmocka_unit_test(a_profile_waits_for_the_root_that_it_counts_for),
        cmocka_unit_test(without_a_root_there_is_no_copy_for_it),
        cmocka_unit_test(copies_that_are_refused_are_in_the_ledger_once),
        cmocka_unit_test(what_the_next_stage_refuses_takes_its_copies_along),
        cmocka_unit_test(what_keep_leaves_out_is_not_copied),
        cmocka_unit_test(copies_beyond_the_most_are_the_same_in_any_order),
        cmocka_unit_test(a_dictionary_that_comes_first_is_added_to_as_well),
        cmocka_unit_test(copies_are_not_copied_again),
        cmocka_unit_test(copies_have_a_most_and_the_rest_is_counted),
        cmocka_unit_test(copies_are_written_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
