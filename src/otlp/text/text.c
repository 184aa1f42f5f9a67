/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and scopes, which all signals share, around the records. Any thread. */
#include "src/otlp/text/text.h"

#include "src/base/arena.h"
#include "src/otlp/text/text_parts.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"

#include <assert.h>

/* ResourceSpans: 1 resource, 2 scopes, 3 schema_url. ScopeSpans: 1 scope, 2 records, 3 schema_url.
 * Resource: 1 attributes, 3 entity_refs. Scope: 1 name, 2 version, 3 attributes. */
static void write_resource(struct text *text, const struct otlp_text_writer *writer,
                           struct slice bytes, size_t index)
{
    struct message entry = message_of(bytes);
    struct message resource = message_in(&entry, 1);
    struct slice schema = message_bytes(&entry, 3);
    text_add(text, "%s #%zu%s", writer->resource, index, schema.size > 0 ? " [" : "");
    text_add_slice(text, schema);
    text_add(text, "%s%s", schema.size > 0 ? "]" : "", message_count(&resource, 1) > 0 ? " " : "");
    text_add_pairs(text, &resource, 1, " ");
    text_add(text, "\n");
    struct wire_reader scopes = message_reader(&entry);
    while (!text->is_cut && message_next(&scopes, 2, &bytes)) {
        entry = message_of(bytes);
        struct message scope = message_in(&entry, 1);
        struct slice version = message_bytes(&scope, 2);
        bool is_named = message_bytes(&scope, 1).size > 0 || version.size > 0;
        schema = message_bytes(&entry, 3);
        /* As in the Go collector, scopes have the number of their resource here. */
        text_add(text, "%s #%zu%s", writer->scope, index, is_named || schema.size > 0 ? " " : "");
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
        struct wire_reader records = message_reader(&entry);
        struct slice record;
        while (!text->is_cut && message_next(&records, 2, &record))
            writer->normal(text, record);
    }
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

/* EntityRef: 1 schema_url, 2 type, 3 id_keys, 4 description_keys. */
static void write_resource_detailed(struct text *text, const struct otlp_text_writer *writer,
                                    struct slice bytes, size_t index)
{
    struct message entry = message_of(bytes);
    struct message resource = message_in(&entry, 1);
    text_add(text, "%s #%zu\nResource SchemaURL: ", writer->resource_detailed, index);
    text_add_slice(text, message_bytes(&entry, 3));
    text_add(text, "\n");
    text_add_attributes(text, "Resource attributes", "     ->", &resource, 1);
    struct wire_reader entities = message_reader(&resource);
    if (message_count(&resource, 3) > 0)
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
    struct wire_reader scopes = message_reader(&entry);
    for (size_t i = 0; !text->is_cut && message_next(&scopes, 2, &bytes); i++) {
        entry = message_of(bytes);
        struct message scope = message_in(&entry, 1);
        text_add(text, "%s #%zu\n%s SchemaURL: ", writer->scope_detailed, i,
                 writer->scope_detailed);
        text_add_slice(text, message_bytes(&entry, 3));
        text_add(text, "\nInstrumentationScope ");
        text_add_slice(text, message_bytes(&scope, 1));
        text_add(text, " ");
        text_add_slice(text, message_bytes(&scope, 2));
        text_add(text, "\n");
        text_add_attributes(text, "InstrumentationScope attributes", "     ->", &scope, 3);
        struct wire_reader records = message_reader(&entry);
        struct slice record;
        for (size_t k = 0; !text->is_cut && message_next(&records, 2, &record); k++)
            writer->detailed(text, record, k);
    }
}

struct otlp_text_figures otlp_text_count(enum signal_kind signal, struct slice request)
{
    assert(signal < SIGNAL_KINDS);
    struct otlp_text_figures figures = {0};
    struct wire_reader resources = wire_reader_of(request);
    struct slice resource;
    while (message_next(&resources, 1, &resource)) {
        figures.resources++;
        if (signal != METRICS)
            continue;
        struct wire_reader scopes = wire_reader_of(resource);
        struct slice scope;
        while (message_next(&scopes, 2, &scope)) {
            struct wire_reader metrics = wire_reader_of(scope);
            struct slice metric;
            while (message_next(&metrics, 2, &metric))
                figures.metrics++;
        }
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
    static const struct otlp_text_writer *const writers[SIGNAL_KINDS] = {
        [TRACES] = &otlp_text_traces,
        [METRICS] = &otlp_text_metrics,
        [LOGS] = &otlp_text_logs,
        [PROFILES] = &otlp_text_profiles,
    };
    struct profile_dictionary dictionary;
    struct arena arena;
    if (signal != PROFILES) {
        write_resources(text, writers[signal], request, is_detailed);
        return;
    }
    arena_init_charged(&arena, PROFILE_INDEX_BYTES_MAX, text->budget);
    if (profile_dictionary_open(&dictionary, &arena, request)) {
        text->dictionary = &dictionary;
        write_resources(text, writers[signal], request, is_detailed);
        text->dictionary = NULL;
    }
    arena_clear(&arena);
}
