/* SPDX-License-Identifier: Apache-2.0 */
/* pprof's symbols, labels and stacks as entries of an OTLP dictionary. Pure functions; any thread.
 */
#include "src/profiles/pprof/otlp_tables.h"

#include <assert.h>

#include "src/profiles/pprof/correlation.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof.h"

enum { MAPPING_ATTRIBUTES = 5 /* build id and four flags */ };

void otlp_tables_init(struct otlp_tables *tables, const struct pprof *pprof, struct budget *budget)
{
    assert(pprof != NULL);
    *tables = (struct otlp_tables){.pprof = pprof, .budget = budget};
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        entry_table_init(&tables->entries[i], i + 1, budget);
}

void otlp_tables_fini(struct otlp_tables *tables)
{
    assert(tables != NULL);
    struct scratch *const all[] = {&tables->locations, &tables->mappings, &tables->functions,
                                   &tables->content, &tables->repaired};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        scratch_fini(all[i], tables->budget);
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        entry_table_fini(&tables->entries[i]);
}

void *otlp_tables_room(struct otlp_tables *tables, struct scratch *scratch, size_t bytes)
{
    assert(scratch != NULL);
    void *memory = scratch_room(scratch, tables->budget, bytes);
    tables->has_failed |= memory == NULL;
    return memory;
}

static uint32_t add(struct otlp_tables *tables, enum profile_table table,
                    const struct wire_writer *content)
{
    assert(table < PROFILE_TABLES);
    return entry_table_add(&tables->entries[table], wire_written(content));
}

struct slice otlp_tables_repaired(struct otlp_tables *tables, struct slice text)
{
    assert(tables->pprof != NULL);
    if (otlp_text_valid(text) == text.size)
        return text;
    uint8_t *repaired = otlp_tables_room(tables, &tables->repaired, text.size);
    return repaired != NULL ? otlp_text_repaired(text, repaired) : slice_of(NULL, 0);
}

uint32_t otlp_tables_text(struct otlp_tables *tables, struct slice text)
{
    assert(tables->pprof != NULL);
    text = otlp_tables_repaired(tables, text);
    return entry_table_add(&tables->entries[PROFILE_STRINGS], text);
}

struct slice otlp_tables_source_text(const struct otlp_tables *tables, uint32_t index)
{
    assert(index < tables->pprof->strings_count);
    return tables->pprof->strings[index];
}

uint32_t otlp_tables_text_at(struct otlp_tables *tables, uint32_t index)
{
    return otlp_tables_text(tables, otlp_tables_source_text(tables, index));
}

void otlp_put(struct wire_writer *writer, uint32_t number, uint64_t value)
{
    assert(writer != NULL);
    assert(number > 0);
    if (value != 0)
        wire_write_number(writer, number, value);
}

void otlp_put_indices(struct wire_writer *writer, uint32_t number, const uint32_t *indices,
                      size_t count)
{
    assert(indices != NULL || count == 0);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += wire_varint_size(indices[i]);
    if (count > 0)
        wire_write_header(writer, number, bytes);
    for (size_t i = 0; i < count; i++)
        wire_write_varint(writer, indices[i]);
}

uint32_t otlp_tables_attribute(struct otlp_tables *tables, uint32_t key, struct slice value,
                               uint32_t unit)
{
    assert(value.data != NULL || value.size == 0);
    size_t bytes = 2 * OTLP_NUMBER_BYTES_MAX + OTLP_HEADER_BYTES_MAX + value.size;
    void *memory = otlp_tables_room(tables, &tables->content, bytes);
    if (memory == NULL)
        return 0;
    struct wire_writer writer = wire_writer_of(memory, bytes);
    otlp_put(&writer, 1, key);
    wire_write_bytes(&writer, 2, value);
    otlp_put(&writer, 3, unit);
    return add(tables, PROFILE_ATTRIBUTES, &writer);
}

uint32_t otlp_tables_text_attribute(struct otlp_tables *tables, const char *key, struct slice text)
{
    assert(key != NULL);
    struct byte_run value = {.size = 0};
    tables->has_failed |= !byte_run_append_message(&value, tables->budget, VALUE_TEXT_FIELD, text);
    uint32_t index = otlp_tables_attribute(tables, otlp_tables_text(tables, slice_of_text(key)),
                                           byte_run_slice(&value), 0);
    scratch_fini(&value.scratch, tables->budget);
    return index;
}

static uint32_t add_flag_attribute(struct otlp_tables *tables, const char *key)
{
    static const uint8_t is_true[] = {VALUE_BOOL_FIELD << 3, 1};
    return otlp_tables_attribute(tables, otlp_tables_text(tables, slice_of_text(key)),
                                 slice_of(is_true, sizeof(is_true)), 0);
}

/* pprof does not say whose build id it is. */
static const char *build_id_key(struct slice build_id)
{
    bool is_hex = true;
    for (size_t i = 0; i < build_id.size; i++) {
        uint8_t byte = build_id.data[i];
        if (byte == '/')
            return "process.executable.build_id.go";
        is_hex &= (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
    }
    return is_hex && build_id.size == 32 ? "process.executable.build_id.htlhash"
                                         : "process.executable.build_id.gnu";
}

static size_t mapping_attributes(struct otlp_tables *tables, const struct pprof_mapping *mapping,
                                 uint32_t indices[MAPPING_ATTRIBUTES])
{
    assert(mapping->build_id < tables->pprof->strings_count);
    struct slice build_id = otlp_tables_source_text(tables, mapping->build_id);
    size_t count = 0;
    if (build_id.size > 0 && otlp_text_valid(build_id) == build_id.size)
        indices[count++] = otlp_tables_text_attribute(tables, build_id_key(build_id), build_id);
    if (mapping->has_functions)
        indices[count++] = add_flag_attribute(tables, "pprof.mapping.has_functions");
    if (mapping->has_filenames)
        indices[count++] = add_flag_attribute(tables, "pprof.mapping.has_filenames");
    if (mapping->has_line_numbers)
        indices[count++] = add_flag_attribute(tables, "pprof.mapping.has_line_numbers");
    if (mapping->has_inline_frames)
        indices[count++] = add_flag_attribute(tables, "pprof.mapping.has_inline_frames");
    return count;
}

static uint32_t add_mapping(struct otlp_tables *tables, const struct pprof_mapping *mapping)
{
    uint8_t memory[OTLP_SMALL_BYTES_MAX];
    uint32_t attributes[MAPPING_ATTRIBUTES];
    struct wire_writer writer = wire_writer_of(memory, sizeof(memory));
    otlp_put(&writer, 1, mapping->memory_start);
    otlp_put(&writer, 2, mapping->memory_limit);
    otlp_put(&writer, 3, mapping->file_offset);
    otlp_put(&writer, 4, otlp_tables_text_at(tables, mapping->filename));
    size_t count = mapping_attributes(tables, mapping, attributes);
    otlp_put_indices(&writer, 5, attributes, count);
    return add(tables, PROFILE_MAPPINGS, &writer);
}

static uint32_t add_function(struct otlp_tables *tables, const struct pprof_function *function)
{
    uint8_t memory[OTLP_SMALL_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(memory, sizeof(memory));
    otlp_put(&writer, 1, otlp_tables_text_at(tables, function->name));
    otlp_put(&writer, 2, otlp_tables_text_at(tables, function->system_name));
    otlp_put(&writer, 3, otlp_tables_text_at(tables, function->filename));
    otlp_put(&writer, 4, (uint64_t)function->start_line);
    return add(tables, PROFILE_FUNCTIONS, &writer);
}

static uint32_t at(const struct scratch *indices, uint32_t place)
{
    return place > 0 ? ((const uint32_t *)indices->memory)[place - 1] : 0;
}

static void put_lines(struct otlp_tables *tables, struct wire_writer *writer,
                      const struct pprof_location *location)
{
    for (size_t i = 0; i < location->lines_count; i++) {
        uint8_t memory[3 * OTLP_NUMBER_BYTES_MAX];
        struct wire_writer line = wire_writer_of(memory, sizeof(memory));
        otlp_put(&line, 1, at(&tables->functions, location->lines[i].function));
        otlp_put(&line, 2, (uint64_t)location->lines[i].line);
        otlp_put(&line, 3, (uint64_t)location->lines[i].column);
        wire_write_bytes(writer, 3, wire_written(&line));
    }
}

static uint32_t add_location(struct otlp_tables *tables, const struct pprof_location *location)
{
    enum { LINE_BYTES_MAX = OTLP_HEADER_BYTES_MAX + 3 * OTLP_NUMBER_BYTES_MAX };
    uint32_t folded = 0;
    if (location->is_folded)
        folded = add_flag_attribute(tables, "pprof.location.is_folded");
    size_t bytes = OTLP_SMALL_BYTES_MAX + location->lines_count * LINE_BYTES_MAX;
    void *memory = otlp_tables_room(tables, &tables->content, bytes);
    if (memory == NULL)
        return 0;
    struct wire_writer writer = wire_writer_of(memory, bytes);
    otlp_put(&writer, 1, at(&tables->mappings, location->mapping));
    otlp_put(&writer, 2, location->address);
    put_lines(tables, &writer, location);
    otlp_put_indices(&writer, 4, &folded, location->is_folded);
    return add(tables, PROFILE_LOCATIONS, &writer);
}

void otlp_tables_symbols(struct otlp_tables *tables)
{
    assert(tables->locations.memory == NULL);
    const struct pprof *pprof = tables->pprof;
    size_t bytes = sizeof(uint32_t);
    uint32_t *mappings =
        otlp_tables_room(tables, &tables->mappings, (pprof->mappings_count + 1) * bytes);
    uint32_t *functions =
        otlp_tables_room(tables, &tables->functions, (pprof->functions_count + 1) * bytes);
    uint32_t *locations =
        otlp_tables_room(tables, &tables->locations, (pprof->locations_count + 1) * bytes);
    if (tables->has_failed)
        return;
    for (size_t i = 0; i < pprof->mappings_count; i++)
        mappings[i] = add_mapping(tables, &pprof->mappings[i]);
    for (size_t i = 0; i < pprof->functions_count; i++)
        functions[i] = add_function(tables, &pprof->functions[i]);
    for (size_t i = 0; i < pprof->locations_count; i++)
        locations[i] = add_location(tables, &pprof->locations[i]);
}

uint32_t otlp_tables_stack(struct otlp_tables *tables, const struct pprof_sample *sample)
{
    assert(sample != NULL);
    size_t bytes = OTLP_HEADER_BYTES_MAX + sample->locations_count * OTLP_INDEX_BYTES_MAX;
    size_t content = 0;
    void *memory = otlp_tables_room(tables, &tables->content, bytes);
    if (memory == NULL || sample->locations_count == 0)
        return 0;
    struct wire_writer writer = wire_writer_of(memory, bytes);
    for (size_t i = 0; i < sample->locations_count; i++)
        content += wire_varint_size(at(&tables->locations, sample->locations[i]));
    wire_write_header(&writer, 1, content);
    for (size_t i = 0; i < sample->locations_count; i++)
        wire_write_varint(&writer, at(&tables->locations, sample->locations[i]));
    return add(tables, PROFILE_STACKS, &writer);
}

uint32_t otlp_tables_link(struct otlp_tables *tables, const struct correlation *correlation)
{
    assert(correlation->has_trace);
    assert(correlation->has_span);
    uint8_t memory[OTLP_SMALL_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(memory, sizeof(memory));
    wire_write_bytes(&writer, 1, slice_of(correlation->trace_id, sizeof(correlation->trace_id)));
    wire_write_bytes(&writer, 2, slice_of(correlation->span_id, sizeof(correlation->span_id)));
    return add(tables, PROFILE_LINKS, &writer);
}
