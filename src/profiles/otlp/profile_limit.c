/* SPDX-License-Identifier: Apache-2.0 */
/* Two steps. First the request is rewritten with all its tables in the same order, so that no index
 * in a sample changes: entries are edited, and new ones are appended. Then a merge copies only what
 * is still used, without duplicates. Pure functions; any thread. */
#include "src/profiles/otlp/profile_limit.h"

#include <assert.h>
#include <stdbool.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/pattern.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_merge.h"

/* Field numbers. */
enum {
    REQUEST_DICTIONARY = 2,
    MAPPING_FILENAME = 4,
    LOCATION_LINES = 3,
    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME = 2,
    FUNCTION_FILENAME = 3,
    PROFILE_SAMPLES = 2,
    PROFILE_ID = 7,
    PROFILE_PAYLOAD_FORMAT = 9,
    PROFILE_PAYLOAD = 10,
};

/* Messages around a Profile: request, resource, scope. */
enum { PROFILE_LEVEL = 3 };

/* Of frames. */
enum fate { UNKNOWN_YET, KEPT, DROPPED };

struct limiter {
    const struct profile_limit_rules *rules;
    struct profile_limit_figures *figures;
    struct arena arena;
    struct profile_dictionary from;
    struct profile_bytes out;
    struct profile_bytes strings; /* new ones, as fields of the dictionary */
    uint32_t strings_count;       /* old and new */
    uint32_t *renamed;            /* by string: its new index + 1; 0: unknown yet */
    uint8_t *names;               /* by string that is a function's name: enum fate */
    uint8_t *functions;           /* by function: enum fate, which is its name's */
    uint8_t *gone;                /* by location: all its lines were dropped */
    uint8_t *is_protected;        /* by attribute: used by others than samples */
    uint32_t *label_values;       /* by string that is a key */
    uint32_t marker;              /* location; 0: none yet */
    bool has_long_names;          /* beyond PROFILE_NAMES_GROWTH_MAX, or what there is room for */
    const struct batch *batch;    /* NULL: of none */
    struct budget *budget;
};

/* Whether there is room for another string: it will be in the rewritten request too, then in the
 * merged one and in what that is made from. */
static bool has_room_for_string(struct limiter *limiter, struct slice string)
{
    enum { COPIES = 4 };
    const uint64_t more =
        profile_bytes_growth(&limiter->strings, wire_field_size(PROFILE_STRINGS + 1, string.size));
    if (limiter->strings.size + string.size > limiter->from.request.size + PROFILE_NAMES_GROWTH_MAX)
        return false;
    if (more == 0 || limiter->budget == NULL)
        return true;
    const bool has_room = limiter->batch != NULL
                              ? batch_has_room(limiter->batch, limiter->budget, COPIES * more)
                              : budget_has_room(limiter->budget, COPIES * more);
    if (!has_room)
        limiter->figures->names_bytes = COPIES * more;
    return has_room;
}

/* Replacements may be longer. Without room it adds nothing, and profile_limit fails. */
static uint32_t add_string(struct limiter *limiter, struct slice string)
{
    limiter->has_long_names = limiter->has_long_names || !has_room_for_string(limiter, string);
    if (limiter->has_long_names)
        return 0;
    profile_bytes_field(&limiter->strings, PROFILE_STRINGS + 1, string);
    return limiter->strings_count++;
}

/* A field that names a string, decoded and checked: the last one if a field is repeated. */
struct renamed_field {
    uint32_t number;
    struct profile_index index;
};

/* Copies a message with those fields renamed; their numbers are consecutive. */
static void put_renamed(struct limiter *limiter, struct slice content,
                        const struct renamed_field *fields, size_t count)
{
    const struct profile_limit_rules *rules = limiter->rules;
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    for (size_t i = 0; i < count; i++) {
        uint32_t place = profile_place(&limiter->from, PROFILE_STRINGS, fields[i].index);
        if (place == 0)
            continue;
        if (limiter->renamed[place] == 0) {
            uint8_t rooms[2][PROFILE_NAME_BYTES_MAX];
            unsigned next = 0;
            size_t size;
            struct slice old = profile_string_at(&limiter->from, fields[i].index);
            struct slice new = old;
            for (size_t k = 0; k < rules->renames_count; k++)
                if (pattern_replace(rules->renames[k].pattern, rules->renames[k].replacement, new,
                                    rooms[next], PROFILE_NAME_BYTES_MAX, &size)) {
                    new = slice_of(rooms[next], size);
                    next = !next;
                }
            bool is_renamed = !slice_equal(old, new);
            uint32_t found = is_renamed ? add_string(limiter, new) : place;
            assert(found < UINT32_MAX);
            limiter->figures->renamed += is_renamed;
            limiter->renamed[place] = found + 1;
        }
        profile_bytes_number(&limiter->out, fields[i].number, limiter->renamed[place] - 1);
    }
    while (wire_read_field(&reader, &field))
        if (field.number < fields[0].number || field.number > fields[count - 1].number)
            profile_bytes_add(&limiter->out, field.whole);
}

/* Each name is matched once: many functions may have a long one. */
static bool drops_name(struct limiter *limiter, struct profile_index name)
{
    const struct profile_limit_rules *rules = limiter->rules;
    uint8_t *fate = &limiter->names[profile_place(&limiter->from, PROFILE_STRINGS, name)];
    if (*fate == UNKNOWN_YET) {
        struct slice text = profile_string_at(&limiter->from, name);
        *fate = KEPT;
        for (size_t i = 0; *fate == KEPT && i < rules->drops_count; i++)
            if (pattern_matches(rules->drops[i], text))
                *fate = DROPPED;
    }
    return *fate == DROPPED;
}

/* Each function is read once: it may have many lines. */
static bool drops_function(struct limiter *limiter, struct profile_index function)
{
    uint8_t *fate = &limiter->functions[profile_place(&limiter->from, PROFILE_FUNCTIONS, function)];
    if (*fate == UNKNOWN_YET) {
        struct profile_index name = profile_function_at(&limiter->from, function).name;
        *fate = drops_name(limiter, name) ? DROPPED : KEPT;
    }
    return *fate == DROPPED;
}

/* Copies a location without the lines of functions whose frames are dropped. */
static void put_location(struct limiter *limiter, struct slice content, uint32_t place)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    bool has_lines = false;
    bool has_dropped = false;
    while (wire_read_field(&reader, &field)) {
        struct profile_line line = {.line = 0};
        struct wire_reader one = wire_reader_of(field.whole);
        bool is_line = field.number == LOCATION_LINES && profile_next_line(&one, &line);
        bool drops = line.function.number != 0 && drops_function(limiter, line.function);
        has_dropped |= drops;
        has_lines |= is_line && !drops;
        limiter->figures->dropped_frames += drops;
        if (!drops)
            profile_bytes_add(&limiter->out, field.whole);
    }
    limiter->gone[place] = has_dropped && !has_lines;
}

static bool is_gone(const struct limiter *limiter, struct profile_index location)
{
    return limiter->gone[profile_place(&limiter->from, PROFILE_LOCATIONS, location)] != 0;
}

/* Copies the locations that are kept, leaf first; beyond the limit a marker replaces the leaves. */
static void put_stack(struct limiter *limiter, struct slice content, struct profile_index index)
{
    struct profile_stack stack = profile_stack_at(&limiter->from, index);
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    uint64_t depth_max = limiter->rules->depth_max;
    uint64_t depth = 0;
    struct profile_index location;
    size_t begin = limiter->out.size;
    while (profile_indices_next(&reader, &location))
        depth += !is_gone(limiter, location);
    bool is_cut = depth_max > 0 && depth > depth_max;
    uint64_t skipped = is_cut ? depth - depth_max + 1 : 0;
    limiter->figures->cut_stacks += is_cut;
    size_t room = content.size + WIRE_SHORT_VARINT_BYTES_MAX; /* indices stay as they are */
    uint8_t *at = profile_bytes_room(&limiter->out, room);
    uint8_t *end = at;
    if (is_cut)
        end = profile_put_varint(end, limiter->marker);
    reader = profile_indices_read(&stack.locations);
    while (profile_indices_next(&reader, &location)) {
        if (is_gone(limiter, location))
            continue;
        if (skipped > 0)
            skipped--;
        else
            end = profile_put_varint(end, (uint64_t)location.number);
    }
    assert((size_t)(end - at) <= room);
    limiter->out.size += (size_t)(end - at);
    if (end > at)
        profile_bytes_wrap(&limiter->out, begin, 1);
}

/* Entry 0 of each table becomes empty. Of a label that has too many values the later ones in the
 * table are replaced. */
static void put_entry(struct limiter *limiter, enum profile_table table, uint32_t place)
{
    struct profile_bytes *out = &limiter->out;
    struct profile_index index = profile_index_of(place);
    struct slice content = profile_entry_at(&limiter->from, table, index);
    size_t begin = out->size;
    if (place == 0) {
        /* nothing */
    } else if (table == PROFILE_FUNCTIONS) {
        struct profile_function function = profile_function_at(&limiter->from, index);
        const struct renamed_field fields[] = {{FUNCTION_NAME, function.name},
                                               {FUNCTION_SYSTEM_NAME, function.system_name},
                                               {FUNCTION_FILENAME, function.filename}};
        put_renamed(limiter, content, fields, 3);
    } else if (table == PROFILE_MAPPINGS) {
        struct profile_mapping mapping = profile_mapping_at(&limiter->from, index);
        const struct renamed_field fields[] = {{MAPPING_FILENAME, mapping.filename}};
        put_renamed(limiter, content, fields, 1);
    } else if (table == PROFILE_LOCATIONS) {
        put_location(limiter, content, place);
    } else if (table == PROFILE_STACKS) {
        put_stack(limiter, content, index);
    } else if (table == PROFILE_ATTRIBUTES) {
        struct profile_index key_index = profile_attribute_at(&limiter->from, index).key;
        uint32_t key = profile_place(&limiter->from, PROFILE_STRINGS, key_index);
        uint64_t values_max = limiter->rules->label_values_max;
        bool is_label = values_max > 0 && !limiter->is_protected[place];
        if (!is_label || limiter->label_values[key]++ < values_max) {
            profile_bytes_add(out, content);
        } else {
            limiter->figures->other_values++;
            profile_bytes_number(out, 1, key);
            size_t value = out->size;
            profile_bytes_field(out, 1, slice_of_text(PROFILE_OTHER_VALUE));
            profile_bytes_wrap(out, value, 2);
        }
    } else {
        profile_bytes_add(out, content);
    }
    profile_bytes_wrap(out, begin, (uint32_t)table + 1);
}

/* Every table gets a zero element. The marker for frames that were cut, a location with a function
 * of its own, is appended to these tables. Strings come last, as the other tables add some. */
static void put_dictionary(struct limiter *limiter)
{
    static const enum profile_table order[] = {
        PROFILE_MAPPINGS,   PROFILE_FUNCTIONS, PROFILE_LOCATIONS, PROFILE_LINKS,
        PROFILE_ATTRIBUTES, PROFILE_STACKS,    PROFILE_STRINGS,
    };
    struct profile_bytes *out = &limiter->out;
    size_t begin = out->size;
    for (size_t i = 0; i < PROFILE_TABLES; i++) {
        uint32_t count = limiter->from.counts[order[i]];
        for (uint32_t k = 0; k < count || k == 0; k++)
            put_entry(limiter, order[i], k);
        size_t marker = out->size;
        if (order[i] == PROFILE_FUNCTIONS) {
            profile_bytes_number(out, 1, add_string(limiter, slice_of_text(PROFILE_CUT_FRAME)));
            profile_bytes_wrap(out, marker, PROFILE_FUNCTIONS + 1);
        } else if (order[i] == PROFILE_LOCATIONS) {
            uint32_t functions = limiter->from.counts[PROFILE_FUNCTIONS];
            profile_bytes_number(out, 1, functions > 0 ? functions : 1);
            profile_bytes_wrap(out, marker, LOCATION_LINES);
            profile_bytes_wrap(out, marker, PROFILE_LOCATIONS + 1);
        }
    }
    profile_bytes_add(out, profile_bytes_slice(&limiter->strings));
    profile_bytes_wrap(out, begin, REQUEST_DICTIONARY);
}

static void protect(struct limiter *limiter, const struct profile_indices *attributes)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index))
        limiter->is_protected[profile_place(&limiter->from, PROFILE_ATTRIBUTES, index)] = 1;
}

/* Drops the payload, which has what is removed here. An opaque profile is kept where only sizes are
 * limited; with rules on names it is dropped as well, as its names cannot be read. Drops the id
 * when samples are dropped. */
static void put_profile(struct limiter *limiter, struct slice content)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    struct profile profile = profile_of(content);
    uint64_t samples_max = limiter->rules->samples_max;
    bool is_cut = samples_max > 0 && profile.samples_count > samples_max;
    bool keeps_payload = profile_is_opaque(&profile) && limiter->rules->renames_count == 0 &&
                         limiter->rules->drops_count == 0;
    uint64_t samples = 0;
    protect(limiter, &profile.attributes);
    while (wire_read_field(&reader, &field)) {
        bool is_sample = field.number == PROFILE_SAMPLES;
        bool is_payload = field.number == PROFILE_PAYLOAD_FORMAT || field.number == PROFILE_PAYLOAD;
        bool stays = (!is_payload || keeps_payload) && (!is_cut || field.number != PROFILE_ID) &&
                     (!is_cut || !is_sample || samples < samples_max);
        samples += is_sample;
        if (stays)
            profile_bytes_add(&limiter->out, field.whole);
    }
}

/* Copies a request, resource or scope. The recursion ends at PROFILE_LEVEL. */
static void put_level(struct limiter *limiter, struct slice content, unsigned level)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint32_t child = level == 0 ? 1 : 2;
    assert(level < PROFILE_LEVEL);
    while (wire_read_field(&reader, &field)) {
        size_t begin = limiter->out.size;
        bool is_child = field.number == child && field.type == WIRE_BYTES;
        if (level == 0 && field.number == REQUEST_DICTIONARY)
            continue;
        if (!is_child)
            profile_bytes_add(&limiter->out, field.whole);
        else if (level + 1 == PROFILE_LEVEL)
            put_profile(limiter, field.bytes);
        else
            put_level(limiter, field.bytes, level + 1);
        if (is_child)
            profile_bytes_wrap(&limiter->out, begin, child);
    }
}

static void *zeroed(struct arena *arena, size_t count, size_t size)
{
    void *memory = arena_try_alloc(arena, (count + 1) * size);
    if (memory != NULL)
        memset(memory, 0, (count + 1) * size);
    return memory;
}

uint64_t profile_limit_bytes(struct slice request)
{
    /* What is written has unused capacity. (Its old copy is freed before the merge begins.) */
    enum { COPIES = 2, FIRST_BYTES = 64 * 1024 };
    /* With its place, a string's new name, its count and its fate. */
    enum { ENTRY_BYTES = sizeof(struct profile_entry) + 2 * sizeof(uint32_t) + 1 };
    struct profile_measure measure = profile_measure_of(request);
    uint64_t entries = PROFILE_TABLES;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        entries += measure.entries[i];
    return entries * ENTRY_BYTES + COPIES * (uint64_t)request.size + FIRST_BYTES;
}

struct buffer *profile_limit(const struct profile_limit_rules *rules, struct slice request,
                             const struct batch *batch, struct budget *budget,
                             struct profile_limit_figures *ret_figures)
{
    struct limiter limiter = {
        .rules = rules, .figures = ret_figures, .batch = batch, .budget = budget};
    struct arena *arena = &limiter.arena;
    const uint32_t *counts = limiter.from.counts;
    struct buffer *buffer = NULL;
    *ret_figures = (struct profile_limit_figures){.samples = 0};
    limiter.out.budget = budget;
    limiter.strings.budget = budget;
    arena_init_charged(arena, PROFILE_INDEX_BYTES_MAX, budget);
    bool is_open = profile_dictionary_open(&limiter.from, arena, request);
    if (is_open) {
        limiter.renamed = zeroed(arena, counts[PROFILE_STRINGS], sizeof(uint32_t));
        limiter.label_values = zeroed(arena, counts[PROFILE_STRINGS], sizeof(uint32_t));
        limiter.names = zeroed(arena, counts[PROFILE_STRINGS], 1);
        limiter.functions = zeroed(arena, counts[PROFILE_FUNCTIONS], 1);
        limiter.gone = zeroed(arena, counts[PROFILE_LOCATIONS], 1);
        limiter.is_protected = zeroed(arena, counts[PROFILE_ATTRIBUTES], 1);
        limiter.strings_count = counts[PROFILE_STRINGS] > 0 ? counts[PROFILE_STRINGS] : 1;
        limiter.marker = counts[PROFILE_LOCATIONS] > 0 ? counts[PROFILE_LOCATIONS] : 1;
        is_open = limiter.renamed != NULL && limiter.label_values != NULL &&
                  limiter.names != NULL && limiter.functions != NULL && limiter.gone != NULL &&
                  limiter.is_protected != NULL;
    }
    if (is_open) {
        for (uint32_t i = 1; i < counts[PROFILE_MAPPINGS]; i++) {
            struct profile_mapping mapping = profile_mapping_at(&limiter.from, profile_index_of(i));
            protect(&limiter, &mapping.attributes);
        }
        for (uint32_t i = 1; i < counts[PROFILE_LOCATIONS]; i++) {
            struct profile_location location =
                profile_location_at(&limiter.from, profile_index_of(i));
            protect(&limiter, &location.attributes);
        }
        put_level(&limiter, request, 0);
        put_dictionary(&limiter);
    }
    if (is_open && !limiter.has_long_names) {
        /* Merges what is used of the rewritten request, within bytes_max. */
        const struct otlp_limit limit = {.bytes_max =
                                             rules->bytes_max > 0 ? rules->bytes_max : UINT64_MAX};
        struct profile_merge merge;
        struct profile_source source;
        assert(limiter.out.size > 0);
        profile_merge_init(&merge, budget);
        if (profile_source_open(&source, profile_bytes_slice(&limiter.out), &merge)) {
            profile_merge_take(&merge, &source, limit);
            ret_figures->samples = merge.items;
            buffer = profile_merge_finish(&merge, NULL);
            if (buffer == NULL)
                buffer = buffer_create(budget, 0);
            profile_source_close(&source);
        }
        profile_merge_fini(&merge);
    }
    arena_clear(arena);
    profile_bytes_fini(&limiter.out);
    profile_bytes_fini(&limiter.strings);
    return buffer;
}
