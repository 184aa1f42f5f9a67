/* SPDX-License-Identifier: Apache-2.0 */
/* The wire walker. Nearly all fields are plain: a one-byte tag, a known kind, a short length. Those
 * are skipped in one tight loop; whatever else comes is read with care, field by field. The loop
 * only ever says "go on from here", so that it can decide what is fine but not what is wrong.
 * Runs on the lane that received the body. */
#include "src/otlp/check.h"

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

enum {
    REASON_BYTES_MAX = 256,
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    /* The loop looks this far past the begin of a field without asking: header, key, value header.
     */
    LOOK_AHEAD_BYTES = 2 + 2 + 255 + 4,
    /* Messages up to this size are copied to where the loop may look that far behind them, too. */
    SMALL_BYTES_MAX = 4096,
};

struct walk {
    struct otlp_figures figures;
    const uint8_t *plain_end; /* fields that begin before may be looked at LOOK_AHEAD_BYTES far */
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

static inline bool is_plain_varint(const uint8_t *at, size_t size)
{
    size_t last = 0;
    while (last < size && at[last] >= 0x80)
        last++;
    return last + 1 == size && size <= WIRE_VARINT_BYTES_MAX;
}

/* An AnyValue of fewer than 128 bytes with one field of a scalar kind, or none. */
static inline bool is_plain_value(const uint8_t *at, size_t size)
{
    if (size < 2)
        return size == 0;
    switch (at[0]) {
    case 1 << 3 | WIRE_BYTES: /* string_value */
    case 7 << 3 | WIRE_BYTES: /* bytes_value */
        return at[1] == size - 2;
    case 2 << 3 | WIRE_VARINT: /* bool_value */
    case 3 << 3 | WIRE_VARINT: /* int_value */
        return is_plain_varint(at + 1, size - 1);
    case 4 << 3 | WIRE_FIXED64: /* double_value */
        return size == 1 + 8;
    default:
        return false;
    }
}

/* What stands between the key and the text of an attribute, as load32 sees it: tag and length of
 * KeyValue.value, tag and length of AnyValue.string_value. They are 4 and 6 less than rest, which
 * is what the attribute has beside the text of its key. */
static inline uint32_t text_value_header(int32_t rest)
{
    const uint32_t tags = (2 << 3 | WIRE_BYTES) | (1 << 3 | WIRE_BYTES) << 16;
    return (uint32_t)rest * 0x01000100u + (tags - 0x06000400u);
}

static inline bool is_other_plain_value(const uint8_t *value, int32_t value_size)
{
    return value[0] == (2 << 3 | WIRE_BYTES) && value[1] == value_size &&
           is_plain_value(value + 2, (size_t)value_size);
}

/* Skips a run of KeyValues of fewer than 128 bytes with the same tag, each a key followed by a
 * plain value, as every SDK writes them. The next one's place depends on nothing but this one's
 * length, so that the processor can look at several at a time. */
static inline const uint8_t *skip_attributes(const uint8_t *at, const uint8_t *end,
                                             const uint8_t *stop, uint64_t *seen)
{
    /* tag, length, key's tag, key's length */
    const uint32_t expected = at[0] | (1 << 3 | WIRE_BYTES) << 16;
    const uint8_t *last = at;
    uint64_t count = 0;
    while (at < stop) {
        uint32_t header = load32(at);
        if ((header & 0x00ff80ff) != expected)
            break;
        /* Not of the header: the next one's place waits for this byte alone. */
        size_t size = at[1];
        uint32_t key_size = header >> 24;
        int32_t rest = (int32_t)size - (int32_t)key_size;
        if (rest < 6) /* the key's header, and a value's two */
            break;
        if (load32(at + 4 + key_size) != text_value_header(rest) &&
            !is_other_plain_value(at + 4 + key_size, rest - 4))
            break;
        last = at;
        at += size + 2;
        count++;
    }
    /* What is longer than the message is not for this loop: stop is no further than end. */
    if (at > end) {
        at = last;
        count--;
    }
    *seen += count;
    return at;
}

/* Where a field with a two-byte tag and four bytes ends (Span.flags), or NULL. */
static inline const uint8_t *skip_flags(const struct otlp_field *more, const uint8_t *at)
{
    if (more == NULL || more->kind != OTLP_FIXED32 || at[1] != more->number >> 4 ||
        at[0] != (uint8_t)(0x80 | more->number << 3 | WIRE_FIXED32))
        return NULL;
    return at + 2 + 4;
}

/* Whether the varints are whole and short. So few bytes that none can be too long are fine, and so
 * are more in which no four in a row go on: a varint that is too long has such a four. */
static inline bool are_plain_varints(const uint8_t *at, size_t size)
{
    if (size > WIRE_VARINT_BYTES_MAX)
        for (size_t i = 0; i + 4 <= size; i += 4)
            if ((load32(at + i) & 0x80808080) == 0x80808080)
                return false;
    return size == 0 || at[size - 1] < 0x80;
}

/* Where the field at `at`, which has a one-byte tag, ends if it is plain; else NULL. Steps are
 * constants but for texts, and branches rather than selections, so that the processor can run
 * ahead. */
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

/* Skips fields as long as they are plain, and says where it stopped. */
static inline const uint8_t *skip_plain(struct walk *walk, const struct otlp_message *message,
                                        const uint8_t *at, const uint8_t *end)
{
    const uint8_t *stop = end < walk->plain_end ? end : walk->plain_end;
    while (at < stop) {
        const uint8_t *next;
        if (at[0] >= 0x80)
            next = skip_flags(message->more, at);
        else if (message->plan[at[0]] == OTLP_KEY_VALUE)
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

static bool check_packed(const struct otlp_message *message, const struct otlp_field *field,
                         struct slice content)
{
    if (field->kind < OTLP_PACKED_INT32) {
        if (content.size % 8 == 0)
            return true;
        return reject("%s: field %u (%s) has %zu bytes, expected a multiple of 8", message->name,
                      field->number, field->name, content.size);
    }
    if (are_plain_varints(content.data, content.size))
        return true;
    struct wire_reader reader = wire_reader_of(content);
    while (reader.at < reader.end && reader.failure == NULL)
        wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
    if (reader.failure == NULL)
        return true;
    return reject("%s: field %u (%s): %s", message->name, field->number, field->name,
                  reader.failure);
}

/* Elements of a packed field may also come one by one, each with its own wire type. */
static bool is_lone_element(const struct otlp_field *field, enum wire_type type)
{
    return otlp_kind_is_packed(field->kind) &&
           type == (field->kind >= OTLP_PACKED_INT32 ? WIRE_VARINT : WIRE_FIXED64);
}

/* Everything but what is inside a nested message. */
static bool check_field(const struct otlp_message *message, const struct otlp_field *field,
                        const struct wire_field *found)
{
    if (is_lone_element(field, found->type))
        return true;
    if (field->wire != found->type)
        return reject("%s: field %u (%s) has wire type %u, expected %u", message->name,
                      field->number, field->name, (unsigned)found->type, field->wire);
    if (field->kind == OTLP_TRACE_ID)
        return check_id(message, field, found->bytes.size, TRACE_ID_BYTES);
    if (field->kind == OTLP_SPAN_ID)
        return check_id(message, field, found->bytes.size, SPAN_ID_BYTES);
    if (otlp_kind_is_packed(field->kind))
        return check_packed(message, field, found->bytes);
    return true;
}

static inline void count_message(struct walk *walk, const struct otlp_field *field)
{
    walk->figures.messages++;
    walk->figures.items += field->kind == OTLP_RECORDS;
    walk->figures.resources += field->kind == OTLP_RESOURCES;
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

/* Reads one field of any kind, *at being where it begins and then where it ends. ret_field is NULL
 * when there is nothing to go into. */
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
    if (field != NULL && !check_field(message, field, &found))
        return false;
    *at = reader.at;
    *ret_field = field != NULL && field->message != NULL ? field : NULL;
    *ret_content = found.bytes;
    return true;
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
        if (field == NULL)
            continue;
        count_message(walk, field);
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

/* A small message is mostly what the loop could not look at, for want of bytes behind it. */
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
