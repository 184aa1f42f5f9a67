/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: received = delivered + rejected{reason} + dropped{reason} + deferred + in flight,
 * per signal, at all times. An item counts once for each exporter that it goes to. With a connector
 * that passes items on, the first pipeline also counts the exporters behind the connector. Deferred
 * items lie in the journal alone; when it gives them again, they are received again. One ledger per
 * lane, written by that lane only and summed when read, on any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"

struct batch;

/* Why items did not arrive. Fixed label values: never a byte from telemetry. */
enum loss_reason {
    LOSS_BUSY,         /* a queue was full */
    LOSS_MEMORY,       /* memory_limiter or budget */
    LOSS_INVALID,      /* a processor or exporter cannot use it */
    LOSS_PERMANENT,    /* the back-end rejected a whole request or some items for good */
    LOSS_RETRIES_OVER, /* the back-end did not recover in time */
    LOSS_TOO_LARGE,    /* larger than a queue or a maximum */
    LOSS_SHUTDOWN,     /* still undelivered when the drain ended */
    LOSS_UNWANTED,     /* left out by the configuration */
    LOSS_REASONS,
};

struct ledger_signal {
    _Atomic uint64_t received;
    _Atomic uint64_t delivered;
    _Atomic uint64_t rejected[LOSS_REASONS]; /* the client got an error */
    _Atomic uint64_t dropped[LOSS_REASONS];  /* the client had got its OK */
    _Atomic uint64_t deferred;
    _Atomic uint64_t in_flight; /* kept by what holds items, not derived from the others */
    /* Items that went over to the ledgers of other lanes, and that came from them. */
    _Atomic uint64_t handed_over;
    _Atomic uint64_t taken_over;
    _Atomic uint64_t stored; /* of in_flight: what the journal has, too, and would give again */
};

struct ledger {
    struct ledger_signal signals[SIGNAL_KINDS];
    _Atomic int is_closed; /* after ledger_close: nothing more is counted */
};

/* In flight, with what is on its way to another lane; negative where more came from others than
 * this lane has left. Only the sum over the lanes says something. */
static inline int64_t ledger_in_flight(const struct ledger_signal *row)
{
    return (int64_t)(atomic_load(&row->in_flight) + atomic_load(&row->handed_over) -
                     atomic_load(&row->taken_over));
}

const char *loss_reason_name(enum loss_reason reason);

/* Items enter, for `exporters` destinations. */
void ledger_receive(struct ledger *ledger, const struct batch *batch, unsigned exporters);
/* One destination got these. */
void ledger_deliver(struct ledger *ledger, enum signal_kind signal, uint64_t items);
/* One destination will never get these. is_rejected: the client gets the error instead of an OK. */
void ledger_lose(struct ledger *ledger, enum signal_kind signal, uint64_t items,
                 enum loss_reason reason, bool is_rejected);
/* `exporters` destinations will never get them, and the client gets the error. */
void ledger_reject(struct ledger *ledger, const struct batch *batch, enum loss_reason reason,
                   unsigned exporters);
/* `exporters` destinations will never get them, although the client got its OK. */
void ledger_drop(struct ledger *ledger, const struct batch *batch, enum loss_reason reason,
                 unsigned exporters);
/* One destination gets them later, from the journal. */
void ledger_defer(struct ledger *ledger, enum signal_kind signal, uint64_t items);
/* Items go over to another lane's ledger: out of this one, and then into that one. */
void ledger_hand_over(struct ledger *ledger, enum signal_kind signal, uint64_t items);
void ledger_take_over(struct ledger *ledger, enum signal_kind signal, uint64_t items);
/* The journal has them, too, until ledger_release. */
void ledger_store(struct ledger *ledger, enum signal_kind signal, uint64_t items);
void ledger_release(struct ledger *ledger, enum signal_kind signal, uint64_t items);
/* The drain is over: nothing more is counted. On the ledger's lane. */
void ledger_close(struct ledger *ledger);
/* Of the ledgers of all lanes, which are closed: drops everything in flight, also between lanes,
 * that the journal does not have. It has items for the lane that they came to, and another one may
 * hold them. Returns the number of items dropped. On one thread. */
uint64_t ledger_abandon_all(struct ledger *const *ledgers, size_t count);
