/* SPDX-License-Identifier: Apache-2.0 */
/* The span index compared with a plain list, and while it is written and read concurrently. */
#include "src/join/index/span_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/join/join_limits.h"

enum { READERS = 2, ADDS = 60000 };

static uint64_t state = 7;

static uint64_t random_bits(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

/* Everything about a span follows from its id, so that a torn read shows. */
static struct span_facts facts_of(uint64_t span)
{
    return (struct span_facts){
        .trace = {span * 3, span * 5 + 1},
        .span = span,
        .parent = span * 7,
        .start_ns = span * 11,
        .end_ns = span * 13,
        .resource = (uint32_t)(span * 17),
        .flags = (uint16_t)(span & SPAN_KIND_MASK),
        .thread = (uint16_t)(span * 19),
    };
}

static void text_of(uint64_t span, struct string_record *ret_text)
{
    char name[64];
    int bytes = snprintf(name, sizeof(name), "name %u", (unsigned)(span % 97));
    string_record_begin(ret_text);
    string_record_add_number(ret_text, 9);
    string_record_add(ret_text, name, (uint64_t)bytes, 1000);
    string_record_add_absent(ret_text);
    string_record_add(ret_text, "end", 3, 1000);
}

static void add(struct span_index *index, unsigned shard, uint64_t span)
{
    struct string_record text;
    struct span_facts facts = facts_of(span);
    text_of(span, &text);
    facts.strings = string_ring_put(span_index_ring(index, shard), &text, STRING_KEEP_HALF);
    span_index_add(index, shard, &facts);
}

static bool is_as_added(const struct span_facts *facts, uint64_t span)
{
    struct span_facts wanted = facts_of(span);
    return facts->trace[0] == wanted.trace[0] && facts->trace[1] == wanted.trace[1] &&
           facts->span == span && facts->parent == wanted.parent &&
           facts->start_ns == wanted.start_ns && facts->end_ns == wanted.end_ns &&
           facts->resource == wanted.resource && facts->flags == wanted.flags &&
           facts->thread == wanted.thread;
}

static bool is_text_of(const struct string_record *text, uint64_t span)
{
    struct string_record wanted;
    text_of(span, &wanted);
    return text->bytes == wanted.bytes && memcmp(text->words, wanted.words, text->bytes) == 0;
}

static bool has(const struct span_index *index, uint64_t span)
{
    struct span_facts found;
    struct string_record text;
    struct span_facts wanted = facts_of(span);
    if (span_index_find(index, wanted.trace, span, &found) != SPAN_FOUND)
        return false;
    assert_true(is_as_added(&found, span));
    assert_true(span_index_strings(index, &found, &text));
    assert_true(is_text_of(&text, span));
    return true;
}

static void the_newest_spans_are_found_and_older_ones_are_gone(void **unused)
{
    static uint64_t spans[20000];
    struct span_index index;
    const size_t count = sizeof(spans) / sizeof(spans[0]);
    (void)unused;
    assert_true(span_index_init(&index, 1, 3000, 4 * SPAN_SHARD_BYTES_MIN));
    assert_int_equal(index.shards[0].entries_count, 3000);
    for (size_t i = 0; i < count; i++) {
        spans[i] = random_bits() | 1;
        assert_false(has(&index, spans[i]));
        add(&index, 0, spans[i]);
        size_t any = i - random_bits() % (i < 2999 ? i + 1 : 3000);
        assert_true(has(&index, spans[any]));
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(has(&index, spans[i]), i >= count - 3000);
    assert_int_equal(index.shards[0].evictions, count - 3000);
    assert_int_equal(span_index_arrivals(&index), count);
    span_index_fini(&index);
}

static void a_span_sent_twice_is_stored_once(void **unused)
{
    struct span_index index;
    (void)unused;
    assert_true(span_index_init(&index, 1, 10, SPAN_SHARD_BYTES_MIN));
    add(&index, 0, 1);
    for (int i = 0; i < 100; i++)
        add(&index, 0, 2);
    assert_true(has(&index, 1));
    assert_true(has(&index, 2));
    assert_int_equal(index.shards[0].evictions, 0);
    span_index_fini(&index);
}

static void colliding_ids_evict_only_each_other(void **unused)
{
    struct span_index index;
    (void)unused;
    /* Only one bucket: 32 spans of one hash do not fit. */
    assert_true(span_index_init(&index, 1, 8, SPAN_SHARD_BYTES_MIN));
    assert_int_equal(index.shards[0].buckets, 1);
    for (uint64_t span = 1; span <= 100; span++) {
        add(&index, 0, span);
        assert_true(has(&index, span));
    }
    span_index_fini(&index);
}

static void without_a_trace_a_span_is_found_if_it_is_in_one_trace_only(void **unused)
{
    struct span_index index;
    struct span_facts found;
    struct span_facts other = facts_of(42);
    (void)unused;
    assert_true(span_index_init(&index, 2, 100, 2 * SPAN_SHARD_BYTES_MIN));
    assert_int_equal(span_index_find(&index, NULL, 42, &found), SPAN_MISSED);
    assert_int_equal(span_index_find(&index, NULL, 0, &found), SPAN_MISSED);
    add(&index, 0, 42);
    assert_int_equal(span_index_find(&index, NULL, 42, &found), SPAN_FOUND);
    assert_true(is_as_added(&found, 42));
    add(&index, 1, 42); /* the same span, sent twice */
    assert_int_equal(span_index_find(&index, NULL, 42, &found), SPAN_FOUND);
    other.trace[0]++;
    span_index_add(&index, 1, &other);
    assert_int_equal(span_index_find(&index, NULL, 42, &found), SPAN_AMBIGUOUS);
    assert_int_equal(span_index_find(&index, other.trace, 42, &found), SPAN_FOUND);
    assert_int_equal(found.shard, 1);
    span_index_fini(&index);
}

static void a_span_in_three_traces_is_as_ambiguous_as_in_two(void **unused)
{
    struct span_index index;
    struct span_facts found;
    struct span_facts facts = facts_of(42);
    (void)unused;
    assert_true(span_index_init(&index, 3, 100, 3 * SPAN_SHARD_BYTES_MIN));
    for (unsigned shard = 0; shard < 3; shard++) {
        facts.trace[0]++;
        span_index_add(&index, shard, &facts);
    }
    assert_int_equal(span_index_find(&index, NULL, 42, &found), SPAN_AMBIGUOUS);
    span_index_fini(&index);
}

/* An index with a span, 100, whose parent is missing, and one below it. */
static void init_chain(struct span_index *index, struct span_facts *ret_child)
{
    struct span_facts span = {.trace = {1, 2}, .resource = 5, .span = 100, .parent = 99};
    assert_true(span_index_init(index, 1, 1000, 4 * SPAN_SHARD_BYTES_MIN));
    span_index_add(index, 0, &span);
    span.span = 101;
    span.parent = 100;
    span_index_add(index, 0, &span);
    *ret_child = span;
}

static void a_chain_of_parents_leads_to_the_local_root(void **unused)
{
    struct span_index index;
    struct span_facts chain = {.trace = {1, 2}, .resource = 5};
    struct span_facts found;
    (void)unused;
    assert_true(span_index_init(&index, 1, 1000, 4 * SPAN_SHARD_BYTES_MIN));
    for (uint64_t span = 10; span <= 11 + JOIN_ANCESTORS_MAX; span++) {
        chain.span = span;
        chain.parent = span - 1;
        chain.flags = span == 10 ? SPAN_IS_LOCAL_ROOT : 0;
        span_index_add(&index, 0, &chain);
    }
    assert_int_equal(span_index_find(&index, chain.trace, 60, &found), SPAN_FOUND);
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_FOUND);
    assert_int_equal(found.span, 10);
    assert_int_equal(span_index_find(&index, chain.trace, 10 + JOIN_ANCESTORS_MAX, &found),
                     SPAN_FOUND);
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_FOUND);
    assert_int_equal(span_index_find(&index, chain.trace, 11 + JOIN_ANCESTORS_MAX, &found),
                     SPAN_FOUND);
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_UNKNOWN);
    assert_int_equal(found.span, 11 + JOIN_ANCESTORS_MAX);
    span_index_fini(&index);
}

/* Unless that one must be in the same process. */
static void without_a_parent_the_last_span_known_is_likely_the_root(void **unused)
{
    struct span_index index;
    struct span_facts child;
    struct span_facts found;
    (void)unused;
    init_chain(&index, &child);
    found = child;
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_LIKELY);
    assert_int_equal(found.span, 100);
    found.flags = SPAN_TELLS_ROOT;
    span_index_add(&index, 0, &found);
    found = child;
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_UNKNOWN);
    assert_int_equal(found.span, 100);
    span_index_fini(&index);
}

static void a_parent_in_another_process_ends_the_chain(void **unused)
{
    struct span_index index;
    struct span_facts span;
    struct span_facts found;
    (void)unused;
    init_chain(&index, &span);
    span.span = 102;
    span.parent = 101;
    span.resource = 6;
    found = span;
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_FOUND);
    assert_int_equal(found.span, 102);
    found.flags = SPAN_TELLS_ROOT;
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_UNKNOWN);
    span_index_fini(&index);
}

static void a_cycle_of_parents_ends_where_it_began(void **unused)
{
    struct span_index index;
    struct span_facts span;
    struct span_facts found;
    (void)unused;
    init_chain(&index, &span);
    span.span = 200;
    span.parent = 201;
    span_index_add(&index, 0, &span);
    span.span = 201;
    span.parent = 200;
    span_index_add(&index, 0, &span);
    found = span;
    assert_int_equal(span_index_root(&index, &found), SPAN_ROOT_UNKNOWN);
    assert_int_equal(found.span, 201);
    span_index_fini(&index);
}

static void fewer_spans_are_kept_when_bytes_do_not_suffice(void **unused)
{
    struct span_index index;
    (void)unused;
    assert_true(span_index_init(&index, 1, 1000000, MIB));
    uint64_t entries = index.shards[0].entries_count;
    assert_in_range(entries, 5000, 12000);
    for (uint64_t span = 1; span <= 2 * entries; span++)
        add(&index, 0, span);
    assert_false(has(&index, entries));
    assert_true(has(&index, entries + 1));
    span_index_fini(&index);
}

/* Strings that differ from span to span overwrite the oldest before their spans are evicted. */
static void strings_are_right_or_gone(void **unused)
{
    struct span_index index;
    struct string_record text;
    char name[1000];
    struct string_ring *log;
    uint64_t gone = 0;
    (void)unused;
    assert_true(span_index_init(&index, 1, 1000, SPAN_SHARD_BYTES_MIN));
    log = span_index_ring(&index, 0);
    for (uint64_t span = 1; span <= 3000; span++) {
        struct span_facts facts = facts_of(span);
        memset(name, (int)(span % 251), sizeof(name));
        memcpy(name, &span, sizeof(span));
        string_record_begin(&text);
        string_record_add(&text, name, 8 + random_bits() % 990, sizeof(name));
        facts.strings = string_ring_put(log, &text, STRING_KEEP_HALF);
        assert_int_equal(facts.strings, string_ring_put(log, &text, STRING_KEEP_HALF));
        span_index_add(&index, 0, &facts);
    }
    for (uint64_t span = 2001; span <= 3000; span++) {
        struct span_facts found;
        struct slice field;
        uint64_t number;
        assert_int_equal(span_index_find(&index, NULL, span, &found), SPAN_FOUND);
        if (!span_index_strings(&index, &found, &text)) {
            gone++;
            assert_int_equal(gone, span - 2000);
            continue;
        }
        struct record_reader reader = string_record_read(&text);
        assert_true(record_next(&reader, &field));
        memcpy(&number, field.data, sizeof(number));
        assert_int_equal(number, span);
        assert_false(record_next(&reader, &field));
    }
    assert_in_range(gone, 1, 999);
    span_index_fini(&index);
}

struct reading {
    const struct span_index *index;
    _Atomic bool *is_over;
    uint64_t found;
    uint64_t wrong;
};

static void *read_spans(void *arg)
{
    struct reading *reading = arg;
    struct span_facts found;
    struct string_record text;
    uint64_t span = 1;
    do {
        span = span % ADDS + 1;
        if (span_index_find(reading->index, NULL, span, &found) != SPAN_FOUND)
            continue;
        reading->found++;
        reading->wrong += !is_as_added(&found, span);
        if (span_index_strings(reading->index, &found, &text))
            reading->wrong += !is_text_of(&text, span);
    } while (!atomic_load(reading->is_over));
    return NULL;
}

static void readers_never_see_half_a_span(void **unused)
{
    struct span_index index;
    pthread_t threads[READERS];
    struct reading readings[READERS];
    _Atomic bool is_over = false;
    (void)unused;
    assert_true(span_index_init(&index, 1, 500, SPAN_SHARD_BYTES_MIN));
    for (int i = 0; i < READERS; i++) {
        readings[i] = (struct reading){.index = &index, .is_over = &is_over};
        assert_int_equal(pthread_create(&threads[i], NULL, read_spans, &readings[i]), 0);
    }
    for (int round = 0; round < 3; round++)
        for (uint64_t span = 1; span <= ADDS; span++)
            add(&index, 0, span);
    atomic_store(&is_over, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readings[i].wrong, 0);
    }
    span_index_fini(&index);
}

static void a_failed_allocation_is_reported(void **unused)
{
    struct span_index index;
    (void)unused;
    for (uint64_t n = 1; n <= 8; n++) {
        mem_refuse_nth(n);
        assert_false(span_index_init(&index, 2, 100, 2 * SPAN_SHARD_BYTES_MIN));
        mem_refuse_nth(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_spans_are_found_and_older_ones_are_gone),
        cmocka_unit_test(a_span_sent_twice_is_stored_once),
        cmocka_unit_test(colliding_ids_evict_only_each_other),
        cmocka_unit_test(without_a_trace_a_span_is_found_if_it_is_in_one_trace_only),
        cmocka_unit_test(a_span_in_three_traces_is_as_ambiguous_as_in_two),
        cmocka_unit_test(a_chain_of_parents_leads_to_the_local_root),
        cmocka_unit_test(without_a_parent_the_last_span_known_is_likely_the_root),
        cmocka_unit_test(a_parent_in_another_process_ends_the_chain),
        cmocka_unit_test(a_cycle_of_parents_ends_where_it_began),
        cmocka_unit_test(fewer_spans_are_kept_when_bytes_do_not_suffice),
        cmocka_unit_test(strings_are_right_or_gone),
        cmocka_unit_test(readers_never_see_half_a_span),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
