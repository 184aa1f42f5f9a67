/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads numbered items: spans whose span_id, log records whose time is the number. */
#include "tests/support/telemetry_bytes.h"

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* ResourceSpans.scope_spans and ScopeSpans.spans have the same numbers in the logs' messages. */
enum {
    TAG_RESOURCES = 0x0a,
    TAG_RESOURCE = 0x0a,
    TAG_SCOPES = 0x12,
    TAG_ITEMS = 0x12,
    TAG_SCHEMA_URL = 0x1a,
};
enum { HEADER_BYTES_MAX = 1 + 10, NUMBER_BYTES = 8 };

struct cursor {
    uint8_t *data;
    size_t size;
};

static void put_bytes(struct cursor *cursor, const void *bytes, size_t size)
{
    memcpy(cursor->data + cursor->size, bytes, size);
    cursor->size += size;
}

static size_t varint_bytes(size_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

static void put_header(struct cursor *cursor, uint8_t tag, size_t length)
{
    put_bytes(cursor, &tag, 1);
    for (; length >= 0x80; length >>= 7)
        put_bytes(cursor, &(uint8_t){(uint8_t)(length | 0x80)}, 1);
    put_bytes(cursor, &(uint8_t){(uint8_t)length}, 1);
}

static void put_item(struct cursor *cursor, enum signal_kind signal, uint64_t number)
{
    static const uint8_t span[] = {TAG_ITEMS, 2 + NUMBER_BYTES, 0x12, NUMBER_BYTES};
    static const uint8_t record[] = {TAG_ITEMS, 1 + NUMBER_BYTES, 0x09};
    if (signal == TRACES)
        put_bytes(cursor, span, sizeof(span));
    else
        put_bytes(cursor, record, sizeof(record));
    put_bytes(cursor, &number, sizeof(number));
}

struct batch *numbered_request(struct budget *budget, enum signal_kind signal, uint64_t first,
                               uint64_t count)
{
    assert(signal == TRACES || signal == LOGS);
    size_t item_bytes = signal == TRACES ? 4 + NUMBER_BYTES : 3 + NUMBER_BYTES;
    size_t content = item_bytes * (size_t)count;
    struct buffer *buffer = buffer_try_create(budget, 2 * HEADER_BYTES_MAX + content);
    if (buffer == NULL)
        return NULL;
    struct cursor cursor = {.data = buffer->data};
    put_header(&cursor, TAG_RESOURCES, 1 + varint_bytes(content) + content);
    put_header(&cursor, TAG_SCOPES, content);
    for (uint64_t i = 0; i < count; i++)
        put_item(&cursor, signal, first + i);
    buffer->size = cursor.size;
    buffer = buffer_shrink(buffer);
    struct batch *batch = batch_create(signal, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = count;
    buffer_unref(buffer);
    return batch;
}

struct batch *plain_request(struct budget *budget, enum signal_kind signal, struct slice bytes,
                            uint64_t items)
{
    struct buffer *buffer = buffer_create(budget, bytes.size);
    struct batch *batch = batch_create(signal, 1);
    assert(bytes.size > 0);
    memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = items;
    buffer_unref(buffer);
    return batch;
}

static uint8_t *joined(const struct batch *batch)
{
    struct cursor cursor = {.data = mem_alloc(batch->bytes)};
    for (size_t i = 0; i < batch->parts_count; i++)
        put_bytes(&cursor, batch->parts[i].bytes.data, batch->parts[i].bytes.size);
    assert(cursor.size == batch->bytes);
    return cursor.data;
}

/* The content of the next message, which must have that tag. */
static struct slice take_message(struct slice *rest, uint8_t tag)
{
    size_t length = 0;
    size_t at = 1;
    assert(rest->size > 1);
    assert(rest->data[0] == tag);
    for (int shift = 0;; shift += 7) {
        assert(at < rest->size);
        uint8_t byte = rest->data[at++];
        length |= (size_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            break;
    }
    assert(length <= rest->size - at);
    struct slice content = slice_of(rest->data + at, length);
    *rest = slice_of(content.data + length, rest->size - at - length);
    return content;
}

void numbered_read(const struct batch *batch, void (*fn)(uint64_t number, void *arg), void *arg)
{
    uint64_t items = 0;
    assert(batch != NULL);
    uint8_t *bytes = joined(batch);
    for (struct slice rest = slice_of(bytes, batch->bytes); rest.size > 0;) {
        struct slice resource = take_message(&rest, TAG_RESOURCES);
        while (resource.size > 0) {
            uint8_t tag = resource.data[0];
            if (tag == TAG_RESOURCE || tag == TAG_SCHEMA_URL) { /* put there by a processor */
                take_message(&resource, tag);
                continue;
            }
            struct slice scope = take_message(&resource, TAG_SCOPES);
            while (scope.size > 0) {
                struct slice item = take_message(&scope, TAG_ITEMS);
                uint64_t number;
                memcpy(&number, item.data + item.size - NUMBER_BYTES, sizeof(number));
                fn(number, arg);
                items++;
            }
        }
    }
    assert(items == batch->items);
    mem_free(bytes);
}
