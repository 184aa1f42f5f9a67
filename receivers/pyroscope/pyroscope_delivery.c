/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a request of the pyroscope receiver through its states: walks its body step by step and
 * delivers each batch to the pipelines, several at a time. A request that finds no room, in the
 * budget or in a pipeline, waits a while, since clients do not send it again. Runs on its
 * receiver's lane. */
#include "receivers/pyroscope/pyroscope_receiver.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/net/server/http_request_client.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <stdio.h>

enum {
    /* While all other requests hold less than this part of the budget, waiting cannot help. */
    OTHERS_PART = 16,
    PAYLOAD_TOO_LARGE = 413,
};

static void run(struct pyroscope_exchange *exchange);

static void free_if_unused(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    bool is_idle = exchange->state == PYROSCOPE_OPENING || exchange->state == PYROSCOPE_DONE;
    if (exchange->request != NULL || exchange->is_running || !is_idle)
        return;
    lane_timer_stop(receiver->base.lane, &exchange->deadline);
    buffer_unref(exchange->body);
    client_info_unref(exchange->client);
    pyroscope_ingest_free(exchange->ingest);
    budget_return(receiver->base.budget, exchange->charged_bytes);
    mem_free(exchange);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    pyroscope_receiver_check_stopped(receiver);
}

void pyroscope_exchange_end(struct pyroscope_exchange *exchange)
{
    exchange->request = NULL;
    free_if_unused(exchange);
}

static void keep_worst(struct pyroscope_refusal *worst, const struct outcome *outcome)
{
    assert(outcome->verdict != ACCEPTED);
    bool has_worst = worst->outcome.verdict != ACCEPTED;
    if (has_worst && (worst->outcome.is_permanent || !outcome->is_permanent))
        return;
    worst->outcome = *outcome;
    snprintf(worst->message, sizeof(worst->message), "%s", outcome->message);
    worst->outcome.message = worst->message;
    worst->outcome.details = (struct slice){.size = 0};
}

void pyroscope_refuse(struct pyroscope_exchange *exchange, enum status_code code,
                      const char *message)
{
    struct outcome outcome = outcome_refused(code, message);
    keep_worst(&exchange->refused, &outcome);
}

bool pyroscope_wait(struct pyroscope_exchange *exchange, uint64_t bytes,
                    void (*resume)(struct pyroscope_exchange *exchange))
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pyroscope_receiver_counters *counters = receiver->base.counters;
    assert(exchange->state != PYROSCOPE_WAITING);
    uint64_t pause_ns = exchange->pause_ns;
    if (exchange->wait_left_ns < pause_ns || receiver->is_stopping ||
        receiver->waiting >= PYROSCOPE_WAITING_MAX ||
        receiver->waiting_bytes + bytes > PYROSCOPE_WAITING_BYTES_MAX)
        return false;
    counter_add(&counters->waits, exchange->wait_left_ns == PYROSCOPE_WAIT_NS_MAX);
    exchange->wait_left_ns -= pause_ns;
    exchange->pause_ns *= 2;
    exchange->state = PYROSCOPE_WAITING;
    exchange->waiting_bytes = bytes;
    exchange->resume = resume;
    receiver->waiting++;
    receiver->waiting_bytes += bytes;
    lane_timer_start(receiver->base.lane, &exchange->timer, pause_ns);
    return true;
}

static void on_timer(struct timer *timer, void *arg)
{
    struct pyroscope_exchange *exchange = arg;
    struct pyroscope_receiver *receiver = exchange->receiver;
    assert(timer == &exchange->timer);
    if (exchange->state == PYROSCOPE_WAITING) {
        assert(receiver->waiting > 0);
        receiver->waiting--;
        receiver->waiting_bytes -= exchange->waiting_bytes;
    }
    if (exchange->step == NULL) {
        exchange->state = PYROSCOPE_OPENING;
        if (exchange->request == NULL || exchange->is_responded) {
            free_if_unused(exchange);
            return;
        }
    }
    exchange->resume(exchange);
}

static void walk_on(struct pyroscope_exchange *exchange)
{
    exchange->state = PYROSCOPE_WALKING;
    run(exchange);
}

static struct outlet *outlet_of(const struct pyroscope_exchange *exchange)
{
    return exchange->receiver->base.outlets[PROFILES];
}

/* The receipt may resolve from inside, and end the delivery. */
static void offer(struct pyroscope_delivery *delivery, bool is_again)
{
    outlet_offer_deferred(outlet_of(delivery->exchange), delivery->pipeline, delivery->batch,
                          &delivery->receipt, is_again);
}

/* The pipeline has taken the batch, or refused it for good: on to the next one. */
static void pass_pipeline(struct pyroscope_delivery *delivery)
{
    struct pyroscope_exchange *exchange = delivery->exchange;
    struct pyroscope_receiver_counters *counters = exchange->receiver->base.counters;
    if (++delivery->pipeline < outlet_pipelines(outlet_of(exchange))) {
        offer(delivery, false);
        return;
    }
    counter *items = delivery->is_refused ? counters->refused : counters->accepted;
    counter_add(&items[PROFILES], delivery->batch->items);
    assert(exchange->deliveries > 0);
    exchange->deliveries--;
    exchange->deliver_bytes -= delivery->batch->bytes;
    batch_unref(delivery->batch);
    mem_free(delivery);
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct pyroscope_delivery *delivery = arg;
    struct pyroscope_exchange *exchange = delivery->exchange;
    assert(receipt == &delivery->receipt);
    receipt_init(receipt, receipt->fn, delivery);
    if (outcome_may_change(outcome)) {
        delivery->deferral = *outcome;
        snprintf(delivery->message, sizeof(delivery->message), "%s", outcome->message);
        delivery->deferral.message = delivery->message;
        delivery->next = NULL;
        struct pyroscope_delivery **end = &exchange->deferred; /* in the order of the request */
        while (*end != NULL)
            end = &(*end)->next;
        *end = delivery;
    } else {
        if (outcome->verdict != ACCEPTED) {
            keep_worst(&exchange->worst, outcome);
            delivery->is_refused = true;
        }
        /* The next pipeline may resolve the receipt at once, which would free the exchange. */
        bool was_running = exchange->is_running;
        exchange->is_running = true;
        pass_pipeline(delivery);
        exchange->is_running = was_running;
    }
    run(exchange);
}

/* Offers again what the pipelines had no room for. */
static void offer_deferred(struct pyroscope_exchange *exchange)
{
    struct pyroscope_delivery *delivery = exchange->deferred;
    exchange->deferred = NULL;
    exchange->state = exchange->has_walked ? PYROSCOPE_ENDING : PYROSCOPE_WALKING;
    exchange->is_running = true;
    while (delivery != NULL) {
        struct pyroscope_delivery *next = delivery->next;
        offer(delivery, true);
        delivery = next;
    }
    exchange->is_running = false;
    run(exchange);
}

/* Waits until pipelines have room, or gives up the deferred batches. */
static void wait_for_pipelines(struct pyroscope_exchange *exchange)
{
    uint64_t bytes = 0;
    struct pyroscope_delivery *delivery = exchange->deferred;
    for (; delivery != NULL; delivery = delivery->next)
        bytes += delivery->batch->bytes;
    if (pyroscope_wait(exchange, bytes, offer_deferred))
        return;
    delivery = exchange->deferred;
    exchange->deferred = NULL;
    while (delivery != NULL) {
        struct pyroscope_delivery *next = delivery->next;
        outlet_give_up(outlet_of(exchange), delivery->pipeline, delivery->batch,
                       delivery->deferral.reason);
        keep_worst(&exchange->worst, &delivery->deferral);
        delivery->is_refused = true;
        pass_pipeline(delivery);
        delivery = next;
    }
}

static struct pyroscope_exchange *exchange_of(struct helper_work *work)
{
    return (struct pyroscope_exchange *)((char *)work - offsetof(struct pyroscope_exchange, work));
}

/* On the helper. */
static void on_help(struct helper_work *work)
{
    struct pyroscope_exchange *exchange = exchange_of(work);
    exchange->helper_result = exchange->step(exchange);
}

static void conclude_step(struct pyroscope_exchange *exchange, enum pyroscope_step result);

static void on_helped(struct helper_work *work)
{
    struct pyroscope_exchange *exchange = exchange_of(work);
    assert(exchange->state == PYROSCOPE_HELPED);
    uint64_t took_ns = clock_now_ns() - exchange->help_began_ns;
    if (exchange->helper_result == PYROSCOPE_STEP_BUSY) /* counts as waiting */
        exchange->wait_left_ns -=
            took_ns < exchange->wait_left_ns ? took_ns : exchange->wait_left_ns;
    exchange->is_running = true;
    conclude_step(exchange, exchange->helper_result);
    exchange->is_running = false;
    run(exchange);
}

/* Sets the state that follows a step. */
static void conclude_step(struct pyroscope_exchange *exchange, enum pyroscope_step result)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pyroscope_receiver_counters *counters = receiver->base.counters;
    struct outcome outcome = outcome_busy(PYROSCOPE_NO_MEMORY);
    counter_add(&counters->negative, exchange->negative);
    counter_add(&counters->empty, exchange->empty);
    exchange->negative = 0;
    exchange->empty = 0;
    if (exchange->refused.outcome.verdict != ACCEPTED)
        keep_worst(&exchange->worst, &exchange->refused.outcome);
    exchange->refused.outcome = outcome_accepted;
    switch (result) {
    case PYROSCOPE_STEP_BATCH: {
        struct pyroscope_delivery *delivery = mem_zalloc(sizeof(*delivery));
        delivery->exchange = exchange;
        delivery->batch = exchange->batch;
        receipt_init(&delivery->receipt, on_receipt, delivery);
        exchange->batch = NULL;
        exchange->deliveries++;
        exchange->deliver_bytes += delivery->batch->bytes;
        exchange->state = PYROSCOPE_WALKING;
        offer(delivery, false);
        return;
    }
    case PYROSCOPE_STEP_NONE:
        exchange->state = PYROSCOPE_WALKING;
        return;
    case PYROSCOPE_STEP_HELP:
        exchange->state = PYROSCOPE_HELPED;
        exchange->help_began_ns = clock_now_ns();
        exchange->work = (struct helper_work){.run = on_help, .done = on_helped};
        lane_help(receiver->base.lane, &exchange->work);
        return;
    case PYROSCOPE_STEP_BUSY: {
        uint64_t used = budget_used(receiver->base.budget);
        uint64_t own = exchange->charged_bytes;
        own += exchange->body != NULL ? buffer_charge(exchange->body) : 0;
        uint64_t others = used - (own < used ? own : used);
        if (others < budget_limit(receiver->base.budget) / OTHERS_PART) {
            if (!exchange->worst.outcome.is_permanent) /* this outcome becomes the response */
                exchange->http_status = PAYLOAD_TOO_LARGE;
            outcome = outcome_too_large("converting the profile takes more than the whole memory "
                                        "budget (service::budget_mib); send less at a time");
        } else if (pyroscope_wait(exchange, exchange->message.size, walk_on)) {
            return;
        }
        keep_worst(&exchange->worst, &outcome);
        break;
    }
    case PYROSCOPE_STEP_END:
        break;
    }
    exchange->has_walked = true;
    exchange->state = PYROSCOPE_ENDING;
}

/* Goes on until the exchange has to wait for something. A receipt that resolves inside of an offer
 * calls it again: then the loop that is on the stack goes on. */
static void run(struct pyroscope_exchange *exchange)
{
    if (exchange->is_running)
        return;
    exchange->is_running = true;
    for (;;) {
        enum pyroscope_state state = exchange->state;
        bool is_walking = state == PYROSCOPE_WALKING;
        if ((is_walking || state == PYROSCOPE_ENDING) && exchange->deferred != NULL) {
            wait_for_pipelines(exchange);
        } else if (is_walking && (exchange->deliveries >= PYROSCOPE_DELIVERIES_MAX ||
                                  exchange->deliver_bytes >= PYROSCOPE_DELIVERIES_BYTES_MAX)) {
            break;
        } else if (is_walking && exchange->turn_bytes >= PYROSCOPE_TURN_BYTES) {
            exchange->turn_bytes = 0;
            exchange->state = PYROSCOPE_RESTING;
            exchange->resume = walk_on;
            lane_timer_start(exchange->receiver->base.lane, &exchange->timer, PYROSCOPE_REST_NS);
        } else if (is_walking) {
            assert(exchange->batch == NULL);
            conclude_step(exchange, exchange->step(exchange));
        } else if (state == PYROSCOPE_ENDING && exchange->deliveries == 0) {
            exchange->state = PYROSCOPE_DONE;
        } else {
            break;
        }
    }
    if (exchange->state == PYROSCOPE_DONE) {
        buffer_unref(exchange->body);
        exchange->body = NULL;
        pyroscope_respond(exchange, &exchange->worst.outcome);
    }
    exchange->is_running = false;
    free_if_unused(exchange);
}

void pyroscope_deliver(struct pyroscope_exchange *exchange, pyroscope_step_fn step)
{
    assert(exchange->state == PYROSCOPE_OPENING);
    exchange->step = step;
    walk_on(exchange);
}

void pyroscope_account_work(struct pyroscope_exchange *exchange, uint64_t plain_bytes)
{
    exchange->inflated_bytes += plain_bytes;
    exchange->turn_bytes += plain_bytes + PYROSCOPE_TURN_FILE_BYTES;
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct pyroscope_exchange *exchange = arg;
    struct outcome outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert(timer == &exchange->deadline);
    pyroscope_respond(exchange, &outcome);
}

static struct client_info *client_of(const struct pyroscope_receiver *receiver,
                                     const struct http_request *request)
{
    const struct pyroscope_receiver_config *config = receiver->base.config;
    if (config->server.listen.include_metadata)
        return http_request_client(request, false);
    /* the tenant alone */
    struct slice tenant = http_request_header(request, CLIENT_TENANT_HEADER);
    char value[CLIENT_TENANT_BYTES_MAX + 1];
    bool has_tenant = tenant.size > 0 && tenant.size <= CLIENT_TENANT_BYTES_MAX;
    snprintf(value, sizeof(value), "%.*s", has_tenant ? (int)tenant.size : 0,
             has_tenant ? (const char *)tenant.data : "");
    const struct client_metadata row = {.key = CLIENT_TENANT_HEADER, .value = value};
    return client_info_create(http_request_peer_address(request), &row, has_tenant);
}

struct pyroscope_exchange *pyroscope_exchange_create(struct pyroscope_receiver *receiver,
                                                     struct http_request *request,
                                                     enum pyroscope_protocol protocol,
                                                     size_t more_bytes)
{
    struct budget *budget = receiver->base.budget;
    const uint64_t bytes = sizeof(struct pyroscope_exchange) + more_bytes;
    assert(lane_is_current(receiver->base.lane));
    if (!budget_try_take_margin(budget, bytes))
        return NULL;
    struct client_info *client = client_info_charge(client_of(receiver, request), budget);
    if (client == NULL) {
        budget_return(budget, bytes);
        return NULL;
    }
    struct pyroscope_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->request = request;
    exchange->protocol = protocol;
    exchange->client = client;
    exchange->charged_bytes = bytes;
    exchange->worst.outcome = outcome_accepted;
    exchange->refused.outcome = outcome_accepted;
    exchange->wait_left_ns = PYROSCOPE_WAIT_NS_MAX;
    exchange->pause_ns = PYROSCOPE_WAIT_NS_FIRST;
    exchange->call.timeout_ns = GRPC_NO_TIMEOUT;
    timer_init(&exchange->deadline, on_deadline, exchange);
    timer_init(&exchange->timer, on_timer, exchange);
    http_request_set_context(request, exchange);
    receiver->exchanges++;
    return exchange;
}
