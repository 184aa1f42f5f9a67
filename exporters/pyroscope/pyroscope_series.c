/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the labels and their names, each of them once. Runs on the exporter's lane. */
#include "exporters/pyroscope/pyroscope_series.h"

#include "exporters/pyroscope/pyroscope_config.h"
#include "src/base/buffer.h"
#include "src/base/random.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/otlp_labels.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/profile_type.h"
#include "src/profiles/pyroscope/series_otlp.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    ARENA_BYTES_MAX = 4 << 20,
    RESOURCE_ATTRIBUTES = 1, /* field of Resource */
    SCOPE_ATTRIBUTES = 3,    /* field of InstrumentationScope */
    HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX,
    /* Profiles of a resource that name the same attributes as labels share what is found in it. Of
     * those that do not at most so many times the request is read again, and AGAIN_BYTES_MORE. */
    AGAIN_GROWTH_MAX = 2,
    AGAIN_BYTES_MORE = 64 * 1024,
};

void pyroscope_series_init(struct pyroscope_series *series, struct budget *budget)
{
    *series = (struct pyroscope_series){.budget = budget};
    arena_init(&series->arena, ARENA_BYTES_MAX);
    arena_init(&series->origin.resource_arena, ARENA_BYTES_MAX);
    arena_init(&series->origin.scope_arena, ARENA_BYTES_MAX);
}

void pyroscope_series_fini(struct pyroscope_series *series)
{
    arena_clear(&series->arena);
    arena_clear(&series->origin.resource_arena);
    arena_clear(&series->origin.scope_arena);
    scratch_fini(&series->labels.scratch, series->budget);
}

size_t pyroscope_sample_labels_max(const struct pyroscope_labels_config *config)
{
    assert(config->max_names > 0);
    return config->max_names / 3;
}

static bool has_name(const struct slice *names, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(names[i], name))
            return true;
    return false;
}

/* Adds a label: of equal names the first counts, labels beyond the limit are left out. */
static void add(struct pyroscope_series *series, const struct pyroscope_source *source,
                struct slice name, struct slice value)
{
    assert(name.size > 0);
    size_t most = source->config->max_names;
    if (source->privates == NULL)
        most -= pyroscope_sample_labels_max(source->config);
    if (value.size == 0 || has_name(series->names, series->count, name))
        return;
    if (series->count >= most || series->count == PYROSCOPE_LABELS_MAX) {
        series->left_out++;
        return;
    }
    value = otlp_text_cut(value, source->config->max_value_bytes);
    uint8_t header[3 * HEADER_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(header, sizeof(header));
    size_t bytes = wire_field_size(1, name.size) + wire_field_size(2, value.size);
    wire_write_header(&writer, 1, bytes);
    series->names[series->count++] = name;
    series->has_failed |=
        !byte_run_append(&series->labels, series->budget, wire_written(&writer)) ||
        !byte_run_append_message(&series->labels, series->budget, 1, name) ||
        !byte_run_append_message(&series->labels, series->budget, 2, value);
}

static void add_text(struct pyroscope_series *series, const struct pyroscope_source *source,
                     const char *name, const char *value)
{
    add(series, source, slice_of_text(name), slice_of_text(value));
}

/* Finds the service and the executable: of each key the first attribute with a text. */
static void find_names(struct pyroscope_origin *origin, const struct pyroscope_source *source)
{
    static const char *const keys[] = {"service.name", "service_name", "process.executable.name"};
    enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
    struct slice texts[KEYS] = {{.size = 0}};
    struct wire_reader reader = wire_reader_of(source->resource);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number != RESOURCE_ATTRIBUTES || field.type != WIRE_BYTES)
            continue;
        struct otlp_pair pair = otlp_text_pair(source->dictionary, field.bytes);
        struct slice text;
        for (size_t i = 0; i < KEYS && pair.key.size > 0; i++)
            if (texts[i].size == 0 && slice_equal_text(pair.key, keys[i]) &&
                otlp_text_of_value(&origin->resource_arena, source->dictionary, pair.value,
                                   source->config->max_value_bytes, &text))
                texts[i] = text;
    }
    origin->service = texts[0].size > 0 ? texts[0] : texts[1];
    origin->executable = texts[2];
}

/* Finds the labels that attributes of a message become. What came as a label keeps its name; of
 * equal names the first counts. */
static void find_labels(struct pyroscope_origin *origin, struct arena *arena,
                        const struct pyroscope_source *source, struct slice message,
                        uint32_t number)
{
    const struct pyroscope_labels_config *config = source->config;
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        struct otlp_pair pair = otlp_text_pair(source->dictionary, field.bytes);
        struct slice key = pair.key;
        if (key.size == 0)
            continue;
        const char *other = pyroscope_config_find(config->names, (const char *)key.data, key.size);
        bool was_label = has_name(origin->were_labels, origin->were_labels_count, key);
        bool is_service =
            slice_equal_text(key, "service.name") || slice_equal_text(key, "service_name");
        bool is_allowed = was_label;
        for (size_t i = 0; !is_allowed && i < config->allow.count; i++)
            is_allowed = slice_equal_text(key, config->allow.texts[i]);
        if (other == NULL && (is_service || !is_allowed))
            continue;
        enum otlp_name_form form = config->dots_to_underscores && !was_label && other == NULL
                                       ? OTLP_NAME_UNDERSCORES
                                       : OTLP_NAME_AS_IT_IS;
        struct slice name;
        struct slice value;
        if (!otlp_label_name(arena, other != NULL ? slice_of_text(other) : key,
                             source->has_plain_names ? OTLP_NAME_PLAIN : form, &name) ||
            !otlp_text_of_value(arena, source->dictionary, pair.value, config->max_value_bytes,
                                &value) ||
            value.size == 0 || has_name(origin->names, origin->count, name))
            continue;
        if (origin->count == PYROSCOPE_LABELS_MAX) {
            origin->left_out++;
            continue;
        }
        origin->names[origin->count] = name;
        origin->values[origin->count++] = value;
    }
}

static bool is_same(struct slice a, struct slice b)
{
    return a.data == b.data && a.size == b.size;
}

/* A request may have a post for each of many small profiles: what they share is read again only if
 * it is not that of the series before. */
static void find_origin(struct pyroscope_series *series, const struct pyroscope_source *source)
{
    struct pyroscope_origin *origin = &series->origin;
    const uint64_t again_max =
        AGAIN_GROWTH_MAX * (uint64_t)source->dictionary->request.size + AGAIN_BYTES_MORE;
    bool are_names_known = origin->is_known && is_same(origin->label_names, source->label_names);
    bool is_resource_known = origin->is_known && is_same(origin->resource, source->resource);
    bool is_scope_known = origin->is_known && is_same(origin->scope, source->scope);
    struct slice label_names = source->label_names;
    if (!are_names_known && origin->again_bytes > again_max) {
        label_names = slice_of(NULL, 0);
        series->left_out += source->label_names.size > 0;
        are_names_known = origin->label_names.size == 0;
    }
    if (!are_names_known) {
        origin->again_bytes += label_names.size;
        origin->again_bytes += is_resource_known ? source->resource.size : 0;
        origin->again_bytes += is_scope_known ? source->scope.size : 0;
        origin->label_names = label_names;
        origin->were_labels_count = profile_label_names_list(label_names, origin->were_labels);
    }
    origin->is_known = true;
    if (!are_names_known || !is_resource_known) {
        arena_clear(&origin->resource_arena);
        origin->resource = source->resource;
        origin->count = 0;
        origin->left_out = 0;
        find_names(origin, source);
        find_labels(origin, &origin->resource_arena, source, source->resource, RESOURCE_ATTRIBUTES);
        origin->resource_count = origin->count;
        origin->resource_left_out = origin->left_out;
    } else if (is_scope_known) {
        return;
    }
    arena_clear(&origin->scope_arena);
    origin->scope = source->scope;
    origin->count = origin->resource_count;
    origin->left_out = origin->resource_left_out;
    find_labels(origin, &origin->scope_arena, source, source->scope, SCOPE_ATTRIBUTES);
}

/* FNV-1a, 64 bits. */
static uint64_t hash_on(uint64_t hash, struct slice bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ bytes.data[i]) * 1099511628211u;
    return hash;
}

bool pyroscope_series_build(struct pyroscope_series *series, const struct pyroscope_source *source)
{
    static const char unknown[] = "unknown_service";
    assert(source->type != NULL);
    const struct config_value *more = source->config->add;
    const struct pyroscope_origin *origin = &series->origin;
    find_origin(series, source);
    arena_clear(&series->arena);
    series->labels.size = 0;
    series->count = 0;
    add_text(series, source, "__name__", source->type->name);
    if (source->privates == NULL) {
        add_text(series, source, "__delta__", "false");
    } else { /* a series keeps its own */
        const struct series_privates *privates = source->privates;
        for (size_t i = 0; i < privates->count; i++)
            add(series, source, privates->labels[i].name, privates->labels[i].value);
        series->left_out += privates->left_out;
    }
    /* service_name is never missing. */
    struct slice service = source->service.size > 0 ? source->service : origin->service;
    if (service.size == 0) {
        size_t size = sizeof(unknown) + origin->executable.size;
        char *text = origin->executable.size > 0 ? arena_try_alloc(&series->arena, size) : NULL;
        service = slice_of_text(unknown);
        if (text != NULL) {
            memcpy(text, unknown, sizeof(unknown) - 1);
            text[sizeof(unknown) - 1] = ':';
            memcpy(text + sizeof(unknown), origin->executable.data, origin->executable.size);
            service = slice_of(text, size);
        }
    }
    add(series, source, slice_of_text("service_name"), service);
    for (size_t i = 0; more != NULL && more->type == CONFIG_VALUE_MAP && i < more->count; i++)
        add_text(series, source, more->keys[i], more->items[i].text);
    for (size_t i = 0; i < origin->count; i++)
        add(series, source, origin->names[i], origin->values[i]);
    series->left_out += origin->left_out;
    series->hash = hash_on(14695981039346656037u, byte_run_slice(&series->labels));
    series->hash = hash_on(series->hash, slice_of_text(source->type->type));
    series->hash = hash_on(series->hash, slice_of_text(source->type->unit));
    return !series->has_failed;
}

/* PushRequest { series { labels …, samples { raw_profile, ID } } }, up to the profile. */
struct buffer *pyroscope_push_head(const struct pyroscope_series *series, uint64_t profile_bytes)
{
    size_t sample = wire_field_size(1, profile_bytes) + wire_field_size(2, PYROSCOPE_ID_BYTES);
    size_t content = series->labels.size + wire_field_size(2, sample);
    size_t room = 3 * HEADER_BYTES_MAX + series->labels.size;
    struct buffer *head = buffer_try_create(series->budget, room);
    if (head == NULL)
        return NULL;
    struct wire_writer writer = wire_writer_of(head->data, room);
    wire_write_header(&writer, 1, content);
    wire_write_raw(&writer, byte_run_slice(&series->labels));
    wire_write_header(&writer, 2, sample);
    wire_write_header(&writer, 1, profile_bytes);
    head->size = wire_written(&writer).size;
    return head;
}

struct buffer *pyroscope_push_tail(struct budget *budget)
{
    char id[PYROSCOPE_ID_BYTES + 1];
    uint32_t words[4];
    size_t room = wire_field_size(2, PYROSCOPE_ID_BYTES);
    struct buffer *tail = buffer_try_create(budget, room);
    if (tail == NULL)
        return NULL;
    /* A random UUID (RFC 9562, version 4): the server requires one and makes its own. */
    for (size_t i = 0; i < 4; i++)
        words[i] = (uint32_t)(random_uniform() * 4294967296.0);
    snprintf(id, sizeof(id), "%08x-%04x-4%03x-%04x-%04x%08x", words[0], words[1] >> 16,
             words[1] & 0xfff, 0x8000 | (words[2] >> 16 & 0x3fff), words[2] & 0xffff, words[3]);
    struct wire_writer writer = wire_writer_of(tail->data, room);
    wire_write_bytes(&writer, 2, slice_of_text(id));
    tail->size = wire_written(&writer).size;
    return tail;
}
