/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols from an OTLP dictionary into a pprof writer. Runs on the thread of the owner. */
#include "src/profiles/pprof/otlp_symbols.h"

#include <assert.h>

#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof_writer.h"

enum {
    /* Upper bounds of what one message takes without its texts. */
    MAPPING_BYTES_MAX = 100,
    FUNCTION_BYTES_MAX = 64,
    LOCATION_BYTES_MAX = 48,
    LINE_BYTES_MAX = 40,
    TEXT_BYTES_MAX = 8,
    /* A location or mapping whose entry is larger is no honest one: walking through it again and
     * again would be work without end. */
    ENTRY_BYTES_MAX = 4096,
};

struct slot {
    uint32_t generation;
    uint32_t id;
};

void otlp_symbols_init(struct otlp_symbols *symbols, const struct profile_dictionary *dictionary,
                       struct budget *budget)
{
    assert(dictionary != NULL);
    *symbols = (struct otlp_symbols){.dictionary = dictionary, .budget = budget};
}

void otlp_symbols_fini(struct otlp_symbols *symbols)
{
    assert(symbols != NULL);
    for (unsigned table = 0; table < PROFILE_TABLES; table++)
        scratch_fini(&symbols->slots[table], symbols->budget);
    scratch_fini(&symbols->mappings, symbols->budget);
    scratch_fini(&symbols->lines, symbols->budget);
    scratch_fini(&symbols->text, symbols->budget);
}

void otlp_symbols_begin(struct otlp_symbols *symbols, struct pprof_writer *writer)
{
    assert(writer != NULL);
    symbols->writer = writer;
    symbols->generation++;
    for (unsigned table = 0; table < PROFILE_TABLES; table++)
        symbols->ids[table] = 0;
    symbols->nameless = 0;
}

/* Memory that grows by what is asked for; NULL: none, which is remembered. */
static void *room(struct otlp_symbols *symbols, struct scratch *scratch, size_t bytes)
{
    assert(scratch != NULL);
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

/* The next id of the table, for the slot. */
static uint32_t give_id(struct otlp_symbols *symbols, enum profile_table table, struct slot *slot)
{
    assert(slot != NULL);
    *slot = (struct slot){.generation = symbols->generation, .id = ++symbols->ids[table]};
    return slot->id;
}

uint32_t otlp_symbols_text(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->writer != NULL);
    struct slot *slot = slot_of(symbols, PROFILE_STRINGS, index);
    if (slot == NULL || is_written(symbols, slot))
        return slot != NULL ? slot->id : 0;
    struct slice text = profile_string_at(symbols->dictionary, index);
    if (otlp_text_valid(text) < text.size) {
        uint8_t *repaired = room(symbols, &symbols->text, text.size);
        text = repaired != NULL ? otlp_text_repaired(text, repaired) : slice_of(NULL, 0);
    }
    slot->generation = symbols->generation;
    slot->id = pprof_writer_text(symbols->writer, text);
    return slot->id;
}

static uint32_t write_function(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->generation > 0);
    struct slot *slot = slot_of(symbols, PROFILE_FUNCTIONS, index);
    if (slot == NULL || is_written(symbols, slot))
        return slot != NULL ? slot->id : 0;
    struct profile_function from = profile_function_at(symbols->dictionary, index);
    const struct pprof_function to = {
        .id = give_id(symbols, PROFILE_FUNCTIONS, slot),
        .name = otlp_symbols_text(symbols, from.name),
        .system_name = otlp_symbols_text(symbols, from.system_name),
        .filename = otlp_symbols_text(symbols, from.filename),
        .start_line = from.start_line,
    };
    pprof_writer_function(symbols->writer, &to);
    return slot->id;
}

/* What OTLP does not tell from no function, one without a name, is one in pprof: a line must have
 * one there. */
static uint32_t write_nameless(struct otlp_symbols *symbols)
{
    assert(symbols->writer != NULL);
    if (symbols->nameless == 0) {
        symbols->nameless = ++symbols->ids[PROFILE_FUNCTIONS];
        pprof_writer_function(symbols->writer, &(struct pprof_function){.id = symbols->nameless});
    }
    return symbols->nameless;
}

/* gnu before go before htlhash: what most back-ends look symbols up by. */
static unsigned build_id_rank(struct slice key)
{
    static const char *const keys[] = {"process.executable.build_id.htlhash",
                                       "process.executable.build_id.go",
                                       "process.executable.build_id.gnu"};
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (slice_equal_text(key, keys[i]))
            return i + 1;
    return 0;
}

static void set_flag(struct pprof_mapping *mapping, struct slice key, bool flag)
{
    if (slice_equal_text(key, "pprof.mapping.has_functions"))
        mapping->has_functions = flag;
    else if (slice_equal_text(key, "pprof.mapping.has_filenames"))
        mapping->has_filenames = flag;
    else if (slice_equal_text(key, "pprof.mapping.has_line_numbers"))
        mapping->has_line_numbers = flag;
    else if (slice_equal_text(key, "pprof.mapping.has_inline_frames"))
        mapping->has_inline_frames = flag;
}

static void read_mapping_attributes(struct otlp_symbols *symbols,
                                    const struct profile_indices *attributes,
                                    struct pprof_mapping *mapping)
{
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct profile_indices_reader reader = profile_indices_read(attributes);
    unsigned best = 0;
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        if (!profile_has(dictionary, PROFILE_ATTRIBUTES, index))
            continue;
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (!profile_has(dictionary, PROFILE_STRINGS, attribute.key))
            continue;
        struct slice key = profile_string_at(dictionary, attribute.key);
        struct value value = value_read(attribute.value);
        unsigned rank = build_id_rank(key);
        if (rank > best && value.type == VALUE_TEXT &&
            otlp_text_valid(value.bytes) == value.bytes.size) {
            mapping->build_id = pprof_writer_text(symbols->writer, value.bytes);
            best = rank;
        }
        if (value.type == VALUE_BOOL)
            set_flag(mapping, key, value.boolean);
    }
}

static uint32_t note_mapping(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->generation > 0);
    struct slot *slot = slot_of(symbols, PROFILE_MAPPINGS, index);
    if (slot == NULL || is_written(symbols, slot))
        return slot != NULL ? slot->id : 0;
    size_t count = symbols->ids[PROFILE_MAPPINGS] + 1;
    struct pprof_mapping *mappings = room(symbols, &symbols->mappings, count * sizeof(mappings[0]));
    if (mappings == NULL)
        return 0;
    struct profile_mapping from = profile_mapping_at(symbols->dictionary, index);
    struct pprof_mapping *to = &mappings[count - 1];
    *to = (struct pprof_mapping){
        .id = give_id(symbols, PROFILE_MAPPINGS, slot),
        .memory_start = from.memory_start,
        .memory_limit = from.memory_limit,
        .file_offset = from.file_offset,
        .filename = otlp_symbols_text(symbols, from.filename),
    };
    read_mapping_attributes(symbols, &from.attributes, to);
    return slot->id;
}

/* What the lines of a location say of its mapping. */
static void raise_flags(struct otlp_symbols *symbols, const struct pprof_location *location)
{
    assert(location->mapping <= symbols->ids[PROFILE_MAPPINGS]);
    struct pprof_mapping *mappings = symbols->mappings.memory;
    if (location->mapping == 0)
        return;
    struct pprof_mapping *mapping = &mappings[location->mapping - 1];
    mapping->has_inline_frames |= location->lines_count > 1;
    for (size_t i = 0; i < location->lines_count; i++) {
        bool is_named = location->lines[i].function != symbols->nameless;
        mapping->has_functions |= is_named;
        mapping->has_filenames |= is_named;
        mapping->has_line_numbers |= location->lines[i].line != 0;
    }
}

static bool is_folded(const struct otlp_symbols *symbols, const struct profile_indices *attributes)
{
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct profile_indices_reader reader = profile_indices_read(attributes);
    struct profile_index index;
    while (profile_indices_next(&reader, &index)) {
        if (!profile_has(dictionary, PROFILE_ATTRIBUTES, index))
            continue;
        struct profile_attribute attribute = profile_attribute_at(dictionary, index);
        if (profile_has(dictionary, PROFILE_STRINGS, attribute.key) &&
            slice_equal_text(profile_string_at(dictionary, attribute.key),
                             "pprof.location.is_folded"))
            return value_read(attribute.value).boolean;
    }
    return false;
}

static size_t write_lines(struct otlp_symbols *symbols, struct slice location)
{
    struct wire_reader reader = wire_reader_of(location);
    struct profile_line line;
    size_t count = 0;
    while (profile_next_line(&reader, &line)) {
        struct pprof_line *lines = room(symbols, &symbols->lines, (count + 1) * sizeof(lines[0]));
        if (lines == NULL)
            break;
        uint32_t function = write_function(symbols, line.function);
        lines[count++] = (struct pprof_line){
            .function = function != 0 ? function : write_nameless(symbols),
            .line = line.line,
            .column = line.column,
        };
    }
    return count;
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
        .mapping = note_mapping(symbols, from.mapping),
        .address = from.address,
        .is_folded = is_folded(symbols, &from.attributes),
        .lines_count = write_lines(symbols, from.bytes),
        .lines = NULL,
    };
    to.lines = symbols->lines.memory;
    raise_flags(symbols, &to);
    pprof_writer_location(symbols->writer, &to);
    return slot->id;
}

static uint64_t text_cost(struct otlp_symbols *symbols, struct profile_index index)
{
    const struct slot *slot = slot_of(symbols, PROFILE_STRINGS, index);
    if (slot == NULL || is_written(symbols, slot))
        return 0;
    return TEXT_BYTES_MAX + profile_string_at(symbols->dictionary, index).size;
}

static uint64_t function_cost(struct otlp_symbols *symbols, struct profile_index index)
{
    const struct slot *slot = slot_of(symbols, PROFILE_FUNCTIONS, index);
    if (slot == NULL)
        return symbols->nameless == 0 ? FUNCTION_BYTES_MAX : 0;
    if (is_written(symbols, slot))
        return 0;
    struct profile_function function = profile_function_at(symbols->dictionary, index);
    return FUNCTION_BYTES_MAX + text_cost(symbols, function.name) +
           text_cost(symbols, function.system_name) + text_cost(symbols, function.filename);
}

static bool is_bulky(const struct otlp_symbols *symbols, enum profile_table table,
                     struct profile_index index)
{
    return profile_entry_at(symbols->dictionary, table, index).size > ENTRY_BYTES_MAX;
}

/* The attributes of a mapping are small beside the rest: they count with all their bytes. */
static uint64_t mapping_cost(struct otlp_symbols *symbols, struct profile_index index)
{
    const struct slot *slot = slot_of(symbols, PROFILE_MAPPINGS, index);
    if (slot == NULL || is_written(symbols, slot))
        return 0;
    if (is_bulky(symbols, PROFILE_MAPPINGS, index))
        return OTLP_SYMBOLS_TOO_LARGE;
    const struct profile_dictionary *dictionary = symbols->dictionary;
    struct profile_mapping mapping = profile_mapping_at(dictionary, index);
    struct profile_indices_reader reader = profile_indices_read(&mapping.attributes);
    uint64_t cost = MAPPING_BYTES_MAX + text_cost(symbols, mapping.filename);
    struct profile_index attribute;
    while (profile_indices_next(&reader, &attribute))
        if (profile_has(dictionary, PROFILE_ATTRIBUTES, attribute))
            cost += TEXT_BYTES_MAX + profile_attribute_at(dictionary, attribute).value.size;
    return cost;
}

uint64_t otlp_symbols_location_cost(struct otlp_symbols *symbols, struct profile_index index)
{
    assert(symbols->writer != NULL);
    const struct slot *slot = slot_of(symbols, PROFILE_LOCATIONS, index);
    if (slot == NULL || is_written(symbols, slot))
        return 0;
    if (is_bulky(symbols, PROFILE_LOCATIONS, index))
        return OTLP_SYMBOLS_TOO_LARGE;
    struct profile_location location = profile_location_at(symbols->dictionary, index);
    struct wire_reader reader = wire_reader_of(location.bytes);
    struct profile_line line;
    uint64_t cost = LOCATION_BYTES_MAX + mapping_cost(symbols, location.mapping);
    while (profile_next_line(&reader, &line))
        cost += LINE_BYTES_MAX + function_cost(symbols, line.function);
    return cost;
}

uint64_t otlp_symbols_end_cost(const struct otlp_symbols *symbols)
{
    assert(symbols != NULL);
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
