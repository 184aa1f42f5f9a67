/* SPDX-License-Identifier: Apache-2.0 */
/* Offering and offering again. Runs on the lane of the component. */
#include "src/pipeline/handover.h"

#include <assert.h>

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/ledger.h"

#define RETRY_NS ((uint64_t)10 * NS_PER_MS)

bool handover_is_blocked(const struct handover *handover)
{
    assert(handover->refused == NULL || handover->count > 0);
    return handover->refused != NULL || handover->count >= HANDOVERS_MAX;
}

bool handover_is_refused(const struct handover *handover)
{
    assert(handover != NULL);
    return handover->refused != NULL;
}

static void keep(struct handed *handed)
{
    struct handover *handover = handed->owner;
    struct handed **last = &handover->refused;
    assert(handed->next == NULL);
    while (*last != NULL)
        last = &(*last)->next;
    *last = handed;
    if (!timer_is_running(&handover->timer))
        lane_timer_start(handover->component->lane, &handover->timer, RETRY_NS);
}

/* Nobody will ever have it: the books and a line. */
static struct outcome lose(const struct handed *handed, const struct outcome *outcome)
{
    const struct component *component = handed->owner->component;
    const struct batch *batch = handed->batch;
    struct outcome lost = *outcome;
    assert(outcome->verdict != ACCEPTED);
    lost.verdict = LOST;
    log_warn(&component->logger, "Sender failed", log_text("error", outcome->message));
    if (outcome->verdict == REFUSED && batch->is_acknowledged)
        ledger_drop(component->ledger, batch, outcome->reason, component->exporters);
    else if (outcome->verdict == REFUSED)
        ledger_reject(component->ledger, batch, outcome->reason, component->exporters);
    return lost;
}

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct handed *handed = arg;
    struct handover *handover = handed->owner;
    assert(receipt == &handed->receipt);
    (void)receipt;
    if (outcome->verdict == REFUSED && !outcome->is_permanent) {
        keep(handed);
        return;
    }
    struct outcome last = outcome->verdict == ACCEPTED ? *outcome : lose(handed, outcome);
    bool was_full = handover->count == HANDOVERS_MAX;
    handover->count--;
    handover->on_end(handed, &last);
    /* Room again: what waits goes on from the loop, not from inside this answer. */
    if ((was_full || handover->is_stopping) && !timer_is_running(&handover->timer))
        lane_timer_start(handover->component->lane, &handover->timer, 0);
}

static void offer(struct handed *handed)
{
    struct component *component = handed->owner->component;
    assert(handed->batch != NULL);
    receipt_init(&handed->receipt, on_resolved, handed);
    component_consume(component->next, handed->batch, &handed->receipt);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct handover *handover = arg;
    struct handed *refused = handover->refused;
    assert(timer == &handover->timer);
    (void)timer;
    handover->refused = NULL;
    while (refused != NULL) {
        struct handed *next = refused->next;
        refused->next = NULL;
        /* One refusal is enough: those behind it keep their place. */
        if (handover->refused == NULL)
            offer(refused);
        else
            keep(refused);
        refused = next;
    }
    handover->on_room(handover->component);
}

void handover_init(struct handover *handover, struct component *component,
                   void (*on_end)(struct handed *handed, const struct outcome *outcome),
                   void (*on_room)(struct component *component))
{
    assert(on_end != NULL);
    assert(on_room != NULL);
    *handover = (struct handover){.component = component, .on_end = on_end, .on_room = on_room};
    timer_init(&handover->timer, on_timer, handover);
}

void handover_stop(struct handover *handover)
{
    assert(!handover->is_stopping);
    handover->is_stopping = true;
}

void handover_end(struct handover *handover)
{
    assert(handover->count == 0);
    assert(handover->refused == NULL);
    lane_timer_stop(handover->component->lane, &handover->timer);
}

void handover_give(struct handover *handover, struct handed *handed)
{
    assert(!handover_is_blocked(handover));
    assert(handed->batch != NULL);
    handed->owner = handover;
    handed->next = NULL;
    handover->count++;
    offer(handed);
}
