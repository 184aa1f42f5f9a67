/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading traces for tests. */
#include "tests/support/trace_sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/wire.h"
#include "tests/support/harness.h"

static void put_text(struct nested_output *out, uint32_t number, const char *text)
{
    nested_put_bytes(out, number, slice_of_text(text));
}

static void put_attribute(struct nested_output *out, uint32_t number, const char *text)
{
    const char *equals = strchr(text, '=');
    assert_non_null(equals);
    struct nested_message attribute = nested_put_begin(out, number, 1);
    nested_put_bytes(out, 1, slice_of(text, (size_t)(equals - text)));
    struct nested_message value = nested_put_begin(out, 2, 1);
    if (equals[1] == '#')
        nested_put_number(out, 3, (uint64_t)strtoll(equals + 2, NULL, 10));
    else if (equals[1] == '?')
        nested_put_number(out, 2, strcmp(equals + 2, "true") == 0);
    else
        put_text(out, 1, equals + 1);
    nested_put_end(out, value);
    nested_put_end(out, attribute);
}

static void put_attributes(struct nested_output *out, uint32_t number, const char *const *texts)
{
    for (size_t i = 0; i < TRACE_SKETCH_ATTRIBUTES && texts[i] != NULL; i++)
        put_attribute(out, number, texts[i]);
}

static void put_id(struct nested_output *out, uint32_t number, uint64_t id, size_t size)
{
    uint8_t bytes[16] = {0};
    for (size_t i = 0; i < 8; i++)
        bytes[size - 1 - i] = (uint8_t)(id >> 8 * i);
    nested_put_bytes(out, number, slice_of(bytes, size));
}

static void put_span(struct nested_output *out, const struct trace_span *span)
{
    struct nested_message message = nested_put_begin(out, 2, 2);
    put_id(out, 1, span->trace, 16);
    put_id(out, 2, span->span, 8);
    if (span->state != NULL)
        put_text(out, 3, span->state);
    if (span->parent != 0)
        put_id(out, 4, span->parent, 8);
    put_text(out, 5, "work");
    nested_put_fixed64(out, 7, span->start_ms * MS);
    nested_put_fixed64(out, 8, span->end_ms * MS);
    put_attributes(out, 9, span->attributes);
    if (span->status != 0) {
        struct nested_message status = nested_put_begin(out, 15, 1);
        nested_put_number(out, 3, span->status);
        nested_put_end(out, status);
    }
    if (span->flags != 0) {
        const uint8_t flags[] = {0x85, 0x01, (uint8_t)span->flags, (uint8_t)(span->flags >> 8),
                                 0,    0};
        nested_put_raw(out, slice_of(flags, sizeof(flags)));
    }
    nested_put_end(out, message);
}

struct slice trace_sketch(const struct trace_resource *resource, const struct trace_span *spans,
                          size_t count)
{
    struct nested_output out = {.buffer = NULL};
    struct nested_message request = nested_put_begin(&out, 1, 3);
    struct nested_message message = nested_put_begin(&out, 1, 1);
    if (resource != NULL)
        put_attributes(&out, 1, resource->attributes);
    nested_put_end(&out, message);
    for (size_t i = 0; i < count;) {
        const char *name = spans[i].scope != NULL ? spans[i].scope : "tests";
        struct nested_message scope = nested_put_begin(&out, 2, 3);
        struct nested_message own = nested_put_begin(&out, 1, 1);
        put_text(&out, 1, name);
        nested_put_end(&out, own);
        for (; i < count && strcmp(spans[i].scope != NULL ? spans[i].scope : "tests", name) == 0;
             i++)
            put_span(&out, &spans[i]);
        if (resource != NULL && resource->schema != NULL)
            put_text(&out, 3, resource->schema);
        nested_put_end(&out, scope);
    }
    if (resource != NULL && resource->schema != NULL)
        put_text(&out, 3, resource->schema);
    nested_put_end(&out, request);
    struct slice bytes = slice_of(mem_copy(out.buffer->data, out.buffer->size), out.buffer->size);
    nested_output_fini(&out);
    struct otlp_figures figures;
    const char *reason = NULL;
    if (!otlp_check(TRACES, bytes, &figures, &reason))
        fail_msg("%s", reason);
    assert_int_equal(figures.items, count);
    return bytes;
}

struct test_request *trace_offer(struct harness *harness, unsigned lane,
                                 const struct trace_resource *resource,
                                 const struct trace_span *spans, size_t count)
{
    struct slice bytes = trace_sketch(resource, spans, count);
    struct test_request *request = harness_offer_bytes(harness, lane, TRACES, bytes, count);
    mem_free((void *)(uintptr_t)bytes.data);
    return request;
}

static uint64_t number_of(struct slice id)
{
    uint64_t number = 0;
    for (size_t i = id.size > 8 ? id.size - 8 : 0; i < id.size; i++)
        number = number << 8 | id.data[i];
    return number;
}

static void print_span(struct slice content, FILE *out)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint64_t trace = 0;
    uint64_t span = 0;
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1)
            trace = number_of(field.bytes);
        else if (field.number == 2)
            span = number_of(field.bytes);
    }
    fprintf(out, "%llu:%llu", (unsigned long long)trace, (unsigned long long)span);
}

char *trace_words(const struct batch *batch)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    uint8_t *bytes = mem_alloc(batch->bytes);
    size_t used = 0;
    for (size_t i = 0; i < batch->parts_count; i++) {
        memcpy(bytes + used, batch->parts[i].bytes.data, batch->parts[i].bytes.size);
        used += batch->parts[i].bytes.size;
    }
    struct otlp_figures figures;
    const char *reason = NULL;
    if (!otlp_check(TRACES, slice_of(bytes, used), &figures, &reason))
        fail_msg("%s", reason);
    assert_int_equal(figures.items, batch->items);
    struct wire_reader resources = wire_reader_of(slice_of(bytes, used));
    struct wire_field resource;
    bool is_first = true;
    while (wire_read_field(&resources, &resource)) {
        bool is_begun = false;
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        struct wire_field scope;
        while (wire_read_field(&scopes, &scope)) {
            if (scope.number != 2)
                continue;
            struct wire_reader spans = wire_reader_of(scope.bytes);
            struct wire_field span;
            while (wire_read_field(&spans, &span)) {
                if (span.number != 2)
                    continue;
                if (!is_first)
                    fputs(is_begun ? " " : "/", out);
                print_span(span.bytes, out);
                is_begun = true;
                is_first = false;
            }
        }
    }
    mem_free(bytes);
    fclose(out);
    return text;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *trace_held(const struct test_exporter *exporter)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    size_t count = exporter->held_count;
    char **words = (char **)mem_zalloc((count + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++)
        words[i] = trace_words(exporter->held[i].batch);
    qsort((void *)words, count, sizeof(words[0]), compare);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s%s", i > 0 ? "|" : "", words[i]);
        free(words[i]);
    }
    mem_free((void *)words);
    fclose(out);
    return text;
}
