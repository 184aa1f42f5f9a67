/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's HTTP/2 mapping, server side, unary. The order of the checks is grpc-go's. On the server's
 * lane. */
#include "src/net/server/grpc.h"

#include "src/base/clock.h"
#include "src/net/server/http_exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_DIGITS_MAX = 8, SHOWN_BYTES_MAX = 128 };

static const char content_type[] = "application/grpc";
static const char encodings[] = "identity,gzip,snappy,zstd";

struct refusal {
    unsigned http_status;
    struct rpc_status status;
};

static void respond_with(struct http_request *request, const struct grpc_call *call,
                         const struct refusal *refusal)
{
    char code[4];
    char message[GRPC_MESSAGE_MAX];
    char details[RPC_STATUS_BASE64_MAX];
    struct http_response response = {
        .status = refusal->http_status,
        .headers = {{"content-type",
                     call->is_proto_named ? "application/grpc+proto" : content_type}},
        .trailers = {{"grpc-status", code}, {"grpc-message", message}},
    };
    snprintf(code, sizeof(code), "%u", (unsigned)refusal->status.code % 100);
    rpc_message_to_grpc(refusal->status.message, message);
    if (refusal->status.code == STATUS_UNIMPLEMENTED)
        response.headers[1] = (struct http_header){"grpc-accept-encoding", encodings};
    if (refusal->status.retry_after_ns > 0 || refusal->status.details.size > 0) {
        rpc_status_to_base64(&refusal->status, details);
        response.trailers[2] = (struct http_header){"grpc-status-details-bin", details};
    }
    http_respond(request, &response);
}

/* 'text "shown"', with at most SHOWN_BYTES_MAX of what the client sent. */
static void print_showing(char message[2 * SHOWN_BYTES_MAX], const char *text, struct slice shown)
{
    int size = (int)(shown.size < SHOWN_BYTES_MAX ? shown.size : SHOWN_BYTES_MAX);
    snprintf(message, 2 * SHOWN_BYTES_MAX, "%s \"%.*s\"", text, size,
             shown.size == 0 ? "" : (const char *)shown.data);
}

/* Refuses the call with the message and a part of what the client sent; returns false. */
static bool refuse_showing(struct http_request *request, const struct grpc_call *call,
                           const struct refusal *refusal, struct slice shown)
{
    char message[2 * SHOWN_BYTES_MAX];
    print_showing(message, refusal->status.message, shown);
    respond_with(request, call,
                 &(struct refusal){
                     .http_status = refusal->http_status,
                     .status = {.code = refusal->status.code, .message = message},
                 });
    return false;
}

/* A client with another content type does not speak gRPC; it gets a readable body, too. */
static bool refuse_type(struct http_request *request, struct slice type)
{
    char text[2 * SHOWN_BYTES_MAX];
    char message[GRPC_MESSAGE_MAX];
    char body[4 * SHOWN_BYTES_MAX];
    print_showing(text, "invalid gRPC request content-type", type);
    rpc_message_to_grpc(text, message);
    int size = snprintf(body, sizeof(body),
                        "%s\nThis port accepts only gRPC; send OTLP over HTTP "
                        "(application/x-protobuf or application/json) to the port for HTTP.\n",
                        text);
    http_respond(request, &(struct http_response){
                              .status = 415,
                              .headers = {{"content-type", "text/plain; charset=utf-8"},
                                          {"grpc-status", "3"},
                                          {"grpc-message", message}},
                              .body = slice_of(body, (size_t)size),
                          });
    return false;
}

/* "100m": up to eight digits and a unit. More than 584 years is as good as no limit. */
static bool read_timeout(struct slice text, uint64_t *ret_ns)
{
    static const struct {
        char unit;
        uint64_t ns;
    } units[] = {
        {'H', 3600 * (uint64_t)NS_PER_S},
        {'M', 60 * (uint64_t)NS_PER_S},
        {'S', NS_PER_S},
        {'m', NS_PER_MS},
        {'u', NS_PER_US},
        {'n', 1},
    };
    uint64_t number = 0;
    if (text.size < 2 || text.size > TIMEOUT_DIGITS_MAX + 1)
        return false;
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text.data[text.size - 1] == units[i].unit) {
            bool is_endless = number > GRPC_NO_TIMEOUT / units[i].ns;
            *ret_ns = is_endless ? GRPC_NO_TIMEOUT : number * units[i].ns;
            return true;
        }
    }
    return false;
}

static bool is_base64(struct slice text)
{
    size_t digits = text.size;
    while (digits > 0 && text.data[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        uint8_t c = text.data[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/'))
            return false;
    }
    if (digits < text.size)
        return text.size % 4 == 0 && text.size - digits <= 2;
    return digits % 4 != 1;
}

bool grpc_accept(struct http_request *request, struct grpc_call *ret_call)
{
    *ret_call = (struct grpc_call){.timeout_ns = GRPC_NO_TIMEOUT};
    /* The checks that grpc-go makes before the method. */
    struct slice type = http_request_header(request, "content-type");
    struct slice timeout = http_request_header(request, "grpc-timeout");
    const size_t size = sizeof(content_type) - 1;
    if (type.size < size || memcmp(type.data, content_type, size) != 0)
        return refuse_type(request, type);
    struct slice rest = slice_of(type.data + size, type.size - size);
    if (rest.size > 0 && rest.data[0] != '+' && rest.data[0] != ';')
        return refuse_type(request, type);
    ret_call->is_proto_named = slice_equal_text(rest, "+proto");
    if (timeout.data != NULL && !read_timeout(timeout, &ret_call->timeout_ns))
        return refuse_showing(
            request, ret_call,
            &(struct refusal){
                400, {.code = STATUS_INTERNAL, .message = "malformed grpc-timeout: found"}},
            timeout);
    struct slice name;
    struct slice value;
    for (size_t i = 0; http_request_header_at(request, i, &name, &value); i++) {
        bool is_binary = name.size > 4 && memcmp(name.data + name.size - 4, "-bin", 4) == 0;
        if (is_binary && !is_base64(value))
            return refuse_showing(
                request, ret_call,
                &(struct refusal){400,
                                  {.code = STATUS_INTERNAL,
                                   .message = "malformed binary metadata: not base64: header"}},
                name);
    }
    struct slice method = http_request_method(request);
    if (!slice_equal_text(method, "POST"))
        return refuse_showing(
            request, ret_call,
            &(struct refusal){405,
                              {.code = STATUS_INTERNAL,
                               .message = "Received a HEADERS frame with a :method which should be "
                                          "POST: found"}},
            method);
    struct slice encoding = http_request_header(request, "grpc-encoding");
    ret_call->codec = codec_of_grpc(encoding);
    if (ret_call->codec != CODECS)
        return true;
    return refuse_showing(
        request, ret_call,
        &(struct refusal){200,
                          {.code = STATUS_UNIMPLEMENTED,
                           .message = "grpc: Decompressor is not installed for grpc-encoding"}},
        encoding);
}

bool grpc_split_path(struct http_request *request, const struct grpc_call *call,
                     struct slice *ret_service, struct slice *ret_method)
{
    struct slice path = http_request_path(request);
    struct slice name = path;
    if (name.size > 0 && name.data[0] == '/')
        name = slice_of(name.data + 1, name.size - 1);
    const uint8_t *slash = name.size == 0 ? NULL : memrchr(name.data, '/', name.size);
    if (slash == NULL)
        return refuse_showing(
            request, call,
            &(struct refusal){200,
                              {.code = STATUS_UNIMPLEMENTED, .message = "malformed method name:"}},
            path);
    *ret_service = slice_of(name.data, (size_t)(slash - name.data));
    *ret_method = slice_of(slash + 1, name.size - ret_service->size - 1);
    return true;
}

static uint32_t message_size(const uint8_t *prefix)
{
    return (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 |
           prefix[4];
}

uint64_t grpc_body_size(const uint8_t *prefix, uint64_t max_bytes, char text[GRPC_TEXT_MAX])
{
    uint32_t size = message_size(prefix);
    if (size <= max_bytes)
        return (uint64_t)size + GRPC_PREFIX_BYTES;
    snprintf(text, GRPC_TEXT_MAX,
             "grpc: received message larger than max (%" PRIu32 " vs. %" PRIu64 ")", size,
             max_bytes);
    return 0;
}

static bool refuse_message(struct grpc_message *message, enum status_code code, const char *text)
{
    assert(code != STATUS_OK);
    message->refusal = (struct rpc_status){.code = code, .message = text};
    return false;
}

bool grpc_unframe(const struct http_request *request, const struct grpc_call *call,
                  struct slice body, struct grpc_message *ret_message)
{
    if (body.size == 0 && request->size_declared == 0)
        return refuse_message(ret_message, STATUS_INTERNAL, "missing request message");
    if (body.size == 0)
        return refuse_message(ret_message, STATUS_UNKNOWN, "EOF");
    if (body.size < GRPC_PREFIX_BYTES || body.size - GRPC_PREFIX_BYTES < message_size(body.data))
        return refuse_message(ret_message, STATUS_UNKNOWN, "unexpected EOF");
    if (body.data[0] > 1)
        return refuse_message(ret_message, STATUS_INTERNAL,
                              "grpc: received unexpected payload format: the compressed flag is "
                              "neither 0 nor 1");
    ret_message->is_compressed = body.data[0] == 1;
    if (ret_message->is_compressed && call->codec == CODEC_NONE)
        return refuse_message(ret_message, STATUS_INTERNAL,
                              "grpc: compressed flag set with identity or empty encoding");
    /* Bytes after the first message are ignored, as in grpc-go. */
    ret_message->bytes = slice_of(body.data + GRPC_PREFIX_BYTES, message_size(body.data));
    return true;
}

void grpc_respond(struct http_request *request, const struct grpc_call *call, struct slice message)
{
    assert(message.size <= GRPC_REPLY_BYTES_MAX);
    uint8_t body[GRPC_PREFIX_BYTES + GRPC_REPLY_BYTES_MAX] = {0, 0, 0, (uint8_t)(message.size >> 8),
                                                              (uint8_t)message.size};
    if (message.size > 0)
        memcpy(body + GRPC_PREFIX_BYTES, message.data, message.size);
    http_respond(request,
                 &(struct http_response){
                     .status = 200,
                     .headers = {{"content-type",
                                  call->is_proto_named ? "application/grpc+proto" : content_type}},
                     .body = slice_of(body, GRPC_PREFIX_BYTES + message.size),
                     .trailers = {{"grpc-status", "0"}, {"grpc-message", ""}},
                 });
}

void grpc_respond_status(struct http_request *request, const struct grpc_call *call,
                         const struct rpc_status *status)
{
    assert(status->code != STATUS_OK);
    respond_with(request, call, &(struct refusal){.http_status = 200, .status = *status});
}
