/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the pyroscope receiver: Connect's JSON (connectrpc.com, "Protocol"), gRPC's trailers,
 * gRPC-web's trailers in the body, and the same JSON with plain status codes for /ingest, as the
 * server gives it. Runs on its receiver's lane. */
#include "receivers/pyroscope/pyroscope_exchange.h"

#include "src/base/clock.h"
#include "src/base/text_escape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JSON_MAX = 8192, WEB_TRAILERS = 0x80 };

struct connect_code {
    const char *name;
    unsigned http_status;
};

static const struct connect_code connect_codes[] = {
    [STATUS_OK] = {"ok", 200},
    [STATUS_CANCELLED] = {"canceled", 499},
    [STATUS_UNKNOWN] = {"unknown", 500},
    [STATUS_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [STATUS_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [STATUS_NOT_FOUND] = {"not_found", 404},
    [STATUS_ALREADY_EXISTS] = {"already_exists", 409},
    [STATUS_PERMISSION_DENIED] = {"permission_denied", 403},
    [STATUS_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [STATUS_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [STATUS_ABORTED] = {"aborted", 409},
    [STATUS_OUT_OF_RANGE] = {"out_of_range", 400},
    [STATUS_UNIMPLEMENTED] = {"unimplemented", 501},
    [STATUS_INTERNAL] = {"internal", 500},
    [STATUS_UNAVAILABLE] = {"unavailable", 503},
    [STATUS_DATA_LOSS] = {"data_loss", 500},
    [STATUS_UNAUTHENTICATED] = {"unauthenticated", 401},
};

void pyroscope_respond(const struct pyroscope_receiver *receiver, struct http_request *request,
                       struct http_response *response)
{
    struct server_cors_room room;
    assert(response->status >= 200);
    if (response->status != 204) /* the answer to a preflight has all of it */
        server_cors_add(&receiver->cors, request, &room, response);
    response->common = receiver->response_headers;
    http_respond(request, response);
}

void pyroscope_respond_text(const struct pyroscope_receiver *receiver, struct http_request *request,
                            unsigned status, const char *text)
{
    assert(status >= 200);
    struct http_response response = {.status = status};
    if (text != NULL) {
        response.headers[0] = (struct http_header){"content-type", "text/plain; charset=utf-8"};
        response.headers[1] = (struct http_header){"x-content-type-options", "nosniff"};
        response.body = slice_of_text(text);
    }
    pyroscope_respond(receiver, request, &response);
}

/* The content of a JSON string. */
static size_t put_escaped(char *to, const char *text)
{
    assert(text != NULL);
    size_t used = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || *at < ' ' || *at == 0x7f)
            used += json_escape_byte(*at, to + used);
        else
            to[used++] = (char)*at;
    }
    return used;
}

/* {"code": …, "message": …} as both doors tell what went wrong. message: at most 1023 bytes. */
static size_t put_error(char to[JSON_MAX], const char *code, const char *message)
{
    char escaped[6 * 1024];
    assert(strlen(message) < 1024);
    size_t size = put_escaped(escaped, message);
    return (size_t)snprintf(to, JSON_MAX, "{\"code\":\"%s\",\"message\":\"%.*s\"}", code, (int)size,
                            escaped);
}

static void put_retry_after(struct http_response *response, const struct outcome *outcome,
                            char text[24])
{
    assert(response->headers[1].name == NULL);
    if (outcome->is_permanent || outcome->retry_after_ns == 0)
        return;
    uint64_t seconds = outcome->retry_after_ns / NS_PER_S;
    snprintf(text, 24, "%" PRIu64, seconds > 0 ? seconds : 1);
    response->headers[1] = (struct http_header){"retry-after", text};
}

/* The code that /ingest names beside a status, as the server maps it. */
static const char *code_of_status(unsigned status)
{
    switch (status) {
    case 400:
        return "invalid_argument";
    case 401:
        return "unauthenticated";
    case 403:
        return "permission_denied";
    case 408:
        return "deadline_exceeded";
    case 413:
    case 429:
        return "resource_exhausted";
    case 503:
        return "unavailable";
    default:
        return "unknown";
    }
}

static void answer_json(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    char body[JSON_MAX];
    char retry_after[24];
    const struct connect_code *code = &connect_codes[outcome->code];
    bool is_plain = exchange->protocol == PYROSCOPE_PLAIN;
    struct http_response response = {.status = code->http_status};
    assert(outcome->verdict != ACCEPTED);
    /* Who is not let in by a back-end is told that, whatever was wrong with his upload. */
    bool is_stranger =
        outcome->code == STATUS_UNAUTHENTICATED || outcome->code == STATUS_PERMISSION_DENIED;
    if (exchange->http_status > 0 && outcome->is_permanent && !is_stranger)
        response.status = exchange->http_status;
    response.headers[0] = (struct http_header){"content-type", "application/json"};
    put_retry_after(&response, outcome, retry_after);
    const char *name = is_plain ? code_of_status(response.status) : code->name;
    response.body = slice_of(body, put_error(body, name, outcome->message));
    pyroscope_respond(exchange->receiver, exchange->request, &response);
}

static void answer_accepted(struct pyroscope_exchange *exchange)
{
    struct http_response response = {.status = 200};
    if (exchange->protocol == PYROSCOPE_CONNECT) {
        response.headers[0] = (struct http_header){
            "content-type", exchange->is_json ? "application/json" : "application/proto"};
        response.body = slice_of_text(exchange->is_json ? "{}" : "");
    }
    pyroscope_respond(exchange->receiver, exchange->request, &response);
}

static const char *web_type(const struct pyroscope_exchange *exchange)
{
    assert(exchange->protocol == PYROSCOPE_GRPC_WEB);
    return exchange->is_proto_named ? "application/grpc-web+proto" : "application/grpc-web";
}

/* An empty message, which is its prefix, then a frame of trailers as text. */
static void answer_web_accepted(struct pyroscope_exchange *exchange)
{
    static const char trailers[] = "grpc-status: 0\r\n";
    enum { TRAILERS_SIZE = sizeof(trailers) - 1 };
    uint8_t body[2 * GRPC_PREFIX_BYTES + TRAILERS_SIZE] = {0};
    assert(TRAILERS_SIZE <= UINT8_MAX);
    body[GRPC_PREFIX_BYTES] = WEB_TRAILERS;
    body[2 * GRPC_PREFIX_BYTES - 1] = TRAILERS_SIZE;
    memcpy(body + 2 * GRPC_PREFIX_BYTES, trailers, TRAILERS_SIZE);
    pyroscope_respond(exchange->receiver, exchange->request,
                      &(struct http_response){
                          .status = 200,
                          .headers = {{"content-type", web_type(exchange)}},
                          .body = slice_of(body, sizeof(body)),
                      });
}

/* Trailers alone are headers. */
static void answer_web(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    char message[GRPC_MESSAGE_MAX];
    char code[12];
    if (outcome->verdict == ACCEPTED) {
        answer_web_accepted(exchange);
        return;
    }
    assert(outcome->message != NULL);
    rpc_message_to_grpc(outcome->message, message);
    snprintf(code, sizeof(code), "%u", (unsigned)outcome->code);
    pyroscope_respond(exchange->receiver, exchange->request,
                      &(struct http_response){
                          .status = 200,
                          .headers = {{"content-type", web_type(exchange)},
                                      {"grpc-status", code},
                                      {"grpc-message", message}},
                      });
}

static void answer_grpc(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    assert(exchange->protocol == PYROSCOPE_GRPC);
    if (outcome->verdict == ACCEPTED) {
        grpc_respond(exchange->request, &exchange->call, slice_of_text(""));
        return;
    }
    grpc_respond_status(exchange->request, &exchange->call,
                        &(struct rpc_status){
                            .code = outcome->code,
                            .message = outcome->message,
                            .retry_after_ns = outcome->is_permanent ? 0 : outcome->retry_after_ns,
                        });
}

void pyroscope_answer(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    assert(exchange->request != NULL);
    assert(outcome->code <= STATUS_UNAUTHENTICATED);
    char message[1024];
    struct outcome told = *outcome;
    if (outcome->message != NULL) {
        snprintf(message, sizeof(message), "%s", outcome->message);
        told.message = message;
    }
    if (exchange->protocol == PYROSCOPE_GRPC)
        answer_grpc(exchange, &told);
    else if (exchange->protocol == PYROSCOPE_GRPC_WEB)
        answer_web(exchange, &told);
    else if (outcome->verdict == ACCEPTED)
        answer_accepted(exchange);
    else
        answer_json(exchange, &told);
}
