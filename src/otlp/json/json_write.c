/* SPDX-License-Identifier: Apache-2.0 */
/* Each message is looked at twice: first where its fields are, whatever their order, then they are
 * written by number. A field that may be there once and is there twice is written once: the last
 * scalar, or all messages merged, as every decoder has it. Pure function; any thread. */
#include "src/otlp/json/json_write.h"

#include <assert.h>
#include <endian.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_writer.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/wire.h"

enum {
    SLOTS = OTLP_SHORT_FIELDS + 1, /* the last one is the field with a larger number */
    OUTPUT_BYTES_FIRST = 256,
};

/* Where the fields of a message are in its content. */
struct places {
    struct slice content;
    uint32_t found; /* a bit for each slot whose field is there; only those have places */
    const uint8_t *first[SLOTS];
    const uint8_t *last[SLOTS];
};

static struct wire_reader reader_from(const struct places *places, const uint8_t *at)
{
    assert(at >= places->content.data);
    size_t offset = (size_t)(at - places->content.data);
    return wire_reader_of(slice_of(at, places->content.size - offset));
}

static const struct otlp_field *field_at(const struct otlp_message *message, unsigned slot)
{
    if (slot == OTLP_SHORT_FIELDS)
        return message->more;
    return message->fields[slot].kind != OTLP_NONE ? &message->fields[slot] : NULL;
}

/* Returns the fields to write: a bit for each slot. Of a oneof only the last member. */
static uint32_t find_places(const struct otlp_message *message, struct slice content,
                            struct places *places)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field found;
    uint32_t one = 0;
    places->content = content;
    places->found = 0;
    while (wire_next_field(&reader, &found)) {
        const struct otlp_field *field = otlp_field_find(message, found.number);
        if (field == NULL)
            continue;
        unsigned slot = field == message->more ? (unsigned)OTLP_SHORT_FIELDS : found.number;
        uint32_t bit = 1u << slot;
        if ((places->found & bit) == 0)
            places->first[slot] = found.whole.data;
        places->last[slot] = found.whole.data;
        places->found |= bit;
        one = (message->one_of & bit) != 0 ? bit : one;
    }
    assert(reader.failure == NULL);
    return (places->found & ~(uint32_t)message->one_of) | one | message->embedded;
}

static bool is_all_zero(struct slice bytes)
{
    uint8_t any = 0;
    for (size_t i = 0; i < bytes.size; i++)
        any |= bytes.data[i];
    return any == 0;
}

/* Of a varint that is longer only these bits count, as in every decoder. */
static bool has_32_bits(enum otlp_kind kind)
{
    assert(kind != OTLP_NONE);
    return kind == OTLP_ENUM || kind == OTLP_INT32 || kind == OTLP_UINT32 || kind == OTLP_SINT32;
}

/* Ids of zeros are those that are not set. */
static bool says_nothing(const struct otlp_field *field, const struct wire_field *found)
{
    assert(field->message == NULL);
    if (found->type != WIRE_BYTES && has_32_bits(field->kind))
        return (uint32_t)found->number_value == 0;
    if (found->type != WIRE_BYTES)
        return found->number_value == 0;
    if (field->kind >= OTLP_TRACE_ID && field->kind <= OTLP_PROFILE_ID)
        return is_all_zero(found->bytes);
    return found->bytes.size == 0;
}

/* The name of a member, behind a comma if it is not the first. */
static void write_name(struct json_writer *writer, const struct otlp_field *field, bool *has_any)
{
    assert(field->json_name_size > 0);
    uint8_t *at = json_out_room(&writer->out, field->json_name_size + 4u);
    if (at == NULL)
        return;
    size_t comma = *has_any ? 1 : 0;
    at[0] = ',';
    at += comma;
    at[0] = '"';
    memcpy(at + 1, field->json_name, field->json_name_size);
    memcpy(at + 1 + field->json_name_size, "\":", 2);
    writer->out.buffer->size += comma + field->json_name_size + 3;
    *has_any = true;
}

static void write_packed(struct json_writer *writer, const struct otlp_field *field,
                         struct slice bytes, const char **separator)
{
    struct wire_reader reader = wire_reader_of(bytes);
    assert(otlp_kind_is_packed(field->kind));
    while (reader.at < reader.end && !writer->out.has_failed) {
        uint64_t bits;
        if (field->kind >= OTLP_PACKED_INT32) {
            bits = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        } else {
            memcpy(&bits, reader.at, sizeof(bits));
            bits = le64toh(bits);
            reader.at += sizeof(bits);
        }
        json_out_raw(&writer->out, *separator, 1);
        json_write_number(writer, field, bits);
        *separator = ",";
    }
}

static void write_element(struct json_writer *writer, const struct otlp_field *field,
                          const struct wire_field *found, const char **separator)
{
    if (otlp_kind_is_packed(field->kind) && found->type == WIRE_BYTES) {
        write_packed(writer, field, found->bytes, separator);
        return;
    }
    json_out_raw(&writer->out, *separator, 1);
    *separator = ",";
    if (field->message != NULL)
        json_write_message(writer, field->message, found->bytes);
    else if (found->type == WIRE_BYTES)
        json_write_bytes(writer, field, found->bytes);
    else
        json_write_number(writer, field, found->number_value);
}

/* All occurrences. A list whose packed fields are empty is taken back. */
static void write_list(struct json_writer *writer, const struct otlp_field *field,
                       const struct places *places, unsigned slot, bool *has_any)
{
    struct wire_reader reader = reader_from(places, places->first[slot]);
    struct wire_field found;
    const char *separator = "[";
    size_t before = writer->out.buffer->size;
    bool had_any = *has_any;
    write_name(writer, field, has_any);
    while (!writer->out.has_failed && reader.at <= places->last[slot] &&
           wire_next_field(&reader, &found))
        if (found.number == field->number)
            write_element(writer, field, &found, &separator);
    if (separator[0] == ',') {
        json_out_byte(&writer->out, ']');
        return;
    }
    assert(before <= writer->out.buffer->size);
    writer->out.buffer->size = before;
    *has_any = had_any;
}

/* A message in several pieces, which is what they are one behind the other. */
static void write_pieces(struct json_writer *writer, const struct otlp_field *field,
                         const struct places *places, unsigned slot)
{
    struct wire_reader reader = reader_from(places, places->first[slot]);
    struct wire_field found;
    size_t used = 0;
    if (writer->budget != NULL && !budget_try_take(writer->budget, places->content.size)) {
        writer->out.has_failed = true;
        return;
    }
    uint8_t *joined = mem_try_alloc(places->content.size);
    if (joined == NULL)
        writer->out.has_failed = true;
    while (joined != NULL && wire_next_field(&reader, &found)) {
        if (found.number != field->number)
            continue;
        assert(used + found.bytes.size <= places->content.size);
        memcpy(joined + used, found.bytes.data, found.bytes.size);
        used += found.bytes.size;
    }
    if (joined != NULL)
        json_write_message(writer, field->message, slice_of(joined, used));
    mem_free(joined);
    if (writer->budget != NULL)
        budget_return(writer->budget, places->content.size);
}

static void write_single(struct json_writer *writer, const struct otlp_field *field,
                         const struct places *places, unsigned slot, bool *has_any)
{
    write_name(writer, field, has_any);
    if ((places->found & 1u << slot) == 0) {
        json_out_raw(&writer->out, "{}", 2);
    } else if (places->first[slot] != places->last[slot]) {
        write_pieces(writer, field, places, slot);
    } else {
        struct wire_reader reader = reader_from(places, places->first[slot]);
        struct wire_field found;
        if (wire_next_field(&reader, &found))
            json_write_message(writer, field->message, found.bytes);
    }
}

static void write_scalar(struct json_writer *writer, const struct otlp_field *field,
                         const struct places *places, bool is_always, bool *has_any)
{
    unsigned slot = field->number < OTLP_SHORT_FIELDS ? field->number : (unsigned)OTLP_SHORT_FIELDS;
    struct wire_reader reader = reader_from(places, places->last[slot]);
    struct wire_field found;
    assert((places->found & 1u << slot) != 0);
    if (!wire_next_field(&reader, &found) || (!is_always && says_nothing(field, &found)))
        return;
    write_name(writer, field, has_any);
    if (found.type == WIRE_BYTES)
        json_write_bytes(writer, field, found.bytes);
    else
        json_write_number(writer, field, found.number_value);
}

void json_write_message(struct json_writer *writer, const struct otlp_message *message,
                        struct slice content)
{
    struct places places;
    bool has_any = false;
    assert(writer->depth < WIRE_DEPTH_MAX);
    writer->depth++;
    json_out_byte(&writer->out, '{');
    uint32_t slots = find_places(message, content, &places);
    for (; slots != 0 && !writer->out.has_failed; slots &= slots - 1) {
        unsigned slot = (unsigned)__builtin_ctz(slots);
        const struct otlp_field *field = field_at(message, slot);
        bool is_always = (slots & -slots & (message->one_of | message->optional)) != 0;
        if (otlp_kind_is_repeated(field->kind))
            write_list(writer, field, &places, slot, &has_any);
        else if (field->message != NULL)
            write_single(writer, field, &places, slot, &has_any);
        else
            write_scalar(writer, field, &places, is_always, &has_any);
    }
    json_out_byte(&writer->out, '}');
    writer->depth--;
}

struct buffer *json_write(const struct otlp_message *message, struct slice encoded,
                          struct budget *budget)
{
    assert(encoded.data != NULL || encoded.size == 0);
    if (encoded.size == 0)
        encoded.data = (const uint8_t *)"";
    struct json_writer writer = {
        .out.buffer = buffer_try_create(budget, 2 * encoded.size + OUTPUT_BYTES_FIRST),
        .budget = budget,
    };
    if (writer.out.buffer == NULL)
        return NULL;
    json_write_message(&writer, message, encoded);
    if (writer.out.has_failed) {
        buffer_unref(writer.out.buffer);
        return NULL;
    }
    return buffer_shrink(writer.out.buffer);
}

struct buffer *json_write_batch(const struct batch *batch, struct budget *budget)
{
    struct batch_part whole;
    assert(batch->parts_count > 0);
    if (!batch_join(batch, budget, &whole))
        return NULL;
    struct buffer *text = json_write(otlp_request(batch->signal), whole.bytes, budget);
    buffer_unref(whole.owner);
    return text;
}
