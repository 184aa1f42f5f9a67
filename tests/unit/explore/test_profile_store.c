/* SPDX-License-Identifier: Apache-2.0 */
/* Samples are counted by span and trace while blocks come, close and go: what is kept is always the
 * sum of the blocks that are there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/explore/profile_store.h"
#include "src/explore/span_cpu.h"
#include "src/otlp/nested_output.h"
#include "tests/support/profile_sketch.h"

enum { TRACES = 300, PERIOD = 10000000 };

static struct string_table strings;
static struct codec_box *box;
static struct profile_store store;

static int setup(void **state)
{
    (void)state;
    struct error error;
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    string_table_init(&strings);
    box = codec_box_create(NULL);
    profile_store_init(&store, &strings, box, CODEC_ZSTD);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    profile_store_fini(&store);
    assert_int_equal(strings.live, 0);
    codec_box_destroy(box);
    string_table_fini(&strings);
    return 0;
}

static void id_of(unsigned trace, char id[17])
{
    snprintf(id, 17, "trace-%010u", trace);
}

/* Two samples of CPU time of one span: 3 periods and 1. */
static void add(unsigned trace, const char *span, const char *service, uint64_t now_ns)
{
    char id[17];
    char resource[64];
    id_of(trace, id);
    snprintf(resource, sizeof(resource), "service.name=%s", service);
    const struct sketch_sample samples[] = {
        {.stack = "work;main",
         .values_count = 1,
         .values = {3 * PERIOD},
         .trace_id = id,
         .span_id = span},
        {.stack = "rest;main",
         .values_count = 1,
         .values = {PERIOD},
         .trace_id = id,
         .span_id = span},
        {.stack = "idle;main", .values_count = 1, .values = {PERIOD}},
    };
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .period_type = {"cpu", "nanoseconds"},
                                           .period = PERIOD,
                                           .time_ns = now_ns,
                                           .duration_ns = 1000,
                                           .samples_count = 3,
                                           .samples = samples};
    const struct sketch sketch = {
        .resource = {resource}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    assert_true(profile_store_add(&store, request, now_ns));
    mem_free((void *)(uintptr_t)request.data);
}

static uint64_t samples_of(unsigned trace)
{
    char id[17];
    id_of(trace, id);
    return profile_store_samples(&store, (const uint8_t *)id);
}

static void counts_samples_by_span(void **state)
{
    (void)state;
    struct span_samples *spans;
    char id[17];
    add(1, "span-aaa", "a", 100);
    add(1, "span-bbb", "b", 200);
    add(1, "span-aaa", "a", 300);
    assert_int_equal(store.samples, 9);
    assert_int_equal(store.profiles, 3);
    assert_int_equal(samples_of(1), 12);
    assert_int_equal(samples_of(2), 0);
    id_of(1, id);
    assert_int_equal(profile_store_spans(&store, (const uint8_t *)id, &spans), 2);
    assert_memory_equal(spans[0].span_id, "span-aaa", 8);
    assert_int_equal(span_samples_count(&spans[0]), 8);
    assert_int_equal(span_samples_cpu_ns(&spans[0]), 8 * (uint64_t)PERIOD);
    assert_int_equal(span_samples_count(&spans[1]), 4);
    mem_free(spans);
    const struct profile_block *block = profile_store_block(&store, 1);
    assert_true(profile_block_has_service(block, string_table_find(&strings, slice_of_text("b"))));
    assert_false(profile_block_has_service(block, string_table_find(&strings, slice_of_text("a"))));
    assert_true(profile_block_has_trace(block, (const uint8_t *)id));
}

/* Beyond what a block notes it may have any. */
static void tells_the_services_of_all_blocks(void **state)
{
    enum { SERVICES = 1000 };
    uint64_t bits[SERVICES / 64 + 1] = {0};
    char name[16];
    bool is_new;
    (void)state;
    for (unsigned i = 0; i < SERVICES / 2; i++) {
        snprintf(name, sizeof(name), "other-%u", i);
        string_table_ref(&strings, string_table_add(&strings, slice_of_text(name), 0, &is_new));
        snprintf(name, sizeof(name), "service-%u", i / 2);
        add(1, "span-aaa", name, 100);
    }
    for (unsigned round = 0; round < 2; round++) {
        assert_true(strings.entries_count <= SERVICES);
        profile_store_services(&store, bits);
        for (uint32_t number = 1; number < strings.entries_count; number++) {
            bool has_any = false;
            for (size_t i = 0; i < profile_store_blocks(&store); i++)
                has_any |= profile_block_has_service(profile_store_block(&store, i), number);
            assert_true((bits[number / 64] >> number % 64 & 1) == has_any);
        }
        assert_true((bits[1 / 64] >> 1 % 64 & 1) == round);
        for (unsigned i = 0; i < 10000 && store.blocks_open == store.blocks_begin; i++) {
            snprintf(name, sizeof(name), "service-%u", i % 256);
            add(1, "span-aaa", name, 100);
        }
    }
    for (unsigned i = 0; i < SERVICES / 2; i++) {
        snprintf(name, sizeof(name), "other-%u", i);
        string_table_unref(&strings, string_table_find(&strings, slice_of_text(name)));
    }
}

static void forgets_what_is_evicted(void **state)
{
    (void)state;
    /* Each trace has samples in two blocks, which lie far apart. */
    for (unsigned i = 0; i < 2 * TRACES; i++)
        add(1 + i % TRACES, "span-aaa", "a", 1 + i);
    assert_int_equal(profile_store_oldest_ns(&store), 1);
    uint64_t full = profile_store_bytes(&store);
    for (unsigned i = 0; i < 2 * TRACES; i++) {
        assert_int_equal(profile_store_blocks(&store), 2 * TRACES - i);
        assert_int_equal(samples_of(1 + i % TRACES), i < TRACES ? 8 : 4);
        assert_true(profile_store_evict(&store));
        assert_int_equal(samples_of(1 + i % TRACES), i < TRACES ? 4 : 0);
    }
    assert_false(profile_store_evict(&store));
    assert_int_equal(store.samples, 0);
    assert_int_equal(store.traces.count, 0);
    assert_true(profile_store_bytes(&store) < full);
    assert_int_equal(profile_store_oldest_ns(&store), UINT64_MAX);
}

static void merges_a_window(void **state)
{
    (void)state;
    unsigned added = 0;
    uint64_t samples = 0;
    while (store.blocks_end - store.blocks_begin != 1 ||
           !store.blocks[store.blocks_begin]->is_compressed) {
        add(1 + added % TRACES, "span-aaa", "a", 1 + added);
        samples += 3;
        added++;
        assert_true(added < 20000);
    }
    assert_int_equal(store.samples, samples);
    assert_int_equal(store.profiles, added);
    uint64_t sum = 0;
    for (unsigned i = 1; i <= TRACES; i++)
        sum += samples_of(i);
    assert_int_equal(sum, (uint64_t)4 * added);
    struct buffer *request = profile_store_open(&store, profile_store_block(&store, 0), NULL);
    assert_non_null(request);
    assert_int_equal(request->size, profile_store_block(&store, 0)->raw);
    buffer_unref(request);
    assert_int_equal(store.opened_count, 0);
}

/* What one table says of all spans is what the store says of each. Its places depend on a seed of
 * its own, and it looks at the clock. */
static void a_table_has_the_samples_of_all_spans(void **state)
{
    struct budget budget;
    struct span_cpu tables[2];
    struct explore_limit limits[] = {{.end_ns = UINT64_MAX}, {.end_ns = 0}};
    char id[17];
    uint64_t span_id;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    for (unsigned i = 0; i < 5 * TRACES; i++)
        add(i, "span-aaa", "a", 1 + i);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(span_cpu_init(&tables[i], &store, &budget, &limits[0]), EXPLORE_DONE);
    memcpy(&span_id, "span-aaa", 8);
    for (unsigned i = 0; i < 5 * TRACES; i++) {
        id_of(i, id);
        const struct span_cpu_entry *entry =
            span_cpu_find(&tables[0], (const uint8_t *)id, span_id);
        assert_int_equal(entry->samples, samples_of(i));
        assert_int_equal(entry->cpu_ns, 4 * (uint64_t)PERIOD);
        assert_null(span_cpu_find(&tables[0], (const uint8_t *)id, span_id + 1));
    }
    assert_memory_not_equal(tables[0].entries, tables[1].entries,
                            tables[0].places * sizeof(tables[0].entries[0]));
    for (unsigned i = 0; i < 2; i++)
        span_cpu_fini(&tables[i]);
    assert_int_equal(span_cpu_init(&tables[0], &store, &budget, &limits[1]), EXPLORE_TOO_LONG);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

enum { LINKS = 1 << 20 };

/* Two bytes of an empty link take 64 of its index: what indexing takes is charged, or refused. */
static void indexing_is_charged(void **state)
{
    struct budget budget;
    struct nested_output output = {.budget = NULL};
    (void)state;
    budget_init(&budget, UINT64_MAX);
    store.budget = &budget;
    struct nested_message dictionary = nested_put_begin(&output, 2, 4);
    for (unsigned i = 0; i < LINKS; i++)
        nested_put_bytes(&output, 4, slice_of("", 0));
    nested_put_end(&output, dictionary);
    struct slice request = buffer_slice(output.buffer);
    atomic_store(&budget.limit, 20 * LINKS);
    assert_false(profile_store_add(&store, request, 1));
    assert_int_equal(budget_used(&budget), 0);
    assert_int_equal(profile_store_blocks(&store), 0);
    atomic_store(&budget.limit, 1024 * LINKS);
    assert_true(profile_store_add(&store, request, 1));
    assert_int_equal(budget_used(&budget), 0);
    assert_true(atomic_load(&budget.high_water) > 60 * LINKS);
    nested_output_fini(&output);
    store.budget = NULL;
    budget_fini(&budget);
}

/* Without memory to merge a window it is lost, and counted. */
static void merging_is_charged(void **state)
{
    struct budget budget;
    unsigned added = 0;
    (void)state;
    budget_init(&budget, 128 * 1024);
    store.budget = &budget;
    for (; store.samples_lost == 0; added++) {
        add(1 + added % TRACES, "span-aaa", "a", 1 + added);
        assert_true(added < 20000);
        assert_int_equal(budget_used(&budget), 0);
    }
    assert_int_equal(store.samples_lost, 3 * (uint64_t)added);
    assert_int_equal(store.samples, 0);
    assert_int_equal(profile_store_blocks(&store), 0);
    store.budget = NULL;
    budget_fini(&budget);
}

/* A block that was opened stays open, as far as limit and budget allow, until it is closed. */
static void blocks_stay_open_within_their_limit(void **state)
{
    enum { BLOCKS = 3 };
    struct budget budget;
    struct buffer *first[BLOCKS];
    (void)state;
    budget_init(&budget, 4 << 20);
    for (unsigned added = 0; store.blocks_open - store.blocks_begin < BLOCKS; added++) {
        add(1 + added % TRACES, "span-aaa", "a", 1 + added);
        assert_true(added < 60000);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        const struct profile_block *block = profile_store_block(&store, i);
        first[i] = profile_store_open(&store, block, &budget);
        assert_non_null(first[i]);
        struct buffer *again = profile_store_open(&store, block, &budget);
        assert_ptr_equal(again, first[i]);
        assert_in_range(budget_used(&budget), (i + 1) * block->raw, 4 << 20);
        buffer_unref(again);
        buffer_unref(first[i]);
    }
    profile_store_close(&store);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    /* A budget without room: it is opened each time. */
    budget_init(&budget, 4096);
    buffer_unref(profile_store_open(&store, profile_store_block(&store, 0), &budget));
    assert_int_equal(store.opened_count, 0);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_samples_by_span, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_the_services_of_all_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(forgets_what_is_evicted, setup, teardown),
        cmocka_unit_test_setup_teardown(merges_a_window, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_has_the_samples_of_all_spans, setup, teardown),
        cmocka_unit_test_setup_teardown(indexing_is_charged, setup, teardown),
        cmocka_unit_test_setup_teardown(merging_is_charged, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_stay_open_within_their_limit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
