/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, and the frame of resources and scopes that all signals share. Any thread. */
#include "src/otlp/text/text.h"

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/text/text_parts.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char cut_mark[] = "\n… cut: the text is too large\n";

static bool text_reserve(struct text *text, size_t size)
{
    assert(text->size <= text->capacity);
    size_t wanted = text->size + size + sizeof(cut_mark) + 1;
    if (text->is_cut || wanted > TEXT_BYTES_MAX)
        return false;
    if (wanted <= text->capacity)
        return true;
    size_t capacity = text->capacity == 0 ? 1024 : text->capacity;
    while (capacity < wanted)
        capacity *= 2;
    /* While it is copied both are there. */
    if (text->budget != NULL && !budget_try_take(text->budget, capacity))
        return false;
    char *data = mem_try_alloc(capacity);
    if (text->budget != NULL)
        budget_return(text->budget, data != NULL ? text->capacity : capacity);
    if (data == NULL)
        return false;
    if (text->size > 0)
        memcpy(data, text->data, text->size);
    mem_free(text->data);
    text->data = data;
    text->capacity = capacity;
    return true;
}

/* Room for the mark was reserved with what came before. */
void text_cut(struct text *text)
{
    assert(text->is_cut || text->capacity == 0 || text->capacity - text->size >= sizeof(cut_mark));
    if (!text->is_cut && text->capacity > 0) {
        memcpy(text->data + text->size, cut_mark, sizeof(cut_mark));
        text->size += sizeof(cut_mark) - 1;
    }
    text->is_cut = true;
}

void text_init(struct text *text, struct budget *budget)
{
    *text = (struct text){.budget = budget};
    if (text_reserve(text, 0))
        text->data[0] = '\0';
}

void text_fini(struct text *text)
{
    mem_free(text->data);
    if (text->budget != NULL)
        budget_return(text->budget, text->capacity);
    *text = (struct text){0};
}

void text_note_read(struct text *text, size_t bytes)
{
    assert(text->read_bytes <= TEXT_READ_BYTES_MAX);
    if (bytes > TEXT_READ_BYTES_MAX - text->read_bytes)
        text_cut(text);
    else
        text->read_bytes += bytes;
}

void text_add_slice(struct text *text, struct slice bytes)
{
    if (!text_reserve(text, bytes.size)) {
        text_cut(text);
        return;
    }
    if (bytes.size > 0)
        memcpy(text->data + text->size, bytes.data, bytes.size);
    text->size += bytes.size;
    text->data[text->size] = '\0';
}

void text_add(struct text *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    /* Names and values, which have no bound, are added as slices. */
    assert(size >= 0);
    assert((size_t)size < sizeof(line));
    text_add_slice(text, slice_of(line, (size_t)size));
}

static const struct otlp_text_writer *writer_of(enum signal_kind signal)
{
    static const struct otlp_text_writer *const writers[SIGNAL_KINDS] = {
        [TRACES] = &otlp_text_traces,
        [METRICS] = &otlp_text_metrics,
        [LOGS] = &otlp_text_logs,
        [PROFILES] = &otlp_text_profiles,
    };
    return writers[signal];
}

/* Scope: 1 name, 2 version, 3 attributes. ScopeSpans: 1 scope, 2 records, 3 schema_url. */
static void write_scope_head(struct text *text, const char *name, size_t index,
                             const struct message *entry)
{
    struct message scope = message_in(entry, 1);
    struct slice schema = message_bytes(entry, 3);
    struct slice version = message_bytes(&scope, 2);
    bool is_named = message_bytes(&scope, 1).size > 0 || version.size > 0;
    text_add(text, "%s #%zu%s", name, index, is_named || schema.size > 0 ? " " : "");
    text_add_slice(text, message_bytes(&scope, 1));
    if (version.size > 0)
        text_add(text, "@");
    text_add_slice(text, version);
    if (schema.size > 0) {
        text_add(text, "%s[", is_named ? " " : "");
        text_add_slice(text, schema);
        text_add(text, "]");
    }
    if (message_count(&scope, 3) > 0)
        text_add(text, " ");
    text_add_pairs(text, &scope, 3, " ");
    text_add(text, "\n");
}

static void write_scope(struct text *text, const struct otlp_text_writer *writer,
                        struct slice bytes, size_t index)
{
    struct message entry = message_of(bytes);
    struct wire_reader records = message_reader(&entry);
    struct slice record;
    write_scope_head(text, writer->scope, index, &entry);
    while (!text->is_cut && message_next(&records, 2, &record))
        writer->normal(text, record);
}

static void write_resource(struct text *text, const struct otlp_text_writer *writer,
                           struct slice bytes, size_t index)
{
    struct message entry = message_of(bytes);
    struct message resource = message_in(&entry, 1);
    struct slice schema = message_bytes(&entry, 3);
    struct wire_reader scopes = message_reader(&entry);
    struct slice scope;
    text_add(text, "%s #%zu%s", writer->resource, index, schema.size > 0 ? " [" : "");
    text_add_slice(text, schema);
    text_add(text, "%s%s", schema.size > 0 ? "]" : "", message_count(&resource, 1) > 0 ? " " : "");
    text_add_pairs(text, &resource, 1, " ");
    text_add(text, "\n");
    /* The Go collector gives scopes the number of their resource here, and people compare. */
    while (!text->is_cut && message_next(&scopes, 2, &scope))
        write_scope(text, writer, scope, index);
}

static void write_scope_detailed(struct text *text, const struct otlp_text_writer *writer,
                                 struct slice bytes, size_t index)
{
    struct message entry = message_of(bytes);
    struct message scope = message_in(&entry, 1);
    struct wire_reader records = message_reader(&entry);
    struct slice record;
    text_add(text, "%s #%zu\n%s SchemaURL: ", writer->scope_detailed, index,
             writer->scope_detailed);
    text_add_slice(text, message_bytes(&entry, 3));
    text_add(text, "\nInstrumentationScope ");
    text_add_slice(text, message_bytes(&scope, 1));
    text_add(text, " ");
    text_add_slice(text, message_bytes(&scope, 2));
    text_add(text, "\n");
    text_add_attributes(text, "InstrumentationScope attributes", "     ->", &scope, 3);
    for (size_t i = 0; !text->is_cut && message_next(&records, 2, &record); i++)
        writer->detailed(text, record, i);
}

static void write_entity_keys(struct text *text, const char *header, const struct message *entity,
                              uint32_t number)
{
    struct wire_reader keys = message_reader(entity);
    struct slice key;
    if (message_count(entity, number) == 0)
        return;
    text_add(text, "          -> %s:\n", header);
    while (message_next(&keys, number, &key)) {
        text_add(text, "               -> ");
        text_add_slice(text, key);
        text_add(text, "\n");
    }
}

/* Resource: 3 entity_refs. EntityRef: 1 schema_url, 2 type, 3 id_keys, 4 description_keys. */
static void write_entities(struct text *text, const struct message *resource)
{
    struct wire_reader entities = message_reader(resource);
    struct slice bytes;
    if (message_count(resource, 3) > 0)
        text_add(text, "Resource entity refs:\n");
    for (size_t i = 0; !text->is_cut && message_next(&entities, 3, &bytes); i++) {
        struct message entity = message_of(bytes);
        text_add(text, "     -> Entity ref #%zu:\n          -> Type: ", i);
        text_add_slice(text, message_bytes(&entity, 2));
        if (message_bytes(&entity, 1).size > 0)
            text_add(text, "\n          -> Schema URL: ");
        text_add_slice(text, message_bytes(&entity, 1));
        text_add(text, "\n");
        write_entity_keys(text, "ID keys", &entity, 3);
        write_entity_keys(text, "Description keys", &entity, 4);
    }
}

static void write_resource_detailed(struct text *text, const struct otlp_text_writer *writer,
                                    struct slice bytes, size_t index)
{
    struct message entry = message_of(bytes);
    struct message resource = message_in(&entry, 1);
    struct wire_reader scopes = message_reader(&entry);
    struct slice scope;
    text_add(text, "%s #%zu\nResource SchemaURL: ", writer->resource_detailed, index);
    text_add_slice(text, message_bytes(&entry, 3));
    text_add(text, "\n");
    text_add_attributes(text, "Resource attributes", "     ->", &resource, 1);
    write_entities(text, &resource);
    for (size_t i = 0; !text->is_cut && message_next(&scopes, 2, &scope); i++)
        write_scope_detailed(text, writer, scope, i);
}

static uint64_t count_metrics(struct slice resource_metrics)
{
    struct wire_reader scopes = wire_reader_of(resource_metrics);
    struct slice scope;
    uint64_t count = 0;
    while (message_next(&scopes, 2, &scope)) {
        struct wire_reader metrics = wire_reader_of(scope);
        struct slice metric;
        while (message_next(&metrics, 2, &metric))
            count++;
    }
    return count;
}

struct otlp_text_figures otlp_text_count(enum signal_kind signal, struct slice request)
{
    assert(signal < SIGNAL_KINDS);
    struct otlp_text_figures figures = {0};
    struct wire_reader resources = wire_reader_of(request);
    struct slice resource;
    while (message_next(&resources, 1, &resource)) {
        figures.resources++;
        if (signal == METRICS)
            figures.metrics += count_metrics(resource);
    }
    return figures;
}

static void write_resources(struct text *text, const struct otlp_text_writer *writer,
                            struct slice request, bool is_detailed)
{
    struct wire_reader resources = wire_reader_of(request);
    struct slice resource;
    for (size_t i = 0; !text->is_cut && message_next(&resources, 1, &resource); i++) {
        if (is_detailed)
            write_resource_detailed(text, writer, resource, i);
        else
            write_resource(text, writer, resource, i);
    }
}

void otlp_text_write(struct text *text, enum signal_kind signal, struct slice request,
                     bool is_detailed)
{
    struct profile_dictionary dictionary;
    struct arena arena;
    if (signal != PROFILES) {
        write_resources(text, writer_of(signal), request, is_detailed);
        return;
    }
    arena_init_charged(&arena, PROFILE_INDEX_BYTES_MAX, text->budget);
    if (profile_dictionary_open(&dictionary, &arena, request)) {
        text->dictionary = &dictionary;
        write_resources(text, writer_of(signal), request, is_detailed);
        text->dictionary = NULL;
    }
    arena_clear(&arena);
}
