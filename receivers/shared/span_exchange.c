/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/shared/span_exchange.h"

#include "receivers/shared/request_pieces.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/listen/server_front.h"
#include "src/net/server/http_request_client.h"
#include "src/otlp/check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { TEXT_MAX = 1024, ENCODING_SHOWN_MAX = 128 };
enum { HTTP_TOO_SLOW = 408, HTTP_TOO_LARGE = 413 };

static const char no_memory[] = "the memory budget is used up, try again later";
const char span_exchange_too_large[] = "http: request body too large";

static void release(struct span_exchange *exchange)
{
    if (exchange->request != NULL || exchange->is_pending || exchange->is_helped)
        return;
    client_info_unref(exchange->client);
    exchange->front->ops->end(exchange);
}

/* ---- Responses ---- */

/* Adds the headers that are configured for all responses, and sends the response. */
static void finish(const struct span_front *front, struct http_request *request,
                   struct http_response *response)
{
    response->common = front->http->response_headers;
    http_respond(request, response);
}

void span_front_respond_text(const struct span_front *front, struct http_request *request,
                             unsigned status, const char *message, uint64_t retry_after_ns)
{
    char text[TEXT_MAX];
    char retry_after[24];
    struct server_cors_room room;
    assert(status >= 400);
    snprintf(text, sizeof(text), "%s\n", message);
    struct http_response response = {
        .status = status,
        .headers = {{"content-type", "text/plain; charset=utf-8"},
                    {"x-content-type-options", "nosniff"}},
        .body = slice_of_text(text),
    };
    if (retry_after_ns > 0) {
        uint64_t seconds = retry_after_ns / NS_PER_S;
        snprintf(retry_after, sizeof(retry_after), "%" PRIu64, seconds > 0 ? seconds : 1);
        response.headers[2] = (struct http_header){"retry-after", retry_after};
    }
    server_cors_add(&front->http->cors, request, &room, &response);
    finish(front, request, &response);
}

void span_front_respond_accepted(const struct span_front *front, struct http_request *request)
{
    struct server_cors_room room;
    struct http_response response = {.status = 202};
    server_cors_add(&front->http->cors, request, &room, &response);
    finish(front, request, &response);
}

void span_exchange_respond(struct span_exchange *exchange, const struct outcome *outcome)
{
    if (exchange->is_responded || exchange->request == NULL)
        return;
    exchange->is_responded = true;
    uint64_t retry_after_ns = outcome->is_permanent ? 0 : outcome->retry_after_ns;
    /* Jitter: clients refused together must not retry together. */
    retry_after_ns += (uint64_t)(random_uniform() * (double)retry_after_ns);
    exchange->front->ops->respond(exchange, outcome, retry_after_ns);
}

void span_exchange_refuse(struct span_exchange *exchange, unsigned http_status,
                          enum status_code code, const char *message)
{
    struct outcome outcome = outcome_refused(code, message);
    exchange->http_status = http_status;
    span_exchange_respond(exchange, &outcome);
}

static void refuse_busy(struct span_exchange *exchange, const char *message)
{
    struct outcome outcome = outcome_busy(message);
    span_exchange_respond(exchange, &outcome);
}

unsigned span_exchange_status(const struct span_exchange *exchange, const struct outcome *outcome,
                              unsigned permanent_status)
{
    if (exchange->http_status > 0)
        return exchange->http_status;
    if (outcome_is_too_large(outcome))
        return HTTP_TOO_LARGE;
    return outcome->is_permanent ? permanent_status : 503;
}

/* ---- Requests until their bodies are read ---- */

bool span_front_admit(const struct span_front *front, struct http_request *request,
                      enum codec codec, struct auth_result *result)
{
    struct server_cors_room room;
    struct http_response preflight;
    char text[TEXT_MAX];
    /* Browsers send preflight requests without credentials. */
    if (server_cors_preflight(&front->http->cors, request, &room, &preflight)) {
        finish(front, request, &preflight);
        return false;
    }
    enum auth_verdict verdict = server_auth_ask(&front->http->auth, request, result);
    if (verdict == AUTH_PENDING)
        return false;
    if (verdict != AUTH_GRANTED) {
        bool is_busy = verdict == AUTH_BUSY;
        span_front_respond_text(front, request, is_busy ? 503 : 401, result->reason,
                                is_busy ? RETRY_AFTER_BUSY_NS : 0);
        return false;
    }
    if (codec != CODECS)
        return true;
    struct slice coding = http_request_header(request, "content-encoding");
    int size = (int)(coding.size < ENCODING_SHOWN_MAX ? coding.size : ENCODING_SHOWN_MAX);
    snprintf(text, sizeof(text), "unsupported Content-Encoding: %.*s", size,
             coding.size == 0 ? "" : (const char *)coding.data);
    span_front_respond_text(front, request, 400, text, 0);
    return false;
}

/* NULL: the budget has no room. */
static struct client_info *client_of(const struct http_request *request, struct budget *budget,
                                     const struct server_config *listen, bool is_grpc,
                                     const struct auth_result *result)
{
    struct client_info *info =
        listen->include_metadata ? http_request_client(request, is_grpc)
                                 : client_info_create(http_request_peer_address(request), NULL, 0);
    if (result->attributes_count == 0)
        return client_info_charge(info, budget);
    struct client_info *client = server_auth_client(result, info);
    client_info_unref(info);
    return client_info_charge(client, budget);
}

void span_exchange_begin(struct span_exchange *exchange, const struct span_front *front,
                         struct http_request *request, const struct server_config *listen,
                         bool is_grpc, const struct auth_result *result)
{
    exchange->front = front;
    exchange->request = request;
    exchange->client = client_of(request, front->receiver->budget, listen, is_grpc, result);
    http_request_set_context(request, exchange);
}

void span_exchange_on_body_failed(struct http_request *request, enum http_failure failure,
                                  void *arg)
{
    struct span_exchange *exchange = http_request_context(request);
    (void)arg;
    switch (failure) {
    case HTTP_BODY_TOO_LARGE:
        span_exchange_refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED,
                             span_exchange_too_large);
        break;
    case HTTP_BODY_NO_BUDGET:
        refuse_busy(exchange, no_memory);
        break;
    case HTTP_BODY_TOO_SLOW:
        span_exchange_refuse(exchange, HTTP_TOO_SLOW, STATUS_DEADLINE_EXCEEDED,
                             "the request body came too slowly");
        break;
    case HTTP_BODY_MALFORMED:
        span_exchange_refuse(exchange, 400, STATUS_INVALID_ARGUMENT,
                             "the request body is malformed");
        break;
    }
}

void span_exchange_on_end(struct http_request *request, void *arg)
{
    struct span_exchange *exchange = http_request_context(request);
    (void)arg;
    if (exchange == NULL)
        return;
    exchange->request = NULL;
    release(exchange);
}

/* ---- Spans on their way to the pipelines ---- */

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct span_exchange *exchange = arg;
    assert(receipt == &exchange->receipt);
    exchange->is_pending = false;
    exchange->front->ops->count(exchange, outcome->verdict == ACCEPTED);
    /* The response may end the request at once, and the exchange with it. */
    if (exchange->request != NULL && !exchange->is_responded)
        span_exchange_respond(exchange, outcome);
    else
        release(exchange);
}

/* Offers what was read to the pipelines, or responds at once. */
static void offer(struct span_exchange *exchange, struct span_reading *reading)
{
    const struct component *receiver = exchange->front->receiver;
    struct outlet *outlet = receiver->outlets[TRACES];
    struct buffer *request = reading->spans.request;
    struct slice message = buffer_slice(request);
    const struct otlp_figures figures = {
        .items = reading->spans.spans,
        .messages = reading->spans.messages,
    };
    if (figures.items == 0) {
        span_exchange_respond(exchange, &outcome_accepted);
        return;
    }
    switch (request_charge(request, message, &figures)) {
    case BUDGET_GIVEN:
        break;
    case BUDGET_TOO_SMALL:
        span_exchange_refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED,
                             "the spans take more than the whole memory budget "
                             "(service::budget_mib); send less at a time");
        return;
    case BUDGET_FULL:
        refuse_busy(exchange, no_memory);
        return;
    }
    exchange->spans = figures.items;
    exchange->is_pending = true;
    receipt_init(&exchange->receipt, on_receipt, exchange);
    struct request_pieces *pieces = reading->pieces;
    reading->pieces = NULL;
    if (pieces != NULL) {
        request_pieces_offer(pieces, receiver->lane, outlet, exchange->client, &exchange->receipt);
        return;
    }
    struct batch *batch = request_batch(TRACES, figures.items, request, message);
    batch->client = client_info_ref(exchange->client);
    outlet_offer(outlet, batch, &exchange->receipt);
    batch_unref(batch);
}

static void read_body(struct span_reading *reading)
{
    reading->exchange->front->ops->read(reading);
    if (reading->verdict != CONVERTED)
        return;
    const struct otlp_figures figures = {
        .items = reading->spans.spans,
        .messages = reading->spans.messages,
    };
    struct buffer *request = reading->spans.request;
    reading->pieces =
        request_pieces_cut(TRACES, request, buffer_slice(request), &figures, reading->budget);
}

/* Says why the body could not be inflated. */
static void refuse_compressed(struct span_exchange *exchange, enum codec_result result,
                              const char *reason)
{
    const struct span_exchange_ops *ops = exchange->front->ops;
    switch (result) {
    case CODEC_TOO_LARGE:
    case CODEC_MALFORMED:
        if (ops->refuse_compressed != NULL)
            ops->refuse_compressed(exchange, result, reason);
        else if (result == CODEC_TOO_LARGE)
            span_exchange_refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED,
                                 span_exchange_too_large);
        else
            span_exchange_refuse(exchange, 400, STATUS_INVALID_ARGUMENT, reason);
        return;
    case CODEC_MISSING:
        /* Not the client's fault: another daemon, or this one once fixed, can read it. */
        log_error(&exchange->front->receiver->logger, "A compressed request cannot be read",
                  log_text("error", reason));
        refuse_busy(exchange, reason);
        return;
    case CODEC_OK:
    case CODEC_NO_BUDGET:
        break;
    }
    refuse_busy(exchange, no_memory);
}

/* Offers or refuses what was read, and releases what the reading holds. The request may have ended.
 */
static void end_reading(struct span_reading *reading)
{
    struct span_exchange *exchange = reading->exchange;
    bool is_open = exchange->request != NULL && !exchange->is_responded;
    buffer_unref(reading->body);
    if (reading->inflated != CODEC_OK) {
        if (is_open)
            refuse_compressed(exchange, reading->inflated, reading->inflate_reason);
        return;
    }
    switch (reading->verdict) {
    case CONVERTED:
        if (is_open)
            offer(exchange, reading);
        request_pieces_free(reading->pieces);
        buffer_unref(reading->spans.request);
        return;
    case CONVERSION_MALFORMED:
        if (is_open) {
            const struct span_exchange_ops *ops = exchange->front->ops;
            char text[CONVERSION_REASON_BYTES_MAX + 64];
            snprintf(text, sizeof(text), "%s%s",
                     ops->malformed_prefix == NULL ? "" : ops->malformed_prefix(exchange),
                     reading->reason);
            span_exchange_refuse(exchange, 400, STATUS_INVALID_ARGUMENT, text);
        }
        return;
    case CONVERSION_OVERSIZED:
        if (is_open)
            span_exchange_refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED,
                                 reading->reason);
        return;
    case CONVERSION_BUSY:
        if (is_open)
            refuse_busy(exchange, no_memory);
        return;
    }
}

static void on_help(struct helper_work *work)
{
    struct span_reading *reading = (struct span_reading *)work;
    if (reading->codec != CODEC_NONE) {
        struct codec_box *codecs = reading->exchange->front->helper_codecs;
        struct buffer *plain = NULL;
        reading->inflated =
            codec_inflate(codecs, reading->codec, reading->message, reading->bytes_max, &plain);
        reading->inflate_reason = codec_reason(codecs);
        if (reading->inflated != CODEC_OK)
            return;
        buffer_unref(reading->body);
        reading->body = plain;
        reading->message = buffer_slice(plain);
    }
    read_body(reading);
}

static void on_helped(struct helper_work *work)
{
    struct span_reading *reading = (struct span_reading *)work;
    struct span_exchange *exchange = reading->exchange;
    exchange->is_helped = false;
    bool is_gone = exchange->request == NULL;
    end_reading(reading);
    mem_free(reading);
    if (is_gone)
        release(exchange);
}

static void begin_reading(struct span_reading *reading, struct span_exchange *exchange,
                          struct buffer *body, struct slice message)
{
    reading->exchange = exchange;
    reading->budget = exchange->front->receiver->budget;
    reading->body = buffer_ref(body);
    reading->message = message;
    reading->codec = CODEC_NONE;
    reading->inflated = CODEC_OK;
    reading->now_ns = clock_wall_ns();
    reading->pieces = NULL;
}

static void help(const struct span_reading *reading)
{
    struct span_reading *helped = mem_alloc(sizeof(*helped));
    *helped = *reading;
    helped->work = (struct helper_work){.run = on_help, .done = on_helped};
    reading->exchange->is_helped = true;
    lane_help(reading->exchange->front->receiver->lane, &helped->work);
}

/* message is inflated and lies in body, of which a reference is taken. The lane's helper reads
 * large ones. */
static void take_plain(struct span_exchange *exchange, struct buffer *body, struct slice message)
{
    struct span_reading reading;
    begin_reading(&reading, exchange, body, message);
    if (message.size >= HELPED_SPANS_BYTES_MIN) {
        help(&reading);
        return;
    }
    read_body(&reading);
    end_reading(&reading);
}

void span_exchange_take(struct span_exchange *exchange, struct buffer *body, struct slice message,
                        enum codec codec, uint64_t bytes_max)
{
    struct codec_box *codecs = exchange->front->codecs;
    struct buffer *plain = NULL;
    enum codec_result result;
    if (exchange->client == NULL) {
        refuse_busy(exchange, no_memory);
        return;
    }
    if (codec == CODEC_NONE) {
        take_plain(exchange, body, message);
    } else if (!codec_inflate_little(codecs, codec, message, bytes_max, HELPED_SPANS_BYTES_MIN,
                                     &result, &plain)) {
        struct span_reading reading;
        begin_reading(&reading, exchange, body, message);
        reading.codec = codec;
        reading.bytes_max = bytes_max;
        help(&reading);
    } else if (result == CODEC_OK) {
        take_plain(exchange, plain, buffer_slice(plain));
        buffer_unref(plain);
    } else {
        refuse_compressed(exchange, result, codec_reason(codecs));
    }
}
