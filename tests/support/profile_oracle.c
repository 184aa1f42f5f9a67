/* SPDX-License-Identifier: Apache-2.0 */
/* Writing profiles out as strings. Quadratic where that is simpler: test inputs are small. */
#include "tests/support/profile_oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_check.h"
#include "src/profiles/otlp/profile_layout.h"

#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    oracle_request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary oracle_dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile oracle_profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample oracle_sample;
typedef Opentelemetry__Proto__Common__V1__KeyValue oracle_key_value;
typedef Opentelemetry__Proto__Common__V1__AnyValue oracle_value;

enum { TABLES = 7, ENTRIES_MAX = 100000 };
enum { MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS };

struct oracle {
    oracle_request *request;
    oracle_dictionary *dictionary;
    size_t counts[TABLES];
    unsigned char *used[TABLES];
    bool has_references;
    FILE *out; /* of the current string */
};

/* Whether the entry exists; 0 is valid in any case. */
static bool use(struct oracle *oracle, int table, int32_t index)
{
    if (index == 0 && oracle->counts[table] == 0)
        return false;
    assert(index >= 0);
    assert((size_t)index < oracle->counts[table]);
    oracle->used[table][index] = 1;
    return true;
}

static const char *string_at(struct oracle *oracle, int32_t index)
{
    return use(oracle, STRINGS, index) ? oracle->dictionary->string_table[index] : "";
}

static void put_hex(struct oracle *oracle, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        fprintf(oracle->out, "%02x", data[i]);
}

static void resolve_value(struct oracle *oracle, oracle_value *value);

static void resolve_attributes(struct oracle *oracle, oracle_key_value **attributes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        oracle_key_value *attribute = attributes[i];
        oracle->has_references |= attribute->key_strindex != 0;
        if (attribute->key[0] == '\0' && attribute->key_strindex != 0)
            attribute->key = (char *)(uintptr_t)string_at(oracle, attribute->key_strindex);
        attribute->key_strindex = 0;
        resolve_value(oracle, attribute->value);
    }
}

static void resolve_value(struct oracle *oracle, oracle_value *value)
{
    if (value == NULL)
        return;
    switch ((int)value->value_case) {
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX:
        oracle->has_references = true;
        value->string_value = (char *)(uintptr_t)string_at(oracle, value->string_value_strindex);
        value->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE:
        for (size_t i = 0; i < value->array_value->n_values; i++)
            resolve_value(oracle, value->array_value->values[i]);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_KVLIST_VALUE:
        resolve_attributes(oracle, value->kvlist_value->values, value->kvlist_value->n_values);
        break;
    default:
        break;
    }
}

static void put_message(struct oracle *oracle, const ProtobufCMessage *message)
{
    if (message == NULL)
        return;
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = mem_alloc(size);
    protobuf_c_message_pack(message, packed);
    put_hex(oracle, packed, size);
    mem_free(packed);
}

static void put_attributes(struct oracle *oracle, const int32_t *indices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!use(oracle, ATTRIBUTES, indices[i]))
            continue;
        const Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *attribute =
            oracle->dictionary->attribute_table[indices[i]];
        if (protobuf_c_message_get_packed_size((const ProtobufCMessage *)attribute) == 0)
            continue; /* the zero element */
        fprintf(oracle->out, "[%s=", string_at(oracle, attribute->key_strindex));
        resolve_value(oracle, attribute->value);
        put_message(oracle, (const ProtobufCMessage *)attribute->value);
        fprintf(oracle->out, " %s]", string_at(oracle, attribute->unit_strindex));
    }
}

static void put_function(struct oracle *oracle, int32_t index)
{
    static const Opentelemetry__Proto__Profiles__V1development__Function none =
        OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__FUNCTION__INIT;
    const Opentelemetry__Proto__Profiles__V1development__Function *function = &none;
    if (use(oracle, FUNCTIONS, index))
        function = oracle->dictionary->function_table[index];
    if (protobuf_c_message_get_packed_size((const ProtobufCMessage *)function) == 0) {
        fprintf(oracle->out, "|||0"); /* nothing, not even the first string */
        return;
    }
    fprintf(oracle->out, "%s|%s|%s|%" PRId64, string_at(oracle, function->name_strindex),
            string_at(oracle, function->system_name_strindex),
            string_at(oracle, function->filename_strindex), function->start_line);
}

/* 0 means none, whatever that entry is. */
static void put_mapping(struct oracle *oracle, int32_t index)
{
    if (index == 0 || !use(oracle, MAPPINGS, index))
        return;
    const Opentelemetry__Proto__Profiles__V1development__Mapping *mapping =
        oracle->dictionary->mapping_table[index];
    if (protobuf_c_message_get_packed_size((const ProtobufCMessage *)mapping) == 0)
        return;
    if ((mapping->memory_start | mapping->memory_limit | mapping->file_offset) != 0)
        fprintf(oracle->out, "%" PRIx64 "-%" PRIx64 "+%" PRIx64 " ", mapping->memory_start,
                mapping->memory_limit, mapping->file_offset);
    fprintf(oracle->out, "%s", string_at(oracle, mapping->filename_strindex));
    put_attributes(oracle, mapping->attribute_indices, mapping->n_attribute_indices);
}

static void put_location(struct oracle *oracle, int32_t index)
{
    if (!use(oracle, LOCATIONS, index)) {
        fprintf(oracle->out, "(0 )");
        return;
    }
    const Opentelemetry__Proto__Profiles__V1development__Location *location =
        oracle->dictionary->location_table[index];
    fprintf(oracle->out, "(%" PRIx64 " ", location->address);
    put_mapping(oracle, location->mapping_index);
    for (size_t i = 0; i < location->n_lines; i++) {
        fprintf(oracle->out, "<");
        put_function(oracle, location->lines[i]->function_index);
        fprintf(oracle->out, ":%" PRId64 ":%" PRId64 ">", location->lines[i]->line,
                location->lines[i]->column);
    }
    put_attributes(oracle, location->attribute_indices, location->n_attribute_indices);
    fprintf(oracle->out, ")");
}

static bool is_zero(ProtobufCBinaryData id)
{
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i] != 0)
            return false;
    return true;
}

static void put_link(struct oracle *oracle, int32_t index)
{
    if (index == 0 || !use(oracle, LINKS, index))
        return;
    const Opentelemetry__Proto__Profiles__V1development__Link *link =
        oracle->dictionary->link_table[index];
    if (is_zero(link->trace_id) && is_zero(link->span_id))
        return;
    if (!is_zero(link->trace_id))
        put_hex(oracle, link->trace_id.data, link->trace_id.len);
    fprintf(oracle->out, "/");
    if (!is_zero(link->span_id))
        put_hex(oracle, link->span_id.data, link->span_id.len);
}

static void put_sample(struct oracle *oracle, const oracle_sample *sample)
{
    if (use(oracle, STACKS, sample->stack_index)) {
        const Opentelemetry__Proto__Profiles__V1development__Stack *stack =
            oracle->dictionary->stack_table[sample->stack_index];
        for (size_t i = 0; i < stack->n_location_indices; i++)
            put_location(oracle, stack->location_indices[i]);
    }
    put_attributes(oracle, sample->attribute_indices, sample->n_attribute_indices);
    put_link(oracle, sample->link_index);
    for (size_t i = 0; i < sample->n_values; i++)
        fprintf(oracle->out, " %" PRId64, sample->values[i]);
    for (size_t i = 0; i < sample->n_timestamps_unix_nano; i++)
        fprintf(oracle->out, " @%" PRIu64, sample->timestamps_unix_nano[i]);
}

static void put_type(struct oracle *oracle,
                     const Opentelemetry__Proto__Profiles__V1development__ValueType *type)
{
    if (type == NULL || (type->type_strindex == 0 && type->unit_strindex == 0))
        fprintf(oracle->out, "/");
    else
        fprintf(oracle->out, "%s/%s", string_at(oracle, type->type_strindex),
                string_at(oracle, type->unit_strindex));
}

static void put_profile(struct oracle *oracle, const oracle_profile *profile,
                        enum profile_detail detail)
{
    put_type(oracle, profile->sample_type);
    fprintf(oracle->out, " %" PRIu64 "+%" PRIu64 " ", profile->time_unix_nano,
            profile->duration_nano);
    put_type(oracle, profile->period_type);
    fprintf(oracle->out, " %" PRId64 " %u ", profile->period, profile->dropped_attributes_count);
    put_attributes(oracle, profile->attribute_indices, profile->n_attribute_indices);
    if (detail == PROFILE_PIECES)
        return;
    put_hex(oracle, profile->profile_id.data, profile->profile_id.len);
    fprintf(oracle->out, " %s ", profile->original_payload_format);
    put_hex(oracle, profile->original_payload.data, profile->original_payload.len);
}

static void add_text(struct oracle *oracle, struct oracle_items *items, const char *prefix,
                     const oracle_profile *profile, const oracle_sample *sample,
                     enum profile_detail detail)
{
    char *text = NULL;
    size_t size = 0;
    oracle->out = open_memstream(&text, &size);
    fprintf(oracle->out, "%s", prefix);
    put_profile(oracle, profile, detail);
    fprintf(oracle->out, " : ");
    if (sample != NULL)
        put_sample(oracle, sample);
    fclose(oracle->out);
    if (items != NULL) {
        items->texts = mem_resize(items->texts, (items->count + 1) * sizeof(items->texts[0]));
        items->texts[items->count++] = mem_copy_text(text);
    }
    free(text);
}

static void list_profiles(struct oracle *oracle, struct oracle_items *items, const char *prefix,
                          const Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope,
                          enum profile_detail detail)
{
    for (size_t i = 0; i < scope->n_profiles; i++) {
        const oracle_profile *profile = scope->profiles[i];
        for (size_t j = 0; j < profile->n_samples; j++)
            add_text(oracle, items, prefix, profile, profile->samples[j], detail);
        if (profile->n_samples == 0)
            add_text(oracle, items, prefix, profile, NULL, detail);
    }
}

static void list_all(struct oracle *oracle, struct oracle_items *items, enum profile_detail detail)
{
    for (size_t i = 0; i < oracle->request->n_resource_profiles; i++) {
        Opentelemetry__Proto__Profiles__V1development__ResourceProfiles *resource =
            oracle->request->resource_profiles[i];
        if (resource->resource != NULL)
            resolve_attributes(oracle, resource->resource->attributes,
                               resource->resource->n_attributes);
        for (size_t j = 0; j < resource->n_scope_profiles; j++) {
            Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *scope =
                resource->scope_profiles[j];
            char *prefix = NULL;
            size_t size = 0;
            if (scope->scope != NULL)
                resolve_attributes(oracle, scope->scope->attributes, scope->scope->n_attributes);
            oracle->out = open_memstream(&prefix, &size);
            put_message(oracle, (const ProtobufCMessage *)resource->resource);
            fprintf(oracle->out, " %s ", resource->schema_url);
            put_message(oracle, (const ProtobufCMessage *)scope->scope);
            fprintf(oracle->out, " %s ", scope->schema_url);
            fclose(oracle->out);
            list_profiles(oracle, items, prefix, scope, detail);
            free(prefix);
        }
    }
}

/* What protobuf-c made goes with the arena: resolving has changed it in place. */
struct oracle_memory {
    void *blocks[ENTRIES_MAX];
    size_t count;
};
static struct oracle_memory memory;

static void *take_block(void *data, size_t size)
{
    assert(data == NULL && memory.count < ENTRIES_MAX);
    return memory.blocks[memory.count++] = mem_alloc(size);
}

static void keep_block(void *data, void *block)
{
    assert(data == NULL);
    (void)block;
}

static ProtobufCAllocator allocator = {.alloc = take_block, .free = keep_block};

static void open_oracle(struct oracle *oracle, struct slice request)
{
    static oracle_dictionary empty =
        OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__PROFILES_DICTIONARY__INIT;
    memset(oracle, 0, sizeof(*oracle));
    oracle->request = (oracle_request *)(void *)PROFILES_SERVICE(
        export_profiles_service_request__unpack)(&allocator, request.size, request.data);
    assert(oracle->request != NULL);
    oracle->dictionary = oracle->request->dictionary != NULL ? oracle->request->dictionary : &empty;
    const oracle_dictionary *d = oracle->dictionary;
    const size_t counts[TABLES] = {d->n_mapping_table, d->n_location_table, d->n_function_table,
                                   d->n_link_table,    d->n_string_table,   d->n_attribute_table,
                                   d->n_stack_table};
    for (int i = 0; i < TABLES; i++) {
        oracle->counts[i] = counts[i];
        oracle->used[i] = mem_zalloc(counts[i] + 1);
    }
}

static void close_oracle(struct oracle *oracle)
{
    for (int i = 0; i < TABLES; i++)
        mem_free(oracle->used[i]);
    while (memory.count > 0)
        mem_free(memory.blocks[--memory.count]);
}

void profile_oracle_list(struct oracle_items *items, struct slice request,
                         enum profile_detail detail)
{
    struct oracle oracle;
    open_oracle(&oracle, request);
    list_all(&oracle, items, detail);
    close_oracle(&oracle);
}

/* The entry in its encoded form, which the caller frees. */
static struct slice entry_bytes(const struct oracle *oracle, int table, size_t index)
{
    const oracle_dictionary *d = oracle->dictionary;
    void *const *const tables[TABLES] = {(void *const *)d->mapping_table,
                                         (void *const *)d->location_table,
                                         (void *const *)d->function_table,
                                         (void *const *)d->link_table,
                                         NULL,
                                         (void *const *)d->attribute_table,
                                         (void *const *)d->stack_table};
    if (table == STRINGS) {
        const char *text = d->string_table[index];
        return slice_of(mem_copy(text, strlen(text)), strlen(text));
    }
    const ProtobufCMessage *message = tables[table][index];
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = mem_alloc(size);
    protobuf_c_message_pack(message, packed);
    return slice_of(packed, size);
}

static const char *complaint_about(const struct oracle *oracle, int table)
{
    const char *complaint = NULL;
    size_t count = oracle->counts[table];
    struct slice *entries = mem_alloc((count + 1) * sizeof(entries[0]));
    for (size_t i = 0; i < count; i++)
        entries[i] = entry_bytes(oracle, table, i);
    if (count == 0 || entries[0].size > 0)
        complaint = "a table has no zero element";
    for (size_t i = 0; i < count && complaint == NULL; i++) {
        if (i > 0 && oracle->used[table][i] == 0)
            complaint = "an entry is not used";
        for (size_t j = 0; j < i && complaint == NULL; j++)
            if (slice_equal(entries[i], entries[j]))
                complaint = "an entry is there twice";
    }
    for (size_t i = 0; i < count; i++)
        mem_free((void *)(uintptr_t)entries[i].data);
    mem_free(entries);
    return complaint;
}

const char *profile_oracle_complaint(struct slice request)
{
    struct oracle oracle;
    const char *complaint = NULL;
    open_oracle(&oracle, request);
    list_all(&oracle, NULL, PROFILE_WHOLE);
    if (oracle.has_references)
        complaint = "there is a reference";
    for (int i = 0; i < TABLES && complaint == NULL; i++)
        complaint = complaint_about(&oracle, i);
    close_oracle(&oracle);
    return complaint;
}

/* Indices by message: which table a field refers to, or which message it holds. */
enum shape {
    NO_SHAPE,
    REQUEST,
    RESOURCE,
    SCOPE,
    PROFILE,
    SAMPLE,
    VALUE_TYPE,
    DICTIONARY,
    MAPPING,
    LOCATION,
    LINE,
    FUNCTION,
    ATTRIBUTE,
    STACK,
    SHAPES,
};
enum { SHAPE_FIELDS = 12 };

static const struct {
    enum shape child;
    int table; /* and one more: 0 is none */
} shapes[SHAPES][SHAPE_FIELDS] = {
    [REQUEST] = {[1] = {.child = RESOURCE}, [2] = {.child = DICTIONARY}},
    [RESOURCE] = {[2] = {.child = SCOPE}},
    [SCOPE] = {[2] = {.child = PROFILE}},
    [PROFILE] = {[1] = {.child = VALUE_TYPE},
                 [2] = {.child = SAMPLE},
                 [5] = {.child = VALUE_TYPE},
                 [11] = {.table = ATTRIBUTES + 1}},
    [SAMPLE] =
        {[1] = {.table = STACKS + 1}, [2] = {.table = ATTRIBUTES + 1}, [3] = {.table = LINKS + 1}},
    [VALUE_TYPE] = {[1] = {.table = STRINGS + 1}, [2] = {.table = STRINGS + 1}},
    [DICTIONARY] = {[1] = {.child = MAPPING},
                    [2] = {.child = LOCATION},
                    [3] = {.child = FUNCTION},
                    [6] = {.child = ATTRIBUTE},
                    [7] = {.child = STACK}},
    [MAPPING] = {[4] = {.table = STRINGS + 1}, [5] = {.table = ATTRIBUTES + 1}},
    [LOCATION] =
        {[1] = {.table = MAPPINGS + 1}, [3] = {.child = LINE}, [4] = {.table = ATTRIBUTES + 1}},
    [LINE] = {[1] = {.table = FUNCTIONS + 1}},
    [FUNCTION] =
        {[1] = {.table = STRINGS + 1}, [2] = {.table = STRINGS + 1}, [3] = {.table = STRINGS + 1}},
    [ATTRIBUTE] = {[1] = {.table = STRINGS + 1}, [3] = {.table = STRINGS + 1}},
    [STACK] = {[1] = {.table = LOCATIONS + 1}},
};

static size_t stray(const uint64_t counts[TABLES], int table, uint64_t index)
{
    return index != 0 && index >= counts[table];
}

static size_t strays_in(const uint64_t counts[TABLES], enum shape shape, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    size_t strays = 0;
    while (wire_read_field(&reader, &field)) {
        enum shape child =
            field.number < SHAPE_FIELDS ? shapes[shape][field.number].child : NO_SHAPE;
        int table = field.number < SHAPE_FIELDS ? shapes[shape][field.number].table : 0;
        if (child != NO_SHAPE)
            strays += strays_in(counts, child, field.bytes);
        if (table != 0 && field.type != WIRE_BYTES)
            strays += stray(counts, table - 1, field.number_value);
        struct wire_reader packed = wire_reader_of(field.bytes);
        while (table != 0 && field.type == WIRE_BYTES && packed.at < packed.end)
            strays += stray(counts, table - 1, wire_read_varint(&packed, WIRE_VARINT_BYTES_MAX));
    }
    return strays;
}

size_t profile_oracle_strays(struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    struct wire_field entry;
    uint64_t counts[TABLES] = {0};
    while (wire_read_field(&reader, &field)) {
        struct wire_reader tables =
            wire_reader_of(field.number == 2 ? field.bytes : slice_of("", 0));
        while (wire_read_field(&tables, &entry))
            if (entry.number <= TABLES)
                counts[entry.number - 1]++;
    }
    return strays_in(counts, REQUEST, request);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void profile_oracle_sort(struct oracle_items *items)
{
    if (items->count > 0)
        qsort((void *)items->texts, items->count, sizeof(items->texts[0]), compare);
}

bool profile_oracle_fast_check(struct slice request)
{
    struct profile_fast_figures fast;
    struct profile_findings findings;
    struct otlp_figures figures;
    struct arena arena;
    const char *reason;
    if (!profile_fast_check(request, &fast))
        return false;
    assert(profile_layout_of(request) == LAYOUT_1_10);
    assert(otlp_check(PROFILES, request, &figures, &reason));
    assert(figures.items == fast.samples);
    arena_init(&arena, PROFILE_INDEX_BYTES_MAX);
    assert(profile_check(request, &arena, &findings) == PROFILES_CHECKED);
    assert(findings.broken_profiles == 0);
    assert(!findings.needs_rewriting);
    assert(findings.profiles == fast.profiles);
    assert(findings.samples == fast.samples);
    arena_clear(&arena);
    return true;
}
