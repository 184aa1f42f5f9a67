/* SPDX-License-Identifier: Apache-2.0 */
/* AnyValue as pdata's AsString has it: lists and maps as JSON with sorted keys, bytes as base64.
 * AnyValue: 1 string, 2 bool, 3 int, 4 double, 5 array, 6 kvlist, 7 bytes. Any thread. */
#include "src/otlp/text_parts.h"

#include "src/limits.h"
#include "src/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ANY_STRING = 1, ANY_BOOL, ANY_INT, ANY_DOUBLE, ANY_ARRAY, ANY_MAP, ANY_BYTES };

static uint32_t kind_of(const struct message *value)
{
    static const uint32_t kinds[] = {ANY_STRING, ANY_BOOL, ANY_INT,  ANY_DOUBLE,
                                     ANY_ARRAY,  ANY_MAP,  ANY_BYTES};
    return message_last_of(value, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

static void add_base64(struct text *text, struct slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; !text->is_cut && i < bytes.size; i += 3) {
        uint32_t group = 0;
        for (size_t j = 0; j < 3; j++)
            group = group << 8 | (i + j < bytes.size ? bytes.data[i + j] : 0U);
        text_add(text, "%c%c%c%c", digits[group >> 18 & 63], digits[group >> 12 & 63],
                 i + 1 < bytes.size ? digits[group >> 6 & 63] : '=',
                 i + 2 < bytes.size ? digits[group & 63] : '=');
    }
}

/* encoding/json's escapes, without those for HTML. */
static void add_json_string(struct text *text, struct slice bytes)
{
    static const char named[] = {['"'] = '"',  ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r',
                                 ['\t'] = 't', ['\b'] = 'b',  ['\f'] = 'f'};
    text_add(text, "\"");
    size_t begin = 0;
    for (size_t i = 0; !text->is_cut && i < bytes.size; i++) {
        uint8_t c = bytes.data[i];
        bool has_name = c < sizeof(named) && named[c] != 0;
        if (c >= 0x20 && !has_name)
            continue;
        text_add_slice(text, slice_of(bytes.data + begin, i - begin));
        if (has_name)
            text_add(text, "\\%c", named[c]);
        else
            text_add(text, "\\u%04x", c);
        begin = i + 1;
    }
    if (begin < bytes.size)
        text_add_slice(text, slice_of(bytes.data + begin, bytes.size - begin));
    text_add(text, "\"");
}

struct entry {
    struct slice key;
    struct slice value;
    size_t index;
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    size_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = size == 0 ? 0 : memcmp(a->key.data, b->key.data, size);
    if (order != 0)
        return order;
    if (a->key.size != b->key.size)
        return a->key.size < b->key.size ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* One composite value that is being written; a stack of them stands in for recursion. */
struct frame {
    bool is_map;
    bool is_first;
    struct wire_reader items; /* list */
    struct entry *entries;    /* map: sorted, the last of equal keys counts */
    size_t count;
    size_t next;
};

static void frame_open_map(struct frame *frame, struct slice bytes)
{
    struct message map = message_of(bytes);
    size_t count = message_count(&map, 1);
    frame->entries = count == 0 ? NULL : mem_try_alloc(count * sizeof(*frame->entries));
    if (frame->entries == NULL)
        return;
    struct wire_reader items = message_reader(&map);
    struct slice item;
    while (message_next(&items, 1, &item)) {
        struct message entry = message_of(item);
        frame->entries[frame->count] = (struct entry){.key = message_bytes(&entry, 1),
                                                      .value = message_bytes(&entry, 2),
                                                      .index = frame->count};
        frame->count++;
    }
    qsort(frame->entries, frame->count, sizeof(*frame->entries), compare_entries);
}

static void frame_open(struct text *text, struct frame *frame, bool is_map, struct slice bytes)
{
    *frame = (struct frame){.is_map = is_map, .is_first = true, .items = wire_reader_of(bytes)};
    if (is_map)
        frame_open_map(frame, bytes);
    text_add(text, is_map ? "{" : "[");
}

/* The next value of the list or map, its key written; false at the end. */
static bool frame_next(struct text *text, struct frame *frame, struct slice *ret_value)
{
    struct entry *entry = NULL;
    if (frame->is_map) {
        while (frame->next + 1 < frame->count &&
               slice_equal(frame->entries[frame->next].key, frame->entries[frame->next + 1].key))
            frame->next++;
        if (frame->next >= frame->count)
            return false;
        entry = &frame->entries[frame->next++];
        *ret_value = entry->value;
    } else if (!message_next(&frame->items, 1, ret_value)) {
        return false;
    }
    text_add(text, "%s", frame->is_first ? "" : ",");
    frame->is_first = false;
    if (entry != NULL) {
        add_json_string(text, entry->key);
        text_add(text, ":");
    }
    return true;
}

static void add_json_scalar(struct text *text, const struct message *value, uint32_t kind)
{
    if (kind == ANY_STRING) {
        add_json_string(text, message_bytes(value, ANY_STRING));
    } else if (kind == ANY_BYTES) {
        text_add(text, "\"");
        add_base64(text, message_bytes(value, ANY_BYTES));
        text_add(text, "\"");
    } else if (kind == ANY_BOOL) {
        text_add(text, "%s", message_number(value, ANY_BOOL) != 0 ? "true" : "false");
    } else if (kind == ANY_INT) {
        text_add(text, "%" PRId64, (int64_t)message_number(value, ANY_INT));
    } else if (kind == ANY_DOUBLE) {
        text_add_json_number(text, message_double(value, ANY_DOUBLE));
    } else {
        text_add(text, "null");
    }
}

static void add_json(struct text *text, bool is_map, struct slice bytes)
{
    struct frame frames[WIRE_ANY_VALUE_DEPTH_MAX];
    size_t depth = 1;
    frame_open(text, &frames[0], is_map, bytes);
    while (depth > 0) {
        struct frame *frame = &frames[depth - 1];
        struct slice item;
        if (text->is_cut || !frame_next(text, frame, &item)) {
            text_add(text, frame->is_map ? "}" : "]");
            mem_free(frame->entries);
            depth--;
            continue;
        }
        struct message value = message_of(item);
        uint32_t kind = kind_of(&value);
        bool is_composite = kind == ANY_ARRAY || kind == ANY_MAP;
        if (is_composite && depth < WIRE_ANY_VALUE_DEPTH_MAX)
            frame_open(text, &frames[depth++], kind == ANY_MAP, message_bytes(&value, kind));
        else
            add_json_scalar(text, &value, kind);
    }
}

void text_add_value(struct text *text, struct slice bytes)
{
    assert(text != NULL);
    struct message value = message_of(bytes);
    uint32_t kind = kind_of(&value);
    if (kind == ANY_STRING)
        text_add_slice(text, message_bytes(&value, ANY_STRING));
    else if (kind == ANY_BYTES)
        add_base64(text, message_bytes(&value, ANY_BYTES));
    else if (kind == ANY_ARRAY || kind == ANY_MAP)
        add_json(text, kind == ANY_MAP, message_bytes(&value, kind));
    else if (kind != 0)
        add_json_scalar(text, &value, kind);
}

void text_add_typed_value(struct text *text, struct slice bytes)
{
    static const char *const names[] = {"Empty",  "Str",   "Bool", "Int",
                                        "Double", "Slice", "Map",  "Bytes"};
    struct message value = message_of(bytes);
    text_add(text, "%s(", names[kind_of(&value)]);
    text_add_value(text, bytes);
    text_add(text, ")");
}
