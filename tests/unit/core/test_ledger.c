/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: every entry keeps the equation, a closed ledger does not change. */
#include "src/core/ledger.h"

#include "src/base/counter.h"
#include "src/core/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint64_t lost(const counter *cells)
{
    uint64_t items = 0;
    for (int reason = 0; reason < LOSS_REASONS; reason++)
        items += counter_read(&cells[reason]);
    return items;
}

static void expect_balance(struct ledger *ledger)
{
    for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
        struct ledger_signal *row = &ledger->signals[signal];
        assert_int_equal(counter_read(&row->received),
                         counter_read(&row->delivered) + lost(row->rejected) + lost(row->dropped) +
                             counter_read(&row->deferred) + counter_read(&row->in_flight));
    }
}

static void every_entry_keeps_the_equation(void **state)
{
    (void)state;
    static struct ledger ledger;
    struct batch *batch = batch_create(LOGS, 1);
    batch->items = 7;
    ledger_receive(&ledger, batch, 3);
    expect_balance(&ledger);
    ledger_deliver(&ledger, LOGS, 7);
    expect_balance(&ledger);
    ledger_reject(&ledger, batch, LOSS_BUSY, 1);
    expect_balance(&ledger);
    ledger_drop(&ledger, batch, LOSS_PERMANENT, 1);
    expect_balance(&ledger);
    struct ledger_signal *row = &ledger.signals[LOGS];
    assert_int_equal(counter_read(&row->received), 21);
    assert_int_equal(counter_read(&row->delivered), 7);
    assert_int_equal(counter_read(&row->rejected[LOSS_BUSY]), 7);
    assert_int_equal(counter_read(&row->dropped[LOSS_PERMANENT]), 7);
    assert_int_equal(counter_read(&row->in_flight), 0);
    assert_int_equal(counter_read(&ledger.signals[TRACES].received), 0);
    batch_unref(batch);
}

static uint64_t abandon(struct ledger *ledger)
{
    struct ledger *const ledgers[] = {ledger};
    ledger_close(ledger);
    return ledger_abandon_all(ledgers, 1);
}

static void what_the_journal_has_is_deferred_and_not_dropped(void **state)
{
    (void)state;
    static struct ledger ledger;
    struct batch *batch = batch_create(TRACES, 1);
    batch->items = 5;
    ledger_receive(&ledger, batch, 3);
    ledger_store(&ledger, TRACES, 10);
    ledger_defer(&ledger, TRACES, 5);
    ledger_release(&ledger, TRACES, 5);
    expect_balance(&ledger);
    struct ledger_signal *row = &ledger.signals[TRACES];
    assert_int_equal(counter_read(&row->deferred), 5);
    assert_int_equal(counter_read(&row->in_flight), 10);
    assert_int_equal(abandon(&ledger), 5);
    expect_balance(&ledger);
    assert_int_equal(counter_read(&row->deferred), 10);
    assert_int_equal(counter_read(&row->dropped[LOSS_SHUTDOWN]), 5);
    batch_unref(batch);
}

/* They are in the ledger of the lane that they came to, and in flight on another one. */
static void what_the_journal_has_of_another_lane_is_deferred(void **state)
{
    (void)state;
    static struct ledger here;
    static struct ledger there;
    struct ledger *const ledgers[] = {&here, &there};
    struct batch *batch = batch_create(TRACES, 1);
    batch->items = 5;
    ledger_receive(&here, batch, 1);
    ledger_store(&here, TRACES, 5);
    ledger_hand_over(&here, TRACES, 5);
    ledger_take_over(&there, TRACES, 5);
    ledger_receive(&there, batch, 1);
    ledger_close(&here);
    ledger_close(&there);
    ledger_release(&here, TRACES, 5); /* too late */
    assert_int_equal(ledger_abandon_all(ledgers, 2), 5);
    const struct ledger_signal *row = &there.signals[TRACES];
    assert_int_equal(counter_read(&row->deferred), 5);
    assert_int_equal(counter_read(&row->dropped[LOSS_SHUTDOWN]), 5);
    assert_int_equal(counter_read(&row->in_flight), 0);
    batch_unref(batch);
}

static int64_t left_in_flight(struct ledger *const *ledgers, size_t count)
{
    int64_t items = 0;
    for (size_t i = 0; i < count; i++)
        items += ledger_in_flight(&ledgers[i]->signals[TRACES]);
    return items;
}

/* A lane was closed before it took over what another one had handed over. */
static void what_is_between_lanes_is_dropped_or_deferred(void **state)
{
    (void)state;
    static struct ledger here;
    static struct ledger there;
    struct ledger *const ledgers[] = {&here, &there};
    struct batch *batch = batch_create(TRACES, 1);
    batch->items = 5;
    ledger_receive(&here, batch, 2);
    ledger_store(&here, TRACES, 2);
    ledger_hand_over(&here, TRACES, 7);
    ledger_close(&here);
    ledger_close(&there);
    ledger_take_over(&there, TRACES, 7); /* too late */
    assert_int_equal(ledger_abandon_all(ledgers, 2), 8);
    assert_int_equal(left_in_flight(ledgers, 2), 0);
    assert_int_equal(counter_read(&here.signals[TRACES].deferred) +
                         counter_read(&there.signals[TRACES].deferred),
                     2);
    batch_unref(batch);
}

/* Some stages enter items in the ledger of the other lane first. */
static void what_is_in_two_ledgers_is_dropped_once(void **state)
{
    (void)state;
    static struct ledger here;
    static struct ledger there;
    struct ledger *const ledgers[] = {&there, &here};
    struct batch *batch = batch_create(TRACES, 1);
    batch->items = 5;
    ledger_receive(&here, batch, 1);
    ledger_take_over(&there, TRACES, 3);
    ledger_close(&here);
    ledger_close(&there);
    ledger_hand_over(&here, TRACES, 3); /* too late */
    assert_int_equal(ledger_abandon_all(ledgers, 2), 5);
    assert_int_equal(left_in_flight(ledgers, 2), 0);
    batch_unref(batch);
}

static void abandoning_drops_what_is_in_flight_and_closes_the_ledger(void **state)
{
    (void)state;
    static struct ledger ledger;
    struct batch *traces = batch_create(TRACES, 1);
    struct batch *profiles = batch_create(PROFILES, 1);
    traces->items = 5;
    profiles->items = 2;
    ledger_receive(&ledger, traces, 2);
    ledger_receive(&ledger, profiles, 1);
    ledger_deliver(&ledger, TRACES, 5);
    assert_int_equal(abandon(&ledger), 7);
    expect_balance(&ledger);
    assert_int_equal(counter_read(&ledger.signals[TRACES].dropped[LOSS_SHUTDOWN]), 5);
    ledger_receive(&ledger, traces, 1);
    ledger_deliver(&ledger, TRACES, 5);
    ledger_reject(&ledger, traces, LOSS_BUSY, 1);
    ledger_drop(&ledger, traces, LOSS_BUSY, 1);
    expect_balance(&ledger);
    assert_int_equal(counter_read(&ledger.signals[TRACES].received), 10);
    assert_int_equal(abandon(&ledger), 0);
    batch_unref(traces);
    batch_unref(profiles);
}

static void every_reason_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < LOSS_REASONS; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(loss_reason_name((enum loss_reason)i),
                                    loss_reason_name((enum loss_reason)j));
}

static void a_histogram_counts_each_value_in_its_cell(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {10, 100};
    static const uint64_t values[] = {0, 10, 11, 100, 101, 5000};
    struct histogram histogram = {0};
    for (size_t i = 0; i < 6; i++)
        histogram_record(&histogram, bounds, 2, values[i]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(counter_read(&histogram.cells[i]), 2);
    assert_int_equal(counter_read(&histogram.sum), 5222);
}

/* Items that go from one lane to another are in flight all the way. */
static void what_is_handed_over_is_in_flight_all_the_way(void **state)
{
    struct ledger lanes[2] = {0};
    struct batch *batch = batch_create(TRACES, 1);
    (void)state;
    batch->items = 10;
    ledger_receive(&lanes[0], batch, 1);
    ledger_hand_over(&lanes[0], TRACES, 4);
    assert_int_equal(counter_read(&lanes[0].signals[TRACES].in_flight), 6);
    assert_int_equal(ledger_in_flight(&lanes[0].signals[TRACES]), 10);
    ledger_take_over(&lanes[1], TRACES, 4);
    ledger_deliver(&lanes[1], TRACES, 3);
    assert_int_equal(ledger_in_flight(&lanes[0].signals[TRACES]) +
                         ledger_in_flight(&lanes[1].signals[TRACES]),
                     7);
    ledger_deliver(&lanes[1], TRACES, 1);
    ledger_deliver(&lanes[0], TRACES, 6);
    assert_int_equal(ledger_in_flight(&lanes[0].signals[TRACES]) +
                         ledger_in_flight(&lanes[1].signals[TRACES]),
                     0);
    batch_unref(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_keeps_the_equation),
        cmocka_unit_test(what_the_journal_has_is_deferred_and_not_dropped),
        cmocka_unit_test(what_the_journal_has_of_another_lane_is_deferred),
        cmocka_unit_test(what_is_between_lanes_is_dropped_or_deferred),
        cmocka_unit_test(what_is_in_two_ledgers_is_dropped_once),
        cmocka_unit_test(abandoning_drops_what_is_in_flight_and_closes_the_ledger),
        cmocka_unit_test(every_reason_has_a_name_of_its_own),
        cmocka_unit_test(what_is_handed_over_is_in_flight_all_the_way),
        cmocka_unit_test(a_histogram_counts_each_value_in_its_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
