/* SPDX-License-Identifier: Apache-2.0 */
/* What the jaeger receiver takes, in each form. The first byte of an input is the form. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/jaeger/jaeger_read.h"
#include "tests/complexity/work.h"

/* The head of a PostSpansRequest with a batch, both with lengths of five bytes. */
enum { LENGTH_BYTES = 5, DIGITS = 8 };

static void run_read(struct slice input)
{
    char reason[CONVERSION_REASON_BYTES_MAX];
    struct converted_spans batch;
    work_begin();
    enum conversion verdict =
        jaeger_read((enum jaeger_form)input.data[0], slice_of(input.data + 1, input.size - 1), NULL,
                    &batch, reason);
    work_end();
    assert(verdict == CONVERTED);
    work_produced(batch.request->size);
    buffer_unref(batch.request);
}

static uint8_t *put_length(uint8_t *at, size_t size)
{
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        *at++ = (uint8_t)((size >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    return at;
}

/* Messages in each other, then n times the piece, whose last bytes are its number in digits. */
static struct slice nest(const char *tags, size_t n, const char *piece, size_t piece_size,
                         bool is_numbered)
{
    size_t levels = strlen(tags);
    size_t size = n * piece_size;
    uint8_t *bytes = mem_alloc(1 + levels * (1 + LENGTH_BYTES) + size + 1);
    uint8_t *at = bytes;
    char digits[DIGITS + 1];
    *at++ = JAEGER_PROTO;
    for (size_t i = 0; i < levels; i++) {
        *at++ = (uint8_t)tags[i];
        at = put_length(at, size + (levels - 1 - i) * (1 + LENGTH_BYTES));
    }
    for (size_t i = 0; i < n; i++, at += piece_size) {
        memcpy(at, piece, piece_size);
        snprintf(digits, sizeof(digits), "%08u", (unsigned)(i % 100000000));
        if (is_numbered)
            memcpy(at + piece_size - DIGITS, digits, DIGITS);
    }
    return slice_of(bytes, (size_t)(at - bytes));
}

static struct slice spans(size_t n)
{
    static const char span[] = "\x0a\x0a\x1a\x08"
                               "12345678";
    return nest("\x0a", n, span, sizeof(span) - 1, true);
}

static struct slice processes(size_t n)
{
    static const char span[] = "\x0a\x0c\x52\x0a\x0a\x08"
                               "12345678";
    return nest("\x0a", n, span, sizeof(span) - 1, true);
}

/* A batch with a process of 8 n bytes and n times the spans of the piece. */
static struct slice beside_a_large_process(size_t n, const char *piece, size_t piece_size)
{
    size_t name_size = 8 * n;
    size_t process_size = 1 + LENGTH_BYTES + name_size;
    size_t batch_size = n * piece_size + 1 + LENGTH_BYTES + process_size;
    uint8_t *bytes = mem_alloc(2 + LENGTH_BYTES + batch_size);
    uint8_t *at = bytes;
    *at++ = JAEGER_PROTO;
    *at++ = 0x0a;
    at = put_length(at, batch_size);
    for (size_t i = 0; i < n; i++, at += piece_size)
        memcpy(at, piece, piece_size);
    *at++ = 0x12;
    at = put_length(at, process_size);
    *at++ = 0x0a;
    at = put_length(at, name_size);
    memset(at, 'p', name_size);
    return slice_of(bytes, (size_t)(at + name_size - bytes));
}

static struct slice spans_of_a_large_process(size_t n)
{
    static const char span[] = "\x0a\x02\x28";
    return beside_a_large_process(n, span, sizeof(span));
}

static struct slice every_second_span_has_its_own(size_t n)
{
    static const char spans[] = "\x0a\x02\x28\0\x0a\x02\x52";
    return beside_a_large_process(n, spans, sizeof(spans));
}

static struct slice scopes_of_a_large_process(size_t n)
{
    static const char spans[] = "\x0a\x02\x28\0\x0a\x16\x42\x14\x0a\x0f"
                                "otel.scope.name"
                                "\x1a\x01s";
    return beside_a_large_process(n, spans, sizeof(spans) - 1);
}

static struct slice tags_of_one_span(size_t n)
{
    static const char tag[] = "\x42\x0a\x0a\x08"
                              "12345678";
    return nest("\x0a\x0a", n, tag, sizeof(tag) - 1, true);
}

static struct slice the_same_tags(size_t n)
{
    static const char tag[] = "\x42\x0a\x0a\x08"
                              "12345678";
    return nest("\x0a\x0a", n, tag, sizeof(tag) - 1, false);
}

static struct slice empty_tags(size_t n)
{
    return nest("\x0a\x0a", 8 * n, "\x42\0", 2, false);
}

static struct slice empty_logs(size_t n)
{
    return nest("\x0a\x0a", 8 * n, "\x4a\0", 2, false);
}

static struct slice empty_references(size_t n)
{
    return nest("\x0a\x0a", 8 * n, "\x22\0", 2, false);
}

static struct slice fields_of_one_log(size_t n)
{
    static const char tag[] = "\x12\x0a\x0a\x08"
                              "12345678";
    return nest("\x0a\x0a\x4a", n, tag, sizeof(tag) - 1, true);
}

static struct slice spans_of_thrift(size_t n)
{
    static const uint8_t head[] = {JAEGER_THRIFT, 12, 0, 1, 11, 0, 1, 0, 0, 0, 0, 0, 15, 0, 2, 12};
    static const char span[] =
        "\x0a\0\x01\0\0\0\0\0\0\0\x01\x0a\0\x02\0\0\0\0\0\0\0\0\x0a\0\x03\0\0\0\0\0\0\0\x02"
        "\x0a\0\x04\0\0\0\0\0\0\0\0\x0b\0\x05\0\0\0\x01n\x08\0\x07\0\0\0\x01"
        "\x0a\0\x08\0\0\0\0\0\0\0\x01\x0a\0\x09\0\0\0\0\0\0\0\x01\0";
    const size_t size = sizeof(span) - 1;
    uint8_t *bytes = mem_alloc(sizeof(head) + 4 + n * size + 1);
    uint8_t *at = bytes;
    memcpy(at, head, sizeof(head));
    at += sizeof(head);
    for (size_t i = 0; i < 4; i++)
        *at++ = (uint8_t)(n >> (24 - 8 * i));
    for (size_t i = 0; i < n; i++, at += size)
        memcpy(at, span, size);
    *at++ = 0;
    return slice_of(bytes, (size_t)(at - bytes));
}

static struct slice spans_of_a_compact_call(size_t n)
{
    static const char head[] = "\x82\x81\x01\x09"
                               "emitBatch"
                               "\x1c\x1c\x18\0\0\x19\xfc";
    static const char span[] = "\x16\x02\x16\0\x16\x04\x16\0\x18\0\x25\x02\x16\x02\x16\x02";
    const size_t size = sizeof(span); /* with the zero that ends it */
    uint8_t *bytes = mem_alloc(1 + sizeof(head) - 1 + LENGTH_BYTES + n * size + 2);
    uint8_t *at = bytes;
    *at++ = JAEGER_COMPACT_CALL;
    memcpy(at, head, sizeof(head) - 1);
    at = put_length(at + sizeof(head) - 1, n);
    for (size_t i = 0; i < n; i++, at += size)
        memcpy(at, span, size);
    *at++ = 0;
    *at++ = 0;
    return slice_of(bytes, (size_t)(at - bytes));
}

static const struct work_stage stages[] = {
    {.name = "read Jaeger's spans", .run = run_read, .per_byte_max = 165},
};

static const struct work_shape shapes[] = {
    {"spans", spans},
    {"spans of many processes", processes},
    {"spans of a large process", spans_of_a_large_process},
    {"a large process, and every second span has its own", every_second_span_has_its_own},
    {"a large process, and spans of two scopes in turn", scopes_of_a_large_process},
    {"tags of one span", tags_of_one_span},
    {"the same tags again and again", the_same_tags},
    {"empty tags", empty_tags},
    {"empty logs", empty_logs},
    {"empty references", empty_references},
    {"fields of one log", fields_of_one_log},
    {"spans of Thrift", spans_of_thrift},
    {"spans of a call in the compact protocol", spans_of_a_compact_call},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv);
}
