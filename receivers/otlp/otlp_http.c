/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over HTTP: one path per signal, POST, protobuf or JSON. The order of the checks and the
 * messages are the Go collector's. Runs on its receiver's lane. */
#include "receivers/otlp/otlp_receiver.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/syntax/http_path.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ENCODING_SHOWN_MAX = 128 };

static const char protobuf_type[] = "application/x-protobuf";
static const char json_type[] = "application/json";

/* Adds the headers that the user configured for all responses, and sends the response. */
static void finish(const struct otlp_receiver *receiver, struct http_request *request,
                   struct http_response *response)
{
    assert(response->status >= 200);
    response->common = receiver->servers[OTLP_HTTP].response_headers;
    http_respond(request, response);
}

/* Adds the CORS headers and sends the response. */
static void respond(const struct otlp_receiver *receiver, struct http_request *request,
                    struct http_response *response)
{
    struct server_cors_room room;
    assert(response->status >= 200);
    server_cors_add(&receiver->servers[OTLP_HTTP].cors, request, &room, response);
    finish(receiver, request, response);
}

static void respond_text(const struct otlp_receiver *receiver, struct http_request *request,
                         unsigned status, const char *text)
{
    assert(status >= 400);
    respond(receiver, request,
            &(struct http_response){
                .status = status,
                .headers = {{"content-type", "text/plain"}},
                .body = slice_of_text(text),
            });
}

static void respond_not_found(const struct otlp_receiver *receiver, struct http_request *request)
{
    respond(receiver, request,
            &(struct http_response){
                .status = 404,
                .headers = {{"content-type", "text/plain; charset=utf-8"},
                            {"x-content-type-options", "nosniff"}},
                .body = slice_of_text("404 page not found\n"),
            });
}

/* google.rpc.Status in the encoding of the request; JSON when it has none. */
static void respond_status(const struct otlp_receiver *receiver, struct http_request *request,
                           unsigned http_status, const struct rpc_status *status,
                           enum otlp_encoding encoding)
{
    assert(http_status >= 400);
    char text[RPC_STATUS_JSON_MAX];
    uint8_t bytes[RPC_STATUS_BYTES_MAX];
    char retry_after[24];
    struct http_response response = {.status = http_status};
    if (encoding == OTLP_PROTOBUF) {
        response.headers[0] = (struct http_header){"content-type", protobuf_type};
        response.body = slice_of(bytes, rpc_status_to_protobuf(status, bytes));
    } else {
        response.headers[0] = (struct http_header){"content-type", json_type};
        response.body = slice_of(text, rpc_status_to_json(status, text));
    }
    if (status->retry_after_ns > 0) {
        uint64_t seconds = status->retry_after_ns / NS_PER_S;
        snprintf(retry_after, sizeof(retry_after), "%" PRIu64, seconds > 0 ? seconds : 1);
        response.headers[1] = (struct http_header){"retry-after", retry_after};
    }
    respond(receiver, request, &response);
}

/* Content-Type without parameters; OTLP_NO_ENCODING for anything else. */
static enum otlp_encoding encoding_of(const struct http_request *request)
{
    struct slice type = http_request_header(request, "content-type");
    if (media_type_is(type, protobuf_type))
        return OTLP_PROTOBUF;
    return media_type_is(type, json_type) ? OTLP_JSON : OTLP_NO_ENCODING;
}

/* Refuses a request before its body is read. */
static void refuse_early(const struct otlp_receiver *receiver, struct http_request *request,
                         unsigned http_status, const struct rpc_status *status)
{
    assert(http_status >= 400);
    enum otlp_encoding encoding = encoding_of(request);
    bool has_type = http_request_header(request, "content-type").size > 0;
    if (encoding != OTLP_NO_ENCODING || !has_type) {
        respond_status(receiver, request, http_status, status, encoding);
        return;
    }
    /* Go cannot marshal the error for an unknown content type, and responds with this instead. */
    respond(receiver, request,
            &(struct http_response){
                .status = 500,
                .headers = {{"content-type", json_type}},
                .body = slice_of_text(
                    "{\"code\": 13, \"message\": \"failed to marshal error message\"}"),
            });
}

/* Finds the signal of the path. False: there is none, and it has responded. */
static bool find_signal(const struct otlp_receiver *receiver, struct http_request *request,
                        enum signal_kind *ret_signal)
{
    char asked[HTTP_PATH_MAX];
    char clean[HTTP_PATH_MAX];
    char path[HTTP_PATH_MAX];
    struct slice text = http_request_path(request);
    if (!http_path_decode(text, path)) {
        respond_not_found(receiver, request);
        return false;
    }
    assert(text.size < HTTP_PATH_MAX);
    snprintf(asked, sizeof(asked), "%.*s", (int)text.size, (const char *)text.data);
    http_path_clean(asked, clean);
    if (strcmp(asked, clean) != 0) {
        char location[HTTP_PATH_ESCAPED_MAX];
        if (http_path_escape(clean, http_request_query(request), location))
            respond(receiver, request,
                    &(struct http_response){.status = 307, .headers = {{"location", location}}});
        else
            respond_not_found(receiver, request);
        return false;
    }
    for (enum signal_kind signal = TRACES; signal < SIGNAL_KINDS; signal++) {
        if (receiver->base.outlets[signal] != NULL &&
            strcmp(path, receiver->url_paths[signal]) == 0) {
            *ret_signal = signal;
            return true;
        }
    }
    respond_not_found(receiver, request);
    return false;
}

static void on_request(struct http_request *request, void *arg)
{
    struct otlp_receiver *receiver = arg;
    assert(receiver->config->has_http);
    struct auth_result result;
    enum signal_kind signal;
    /* Browsers send a preflight request first, without credentials. */
    struct server_cors_room room;
    struct http_response preflight;
    if (server_cors_preflight(&receiver->servers[OTLP_HTTP].cors, request, &room, &preflight)) {
        finish(receiver, request, &preflight);
        return;
    }
    enum auth_verdict verdict =
        server_auth_ask(&receiver->servers[OTLP_HTTP].auth, request, &result);
    if (verdict == AUTH_PENDING)
        return;
    if (verdict != AUTH_GRANTED) {
        bool is_busy = verdict == AUTH_BUSY;
        const struct rpc_status status = {
            .code = is_busy ? STATUS_UNAVAILABLE : STATUS_UNAUTHENTICATED,
            .message = result.reason,
            .retry_after_ns = is_busy ? RETRY_AFTER_BUSY_NS : 0,
        };
        refuse_early(receiver, request, is_busy ? 503 : 401, &status);
        return;
    }
    struct slice coding = http_request_header(request, "content-encoding");
    enum codec codec = http_server_config_codec(&receiver->config->http.server, coding);
    if (codec == CODECS) {
        char text[ENCODING_SHOWN_MAX + 64];
        int size = (int)(coding.size < ENCODING_SHOWN_MAX ? coding.size : ENCODING_SHOWN_MAX);
        snprintf(text, sizeof(text), "unsupported Content-Encoding: %.*s", size,
                 coding.size == 0 ? "" : (const char *)coding.data);
        refuse_early(receiver, request, 400,
                     &(struct rpc_status){.code = STATUS_INVALID_ARGUMENT, .message = text});
        return;
    }
    if (!find_signal(receiver, request, &signal))
        return;
    if (!slice_equal_text(http_request_method(request), "POST")) {
        respond_text(receiver, request, 405, "405 method not allowed, supported: [POST]");
        return;
    }
    enum otlp_encoding encoding = encoding_of(request);
    if (encoding == OTLP_NO_ENCODING) {
        respond_text(receiver, request, 415,
                     "415 unsupported media type, supported: [application/json, "
                     "application/x-protobuf]");
        return;
    }
    struct otlp_exchange *exchange = otlp_exchange_create(receiver, request, OTLP_HTTP);
    exchange->signal = signal;
    exchange->encoding = encoding;
    exchange->codec = codec;
    if (!otlp_exchange_identify(exchange, &result))
        return;
    http_request_read_body(
        request,
        &(struct http_body_plan){.max_bytes = otlp_config_body_bytes_max(&receiver->config->http)});
}

static void on_body(struct http_request *request, void *arg)
{
    struct otlp_exchange *exchange = http_request_context(request);
    struct otlp_receiver *receiver = arg;
    struct buffer *body = http_request_body(request);
    assert(exchange->receiver == receiver);
    otlp_exchange_take(exchange, body, buffer_slice(body), exchange->codec,
                       otlp_config_body_bytes_max(&receiver->config->http));
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    struct otlp_exchange *exchange = http_request_context(request);
    assert(exchange->receiver == arg);
    struct outcome outcome = otlp_body_failure(failure, "http: request body too large");
    if (failure == HTTP_BODY_TOO_LARGE)
        exchange->http_status = OTLP_HTTP_TOO_LARGE;
    else if (failure == HTTP_BODY_TOO_SLOW)
        exchange->http_status = OTLP_HTTP_TOO_SLOW;
    otlp_exchange_respond(exchange, &outcome);
}

void otlp_http_respond(struct otlp_exchange *exchange, const struct outcome *outcome)
{
    assert(exchange->transport == OTLP_HTTP);
    if (outcome->verdict == ACCEPTED) {
        uint8_t body[OTLP_RESPONSE_BYTES_MAX];
        struct buffer *json = NULL;
        struct http_response response = {
            .status = 200,
            .headers = {{"content-type", protobuf_type}},
            .body = slice_of(body, otlp_response_encode(exchange, outcome, body)),
        };
        if (exchange->encoding == OTLP_JSON) {
            json = json_write(otlp_response(exchange->signal), response.body, NULL);
            response.headers[0].value = json_type;
            response.body = json != NULL ? buffer_slice(json) : slice_of_text("{}");
        }
        respond(exchange->receiver, exchange->request, &response);
        buffer_unref(json);
        return;
    }
    struct rpc_status status = {
        .code = outcome->code,
        .message = outcome->message,
        .details = outcome->details,
        .retry_after_ns = outcome->is_permanent ? 0 : outcome->retry_after_ns,
    };
    unsigned http_status =
        exchange->http_status > 0 ? exchange->http_status : rpc_code_to_http(outcome->code);
    if (outcome_is_too_large(outcome))
        http_status = OTLP_HTTP_TOO_LARGE;
    /* The Go collector's status for a body that is too large. */
    if (http_status == OTLP_HTTP_TOO_LARGE)
        status.code = STATUS_INVALID_ARGUMENT;
    respond_status(exchange->receiver, exchange->request, http_status, &status, exchange->encoding);
}

const struct http_handler otlp_http_handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = otlp_exchange_on_end,
};
