/* SPDX-License-Identifier: Apache-2.0 */
/* Reading gRPC answers (PROTOCOL-HTTP2.md and http-grpc-status-mapping.md of grpc/grpc); texts are
 * grpc-go's. Pure functions over a value of its owner. */
#include "src/net/client/grpc_answer.h"

#include "src/base/base64.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/client/grpc_client.h"
#include "src/net/syntax/grpc_frame.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

enum {
    BODY_BYTES_MAX = GRPC_PREFIX_BYTES + RESPONSE_BYTES_MAX,
    HEADER_OVERHEAD_BYTES = 32, /* of each field, RFC 9113 §6.5.2 */
};

static const char grpc_type[] = "application/grpc";

void grpc_answer_init(struct grpc_answer *answer)
{
    assert(answer != NULL);
    *answer = (struct grpc_answer){0};
}

void grpc_answer_fini(struct grpc_answer *answer)
{
    assert(answer != NULL);
    mem_free((void *)(uintptr_t)answer->body.data);
    mem_free((void *)(uintptr_t)answer->details.data);
    mem_free(answer->message);
    grpc_answer_init(answer);
}

/* More than three digits are no status that means anything. */
static unsigned number_of(struct slice text)
{
    unsigned number = 0;
    if (text.size == 0 || text.size > 3)
        return UINT16_MAX;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return UINT16_MAX;
        number = number * 10 + text.data[i] - '0';
    }
    return number;
}

/* "%E2%82%AC" is a byte each; what is no escape stays, as gRPC demands. */
static char *percent_decode(struct slice text)
{
    size_t size = text.size < GRPC_MESSAGE_MAX ? text.size : GRPC_MESSAGE_MAX;
    char *decoded = mem_alloc(size + 1);
    size_t used = 0;
    for (size_t i = 0; i < size && used < RPC_MESSAGE_MAX; i++) {
        bool is_escape = text.data[i] == '%' && i + 2 < size;
        int high = is_escape ? http1_hex_digit(text.data[i + 1]) : -1;
        int low = is_escape ? http1_hex_digit(text.data[i + 2]) : -1;
        bool is_byte = high >= 0 && low >= 0 && high * 16 + low != 0;
        decoded[used++] = is_byte ? (char)(high * 16 + low) : (char)text.data[i];
        i += is_byte ? 2 : 0;
    }
    decoded[used] = '\0';
    return decoded;
}

/* Padded or not. Undecodable details are as good as none: the status in the header counts. */
static void take_details(struct grpc_answer *answer, struct slice text)
{
    if (text.size > GRPC_DETAILS_MAX || answer->details.data != NULL)
        return;
    size_t size = text.size;
    uint8_t *bytes = mem_alloc(size + 4);
    memcpy(bytes, text.data, size);
    while (size % 4 != 0)
        bytes[size++] = '=';
    if (base64_decode(slice_of(bytes, size), bytes, &size))
        answer->details = slice_of(bytes, size);
    else
        mem_free(bytes);
}

static void take_content_type(struct grpc_answer *answer, struct slice value)
{
    size_t size = strlen(grpc_type);
    answer->has_content_type = true;
    snprintf(answer->content_type, sizeof(answer->content_type), "%.*s",
             (int)(value.size < GRPC_CONTENT_TYPE_MAX ? value.size : GRPC_CONTENT_TYPE_MAX),
             (const char *)value.data);
    answer->is_grpc = value.size >= size && memcmp(value.data, grpc_type, size) == 0 &&
                      (value.size == size || strchr("+;", value.data[size]) != NULL);
}

bool grpc_answer_add_header(struct grpc_answer *answer, struct slice name, struct slice value)
{
    assert(name.size > 0);
    answer->header_bytes += name.size + value.size + HEADER_OVERHEAD_BYTES;
    if (answer->header_bytes > RESPONSE_HEADER_BYTES_MAX)
        return false;
    if (slice_equal_text(name, ":status")) {
        answer->http_status = number_of(value);
    } else if (slice_equal_text(name, "content-type") && answer->blocks == 0) {
        take_content_type(answer, value);
    } else if (slice_equal_text(name, "grpc-status")) {
        answer->has_status = true;
        answer->code = number_of(value);
    } else if (slice_equal_text(name, "grpc-message") && answer->message == NULL) {
        answer->message = percent_decode(value);
    } else if (slice_equal_text(name, "grpc-status-details-bin")) {
        take_details(answer, value);
    } else if (slice_equal_text(name, "grpc-encoding") && value.size <= GRPC_ENCODING_MAX) {
        memcpy(answer->encoding, value.data, value.size);
        answer->encoding_size = value.size;
    }
    return true;
}

void grpc_answer_end_headers(struct grpc_answer *answer)
{
    /* 1xx: the answer is still to come. */
    if (answer->http_status >= 100 && answer->http_status < 200)
        answer->http_status = 0;
    else
        answer->blocks++;
}

bool grpc_answer_add_data(struct grpc_answer *answer, struct slice data)
{
    size_t used = answer->body.size;
    size_t room = BODY_BYTES_MAX - used;
    size_t size = data.size < room ? data.size : room;
    answer->data_bytes += data.size;
    if (size > 0) {
        uint8_t *body = mem_try_resize((void *)(uintptr_t)answer->body.data, used + size);
        if (body != NULL) {
            memcpy(body + used, data.data, size);
            answer->body = slice_of(body, used + size);
        }
    }
    return answer->data_bytes <= RESPONSE_DRAIN_BYTES_MAX;
}

static enum status_code code_of_http(unsigned status)
{
    switch (status) {
    case 400:
        return STATUS_INTERNAL;
    case 401:
        return STATUS_UNAUTHENTICATED;
    case 403:
        return STATUS_PERMISSION_DENIED;
    case 404:
        return STATUS_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return STATUS_UNAVAILABLE;
    default:
        return STATUS_UNKNOWN;
    }
}

/* An answer that no gRPC server gave: a proxy's page, the wrong port. */
static void describe_foreign(struct grpc_answer *answer, struct grpc_result *result)
{
    char type[GRPC_CONTENT_TYPE_MAX + 64] = "";
    if (!answer->has_content_type)
        snprintf(type, sizeof(type), "malformed header: missing HTTP content-type");
    else if (!answer->is_grpc)
        snprintf(type, sizeof(type), "transport: received unexpected content-type \"%s\"",
                 answer->content_type);
    const char *separator = type[0] != '\0' ? "; " : "";
    if (answer->http_status == 200)
        snprintf(answer->words, sizeof(answer->words), "%s", type);
    else
        snprintf(answer->words, sizeof(answer->words),
                 "unexpected HTTP status code received from server: %u%s%s", answer->http_status,
                 separator, type);
    result->code = code_of_http(answer->http_status);
    result->message = answer->words;
}

/* Finds the first message of the body. */
static void unframe(const struct grpc_answer *answer, struct grpc_result *result)
{
    const uint8_t *prefix = answer->body.data;
    result->is_cut = true;
    if (answer->body.size < GRPC_PREFIX_BYTES || prefix[0] > 1)
        return;
    uint32_t size = (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 |
                    (uint32_t)prefix[3] << 8 | prefix[4];
    if (size > answer->body.size - GRPC_PREFIX_BYTES)
        return;
    result->is_cut = false;
    result->is_compressed = prefix[0] == 1;
    result->encoding = slice_of(answer->encoding, answer->encoding_size);
    result->body = slice_of(prefix + GRPC_PREFIX_BYTES, size);
}

void grpc_answer_result(struct grpc_answer *answer, struct grpc_result *ret_result)
{
    assert(answer != NULL);
    *ret_result = (struct grpc_result){.code = STATUS_UNKNOWN, .message = ""};
    if (!answer->is_grpc || (answer->http_status != 200 && !answer->has_status)) {
        describe_foreign(answer, ret_result);
    } else if (!answer->has_status) {
        ret_result->code = STATUS_INTERNAL;
        ret_result->message = "server closed the stream without sending trailers";
    } else {
        ret_result->wire_code = answer->code;
        if (answer->code <= STATUS_UNAUTHENTICATED)
            ret_result->code = (enum status_code)answer->code;
        if (answer->message != NULL)
            ret_result->message = answer->message;
        ret_result->details = answer->details;
        if (ret_result->code == STATUS_OK)
            unframe(answer, ret_result);
        return;
    }
    ret_result->wire_code = ret_result->code;
}

void grpc_answer_reset_result(struct grpc_answer *answer, uint32_t code,
                              struct grpc_result *ret_result)
{
    assert(answer != NULL);
    static const enum status_code codes[] = {
        [NGHTTP2_FLOW_CONTROL_ERROR] = STATUS_RESOURCE_EXHAUSTED,
        [NGHTTP2_REFUSED_STREAM] = STATUS_UNAVAILABLE,
        [NGHTTP2_CANCEL] = STATUS_CANCELLED,
        [NGHTTP2_ENHANCE_YOUR_CALM] = STATUS_RESOURCE_EXHAUSTED,
        [NGHTTP2_INADEQUATE_SECURITY] = STATUS_PERMISSION_DENIED,
        [NGHTTP2_HTTP_1_1_REQUIRED] = STATUS_INTERNAL,
    };
    bool is_known = code <= NGHTTP2_HTTP_1_1_REQUIRED;
    enum status_code status = is_known ? codes[code] : STATUS_UNKNOWN;
    if (is_known && status == STATUS_OK)
        status = STATUS_INTERNAL;
    snprintf(answer->words, sizeof(answer->words),
             "stream terminated by RST_STREAM with error code: %s",
             is_known ? nghttp2_http2_strerror(code) : "unknown");
    *ret_result =
        (struct grpc_result){.code = status, .wire_code = status, .message = answer->words};
}
