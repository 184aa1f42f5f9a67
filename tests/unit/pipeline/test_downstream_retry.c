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
    struct receipt *held; /* of the one that is taken, if holds */
    bool holds;
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
    if (stage->holds && stage->offers == stage->refusals + 1) {
        stage->held = receipt;
        return;
    }
    receipt_resolve(receipt, &outcome);
}

static const struct component_factory stage_factory = {.type = "stage", .consume = refuse_first};

static void on_end(struct downstream_batch *offered, const struct outcome *outcome)
{
    const struct stage *stage = (struct stage *)offered->owner->component->next;
    const bool is_taken = stage->offers > stage->refusals;
    assert_int_equal(outcome->verdict, is_taken || offered->batch->is_stored ? ACCEPTED : LOST);
    assert_int_equal(outcome->owed, is_taken || !offered->batch->is_stored ? 0 : 0x7ffffffd);
    batch_unref(offered->batch);
    offered->batch = NULL;
}

static void on_room(struct component *component)
{
    assert_non_null(component);
}

/* A processor in front of that stage, and its lane. */
struct front {
    struct budget budget;
    struct ledger ledger;
    struct lane *lane;
    struct stage stage;
    struct component owner;
    struct downstream_retry downstream;
    bool is_stored; /* the batches are */
};

static void front_init(struct front *front, uint64_t cost_ns, unsigned refusals)
{
    clock_fake_start(NS_PER_S, NS_PER_S);
    *front = (struct front){.lane = lane_create(0)};
    budget_init(&front->budget, MIB);
    front->stage = (struct stage){.base = {.factory = &stage_factory, .lane = front->lane},
                                  .cost_ns = cost_ns,
                                  .refusals = refusals};
    front->owner = (struct component){.lane = front->lane,
                                      .budget = &front->budget,
                                      .ledger = &front->ledger,
                                      .next = &front->stage.base,
                                      .exporters = 1};
    downstream_init(&front->downstream, &front->owner, on_end, on_room);
}

static void front_fini(struct front *front)
{
    while (lane_turn(front->lane)) {
    }
    downstream_end(&front->downstream);
    lane_destroy(front->lane);
    budget_fini(&front->budget);
    clock_fake_stop();
}

static void offer_one(struct front *front, struct downstream_batch *offered)
{
    *offered = (struct downstream_batch){.batch = batch_create(TRACES, 1)};
    offered->batch->items = 1;
    offered->batch->is_acknowledged = true;
    offered->batch->is_stored = front->is_stored;
    offered->batch->skips = front->is_stored ? 2 : 0;
    ledger_receive(&front->ledger, offered->batch, front->owner.exporters);
    downstream_offer(&front->downstream, offered);
}

/* Lets the next timer fire. */
static void next_turn(struct front *front)
{
    const uint64_t due_ns = timers_next_ns(lane_timers(front->lane));
    if (due_ns > clock_now_ns())
        clock_fake_advance(due_ns - clock_now_ns());
    lane_turn(front->lane);
}

/* How long it takes until the batch is taken, or lost. */
static uint64_t time_until_ended(struct front *front)
{
    struct downstream_batch offered;
    const uint64_t begun_ns = clock_now_ns();
    offer_one(front, &offered);
    while (offered.batch != NULL)
        next_turn(front);
    return clock_now_ns() - begun_ns;
}

static uint64_t time_until_taken(uint64_t cost_ns, unsigned refusals)
{
    struct front front;
    front_init(&front, cost_ns, refusals);
    const uint64_t passed_ns = time_until_ended(&front);
    assert_int_equal(front.stage.offers, refusals + 1);
    front_fini(&front);
    return passed_ns;
}

static void attempts_that_cost_much_are_made_less_often(void **state)
{
    enum { REFUSALS = 10 };
    (void)state;
    assert_int_equal(time_until_taken(0, REFUSALS), REFUSALS * DOWNSTREAM_RETRY_MIN_NS);
    const uint64_t cost_ns = 50 * (uint64_t)NS_PER_MS;
    assert_int_equal(time_until_taken(cost_ns, REFUSALS),
                     cost_ns + REFUSALS * (DOWNSTREAM_RETRY_FACTOR + 1) * cost_ns);
    const uint64_t long_ns = NS_PER_S;
    assert_int_equal(time_until_taken(long_ns, REFUSALS),
                     long_ns + REFUSALS * (DOWNSTREAM_RETRY_MAX_NS + long_ns));
}

/* What the journal has may wait longer. */
static void a_batch_that_nothing_lets_in_is_lost(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct front front;
        front_init(&front, 0, UINT32_MAX);
        front.owner.is_journaled = i == 1;
        assert_int_equal(time_until_ended(&front),
                         i == 0 ? DOWNSTREAM_SHUT_IN_MAX_NS : DOWNSTREAM_KEPT_OUT_MAX_NS);
        front_fini(&front);
    }
}

/* The exporters that store get it from there, but for the one that has it already. */
static void what_the_journal_has_is_left_to_it(void **state)
{
    struct front front;
    (void)state;
    front_init(&front, 0, UINT32_MAX);
    front.owner.is_journaled = front.is_stored = true;
    front.owner.exporters = 3;
    front.owner.others = 1;
    assert_int_equal(time_until_ended(&front), DOWNSTREAM_KEPT_OUT_MAX_NS);
    struct ledger_signal *row = &front.ledger.signals[TRACES];
    assert_int_equal(atomic_load(&row->deferred), 2);
    assert_int_equal(atomic_load(&row->dropped[LOSS_MEMORY]), 1);
    front_fini(&front);
}

/* One was refused once, and is on its way since: that says nothing of the next. */
static void a_short_want_of_memory_is_forgotten(void **state)
{
    struct front front;
    struct downstream_batch offered[2];
    (void)state;
    front_init(&front, 0, 1);
    front.stage.holds = true;
    offer_one(&front, &offered[0]);
    next_turn(&front);
    while (downstream_is_blocked(&front.downstream))
        next_turn(&front);
    assert_non_null(front.stage.held);
    clock_fake_advance(DOWNSTREAM_SHUT_IN_MAX_NS + 1);
    front.stage.refusals = 3;
    offer_one(&front, &offered[1]);
    assert_int_equal(front.stage.offers, 3);
    assert_true(downstream_is_refusing(&front.downstream));
    front.stage.holds = false;
    while (offered[1].batch != NULL)
        next_turn(&front);
    receipt_resolve(front.stage.held, &outcome_accepted);
    assert_null(offered[0].batch);
    front_fini(&front);
}

/* Batches that were refused together go on in turns of so much work. */
static void what_was_refused_together_shares_the_turns(void **state)
{
    enum { BATCHES = 10, IN_TURN = 3 };
    struct front front;
    struct downstream_batch offered[BATCHES];
    (void)state;
    front_init(&front, 0, BATCHES);
    for (size_t i = 0; i < BATCHES; i++) {
        front.downstream.refused = NULL; /* as if all had been on their way at once */
        offer_one(&front, &offered[i]);
    }
    for (size_t i = 0; i + 1 < BATCHES; i++)
        offered[i].next = &offered[i + 1];
    front.downstream.refused = &offered[0];
    lane_turn(front.lane);
    front.stage.cost_ns = DOWNSTREAM_TURN_NS / IN_TURN + 1;
    for (unsigned offers = BATCHES; offered[BATCHES - 1].batch != NULL;) {
        next_turn(&front);
        /* lane_turn fires timers itself, and then the loop does. */
        assert_in_range(front.stage.offers - offers, 1, 2 * IN_TURN);
        offers = front.stage.offers;
    }
    assert_int_equal(front.stage.offers, 2 * BATCHES);
    front_fini(&front);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_that_cost_much_are_made_less_often),
        cmocka_unit_test(a_batch_that_nothing_lets_in_is_lost),
        cmocka_unit_test(what_the_journal_has_is_left_to_it),
        cmocka_unit_test(a_short_want_of_memory_is_forgotten),
        cmocka_unit_test(what_was_refused_together_shares_the_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
