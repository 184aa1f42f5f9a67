/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/explore/span_request.h"

#include <string.h>

#include "src/base/buffer.h"
#include "src/otlp/nested_output.h"

static void write_big_endian(uint64_t number, uint8_t *to)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(number >> 8 * (7 - i));
}

void trace_id_of(uint64_t trace, uint8_t id[16])
{
    memset(id, 0xab, 8);
    write_big_endian(trace, id + 8);
}

uint64_t row_span_id_of(uint64_t span)
{
    uint8_t bytes[8];
    uint64_t id;
    write_big_endian(span, bytes);
    memcpy(&id, bytes, sizeof(id));
    return id;
}

static void put_attribute(struct nested_output *output, uint32_t number, const char *key,
                          struct slice value)
{
    struct nested_message pair = nested_put_begin(output, number, 1);
    nested_put_bytes(output, 1, slice_of_text(key));
    struct nested_message any = nested_put_begin(output, 2, 1);
    nested_put_bytes(output, 1, value);
    nested_put_end(output, any);
    nested_put_end(output, pair);
}

static void put_span(struct nested_output *output, const struct test_span *span)
{
    uint8_t id[16];
    struct nested_message message = nested_put_begin(output, 2, 1);
    trace_id_of(span->trace, id);
    nested_put_bytes(output, 1, slice_of(id, 16));
    write_big_endian(span->span, id);
    nested_put_bytes(output, 2, slice_of(id, 8));
    if (span->parent != 0) {
        write_big_endian(span->parent, id);
        nested_put_bytes(output, 4, slice_of(id, 8));
    }
    nested_put_bytes(output, 5, slice_of_text(span->name));
    nested_put_number(output, 6, 2);
    nested_put_fixed64(output, 7, span->start_ns);
    nested_put_fixed64(output, 8, span->start_ns + span->duration_ns);
    if (span->attribute != NULL)
        put_attribute(output, 9, "key", slice_of_text(span->attribute));
    if (span->padding > 0) {
        static uint8_t noise[64 * 1024];
        static uint64_t state = 88172645463325252U;
        size_t size = span->padding < sizeof(noise) ? span->padding : sizeof(noise);
        for (size_t i = 0; i < size; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            noise[i] = (uint8_t)('!' + state % 90);
        }
        put_attribute(output, 9, "noise", slice_of(noise, size));
    }
    for (unsigned i = 0; i < span->events; i++) {
        struct nested_message event = nested_put_begin(output, 11, 1);
        nested_put_fixed64(output, 1, span->start_ns + i);
        nested_put_bytes(output, 2, slice_of_text("event"));
        nested_put_end(output, event);
    }
    if (span->status != 0) {
        struct nested_message status = nested_put_begin(output, 15, 1);
        nested_put_number(output, 3, span->status);
        nested_put_end(output, status);
    }
    nested_put_end(output, message);
}

static bool is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

struct buffer *span_request(const struct test_span *spans, size_t count)
{
    struct nested_output output = {.budget = NULL};
    for (size_t i = 0; i < count;) {
        const char *service = spans[i].service;
        struct nested_message resource_spans = nested_put_begin(&output, 1, 3);
        if (service != NULL) {
            struct nested_message resource = nested_put_begin(&output, 1, 1);
            put_attribute(&output, 1, "service.name", slice_of_text(service));
            nested_put_end(&output, resource);
        }
        struct nested_message scope_spans = nested_put_begin(&output, 2, 3);
        for (; i < count && is_same(spans[i].service, service); i++)
            put_span(&output, &spans[i]);
        nested_put_end(&output, scope_spans);
        nested_put_end(&output, resource_spans);
    }
    struct buffer *request = buffer_create(NULL, nested_output_size(&output) + 1);
    if (output.buffer != NULL) {
        memcpy(request->data, output.buffer->data, output.buffer->size);
        request->size = output.buffer->size;
    }
    nested_output_fini(&output);
    return request;
}
