/* SPDX-License-Identifier: Apache-2.0 */
/* What the file exporter and the otlp_json_file receiver do with requests, lines and patterns. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "exporters/file/file_groups.h"
#include "receivers/otlp_json_file/json_file_line.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/follow/glob.h"
#include "src/follow/line_splitter.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"
#include "tests/complexity/work.h"

/* ---- requests ---- */

static void run_groups(struct slice input)
{
    struct buffer *buffer = buffer_create(NULL, input.size);
    memcpy(buffer->data, input.data, input.size);
    buffer->size = input.size;
    struct batch *batch = batch_create(TRACES, 1);
    struct file_groups groups;
    batch_append(batch, buffer, buffer_slice(buffer));
    work_begin();
    bool is_made = file_groups_make(&groups, batch, "g", NULL);
    work_end();
    assert(is_made);
    file_groups_free(&groups);
    batch_unref(batch);
    buffer_unref(buffer);
}

static void run_attributes(struct slice input)
{
    static const struct json_file_attributes attributes = {
        .count = 2,
        .list = {{.key = {(const uint8_t *)"log.file.name", 13},
                  .value = {(const uint8_t *)"a.json", 6}},
                 {.key = {(const uint8_t *)"k", 1}, .value = {(const uint8_t *)"v", 1}}},
    };
    bool is_never;
    work_begin();
    struct buffer *edited = json_line_add_attributes(TRACES, input, &attributes, NULL, &is_never);
    work_end();
    assert(edited != NULL);
    work_produced(edited->size);
    buffer_unref(edited);
}

/* Writes n times a span: empty, or with a name of its own. */
static size_t put_spans(struct wire_writer *writer, size_t n, bool has_name)
{
    enum { SPANS = 2 };
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        char text[64];
        int size = has_name ? snprintf(text, sizeof(text), "\x4a\x03\x0a\x01k\x2a\x06%06zu", i) : 0;
        wire_write_bytes(writer, SPANS, slice_of(text, (size_t)size));
        bytes += wire_field_size(SPANS, (size_t)size);
    }
    return bytes;
}

/* Resources with the attribute g: %zu in its value. */
static struct slice resources(size_t n, const char *form)
{
    enum { ONE_MAX = 128 };
    struct wire_writer writer = wire_writer_of(mem_alloc(n * ONE_MAX), n * ONE_MAX);
    for (size_t i = 0; i < n; i++) {
        char text[32];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        size_t size = (size_t)snprintf(text, sizeof(text), form, i);
#pragma GCC diagnostic pop
        size_t value = wire_field_size(1, size);
        size_t attribute = wire_field_size(1, 1) + wire_field_size(2, value);
        size_t resource = wire_field_size(1, attribute);
        wire_write_header(&writer, 1, wire_field_size(1, resource));
        wire_write_header(&writer, 1, resource);
        wire_write_header(&writer, 1, attribute);
        wire_write_bytes(&writer, 1, slice_of("g", 1));
        wire_write_header(&writer, 2, value);
        wire_write_bytes(&writer, 1, slice_of(text, size));
    }
    return wire_written(&writer);
}

static struct slice groups_of_one(size_t n)
{
    return resources(n, "group %zu");
}

static struct slice groups_of_many(size_t n)
{
    return resources(n, "all alike");
}

static struct slice empty_resources(size_t n)
{
    uint8_t *bytes = mem_zalloc(32 * n);
    for (size_t i = 0; i < 16 * n; i++)
        bytes[2 * i] = 0x0a;
    return slice_of(bytes, 32 * n);
}

/* One resource and scope with that many fields of the scope, each one span. */
static struct slice spans(size_t n, bool has_name)
{
    enum { ONE_MAX = 64, HEADS = 32 };
    size_t room = n * ONE_MAX + HEADS;
    uint8_t *inner = mem_alloc(room);
    struct wire_writer scope = wire_writer_of(inner, room);
    size_t bytes = put_spans(&scope, n, has_name);
    size_t holder = wire_field_size(2, bytes);
    struct wire_writer writer = wire_writer_of(mem_alloc(room), room);
    wire_write_header(&writer, 1, holder);
    wire_write_header(&writer, 2, bytes);
    wire_write_raw(&writer, wire_written(&scope));
    mem_free(inner);
    return wire_written(&writer);
}

static struct slice empty_spans(size_t n)
{
    return spans(16 * n, false);
}

static struct slice spans_with_the_attribute(size_t n)
{
    return spans(n, true);
}

/* One span with n attributes of the same key. */
static struct slice attributes_of_one_span(size_t n)
{
    enum { ONE_MAX = 32, HEADS = 64 };
    size_t room = n * ONE_MAX + HEADS;
    uint8_t *inner = mem_alloc(room);
    struct wire_writer span = wire_writer_of(inner, room);
    for (size_t i = 0; i < n; i++)
        wire_write_bytes(&span, 9, slice_of("\x0a\x01k\x12\x03\x0a\x01v", 8));
    size_t bytes = wire_written(&span).size;
    struct wire_writer writer = wire_writer_of(mem_alloc(room), room);
    wire_write_header(&writer, 1, wire_field_size(2, wire_field_size(2, bytes)));
    wire_write_header(&writer, 2, wire_field_size(2, bytes));
    wire_write_header(&writer, 2, bytes);
    wire_write_raw(&writer, wire_written(&span));
    mem_free(inner);
    return wire_written(&writer);
}

static const struct work_stage request_stages[] = {
    {.name = "resources by an attribute", .run = run_groups, .per_byte_max = 90},
    {.name = "attributes of a file", .run = run_attributes, .per_byte_max = 20},
};

static const struct work_shape request_shapes[] = {
    {"groups of one resource", groups_of_one},
    {"one group of many resources", groups_of_many},
    {"empty resources", empty_resources},
    {"empty spans", empty_spans},
    {"spans with the attribute", spans_with_the_attribute},
    {"attributes of one span", attributes_of_one_span},
};

/* ---- lines ---- */

/* As a file is read: in pieces, into a buffer that keeps what is not used. */
static void run_splitter(struct slice input)
{
    enum { PIECE = 64 };
    struct line_splitter splitter = {.bytes_max = 1 << 20};
    size_t begin = 0;
    work_begin();
    for (size_t end = 0; end < input.size;) {
        struct slice line;
        size_t used;
        end = input.size - end < PIECE ? input.size : end + PIECE;
        while (line_splitter_next(&splitter, slice_of(input.data + begin, end - begin),
                                  end == input.size, &used, &line) != SPLIT_MORE)
            begin += used;
    }
    work_end();
    assert(begin == input.size);
}

static struct slice filled(size_t n, char with)
{
    char *text = mem_alloc(64 * n);
    memset(text, with, 64 * n);
    return slice_of(text, 64 * n);
}

static struct slice one_line(size_t n)
{
    return filled(n, 'x');
}

static struct slice empty_lines(size_t n)
{
    return filled(n, '\n');
}

static struct slice blanks(size_t n)
{
    return filled(n, ' ');
}

static const struct work_stage line_stages[] = {
    {.name = "lines of a file", .run = run_splitter, .per_byte_max = 30},
};

static const struct work_shape line_shapes[] = {
    {"one line", one_line},
    {"empty lines", empty_lines},
    {"blanks", blanks},
};

int main(int argc, char **argv)
{
    int failed =
        work_check(request_stages, sizeof(request_stages) / sizeof(request_stages[0]),
                   request_shapes, sizeof(request_shapes) / sizeof(request_shapes[0]), argc, argv);
    return failed + work_check(line_stages, sizeof(line_stages) / sizeof(line_stages[0]),
                               line_shapes, sizeof(line_shapes) / sizeof(line_shapes[0]), argc,
                               argv);
}
