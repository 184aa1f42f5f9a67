/* SPDX-License-Identifier: Apache-2.0 */
/* pprof bytes into tables, in two passes: one counts, one fills. Fields may come in any order, so
 * that references are resolved at the end. Pure functions; any thread. */
#include "src/profiles/pprof/pprof_reader.h"

#include <assert.h>
#include <inttypes.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/codec/gzip.h"
#include "src/otlp/wire.h"
#include "src/profiles/pprof/pprof_reading.h"

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

/* A location and a line as they stand there: with ids. */
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

static bool is_message_field(uint32_t number)
{
    return (number >= PPROF_SAMPLE_TYPE && number <= PPROF_STRING) || number == PPROF_PERIOD_TYPE;
}

static size_t count_varints(struct slice packed)
{
    size_t count = 0;
    for (size_t i = 0; i < packed.size; i++)
        count += packed.data[i] < 0x80;
    return count;
}

/* First pass: how much there is of everything, and that the top level is sound. */
static bool count_fields(struct reading *reading, struct slice bytes)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number >= PPROF_FIELDS)
            continue;
        if (is_message_field(field.number) && field.type != WIRE_BYTES)
            return error_set(reading->error, "field %u of the profile has the wrong type",
                             field.number);
        size_t count = 1;
        if (field.number == PPROF_COMMENT && field.type == WIRE_BYTES)
            count = count_varints(field.bytes);
        reading->counts[field.number] += count;
    }
    for (size_t i = 0; i < PPROF_FIELDS; i++)
        if (reading->counts[i] >= INT32_MAX)
            return error_set(reading->error, "the profile has too many entries");
    return reader.failure == NULL || reading_malformed(reading, "the profile", &reader);
}

static bool read_strings(struct reading *reading, struct slice bytes)
{
    assert(reading->pprof->strings_count == 0);
    struct pprof *pprof = reading->pprof;
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    pprof->strings =
        reading_take(reading, reading->counts[PPROF_STRING] + 1, sizeof(pprof->strings[0]));
    if (pprof->strings == NULL)
        return false;
    while (wire_read_field(&reader, &field))
        if (field.number == PPROF_STRING)
            pprof->strings[pprof->strings_count++] = field.bytes;
    if (pprof->strings_count == 0) /* as good as a table of one empty text */
        pprof->strings_count = 1;
    if (pprof->strings[0].size > 0)
        return error_set(reading->error, "the first text of the string table is not empty");
    return true;
}

static bool add_comments(struct reading *reading, const struct wire_field *field)
{
    struct pprof *pprof = reading->pprof;
    struct numbers numbers = {.count = 0};
    if (!read_numbers(reading, field, &numbers))
        return false;
    numbers.items = reading_take(reading, numbers.count + 1, sizeof(numbers.items[0]));
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

static bool add_mapping(struct reading *reading, struct slice message)
{
    assert(reading->pprof->mappings_count < reading->counts[PPROF_MAPPING]);
    struct pprof *pprof = reading->pprof;
    struct pprof_mapping *mapping = &pprof->mappings[pprof->mappings_count];
    return read_scalars(reading, message, mapping_rows, mapping) &&
           ids_add(reading, &reading->mapping_ids, mapping->id, pprof->mappings_count++);
}

static bool add_function(struct reading *reading, struct slice message)
{
    assert(reading->pprof->functions_count < reading->counts[PPROF_FUNCTION]);
    struct pprof *pprof = reading->pprof;
    struct pprof_function *function = &pprof->functions[pprof->functions_count];
    return read_scalars(reading, message, function_rows, function) &&
           ids_add(reading, &reading->function_ids, function->id, pprof->functions_count++);
}

static bool tables_take(struct reading *reading)
{
    assert(reading->pprof->samples == NULL);
    struct pprof *pprof = reading->pprof;
    const size_t *counts = reading->counts;
    pprof->sample_types =
        reading_take(reading, counts[PPROF_SAMPLE_TYPE], sizeof(pprof->sample_types[0]));
    pprof->samples = reading_take(reading, counts[PPROF_SAMPLE], sizeof(pprof->samples[0]));
    pprof->mappings = reading_take(reading, counts[PPROF_MAPPING], sizeof(pprof->mappings[0]));
    pprof->locations = reading_take(reading, counts[PPROF_LOCATION], sizeof(pprof->locations[0]));
    pprof->functions = reading_take(reading, counts[PPROF_FUNCTION], sizeof(pprof->functions[0]));
    pprof->comments = reading_take(reading, counts[PPROF_COMMENT], sizeof(pprof->comments[0]));
    return pprof->sample_types != NULL && pprof->samples != NULL && pprof->mappings != NULL &&
           pprof->locations != NULL && pprof->functions != NULL && pprof->comments != NULL &&
           ids_open(reading, &reading->mapping_ids, counts[PPROF_MAPPING]) &&
           ids_open(reading, &reading->location_ids, counts[PPROF_LOCATION]) &&
           ids_open(reading, &reading->function_ids, counts[PPROF_FUNCTION]);
}

/* Second pass: everything that refers to nothing but texts. */
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
    case PPROF_MAPPING:
        return add_mapping(reading, field->bytes) || error_prefix(reading->error, "a mapping");
    case PPROF_FUNCTION:
        return add_function(reading, field->bytes) || error_prefix(reading->error, "a function");
    case PPROF_COMMENT:
        return add_comments(reading, field);
    default:
        return read_scalar(reading, field, profile_rows, pprof);
    }
}

static bool add_lines(struct reading *reading, struct slice message, struct pprof_line *lines)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        struct raw_line raw = {.function = 0};
        if (field.number != 4)
            continue;
        if (!read_scalars(reading, field.bytes, line_rows, &raw) ||
            !ids_find(reading, &reading->function_ids, raw.function, &lines->function))
            return error_prefix(reading->error, "function");
        lines->line = raw.line;
        lines->column = raw.column;
        lines++;
    }
    return true;
}

static bool add_location(struct reading *reading, struct slice message)
{
    assert(reading->pprof->locations_count < reading->counts[PPROF_LOCATION]);
    struct pprof *pprof = reading->pprof;
    struct pprof_location *location = &pprof->locations[pprof->locations_count];
    struct raw_location raw = {.id = 0};
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number == 4 && field.type != WIRE_BYTES)
            return error_set(reading->error, "a line is no message");
        location->lines_count += field.number == 4;
    }
    struct pprof_line *lines = reading_take(reading, location->lines_count, sizeof(lines[0]));
    if (lines == NULL || !read_scalars(reading, message, location_rows, &raw) ||
        !ids_add(reading, &reading->location_ids, raw.id, pprof->locations_count) ||
        !add_lines(reading, message, lines))
        return false;
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

/* What a sample holds; counted first, then filled. */
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
            is_fine = error_set(reading->error, "a label is no message");
        else if (field.number == 3 && parts->labels == NULL)
            parts->labels_count++;
        else if (field.number == 3)
            is_fine = read_scalars(reading, field.bytes, label_rows,
                                   &parts->labels[parts->labels_count++]);
    }
    return is_fine && (reader.failure == NULL || reading_malformed(reading, "it", &reader));
}

static bool fill_sample(struct reading *reading, struct slice message, struct sample_parts *parts,
                        uint32_t *places)
{
    assert(parts->locations.count <= reading->ids_capacity);
    parts->locations.count = parts->values.count = parts->labels_count = 0;
    if (!read_sample_parts(reading, message, parts))
        return false;
    for (size_t i = 0; i < parts->locations.count; i++) {
        if (!ids_find(reading, &reading->location_ids, parts->locations.items[i], &places[i]))
            return error_prefix(reading->error, "location");
        if (places[i] == 0)
            return error_set(reading->error, "location id 0, which means none");
    }
    return true;
}

static bool ids_reserve(struct reading *reading, size_t count)
{
    size_t capacity = reading->ids_capacity > 0 ? reading->ids_capacity : 64;
    if (reading->ids != NULL && count <= reading->ids_capacity)
        return true;
    while (capacity < count)
        capacity *= 2;
    reading->ids = reading_take(reading, capacity, sizeof(reading->ids[0]));
    reading->ids_capacity = capacity;
    return reading->ids != NULL;
}

static bool add_sample(struct reading *reading, struct slice message)
{
    assert(reading->pprof->samples_count < reading->counts[PPROF_SAMPLE]);
    struct pprof *pprof = reading->pprof;
    struct sample_parts parts = {.labels = NULL};
    if (!read_sample_parts(reading, message, &parts))
        return false;
    if (parts.values.count != pprof->sample_types_count)
        return error_set(reading->error, "%zu values for %zu sample types", parts.values.count,
                         pprof->sample_types_count);
    if (parts.labels_count > PPROF_LABELS_MAX)
        return error_set(reading->error, "%zu labels; at most %d are taken", parts.labels_count,
                         PPROF_LABELS_MAX);
    uint32_t *places = reading_take(reading, parts.locations.count, sizeof(places[0]));
    parts.values.items = reading_take(reading, parts.values.count, sizeof(uint64_t));
    parts.labels = reading_take(reading, parts.labels_count, sizeof(parts.labels[0]));
    if (places == NULL || parts.values.items == NULL || parts.labels == NULL ||
        !ids_reserve(reading, parts.locations.count))
        return false;
    parts.locations.items = reading->ids;
    if (!fill_sample(reading, message, &parts, places))
        return false;
    pprof->samples[pprof->samples_count++] = (struct pprof_sample){
        .locations = places,
        .locations_count = parts.locations.count,
        .values = (const int64_t *)parts.values.items,
        .labels = parts.labels,
        .labels_count = parts.labels_count,
    };
    return true;
}

/* One pass over one kind of message, in the order in which they may refer to each other. */
static bool read_messages(struct reading *reading, struct slice bytes, uint32_t number)
{
    assert(number == PPROF_LOCATION || number == PPROF_SAMPLE);
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
    assert(arena != NULL);
    assert(error != NULL);
    struct pprof pprof = {.strings = NULL};
    struct reading reading = {.arena = arena, .pprof = &pprof, .error = error};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    if (!count_fields(&reading, bytes) || !read_strings(&reading, bytes) || !tables_take(&reading))
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
    assert(gzip != NULL);
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
