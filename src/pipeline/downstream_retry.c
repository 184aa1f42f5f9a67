/* SPDX-License-Identifier: Apache-2.0 */
/* Offers batches to the next stage, and offers refused ones again. Runs on the component's lane. */
#include "src/pipeline/downstream_retry.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/pipeline/pipeline_limits.h"

static unsigned batches_max(const struct downstream_retry *downstream)
{
    return downstream->component->is_journaled ? DOWNSTREAM_STORED_BATCHES_MAX
                                               : DOWNSTREAM_BATCHES_MAX;
}

bool downstream_is_blocked(const struct downstream_retry *downstream)
{
    assert(downstream->refused == NULL || downstream->count > 0);
    return downstream->refused != NULL || downstream->is_turn_over ||
           downstream->count >= batches_max(downstream);
}

bool downstream_is_refusing(const struct downstream_retry *downstream)
{
    return downstream->refused != NULL;
}

/* Until batches are offered again that were refused after so long. */
static uint64_t retry_delay_ns(uint64_t attempt_ns)
{
    if (attempt_ns < DOWNSTREAM_RETRY_MIN_NS / DOWNSTREAM_RETRY_FACTOR)
        return DOWNSTREAM_RETRY_MIN_NS;
    if (attempt_ns > DOWNSTREAM_RETRY_MAX_NS / DOWNSTREAM_RETRY_FACTOR)
        return DOWNSTREAM_RETRY_MAX_NS;
    return attempt_ns * DOWNSTREAM_RETRY_FACTOR;
}

static void keep(struct downstream_batch *offered)
{
    struct downstream_retry *downstream = offered->owner;
    struct downstream_batch **last = &downstream->refused;
    assert(offered->next == NULL);
    while (*last != NULL)
        last = &(*last)->next;
    *last = offered;
    if (!timer_is_running(&downstream->timer))
        lane_timer_start(downstream->component->lane, &downstream->timer,
                         retry_delay_ns(downstream->attempt_ns));
}

/* Whether memory has kept a batch out for too long, since kept_out_ns. */
static bool is_hopeless(const struct downstream_retry *downstream, uint64_t kept_out_ns,
                        uint64_t now_ns)
{
    const uint64_t shut_in_ns =
        downstream->leaving_ns > kept_out_ns ? downstream->leaving_ns : kept_out_ns;
    const uint64_t stuck_ns =
        downstream->put_off_ns > kept_out_ns ? downstream->put_off_ns : kept_out_ns;
    /* What the journal has is worth a longer wait. */
    return now_ns - stuck_ns >= DOWNSTREAM_KEPT_OUT_MAX_NS ||
           (!downstream->component->is_journaled &&
            now_ns - shut_in_ns >= DOWNSTREAM_SHUT_IN_MAX_NS);
}

/* Whether to offer the batch once more. */
static bool may_try_again(struct downstream_batch *offered, const struct outcome *outcome)
{
    struct downstream_retry *downstream = offered->owner;
    const uint64_t now_ns = clock_now_ns();
    if (outcome->verdict == ACCEPTED || outcome->reason != LOSS_MEMORY) {
        downstream->kept_out_ns = offered->kept_out_ns = downstream->attempt_ns = 0;
        return outcome_may_change(outcome);
    }
    if (!outcome_may_change(outcome))
        return false;
    downstream->attempt_ns = now_ns - offered->offered_ns;
    if (downstream->kept_out_ns == 0 || now_ns - downstream->refused_ns > DOWNSTREAM_SPELL_NS)
        downstream->kept_out_ns = now_ns;
    downstream->refused_ns = now_ns;
    if (offered->kept_out_ns == 0)
        offered->kept_out_ns = now_ns;
    const struct budget *budget = downstream->component->budget;
    if (budget_is_leaving(budget))
        downstream->leaving_ns = now_ns;
    if (budget_is_largely_leaving(budget)) {
        const uint64_t put_off_ns = budget_put_off_ns(budget);
        downstream->put_off_ns = put_off_ns < now_ns ? put_off_ns : now_ns;
    }
    /* What kept out those before it will not let this one in, either. */
    return !is_hopeless(downstream, offered->kept_out_ns, now_ns) &&
           !is_hopeless(downstream, downstream->kept_out_ns, now_ns);
}

/* Gives up a batch that the journal has: it comes again to the exporters that store, and the others
 * lose it. Returns what its requests are told. */
static struct outcome leave_to_journal(const struct component *component, const struct batch *batch,
                                       const struct outcome *refusal)
{
    struct outcome owed = outcome_accepted;
    const unsigned others = (batch->skips & SKIP_OTHERS) != 0 ? 0 : component->others;
    const unsigned storing = component_exporters(component, batch) - others;
    owed.owed = ~(batch->skips | SKIP_OTHERS);
    ledger_defer(component->ledger, batch->signal, batch->items * storing);
    if (others == 0) {
        log_info(&component->logger, "Sending failed. The data stays in the journal.",
                 log_text("error", refusal->message), log_int("items", (int64_t)batch->items));
        return owed;
    }
    log_warn(&component->logger,
             "Sending failed. The data stays in the journal for exporters with storage; the others "
             "lose it.",
             log_text("error", refusal->message), log_int("items", (int64_t)batch->items));
    ledger_drop(component->ledger, batch, refusal->reason, others);
    return owed;
}

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct downstream_batch *offered = arg;
    struct downstream_retry *downstream = offered->owner;
    assert(receipt == &offered->receipt);
    if (may_try_again(offered, outcome)) {
        keep(offered);
        return;
    }
    struct outcome last = *outcome;
    const struct component *component = downstream->component;
    if (outcome_may_change(outcome) && component->is_journaled && offered->batch->is_stored) {
        last = leave_to_journal(component, offered->batch, outcome);
    } else if (outcome->verdict != ACCEPTED) {
        last.verdict = LOST;
        log_warn(&component->logger, "Sender failed", log_text("error", outcome->message));
        if (outcome->verdict == REFUSED && offered->batch->is_acknowledged)
            ledger_drop(component->ledger, offered->batch, outcome->reason,
                        component_exporters(component, offered->batch));
        else if (outcome->verdict == REFUSED)
            ledger_reject(component->ledger, offered->batch, outcome->reason,
                          component_exporters(component, offered->batch));
    }
    bool was_full = downstream->count == batches_max(downstream);
    downstream->count--;
    downstream->on_end(offered, &last);
    /* There is room again. Waiting batches go on from the loop, not from inside this callback. */
    if ((was_full || downstream->is_stopping) && !timer_is_running(&downstream->timer))
        lane_timer_start(downstream->component->lane, &downstream->timer, 0);
}

static void offer(struct downstream_batch *offered)
{
    struct component *component = offered->owner->component;
    receipt_init(&offered->receipt, on_resolved, offered);
    offered->offered_ns = clock_now_ns();
    component_consume(component->next, offered->batch, &offered->receipt);
}

/* The same, within the work of a turn. */
static void offer_in_turn(struct downstream_batch *offered)
{
    struct downstream_retry *downstream = offered->owner;
    struct lane *lane = downstream->component->lane;
    if (downstream->turn_until_ns == 0) {
        downstream->turn_until_ns = clock_now_ns() + DOWNSTREAM_TURN_NS;
        lane_defer(lane, &downstream->end_of_turn);
    }
    offer(offered);
    if (clock_now_ns() < downstream->turn_until_ns)
        return;
    downstream->is_turn_over = true;
    if (!timer_is_running(&downstream->timer))
        lane_timer_start(lane, &downstream->timer, 0);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct downstream_retry *downstream = arg;
    struct downstream_batch *refused = downstream->refused;
    assert(timer == &downstream->timer);
    downstream->refused = NULL;
    downstream->is_turn_over = false;
    while (refused != NULL) {
        struct downstream_batch *next = refused->next;
        refused->next = NULL;
        /* After one refusal, or a turn's work, the rest keep their place. */
        if (!downstream_is_refusing(downstream) && !downstream->is_turn_over)
            offer_in_turn(refused);
        else
            keep(refused);
        refused = next;
    }
    downstream->on_room(downstream->component);
}

static void on_end_of_turn(void *arg)
{
    struct downstream_retry *downstream = arg;
    assert(!downstream->end_of_turn.is_queued);
    downstream->turn_until_ns = 0;
}

void downstream_init(struct downstream_retry *downstream, struct component *component,
                     void (*on_end)(struct downstream_batch *offered,
                                    const struct outcome *outcome),
                     void (*on_room)(struct component *component))
{
    *downstream =
        (struct downstream_retry){.component = component, .on_end = on_end, .on_room = on_room};
    downstream->end_of_turn = (struct lane_job){.fn = on_end_of_turn, .arg = downstream};
    timer_init(&downstream->timer, on_timer, downstream);
}

void downstream_stop(struct downstream_retry *downstream)
{
    assert(!downstream->is_stopping);
    downstream->is_stopping = true;
}

void downstream_end(struct downstream_retry *downstream)
{
    assert(downstream->count == 0);
    assert(downstream->refused == NULL);
    lane_timer_stop(downstream->component->lane, &downstream->timer);
    lane_defer_cancel(downstream->component->lane, &downstream->end_of_turn);
}

void downstream_offer(struct downstream_retry *downstream, struct downstream_batch *offered)
{
    assert(!downstream_is_blocked(downstream));
    offered->owner = downstream;
    offered->next = NULL;
    offered->kept_out_ns = 0;
    downstream->count++;
    offer_in_turn(offered);
}
