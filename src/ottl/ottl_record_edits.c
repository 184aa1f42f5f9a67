/* SPDX-License-Identifier: Apache-2.0 */
/* What has become of a record as edits of the batch: attributes and fields that have changed are
 * written anew, in their places. Runs on the owner's thread. */
#include "src/ottl/ottl_record.h"

#include <assert.h>

#include "src/base/short_bytes.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_edit.h"

enum {
    KEY = 1,
    VALUE = 2,
    TEXT = 1, /* of AnyValue */
    HEADER_BYTES_MAX = 10,
    SCHEMA_URL_FIELD = 3,
    SHORT_TAGS = 16, /* smaller numbers of fields have tags of one byte */
    SHORT = 0x80,    /* smaller lengths have one byte */
    /* Of a KeyValue whose lengths are short: where the key begins, and all tags and lengths. */
    KEY_AT = 4,
    SHORT_HEADERS = 6,
    SHORT_MAX = SHORT - 1 - SHORT_HEADERS,
};

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline uint8_t *put_header(uint8_t *at, uint32_t number, size_t bytes)
{
    return put_varint(put_varint(at, wire_tag(number, WIRE_BYTES)), bytes);
}

/* Of the content of an AnyValue that is a text. */
static inline size_t text_size(size_t bytes)
{
    return bytes < SHORT ? 2 + bytes : wire_field_size(TEXT, bytes);
}

/* value_size is what ottl_value_encoded_size said. */
static uint8_t *put_key_value(const struct ottl_entry *entry, uint32_t number, size_t value_size,
                              uint8_t *at)
{
    size_t size = wire_field_size(KEY, entry->key.size) + wire_field_size(VALUE, value_size);
    at = put_header(put_header(at, number, size), KEY, entry->key.size);
    if (entry->key.size > 0)
        memcpy(at, entry->key.data, entry->key.size);
    at = put_header(at + entry->key.size, VALUE, value_size);
    return ottl_value_encode(&entry->value, at);
}

static bool entry_has_changed(const struct ottl_entry *entry)
{
    return entry->is_new || (entry->value.type == OTTL_MAP && entry->value.map->base.has_changed) ||
           (entry->value.type == OTTL_LIST && entry->value.list->base.has_changed);
}

static bool is_ready(const struct ottl_entry *entry)
{
    const struct ottl_ready *ready = entry->ready;
    return ready != NULL && entry->value.type == ready->value.type &&
           entry->value.size == ready->value.size && entry->value.bytes == ready->value.bytes &&
           entry->key.data == ready->key.data && entry->key.size == ready->key.size;
}

/* Writes what was encoded before, and up to OTTL_READY_SLACK bytes more. Returns its end. */
static inline uint8_t *put_ready(const struct ottl_ready *ready, uint32_t number, uint8_t *at)
{
    const struct slice encoded = ready->encoded;
    /* Most are short: in pieces, of which the last may be too long. */
    for (size_t i = 0; i < encoded.size; i += OTTL_READY_SLACK)
        memcpy(at + i, encoded.data + i, OTTL_READY_SLACK);
    at[0] = (uint8_t)wire_tag(number, WIRE_BYTES);
    return at + encoded.size;
}

/* One that has changed, and is so short that each length has one byte. value_size is what
 * ottl_value_encoded_size said. Returns its end. */
static inline uint8_t *put_short(const struct ottl_entry *entry, uint32_t number, size_t value_size,
                                 uint8_t *at)
{
    const size_t key = entry->key.size;
    at[0] = (uint8_t)wire_tag(number, WIRE_BYTES);
    at[1] = (uint8_t)(SHORT_HEADERS - 2 + key + value_size);
    at[2] = (uint8_t)wire_tag(KEY, WIRE_BYTES);
    at[3] = (uint8_t)key;
    short_copy(at + KEY_AT, entry->key.data, key);
    at += KEY_AT + key;
    at[0] = (uint8_t)wire_tag(VALUE, WIRE_BYTES);
    at[1] = (uint8_t)value_size;
    if (entry->value.type == OTTL_STRING) {
        at[2] = (uint8_t)wire_tag(TEXT, WIRE_BYTES);
        at[3] = (uint8_t)(value_size - 2);
        short_copy(at + 4, entry->value.bytes, value_size - 2);
    } else if (entry->value.type == OTTL_ENCODED) {
        short_copy(at + 2, entry->value.bytes, value_size);
    } else {
        ottl_value_encode(&entry->value, at + 2);
    }
    return at + 2 + value_size;
}

/* One that is long, or that has not changed. Returns its size; 0: memory is refused. */
static __attribute__((noinline)) size_t write_long(const struct ottl_entry *entry, uint32_t number,
                                                   size_t value_size, struct ottl_edits *edits)
{
    const bool has_changed = entry_has_changed(entry);
    const size_t size = has_changed
                            ? wire_field_size(number, wire_field_size(KEY, entry->key.size) +
                                                          wire_field_size(VALUE, value_size))
                            : entry->whole.size;
    uint8_t *const room = ottl_edits_room(edits, size);
    if (room == NULL)
        return 0;
    if (has_changed)
        put_key_value(entry, number, value_size, room);
    else
        memcpy(room, entry->whole.data, size);
    return size;
}

/* Writes the entries from..to one behind the other. Returns how many bytes they take; edits fail if
 * memory is refused. */
static size_t write_entries(const struct ottl_record *record, uint32_t from, uint32_t to,
                            struct ottl_edits *edits)
{
    const struct ottl_entry *entry = &record->attributes.entries[from];
    const struct ottl_entry *const end = &record->attributes.entries[to];
    const uint32_t number = record->attributes_field;
    size_t bytes = 0;
    for (; entry != end; entry++) {
        uint8_t *room;
        const uint8_t *written;
        if (is_ready(entry) && number < SHORT_TAGS) {
            room = ottl_edits_reserve(edits, entry->ready->encoded.size + OTTL_READY_SLACK);
            if (room == NULL)
                break;
            written = put_ready(entry->ready, number, room);
        } else {
            const size_t value_size = entry->value.type == OTTL_STRING
                                          ? text_size(entry->value.size)
                                          : ottl_value_encoded_size(&entry->value);
            const size_t most = SHORT_HEADERS + entry->key.size + value_size;
            if (most > SHORT_HEADERS + SHORT_MAX || number >= SHORT_TAGS ||
                !entry_has_changed(entry)) {
                const size_t size = write_long(entry, number, value_size, edits);
                if (size == 0)
                    break;
                bytes += size;
                continue;
            }
            room = ottl_edits_reserve(edits, most);
            if (room == NULL)
                break;
            written = put_short(entry, number, value_size, room);
        }
        edits->used_bytes += (size_t)(written - room);
        bytes += (size_t)(written - room);
    }
    return bytes;
}

/* New entries follow the last that was there, or begin the message. */
static uint64_t place_of_new(const struct ottl_record *record)
{
    return record->at + record->attributes_end;
}

/* Changed entries in their places, new ones behind. */
static void edit_attributes(const struct ottl_record *record, struct ottl_edits *edits)
{
    const struct ottl_map *map = &record->attributes;
    for (uint32_t i = 0; i < record->loaded; i++) {
        const struct ottl_entry *entry = &map->entries[i];
        if (entry_has_changed(entry))
            ottl_edits_add(edits, record->at + (uint64_t)(entry->whole.data - record->bytes.data),
                           entry->whole.size, write_entries(record, i, i + 1, edits));
    }
    if (map->count > record->loaded)
        ottl_edits_add(edits, place_of_new(record), 0,
                       write_entries(record, record->loaded, map->count, edits));
}

/* Takes the attributes of that range of the message away. */
static void remove_attributes(const struct ottl_record *record, const uint8_t *begin,
                              const uint8_t *end, struct ottl_edits *edits)
{
    struct wire_reader reader = wire_reader_of(slice_of(begin, (size_t)(end - begin)));
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == record->attributes_field)
            ottl_edits_add(edits, record->at + (uint64_t)(field.whole.data - record->bytes.data),
                           field.whole.size, 0);
}

/* Whether an entry can stay where it is, though others are gone or have moved: it lies ahead of
 * `at`, and so does the next behind it. */
static bool can_stay(const struct ottl_map *map, uint32_t place, const uint8_t *at)
{
    const struct ottl_entry *entry = &map->entries[place];
    if (entry->whole.data == NULL || entry_has_changed(entry) || entry->whole.data < at)
        return false;
    return place + 1 == map->count || entry[1].whole.data == NULL ||
           entry[1].whole.data > entry->whole.data;
}

/* Some are gone or have moved: those that are still in order stay, what lies between them is
 * written anew. */
static void rewrite_attributes(const struct ottl_record *record, struct ottl_edits *edits)
{
    const struct ottl_map *map = &record->attributes;
    const uint8_t *at = record->bytes.data + record->attributes_begin;
    const uint8_t *const end = record->bytes.data + record->attributes_end;
    for (uint32_t i = 0; i < map->count;) {
        if (can_stay(map, i, at)) {
            const struct slice whole = map->entries[i++].whole;
            if (whole.data != at)
                remove_attributes(record, at, whole.data, edits);
            at = whole.data + whole.size;
            continue;
        }
        uint32_t from = i++;
        while (i < map->count && !can_stay(map, i, at))
            i++;
        ottl_edits_add(edits, record->at + (uint64_t)(at - record->bytes.data), 0,
                       write_entries(record, from, i, edits));
    }
    if (at != end)
        remove_attributes(record, at, end, edits);
}

/* A scalar field: zero and empty are left out, unless an earlier one of the same number would show.
 */
static bool write_field(const struct ottl_field *field, unsigned number, bool is_explicit,
                        struct ottl_edits *edits, size_t *ret_bytes)
{
    uint8_t room[HEADER_BYTES_MAX + WIRE_VARINT_BYTES_MAX];
    uint8_t *at = room;
    bool is_empty = field->wire == WIRE_BYTES ? field->bytes.size == 0 : field->number == 0;
    size_t tail = 0;
    *ret_bytes = 0;
    if (is_empty && !is_explicit)
        return true;
    at = put_varint(at, wire_tag(number, field->wire));
    if (field->wire == WIRE_BYTES) {
        at = put_varint(at, field->bytes.size);
        tail = field->bytes.size;
    } else if (field->wire == WIRE_VARINT) {
        at = put_varint(at, field->number);
    } else {
        size_t size = field->wire == WIRE_FIXED64 ? 8 : 4;
        memcpy(at, &field->number, size);
        at += size;
    }
    size_t head = (size_t)(at - room);
    uint8_t *out = ottl_edits_room(edits, head + tail);
    if (out == NULL)
        return false;
    memcpy(out, room, head);
    if (tail > 0)
        memcpy(out + head, field->bytes.data, tail);
    *ret_bytes = head + tail;
    return true;
}

/* Takes the earlier ones of a field that comes more than once away. */
static void remove_repeated(const struct ottl_record *record, unsigned number,
                            struct ottl_edits *edits)
{
    struct wire_reader reader = wire_reader_of(record->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == number && field.whole.data != record->fields[number].whole.data)
            ottl_edits_add(edits, record->at + (uint64_t)(field.whole.data - record->bytes.data),
                           field.whole.size, 0);
}

static bool edit_fields(const struct ottl_record *record, struct ottl_edits *edits)
{
    for (uint32_t left = record->changed & ~1u; left != 0; left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctz(left);
        const struct ottl_field *field = &record->fields[number];
        size_t bytes;
        if (!write_field(field, number, record->explicit >> number & 1, edits, &bytes))
            return false;
        if (field->whole.data != NULL)
            ottl_edits_add(edits, record->at + (uint64_t)(field->whole.data - record->bytes.data),
                           field->whole.size, bytes);
        else if (bytes > 0)
            ottl_edits_add(edits, record->at, 0, bytes);
        if ((record->repeated >> number & 1) != 0)
            remove_repeated(record, number, edits);
    }
    return true;
}

/* The schema URL, in the message around. */
static bool edit_schema_url(const struct ottl_record *record, struct ottl_edits *edits)
{
    const struct ottl_field *field = &record->fields[OTTL_SCHEMA_URL];
    size_t bytes;
    if ((record->changed >> OTTL_SCHEMA_URL & 1) == 0)
        return true;
    if (!write_field(field, SCHEMA_URL_FIELD, false, edits, &bytes))
        return false;
    if (field->whole.data != NULL)
        ottl_edits_add(edits, record->schema_at, field->whole.size, bytes);
    else if (bytes > 0)
        ottl_edits_add(edits, record->holder_at, 0, bytes);
    return true;
}

/* The fields of a joined message that are neither attributes nor changed, as they came. */
static bool copy_unchanged(const struct ottl_record *record, struct ottl_edits *edits)
{
    struct wire_reader reader = wire_reader_of(record->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        bool is_known = field.number < OTTL_RECORD_FIELDS;
        if (field.number == record->attributes_field ||
            (is_known && (record->changed >> field.number & 1) != 0))
            continue;
        uint8_t *room = ottl_edits_room(edits, field.whole.size);
        if (room == NULL)
            return false;
        memcpy(room, field.whole.data, field.whole.size);
    }
    return true;
}

/* A Resource or scope that was missing, or came in several fields: all of it. */
static bool write_message(const struct ottl_record *record, struct ottl_edits *edits)
{
    size_t used = edits->used_bytes;
    size_t bytes;
    if (record->exists && !copy_unchanged(record, edits))
        return false;
    for (uint32_t left = record->changed & ~1u; left != 0; left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctz(left);
        if (!write_field(&record->fields[number], number, record->explicit >> number & 1, edits,
                         &bytes))
            return false;
    }
    write_entries(record, 0, record->attributes.count, edits);
    size_t content = edits->used_bytes - used;
    size_t whole = wire_field_size(record->number, content);
    if (ottl_edits_room(edits, whole - content) == NULL)
        return false;
    uint8_t *at = (uint8_t *)edits->bytes.memory + used;
    memmove(at + whole - content, at, content);
    put_header(at, record->number, content);
    ottl_edits_add(edits, record->holder_at, 0, whole);
    return true;
}

bool ottl_record_is_rewritten(const struct ottl_record *record)
{
    return (record->changed & ~1u) != 0 || record->attributes.base.has_changed ||
           record->body.base.has_changed;
}

/* Makes a body that has changed a field that has. */
static bool encode_body(struct ottl_record *record)
{
    if (!record->body.base.has_changed)
        return true;
    size_t size = ottl_value_encoded_size(&record->body.items[0]);
    uint8_t *room = ottl_memory_room(&record->memory, size);
    if (room == NULL)
        return false;
    ottl_value_encode(&record->body.items[0], room);
    return ottl_record_set_bytes(record, record->type->body, slice_of(room, size));
}

/* Of a message that changes in other ways than by attributes that are set. */
static __attribute__((noinline)) bool edit_message(struct ottl_record *record,
                                                   struct ottl_edits *edits)
{
    if (!encode_body(record) || !edit_schema_url(record, edits))
        return false;
    if (!ottl_record_is_rewritten(record))
        return true;
    if (!record->exists || record->is_joined)
        return ottl_record_load(record) && write_message(record, edits);
    if (!edit_fields(record, edits))
        return false;
    if (record->attributes.base.has_changed && record->attributes.moves > 0)
        rewrite_attributes(record, edits);
    else if (record->attributes.base.has_changed)
        edit_attributes(record, edits);
    return true;
}

bool ottl_record_finish(struct ottl_record *record, struct ottl_edits *edits)
{
    size_t count = edits->count;
    const bool is_plain = record->changed == 0 && !record->body.base.has_changed &&
                          record->exists && !record->is_joined && record->attributes.moves == 0;
    if (is_plain)
        edit_attributes(record, edits);
    else if (!edit_message(record, edits))
        return false;
    if (edits->has_failed)
        return false;
    ottl_edits_settle(edits, count);
    return true;
}
