/* SPDX-License-Identifier: Apache-2.0 */
/* The conservation ledger: received = delivered + rejected{reason} + dropped{reason} + in flight,
 * per signal, at all times. An item is counted once for each exporter that it is owed to. A
 * connector that passes items on changes nothing of that: the first pipeline owes them to the
 * exporters behind the connector, too. One ledger per lane, written by that lane only and summed
 * when read; reading is allowed on any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/signal_kind.h"

struct batch;

/* Why items did not arrive. Fixed label values: never a byte from telemetry. */
enum loss_reason {
    LOSS_BUSY,         /* a queue was full */
    LOSS_MEMORY,       /* memory_limiter or budget */
    LOSS_INVALID,      /* a processor or exporter cannot take it as it is */
    LOSS_PERMANENT,    /* the back-end said no for good, to all of a request or to some items */
    LOSS_RETRIES_OVER, /* the back-end kept saying "later" */
    LOSS_TOO_LARGE,    /* larger than a queue or a maximum */
    LOSS_SHUTDOWN,     /* still undelivered when the drain ended */
    LOSS_UNWANTED,     /* the configuration says that nobody wants them */
    LOSS_REASONS,
};

struct ledger_signal {
    _Atomic uint64_t received;
    _Atomic uint64_t delivered;
    _Atomic uint64_t rejected[LOSS_REASONS]; /* the sender was told */
    _Atomic uint64_t dropped[LOSS_REASONS];  /* the sender had been told OK */
    _Atomic uint64_t in_flight; /* kept by what holds items, not derived from the others */
};

struct ledger {
    struct ledger_signal signals[SIGNAL_KINDS];
    _Atomic int is_closed; /* after ledger_abandon: what still happens is not booked */
};

const char *loss_reason_name(enum loss_reason reason);

/* Items enter, owed to `exporters` destinations. */
void ledger_receive(struct ledger *ledger, const struct batch *batch, unsigned exporters);
/* One destination has these. */
void ledger_deliver(struct ledger *ledger, enum signal_kind signal, uint64_t items);
/* One destination will never have these; is_told: their sender learns of it, and has not been told
 * OK. */
void ledger_lose(struct ledger *ledger, enum signal_kind signal, uint64_t items,
                 enum loss_reason reason, bool is_told);
/* `exporters` destinations will never have them, and their sender is told. */
void ledger_reject(struct ledger *ledger, const struct batch *batch, enum loss_reason reason,
                   unsigned exporters);
/* `exporters` destinations will never have them, though their sender had been told OK. */
void ledger_drop(struct ledger *ledger, const struct batch *batch, enum loss_reason reason,
                 unsigned exporters);
/* The drain is over: what is in flight is dropped, and the book is closed. Returns how many items
 * that were. */
uint64_t ledger_abandon(struct ledger *ledger);
