/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a span. Most of its bytes are unwanted attributes: they are skipped by their lengths, and
 * where the key comes first, as every SDK writes it, its length alone rules most of them out.
 * Fields in the usual layout are read in place; all others by the generic reader. Pure functions;
 * any thread. */
#include "src/join/spans/span_view.h"

#include <assert.h>
#include <endian.h>

#include "src/otlp/key_value.h"
#include "src/otlp/wire.h"

enum span_field {
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_PARENT_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
    STATUS_CODE_FIELD = 3,
};

/* OTLP's numbers. */
enum { STATUS_OK_CODE = 1, STATUS_ERROR_CODE = 2, TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

/* Tags of one byte; that of the flags takes two. */
enum {
    TAG_TRACE_ID = SPAN_TRACE_ID << 3 | WIRE_BYTES,
    TAG_ID = SPAN_ID << 3 | WIRE_BYTES,
    TAG_PARENT_ID = SPAN_PARENT_ID << 3 | WIRE_BYTES,
    TAG_START = SPAN_START << 3 | WIRE_FIXED64,
    TAG_END = SPAN_END << 3 | WIRE_FIXED64,
    TAG_ATTRIBUTES = SPAN_ATTRIBUTES << 3 | WIRE_BYTES,
    TAG_KEY = 1 << 3 | WIRE_BYTES,
    TAG_VALUE = 2 << 3 | WIRE_BYTES,
};

void span_keys_add(struct span_keys *keys, struct slice name, unsigned value)
{
    assert(value < SPAN_VALUES);
    assert(keys->count < SPAN_KEYS_MAX);
    keys->items[keys->count++] = (struct span_key){.name = name, .value = value};
    keys->lengths |= (uint64_t)1 << name.size % 64;
}

static uint64_t read_id(const uint8_t *data)
{
    uint64_t id;
    memcpy(&id, data, sizeof(id));
    return id;
}

/* Whether it is too short to be wanted; or has the usual layout, key and value in fields of less
 * than 128 bytes and nothing else, and no wanted key has its key's length. */
static inline bool is_unwanted(const struct span_keys *keys, struct slice attribute)
{
    enum { HEADERS_BYTES = 4 };
    const uint8_t *at = attribute.data;
    if (attribute.size <= HEADERS_BYTES)
        return true; /* no room for a key that is not empty */
    if (at[0] != TAG_KEY)
        return false;
    size_t left = attribute.size - HEADERS_BYTES;
    size_t key = at[1];
    if (key >= 0x80 || key > left || (keys->lengths >> key % 64 & 1) != 0)
        return false;
    return at[2 + key] == TAG_VALUE && at[3 + key] < 0x80 && at[3 + key] == left - key;
}

static void __attribute__((noinline))
read_attribute(const struct span_keys *keys, struct slice attribute, struct span_view *view)
{
    struct key_value found = key_value_of(attribute);
    for (unsigned i = 0; i < keys->count; i++) {
        const struct span_key *key = &keys->items[i];
        if (found.value.data == NULL || !slice_equal(key->name, found.key))
            continue;
        view->values[key->value] = found.value;
        view->has_values |= 1u << key->value;
    }
    assert(view->has_values >> SPAN_VALUES == 0);
}

/* Reads consecutive attributes with lengths of one or two bytes. Returns where something else
 * begins. */
static const uint8_t *read_attributes(const struct span_keys *keys, const uint8_t *at,
                                      const uint8_t *end, struct span_view *view)
{
    enum { HEADER_BYTES_MAX = 3 };
    while (end - at >= HEADER_BYTES_MAX && *at == TAG_ATTRIBUTES) {
        const uint8_t *content = at + 2;
        size_t size = at[1];
        if (size >= 0x80) {
            size = (size & 0x7f) | (size_t)*content << 7;
            if (*content++ >= 0x80)
                break;
        }
        if (size > (size_t)(end - content))
            break;
        at = content + size;
        if (keys->count > 0 && !is_unwanted(keys, slice_of(content, size)))
            read_attribute(keys, slice_of(content, size), view);
    }
    return at;
}

static void read_field(const struct span_keys *keys, const struct wire_field *field,
                       struct span_view *view)
{
    struct span_facts *facts = &view->facts;
    struct wire_reader status;
    struct wire_field code;
    switch ((enum span_field)field->number) {
    case SPAN_TRACE_ID:
        if (field->bytes.size == TRACE_ID_BYTES) {
            facts->trace[0] = read_id(field->bytes.data);
            facts->trace[1] = read_id(field->bytes.data + SPAN_ID_BYTES);
        }
        break;
    case SPAN_ID:
        facts->span = field->bytes.size == SPAN_ID_BYTES ? read_id(field->bytes.data) : 0;
        break;
    case SPAN_PARENT_ID:
        facts->parent = field->bytes.size == SPAN_ID_BYTES ? read_id(field->bytes.data) : 0;
        break;
    case SPAN_NAME:
        view->name = field->bytes;
        break;
    case SPAN_KIND:
        view->kind = (uint32_t)field->number_value;
        break;
    case SPAN_START:
        facts->start_ns = field->number_value;
        break;
    case SPAN_END:
        facts->end_ns = field->number_value;
        break;
    case SPAN_ATTRIBUTES:
        read_attribute(keys, field->bytes, view);
        break;
    case SPAN_STATUS:
        status = wire_reader_of(field->bytes);
        while (wire_next_field(&status, &code)) {
            if (code.number != STATUS_CODE_FIELD)
                continue;
            facts->flags &= (uint16_t) ~(SPAN_IS_OK | SPAN_IS_ERROR);
            if (code.number_value == STATUS_ERROR_CODE)
                facts->flags |= SPAN_IS_ERROR;
            else if (code.number_value == STATUS_OK_CODE)
                facts->flags |= SPAN_IS_OK;
        }
        assert(status.failure == NULL);
        break;
    case SPAN_FLAGS:
        view->flags = (uint32_t)field->number_value;
        break;
    case STATUS_CODE_FIELD:
    default:
        break;
    }
}

bool span_view_read(const struct span_keys *keys, struct slice content, struct span_view *ret_view)
{
    enum { ID = 2 + TRACE_ID_BYTES, IDS_BYTES = ID + 2 + SPAN_ID_BYTES, FIXED64_BYTES = 1 + 8 };
    struct span_facts *facts = &ret_view->facts;
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    ret_view->name = (struct slice){0};
    *facts = (struct span_facts){.span = 0};
    ret_view->flags = 0;
    ret_view->kind = 0;
    ret_view->has_values = 0; /* so that values need not be cleared */
    /* Nearly always both ids come first. */
    const uint8_t *ids = reader.at;
    if (reader.end - ids >= IDS_BYTES && ids[0] == TAG_TRACE_ID && ids[1] == TRACE_ID_BYTES &&
        ids[ID] == TAG_ID && ids[ID + 1] == SPAN_ID_BYTES) {
        facts->trace[0] = read_id(ids + 2);
        facts->trace[1] = read_id(ids + 2 + SPAN_ID_BYTES);
        facts->span = read_id(ids + ID + 2);
        reader.at = ids + IDS_BYTES;
    }
    while (reader.at < reader.end && reader.failure == NULL) {
        /* Times and attributes, which the generic reader would be slow with; then any others. */
        const uint8_t *at = reader.at;
        if (*at == TAG_ATTRIBUTES) {
            reader.at = read_attributes(keys, at, reader.end, ret_view);
        } else if (*at == TAG_START && reader.end - at >= FIXED64_BYTES) {
            facts->start_ns = le64toh(read_id(at + 1));
            reader.at = at + FIXED64_BYTES;
        } else if (*at == TAG_END && reader.end - at >= FIXED64_BYTES) {
            facts->end_ns = le64toh(read_id(at + 1));
            reader.at = at + FIXED64_BYTES;
        }
        if (reader.at == at && wire_next_field(&reader, &field))
            read_field(keys, &field, ret_view);
    }
    assert(reader.failure == NULL);
    return facts->span != 0;
}
