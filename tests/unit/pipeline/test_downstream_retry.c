/* SPDX-License-Identifier: Apache-2.0 */
/* How often batches are offered again that memory keeps out. */
#include "src/pipeline/downstream_retry.h"

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"
#include "src/pipeline/pipeline_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A next stage that works so long before it refuses, and takes the batch after so many offers. */
struct stage {
    struct component base;
    uint64_t cost_ns;
    unsigned refusals;
    unsigned offers;
};

static void refuse_first(struct component *component, struct batch *batch, struct receipt *receipt)
{
    struct stage *stage = (struct stage *)component;
    struct outcome outcome = outcome_busy("no room");
    assert_int_equal(batch->items, 1);
    outcome.reason = LOSS_MEMORY;
    clock_fake_advance(stage->cost_ns);
    if (++stage->offers > stage->refusals)
        outcome = outcome_accepted;
    receipt_resolve(receipt, &outcome);
}

static const struct component_factory stage_factory = {.type = "stage", .consume = refuse_first};

static void on_end(struct downstream_batch *offered, const struct outcome *outcome)
{
    assert_int_equal(outcome->verdict, ACCEPTED);
    batch_unref(offered->batch);
    offered->batch = NULL;
}

static void on_room(struct component *component)
{
    assert_non_null(component);
}

/* How long it takes until the batch is taken. */
static uint64_t time_until_taken(uint64_t cost_ns, unsigned refusals)
{
    struct budget budget;
    struct ledger ledger = {.is_closed = 0};
    clock_fake_start(NS_PER_S, NS_PER_S);
    budget_init(&budget, MIB);
    struct lane *lane = lane_create(0);
    struct stage stage = {.base = {.factory = &stage_factory, .lane = lane},
                          .cost_ns = cost_ns,
                          .refusals = refusals};
    struct component owner = {
        .lane = lane, .budget = &budget, .ledger = &ledger, .next = &stage.base};
    struct downstream_retry downstream;
    downstream_init(&downstream, &owner, on_end, on_room);
    struct downstream_batch offered = {.batch = batch_create(TRACES, 1)};
    offered.batch->items = 1;
    const uint64_t begun_ns = clock_now_ns();
    downstream_offer(&downstream, &offered);
    while (offered.batch != NULL) {
        const uint64_t due_ns = timers_next_ns(lane_timers(lane));
        if (due_ns > clock_now_ns())
            clock_fake_advance(due_ns - clock_now_ns());
        lane_turn(lane);
    }
    assert_int_equal(stage.offers, refusals + 1);
    const uint64_t passed_ns = clock_now_ns() - begun_ns;
    while (lane_turn(lane)) {
    }
    downstream_end(&downstream);
    lane_destroy(lane);
    budget_fini(&budget);
    clock_fake_stop();
    return passed_ns;
}

static void attempts_that_cost_much_are_made_less_often(void **state)
{
    enum { REFUSALS = 10 };
    (void)state;
    assert_int_equal(time_until_taken(0, REFUSALS), REFUSALS * DOWNSTREAM_RETRY_MIN_NS);
    const uint64_t cost_ns = 50 * (uint64_t)NS_PER_MS;
    assert_int_equal(time_until_taken(cost_ns, REFUSALS),
                     cost_ns + REFUSALS * (DOWNSTREAM_RETRY_PART + 1) * cost_ns);
    const uint64_t long_ns = NS_PER_S;
    assert_int_equal(time_until_taken(long_ns, REFUSALS),
                     long_ns + REFUSALS * (DOWNSTREAM_RETRY_MAX_NS + long_ns));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_that_cost_much_are_made_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
