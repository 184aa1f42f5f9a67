/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the pyroscope receiver from its headers to its answer. What finds no room, in the
 * budget or behind, waits a while: clients do not send it again. Runs on its receiver's lane. */
#include "receivers/pyroscope/pyroscope_exchange.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/net/server/http_request_client.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"
#include "src/profiles/pyroscope/series_to_otlp.h"

#include <assert.h>
#include <stdio.h>

enum {
    BODY_BYTES_FIRST = 4096,
    DEFLATE_RATIO_MAX = 1032,
    /* While all others together hold less than this part of the budget, waiting for them is vain. */
    OTHERS_PART = 16,
    PAYLOAD_TOO_LARGE = 413,
};

static const char no_memory[] = "the memory budget is used up, try again later";

static void release(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    if (exchange->request != NULL || exchange->is_pending || exchange->is_waiting ||
        exchange->is_pumping || exchange->is_resting || exchange->is_helped)
        return;
    lane_timer_stop(receiver->base.lane, &exchange->deadline);
    batch_unref(exchange->batch);
    buffer_unref(exchange->body);
    client_info_unref(exchange->client);
    pyroscope_ingest_free(exchange->ingest);
    mem_free(exchange);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    pyroscope_receiver_check_stopped(receiver);
}

void pyroscope_exchange_answer(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    assert(outcome != NULL);
    if (exchange->is_answered || exchange->request == NULL)
        return;
    exchange->is_answered = true;
    lane_timer_stop(exchange->receiver->base.lane, &exchange->deadline);
    struct outcome told = *outcome;
    /* Clients that were refused together must not come back together. */
    if (told.verdict == REFUSED && told.retry_after_ns > 0)
        told.retry_after_ns += (uint64_t)(random_uniform() * (double)told.retry_after_ns);
    pyroscope_answer(exchange, &told);
}

static void keep_worst(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    assert(outcome->verdict != ACCEPTED);
    bool has_worst = exchange->worst.verdict != ACCEPTED;
    if (has_worst && (exchange->worst.is_permanent || !outcome->is_permanent))
        return;
    exchange->worst = *outcome;
    snprintf(exchange->text, sizeof(exchange->text), "%s", outcome->message);
    exchange->worst.message = exchange->text;
    exchange->worst.details = (struct slice){.size = 0};
}

void pyroscope_exchange_refuse(struct pyroscope_exchange *exchange, enum status_code code,
                               const char *text)
{
    struct outcome outcome = outcome_refused(code, text);
    keep_worst(exchange, &outcome);
}

void pyroscope_exchange_fail(struct pyroscope_exchange *exchange, enum status_code code,
                             const char *text)
{
    struct outcome outcome = outcome_refused(code, text);
    pyroscope_exchange_answer(exchange, &outcome);
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct pyroscope_exchange *exchange = arg;
    assert(timer == &exchange->deadline);
    (void)timer;
    pyroscope_exchange_fail(exchange, STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
}

/* Waits a little. False: it has waited long enough, or too many do. */
static bool wait_for_room(struct pyroscope_exchange *exchange, uint64_t bytes)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pyroscope_receiver_counters *counters = receiver->base.counters;
    assert(!exchange->is_waiting);
    uint64_t pause_ns = exchange->pause_ns;
    if (exchange->patience_ns < pause_ns || receiver->is_stopping ||
        receiver->waiting >= PYROSCOPE_WAITING_MAX ||
        receiver->waiting_bytes + bytes > PYROSCOPE_WAITING_BYTES_MAX)
        return false;
    counter_add(&counters->waits, exchange->patience_ns == PYROSCOPE_PATIENCE_NS);
    exchange->patience_ns -= pause_ns;
    exchange->pause_ns *= 2;
    exchange->is_waiting = true;
    exchange->waiting_bytes = bytes;
    receiver->waiting++;
    receiver->waiting_bytes += bytes;
    lane_timer_start(receiver->base.lane, &exchange->look, pause_ns);
    return true;
}

static void wait_end(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    assert(exchange->is_waiting);
    assert(receiver->waiting > 0);
    exchange->is_waiting = false;
    receiver->waiting--;
    receiver->waiting_bytes -= exchange->waiting_bytes;
}

static struct outlet *outlet_of(const struct pyroscope_exchange *exchange)
{
    assert(exchange->receiver->base.outlets[PROFILES] != NULL);
    return exchange->receiver->base.outlets[PROFILES];
}

static void count(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver_counters *counters = exchange->receiver->base.counters;
    assert(exchange->batch != NULL);
    counter_add(exchange->is_batch_refused ? &counters->refused[PROFILES]
                                           : &counters->accepted[PROFILES],
                exchange->batch->items);
}

static void finish(struct pyroscope_exchange *exchange)
{
    assert(exchange->has_ended);
    buffer_unref(exchange->body);
    exchange->body = NULL;
    pyroscope_exchange_answer(exchange, &exchange->worst);
}

/* One pipeline has answered; after the last one the batch is settled. */
static void settle(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    assert(!exchange->is_kept);
    if (outcome->verdict != ACCEPTED)
        keep_worst(exchange, outcome);
    exchange->is_batch_refused |= outcome->verdict != ACCEPTED;
    if (++exchange->pipeline < outlet_pipelines(outlet_of(exchange)))
        return;
    count(exchange);
    batch_unref(exchange->batch);
    exchange->batch = NULL;
    exchange->pipeline = 0;
    exchange->is_batch_refused = false;
}

static void offer(struct pyroscope_exchange *exchange)
{
    assert(!exchange->is_pending);
    bool is_again = exchange->is_kept;
    exchange->is_pending = true;
    exchange->is_kept = false;
    outlet_offer_patiently(outlet_of(exchange), exchange->pipeline, exchange->batch,
                           &exchange->receipt, is_again);
}

static void pump(struct pyroscope_exchange *exchange);
static bool conclude(struct pyroscope_exchange *exchange, enum pyroscope_step result);

static struct pyroscope_exchange *exchange_of(struct helper_work *work)
{
    return (struct pyroscope_exchange *)((char *)work - offsetof(struct pyroscope_exchange, work));
}

static void on_help(struct helper_work *work)
{
    struct pyroscope_exchange *exchange = exchange_of(work);
    exchange->work_result = exchange->step(exchange);
}

static void on_helped(struct helper_work *work)
{
    struct pyroscope_exchange *exchange = exchange_of(work);
    assert(exchange->is_helped);
    uint64_t took_ns = clock_now_ns() - exchange->help_began_ns;
    exchange->is_helped = false;
    if (exchange->work_result == PYROSCOPE_STEP_BUSY) /* in vain: as if it had waited */
        exchange->patience_ns -= took_ns < exchange->patience_ns ? took_ns : exchange->patience_ns;
    if (conclude(exchange, exchange->work_result))
        offer(exchange);
    pump(exchange);
}

static void start_help(struct pyroscope_exchange *exchange)
{
    assert(!exchange->is_helped);
    exchange->is_helped = true;
    exchange->help_began_ns = clock_now_ns();
    exchange->work = (struct helper_work){.run = on_help, .done = on_helped};
    lane_help(exchange->receiver->base.lane, &exchange->work);
}

static void count_step(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver_counters *counters = exchange->receiver->base.counters;
    counter_add(&counters->negative, exchange->negative);
    counter_add(&counters->empty, exchange->empty);
    exchange->negative = 0;
    exchange->empty = 0;
}

/* Nobody else holds memory that waiting could bring. */
static bool can_never_fit(const struct pyroscope_exchange *exchange)
{
    const struct budget *budget = exchange->receiver->base.budget;
    uint64_t used = budget_used(budget);
    uint64_t own = exchange->body != NULL ? buffer_charge(exchange->body) : 0;
    return used - (own < used ? own : used) < budget_limit(budget) / OTHERS_PART;
}

/* There was no memory for a step. */
static void conclude_busy(struct pyroscope_exchange *exchange)
{
    struct outcome outcome = outcome_busy(no_memory);
    if (can_never_fit(exchange)) {
        exchange->http_status = PAYLOAD_TOO_LARGE;
        outcome = outcome_too_large("converting the profile takes more than the whole memory "
                                    "budget (service::budget_mib); send less at a time");
    } else if (wait_for_room(exchange, exchange->message.size)) {
        return;
    }
    keep_worst(exchange, &outcome);
    exchange->has_ended = true;
}

/* A step has been made. False: there is nothing to offer now. */
static bool conclude(struct pyroscope_exchange *exchange, enum pyroscope_step result)
{
    count_step(exchange);
    switch (result) {
    case PYROSCOPE_STEP_BATCH:
        return true;
    case PYROSCOPE_STEP_NONE:
        return false;
    case PYROSCOPE_STEP_BUSY:
        conclude_busy(exchange);
        return false;
    case PYROSCOPE_STEP_HELP:
        start_help(exchange);
        return false;
    case PYROSCOPE_STEP_END:
        break;
    }
    exchange->has_ended = true;
    return false;
}

/* One step of the walk. False: there is nothing to offer now. */
static bool advance(struct pyroscope_exchange *exchange)
{
    assert(exchange->batch == NULL);
    return conclude(exchange, exchange->step(exchange));
}

bool pyroscope_exchange_needs_help(const struct pyroscope_exchange *exchange, size_t bytes,
                                   bool may_be_gzip)
{
    uint64_t plain_max = (uint64_t)bytes * (may_be_gzip ? DEFLATE_RATIO_MAX : 1);
    return !exchange->is_helped && plain_max >= HELPED_PROFILES_BYTES_MIN;
}

struct gzip *pyroscope_exchange_gzip(const struct pyroscope_exchange *exchange)
{
    const struct pyroscope_receiver *receiver = exchange->receiver;
    return exchange->is_helped ? receiver->helper_gzip : receiver->gzip;
}

void pyroscope_exchange_worked(struct pyroscope_exchange *exchange, uint64_t plain_bytes)
{
    assert(!exchange->has_ended);
    exchange->inflated_bytes += plain_bytes;
    exchange->turn_bytes += plain_bytes + PYROSCOPE_TURN_FILE_BYTES;
}

static void rest(struct pyroscope_exchange *exchange)
{
    assert(!exchange->is_resting);
    exchange->turn_bytes = 0;
    exchange->is_resting = true;
    lane_timer_start(exchange->receiver->base.lane, &exchange->look, PYROSCOPE_REST_NS);
}

static bool can_go_on(const struct pyroscope_exchange *exchange)
{
    return !exchange->is_pending && !exchange->is_waiting && !exchange->is_resting &&
           !exchange->is_helped && !exchange->has_ended;
}

/* Receipts may resolve from inside offer: the loop goes on then, whoever is called. */
static void pump(struct pyroscope_exchange *exchange)
{
    if (exchange->is_pumping)
        return;
    exchange->is_pumping = true;
    while (can_go_on(exchange)) {
        if (exchange->batch == NULL && exchange->turn_bytes >= PYROSCOPE_TURN_BYTES)
            rest(exchange);
        else if (exchange->batch != NULL || advance(exchange))
            offer(exchange);
    }
    if (exchange->has_ended)
        finish(exchange);
    exchange->is_pumping = false;
    release(exchange);
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct pyroscope_exchange *exchange = arg;
    assert(receipt == &exchange->receipt);
    exchange->is_pending = false;
    receipt_init(receipt, receipt->fn, exchange);
    bool is_later = outcome->verdict == REFUSED && !outcome->is_permanent;
    exchange->is_kept = is_later && wait_for_room(exchange, exchange->batch->bytes);
    if (is_later && !exchange->is_kept)
        outlet_give_up(outlet_of(exchange), exchange->pipeline, exchange->batch, outcome->reason);
    if (!exchange->is_kept)
        settle(exchange, outcome);
    pump(exchange);
}

static bool has_room_for_body(const struct pyroscope_exchange *exchange)
{
    const struct budget *budget = exchange->receiver->base.budget;
    uint64_t declared = http_request_size_declared(exchange->request);
    uint64_t used = budget_used(budget);
    uint64_t limit = budget_limit(budget);
    /* A body that names no size begins with a few bytes. */
    uint64_t bytes = declared > exchange->plan.max_bytes ? BODY_BYTES_FIRST : declared;
    return bytes >= limit || used + bytes <= limit;
}

/* HTTP/2 sends on without being asked: there the body is read at once, if need be into the reserve,
 * and waits then. */
static void read_body(struct pyroscope_exchange *exchange)
{
    assert(exchange->request != NULL);
    bool has_room = has_room_for_body(exchange);
    if (!has_room && http_request_is_http2(exchange->request))
        exchange->plan.budget = &exchange->receiver->reserve;
    else if (!has_room && wait_for_room(exchange, 0))
        return;
    http_request_read_body(exchange->request, &exchange->plan);
}

static void go_on(struct pyroscope_exchange *exchange)
{
    assert(exchange->step == NULL);
    if (exchange->request == NULL || exchange->is_answered)
        release(exchange);
    else if (exchange->again != NULL)
        exchange->again(exchange);
    else
        read_body(exchange);
}

void pyroscope_exchange_wait(struct pyroscope_exchange *exchange,
                             void (*again)(struct pyroscope_exchange *exchange))
{
    assert(again != NULL);
    struct outcome outcome = outcome_busy(no_memory);
    exchange->again = again;
    if (!wait_for_room(exchange, exchange->message.size))
        pyroscope_exchange_answer(exchange, &outcome);
}

static void on_look(struct timer *timer, void *arg)
{
    struct pyroscope_exchange *exchange = arg;
    assert(timer == &exchange->look);
    (void)timer;
    if (exchange->is_waiting)
        wait_end(exchange);
    exchange->is_resting = false;
    if (exchange->step != NULL)
        pump(exchange);
    else
        go_on(exchange);
}

void pyroscope_exchange_read(struct pyroscope_exchange *exchange, const struct http_body_plan *plan)
{
    assert(plan->max_bytes > 0);
    exchange->plan = *plan;
    read_body(exchange);
}

/* The tenant is context at all times; everything else when asked for. */
static struct client_info *client_of(const struct pyroscope_receiver *receiver,
                                     const struct http_request *request)
{
    const struct pyroscope_receiver_config *config = receiver->base.config;
    struct slice tenant = http_request_header(request, CLIENT_TENANT_HEADER);
    char text[CLIENT_TENANT_BYTES_MAX + 1];
    assert(request != NULL);
    if (config->server.listen.include_metadata)
        return http_request_client(request, false);
    bool has_tenant = tenant.size > 0 && tenant.size <= CLIENT_TENANT_BYTES_MAX;
    snprintf(text, sizeof(text), "%.*s", has_tenant ? (int)tenant.size : 0,
             has_tenant ? (const char *)tenant.data : "");
    const struct client_metadata row = {.key = CLIENT_TENANT_HEADER, .value = text};
    return client_info_create(http_request_peer_address(request), &row, has_tenant);
}

struct pyroscope_exchange *pyroscope_exchange_create(struct pyroscope_receiver *receiver,
                                                     struct http_request *request,
                                                     enum pyroscope_protocol protocol)
{
    assert(request != NULL);
    assert(lane_is_current(receiver->base.lane));
    struct pyroscope_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->request = request;
    exchange->protocol = protocol;
    exchange->client = client_of(receiver, request);
    exchange->worst = outcome_accepted;
    exchange->patience_ns = PYROSCOPE_PATIENCE_NS;
    exchange->pause_ns = PYROSCOPE_LOOK_NS;
    exchange->call.timeout_ns = GRPC_NO_TIMEOUT;
    timer_init(&exchange->deadline, on_deadline, exchange);
    timer_init(&exchange->look, on_look, exchange);
    receipt_init(&exchange->receipt, on_receipt, exchange);
    http_request_set_context(request, exchange);
    receiver->exchanges++;
    return exchange;
}

void pyroscope_exchange_end(struct http_request *request)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    if (exchange == NULL)
        return;
    assert(exchange->request == request);
    exchange->request = NULL;
    release(exchange);
}

void pyroscope_exchange_start(struct pyroscope_exchange *exchange, pyroscope_step_fn step)
{
    assert(exchange->step == NULL);
    assert(!exchange->has_ended);
    exchange->step = step;
    pump(exchange);
}

const struct upload_limits *pyroscope_exchange_limits(const struct pyroscope_exchange *exchange)
{
    const struct pyroscope_receiver_config *config = exchange->receiver->base.config;
    assert(config != NULL);
    return &config->limits;
}

struct batch *pyroscope_exchange_batch(struct pyroscope_exchange *exchange, struct buffer *request,
                                       uint64_t items)
{
    assert(request->size > 0);
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, request, buffer_slice(request));
    batch->items = items;
    batch->arrival_ns = clock_now_ns();
    batch->client = client_info_ref(exchange->client);
    return batch;
}

enum pyroscope_step pyroscope_exchange_convert(struct pyroscope_exchange *exchange,
                                               const struct series *series,
                                               const struct pprof_upload *upload)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct error error = {.text = ""};
    struct buffer *request = NULL;
    assert(exchange->batch == NULL);
    if (!upload_check_profile(&upload->pprof, series, pyroscope_exchange_limits(exchange),
                              &error)) {
        pyroscope_exchange_refuse(exchange, STATUS_INVALID_ARGUMENT, error.text);
        return PYROSCOPE_STEP_NONE;
    }
    if (!series_to_otlp(series, &upload->pprof, receiver->base.budget, &request))
        return PYROSCOPE_STEP_BUSY;
    exchange->negative += upload->negative;
    exchange->empty += request->size == 0;
    if (request->size > 0)
        exchange->batch = pyroscope_exchange_batch(exchange, request, pprof_upload_items(upload));
    buffer_unref(request);
    return exchange->batch != NULL ? PYROSCOPE_STEP_BATCH : PYROSCOPE_STEP_NONE;
}
