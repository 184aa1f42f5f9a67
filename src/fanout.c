/* SPDX-License-Identifier: Apache-2.0 */
/* Fan-out: all senders admit the batch, then all take it. It looks like a component to the
 * processor in front of it. Runs on its lane. */
#include "src/fanout.h"

#include <assert.h>

#include "src/batch.h"
#include "src/component.h"
#include "src/mem.h"
#include "src/receipt.h"
#include "src/sender.h"

struct fanout {
    struct component base;
    struct budget_waiter waiter;
    struct sender *waits_for; /* NULL: not blocked */
    struct batch *batch;      /* held while blocked */
    struct receipt *receipt;
    void (*on_free)(void *arg);
    void *arg;
    size_t count;
    struct sender *senders[];
};

static const struct component_factory fanout_factory;

static struct fanout *fanout_of(struct component *component)
{
    assert(component->factory == &fanout_factory);
    return (struct fanout *)component;
}

/* All or none: NULL when every sender admitted the batch, else the one that did not. */
static struct sender *admit(struct fanout *fanout, const struct batch *batch,
                            struct outcome *ret_outcome)
{
    for (size_t i = 0; i < fanout->count; i++) {
        if (sender_admit(fanout->senders[i], batch, ret_outcome))
            continue;
        for (size_t j = 0; j < i; j++)
            sender_cancel(fanout->senders[j], batch);
        return fanout->senders[i];
    }
    return NULL;
}

static void hand_out(struct fanout *fanout, struct batch *batch, struct receipt *receipt)
{
    receipt_expect(receipt, (unsigned)fanout->count - 1);
    for (size_t i = 0; i < fanout->count; i++)
        sender_take(fanout->senders[i], batch, receipt);
}

static void hold(struct fanout *fanout, struct sender *full, struct batch *batch,
                 struct receipt *receipt)
{
    assert(fanout->batch == NULL);
    fanout->batch = batch_ref(batch);
    fanout->receipt = receipt;
    fanout->waits_for = full;
    sender_wait(full, batch, &fanout->waiter);
}

static void fanout_consume(struct component *self, struct batch *batch, struct receipt *receipt)
{
    struct fanout *fanout = fanout_of(self);
    struct outcome outcome;
    if (fanout->waits_for != NULL) {
        outcome = outcome_busy("sending queue is full");
        receipt_resolve(receipt, &outcome);
        return;
    }
    struct sender *full = admit(fanout, batch, &outcome);
    if (full == NULL)
        hand_out(fanout, batch, receipt);
    else if (sender_blocks(full, batch))
        hold(fanout, full, batch, receipt);
    else
        receipt_resolve(receipt, &outcome);
}

static void on_room(void *arg)
{
    struct fanout *fanout = arg;
    struct batch *batch = fanout->batch;
    struct receipt *receipt = fanout->receipt;
    assert(batch != NULL);
    fanout->waits_for = NULL;
    fanout->batch = NULL;
    fanout->receipt = NULL;
    fanout_consume(&fanout->base, batch, receipt);
    batch_unref(batch);
    if (fanout->waits_for == NULL)
        fanout->on_free(fanout->arg);
}

static const struct component_factory fanout_factory = {
    .type = "fanout",
    .kind = EXPORTER,
    .instance_size = sizeof(struct fanout),
    .consume = fanout_consume,
};

struct fanout *fanout_create(struct lane *lane, struct sender *const *senders, size_t count,
                             void (*on_free)(void *arg), void *arg)
{
    assert(count > 0);
    assert(on_free != NULL);
    struct fanout *fanout = mem_zalloc(sizeof(*fanout) + count * sizeof(fanout->senders[0]));
    fanout->base.factory = &fanout_factory;
    fanout->base.lane = lane;
    fanout->waiter = (struct budget_waiter){.lane = lane, .fn = on_room, .arg = fanout};
    fanout->on_free = on_free;
    fanout->arg = arg;
    fanout->count = count;
    for (size_t i = 0; i < count; i++)
        fanout->senders[i] = senders[i];
    return fanout;
}

void fanout_destroy(struct fanout *fanout)
{
    if (fanout == NULL)
        return;
    assert(fanout->waits_for == NULL);
    mem_free(fanout);
}

struct component *fanout_component(struct fanout *fanout)
{
    assert(fanout != NULL);
    return &fanout->base;
}

bool fanout_is_blocked(const struct fanout *fanout)
{
    assert(fanout != NULL);
    return fanout->waits_for != NULL;
}
