/* SPDX-License-Identifier: Apache-2.0 */
/* Copying tables in the order in which they refer to each other: strings, attributes, functions,
 * mappings, locations, stacks. Each entry is written directly to the place in its set that it gets
 * if it is new; what it refers to goes to other sets, so that nothing else is written there
 * meanwhile. One owner, one thread at a time. */
#include "src/profiles/otlp/dictionary_copy.h"

#include <assert.h>
#include <endian.h>

#include "src/base/budget.h"
#include "src/otlp/value.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_plan.h"

enum {
    NUMBER_FIELD_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX,
    SHORT_VALUE_BYTES_MAX = 64, /* longer values may have many fields of which one counts */
    STACKS_AHEAD = 16,          /* whose slots are prefetched at a time */
};

/* Charged beyond the budget's limit if need be: this completes requests that were accepted. An
 * entry costs twelve bytes, and takes at least two in the request. */
static void charge(struct dictionary_copy *copy, uint64_t bytes)
{
    struct budget *budget = copy->to->scratch.budget;
    assert(bytes <= PROFILE_INDEX_BYTES_MAX);
    if (budget != NULL && bytes > copy->charged_bytes)
        budget_take(budget, bytes - copy->charged_bytes);
    if (budget != NULL && bytes < copy->charged_bytes)
        budget_return(budget, copy->charged_bytes - bytes);
    copy->charged_bytes = bytes;
}

bool dictionary_copy_open(struct dictionary_copy *copy, struct slice request,
                          struct profile_tables *to)
{
    *copy = (struct dictionary_copy){.to = to, .base = 1, .top = 1};
    arena_init(&copy->arena, PROFILE_INDEX_BYTES_MAX);
    bool has_room = profile_dictionary_open(&copy->from, &copy->arena, request);
    for (unsigned i = 0; has_room && i < PROFILE_TABLES; i++) {
        /* Index 0 is valid even if the table is empty. */
        size_t size = ((size_t)copy->from.counts[i] + 1) * sizeof(uint32_t);
        copy->known[i] = arena_try_alloc(&copy->arena, size);
        has_room = copy->known[i] != NULL;
        if (has_room)
            memset(copy->known[i], 0, size);
    }
    charge(copy, copy->arena.used_bytes);
    if (!has_room)
        dictionary_copy_close(copy);
    return has_room;
}

void dictionary_copy_close(struct dictionary_copy *copy)
{
    arena_clear(&copy->arena);
    charge(copy, 0);
}

/* All values so far are below the new base; the arrays are cleared only before it overflows. */
void dictionary_copy_forget(struct dictionary_copy *copy)
{
    assert(copy->top >= copy->base);
    copy->base = copy->top;
    if (copy->base < UINT32_MAX / 2)
        return;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        memset(copy->known[i], 0, ((size_t)copy->from.counts[i] + 1) * sizeof(uint32_t));
    copy->base = 1;
    copy->top = 1;
}

/* An entry without bytes becomes the zero element. */
static inline bool is_known(const struct dictionary_copy *copy, enum profile_table table,
                            struct profile_index index, uint32_t *ret_new)
{
    uint32_t known = copy->known[table][profile_place(&copy->from, table, index)];
    *ret_new = known >= copy->base ? known - copy->base : 0;
    return known >= copy->base || profile_entry_at(&copy->from, table, index).size == 0;
}

static uint32_t keep(struct dictionary_copy *copy, enum profile_table table,
                     struct profile_index index, uint32_t new)
{
    uint32_t known = copy->base + new;
    assert(known >= copy->base);
    copy->known[table][profile_place(&copy->from, table, index)] = known;
    if (known >= copy->top)
        copy->top = known + 1;
    return new;
}

uint32_t dictionary_copy_string(struct dictionary_copy *copy, struct profile_index index)
{
    uint32_t new;
    if (is_known(copy, PROFILE_STRINGS, index, &new))
        return new;
    new = profile_set_add(&copy->to->sets[PROFILE_STRINGS], profile_string_at(&copy->from, index));
    return keep(copy, PROFILE_STRINGS, index, new);
}

/* Upper bound of the size of an index once all entries of the request's table have been copied. */
static size_t index_bytes_max(const struct dictionary_copy *copy, enum profile_table table)
{
    return wire_varint_size((uint64_t)copy->from.counts[table] + copy->to->sets[table].count);
}

static uint32_t copy_attribute(struct dictionary_copy *copy, struct profile_index index)
{
    struct profile_attribute attribute = profile_attribute_at(&copy->from, index);
    struct profile_bytes *out = &copy->to->scratch;
    struct slice value = attribute.value;
    if (value.size > SHORT_VALUE_BYTES_MAX)
        value = value_last_field(value);
    bool has_references = profile_has_references(INLINE_ANY_VALUE, value);
    uint64_t none = 0;
    out->size = 0;
    if (has_references) {
        /* Tried first: an attribute that is dropped copies no key. */
        if (!profile_inline(&copy->from, INLINE_ANY_VALUE, value, out, &none)) {
            copy->dropped_attributes++;
            return keep(copy, PROFILE_ATTRIBUTES, index, 0);
        }
        out->size = 0;
    }
    profile_bytes_number(out, 1, dictionary_copy_string(copy, attribute.key));
    if (attribute.value.data != NULL) {
        size_t begin = out->size;
        if (has_references)
            profile_inline(&copy->from, INLINE_ANY_VALUE, value, out, &none);
        else
            profile_bytes_add(out, value);
        profile_bytes_wrap(out, begin, 2);
    }
    profile_bytes_number(out, 3, dictionary_copy_string(copy, attribute.unit));
    uint32_t new = profile_set_add(&copy->to->sets[PROFILE_ATTRIBUTES], profile_bytes_slice(out));
    return keep(copy, PROFILE_ATTRIBUTES, index, new);
}

size_t dictionary_copy_attributes_bytes(const struct dictionary_copy *copy,
                                        const struct profile_indices *attributes)
{
    return PROFILE_HEADER_BYTES_MAX + profile_numbers_count_max(&attributes->numbers) *
                                          index_bytes_max(copy, PROFILE_ATTRIBUTES);
}

uint8_t *dictionary_copy_put_attributes(struct dictionary_copy *copy,
                                        const struct profile_indices *attributes, uint32_t number,
                                        uint8_t *at)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    uint8_t *end = at + PROFILE_HEADER_BYTES;
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        uint32_t new;
        if (!is_known(copy, PROFILE_ATTRIBUTES, index, &new))
            new = copy_attribute(copy, index);
        if (new != 0)
            end = profile_put_varint(end, new);
    }
    return profile_close_filled(at, end, number);
}

/* An id of zeros only is omitted. */
static uint8_t *put_id(uint8_t *at, uint32_t number, struct slice id)
{
    size_t zeros = 0;
    while (zeros < id.size && id.data[zeros] == 0)
        zeros++;
    if (zeros == id.size)
        return at;
    memcpy(at + PROFILE_HEADER_BYTES, id.data, id.size);
    return profile_close(at, at + PROFILE_HEADER_BYTES + id.size, number);
}

uint32_t dictionary_copy_link(struct dictionary_copy *copy, struct profile_index index)
{
    uint32_t new;
    if (is_known(copy, PROFILE_LINKS, index, &new))
        return new;
    struct profile_link link = profile_link_at(&copy->from, index);
    struct profile_set *set = &copy->to->sets[PROFILE_LINKS];
    uint8_t *at = profile_set_begin(set, 2 * PROFILE_HEADER_BYTES_MAX + link.trace_id.size +
                                             link.span_id.size);
    at = put_id(at, 1, link.trace_id);
    at = put_id(at, 2, link.span_id);
    return keep(copy, PROFILE_LINKS, index, profile_set_end(set, at));
}

static uint32_t copy_function(struct dictionary_copy *copy, struct profile_index index)
{
    uint32_t new;
    if (is_known(copy, PROFILE_FUNCTIONS, index, &new))
        return new;
    struct profile_function function = profile_function_at(&copy->from, index);
    struct profile_set *set = &copy->to->sets[PROFILE_FUNCTIONS];
    uint8_t *at = profile_set_begin(set, 4 * NUMBER_FIELD_BYTES_MAX);
    at = profile_put_number(at, 1, dictionary_copy_string(copy, function.name));
    at = profile_put_number(at, 2, dictionary_copy_string(copy, function.system_name));
    at = profile_put_number(at, 3, dictionary_copy_string(copy, function.filename));
    at = profile_put_number(at, 4, (uint64_t)function.start_line);
    return keep(copy, PROFILE_FUNCTIONS, index, profile_set_end(set, at));
}

static uint32_t copy_mapping(struct dictionary_copy *copy, struct profile_index index)
{
    uint32_t new;
    if (is_known(copy, PROFILE_MAPPINGS, index, &new))
        return new;
    struct profile_mapping mapping = profile_mapping_at(&copy->from, index);
    struct profile_set *set = &copy->to->sets[PROFILE_MAPPINGS];
    uint8_t *at =
        profile_set_begin(set, 4 * NUMBER_FIELD_BYTES_MAX +
                                   dictionary_copy_attributes_bytes(copy, &mapping.attributes));
    at = profile_put_number(at, 1, mapping.memory_start);
    at = profile_put_number(at, 2, mapping.memory_limit);
    at = profile_put_number(at, 3, mapping.file_offset);
    at = profile_put_number(at, 4, dictionary_copy_string(copy, mapping.filename));
    at = dictionary_copy_put_attributes(copy, &mapping.attributes, 5, at);
    return keep(copy, PROFILE_MAPPINGS, index, profile_set_end(set, at));
}

static uint32_t copy_location(struct dictionary_copy *copy, struct profile_index index)
{
    uint32_t new;
    if (is_known(copy, PROFILE_LOCATIONS, index, &new))
        return new;
    struct profile_location location = profile_location_at(&copy->from, index);
    struct profile_set *set = &copy->to->sets[PROFILE_LOCATIONS];
    /* New indices may be longer, and thereby the headers of lines. */
    size_t line_growth = 1 + index_bytes_max(copy, PROFILE_FUNCTIONS) + WIRE_SHORT_VARINT_BYTES_MAX;
    uint8_t *at = profile_set_begin(
        set, 2 * NUMBER_FIELD_BYTES_MAX + location.bytes.size + location.lines_count * line_growth +
                 dictionary_copy_attributes_bytes(copy, &location.attributes));
    at = profile_put_number(at, 1, copy_mapping(copy, location.mapping));
    at = profile_put_number(at, 2, location.address);
    struct wire_reader lines = wire_reader_of(location.bytes);
    struct profile_line line;
    while (profile_next_line(&lines, &line)) {
        uint8_t *end = at + PROFILE_HEADER_BYTES;
        end = profile_put_number(end, 1, copy_function(copy, line.function));
        end = profile_put_number(end, 2, (uint64_t)line.line);
        end = profile_put_number(end, 3, (uint64_t)line.column);
        at = profile_close(at, end, 3);
    }
    at = dictionary_copy_put_attributes(copy, &location.attributes, 4, at);
    return keep(copy, PROFILE_LOCATIONS, index, profile_set_end(set, at));
}

uint32_t dictionary_copy_stack(struct dictionary_copy *copy, struct profile_index index)
{
    uint32_t new;
    if (is_known(copy, PROFILE_STACKS, index, &new))
        return new;
    struct profile_stack stack = profile_stack_at(&copy->from, index);
    struct profile_set *set = &copy->to->sets[PROFILE_STACKS];
    size_t count = profile_numbers_count_max(&stack.locations.numbers);
    size_t size = PROFILE_HEADER_BYTES_MAX + count * index_bytes_max(copy, PROFILE_LOCATIONS);
    uint8_t *begin = profile_set_begin(set, size);
    uint8_t *end = begin + PROFILE_HEADER_BYTES;
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct profile_index location;
    while (profile_indices_next(&reader, &location)) {
        if (!is_known(copy, PROFILE_LOCATIONS, location, &new))
            new = copy_location(copy, location);
        end = profile_put_varint(end, new);
    }
    end = profile_close_filled(begin, end, 1);
    return keep(copy, PROFILE_STACKS, index, profile_set_end(set, end));
}

/* All tables at once. The fields of an entry must be in the order of their numbers. */

/* Writes an entry with new indices and returns its end; NULL when its fields are not in order. */
typedef uint8_t *(*put_entry_fn)(const struct dictionary_copy *copy, struct slice entry,
                                 uint8_t *at);

static inline const uint8_t *end_of(struct slice slice)
{
    return slice.data + slice.size;
}

/* Replaces an index into a table that has been copied. False when it is outside of the table. */
static inline bool translate(const struct dictionary_copy *copy, enum profile_table table,
                             uint64_t *index)
{
    uint32_t count = copy->from.counts[table];
    if (*index >= count && *index != 0)
        return false;
    *index = copy->known[table][*index] - copy->base;
    return true;
}

static inline uint8_t *put_numbers(const struct dictionary_copy *copy,
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
            !translate(copy, (enum profile_table)plan->tables[tag >> 3], &number))
            return NULL;
        at = profile_put_number(at, tag >> 3, number);
        before = tag;
    }
    return at;
}

/* Packed indices of attributes without those that became 0. */
static inline uint8_t *put_attributes(const struct dictionary_copy *copy, struct slice packed,
                                      uint32_t number, uint8_t *at)
{
    const uint8_t *from = packed.data;
    const uint8_t *end = end_of(packed);
    uint8_t *to = at + PROFILE_HEADER_BYTES;
    while (from < end) {
        uint64_t index;
        from = profile_number_at(from, end, &index);
        if (from == NULL || !translate(copy, PROFILE_ATTRIBUTES, &index))
            return NULL;
        if (index != 0)
            to = profile_put_varint(to, index);
    }
    return to == at + PROFILE_HEADER_BYTES ? at : profile_close_short(at, to, number);
}

static inline uint8_t *put_function(const struct dictionary_copy *copy, struct slice function,
                                    uint8_t *at)
{
    return put_numbers(copy, &profile_function_plan, function, at);
}

static inline uint8_t *put_mapping(const struct dictionary_copy *copy, struct slice mapping,
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
    at = put_numbers(copy, &profile_mapping_plan,
                     slice_of(mapping.data, (size_t)(from - mapping.data)), at);
    if (from == end || at == NULL)
        return at;
    if (!profile_content_at(from + 1, end, &attributes) || end_of(attributes) != end)
        return NULL;
    return put_attributes(copy, attributes, 5, at);
}

static inline uint8_t *put_location(const struct dictionary_copy *copy, struct slice location,
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
                (tag == PROFILE_NUMBER(1) && !translate(copy, PROFILE_MAPPINGS, &number)))
                return NULL;
            at = profile_put_number(at, tag >> 3, number);
        } else {
            if (!profile_content_at(from, end, &content))
                return NULL;
            from = end_of(content);
            if (tag == PROFILE_BYTES(4)) {
                at = put_attributes(copy, content, 4, at);
            } else if (tag == PROFILE_BYTES(3)) {
                uint8_t *line_end =
                    put_numbers(copy, &profile_line_plan, content, at + PROFILE_HEADER_BYTES);
                at = line_end != NULL ? profile_close_short(at, line_end, 3) : NULL;
            } else {
                return NULL;
            }
        }
    }
    return at;
}

/* Whether a long value has fields that others replace: copy_attribute leaves them out. */
static inline bool is_wasteful(struct slice value)
{
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    return value.size > SHORT_VALUE_BYTES_MAX && wire_next_field(&reader, &field) &&
           reader.at != reader.end;
}

static inline uint8_t *put_attribute(const struct dictionary_copy *copy, struct slice attribute,
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
            if (from == NULL || !translate(copy, PROFILE_STRINGS, &number))
                return NULL;
            at = profile_put_number(at, tag >> 3, number);
        } else {
            if (tag != PROFILE_BYTES(2) || !profile_content_at(from, end, &value) ||
                is_wasteful(value) || profile_has_references(INLINE_ANY_VALUE, value))
                return NULL;
            memcpy(at + PROFILE_HEADER_BYTES, value.data, value.size);
            at = profile_close_short(at, at + PROFILE_HEADER_BYTES + value.size, 2);
            from = end_of(value);
        }
    }
    return at;
}

/* Both ids, none of zeros only. */
static inline uint8_t *put_link(const struct dictionary_copy *copy, struct slice link, uint8_t *at)
{
    static const uint8_t zeros[16];
    enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, SPAN_AT = 2 + TRACE_ID_BYTES };
    (void)copy;
    if (link.size != SPAN_AT + 2 + SPAN_ID_BYTES || link.data[0] != PROFILE_BYTES(1) ||
        link.data[1] != TRACE_ID_BYTES || link.data[SPAN_AT] != PROFILE_BYTES(2) ||
        link.data[SPAN_AT + 1] != SPAN_ID_BYTES ||
        memcmp(link.data + 2, zeros, TRACE_ID_BYTES) == 0 ||
        memcmp(link.data + SPAN_AT + 2, zeros, SPAN_ID_BYTES) == 0)
        return NULL;
    memcpy(at, link.data, link.size);
    return at + link.size;
}

/* Always writes two bytes, which costs less than a branch. */
static inline uint8_t *put_index(uint8_t *at, uint32_t index)
{
    uint32_t is_long = index >= 0x80;
    if (index >= 1 << 14)
        return profile_put_varint(at, index);
    at[0] = (uint8_t)(index & 0x7f) | (uint8_t)(is_long << 7);
    at[1] = (uint8_t)(index >> 7);
    return at + 1 + is_long;
}

/* Copies four indices of at most two bytes each without a branch on their lengths, which cannot be
 * predicted. Advances *from. NULL when one is longer or outside of the table. */
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

/* The locations of stacks are most of a dictionary. */
static inline uint8_t *put_stack(const struct dictionary_copy *copy, struct slice stack,
                                 uint8_t *at)
{
    enum { FOUR_BYTES = 8 };
    const uint32_t *known = copy->known[PROFILE_LOCATIONS];
    const uint32_t count = copy->from.counts[PROFILE_LOCATIONS];
    const uint32_t base = copy->base;
    uint8_t *to = at + PROFILE_HEADER_BYTES;
    struct slice packed;
    if (stack.data[0] != PROFILE_BYTES(1) ||
        !profile_content_at(stack.data + 1, end_of(stack), &packed) ||
        end_of(packed) != end_of(stack))
        return NULL;
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
    return to == at + PROFILE_HEADER_BYTES ? at : profile_close_short(at, to, 1);
}

/* Whether index 0 can be omitted: the table has a zero element, or its entry 0 is never read. */
static bool has_null(const struct dictionary_copy *copy, enum profile_table table)
{
    return table == PROFILE_LINKS || table == PROFILE_MAPPINGS || copy->from.counts[table] == 0 ||
           copy->from.entries[table][0].size == 0;
}

static inline struct slice entry_at(const struct dictionary_copy *copy, enum profile_table table,
                                    uint32_t index)
{
    struct profile_entry entry = copy->from.entries[table][index];
    return slice_of(copy->from.request.data + entry.offset, entry.size);
}

/* Expects each entry right after the one before, as in the requests of one program. Inlined, with
 * put, into each of its callers. */
static inline bool __attribute__((always_inline))
copy_table(struct dictionary_copy *copy, enum profile_table table, put_entry_fn put)
{
    struct profile_set *set = &copy->to->sets[table];
    const uint32_t count = copy->from.counts[table];
    uint32_t new = 0;
    if (!has_null(copy, table))
        return false;
    copy->known[table][0] = copy->base;
    for (uint32_t i = 1; i < count; i++) {
        struct slice entry = entry_at(copy, table, i);
        uint8_t *at =
            profile_set_begin(set, entry.size * DICTIONARY_COPY_GROWTH + DICTIONARY_COPY_SLACK);
        if (entry.size > 0)
            at = put(copy, entry, at);
        if (at == NULL)
            return false;
        new = profile_set_end_like(set, at, new + 1);
        copy->known[table][i] = copy->base + new;
    }
    return true;
}

/* When all locations keep their indices, most stacks keep their bytes. */
static bool copy_stacks(struct dictionary_copy *copy)
{
    struct profile_set *set = &copy->to->sets[PROFILE_STACKS];
    const uint32_t locations = copy->from.counts[PROFILE_LOCATIONS];
    const uint32_t count = copy->from.counts[PROFILE_STACKS];
    uint32_t moved = 0;
    uint32_t new = 0;
    bool are_others = false;
    for (uint32_t i = 0; i < locations; i++)
        moved |= (copy->known[PROFILE_LOCATIONS][i] - copy->base) ^ i;
    if (locations == 0 || moved != 0)
        return copy_table(copy, PROFILE_STACKS, put_stack);
    if (!has_null(copy, PROFILE_STACKS))
        return false;
    copy->known[PROFILE_STACKS][0] = copy->base;
    for (uint32_t first = 1; first < count; first += STACKS_AHEAD) {
        const uint32_t end = count - first < STACKS_AHEAD ? count : first + STACKS_AHEAD;
        /* If the stacks before were not where they were expected, these will be searched for: then
         * their slots, which are far apart in memory, are prefetched. */
        const bool is_ahead = are_others;
        uint32_t hashes[STACKS_AHEAD];
        for (uint32_t i = first; is_ahead && i < end; i++)
            hashes[i - first] = profile_set_expect(set, entry_at(copy, PROFILE_STACKS, i));
        are_others = false;
        for (uint32_t i = first; i < end; i++) {
            struct slice stack = entry_at(copy, PROFILE_STACKS, i);
            uint32_t expected = new + 1;
            struct slice packed;
            bool is_same = /* and encoded as put_stack would */
                stack.size == 0 ||
                (profile_content_at(stack.data + 1, end_of(stack), &packed) &&
                 stack.data[0] == PROFILE_BYTES(1) && end_of(packed) == end_of(stack) &&
                 packed.data == stack.data + 1 + wire_varint_size(packed.size) && packed.size > 0 &&
                 profile_indices_are_below(packed, locations));
            if (!is_same) {
                uint8_t *at = profile_set_begin(set, stack.size * DICTIONARY_COPY_GROWTH +
                                                         DICTIONARY_COPY_SLACK);
                at = put_stack(copy, stack, at);
                if (at == NULL)
                    return false;
                new = profile_set_end_like(set, at, expected);
            } else if (is_ahead && !profile_set_has_at(set, expected, stack)) {
                new = profile_set_add_expected(set, stack, hashes[i - first]);
            } else {
                new = profile_set_add_like(set, stack, expected);
            }
            are_others |= new != expected || new + 1 == set->count;
            copy->known[PROFILE_STACKS][i] = copy->base + new;
        }
    }
    return true;
}

bool dictionary_copy_all(struct dictionary_copy *copy)
{
    struct profile_tables_mark before = profile_tables_mark(copy->to);
    struct profile_set *strings = &copy->to->sets[PROFILE_STRINGS];
    uint32_t new = 0;
    assert(copy->top == copy->base); /* nothing is copied yet */
    bool is_copied = copy_table(copy, PROFILE_LINKS, put_link) && has_null(copy, PROFILE_STRINGS);
    if (is_copied)
        copy->known[PROFILE_STRINGS][0] = copy->base;
    for (uint32_t i = 1; is_copied && i < copy->from.counts[PROFILE_STRINGS]; i++) {
        new = profile_set_add_like(strings, entry_at(copy, PROFILE_STRINGS, i), new + 1);
        copy->known[PROFILE_STRINGS][i] = copy->base + new;
    }
    is_copied = is_copied && copy_table(copy, PROFILE_ATTRIBUTES, put_attribute) &&
                copy_table(copy, PROFILE_FUNCTIONS, put_function) &&
                copy_table(copy, PROFILE_MAPPINGS, put_mapping) &&
                copy_table(copy, PROFILE_LOCATIONS, put_location) && copy_stacks(copy);
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        if (copy->base + copy->to->sets[i].count > copy->top)
            copy->top = copy->base + copy->to->sets[i].count;
    if (!is_copied) {
        profile_tables_cut(copy->to, &before);
        dictionary_copy_forget(copy);
    }
    return is_copied;
}

uint8_t *dictionary_copy_sample(const struct dictionary_copy *copy, struct slice sample,
                                uint8_t *at)
{
    const uint8_t *from = sample.data;
    const uint8_t *end = end_of(sample);
    uint8_t *to = at + PROFILE_HEADER_BYTES;
    struct slice attributes;
    uint64_t index = 0;
    if (from < end && *from == PROFILE_NUMBER(1)) {
        from = profile_number_at(from + 1, end, &index);
        if (from == NULL || !translate(copy, PROFILE_STACKS, &index))
            return NULL;
        to = profile_put_number(to, 1, index);
    }
    if (from < end && *from == PROFILE_BYTES(2)) {
        if (!profile_content_at(from + 1, end, &attributes))
            return NULL;
        to = put_attributes(copy, attributes, 2, to);
        from = end_of(attributes);
    }
    if (to != NULL && from < end && *from == PROFILE_NUMBER(3)) {
        from = profile_number_at(from + 1, end, &index);
        if (from == NULL || !translate(copy, PROFILE_LINKS, &index))
            return NULL;
        to = profile_put_number(to, 3, index);
    }
    /* Values and times up to the end stay as they are. */
    const uint8_t *rest = from;
    struct slice content;
    for (uint32_t field = 4; field <= 5 && from < end; field++)
        if (*from == PROFILE_BYTES(field)) {
            if (!profile_content_at(from + 1, end, &content) || content.size == 0)
                return NULL;
            from = end_of(content);
        }
    if (to == NULL || from != end)
        return NULL;
    profile_copy(to, rest, (size_t)(end - rest));
    return profile_close_short(at, to + (end - rest), 2);
}
