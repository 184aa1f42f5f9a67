/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the jaeger receiver, from its head to its response, over gRPC or HTTP. Runs on the
 * receiver's lane. */
#include "receivers/jaeger/jaeger_receiver.h"

#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/timer.h"
#include "src/jaeger/jaeger_read.h"
#include "src/net/server/grpc.h"
#include "src/net/syntax/http_path.h"
#include "src/net/syntax/media_type.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024, SHOWN_MAX = 128 };
enum { HTTP_TOO_LARGE = 413 };

struct jaeger_exchange {
    struct span_exchange base; /* first */
    struct jaeger_receiver *receiver;
    enum jaeger_transport transport;
    enum codec codec; /* HTTP */
    struct grpc_call call;
    struct timer deadline; /* grpc-timeout */
};

/* ---- Responses ---- */

static void respond_http(struct span_exchange *exchange, const struct outcome *outcome,
                         uint64_t retry_after_ns)
{
    char text[TEXT_MAX];
    if (outcome->verdict == ACCEPTED) {
        span_front_respond_accepted(exchange->front, exchange->request);
        return;
    }
    unsigned status = span_exchange_status(exchange, outcome, 500);
    snprintf(text, sizeof(text), "%s%s", status == 500 ? "Cannot submit Jaeger batch: " : "",
             outcome->message);
    span_front_respond_text(exchange->front, exchange->request, status, text, retry_after_ns);
}

static void respond(struct span_exchange *base, const struct outcome *outcome,
                    uint64_t retry_after_ns)
{
    struct jaeger_exchange *exchange = (struct jaeger_exchange *)base;
    lane_timer_stop(exchange->receiver->base.lane, &exchange->deadline);
    if (exchange->transport == JAEGER_HTTP)
        respond_http(base, outcome, retry_after_ns);
    else if (outcome->verdict == ACCEPTED)
        grpc_respond(base->request, &exchange->call, slice_of("", 0));
    else
        grpc_respond_status(base->request, &exchange->call,
                            &(struct rpc_status){
                                .code = outcome->code,
                                .message = outcome->message,
                                .details = outcome->details,
                                .retry_after_ns = retry_after_ns,
                            });
}

static void refuse_compressed(struct span_exchange *base, enum codec_result result,
                              const char *reason)
{
    const struct jaeger_exchange *exchange = (const struct jaeger_exchange *)base;
    bool is_grpc = exchange->transport == JAEGER_GRPC;
    char text[TEXT_MAX];
    if (result == CODEC_TOO_LARGE) {
        snprintf(text, sizeof(text),
                 "grpc: received message after decompression larger than max %" PRIu64,
                 exchange->receiver->bytes_max[exchange->transport]);
        span_exchange_refuse(base, HTTP_TOO_LARGE, STATUS_RESOURCE_EXHAUSTED,
                             is_grpc ? text : span_exchange_too_large);
        return;
    }
    snprintf(text, sizeof(text), "grpc: failed to decompress the message: %s", reason);
    span_exchange_refuse(base, 400, is_grpc ? STATUS_INTERNAL : STATUS_INVALID_ARGUMENT,
                         is_grpc ? text : reason);
}

static const char *malformed_prefix(const struct span_exchange *base)
{
    const struct jaeger_exchange *exchange = (const struct jaeger_exchange *)base;
    return exchange->transport == JAEGER_GRPC ? "grpc: error unmarshalling request: "
                                              : "Unable to process request body: ";
}

/* ---- Requests until their bodies are read ---- */

static void on_deadline(struct timer *timer, void *arg)
{
    struct jaeger_exchange *exchange = arg;
    struct outcome outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert(timer == &exchange->deadline);
    span_exchange_respond(&exchange->base, &outcome);
}

static struct jaeger_exchange *begin(struct jaeger_receiver *receiver, struct http_request *request,
                                     enum jaeger_transport transport,
                                     const struct auth_result *result)
{
    bool is_grpc = transport == JAEGER_GRPC;
    const struct server_config *listen =
        is_grpc ? &receiver->config->grpc.listen : &receiver->config->http.server.listen;
    struct jaeger_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->transport = transport;
    timer_init(&exchange->deadline, on_deadline, exchange);
    receiver->exchanges++;
    span_exchange_begin(&exchange->base, &receiver->front, request, listen, is_grpc, result);
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
    struct slice coding = http_request_header(request, "content-encoding");
    enum codec codec = http_server_config_codec(server, coding);
    struct auth_result result;
    char text[TEXT_MAX];
    if (!span_front_admit(&receiver->front, request, codec, &result))
        return;
    unsigned fault = find_fault(request, text);
    if (fault > 0) {
        span_front_respond_text(&receiver->front, request, fault, text, 0);
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
        span_exchange_respond(&exchange->base, &outcome);
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
    if (!server_auth_admits_call(&receiver->servers[JAEGER_GRPC].auth, request, &call, &result))
        return;
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

/* ---- Spans on their way to the pipelines ---- */

static void read_spans(struct span_reading *reading)
{
    const struct jaeger_exchange *exchange = (const struct jaeger_exchange *)reading->exchange;
    enum jaeger_form form = exchange->transport == JAEGER_GRPC ? JAEGER_PROTO : JAEGER_THRIFT;
    reading->verdict =
        jaeger_read(form, reading->message, reading->budget, &reading->spans, reading->reason);
}

static void count(struct span_exchange *base, bool is_accepted)
{
    const struct jaeger_exchange *exchange = (const struct jaeger_exchange *)base;
    struct jaeger_receiver_counters *counters = exchange->receiver->base.counters;
    counter(*cells)[SIGNAL_KINDS] = is_accepted ? counters->accepted : counters->refused;
    counter_add(&cells[exchange->transport][TRACES], base->spans);
}

static void end(struct span_exchange *base)
{
    struct jaeger_exchange *exchange = (struct jaeger_exchange *)base;
    struct jaeger_receiver *receiver = exchange->receiver;
    lane_timer_stop(receiver->base.lane, &exchange->deadline);
    mem_free(exchange);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    jaeger_receiver_check_stopped(receiver);
}

static void on_http_body(struct http_request *request, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    const struct jaeger_receiver *receiver = arg;
    struct buffer *body = http_request_body(request);
    span_exchange_take(&exchange->base, body, buffer_slice(body), exchange->codec,
                       receiver->bytes_max[JAEGER_HTTP]);
}

static void on_grpc_body(struct http_request *request, void *arg)
{
    struct jaeger_exchange *exchange = http_request_context(request);
    const struct jaeger_receiver *receiver = arg;
    struct buffer *body = http_request_body(request);
    struct grpc_message message;
    if (grpc_unframe(request, &exchange->call, buffer_slice(body), &message))
        span_exchange_take(&exchange->base, body, message.bytes,
                           message.is_compressed ? exchange->call.codec : CODEC_NONE,
                           receiver->bytes_max[JAEGER_GRPC]);
    else
        span_exchange_refuse(&exchange->base, 0, message.refusal.code, message.refusal.message);
}

const struct span_exchange_ops jaeger_exchange_ops = {
    .read = read_spans,
    .respond = respond,
    .refuse_compressed = refuse_compressed,
    .count = count,
    .end = end,
    .malformed_prefix = malformed_prefix,
};

const struct http_handler jaeger_grpc_handler = {
    .on_request = on_grpc_request,
    .on_body = on_grpc_body,
    .on_body_failed = span_exchange_on_body_failed,
    .on_end = span_exchange_on_end,
};

const struct http_handler jaeger_http_handler = {
    .on_request = on_http_request,
    .on_body = on_http_body,
    .on_body_failed = span_exchange_on_body_failed,
    .on_end = span_exchange_on_end,
};
