/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's loop: members of objects, elements of lists, and the lengths in front of messages,
 * for which room is left that is nearly always right, because messages in one place are alike. The
 * stack of what is open is its own, and bounded. Pure function; any thread. */
#include "src/otlp/json/json_read.h"
#include "src/otlp/otlp_limits.h"

#include <assert.h>
#include <stdio.h>

#include "src/otlp/json/json_reader.h"

enum {
    FOUND_BYTES_MAX = 24,
    /* tag, length, and as much again for a length that gets longer when its message ends */
    OPEN_BYTES_MAX = 3 * WIRE_SHORT_VARINT_BYTES_MAX,
    OUTPUT_BYTES_FIRST = 64,
    SCOPES = 2,           /* scope_spans and its sisters, ... */
    LEGACY_SCOPES = 1000, /* ... and how they were called before OTLP 0.15 */
};

bool json_reader_grow(struct json_reader *reader, size_t bytes)
{
    struct buffer *out = reader->out;
    size_t least = out->size + out->size / 8 + bytes;
    size_t capacity = least < 2 * out->capacity ? 2 * out->capacity : least;
    out = buffer_try_grow(out, capacity);
    if (out == NULL && least > reader->out->capacity)
        out = buffer_try_grow(reader->out, least);
    if (out == NULL) {
        /* While it is copied both are there, and the text. */
        uint64_t needed = reader->text_bytes + reader->out->size + least;
        const struct budget *budget = reader->out->budget;
        bool is_hopeless = budget != NULL && needed > budget_limit(budget);
        reader->result = is_hopeless ? JSON_TOO_LARGE : JSON_NO_BUDGET;
        return false;
    }
    reader->out = out;
    assert(out->capacity - out->size >= bytes);
    return true;
}

/* What stands at `at`, as far as it can be shown in a line. */
static void describe_found(const struct json_reader *reader, const uint8_t *at,
                           char text[FOUND_BYTES_MAX + 16])
{
    size_t left = (size_t)(reader->scan.end - at);
    if (left == 0) {
        snprintf(text, FOUND_BYTES_MAX + 16, "the end of the text");
        return;
    }
    if (*at < ' ' || *at > '~') {
        snprintf(text, FOUND_BYTES_MAX + 16, "the byte 0x%02x", *at);
        return;
    }
    size_t size = 0;
    while (size < left && size < FOUND_BYTES_MAX && at[size] >= ' ' && at[size] <= '~' &&
           (size == 0 || strchr(",:[]{} ", at[size]) == NULL))
        size++;
    snprintf(text, FOUND_BYTES_MAX + 16, "%.*s%s", (int)size, (const char *)at,
             size == FOUND_BYTES_MAX ? "..." : "");
}

/* The innermost message that is known, and its field. */
static void describe_place(const struct json_reader *reader, char *text, size_t size)
{
    assert(size > 0);
    text[0] = '\0';
    for (unsigned i = reader->depth; i > 0; i--) {
        const struct json_frame *frame = &reader->frames[i - 1];
        if (frame->message == NULL)
            continue;
        snprintf(text, size, ", in %s%s%s", frame->message->name, frame->field != NULL ? "." : "",
                 frame->field != NULL ? frame->field->json_name : "");
        return;
    }
}

bool __attribute__((cold))
json_reader_fail(struct json_reader *reader, const uint8_t *at, const char *expected)
{
    char found[FOUND_BYTES_MAX + 16];
    char place[128];
    assert(at >= reader->scan.begin && at <= reader->scan.end);
    reader->result = JSON_MALFORMED;
    describe_found(reader, at, found);
    describe_place(reader, place, sizeof(place));
    snprintf(reader->reason, JSON_REASON_BYTES_MAX, "JSON at byte %zu%s: found %s, expected %s",
             (size_t)(at - reader->scan.begin), place, found, expected);
    return false;
}

static bool fail_limit(struct json_reader *reader, const char *what, unsigned limit)
{
    char expected[64];
    assert(limit > 0);
    snprintf(expected, sizeof(expected), "at most %u %s", limit, what);
    return json_reader_fail(reader, reader->scan.at, expected);
}

static struct json_frame *push(struct json_reader *reader)
{
    if (reader->depth == JSON_DEPTH_MAX) {
        fail_limit(reader, "levels of nesting", JSON_DEPTH_MAX);
        return NULL;
    }
    struct json_frame *frame = &reader->frames[reader->depth++];
    size_t header_bytes = frame->header_bytes;
    if (header_bytes == 0)
        header_bytes = wire_varint_size((uint64_t)(reader->scan.end - reader->scan.at) / 2);
    *frame = (struct json_frame){.header_bytes = (uint8_t)header_bytes};
    assert(reader->depth <= JSON_DEPTH_MAX);
    return frame;
}

/* Its tag, and room for its length. The frame has been pushed. */
static bool begin_content(struct json_reader *reader, struct json_frame *frame, uint32_t number)
{
    if (!json_reader_room(reader, OPEN_BYTES_MAX))
        return false;
    struct buffer *out = reader->out;
    uint8_t *at = json_put_varint(out->data + out->size, wire_tag(number, WIRE_BYTES));
    frame->begin = (size_t)(at - out->data) + frame->header_bytes;
    out->size = frame->begin;
    frame->has_length = true;
    assert(out->size <= out->capacity);
    return true;
}

/* Puts the length in front of the content, which moves when the room turns out to be wrong. */
static bool end_content(struct json_reader *reader, struct json_frame *frame)
{
    size_t size = reader->out->size - frame->begin;
    size_t needed = wire_varint_size(size);
    size_t header = frame->begin - frame->header_bytes;
    if (needed != frame->header_bytes) {
        if (!json_reader_room(reader, WIRE_VARINT_BYTES_MAX))
            return false;
        memmove(reader->out->data + header + needed, reader->out->data + frame->begin, size);
        reader->out->size = header + needed + size;
        frame->header_bytes = (uint8_t)needed;
    }
    uint8_t *end = json_put_varint(reader->out->data + header, size);
    assert(end == reader->out->data + header + needed);
    return true;
}

static bool open_message(struct json_reader *reader, const struct otlp_field *field)
{
    struct json_frame *parent = json_reader_top(reader);
    assert(json_scan_peek(&reader->scan) == '{');
    struct json_frame *frame = push(reader);
    if (frame == NULL)
        return false;
    if (++reader->messages > WIRE_DEPTH_MAX)
        return fail_limit(reader, "messages in one another", WIRE_DEPTH_MAX);
    if (!parent->is_list)
        json_begin_member(parent, field, reader->out);
    reader->scan.at++;
    frame->message = field->message;
    return begin_content(reader, frame, field->number);
}

/* What closes at the end of an object or a list; the scan is past its bracket. */
static bool close_top(struct json_reader *reader)
{
    struct json_frame *frame = json_reader_top(reader);
    if (frame->has_length && !end_content(reader, frame))
        return false;
    reader->messages -= frame->message != NULL;
    reader->depth--;
    if (reader->depth == 0)
        return true;
    struct json_frame *parent = json_reader_top(reader);
    if (parent->message == NULL || parent->field == NULL)
        return true;
    bool is_one = json_is_in(parent->message->one_of, parent->field);
    bool was_legacy = frame->is_list && frame->field != parent->field;
    if (is_one || was_legacy)
        parent->one_end = reader->out->size;
    return true;
}

/* A message that is null, where it says something: as an element, and in a oneof. */
static bool write_empty_message(struct json_reader *reader, const struct otlp_field *field)
{
    struct json_frame *frame = json_reader_top(reader);
    bool is_one = !frame->is_list && json_is_in(frame->message->one_of, field);
    if (!frame->is_list && !is_one)
        return true;
    if (!json_reader_room(reader, OPEN_BYTES_MAX))
        return false;
    if (is_one)
        json_begin_member(frame, field, reader->out);
    struct buffer *out = reader->out;
    uint8_t *at = json_put_varint(out->data + out->size, wire_tag(field->number, WIRE_BYTES));
    *at++ = 0;
    out->size = (size_t)(at - out->data);
    assert(out->size <= out->capacity);
    if (is_one)
        frame->one_end = out->size;
    return true;
}

static bool read_value(struct json_reader *reader, const struct otlp_field *field)
{
    if (field->message == NULL)
        return json_read_scalar(reader, field);
    if (json_scan_peek(&reader->scan) == '{')
        return open_message(reader, field);
    if (json_scan_word(&reader->scan, "null"))
        return write_empty_message(reader, field);
    return json_reader_fail(reader, reader->scan.at, "an object, or null");
}

static bool skip_value(struct json_reader *reader)
{
    struct json_string string;
    struct json_number number;
    uint8_t first = json_scan_peek(&reader->scan);
    if (first == '{' || first == '[') {
        struct json_frame *frame = push(reader);
        if (frame == NULL)
            return false;
        frame->is_list = first == '[';
        reader->scan.at++;
        return true;
    }
    const uint8_t *begin = reader->scan.at;
    bool is_sound = false;
    if (first == '"')
        is_sound = json_scan_string(&reader->scan, &string);
    else if (first == '-' || (first >= '0' && first <= '9'))
        is_sound = json_scan_number(&reader->scan, &number);
    else
        is_sound = json_scan_word(&reader->scan, "null") || json_scan_word(&reader->scan, "true") ||
                   json_scan_word(&reader->scan, "false");
    assert(reader->scan.at >= begin);
    return is_sound || json_reader_fail(reader, reader->scan.at, "a value of JSON");
}

/* Scopes under the name of old count only while there are none under the new one. */
static const struct otlp_field *replace_legacy(struct json_frame *frame,
                                               const struct otlp_field *field, struct buffer *out)
{
    bool has_scopes = (frame->seen & 1u << SCOPES) != 0;
    if (field->number == LEGACY_SCOPES) {
        if (has_scopes || frame->one_end > 0)
            return NULL;
        frame->one_begin = out->size;
        return &frame->message->fields[SCOPES];
    }
    if (field->number != SCOPES || has_scopes)
        return field;
    assert(frame->one_end <= out->size);
    if (frame->one_end > frame->one_begin) {
        memmove(out->data + frame->one_begin, out->data + frame->one_end,
                out->size - frame->one_end);
        out->size -= frame->one_end - frame->one_begin;
    }
    frame->one_begin = frame->one_end = 0;
    frame->seen |= 1u << SCOPES;
    return field;
}

static bool is_empty_list(const struct json_reader *reader)
{
    struct json_scan ahead = reader->scan;
    assert(json_scan_peek(&ahead) == '[');
    ahead.at++;
    json_scan_space(&ahead);
    return json_scan_peek(&ahead) == ']';
}

static bool read_list(struct json_reader *reader, const struct otlp_field *field)
{
    struct json_frame *parent = json_reader_top(reader);
    if (json_scan_word(&reader->scan, "null"))
        return true;
    if (json_scan_peek(&reader->scan) != '[')
        return json_reader_fail(reader, reader->scan.at, "a list, or null");
    bool is_empty = is_empty_list(reader);
    if (!is_empty && parent->message->more != NULL && field->message != NULL)
        field = replace_legacy(parent, field, reader->out);
    if (field == NULL) {
        parent->field = NULL;
        return skip_value(reader);
    }
    struct json_frame *frame = push(reader);
    if (frame == NULL)
        return false;
    reader->scan.at++;
    frame->is_list = true;
    frame->field = field;
    return is_empty || !otlp_kind_is_packed(field->kind) ||
           begin_content(reader, frame, field->number);
}

/* Members mostly come in the order of their numbers, so that the search begins behind the last. */
static const struct otlp_field *find_name(const struct json_frame *frame, struct slice name)
{
    const struct otlp_message *message = frame->message;
    unsigned first = frame->field != NULL ? frame->field->number + 1u : 1;
    for (unsigned i = 0; i < OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field = &message->fields[(first + i) % OTLP_SHORT_FIELDS];
        if (field->json_name_size == name.size &&
            memcmp(field->json_name, name.data, name.size) == 0)
            return field;
    }
    for (unsigned i = 0; i < OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field = &message->fields[i];
        if (field->name_size == name.size && memcmp(field->name, name.data, name.size) == 0)
            return field;
    }
    if (message->more != NULL && (slice_equal_text(name, message->more->json_name) ||
                                  slice_equal_text(name, message->more->name)))
        return message->more;
    return NULL;
}

static const struct otlp_field *find_field(const struct json_frame *frame,
                                           const struct json_string *key)
{
    uint8_t room[64];
    if (frame->message == NULL || key->raw.size == 0)
        return NULL;
    if (!key->has_escapes)
        return find_name(frame, key->raw);
    if (key->raw.size > sizeof(room))
        return NULL;
    return find_name(frame, slice_of(room, json_unescape(key, room)));
}

static bool read_member(struct json_reader *reader)
{
    struct json_frame *frame = json_reader_top(reader);
    struct json_string key;
    assert(!frame->is_list);
    if (json_scan_peek(&reader->scan) != '"' || !json_scan_string(&reader->scan, &key))
        return json_reader_fail(reader, reader->scan.at, "a name as a string");
    json_scan_space(&reader->scan);
    if (json_scan_peek(&reader->scan) != ':')
        return json_reader_fail(reader, reader->scan.at, "a colon");
    reader->scan.at++;
    json_scan_space(&reader->scan);
    const struct otlp_field *field = find_field(frame, &key);
    frame->field = field;
    if (field == NULL)
        return skip_value(reader);
    return otlp_kind_is_repeated(field->kind) ? read_list(reader, field)
                                              : read_value(reader, field);
}

/* A member, an element, or the end of what is open. */
static bool read_next(struct json_reader *reader)
{
    struct json_frame *frame = json_reader_top(reader);
    json_scan_space(&reader->scan);
    uint8_t next = json_scan_peek(&reader->scan);
    if (next == (frame->is_list ? ']' : '}')) {
        reader->scan.at++;
        return close_top(reader);
    }
    if (frame->has_any) {
        if (next != ',')
            return json_reader_fail(reader, reader->scan.at,
                                    frame->is_list ? "a comma or ]" : "a comma or }");
        reader->scan.at++;
        json_scan_space(&reader->scan);
    }
    frame->has_any = true;
    if (!frame->is_list)
        return read_member(reader);
    return frame->field != NULL ? read_value(reader, frame->field) : skip_value(reader);
}

static bool read_document(struct json_reader *reader, const struct otlp_message *message)
{
    assert(reader->depth == 0);
    json_scan_space(&reader->scan);
    if (json_scan_peek(&reader->scan) == '{') {
        push(reader)->message = message;
        reader->scan.at++;
        while (reader->depth > 0)
            if (!read_next(reader))
                return false;
    } else if (!json_scan_word(&reader->scan, "null")) {
        return json_reader_fail(reader, reader->scan.at,
                                "a JSON object in UTF-8, without a byte order mark");
    }
    json_scan_space(&reader->scan);
    return reader->scan.at == reader->scan.end ||
           json_reader_fail(reader, reader->scan.at, "nothing behind the first value");
}

enum json_result json_read(const struct otlp_message *message, struct slice text,
                           struct budget *budget, struct buffer **ret_encoded,
                           char reason[JSON_REASON_BYTES_MAX])
{
    struct json_reader reader;
    reader.scan = json_scan_of(text);
    reader.reason = reason;
    reader.result = JSON_READ;
    reader.depth = 0;
    reader.messages = 1;
    reader.text_bytes = text.size;
    for (unsigned i = 0; i < JSON_DEPTH_MAX; i++)
        reader.frames[i].header_bytes = 0;
    reader.out = buffer_try_create(budget, text.size / 2 + OUTPUT_BYTES_FIRST);
    if (reader.out == NULL)
        return JSON_NO_BUDGET;
    if (!read_document(&reader, message)) {
        assert(reader.result != JSON_READ);
        buffer_unref(reader.out);
        return reader.result;
    }
    assert(reader.out->size <= JSON_READ_RATIO_MAX * text.size);
    *ret_encoded = buffer_shrink(reader.out);
    return JSON_READ;
}
