/* SPDX-License-Identifier: Apache-2.0 */
/* Writes symbols of an OTLP dictionary to a pprof writer. Runs on the thread of the owner. */
#include "src/profiles/pprof/otlp_symbols.h"

#include <assert.h>

#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof_writer.h"

enum {
    /* Upper bounds of the bytes of one message without its strings. */
    MAPPING_BYTES_MAX = 100,
    FUNCTION_BYTES_MAX = 64,
    LOCATION_BYTES_MAX = 48,
    LINE_BYTES_MAX = 40,
    STRING_BYTES_MAX = 8,
    /* Larger entries of locations and mappings, and of their attributes, are hostile: they would
     * take too long if they were read again and again. */
    ENTRY_BYTES_MAX = 4096,
};

struct slot {
    uint32_t generation;
    uint32_t id;
    uint32_t count; /* the number of the last count of costs that it is part of */
};

/* What the attributes of a mapping say. Found once, however many profiles have the mapping. */
struct mapping_facts {
    struct slice build_id; /* no data: none */
    uint64_t cost;         /* an upper bound of the bytes of its strings */
    bool is_known;
    bool has_functions;
    bool has_filenames;
    bool has_line_numbers;
    bool has_inline_frames;
};

void otlp_symbols_init(struct otlp_symbols *symbols, const struct profile_dictionary *dictionary,
                       struct budget *budget)
{
    *symbols = (struct otlp_symbols){.dictionary = dictionary, .budget = budget};
}

void otlp_symbols_fini(struct otlp_symbols *symbols)
{
    for (unsigned table = 0; table < PROFILE_TABLES; table++)
        scratch_fini(&symbols->slots[table], symbols->budget);
    scratch_fini(&symbols->mappings, symbols->budget);
    scratch_fini(&symbols->mapping_facts, symbols->budget);
    scratch_fini(&symbols->folded_locations, symbols->budget);
    scratch_fini(&symbols->lines, symbols->budget);
    scratch_fini(&symbols->repaired, symbols->budget);
}

void otlp_symbols_begin(struct otlp_symbols *symbols, struct pprof_writer *writer)
{
    symbols->writer = writer;
    symbols->generation++;
    for (unsigned table = 0; table < PROFILE_TABLES; table++)
        symbols->ids[table] = 0;
    symbols->nameless = 0;
}

/* NULL: no memory, and has_failed is set. */
static void *room(struct otlp_symbols *symbols, struct scratch *scratch, size_t bytes)
{
    void *memory = scratch_room(scratch, symbols->budget, bytes);
    symbols->has_failed |= memory == NULL;
    return memory;
}

/* NULL for index 0, for one out of range, and without memory. */
static struct slot *slot_of(struct otlp_symbols *symbols, enum profile_table table,
                            struct profile_index index)
{
    assert(table < PROFILE_TABLES);
    if (!profile_index_is_set(index) || !profile_has(symbols->dictionary, table, index))
        return NULL;
    size_t bytes = symbols->dictionary->counts[table] * sizeof(struct slot);
    struct slot *slots = room(symbols, &symbols->slots[table], bytes);
    return slots != NULL ? &slots[profile_place(symbols->dictionary, table, index)] : NULL;
}

static bool is_written(const struct otlp_symbols *symbols, const struct slot *slot)
{
    return slot->generation == symbols->generation;
}

/* Gives the slot the next id of its table. */
static uint32_t give_id(struct otlp_symbols *symbols, enum profile_table table, struct slot *slot)
{
    slot->generation = symbols->generation;
    slot->id = ++symbols->ids[table];
    return slot->id;
}

uint32_t otlp_symbols_string(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->writer != NULL);
    struct slot *slot = slot_of(symbols, PROFILE_STRINGS, index);
    if (slot == NULL || is_written(symbols, slot))
        return slot != NULL ? slot->id : 0;
    struct slice string = profile_string_at(symbols->dictionary, index);
    symbols->work += otlp_text_work(string.size) - string.size;
    if (otlp_text_valid(string) < string.size) {
        uint8_t *repaired = room(symbols, &symbols->repaired, string.size);
        string = repaired != NULL ? otlp_text_repaired(string, repaired) : slice_of(NULL, 0);
    }
    slot->generation = symbols->generation;
    slot->id = pprof_writer_string(symbols->writer, string);
    return slot->id;
}

static bool is_bulky(const struct otlp_symbols *symbols, enum profile_table table,
                     struct profile_index index)
{
    return profile_entry_at(symbols->dictionary, table, index).size > ENTRY_BYTES_MAX;
}

/* Reads the next attribute of a list that has a key and is not bulky. False: there are no more. */
static bool next_pair(const struct otlp_symbols *symbols, struct profile_indices_reader *reader,
                      struct otlp_pair *ret_pair)
{
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct profile_index index;
    while (profile_indices_next(reader, &index)) {
        if (!profile_has(dictionary, PROFILE_ATTRIBUTES, index) ||
            is_bulky(symbols, PROFILE_ATTRIBUTES, index))
            continue;
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
            continue;
        *ret_pair = (struct otlp_pair){.key = profile_string_at(dictionary, attribute.key),
                                       .value = attribute.value};
        return true;
    }
    return false;
}

/* The flags, and of several build ids gnu, then go, then htlhash, since most back-ends look symbols
 * up by gnu's. */
static struct mapping_facts read_mapping_facts(const struct otlp_symbols *symbols,
                                               const struct profile_indices *attributes)
{
    static const char *const build_ids[] = {"process.executable.build_id.htlhash",
                                            "process.executable.build_id.go",
                                            "process.executable.build_id.gnu"};
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct mapping_facts facts = {.is_known = true};
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {
        {"pprof.mapping.has_functions", &facts.has_functions},
        {"pprof.mapping.has_filenames", &facts.has_filenames},
        {"pprof.mapping.has_line_numbers", &facts.has_line_numbers},
        {"pprof.mapping.has_inline_frames", &facts.has_inline_frames},
    };
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    struct otlp_pair pair;
    size_t best = 0;
    /* All bytes of its attributes count, since they are few. */
    while (profile_indices_next(&reader, &index))
        if (profile_has(dictionary, PROFILE_ATTRIBUTES, index))
            facts.cost += STRING_BYTES_MAX + profile_attribute_at(dictionary, index).value.size;
    reader = profile_indices_read(attributes);
    while (next_pair(symbols, &reader, &pair)) {
        struct value value = value_read(pair.value);
        size_t rank = sizeof(build_ids) / sizeof(build_ids[0]);
        while (rank > 0 && !slice_equal_text(pair.key, build_ids[rank - 1]))
            rank--;
        if (rank > best && value.type == VALUE_STRING &&
            otlp_text_valid(value.bytes) == value.bytes.size) {
            facts.build_id = value.bytes;
            best = rank;
        }
        for (size_t i = 0; value.type == VALUE_BOOL && i < sizeof(flags) / sizeof(flags[0]); i++)
            if (slice_equal_text(pair.key, flags[i].key))
                *flags[i].flag = value.boolean;
    }
    return facts;
}

/* Without memory none are known. */
static struct mapping_facts facts_of(struct otlp_symbols *symbols, struct profile_index index,
                                     const struct profile_mapping *mapping)
{
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct mapping_facts *facts =
        room(symbols, &symbols->mapping_facts,
             dictionary->counts[PROFILE_MAPPINGS] * sizeof(struct mapping_facts));
    if (facts == NULL)
        return (struct mapping_facts){.is_known = false};
    facts += profile_place(dictionary, PROFILE_MAPPINGS, index);
    if (!facts->is_known)
        *facts = read_mapping_facts(symbols, &mapping->attributes);
    return *facts;
}

/* Gives the mapping an id; it is written at the end. */
static uint32_t add_mapping(struct otlp_symbols *symbols, struct profile_index index)
{
    struct slot *slot = slot_of(symbols, PROFILE_MAPPINGS, index);
    if (slot == NULL || is_written(symbols, slot))
        return slot != NULL ? slot->id : 0;
    size_t count = symbols->ids[PROFILE_MAPPINGS] + 1;
    struct pprof_mapping *mappings = room(symbols, &symbols->mappings, count * sizeof(mappings[0]));
    if (mappings == NULL)
        return 0;
    struct profile_mapping from = profile_mapping_at(symbols->dictionary, index);
    struct mapping_facts facts = facts_of(symbols, index, &from);
    mappings[count - 1] = (struct pprof_mapping){
        .id = give_id(symbols, PROFILE_MAPPINGS, slot),
        .memory_start = from.memory_start,
        .memory_limit = from.memory_limit,
        .file_offset = from.file_offset,
        .filename = otlp_symbols_string(symbols, from.filename),
        .build_id = pprof_writer_string(symbols->writer, facts.build_id),
        .has_functions = facts.has_functions,
        .has_filenames = facts.has_filenames,
        .has_line_numbers = facts.has_line_numbers,
        .has_inline_frames = facts.has_inline_frames,
    };
    return slot->id;
}

/* Of a location, by index. */
enum { FOLDED_UNKNOWN, FOLDED_NO, FOLDED_YES };

static uint8_t read_folded(const struct otlp_symbols *symbols,
                           const struct profile_indices *attributes)
{
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct otlp_pair pair;
    while (next_pair(symbols, &reader, &pair))
        if (slice_equal_text(pair.key, "pprof.location.is_folded"))
            return value_read(pair.value).boolean ? FOLDED_YES : FOLDED_NO;
    return FOLDED_NO;
}

static bool is_folded(struct otlp_symbols *symbols, struct profile_index index,
                      const struct profile_location *location)
{
    const struct profile_dictionary *dictionary = symbols->dictionary;
    if (profile_numbers_count_max(&location->attributes.numbers) == 0)
        return false;
    uint8_t *folded =
        room(symbols, &symbols->folded_locations, dictionary->counts[PROFILE_LOCATIONS]);
    if (folded == NULL)
        return false;
    folded += profile_place(dictionary, PROFILE_LOCATIONS, index);
    if (*folded == FOLDED_UNKNOWN)
        *folded = read_folded(symbols, &location->attributes);
    return *folded == FOLDED_YES;
}

uint32_t otlp_symbols_location(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->writer != NULL);
    struct slot *slot = slot_of(symbols, PROFILE_LOCATIONS, index);
    if (slot == NULL || is_written(symbols, slot))
        return slot != NULL ? slot->id : 0;
    struct profile_location from = profile_location_at(symbols->dictionary, index);
    struct pprof_location to = {
        .id = give_id(symbols, PROFILE_LOCATIONS, slot),
        .mapping = add_mapping(symbols, from.mapping),
        .address = from.address,
        .is_folded = is_folded(symbols, index, &from),
    };
    struct wire_reader reader = wire_reader_of(from.bytes);
    struct profile_line line;
    while (profile_next_line(&reader, &line)) {
        struct pprof_line *lines =
            room(symbols, &symbols->lines, (to.lines_count + 1) * sizeof(lines[0]));
        if (lines == NULL)
            break;
        struct slot *known = slot_of(symbols, PROFILE_FUNCTIONS, line.function);
        if (known != NULL && !is_written(symbols, known)) {
            struct profile_function function =
                profile_function_at(symbols->dictionary, line.function);
            const struct pprof_function written = {
                .id = give_id(symbols, PROFILE_FUNCTIONS, known),
                .name = otlp_symbols_string(symbols, function.name),
                .system_name = otlp_symbols_string(symbols, function.system_name),
                .filename = otlp_symbols_string(symbols, function.filename),
                .start_line = function.start_line,
            };
            pprof_writer_function(symbols->writer, &written);
        }
        /* A line without a function gets one without a name: pprof needs one. */
        if (known == NULL && symbols->nameless == 0) {
            symbols->nameless = ++symbols->ids[PROFILE_FUNCTIONS];
            pprof_writer_function(symbols->writer,
                                  &(struct pprof_function){.id = symbols->nameless});
        }
        lines[to.lines_count++] = (struct pprof_line){
            .function = known != NULL ? known->id : symbols->nameless,
            .line = line.line,
            .column = line.column,
        };
    }
    to.lines = symbols->lines.memory;
    /* The flags of a mapping follow from the lines of its locations. */
    struct pprof_mapping *mappings = symbols->mappings.memory;
    struct pprof_mapping *mapping = to.mapping != 0 ? &mappings[to.mapping - 1] : NULL;
    if (mapping != NULL)
        mapping->has_inline_frames |= to.lines_count > 1;
    for (size_t i = 0; mapping != NULL && i < to.lines_count; i++) {
        bool is_named = to.lines[i].function != symbols->nameless;
        mapping->has_functions |= is_named;
        mapping->has_filenames |= is_named;
        mapping->has_line_numbers |= to.lines[i].line != 0;
    }
    pprof_writer_location(symbols->writer, &to);
    return slot->id;
}

void otlp_symbols_begin_count(struct otlp_symbols *symbols)
{
    assert(symbols->count < UINT32_MAX);
    symbols->count++;
}

/* Whether the entry is neither written nor part of this count yet. It is from now on. */
static bool counts(const struct otlp_symbols *symbols, struct slot *slot)
{
    bool is_first = slot->count != symbols->count;
    slot->count = symbols->count;
    return is_first && !is_written(symbols, slot);
}

static uint64_t string_cost(struct otlp_symbols *symbols, struct profile_index index)
{
    struct slot *slot = slot_of(symbols, PROFILE_STRINGS, index);
    if (slot == NULL || !counts(symbols, slot))
        return 0;
    return STRING_BYTES_MAX + profile_string_at(symbols->dictionary, index).size;
}

uint64_t otlp_symbols_location_cost(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->writer != NULL);
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct slot *slot = slot_of(symbols, PROFILE_LOCATIONS, index);
    if (slot == NULL || !counts(symbols, slot))
        return 0;
    if (is_bulky(symbols, PROFILE_LOCATIONS, index))
        return OTLP_SYMBOLS_TOO_LARGE;
    struct profile_location location = profile_location_at(dictionary, index);
    uint64_t cost = LOCATION_BYTES_MAX;
    slot = slot_of(symbols, PROFILE_MAPPINGS, location.mapping);
    if (slot != NULL && counts(symbols, slot)) {
        if (is_bulky(symbols, PROFILE_MAPPINGS, location.mapping))
            return OTLP_SYMBOLS_TOO_LARGE;
        struct profile_mapping mapping = profile_mapping_at(dictionary, location.mapping);
        cost += MAPPING_BYTES_MAX + string_cost(symbols, mapping.filename) +
                facts_of(symbols, location.mapping, &mapping).cost;
    }
    struct wire_reader reader = wire_reader_of(location.bytes);
    struct profile_line line;
    while (profile_next_line(&reader, &line)) {
        cost += LINE_BYTES_MAX;
        slot = slot_of(symbols, PROFILE_FUNCTIONS, line.function);
        if (slot == NULL ? symbols->nameless != 0 : !counts(symbols, slot))
            continue;
        cost += FUNCTION_BYTES_MAX;
        if (slot == NULL)
            continue;
        struct profile_function function = profile_function_at(dictionary, line.function);
        cost += string_cost(symbols, function.name) + string_cost(symbols, function.system_name) +
                string_cost(symbols, function.filename);
    }
    return cost;
}

uint64_t otlp_symbols_end_cost(const struct otlp_symbols *symbols)
{
    return (uint64_t)symbols->ids[PROFILE_MAPPINGS] * MAPPING_BYTES_MAX;
}

void otlp_symbols_end(struct otlp_symbols *symbols)
{
    assert(symbols->writer != NULL);
    const struct pprof_mapping *mappings = symbols->mappings.memory;
    for (uint32_t i = 0; i < symbols->ids[PROFILE_MAPPINGS]; i++)
        pprof_writer_mapping(symbols->writer, &mappings[i]);
    symbols->writer = NULL;
}
