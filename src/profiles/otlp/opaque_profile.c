/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading the Profiles that files travel as. Everything but the file is small: it is
 * encoded first, so that the request is allocated once, in its final size. Pure functions; any
 * thread. */
#include "src/profiles/otlp/opaque_profile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/profiles/otlp/profile_tables.h"

enum {
    VALUE_TEXT = 1, /* fields of AnyValue */
    VALUE_ARRAY = 5,
    VALUE_BYTES = 7,
    HEADER_BYTES_MAX = PROFILE_HEADER_BYTES_MAX,
    TIMES_BYTES_MAX = 9 + 11, /* time_unix_nano and duration_nano */
};

/* The pieces of a request. */
struct pieces {
    struct profile_tables tables;
    struct profile_bytes resource;
    struct profile_bytes head;    /* of the Profile: what stands before the payload */
    struct profile_bytes indices; /* of its attributes */
    struct profile_bytes scratch;
};

static void pieces_init(struct pieces *pieces)
{
    assert(pieces != NULL);
    *pieces = (struct pieces){.resource = {.size = 0}};
    profile_tables_init(&pieces->tables, NULL);
}

static void pieces_fini(struct pieces *pieces)
{
    assert(pieces != NULL);
    profile_tables_fini(&pieces->tables);
    profile_bytes_fini(&pieces->resource);
    profile_bytes_fini(&pieces->head);
    profile_bytes_fini(&pieces->indices);
    profile_bytes_fini(&pieces->scratch);
}

static struct slice slice_of_bytes(const struct profile_bytes *bytes)
{
    return slice_of(bytes->data, bytes->size);
}

static void add_field(struct profile_bytes *bytes, uint32_t number, struct slice content)
{
    size_t begin = bytes->size;
    assert(number > 0);
    profile_bytes_add(bytes, content);
    profile_bytes_wrap(bytes, begin, number);
}

/* Resource { attributes { key, value { string_value } } … } */
static void add_resource(struct pieces *pieces, const struct opaque_profile *upload)
{
    struct profile_bytes *resource = &pieces->resource;
    assert(upload->labels != NULL || upload->labels_count == 0);
    for (size_t i = 0; i < upload->labels_count; i++) {
        size_t begin = resource->size;
        add_field(resource, 1, upload->labels[i].key);
        size_t value = resource->size;
        add_field(resource, VALUE_TEXT, upload->labels[i].value);
        profile_bytes_wrap(resource, value, 2);
        profile_bytes_wrap(resource, begin, 1);
    }
}

/* An attribute of the Profile, whose AnyValue is in scratch. */
static void add_attribute(struct pieces *pieces, struct slice key)
{
    struct profile_set *attributes = &pieces->tables.sets[PROFILE_ATTRIBUTES];
    struct slice value = slice_of_bytes(&pieces->scratch);
    uint32_t name = profile_set_add(&pieces->tables.sets[PROFILE_STRINGS], key);
    uint8_t *at = profile_set_begin(attributes, value.size + 2 * HEADER_BYTES_MAX);
    at = profile_put_number(at, 1, name);
    memcpy(at + PROFILE_HEADER_BYTES, value.data, value.size);
    at = profile_close(at, at + PROFILE_HEADER_BYTES + value.size, 2);
    uint32_t index = profile_set_end(attributes, at);
    at = profile_bytes_room(&pieces->indices, WIRE_SHORT_VARINT_BYTES_MAX);
    pieces->indices.size += (size_t)(profile_put_varint(at, index) - at);
    pieces->scratch.size = 0;
}

static void add_parameter(struct pieces *pieces, struct slice parameter, uint32_t kind,
                          struct slice value)
{
    char key[sizeof(OPAQUE_PROFILE_PREFIX) + OPAQUE_PROFILE_PARAMETER_BYTES_MAX];
    assert(parameter.size <= OPAQUE_PROFILE_PARAMETER_BYTES_MAX);
    int size = snprintf(key, sizeof(key), OPAQUE_PROFILE_PREFIX "%.*s", (int)parameter.size,
                        (const char *)parameter.data);
    add_field(&pieces->scratch, kind, value);
    add_attribute(pieces, slice_of(key, (size_t)size));
}

static void add_label_names(struct pieces *pieces, const struct opaque_profile *upload)
{
    struct profile_bytes *value = &pieces->scratch;
    assert(value->size == 0);
    for (size_t i = 0; i < upload->labels_count; i++) {
        size_t begin = value->size;
        if (slice_equal_text(upload->labels[i].key, "service.name"))
            continue;
        add_field(value, VALUE_TEXT, upload->labels[i].key);
        profile_bytes_wrap(value, begin, 1);
    }
    if (value->size == 0)
        return;
    profile_bytes_wrap(value, 0, VALUE_ARRAY);
    add_attribute(pieces, slice_of_text(PROFILE_LABEL_NAMES));
}

/* Both types are there, if empty: back-ends rely on it. */
static void add_head(struct pieces *pieces, const struct opaque_profile *upload)
{
    struct profile_bytes *head = &pieces->head;
    struct slice nothing = slice_of(NULL, 0);
    add_field(head, 1, nothing);
    uint8_t *begin = profile_bytes_room(head, TIMES_BYTES_MAX);
    struct wire_writer writer = wire_writer_of(begin, TIMES_BYTES_MAX);
    if (upload->time_unix_ns != 0)
        wire_write_fixed64(&writer, 3, upload->time_unix_ns);
    if (upload->duration_ns != 0)
        wire_write_number(&writer, 4, upload->duration_ns);
    head->size += wire_written(&writer).size;
    add_field(head, 5, nothing);
    add_field(head, 9, upload->format);
    assert(head->size > 0);
}

static void add_all(struct pieces *pieces, const struct opaque_profile *upload)
{
    assert(upload->parameters != NULL || upload->parameters_count == 0);
    add_resource(pieces, upload);
    for (size_t i = 0; i < upload->parameters_count; i++)
        add_parameter(pieces, upload->parameters[i].key, VALUE_TEXT, upload->parameters[i].value);
    if (upload->labels_part.data != NULL)
        add_parameter(pieces, slice_of_text(OPAQUE_PROFILE_LABELS), VALUE_BYTES,
                      upload->labels_part);
    add_label_names(pieces, upload);
    add_head(pieces, upload);
}

/* ResourceProfiles { resource, scope_profiles { profiles { head, payload, attributes } } } and the
 * dictionary. */
static struct buffer *join(const struct pieces *pieces, struct slice payload, struct budget *budget)
{
    struct slice indices = slice_of_bytes(&pieces->indices);
    size_t indices_bytes = indices.size > 0 ? wire_field_size(11, indices.size) : 0;
    size_t profile = pieces->head.size + wire_field_size(10, payload.size) + indices_bytes;
    size_t scope = wire_field_size(2, profile);
    size_t resource = wire_field_size(1, pieces->resource.size) + wire_field_size(2, scope);
    size_t dictionary = (size_t)profile_tables_bytes(&pieces->tables);
    size_t size = wire_field_size(1, resource) + wire_field_size(2, dictionary);
    struct buffer *buffer = buffer_try_create(budget, size);
    if (buffer == NULL)
        return NULL;
    struct wire_writer writer = wire_writer_of(buffer->data, size);
    wire_write_header(&writer, 1, resource);
    wire_write_bytes(&writer, 1, slice_of_bytes(&pieces->resource));
    wire_write_header(&writer, 2, scope);
    wire_write_header(&writer, 2, profile);
    wire_write_raw(&writer, slice_of_bytes(&pieces->head));
    wire_write_bytes(&writer, 10, payload);
    if (indices.size > 0)
        wire_write_bytes(&writer, 11, indices);
    wire_write_header(&writer, 2, dictionary);
    writer.at = profile_tables_write(&pieces->tables, writer.at);
    buffer->size = wire_written(&writer).size;
    assert(buffer->size == size);
    return buffer;
}

struct buffer *opaque_profile_write(const struct opaque_profile *upload, struct budget *budget)
{
    struct pieces pieces;
    assert(upload->format.size > 0);
    assert(upload->payload.size > 0);
    pieces_init(&pieces);
    add_all(&pieces, upload);
    struct buffer *buffer = join(&pieces, upload->payload, budget);
    pieces_fini(&pieces);
    return buffer;
}

bool profile_is_opaque(const struct profile *profile)
{
    assert(profile != NULL);
    return profile->samples_count == 0 && profile->payload.size > 0 &&
           slice_equal_text(profile->payload_format, OPAQUE_PROFILE_JFR);
}

/* The encoded AnyValue of the Profile's attribute of that name; no data: it has none. */
static struct slice find_attribute(const struct profile_dictionary *dictionary,
                                   const struct profile *profile, const char *key)
{
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct profile_index index;
    assert(key != NULL);
    while (profile_indices_next(&reader, &index)) {
        if (!profile_has(dictionary, PROFILE_ATTRIBUTES, index))
            continue;
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (profile_has(dictionary, PROFILE_STRINGS, attribute.key) &&
            slice_equal_text(profile_string_at(dictionary, attribute.key), key))
            return attribute.value;
    }
    return slice_of(NULL, 0);
}

/* The content of the value if it is of one of these kinds; else no data. */
static struct slice content_of(struct slice value, uint32_t kind, uint32_t other_kind)
{
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    struct slice content = slice_of(NULL, 0);
    assert(kind > 0);
    while (wire_next_field(&reader, &field))
        if (field.type == WIRE_BYTES && (field.number == kind || field.number == other_kind))
            content = field.bytes;
    return content;
}

struct slice opaque_profile_parameter(const struct profile_dictionary *dictionary,
                                      const struct profile *profile, const char *parameter)
{
    char key[sizeof(OPAQUE_PROFILE_PREFIX) + OPAQUE_PROFILE_PARAMETER_BYTES_MAX];
    assert(strlen(parameter) <= OPAQUE_PROFILE_PARAMETER_BYTES_MAX);
    snprintf(key, sizeof(key), OPAQUE_PROFILE_PREFIX "%s", parameter);
    return content_of(find_attribute(dictionary, profile, key), VALUE_TEXT, VALUE_BYTES);
}

struct slice profile_label_names(const struct profile_dictionary *dictionary,
                                 const struct profile *profile)
{
    assert(dictionary != NULL);
    return content_of(find_attribute(dictionary, profile, PROFILE_LABEL_NAMES), VALUE_ARRAY, 0);
}

bool profile_label_names_has(struct slice names, struct slice key)
{
    struct wire_reader reader = wire_reader_of(names);
    struct wire_field field;
    assert(key.data != NULL || key.size == 0);
    while (wire_next_field(&reader, &field))
        if (field.number == 1 && field.type == WIRE_BYTES &&
            slice_equal(content_of(field.bytes, VALUE_TEXT, 0), key))
            return true;
    return false;
}
