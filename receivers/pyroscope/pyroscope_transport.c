/* SPDX-License-Identifier: Apache-2.0 */
/* The protocols of the pyroscope receiver: its paths, requests until their bodies are open, and
 * responses. push.v1.PusherService/Push is Connect (connectrpc.com, "Protocol", unary), gRPC and
 * gRPC-web on one path; /ingest is plain HTTP with Connect's JSON for errors. Runs on the
 * receiver's lane. */
#include "receivers/pyroscope/pyroscope_receiver.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/random.h"
#include "src/base/text_escape.h"
#include "src/core/client_info.h"
#include "src/net/syntax/media_type.h"
#include "src/profiles/pyroscope/push_request.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    BODY_BYTES_FIRST = 4096,
    JSON_MAX = 8192,
    MESSAGE_MAX = 1024,
    REASON_BYTES_MAX = 128,
    SHOWN_BYTES_MAX = 64,
    TIMEOUT_DIGITS_MAX = 10,
    WEB_TRAILERS = 0x80,
};

/* ---- Responses ---- */

static const struct connect_code {
    const char *name;
    unsigned http_status;
} connect_codes[] = {
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

static void respond(const struct pyroscope_receiver *receiver, struct http_request *request,
                    struct http_response *response)
{
    struct server_cors_room room;
    if (response->status != 204) /* the response to a preflight has these headers already */
        server_cors_add(&receiver->http.cors, request, &room, response);
    response->common = receiver->http.response_headers;
    http_respond(request, response);
}

static void respond_text(const struct pyroscope_receiver *receiver, struct http_request *request,
                         unsigned status, const char *text)
{
    respond(receiver, request,
            &(struct http_response){.status = status,
                                    .headers = {{"content-type", "text/plain; charset=utf-8"},
                                                {"x-content-type-options", "nosniff"}},
                                    .body = slice_of_text(text)});
}

/* {"code": …, "message": …}, in Connect and for /ingest. */
static void respond_error(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    char body[JSON_MAX];
    char retry_after[24];
    const struct connect_code *code = &connect_codes[outcome->code];
    struct http_response response = {.status = code->http_status};
    /* A back-end's rejection of the credentials is reported, whatever else was wrong. */
    bool is_about_credentials =
        outcome->code == STATUS_UNAUTHENTICATED || outcome->code == STATUS_PERMISSION_DENIED;
    if (exchange->http_status > 0 && outcome->is_permanent && !is_about_credentials)
        response.status = exchange->http_status;
    response.headers[0] = (struct http_header){"content-type", "application/json"};
    if (!outcome->is_permanent && outcome->retry_after_ns > 0) {
        uint64_t seconds = outcome->retry_after_ns / NS_PER_S;
        snprintf(retry_after, sizeof(retry_after), "%" PRIu64, seconds > 0 ? seconds : 1);
        response.headers[1] = (struct http_header){"retry-after", retry_after};
    }
    const char *name =
        exchange->protocol == PYROSCOPE_PLAIN ? code_of_status(response.status) : code->name;
    size_t size = (size_t)snprintf(body, sizeof(body), "{\"code\":\"%s\",\"message\":\"", name);
    assert(strlen(outcome->message) < MESSAGE_MAX);
    for (const unsigned char *at = (const unsigned char *)outcome->message; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || *at < ' ' || *at == 0x7f)
            size += json_escape_byte(*at, body + size);
        else
            body[size++] = (char)*at;
    }
    body[size++] = '"';
    body[size++] = '}';
    response.body = slice_of(body, size);
    respond(exchange->receiver, exchange->request, &response);
}

static void respond_web(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    static const char trailers[] = "grpc-status: 0\r\n";
    enum { TRAILERS_SIZE = sizeof(trailers) - 1 };
    uint8_t body[2 * GRPC_PREFIX_BYTES + TRAILERS_SIZE] = {0};
    char message[GRPC_MESSAGE_MAX];
    char code[12];
    struct http_response response = {.status = 200};
    response.headers[0] =
        (struct http_header){"content-type", exchange->is_proto_named ? "application/grpc-web+proto"
                                                                      : "application/grpc-web"};
    if (outcome->verdict == ACCEPTED) { /* an empty message, then a frame of trailers as text */
        body[GRPC_PREFIX_BYTES] = WEB_TRAILERS;
        body[2 * GRPC_PREFIX_BYTES - 1] = TRAILERS_SIZE;
        memcpy(body + 2 * GRPC_PREFIX_BYTES, trailers, TRAILERS_SIZE);
        response.body = slice_of(body, sizeof(body));
    } else { /* trailers without a message are sent as headers */
        rpc_message_to_grpc(outcome->message, message);
        snprintf(code, sizeof(code), "%u", (unsigned)outcome->code);
        response.headers[1] = (struct http_header){"grpc-status", code};
        response.headers[2] = (struct http_header){"grpc-message", message};
    }
    respond(exchange->receiver, exchange->request, &response);
}

void pyroscope_respond(struct pyroscope_exchange *exchange, const struct outcome *outcome)
{
    if (exchange->is_responded || exchange->request == NULL)
        return;
    exchange->is_responded = true;
    lane_timer_stop(exchange->receiver->base.lane, &exchange->deadline);
    char message[MESSAGE_MAX];
    struct outcome result = *outcome;
    bool is_accepted = result.verdict == ACCEPTED;
    if (result.message != NULL) {
        snprintf(message, sizeof(message), "%s", result.message);
        result.message = message;
    }
    /* Spreads the retries of clients that were refused together. */
    if (result.verdict == REFUSED && result.retry_after_ns > 0)
        result.retry_after_ns += (uint64_t)(random_uniform() * (double)result.retry_after_ns);

    if (exchange->protocol == PYROSCOPE_GRPC && is_accepted) {
        grpc_respond(exchange->request, &exchange->call, slice_of_text(""));
    } else if (exchange->protocol == PYROSCOPE_GRPC) {
        grpc_respond_status(exchange->request, &exchange->call,
                            &(struct rpc_status){
                                .code = result.code,
                                .message = result.message,
                                .retry_after_ns = result.is_permanent ? 0 : result.retry_after_ns,
                            });
    } else if (exchange->protocol == PYROSCOPE_GRPC_WEB) {
        respond_web(exchange, &result);
    } else if (!is_accepted) {
        respond_error(exchange, &result);
    } else {
        struct http_response response = {.status = 200};
        if (exchange->protocol == PYROSCOPE_CONNECT) {
            response.headers[0] = (struct http_header){
                "content-type", exchange->is_json ? "application/json" : "application/proto"};
            response.body = slice_of_text(exchange->is_json ? "{}" : "");
        }
        respond(exchange->receiver, exchange->request, &response);
    }
}

static void fail(struct pyroscope_exchange *exchange, enum status_code code, const char *message)
{
    struct outcome outcome = outcome_refused(code, message);
    pyroscope_respond(exchange, &outcome);
}

/* Fails with an error that shows a part of the request; format has one "%.*s". */
static void fail_showing(struct pyroscope_exchange *exchange, enum status_code code,
                         const char *format, struct slice shown)
{
    char message[256];
    int size = (int)(shown.size < SHOWN_BYTES_MAX ? shown.size : SHOWN_BYTES_MAX);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(message, sizeof(message), format, size, size > 0 ? (const char *)shown.data : "");
#pragma GCC diagnostic pop
    fail(exchange, code, message);
}

/* ---- Bodies ---- */

/* Reads the body once there is room for it. HTTP/2 clients do not wait: their bodies are read at
 * once, into the reserve if necessary, and wait afterwards. */
static void read_body(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    uint64_t declared = http_request_size_declared(exchange->request);
    uint64_t used = budget_used(receiver->base.budget);
    uint64_t limit = budget_limit(receiver->base.budget);
    /* A body of unknown size begins with a few bytes. */
    uint64_t bytes = declared > exchange->plan.max_bytes ? BODY_BYTES_FIRST : declared;
    bool has_room = bytes >= limit || used + bytes <= limit;
    if (!has_room && http_request_is_http2(exchange->request))
        exchange->plan.budget = &receiver->reserve;
    else if (!has_room && pyroscope_wait(exchange, 0, read_body))
        return;
    http_request_read_body(exchange->request, &exchange->plan);
}

static void replace_body(struct pyroscope_exchange *exchange, struct buffer *body)
{
    buffer_unref(exchange->body);
    exchange->body = body;
    exchange->message = buffer_slice(body);
}

static void open_message(struct pyroscope_exchange *exchange);

static void wait_to_open(struct pyroscope_exchange *exchange)
{
    struct outcome outcome = outcome_busy(PYROSCOPE_NO_MEMORY);
    if (!pyroscope_wait(exchange, exchange->message.size, open_message))
        pyroscope_respond(exchange, &outcome);
}

/* Goes on with what could be opened, or responds. */
static void conclude_opening(struct pyroscope_exchange *exchange,
                             const struct pyroscope_opening *opening)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    char message[PYROSCOPE_JSON_REASON_MAX + 32];
    if (opening->plain != NULL) {
        exchange->codec = CODEC_NONE;
        replace_body(exchange, opening->plain);
    }
    if (opening->push != NULL)
        replace_body(exchange, opening->push);
    switch (opening->inflated) {
    case CODEC_OK:
        break;
    case CODEC_NO_BUDGET:
        wait_to_open(exchange);
        return;
    case CODEC_TOO_LARGE:
        fail(exchange, STATUS_RESOURCE_EXHAUSTED,
             "message is larger than configured max after decompression");
        return;
    case CODEC_MALFORMED:
        snprintf(message, REASON_BYTES_MAX, "decompress: %s", opening->reason);
        fail(exchange, STATUS_INVALID_ARGUMENT, message);
        return;
    case CODEC_MISSING:
        log_error(&receiver->base.logger, "A compressed request cannot be read",
                  log_text("error", opening->reason));
        fail(exchange, STATUS_UNAVAILABLE, opening->reason);
        return;
    }
    switch (opening->read) {
    case PUSH_JSON_READ:
        break;
    case PUSH_JSON_BUSY:
        wait_to_open(exchange);
        return;
    case PUSH_JSON_TOO_LARGE:
        exchange->http_status = 413;
        fail(exchange, STATUS_RESOURCE_EXHAUSTED,
             "the JSON text becomes more than 4 GiB, or than the whole memory budget "
             "(service::budget_mib), as protobuf; send less at a time");
        return;
    case PUSH_JSON_MALFORMED:
        snprintf(message, sizeof(message), "unmarshal message: %s", opening->json_reason);
        fail(exchange, STATUS_INVALID_ARGUMENT, message);
        return;
    }
    pyroscope_push_begin(exchange);
}

static void read_json(const struct pyroscope_exchange *exchange, struct pyroscope_opening *opening)
{
    struct slice text = opening->plain != NULL ? buffer_slice(opening->plain) : exchange->message;
    const char *reason = NULL;
    if (!exchange->is_json || opening->inflated != CODEC_OK)
        return;
    opening->read = push_json_read(text, exchange->receiver->base.budget, &opening->push, &reason);
    snprintf(opening->json_reason, sizeof(opening->json_reason), "%s",
             reason != NULL ? reason : "");
}

static bool is_coded(const struct pyroscope_exchange *exchange)
{
    return exchange->codec != CODEC_NONE && exchange->message.size > 0;
}

static struct pyroscope_exchange *exchange_of(struct helper_work *work)
{
    return (struct pyroscope_exchange *)((char *)work - offsetof(struct pyroscope_exchange, work));
}

/* On the helper. */
static void on_help(struct helper_work *work)
{
    struct pyroscope_exchange *exchange = exchange_of(work);
    struct pyroscope_opening *opening = &exchange->opening;
    struct pyroscope_receiver *receiver = exchange->receiver;
    if (is_coded(exchange))
        opening->inflated =
            codec_inflate(receiver->helper_codecs, exchange->codec, exchange->message,
                          receiver->body_bytes_max, &opening->plain);
    opening->reason = codec_reason(receiver->helper_codecs);
    read_json(exchange, opening);
}

static void on_helped(struct helper_work *work)
{
    struct pyroscope_exchange *exchange = exchange_of(work);
    struct pyroscope_opening *opening = &exchange->opening;
    assert(exchange->state == PYROSCOPE_HELPED);
    exchange->state = PYROSCOPE_OPENING;
    if (exchange->request != NULL && !exchange->is_responded) {
        conclude_opening(exchange, opening);
        return;
    }
    buffer_unref(opening->plain);
    buffer_unref(opening->push);
    if (exchange->request == NULL)
        pyroscope_exchange_end(exchange);
}

/* Inflates the message and turns JSON into protobuf; the lane's helper does what takes long. After
 * a wait it continues where it stopped. */
static void open_message(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pyroscope_opening opening = {.inflated = CODEC_OK, .read = PUSH_JSON_READ};
    bool is_long = is_coded(exchange)
                       ? !codec_inflate_little(receiver->codecs, exchange->codec, exchange->message,
                                               receiver->body_bytes_max, HELPED_PROFILES_BYTES_MIN,
                                               &opening.inflated, &opening.plain)
                       : exchange->is_json && exchange->message.size >= HELPED_PROFILES_BYTES_MIN;
    if (is_long) {
        exchange->opening =
            (struct pyroscope_opening){.inflated = CODEC_OK, .read = PUSH_JSON_READ};
        exchange->state = PYROSCOPE_HELPED;
        exchange->work = (struct helper_work){.run = on_help, .done = on_helped};
        lane_help(receiver->base.lane, &exchange->work);
        return;
    }
    opening.reason = codec_reason(receiver->codecs);
    read_json(exchange, &opening);
    conclude_opening(exchange, &opening);
}

static void on_body(struct http_request *request, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    struct grpc_message message;
    assert(exchange->receiver == arg);
    replace_body(exchange, buffer_ref(http_request_body(request)));
    if (exchange->protocol == PYROSCOPE_PLAIN) {
        pyroscope_ingest_begin(exchange);
        return;
    }
    if (exchange->protocol != PYROSCOPE_CONNECT) {
        if (!grpc_unframe(request, &exchange->call, exchange->message, &message)) {
            fail(exchange, message.refusal.code, message.refusal.message);
            return;
        }
        exchange->message = message.bytes;
        exchange->codec = message.is_compressed ? exchange->call.codec : CODEC_NONE;
    }
    open_message(exchange);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    struct outcome outcome =
        outcome_refused(STATUS_INVALID_ARGUMENT, "the request body is malformed");
    assert(exchange->receiver == arg);
    if (failure == HTTP_BODY_TOO_LARGE) {
        exchange->http_status = 413;
        outcome = outcome_refused(STATUS_RESOURCE_EXHAUSTED,
                                  "request body too large: see max_request_body_size");
    } else if (failure == HTTP_BODY_NO_BUDGET) {
        outcome = outcome_busy(PYROSCOPE_NO_MEMORY);
    } else if (failure == HTTP_BODY_TOO_SLOW) {
        exchange->http_status = 408;
        outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "the request body came too slowly");
    }
    pyroscope_respond(exchange, &outcome);
}

/* ---- Requests ---- */

/* Reads the size of a gRPC or gRPC-web message. */
static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    char reason[GRPC_TEXT_MAX];
    assert(exchange->receiver == arg);
    uint64_t size = grpc_body_size(data, exchange->receiver->body_bytes_max, reason);
    if (size == 0)
        fail(exchange, STATUS_RESOURCE_EXHAUSTED, reason);
    return exchange->protocol == PYROSCOPE_GRPC_WEB ? 0 : size;
}

static bool check_encoding(struct pyroscope_exchange *exchange, const char *header)
{
    const struct pyroscope_receiver_config *config = exchange->receiver->base.config;
    struct slice encoding = http_request_header(exchange->request, header);
    bool is_gzip = slice_equal_text(encoding, "gzip");
    bool is_plain = encoding.size == 0 || slice_equal_text(encoding, "identity");
    exchange->codec = is_gzip ? CODEC_GZIP : CODEC_NONE;
    if ((is_plain && http_server_config_takes(&config->server, "")) ||
        (is_gzip && http_server_config_takes(&config->server, "gzip")))
        return true;
    fail_showing(exchange, STATUS_UNIMPLEMENTED,
                 "unknown compression \"%.*s\": supported encodings are gzip", encoding);
    return false;
}

static bool check_connect_headers(struct pyroscope_exchange *exchange)
{
    struct slice version = http_request_header(exchange->request, "connect-protocol-version");
    struct slice timeout = http_request_header(exchange->request, "connect-timeout-ms");
    if (version.size > 0 && !slice_equal_text(version, "1")) {
        fail_showing(exchange, STATUS_INVALID_ARGUMENT,
                     "Connect-Protocol-Version must be \"1\": got \"%.*s\"", version);
        return false;
    }
    uint64_t ms = 0;
    bool is_number = timeout.size <= TIMEOUT_DIGITS_MAX;
    for (size_t i = 0; is_number && i < timeout.size; i++) {
        is_number = timeout.data[i] >= '0' && timeout.data[i] <= '9';
        ms = ms * 10 + (uint64_t)(timeout.data[i] - '0');
    }
    if (!is_number) {
        fail_showing(exchange, STATUS_INVALID_ARGUMENT,
                     "parse timeout: found \"%.*s\" in Connect-Timeout-Ms, expected at most ten "
                     "digits",
                     timeout);
        return false;
    }
    if (timeout.size > 0)
        exchange->call.timeout_ns = ms * NS_PER_MS;
    return true;
}

/* Responds to a request that gets no exchange. */
static void respond_at_once(struct pyroscope_receiver *receiver, struct http_request *request,
                            enum pyroscope_protocol protocol, const struct grpc_call *call,
                            const struct outcome *outcome)
{
    struct pyroscope_exchange exchange = {
        .receiver = receiver, .request = request, .protocol = protocol, .call = *call};
    timer_init(&exchange.deadline, NULL, NULL);
    pyroscope_respond(&exchange, outcome);
}

static void refuse_busy(struct pyroscope_receiver *receiver, struct http_request *request,
                        enum pyroscope_protocol protocol, const struct grpc_call *call)
{
    struct outcome outcome = outcome_busy(PYROSCOPE_NO_MEMORY);
    respond_at_once(receiver, request, protocol, call, &outcome);
}

static void push_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    static const char accepted_types[] =
        "application/grpc, application/grpc+proto, application/grpc-web, "
        "application/grpc-web+proto, application/json, application/json; charset=utf-8, "
        "application/proto";
    struct slice type = http_request_header(request, "content-type");
    bool is_json = media_type_is(type, "application/json");
    enum pyroscope_protocol protocol = PYROSCOPE_CONNECT;
    struct grpc_call call = {.timeout_ns = GRPC_NO_TIMEOUT};
    if (media_type_is(type, "application/grpc-web") ||
        media_type_is(type, "application/grpc-web+proto")) {
        protocol = PYROSCOPE_GRPC_WEB;
    } else if (slice_begins_with(type, "application/grpc") && http_request_is_http2(request)) {
        protocol = PYROSCOPE_GRPC;
        is_json = slice_begins_with(type, "application/grpc+json");
        if (!grpc_accept(request, &call))
            return;
    } else if (!is_json && !media_type_is(type, "application/proto")) {
        respond(
            receiver, request,
            &(struct http_response){.status = 415, .headers = {{"accept-post", accepted_types}}});
        return;
    }

    struct pyroscope_exchange *exchange = pyroscope_exchange_create(receiver, request, protocol, 0);
    if (exchange == NULL) {
        refuse_busy(receiver, request, protocol, &call);
        return;
    }
    exchange->call = call;
    exchange->is_json = is_json;
    exchange->is_proto_named = !slice_equal_text(type, "application/grpc-web");
    exchange->plan.max_bytes = receiver->body_bytes_max;
    if (protocol == PYROSCOPE_CONNECT) {
        if (!check_connect_headers(exchange))
            return;
    } else {
        exchange->plan.max_bytes += GRPC_PREFIX_BYTES;
        exchange->plan.peek_bytes = GRPC_PREFIX_BYTES;
        exchange->plan.on_peek = on_peek;
    }
    if (exchange->call.timeout_ns == 0) {
        fail(exchange, STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
        return;
    }
    if (exchange->call.timeout_ns != GRPC_NO_TIMEOUT)
        lane_timer_start(receiver->base.lane, &exchange->deadline, exchange->call.timeout_ns);
    if (protocol == PYROSCOPE_CONNECT && !check_encoding(exchange, "content-encoding"))
        return;
    if (protocol == PYROSCOPE_GRPC_WEB) {
        if (!check_encoding(exchange, "grpc-encoding"))
            return;
        exchange->call.codec = exchange->codec;
    }
    read_body(exchange);
}

static void ingest_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    struct error error = {.text = ""};
    struct pyroscope_exchange *exchange = pyroscope_exchange_create(
        receiver, request, PYROSCOPE_PLAIN, pyroscope_ingest_bytes(request));
    if (exchange == NULL) {
        refuse_busy(receiver, request, PYROSCOPE_PLAIN, &(struct grpc_call){.timeout_ns = 0});
        return;
    }
    exchange->plan.max_bytes = receiver->body_bytes_max;
    if (pyroscope_ingest_open(exchange, &error))
        read_body(exchange);
    else
        fail(exchange, STATUS_INVALID_ARGUMENT, error.text);
}

static void ready_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    respond_text(receiver, request, 200, "ready");
}

static const struct route {
    const char *path;
    bool is_post; /* the only method; else GET and HEAD */
    void (*handle)(struct pyroscope_receiver *receiver, struct http_request *request);
} routes[] = {
    {"/push.v1.PusherService/Push", true, push_request},
    {"/ingest", true, ingest_request},
    {"/pyroscope/ingest", true, ingest_request},
    {"/ready", false, ready_request},
    {"/healthz", false, ready_request},
};

/* Authentication comes first, on every path and before a byte of a body is read. */
static void on_request(struct http_request *request, void *arg)
{
    struct pyroscope_receiver *receiver = arg;
    struct server_cors_room room;
    struct http_response response;
    struct auth_result result;
    if (server_cors_preflight(&receiver->http.cors, request, &room, &response)) {
        respond(receiver, request, &response);
        return;
    }
    enum auth_verdict verdict = server_auth_ask(&receiver->http.auth, request, &result);
    if (verdict == AUTH_PENDING)
        return;
    struct slice tenant = http_request_header(request, CLIENT_TENANT_HEADER);
    if (verdict != AUTH_GRANTED || tenant.size > CLIENT_TENANT_BYTES_MAX) {
        struct slice type = http_request_header(request, "content-type");
        bool is_grpc =
            http_request_is_http2(request) && slice_begins_with(type, "application/grpc");
        struct outcome outcome =
            outcome_refused(STATUS_UNAUTHENTICATED, "tenant ID is too long: max 150 characters");
        if (verdict != AUTH_GRANTED)
            outcome = verdict == AUTH_BUSY ? outcome_busy(result.reason)
                                           : outcome_refused(STATUS_UNAUTHENTICATED, result.reason);
        respond_at_once(receiver, request, is_grpc ? PYROSCOPE_GRPC : PYROSCOPE_CONNECT,
                        &(struct grpc_call){.timeout_ns = GRPC_NO_TIMEOUT}, &outcome);
        return;
    }

    struct slice path = http_request_path(request);
    struct slice method = http_request_method(request);
    const struct route *route = routes;
    const struct route *end = routes + sizeof(routes) / sizeof(routes[0]);
    while (route < end && !slice_equal_text(path, route->path))
        route++;
    if (route == end) {
        respond_text(receiver, request, 404, "404 page not found\n");
        return;
    }
    bool is_allowed = route->is_post
                          ? slice_equal_text(method, "POST")
                          : slice_equal_text(method, "GET") || slice_equal_text(method, "HEAD");
    response = (struct http_response){.status = 405,
                                      .headers = {{"allow", route->is_post ? "POST" : "GET"}}};
    if (is_allowed)
        route->handle(receiver, request);
    else
        respond(receiver, request, &response);
}

static void on_end(struct http_request *request, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    (void)arg;
    if (exchange != NULL)
        pyroscope_exchange_end(exchange);
}

const struct http_handler pyroscope_handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};
