/* SPDX-License-Identifier: Apache-2.0 */
/* What the zipkin receiver takes, in each form. The first byte of an input is the form. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/zipkin/zipkin_read.h"
#include "tests/complexity/work.h"

enum { PIECE_MAX = 160 };

static void run_read(struct slice input)
{
    const struct zipkin_source source = {
        .form = (enum zipkin_form)input.data[0],
        .parses_strings = true,
    };
    char reason[CONVERSION_REASON_BYTES_MAX];
    struct converted_spans batch;
    work_begin();
    enum conversion verdict =
        zipkin_read(&source, slice_of(input.data + 1, input.size - 1), NULL, &batch, reason);
    work_end();
    assert(verdict == CONVERTED);
    work_produced(batch.request->size);
    buffer_unref(batch.request);
}

/* head, then n times the piece, in which %zu is its number, then tail. */
__attribute__((format(printf, 4, 0))) static struct slice repeat(enum zipkin_form form, size_t n,
                                                                 const char *head,
                                                                 const char *piece,
                                                                 const char *tail)
{
    size_t room = 1 + strlen(head) + n * PIECE_MAX + strlen(tail) + 1;
    char *text = mem_alloc(room);
    text[0] = (char)form;
    size_t used = 1 + (size_t)snprintf(text + 1, room - 1, "%s", head);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            text[used++] = ',';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        used += (size_t)snprintf(text + used, PIECE_MAX, piece, i, i);
#pragma GCC diagnostic pop
    }
    used += (size_t)snprintf(text + used, room - used, "%s", tail);
    return slice_of(text, used);
}

static struct slice spans_of_one_service(size_t n)
{
    return repeat(ZIPKIN_V2_JSON, n, "[",
                  "{\"traceId\":\"1\",\"id\":\"1%zu\",\"localEndpoint\":{\"serviceName\":\"s\"},"
                  "\"tags\":{\"k\":\"%zu\"}}",
                  "]");
}

static struct slice spans_of_many_services(size_t n)
{
    return repeat(ZIPKIN_V2_JSON, n, "[",
                  "{\"id\":\"1%zu\",\"traceId\":\"1\",\"localEndpoint\":{\"serviceName\":\"%zu\"}}",
                  "]");
}

static struct slice tags_of_one_span(size_t n)
{
    return repeat(ZIPKIN_V2_JSON, n, "[{\"traceId\":\"1\",\"id\":\"1\",\"tags\":{",
                  "\"a key with a number %zu\":\"%zu\"", "}}]");
}

static struct slice the_same_tags(size_t n)
{
    return repeat(ZIPKIN_V1_JSON, n,
                  "[{\"traceId\":\"0000000000000001\",\"id\":\"0000000000000001\","
                  "\"binaryAnnotations\":[",
                  "{\"key\":\"k\"},{\"key\":\"j\"}", "]}]");
}

static struct slice events_of_one_span(size_t n)
{
    return repeat(ZIPKIN_V2_JSON, n, "[{\"traceId\":\"1\",\"id\":\"1\",\"annotations\":[",
                  "{\"timestamp\":1,\"value\":\"e|{\\\"k\\\":[%zu,{}]}|1\"}", "]}]");
}

static struct slice bars_in_one_event(size_t n)
{
    return repeat(ZIPKIN_V2_JSON, n,
                  "[{\"traceId\":\"1\",\"id\":\"1\",\"annotations\":[{\"timestamp\":1,\"value\":\"",
                  "|||\\n", "\"}]}]");
}

static struct slice endpoints_of_v1(size_t n)
{
    return repeat(ZIPKIN_V1_JSON, n, "[",
                  "{\"traceId\":\"0000000000000001\",\"id\":\"0000000000000001\",\"annotations\":[{"
                  "\"value\":\"cs\",\"endpoint\":{\"serviceName\":\"s%zu\"}}]}",
                  "]");
}

static struct slice spans_of_one_byte(size_t n)
{
    uint8_t *bytes = mem_zalloc(6 + 16 * n);
    const size_t count = 16 * n;
    bytes[0] = ZIPKIN_V1_THRIFT;
    bytes[1] = 0x0c;
    for (size_t i = 0; i < 4; i++)
        bytes[2 + i] = (uint8_t)(count >> (24 - 8 * i));
    return slice_of(bytes, 6 + 16 * n);
}

static struct slice annotations_of_one_byte(size_t n)
{
    static const uint8_t head[] = {ZIPKIN_V1_THRIFT, 0x0c, 0, 0, 0, 1, 0x0f, 0, 8, 0x0c};
    const size_t count = 16 * n;
    uint8_t *bytes = mem_zalloc(sizeof(head) + 4 + count + 1);
    memcpy(bytes, head, sizeof(head));
    for (size_t i = 0; i < 4; i++)
        bytes[sizeof(head) + i] = (uint8_t)(count >> (24 - 8 * i));
    return slice_of(bytes, sizeof(head) + 4 + count + 1);
}

static struct slice spans_of_protobuf(size_t n)
{
    static const char span[] = "\x0a\x22\x0a\x10"
                               "0123456789abcdef\x1a\x08"
                               "01234567\x5a\x04\x0a\0\x12\0";
    const size_t size = sizeof(span) - 1;
    uint8_t *bytes = mem_alloc(1 + n * size);
    bytes[0] = ZIPKIN_V2_PROTO;
    for (size_t i = 0; i < n; i++)
        memcpy(bytes + 1 + i * size, span, size);
    return slice_of(bytes, 1 + n * size);
}

static const struct work_stage stages[] = {
    {.name = "read Zipkin's spans", .run = run_read, .per_byte_max = 165},
};

static const struct work_shape shapes[] = {
    {"spans of one service", spans_of_one_service},
    {"spans of many services", spans_of_many_services},
    {"tags of one span", tags_of_one_span},
    {"the same tags again and again", the_same_tags},
    {"events of one span", events_of_one_span},
    {"bars in one event", bars_in_one_event},
    {"endpoints of v1", endpoints_of_v1},
    {"spans of one byte", spans_of_one_byte},
    {"annotations of one byte", annotations_of_one_byte},
    {"spans of protobuf", spans_of_protobuf},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv);
}
