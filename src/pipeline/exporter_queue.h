/* SPDX-License-Identifier: Apache-2.0 */
/* The queue in front of every exporter: sending_queue (a ring), its batching and consumers,
 * retries, and the books on each request. One per exporter instance, so per lane and signal; what
 * the user limits (queue_size, num_consumers) is shared by the lanes. Runs on the exporter's lane.
 */
#pragma once

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
    struct budget capacity;  /* units of the queue's sizer, held until a request is done */
    struct budget consumers; /* exports under way, waiting for a retry included */
};

/* Failures are told apart by their status, or by what has none. */
enum { EXPORT_STATUSES = STATUS_UNAUTHENTICATED + 1, EXPORT_FAILURES = EXPORT_STATUSES + 3 };

struct exporter_queue_counters {
    counter sent[SIGNAL_KINDS];
    counter send_failed[SIGNAL_KINDS];
    counter enqueue_failed[SIGNAL_KINDS];
    counter failures[EXPORT_FAILURES][2]; /* items again, by what they failed; [1]: permanently */
    struct histogram offered_items;       /* of requests that came to the queue */
    struct histogram offered_bytes;
    counter retries;
    counter in_flight; /* exports under way */
};
/* What became of items, told with their destination; what came to the queue and what it refused;
 * what is under way. */
extern const struct counter_row exporter_queue_sent_rows[];
extern const struct counter_row exporter_queue_failed_rows[];
extern const struct counter_row exporter_queue_enqueue_rows[];
extern const struct counter_row exporter_queue_offer_rows[]; /* with a queue only */
extern const struct counter_row exporter_queue_progress_rows[];
/* "Unavailable", "_OTHER": what the Go collector calls failures[failure]. */
const char *export_failure_name(size_t failure);

/* config is the exporter's, which begins with a struct exporter_queue_config. */
void exporter_queue_shared_init(struct exporter_queue_shared *shared, const void *config);
void exporter_queue_shared_fini(struct exporter_queue_shared *shared);

/* exporter outlives the queue. */
struct exporter_queue *exporter_queue_create(struct component *exporter,
                                             struct exporter_queue_shared *shared);
/* Must have stopped, or never taken anything. NULL is tolerated. */
void exporter_queue_destroy(struct exporter_queue *queue);

/* Reserves room for the batch. True: exporter_queue_take or exporter_queue_cancel must follow.
 * False: *ret_outcome says what to answer; nothing is counted yet. */
bool exporter_queue_admit(struct exporter_queue *queue, const struct batch *batch,
                          struct outcome *ret_outcome);
void exporter_queue_cancel(struct exporter_queue *queue, const struct batch *batch);
/* The refusal is what counts in the end, not a try that is repeated when there is room: it is
 * counted and logged. */
void exporter_queue_note_refusal(struct exporter_queue *queue, const struct batch *batch,
                                 const struct outcome *refusal);
/* Takes the batch (a reference of its own). The receipt, which may be NULL, resolves at once when
 * the queue answers for it, else with the result of the export. */
void exporter_queue_take(struct exporter_queue *queue, struct batch *batch,
                         struct receipt *receipt);
/* Books the batch as lost for this exporter, whose refusal stands while others took it, and tells
 * the receipt. */
void exporter_queue_lose(struct exporter_queue *queue, const struct batch *batch,
                         struct receipt *receipt, const struct outcome *refusal);
/* True when a refusal should wait for room rather than be answered: block_on_overflow, and room can
 * come. */
bool exporter_queue_blocks(const struct exporter_queue *queue, const struct batch *batch);
/* Calls waiter->fn once there may be room for the batch. */
void exporter_queue_wait(struct exporter_queue *queue, const struct batch *batch,
                         struct budget_waiter *waiter);

/* A shutdown has begun: retries end now, each after one more try, so that who waits for an answer
 * or for room in the queue gets it. */
void exporter_queue_flush_retries(struct exporter_queue *queue);
/* No more comes: what is queued is tried once, retries end; then done(arg), once. */
void exporter_queue_stop(struct exporter_queue *queue, void (*done)(void *arg), void *arg);

struct ring_figures exporter_queue_ring_figures(const struct exporter_queue *queue);
struct exporter_queue_counters *exporter_queue_counters(struct exporter_queue *queue);
