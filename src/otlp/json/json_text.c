/* SPDX-License-Identifier: Apache-2.0 */
/* Values as JSON text. Pure functions; any thread. */
#include "src/otlp/json/json_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/base64.h"
#include "src/base/utf8.h"
#include "src/otlp/json/value_text.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum { TEXT_BYTES_FIRST = 256 };

/* The arena frees nothing before the end, so that the room doubles. */
static bool reserve(struct json_text *json, size_t bytes)
{
    assert(json->size <= json->capacity);
    if (json->has_failed || bytes <= json->capacity - json->size)
        return !json->has_failed;
    size_t capacity = json->capacity > 0 ? 2 * json->capacity : TEXT_BYTES_FIRST;
    while (capacity - json->size < bytes)
        capacity *= 2;
    uint8_t *data = arena_try_alloc(json->arena, capacity);
    if (data == NULL) {
        json->has_failed = true;
        return false;
    }
    if (json->size > 0)
        memcpy(data, json->data, json->size);
    json->data = data;
    json->capacity = capacity;
    return true;
}

void json_text_raw(struct json_text *json, struct slice bytes)
{
    if (bytes.size == 0 || !reserve(json, bytes.size))
        return;
    memcpy(json->data + json->size, bytes.data, bytes.size);
    json->size += bytes.size;
}

static void write_text(struct json_text *json, const char *text)
{
    json_text_raw(json, slice_of_text(text));
}

void json_text_base64(struct json_text *json, struct slice bytes)
{
    size_t size = base64_size(bytes.size);
    if (bytes.size == 0 || !reserve(json, size))
        return;
    base64_encode(bytes, (char *)json->data + json->size);
    json->size += size;
}

static void write_escaped(struct json_text *json, uint8_t byte)
{
    assert(byte < 0x20 || byte == '"' || byte == '\\');
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    char text[8];
    const char *found = byte != 0 ? strchr(from, byte) : NULL;
    if (found != NULL)
        snprintf(text, sizeof(text), "\\%c", to[found - from]);
    else
        snprintf(text, sizeof(text), "\\u%04x", byte);
    write_text(json, text);
}

static void write_character(struct json_text *json, struct slice character)
{
    assert(character.size <= 4);
    if (character.size == 0) {
        write_text(json, "\\ufffd");
        return;
    }
    uint8_t byte = character.data[0];
    /* Line and paragraph separator, which JavaScript took for line ends. */
    if (character.size == 3 && memcmp(character.data, "\xe2\x80\xa8", 3) == 0)
        write_text(json, "\\u2028");
    else if (character.size == 3 && memcmp(character.data, "\xe2\x80\xa9", 3) == 0)
        write_text(json, "\\u2029");
    else if (character.size == 1 && (byte < 0x20 || byte == '"' || byte == '\\'))
        write_escaped(json, byte);
    else
        json_text_raw(json, character);
}

static void write_quoted(struct json_text *json, struct slice text)
{
    write_text(json, "\"");
    while (text.size > 0 && !json->has_failed) {
        size_t size = utf8_size(text);
        write_character(json, slice_of(text.data, size));
        size = size > 0 ? size : 1;
        text = slice_of(text.data + size, text.size - size);
    }
    write_text(json, "\"");
}

static void write_double(struct json_text *json, double real)
{
    char text[DOUBLE_TEXT_BYTES_MAX];
    json->has_no_text |= !isfinite(real);
    json_text_raw(json, slice_of(text, double_to_text(real, text)));
}

static void write_scalar(struct json_text *json, const struct value *value)
{
    assert(value->type != VALUE_LIST && value->type != VALUE_MAP);
    char number[24];
    switch (value->type) {
    case VALUE_TEXT:
        write_quoted(json, value->bytes);
        return;
    case VALUE_BOOL:
        write_text(json, value->boolean ? "true" : "false");
        return;
    case VALUE_INT:
        snprintf(number, sizeof(number), "%" PRId64, value->integer);
        write_text(json, number);
        return;
    case VALUE_DOUBLE:
        write_double(json, value->real);
        return;
    case VALUE_BYTES:
        write_text(json, "\"");
        json_text_base64(json, value->bytes);
        write_text(json, "\"");
        return;
    case VALUE_EMPTY:
    case VALUE_LIST:
    case VALUE_MAP:
    default:
        write_text(json, "null");
    }
}

struct entry {
    struct slice key;
    struct slice value;
    size_t order; /* among equal keys the last one counts */
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    size_t shared = a->key.size < b->key.size ? a->key.size : b->key.size;
    int difference = shared > 0 ? memcmp(a->key.data, b->key.data, shared) : 0;
    if (difference != 0)
        return difference;
    if (a->key.size != b->key.size)
        return a->key.size < b->key.size ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static struct entry read_entry(struct slice content, size_t order)
{
    struct entry entry = {.order = order};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1)
            entry.key = field.bytes;
        else if (field.number == 2)
            entry.value = field.bytes;
    }
    return entry;
}

static size_t count_elements(struct slice container)
{
    struct wire_reader reader = wire_reader_of(container);
    struct wire_field field;
    size_t count = 0;
    while (wire_read_field(&reader, &field))
        count += field.number == 1;
    return count;
}

/* The entries in the order of their keys; NULL when there is no room. */
static struct entry *sort_entries(struct json_text *json, struct slice container, size_t count)
{
    struct wire_reader reader = wire_reader_of(container);
    struct wire_field field;
    struct entry *entries = arena_try_alloc(json->arena, count * sizeof(entries[0]) + 1);
    if (entries == NULL) {
        json->has_failed = true;
        return NULL;
    }
    for (size_t i = 0; wire_read_field(&reader, &field);)
        if (field.number == 1) {
            entries[i] = read_entry(field.bytes, i);
            i++;
        }
    qsort(entries, count, sizeof(entries[0]), compare_entries);
    return entries;
}

static void write_list(struct json_text *json, struct slice container)
{
    struct wire_reader reader = wire_reader_of(container);
    struct wire_field field;
    const char *separator = "[";
    while (!json->has_failed && wire_read_field(&reader, &field))
        if (field.number == 1) {
            write_text(json, separator);
            json_text_value(json, field.bytes);
            separator = ",";
        }
    write_text(json, separator[0] == '[' ? "[]" : "]");
}

static void write_map(struct json_text *json, struct slice container)
{
    size_t count = count_elements(container);
    struct entry *entries = sort_entries(json, container, count);
    const char *separator = "{";
    for (size_t i = 0; entries != NULL && i < count && !json->has_failed; i++) {
        if (i + 1 < count && slice_equal(entries[i].key, entries[i + 1].key))
            continue;
        write_text(json, separator);
        write_quoted(json, entries[i].key);
        write_text(json, ":");
        json_text_value(json, entries[i].value);
        separator = ",";
    }
    write_text(json, separator[0] == '{' ? "{}" : "}");
}

/* Recursion is bounded by otlp_check, which lets messages nest WIRE_DEPTH_MAX deep. */
void json_text_value(struct json_text *json, struct slice encoded)
{
    struct value value = value_read(encoded);
    if (value.type == VALUE_LIST)
        write_list(json, value.bytes);
    else if (value.type == VALUE_MAP)
        write_map(json, value.bytes);
    else
        write_scalar(json, &value);
}

bool json_text_finish(struct json_text *json, struct slice *ret_text)
{
    assert(json->has_failed || json->size <= json->capacity);
    if (json->has_failed)
        return false;
    *ret_text = slice_of(json->data, json->has_no_text ? 0 : json->size);
    return true;
}
