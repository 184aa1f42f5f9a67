/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples into a tree. The samples of a profile are added up by stack first; a stack of a
 * request is resolved once, when a profile has picked samples of it. Owner's thread. */
#include "src/explore/flame_tree.h"

#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/explore/flame_order.h"
#include "src/explore/flame_parts.h"
#include "src/otlp/value.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/profile_type.h"

enum {
    ADDRESS_NAME_BYTES_MAX = 512,
    FILE_TAIL_BYTES = 4096, /* of a path, in which its last part is looked for */
    LINES_FEW = 2,          /* of a location; how one with more is passed is remembered */
    PENDING_MAX = 32,       /* samples: meanwhile the sums of their stacks are fetched */
    ORDERED_MAX = 1 << 18,  /* stacks that are brought into order at once */
};

enum link_pick { LINK_UNKNOWN, LINK_PICKED, LINK_NOT_PICKED };

/* The frames of a location. */
struct place_frames {
    uint32_t begin; /* in the pool; of a single one: its name */
    uint32_t count; /* 0: not resolved yet */
};

/* Where the way of the last stack passed the end of a node. */
struct mark {
    size_t bytes; /* of the packed locations, from their end on */
    uint32_t node;
    uint32_t depth;
};

/* A sample on its way to the sum of its stack. */
struct pending {
    uint32_t stack;
    struct flame_weight weight;
};

/* One request being added. */
struct adding {
    struct flame_tree *tree;
    unsigned side;
    const struct flame_filter *filter;
    struct arena arena;
    struct profile_dictionary dictionary;
    struct flame_weight *sums; /* by stack: what the samples of the profile at hand add up to */
    uint32_t *nodes;           /* by stack: its node, plus 1; 0: not resolved yet */
    uint32_t *touched;         /* stacks with a sum; room for all of them */
    uint32_t touched_count;
    struct pending pending[PENDING_MAX];
    uint32_t pending_count;
    uint32_t *functions;            /* by function: its name */
    uint32_t *strings;              /* by string: the name of functions that it is */
    uint32_t *files;                /* by mapping: the index of its file's name, plus 1 */
    struct flame_pairs passages;    /* from a node through a location of many lines to another */
    struct place_frames *locations; /* by location */
    uint32_t *singles;              /* by location: the name of its only frame; 0: look there */
    uint8_t *links;                 /* by link: enum link_pick */
    struct scratch pool;            /* names of frames, leaf first */
    size_t pool_count;
    struct slice last;     /* packed locations of the stack before */
    struct scratch packed; /* room for locations that are not packed */
    struct scratch marks;  /* struct mark: on the way of the last stack */
    size_t marks_count;
    struct flame_order order;
    /* The last profile's type, as most profiles of a request have the same few. */
    struct profile_value_type type;
    struct profile_value_type period_type;
    bool has_period;
    bool has_time_beside;
    size_t row;
    bool is_in_time; /* the profile is: samples without timestamps count */
    bool is_wanted;  /* the type may be drawn; others are counted only */
    bool counts_periods;
    bool has_unit_of_period; /* a value is worth value / period samples */
    bool counts_samples;     /* a value is a number of samples */
    enum flame_result failure;
};

static struct slice string_at(const struct adding *adding, struct profile_index index)
{
    if (!profile_has(&adding->dictionary, PROFILE_STRINGS, index))
        return slice_of("", 0);
    return profile_string_at(&adding->dictionary, index);
}

static uint32_t function_name(struct adding *adding, struct profile_index index)
{
    const struct profile_dictionary *dictionary = &adding->dictionary;
    struct profile_index name = profile_index_of(0);
    uint32_t *known = NULL;
    if (profile_index_is_set(index) && profile_has(dictionary, PROFILE_FUNCTIONS, index)) {
        known = &adding->functions[profile_place(dictionary, PROFILE_FUNCTIONS, index)];
        if (*known != 0)
            return *known;
        struct profile_function function = profile_function_at(dictionary, index);
        name = string_at(adding, function.name).size > 0 ? function.name : function.system_name;
    }
    struct slice text = string_at(adding, name);
    uint32_t *known_string = NULL;
    if (text.size > 0)
        known_string = &adding->strings[profile_place(dictionary, PROFILE_STRINGS, name)];
    uint32_t added = known_string != NULL ? *known_string : 0;
    if (added == 0)
        added = flame_name_add(adding->tree, text.size > 0 ? text : slice_of_text("[unknown]"));
    if (known_string != NULL)
        *known_string = added;
    if (known != NULL)
        *known = added;
    return added;
}

/* Unsymbolised frames are named by address and file, as `spanflame profile show` does. */
static uint32_t address_name(struct adding *adding, const struct profile_location *location)
{
    char text[ADDRESS_NAME_BYTES_MAX];
    struct slice file = slice_of("", 0);
    if (profile_index_is_set(location->mapping) &&
        profile_has(&adding->dictionary, PROFILE_MAPPINGS, location->mapping)) {
        uint32_t place = profile_place(&adding->dictionary, PROFILE_MAPPINGS, location->mapping);
        if (adding->files[place] == 0) {
            struct profile_mapping mapping =
                profile_mapping_at(&adding->dictionary, location->mapping);
            bool is_there = profile_has(&adding->dictionary, PROFILE_STRINGS, mapping.filename);
            adding->files[place] = 1 + (is_there ? profile_place(&adding->dictionary,
                                                                 PROFILE_STRINGS, mapping.filename)
                                                 : 0);
        }
        file = string_at(adding, profile_index_of(adding->files[place] - 1));
    }
    struct slice tail = file;
    if (tail.size > FILE_TAIL_BYTES)
        tail = slice_of(file.data + file.size - FILE_TAIL_BYTES, FILE_TAIL_BYTES);
    const uint8_t *slash = tail.size > 0 ? memrchr(tail.data, '/', tail.size) : NULL;
    if (slash != NULL)
        file = slice_of(slash + 1, (size_t)(file.data + file.size - slash - 1));
    file = otlp_text_cut(file, ADDRESS_NAME_BYTES_MAX / 2);
    if (location->address == 0 && file.size == 0)
        return function_name(adding, profile_index_of(0));
    int size = snprintf(text, sizeof(text), "0x%" PRIx64 "%s%.*s%s", location->address,
                        file.size > 0 ? " (" : "", (int)file.size,
                        file.size > 0 ? (const char *)file.data : "", file.size > 0 ? ")" : "");
    assert(size > 0 && (size_t)size < sizeof(text));
    return flame_name_add(adding->tree, slice_of(text, strlen(text)));
}

/* NULL: no memory. Valid until the next call. */
static const uint32_t *location_frames(struct adding *adding, struct profile_index index,
                                       uint32_t *ret_count)
{
    struct place_frames *known =
        &adding->locations[profile_place(&adding->dictionary, PROFILE_LOCATIONS, index)];
    struct flame_memory *memory = &adding->tree->memory;
    uint32_t *pool = adding->pool.memory;
    if (known->count == 0) {
        struct profile_location location = profile_location_at(&adding->dictionary, index);
        struct wire_reader lines = wire_reader_of(location.bytes);
        struct profile_line line;
        uint32_t count = location.lines_count > 0 ? location.lines_count : 1;
        if (adding->pool_count + count > UINT32_MAX)
            return NULL;
        pool = flame_room(memory, &adding->pool, (adding->pool_count + count) * sizeof(pool[0]));
        if (pool == NULL)
            return NULL;
        uint32_t *at = pool + adding->pool_count;
        if (location.lines_count == 0)
            *at++ = address_name(adding, &location);
        while (profile_next_line(&lines, &line))
            *at++ = function_name(adding, line.function);
        for (uint32_t i = 0; i < count; i++)
            if (pool[adding->pool_count + i] == 0)
                return NULL;
        *known = (struct place_frames){.begin = (uint32_t)adding->pool_count, .count = count};
        if (count == 1)
            known->begin = pool[adding->pool_count];
        else
            adding->pool_count += count;
        if (count == 1 && index.number != 0)
            adding->singles[index.number] = known->begin;
    }
    *ret_count = known->count;
    return known->count == 1 ? &known->begin : pool + known->begin;
}

/* The locations of a stack, leaf first, as packed varints. Without data: no memory. */
static struct slice packed_locations(struct adding *adding, struct profile_index index)
{
    enum { TAG = 1 << 3 | WIRE_BYTES, HEADER_BYTES = 2 };
    struct slice entry = profile_entry_at(&adding->dictionary, PROFILE_STACKS, index);
    /* Stacks are read mostly in the order of their table. */
    if (entry.size > HEADER_BYTES && entry.data[0] == TAG && entry.data[1] < 0x80 &&
        entry.data[1] == entry.size - HEADER_BYTES)
        return slice_of(entry.data + HEADER_BYTES, entry.data[1]);
    struct profile_stack stack = profile_stack_at(&adding->dictionary, index);
    const struct profile_numbers *numbers = &stack.locations.numbers;
    struct profile_numbers_reader reader = profile_numbers_read(numbers);
    uint64_t number;
    if (numbers->parent.data == NULL)
        return numbers->packed.size > 0 ? numbers->packed : slice_of("", 0);
    /* The room is used again: the next stack has nothing in common with this one. */
    adding->last = slice_of("", 0);
    adding->marks_count = 0;
    size_t bytes_max = profile_numbers_count_max(numbers) * WIRE_VARINT_BYTES_MAX;
    uint8_t *packed = flame_room(&adding->tree->memory, &adding->packed, bytes_max + 1);
    uint8_t *at = packed;
    while (packed != NULL && profile_numbers_next(&reader, &number))
        at = profile_put_varint(at, number);
    return slice_of(packed, (size_t)(at - packed));
}

/* The last mark that the way along these locations passes, too; those behind it are dropped. */
static struct mark last_mark(struct adding *adding, struct slice packed)
{
    const struct mark *marks = adding->marks.memory;
    size_t same = slice_common_end(adding->last, packed);
    while (adding->marks_count > 0) {
        const struct mark *mark = &marks[adding->marks_count - 1];
        size_t rest = packed.size - mark->bytes;
        /* A varint of this stack ends there, too. */
        if (mark->bytes < same ||
            (mark->bytes == same && (rest == 0 || packed.data[rest - 1] < 0x80)))
            return *mark;
        adding->marks_count--;
    }
    return (struct mark){.bytes = 0};
}

/* Steps through the frames of a location, outermost first. False: no memory. */
static bool pass_location(struct adding *adding, struct profile_index location,
                          struct flame_place *place, uint32_t *depth)
{
    struct flame_tree *tree = adding->tree;
    uint32_t count;
    const uint32_t *frames = location_frames(adding, location, &count);
    uint32_t *end = NULL;
    if (frames == NULL)
        return false;
    if (count > LINES_FEW && count <= FLAME_DEPTH_MAX - *depth) {
        uint32_t from = flame_trie_end(&tree->trie, &tree->memory, place);
        uint32_t passage = profile_place(&adding->dictionary, PROFILE_LOCATIONS, location);
        if (from != FLAME_NO_NODE)
            end = flame_pairs_at(&adding->passages, &tree->memory, from, passage);
        if (end == NULL)
            return false;
        if (*end != 0) {
            *place = flame_trie_place(&tree->trie, *end);
            *depth += count;
            return true;
        }
    }
    for (; count > 0 && *depth < FLAME_DEPTH_MAX; ++*depth)
        if (!flame_trie_step(&tree->trie, &tree->memory, place, frames[--count]))
            return false;
    tree->is_cut |= count > 0;
    if (end == NULL)
        return true;
    uint32_t node = flame_trie_end(&tree->trie, &tree->memory, place);
    *end = node != FLAME_NO_NODE ? node : 0;
    return node != FLAME_NO_NODE;
}

/* The varint that ends there and begins at `begin` or behind it. Returns where it begins. */
static const uint8_t *read_backwards(const uint8_t *end, const uint8_t *begin, uint64_t *ret_number)
{
    const uint8_t *at = end - 1;
    uint64_t number = *at;
    while (at > begin && at[-1] >= 0x80)
        number = number << 7 | (*--at & 0x7fu);
    *ret_number = number;
    return at;
}

/* The rest of a way that no stack went before: adds the frames of locations that have one each and
 * have been met before. Returns where another location ends. */
static const uint8_t *grow(struct adding *adding, struct flame_place *place, const uint8_t *end,
                           const uint8_t *begin, uint32_t *depth)
{
    struct flame_trie *trie = &adding->tree->trie;
    const uint32_t *singles = adding->singles;
    uint64_t locations_count = adding->dictionary.counts[PROFILE_LOCATIONS];
    uint32_t *names = (uint32_t *)trie->names.memory + trie->names_count;
    size_t room = trie->names.bytes / sizeof(names[0]) - trie->names_count;
    uint32_t most = FLAME_DEPTH_MAX - *depth;
    uint32_t count = 0;
    most = room < most ? (uint32_t)room : most;
    while (end > begin && count < most) {
        uint64_t number;
        const uint8_t *at = read_backwards(end, begin, &number);
        uint32_t name = number < locations_count ? singles[number] : 0;
        if (name == 0)
            break;
        names[count++] = name;
        end = at;
    }
    trie->names_count += count;
    place->size += count;
    place->used += count;
    *depth += count;
    return end;
}

/* Goes down from the root along the stack's frames. Returns the node; FLAME_NO_NODE: failure is
 * set. What the stack before it has in common with it is not walked again. */
static uint32_t resolve_stack(struct adding *adding, struct profile_index index)
{
    struct flame_tree *tree = adding->tree;
    struct slice packed = packed_locations(adding, index);
    struct mark *marks =
        flame_room(&tree->memory, &adding->marks, (FLAME_DEPTH_MAX + 1) * sizeof(marks[0]));
    adding->failure = FLAME_NO_MEMORY;
    if (packed.data == NULL || marks == NULL)
        return FLAME_NO_NODE;
    struct mark from = last_mark(adding, packed);
    struct flame_place place = flame_trie_place(&tree->trie, from.node);
    uint32_t depth = from.depth;
    const uint8_t *end = packed.data + packed.size;
    const uint8_t *at = end - from.bytes;
    adding->last = packed;
    /* The root is last. */
    while (at > packed.data) {
        uint64_t number;
        if (place.is_growing)
            at = grow(adding, &place, at, packed.data, &depth);
        if (at == packed.data)
            break;
        at = read_backwards(at, packed.data, &number);
        struct profile_index location = profile_index_of(number);
        if (number == 0 || !profile_has(&adding->dictionary, PROFILE_LOCATIONS, location))
            continue;
        if (depth == FLAME_DEPTH_MAX) {
            tree->is_cut = true;
            break;
        }
        uint32_t single =
            adding->singles[profile_place(&adding->dictionary, PROFILE_LOCATIONS, location)];
        if (single == 0) {
            if (!pass_location(adding, location, &place, &depth))
                return FLAME_NO_NODE;
        } else { /* nearly all have one frame, and have been met before */
            if (!flame_trie_step(&tree->trie, &tree->memory, &place, single))
                return FLAME_NO_NODE;
            depth++;
        }
        if (place.used == place.size && !place.is_growing)
            marks[adding->marks_count++] =
                (struct mark){.bytes = (size_t)(end - at), .node = place.node, .depth = depth};
    }
    adding->failure = FLAME_STOPPED;
    if (flame_must_stop(tree, depth - from.depth + packed.size / sizeof(uint64_t) + 1))
        return FLAME_NO_NODE;
    adding->failure = FLAME_NO_MEMORY;
    return flame_trie_end(&tree->trie, &tree->memory, &place);
}

static bool is_picked(struct adding *adding, struct profile_index index)
{
    const struct profile_dictionary *dictionary = &adding->dictionary;
    if (!profile_index_is_set(index) || !profile_has(dictionary, PROFILE_LINKS, index))
        return false;
    uint8_t *known = &adding->links[profile_place(dictionary, PROFILE_LINKS, index)];
    if (*known == LINK_UNKNOWN) {
        struct profile_link link = profile_link_at(dictionary, index);
        *known = link.trace_id.size == 16 && link.span_id.size == 8 &&
                         adding->filter->picks(adding->filter->arg, link.trace_id.data,
                                               link.span_id.data)
                     ? LINK_PICKED
                     : LINK_NOT_PICKED;
    }
    return *known == LINK_PICKED;
}

/* Whether samples without timestamps count: any overlap of their profile does. */
static bool is_in_time(const struct flame_filter *filter, const struct profile *profile)
{
    uint64_t begin = profile->time_unix_ns;
    uint64_t end = begin + profile->duration_ns;
    if (filter->start_unix_ns == 0 && filter->end_unix_ns == UINT64_MAX)
        return true;
    if (end < begin)
        end = UINT64_MAX;
    return begin < filter->end_unix_ns && end >= filter->start_unix_ns &&
           !(end == filter->start_unix_ns && end > begin);
}

static int64_t sum_of(const struct profile_numbers *values)
{
    struct profile_numbers_reader reader = {.at = NULL};
    int64_t sum = 0;
    uint64_t value = 0;
    if (values->parent.data == NULL) {
        unsigned shift = 0;
        for (size_t i = 0; i < values->packed.size; i++) {
            uint8_t byte = values->packed.data[i];
            value |= (uint64_t)(byte & 0x7f) << shift;
            shift += 7;
            if (byte >= 0x80)
                continue;
            sum = flame_sum(sum, (int64_t)value);
            value = 0;
            shift = 0;
        }
        return sum;
    }
    reader = profile_numbers_read(values);
    while (profile_numbers_next(&reader, &value))
        sum = flame_sum(sum, (int64_t)value);
    return sum;
}

/* Those of a sample's times that the filter wants. */
static struct flame_weight weigh_times(const struct flame_filter *filter,
                                       const struct profile_sample *sample)
{
    struct flame_weight weight = {.value = 0};
    struct profile_numbers_reader values = profile_numbers_read(&sample->values);
    struct profile_numbers_reader times = profile_numbers_read(&sample->timestamps);
    size_t values_count = profile_numbers_count(&sample->values);
    bool is_value_each = values_count == profile_numbers_count(&sample->timestamps);
    int64_t each = values_count == 0 ? 1 : 0;
    uint64_t value;
    uint64_t time;
    while (profile_numbers_next(&times, &time)) {
        bool has_value = is_value_each && profile_numbers_next(&values, &value);
        if (time < filter->start_unix_ns ||
            (time >= filter->end_unix_ns && filter->end_unix_ns != UINT64_MAX))
            continue;
        weight.value = flame_sum(weight.value, has_value ? (int64_t)value : each);
        weight.samples++;
    }
    /* Values that belong to no one time: they count when any of the times does. */
    while (!is_value_each && weight.samples > 0 && profile_numbers_next(&values, &value))
        weight.value = flame_sum(weight.value, (int64_t)value);
    return weight;
}

/* What a sample without times that has that value counts. */
static struct flame_weight weigh_value(const struct adding *adding, const struct profile *profile,
                                       int64_t raw)
{
    struct flame_weight weight = {.value = raw, .samples = 1};
    if (raw == 0)
        return (struct flame_weight){.value = 0};
    if (adding->counts_periods && __builtin_mul_overflow(raw, profile->period, &weight.value))
        weight.value = raw > 0 ? INT64_MAX : INT64_MIN;
    if (adding->counts_samples && raw > 0)
        weight.samples = (uint64_t)raw;
    else if (adding->has_unit_of_period && raw > profile->period)
        weight.samples = (uint64_t)(raw / profile->period);
    return weight;
}

/* What of a sample counts: its value and its number of samples. */
static struct flame_weight weigh(const struct adding *adding, const struct profile *profile,
                                 const struct profile_sample *sample)
{
    const struct profile_numbers *times = &sample->timestamps;
    bool has_times =
        (times->packed.size > 0 || times->parent.data != NULL) && profile_numbers_count(times) > 0;
    if (!has_times)
        return weigh_value(adding, profile, adding->is_in_time ? sum_of(&sample->values) : 0);
    struct flame_weight weight = weigh_times(adding->filter, sample);
    int64_t raw = weight.value;
    if (raw == 0)
        return (struct flame_weight){.value = 0};
    if (adding->counts_periods && __builtin_mul_overflow(raw, profile->period, &weight.value))
        weight.value = raw > 0 ? INT64_MAX : INT64_MIN;
    return weight;
}

/* Adds the samples that wait to the sums of their stacks, and to those of their type. */
static void add_pending(struct adding *adding)
{
    struct flame_type *counts = &adding->tree->types[adding->row].counts;
    uint64_t samples = counts->samples[adding->side];
    int64_t total = counts->total[adding->side];
    for (uint32_t i = 0; i < adding->pending_count; i++) {
        const struct pending *sample = &adding->pending[i];
        samples += sample->weight.samples;
        total = flame_sum(total, sample->weight.value);
        if (!adding->is_wanted)
            continue;
        struct flame_weight *sum = &adding->sums[sample->stack];
        if (sum->samples == 0)
            adding->touched[adding->touched_count++] = sample->stack;
        sum->value = flame_sum(sum->value, sample->weight.value);
        if (__builtin_add_overflow(sum->samples, sample->weight.samples, &sum->samples))
            sum->samples = UINT64_MAX;
    }
    counts->samples[adding->side] = samples;
    counts->total[adding->side] = total;
    adding->pending_count = 0;
}

static void add_weight(struct adding *adding, struct profile_index index,
                       struct flame_weight weight)
{
    if (weight.samples == 0)
        return;
    /* Without a stack, or with one that is not there, it is the root's. */
    if (!profile_has(&adding->dictionary, PROFILE_STACKS, index))
        index = profile_index_of(0);
    uint32_t stack = profile_place(&adding->dictionary, PROFILE_STACKS, index);
    __builtin_prefetch(&adding->sums[stack], 1);
    adding->pending[adding->pending_count++] = (struct pending){.stack = stack, .weight = weight};
    if (adding->pending_count == PENDING_MAX)
        add_pending(adding);
}

/* A varint of at most eight bytes, of which as many can be read. Returns where it ends; NULL: it
 * is longer. */
static const uint8_t *read_word(const uint8_t *at, uint64_t *ret_number)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    word = le64toh(word);
    uint64_t ends = ~word & 0x8080808080808080u;
    if (ends == 0)
        return NULL;
    /* Up to the first byte that ends a varint: its groups of 7 bits, then of 14, then of 28. */
    word &= ends ^ (ends - 1);
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    *ret_number = (word & 0x0fffffffu) | (word & 0x0fffffff00000000u) >> 4;
    return at + (unsigned)__builtin_ctzll(ends) / 8 + 1;
}

/* Adds samples as nearly all are, up to the first other one, at most so many: those with a stack,
 * perhaps attributes and a link, and one value, each once and in this order. Returns how many. */
static uint64_t add_plain_samples(struct adding *adding, const struct profile *profile,
                                  struct wire_reader *samples, uint64_t most)
{
    enum {
        TAG_SAMPLE = 2 << 3 | WIRE_BYTES,
        TAG_STACK = 1 << 3,
        TAG_ATTRIBUTES = 2 << 3 | WIRE_BYTES,
        TAG_LINK = 3 << 3,
        TAG_VALUES = 4 << 3 | WIRE_BYTES,
        HEADER_BYTES = 2,
    };
    const uint8_t *at = samples->at;
    uint64_t count = 0;
    for (; count < most && samples->end - at > HEADER_BYTES && at[0] == TAG_SAMPLE; count++) {
        const uint8_t *from = at + HEADER_BYTES;
        const uint8_t *end = from + at[1];
        uint64_t stack = 0;
        uint64_t link = 0;
        uint64_t value;
        wire_fetch_ahead(at);
        /* Words are read from its end at most. */
        if (at[1] == 0 || at[1] >= 0x80 ||
            samples->end - from < at[1] + (ptrdiff_t)sizeof(uint64_t))
            break;
        if (*from == TAG_STACK)
            from = read_word(from + 1, &stack);
        if (from == NULL)
            break;
        if (end - from > HEADER_BYTES && from[0] == TAG_ATTRIBUTES && from[1] < 0x80)
            from += HEADER_BYTES + from[1];
        if (end - from > HEADER_BYTES && from[0] == TAG_LINK)
            from = read_word(from + 1, &link);
        if (from == NULL || end - from <= HEADER_BYTES || from[0] != TAG_VALUES ||
            from[1] != end - from - HEADER_BYTES || read_word(from + HEADER_BYTES, &value) != end)
            break;
        at = end;
        if (adding->filter->picks == NULL || is_picked(adding, profile_index_of(link)))
            add_weight(adding, profile_index_of(stack),
                       weigh_value(adding, profile, adding->is_in_time ? (int64_t)value : 0));
    }
    samples->at = at;
    return count;
}

/* Moves a stack's sum into the tree. */
static enum flame_result settle_sum(struct adding *adding, uint32_t stack)
{
    struct flame_tree *tree = adding->tree;
    struct flame_type_row *row = &tree->types[adding->row];
    struct flame_weight *sum = &adding->sums[stack];
    if (adding->nodes[stack] == 0) {
        uint32_t node = resolve_stack(adding, profile_index_of(stack));
        if (node == FLAME_NO_NODE)
            return adding->failure;
        adding->nodes[stack] = node + 1;
    }
    size_t place = (adding->nodes[stack] - (size_t)1) * tree->settings.sides + adding->side;
    struct flame_weight *weights =
        flame_room(&tree->memory, &row->weights, (place + 1) * sizeof(weights[0]));
    if (weights == NULL)
        return FLAME_NO_MEMORY;
    weights[place].value = flame_sum(weights[place].value, sum->value);
    weights[place].samples += sum->samples;
    *sum = (struct flame_weight){.value = 0};
    return FLAME_ADDED;
}

/* A stack will be settled soon: fetches where it stands, then itself and its sum. Inline: gcc drops
 * calls of functions that do nothing else. */
static inline __attribute__((always_inline)) void fetch_entry(const struct adding *adding,
                                                              uint32_t stack)
{
    __builtin_prefetch(&adding->dictionary.entries[PROFILE_STACKS][stack]);
}

static inline __attribute__((always_inline)) void fetch_stack(const struct adding *adding,
                                                              uint32_t stack)
{
    enum { LINE_BYTES = 64 };
    const struct profile_entry *entry = &adding->dictionary.entries[PROFILE_STACKS][stack];
    const uint8_t *begin = adding->dictionary.request.data + entry->offset;
    const uint8_t *end = begin + entry->size;
    __builtin_prefetch(begin);
    if (entry->size > LINE_BYTES)
        __builtin_prefetch(end - 1 - LINE_BYTES);
    __builtin_prefetch(end - 1);
    __builtin_prefetch(&adding->sums[stack], 1);
    __builtin_prefetch(&adding->nodes[stack], 1);
}

/* Settles stacks that have no node yet, in an order in which their ways branch from each other as
 * late as can be. */
static enum flame_result settle_in_order(struct adding *adding)
{
    enum { AHEAD = 12, EXPECTED_MIN = 1024, EXPECTED_TIMES = 4 };
    struct flame_tree *tree = adding->tree;
    struct flame_order *order = &adding->order;
    uint32_t next_look = EXPECTED_MIN;
    enum flame_result result = flame_order_sort(order, tree, &adding->dictionary);
    for (uint32_t i = 0; i < order->count && result == FLAME_ADDED; i++) {
        if (i + 2 * AHEAD < order->count)
            fetch_entry(adding, flame_order_at(order, i + 2 * AHEAD));
        if (i + AHEAD < order->count)
            fetch_stack(adding, flame_order_at(order, i + AHEAD));
        result = settle_sum(adding, flame_order_at(order, i));
        if (i != next_look)
            continue;
        uint32_t times = order->count / next_look;
        flame_trie_expect(&tree->trie, &tree->memory,
                          times < EXPECTED_TIMES ? times : EXPECTED_TIMES);
        next_look *= EXPECTED_TIMES;
    }
    return result;
}

/* Moves the sums of the profile's stacks into the tree. */
static enum flame_result settle_sums(struct adding *adding)
{
    enum { MANY = 8 }; /* one of so many */
    struct flame_order *order = &adding->order;
    enum flame_result result = FLAME_ADDED;
    uint32_t stacks_count = adding->dictionary.counts[PROFILE_STACKS];
    /* The table is read from begin to end rather than here and there. */
    bool is_many = adding->touched_count > stacks_count / MANY && stacks_count > 0;
    uint32_t count = is_many ? stacks_count : adding->touched_count;
    for (uint32_t at = 0; at < count && result == FLAME_ADDED;) {
        uint32_t most = count - at < ORDERED_MAX ? count - at : ORDERED_MAX;
        if (!flame_order_begin(order, &adding->tree->memory, most))
            return FLAME_NO_MEMORY;
        for (uint32_t end = at + most; at < end && result == FLAME_ADDED; at++) {
            uint32_t stack = is_many ? at : adding->touched[at];
            if (adding->sums[stack].samples == 0)
                continue;
            if (adding->nodes[stack] == 0 && stack < stacks_count)
                flame_order_add(order, stack);
            else
                result = settle_sum(adding, stack);
        }
        if (result == FLAME_ADDED)
            result = settle_in_order(adding);
    }
    adding->touched_count = 0;
    return result;
}

static bool is_same_type(struct profile_value_type a, struct profile_value_type b)
{
    return a.type.number == b.type.number && a.unit.number == b.unit.number;
}

/* The row of a type, which is added if it is new. */
static size_t type_row(struct flame_tree *tree, const struct profile_type *canonical)
{
    char name[FLAME_TYPE_TEXT_MAX];
    bool is_wall = strcmp(canonical->name, "wall") == 0;
    bool is_contention =
        strcmp(canonical->name, "mutex") == 0 || strcmp(canonical->name, "block") == 0;
    if (is_contention)
        snprintf(name, sizeof(name), "%.20s_%s", canonical->name, canonical->type);
    else
        snprintf(name, sizeof(name), "%s", canonical->type);
    for (size_t i = 0; name[i] != '\0'; i++)
        name[i] = (char)tolower((unsigned char)name[i]);
    if (strcmp(name, "on_cpu") == 0)
        snprintf(name, sizeof(name), "cpu");
    if (is_wall && strcmp(name, "samples") == 0)
        snprintf(name, sizeof(name), "wall");
    for (size_t i = 0; i < tree->types_count; i++)
        if (strcmp(tree->types[i].type, name) == 0 &&
            strcmp(tree->types[i].unit, canonical->unit) == 0)
            return i;
    if (tree->types_count == FLAME_TYPES_MAX)
        return FLAME_TYPES_MAX - 1;
    struct flame_type_row *row = &tree->types[tree->types_count];
    struct slice asked = tree->settings.type;
    bool is_time = strcmp(canonical->unit, "nanoseconds") == 0;
    snprintf(row->type, sizeof(row->type), "%s", name);
    snprintf(row->unit, sizeof(row->unit), "%s", canonical->unit);
    row->counts.type = slice_of_text(row->type);
    row->counts.unit = slice_of_text(row->unit);
    row->rank = FLAME_OTHER;
    if (strcmp(name, "cpu") == 0)
        row->rank = is_time ? FLAME_CPU_TIME : FLAME_CPU_COUNT;
    else if (strcmp(name, "wall") == 0)
        row->rank = FLAME_WALL;
    row->is_asked_for = asked.size == 0 || slice_equal(asked, row->counts.type);
    return tree->types_count++;
}

/* Whether cpu time stands beside the profile in its scope: then samples are just counted. */
static bool scope_has_cpu_time(const struct adding *adding, struct slice scope)
{
    struct wire_reader reader = wire_reader_of(scope);
    struct profile profile;
    while (profile_next_profile(&reader, &profile))
        if (profile_type_is_cpu_time(string_at(adding, profile.sample_type.type),
                                     string_at(adding, profile.sample_type.unit)))
            return true;
    return false;
}

/* Sets what depends on the type of the profiles that follow. */
static void take_type(struct adding *adding, const struct profile *profile, bool has_time_beside)
{
    const struct profile_type_texts texts = {
        .type = string_at(adding, profile->sample_type.type),
        .unit = string_at(adding, profile->sample_type.unit),
        .period_type = string_at(adding, profile->period_type.type),
        .period_unit = string_at(adding, profile->period_type.unit),
    };
    struct profile_type canonical =
        profile_type_canonical(&texts, profile->period > 0, has_time_beside);
    adding->type = profile->sample_type;
    adding->period_type = profile->period_type;
    adding->has_period = profile->period > 0;
    adding->has_time_beside = has_time_beside;
    /* A samples' count of a CPU profiler is cpu, too, unless its time stands beside it. */
    if (strcmp(canonical.name, "process_cpu") == 0 && strcmp(canonical.type, "samples") == 0 &&
        !has_time_beside)
        snprintf(canonical.type, sizeof(canonical.type), "cpu");
    adding->row = type_row(adding->tree, &canonical);
    adding->counts_periods = canonical.counts_periods;
    bool counts_samples = slice_equal_text(texts.type, "samples");
    adding->counts_samples =
        canonical.counts_periods || (counts_samples && strcmp(canonical.unit, "count") == 0);
    adding->has_unit_of_period =
        adding->has_period && strcmp(canonical.unit, canonical.period_unit) == 0;
}

static bool is_service(const struct adding *adding, struct slice resource)
{
    struct slice wanted = adding->filter->service;
    struct wire_reader reader = wire_reader_of(resource);
    struct wire_field field;
    if (wanted.data == NULL)
        return true;
    while (wire_next_field(&reader, &field)) {
        if (field.number != 1)
            continue;
        struct otlp_pair pair = otlp_text_pair(&adding->dictionary, field.bytes);
        if (slice_equal_text(pair.key, "service.name")) {
            struct value value = value_read(pair.value);
            return value.type == VALUE_STRING && slice_equal(value.bytes, wanted);
        }
    }
    return wanted.size == 0;
}

static void *zeroed(struct adding *adding, enum profile_table table, size_t size)
{
    size_t bytes = (adding->dictionary.counts[table] + (size_t)1) * size;
    void *memory = arena_try_alloc(&adding->arena, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

static enum flame_result add_profile(struct adding *adding, const struct profile *profile)
{
    struct flame_tree *tree = adding->tree;
    struct wire_reader samples = wire_reader_of(profile->bytes);
    struct profile_sample sample;
    enum flame_result result = FLAME_ADDED;
    struct flame_type_row *row = &tree->types[adding->row];
    adding->is_wanted = row->is_asked_for && row->rank <= tree->best_rank;
    adding->is_in_time = is_in_time(adding->filter, profile);
    for (;;) {
        uint64_t plain = add_plain_samples(adding, profile, &samples, tree->patience);
        if (flame_must_stop(tree, plain)) {
            result = FLAME_STOPPED;
            break;
        }
        if (plain > 0)
            continue;
        if (!profile_next_sample(&samples, &sample))
            break;
        if (adding->filter->picks == NULL || is_picked(adding, sample.link))
            add_weight(adding, sample.stack, weigh(adding, profile, &sample));
        if (flame_must_stop(tree, 1)) {
            result = FLAME_STOPPED;
            break;
        }
    }
    add_pending(adding);
    if (result == FLAME_ADDED)
        result = settle_sums(adding);
    if (!adding->is_wanted || row->rank == tree->best_rank ||
        row->counts.samples[adding->side] == 0)
        return result;
    /* Types that this one outranks will not be drawn. */
    tree->best_rank = row->rank;
    for (size_t i = 0; i < tree->types_count; i++)
        if (tree->types[i].rank > tree->best_rank)
            flame_release(&tree->memory, &tree->types[i].weights);
    return result;
}

enum flame_result flame_tree_add(struct flame_tree *tree, unsigned side, struct slice request,
                                 const struct flame_filter *filter)
{
    assert(side < tree->settings.sides);
    struct adding adding = {.tree = tree, .side = side, .filter = filter, .last = slice_of("", 0)};
    enum flame_result result = FLAME_NO_MEMORY;
    flame_pairs_init(&adding.passages);
    arena_init_charged(&adding.arena, tree->memory.max_bytes - tree->memory.used_bytes,
                       tree->settings.budget);
    if (profile_dictionary_open(&adding.dictionary, &adding.arena, request)) {
        adding.sums = zeroed(&adding, PROFILE_STACKS, sizeof(adding.sums[0]));
        adding.nodes = zeroed(&adding, PROFILE_STACKS, sizeof(adding.nodes[0]));
        adding.touched = zeroed(&adding, PROFILE_STACKS, sizeof(adding.touched[0]));
        adding.functions = zeroed(&adding, PROFILE_FUNCTIONS, sizeof(adding.functions[0]));
        adding.strings = zeroed(&adding, PROFILE_STRINGS, sizeof(adding.strings[0]));
        adding.files = zeroed(&adding, PROFILE_MAPPINGS, sizeof(adding.files[0]));
        adding.locations = zeroed(&adding, PROFILE_LOCATIONS, sizeof(adding.locations[0]));
        adding.singles = zeroed(&adding, PROFILE_LOCATIONS, sizeof(adding.singles[0]));
        adding.links = zeroed(&adding, PROFILE_LINKS, sizeof(adding.links[0]));
        if (adding.sums != NULL && adding.nodes != NULL && adding.touched != NULL &&
            adding.functions != NULL && adding.strings != NULL && adding.files != NULL &&
            adding.locations != NULL && adding.singles != NULL && adding.links != NULL)
            result = FLAME_ADDED;
    }
    tree->memory.used_bytes += adding.arena.used_bytes;
    size_t arena_bytes = adding.arena.used_bytes;
    bool has_type = false;
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    while (result == FLAME_ADDED && profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        struct profile_scope scope;
        if (!is_service(&adding, resource.resource))
            continue;
        while (result == FLAME_ADDED && profile_next_scope(&scopes, &scope)) {
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            struct profile profile;
            bool is_beside_known = false;
            bool has_time_beside = false;
            while (result == FLAME_ADDED && profile_next_profile(&profiles, &profile)) {
                if (!is_beside_known &&
                    slice_equal_text(string_at(&adding, profile.sample_type.type), "samples")) {
                    has_time_beside = scope_has_cpu_time(&adding, scope.bytes);
                    is_beside_known = true;
                }
                if (!has_type || !is_same_type(adding.type, profile.sample_type) ||
                    !is_same_type(adding.period_type, profile.period_type) ||
                    adding.has_period != (profile.period > 0) ||
                    adding.has_time_beside != has_time_beside)
                    take_type(&adding, &profile, has_time_beside);
                has_type = true;
                result = add_profile(&adding, &profile);
            }
        }
    }
    assert(tree->memory.used_bytes >= arena_bytes);
    tree->memory.used_bytes -= arena_bytes;
    arena_clear(&adding.arena);
    flame_release(&tree->memory, &adding.pool);
    flame_release(&tree->memory, &adding.packed);
    flame_release(&tree->memory, &adding.marks);
    flame_order_fini(&adding.order, &tree->memory);
    flame_pairs_fini(&adding.passages, &tree->memory);
    return result;
}
