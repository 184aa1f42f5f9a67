/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing AnyValue. Pure functions; any thread. */
#include "src/otlp/value.h"

#include <assert.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/otlp/wire.h"

enum {
    SCALAR_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX,
    HEADER_BYTES_MAX = 1 + WIRE_SHORT_VARINT_BYTES_MAX,
    TEXT = 1,
    BOOL = 2,
    INT = 3,
    DOUBLE = 4,
    LIST = 5,
    MAP = 6,
    BYTES = 7,
    STRING_INDEX = 8, /* string_value_strindex: empty outside profiles */
};

struct value value_read(struct slice encoded)
{
    struct value value = {.type = VALUE_EMPTY};
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        switch (field.number) {
        case TEXT:
            value = (struct value){.type = VALUE_STRING, .bytes = field.bytes};
            break;
        case BOOL:
            value = (struct value){.type = VALUE_BOOL, .boolean = field.number_value != 0};
            break;
        case INT:
            value = (struct value){.type = VALUE_INT, .integer = (int64_t)field.number_value};
            break;
        case DOUBLE:
            value = (struct value){.type = VALUE_DOUBLE};
            memcpy(&value.real, &field.number_value, sizeof(value.real));
            break;
        case LIST:
            value = (struct value){.type = VALUE_LIST, .bytes = field.bytes};
            break;
        case MAP:
            value = (struct value){.type = VALUE_MAP, .bytes = field.bytes};
            break;
        case BYTES:
            value = (struct value){.type = VALUE_BYTES, .bytes = field.bytes};
            break;
        case STRING_INDEX:
            value = (struct value){.type = VALUE_EMPTY};
            break;
        default:
            break;
        }
    }
    assert(reader.failure == NULL);
    return value;
}

struct slice value_last_field(struct slice encoded)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct slice last = slice_of(encoded.data, 0);
    while (wire_next_field(&reader, &field))
        if (field.number >= TEXT && field.number <= STRING_INDEX)
            last = field.whole;
    assert(reader.failure == NULL);
    return last;
}

struct value value_read_single(struct slice encoded)
{
    enum { LIST_VALUES = 1 };
    struct value value = value_read(encoded);
    struct slice element = {.data = NULL};
    struct wire_field field;
    if (value.type != VALUE_LIST)
        return value;
    struct wire_reader reader = wire_reader_of(value.bytes);
    while (wire_next_field(&reader, &field)) {
        if (field.number != LIST_VALUES || field.type != WIRE_BYTES)
            continue;
        if (element.data != NULL)
            return value;
        element = field.bytes;
    }
    assert(reader.failure == NULL);
    return element.data != NULL ? value_read(element) : value;
}

static void write_value(struct wire_writer *writer, const struct value *value)
{
    uint64_t bits;
    switch (value->type) {
    case VALUE_EMPTY:
        return;
    case VALUE_BOOL:
        wire_write_number(writer, BOOL, value->boolean);
        return;
    case VALUE_INT:
        wire_write_number(writer, INT, (uint64_t)value->integer);
        return;
    case VALUE_DOUBLE:
        memcpy(&bits, &value->real, sizeof(bits));
        wire_write_fixed64(writer, DOUBLE, bits);
        return;
    case VALUE_STRING:
        wire_write_bytes(writer, TEXT, value->bytes);
        return;
    case VALUE_LIST:
        wire_write_bytes(writer, LIST, value->bytes);
        return;
    case VALUE_MAP:
        wire_write_bytes(writer, MAP, value->bytes);
        return;
    case VALUE_BYTES:
        wire_write_bytes(writer, BYTES, value->bytes);
        return;
    default:
        assert(false);
    }
}

bool value_write(struct arena *arena, const struct value *value, struct slice *ret_encoded)
{
    size_t room_bytes = SCALAR_BYTES_MAX + HEADER_BYTES_MAX + value->bytes.size;
    void *room = arena_try_alloc(arena, room_bytes);
    if (room == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(room, room_bytes);
    write_value(&writer, value);
    *ret_encoded = wire_written(&writer);
    return true;
}

bool value_write_string(struct arena *arena, struct slice text, struct slice *ret_encoded)
{
    struct value value = {.type = VALUE_STRING, .bytes = text};
    return value_write(arena, &value, ret_encoded);
}

/* Upper bound of what write_config writes. Recursion is bounded by CONFIG_DEPTH_MAX. */
static size_t config_bytes(const struct config_value *config)
{
    assert(config->count == 0 || config->items != NULL);
    size_t size = SCALAR_BYTES_MAX + 2 * HEADER_BYTES_MAX;
    if (config->type == CONFIG_VALUE_TEXT)
        size += strlen(config->text);
    for (size_t i = 0; i < config->count; i++) {
        size += config_bytes(&config->items[i]) + 2 * HEADER_BYTES_MAX;
        if (config->type == CONFIG_VALUE_MAP)
            size += strlen(config->keys[i]);
    }
    return size;
}

/* Recursion is bounded by CONFIG_DEPTH_MAX. */
struct slice value_from_config(const struct config_value *config)
{
    size_t room_bytes = config_bytes(config);
    struct value value = {.type = VALUE_EMPTY};
    switch (config->type) {
    case CONFIG_VALUE_BOOL:
        value = (struct value){.type = VALUE_BOOL, .boolean = config->boolean};
        break;
    case CONFIG_VALUE_INT:
        value = (struct value){.type = VALUE_INT, .integer = config->integer};
        break;
    case CONFIG_VALUE_DOUBLE:
        value = (struct value){.type = VALUE_DOUBLE, .real = config->real};
        break;
    case CONFIG_VALUE_TEXT:
        value = (struct value){.type = VALUE_STRING, .bytes = slice_of_text(config->text)};
        break;
    case CONFIG_VALUE_LIST:
        value.type = VALUE_LIST;
        break;
    case CONFIG_VALUE_MAP:
        value.type = VALUE_MAP;
        break;
    case CONFIG_VALUE_NULL:
    default:
        break;
    }
    struct wire_writer content = wire_writer_of(mem_alloc(room_bytes), room_bytes);
    for (size_t i = 0; i < config->count; i++) {
        struct slice item = value_from_config(&config->items[i]);
        /* An AnyValue, or a KeyValue, as field 1 of its container. */
        if (config->type == CONFIG_VALUE_MAP) {
            struct slice key = slice_of_text(config->keys[i]);
            wire_write_header(&content, 1,
                              wire_field_size(1, key.size) + wire_field_size(2, item.size));
            wire_write_bytes(&content, 1, key);
            wire_write_bytes(&content, 2, item);
        } else {
            wire_write_bytes(&content, 1, item);
        }
        mem_free((void *)(uintptr_t)item.data);
    }
    if (config->count > 0)
        value.bytes = wire_written(&content);
    struct wire_writer writer = wire_writer_of(mem_alloc(room_bytes), room_bytes);
    write_value(&writer, &value);
    mem_free(content.begin);
    return wire_written(&writer);
}
