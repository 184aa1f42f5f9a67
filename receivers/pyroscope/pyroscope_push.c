/* SPDX-License-Identifier: Apache-2.0 */
/* push.v1.PusherService/Push: Connect (connectrpc.com, "Protocol", unary), gRPC and gRPC-web on one
 * path, as the server has it. Every series is tried whatever became of the others. Runs on its
 * receiver's lane. */
#include "receivers/pyroscope/pyroscope_exchange.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/core/batch.h"
#include "src/net/syntax/media_type.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/push_json.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_DIGITS_MAX = 10, SHOWN_BYTES_MAX = 64, REASON_BYTES_MAX = 128 };

static const char accepted_types[] =
    "application/grpc, application/grpc+proto, application/grpc-web, application/grpc-web+proto, "
    "application/json, application/json; charset=utf-8, application/proto";

static const char grpc_json_type[] = "application/grpc+json";

static bool begins_with(struct slice text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

/* Shows a piece of what the client sent; format has one "%.*s". */
static bool refuse_showing(struct pyroscope_exchange *exchange, enum status_code code,
                           const char *format, struct slice shown)
{
    char text[256];
    int size = (int)(shown.size < SHOWN_BYTES_MAX ? shown.size : SHOWN_BYTES_MAX);
    assert(format != NULL);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), format, size, size > 0 ? (const char *)shown.data : "");
#pragma GCC diagnostic pop
    pyroscope_exchange_fail(exchange, code, text);
    return false;
}

static bool check_encoding(struct pyroscope_exchange *exchange, const char *header)
{
    struct slice encoding = http_request_header(exchange->request, header);
    const struct pyroscope_receiver_config *config = exchange->receiver->base.config;
    bool is_gzip = slice_equal_text(encoding, "gzip");
    bool is_plain = encoding.size == 0 || slice_equal_text(encoding, "identity");
    bool is_taken = (is_plain && http_server_config_takes(&config->server, "")) ||
                    (is_gzip && http_server_config_takes(&config->server, "gzip"));
    exchange->codec = is_gzip ? CODEC_GZIP : CODEC_NONE;
    return is_taken ||
           refuse_showing(exchange, STATUS_UNIMPLEMENTED,
                          "unknown compression \"%.*s\": supported encodings are gzip", encoding);
}

/* Milliseconds, at most ten digits; the deadline runs from here. */
static bool check_timeout(struct pyroscope_exchange *exchange)
{
    struct slice text = http_request_header(exchange->request, "connect-timeout-ms");
    uint64_t ms = 0;
    bool is_number = text.size <= TIMEOUT_DIGITS_MAX;
    for (size_t i = 0; is_number && i < text.size; i++) {
        is_number = text.data[i] >= '0' && text.data[i] <= '9';
        ms = ms * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (!is_number)
        return refuse_showing(exchange, STATUS_INVALID_ARGUMENT,
                              "parse timeout: found \"%.*s\" in Connect-Timeout-Ms, expected at "
                              "most ten digits",
                              text);
    if (text.size > 0 && ms == 0) {
        pyroscope_exchange_fail(exchange, STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
        return false;
    }
    if (text.size > 0)
        lane_timer_start(exchange->receiver->base.lane, &exchange->deadline, ms * NS_PER_MS);
    return true;
}

static bool check_version(struct pyroscope_exchange *exchange)
{
    struct slice version = http_request_header(exchange->request, "connect-protocol-version");
    return version.size == 0 || slice_equal_text(version, "1") ||
           refuse_showing(exchange, STATUS_INVALID_ARGUMENT,
                          "Connect-Protocol-Version must be \"1\": got \"%.*s\"", version);
}

static void connect_request(struct pyroscope_receiver *receiver, struct http_request *request,
                            bool is_json)
{
    struct pyroscope_exchange *exchange =
        pyroscope_exchange_create(receiver, request, PYROSCOPE_CONNECT);
    uint64_t bytes_max = pyroscope_receiver_bytes_max(receiver->base.config);
    exchange->is_json = is_json;
    if (check_version(exchange) && check_timeout(exchange) &&
        check_encoding(exchange, "content-encoding"))
        pyroscope_exchange_read(exchange, &(struct http_body_plan){.max_bytes = bytes_max});
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    char text[GRPC_TEXT_MAX];
    assert(exchange->receiver == arg);
    (void)arg;
    uint64_t bytes_max = pyroscope_receiver_bytes_max(exchange->receiver->base.config);
    bool is_web = exchange->protocol == PYROSCOPE_GRPC_WEB;
    uint64_t size = grpc_body_size(data, bytes_max, text);
    if (size == 0)
        pyroscope_exchange_fail(exchange, STATUS_RESOURCE_EXHAUSTED, text);
    return is_web ? 0 : size;
}

static void read_frame(struct pyroscope_exchange *exchange)
{
    const struct pyroscope_receiver *receiver = exchange->receiver;
    uint64_t bytes_max = pyroscope_receiver_bytes_max(receiver->base.config);
    pyroscope_exchange_read(exchange, &(struct http_body_plan){
                                          .max_bytes = bytes_max + GRPC_PREFIX_BYTES,
                                          .peek_bytes = GRPC_PREFIX_BYTES,
                                          .on_peek = on_peek,
                                      });
}

static void web_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    struct slice type = http_request_header(request, "content-type");
    struct pyroscope_exchange *exchange =
        pyroscope_exchange_create(receiver, request, PYROSCOPE_GRPC_WEB);
    exchange->is_proto_named = !slice_equal_text(type, "application/grpc-web");
    if (!check_encoding(exchange, "grpc-encoding"))
        return;
    exchange->call.codec = exchange->codec;
    read_frame(exchange);
}

static void grpc_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    struct grpc_call call;
    if (!grpc_accept(request, &call))
        return;
    struct pyroscope_exchange *exchange =
        pyroscope_exchange_create(receiver, request, PYROSCOPE_GRPC);
    exchange->call = call;
    exchange->is_json = begins_with(http_request_header(request, "content-type"), grpc_json_type);
    if (call.timeout_ns == 0) {
        pyroscope_exchange_fail(exchange, STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
        return;
    }
    if (call.timeout_ns != GRPC_NO_TIMEOUT)
        lane_timer_start(receiver->base.lane, &exchange->deadline, call.timeout_ns);
    read_frame(exchange);
}

static void refuse_type(struct pyroscope_receiver *receiver, struct http_request *request)
{
    assert(request != NULL);
    pyroscope_respond(
        receiver, request,
        &(struct http_response){.status = 415, .headers = {{"accept-post", accepted_types}}});
}

void pyroscope_push_request(struct pyroscope_receiver *receiver, struct http_request *request)
{
    assert(receiver->base.outlets[PROFILES] != NULL);
    struct slice type = http_request_header(request, "content-type");
    bool is_json = media_type_is(type, "application/json");
    if (!slice_equal_text(http_request_method(request), "POST"))
        pyroscope_respond(receiver, request,
                          &(struct http_response){.status = 405, .headers = {{"allow", "POST"}}});
    else if (media_type_is(type, "application/grpc-web") ||
             media_type_is(type, "application/grpc-web+proto"))
        web_request(receiver, request);
    else if (begins_with(type, "application/grpc") && http_request_is_http2(request))
        grpc_request(receiver, request);
    else if (is_json || media_type_is(type, "application/proto"))
        connect_request(receiver, request, is_json);
    else
        refuse_type(receiver, request);
}

static enum pyroscope_step refuse(struct pyroscope_exchange *exchange, const struct error *error)
{
    assert(error->text[0] != '\0');
    pyroscope_exchange_refuse(exchange, STATUS_INVALID_ARGUMENT, error->text);
    return PYROSCOPE_STEP_NONE;
}

/* One profile of a series. */
static enum pyroscope_step convert(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    struct pprof_upload upload;
    struct error error = {.text = ""};
    enum pyroscope_step step = PYROSCOPE_STEP_BUSY;
    uint64_t bytes_max = pyroscope_receiver_bytes_max(receiver->base.config);
    enum pprof_upload_verdict verdict =
        pprof_upload_open(&upload, pyroscope_exchange_gzip(exchange), receiver->base.budget,
                          exchange->profile, bytes_max, &error);
    if (verdict == PPROF_UPLOAD_REFUSED)
        step = refuse(exchange, &error);
    if (verdict == PPROF_UPLOAD_OPEN) {
        step = pyroscope_exchange_convert(exchange, &exchange->series.labels, &upload);
        pprof_upload_close(&upload);
    }
    if (step == PYROSCOPE_STEP_BUSY)
        return step;
    exchange->profile = slice_of(NULL, 0);
    pyroscope_exchange_worked(exchange, upload.plain_bytes);
    return step;
}

/* False: the labels are not those of a series, and none of its profiles is taken. */
static bool check_series(struct pyroscope_exchange *exchange)
{
    struct error error = {.text = ""};
    if (exchange->series.has_too_many_labels)
        error_set(&error, "more than %d labels in one series", SERIES_LABELS_MAX);
    else if (series_check(&exchange->series.labels, &error) &&
             upload_check_series(&exchange->series.labels, pyroscope_exchange_limits(exchange),
                                 &error))
        return true;
    pyroscope_exchange_refuse(exchange, STATUS_INVALID_ARGUMENT, error.text);
    return false;
}

static bool next_profile(struct pyroscope_exchange *exchange)
{
    assert(exchange->profile.data == NULL);
    while (!exchange->has_series || !push_next_profile(&exchange->series, &exchange->profile)) {
        if (!push_next_series(&exchange->reader, &exchange->series))
            return false;
        exchange->has_series = check_series(exchange);
    }
    return true;
}

static enum pyroscope_step push_step(struct pyroscope_exchange *exchange)
{
    assert(exchange->batch == NULL);
    if (exchange->profile.data == NULL && !next_profile(exchange))
        return PYROSCOPE_STEP_END;
    if (exchange->inflated_bytes > PYROSCOPE_INFLATED_BYTES_MAX) {
        pyroscope_exchange_refuse(exchange, STATUS_RESOURCE_EXHAUSTED,
                                  "the profiles of this request inflate to more than 256 MiB");
        return PYROSCOPE_STEP_END;
    }
    if (pyroscope_exchange_needs_help(exchange, exchange->profile.size, true))
        return PYROSCOPE_STEP_HELP;
    return convert(exchange);
}

static void take(struct pyroscope_exchange *exchange)
{
    struct push_figures figures;
    const char *reason = NULL;
    char text[256];
    assert(exchange->body != NULL);
    if (!push_request_check(exchange->message, &figures, &reason)) {
        snprintf(text, sizeof(text), "unmarshal message: %s", reason);
        pyroscope_exchange_fail(exchange, STATUS_INVALID_ARGUMENT, text);
    } else if (figures.profiles == 0) {
        pyroscope_exchange_fail(exchange, STATUS_INVALID_ARGUMENT, "no profiles received");
    } else {
        exchange->reader = wire_reader_of(exchange->message);
        pyroscope_exchange_start(exchange, push_step);
    }
}

/* What has become of a message on its way to protobuf. */
enum opening { OPENED, ANSWERED, NO_MEMORY };

static enum opening replace_body(struct pyroscope_exchange *exchange, struct buffer *body)
{
    assert(body != NULL);
    buffer_unref(exchange->body);
    exchange->body = body;
    exchange->message = buffer_slice(body);
    return OPENED;
}

/* The message is the same in protobuf then. */
static enum opening transcode(struct pyroscope_exchange *exchange)
{
    struct buffer *request = NULL;
    const char *reason = NULL;
    char text[256];
    assert(exchange->is_json);
    switch (push_json_read(exchange->message, exchange->receiver->base.budget, &request, &reason)) {
    case PUSH_JSON_READ:
        return replace_body(exchange, request);
    case PUSH_JSON_BUSY:
        return NO_MEMORY;
    case PUSH_JSON_MALFORMED:
        break;
    }
    snprintf(text, sizeof(text), "unmarshal message: %s", reason != NULL ? reason : "");
    pyroscope_exchange_fail(exchange, STATUS_INVALID_ARGUMENT, text);
    return ANSWERED;
}

static enum opening inflate(struct pyroscope_exchange *exchange)
{
    struct pyroscope_receiver *receiver = exchange->receiver;
    uint64_t bytes_max = pyroscope_receiver_bytes_max(receiver->base.config);
    struct buffer *plain = NULL;
    char text[REASON_BYTES_MAX];
    assert(exchange->codec != CODEC_NONE);
    switch (
        codec_inflate(receiver->codecs, exchange->codec, exchange->message, bytes_max, &plain)) {
    case CODEC_OK:
        exchange->codec = CODEC_NONE;
        return replace_body(exchange, plain);
    case CODEC_TOO_LARGE:
        pyroscope_exchange_fail(exchange, STATUS_RESOURCE_EXHAUSTED,
                                "message is larger than configured max after decompression");
        return ANSWERED;
    case CODEC_MALFORMED:
        snprintf(text, sizeof(text), "decompress: %s", codec_reason(receiver->codecs));
        pyroscope_exchange_fail(exchange, STATUS_INVALID_ARGUMENT, text);
        return ANSWERED;
    case CODEC_MISSING:
        log_error(&receiver->base.logger, "A compressed request cannot be read",
                  log_text("error", codec_reason(receiver->codecs)));
        pyroscope_exchange_fail(exchange, STATUS_UNAVAILABLE, codec_reason(receiver->codecs));
        return ANSWERED;
    case CODEC_NO_BUDGET:
        break;
    }
    return NO_MEMORY;
}

/* What it has done already is not done again after a wait. */
static void open_message(struct pyroscope_exchange *exchange)
{
    enum opening opening = OPENED;
    assert(exchange->body != NULL);
    if (exchange->codec != CODEC_NONE && exchange->message.size > 0)
        opening = inflate(exchange);
    if (opening == OPENED && exchange->is_json)
        opening = transcode(exchange);
    if (opening == OPENED)
        take(exchange);
    else if (opening == NO_MEMORY)
        pyroscope_exchange_wait(exchange, open_message);
}

/* The message out of its frame. False: it has answered. */
static bool unframe(struct pyroscope_exchange *exchange)
{
    struct grpc_message message;
    assert(exchange->protocol != PYROSCOPE_CONNECT);
    if (!grpc_unframe(exchange->request, &exchange->call, exchange->message, &message)) {
        pyroscope_exchange_fail(exchange, message.refusal.code, message.refusal.message);
        return false;
    }
    exchange->message = message.bytes;
    exchange->codec = message.is_compressed ? exchange->call.codec : CODEC_NONE;
    return true;
}

void pyroscope_push_body(struct pyroscope_exchange *exchange)
{
    assert(exchange->protocol != PYROSCOPE_PLAIN);
    exchange->body = buffer_ref(http_request_body(exchange->request));
    exchange->message = buffer_slice(exchange->body);
    if (exchange->protocol != PYROSCOPE_CONNECT && !unframe(exchange))
        return;
    open_message(exchange);
}
