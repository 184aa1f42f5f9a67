/* SPDX-License-Identifier: Apache-2.0 */
/* The sending queue of one exporter on one lane: admission, the ring, gathering, consumer slots,
 * drain. A request in the queue is an element; its receipt joins the answers of the pieces that
 * carry its items. Runs on the exporter's lane. */
#include "src/pipeline/sender.h"

#include <assert.h>
#include <string.h>

#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/config/shared/sender_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/send.h"
#include "src/pipeline/sender_batch.h"

struct element {
    struct receipt receipt;
    struct receipt *upstream; /* who waits for the result; NULL: answered */
    struct sender *sender;
    struct batch *batch; /* until a piece or a gathering holds its bytes */
    uint64_t units;      /* of the queue's capacity, held until the element is done */
};

struct sender {
    struct component *exporter;
    const struct sender_config *config;
    struct sender_shared *shared;
    struct ring *ring;              /* NULL without a queue */
    struct sender_batch *gathering; /* NULL without sending_queue::batch */
    struct sends sends;
    struct lane_job job;
    struct budget_waiter slot_waiter;
    uint64_t elements; /* taken and not done */
    counter refused_requests;
    bool is_stopping;
    void (*done)(void *arg);
    void *done_arg;
    struct sender_counters counters;
};

#define ALL_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

const struct counter_row sender_sent_rows[] = {
    COUNTER_BY_SIGNAL(struct sender_counters, sent, COUNTER_SUM, "otelcol_exporter_sent_%s",
                      ALL_SIGNALS, NULL, NULL, "Items delivered to the destination."),
    COUNTER_END,
};

const struct counter_row sender_failed_rows[] = {
    COUNTER_BY_SIGNAL(struct sender_counters, send_failed, COUNTER_SUM,
                      "otelcol_exporter_send_failed_%s", ALL_SIGNALS, NULL, NULL,
                      "Items that could not be delivered, after all retries."),
    COUNTER_END,
};

const struct counter_row sender_queue_rows[] = {
    COUNTER_BY_SIGNAL(struct sender_counters, enqueue_failed, COUNTER_SUM,
                      "otelcol_exporter_enqueue_failed_%s", ALL_SIGNALS, NULL, NULL,
                      "Items that the sending queue had no room for."),
    COUNTER_END,
};

static const uint64_t item_bounds[] = {10,   25,    50,    75,    100,   250,   500,  750,
                                       1000, 2000,  3000,  4000,  5000,  6000,  7000, 8000,
                                       9000, 10000, 20000, 30000, 50000, 100000};
static const uint64_t byte_bounds[] = {10,  25,   50,   75,   100,  250,  500,
                                       750, 1000, 2000, 3000, 4000, 5000, 6000};

const struct counter_row sender_offer_rows[] = {
    COUNTER_HISTOGRAM_ROW(struct sender_counters, offered_items,
                          "otelcol_exporter_queue_batch_send_size", item_bounds, METRICS_DETAILED,
                          "Items of each request that came to the sending queue."),
    COUNTER_HISTOGRAM_ROW(
        struct sender_counters, offered_bytes, "otelcol_exporter_queue_batch_send_size_bytes",
        byte_bounds, METRICS_DETAILED, "Bytes of each request that came to the sending queue."),
    COUNTER_END,
};

const struct counter_row sender_progress_rows[] = {
    COUNTER(struct sender_counters, retries, COUNTER_SUM, "spanflame_exporter_retries",
            "Attempts that failed and were put off."),
    COUNTER(struct sender_counters, in_flight, COUNTER_GAUGE, "otelcol_exporter_in_flight_requests",
            "Exports under way, those that wait for a retry included."),
    COUNTER_END,
};

const char *sender_failure_name(size_t failure)
{
    static const char *const others[] = {"_OTHER", "Deadline_Exceeded", "Shutdown"};
    assert(failure < SENDER_FAILURES);
    return failure < SENDER_STATUSES ? status_code_name((enum status_code)failure)
                                     : others[failure - SENDER_STATUSES];
}

/* As the Go collector, whether the queue takes it or not. */
static void count_offer(struct sender *sender, const struct batch *batch)
{
    assert(batch != NULL);
    if (sender->ring == NULL)
        return;
    histogram_record(&sender->counters.offered_items, item_bounds,
                     sizeof(item_bounds) / sizeof(item_bounds[0]), batch->items);
    histogram_record(&sender->counters.offered_bytes, byte_bounds,
                     sizeof(byte_bounds) / sizeof(byte_bounds[0]), batch->bytes);
}

void sender_shared_init(struct sender_shared *shared, const void *config)
{
    const struct sender_config *sender = config;
    assert(sender != NULL);
    budget_init(&shared->capacity, sender->has_queue ? sender->queue.queue_size : UINT64_MAX);
    budget_init(&shared->consumers, sender->has_queue ? sender->queue.num_consumers : UINT64_MAX);
}

void sender_shared_fini(struct sender_shared *shared)
{
    assert(shared != NULL);
    budget_fini(&shared->capacity);
    budget_fini(&shared->consumers);
}

static uint64_t units_of(const struct sender *sender, const struct batch *batch)
{
    assert(batch != NULL);
    switch (sender_queue_sizer(&sender->config->queue)) {
    case SENDER_ITEMS:
        return batch->items;
    case SENDER_BYTES:
        return batch->bytes;
    case SENDER_REQUESTS:
    case SENDER_SIZER_UNSET:
    default:
        return 1;
    }
}

static bool holds_slots(const struct sender *sender)
{
    return sender->config->has_queue;
}

static bool is_drained(const struct sender *sender)
{
    return sender->elements == 0 && sender->sends.count == 0;
}

static void report_stop(struct sender *sender)
{
    assert(sender != NULL);
    if (!sender->is_stopping || sender->done == NULL || !is_drained(sender))
        return;
    void (*done)(void *) = sender->done;
    sender->done = NULL;
    done(sender->done_arg);
}

static void on_send_end(void *arg)
{
    struct sender *sender = arg;
    assert(lane_is_current(sender->exporter->lane));
    if (holds_slots(sender))
        budget_return(&sender->shared->consumers, 1);
    lane_defer(sender->exporter->lane, &sender->job);
}

/* All pieces of the element have an answer: its room in the queue is free again. */
static void on_element_done(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct element *element = arg;
    struct sender *sender = element->sender;
    assert(receipt == &element->receipt);
    (void)receipt;
    assert(sender->elements > 0);
    sender->elements--;
    if (sender->ring != NULL)
        budget_return(&sender->shared->capacity, element->units);
    receipt_resolve(element->upstream, outcome);
    mem_free(element);
    lane_defer(sender->exporter->lane, &sender->job);
}

static struct piece piece_of_element(struct element *element)
{
    assert(element->batch != NULL);
    struct piece piece = {.batch = element->batch, .receipts_count = 1};
    piece.receipts = (struct receipt **)mem_alloc(sizeof(struct receipt *));
    piece.receipts[0] = &element->receipt;
    element->batch = NULL;
    return piece;
}

/* The next piece that is due, from the gathering or straight from the ring. */
static bool next_piece(struct sender *sender, struct piece *ret_piece)
{
    assert(sender->ring != NULL);
    assert(ret_piece != NULL);
    if (sender->gathering == NULL) {
        struct element *element = ring_pop(sender->ring);
        if (element != NULL)
            *ret_piece = piece_of_element(element);
        return element != NULL;
    }
    for (;;) {
        if (sender_batch_next(sender->gathering, ret_piece))
            return true;
        struct element *element = ring_pop(sender->ring);
        if (element == NULL)
            return false;
        sender_batch_add(sender->gathering, element->batch, &element->receipt);
        batch_unref(element->batch);
        element->batch = NULL;
    }
}

static bool has_work(const struct sender *sender)
{
    assert(sender->ring != NULL);
    return ring_depth(sender->ring) > 0 ||
           (sender->gathering != NULL && sender_batch_is_due(sender->gathering));
}

static void dispatch(void *arg)
{
    struct sender *sender = arg;
    assert(lane_is_current(sender->exporter->lane));
    struct piece piece;
    while (sender->ring != NULL && has_work(sender)) {
        if (!budget_try_take(&sender->shared->consumers, 1)) {
            budget_wait(&sender->shared->consumers, &sender->slot_waiter, 1);
            break;
        }
        if (!next_piece(sender, &piece)) {
            budget_return(&sender->shared->consumers, 1);
            break;
        }
        if (sender_batch_is_oversized(&sender->config->queue, piece.batch)) {
            struct outcome too_large = outcome_refused(
                STATUS_INVALID_ARGUMENT, "one item is larger than sending_queue::batch::max_size");
            too_large.reason = LOSS_TOO_LARGE;
            sends_refuse(&sender->sends, &piece, &too_large);
            budget_return(&sender->shared->consumers, 1);
            continue;
        }
        sends_start(&sender->sends, &piece);
    }
    report_stop(sender);
}

static void wake(void *arg)
{
    struct sender *sender = arg;
    assert(sender->exporter != NULL);
    lane_defer(sender->exporter->lane, &sender->job);
}

struct sender *sender_create(struct component *exporter, struct sender_shared *shared)
{
    assert(exporter->factory->consume != NULL);
    assert(shared != NULL);
    assert(exporter->config != NULL);
    struct sender *sender = mem_zalloc(sizeof(*sender));
    sender->exporter = exporter;
    sender->config = exporter->config;
    sender->shared = shared;
    sender->job = (struct lane_job){.fn = dispatch, .arg = sender};
    sender->slot_waiter = (struct budget_waiter){.lane = exporter->lane, .fn = wake, .arg = sender};
    sends_init(&sender->sends, exporter, &sender->counters, on_send_end, sender);
    if (sender->config->has_queue)
        sender->ring = ring_create();
    if (sender->config->has_queue && sender->config->queue.has_batch)
        sender->gathering = sender_batch_create(&sender->config->queue, exporter, wake, sender);
    return sender;
}

void sender_destroy(struct sender *sender)
{
    if (sender == NULL)
        return;
    assert(is_drained(sender));
    lane_defer_cancel(sender->exporter->lane, &sender->job);
    budget_wait_cancel(&sender->shared->consumers, &sender->slot_waiter);
    sender_batch_destroy(sender->gathering);
    ring_destroy(sender->ring);
    mem_free(sender);
}

void sender_note_refusal(struct sender *sender, const struct batch *batch,
                         const struct outcome *refusal)
{
    assert(refusal->verdict == REFUSED);
    assert(refusal->message != NULL);
    char message[SEND_ADVICE_MAX];
    if (sender->is_stopping)
        return;
    counter_add(&sender->refused_requests, 1);
    count_offer(sender, batch);
    /* What was acknowledged is kept by whoever did so, and offered again: no data is rejected. */
    if (batch->is_acknowledged)
        return;
    counter_add(&sender->counters.enqueue_failed[batch->signal], batch->items);
    snprintf(message, sizeof(message), "Exporting failed. Rejecting data.%s",
             sends_advice(sender->sends.config));
    log_error(&sender->exporter->logger, message, log_text("error", refusal->message),
              log_int("rejected_items", (int64_t)batch->items));
}

bool sender_admit(struct sender *sender, const struct batch *batch, struct outcome *ret_outcome)
{
    assert(sender != NULL);
    assert(batch->signal == sender->exporter->signal);
    assert(ret_outcome != NULL);
    if (sender->is_stopping) {
        *ret_outcome = outcome_busy("the exporter is shutting down");
        return false;
    }
    if (sender->ring == NULL)
        return true;
    uint64_t units = units_of(sender, batch);
    if (budget_try_take(&sender->shared->capacity, units))
        return true;
    *ret_outcome = outcome_busy("sending queue is full");
    if (units > budget_limit(&sender->shared->capacity)) {
        /* The code of a busy queue, as in the Go collector, but no room will ever do. */
        ret_outcome->message = "element size too large";
        ret_outcome->reason = LOSS_TOO_LARGE;
        ret_outcome->is_permanent = true;
        ret_outcome->retry_after_ns = 0;
    }
    return false;
}

void sender_cancel(struct sender *sender, const struct batch *batch)
{
    assert(sender != NULL);
    if (sender->ring != NULL)
        budget_return(&sender->shared->capacity, units_of(sender, batch));
}

void sender_take(struct sender *sender, struct batch *batch, struct receipt *receipt)
{
    assert(sender != NULL);
    assert(batch != NULL);
    assert(!sender->is_stopping);
    struct element *element = mem_zalloc(sizeof(*element));
    bool waits = sender->ring == NULL || sender->config->queue.wait_for_result;
    receipt_init(&element->receipt, on_element_done, element);
    element->sender = sender;
    element->upstream = waits ? receipt : NULL;
    element->batch = batch_ref(batch);
    sender->elements++;
    if (sender->ring == NULL) {
        struct piece piece = piece_of_element(element);
        sends_start(&sender->sends, &piece);
        return;
    }
    element->units = units_of(sender, batch);
    count_offer(sender, batch);
    ring_push(sender->ring, element);
    if (!waits)
        receipt_resolve(receipt, &outcome_accepted);
    lane_defer(sender->exporter->lane, &sender->job);
}

void sender_lose(struct sender *sender, const struct batch *batch, struct receipt *receipt,
                 const struct outcome *refusal)
{
    struct outcome lost = *refusal;
    struct ledger *ledger = sender->exporter->ledger;
    assert(refusal->verdict == REFUSED);
    lost.verdict = LOST;
    if (batch->is_acknowledged) {
        counter_add(&sender->counters.enqueue_failed[batch->signal], batch->items);
        ledger_drop(ledger, batch, refusal->reason, 1);
    } else {
        ledger_reject(ledger, batch, refusal->reason, 1);
    }
    receipt_resolve(receipt, &lost);
}

bool sender_blocks(const struct sender *sender, const struct batch *batch)
{
    assert(sender != NULL);
    return sender->config->has_queue && sender->config->queue.block_on_overflow &&
           !sender->is_stopping &&
           units_of(sender, batch) <= budget_limit(&sender->shared->capacity);
}

void sender_wait(struct sender *sender, const struct batch *batch, struct budget_waiter *waiter)
{
    assert(waiter != NULL);
    assert(sender->ring != NULL);
    budget_wait(&sender->shared->capacity, waiter, units_of(sender, batch));
}

void sender_hasten(struct sender *sender)
{
    assert(sender != NULL);
    sends_hurry(&sender->sends);
}

void sender_stop(struct sender *sender, void (*done)(void *arg), void *arg)
{
    assert(sender != NULL);
    assert(!sender->is_stopping);
    assert(done != NULL);
    sender->is_stopping = true;
    sender->done = done;
    sender->done_arg = arg;
    if (sender->gathering != NULL)
        sender_batch_flush(sender->gathering);
    sends_hurry(&sender->sends);
    lane_defer(sender->exporter->lane, &sender->job);
}

struct ring_figures sender_ring_figures(const struct sender *sender)
{
    assert(sender != NULL);
    if (sender->ring == NULL)
        return (struct ring_figures){0};
    struct ring_figures figures = ring_figures(sender->ring);
    figures.refusals = counter_read(&sender->refused_requests);
    return figures;
}

struct sender_counters *sender_counters(struct sender *sender)
{
    assert(sender != NULL);
    return &sender->counters;
}
