/* SPDX-License-Identifier: Apache-2.0 */
/* Copying tables, in the order in which they refer to each other. An entry is written with
 * its new indices where its set keeps it if it is new, field by field in the order that it has:
 * what is not in the order of field numbers is not plain. One owner, one thread at a time. */
#include "src/profiles/otlp/dictionary_copy.h"

#include <assert.h>
#include <endian.h>

#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_plan.h"
#include "src/profiles/otlp/profile_remap.h"

/* Stacks whose places are fetched at a time. */
enum { STACKS_AHEAD = 16 };

/* Writes an entry with new indices; NULL: it is not plain. */
typedef uint8_t *(*put_entry_fn)(const struct profile_remap *remap, struct slice entry,
                                 uint8_t *at);

static inline const uint8_t *end_of(struct slice slice)
{
    return slice.data + slice.size;
}

/* Old to new, in a table that has been copied. */
static inline bool translate(const struct profile_remap *remap, enum profile_table table,
                             uint64_t *index)
{
    uint32_t count = remap->from.counts[table];
    if (*index >= count && *index != 0)
        return false;
    *index = remap->known[table][*index] - remap->base;
    return true;
}

static inline uint8_t *put_numbers(const struct profile_remap *remap,
                                   const struct profile_plan *plan, struct slice message,
                                   uint8_t *at)
{
    const uint8_t *from = message.data;
    const uint8_t *end = end_of(message);
    uint8_t before = 0;
    while (from < end) {
        uint8_t tag = *from;
        uint64_t number;
        if (tag <= before || tag >= PROFILE_NUMBER(8) || (tag & 7) != WIRE_VARINT)
            return NULL;
        from = profile_number_at(from + 1, end, &number);
        unsigned meaning = plan->meanings[tag >> 3];
        if (from == NULL || meaning == PROFILE_UNKNOWN_FIELD)
            return NULL;
        if (meaning == PROFILE_INDEX &&
            !translate(remap, (enum profile_table)plan->tables[tag >> 3], &number))
            return NULL;
        at = profile_put_number(at, tag >> 3, number);
        before = tag;
    }
    return at;
}

/* Packed indices of attributes; those that became 0 are left out. */
static inline uint8_t *put_attributes(const struct profile_remap *remap, struct slice packed,
                                      uint32_t number, uint8_t *at)
{
    const uint8_t *from = packed.data;
    const uint8_t *end = end_of(packed);
    uint8_t *to = at + PROFILE_HEADER_BYTES;
    while (from < end) {
        uint64_t index;
        from = profile_number_at(from, end, &index);
        if (from == NULL || !translate(remap, PROFILE_ATTRIBUTES, &index))
            return NULL;
        if (index != 0)
            to = profile_put_varint(to, index);
    }
    return to == at + PROFILE_HEADER_BYTES ? at : profile_close_short(at, to, number);
}

static inline uint8_t *put_function(const struct profile_remap *remap, struct slice function,
                                    uint8_t *at)
{
    return put_numbers(remap, &profile_function_plan, function, at);
}

static inline uint8_t *put_mapping(const struct profile_remap *remap, struct slice mapping,
                                   uint8_t *at)
{
    const uint8_t *from = mapping.data;
    const uint8_t *end = end_of(mapping);
    struct slice attributes;
    uint64_t number;
    while (from < end && *from != PROFILE_BYTES(5)) {
        from = profile_number_at(from + 1, end, &number);
        if (from == NULL)
            return NULL;
    }
    at = put_numbers(remap, &profile_mapping_plan,
                     slice_of(mapping.data, (size_t)(from - mapping.data)), at);
    if (from == end || at == NULL)
        return at;
    if (!profile_content_at(from + 1, end, &attributes) || end_of(attributes) != end)
        return NULL;
    return put_attributes(remap, attributes, 5, at);
}

/* One field of a location that is bytes. */
static inline uint8_t *put_location_part(const struct profile_remap *remap, uint8_t tag,
                                         struct slice content, uint8_t *at)
{
    if (tag == PROFILE_BYTES(4))
        return put_attributes(remap, content, 4, at);
    if (tag != PROFILE_BYTES(3))
        return NULL;
    uint8_t *end = put_numbers(remap, &profile_line_plan, content, at + PROFILE_HEADER_BYTES);
    return end != NULL ? profile_close_short(at, end, 3) : NULL;
}

static inline uint8_t *put_location(const struct profile_remap *remap, struct slice location,
                                    uint8_t *at)
{
    const uint8_t *from = location.data;
    const uint8_t *end = end_of(location);
    uint8_t before = 0;
    while (from < end && at != NULL) {
        uint8_t tag = *from++;
        struct slice content;
        uint64_t number;
        if (tag < before || (tag == before && tag != PROFILE_BYTES(3)))
            return NULL;
        before = tag;
        if (tag == PROFILE_NUMBER(1) || tag == PROFILE_NUMBER(2)) {
            from = profile_number_at(from, end, &number);
            if (from == NULL ||
                (tag == PROFILE_NUMBER(1) && !translate(remap, PROFILE_MAPPINGS, &number)))
                return NULL;
            at = profile_put_number(at, tag >> 3, number);
        } else {
            if (!profile_content_at(from, end, &content))
                return NULL;
            at = put_location_part(remap, tag, content, at);
            from = end_of(content);
        }
    }
    return at;
}

static inline uint8_t *put_attribute(const struct profile_remap *remap, struct slice attribute,
                                     uint8_t *at)
{
    const uint8_t *from = attribute.data;
    const uint8_t *end = end_of(attribute);
    uint8_t before = 0;
    while (from < end) {
        uint8_t tag = *from++;
        struct slice value;
        uint64_t number;
        if (tag <= before)
            return NULL;
        before = tag;
        if (tag == PROFILE_NUMBER(1) || tag == PROFILE_NUMBER(3)) {
            from = profile_number_at(from, end, &number);
            if (from == NULL || !translate(remap, PROFILE_STRINGS, &number))
                return NULL;
            at = profile_put_number(at, tag >> 3, number);
        } else {
            if (tag != PROFILE_BYTES(2) || !profile_content_at(from, end, &value) ||
                profile_has_references(INLINE_ANY_VALUE, value))
                return NULL;
            memcpy(at + PROFILE_HEADER_BYTES, value.data, value.size);
            at = profile_close_short(at, at + PROFILE_HEADER_BYTES + value.size, 2);
            from = end_of(value);
        }
    }
    return at;
}

/* Ids in their order and of their lengths; zero ones are none, which is for others to find out. */
static inline uint8_t *put_link(const struct profile_remap *remap, struct slice link, uint8_t *at)
{
    static const uint8_t zeros[16];
    enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, SPAN_AT = 2 + TRACE_ID_BYTES };
    (void)remap;
    if (link.size != SPAN_AT + 2 + SPAN_ID_BYTES || link.data[0] != PROFILE_BYTES(1) ||
        link.data[1] != TRACE_ID_BYTES || link.data[SPAN_AT] != PROFILE_BYTES(2) ||
        link.data[SPAN_AT + 1] != SPAN_ID_BYTES ||
        memcmp(link.data + 2, zeros, TRACE_ID_BYTES) == 0 ||
        memcmp(link.data + SPAN_AT + 2, zeros, SPAN_ID_BYTES) == 0)
        return NULL;
    memcpy(at, link.data, link.size);
    return at + link.size;
}

/* Two bytes are written in any case, which costs less than to decide. */
static inline uint8_t *put_index(uint8_t *at, uint32_t index)
{
    uint32_t is_long = index >= 0x80;
    if (index >= 1 << 14)
        return profile_put_varint(at, index);
    at[0] = (uint8_t)(index & 0x7f) | (uint8_t)(is_long << 7);
    at[1] = (uint8_t)(index >> 7);
    return at + 1 + is_long;
}

/* Four indices, of at most two bytes each, from eight bytes: how long each is cannot be foretold,
 * so that there is no branch on it. *from moves on. NULL: there are longer ones, or the index is
 * beyond the table. */
static inline uint8_t *put_four_locations(const uint32_t *known, uint32_t base, uint32_t count,
                                          const uint8_t **from, uint8_t *to)
{
    uint64_t bytes;
    unsigned used = 0;
    memcpy(&bytes, *from, sizeof(bytes));
    bytes = le64toh(bytes);
    for (unsigned i = 0; i < 4; i++) {
        unsigned is_long = (unsigned)(bytes >> 7) & 1;
        uint32_t index = (uint32_t)((bytes & 0x7f) | (bytes >> 1 & (0x3f80u * is_long)));
        if ((is_long & (unsigned)(bytes >> 15)) != 0 || index >= count)
            return NULL;
        to = put_index(to, known[index] - base);
        bytes >>= 8u << is_long;
        used += 1 + is_long;
    }
    *from += used;
    return to;
}

/* The indices of locations, which are most of a dictionary. */
static inline uint8_t *put_locations(const struct profile_remap *remap, struct slice packed,
                                     uint8_t *to)
{
    enum { FOUR_BYTES = 8 };
    const uint32_t *known = remap->known[PROFILE_LOCATIONS];
    const uint32_t count = remap->from.counts[PROFILE_LOCATIONS];
    const uint32_t base = remap->base;
    const uint8_t *from = packed.data;
    const uint8_t *end = end_of(packed);
    while (from < end) {
        uint8_t *next = NULL;
        uint64_t index;
        if (end - from >= FOUR_BYTES)
            next = put_four_locations(known, base, count, &from, to);
        if (next == NULL) {
            from = profile_number_at(from, end, &index);
            if (from == NULL || index >= count)
                return NULL;
            next = put_index(to, known[index] - base);
        }
        to = next;
    }
    return to;
}

/* A stack that stays as it is: so does every location, and it is written as we would. */
static inline bool is_same_stack(struct slice stack, uint32_t locations)
{
    struct slice packed;
    return profile_content_at(stack.data + 1, end_of(stack), &packed) &&
           stack.data[0] == PROFILE_BYTES(1) && end_of(packed) == end_of(stack) &&
           packed.data == stack.data + 1 + wire_varint_size(packed.size) && packed.size > 0 &&
           profile_indices_are_below(packed, locations);
}

static inline uint8_t *put_stack(const struct profile_remap *remap, struct slice stack, uint8_t *at)
{
    struct slice packed;
    if (stack.data[0] != PROFILE_BYTES(1) ||
        !profile_content_at(stack.data + 1, end_of(stack), &packed) ||
        end_of(packed) != end_of(stack))
        return NULL;
    uint8_t *end = put_locations(remap, packed, at + PROFILE_HEADER_BYTES);
    if (end == NULL || end == at + PROFILE_HEADER_BYTES)
        return end == NULL ? NULL : at;
    return profile_close_short(at, end, 1);
}

/* Whether 0 means nothing, so that it may be left out: there is a zero element, or one that nobody
 * looks at. */
static bool has_null(const struct profile_remap *remap, enum profile_table table)
{
    assert(table < PROFILE_TABLES);
    return table == PROFILE_LINKS || table == PROFILE_MAPPINGS || remap->from.counts[table] == 0 ||
           remap->from.entries[table][0].size == 0;
}

static inline struct slice entry_at(const struct profile_remap *remap, enum profile_table table,
                                    uint32_t index)
{
    struct profile_entry entry = remap->from.entries[table][index];
    return slice_of(remap->from.request.data + entry.offset, entry.size);
}

/* The entry is expected where it comes after the one before, as in the requests of one program.
 * Inlined, with put, into each of its callers. */
static inline bool __attribute__((always_inline))
copy_table(struct profile_remap *remap, enum profile_table table, put_entry_fn put)
{
    struct profile_set *set = &remap->to->sets[table];
    const uint32_t count = remap->from.counts[table];
    uint32_t new = 0;
    if (!has_null(remap, table))
        return false;
    remap->known[table][0] = remap->base;
    for (uint32_t i = 1; i < count; i++) {
        struct slice entry = entry_at(remap, table, i);
        uint8_t *at =
            profile_set_begin(set, entry.size * DICTIONARY_COPY_GROWTH + DICTIONARY_COPY_SLACK);
        if (entry.size > 0)
            at = put(remap, entry, at);
        if (at == NULL)
            return false;
        new = profile_set_end_like(set, at, new + 1);
        remap->known[table][i] = remap->base + new;
    }
    return true;
}

static bool copy_strings(struct profile_remap *remap)
{
    struct profile_set *set = &remap->to->sets[PROFILE_STRINGS];
    const uint32_t count = remap->from.counts[PROFILE_STRINGS];
    uint32_t new = 0;
    if (!has_null(remap, PROFILE_STRINGS))
        return false;
    remap->known[PROFILE_STRINGS][0] = remap->base;
    for (uint32_t i = 1; i < count; i++) {
        new = profile_set_add_like(set, entry_at(remap, PROFILE_STRINGS, i), new + 1);
        remap->known[PROFILE_STRINGS][i] = remap->base + new;
    }
    return true;
}

static bool is_identity(const struct profile_remap *remap, enum profile_table table)
{
    uint32_t moved = 0;
    assert(remap->base > 0);
    for (uint32_t i = 0; i < remap->from.counts[table]; i++)
        moved |= (remap->known[table][i] - remap->base) ^ i;
    return moved == 0;
}

/* One that is written anew; false: it is not plain. */
static inline bool copy_changed_stack(struct profile_remap *remap, struct slice stack,
                                      uint32_t expected, uint32_t *ret_new)
{
    struct profile_set *set = &remap->to->sets[PROFILE_STACKS];
    uint8_t *at =
        profile_set_begin(set, stack.size * DICTIONARY_COPY_GROWTH + DICTIONARY_COPY_SLACK);
    at = put_stack(remap, stack, at);
    if (at != NULL)
        *ret_new = profile_set_end_like(set, at, expected);
    return at != NULL;
}

/* Copies stacks [first, end), at most STACKS_AHEAD, of which most are taken as they are.
 * *are_others: those before were not where they were expected, so that there is something to
 * search; that takes memory which is far away, and is fetched for all of them at a time. */
static bool copy_some_stacks(struct profile_remap *remap, uint32_t first, uint32_t end,
                             bool *are_others)
{
    struct profile_set *set = &remap->to->sets[PROFILE_STACKS];
    const uint32_t locations = remap->from.counts[PROFILE_LOCATIONS];
    const bool is_ahead = *are_others;
    uint32_t hashes[STACKS_AHEAD];
    uint32_t new = remap->known[PROFILE_STACKS][first - 1] - remap->base;
    assert(end - first <= STACKS_AHEAD);
    for (uint32_t i = first; is_ahead && i < end; i++)
        hashes[i - first] = profile_set_expect(set, entry_at(remap, PROFILE_STACKS, i));
    *are_others = false;
    for (uint32_t i = first; i < end; i++) {
        struct slice stack = entry_at(remap, PROFILE_STACKS, i);
        uint32_t expected = new + 1;
        if (stack.size > 0 && !is_same_stack(stack, locations)) {
            if (!copy_changed_stack(remap, stack, expected, &new))
                return false;
        } else if (is_ahead && !profile_set_has_at(set, expected, stack)) {
            new = profile_set_add_expected(set, stack, hashes[i - first]);
        } else {
            new = profile_set_add_like(set, stack, expected);
        }
        *are_others |= new != expected || new + 1 == set->count;
        remap->known[PROFILE_STACKS][i] = remap->base + new;
    }
    return true;
}

/* As copy_table; where all locations keep their places, so do most stacks their bytes. */
static bool copy_stacks(struct profile_remap *remap)
{
    const uint32_t count = remap->from.counts[PROFILE_STACKS];
    bool are_others = false;
    if (remap->from.counts[PROFILE_LOCATIONS] == 0 || !is_identity(remap, PROFILE_LOCATIONS))
        return copy_table(remap, PROFILE_STACKS, put_stack);
    if (!has_null(remap, PROFILE_STACKS))
        return false;
    remap->known[PROFILE_STACKS][0] = remap->base;
    for (uint32_t i = 1; i < count; i += STACKS_AHEAD) {
        uint32_t end = count - i < STACKS_AHEAD ? count : i + STACKS_AHEAD;
        if (!copy_some_stacks(remap, i, end, &are_others))
            return false;
    }
    return true;
}

static bool copy_tables(struct profile_remap *remap)
{
    return copy_table(remap, PROFILE_LINKS, put_link) && copy_strings(remap) &&
           copy_table(remap, PROFILE_ATTRIBUTES, put_attribute) &&
           copy_table(remap, PROFILE_FUNCTIONS, put_function) &&
           copy_table(remap, PROFILE_MAPPINGS, put_mapping) &&
           copy_table(remap, PROFILE_LOCATIONS, put_location) && copy_stacks(remap);
}

bool dictionary_copy(struct profile_remap *remap)
{
    struct profile_tables_mark before = profile_tables_mark(remap->to);
    assert(remap->top == remap->base); /* nothing is known yet */
    bool is_copied = copy_tables(remap);
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        if (remap->base + remap->to->sets[i].count > remap->top)
            remap->top = remap->base + remap->to->sets[i].count;
    if (!is_copied) {
        profile_tables_cut(remap->to, &before);
        profile_remap_forget(remap);
    }
    return is_copied;
}

/* Values and times, up to the end of the sample: they stay as they are. */
static inline bool is_plain_rest(const uint8_t *from, const uint8_t *end)
{
    struct slice content;
    for (uint32_t field = 4; field <= 5 && from < end; field++)
        if (*from == PROFILE_BYTES(field)) {
            if (!profile_content_at(from + 1, end, &content) || content.size == 0)
                return false;
            from = end_of(content);
        }
    return from == end;
}

uint8_t *dictionary_copy_sample(const struct profile_remap *remap, struct slice sample, uint8_t *at)
{
    const uint8_t *from = sample.data;
    const uint8_t *end = end_of(sample);
    uint8_t *to = at + PROFILE_HEADER_BYTES;
    struct slice attributes;
    uint64_t index = 0;
    if (from < end && *from == PROFILE_NUMBER(1)) {
        from = profile_number_at(from + 1, end, &index);
        if (from == NULL || !translate(remap, PROFILE_STACKS, &index))
            return NULL;
        to = profile_put_number(to, 1, index);
    }
    if (from < end && *from == PROFILE_BYTES(2)) {
        if (!profile_content_at(from + 1, end, &attributes))
            return NULL;
        to = put_attributes(remap, attributes, 2, to);
        from = end_of(attributes);
    }
    if (to != NULL && from < end && *from == PROFILE_NUMBER(3)) {
        from = profile_number_at(from + 1, end, &index);
        if (from == NULL || !translate(remap, PROFILE_LINKS, &index))
            return NULL;
        to = profile_put_number(to, 3, index);
    }
    if (to == NULL || !is_plain_rest(from, end))
        return NULL;
    profile_copy(to, from, (size_t)(end - from));
    return profile_close_short(at, to + (end - from), 2);
}
