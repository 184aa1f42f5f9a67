/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of traces that passed the check, written for Zipkin. Byte 0 chooses the format and the
 * limits, the rest is the request. What is written is whole: JSON is UTF-8 whose brackets match,
 * protobuf reads back with the same spans; each span is written or counted as invalid. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/zipkin/zipkin_writer.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NESTING_MAX = 8 };

static void check_json(struct slice text)
{
    char closing[NESTING_MAX];
    size_t depth = 0;
    bool is_quoted = false;
    while (text.size > 0) {
        size_t size = utf8_size(text);
        uint8_t byte = text.data[0];
        assert(size > 0);
        assert(byte >= ' ');
        if (is_quoted && byte == '\\') {
            assert(text.size > 1);
            size = 2;
        } else if (byte == '"') {
            is_quoted = !is_quoted;
        } else if (!is_quoted && (byte == '[' || byte == '{')) {
            assert(depth < NESTING_MAX);
            closing[depth++] = byte == '[' ? ']' : '}';
        } else if (!is_quoted && (byte == ']' || byte == '}')) {
            assert(depth > 0);
            assert(closing[--depth] == (char)byte);
        }
        text = slice_of(text.data + size, text.size - size);
    }
    assert(depth == 0);
    assert(!is_quoted);
}

static void check_utf8(struct slice text)
{
    while (text.size > 0) {
        size_t size = utf8_size(text);
        assert(size > 0);
        text = slice_of(text.data + size, text.size - size);
    }
}

/* A span: its ids have their sizes, and no key of tags is there twice, since they are sorted. */
static void check_span(struct slice span)
{
    struct wire_reader reader = wire_reader_of(span);
    struct wire_field field;
    struct wire_field part;
    size_t ids = 0;
    while (wire_read_field(&reader, &field)) {
        assert(field.number >= 1 && field.number <= 11);
        ids += (field.number == 1 && field.bytes.size == 16) ||
               (field.number == 3 && field.bytes.size == 8);
        assert(field.number != 2 || field.bytes.size == 8);
        if (field.number == 5)
            check_utf8(field.bytes);
        if (field.number < 8)
            continue;
        struct wire_reader inner = wire_reader_of(field.bytes);
        while (wire_read_field(&inner, &part))
            if (field.number == 11 && part.type == WIRE_BYTES)
                check_utf8(part.bytes);
        assert(inner.failure == NULL);
    }
    assert(reader.failure == NULL);
    assert(ids == 2);
}

static void check_proto(struct slice list, uint64_t spans)
{
    struct wire_reader reader = wire_reader_of(list);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        assert(field.number == 1);
        assert(spans-- > 0);
        check_span(field.bytes);
    }
    assert(reader.failure == NULL);
    assert(spans == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    struct zipkin_body body;
    struct budget budget;
    const char *reason;
    if (size == 0)
        return 0;
    uint8_t choice = data[0];
    uint8_t *copy = mem_copy(data + 1, size - 1);
    struct slice request = slice_of(copy, size - 1);
    if (!otlp_check(TRACES, request, &figures, &reason) || figures.has_former_scopes) {
        mem_free(copy);
        return 0;
    }
    enum zipkin_format format = (choice & 1) != 0 ? ZIPKIN_PROTO : ZIPKIN_JSON;
    size_t bytes_max = (choice & 2) != 0 ? 2000 : 16 << 20;
    budget_init(&budget, (choice & 4) != 0 ? 20000 : UINT64_MAX);
    enum zipkin_result result = zipkin_write(request, format, bytes_max, &budget, &body);
    assert(result != ZIPKIN_NO_MEMORY || (choice & 4) != 0);
    if (result == ZIPKIN_WRITTEN) {
        assert(body.written + body.invalid == figures.items);
        assert((body.text != NULL) == (body.written > 0));
        assert(body.text == NULL || body.text->size <= bytes_max);
        if (body.text != NULL && format == ZIPKIN_JSON)
            check_json(buffer_slice(body.text));
        else if (body.text != NULL)
            check_proto(buffer_slice(body.text), body.written);
        buffer_unref(body.text);
    }
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    mem_free(copy);
    return 0;
}
