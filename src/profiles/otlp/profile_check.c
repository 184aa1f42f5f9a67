/* SPDX-License-Identifier: Apache-2.0 */
/* The two checks of profiles requests. The careful one says what is wrong and with which profile;
 * the fast one only recognises that nothing is. Pure functions; any thread. */
#include "src/profiles/otlp/profile_check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/base/arena.h"
#include "src/otlp/check.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_numbers.h"
#include "src/profiles/otlp/profile_plan.h"
#include "src/profiles/otlp/profile_view.h"

enum {
    TRACE_ID_BYTES = 16,
    SPAN_ID_BYTES = 8,
    PROFILE_ID_BYTES = 16,
    SCOPE_DEPTH = 4,       /* of InstrumentationScope, the request being 1 */
    ENTRY_FIELDS_MAX = 32, /* of an entry of the dictionary; one with more is rewritten */
};

/* The fast check. Of most tables it keeps only the highest index that refers to them, and compares
 * it with their size at the end, so that tables may be in any order; stacks, which hold most
 * indices, come after the locations and are compared many at a time. Fields must be in the order of
 * their numbers, as all libraries write them: thus each singular one comes once, and its position
 * tells the layout. */
struct scan {
    uint64_t highest[PROFILE_TABLES]; /* index that refers to the table */
    uint64_t counts[PROFILE_TABLES];
    uint64_t profiles;
    uint64_t samples;
    bool is_1_10; /* proved by a sample */
};

static inline const uint8_t *end_of(struct slice slice)
{
    return slice.data + slice.size;
}

static inline void refer(struct scan *scan, enum profile_table table, uint64_t index)
{
    scan->highest[table] = index > scan->highest[table] ? index : scan->highest[table];
}

/* Packed varints; *highest becomes the highest so far. */
static inline bool scan_packed(struct slice packed, uint64_t *highest)
{
    const uint8_t *at = packed.data;
    const uint8_t *end = end_of(packed);
    uint64_t number;
    while (at < end) {
        at = profile_number_at(at, end, &number);
        if (at == NULL)
            return false;
        *highest = number > *highest ? number : *highest;
    }
    return true;
}

static inline bool scan_indices(struct scan *scan, enum profile_table table, struct slice packed)
{
    return scan_packed(packed, &scan->highest[table]);
}

/* A message of varints only, with field numbers below 8. */
static inline bool scan_numbers(struct scan *scan, const struct profile_plan *plan,
                                struct slice message)
{
    const uint8_t *at = message.data;
    const uint8_t *end = end_of(message);
    uint8_t before = 0;
    while (at < end) {
        uint8_t tag = *at;
        uint64_t number;
        if (tag <= before || tag >= PROFILE_NUMBER(8) || (tag & 7) != WIRE_VARINT)
            return false;
        at = profile_number_at(at + 1, end, &number);
        if (at == NULL || plan->meanings[tag >> 3] == PROFILE_UNKNOWN_FIELD)
            return false;
        if (plan->meanings[tag >> 3] == PROFILE_INDEX)
            refer(scan, (enum profile_table)plan->tables[tag >> 3], number);
        before = tag;
    }
    return true;
}

static inline bool scan_location(struct scan *scan, struct slice location)
{
    const uint8_t *at = location.data;
    const uint8_t *end = end_of(location);
    uint8_t before = 0;
    while (at < end) {
        uint8_t tag = *at++;
        uint64_t number;
        struct slice content;
        bool is_fine = tag > before || tag == PROFILE_BYTES(3);
        if (tag == PROFILE_NUMBER(1) || tag == PROFILE_NUMBER(2)) {
            at = profile_number_at(at, end, &number);
            if (at == NULL)
                return false;
            if (tag == PROFILE_NUMBER(1))
                refer(scan, PROFILE_MAPPINGS, number);
        } else {
            is_fine =
                is_fine && profile_content_at(at, end, &content) &&
                ((tag == PROFILE_BYTES(3) && scan_numbers(scan, &profile_line_plan, content)) ||
                 (tag == PROFILE_BYTES(4) && scan_indices(scan, PROFILE_ATTRIBUTES, content)));
            at = is_fine ? end_of(content) : end;
        }
        if (!is_fine || tag < before)
            return false;
        before = tag;
    }
    return true;
}

/* An AnyValue of a scalar kind: nothing nested, no reference. */
static bool scan_scalar(struct slice value)
{
    const uint8_t *end = end_of(value);
    struct slice string;
    uint64_t number;
    if (value.size == 0)
        return true;
    switch (value.data[0]) {
    case PROFILE_BYTES(1): /* string_value */
    case PROFILE_BYTES(7): /* bytes_value */
        return profile_content_at(value.data + 1, end, &string) && end_of(string) == end;
    case PROFILE_NUMBER(2): /* bool_value */
    case PROFILE_NUMBER(3): /* int_value */
        return profile_number_at(value.data + 1, end, &number) == end;
    case PROFILE_FIXED64(4): /* double_value */
        return value.size == 1 + 8;
    default:
        return false;
    }
}

static bool scan_attribute(struct scan *scan, struct slice attribute)
{
    const uint8_t *at = attribute.data;
    const uint8_t *end = end_of(attribute);
    uint8_t before = 0;
    while (at < end) {
        uint8_t tag = *at++;
        uint64_t number = 0;
        struct slice value;
        if (tag <= before)
            return false;
        if (tag == PROFILE_NUMBER(1) || tag == PROFILE_NUMBER(3)) {
            at = profile_number_at(at, end, &number);
            refer(scan, PROFILE_STRINGS, number);
        } else if (tag == PROFILE_BYTES(2) && profile_content_at(at, end, &value) &&
                   scan_scalar(value)) {
            at = end_of(value);
        } else {
            return false;
        }
        if (at == NULL)
            return false;
        before = tag;
    }
    return true;
}

/* All locations come before stacks. */
static bool scan_dictionary(struct scan *scan, struct slice dictionary)
{
    const uint8_t *at = dictionary.data;
    const uint8_t *end = end_of(dictionary);
    struct slice entry;
    while (at < end) {
        unsigned table = (unsigned)(*at >> 3) - 1;
        if ((*at & 7) != WIRE_BYTES || table >= PROFILE_TABLES ||
            !profile_content_at(at + 1, end, &entry))
            return false;
        bool is_zero = scan->counts[table]++ == 0 && table != PROFILE_LINKS;
        if (is_zero && entry.size > 0)
            return false;
        at = end_of(entry);
        bool is_fine = true;
        switch ((enum profile_table)table) {
        case PROFILE_MAPPINGS: {
            const uint8_t *rest = entry.data; /* attributes, after the numbers */
            uint64_t number;
            while (rest != NULL && rest < at && *rest != PROFILE_BYTES(5))
                rest = profile_number_at(rest + 1, at, &number);
            struct slice packed;
            is_fine =
                rest != NULL &&
                scan_numbers(scan, &profile_mapping_plan,
                             slice_of(entry.data, (size_t)(rest - entry.data))) &&
                (rest == at || (profile_content_at(rest + 1, at, &packed) && end_of(packed) == at &&
                                scan_indices(scan, PROFILE_ATTRIBUTES, packed)));
            break;
        }
        case PROFILE_LOCATIONS:
            is_fine = scan_location(scan, entry);
            break;
        case PROFILE_FUNCTIONS:
            is_fine = scan_numbers(scan, &profile_function_plan, entry);
            break;
        case PROFILE_LINKS: /* both ids, or nothing */
            is_fine = entry.size == 0 ||
                      (entry.size == 2 + TRACE_ID_BYTES + 2 + SPAN_ID_BYTES &&
                       entry.data[0] == PROFILE_BYTES(1) && entry.data[1] == TRACE_ID_BYTES &&
                       entry.data[2 + TRACE_ID_BYTES] == PROFILE_BYTES(2) &&
                       entry.data[2 + TRACE_ID_BYTES + 1] == SPAN_ID_BYTES);
            break;
        case PROFILE_STRINGS:
            break;
        case PROFILE_ATTRIBUTES:
            is_fine = scan_attribute(scan, entry);
            break;
        case PROFILE_STACKS: {
            const uint64_t locations = scan->counts[PROFILE_LOCATIONS];
            struct slice packed;
            uint64_t highest = 0;
            is_fine = entry.size == 0 ||
                      (entry.data[0] == PROFILE_BYTES(1) &&
                       profile_content_at(entry.data + 1, at, &packed) && end_of(packed) == at &&
                       (profile_indices_are_below(packed, (uint32_t)locations) ||
                        (scan_packed(packed, &highest) && highest < locations)));
            break;
        }
        case PROFILE_TABLES:
        default:
            return false;
        }
        if (!is_fine)
            return false;
    }
    return true;
}

static bool scan_sample(struct scan *scan, struct slice sample)
{
    const uint8_t *at = sample.data;
    const uint8_t *end = end_of(sample);
    uint8_t before = 0;
    while (at < end) {
        uint8_t tag = *at++;
        uint64_t number = 0;
        struct slice content = {0};
        bool is_number = (tag & 7) == WIRE_VARINT;
        if (tag <= before || (!is_number && !profile_content_at(at, end, &content)))
            return false;
        at = is_number ? profile_number_at(at, end, &number) : end_of(content);
        if (tag == PROFILE_NUMBER(1))
            refer(scan, PROFILE_STACKS, number);
        else if (tag == PROFILE_NUMBER(3))
            refer(scan, PROFILE_LINKS, number);
        else if (tag == PROFILE_BYTES(4))
            scan->is_1_10 = true;
        else if (tag != PROFILE_BYTES(2) && (tag != PROFILE_BYTES(5) || content.size % 8 != 0))
            return false;
        if (at == NULL ||
            (tag == PROFILE_BYTES(2) && !scan_indices(scan, PROFILE_ATTRIBUTES, content)) ||
            (tag == PROFILE_BYTES(4) && !scan_packed(content, &number)))
            return false;
        before = tag;
    }
    return true;
}

static bool scan_profile(struct scan *scan, struct slice profile)
{
    const uint8_t *at = profile.data;
    const uint8_t *end = end_of(profile);
    uint8_t before = 0;
    unsigned types = 0;
    while (at < end) {
        uint8_t tag = *at++;
        uint64_t number;
        struct slice content;
        if (tag <= before && tag != PROFILE_BYTES(2))
            return false;
        if ((tag & 7) == WIRE_BYTES) {
            if (!profile_content_at(at, end, &content))
                return false;
            at = end_of(content);
            bool is_fine = false; /* a payload */
            if (tag == PROFILE_BYTES(2)) {
                scan->samples++;
                is_fine = scan_sample(scan, content);
            } else if (tag == PROFILE_BYTES(1) || tag == PROFILE_BYTES(5)) {
                types++;
                is_fine = scan_numbers(scan, &profile_value_type_plan, content);
            } else if (tag == PROFILE_BYTES(7)) {
                is_fine = content.size == PROFILE_ID_BYTES;
            } else if (tag == PROFILE_BYTES(11)) {
                is_fine = scan_indices(scan, PROFILE_ATTRIBUTES, content);
            }
            if (!is_fine)
                return false;
        } else if (tag == PROFILE_FIXED64(3) && end - at >= 8) {
            at += 8;
        } else {
            at = profile_number_at(at, end, &number);
            if (at == NULL ||
                (tag != PROFILE_NUMBER(4) && tag != PROFILE_NUMBER(6) && tag != PROFILE_NUMBER(8)))
                return false;
        }
        if (tag < before)
            return false;
        before = tag;
    }
    scan->profiles++;
    return types == 2;
}

/* ResourceProfiles, or with INLINE_SCOPE one ScopeProfiles of it. */
static bool scan_group(struct scan *scan, enum profile_inline_kind kind, struct slice group)
{
    const uint8_t *at = group.data;
    const uint8_t *end = end_of(group);
    while (at < end) {
        uint8_t tag = *at++;
        struct slice content;
        if ((tag & 7) != WIRE_BYTES || !profile_content_at(at, end, &content))
            return false;
        at = end_of(content);
        bool is_fine = tag == PROFILE_BYTES(3); /* schema_url */
        if (tag == PROFILE_BYTES(1)) {
            /* Resource or InstrumentationScope. */
            const struct otlp_message *message =
                otlp_field_find(otlp_request(PROFILES), 1)->message;
            if (kind == INLINE_SCOPE)
                message = otlp_field_find(message, 2)->message;
            message = otlp_field_find(message, 1)->message;
            is_fine = otlp_check_message(message, content, SCOPE_DEPTH) &&
                      !profile_has_references(kind, content);
        } else if (tag == PROFILE_BYTES(2)) {
            is_fine = kind == INLINE_RESOURCE ? scan_group(scan, INLINE_SCOPE, content)
                                              : scan_profile(scan, content);
        }
        if (!is_fine)
            return false;
    }
    return true;
}

bool profile_fast_check(struct slice request, struct profile_fast_figures *ret_figures)
{
    struct scan scan = {0};
    const uint8_t *at = request.data;
    const uint8_t *end = request.size > 0 ? end_of(request) : at;
    if (request.size > PROFILE_REQUEST_BYTES_MAX)
        return false;
    while (at < end) {
        uint8_t tag = *at++;
        struct slice content;
        if ((tag != PROFILE_BYTES(1) && tag != PROFILE_BYTES(2)) ||
            !profile_content_at(at, end, &content))
            return false;
        if (!(tag == PROFILE_BYTES(2) ? scan_dictionary(&scan, content)
                                      : scan_group(&scan, INLINE_RESOURCE, content)))
            return false;
        at = end_of(content);
    }
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        if (scan.counts[i] == 0 || scan.highest[i] >= scan.counts[i])
            return false;
    if (!scan.is_1_10)
        return false;
    *ret_figures =
        (struct profile_fast_figures){.profiles = scan.profiles, .samples = scan.samples};
    return true;
}

static const char *const table_names[PROFILE_TABLES] = {
    [PROFILE_MAPPINGS] = "mapping_table",   [PROFILE_LOCATIONS] = "location_table",
    [PROFILE_FUNCTIONS] = "function_table", [PROFILE_LINKS] = "link_table",
    [PROFILE_STRINGS] = "string_table",     [PROFILE_ATTRIBUTES] = "attribute_table",
    [PROFILE_STACKS] = "stack_table",
};

/* The careful check. First each table, in the order in which they refer to each other: an entry is
 * fine when all that it refers to is. Then the profiles: what they refer to must be fine. */
struct checking {
    struct profile_dictionary dictionary;
    uint8_t *is_fine[PROFILE_TABLES]; /* by entry, with room for index 0 in any case */
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

static void note_references(const struct checking *checking, enum profile_inline_kind kind,
                            struct slice message)
{
    checking->findings->needs_rewriting = true;
    checking->findings->measure.inlined_bytes +=
        profile_inline_growth(&checking->dictionary, kind, message);
}

static bool is_entry_fine(const struct checking *checking, enum profile_table table,
                          struct profile_index index)
{
    const struct profile_dictionary *dictionary = &checking->dictionary;
    struct profile_index broken;
    switch (table) {
    case PROFILE_ATTRIBUTES: {
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (profile_has_references(INLINE_ANY_VALUE, attribute.value))
            note_references(checking, INLINE_ANY_VALUE, attribute.value);
        return is_fine(checking, PROFILE_STRINGS, attribute.key) &&
               is_fine(checking, PROFILE_STRINGS, attribute.unit);
    }
    case PROFILE_LINKS: {
        struct profile_link link = profile_link_at(dictionary, index);
        return (link.trace_id.size == TRACE_ID_BYTES || link.trace_id.size == 0) &&
               (link.span_id.size == SPAN_ID_BYTES || link.span_id.size == 0);
    }
    case PROFILE_FUNCTIONS: {
        struct profile_function function = profile_function_at(dictionary, index);
        return is_fine(checking, PROFILE_STRINGS, function.name) &&
               is_fine(checking, PROFILE_STRINGS, function.system_name) &&
               is_fine(checking, PROFILE_STRINGS, function.filename);
    }
    case PROFILE_MAPPINGS: {
        struct profile_mapping mapping = profile_mapping_at(dictionary, index);
        return is_fine(checking, PROFILE_STRINGS, mapping.filename) &&
               are_fine(checking, PROFILE_ATTRIBUTES, &mapping.attributes, &broken);
    }
    case PROFILE_LOCATIONS: {
        struct profile_location location = profile_location_at(dictionary, index);
        struct wire_reader lines = wire_reader_of(location.bytes);
        struct profile_line line;
        while (profile_next_line(&lines, &line))
            if (!is_fine(checking, PROFILE_FUNCTIONS, line.function))
                return false;
        return is_fine(checking, PROFILE_MAPPINGS, location.mapping) &&
               are_fine(checking, PROFILE_ATTRIBUTES, &location.attributes, &broken);
    }
    case PROFILE_STACKS: {
        struct profile_stack stack = profile_stack_at(dictionary, index);
        return are_fine(checking, PROFILE_LOCATIONS, &stack.locations, &broken);
    }
    case PROFILE_STRINGS:
    case PROFILE_TABLES:
    default:
        return true;
    }
}

/* Whether a message has more fields than any encoder writes: unknown ones, singular ones that are
 * repeated, numbers that are not packed. Samples refer to an entry any number of times, and each
 * time it is decoded; a rewritten one has each field once. `repeated`: the number of a field that
 * may come any number of times, 0 for none. */
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

static bool is_entry_wasteful(enum profile_table table, struct slice entry)
{
    enum { VALUE = 2, LINES = 3 };
    struct wire_reader reader = wire_reader_of(entry);
    struct wire_field field;
    uint32_t nested = table == PROFILE_ATTRIBUTES ? VALUE : table == PROFILE_LOCATIONS ? LINES : 0;
    if (table == PROFILE_STRINGS || entry.size <= 2 * ENTRY_FIELDS_MAX)
        return false;
    if (table == PROFILE_STACKS) /* one packed list: parts of it are found in constant time */
        return !wire_next_field(&reader, &field) || reader.at != reader.end;
    if (is_wasteful(entry, table == PROFILE_LOCATIONS ? LINES : 0))
        return true;
    while (nested != 0 && wire_next_field(&reader, &field))
        if (field.number == nested && is_wasteful(field.bytes, 0))
            return true;
    return false;
}

/* False when there is no memory. */
static bool check_tables(struct checking *checking, struct arena *arena)
{
    static const enum profile_table order[] = {
        PROFILE_STRINGS,  PROFILE_ATTRIBUTES, PROFILE_LINKS,  PROFILE_FUNCTIONS,
        PROFILE_MAPPINGS, PROFILE_LOCATIONS,  PROFILE_STACKS,
    };
    const struct profile_dictionary *dictionary = &checking->dictionary;
    for (unsigned t = 0; t < PROFILE_TABLES; t++) {
        enum profile_table table = order[t];
        uint32_t count = dictionary->counts[table];
        uint8_t *fine = arena_try_alloc(arena, (size_t)count + 1);
        if (fine == NULL)
            return false;
        checking->is_fine[table] = fine;
        fine[0] = 1;
        for (uint32_t i = 0; i < count; i++) {
            fine[i] = is_entry_fine(checking, table, profile_index_of(i));
            /* Later stages walk whole tables: broken entries go even if nothing refers to them. */
            checking->findings->needs_rewriting |= fine[i] == 0;
        }
        for (uint32_t i = 0; i < count && !checking->findings->needs_rewriting; i++)
            checking->findings->needs_rewriting =
                is_entry_wasteful(table, profile_entry_at(dictionary, table, profile_index_of(i)));
        /* The zero element; of links it may have ids of zeros. */
        if (count == 0 || (table != PROFILE_LINKS && dictionary->entries[table][0].size > 0))
            checking->findings->needs_rewriting = true;
    }
    return true;
}

/* Writes the reason for the first broken profile only. Returns false. */
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

static bool check_value_type(const struct checking *checking, const char *field,
                             const struct profile_value_type *type)
{
    return check_index(checking, field, PROFILE_STRINGS, type->type) &&
           check_index(checking, field, PROFILE_STRINGS, type->unit);
}

static bool check_profile(const struct checking *checking, const struct profile *profile)
{
    struct profile_findings *findings = checking->findings;
    struct wire_reader samples = wire_reader_of(profile->bytes);
    struct profile_sample sample;
    if (profile->id.size != PROFILE_ID_BYTES && profile->id.size != 0) {
        if (findings->broken_profiles == 0)
            snprintf(findings->reason, sizeof(findings->reason),
                     "profile %" PRIu64 ": profile_id has %zu bytes, expected %u or 0",
                     findings->profiles, profile->id.size, PROFILE_ID_BYTES);
        return false;
    }
    if (!check_value_type(checking, "strindex of sample_type", &profile->sample_type) ||
        !check_value_type(checking, "strindex of period_type", &profile->period_type) ||
        !check_indices(checking, "attribute_indices", PROFILE_ATTRIBUTES, &profile->attributes))
        return false;
    while (profile_next_sample(&samples, &sample))
        if (!check_index(checking, "stack_index", PROFILE_STACKS, sample.stack) ||
            !check_index(checking, "link_index", PROFILE_LINKS, sample.link) ||
            !check_indices(checking, "attribute_indices of a sample", PROFILE_ATTRIBUTES,
                           &sample.attributes))
            return false;
    return true;
}

enum profile_checked profile_check(struct slice request, struct arena *arena,
                                   struct profile_findings *ret_findings)
{
    struct checking checking = {.findings = ret_findings};
    struct profile_findings *findings = ret_findings;
    struct profile_measure *measure = &findings->measure;
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    *findings = (struct profile_findings){0};
    if (!profile_dictionary_open(&checking.dictionary, arena, request))
        return PROFILES_NO_MEMORY;
    measure->request_bytes = request.size;
    memcpy(measure->entries, checking.dictionary.counts, sizeof(measure->entries));
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        measure->resources++;
        while (profile_next_scope(&scopes, &scope)) {
            measure->scopes++;
            measure->profiles += scope.profiles_count;
        }
    }
    size_t bits_bytes = measure->profiles / 8 + 1;
    findings->broken = arena_try_alloc(arena, bits_bytes);
    if (findings->broken == NULL || !check_tables(&checking, arena))
        return PROFILES_NO_MEMORY;
    memset(findings->broken, 0, bits_bytes);
    resources = wire_reader_of(request);
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        if (profile_has_references(INLINE_RESOURCE, resource.resource))
            note_references(&checking, INLINE_RESOURCE, resource.resource);
        while (profile_next_scope(&scopes, &scope)) {
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            if (profile_has_references(INLINE_SCOPE, scope.scope))
                note_references(&checking, INLINE_SCOPE, scope.scope);
            while (profile_next_profile(&profiles, &profile)) {
                if (!check_profile(&checking, &profile)) {
                    uint64_t i = findings->profiles;
                    findings->broken[i / 8] |= (uint8_t)(1 << i % 8);
                    findings->broken_profiles++;
                    findings->broken_samples += profile_items(&profile);
                    findings->needs_rewriting = true;
                }
                /* Attributes in several fields are looked for among all samples, each time that
                 * the profile is cut: they become one list. */
                findings->needs_rewriting |= !profile.sample_type.is_set ||
                                             !profile.period_type.is_set ||
                                             profile.attributes.numbers.parent.data != NULL;
                findings->profiles++;
                findings->samples += profile_items(&profile);
            }
        }
    }
    return PROFILES_CHECKED;
}
