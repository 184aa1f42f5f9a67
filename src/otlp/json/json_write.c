/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP protobuf to OTLP/JSON. Reads each message twice: finds the fields, in any order, then writes
 * them by number. A singular field that occurs twice is written once: the last scalar, or all
 * messages merged, as in every decoder. Pure function; any thread. */
#include "src/otlp/json/json_write.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/base64.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/json/json_output.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

enum {
    SLOTS = OTLP_SHORT_FIELDS + 1, /* the last one is the field with a larger number */
    OUTPUT_BYTES_FIRST = 256,
};

struct writer {
    struct json_output output;
    struct budget *budget;
    unsigned depth;
};

/* ---- Values of fields ---- */

/* bits: as in struct wire_field. */
static void write_number(struct writer *writer, const struct otlp_field *field, uint64_t bits)
{
    double real;
    char digits[DOUBLE_STRING_BYTES_MAX];
    size_t size;
    switch (field->kind) {
    case OTLP_BOOL:
        json_output_put(&writer->output, bits != 0 ? "true" : "false", bits != 0 ? 4 : 5);
        return;
    case OTLP_DOUBLE:
    case OTLP_PACKED_DOUBLE:
        memcpy(&real, &bits, sizeof(real));
        size = double_to_string(real, digits);
        if (isfinite(real))
            json_output_put(&writer->output, digits, size);
        else
            json_output_put_string(&writer->output, slice_of(digits, size));
        return;
    case OTLP_UINT32:
    case OTLP_FIXED32:
        json_output_put_unsigned(&writer->output, (uint32_t)bits);
        return;
    case OTLP_SINT32:
        json_output_put_signed(&writer->output,
                               (int32_t)((uint32_t)bits >> 1 ^ (0 - ((uint32_t)bits & 1))));
        return;
    case OTLP_ENUM:
    case OTLP_INT32:
    case OTLP_PACKED_INT32:
        json_output_put_signed(&writer->output, (int32_t)bits);
        return;
    default:
        json_output_put_byte(&writer->output, '"');
        if (field->kind == OTLP_INT64 || field->kind == OTLP_SFIXED64 ||
            field->kind == OTLP_PACKED_INT64)
            json_output_put_signed(&writer->output, (int64_t)bits);
        else
            json_output_put_unsigned(&writer->output, bits);
        json_output_put_byte(&writer->output, '"');
    }
}

/* A string, base64, or the hexadecimal digits of an id. */
static void write_bytes(struct writer *writer, const struct otlp_field *field, struct slice bytes)
{
    if (field->kind == OTLP_STRING || field->kind == OTLP_STRINGS) {
        json_output_put_string(&writer->output, bytes);
        return;
    }
    bool is_id = field->kind >= OTLP_TRACE_ID && field->kind <= OTLP_PROFILE_ID;
    assert(is_id || field->kind == OTLP_BYTES);
    size_t size = is_id ? 2 * bytes.size : base64_size(bytes.size);
    uint8_t *at = json_output_reserve(&writer->output, size + 2);
    if (at == NULL)
        return;
    at[0] = '"';
    if (is_id)
        hex_write(bytes.data, bytes.size, at + 1);
    else
        base64_encode(bytes, (char *)at + 1);
    at[size + 1] = '"';
    writer->output.buffer->size += size + 2;
    assert(writer->output.buffer->size <= writer->output.buffer->capacity);
}

/* ---- Messages ---- */

/* Where the fields of a message are in its content. */
struct places {
    struct slice content;
    uint32_t found; /* a bit for each slot whose field occurs; only those have places */
    const uint8_t *first[SLOTS];
    const uint8_t *last[SLOTS];
};

static struct wire_reader reader_from(const struct places *places, const uint8_t *at)
{
    assert(at >= places->content.data);
    size_t offset = (size_t)(at - places->content.data);
    return wire_reader_of(slice_of(at, places->content.size - offset));
}

/* Whether a scalar has its default. An id of zeros is unset. */
static bool is_default(const struct otlp_field *field, const struct wire_field *found)
{
    assert(field->message == NULL);
    if (found->type != WIRE_BYTES) {
        /* Only these bits of a longer varint count, as in every decoder. */
        bool has_32_bits = field->kind == OTLP_ENUM || field->kind == OTLP_INT32 ||
                           field->kind == OTLP_UINT32 || field->kind == OTLP_SINT32;
        return (has_32_bits ? (uint32_t)found->number_value : found->number_value) == 0;
    }
    if (field->kind < OTLP_TRACE_ID || field->kind > OTLP_PROFILE_ID)
        return found->bytes.size == 0;
    uint8_t any = 0;
    for (size_t i = 0; i < found->bytes.size; i++)
        any |= found->bytes.data[i];
    return any == 0;
}

/* Writes the name of a member, after a comma if it is not the first. */
static void write_name(struct writer *writer, const struct otlp_field *field, bool *has_any)
{
    assert(field->json_name_size > 0);
    uint8_t *at = json_output_reserve(&writer->output, field->json_name_size + 4u);
    if (at == NULL)
        return;
    size_t comma = *has_any ? 1 : 0;
    at[0] = ',';
    at += comma;
    at[0] = '"';
    memcpy(at + 1, field->json_name, field->json_name_size);
    memcpy(at + 1 + field->json_name_size, "\":", 2);
    writer->output.buffer->size += comma + field->json_name_size + 3;
    *has_any = true;
}

/* An object. Recursion is bounded by otlp_check, which allows a depth of WIRE_DEPTH_MAX. */
static void write_message(struct writer *writer, const struct otlp_message *message,
                          struct slice content);

/* Writes all occurrences. A list whose packed fields are empty is removed again. */
static void write_list(struct writer *writer, const struct otlp_field *field,
                       const struct places *places, unsigned slot, bool *has_any)
{
    struct wire_reader reader = reader_from(places, places->first[slot]);
    struct wire_field found;
    const char *separator = "[";
    size_t before = writer->output.buffer->size;
    bool had_any = *has_any;
    write_name(writer, field, has_any);
    while (!writer->output.has_failed && reader.at <= places->last[slot] &&
           wire_next_field(&reader, &found)) {
        if (found.number != field->number)
            continue;
        if (otlp_kind_is_packed(field->kind) && found.type == WIRE_BYTES) {
            struct wire_reader packed = wire_reader_of(found.bytes);
            while (packed.at < packed.end && !writer->output.has_failed) {
                uint64_t bits;
                if (field->kind >= OTLP_PACKED_INT32) {
                    bits = wire_read_varint(&packed, WIRE_VARINT_BYTES_MAX);
                } else {
                    memcpy(&bits, packed.at, sizeof(bits));
                    bits = le64toh(bits);
                    packed.at += sizeof(bits);
                }
                json_output_put(&writer->output, separator, 1);
                separator = ",";
                write_number(writer, field, bits);
            }
            continue;
        }
        json_output_put(&writer->output, separator, 1);
        separator = ",";
        if (field->message != NULL)
            write_message(writer, field->message, found.bytes);
        else if (found.type == WIRE_BYTES)
            write_bytes(writer, field, found.bytes);
        else
            write_number(writer, field, found.number_value);
    }
    if (separator[0] == ',') {
        json_output_put_byte(&writer->output, ']');
        return;
    }
    assert(before <= writer->output.buffer->size);
    writer->output.buffer->size = before;
    *has_any = had_any;
}

static void write_single(struct writer *writer, const struct otlp_field *field,
                         const struct places *places, unsigned slot, bool *has_any)
{
    write_name(writer, field, has_any);
    if ((places->found & 1u << slot) == 0) {
        json_output_put(&writer->output, "{}", 2);
        return;
    }
    struct wire_reader reader = reader_from(places, places->first[slot]);
    struct wire_field found;
    if (places->first[slot] == places->last[slot]) {
        if (wire_next_field(&reader, &found))
            write_message(writer, field->message, found.bytes);
        return;
    }
    /* Several occurrences of a message are merged by joining their content. */
    size_t used = 0;
    if (writer->budget != NULL && !budget_try_take(writer->budget, places->content.size)) {
        writer->output.has_failed = true;
        return;
    }
    uint8_t *joined = mem_try_alloc(places->content.size);
    if (joined == NULL)
        writer->output.has_failed = true;
    while (joined != NULL && wire_next_field(&reader, &found)) {
        if (found.number != field->number)
            continue;
        assert(used + found.bytes.size <= places->content.size);
        memcpy(joined + used, found.bytes.data, found.bytes.size);
        used += found.bytes.size;
    }
    if (joined != NULL)
        write_message(writer, field->message, slice_of(joined, used));
    mem_free(joined);
    if (writer->budget != NULL)
        budget_return(writer->budget, places->content.size);
}

static void write_message(struct writer *writer, const struct otlp_message *message,
                          struct slice content)
{
    struct places places;
    places.content = content;
    places.found = 0;
    assert(writer->depth < WIRE_DEPTH_MAX);
    writer->depth++;
    /* Find the fields; of a oneof the last member counts. */
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field found;
    uint32_t one = 0;
    while (wire_next_field(&reader, &found)) {
        const struct otlp_field *field = otlp_field_find(message, found.number);
        if (field == NULL)
            continue;
        unsigned slot = field == message->more ? (unsigned)OTLP_SHORT_FIELDS : found.number;
        uint32_t bit = 1u << slot;
        if ((places.found & bit) == 0)
            places.first[slot] = found.whole.data;
        places.last[slot] = found.whole.data;
        places.found |= bit;
        one = (message->one_of & bit) != 0 ? bit : one;
    }
    assert(reader.failure == NULL);
    /* Write them by number. */
    uint32_t slots = (places.found & ~(uint32_t)message->one_of) | one | message->embedded;
    bool has_any = false;
    json_output_put_byte(&writer->output, '{');
    for (; slots != 0 && !writer->output.has_failed; slots &= slots - 1) {
        unsigned slot = (unsigned)__builtin_ctz(slots);
        const struct otlp_field *field =
            slot == OTLP_SHORT_FIELDS ? message->more : &message->fields[slot];
        if (otlp_kind_is_repeated(field->kind)) {
            write_list(writer, field, &places, slot, &has_any);
            continue;
        }
        if (field->message != NULL) {
            write_single(writer, field, &places, slot, &has_any);
            continue;
        }
        bool is_always = (slots & -slots & (message->one_of | message->optional)) != 0;
        reader = reader_from(&places, places.last[slot]);
        if (!wire_next_field(&reader, &found) || (!is_always && is_default(field, &found)))
            continue;
        write_name(writer, field, &has_any);
        if (found.type == WIRE_BYTES)
            write_bytes(writer, field, found.bytes);
        else
            write_number(writer, field, found.number_value);
    }
    json_output_put_byte(&writer->output, '}');
    writer->depth--;
}

struct buffer *json_write(const struct otlp_message *message, struct slice encoded,
                          struct budget *budget)
{
    assert(encoded.data != NULL || encoded.size == 0);
    if (encoded.size == 0)
        encoded.data = (const uint8_t *)"";
    struct writer writer = {.budget = budget};
    json_output_init(&writer.output, 2 * encoded.size + OUTPUT_BYTES_FIRST, SIZE_MAX, budget);
    write_message(&writer, message, encoded);
    return json_output_take(&writer.output);
}

struct buffer *json_write_batch(const struct batch *batch, struct budget *budget)
{
    struct batch_part whole;
    if (batch->parts_count == 0) /* a request without content */
        return json_write(otlp_request(batch->signal), slice_of(NULL, 0), budget);
    if (!batch_join(batch, budget, &whole))
        return NULL;
    struct buffer *text = json_write(otlp_request(batch->signal), whole.bytes, budget);
    buffer_unref(whole.owner);
    return text;
}
