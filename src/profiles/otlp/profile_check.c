/* SPDX-License-Identifier: Apache-2.0 */
/* Checking indices. First each table, in the order in which they refer to each other: an entry is
 * fine when it refers to fine ones only. Then the profiles: what they refer to must be fine. Pure
 * functions; any thread. */
#include "src/profiles/otlp/profile_check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_view.h"

/* An entry of the dictionary with more fields than that is written anew. */
enum { ENTRY_FIELDS_MAX = 32, LOCATION_LINES = 3 };

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, PROFILE_ID_BYTES = 16 };

static const char *const table_names[PROFILE_TABLES] = {
    [PROFILE_MAPPINGS] = "mapping_table",   [PROFILE_LOCATIONS] = "location_table",
    [PROFILE_FUNCTIONS] = "function_table", [PROFILE_LINKS] = "link_table",
    [PROFILE_STRINGS] = "string_table",     [PROFILE_ATTRIBUTES] = "attribute_table",
    [PROFILE_STACKS] = "stack_table",
};

struct checking {
    struct profile_dictionary dictionary;
    uint8_t *is_fine[PROFILE_TABLES]; /* per entry, and for index 0 in any case */
    struct profile_findings *findings;
};

static inline bool is_fine(const struct checking *checking, enum profile_table table,
                           struct profile_index index)
{
    const struct profile_dictionary *dictionary = &checking->dictionary;
    return profile_has(dictionary, table, index) &&
           checking->is_fine[table][profile_place(dictionary, table, index)] != 0;
}

static bool are_fine(const struct checking *checking, enum profile_table table,
                     const struct profile_indices *indices, struct profile_index *ret_first_broken)
{
    struct profile_indices_reader reader = profile_indices_read(indices);
    struct profile_index index;
    assert(table < PROFILE_TABLES);
    while (profile_indices_next(&reader, &index)) {
        if (is_fine(checking, table, index))
            continue;
        *ret_first_broken = index;
        return false;
    }
    return true;
}

static bool is_string_fine(const struct checking *checking, struct profile_index index)
{
    return profile_has(&checking->dictionary, PROFILE_STRINGS, index);
}

static void note_references(const struct checking *checking, enum profile_inline_kind kind,
                            struct slice message)
{
    checking->findings->needs_rewriting = true;
    checking->findings->measure.inlined_bytes +=
        profile_inline_growth(&checking->dictionary, kind, message);
}

static bool is_attribute_fine(const struct checking *checking, struct profile_index index)
{
    struct profile_attribute attribute = profile_attribute_at(&checking->dictionary, index);
    bool has_references = profile_has_references(INLINE_ANY_VALUE, attribute.value);
    if (has_references)
        note_references(checking, INLINE_ANY_VALUE, attribute.value);
    return is_string_fine(checking, attribute.key) && is_string_fine(checking, attribute.unit);
}

static bool is_link_fine(const struct checking *checking, struct profile_index index)
{
    struct profile_link link = profile_link_at(&checking->dictionary, index);
    return (link.trace_id.size == TRACE_ID_BYTES || link.trace_id.size == 0) &&
           (link.span_id.size == SPAN_ID_BYTES || link.span_id.size == 0);
}

static bool is_function_fine(const struct checking *checking, struct profile_index index)
{
    struct profile_function function = profile_function_at(&checking->dictionary, index);
    return is_string_fine(checking, function.name) &&
           is_string_fine(checking, function.system_name) &&
           is_string_fine(checking, function.filename);
}

static bool is_mapping_fine(const struct checking *checking, struct profile_index index)
{
    struct profile_mapping mapping = profile_mapping_at(&checking->dictionary, index);
    struct profile_index broken;
    return is_string_fine(checking, mapping.filename) &&
           are_fine(checking, PROFILE_ATTRIBUTES, &mapping.attributes, &broken);
}

static bool is_location_fine(const struct checking *checking, struct profile_index index)
{
    struct profile_location location = profile_location_at(&checking->dictionary, index);
    struct wire_reader lines = wire_reader_of(location.bytes);
    struct profile_line line;
    struct profile_index broken;
    while (profile_next_line(&lines, &line))
        if (!is_fine(checking, PROFILE_FUNCTIONS, line.function))
            return false;
    return is_fine(checking, PROFILE_MAPPINGS, location.mapping) &&
           are_fine(checking, PROFILE_ATTRIBUTES, &location.attributes, &broken);
}

static bool is_stack_fine(const struct checking *checking, struct profile_index index)
{
    struct profile_stack stack = profile_stack_at(&checking->dictionary, index);
    struct profile_index broken;
    return are_fine(checking, PROFILE_LOCATIONS, &stack.locations, &broken);
}

/* Whether a message has more fields than any encoder writes: ones that nobody knows, repeated ones
 * that should stand once, numbers that are not packed. Samples refer to an entry any number of
 * times, and each time it is read; written anew it has each field once. `repeated` is the number of
 * a field that may stand there any number of times, 0 for none. */
static bool is_wasteful(struct slice message, uint32_t repeated)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    unsigned fields = 0;
    if (message.size <= 2 * ENTRY_FIELDS_MAX)
        return false;
    while (fields <= ENTRY_FIELDS_MAX && wire_next_field(&reader, &field))
        fields += field.number != repeated;
    return fields > ENTRY_FIELDS_MAX;
}

static bool is_one_field(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    return wire_next_field(&reader, &field) && reader.at == reader.end;
}

/* Of an attribute. */
static bool is_value_wasteful(struct slice entry)
{
    enum { VALUE = 2 };
    struct wire_reader reader = wire_reader_of(entry);
    struct wire_field field;
    while (entry.size > 2 * ENTRY_FIELDS_MAX && wire_next_field(&reader, &field))
        if (field.number == VALUE && is_wasteful(field.bytes, 0))
            return true;
    return false;
}

static bool is_entry_wasteful(enum profile_table table, struct slice entry)
{
    struct wire_reader lines = wire_reader_of(entry);
    struct wire_field line;
    if (table == PROFILE_STRINGS)
        return false;
    if (table == PROFILE_STACKS) /* one list, so that a part of it is found at once */
        return entry.size > 2 * ENTRY_FIELDS_MAX && !is_one_field(entry);
    if (table == PROFILE_ATTRIBUTES && is_value_wasteful(entry))
        return true;
    if (table != PROFILE_LOCATIONS)
        return is_wasteful(entry, 0);
    if (is_wasteful(entry, LOCATION_LINES))
        return true;
    while (entry.size > 2 * ENTRY_FIELDS_MAX && wire_next_field(&lines, &line))
        if (line.number == LOCATION_LINES && is_wasteful(line.bytes, 0))
            return true;
    return false;
}

/* Zero-filled ids are as good as none in the zero element of links. */
static bool has_zero_element(const struct profile_dictionary *dictionary, enum profile_table table)
{
    if (dictionary->counts[table] == 0)
        return false;
    return table == PROFILE_LINKS || dictionary->entries[table][0].size == 0;
}

/* False when there is no memory. */
static bool check_table(struct checking *checking, struct arena *arena, enum profile_table table,
                        bool (*check)(const struct checking *, struct profile_index))
{
    uint32_t count = checking->dictionary.counts[table];
    uint8_t *fine = arena_try_alloc(arena, (size_t)count + 1);
    if (fine == NULL)
        return false;
    checking->is_fine[table] = fine;
    fine[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        fine[i] = check == NULL || check(checking, profile_index_of(i));
        /* Later stages walk whole tables: what is broken goes, even if nothing refers to it. */
        checking->findings->needs_rewriting |= fine[i] == 0;
    }
    for (uint32_t i = 0; i < count && !checking->findings->needs_rewriting; i++)
        checking->findings->needs_rewriting = is_entry_wasteful(
            table, profile_entry_at(&checking->dictionary, table, profile_index_of(i)));
    if (!has_zero_element(&checking->dictionary, table))
        checking->findings->needs_rewriting = true;
    return true;
}

static bool check_tables(struct checking *checking, struct arena *arena)
{
    assert(checking->findings != NULL);
    return check_table(checking, arena, PROFILE_STRINGS, NULL) &&
           check_table(checking, arena, PROFILE_ATTRIBUTES, is_attribute_fine) &&
           check_table(checking, arena, PROFILE_LINKS, is_link_fine) &&
           check_table(checking, arena, PROFILE_FUNCTIONS, is_function_fine) &&
           check_table(checking, arena, PROFILE_MAPPINGS, is_mapping_fine) &&
           check_table(checking, arena, PROFILE_LOCATIONS, is_location_fine) &&
           check_table(checking, arena, PROFILE_STACKS, is_stack_fine);
}

/* What is wrong is only written down for the first broken profile. */
static bool complain(const struct checking *checking, const char *field, enum profile_table table,
                     struct profile_index index)
{
    struct profile_findings *findings = checking->findings;
    uint32_t count = checking->dictionary.counts[table];
    bool is_inside = profile_has(&checking->dictionary, table, index);
    if (findings->broken_profiles == 0)
        snprintf(findings->reason, sizeof(findings->reason),
                 is_inside ? "profile %" PRIu64 ": %s %" PRId64 " leads to an entry of the %s (of "
                             "%" PRIu32 ") that itself refers outside of a table or is malformed"
                           : "profile %" PRIu64 ": %s %" PRId64
                             " is outside of the %s, which has %" PRIu32 " entries",
                 findings->profiles, field, index.number, table_names[table], count);
    return false;
}

static bool check_index(const struct checking *checking, const char *field,
                        enum profile_table table, struct profile_index index)
{
    return is_fine(checking, table, index) || complain(checking, field, table, index);
}

static bool check_indices(const struct checking *checking, const char *field,
                          enum profile_table table, const struct profile_indices *indices)
{
    struct profile_index broken;
    return are_fine(checking, table, indices, &broken) || complain(checking, field, table, broken);
}

static bool check_sample(const struct checking *checking, const struct profile_sample *sample)
{
    return check_index(checking, "stack_index", PROFILE_STACKS, sample->stack) &&
           check_index(checking, "link_index", PROFILE_LINKS, sample->link) &&
           check_indices(checking, "attribute_indices of a sample", PROFILE_ATTRIBUTES,
                         &sample->attributes);
}

static bool check_id(const struct checking *checking, struct slice id)
{
    struct profile_findings *findings = checking->findings;
    if (id.size == PROFILE_ID_BYTES || id.size == 0)
        return true;
    if (findings->broken_profiles == 0)
        snprintf(findings->reason, sizeof(findings->reason),
                 "profile %" PRIu64 ": profile_id has %zu bytes, expected %u or 0",
                 findings->profiles, id.size, PROFILE_ID_BYTES);
    return false;
}

static bool check_value_type(const struct checking *checking, const char *field,
                             const struct profile_value_type *type)
{
    return check_index(checking, field, PROFILE_STRINGS, type->type) &&
           check_index(checking, field, PROFILE_STRINGS, type->unit);
}

static bool check_one(const struct checking *checking, const struct profile *profile)
{
    struct wire_reader samples = wire_reader_of(profile->bytes);
    struct profile_sample sample;
    if (!check_id(checking, profile->id) ||
        !check_value_type(checking, "strindex of sample_type", &profile->sample_type) ||
        !check_value_type(checking, "strindex of period_type", &profile->period_type) ||
        !check_indices(checking, "attribute_indices", PROFILE_ATTRIBUTES, &profile->attributes))
        return false;
    while (profile_next_sample(&samples, &sample))
        if (!check_sample(checking, &sample))
            return false;
    return true;
}

/* Notes a profile; room for its bit is there. */
static void check_profile(struct checking *checking, const struct profile *profile)
{
    struct profile_findings *findings = checking->findings;
    assert(findings->broken != NULL);
    if (!check_one(checking, profile)) {
        findings->broken[findings->profiles / 8] |= (uint8_t)(1 << findings->profiles % 8);
        findings->broken_profiles++;
        findings->broken_samples += profile_items(profile);
        findings->needs_rewriting = true;
    }
    findings->needs_rewriting |= !profile->sample_type.is_set || !profile->period_type.is_set;
    findings->profiles++;
    findings->samples += profile_items(profile);
}

static void check_scopes(struct checking *checking, const struct profile_resource *resource)
{
    struct wire_reader scopes = wire_reader_of(resource->bytes);
    struct profile_scope scope;
    struct profile profile;
    if (profile_has_references(INLINE_RESOURCE, resource->resource))
        note_references(checking, INLINE_RESOURCE, resource->resource);
    while (profile_next_scope(&scopes, &scope)) {
        struct wire_reader profiles = wire_reader_of(scope.bytes);
        if (profile_has_references(INLINE_SCOPE, scope.scope))
            note_references(checking, INLINE_SCOPE, scope.scope);
        while (profile_next_profile(&profiles, &profile))
            check_profile(checking, &profile);
    }
}

static void count_messages(struct slice request, struct profile_measure *measure)
{
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        measure->resources++;
        while (profile_next_scope(&scopes, &scope)) {
            measure->scopes++;
            measure->profiles += scope.profiles_count;
        }
    }
    assert(measure->profiles <= request.size);
}

enum profile_checked profile_check(struct slice request, struct arena *arena,
                                   struct profile_findings *ret_findings)
{
    struct checking checking = {.findings = ret_findings};
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    assert(arena != NULL);
    *ret_findings = (struct profile_findings){0};
    if (!profile_dictionary_open(&checking.dictionary, arena, request))
        return PROFILES_NO_MEMORY;
    struct profile_measure *measure = &ret_findings->measure;
    measure->request_bytes = request.size;
    memcpy(measure->entries, checking.dictionary.counts, sizeof(measure->entries));
    count_messages(request, measure);
    size_t bits_bytes = measure->profiles / 8 + 1;
    ret_findings->broken = arena_try_alloc(arena, bits_bytes);
    if (ret_findings->broken == NULL || !check_tables(&checking, arena))
        return PROFILES_NO_MEMORY;
    memset(ret_findings->broken, 0, bits_bytes);
    while (profile_next_resource(&resources, &resource))
        check_scopes(&checking, &resource);
    return PROFILES_CHECKED;
}
