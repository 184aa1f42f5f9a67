/* SPDX-License-Identifier: Apache-2.0 */
/* The waterfall: depth first, children by start; what is missing or in a circle stands at the
 * top; every span once. */
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
#include "src/explore/trace_view.h"
#include "tests/unit/explore/span_request.h"

static struct trace_store store;
static struct trace_view view;
static struct budget budget;
static struct span_row rows[EXPLORE_OPEN_SPANS_MAX];

static void build(const struct test_span *spans, size_t count)
{
    struct error error;
    struct explore_limit limit = explore_limit_of((uint64_t)60 * NS_PER_S);
    struct buffer *request = span_request(spans, count);
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    trace_store_init(&store, CODEC_ZSTD);
    budget_init(&budget, UINT64_MAX);
    assert_true(trace_store_add(&store, buffer_slice(request), 1));
    buffer_unref(request);
    view = (struct trace_view){.number = 0};
    assert_int_equal(trace_view_build(&view, &store, store.first, rows, &budget, &limit),
                     EXPLORE_DONE);
    assert_int_equal(view.count, count);
}

static void release(void)
{
    trace_view_fini(&view);
    trace_store_fini(&store);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void check_row(uint32_t row, uint64_t span, int64_t parent, uint32_t depth, uint32_t subtree,
                      uint64_t self_ns, bool is_critical)
{
    assert_int_equal(view.rows[row].span_id, row_span_id_of(span));
    assert_int_equal(view.rows[row].parent, parent < 0 ? VIEW_NONE : (uint32_t)parent);
    assert_int_equal(view.rows[row].depth, depth);
    assert_int_equal(view.rows[row].subtree, subtree);
    assert_int_equal(view.rows[row].self_ns, self_ns);
    assert_int_equal(view.rows[row].is_critical, is_critical);
    assert_int_equal(trace_view_find(&view, row_span_id_of(span)), row);
}

static void draws_a_tree(void **state)
{
    (void)state;
    const struct test_span spans[] = {
        {.trace = 1,
         .span = 4,
         .parent = 2,
         .service = "b",
         .name = "d",
         .start_ns = 130,
         .duration_ns = 20},
        {.trace = 1,
         .span = 3,
         .parent = 1,
         .service = "b",
         .name = "c",
         .start_ns = 160,
         .duration_ns = 30},
        {.trace = 1,
         .span = 1,
         .service = "a",
         .name = "root",
         .start_ns = 100,
         .duration_ns = 100},
        {.trace = 1,
         .span = 2,
         .parent = 1,
         .service = "a",
         .name = "b",
         .start_ns = 110,
         .duration_ns = 60},
    };
    build(spans, 4);
    /* Children of 1 cover 110 to 190. */
    check_row(0, 1, -1, 0, 4, 20, true);
    check_row(1, 2, 0, 1, 2, 40, false); /* 3 ended later, and began before 2 ended */
    check_row(2, 4, 1, 2, 1, 20, false);
    check_row(3, 3, 0, 1, 1, 30, true);
    assert_int_equal(view.services_count, 2);
    assert_int_equal(view.services[0].spans + view.services[1].spans, 4);
    assert_int_equal(view.start_ns, 100);
    assert_int_equal(view.end_ns, 200);
    assert_int_equal(trace_view_find(&view, row_span_id_of(77)), VIEW_NONE);
    release();
}

static void survives_missing_parents_and_circles(void **state)
{
    (void)state;
    const struct test_span spans[] = {
        {.trace = 1,
         .span = 1,
         .parent = 99,
         .service = "a",
         .name = "lost",
         .start_ns = 50,
         .duration_ns = 5},
        {.trace = 1,
         .span = 2,
         .parent = 2,
         .service = "a",
         .name = "own",
         .start_ns = 60,
         .duration_ns = 5},
        {.trace = 1,
         .span = 3,
         .parent = 4,
         .service = "a",
         .name = "x",
         .start_ns = 70,
         .duration_ns = 5},
        {.trace = 1,
         .span = 4,
         .parent = 3,
         .service = "a",
         .name = "y",
         .start_ns = 80,
         .duration_ns = 5},
        {.trace = 1,
         .span = 5,
         .parent = 4,
         .service = "a",
         .name = "z",
         .start_ns = 90,
         .duration_ns = 5},
    };
    build(spans, 5);
    check_row(0, 1, -1, 0, 1, 5, true); /* the first of the longest */
    assert_true(view.rows[0].is_orphan);
    check_row(1, 2, -1, 0, 1, 5, false);
    assert_int_equal(view.rows[2].depth, 0);
    assert_int_equal(view.rows[2].subtree, 3);
    release();
}

/* Random trees and forests with doubled ids: rows are a depth-first order of every span once, and
 * covered time agrees with counting nanoseconds. */
static void agrees_with_counting(void **state)
{
    (void)state;
    enum { ROUNDS = 300, SPANS_MAX = 60, TIME_MAX = 200 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct test_span spans[SPANS_MAX];
        srandom(round + 1);
        size_t count = 1 + (size_t)random() % SPANS_MAX;
        for (size_t i = 0; i < count; i++)
            spans[i] = (struct test_span){
                .trace = 1,
                .span = random() % 20 == 0 && i > 0 ? i : i + 1,
                .parent = random() % 8 == 0 ? 0 : 1 + (uint64_t)random() % (count + 2),
                .service = "a",
                .name = "n",
                .start_ns = (uint64_t)random() % (TIME_MAX / 2),
                .duration_ns = (uint64_t)random() % (TIME_MAX / 2),
            };
        build(spans, count);
        for (uint32_t i = 0; i < view.count; i++) {
            const struct view_row *row = &view.rows[i];
            if (row->parent != VIEW_NONE) {
                const struct view_row *parent = &view.rows[row->parent];
                assert_true(row->parent < i && i < row->parent + parent->subtree);
                assert_int_equal(row->depth, parent->depth + 1);
            } else {
                assert_int_equal(row->depth, 0);
            }
            uint32_t children = 0;
            uint64_t self_ns = 0;
            uint64_t last_ns = 0;
            for (uint32_t j = i + 1; j < i + row->subtree; j += view.rows[j].subtree) {
                assert_int_equal(view.rows[j].parent, i);
                assert_true(view.rows[j].start_ns >= last_ns);
                last_ns = view.rows[j].start_ns;
                children += view.rows[j].subtree;
            }
            assert_int_equal(children + 1, row->subtree);
            for (uint64_t ns = row->start_ns; ns < row->start_ns + row->duration_ns; ns++) {
                bool is_covered = false;
                for (uint32_t j = i + 1; j < i + row->subtree; j += view.rows[j].subtree)
                    is_covered |= view.rows[j].start_ns <= ns &&
                                  ns < view.rows[j].start_ns + view.rows[j].duration_ns;
                self_ns += !is_covered;
            }
            assert_int_equal(self_ns, row->self_ns);
        }
        release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_a_tree),
        cmocka_unit_test(survives_missing_parents_and_circles),
        cmocka_unit_test(agrees_with_counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
