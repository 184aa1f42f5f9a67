/* SPDX-License-Identifier: Apache-2.0 */
/* Remapping, table by table in the order in which they refer to each other: strings, attributes,
 * functions, mappings, locations, stacks. Each entry is written where its set keeps it if it is
 * new; what an entry refers to lies in other tables, so that nobody writes between. One owner, one
 * thread at a time. */
#include "src/profiles/otlp/profile_remap.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_inline.h"

enum {
    NUMBER_FIELD_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX,
    ANY_VALUE_FIELDS = 8,
    PLAIN_VALUE_BYTES_MAX = 64, /* longer values may have many fields of which one counts */
};

/* Beyond the budget's limit if need be, as everything that finishes what was taken. An entry costs
 * twelve bytes, and takes two in the request at the least. */
static void charge(struct profile_remap *remap, uint64_t bytes)
{
    struct budget *budget = remap->to->scratch.budget;
    assert(bytes <= PROFILE_INDEX_BYTES_MAX);
    if (budget != NULL && bytes > remap->charged_bytes)
        budget_take(budget, bytes - remap->charged_bytes);
    if (budget != NULL && bytes < remap->charged_bytes)
        budget_return(budget, remap->charged_bytes - bytes);
    remap->charged_bytes = bytes;
}

bool profile_remap_open(struct profile_remap *remap, struct slice request,
                        struct profile_tables *to)
{
    assert(to != NULL);
    *remap = (struct profile_remap){.to = to, .base = 1, .top = 1};
    arena_init(&remap->arena, PROFILE_INDEX_BYTES_MAX);
    bool has_room = profile_dictionary_open(&remap->from, &remap->arena, request);
    for (unsigned i = 0; has_room && i < PROFILE_TABLES; i++) {
        /* Index 0 may be asked for even if the table is empty. */
        size_t size = ((size_t)remap->from.counts[i] + 1) * sizeof(uint32_t);
        remap->known[i] = arena_try_alloc(&remap->arena, size);
        has_room = remap->known[i] != NULL;
        if (has_room)
            memset(remap->known[i], 0, size);
    }
    charge(remap, remap->arena.used_bytes);
    if (!has_room)
        profile_remap_close(remap);
    return has_room;
}

void profile_remap_close(struct profile_remap *remap)
{
    assert(remap != NULL);
    arena_clear(&remap->arena);
    charge(remap, 0);
}

/* Nothing that was given out is above the new base; only before that overflows are the arrays
 * cleared. */
void profile_remap_forget(struct profile_remap *remap)
{
    assert(remap->top >= remap->base);
    remap->base = remap->top;
    if (remap->base < UINT32_MAX / 2)
        return;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        memset(remap->known[i], 0, ((size_t)remap->from.counts[i] + 1) * sizeof(uint32_t));
    remap->base = 1;
    remap->top = 1;
}

/* An entry without bytes is nothing, even where it refers to the first text by leaving it out. */
static inline bool is_known(const struct profile_remap *remap, enum profile_table table,
                            struct profile_index index, uint32_t *ret_new)
{
    uint32_t known = remap->known[table][profile_place(&remap->from, table, index)];
    *ret_new = known >= remap->base ? known - remap->base : 0;
    return known >= remap->base || profile_entry_at(&remap->from, table, index).size == 0;
}

static uint32_t keep(struct profile_remap *remap, enum profile_table table,
                     struct profile_index index, uint32_t new)
{
    uint32_t known = remap->base + new;
    assert(known >= remap->base);
    remap->known[table][profile_place(&remap->from, table, index)] = known;
    if (known >= remap->top)
        remap->top = known + 1;
    return new;
}

uint32_t profile_remap_string(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_STRINGS, index, &new))
        return new;
    new =
        profile_set_add(&remap->to->sets[PROFILE_STRINGS], profile_string_at(&remap->from, index));
    return keep(remap, PROFILE_STRINGS, index, new);
}

/* Most bytes that an index takes once all entries of the request's table have come along. */
static size_t index_bytes_max(const struct profile_remap *remap, enum profile_table table)
{
    assert(table < PROFILE_TABLES);
    return wire_varint_size((uint64_t)remap->from.counts[table] + remap->to->sets[table].count);
}

/* Whether all references in the value lead somewhere. */
static bool resolves(struct profile_remap *remap, struct slice value, struct profile_bytes *scratch)
{
    size_t begin = scratch->size;
    uint64_t none = 0;
    bool does = profile_inline(&remap->from, INLINE_ANY_VALUE, value, scratch, &none);
    scratch->size = begin;
    return does;
}

/* What an AnyValue says, without the fields before that the last one replaces. */
static struct slice last_choice(struct slice value)
{
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    struct slice last = slice_of(value.data, 0);
    while (wire_next_field(&reader, &field))
        if (field.number <= ANY_VALUE_FIELDS)
            last = field.whole;
    assert(reader.failure == NULL);
    return last;
}

static void put_value(struct profile_remap *remap, struct slice value, bool has_references,
                      struct profile_bytes *out)
{
    size_t begin = out->size;
    uint64_t none = 0;
    if (value.data == NULL)
        return;
    if (has_references)
        profile_inline(&remap->from, INLINE_ANY_VALUE, value, out, &none);
    else
        profile_bytes_add(out, value.size > PLAIN_VALUE_BYTES_MAX ? last_choice(value) : value);
    profile_bytes_wrap(out, begin, 2);
    assert(out->size > begin);
}

uint32_t profile_remap_attribute(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_ATTRIBUTES, index, &new))
        return new;
    struct profile_attribute attribute = profile_attribute_at(&remap->from, index);
    struct profile_bytes *out = &remap->to->scratch;
    out->size = 0;
    bool has_references = profile_has_references(INLINE_ANY_VALUE, attribute.value);
    if (has_references && !resolves(remap, attribute.value, out)) {
        remap->dropped_attributes++;
        return keep(remap, PROFILE_ATTRIBUTES, index, 0);
    }
    uint32_t key = profile_remap_string(remap, attribute.key);
    uint8_t *at = profile_bytes_room(out, NUMBER_FIELD_BYTES_MAX);
    out->size += (size_t)(profile_put_number(at, 1, key) - at);
    put_value(remap, attribute.value, has_references, out);
    at = profile_bytes_room(out, NUMBER_FIELD_BYTES_MAX);
    at = profile_put_number(at, 3, profile_remap_string(remap, attribute.unit));
    new = profile_set_add(&remap->to->sets[PROFILE_ATTRIBUTES],
                          slice_of(out->data, (size_t)(at - out->data)));
    return keep(remap, PROFILE_ATTRIBUTES, index, new);
}

size_t profile_remap_attributes_bytes(const struct profile_remap *remap,
                                      const struct profile_indices *attributes)
{
    return PROFILE_HEADER_BYTES_MAX + profile_numbers_count_max(&attributes->numbers) *
                                          index_bytes_max(remap, PROFILE_ATTRIBUTES);
}

uint8_t *profile_remap_put_attributes(struct profile_remap *remap,
                                      const struct profile_indices *attributes, uint32_t number,
                                      uint8_t *at)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    uint8_t *end = at + PROFILE_HEADER_BYTES;
    struct profile_index index;
    assert(at != NULL);
    while (profile_indices_next(&reader, &index)) {
        uint32_t new;
        if (!is_known(remap, PROFILE_ATTRIBUTES, index, &new))
            new = profile_remap_attribute(remap, index);
        if (new != 0)
            end = profile_put_varint(end, new);
    }
    return profile_close_filled(at, end, number);
}

/* An id that is all zero is none. */
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

uint32_t profile_remap_link(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_LINKS, index, &new))
        return new;
    struct profile_link link = profile_link_at(&remap->from, index);
    struct profile_set *set = &remap->to->sets[PROFILE_LINKS];
    uint8_t *at = profile_set_begin(set, 2 * PROFILE_HEADER_BYTES_MAX + link.trace_id.size +
                                             link.span_id.size);
    at = put_id(at, 1, link.trace_id);
    at = put_id(at, 2, link.span_id);
    return keep(remap, PROFILE_LINKS, index, profile_set_end(set, at));
}

static uint32_t remap_function(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_FUNCTIONS, index, &new))
        return new;
    struct profile_function function = profile_function_at(&remap->from, index);
    struct profile_set *set = &remap->to->sets[PROFILE_FUNCTIONS];
    uint8_t *at = profile_set_begin(set, 4 * NUMBER_FIELD_BYTES_MAX);
    at = profile_put_number(at, 1, profile_remap_string(remap, function.name));
    at = profile_put_number(at, 2, profile_remap_string(remap, function.system_name));
    at = profile_put_number(at, 3, profile_remap_string(remap, function.filename));
    at = profile_put_number(at, 4, (uint64_t)function.start_line);
    return keep(remap, PROFILE_FUNCTIONS, index, profile_set_end(set, at));
}

static uint32_t remap_mapping(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_MAPPINGS, index, &new))
        return new;
    struct profile_mapping mapping = profile_mapping_at(&remap->from, index);
    struct profile_set *set = &remap->to->sets[PROFILE_MAPPINGS];
    uint8_t *at =
        profile_set_begin(set, 4 * NUMBER_FIELD_BYTES_MAX +
                                   profile_remap_attributes_bytes(remap, &mapping.attributes));
    at = profile_put_number(at, 1, mapping.memory_start);
    at = profile_put_number(at, 2, mapping.memory_limit);
    at = profile_put_number(at, 3, mapping.file_offset);
    at = profile_put_number(at, 4, profile_remap_string(remap, mapping.filename));
    at = profile_remap_put_attributes(remap, &mapping.attributes, 5, at);
    return keep(remap, PROFILE_MAPPINGS, index, profile_set_end(set, at));
}

static uint8_t *put_line(struct profile_remap *remap, const struct profile_line *line, uint8_t *at)
{
    uint8_t *end = at + PROFILE_HEADER_BYTES;
    end = profile_put_number(end, 1, remap_function(remap, line->function));
    end = profile_put_number(end, 2, (uint64_t)line->line);
    end = profile_put_number(end, 3, (uint64_t)line->column);
    return profile_close(at, end, 3);
}

/* What a location's content may take: remapping makes indices longer, and lines thereby. */
static size_t location_bytes_max(const struct profile_remap *remap,
                                 const struct profile_location *location)
{
    size_t line_growth =
        1 + index_bytes_max(remap, PROFILE_FUNCTIONS) + WIRE_SHORT_VARINT_BYTES_MAX;
    return 2 * NUMBER_FIELD_BYTES_MAX + location->bytes.size + location->lines_count * line_growth +
           profile_remap_attributes_bytes(remap, &location->attributes);
}

static uint32_t remap_location(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_LOCATIONS, index, &new))
        return new;
    struct profile_location location = profile_location_at(&remap->from, index);
    struct profile_set *set = &remap->to->sets[PROFILE_LOCATIONS];
    uint8_t *at = profile_set_begin(set, location_bytes_max(remap, &location));
    at = profile_put_number(at, 1, remap_mapping(remap, location.mapping));
    at = profile_put_number(at, 2, location.address);
    struct wire_reader lines = wire_reader_of(location.bytes);
    struct profile_line line;
    while (profile_next_line(&lines, &line))
        at = put_line(remap, &line, at);
    at = profile_remap_put_attributes(remap, &location.attributes, 4, at);
    return keep(remap, PROFILE_LOCATIONS, index, profile_set_end(set, at));
}

uint32_t profile_remap_stack(struct profile_remap *remap, struct profile_index index)
{
    uint32_t new;
    if (is_known(remap, PROFILE_STACKS, index, &new))
        return new;
    struct profile_stack stack = profile_stack_at(&remap->from, index);
    struct profile_set *set = &remap->to->sets[PROFILE_STACKS];
    size_t count = profile_numbers_count_max(&stack.locations.numbers);
    size_t size = PROFILE_HEADER_BYTES_MAX + count * index_bytes_max(remap, PROFILE_LOCATIONS);
    uint8_t *begin = profile_set_begin(set, size);
    uint8_t *end = begin + PROFILE_HEADER_BYTES;
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct profile_index location;
    while (profile_indices_next(&reader, &location)) {
        if (!is_known(remap, PROFILE_LOCATIONS, location, &new))
            new = remap_location(remap, location);
        end = profile_put_varint(end, new);
    }
    end = profile_close_filled(begin, end, 1);
    return keep(remap, PROFILE_STACKS, index, profile_set_end(set, end));
}
