/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the jaeger receiver, from its head to its response, over gRPC or HTTP. Runs on the
 * receiver's lane. */
#include "receivers/jaeger/jaeger_receiver.h"

#include "receivers/shared/request_pieces.h"

#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/base/timer.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/receipt.h"
#include "src/jaeger/jaeger_read.h"
#include "src/net/server/grpc.h"
#include "src/net/server/http_request_client.h"
#include "src/net/syntax/http_path.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024, SHOWN_MAX = 128 };
enum { HTTP_TOO_SLOW = 408, HTTP_TOO_LARGE = 413 };

static const char no_memory[] = "the memory budget is used up, try again later";
static const char too_large[] = "http: request body too large";

/* Lives until its request has ended, its body is read, and its receipt has resolved. */
struct jaeger_exchange {
    struct jaeger_receiver *receiver;
    struct http_request *request; /* NULL once ended */
    enum jaeger_transport transport;
    enum codec codec; /* HTTP */
    struct grpc_call call;
    struct timer deadline; /* grpc-timeout */
    struct client_info *client;
    unsigned http_status; /* overrides the one that the outcome maps to; 0: none */
    uint64_t spans;
    bool is_responded;
    bool is_pending; /* the receipt is with the pipelines */
    bool is_helped;  /* the lane's helper reads the body */
    struct receipt receipt;
};

/* Reading a body: its input and its result. Touches nothing of the lane, so that the helper can do
 * it too. */
struct reading {
    struct helper_work work; /* first */
    struct jaeger_exchange *exchange;
    enum jaeger_form form;
    struct budget *budget;
    struct buffer *body; /* of message */
    struct slice message;
    enum jaeger_verdict verdict;
    struct jaeger_batch batch;
    struct request_pieces *pieces; /* of a dense request; NULL: it stays whole */
    char reason[JAEGER_REASON_BYTES_MAX];
};

static void release(struct jaeger_exchange *exchange)
{
    struct jaeger_receiver *receiver = exchange->receiver;
    if (exchange->request != NULL || exchange->is_pending || exchange->is_helped)
        return;
    lane_timer_stop(receiver->base.lane, &exchange->deadline);
    client_info_unref(exchange->client);
    mem_free(exchange);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    jaeger_receiver_check_stopped(receiver);
}

/* ---- Responses ---- */

/* Adds the headers that are configured for all responses, and sends the response. */
static void finish(const struct jaeger_receiver *receiver, struct http_request *request,
                   struct http_response *response)
{
    response->common = receiver->response_headers;
    http_respond(request, response);
}

/* An error as Go's http.Error writes it. retry_after_ns: 0: no hint. */
static void respond_text(const struct jaeger_receiver *receiver, struct http_request *request,
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
    server_cors_add(&receiver->cors, request, &room, &response);
    finish(receiver, request, &response);
}

static void respond_http(struct jaeger_exchange *exchange, const struct outcome *outcome,
                         uint64_t retry_after_ns)
{
    const struct jaeger_receiver *receiver = exchange->receiver;
    char text[TEXT_MAX];
    if (outcome->verdict == ACCEPTED) {
        struct server_cors_room room;
        struct http_response response = {.status = 202};
        server_cors_add(&receiver->cors, exchange->request, &room, &response);
        finish(receiver, exchange->request, &response);
        return;
    }
    unsigned status = outcome->is_permanent ? 500 : 503;
    if (exchange->http_status > 0)
        status = exchange->http_status;
    else if (outcome_is_too_large(outcome))
        status = HTTP_TOO_LARGE;
    snprintf(text, sizeof(text), "%s%s", status == 500 ? "Cannot submit Jaeger batch: " : "",
             outcome->message);
    respond_text(receiver, exchange->request, status, text, retry_after_ns);
}

/* Responds once; later calls do nothing. */
static void respond(struct jaeger_exchange *exchange, const struct outcome *outcome)
{
    if (exchange->is_responded || exchange->request == NULL)
        return;
    exchange->is_responded = true;
    lane_timer_stop(exchange->receiver->base.lane, &exchange->deadline);
    uint64_t retry_after_ns = outcome->is_permanent ? 0 : outcome->retry_after_ns;
    /* Jitter: clients refused together must not retry together. */
    retry_after_ns += (uint64_t)(random_uniform() * (double)retry_after_ns);
    if (exchange->transport == JAEGER_HTTP)
        respond_http(exchange, outcome, retry_after_ns);
    else if (outcome->verdict == ACCEPTED)
        grpc_respond(exchange->request, &exchange->call, slice_of("", 0));
    else
        grpc_respond_status(exchange->request, &exchange->call,
                            &(struct rpc_status){
                                .code = outcome->code,
                                .message = outcome->message,
                                .details = outcome->details,
                                .retry_after_ns = retry_after_ns,
                            });
}

static void refuse(struct jaeger_exchange *exchange, unsigned http_status, enum status_code code,
                   const char *message)
{
    struct outcome outcome = outcome_refused(code, message);
    exchange->http_status = http_status;
    respond(exchange, &outcome);
}

static void refuse_busy(struct jaeger_exchange *exchange, const char *message)
{
    struct outcome outcome = outcome_busy(message);
    respond(exchange, &outcome);
}

/* ---- Requests until their bodies are read ---- */

static struct client_info *client_of(const struct jaeger_receiver *receiver,
                                     enum jaeger_transport transport,
                                     const struct http_request *request,
                                     const struct auth_result *result)
{
    const struct server_config *listen = transport == JAEGER_GRPC
                                             ? &receiver->config->grpc.listen
                                             : &receiver->config->http.server.listen;
    struct client_info *info =
        listen->include_metadata ? http_request_client(request, transport == JAEGER_GRPC)
                                 : client_info_create(http_request_peer_address(request), NULL, 0);
    if (result->attributes_count == 0)
        return info;
    struct client_info *client = server_auth_client(result, info);
    client_info_unref(info);
    return client;
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct jaeger_exchange *exchange = arg;
    struct outcome outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert(timer == &exchange->deadline);
    respond(exchange, &outcome);
}

static struct jaeger_exchange *begin(struct jaeger_receiver *receiver, struct http_request *request,
                                     enum jaeger_transport transport,
                                     const struct auth_result *result)
{
    struct jaeger_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->request = request;
    exchange->transport = transport;
    exchange->client = client_of(receiver, transport, request, result);
    timer_init(&exchange->deadline, on_deadline, exchange);
    receiver->exchanges++;
    http_request_set_context(request, exchange);
    return exchange;
}

/* What is wrong with a request of HTTP, as status and text; 0: nothing. */
static unsigned find_fault(struct http_request *request, char text[TEXT_MAX])
{
    char path[HTTP_PATH_MAX];
    struct slice type = http_request_header(request, "content-type");
    bool is_known =
        http_path_decode(http_request_path(request), path) && strcmp(path, "/api/traces") == 0;
    text[0] = '\0';
    if (!is_known) {
        snprintf(text, TEXT_MAX, "404 page not found");
        return 404;
    }
    if (!slice_equal_text(http_request_method(request), "POST"))
        return 405;
    if (media_type_is(type, "application/x-thrift") ||
        media_type_is(type, "application/vnd.apache.thrift.binary"))
        return 0;
    if (type.size == 0)
        snprintf(text, TEXT_MAX, "Cannot parse content type: mime: no media type");
    else
        snprintf(text, TEXT_MAX, "Unsupported content type");
    return 400;
}

static void on_http_request(struct http_request *request, void *arg)
{
    struct jaeger_receiver *receiver = arg;
    const struct http_server_config *server = &receiver->config->http.server;
    struct auth_result result;
    struct server_cors_room room;
    struct http_response preflight;
    char text[TEXT_MAX];
    /* Browsers send preflight requests without credentials. */
    if (server_cors_preflight(&receiver->cors, request, &room, &preflight)) {
        finish(receiver, request, &preflight);
        return;
    }
    enum auth_verdict verdict = server_auth_ask(&receiver->auth[JAEGER_HTTP], request, &result);
    if (verdict != AUTH_GRANTED) {
        bool is_busy = verdict == AUTH_BUSY;
        respond_text(receiver, request, is_busy ? 503 : 401, result.reason,
                     is_busy ? RETRY_AFTER_BUSY_NS : 0);
        return;
    }
    struct slice coding = http_request_header(request, "content-encoding");
    enum codec codec = http_server_config_codec(server, coding);
    if (codec == CODECS) {
        int size = (int)(coding.size < SHOWN_MAX ? coding.size : SHOWN_MAX);
        snprintf(text, sizeof(text), "unsupported Content-Encoding: %.*s", size,
                 coding.size == 0 ? "" : (const char *)coding.data);
        respond_text(receiver, request, 400, text, 0);
        return;
    }
    unsigned fault = find_fault(request, text);
    if (fault > 0) {
        respond_text(receiver, request, fault, text, 0);
        return;
    }
    struct jaeger_exchange *exchange = begin(receiver, request, JAEGER_HTTP, &result);
    exchange->codec = codec;
    http_request_read_body(request,
                           &(struct http_body_plan){.max_bytes = receiver->bytes_max[JAEGER_HTTP]});
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    const struct jaeger_receiver *receiver = arg;
    char text[GRPC_TEXT_MAX];
    uint64_t size = grpc_body_size(data, receiver->bytes_max[JAEGER_GRPC], text);
    if (size == 0) {
        struct outcome outcome = outcome_refused(STATUS_RESOURCE_EXHAUSTED, text);
        respond(exchange, &outcome);
    }
    return size;
}

static void on_grpc_request(struct http_request *request, void *arg)
{
    static const char known_service[] = "jaeger.api_v2.CollectorService";
    struct jaeger_receiver *receiver = arg;
    struct grpc_call call;
    struct auth_result result;
    struct slice service;
    struct slice method;
    if (!grpc_accept(request, &call))
        return;
    enum auth_verdict verdict = server_auth_ask(&receiver->auth[JAEGER_GRPC], request, &result);
    if (verdict != AUTH_GRANTED) {
        bool is_busy = verdict == AUTH_BUSY;
        grpc_respond_status(request, &call,
                            &(struct rpc_status){
                                .code = is_busy ? STATUS_UNAVAILABLE : STATUS_UNAUTHENTICATED,
                                .message = result.reason,
                                .retry_after_ns = is_busy ? RETRY_AFTER_BUSY_NS : 0,
                            });
        return;
    }
    if (!grpc_split_path(request, &call, &service, &method))
        return;
    bool is_known = slice_equal_text(service, known_service);
    if (!is_known || !slice_equal_text(method, "PostSpans")) {
        char text[2 * SHOWN_MAX + 64];
        struct slice name = is_known ? method : service;
        snprintf(text, sizeof(text), "unknown %s %.*s%s%s", is_known ? "method" : "service",
                 (int)(name.size < SHOWN_MAX ? name.size : SHOWN_MAX), (const char *)name.data,
                 is_known ? " for service " : "", is_known ? known_service : "");
        grpc_respond_status(request, &call,
                            &(struct rpc_status){.code = STATUS_UNIMPLEMENTED, .message = text});
        return;
    }
    struct jaeger_exchange *exchange = begin(receiver, request, JAEGER_GRPC, &result);
    exchange->call = call;
    if (call.timeout_ns == 0) {
        on_deadline(&exchange->deadline, exchange);
        return;
    }
    if (call.timeout_ns != GRPC_NO_TIMEOUT)
        lane_timer_start(receiver->base.lane, &exchange->deadline, call.timeout_ns);
    http_request_read_body(request,
                           &(struct http_body_plan){
                               .max_bytes = receiver->bytes_max[JAEGER_GRPC] + GRPC_PREFIX_BYTES,
                               .peek_bytes = GRPC_PREFIX_BYTES,
                               .on_peek = on_peek,
                           });
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    assert(exchange->receiver == arg);
    switch (failure) {
    case HTTP_BODY_TOO_LARGE:
        refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED, too_large);
        break;
    case HTTP_BODY_NO_BUDGET:
        refuse_busy(exchange, no_memory);
        break;
    case HTTP_BODY_TOO_SLOW:
        refuse(exchange, HTTP_TOO_SLOW, STATUS_DEADLINE_EXCEEDED,
               "the request body came too slowly");
        break;
    case HTTP_BODY_MALFORMED:
        refuse(exchange, 400, STATUS_INVALID_ARGUMENT, "the request body is malformed");
        break;
    }
}

static void on_end(struct http_request *request, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    (void)arg;
    if (exchange == NULL)
        return;
    exchange->request = NULL;
    release(exchange);
}

/* ---- Spans on their way to the pipelines ---- */

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct jaeger_exchange *exchange = arg;
    struct jaeger_receiver_counters *counters = exchange->receiver->base.counters;
    assert(receipt == &exchange->receipt);
    exchange->is_pending = false;
    counter(*cells)[SIGNAL_KINDS] =
        outcome->verdict == ACCEPTED ? counters->accepted : counters->refused;
    counter_add(&cells[exchange->transport][TRACES], exchange->spans);
    /* The response may end the request at once, and the exchange with it. */
    if (exchange->request != NULL && !exchange->is_responded)
        respond(exchange, outcome);
    else
        release(exchange);
}

/* Offers what was read to the pipelines, or responds at once. */
static void offer(struct jaeger_exchange *exchange, struct reading *reading)
{
    struct jaeger_receiver *receiver = exchange->receiver;
    struct outlet *outlet = receiver->base.outlets[TRACES];
    struct buffer *request = reading->batch.request;
    struct slice message = buffer_slice(request);
    const struct otlp_figures figures = {
        .items = reading->batch.spans,
        .messages = reading->batch.messages,
    };
    if (figures.items == 0) {
        respond(exchange, &outcome_accepted);
        return;
    }
    switch (request_charge(request, message, &figures)) {
    case BUDGET_GIVEN:
        break;
    case BUDGET_TOO_SMALL:
        refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED,
               "the spans take more than the whole memory budget (service::budget_mib); send less "
               "at a time");
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
        request_pieces_offer(pieces, receiver->base.lane, outlet, exchange->client,
                             &exchange->receipt);
        return;
    }
    struct batch *batch = request_batch(TRACES, figures.items, request, message);
    batch->client = client_info_ref(exchange->client);
    outlet_offer(outlet, batch, &exchange->receipt);
    batch_unref(batch);
}

static void read_body(struct reading *reading)
{
    reading->verdict = jaeger_read(reading->form, reading->message, reading->budget,
                                   &reading->batch, reading->reason);
    if (reading->verdict != JAEGER_READ)
        return;
    const struct otlp_figures figures = {
        .items = reading->batch.spans,
        .messages = reading->batch.messages,
    };
    struct buffer *request = reading->batch.request;
    reading->pieces =
        request_pieces_cut(TRACES, request, buffer_slice(request), &figures, reading->budget);
}

/* Offers or refuses what was read, and releases what the reading holds. The request may have ended.
 */
static void end_reading(struct reading *reading)
{
    struct jaeger_exchange *exchange = reading->exchange;
    bool is_open = exchange->request != NULL && !exchange->is_responded;
    buffer_unref(reading->body);
    switch (reading->verdict) {
    case JAEGER_READ:
        if (is_open)
            offer(exchange, reading);
        request_pieces_free(reading->pieces);
        buffer_unref(reading->batch.request);
        return;
    case JAEGER_MALFORMED:
        if (is_open) {
            char text[JAEGER_REASON_BYTES_MAX + 64];
            bool is_grpc = exchange->transport == JAEGER_GRPC;
            snprintf(text, sizeof(text), "%s%s",
                     is_grpc ? "grpc: error unmarshalling request: "
                             : "Unable to process request body: ",
                     reading->reason);
            refuse(exchange, 400, STATUS_INVALID_ARGUMENT, text);
        }
        return;
    case JAEGER_OVERSIZED:
        if (is_open)
            refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED, reading->reason);
        return;
    case JAEGER_BUSY:
        if (is_open)
            refuse_busy(exchange, no_memory);
        return;
    }
}

static void on_help(struct helper_work *work)
{
    read_body((struct reading *)work);
}

static void on_helped(struct helper_work *work)
{
    struct reading *reading = (struct reading *)work;
    struct jaeger_exchange *exchange = reading->exchange;
    exchange->is_helped = false;
    bool is_gone = exchange->request == NULL;
    end_reading(reading);
    mem_free(reading);
    if (is_gone)
        release(exchange);
}

/* message is inflated and lies in body, of which a reference is taken. The lane's helper reads
 * large ones. */
static void take_plain(struct jaeger_exchange *exchange, struct buffer *body, struct slice message)
{
    const struct jaeger_receiver *receiver = exchange->receiver;
    struct reading reading;
    reading.exchange = exchange;
    reading.form = exchange->transport == JAEGER_GRPC ? JAEGER_PROTO : JAEGER_THRIFT;
    reading.budget = receiver->base.budget;
    reading.body = buffer_ref(body);
    reading.message = message;
    reading.pieces = NULL;
    if (message.size < HELPED_BYTES_MIN) {
        read_body(&reading);
        end_reading(&reading);
        return;
    }
    struct reading *helped = mem_alloc(sizeof(*helped));
    reading.work = (struct helper_work){.run = on_help, .done = on_helped};
    *helped = reading;
    exchange->is_helped = true;
    lane_help(receiver->base.lane, &helped->work);
}

static void take(struct jaeger_exchange *exchange, struct buffer *body, struct slice message,
                 enum codec codec)
{
    const struct jaeger_receiver *receiver = exchange->receiver;
    bool is_grpc = exchange->transport == JAEGER_GRPC;
    struct buffer *plain = NULL;
    char text[TEXT_MAX];
    if (codec == CODEC_NONE) {
        take_plain(exchange, body, message);
        return;
    }
    enum codec_result result = codec_inflate(receiver->codecs, codec, message,
                                             receiver->bytes_max[exchange->transport], &plain);
    const char *reason = codec_reason(receiver->codecs);
    switch (result) {
    case CODEC_OK:
        take_plain(exchange, plain, buffer_slice(plain));
        buffer_unref(plain);
        break;
    case CODEC_TOO_LARGE:
        snprintf(text, sizeof(text),
                 "grpc: received message after decompression larger than max %" PRIu64,
                 receiver->bytes_max[exchange->transport]);
        refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED, is_grpc ? text : too_large);
        break;
    case CODEC_MALFORMED:
        snprintf(text, sizeof(text), "grpc: failed to decompress the message: %s", reason);
        refuse(exchange, 400, is_grpc ? STATUS_INTERNAL : STATUS_INVALID_ARGUMENT,
               is_grpc ? text : reason);
        break;
    case CODEC_MISSING:
        /* Not the client's fault: another daemon, or this one once fixed, can read it. */
        log_error(&receiver->base.logger, "A compressed request cannot be read",
                  log_text("error", reason));
        refuse_busy(exchange, reason);
        break;
    case CODEC_NO_BUDGET:
        refuse_busy(exchange, no_memory);
        break;
    }
}

static void on_http_body(struct http_request *request, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    struct buffer *body = http_request_body(request);
    assert(exchange->receiver == arg);
    take(exchange, body, buffer_slice(body), exchange->codec);
}

static void on_grpc_body(struct http_request *request, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    struct buffer *body = http_request_body(request);
    struct grpc_message message;
    assert(exchange->receiver == arg);
    if (grpc_unframe(request, &exchange->call, buffer_slice(body), &message))
        take(exchange, body, message.bytes,
             message.is_compressed ? exchange->call.codec : CODEC_NONE);
    else
        refuse(exchange, 0, message.refusal.code, message.refusal.message);
}

const struct http_handler jaeger_grpc_handler = {
    .on_request = on_grpc_request,
    .on_body = on_grpc_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

const struct http_handler jaeger_http_handler = {
    .on_request = on_http_request,
    .on_body = on_http_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};
