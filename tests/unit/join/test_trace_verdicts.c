/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about traces: the stronger one stays, the oldest is forgotten first. */
#include "src/join/index/trace_verdicts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "src/base/clock.h"

static void put(struct trace_verdicts *verdicts, uint64_t trace, enum trace_verdict verdict,
                uint64_t now_ns)
{
    const uint64_t id[2] = {trace, ~trace};
    trace_verdicts_put(verdicts, id, verdict, now_ns);
}

static enum trace_verdict get(const struct trace_verdicts *verdicts, uint64_t trace)
{
    const uint64_t id[2] = {trace, ~trace};
    return trace_verdicts_get(verdicts, id);
}

static void a_sampled_trace_stays_sampled(void **state)
{
    struct trace_verdicts verdicts = {.places = NULL};
    (void)state;
    assert_true(trace_verdicts_init(&verdicts, 64));
    assert_int_equal(get(&verdicts, 1), TRACE_UNKNOWN);
    put(&verdicts, 1, TRACE_DROPPED, 0);
    assert_int_equal(get(&verdicts, 1), TRACE_DROPPED);
    put(&verdicts, 1, TRACE_SAMPLED, 0);
    assert_int_equal(verdicts.changes, 2);
    put(&verdicts, 1, TRACE_DROPPED, 0);
    put(&verdicts, 1, TRACE_SAMPLED, 0);
    assert_int_equal(get(&verdicts, 1), TRACE_SAMPLED);
    assert_int_equal(verdicts.changes, 2); /* nothing new */
    assert_int_equal(get(&verdicts, 2), TRACE_UNKNOWN);
    trace_verdicts_fini(&verdicts);
}

/* One line of eight: the ninth trace takes the place of the oldest. */
static void the_oldest_is_forgotten(void **state)
{
    struct trace_verdicts verdicts = {.places = NULL};
    const uint64_t age_ns = (uint64_t)10 * NS_PER_S;
    (void)state;
    assert_true(trace_verdicts_init(&verdicts, 1));
    assert_int_equal(trace_verdicts_bytes(1), 64);
    for (uint64_t i = 1; i <= 8; i++)
        put(&verdicts, i, TRACE_DROPPED, (i == 5 ? 0 : i) * age_ns);
    for (uint64_t i = 1; i <= 8; i++)
        assert_int_equal(get(&verdicts, i), TRACE_DROPPED);
    put(&verdicts, 9, TRACE_SAMPLED, 9 * age_ns);
    assert_int_equal(get(&verdicts, 5), TRACE_UNKNOWN);
    assert_int_equal(get(&verdicts, 1), TRACE_DROPPED);
    assert_int_equal(get(&verdicts, 9), TRACE_SAMPLED);
    trace_verdicts_fini(&verdicts);
}

/* Half full, a table of lines knows nearly all. */
static void most_traces_are_known_while_there_is_room(void **state)
{
    struct trace_verdicts verdicts = {.places = NULL};
    enum { PLACES = 1 << 16 };
    unsigned known = 0;
    (void)state;
    assert_true(trace_verdicts_init(&verdicts, PLACES));
    for (uint64_t i = 0; i < PLACES / 2; i++)
        put(&verdicts, i, i % 2 == 0 ? TRACE_SAMPLED : TRACE_DROPPED, 0);
    for (uint64_t i = 0; i < PLACES / 2; i++) {
        enum trace_verdict verdict = get(&verdicts, i);
        known += verdict != TRACE_UNKNOWN;
        assert_true(verdict == TRACE_UNKNOWN ||
                    verdict == (i % 2 == 0 ? TRACE_SAMPLED : TRACE_DROPPED));
    }
    assert_in_range(known, PLACES / 2 * 98 / 100, PLACES / 2);
    for (uint64_t i = PLACES; i < 2 * PLACES; i++)
        assert_int_equal(get(&verdicts, i), TRACE_UNKNOWN);
    trace_verdicts_fini(&verdicts);
}

enum { THREADS = 4, ROUNDS = 20000, IDS = 64 };

static void *put_many(void *arg)
{
    for (uint64_t i = 0; i < ROUNDS; i++)
        put(arg, i % IDS, i % 3 == 0 ? TRACE_SAMPLED : TRACE_DROPPED, i << 32);
    return NULL;
}

static void threads_may_put_at_once(void **state)
{
    struct trace_verdicts verdicts = {.places = NULL};
    pthread_t threads[THREADS];
    (void)state;
    assert_true(trace_verdicts_init(&verdicts, 16 * IDS));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, &verdicts), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t i = 0; i < IDS; i++)
        assert_int_equal(get(&verdicts, i), TRACE_SAMPLED);
    trace_verdicts_fini(&verdicts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sampled_trace_stays_sampled),
        cmocka_unit_test(the_oldest_is_forgotten),
        cmocka_unit_test(most_traces_are_known_while_there_is_room),
        cmocka_unit_test(threads_may_put_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
