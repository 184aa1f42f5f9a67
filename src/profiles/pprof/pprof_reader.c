/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pprof bytes into tables, in two passes: one counts, one fills. Fields may come in any
 * order, so that references are resolved at the end. Pure functions; any thread. */
#include "src/profiles/pprof/pprof_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/random.h"
#include "src/codec/gzip.h"
#include "src/otlp/wire.h"

/* How a scalar field is stored. */
enum scalar { SCALAR_NUMBER, SCALAR_TEXT, SCALAR_FLAG, SCALARS_END };

struct scalar_row {
    uint8_t number; /* of the field */
    uint8_t kind;   /* enum scalar */
    uint16_t offset;
};

#define ROW(field, stored_as, owner, member)                                                       \
    {                                                                                              \
        .number = (field), .kind = (stored_as), .offset = offsetof(owner, member)                  \
    }
#define ROWS_END                                                                                   \
    {                                                                                              \
        .kind = SCALARS_END                                                                        \
    }

/* Places by id: open addressing. */
struct id_map {
    uint64_t *ids; /* 0: free */
    uint32_t *places;
    size_t mask;
    size_t in_order; /* number of ids that are 1, 2, 3 …: all of them in nearly every file */
    uint64_t seed;   /* so that clients cannot choose ids that collide */
};

struct reading {
    struct arena *arena;
    struct pprof *pprof;
    struct error *error;
    size_t counts[PPROF_FIELDS]; /* of each field of the profile */
    struct id_map mapping_ids;
    struct id_map location_ids;
    struct id_map function_ids;
    uint64_t *ids; /* scratch: the location ids of one sample */
    size_t ids_capacity;
};

/* Elements of a repeated number, packed or one by one. */
struct numbers {
    size_t count;
    uint64_t *items; /* NULL: only counts */
};

static const struct scalar_row value_type_rows[] = {
    ROW(1, SCALAR_TEXT, struct pprof_value_type, type),
    ROW(2, SCALAR_TEXT, struct pprof_value_type, unit),
    ROWS_END,
};

static const struct scalar_row label_rows[] = {
    ROW(1, SCALAR_TEXT, struct pprof_label, key),
    ROW(2, SCALAR_TEXT, struct pprof_label, text),
    ROW(3, SCALAR_NUMBER, struct pprof_label, number),
    ROW(4, SCALAR_TEXT, struct pprof_label, unit),
    ROWS_END,
};

static const struct scalar_row mapping_rows[] = {
    ROW(1, SCALAR_NUMBER, struct pprof_mapping, id),
    ROW(2, SCALAR_NUMBER, struct pprof_mapping, memory_start),
    ROW(3, SCALAR_NUMBER, struct pprof_mapping, memory_limit),
    ROW(4, SCALAR_NUMBER, struct pprof_mapping, file_offset),
    ROW(5, SCALAR_TEXT, struct pprof_mapping, filename),
    ROW(6, SCALAR_TEXT, struct pprof_mapping, build_id),
    ROW(7, SCALAR_FLAG, struct pprof_mapping, has_functions),
    ROW(8, SCALAR_FLAG, struct pprof_mapping, has_filenames),
    ROW(9, SCALAR_FLAG, struct pprof_mapping, has_line_numbers),
    ROW(10, SCALAR_FLAG, struct pprof_mapping, has_inline_frames),
    ROWS_END,
};

/* A location and a line with ids, as they are encoded. */
struct raw_location {
    uint64_t id;
    uint64_t mapping;
    uint64_t address;
    bool is_folded;
};
static const struct scalar_row location_rows[] = {
    ROW(1, SCALAR_NUMBER, struct raw_location, id),
    ROW(2, SCALAR_NUMBER, struct raw_location, mapping),
    ROW(3, SCALAR_NUMBER, struct raw_location, address),
    ROW(5, SCALAR_FLAG, struct raw_location, is_folded),
    ROWS_END,
};

struct raw_line {
    uint64_t function;
    int64_t line;
    int64_t column;
};
static const struct scalar_row line_rows[] = {
    ROW(1, SCALAR_NUMBER, struct raw_line, function),
    ROW(2, SCALAR_NUMBER, struct raw_line, line),
    ROW(3, SCALAR_NUMBER, struct raw_line, column),
    ROWS_END,
};

static const struct scalar_row function_rows[] = {
    ROW(1, SCALAR_NUMBER, struct pprof_function, id),
    ROW(2, SCALAR_TEXT, struct pprof_function, name),
    ROW(3, SCALAR_TEXT, struct pprof_function, system_name),
    ROW(4, SCALAR_TEXT, struct pprof_function, filename),
    ROW(5, SCALAR_NUMBER, struct pprof_function, start_line),
    ROWS_END,
};

static const struct scalar_row profile_rows[] = {
    ROW(PPROF_DROP_FRAMES, SCALAR_TEXT, struct pprof, drop_frames),
    ROW(PPROF_KEEP_FRAMES, SCALAR_TEXT, struct pprof, keep_frames),
    ROW(PPROF_TIME, SCALAR_NUMBER, struct pprof, time_ns),
    ROW(PPROF_DURATION, SCALAR_NUMBER, struct pprof, duration_ns),
    ROW(PPROF_PERIOD, SCALAR_NUMBER, struct pprof, period),
    ROW(PPROF_DEFAULT_SAMPLE_TYPE, SCALAR_TEXT, struct pprof, default_sample_type),
    ROW(PPROF_DOC_URL, SCALAR_TEXT, struct pprof, doc_url),
    ROWS_END,
};

/* count elements of size bytes, zeroed; NULL with the error set when the arena is full. */
static void *take(struct reading *reading, size_t count, size_t size)
{
    void *room = count <= SIZE_MAX / size ? arena_try_alloc(reading->arena, count * size) : NULL;
    if (room == NULL)
        error_set(reading->error, "the profile needs more memory than is allowed");
    else
        memset(room, 0, count * size);
    return room;
}

/* Reports the reader's failure. Returns false. */
static bool malformed(struct reading *reading, const char *what, const struct wire_reader *reader)
{
    return error_set(reading->error, "%s: %s; this is not a pprof profile, or it is damaged", what,
                     reader->failure);
}

/* Reads one field of a message whose scalars rows describe; other fields are ignored. */
static bool read_scalar(struct reading *reading, const struct wire_field *field,
                        const struct scalar_row *rows, void *to)
{
    const struct scalar_row *row = rows;
    while (row->kind != SCALARS_END && row->number != field->number)
        row++;
    if (row->kind == SCALARS_END)
        return true;
    if (field->type != WIRE_VARINT)
        return error_set(reading->error, "field %u is not a number", field->number);
    uint64_t number = field->number_value;
    uint8_t *at = (uint8_t *)to + row->offset;
    if (row->kind == SCALAR_NUMBER) {
        memcpy(at, &number, sizeof(number));
        return true;
    }
    if (row->kind == SCALAR_FLAG) {
        bool flag = number != 0;
        memcpy(at, &flag, sizeof(flag));
        return true;
    }
    uint32_t index = (uint32_t)number;
    if (number >= reading->pprof->strings_count)
        return error_set(reading->error,
                         "string %" PRId64 " is used, but the string table has only %zu",
                         (int64_t)number, reading->pprof->strings_count);
    memcpy(at, &index, sizeof(index));
    return true;
}

static bool read_scalars(struct reading *reading, struct slice message,
                         const struct scalar_row *rows, void *to)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (!read_scalar(reading, &field, rows, to))
            return false;
    return reader.failure == NULL || malformed(reading, "a part", &reader);
}

static bool ids_open(struct reading *reading, struct id_map *map, size_t count)
{
    size_t slots = 8;
    while (slots < 2 * count)
        slots *= 2;
    map->mask = slots - 1;
    map->seed = (uint64_t)(random_uniform() * 9007199254740992.0) << 11;
    map->ids = take(reading, slots, sizeof(map->ids[0]));
    map->places = take(reading, slots, sizeof(map->places[0]));
    return map->ids != NULL && map->places != NULL;
}

static size_t ids_slot(const struct id_map *map, uint64_t id)
{
    uint64_t mixed = (id ^ map->seed) * 0xff51afd7ed558ccdu;
    mixed = (mixed ^ mixed >> 32) * 0xc4ceb9fe1a85ec53u;
    size_t slot = (size_t)(mixed >> 32) & map->mask;
    while (map->ids[slot] != 0 && map->ids[slot] != id)
        slot = (slot + 1) & map->mask;
    return slot;
}

static bool ids_add(struct reading *reading, struct id_map *map, uint64_t id, size_t place)
{
    if (id == 0)
        return error_set(reading->error, "id 0, which means none");
    size_t slot = ids_slot(map, id);
    if (map->ids[slot] == id)
        return error_set(reading->error, "id %" PRIu64 " twice", id);
    map->ids[slot] = id;
    map->places[slot] = (uint32_t)place;
    map->in_order += id == place + 1 && map->in_order == place;
    return true;
}

/* Finds the place + 1 of an id, 0 for id 0. */
static bool ids_find(struct reading *reading, const struct id_map *map, uint64_t id,
                     uint32_t *ret_place)
{
    if (id <= map->in_order) {
        *ret_place = (uint32_t)id;
        return true;
    }
    size_t slot = ids_slot(map, id);
    if (map->ids[slot] != id)
        return error_set(reading->error, "id %" PRIu64 " is used but not defined", id);
    *ret_place = map->places[slot] + 1;
    return true;
}

static bool read_numbers(struct reading *reading, const struct wire_field *field,
                         struct numbers *numbers)
{
    if (field->type == WIRE_VARINT) {
        if (numbers->items != NULL)
            numbers->items[numbers->count] = field->number_value;
        numbers->count++;
        return true;
    }
    if (field->type != WIRE_BYTES)
        return error_set(reading->error, "field %u does not hold numbers", field->number);
    struct wire_reader reader = wire_reader_of(field->bytes);
    while (reader.at < reader.end) {
        uint64_t number = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
        if (reader.failure != NULL)
            return malformed(reading, "a list of numbers", &reader);
        if (numbers->items != NULL)
            numbers->items[numbers->count] = number;
        numbers->count++;
    }
    return true;
}

/* First pass: counts everything, checks the top level, reads the strings and makes room for the
 * other tables. */
static bool open_tables(struct reading *reading, struct slice bytes)
{
    struct pprof *pprof = reading->pprof;
    size_t *counts = reading->counts;
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number >= PPROF_FIELDS)
            continue;
        bool is_message = (field.number >= PPROF_SAMPLE_TYPE && field.number <= PPROF_STRING) ||
                          field.number == PPROF_PERIOD_TYPE;
        if (is_message && field.type != WIRE_BYTES)
            return error_set(reading->error, "field %u of the profile has the wrong type",
                             field.number);
        size_t count = 1;
        if (field.number == PPROF_COMMENT && field.type == WIRE_BYTES) { /* packed varints */
            count = 0;
            for (size_t i = 0; i < field.bytes.size; i++)
                count += field.bytes.data[i] < 0x80;
        }
        counts[field.number] += count;
    }
    for (size_t i = 0; i < PPROF_FIELDS; i++)
        if (counts[i] >= INT32_MAX)
            return error_set(reading->error, "the profile has too many entries");
    if (reader.failure != NULL)
        return malformed(reading, "the profile", &reader);

    pprof->strings = take(reading, counts[PPROF_STRING] + 1, sizeof(pprof->strings[0]));
    if (pprof->strings == NULL)
        return false;
    reader = wire_reader_of(bytes);
    while (wire_read_field(&reader, &field))
        if (field.number == PPROF_STRING)
            pprof->strings[pprof->strings_count++] = field.bytes;
    if (pprof->strings_count == 0) /* counts as a table of one empty string, not of a NULL one */
        pprof->strings[pprof->strings_count++] = slice_of_text("");
    if (pprof->strings[0].size > 0)
        return error_set(reading->error, "the first string of the string table is not empty");

    pprof->sample_types = take(reading, counts[PPROF_SAMPLE_TYPE], sizeof(pprof->sample_types[0]));
    pprof->samples = take(reading, counts[PPROF_SAMPLE], sizeof(pprof->samples[0]));
    pprof->mappings = take(reading, counts[PPROF_MAPPING], sizeof(pprof->mappings[0]));
    pprof->locations = take(reading, counts[PPROF_LOCATION], sizeof(pprof->locations[0]));
    pprof->functions = take(reading, counts[PPROF_FUNCTION], sizeof(pprof->functions[0]));
    pprof->comments = take(reading, counts[PPROF_COMMENT], sizeof(pprof->comments[0]));
    return pprof->sample_types != NULL && pprof->samples != NULL && pprof->mappings != NULL &&
           pprof->locations != NULL && pprof->functions != NULL && pprof->comments != NULL &&
           ids_open(reading, &reading->mapping_ids, counts[PPROF_MAPPING]) &&
           ids_open(reading, &reading->location_ids, counts[PPROF_LOCATION]) &&
           ids_open(reading, &reading->function_ids, counts[PPROF_FUNCTION]);
}

/* Second pass: reads what refers to nothing but strings. */
static bool read_plain(struct reading *reading, const struct wire_field *field)
{
    struct pprof *pprof = reading->pprof;
    switch (field->number) {
    case PPROF_SAMPLE_TYPE:
        return read_scalars(reading, field->bytes, value_type_rows,
                            &pprof->sample_types[pprof->sample_types_count++]);
    case PPROF_PERIOD_TYPE:
        pprof->has_period_type = true;
        return read_scalars(reading, field->bytes, value_type_rows, &pprof->period_type);
    case PPROF_MAPPING: {
        struct pprof_mapping *mapping = &pprof->mappings[pprof->mappings_count];
        return (read_scalars(reading, field->bytes, mapping_rows, mapping) &&
                ids_add(reading, &reading->mapping_ids, mapping->id, pprof->mappings_count++)) ||
               error_prefix(reading->error, "a mapping");
    }
    case PPROF_FUNCTION: {
        struct pprof_function *function = &pprof->functions[pprof->functions_count];
        return (read_scalars(reading, field->bytes, function_rows, function) &&
                ids_add(reading, &reading->function_ids, function->id, pprof->functions_count++)) ||
               error_prefix(reading->error, "a function");
    }
    case PPROF_COMMENT: {
        struct numbers numbers = {.count = 0};
        if (!read_numbers(reading, field, &numbers))
            return false;
        numbers.items = take(reading, numbers.count + 1, sizeof(numbers.items[0]));
        numbers.count = 0;
        if (numbers.items == NULL || !read_numbers(reading, field, &numbers))
            return false;
        for (size_t i = 0; i < numbers.count; i++) {
            if (numbers.items[i] >= pprof->strings_count)
                return error_set(reading->error, "a comment is not in the string table");
            pprof->comments[pprof->comments_count++] = (uint32_t)numbers.items[i];
        }
        return true;
    }
    default:
        return read_scalar(reading, field, profile_rows, pprof);
    }
}

static bool add_location(struct reading *reading, struct slice message)
{
    struct pprof *pprof = reading->pprof;
    struct pprof_location *location = &pprof->locations[pprof->locations_count];
    struct raw_location raw = {.id = 0};
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    assert(pprof->locations_count < reading->counts[PPROF_LOCATION]);
    while (wire_read_field(&reader, &field)) {
        if (field.number == 4 && field.type != WIRE_BYTES)
            return error_set(reading->error, "a line is not a message");
        location->lines_count += field.number == 4;
    }
    struct pprof_line *lines = take(reading, location->lines_count, sizeof(lines[0]));
    if (lines == NULL || !read_scalars(reading, message, location_rows, &raw) ||
        !ids_add(reading, &reading->location_ids, raw.id, pprof->locations_count))
        return false;
    struct pprof_line *line = lines;
    reader = wire_reader_of(message);
    while (wire_read_field(&reader, &field)) {
        struct raw_line raw_line = {.function = 0};
        if (field.number != 4)
            continue;
        if (!read_scalars(reading, field.bytes, line_rows, &raw_line) ||
            !ids_find(reading, &reading->function_ids, raw_line.function, &line->function))
            return error_prefix(reading->error, "function");
        line->line = raw_line.line;
        line->column = raw_line.column;
        line++;
    }
    *location = (struct pprof_location){
        .id = raw.id,
        .address = raw.address,
        .is_folded = raw.is_folded,
        .lines_count = location->lines_count,
        .lines = lines,
    };
    pprof->locations_count++;
    return ids_find(reading, &reading->mapping_ids, raw.mapping, &location->mapping) ||
           error_prefix(reading->error, "mapping");
}

/* The parts of a sample; counted first, then filled. */
struct sample_parts {
    struct numbers locations;
    struct numbers values;
    struct pprof_label *labels; /* NULL: only counts */
    size_t labels_count;
};

static bool read_sample_parts(struct reading *reading, struct slice message,
                              struct sample_parts *parts)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    bool is_fine = true;
    while (is_fine && wire_read_field(&reader, &field)) {
        if (field.number == 1)
            is_fine = read_numbers(reading, &field, &parts->locations);
        else if (field.number == 2)
            is_fine = read_numbers(reading, &field, &parts->values);
        else if (field.number == 3 && field.type != WIRE_BYTES)
            is_fine = error_set(reading->error, "a label is not a message");
        else if (field.number == 3 && parts->labels == NULL)
            parts->labels_count++;
        else if (field.number == 3)
            is_fine = read_scalars(reading, field.bytes, label_rows,
                                   &parts->labels[parts->labels_count++]);
    }
    return is_fine && (reader.failure == NULL || malformed(reading, "it", &reader));
}

static bool add_sample(struct reading *reading, struct slice message)
{
    struct pprof *pprof = reading->pprof;
    struct sample_parts parts = {.labels = NULL};
    assert(pprof->samples_count < reading->counts[PPROF_SAMPLE]);
    if (!read_sample_parts(reading, message, &parts))
        return false;
    if (parts.values.count != pprof->sample_types_count)
        return error_set(reading->error, "%zu values for %zu sample types", parts.values.count,
                         pprof->sample_types_count);
    if (parts.labels_count > PPROF_LABELS_MAX)
        return error_set(reading->error, "%zu labels, expected at most %d", parts.labels_count,
                         PPROF_LABELS_MAX);
    uint32_t *places = take(reading, parts.locations.count, sizeof(places[0]));
    parts.values.items = take(reading, parts.values.count, sizeof(uint64_t));
    parts.labels = take(reading, parts.labels_count, sizeof(parts.labels[0]));
    if (places == NULL || parts.values.items == NULL || parts.labels == NULL)
        return false;
    if (reading->ids == NULL || parts.locations.count > reading->ids_capacity) {
        size_t capacity = reading->ids_capacity > 0 ? reading->ids_capacity : 64;
        while (capacity < parts.locations.count)
            capacity *= 2;
        reading->ids = take(reading, capacity, sizeof(reading->ids[0]));
        reading->ids_capacity = capacity;
        if (reading->ids == NULL)
            return false;
    }
    parts.locations.items = reading->ids;
    parts.locations.count = parts.values.count = parts.labels_count = 0;
    if (!read_sample_parts(reading, message, &parts))
        return false;
    for (size_t i = 0; i < parts.locations.count; i++) {
        if (!ids_find(reading, &reading->location_ids, parts.locations.items[i], &places[i]))
            return error_prefix(reading->error, "location");
        if (places[i] == 0)
            return error_set(reading->error, "location id 0, which means none");
    }
    pprof->samples[pprof->samples_count++] = (struct pprof_sample){
        .locations = places,
        .locations_count = parts.locations.count,
        .values = (const int64_t *)parts.values.items,
        .labels = parts.labels,
        .labels_count = parts.labels_count,
    };
    return true;
}

/* Reads all messages of one kind. */
static bool read_messages(struct reading *reading, struct slice bytes, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    size_t place = 0;
    while (wire_read_field(&reader, &field)) {
        if (field.number != number)
            continue;
        place++;
        if (number == PPROF_LOCATION && !add_location(reading, field.bytes))
            return error_prefix(reading->error, "location %zu", place);
        if (number == PPROF_SAMPLE && !add_sample(reading, field.bytes))
            return error_prefix(reading->error, "sample %zu", place);
    }
    assert(reader.failure == NULL);
    return true;
}

bool pprof_read(struct arena *arena, struct slice bytes, struct pprof *ret_pprof,
                struct error *error)
{
    struct pprof pprof = {.strings = NULL};
    struct reading reading = {.arena = arena, .pprof = &pprof, .error = error};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    if (!open_tables(&reading, bytes))
        return false;
    while (wire_read_field(&reader, &field))
        if (!read_plain(&reading, &field))
            return false;
    if (!read_messages(&reading, bytes, PPROF_LOCATION) ||
        !read_messages(&reading, bytes, PPROF_SAMPLE))
        return false;
    *ret_pprof = pprof;
    return true;
}

bool pprof_unpack(struct gzip *gzip, struct budget *budget, struct slice bytes, uint64_t bytes_max,
                  struct buffer **ret_inflated, struct error *error)
{
    *ret_inflated = NULL;
    if (bytes.size < 2 || bytes.data[0] != 0x1f || bytes.data[1] != 0x8b)
        return bytes.size <= bytes_max ||
               error_set(error, "the profile has more than %" PRIu64 " bytes", bytes_max);
    switch (gzip_inflate(gzip, budget, bytes.data, bytes.size, bytes_max, ret_inflated)) {
    case GZIP_OK:
        return true;
    case GZIP_TOO_LARGE:
        return error_set(error, "the profile has more than %" PRIu64 " bytes once inflated",
                         bytes_max);
    case GZIP_NO_BUDGET:
        return error_set(error, "no memory left in the budget to inflate the profile");
    case GZIP_MALFORMED:
    default:
        return error_set(error, "the profile is broken gzip");
    }
}
