/* SPDX-License-Identifier: Apache-2.0 */
/* ParseCSV: one row, whose fields the header names (RFC 4180, as Go's encoding/csv reads it). Runs
 * on the processor's thread. */
#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/tables.h"

enum { HEADER = 1, DELIMITER, HEADER_DELIMITER, MODE };
enum csv_mode { STRICT, LAZY_QUOTES, IGNORE_QUOTES, MODES };

/* Fields follow each other in bytes; field i ends at ends[i]. */
struct csv_reader {
    struct ottl_call *call;
    struct slice rest;
    struct slice delimiter;
    bool is_lazy;
    uint8_t *bytes;
    size_t size;
    uint32_t *ends;
    uint32_t count;
};

static bool read_mode(struct slice text, enum csv_mode *ret)
{
    static const char *const names[MODES] = {"strict", "lazyQuotes", "ignoreQuotes"};
    for (unsigned i = 0; i < MODES; i++) {
        *ret = (enum csv_mode)i;
        if (slice_equal_text(text, names[i]))
            return true;
    }
    return false;
}

/* One character, or one byte that is none. */
static bool is_character(struct slice text)
{
    size_t size = text.size > 0 ? utf8_size(text) : 0;
    return text.size > 0 && (size > 0 ? size : 1) == text.size;
}

static bool prepare_parse_csv(const struct ottl_preparation *preparation, void **ret_state,
                              struct error *error)
{
    enum csv_mode mode;
    struct slice name = ottl_literal_text(preparation, MODE);
    *ret_state = NULL;
    if (ottl_is_given(preparation, DELIMITER) &&
        !is_character(ottl_literal_text(preparation, DELIMITER)))
        return error_set(error, "invalid arguments: delimiter must be a single character");
    if (ottl_is_given(preparation, HEADER_DELIMITER) &&
        !is_character(ottl_literal_text(preparation, HEADER_DELIMITER)))
        return error_set(error, "invalid arguments: header_delimiter must be a single character");
    return !ottl_is_given(preparation, MODE) || read_mode(name, &mode) ||
           error_set(error, "unknown mode: %.*s; expected strict, lazyQuotes or ignoreQuotes",
                     (int)name.size, (const char *)name.data);
}

/* The next line, with its line end, if it has one, as \n. Empty: the end. */
static struct slice next_line(struct csv_reader *reader, bool *ret_ends)
{
    struct slice rest = reader->rest;
    const uint8_t *end = rest.size > 0 ? memchr(rest.data, '\n', rest.size) : NULL;
    size_t size = end != NULL ? (size_t)(end - rest.data) : rest.size;
    *ret_ends = end != NULL;
    reader->rest = slice_of(rest.data + size + (end != NULL), rest.size - size - (end != NULL));
    if (size > 0 && rest.data[size - 1] == '\r')
        size--;
    return slice_of(rest.data, size);
}

static void add(struct csv_reader *reader, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(reader->bytes + reader->size, bytes.data, bytes.size);
    reader->size += bytes.size;
}

static bool begins_with(struct slice text, struct slice prefix)
{
    return text.size >= prefix.size && memcmp(text.data, prefix.data, prefix.size) == 0;
}

static struct slice behind(struct slice text, size_t bytes)
{
    return slice_of(text.data + bytes, text.size - bytes);
}

/* Behind an opening quotation mark; moves *line, which may become a later one, behind the field.
 * False: a quotation mark that is misplaced or missing. *ret_is_last: nothing follows in the row.
 */
static bool read_quoted(struct csv_reader *reader, struct slice *line, bool ends, bool *ret_is_last)
{
    static const uint8_t quote[] = {'"'};
    *ret_is_last = false;
    for (;;) {
        const uint8_t *end = line->size > 0 ? memchr(line->data, '"', line->size) : NULL;
        if (end != NULL) {
            size_t size = (size_t)(end - line->data);
            add(reader, slice_of(line->data, size));
            *line = behind(*line, size + 1);
            if (line->size == 0) {
                *ret_is_last = true;
                return true;
            }
            if (begins_with(*line, reader->delimiter)) {
                *line = behind(*line, reader->delimiter.size);
                return true;
            }
            if (line->data[0] == '"')
                *line = behind(*line, 1);
            else if (!reader->is_lazy)
                return false;
            add(reader, slice_of(quote, 1));
            continue;
        }
        add(reader, *line);
        if (ends)
            add(reader, slice_of_text("\n"));
        if (!ends || reader->rest.size == 0) {
            *ret_is_last = true;
            return reader->is_lazy;
        }
        *line = next_line(reader, &ends);
    }
}

/* Reads a row. The first field of all but the first row continues the last field. False: the row
 * has not even one good field. */
static bool read_row(struct csv_reader *reader, struct slice line, bool ends)
{
    bool is_first = true;
    bool is_last = false;
    while (!is_last) {
        const size_t begin = reader->size;
        bool is_good = true;
        if (is_first && reader->count > 0)
            add(reader, slice_of_text("\n"));
        if (line.size > 0 && line.data[0] == '"') {
            line = behind(line, 1);
            is_good = read_quoted(reader, &line, ends, &is_last);
        } else {
            const uint8_t *end =
                line.size == 0
                    ? NULL
                    : memmem(line.data, line.size, reader->delimiter.data, reader->delimiter.size);
            size_t size = end != NULL ? (size_t)(end - line.data) : line.size;
            is_good = reader->is_lazy || size == 0 || memchr(line.data, '"', size) == NULL;
            add(reader, slice_of(line.data, size));
            is_last = end == NULL;
            if (end != NULL)
                line = behind(line, size + reader->delimiter.size);
        }
        if (!is_good) {
            reader->size = begin;
            return !is_first;
        }
        if (is_first && reader->count > 0)
            reader->count--;
        reader->ends[reader->count++] = (uint32_t)reader->size;
        is_first = false;
    }
    return true;
}

static bool read_rows(struct csv_reader *reader)
{
    static const char *const misfits[] = {"\"", "\r", "\n", "\xef\xbf\xbd"};
    bool fits = utf8_size(reader->delimiter) > 0 && reader->delimiter.data[0] != '\0';
    for (size_t i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++)
        fits = fits && !slice_equal_text(reader->delimiter, misfits[i]);
    if (!fits)
        return ottl_fail(reader->call, "read csv line: csv: invalid field or comment delimiter");
    while (reader->rest.size > 0) {
        bool ends;
        struct slice line = next_line(reader, &ends);
        if (line.size == 0)
            continue;
        if (!read_row(reader, line, ends))
            return ottl_fail(reader->call, "read csv line: a quotation mark in a field without "
                                           "quotation marks, or a missing or extra one");
    }
    return reader->count > 0 || ottl_fail(reader->call, "no csv lines found");
}

static size_t count_of(struct slice text, struct slice part)
{
    size_t count = 0;
    for (const uint8_t *at; text.size >= part.size && part.size > 0 && text.size > 0 &&
                            (at = memmem(text.data, text.size, part.data, part.size)) != NULL;
         count++)
        text = behind(text, (size_t)(at - text.data) + part.size);
    return count;
}

/* The next of the parts that the delimiter separates. */
static struct slice next_part(struct slice *rest, struct slice delimiter)
{
    const uint8_t *end =
        rest->size == 0 ? NULL : memmem(rest->data, rest->size, delimiter.data, delimiter.size);
    struct slice part = *rest;
    if (end == NULL) {
        *rest = behind(*rest, rest->size);
        return part;
    }
    part.size = (size_t)(end - part.data);
    *rest = behind(*rest, part.size + delimiter.size);
    return part;
}

static bool parse_csv(struct ottl_call *call, struct ottl_value *ret)
{
    struct csv_reader reader = {.call = call, .delimiter = slice_of_text(",")};
    struct slice header, header_delimiter, name;
    struct key_index index;
    enum csv_mode mode = STRICT;
    if (!ottl_get_string(call, 0, &reader.rest) || !ottl_get_string(call, HEADER, &header))
        return false;
    if (header.size == 0)
        return ottl_fail(call, "headers must not be an empty string");
    if (ottl_has(call, DELIMITER) && !ottl_get_string(call, DELIMITER, &reader.delimiter))
        return false;
    header_delimiter = reader.delimiter;
    if ((ottl_has(call, HEADER_DELIMITER) &&
         !ottl_get_string(call, HEADER_DELIMITER, &header_delimiter)) ||
        (ottl_has(call, MODE) && (!ottl_get_string(call, MODE, &name) || !read_mode(name, &mode))))
        return false;
    reader.is_lazy = mode == LAZY_QUOTES;
    struct slice raw = reader.rest;
    size_t columns = count_of(header, header_delimiter) + 1;
    size_t fields_max = count_of(raw, reader.delimiter) + count_of(raw, slice_of_text("\n")) + 2;
    struct ottl_map *map = ottl_map_create(call->memory);
    if (map == NULL)
        return ottl_no_memory(call);
    if (mode != IGNORE_QUOTES) {
        reader.bytes = ottl_alloc(call, raw.size + 2);
        reader.ends = ottl_alloc(call, fields_max * sizeof(*reader.ends));
        if (reader.bytes == NULL || reader.ends == NULL || !read_rows(&reader))
            return false;
    }
    size_t count = mode == IGNORE_QUOTES ? count_of(raw, reader.delimiter) + 1 : reader.count;
    if (count != columns)
        return ottl_fail(call, "map csv headers: wrong number of fields: expected %zu, found %zu",
                         columns, count);
    key_index_init(&index, call, map);
    for (size_t i = 0; i < columns; i++) {
        size_t begin = i > 0 && reader.ends != NULL ? reader.ends[i - 1] : 0;
        struct ottl_value value = ottl_string(
            mode == IGNORE_QUOTES ? next_part(&raw, reader.delimiter)
                                  : slice_of(reader.bytes + begin, reader.ends[i] - begin));
        struct ottl_entry *entry = key_index_put(&index, next_part(&header, header_delimiter));
        if (entry == NULL)
            return false;
        ottl_map_adopt(map, entry, &value);
    }
    *ret = ottl_map_value(map);
    return true;
}

static const struct ottl_parameter parse_csv_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Header", OTTL_STRINGS_ONLY, false, false},
    {"Delimiter", OTTL_TEXT_LITERAL, true, false},
    {"HeaderDelimiter", OTTL_TEXT_LITERAL, true, false},
    {"Mode", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

const struct ottl_function ottl_csv_functions[] = {
    {.name = "ParseCSV",
     .parameters = parse_csv_parameters,
     .evaluate = parse_csv,
     .prepare = prepare_parse_csv},
    {.name = NULL},
};
