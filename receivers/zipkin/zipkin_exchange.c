/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the zipkin receiver, from its head to its response. As in the Go collector any
 * method and path will do; "api/v1/spans" in the path means version 1. Runs on the receiver's lane.
 */
#include "receivers/zipkin/zipkin_receiver.h"

#include "receivers/shared/request_pieces.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/receipt.h"
#include "src/net/server/http_request_client.h"
#include "src/net/syntax/http_path.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024, ENCODING_SHOWN_MAX = 128 };
enum { HTTP_TOO_SLOW = 408, HTTP_TOO_LARGE = 413 };

static const char no_memory[] = "the memory budget is used up, try again later";
static const char too_large[] = "http: request body too large";

/* Lives until its request has ended, its body is read, and its receipt has resolved. */
struct zipkin_exchange {
    struct zipkin_receiver *receiver;
    struct http_request *request; /* NULL once ended */
    enum zipkin_form form;
    enum codec codec;
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
    struct zipkin_exchange *exchange;
    struct zipkin_source source;
    struct budget *budget;
    struct buffer *body;
    enum zipkin_verdict verdict;
    struct zipkin_batch batch;
    struct request_pieces *pieces; /* of a dense request; NULL: it stays whole */
    char reason[ZIPKIN_REASON_BYTES_MAX];
};

static void release(struct zipkin_exchange *exchange)
{
    struct zipkin_receiver *receiver = exchange->receiver;
    if (exchange->request != NULL || exchange->is_pending || exchange->is_helped)
        return;
    client_info_unref(exchange->client);
    mem_free(exchange);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    zipkin_receiver_check_stopped(receiver);
}

/* ---- Responses ---- */

/* Adds the headers that are configured for all responses, and sends the response. */
static void finish(const struct zipkin_receiver *receiver, struct http_request *request,
                   struct http_response *response)
{
    response->common = receiver->response_headers;
    http_respond(request, response);
}

/* An error as Go's http.Error writes it. retry_after_ns: 0: no hint. */
static void respond_text(const struct zipkin_receiver *receiver, struct http_request *request,
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

/* Responds once; later calls do nothing. */
static void respond(struct zipkin_exchange *exchange, const struct outcome *outcome)
{
    const struct zipkin_receiver *receiver = exchange->receiver;
    if (exchange->is_responded || exchange->request == NULL)
        return;
    exchange->is_responded = true;
    if (outcome->verdict == ACCEPTED) {
        struct server_cors_room room;
        struct http_response response = {.status = 202};
        server_cors_add(&receiver->cors, exchange->request, &room, &response);
        finish(receiver, exchange->request, &response);
        return;
    }
    unsigned status = outcome->is_permanent ? 400 : 503;
    uint64_t retry_after_ns = outcome->is_permanent ? 0 : outcome->retry_after_ns;
    if (exchange->http_status > 0)
        status = exchange->http_status;
    else if (outcome_is_too_large(outcome))
        status = HTTP_TOO_LARGE;
    /* Jitter: clients refused together must not retry together. */
    retry_after_ns += (uint64_t)(random_uniform() * (double)retry_after_ns);
    respond_text(receiver, exchange->request, status, outcome->message, retry_after_ns);
}

static void refuse(struct zipkin_exchange *exchange, unsigned http_status, enum status_code code,
                   const char *message)
{
    struct outcome outcome = outcome_refused(code, message);
    exchange->http_status = http_status;
    respond(exchange, &outcome);
}

static void refuse_busy(struct zipkin_exchange *exchange, const char *message)
{
    struct outcome outcome = outcome_busy(message);
    respond(exchange, &outcome);
}

/* ---- Requests until their bodies are read ---- */

static enum zipkin_form form_of(const struct http_request *request)
{
    char path[HTTP_PATH_MAX];
    struct slice type = http_request_header(request, "content-type");
    bool is_v1 =
        http_path_decode(http_request_path(request), path) && strstr(path, "api/v1/spans") != NULL;
    if (is_v1)
        return media_type_is(type, "application/x-thrift") ? ZIPKIN_V1_THRIFT : ZIPKIN_V1_JSON;
    return media_type_is(type, "application/x-protobuf") ? ZIPKIN_V2_PROTO : ZIPKIN_V2_JSON;
}

/* The receiver itself inflates what Zipkin's clients send when the server leaves bodies as they
 * are (compression_algorithms: []). */
static enum codec codec_of(const struct http_server_config *server, struct slice coding)
{
    enum codec codec = http_server_config_codec(server, coding);
    bool is_usual = slice_equal_text(coding, "gzip") || slice_equal_text(coding, "deflate") ||
                    slice_equal_text(coding, "zlib");
    return codec == CODEC_NONE && is_usual ? codec_of_http(coding) : codec;
}

static struct client_info *client_of(const struct zipkin_receiver *receiver,
                                     const struct http_request *request,
                                     const struct auth_result *result)
{
    struct client_info *info =
        receiver->config->server.listen.include_metadata
            ? http_request_client(request, false)
            : client_info_create(http_request_peer_address(request), NULL, 0);
    if (result->attributes_count == 0)
        return info;
    struct client_info *client = server_auth_client(result, info);
    client_info_unref(info);
    return client;
}

static void on_request(struct http_request *request, void *arg)
{
    struct zipkin_receiver *receiver = arg;
    struct auth_result result;
    struct server_cors_room room;
    struct http_response preflight;
    char text[TEXT_MAX];
    /* Browsers send preflight requests without credentials. */
    if (server_cors_preflight(&receiver->cors, request, &room, &preflight)) {
        finish(receiver, request, &preflight);
        return;
    }
    enum auth_verdict verdict = server_auth_ask(&receiver->auth, request, &result);
    if (verdict != AUTH_GRANTED) {
        bool is_busy = verdict == AUTH_BUSY;
        respond_text(receiver, request, is_busy ? 503 : 401, result.reason,
                     is_busy ? RETRY_AFTER_BUSY_NS : 0);
        return;
    }
    struct slice coding = http_request_header(request, "content-encoding");
    enum codec codec = codec_of(&receiver->config->server, coding);
    if (codec == CODECS) {
        int size = (int)(coding.size < ENCODING_SHOWN_MAX ? coding.size : ENCODING_SHOWN_MAX);
        snprintf(text, sizeof(text), "unsupported Content-Encoding: %.*s", size,
                 coding.size == 0 ? "" : (const char *)coding.data);
        respond_text(receiver, request, 400, text, 0);
        return;
    }
    struct zipkin_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->request = request;
    exchange->form = form_of(request);
    exchange->codec = codec;
    exchange->client = client_of(receiver, request, &result);
    receiver->exchanges++;
    http_request_set_context(request, exchange);
    http_request_read_body(request,
                           &(struct http_body_plan){.max_bytes = receiver->body_bytes_max});
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    struct zipkin_exchange *exchange = http_request_context(request);
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
        refuse(exchange, 0, STATUS_INVALID_ARGUMENT, "the request body is malformed");
        break;
    }
}

static void on_end(struct http_request *request, void *arg)
{
    struct zipkin_exchange *exchange = http_request_context(request);
    (void)arg;
    if (exchange == NULL)
        return;
    exchange->request = NULL;
    release(exchange);
}

/* ---- Spans on their way to the pipelines ---- */

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct zipkin_exchange *exchange = arg;
    struct zipkin_receiver_counters *counters = exchange->receiver->base.counters;
    assert(receipt == &exchange->receipt);
    exchange->is_pending = false;
    counter(*cells)[SIGNAL_KINDS] =
        outcome->verdict == ACCEPTED ? counters->accepted : counters->refused;
    counter_add(&cells[exchange->form][TRACES], exchange->spans);
    /* The response may end the request at once, and the exchange with it. */
    if (exchange->request != NULL && !exchange->is_responded)
        respond(exchange, outcome);
    else
        release(exchange);
}

/* Offers what was read to the pipelines, or responds at once. */
static void offer(struct zipkin_exchange *exchange, struct reading *reading)
{
    struct zipkin_receiver *receiver = exchange->receiver;
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
    reading->verdict = zipkin_read(&reading->source, buffer_slice(reading->body), reading->budget,
                                   &reading->batch, reading->reason);
    if (reading->verdict != ZIPKIN_READ)
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
    struct zipkin_exchange *exchange = reading->exchange;
    bool is_open = exchange->request != NULL && !exchange->is_responded;
    buffer_unref(reading->body);
    switch (reading->verdict) {
    case ZIPKIN_READ:
        if (is_open)
            offer(exchange, reading);
        request_pieces_free(reading->pieces);
        buffer_unref(reading->batch.request);
        return;
    case ZIPKIN_MALFORMED:
        if (is_open)
            refuse(exchange, 0, STATUS_INVALID_ARGUMENT, reading->reason);
        return;
    case ZIPKIN_OVERSIZED:
        if (is_open)
            refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED, reading->reason);
        return;
    case ZIPKIN_BUSY:
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
    struct zipkin_exchange *exchange = reading->exchange;
    exchange->is_helped = false;
    bool is_gone = exchange->request == NULL;
    end_reading(reading);
    mem_free(reading);
    if (is_gone)
        release(exchange);
}

/* body is inflated; takes a reference. The lane's helper reads large ones. */
static void take_plain(struct zipkin_exchange *exchange, struct buffer *body)
{
    const struct zipkin_receiver *receiver = exchange->receiver;
    const struct zipkin_source source = {
        .form = exchange->form,
        .parses_strings = receiver->config->parses_strings,
        .now_ns = clock_wall_ns(),
    };
    if (body->size < HELPED_BYTES_MIN) {
        struct reading reading;
        reading.exchange = exchange;
        reading.source = source;
        reading.budget = receiver->base.budget;
        reading.body = buffer_ref(body);
        reading.pieces = NULL;
        read_body(&reading);
        end_reading(&reading);
        return;
    }
    struct reading *helped = mem_alloc(sizeof(*helped));
    helped->work = (struct helper_work){.run = on_help, .done = on_helped};
    helped->exchange = exchange;
    helped->source = source;
    helped->budget = receiver->base.budget;
    helped->body = buffer_ref(body);
    helped->pieces = NULL;
    exchange->is_helped = true;
    lane_help(receiver->base.lane, &helped->work);
}

static void on_body(struct http_request *request, void *arg)
{
    struct zipkin_exchange *exchange = http_request_context(request);
    struct zipkin_receiver *receiver = arg;
    struct buffer *body = http_request_body(request);
    struct buffer *plain = NULL;
    assert(exchange->receiver == receiver);
    if (exchange->codec == CODEC_NONE) {
        take_plain(exchange, body);
        return;
    }
    enum codec_result result = codec_inflate(receiver->codecs, exchange->codec, buffer_slice(body),
                                             receiver->body_bytes_max, &plain);
    const char *reason = codec_reason(receiver->codecs);
    switch (result) {
    case CODEC_OK:
        take_plain(exchange, plain);
        buffer_unref(plain);
        break;
    case CODEC_TOO_LARGE:
        refuse(exchange, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED, too_large);
        break;
    case CODEC_MALFORMED:
        refuse(exchange, 0, STATUS_INVALID_ARGUMENT, reason);
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

const struct http_handler zipkin_handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};
