/* SPDX-License-Identifier: Apache-2.0 */
/* Reads gRPC responses (PROTOCOL-HTTP2.md and http-grpc-status-mapping.md of grpc/grpc); messages
 * are grpc-go's. Pure functions over a value of its owner. */
#include "src/net/client/grpc_response.h"

#include "src/base/base64.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
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

void grpc_response_init(struct grpc_response *response, struct budget *budget)
{
    *response = (struct grpc_response){.body.charge.budget = budget};
}

void grpc_response_fini(struct grpc_response *response)
{
    response_body_fini(&response->body);
    mem_free((void *)(uintptr_t)response->details.data);
    mem_free(response->message);
    grpc_response_init(response, response->body.charge.budget);
}

/* UINT16_MAX if it is not a number of up to three digits. */
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

bool grpc_response_add_header(struct grpc_response *response, struct slice name, struct slice value)
{
    assert(name.size > 0);
    response->header_bytes += name.size + value.size + HEADER_OVERHEAD_BYTES;
    if (response->header_bytes > RESPONSE_HEADER_BYTES_MAX)
        return false;
    if (slice_equal_text(name, ":status")) {
        response->http_status = number_of(value);
    } else if (slice_equal_text(name, "content-type") && response->blocks == 0) {
        size_t size = strlen(grpc_type);
        response->has_content_type = true;
        snprintf(response->content_type, sizeof(response->content_type), "%.*s",
                 (int)(value.size < GRPC_CONTENT_TYPE_MAX ? value.size : GRPC_CONTENT_TYPE_MAX),
                 (const char *)value.data);
        response->is_grpc = value.size >= size && memcmp(value.data, grpc_type, size) == 0 &&
                            (value.size == size || strchr("+;", value.data[size]) != NULL);
    } else if (slice_equal_text(name, "grpc-status")) {
        response->has_status = true;
        response->code = number_of(value);
    } else if (slice_equal_text(name, "grpc-message") && response->message == NULL) {
        /* Escapes such as "%E2" are decoded; other percent signs stay, as gRPC demands. */
        size_t size = value.size < GRPC_MESSAGE_MAX ? value.size : GRPC_MESSAGE_MAX;
        char *decoded = mem_alloc(size + 1);
        size_t used = 0;
        for (size_t i = 0; i < size && used < RPC_MESSAGE_MAX; i++) {
            bool is_escape = value.data[i] == '%' && i + 2 < size;
            int high = is_escape ? http1_hex_digit(value.data[i + 1]) : -1;
            int low = is_escape ? http1_hex_digit(value.data[i + 2]) : -1;
            bool is_byte = high >= 0 && low >= 0 && high * 16 + low != 0;
            decoded[used++] = is_byte ? (char)(high * 16 + low) : (char)value.data[i];
            i += is_byte ? 2 : 0;
        }
        decoded[used] = '\0';
        response->message = decoded;
    } else if (slice_equal_text(name, "grpc-status-details-bin")) {
        /* With or without padding. Details that cannot be decoded are ignored: the status in the
         * header counts. */
        if (value.size <= GRPC_DETAILS_MAX && response->details.data == NULL) {
            size_t size = value.size;
            uint8_t *bytes = mem_alloc(size + 4);
            memcpy(bytes, value.data, size);
            while (size % 4 != 0)
                bytes[size++] = '=';
            if (base64_decode(slice_of(bytes, size), bytes, &size))
                response->details = slice_of(bytes, size);
            else
                mem_free(bytes);
        }
    } else if (slice_equal_text(name, "grpc-encoding") && value.size <= GRPC_ENCODING_MAX) {
        memcpy(response->encoding, value.data, value.size);
        response->encoding_size = value.size;
    }
    return true;
}

void grpc_response_end_headers(struct grpc_response *response)
{
    /* 1xx: the response follows. */
    if (response->http_status >= 100 && response->http_status < 200)
        response->http_status = 0;
    else
        response->blocks++;
}

bool grpc_response_add_data(struct grpc_response *response, struct slice data)
{
    return response_body_add(&response->body, data, BODY_BYTES_MAX);
}

/* All others are UNKNOWN. */
static const struct {
    unsigned status;
    enum status_code code;
} codes_of_http[] = {
    {400, STATUS_INTERNAL},      {401, STATUS_UNAUTHENTICATED}, {403, STATUS_PERMISSION_DENIED},
    {404, STATUS_UNIMPLEMENTED}, {429, STATUS_UNAVAILABLE},     {502, STATUS_UNAVAILABLE},
    {503, STATUS_UNAVAILABLE},   {504, STATUS_UNAVAILABLE},
};

void grpc_response_result(struct grpc_response *response, struct grpc_result *ret_result)
{
    *ret_result = (struct grpc_result){.code = STATUS_UNKNOWN, .message = ""};
    if (!response->is_grpc || (response->http_status != 200 && !response->has_status)) {
        /* A response that is not gRPC: a proxy's page, the wrong port. */
        char type[GRPC_CONTENT_TYPE_MAX + 64] = "";
        if (!response->has_content_type)
            snprintf(type, sizeof(type), "malformed header: missing HTTP content-type");
        else if (!response->is_grpc)
            snprintf(type, sizeof(type), "transport: received unexpected content-type \"%s\"",
                     response->content_type);
        const char *separator = type[0] != '\0' ? "; " : "";
        if (response->http_status == 200)
            snprintf(response->text, sizeof(response->text), "%s", type);
        else
            snprintf(response->text, sizeof(response->text),
                     "unexpected HTTP status code received from server: %u%s%s",
                     response->http_status, separator, type);
        for (size_t i = 0; i < sizeof(codes_of_http) / sizeof(codes_of_http[0]); i++)
            if (codes_of_http[i].status == response->http_status)
                ret_result->code = codes_of_http[i].code;
        ret_result->message = response->text;
    } else if (!response->has_status) {
        ret_result->code = STATUS_INTERNAL;
        ret_result->message = "server closed the stream without sending trailers";
    } else {
        ret_result->wire_code = response->code;
        if (response->code <= STATUS_UNAUTHENTICATED)
            ret_result->code = (enum status_code)response->code;
        if (response->message != NULL)
            ret_result->message = response->message;
        ret_result->details = response->details;
        if (ret_result->code == STATUS_OK) {
            /* The first message of the body. */
            const uint8_t *prefix = response->body.data;
            ret_result->is_cut = true;
            if (response->body.size >= GRPC_PREFIX_BYTES && prefix[0] <= 1) {
                uint32_t size = (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 |
                                (uint32_t)prefix[3] << 8 | prefix[4];
                if (size <= response->body.size - GRPC_PREFIX_BYTES) {
                    ret_result->is_cut = false;
                    ret_result->is_compressed = prefix[0] == 1;
                    ret_result->encoding = slice_of(response->encoding, response->encoding_size);
                    ret_result->body = slice_of(prefix + GRPC_PREFIX_BYTES, size);
                }
            }
        }
        return;
    }
    ret_result->wire_code = ret_result->code;
}

void grpc_response_reset_result(struct grpc_response *response, uint32_t code,
                                struct grpc_result *ret_result)
{
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
    snprintf(response->text, sizeof(response->text),
             "stream terminated by RST_STREAM with error code: %s",
             is_known ? nghttp2_http2_strerror(code) : "unknown");
    *ret_result =
        (struct grpc_result){.code = status, .wire_code = status, .message = response->text};
}
