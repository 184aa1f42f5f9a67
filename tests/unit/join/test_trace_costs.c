/* SPDX-License-Identifier: Apache-2.0 */
/* What profiles measured of traces: sums, spans whose trace comes later, and bounds. */
#include "src/join/index/trace_costs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "src/base/clock.h"

static const uint64_t first[2] = {1, 2};
static const uint64_t second[2] = {1, 3};

static void assert_cost(struct trace_costs *costs, const uint64_t trace[2], uint64_t samples,
                        uint64_t cpu_ns)
{
    const struct trace_cost cost = trace_costs_get(costs, trace);
    assert_int_equal(cost.samples, samples);
    assert_int_equal(cost.cpu_ns, cpu_ns);
}

static void costs_add_up_by_trace(void **state)
{
    struct trace_costs costs = {.traces = {.entries = NULL}};
    (void)state;
    assert_false(trace_costs_are_on(&costs));
    assert_true(trace_costs_init(&costs, 16));
    assert_cost(&costs, first, 0, 0);
    trace_costs_add(&costs, first, (struct trace_cost){1, 10}, 0);
    trace_costs_add(&costs, second, (struct trace_cost){5, 0}, 0);
    trace_costs_add(&costs, first, (struct trace_cost){2, 20}, 0);
    assert_cost(&costs, first, 3, 30);
    assert_cost(&costs, second, 5, 0);
    trace_costs_add(&costs, first, (struct trace_cost){UINT64_MAX, UINT64_MAX}, 0);
    assert_cost(&costs, first, UINT32_MAX, UINT64_MAX);
    /* Zeros are no id. */
    const uint64_t none[2] = {0, 0};
    trace_costs_add(&costs, none, (struct trace_cost){1, 1}, 0);
    assert_cost(&costs, none, 0, 0);
    trace_costs_fini(&costs);
}

static void a_span_counts_once_its_trace_is_known(void **state)
{
    struct trace_costs costs = {.traces = {.entries = NULL}};
    (void)state;
    assert_true(trace_costs_init(&costs, 16));
    trace_costs_add_span(&costs, 7, (struct trace_cost){1, 10}, 0);
    trace_costs_add_span(&costs, 7, (struct trace_cost){1, 10}, 0);
    assert_cost(&costs, first, 0, 0);
    trace_costs_move_span(&costs, 8, first, 0);
    assert_cost(&costs, first, 0, 0);
    trace_costs_move_span(&costs, 7, first, 0);
    trace_costs_move_span(&costs, 7, second, 0);
    assert_cost(&costs, first, 2, 20);
    assert_cost(&costs, second, 0, 0);
    trace_costs_fini(&costs);
}

/* One line of four: the fifth trace takes the place of the one that grew longest ago. */
static void what_grew_longest_ago_is_forgotten(void **state)
{
    struct trace_costs costs = {.traces = {.entries = NULL}};
    (void)state;
    assert_true(trace_costs_init(&costs, 1));
    for (uint64_t i = 1; i <= 4; i++) {
        const uint64_t id[2] = {i, 0};
        trace_costs_add(&costs, id, (struct trace_cost){1, 1}, i * NS_PER_S);
    }
    const uint64_t again[2] = {1, 0};
    const uint64_t more[2] = {5, 0};
    const uint64_t oldest[2] = {2, 0};
    trace_costs_add(&costs, again, (struct trace_cost){1, 1}, 5 * (uint64_t)NS_PER_S);
    trace_costs_add(&costs, more, (struct trace_cost){1, 1}, 6 * (uint64_t)NS_PER_S);
    assert_cost(&costs, again, 2, 2);
    assert_cost(&costs, more, 1, 1);
    assert_cost(&costs, oldest, 0, 0);
    trace_costs_fini(&costs);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *add_many(void *arg)
{
    struct trace_costs *costs = arg;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        trace_costs_add(costs, first, (struct trace_cost){1, 2}, 0);
        trace_costs_add_span(costs, 9, (struct trace_cost){1, 2}, 0);
        trace_costs_move_span(costs, 9, second, 0);
    }
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    struct trace_costs costs = {.traces = {.entries = NULL}};
    pthread_t threads[THREADS];
    (void)state;
    assert_true(trace_costs_init(&costs, 1024));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &costs), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    trace_costs_move_span(&costs, 9, second, 0);
    assert_cost(&costs, first, THREADS * ROUNDS, 2 * THREADS * ROUNDS);
    assert_cost(&costs, second, THREADS * ROUNDS, 2 * THREADS * ROUNDS);
    trace_costs_fini(&costs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_add_up_by_trace),
        cmocka_unit_test(a_span_counts_once_its_trace_is_known),
        cmocka_unit_test(what_grew_longest_ago_is_forgotten),
        cmocka_unit_test(threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
