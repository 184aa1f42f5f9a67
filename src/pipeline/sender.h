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
struct sender;

/* Totals over all lanes, one per exporter and signal. */
struct sender_shared {
    struct budget capacity;  /* units of the queue's sizer, held until a request is done */
    struct budget consumers; /* exports under way, waiting for a retry included */
};

/* Failures are told apart by their status, or by what has none. */
enum { SENDER_STATUSES = STATUS_UNAUTHENTICATED + 1, SENDER_FAILURES = SENDER_STATUSES + 3 };

struct sender_counters {
    counter sent[SIGNAL_KINDS];
    counter send_failed[SIGNAL_KINDS];
    counter enqueue_failed[SIGNAL_KINDS];
    counter failures[SENDER_FAILURES][2]; /* items again, by what they failed; [1]: permanently */
    struct histogram offered_items;       /* of requests that came to the queue */
    struct histogram offered_bytes;
    counter retries;
    counter in_flight; /* exports under way */
};
/* What became of items, told with their destination; what came to the queue and what it refused;
 * what is under way. */
extern const struct counter_row sender_sent_rows[];
extern const struct counter_row sender_failed_rows[];
extern const struct counter_row sender_queue_rows[];
extern const struct counter_row sender_offer_rows[]; /* with a queue only */
extern const struct counter_row sender_progress_rows[];
/* "Unavailable", "_OTHER": what the Go collector calls failures[failure]. */
const char *sender_failure_name(size_t failure);

/* config is the exporter's, which begins with a struct sender_config. */
void sender_shared_init(struct sender_shared *shared, const void *config);
void sender_shared_fini(struct sender_shared *shared);

/* exporter outlives the sender. */
struct sender *sender_create(struct component *exporter, struct sender_shared *shared);
/* Must have stopped, or never taken anything. NULL is tolerated. */
void sender_destroy(struct sender *sender);

/* Reserves room for the batch. True: sender_take or sender_cancel must follow. False: *ret_outcome
 * says what to answer; nothing is counted yet. */
bool sender_admit(struct sender *sender, const struct batch *batch, struct outcome *ret_outcome);
void sender_cancel(struct sender *sender, const struct batch *batch);
/* The refusal is what counts in the end, not a try that is repeated when there is room: it is
 * counted and logged. */
void sender_note_refusal(struct sender *sender, const struct batch *batch,
                         const struct outcome *refusal);
/* Takes the batch (a reference of its own). The receipt, which may be NULL, resolves at once when
 * the queue answers for it, else with the result of the export. */
void sender_take(struct sender *sender, struct batch *batch, struct receipt *receipt);
/* Books the batch as lost for this exporter, whose refusal stands while others took it, and tells
 * the receipt. */
void sender_lose(struct sender *sender, const struct batch *batch, struct receipt *receipt,
                 const struct outcome *refusal);
/* True when a refusal should wait for room rather than be answered: block_on_overflow, and room can
 * come. */
bool sender_blocks(const struct sender *sender, const struct batch *batch);
/* Calls waiter->fn once there may be room for the batch. */
void sender_wait(struct sender *sender, const struct batch *batch, struct budget_waiter *waiter);

/* A shutdown has begun: retries end now, each after one more try, so that who waits for an answer
 * or for room in the queue gets it. */
void sender_hasten(struct sender *sender);
/* No more comes: what is queued is tried once, retries end; then done(arg), once. */
void sender_stop(struct sender *sender, void (*done)(void *arg), void *arg);

struct ring_figures sender_ring_figures(const struct sender *sender);
struct sender_counters *sender_counters(struct sender *sender);
