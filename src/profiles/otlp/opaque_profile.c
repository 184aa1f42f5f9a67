/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading opaque profiles. Everything but the file is encoded first, so that the
 * request is allocated once, in its final size. Pure functions; any thread. */
#include "src/profiles/otlp/opaque_profile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/profiles/otlp/profile_tables.h"

enum {
    VALUE_STRING = 1, /* fields of AnyValue */
    VALUE_ARRAY = 5,
    VALUE_BYTES = 7,
    HEADER_BYTES_MAX = PROFILE_HEADER_BYTES_MAX,
    TIMES_BYTES_MAX = 9 + 11, /* time_unix_nano and duration_nano */
    /* Of each text while the request is written: in a set, and in what grows by doubling, with its
     * old copy. */
    TEXT_COPIES_MAX = 6,
    TEXT_MORE_BYTES = 64,          /* headers of one */
    PARTS_BYTES_FIRST = 64 * 1024, /* first allocations of everything that grows */
};

/* The parts of a request. */
struct parts {
    struct profile_tables tables;
    struct profile_bytes resource;
    struct profile_bytes head;    /* of the Profile: what comes before the payload */
    struct profile_bytes indices; /* of its attributes */
    struct profile_bytes value;   /* an AnyValue that is being written */
};

/* Adds an attribute of the Profile with parts->value, and empties that. */
static void add_attribute(struct parts *parts, struct slice key)
{
    struct profile_set *attributes = &parts->tables.sets[PROFILE_ATTRIBUTES];
    struct slice value = profile_bytes_slice(&parts->value);
    uint32_t name = profile_set_add(&parts->tables.sets[PROFILE_STRINGS], key);
    uint8_t *at = profile_set_begin(attributes, value.size + 2 * HEADER_BYTES_MAX);
    at = profile_put_number(at, 1, name);
    memcpy(at + PROFILE_HEADER_BYTES, value.data, value.size);
    at = profile_close(at, at + PROFILE_HEADER_BYTES + value.size, 2);
    uint32_t index = profile_set_end(attributes, at);
    at = profile_bytes_room(&parts->indices, WIRE_SHORT_VARINT_BYTES_MAX);
    parts->indices.size += (size_t)(profile_put_varint(at, index) - at);
    parts->value.size = 0;
}

static void add_parameter(struct parts *parts, struct slice parameter, uint32_t kind,
                          struct slice value)
{
    char key[sizeof(OPAQUE_PROFILE_PREFIX) + OPAQUE_PROFILE_PARAMETER_BYTES_MAX];
    assert(parameter.size <= OPAQUE_PROFILE_PARAMETER_BYTES_MAX);
    int size = snprintf(key, sizeof(key), OPAQUE_PROFILE_PREFIX "%.*s", (int)parameter.size,
                        (const char *)parameter.data);
    profile_bytes_field(&parts->value, kind, value);
    add_attribute(parts, slice_of(key, (size_t)size));
}

/* ResourceProfiles { resource, scope_profiles { profiles { head, payload, attributes } } } and the
 * dictionary. */
static struct buffer *join(const struct parts *parts, struct slice payload, struct budget *budget)
{
    struct slice indices = profile_bytes_slice(&parts->indices);
    size_t indices_bytes = indices.size > 0 ? wire_field_size(11, indices.size) : 0;
    size_t profile = parts->head.size + wire_field_size(10, payload.size) + indices_bytes;
    size_t scope = wire_field_size(2, profile);
    size_t resource = wire_field_size(1, parts->resource.size) + wire_field_size(2, scope);
    size_t dictionary = (size_t)profile_tables_bytes(&parts->tables);
    size_t size = wire_field_size(1, resource) + wire_field_size(2, dictionary);
    struct buffer *buffer = buffer_try_create(budget, size);
    if (buffer == NULL)
        return NULL;
    struct wire_writer writer = wire_writer_of(buffer->data, size);
    wire_write_header(&writer, 1, resource);
    wire_write_bytes(&writer, 1, profile_bytes_slice(&parts->resource));
    wire_write_header(&writer, 2, scope);
    wire_write_header(&writer, 2, profile);
    wire_write_raw(&writer, profile_bytes_slice(&parts->head));
    wire_write_bytes(&writer, 10, payload);
    if (indices.size > 0)
        wire_write_bytes(&writer, 11, indices);
    wire_write_header(&writer, 2, dictionary);
    writer.at = profile_tables_write(&parts->tables, writer.at);
    buffer->size = wire_written(&writer).size;
    assert(buffer->size == size);
    return buffer;
}

/* Upper bound of what writing takes besides the request. */
static uint64_t parts_bytes_max(const struct opaque_profile *opaque)
{
    uint64_t bytes = opaque->labels_part.size + TEXT_MORE_BYTES;
    for (size_t i = 0; i < opaque->labels_count; i++)
        bytes += opaque->labels[i].key.size + opaque->labels[i].value.size + TEXT_MORE_BYTES;
    for (size_t i = 0; i < opaque->parameters_count; i++)
        bytes +=
            opaque->parameters[i].key.size + opaque->parameters[i].value.size + TEXT_MORE_BYTES;
    return PARTS_BYTES_FIRST + TEXT_COPIES_MAX * bytes;
}

struct buffer *opaque_profile_write(const struct opaque_profile *opaque, struct budget *budget)
{
    struct budget_reserve reserve;
    struct parts parts = {.resource.budget = budget,
                          .head.budget = budget,
                          .indices.budget = budget,
                          .value.budget = budget};
    struct profile_bytes *resource = &parts.resource;
    struct profile_bytes *value = &parts.value;
    struct profile_bytes *head = &parts.head;
    assert(opaque->format.size > 0);
    assert(opaque->payload.size > 0);
    if (budget_reserve(&reserve, budget, parts_bytes_max(opaque)) != BUDGET_GIVEN)
        return NULL;
    profile_tables_init(&parts.tables, budget);
    /* Resource { attributes { key, value { string_value } } ... } */
    for (size_t i = 0; i < opaque->labels_count; i++) {
        size_t begin = resource->size;
        profile_bytes_field(resource, 1, opaque->labels[i].key);
        size_t value_begin = resource->size;
        profile_bytes_field(resource, VALUE_STRING, opaque->labels[i].value);
        profile_bytes_wrap(resource, value_begin, 2);
        profile_bytes_wrap(resource, begin, 1);
    }
    /* Attributes of the Profile. */
    for (size_t i = 0; i < opaque->parameters_count; i++)
        add_parameter(&parts, opaque->parameters[i].key, VALUE_STRING, opaque->parameters[i].value);
    if (opaque->labels_part.data != NULL)
        add_parameter(&parts, slice_of_text(OPAQUE_PROFILE_LABELS), VALUE_BYTES,
                      opaque->labels_part);
    for (size_t i = 0; i < opaque->labels_count; i++) {
        size_t begin = value->size;
        if (slice_equal_text(opaque->labels[i].key, "service.name"))
            continue;
        profile_bytes_field(value, VALUE_STRING, opaque->labels[i].key);
        profile_bytes_wrap(value, begin, 1);
    }
    if (value->size > 0) {
        profile_bytes_wrap(value, 0, VALUE_ARRAY);
        add_attribute(&parts, slice_of_text(PROFILE_LABEL_NAMES));
    }
    /* Both types are written, if empty: back-ends require them. */
    profile_bytes_field(head, 1, slice_of(NULL, 0));
    struct wire_writer writer =
        wire_writer_of(profile_bytes_room(head, TIMES_BYTES_MAX), TIMES_BYTES_MAX);
    if (opaque->time_unix_ns != 0)
        wire_write_fixed64(&writer, 3, opaque->time_unix_ns);
    if (opaque->duration_ns != 0)
        wire_write_number(&writer, 4, opaque->duration_ns);
    head->size += wire_written(&writer).size;
    profile_bytes_field(head, 5, slice_of(NULL, 0));
    profile_bytes_field(head, 9, opaque->format);

    struct buffer *buffer = join(&parts, opaque->payload, budget);
    profile_tables_fini(&parts.tables);
    profile_bytes_fini(&parts.resource);
    profile_bytes_fini(&parts.head);
    profile_bytes_fini(&parts.indices);
    profile_bytes_fini(&parts.value);
    budget_release(&reserve);
    return buffer;
}

bool profile_is_opaque(const struct profile *profile)
{
    return profile->samples_count == 0 && profile->payload.size > 0 &&
           slice_equal_text(profile->payload_format, OPAQUE_PROFILE_JFR);
}

/* The encoded AnyValue of the Profile's attribute of that name; no data: none. */
static struct slice find_attribute(const struct profile_dictionary *dictionary,
                                   const struct profile *profile, const char *key)
{
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct profile_index index;
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

/* The content of the value if it is of one of these kinds; otherwise no data. */
static struct slice content_of(struct slice value, uint32_t kind, uint32_t other_kind)
{
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    struct slice content = slice_of(NULL, 0);
    while (wire_next_field(&reader, &field))
        if (field.type == WIRE_BYTES && (field.number == kind || field.number == other_kind))
            content = field.bytes;
    return content;
}

void opaque_profile_parameters(const struct profile_dictionary *dictionary,
                               const struct profile *profile, const char *const *parameters,
                               size_t count, struct slice *ret_values)
{
    static const size_t prefix = sizeof(OPAQUE_PROFILE_PREFIX) - 1;
    struct profile_indices_reader reader = profile_indices_read(&profile->attributes);
    struct profile_index index;
    size_t left = count;
    bool is_found[OPAQUE_PROFILE_PARAMETERS_MAX] = {false};
    assert(count <= OPAQUE_PROFILE_PARAMETERS_MAX);
    for (size_t i = 0; i < count; i++)
        ret_values[i] = slice_of(NULL, 0);
    while (left > 0 && profile_indices_next(&reader, &index)) {
        if (!profile_has(dictionary, PROFILE_ATTRIBUTES, index))
            continue;
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
            continue;
        struct slice key = profile_string_at(dictionary, attribute.key);
        if (key.size <= prefix || memcmp(key.data, OPAQUE_PROFILE_PREFIX, prefix) != 0)
            continue;
        key = slice_of(key.data + prefix, key.size - prefix);
        for (size_t i = 0; i < count; i++) {
            if (is_found[i] || !slice_equal_text(key, parameters[i]))
                continue;
            ret_values[i] = content_of(attribute.value, VALUE_STRING, VALUE_BYTES);
            is_found[i] = true;
            left--;
            break;
        }
    }
}

struct slice profile_label_names(const struct profile_dictionary *dictionary,
                                 const struct profile *profile)
{
    return content_of(find_attribute(dictionary, profile, PROFILE_LABEL_NAMES), VALUE_ARRAY, 0);
}

size_t profile_label_names_list(struct slice names, struct slice list[PROFILE_LABEL_NAMES_MAX])
{
    struct wire_reader reader = wire_reader_of(names);
    struct wire_field field;
    size_t count = 0;
    while (count < PROFILE_LABEL_NAMES_MAX && wire_next_field(&reader, &field))
        if (field.number == 1 && field.type == WIRE_BYTES)
            list[count++] = content_of(field.bytes, VALUE_STRING, 0);
    return count;
}

bool profile_label_names_has(struct slice names, struct slice key)
{
    struct slice list[PROFILE_LABEL_NAMES_MAX];
    size_t count = profile_label_names_list(names, list);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(list[i], key))
            return true;
    return false;
}
