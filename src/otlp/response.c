/* SPDX-License-Identifier: Apache-2.0 */
/* Reads responses with the wire reader: known fields with the wrong type are malformed, unknown
 * ones are skipped, the last of a repeated scalar wins. Pure functions; any thread. */
#include "src/otlp/response.h"

#include "src/base/clock.h"
#include "src/otlp/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Fields of google.rpc.Status, google.protobuf.Any and google.rpc.RetryInfo. */
enum { STATUS_DETAILS = 3, ANY_TYPE_URL = 1, ANY_VALUE = 2, RETRY_DELAY = 1 };

bool otlp_response_partial_success(struct slice body, struct otlp_partial_success *ret_partial)
{
    struct otlp_partial_success partial = {0};
    struct wire_reader reader = wire_reader_of(body);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number != 1)
            continue;
        if (field.type != WIRE_BYTES)
            return false;
        /* ExportTracePartialSuccess and the like: 1 rejected_…, 2 error_message. */
        struct wire_reader inner = wire_reader_of(field.bytes);
        while (wire_read_field(&inner, &field)) {
            if (field.number > 2)
                continue;
            if (field.type != (field.number == 1 ? WIRE_VARINT : WIRE_BYTES))
                return false;
            if (field.number == 1)
                partial.rejected = (int64_t)field.number_value;
            else
                partial.message = field.bytes;
        }
        if (inner.failure != NULL)
            return false;
    }
    if (reader.failure != NULL)
        return false;
    *ret_partial = partial;
    return true;
}

/* google.rpc.Status: 1 code, 2 message, 3 details. */
bool otlp_response_status(struct slice body, struct otlp_status *ret_status)
{
    struct otlp_status status = {.body = body};
    struct wire_reader reader = wire_reader_of(body);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number > 3)
            continue;
        if (field.type != (field.number == 1 ? WIRE_VARINT : WIRE_BYTES))
            return false;
        if (field.number == 1)
            status.code = (int32_t)field.number_value;
        else if (field.number == 2)
            status.message = field.bytes;
    }
    if (reader.failure != NULL)
        return false;
    *ret_status = status;
    return true;
}

/* The last field of that number and type, or an empty slice. */
static struct slice bytes_of(struct slice message, uint32_t number)
{
    struct slice bytes = {0};
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            bytes = field.bytes;
    return reader.failure == NULL ? bytes : (struct slice){0};
}

void otlp_status_details_text(const struct otlp_status *status, char *text, size_t size)
{
    assert(size >= sizeof("[]"));
    struct wire_reader reader = wire_reader_of(status->body);
    struct wire_field field;
    size_t used = (size_t)snprintf(text, size, "[");
    const char *separator = "";
    while (wire_read_field(&reader, &field)) {
        if (field.number != STATUS_DETAILS || field.type != WIRE_BYTES)
            continue;
        struct slice url = bytes_of(field.bytes, ANY_TYPE_URL);
        size_t needed = url.size + sizeof(" type_url:\"\"]");
        if (needed > size - used)
            break;
        used += (size_t)snprintf(text + used, size - used, "%stype_url:\"%.*s\"", separator,
                                 (int)url.size, (const char *)url.data);
        separator = " ";
    }
    snprintf(text + used, size - used, "]");
}

size_t otlp_status_details(struct slice body, uint8_t *room, size_t room_size)
{
    size_t used = 0;
    struct otlp_status status;
    struct wire_reader reader = wire_reader_of(body);
    struct wire_field field;
    if (!otlp_response_status(body, &status))
        return 0;
    while (wire_read_field(&reader, &field)) {
        if (field.number != STATUS_DETAILS)
            continue;
        if (field.whole.size > room_size - used)
            return 0;
        memcpy(room + used, field.whole.data, field.whole.size);
        used += field.whole.size;
    }
    return used;
}

bool otlp_response_retry_delay(struct slice body, uint64_t *ret_delay_ns)
{
    static const char suffix[] = "/google.rpc.RetryInfo";
    struct wire_reader reader = wire_reader_of(body);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number != STATUS_DETAILS || field.type != WIRE_BYTES)
            continue;
        struct slice url = bytes_of(field.bytes, ANY_TYPE_URL);
        size_t size = strlen(suffix);
        if (url.size < size || memcmp(url.data + url.size - size, suffix, size) != 0)
            continue;
        /* google.protobuf.Duration: 1 seconds, 2 nanos; below zero is none. */
        uint64_t seconds = 0;
        uint64_t nanos = 0;
        reader = wire_reader_of(bytes_of(bytes_of(field.bytes, ANY_VALUE), RETRY_DELAY));
        while (wire_read_field(&reader, &field)) {
            if (field.number == 1 && field.type == WIRE_VARINT)
                seconds = field.number_value;
            if (field.number == 2 && field.type == WIRE_VARINT)
                nanos = field.number_value;
        }
        if (seconds > INT64_MAX || nanos >= NS_PER_S)
            *ret_delay_ns = 0;
        else
            *ret_delay_ns =
                seconds < UINT64_MAX / NS_PER_S - 1 ? seconds * NS_PER_S + nanos : UINT64_MAX;
        return true;
    }
    return false;
}
