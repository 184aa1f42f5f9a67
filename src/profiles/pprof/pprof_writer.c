/* SPDX-License-Identifier: Apache-2.0 */
/* Appends pprof messages to a growing buffer. Runs on the thread of the writer's owner. */
#include "src/profiles/pprof/pprof_writer.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/otlp/wire.h"

enum {
    OUTPUT_BYTES_FIRST = 4096,
    NUMBER_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX, /* tag and varint */
    HEADER_BYTES_MAX = 1 + WIRE_SHORT_VARINT_BYTES_MAX,
    NUMBERS_MAX = 10, /* scalar fields of the longest message */
};

void pprof_writer_init(struct pprof_writer *writer, struct budget *budget, uint64_t bytes_max)
{
    assert(bytes_max < UINT32_MAX);
    *writer = (struct pprof_writer){.budget = budget, .bytes_max = bytes_max};
    content_table_init(&writer->strings);
    writer->output = buffer_try_create(budget, OUTPUT_BYTES_FIRST);
    writer->has_failed = writer->output == NULL;
    if (writer->has_failed)
        return;
    static const uint8_t empty_string[] = {PPROF_STRING << 3 | WIRE_BYTES, 0};
    memcpy(writer->output->data, empty_string, sizeof(empty_string));
    writer->output->size = sizeof(empty_string);
}

void pprof_writer_fini(struct pprof_writer *writer)
{
    buffer_unref(writer->output);
    content_table_fini(&writer->strings, writer->budget);
    *writer = (struct pprof_writer){.has_failed = true};
}

bool pprof_writer_has_room(const struct pprof_writer *writer, uint64_t bytes)
{
    return !writer->has_failed && bytes <= writer->bytes_max &&
           writer->output->size <= writer->bytes_max - bytes;
}

/* Makes room for that many more bytes. False: the writer has failed. */
static bool reserve(struct pprof_writer *writer, size_t bytes)
{
    if (!pprof_writer_has_room(writer, bytes)) {
        writer->has_failed = true;
        return false;
    }
    size_t wanted = writer->output->size + bytes;
    size_t capacity = writer->output->capacity;
    if (wanted <= capacity)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    struct buffer *grown = buffer_try_grow(writer->output, capacity);
    writer->has_failed = grown == NULL;
    if (grown != NULL)
        writer->output = grown;
    return grown != NULL;
}

/* A writer at the end of the output, into room that reserve has made. */
static struct wire_writer output_end(struct pprof_writer *writer, size_t bytes)
{
    struct buffer *output = writer->output;
    assert(output->capacity - output->size >= bytes);
    return wire_writer_of(output->data + output->size, bytes);
}

static void output_advance(struct pprof_writer *writer, const struct wire_writer *end)
{
    writer->output->size += wire_written(end).size;
}

uint32_t pprof_writer_string(struct pprof_writer *writer, struct slice string)
{
    uint32_t hash;
    if (writer->has_failed || string.size == 0)
        return 0;
    uint32_t index = content_table_find(&writer->strings, writer->output->data, string, &hash);
    size_t bytes = wire_field_size(PPROF_STRING, string.size);
    if (index != 0 || !reserve(writer, bytes))
        return index;
    struct wire_writer end = output_end(writer, bytes);
    wire_write_bytes(&end, PPROF_STRING, string);
    output_advance(writer, &end);
    index = content_table_add(&writer->strings, writer->budget, hash,
                              writer->output->size - string.size, string.size);
    writer->has_failed = index == 0;
    return index;
}

static void put(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    if (value != 0)
        wire_write_number(writer, number, value);
}

/* Writes a message of scalar fields: values[i] is field i + 1. */
static void put_message(struct pprof_writer *writer, enum pprof_field field, const uint64_t *values,
                        size_t count)
{
    uint8_t room[NUMBERS_MAX * NUMBER_BYTES_MAX];
    struct wire_writer content = wire_writer_of(room, sizeof(room));
    assert(count <= NUMBERS_MAX);
    for (size_t i = 0; i < count; i++)
        put(&content, (uint32_t)i + 1, values[i]);
    struct slice bytes = wire_written(&content);
    size_t size = wire_field_size(field, bytes.size);
    if (!reserve(writer, size))
        return;
    struct wire_writer end = output_end(writer, size);
    wire_write_bytes(&end, field, bytes);
    output_advance(writer, &end);
}

void pprof_writer_value_type(struct pprof_writer *writer, enum pprof_field field,
                             struct pprof_value_type type)
{
    assert(field == PPROF_SAMPLE_TYPE || field == PPROF_PERIOD_TYPE);
    const uint64_t values[] = {type.type, type.unit};
    put_message(writer, field, values, 2);
}

void pprof_writer_number(struct pprof_writer *writer, enum pprof_field field, uint64_t number)
{
    assert(field >= PPROF_DROP_FRAMES);
    assert(field != PPROF_PERIOD_TYPE);
    if (number == 0 || !reserve(writer, NUMBER_BYTES_MAX))
        return;
    struct wire_writer end = output_end(writer, NUMBER_BYTES_MAX);
    wire_write_number(&end, field, number);
    output_advance(writer, &end);
}

void pprof_writer_mapping(struct pprof_writer *writer, const struct pprof_mapping *mapping)
{
    assert(mapping->id != 0);
    const uint64_t values[] = {
        mapping->id,
        mapping->memory_start,
        mapping->memory_limit,
        mapping->file_offset,
        mapping->filename,
        mapping->build_id,
        mapping->has_functions,
        mapping->has_filenames,
        mapping->has_line_numbers,
        mapping->has_inline_frames,
    };
    put_message(writer, PPROF_MAPPING, values, sizeof(values) / sizeof(values[0]));
}

void pprof_writer_function(struct pprof_writer *writer, const struct pprof_function *function)
{
    assert(function->id != 0);
    const uint64_t values[] = {
        function->id,
        function->name,
        function->system_name,
        function->filename,
        (uint64_t)function->start_line,
    };
    put_message(writer, PPROF_FUNCTION, values, sizeof(values) / sizeof(values[0]));
}

/* A message whose size is known only once it is written: its content begins where the longest
 * header would end, and is moved down at the end. */
struct open_message {
    size_t begin; /* of the field, in the output */
    struct wire_writer content;
};

static bool message_begin(struct pprof_writer *writer, struct open_message *message, size_t bytes)
{
    if (!reserve(writer, bytes + HEADER_BYTES_MAX))
        return false;
    message->begin = writer->output->size;
    message->content =
        wire_writer_of(writer->output->data + message->begin + HEADER_BYTES_MAX, bytes);
    return true;
}

/* Writes the header and moves the content up to it. */
static void message_end(struct pprof_writer *writer, const struct open_message *message,
                        enum pprof_field field)
{
    struct slice content = wire_written(&message->content);
    size_t header = wire_field_size(field, content.size) - content.size;
    uint8_t *begin = writer->output->data + message->begin;
    struct wire_writer writing = wire_writer_of(begin, header);
    memmove(begin + header, content.data, content.size);
    wire_write_header(&writing, field, content.size);
    writer->output->size = message->begin + header + content.size;
}

void pprof_writer_location(struct pprof_writer *writer, const struct pprof_location *location)
{
    assert(location->id != 0);
    enum { LINE_BYTES_MAX = HEADER_BYTES_MAX + 3 * NUMBER_BYTES_MAX };
    struct open_message message;
    size_t room = 4 * NUMBER_BYTES_MAX + location->lines_count * LINE_BYTES_MAX;
    if (!message_begin(writer, &message, room))
        return;
    put(&message.content, 1, location->id);
    put(&message.content, 2, location->mapping);
    put(&message.content, 3, location->address);
    for (size_t i = 0; i < location->lines_count; i++) {
        uint8_t bytes[3 * NUMBER_BYTES_MAX];
        struct wire_writer line = wire_writer_of(bytes, sizeof(bytes));
        put(&line, 1, location->lines[i].function);
        put(&line, 2, (uint64_t)location->lines[i].line);
        put(&line, 3, (uint64_t)location->lines[i].column);
        wire_write_bytes(&message.content, 4, wire_written(&line));
    }
    put(&message.content, 5, location->is_folded);
    message_end(writer, &message, PPROF_LOCATION);
}

void pprof_writer_sample(struct pprof_writer *writer, const struct pprof_sample *sample,
                         size_t values_count)
{
    enum { LABEL_BYTES_MAX = HEADER_BYTES_MAX + 4 * NUMBER_BYTES_MAX };
    struct open_message message;
    size_t locations_bytes = 0;
    size_t values_bytes = 0;
    for (size_t i = 0; i < sample->locations_count; i++)
        locations_bytes += wire_varint_size(sample->locations[i]);
    for (size_t i = 0; i < values_count; i++)
        values_bytes += wire_varint_size((uint64_t)sample->values[i]);
    if (!message_begin(writer, &message,
                       2 * HEADER_BYTES_MAX + locations_bytes + values_bytes +
                           sample->labels_count * LABEL_BYTES_MAX))
        return;
    if (locations_bytes > 0)
        wire_write_header(&message.content, 1, locations_bytes);
    for (size_t i = 0; i < sample->locations_count; i++)
        wire_write_varint(&message.content, sample->locations[i]);
    if (values_bytes > 0)
        wire_write_header(&message.content, 2, values_bytes);
    for (size_t i = 0; i < values_count; i++)
        wire_write_varint(&message.content, (uint64_t)sample->values[i]);
    for (size_t i = 0; i < sample->labels_count; i++) {
        const struct pprof_label *label = &sample->labels[i];
        uint8_t bytes[4 * NUMBER_BYTES_MAX];
        struct wire_writer writing = wire_writer_of(bytes, sizeof(bytes));
        put(&writing, 1, label->key);
        put(&writing, 2, label->text);
        put(&writing, 3, (uint64_t)label->number);
        put(&writing, 4, label->unit);
        wire_write_bytes(&message.content, 3, wire_written(&writing));
    }
    message_end(writer, &message, PPROF_SAMPLE);
}

struct buffer *pprof_writer_take(struct pprof_writer *writer)
{
    struct buffer *output = writer->has_failed ? NULL : writer->output;
    if (output != NULL)
        writer->output = NULL;
    writer->has_failed = true;
    return output;
}
