/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts and retries of pieces, and the ledger's last word on them. Runs on the exporter's lane.
 */
#include "src/pipeline/send.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/shared/sender_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/sender.h"

enum { SEND_ERROR_MAX = 1024, INTERVAL_TEXT_MAX = 64 };

struct send {
    struct sends *owner;
    struct send *next;
    struct send *prev;
    struct piece piece;
    struct receipt attempt;
    struct retry retry;
    struct timer timer; /* running: waits for its next attempt */
};

void sends_init(struct sends *sends, struct component *exporter, struct sender_counters *counters,
                void (*on_end)(void *arg), void *arg)
{
    assert(sends != NULL);
    assert(exporter != NULL);
    assert(on_end != NULL);
    *sends = (struct sends){
        .exporter = exporter,
        .config = exporter->config,
        .counters = counters,
        .on_end = on_end,
        .arg = arg,
    };
}

/* The sender had been told OK: by the queue, or before. */
static bool is_acknowledged(const struct sends *sends, const struct batch *batch)
{
    assert(batch != NULL);
    return batch->is_acknowledged ||
           (sends->config->has_queue && !sends->config->queue.wait_for_result);
}

const char *sends_advice(const struct sender_config *config)
{
#define TRY_RETRY " Try enabling retry_on_failure config option to retry on retryable errors."
#define TRY_QUEUE " Try enabling sending_queue to survive temporary failures."
    static const char *const texts[2][2] = {{"", TRY_QUEUE}, {TRY_RETRY, TRY_RETRY TRY_QUEUE}};
    assert(config != NULL);
    return texts[!config->has_retry][!config->has_queue];
}

static void count_delivery(struct sends *sends, const struct batch *batch, uint64_t items)
{
    assert(items <= batch->items);
    counter_add(&sends->counters->sent[batch->signal], items);
    ledger_deliver(sends->exporter->ledger, batch->signal, items);
}

static void count_loss(struct sends *sends, const struct batch *batch, uint64_t items,
                       const struct outcome *outcome)
{
    assert(outcome->reason < LOSS_REASONS);
    assert(items <= batch->items);
    struct sender_counters *counters = sends->counters;
    size_t failure = outcome->cause == FAILURE_STATUS
                         ? (size_t)outcome->code
                         : SENDER_STATUSES + (size_t)outcome->cause - 1;
    counter_add(&counters->send_failed[batch->signal], items);
    counter_add(&counters->failures[failure][outcome->is_permanent], items);
    ledger_lose(sends->exporter->ledger, batch->signal, items, outcome->reason,
                !is_acknowledged(sends, batch));
}

/* Items of a delivered batch that did not arrive: no status goes with them. */
static void count_left_out(struct sends *sends, const struct batch *batch, uint64_t items,
                           enum loss_reason reason)
{
    const struct outcome lost = {
        .verdict = LOST, .cause = FAILURE_OTHER, .reason = reason, .is_permanent = true};
    if (items > 0)
        count_loss(sends, batch, items, &lost);
}

static void log_loss(struct sends *sends, uint64_t items, const char *why,
                     const struct outcome *outcome)
{
    assert(why != NULL);
    char text[SEND_ERROR_MAX];
    char message[SEND_ADVICE_MAX];
    snprintf(text, sizeof(text), "%s%s", why, outcome->message != NULL ? outcome->message : "");
    snprintf(message, sizeof(message), "Exporting failed. %s data.%s",
             sends->config->has_queue ? "Dropping" : "Rejecting", sends_advice(sends->config));
    log_error(
        &sends->exporter->logger, message, log_text("error", text),
        log_int(sends->config->has_queue ? "dropped_items" : "rejected_items", (int64_t)items));
}

static void lose(struct sends *sends, struct piece *piece, const char *why,
                 const struct outcome *outcome)
{
    assert(piece->batch != NULL);
    struct outcome lost = *outcome;
    uint64_t items = piece->batch->items - outcome->delivered_items;
    assert(outcome->delivered_items <= piece->batch->items);
    lost.verdict = LOST;
    /* As from the Go collector, senders get the hint of a gRPC back-end only; others are for our
     * own back-off. */
    if (!outcome->is_hint_for_all)
        lost.retry_after_ns = 0;
    log_loss(sends, items, why, outcome);
    count_delivery(sends, piece->batch, outcome->delivered_items);
    count_loss(sends, piece->batch, items, outcome);
    piece_resolve(piece, &lost);
}

void sends_refuse(struct sends *sends, struct piece *piece, const struct outcome *outcome)
{
    assert(piece->batch != NULL);
    assert(outcome->verdict == REFUSED);
    lose(sends, piece, "", outcome);
}

static void unlink_send(struct send *send)
{
    struct sends *sends = send->owner;
    assert(sends->count > 0);
    if (send->prev != NULL)
        send->prev->next = send->next;
    else
        sends->first = send->next;
    if (send->next != NULL)
        send->next->prev = send->prev;
    sends->count--;
    counter_set(&sends->counters->in_flight, sends->count);
}

static void end(struct send *send)
{
    struct sends *sends = send->owner;
    assert(send->piece.batch == NULL);
    unlink_send(send);
    mem_free(send);
    sends->on_end(sends->arg);
}

static void deliver(struct send *send, const struct outcome *outcome)
{
    assert(outcome->verdict == ACCEPTED);
    assert(send->piece.batch != NULL);
    struct sends *sends = send->owner;
    const struct batch *batch = send->piece.batch;
    uint64_t left_out = outcome->invalid_items + outcome->too_large_items;
    assert(left_out <= outcome->rejected_items);
    assert(outcome->rejected_items <= batch->items);
    count_delivery(sends, batch, batch->items - outcome->rejected_items);
    count_left_out(sends, batch, outcome->invalid_items, LOSS_INVALID);
    count_left_out(sends, batch, outcome->too_large_items, LOSS_TOO_LARGE);
    count_left_out(sends, batch, outcome->rejected_items - left_out, LOSS_PERMANENT);
    piece_resolve(&send->piece, outcome);
    end(send);
}

static void give_up(struct send *send, const char *why, enum loss_reason reason,
                    const struct outcome *outcome)
{
    assert(outcome->verdict != ACCEPTED);
    struct outcome final = *outcome;
    final.reason = reason;
    if (reason == LOSS_SHUTDOWN)
        final.cause = FAILURE_SHUTDOWN;
    lose(send->owner, &send->piece, why, &final);
    end(send);
}

/* As Go prints a duration: "684.93ms", "4.5s", "1m2.5s", "1h0m0s". */
static void print_interval(char text[static INTERVAL_TEXT_MAX], uint64_t interval_ns)
{
    uint64_t minutes = interval_ns / NS_PER_S / 60;
    double seconds = (double)(interval_ns % (60 * (uint64_t)NS_PER_S)) / NS_PER_S;
    if (interval_ns > 0 && interval_ns < NS_PER_S)
        snprintf(text, INTERVAL_TEXT_MAX, "%.9gms", (double)interval_ns / NS_PER_MS);
    else if (minutes == 0)
        snprintf(text, INTERVAL_TEXT_MAX, "%.11gs", seconds);
    else if (minutes < 60)
        snprintf(text, INTERVAL_TEXT_MAX, "%" PRIu64 "m%.11gs", minutes, seconds);
    else
        snprintf(text, INTERVAL_TEXT_MAX, "%" PRIu64 "h%" PRIu64 "m%.11gs", minutes / 60,
                 minutes % 60, seconds);
}

static void log_retry(struct sends *sends, const struct outcome *outcome, uint64_t delay_ns)
{
    assert(sends->config->has_retry);
    char interval[INTERVAL_TEXT_MAX];
    print_interval(interval, delay_ns);
    log_info(&sends->exporter->logger, "Exporting failed. Will retry the request after interval.",
             log_text("error", outcome->message != NULL ? outcome->message : ""),
             log_text("interval", interval));
}

static void back_off(struct send *send, const struct outcome *outcome)
{
    assert(!outcome->is_permanent);
    struct sends *sends = send->owner;
    uint64_t delay_ns = 0;
    if (sends->is_stopping) {
        give_up(send, "interrupted due to shutdown: ", LOSS_SHUTDOWN, outcome);
    } else if (!sends->config->has_retry) {
        give_up(send, "", LOSS_RETRIES_OVER, outcome);
    } else if (!retry_next(&send->retry, &sends->config->retry, clock_now_ns(),
                           outcome->retry_after_ns, random_uniform(), &delay_ns)) {
        give_up(send, "no more retries left: ", LOSS_RETRIES_OVER, outcome);
    } else {
        counter_add(&sends->counters->retries, 1);
        log_retry(sends, outcome, delay_ns);
        lane_timer_start(sends->exporter->lane, &send->timer, delay_ns);
    }
}

static void on_attempt_done(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct send *send = arg;
    assert(receipt == &send->attempt);
    (void)receipt;
    if (outcome->verdict == ACCEPTED)
        deliver(send, outcome);
    else if (outcome->is_permanent)
        give_up(send, "not retryable error: ",
                outcome->reason == LOSS_BUSY ? LOSS_PERMANENT : outcome->reason, outcome);
    else
        back_off(send, outcome);
}

static void attempt(struct send *send)
{
    assert(send->piece.batch != NULL);
    struct component *exporter = send->owner->exporter;
    assert(!timer_is_running(&send->timer));
    receipt_init(&send->attempt, on_attempt_done, send);
    exporter->factory->consume(exporter, send->piece.batch, &send->attempt);
}

static void on_retry_due(struct timer *timer, void *arg)
{
    struct send *send = arg;
    assert(timer == &send->timer);
    (void)timer;
    attempt(send);
}

void sends_start(struct sends *sends, struct piece *piece)
{
    assert(sends->exporter != NULL);
    assert(piece->batch != NULL);
    struct send *send = mem_zalloc(sizeof(*send));
    send->owner = sends;
    send->piece = *piece;
    *piece = (struct piece){0};
    send->next = sends->first;
    if (send->next != NULL)
        send->next->prev = send;
    sends->first = send;
    sends->count++;
    counter_set(&sends->counters->in_flight, sends->count);
    retry_init(&send->retry, clock_now_ns());
    timer_init(&send->timer, on_retry_due, send);
    attempt(send);
}

void sends_hurry(struct sends *sends)
{
    assert(sends->exporter != NULL);
    sends->is_stopping = true;
    for (struct send *send = sends->first; send != NULL; send = send->next)
        if (timer_is_running(&send->timer))
            lane_timer_start(sends->exporter->lane, &send->timer, 0);
}
