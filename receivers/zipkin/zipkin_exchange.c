/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the zipkin receiver, from its head to its response. As in the Go collector any
 * method and path will do; "api/v1/spans" in the path means version 1. Runs on the receiver's lane.
 */
#include "receivers/zipkin/zipkin_receiver.h"

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/net/syntax/http_path.h"
#include "src/net/syntax/media_type.h"

#include <assert.h>
#include <string.h>

struct zipkin_exchange {
    struct span_exchange base; /* first */
    struct zipkin_receiver *receiver;
    enum zipkin_form form;
    enum codec codec;
};

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

static void on_request(struct http_request *request, void *arg)
{
    struct zipkin_receiver *receiver = arg;
    const struct http_server_config *server = &receiver->config->server;
    struct auth_result result;
    enum codec codec = codec_of(server, http_request_header(request, "content-encoding"));
    if (!span_front_admit(&receiver->front, request, codec, &result))
        return;
    struct zipkin_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->form = form_of(request);
    exchange->codec = codec;
    receiver->exchanges++;
    span_exchange_begin(&exchange->base, &receiver->front, request, &server->listen, false,
                        &result);
    http_request_read_body(request,
                           &(struct http_body_plan){.max_bytes = receiver->body_bytes_max});
}

static void on_body(struct http_request *request, void *arg)
{
    struct zipkin_exchange *exchange = http_request_context(request);
    const struct zipkin_receiver *receiver = arg;
    struct buffer *body = http_request_body(request);
    span_exchange_take(&exchange->base, body, buffer_slice(body), exchange->codec,
                       receiver->body_bytes_max);
}

static void read_spans(struct span_reading *reading)
{
    const struct zipkin_exchange *exchange = (const struct zipkin_exchange *)reading->exchange;
    const struct zipkin_source source = {
        .form = exchange->form,
        .parses_strings = exchange->receiver->config->parses_strings,
        .now_ns = reading->now_ns,
    };
    reading->verdict =
        zipkin_read(&source, reading->message, reading->budget, &reading->spans, reading->reason);
}

static void respond(struct span_exchange *exchange, const struct outcome *outcome,
                    uint64_t retry_after_ns)
{
    if (outcome->verdict == ACCEPTED)
        span_front_respond_accepted(exchange->front, exchange->request);
    else
        span_front_respond_text(exchange->front, exchange->request,
                                span_exchange_status(exchange, outcome, 400), outcome->message,
                                retry_after_ns);
}

static void count(struct span_exchange *base, bool is_accepted)
{
    const struct zipkin_exchange *exchange = (const struct zipkin_exchange *)base;
    struct zipkin_receiver_counters *counters = exchange->receiver->base.counters;
    counter(*cells)[SIGNAL_KINDS] = is_accepted ? counters->accepted : counters->refused;
    counter_add(&cells[exchange->form][TRACES], base->spans);
}

static void end(struct span_exchange *base)
{
    struct zipkin_receiver *receiver = ((struct zipkin_exchange *)base)->receiver;
    mem_free(base);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    zipkin_receiver_check_stopped(receiver);
}

const struct span_exchange_ops zipkin_exchange_ops = {
    .read = read_spans,
    .respond = respond,
    .count = count,
    .end = end,
};

const struct http_handler zipkin_handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = span_exchange_on_body_failed,
    .on_end = span_exchange_on_end,
};
