/* SPDX-License-Identifier: Apache-2.0 */
/* Back-off by retry_on_failure: each wait of a series, and when it is given up. */
#include "src/pipeline/retry.h"

#include "src/base/clock.h"
#include "src/config/shared/exporter_queue_config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S ((uint64_t)NS_PER_S)

enum { WAITS_MAX = 7, GIVES_UP = 0 };

struct retry_row {
    const char *name;
    struct retry_config config;
    double random;
    uint64_t hint_ns;
    uint64_t waits_ms[WAITS_MAX]; /* ends at GIVES_UP; a full row goes on */
};

static const struct retry_row rows[] = {
    {"the defaults, in the middle of the jitter",
     {5 * S, 0.5, 1.5, 30 * S, 300 * S},
     0.5,
     0,
     {5000, 7500, 11250, 16875, 25312, 30000, 30000}},
    {"the defaults, at its lower end",
     {5 * S, 0.5, 1.5, 30 * S, 300 * S},
     0,
     0,
     {2500, 3750, 5625, 8437, 12656, 15000, 15000}},
    {"a factor of 1 may halve to nothing",
     {4 * S, 1, 1, 4 * S, 0},
     0.25,
     0,
     {2000, 2000, 2000, 2000, 2000, 2000, 2000}},
    {"it gives up before a wait that would end too late",
     {4 * S, 0, 1, 4 * S, 9 * S},
     0.9,
     0,
     {4000, 4000, GIVES_UP}},
    {"a wait that ends just then is still made",
     {4 * S, 0, 1, 4 * S, 8 * S},
     0.9,
     0,
     {4000, 4000, GIVES_UP}},
    {"a hint raises the wait", {1 * S, 0, 1, 1 * S, 25 * S}, 0, 10 * S, {10000, 10000, GIVES_UP}},
    {"a hint does not lower it", {9 * S, 0, 1, 9 * S, 20 * S}, 0, 1 * S, {9000, 9000, GIVES_UP}},
    {"a hint beyond the end gives up at once", {1 * S, 0, 1, 1 * S, 5 * S}, 0, 6 * S, {GIVES_UP}},
    {"a hint beyond all time too", {1 * S, 0, 1, 1 * S, 5 * S}, 0, UINT64_MAX, {GIVES_UP}},
    {"a multiplier below one shrinks it",
     {8 * S, 0, 0.5, 8 * S, 0},
     0,
     0,
     {8000, 4000, 2000, 1000, 500, 250, 125}},
    {"an initial interval above the maximum is used once",
     {60 * S, 0, 1.5, 10 * S, 0},
     0,
     0,
     {60000, 10000, 10000, 10000, 10000, 10000, 10000}},
};

static void waits_follow_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct retry retry;
        uint64_t now_ns = 1000 * S;
        print_message("  %s\n", rows[i].name);
        retry_init(&retry, now_ns);
        for (size_t j = 0; j < WAITS_MAX; j++) {
            uint64_t delay_ns = 0;
            bool goes_on = retry_next(&retry, &rows[i].config, now_ns, rows[i].hint_ns,
                                      rows[i].random, &delay_ns);
            assert_true(goes_on == (rows[i].waits_ms[j] != GIVES_UP));
            if (!goes_on)
                break;
            assert_int_equal(delay_ns / NS_PER_MS, rows[i].waits_ms[j]);
            now_ns += delay_ns;
        }
    }
}

static void time_spent_in_attempts_counts_too(void **state)
{
    (void)state;
    const struct retry_config config = {1 * S, 0, 1, 1 * S, 10 * S};
    struct retry retry;
    uint64_t delay_ns;
    retry_init(&retry, 0);
    assert_true(retry_next(&retry, &config, 9 * S, 0, 0, &delay_ns));
    assert_false(retry_next(&retry, &config, 9 * S + 1, 0, 0, &delay_ns));
    assert_false(retry_next(&retry, &config, 30 * S, 0, 0, &delay_ns));
}

static void an_infinite_multiplier_waits_for_the_maximum(void **state)
{
    (void)state;
    const struct retry_config config = {0, 0, INFINITY, 30 * S, 0};
    struct retry retry;
    uint64_t delay_ns;
    retry_init(&retry, 0);
    assert_true(retry_next(&retry, &config, 0, 0, 0, &delay_ns));
    assert_int_equal(delay_ns, 0);
    assert_true(retry_next(&retry, &config, 0, 0, 0, &delay_ns));
    assert_int_equal(delay_ns, 30 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_follow_the_table),
        cmocka_unit_test(time_spent_in_attempts_counts_too),
        cmocka_unit_test(an_infinite_multiplier_waits_for_the_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
