/* SPDX-License-Identifier: Apache-2.0 */
/* The conservation ledger of one lane. Written on the lane, read anywhere. */
#include "src/core/ledger.h"

#include <assert.h>

#include "src/base/counter.h"
#include "src/core/batch.h"

static const char *const names[LOSS_REASONS] = {
    [LOSS_BUSY] = "busy",
    [LOSS_MEMORY] = "memory",
    [LOSS_INVALID] = "invalid",
    [LOSS_PERMANENT] = "permanent",
    [LOSS_RETRIES_OVER] = "retries_over",
    [LOSS_TOO_LARGE] = "too_large",
    [LOSS_SHUTDOWN] = "shutdown",
    [LOSS_UNWANTED] = "unwanted",
};

const char *loss_reason_name(enum loss_reason reason)
{
    assert(reason < LOSS_REASONS);
    return names[reason];
}

void ledger_receive(struct ledger *ledger, const struct batch *batch, unsigned exporters)
{
    assert(batch->signal < SIGNAL_KINDS);
    assert(exporters > 0);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    struct ledger_signal *row = &ledger->signals[batch->signal];
    counter_add(&row->received, batch->items * exporters);
    counter_add(&row->in_flight, batch->items * exporters);
}

static void leave(struct ledger_signal *row, uint64_t items)
{
    uint64_t in_flight = counter_read(&row->in_flight);
    assert(in_flight >= items);
    counter_set(&row->in_flight, in_flight - items);
}

void ledger_deliver(struct ledger *ledger, enum signal_kind signal, uint64_t items)
{
    assert(signal < SIGNAL_KINDS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    counter_add(&ledger->signals[signal].delivered, items);
    leave(&ledger->signals[signal], items);
}

void ledger_lose(struct ledger *ledger, enum signal_kind signal, uint64_t items,
                 enum loss_reason reason, bool is_rejected)
{
    assert(signal < SIGNAL_KINDS);
    assert(reason < LOSS_REASONS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    struct ledger_signal *row = &ledger->signals[signal];
    counter_add(is_rejected ? &row->rejected[reason] : &row->dropped[reason], items);
    leave(row, items);
}

void ledger_reject(struct ledger *ledger, const struct batch *batch, enum loss_reason reason,
                   unsigned exporters)
{
    assert(exporters > 0);
    ledger_lose(ledger, batch->signal, batch->items * exporters, reason, true);
}

void ledger_drop(struct ledger *ledger, const struct batch *batch, enum loss_reason reason,
                 unsigned exporters)
{
    assert(exporters > 0);
    ledger_lose(ledger, batch->signal, batch->items * exporters, reason, false);
}

void ledger_defer(struct ledger *ledger, enum signal_kind signal, uint64_t items)
{
    assert(signal < SIGNAL_KINDS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    counter_add(&ledger->signals[signal].deferred, items);
    leave(&ledger->signals[signal], items);
}

void ledger_hand_over(struct ledger *ledger, enum signal_kind signal, uint64_t items)
{
    assert(signal < SIGNAL_KINDS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    leave(&ledger->signals[signal], items);
    counter_add(&ledger->signals[signal].handed_over, items);
}

void ledger_take_over(struct ledger *ledger, enum signal_kind signal, uint64_t items)
{
    assert(signal < SIGNAL_KINDS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    counter_add(&ledger->signals[signal].in_flight, items);
    counter_add(&ledger->signals[signal].taken_over, items);
}

void ledger_store(struct ledger *ledger, enum signal_kind signal, uint64_t items)
{
    assert(signal < SIGNAL_KINDS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    counter_add(&ledger->signals[signal].stored, items);
}

void ledger_release(struct ledger *ledger, enum signal_kind signal, uint64_t items)
{
    assert(signal < SIGNAL_KINDS);
    if (atomic_load_explicit(&ledger->is_closed, memory_order_relaxed))
        return;
    uint64_t stored = counter_read(&ledger->signals[signal].stored);
    assert(stored >= items);
    counter_set(&ledger->signals[signal].stored, stored - items);
}

void ledger_close(struct ledger *ledger)
{
    atomic_store(&ledger->is_closed, 1);
}

/* What was on its way between lanes is in flight on the first one; what is still in two ledgers,
 * since the lane that it came to was quicker, leaves one of them. */
static void settle_between(struct ledger *const *ledgers, size_t count, int signal)
{
    int64_t between = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ledger_signal *row = &ledgers[i]->signals[signal];
        between += (int64_t)(counter_read(&row->handed_over) - counter_read(&row->taken_over));
    }
    if (between > 0) {
        counter_add(&ledgers[0]->signals[signal].in_flight, (uint64_t)between);
        counter_add(&ledgers[0]->signals[signal].taken_over, (uint64_t)between);
        return;
    }
    uint64_t twice = (uint64_t)-between;
    for (size_t i = 0; i < count && twice > 0; i++) {
        struct ledger_signal *row = &ledgers[i]->signals[signal];
        uint64_t in_flight = counter_read(&row->in_flight);
        uint64_t left_out = twice < in_flight ? twice : in_flight;
        counter_set(&row->in_flight, in_flight - left_out);
        counter_add(&row->handed_over, left_out);
        twice -= left_out;
    }
}

uint64_t ledger_abandon_all(struct ledger *const *ledgers, size_t count)
{
    uint64_t items = 0;
    for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
        uint64_t stored = 0;
        settle_between(ledgers, count, signal);
        for (size_t i = 0; i < count; i++)
            stored += counter_read(&ledgers[i]->signals[signal].stored);
        for (size_t i = 0; i < count; i++) {
            struct ledger_signal *row = &ledgers[i]->signals[signal];
            assert(atomic_load(&ledgers[i]->is_closed));
            uint64_t in_flight = counter_read(&row->in_flight);
            uint64_t deferred = stored < in_flight ? stored : in_flight;
            stored -= deferred;
            counter_add(&row->deferred, deferred);
            counter_add(&row->dropped[LOSS_SHUTDOWN], in_flight - deferred);
            counter_set(&row->in_flight, 0);
            items += in_flight - deferred;
        }
    }
    return items;
}
