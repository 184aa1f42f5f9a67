/* SPDX-License-Identifier: Apache-2.0 */
/* Writes queries, percent-encoded (RFC 3986). The server's rules for `name`: an application's name
 * has letters, digits and "_.-/", a label's letters, digits and "_."; values end at ',' or '}' and
 * lose blanks at both ends. Runs on the exporter's lane. */
#include "exporters/pyroscope/pyroscope_query.h"

#include "src/base/buffer.h"
#include "src/otlp/wire.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
    ENCODED_BYTES = 3, /* of one */
    NAME_BYTES_MAX = 64,
    PAIR_BYTES_MAX = 8, /* separators around a name and its value */
};

struct writing {
    struct buffer *out;
    uint64_t changed;
};

struct label {
    struct slice name;
    struct slice value;
};

static bool is_word(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '.';
}

static bool is_app_byte(uint8_t byte)
{
    return is_word(byte) || byte == '-' || byte == '/';
}

static bool is_value_byte(uint8_t byte)
{
    return byte != ',' && byte != '}';
}

static void put_text(struct writing *writing, const char *text)
{
    struct buffer *out = writing->out;
    size_t size = strlen(text);
    assert(size < out->capacity - out->size);
    memcpy(out->data + out->size, text, size);
    out->size += size;
}

static void put_encoded(struct writing *writing, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";
    struct buffer *out = writing->out;
    assert(out->capacity - out->size > ENCODED_BYTES);
    if (is_word(byte) || byte == '-' || byte == '~') {
        out->data[out->size++] = byte;
        return;
    }
    out->data[out->size++] = '%';
    out->data[out->size++] = (uint8_t)digits[byte >> 4];
    out->data[out->size++] = (uint8_t)digits[byte & 0xf];
}

/* Replaces bytes that are not allowed by '_'. */
static void put_allowed(struct writing *writing, struct slice text, bool (*is_allowed)(uint8_t))
{
    bool is_changed = false;
    for (size_t i = 0; i < text.size; i++) {
        bool stays = is_allowed(text.data[i]);
        put_encoded(writing, stays ? text.data[i] : '_');
        is_changed |= !stays;
    }
    writing->changed += is_changed;
}

/* LabelPair { name 1, value 2 }; false at the end. */
static bool next_label(struct wire_reader *labels, struct label *ret_label)
{
    struct wire_field field;
    assert(labels->failure == NULL);
    if (!wire_next_field(labels, &field))
        return false;
    struct wire_reader pair = wire_reader_of(field.bytes);
    *ret_label = (struct label){.name = slice_of(NULL, 0)};
    while (wire_next_field(&pair, &field))
        *(field.number == 1 ? &ret_label->name : &ret_label->value) = field.bytes;
    return true;
}

struct slice pyroscope_query_label(struct slice labels, const char *name)
{
    struct wire_reader reader = wire_reader_of(labels);
    struct label label;
    while (next_label(&reader, &label))
        if (slice_equal_text(label.name, name))
            return label.value;
    return slice_of(NULL, 0);
}

void pyroscope_query_add(struct pyroscope_query *query, const char *key, struct slice value)
{
    assert(strlen(key) <= NAME_BYTES_MAX);
    if (value.data == NULL)
        return;
    assert(query->count < PYROSCOPE_PARAMETERS_MAX);
    query->parameters[query->count++] = (struct pyroscope_parameter){.key = key, .value = value};
}

struct buffer *pyroscope_query_target(const struct pyroscope_query *query, struct budget *budget,
                                      uint64_t *changed)
{
    assert(query->path[0] == '/');
    /* Each label has a header of at least two bytes for itself and two for each string: the
     * separators around them fit into three times that. The application's name may occur twice. */
    size_t size = strlen(query->path) + NAME_BYTES_MAX + 2 * ENCODED_BYTES * query->labels.size;
    for (size_t i = 0; i < query->count; i++)
        size += NAME_BYTES_MAX + PAIR_BYTES_MAX + ENCODED_BYTES * query->parameters[i].value.size;
    struct writing writing = {.out = buffer_try_create(budget, size)};
    if (writing.out == NULL)
        return NULL;
    put_text(&writing, query->path);
    put_text(&writing, strchr(query->path, '?') != NULL ? "&name=" : "?name=");

    /* The service's name is the application's. If it has other characters, the label service_name
     * is sent too, which the server prefers. */
    struct slice service = pyroscope_query_label(query->labels, "service_name");
    bool is_app = service.size > 0;
    for (size_t i = 0; is_app && i < service.size; i++)
        is_app = is_app_byte(service.data[i]);
    put_allowed(&writing, service, is_app_byte);
    size_t begin = writing.out->size;
    struct wire_reader reader = wire_reader_of(query->labels);
    struct label label;
    while (next_label(&reader, &label)) {
        struct slice name = label.name;
        struct slice value = slice_trim(label.value);
        bool is_internal = name.size >= 2 && name.data[0] == '_' && name.data[1] == '_';
        if ((is_internal && !slice_equal_text(name, "__session_id__")) ||
            slice_equal_text(name, PYROSCOPE_SPY_LABEL) ||
            (is_app && slice_equal_text(name, "service_name")))
            continue;
        writing.changed += value.size < label.value.size;
        if (value.size == 0)
            continue;
        put_text(&writing, writing.out->size == begin ? "%7B" : "%2C");
        put_allowed(&writing, name, is_word);
        put_text(&writing, "%3D");
        put_allowed(&writing, value, is_value_byte);
    }
    if (writing.out->size > begin)
        put_text(&writing, "%7D");

    for (size_t i = 0; i < query->count; i++) {
        const struct pyroscope_parameter *parameter = &query->parameters[i];
        put_text(&writing, "&");
        put_text(&writing, parameter->key);
        put_text(&writing, "=");
        for (size_t k = 0; k < parameter->value.size; k++)
            put_encoded(&writing, parameter->value.data[k]);
    }
    writing.out->data[writing.out->size] = '\0';
    *changed += writing.changed;
    return writing.out;
}
