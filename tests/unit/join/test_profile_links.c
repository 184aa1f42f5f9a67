/* SPDX-License-Identifier: Apache-2.0 */
/* Which spans a request names: each once, however it is named and however many there are, in no
 * more memory than the budget has. */
#include "src/join/profiles/profile_links.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/join_limits.h"
#include "src/join/profiles/profile_copies.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/telemetry_bytes.h"

#define TRACE     "0123456789abcdef"
#define TRACE_HEX "30313233343536373839616263646566"

enum { MANY = 5000, SPAN_ID_BYTES = 8, NOW = 1 };

struct room {
    struct join_store *store;
    struct profile_links links;
    struct budget budget;
    struct slice request;
};

static void open_room(struct room *room, uint64_t budget, const struct sketch_sample *samples,
                      size_t count)
{
    static const struct join_settings settings = {
        .index_entries = 64, .index_bytes = SPAN_SHARD_BYTES_MIN, .uses_window = true};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = count, .samples = samples};
    const struct sketch sketch = {.resource = {"service.name=shop", "container.id=c1"},
                                  .profiles_count = 1,
                                  .profiles = &profile};
    *room = (struct room){.request = sketch_request(&sketch)};
    budget_init(&room->budget, budget);
    room->store = join_store_create(&settings, 1);
    assert_non_null(room->store);
    profile_links_init(&room->links, room->store, &room->budget);
}

static void close_room(struct room *room)
{
    profile_links_fini(&room->links);
    assert_int_equal(budget_used(&room->budget), 0);
    budget_fini(&room->budget);
    join_store_destroy(room->store);
    mem_free((void *)(uintptr_t)room->request.data);
}

/* Samples that name a span each; texts has room for their ids. */
static void make_many(struct sketch_sample *samples, char (*texts)[SPAN_ID_BYTES + 1])
{
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%08u", i % (MANY / 2));
        samples[i] = (struct sketch_sample){.stack = "main",
                                            .values_count = 1,
                                            .values = {1},
                                            .trace_id = TRACE,
                                            .span_id = texts[i]};
    }
}

static void a_span_is_one_link_however_it_is_named(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a", .values_count = 1, .values = {1}, .trace_id = TRACE, .span_id = "spanspan"},
        {.stack = "b",
         .values_count = 1,
         .values = {2},
         .attributes = {"trace_id=" TRACE_HEX, "span_id=7370616e7370616e"}},
        {.stack = "c", .values_count = 1, .values = {3}},
        {.stack = "d",
         .values_count = 1,
         .values = {4},
         .attributes = {"span_id=7370616e7370616e"}},
        {.stack = "e", .values_count = 1, .values = {5}, .trace_id = TRACE, .span_id = "spanspam"},
    };
    struct room room;
    (void)state;
    open_room(&room, UINT64_MAX / 2, samples, sizeof(samples) / sizeof(samples[0]));
    assert_true(profile_links_open(&room.links, room.request, NOW));
    assert_int_equal(room.links.set.count - 1, 3); /* with the trace, without, and the other */
    assert_int_equal(room.links.named_count, 4);
    assert_int_equal(room.links.named[0].link, room.links.named[1].link);
    assert_false(room.links.named[0].is_by_labels);
    assert_true(room.links.named[1].is_by_labels);
    assert_int_equal(room.links.linked_samples, 4);
    assert_int_equal(profile_links_resolve(&room.links), 3);
    close_room(&room);
}

static void thousands_of_spans_are_distinct(void **state)
{
    static struct sketch_sample samples[MANY];
    static char texts[MANY][SPAN_ID_BYTES + 1];
    struct room room;
    (void)state;
    make_many(samples, texts);
    open_room(&room, UINT64_MAX / 2, samples, MANY);
    for (unsigned turn = 0; turn < 2; turn++) {
        assert_true(profile_links_open(&room.links, room.request, NOW));
        assert_int_equal(room.links.set.count - 1, MANY / 2);
        assert_int_equal(room.links.named_count, MANY);
        for (unsigned i = 0; i < MANY; i++) {
            uint32_t place = room.links.named[i].link;
            assert_memory_equal(&room.links.set.items[place].key.span, texts[i], SPAN_ID_BYTES);
        }
    }
    close_room(&room);
}

static void a_request_for_which_there_is_no_memory_is_not_opened(void **state)
{
    static struct sketch_sample samples[MANY];
    static char texts[MANY][SPAN_ID_BYTES + 1];
    uint64_t most = (uint64_t)MANY * (sizeof(struct join_link) + 64);
    unsigned refused = 0;
    (void)state;
    make_many(samples, texts);
    for (uint64_t limit = 0; limit <= most; limit += most / 16) {
        struct room room;
        open_room(&room, limit, samples, MANY);
        bool is_open = profile_links_open(&room.links, room.request, NOW);
        assert_true(budget_used(&room.budget) <= limit);
        assert_true(is_open || limit < most);
        refused += !is_open;
        close_room(&room);
    }
    assert_true(refused > 2);
}

/* Of two bytes each, they would cost two hundred times as much. */
static void resources_take_memory_with_their_first_timed_sample(void **state)
{
    static const struct sketch_sample sample = {
        .stack = "main", .values_count = 1, .values = {1}, .time_ns = 1, .timestamps_count = 1};
    static uint8_t empty[2 * MANY];
    struct room room;
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        empty[2 * i] = 0x0a;
    open_room(&room, UINT64_MAX / 2, &sample, 1);
    assert_true(profile_links_open(&room.links, slice_of(empty, sizeof(empty)), NOW));
    assert_int_equal(room.links.resources_capacity, 0);
    assert_true(profile_links_open(&room.links, room.request, NOW));
    assert_int_equal(room.links.resources_count, 1);
    assert_int_equal(room.links.timed_count, 1);
    assert_true(budget_used(&room.budget) >=
                room.links.resources_capacity * sizeof(room.links.resources[0]));
    close_room(&room);
}

/* Each sample has to look at all spans of its process and second. */
static void looks_by_time_are_bounded(void **state)
{
    enum { SPANS = 2000, FEW = 100, SAMPLES = 1800 };
    static const struct join_settings settings = {
        .index_entries = 4096, .index_bytes = SPAN_SHARD_BYTES_MIN, .uses_window = true};
    static const unsigned counts[] = {FEW, SAMPLES};
    static struct sketch_sample samples[SAMPLES];
    const uint64_t at_ns = 100 * (uint64_t)NS_PER_S;
    const uint64_t after_ns = at_ns + 3 * (uint64_t)NS_PER_S / 2;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++)
        samples[i] = (struct sketch_sample){.stack = "main",
                                            .values_count = 1,
                                            .values = {1},
                                            .time_ns = at_ns,
                                            .timestamps_count = 1};
    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct room room;
        open_room(&room, UINT64_MAX / 2, samples, counts[i]);
        join_store_destroy(room.store);
        room.store = join_store_create(&settings, 1);
        room.links.store = room.store;
        assert_true(profile_links_open(&room.links, room.request, NOW));
        assert_int_equal(room.links.timed_count, counts[i]);
        struct span_window *window = &room.store->window;
        span_window_begin(window, 0, &room.links.resources[0], at_ns);
        for (uint64_t span = 1; span <= SPANS; span++)
            span_window_add(
                window, 0,
                &(struct window_span){.span = span, .start_ns = after_ns, .end_ns = after_ns});
        profile_links_resolve(&room.links);
        unsigned sought = counts[i] - room.links.timed_left_out;
        assert_int_equal(room.links.timed_left_out > 0, counts[i] == SAMPLES);
        assert_true(sought * (uint64_t)SPANS <= JOIN_REQUEST_LOOKS_MAX + SPANS + FEW);
        close_room(&room);
    }
}

static void the_index_of_the_dictionary_is_charged(void **state)
{
    static const struct sketch_sample sample = {.stack = "main",
                                                .values_count = 1,
                                                .values = {1},
                                                .trace_id = TRACE,
                                                .span_id = "spanspan"};
    enum { HEADER_BYTES = 3, STRINGS_BYTES = 2 * MANY };
    static uint8_t bytes[HEADER_BYTES + STRINGS_BYTES] = {0x12, (STRINGS_BYTES & 0x7f) | 0x80,
                                                          STRINGS_BYTES >> 7};
    const struct slice request = slice_of(bytes, sizeof(bytes));
    struct room room;
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        bytes[HEADER_BYTES + 2 * i] = 0x2a; /* an empty string */
    open_room(&room, UINT64_MAX / 2, &sample, 1);
    assert_true(profile_links_open(&room.links, request, NOW));
    assert_true(room.links.arena.used_bytes >= MANY * sizeof(uint32_t));
    assert_true(budget_used(&room.budget) >= room.links.arena.used_bytes);
    close_room(&room);
    open_room(&room, MANY * sizeof(uint32_t) / 2, &sample, 1);
    assert_false(profile_links_open(&room.links, request, NOW));
    close_room(&room);
}

/* However many spans are above the one that a sample names. */
static void few_ancestors_are_looked_up(void **state)
{
    enum { CHAIN = 4 * JOIN_ANCESTORS_MAX };
    static const struct join_settings settings = {
        .index_entries = 2 * CHAIN, .index_bytes = SPAN_SHARD_BYTES_MIN, .counts_ancestors = true};
    static const struct sketch_sample sample = {.stack = "main",
                                                .values_count = 1,
                                                .values = {1},
                                                .trace_id = TRACE,
                                                .span_id = "spanspan"};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = 1, .samples = &sample};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
    struct profile_links links;
    struct copies_figures figures;
    struct span_facts facts = {.resource = 1};
    (void)state;
    struct join_store *store = join_store_create(&settings, 1);
    struct slice request = sketch_request(&sketch);
    memcpy(facts.trace, TRACE, sizeof(facts.trace));
    memcpy(&facts.span, sample.span_id, sizeof(facts.span));
    for (uint64_t i = 1; i <= CHAIN; i++) {
        facts.parent = i;
        span_index_add(&store->index, 0, &facts);
        facts.span = i;
    }
    profile_links_init(&links, store, NULL);
    assert_true(profile_links_open(&links, request, NOW));
    profile_links_resolve(&links);
    struct batch *batch = plain_request(NULL, PROFILES, request, 1);
    batch_unref(profile_copies_add(&links, batch, NULL, &figures));
    assert_int_equal(figures.made, 0); /* that is deeper than any program calls */
    assert_int_equal(links.set.count, 2 + JOIN_ANCESTORS_MAX);
    profile_links_fini(&links);
    join_store_destroy(store);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)request.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_ancestors_are_looked_up),
        cmocka_unit_test(a_span_is_one_link_however_it_is_named),
        cmocka_unit_test(thousands_of_spans_are_distinct),
        cmocka_unit_test(a_request_for_which_there_is_no_memory_is_not_opened),
        cmocka_unit_test(resources_take_memory_with_their_first_timed_sample),
        cmocka_unit_test(the_index_of_the_dictionary_is_charged),
        cmocka_unit_test(looks_by_time_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
