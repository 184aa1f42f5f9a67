/* SPDX-License-Identifier: Apache-2.0 */
/* Reads samples into a tree. The samples of a profile are added up by stack
 * first; a stack of a request is resolved once, when a profile has picked samples of it. Owner's
 * thread. */
#include "src/explore/flame_tree.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/explore/flame_parts.h"
#include "src/otlp/value.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/profile_type.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    NAME_SLOTS_FIRST = 256,
    ADDRESS_NAME_BYTES_MAX = 512,
    FILE_TAIL_BYTES = 4096, /* of a path, in which its last part is looked for */
    LINES_FEW = 2,          /* of a location; how one with more is passed is remembered */
};

enum link_pick { LINK_UNKNOWN, LINK_PICKED, LINK_NOT_PICKED };

/* The frames of a location, in the pool. */
struct place_frames {
    uint32_t begin;
    uint32_t count; /* 0: not resolved yet */
};

/* What the samples of one profile with the same stack add up to. */
struct stack_sum {
    struct flame_weight weight;
    uint32_t node;   /* plus 1; 0: not resolved yet */
    bool is_touched; /* by the profile at hand: it is in the list */
};

/* One request being added. */
struct adding {
    struct flame_tree *tree;
    unsigned side;
    const struct flame_filter *filter;
    struct arena arena;
    struct profile_dictionary dictionary;
    struct stack_sum *stacks; /* by stack */
    uint32_t *touched;        /* stacks with a sum; room for all of them */
    uint32_t touched_count;
    uint32_t *functions;            /* by function: its name */
    uint32_t *strings;              /* by string: the name of functions that it is */
    uint32_t *files;                /* by mapping: the index of its file's name, plus 1 */
    struct flame_trie passages;     /* from a node through a location of many lines … */
    struct scratch ends;            /* … to this one, uint32_t */
    struct place_frames *locations; /* by location */
    uint8_t *links;                 /* by link: enum link_pick */
    struct scratch pool;            /* names of frames, leaf first */
    size_t pool_count;
    struct scratch stack; /* locations of the stack that is being resolved */
    /* The last profile's type, as most profiles of a request have the same few. */
    struct profile_value_type type;
    struct profile_value_type period_type;
    bool has_period;
    bool has_time_beside;
    size_t row;
    bool counts_periods;
    bool has_unit_of_period; /* a value is worth value / period samples */
    bool counts_samples;     /* a value is a number of samples */
    enum flame_result failure;
};

struct flame_tree *flame_tree_create(const struct flame_settings *settings)
{
    assert(settings->sides >= 1 && settings->sides <= FLAME_SIDES_MAX);
    struct flame_memory memory = {.budget = settings->budget, .max_bytes = settings->bytes_max};
    struct scratch own = {.bytes = 0};
    struct flame_tree *tree = flame_room(&memory, &own, sizeof(*tree));
    if (tree == NULL)
        return NULL;
    tree->settings = *settings;
    tree->memory = memory;
    tree->own = own;
    size_t size =
        settings->type.size < FLAME_TYPE_TEXT_MAX ? settings->type.size : FLAME_TYPE_TEXT_MAX - 1;
    for (size_t i = 0; i < size; i++)
        tree->asked[i] = (char)tolower(settings->type.data[i]);
    tree->settings.type = slice_of(tree->asked, size);
    flame_trie_init(&tree->trie);
    tree->seed = (uint64_t)(random_uniform() * 0x1p53);
    tree->names_count = 1;
    tree->patience = FLAME_PATIENCE;
    tree->sorted = tree->sorted_room;
    tree->best_rank = FLAME_OTHER;
    return tree;
}

void flame_tree_destroy(struct flame_tree *tree)
{
    if (tree == NULL)
        return;
    flame_trie_fini(&tree->trie, &tree->memory);
    flame_release(&tree->memory, &tree->name_bytes);
    flame_release(&tree->memory, &tree->names);
    flame_release(&tree->memory, &tree->name_slots);
    flame_release(&tree->memory, &tree->path);
    for (size_t i = 0; i < tree->types_count; i++)
        flame_release(&tree->memory, &tree->types[i].weights);
    struct scratch own = tree->own;
    struct flame_memory memory = tree->memory;
    assert(memory.used_bytes == own.bytes);
    flame_release(&memory, &own);
}

static uint32_t name_hash(const struct flame_tree *tree, struct slice name)
{
    return (uint32_t)XXH3_64bits_withSeed(name.data, name.size, tree->seed);
}

uint32_t flame_name_find(const struct flame_tree *tree, struct slice name)
{
    const uint32_t *slots = tree->name_slots.memory;
    const struct flame_name *names = tree->names.memory;
    uint32_t hash = name_hash(tree, name);
    if (slots == NULL)
        return 0;
    for (uint32_t at = hash & (tree->name_slots_count - 1); slots[at] != 0;
         at = (at + 1) & (tree->name_slots_count - 1))
        if (names[slots[at]].hash == hash && slice_equal(flame_name_at(tree, slots[at]), name))
            return slots[at];
    return 0;
}

static void put_name_slot(uint32_t *slots, uint32_t count, uint32_t hash, uint32_t name)
{
    uint32_t at = hash & (count - 1);
    while (slots[at] != 0)
        at = (at + 1) & (count - 1);
    slots[at] = name;
}

/* The number of a name, which is added if it is new. 0: no memory. */
static uint32_t add_name(struct flame_tree *tree, struct slice name)
{
    struct flame_memory *memory = &tree->memory;
    uint32_t known = flame_name_find(tree, name);
    if (known != 0)
        return known;
    if (2 * (uint64_t)tree->names_count >= tree->name_slots_count) {
        uint32_t wanted =
            tree->name_slots_count > 0 ? 2 * tree->name_slots_count : NAME_SLOTS_FIRST;
        struct scratch fresh = {.bytes = 0};
        uint32_t *slots = flame_room(memory, &fresh, wanted * sizeof(slots[0]));
        const struct flame_name *names = tree->names.memory;
        if (slots == NULL)
            return 0;
        for (uint32_t i = 1; i < tree->names_count; i++)
            put_name_slot(slots, wanted, names[i].hash, i);
        flame_release(memory, &tree->name_slots);
        tree->name_slots = fresh;
        tree->name_slots_count = wanted;
    }
    uint8_t *bytes = flame_room(memory, &tree->name_bytes, tree->name_bytes_used + name.size);
    struct flame_name *names =
        flame_room(memory, &tree->names, (tree->names_count + (size_t)1) * sizeof(names[0]));
    if (bytes == NULL || names == NULL)
        return 0;
    uint32_t added = tree->names_count++;
    memcpy(bytes + tree->name_bytes_used, name.data, name.size);
    names[added] = (struct flame_name){.offset = tree->name_bytes_used,
                                       .size = (uint32_t)name.size,
                                       .hash = name_hash(tree, name)};
    tree->name_bytes_used += name.size;
    put_name_slot(tree->name_slots.memory, tree->name_slots_count, names[added].hash, added);
    return added;
}

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
        added = add_name(adding->tree, text.size > 0 ? text : slice_of_text("[unknown]"));
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
    return add_name(adding->tree, slice_of(text, strlen(text)));
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
        adding->pool_count += count;
    }
    *ret_count = known->count;
    return pool + known->begin;
}

/* Goes down from the root along the stack's frames. Returns the node; FLAME_NO_NODE: failure is
 * set. Where it runs like the stack before it no edge is looked up. */
static uint32_t resolve_stack(struct adding *adding, struct profile_index index)
{
    struct flame_tree *tree = adding->tree;
    const struct profile_dictionary *dictionary = &adding->dictionary;
    struct profile_stack stack = profile_stack_at(dictionary, index);
    struct profile_indices_reader reader = profile_indices_read(&stack.locations);
    struct profile_index place;
    size_t places = profile_numbers_count_max(&stack.locations.numbers);
    struct profile_index *locations =
        flame_room(&tree->memory, &adding->stack, places * sizeof(locations[0]) + 1);
    struct flame_node *path =
        flame_room(&tree->memory, &tree->path, FLAME_DEPTH_MAX * sizeof(path[0]));
    size_t count = 0;
    size_t depth = 0;
    uint32_t node = 0;
    bool is_same = true;
    bool has_path = true; /* path has, or gets, all the way so far */
    if (locations == NULL || path == NULL)
        goto no_memory;
    while (profile_indices_next(&reader, &place))
        if (profile_index_is_set(place) && profile_has(dictionary, PROFILE_LOCATIONS, place))
            locations[count++] = place;
    assert(count <= places);
    while (count > 0) {
        uint32_t frames_count;
        struct profile_index location = locations[--count];
        const uint32_t *frames = location_frames(adding, location, &frames_count);
        uint32_t *end = NULL;
        if (frames == NULL)
            goto no_memory;
        if (frames_count > LINES_FEW && frames_count <= FLAME_DEPTH_MAX - depth) {
            uint32_t passage =
                flame_trie_child(&adding->passages, &tree->memory, node,
                                 profile_place(dictionary, PROFILE_LOCATIONS, location));
            uint32_t *ends = NULL;
            if (passage != FLAME_NO_NODE)
                ends = flame_room(&tree->memory, &adding->ends,
                                  (passage + (size_t)1) * sizeof(ends[0]));
            if (ends == NULL)
                goto no_memory;
            end = &ends[passage];
            has_path = false;
        }
        if (end != NULL && *end != 0) {
            node = *end;
            depth += frames_count;
            frames_count = 0;
        }
        for (; frames_count > 0 && depth < FLAME_DEPTH_MAX; depth++) {
            uint32_t name = frames[--frames_count];
            if (is_same && has_path && depth < tree->path_count && path[depth].name == name) {
                node = path[depth].parent;
                continue;
            }
            is_same = false;
            node = flame_trie_child(&tree->trie, &tree->memory, node, name);
            if (node == FLAME_NO_NODE)
                goto no_memory;
            if (has_path) {
                path[depth] = (struct flame_node){.parent = node, .name = name};
                tree->path_count = depth + 1;
            }
            if (flame_must_stop(tree)) {
                adding->failure = FLAME_STOPPED;
                return FLAME_NO_NODE;
            }
        }
        if (end != NULL)
            *end = node;
        tree->is_cut |= frames_count > 0;
        if (depth == FLAME_DEPTH_MAX && count > 0) {
            tree->is_cut = true;
            break;
        }
    }
    return node;
no_memory:
    adding->failure = FLAME_NO_MEMORY;
    return FLAME_NO_NODE;
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

/* What of a sample counts: its value and its number of samples. */
static struct flame_weight weigh(const struct adding *adding, const struct profile *profile,
                                 const struct profile_sample *sample)
{
    const struct flame_filter *filter = adding->filter;
    struct flame_weight weight = {.value = 0};
    struct profile_numbers_reader values = profile_numbers_read(&sample->values);
    struct profile_numbers_reader times = profile_numbers_read(&sample->timestamps);
    bool is_any_time = filter->start_unix_ns == 0 && filter->end_unix_ns == UINT64_MAX;
    size_t times_count = profile_numbers_count(&sample->timestamps);
    uint64_t value;
    uint64_t time;
    if (times_count == 0) {
        if (!is_any_time) {
            uint64_t begin = profile->time_unix_ns;
            uint64_t end = begin + profile->duration_ns;
            if (end < begin)
                end = UINT64_MAX;
            if (begin >= filter->end_unix_ns || end < filter->start_unix_ns ||
                (end == filter->start_unix_ns && end > begin))
                return weight;
        }
        while (profile_numbers_next(&values, &value))
            weight.value = flame_sum(weight.value, (int64_t)value);
    } else {
        size_t values_count = profile_numbers_count(&sample->values);
        bool is_value_each = values_count == times_count;
        int64_t each = values_count == 0 ? 1 : 0;
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
    }
    int64_t raw = weight.value;
    if (raw == 0)
        return (struct flame_weight){.value = 0};
    if (adding->counts_periods && __builtin_mul_overflow(raw, profile->period, &weight.value))
        weight.value = raw > 0 ? INT64_MAX : INT64_MIN;
    if (times_count > 0)
        return weight;
    weight.samples = 1;
    if (adding->counts_samples && raw > 0)
        weight.samples = (uint64_t)raw;
    else if (adding->has_unit_of_period && raw > profile->period)
        weight.samples = (uint64_t)(raw / profile->period);
    return weight;
}

static void add_sample(struct adding *adding, const struct profile *profile,
                       const struct profile_sample *sample, bool is_wanted)
{
    struct flame_type_row *row = &adding->tree->types[adding->row];
    if (adding->filter->picks != NULL && !is_picked(adding, sample->link))
        return;
    struct flame_weight weight = weigh(adding, profile, sample);
    if (weight.samples == 0)
        return;
    if (is_wanted) {
        /* Without a stack, or with one that is not there, it is the root's. */
        struct profile_index index = sample->stack;
        if (!profile_has(&adding->dictionary, PROFILE_STACKS, index))
            index = profile_index_of(0);
        uint32_t place = profile_place(&adding->dictionary, PROFILE_STACKS, index);
        struct stack_sum *sum = &adding->stacks[place];
        sum->weight.value = flame_sum(sum->weight.value, weight.value);
        sum->weight.samples += weight.samples;
        if (!sum->is_touched)
            adding->touched[adding->touched_count++] = place;
        sum->is_touched = true;
    }
    row->counts.samples[adding->side] += weight.samples;
    row->counts.total[adding->side] = flame_sum(row->counts.total[adding->side], weight.value);
}

/* Moves the sums of the profile's stacks into the tree. */
static enum flame_result settle_sums(struct adding *adding)
{
    struct flame_tree *tree = adding->tree;
    struct flame_type_row *row = &tree->types[adding->row];
    enum flame_result result = FLAME_ADDED;
    for (uint32_t i = 0; i < adding->touched_count; i++) {
        struct stack_sum *sum = &adding->stacks[adding->touched[i]];
        if (sum->node == 0 && result == FLAME_ADDED) {
            uint32_t node = resolve_stack(adding, profile_index_of(adding->touched[i]));
            if (node == FLAME_NO_NODE)
                result = adding->failure;
            else
                sum->node = node + 1;
        }
        size_t place = (sum->node - (size_t)1) * tree->settings.sides + adding->side;
        struct flame_weight *weights = NULL;
        if (result == FLAME_ADDED)
            weights = flame_room(&tree->memory, &row->weights, (place + 1) * sizeof(weights[0]));
        if (weights != NULL) {
            weights[place].value = flame_sum(weights[place].value, sum->weight.value);
            weights[place].samples += sum->weight.samples;
        } else if (result == FLAME_ADDED) {
            result = FLAME_NO_MEMORY;
        }
        sum->weight = (struct flame_weight){.value = 0};
        sum->is_touched = false;
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
    bool is_wanted = row->is_asked_for && row->rank <= tree->best_rank;
    while (result == FLAME_ADDED && profile_next_sample(&samples, &sample)) {
        add_sample(adding, profile, &sample, is_wanted);
        if (flame_must_stop(tree))
            result = FLAME_STOPPED;
    }
    if (result == FLAME_ADDED)
        result = settle_sums(adding);
    if (!is_wanted || row->rank == tree->best_rank || row->counts.samples[adding->side] == 0)
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
    struct adding adding = {.tree = tree, .side = side, .filter = filter};
    enum flame_result result = FLAME_NO_MEMORY;
    flame_trie_init(&adding.passages);
    arena_init_charged(&adding.arena, tree->memory.max_bytes - tree->memory.used_bytes,
                       tree->settings.budget);
    if (profile_dictionary_open(&adding.dictionary, &adding.arena, request)) {
        adding.stacks = zeroed(&adding, PROFILE_STACKS, sizeof(adding.stacks[0]));
        adding.touched = zeroed(&adding, PROFILE_STACKS, sizeof(adding.touched[0]));
        adding.functions = zeroed(&adding, PROFILE_FUNCTIONS, sizeof(adding.functions[0]));
        adding.strings = zeroed(&adding, PROFILE_STRINGS, sizeof(adding.strings[0]));
        adding.files = zeroed(&adding, PROFILE_MAPPINGS, sizeof(adding.files[0]));
        adding.locations = zeroed(&adding, PROFILE_LOCATIONS, sizeof(adding.locations[0]));
        adding.links = zeroed(&adding, PROFILE_LINKS, sizeof(adding.links[0]));
        if (adding.stacks != NULL && adding.touched != NULL && adding.functions != NULL &&
            adding.strings != NULL && adding.files != NULL && adding.locations != NULL &&
            adding.links != NULL)
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
    flame_release(&tree->memory, &adding.stack);
    flame_release(&tree->memory, &adding.ends);
    flame_trie_fini(&adding.passages, &tree->memory);
    return result;
}

static uint64_t samples_of(const struct flame_type *type)
{
    return type->samples[0] + type->samples[1];
}

const struct flame_type_row *flame_tree_row(const struct flame_tree *tree)
{
    const struct flame_type_row *best = NULL;
    for (size_t i = 0; i < tree->types_count; i++) {
        const struct flame_type_row *row = &tree->types[i];
        if (row->is_asked_for && samples_of(&row->counts) > 0 &&
            (best == NULL || row->rank < best->rank ||
             (row->rank == best->rank && samples_of(&row->counts) > samples_of(&best->counts))))
            best = row;
    }
    return best;
}

const struct flame_type *flame_tree_type(const struct flame_tree *tree)
{
    const struct flame_type_row *row = flame_tree_row(tree);
    return row != NULL ? &row->counts : NULL;
}

static int compare_types(const void *a, const void *b)
{
    const struct flame_type *left = a;
    const struct flame_type *right = b;
    if (samples_of(left) != samples_of(right))
        return samples_of(left) < samples_of(right) ? 1 : -1;
    int order = slice_compare(left->type, right->type);
    return order != 0 ? order : slice_compare(left->unit, right->unit);
}

size_t flame_tree_types(const struct flame_tree *tree, const struct flame_type **ret_types)
{
    struct flame_type *sorted = tree->sorted;
    size_t count = 0;
    for (size_t i = 0; i < tree->types_count; i++)
        if (samples_of(&tree->types[i].counts) > 0)
            sorted[count++] = tree->types[i].counts;
    qsort(sorted, count, sizeof(sorted[0]), compare_types);
    *ret_types = sorted;
    return count;
}
