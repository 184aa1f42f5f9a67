/* SPDX-License-Identifier: Apache-2.0 */
/* The queue in front of every exporter: sending_queue (a ring), its batching and consumers,
 * retries, and the counts of each request. One per exporter instance, so per lane and signal; the
 * configured limits (queue_size, num_consumers) are shared by the lanes. Runs on the exporter's
 * lane. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/base/ring.h"
#include "src/core/receipt.h"

struct batch;
struct component;
struct error;
struct exporter_queue;

/* Totals over all lanes, one per exporter and signal. */
struct exporter_queue_shared {
    struct budget capacity;    /* units of the queue's sizer, held until a request is done */
    struct budget consumers;   /* exports under way, waiting for a retry included */
    _Atomic uint64_t retrying; /* exports that wait for a retry */
    _Atomic uint64_t scouts;   /* exports that are tried although others wait for a retry */
    _Atomic uint64_t scout_ns; /* when the last of them began */
};

/* Failures are counted by status; those without one by cause. */
enum { EXPORT_STATUSES = STATUS_UNAUTHENTICATED + 1, EXPORT_FAILURES = EXPORT_STATUSES + 3 };

struct exporter_queue_counters {
    counter sent[SIGNAL_KINDS];
    counter send_failed[SIGNAL_KINDS];
    counter enqueue_failed[SIGNAL_KINDS];
    counter failures[EXPORT_FAILURES][2]; /* items again, by failure; [1]: permanent */
    struct histogram offered_items;       /* of requests offered to the queue */
    struct histogram offered_bytes;
    counter retries;
    counter in_flight; /* exports under way */
};
/* Results of items, by destination. */
extern const struct counter_row exporter_queue_sent_rows[];
extern const struct counter_row exporter_queue_failed_rows[];
/* Refusals and offers of the queue; exports under way. */
extern const struct counter_row exporter_queue_enqueue_rows[];
extern const struct counter_row exporter_queue_offer_rows[]; /* with a queue only */
extern const struct counter_row exporter_queue_progress_rows[];
/* "Unavailable", "_OTHER": what the Go collector calls failures[failure]. */
const char *export_failure_name(size_t failure);

/* config is the exporter's, which begins with a struct exporter_queue_config. */
void exporter_queue_shared_init(struct exporter_queue_shared *shared, const void *config);
void exporter_queue_shared_fini(struct exporter_queue_shared *shared);

/* Whether it has sending_queue::storage, or a wal: what it takes stays in the pipeline's journal
 * until it is exported. It resolves receipts with the result of the export then, and REFUSED, not
 * permanent, says that the journal shall give the batch again. The journal decides how much it
 * holds: it may be more than queue_size. */
bool exporter_queue_stores(const struct exporter_queue *queue);
/* Whether requests wait in it (sending_queue). */
bool exporter_queue_holds(const struct exporter_queue *queue);
/* What the budget is charged for a request that waits, beside its data. */
uint64_t exporter_queue_bytes(const struct batch *batch);

/* exporter outlives the queue. */
struct exporter_queue *exporter_queue_create(struct component *exporter,
                                             struct exporter_queue_shared *shared);
/* Must have stopped, or never taken anything. NULL is a no-op. */
void exporter_queue_destroy(struct exporter_queue *queue);

/* Reserves room for the batch. True: call exporter_queue_take or exporter_queue_cancel next. False:
 * *ret_outcome is the refusal; nothing is counted yet. */
bool exporter_queue_admit(struct exporter_queue *queue, const struct batch *batch,
                          struct outcome *ret_outcome);
void exporter_queue_cancel(struct exporter_queue *queue, const struct batch *batch);
/* Counts and logs a refusal that is final, not one that is repeated when there is room. */
void exporter_queue_note_refusal(struct exporter_queue *queue, const struct batch *batch,
                                 const struct outcome *refusal);
/* Takes a reference to the batch. The receipt, which may be NULL, resolves at once when the queue
 * acknowledges the batch, else with the result of the export. */
void exporter_queue_take(struct exporter_queue *queue, struct batch *batch,
                         struct receipt *receipt);
/* Counts the batch as lost for this exporter, which refused it while others took it, and resolves
 * the receipt. */
void exporter_queue_lose(struct exporter_queue *queue, const struct batch *batch,
                         struct receipt *receipt, const struct outcome *refusal);
/* True when the caller should wait for room rather than refuse: block_on_overflow is on, and the
 * batch can ever fit. */
bool exporter_queue_blocks(const struct exporter_queue *queue, const struct batch *batch);
/* Whether _admit would find room now: other lanes may take it meanwhile. */
bool exporter_queue_has_room(const struct exporter_queue *queue, const struct batch *batch);
/* Calls waiter->fn once there may be room for the batch. */
void exporter_queue_wait(struct exporter_queue *queue, const struct batch *batch,
                         struct budget_waiter *waiter);

/* Ends retries at shutdown, each after one more attempt at once, and the gathering of batches, so
 * that clients get their response and blocked batches their room. */
void exporter_queue_flush_retries(struct exporter_queue *queue);
/* Nothing more may be offered. Tries everything queued once and ends retries; then calls done(arg)
 * once. */
void exporter_queue_stop(struct exporter_queue *queue, void (*done)(void *arg), void *arg);

struct ring_figures exporter_queue_ring_figures(const struct exporter_queue *queue);
struct exporter_queue_counters *exporter_queue_counters(struct exporter_queue *queue);
