/* SPDX-License-Identifier: Apache-2.0 */
/* Filters pick the traces that a naive look at all spans picks, whichever blocks the spans lie in;
 * blocks that cannot have an attribute are passed over, and a search that has enough may end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/explore/trace_query.h"
#include "tests/unit/explore/span_request.h"

enum { SPANS = 6000, TRACES = 1500, BLOCKS = 12 };

static struct trace_store store;
static struct test_span spans[SPANS];
static char texts[SPANS][16];
static struct span_row rows[EXPLORE_OPEN_SPANS_MAX];
static struct explore_query query;

static const char *const services[] = {"a", "cart", "db"};
static const char *const names[] = {"GET /", "query", "op"};

static int setup(void **state)
{
    (void)state;
    struct error error;
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    trace_store_init(&store, CODEC_ZSTD);
    for (size_t i = 0; i < SPANS; i++) {
        /* Traces are spread over two blocks each. */
        uint64_t trace = 1 + (i % (SPANS / BLOCKS) + i / (SPANS / BLOCKS) * 125) % TRACES;
        snprintf(texts[i], sizeof(texts[i]), "user-%zu", i * 7919 % 700);
        spans[i] = (struct test_span){.trace = trace,
                                      .span = 1 + i,
                                      .service = services[i * 31 % 97 % 3],
                                      .name = names[i * 17 % 89 % 3],
                                      .start_ns = 1000 + i * 10,
                                      .duration_ns = 100 + i * 13 % 1000,
                                      .status = i % 211 == 0 ? 2 : 0,
                                      .attribute = texts[i]};
    }
    for (size_t i = 0; i < SPANS; i += SPANS / BLOCKS) {
        struct buffer *request = span_request(&spans[i], SPANS / BLOCKS);
        assert_true(trace_store_add(&store, buffer_slice(request), 1));
        buffer_unref(request);
        /* The last block stays open. */
        assert_true(i + SPANS / BLOCKS == SPANS || trace_store_seal(&store));
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    trace_store_fini(&store);
    return 0;
}

static struct trace_filter filter_of(const char *text)
{
    struct trace_filter filter;
    char reason[FILTER_REASON_BYTES_MAX];
    const char *problem;
    assert_true(explore_query_parse(&query, slice_of_text(text), &problem));
    assert_true(trace_filter_read(&filter, &query, reason));
    return filter;
}

static bool has(struct slice wanted, const char *text)
{
    return wanted.data == NULL || slice_equal_text(wanted, text);
}

/* Whether a span of the trace is one that is asked for. */
static bool naive_has(const struct trace_filter *filter, uint64_t trace)
{
    for (size_t i = 0; i < SPANS; i++) {
        bool is_one = spans[i].trace == trace && has(filter->service, spans[i].service) &&
                      has(filter->name, spans[i].name);
        for (size_t j = 0; is_one && j < filter->attributes_count; j++) {
            struct slice key = filter->attributes[j].key;
            const char *found = slice_equal_text(key, "key")            ? spans[i].attribute
                                : slice_equal_text(key, "service.name") ? spans[i].service
                                                                        : "";
            is_one = slice_equal_text(filter->attributes[j].value, found);
        }
        if (is_one)
            return true;
    }
    return false;
}

static uint64_t count_picked(const char *text)
{
    const struct trace_search all = {.before = UINT64_MAX, .enough = UINT64_MAX};
    struct trace_filter filter = filter_of(text);
    struct trace_matches matches;
    struct explore_limit limit = {.end_ns = UINT64_MAX};
    uint64_t count = 0;
    assert_int_equal(trace_filter_run(&filter, &store, rows, &limit, &all, &matches), EXPLORE_DONE);
    assert_false(matches.is_partial);
    for (uint64_t trace = 1; trace <= TRACES; trace++) {
        uint8_t id[16];
        trace_id_of(trace, id);
        uint64_t number = trace_store_find(&store, id);
        assert_true(number != UINT64_MAX);
        const struct trace_record *record = trace_store_record(&store, number);
        uint64_t duration_ns = record->end_ns - record->start_ns;
        bool is_wanted = naive_has(&filter, trace) && duration_ns >= filter.min_ns &&
                         duration_ns <= filter.max_ns && (!filter.has_errors || record->errors > 0);
        bool is_picked = trace_filter_has(&filter, &matches, record, number, false);
        assert_int_equal(is_picked, is_wanted);
        count += is_picked;
    }
    trace_matches_fini(&matches);
    return count;
}

static void picks_what_a_naive_look_picks(void **state)
{
    (void)state;
    assert_int_equal(count_picked(""), TRACES);
    assert_true(count_picked("service=cart") > 0);
    assert_true(count_picked("service=cart&name=query") > 0);
    assert_true(count_picked("min=20us") > 0);
    assert_true(count_picked("max=20us&service=db") > 0);
    assert_true(count_picked("error=1") > 0);
    assert_true(count_picked("attr=key%3Duser-17") > 0);
    assert_true(count_picked("attr=key%3Duser-17&service=cart") > 0);
    assert_true(count_picked("attr=service.name%3Ddb&attr=key%3Duser-3&error=0") > 0);
    assert_int_equal(count_picked("attr=key%3Dnobody"), 0);
    assert_int_equal(count_picked("attr=nothing%3Duser-17"), 0);
    assert_int_equal(count_picked("service=nowhere"), 0);
}

static void tells_blocks_without_an_attribute(void **state)
{
    enum { VALUES = 700, KEYS = 200 };
    (void)state;
    size_t blocks = trace_store_blocks(&store);
    size_t opened = 0;
    size_t wrongly = 0;
    size_t fooled = 0;
    assert_int_equal(blocks, BLOCKS);
    for (size_t at = 0; at < blocks; at++) {
        struct block_view view = trace_store_block(&store, at);
        size_t wrongly_here = 0;
        for (unsigned i = 0; i < VALUES; i++) {
            char text[16];
            bool is_there = false;
            snprintf(text, sizeof(text), "user-%u", i);
            for (size_t j = 0; j < SPANS / BLOCKS; j++)
                is_there |= strcmp(spans[at * (SPANS / BLOCKS) + j].attribute, text) == 0;
            bool may_have =
                block_view_may_have(&store, &view, slice_of_text("key"), slice_of_text(text));
            assert_true(may_have || !is_there);
            opened += may_have;
            wrongly_here += may_have && !is_there;
        }
        /* By the seed of this run a block may seem to have a key with values that are noted without
         * their text: then it has any value, but few keys are such. */
        if (wrongly_here <= VALUES / 10)
            wrongly += wrongly_here;
        for (unsigned i = 0; i < KEYS; i++) {
            char key[16];
            snprintf(key, sizeof(key), "nothing-%u", i);
            fooled += block_view_may_have(&store, &view, slice_of_text(key), slice_of_text("x"));
        }
    }
    assert_true(10 * wrongly < opened);
    assert_true(fooled < blocks * KEYS * 15 / 100);
}

static void ends_with_enough(void **state)
{
    (void)state;
    struct trace_filter filter = filter_of("service=cart");
    struct trace_matches matches;
    struct explore_limit limit = {.end_ns = UINT64_MAX};
    struct explore_limit over = {.end_ns = 0};
    struct trace_search newest = {.after = store.next - 2, .before = UINT64_MAX, .enough = 1};
    assert_int_equal(trace_filter_run(&filter, &store, rows, &over, &newest, &matches),
                     EXPLORE_TOO_LONG);
    trace_matches_fini(&matches);
    /* Only the blocks from that trace's first on are looked at. */
    assert_int_equal(trace_filter_run(&filter, &store, rows, &limit, &newest, &matches),
                     EXPLORE_DONE);
    assert_false(matches.is_partial);
    trace_matches_fini(&matches);
}

static void notes_values_as_text(void **state)
{
    (void)state;
    static const uint8_t integer[] = {0x0a, 1, 'n', 0x12, 3, 0x18, 0xf4, 0x03};
    static const uint8_t boolean[] = {0x0a, 1, 'b', 0x12, 2, 0x10, 1};
    static const uint8_t real[] = {0x0a, 1, 'd', 0x12, 9, 0x21, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f};
    static const uint8_t reversed[] = {0x12, 3, 0x0a, 1, 'v', 0x0a, 1, 'k'};
    struct attribute_filter filter;
    attribute_filter_init(&filter);
    attribute_filter_note(&filter, slice_of(integer, sizeof(integer)), 1);
    attribute_filter_note(&filter, slice_of(boolean, sizeof(boolean)), 1);
    attribute_filter_note(&filter, slice_of(real, sizeof(real)), 1);
    attribute_filter_note(&filter, slice_of(reversed, sizeof(reversed)), 1);
    struct attribute_filter folded = attribute_filter_fold(&filter);
    assert_true(folded.bytes < 1024);
    const struct attribute_filter *both[] = {&filter, &folded};
    for (size_t i = 0; i < 2; i++) {
#define MAY_HAVE(key, text)                                                                        \
    attribute_filter_may_have(both[i], slice_of_text(key), slice_of_text(text), 1)
        assert_true(MAY_HAVE("n", "500"));
        assert_false(MAY_HAVE("n", "501"));
        assert_true(MAY_HAVE("b", "true"));
        assert_false(MAY_HAVE("b", "false"));
        assert_true(MAY_HAVE("d", "1.5"));
        assert_true(MAY_HAVE("k", "v"));
        assert_false(MAY_HAVE("v", "k"));
#undef MAY_HAVE
    }
    attribute_filter_clear(&filter);
    assert_false(attribute_filter_may_have(&filter, slice_of_text("k"), slice_of_text("v"), 1));
    attribute_filter_fini(&folded);
    attribute_filter_fini(&filter);
}

/* A resource and a scope that are not there have no bytes, and begin where the next ones do. */
static void spans_without_a_resource_hide_no_other(void **state)
{
    (void)state;
    static const struct test_span pair[] = {
        {.trace = 1, .span = 1, .name = "n", .start_ns = 1},
        {.trace = 2, .span = 2, .service = "b", .name = "n", .start_ns = 2},
    };
    static const struct trace_search all = {.before = UINT64_MAX, .enough = UINT64_MAX};
    struct trace_filter filter = filter_of("attr=service.name%3Db");
    struct explore_limit limit = {.end_ns = UINT64_MAX};
    struct trace_store own;
    struct buffer *request = span_request(pair, 2);
    trace_store_init(&own, CODEC_ZSTD);
    assert_true(trace_store_add(&own, buffer_slice(request), 1));
    /* In the open block, then in a compressed one. */
    for (unsigned pass = 0; pass < 2; pass++) {
        struct trace_matches matches;
        assert_int_equal(trace_filter_run(&filter, &own, rows, &limit, &all, &matches),
                         EXPLORE_DONE);
        assert_false(trace_filter_has(&filter, &matches, trace_store_record(&own, 1), 1, false));
        assert_true(trace_filter_has(&filter, &matches, trace_store_record(&own, 2), 2, false));
        trace_matches_fini(&matches);
        assert_true(trace_store_seal(&own));
    }
    buffer_unref(request);
    trace_store_fini(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_what_a_naive_look_picks),
        cmocka_unit_test(tells_blocks_without_an_attribute),
        cmocka_unit_test(ends_with_enough),
        cmocka_unit_test(notes_values_as_text),
        cmocka_unit_test(spans_without_a_resource_hide_no_other),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
