/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes with their encoded values. */
#include <string.h>

#include "processors/resource_detection/detector.h"
#include "src/base/mem.h"
#include "src/otlp/wire.h"

/* AnyValue: 1 string, 3 int, 5 array; ArrayValue: 1 values. */
enum { VALUE_STRING = 1, VALUE_INTEGER = 3, VALUE_ARRAY = 5, ARRAY_VALUES = 1 };
enum { INTEGER_BYTES_MAX = 16 };

void detected_fini(struct detected *detected)
{
    for (size_t i = 0; i < detected->count; i++)
        mem_free((void *)(uintptr_t)detected->attributes[i].whole.data);
    mem_free(detected->attributes);
    *detected = (struct detected){.schema_url = ""};
}

static struct attribute *find(const struct detected *detected, struct slice key)
{
    for (size_t i = 0; i < detected->count; i++)
        if (slice_equal(detected->attributes[i].key, key))
            return &detected->attributes[i];
    return NULL;
}

/* whole is the block that holds both, for detected_fini. */
static void put(struct detected *detected, struct slice key, struct slice value)
{
    struct attribute *attribute = find(detected, key);
    if (attribute == NULL && detected->count == DETECTED_ATTRIBUTES_MAX)
        return;
    uint8_t *block = mem_alloc(key.size + value.size + 1);
    if (key.size > 0)
        memcpy(block, key.data, key.size);
    if (value.size > 0)
        memcpy(block + key.size, value.data, value.size);
    if (attribute == NULL) {
        detected->attributes = mem_resize(detected->attributes,
                                          (detected->count + 1) * sizeof(detected->attributes[0]));
        attribute = &detected->attributes[detected->count++];
    } else {
        mem_free((void *)(uintptr_t)attribute->whole.data);
    }
    *attribute = (struct attribute){.key = slice_of(block, key.size),
                                    .value = slice_of(block + key.size, value.size),
                                    .whole = slice_of(block, key.size + value.size)};
}

void detected_put_text(struct detected *detected, const char *key, struct slice text)
{
    size_t size = wire_field_size(VALUE_STRING, text.size);
    uint8_t *value = mem_alloc(size);
    struct wire_writer writer = wire_writer_of(value, size);
    wire_write_bytes(&writer, VALUE_STRING, text);
    put(detected, slice_of_text(key), wire_written(&writer));
    mem_free(value);
}

void detected_put_integer(struct detected *detected, const char *key, int64_t value)
{
    uint8_t bytes[INTEGER_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(bytes, sizeof(bytes));
    wire_write_number(&writer, VALUE_INTEGER, (uint64_t)value);
    put(detected, slice_of_text(key), wire_written(&writer));
}

void detected_put_texts(struct detected *detected, const char *key, const char *texts, size_t count)
{
    size_t array = 0;
    const char *text = texts;
    for (size_t i = 0; i < count; i++, text += strlen(text) + 1)
        array += wire_field_size(ARRAY_VALUES, wire_field_size(VALUE_STRING, strlen(text)));
    size_t size = wire_field_size(VALUE_ARRAY, array);
    uint8_t *value = mem_alloc(size);
    struct wire_writer writer = wire_writer_of(value, size);
    wire_write_header(&writer, VALUE_ARRAY, array);
    text = texts;
    for (size_t i = 0; i < count; i++, text += strlen(text) + 1) {
        wire_write_header(&writer, ARRAY_VALUES, wire_field_size(VALUE_STRING, strlen(text)));
        wire_write_bytes(&writer, VALUE_STRING, slice_of_text(text));
    }
    put(detected, slice_of_text(key), wire_written(&writer));
    mem_free(value);
}

void detected_merge(struct detected *to, const struct detected *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (find(to, from->attributes[i].key) == NULL)
            put(to, from->attributes[i].key, from->attributes[i].value);
    if (to->schema_url[0] == '\0')
        to->schema_url = from->schema_url;
}
