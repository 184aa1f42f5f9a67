/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a plain request. Of most tables only the highest index that refers to them is kept,
 * to be compared with their size at the end, so that tables may follow one another in any order;
 * stacks, which hold most indices, come after the locations and are compared many at a time. Fields
 * come in the order of their numbers, as all libraries write them: thus each singular one comes
 * once, and its position tells the layout. Pure functions; any thread. */
#include "src/profiles/otlp/profile_fast_check.h"

#include <assert.h>

#include "src/otlp/check.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_numbers.h"
#include "src/profiles/otlp/profile_plan.h"

enum {
    ID_FIELDS_BYTES = 2 + 16 + 2 + 8, /* trace id and span id */
    PROFILE_ID_BYTES = 16,
    SCOPE_DEPTH = 4, /* of InstrumentationScope, the request being 1 */
};

struct scan {
    uint64_t highest[PROFILE_TABLES]; /* index that refers to the table */
    uint64_t counts[PROFILE_TABLES];
    uint64_t profiles;
    uint64_t samples;
    bool is_1_10; /* a sample proves it */
};

static inline const uint8_t *end_of(struct slice slice)
{
    return slice.data + slice.size;
}

static inline void refer(struct scan *scan, enum profile_table table, uint64_t index)
{
    scan->highest[table] = index > scan->highest[table] ? index : scan->highest[table];
}

/* Packed numbers: any, or indices of a table. */
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

/* A message that has only numbers below field 8, in order. */
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

static inline bool scan_function(struct scan *scan, struct slice function)
{
    return scan_numbers(scan, &profile_function_plan, function);
}

static inline bool scan_value_type(struct scan *scan, struct slice type)
{
    return scan_numbers(scan, &profile_value_type_plan, type);
}

static inline bool scan_line(struct scan *scan, struct slice line)
{
    return scan_numbers(scan, &profile_line_plan, line);
}

static bool scan_mapping(struct scan *scan, struct slice mapping)
{
    const uint8_t *at = mapping.data;
    const uint8_t *end = end_of(mapping);
    struct slice packed = {0};
    uint64_t number;
    while (at < end && *at != PROFILE_BYTES(5)) {
        at = profile_number_at(at + 1, end, &number);
        if (at == NULL)
            return false;
    }
    if (!scan_numbers(scan, &profile_mapping_plan,
                      slice_of(mapping.data, (size_t)(at - mapping.data))))
        return false;
    return at == end || (profile_content_at(at + 1, end, &packed) && end_of(packed) == end &&
                         scan_indices(scan, PROFILE_ATTRIBUTES, packed));
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
                ((tag == PROFILE_BYTES(3) && scan_line(scan, content)) ||
                 (tag == PROFILE_BYTES(4) && scan_indices(scan, PROFILE_ATTRIBUTES, content)));
            at = is_fine ? end_of(content) : end;
        }
        if (!is_fine || tag < before)
            return false;
        before = tag;
    }
    return true;
}

/* An AnyValue of a scalar kind: nothing is nested, and there is no reference. */
static bool scan_scalar(struct slice value)
{
    const uint8_t *end = end_of(value);
    struct slice text;
    uint64_t number;
    if (value.size == 0)
        return true;
    switch (value.data[0]) {
    case PROFILE_BYTES(1): /* string_value */
    case PROFILE_BYTES(7): /* bytes_value */
        return profile_content_at(value.data + 1, end, &text) && end_of(text) == end;
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

static bool scan_link(struct slice link)
{
    return link.size == 0 || (link.size == ID_FIELDS_BYTES && link.data[0] == PROFILE_BYTES(1) &&
                              link.data[1] == 16 && link.data[2 + 16] == PROFILE_BYTES(2) &&
                              link.data[2 + 16 + 1] == 8);
}

/* All locations are known by now, or this is not plain. */
static inline bool scan_stack(const struct scan *scan, struct slice stack)
{
    struct slice packed;
    uint64_t highest = 0;
    if (stack.size == 0)
        return true;
    if (stack.data[0] != PROFILE_BYTES(1) ||
        !profile_content_at(stack.data + 1, end_of(stack), &packed) ||
        end_of(packed) != end_of(stack))
        return false;
    return profile_indices_are_below(packed, (uint32_t)scan->counts[PROFILE_LOCATIONS]) ||
           (scan_packed(packed, &highest) && highest < scan->counts[PROFILE_LOCATIONS]);
}

static inline bool scan_entry(struct scan *scan, enum profile_table table, struct slice entry)
{
    switch (table) {
    case PROFILE_MAPPINGS:
        return scan_mapping(scan, entry);
    case PROFILE_LOCATIONS:
        return scan_location(scan, entry);
    case PROFILE_FUNCTIONS:
        return scan_function(scan, entry);
    case PROFILE_LINKS:
        return scan_link(entry);
    case PROFILE_STRINGS:
        return true;
    case PROFILE_ATTRIBUTES:
        return scan_attribute(scan, entry);
    case PROFILE_STACKS:
        return scan_stack(scan, entry);
    case PROFILE_TABLES:
    default:
        return false;
    }
}

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
        if ((is_zero && entry.size > 0) || !scan_entry(scan, (enum profile_table)table, entry))
            return false;
        at = end_of(entry);
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

/* A field of a Profile that is bytes; what has a payload is not plain. */
static inline bool scan_profile_bytes(struct scan *scan, uint8_t tag, struct slice content)
{
    switch (tag) {
    case PROFILE_BYTES(1):
    case PROFILE_BYTES(5):
        return scan_value_type(scan, content);
    case PROFILE_BYTES(2):
        scan->samples++;
        return scan_sample(scan, content);
    case PROFILE_BYTES(7):
        return content.size == PROFILE_ID_BYTES;
    case PROFILE_BYTES(11):
        return scan_indices(scan, PROFILE_ATTRIBUTES, content);
    default:
        return false;
    }
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
            if (!profile_content_at(at, end, &content) || !scan_profile_bytes(scan, tag, content))
                return false;
            at = end_of(content);
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
        types += tag == PROFILE_BYTES(1) || tag == PROFILE_BYTES(5);
        before = tag;
    }
    scan->profiles++;
    return types == 2;
}

/* Resource or InstrumentationScope: the first fields of ResourceProfiles and of ScopeProfiles. */
static const struct otlp_message *header_message(enum profile_inline_kind kind)
{
    const struct otlp_message *group = otlp_field_find(otlp_request(PROFILES), 1)->message;
    assert(kind == INLINE_RESOURCE || kind == INLINE_SCOPE);
    if (kind == INLINE_SCOPE)
        group = otlp_field_find(group, 2)->message;
    return otlp_field_find(group, 1)->message;
}

/* The fields of ResourceProfiles or ScopeProfiles but for what is repeated. */
static bool scan_header(enum profile_inline_kind kind, uint8_t tag, struct slice content)
{
    if (tag == PROFILE_BYTES(3)) /* schema_url */
        return true;
    return tag == PROFILE_BYTES(1) &&
           otlp_check_message(header_message(kind), content, SCOPE_DEPTH) &&
           !profile_has_references(kind, content);
}

/* ResourceProfiles, or with INLINE_SCOPE a ScopeProfiles in it. */
static bool scan_group(struct scan *scan, enum profile_inline_kind kind, struct slice group)
{
    const uint8_t *at = group.data;
    const uint8_t *end = end_of(group);
    while (at < end) {
        uint8_t tag = *at++;
        struct slice content;
        if ((tag & 7) != WIRE_BYTES || !profile_content_at(at, end, &content))
            return false;
        bool is_fine = tag != PROFILE_BYTES(2)   ? scan_header(kind, tag, content)
                       : kind == INLINE_RESOURCE ? scan_group(scan, INLINE_SCOPE, content)
                                                 : scan_profile(scan, content);
        if (!is_fine)
            return false;
        at = end_of(content);
    }
    return true;
}

/* Whether all that was referred to is there. */
static bool is_complete(const struct scan *scan)
{
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        if (scan->counts[i] == 0 || scan->highest[i] >= scan->counts[i])
            return false;
    return scan->is_1_10;
}

bool profile_fast_check(struct slice request, struct profile_fast_figures *ret_figures)
{
    struct scan scan = {0};
    const uint8_t *at = request.data;
    const uint8_t *end = request.size > 0 ? end_of(request) : at;
    assert(request.data != NULL || request.size == 0);
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
    if (!is_complete(&scan))
        return false;
    *ret_figures =
        (struct profile_fast_figures){.profiles = scan.profiles, .samples = scan.samples};
    return true;
}
