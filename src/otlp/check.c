/* SPDX-License-Identifier: Apache-2.0 */
/* The wire walker. Nearly all fields are plain: a one-byte tag, a known kind, a short length. One
 * tight loop skips those; all others are read carefully, field by field. The loop can accept a
 * field but never reject one: it only returns where to go on. Runs on the lane that received the
 * body. */
#include "src/otlp/check.h"

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/otlp/former_scopes.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

enum {
    REASON_BYTES_MAX = 256,
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    /* The loop reads this far past the start of a field unchecked: header, key, value header. */
    LOOK_AHEAD_BYTES = 2 + 2 + 255 + 4,
    /* Messages up to this size are copied, so that the loop may read that far past their end. */
    SMALL_BYTES_MAX = 4096,
};

struct walk {
    struct otlp_figures figures;
    const uint8_t *plain_end; /* LOOK_AHEAD_BYTES can be read from any field before it */
};

static _Thread_local char reason[REASON_BYTES_MAX];

static bool __attribute__((format(printf, 1, 2), cold)) reject(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    return false;
}

static inline uint32_t load32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

/* An AnyValue of fewer than 128 bytes with one field of a scalar kind, or none. */
static inline bool is_plain_value(const uint8_t *at, size_t size)
{
    if (size < 2)
        return size == 0;
    size_t last = 1; /* byte of the varint */
    switch (at[0]) {
    case 1 << 3 | WIRE_BYTES: /* string_value */
    case 7 << 3 | WIRE_BYTES: /* bytes_value */
        return at[1] == size - 2;
    case 2 << 3 | WIRE_VARINT: /* bool_value */
    case 3 << 3 | WIRE_VARINT: /* int_value */
        while (last < size && at[last] >= 0x80)
            last++;
        return last + 1 == size && size <= 1 + WIRE_VARINT_BYTES_MAX;
    case 4 << 3 | WIRE_FIXED64: /* double_value */
        return size == 1 + 8;
    default:
        return false;
    }
}

/* Skips a run of KeyValues of fewer than 128 bytes with the same tag, each a key followed by a
 * plain value, as every SDK writes them. The position of the next one depends only on this one's
 * length, so that the processor can work on several at a time. */
static inline const uint8_t *skip_attributes(const uint8_t *at, const uint8_t *end,
                                             const uint8_t *stop, uint64_t *seen)
{
    /* tag, length, key's tag, key's length */
    const uint32_t expected = at[0] | (1 << 3 | WIRE_BYTES) << 16;
    const uint32_t tags = (2 << 3 | WIRE_BYTES) | (1 << 3 | WIRE_BYTES) << 16;
    const uint8_t *last = at;
    uint64_t count = 0;
    while (at < stop) {
        uint32_t header = load32(at);
        if ((header & 0x00ff80ff) != expected)
            break;
        /* Not from header: the next position waits for this byte alone. */
        size_t size = at[1];
        uint32_t key_size = header >> 24;
        int32_t rest = (int32_t)size - (int32_t)key_size;
        if (rest < 6) /* the key's header, and a value's two */
            break;
        /* Between the key and a string value stand tag and length of KeyValue.value (rest - 4), and
         * tag and length of AnyValue.string_value (rest - 6). */
        const uint8_t *value = at + 4 + key_size;
        if (load32(value) != (uint32_t)rest * 0x01000100u + (tags - 0x06000400u) &&
            (value[0] != (2 << 3 | WIRE_BYTES) || value[1] != rest - 4 ||
             !is_plain_value(value + 2, (size_t)rest - 4)))
            break;
        last = at;
        at += size + 2;
        count++;
    }
    /* An attribute longer than the message is left to the caller. */
    if (at > end) {
        at = last;
        count--;
    }
    *seen += count;
    return at;
}

/* Whether the varints are complete and short. Up to 10 bytes none can be too long; in more, a
 * varint that is too long has four aligned bytes with continuation bits. */
static inline bool are_plain_varints(const uint8_t *at, size_t size)
{
    if (size > WIRE_VARINT_BYTES_MAX)
        for (size_t i = 0; i + 4 <= size; i += 4)
            if ((load32(at + i) & 0x80808080) == 0x80808080)
                return false;
    return size == 0 || at[size - 1] < 0x80;
}

/* Returns the end of the field at `at`, which has a one-byte tag, if it is plain; else NULL. Sizes
 * are constants except for strings, and branches rather than selections, so that the processor can
 * run ahead. */
static inline const uint8_t *skip_field(const struct otlp_message *message, const uint8_t *at)
{
    switch (message->plan[at[0]]) {
    case OTLP_TRACE_ID:
        if (at[1] != TRACE_ID_BYTES)
            return NULL;
        return at + 2 + TRACE_ID_BYTES;
    case OTLP_SPAN_ID:
        if (at[1] != SPAN_ID_BYTES)
            return NULL;
        return at + 2 + SPAN_ID_BYTES;
    case OTLP_STRING:
    case OTLP_STRINGS:
    case OTLP_BYTES:
    case OTLP_LOOSE_TRACE_ID:
    case OTLP_LOOSE_SPAN_ID:
    case OTLP_PROFILE_ID:
        if (at[1] >= 0x80)
            return NULL;
        return at + 2 + at[1];
    case OTLP_PACKED_INT32:
    case OTLP_PACKED_INT64:
    case OTLP_PACKED_UINT64:
        return at[1] < 0x80 && are_plain_varints(at + 2, at[1]) ? at + 2 + at[1] : NULL;
    case OTLP_PACKED_FIXED64:
    case OTLP_PACKED_DOUBLE:
        return at[1] < 0x80 && at[1] % 8 == 0 ? at + 2 + at[1] : NULL;
    case OTLP_FIXED64:
    case OTLP_SFIXED64:
    case OTLP_DOUBLE:
        return at + 1 + 8;
    case OTLP_FIXED32:
        return at + 1 + 4;
    case OTLP_BOOL:
    case OTLP_ENUM:
    case OTLP_INT32:
    case OTLP_INT64:
    case OTLP_UINT32:
    case OTLP_UINT64:
    case OTLP_SINT32:
        if (at[1] >= 0x80)
            return NULL;
        return at + 2;
    default:
        return NULL;
    }
}

/* Skips fields while they are plain, and returns where it stopped. */
static inline const uint8_t *skip_plain(struct walk *walk, const struct otlp_message *message,
                                        const uint8_t *at, const uint8_t *end)
{
    const uint8_t *stop = end < walk->plain_end ? end : walk->plain_end;
    const struct otlp_field *more = message->more;
    while (at < stop) {
        const uint8_t *next = NULL;
        if (at[0] >= 0x80) {
            /* A two-byte tag and four bytes: Span.flags. */
            if (more != NULL && more->kind == OTLP_FIXED32 && at[1] == more->number >> 4 &&
                at[0] == (uint8_t)(0x80 | more->number << 3 | WIRE_FIXED32))
                next = at + 2 + 4;
        } else if (message->plan[at[0]] == OTLP_KEY_VALUE)
            next = skip_attributes(at, end, stop, &walk->figures.messages);
        else
            next = skip_field(message, at);
        if (next == NULL || next == at || next > end)
            break;
        at = next;
    }
    return at;
}

static bool check_id(const struct otlp_message *message, const struct otlp_field *field,
                     size_t found, size_t expected)
{
    if (found == expected || found == 0)
        return true;
    return reject("%s: field %u (%s) has %zu bytes, expected %zu or 0", message->name,
                  field->number, field->name, found, expected);
}

/* A nested message whose header is plain: a one-byte tag, a length below 16384. */
static inline const struct otlp_field *read_nested(const struct otlp_message *message,
                                                   const uint8_t *at, const uint8_t *end,
                                                   struct slice *ret_content)
{
    if (end - at < 3 || at[0] >= 0x80 || message->plan[at[0]] < OTLP_MESSAGE)
        return NULL;
    bool is_long = at[1] >= 0x80;
    if (is_long && at[2] >= 0x80)
        return NULL;
    size_t size = is_long ? (at[1] & 0x7fu) | (size_t)at[2] << 7 : at[1];
    const uint8_t *content = at + 2 + is_long;
    if (size > (size_t)(end - content))
        return NULL;
    *ret_content = slice_of(content, size);
    return &message->fields[at[0] >> 3];
}

/* Reads and checks one field of any kind and moves *at from its start to its end. *ret_field is
 * NULL unless it is a nested message. */
static bool __attribute__((noinline))
read_carefully(const struct otlp_message *message, const uint8_t **at, const uint8_t *end,
               const struct otlp_field **ret_field, struct slice *ret_content)
{
    struct wire_reader reader = wire_reader_of(slice_of(*at, (size_t)(end - *at)));
    struct wire_field found;
    if (!wire_read_field(&reader, &found))
        return reject("%s: %s, %zu bytes before the end of the message", message->name,
                      reader.failure, (size_t)(end - *at));
    const struct otlp_field *field = otlp_field_find(message, found.number);
    *at = reader.at;
    *ret_field = field != NULL && field->message != NULL ? field : NULL;
    *ret_content = found.bytes;
    if (field == NULL)
        return true;
    /* Elements of a packed field may also come one by one, each with its own wire type. */
    if (otlp_kind_is_packed(field->kind) &&
        found.type == (field->kind >= OTLP_PACKED_INT32 ? WIRE_VARINT : WIRE_FIXED64))
        return true;
    if (field->wire != found.type)
        return reject("%s: field %u (%s) has wire type %u, expected %u", message->name,
                      field->number, field->name, (unsigned)found.type, field->wire);
    if (field->kind == OTLP_TRACE_ID)
        return check_id(message, field, found.bytes.size, TRACE_ID_BYTES);
    if (field->kind == OTLP_SPAN_ID)
        return check_id(message, field, found.bytes.size, SPAN_ID_BYTES);
    if (!otlp_kind_is_packed(field->kind))
        return true;
    if (field->kind < OTLP_PACKED_INT32 && found.bytes.size % 8 != 0)
        return reject("%s: field %u (%s) has %zu bytes, expected a multiple of 8", message->name,
                      field->number, field->name, found.bytes.size);
    if (field->kind < OTLP_PACKED_INT32 || are_plain_varints(found.bytes.data, found.bytes.size))
        return true;
    reader = wire_reader_of(found.bytes);
    while (reader.at < reader.end && reader.failure == NULL)
        wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
    return reader.failure == NULL || reject("%s: field %u (%s): %s", message->name, field->number,
                                            field->name, reader.failure);
}

/* Recursion is bounded by WIRE_DEPTH_MAX, which leaves room for values 30 deep. */
static bool __attribute__((no_stack_protector))
walk_message(struct walk *walk, const struct otlp_message *message, struct slice body,
             unsigned depth)
{
    const uint8_t *at = body.data;
    const uint8_t *end = body.data + body.size;
    if (depth > WIRE_DEPTH_MAX)
        return reject("%s: messages are nested deeper than %u", message->name, WIRE_DEPTH_MAX);
    while ((at = skip_plain(walk, message, at, end)) < end) {
        struct slice content;
        const struct otlp_field *field = read_nested(message, at, end, &content);
        if (field != NULL)
            at = content.data + content.size;
        else if (!read_carefully(message, &at, end, &field, &content))
            return false;
        else if (field != NULL && field->number == FORMER_SCOPES)
            walk->figures.has_former_scopes = true;
        if (field == NULL)
            continue;
        walk->figures.messages++;
        walk->figures.items += field->kind == OTLP_RECORDS;
        walk->figures.resources += field->kind == OTLP_RESOURCES;
        if (content.size > 0 && !walk_message(walk, field->message, content, depth + 1))
            return false;
    }
    return true;
}

static struct walk walk_of(struct slice body)
{
    struct walk walk = {.plain_end = body.data};
    assert(body.data != NULL || body.size == 0);
    if (body.size > LOOK_AHEAD_BYTES)
        walk.plain_end = body.data + body.size - LOOK_AHEAD_BYTES;
    return walk;
}

/* In a small message the loop could not look ahead: walks a padded copy. */
static bool __attribute__((noinline))
walk_small(struct walk *walk, const struct otlp_message *message, struct slice body)
{
    uint8_t copy[SMALL_BYTES_MAX + LOOK_AHEAD_BYTES];
    assert(body.size <= SMALL_BYTES_MAX);
    if (body.size > 0)
        memcpy(copy, body.data, body.size);
    memset(copy + body.size, 0, LOOK_AHEAD_BYTES);
    walk->plain_end = copy + body.size;
    return walk_message(walk, message, slice_of(copy, body.size), 1);
}

bool otlp_check(enum signal_kind signal, struct slice body, struct otlp_figures *ret_figures,
                const char **ret_reason)
{
    assert(signal < SIGNAL_KINDS);
    const struct otlp_message *request = otlp_request(signal);
    *ret_reason = reason;
    struct walk walk = walk_of(body);
    if (!(body.size <= SMALL_BYTES_MAX ? walk_small(&walk, request, body)
                                       : walk_message(&walk, request, body, 1)))
        return false;
    *ret_figures = walk.figures;
    return true;
}

bool otlp_check_message(const struct otlp_message *message, struct slice body, unsigned depth)
{
    struct walk walk = walk_of(body);
    assert(depth >= 1);
    return walk_message(&walk, message, body, depth);
}
