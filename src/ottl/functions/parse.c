/* SPDX-License-Identifier: Apache-2.0 */
/* Converters that read values out of strings, and pairs back into one. Runs on the processor's
 * thread. */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8_classes.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/regex.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"

/* ExtractPatterns */

static bool prepare_extract_patterns(const struct ottl_preparation *preparation, void **ret_state,
                                     struct error *error)
{
    struct pattern *pattern;
    bool is_fine = ottl_prepare_pattern(preparation, 1, &pattern, error);
    *ret_state = pattern;
    return is_fine;
}

static void release_pattern(void *state)
{
    pattern_destroy(state);
}

static bool extract(struct ottl_call *call, const struct ottl_regex *regex, struct ottl_value *ret)
{
    const struct pattern *pattern = regex->pattern;
    struct slice text;
    const size_t count = pattern_groups(pattern);
    bool has_name = false;
    for (size_t i = 1; i <= count; i++)
        has_name = has_name || pattern_group_name(pattern, i) != NULL;
    if (!has_name)
        return ottl_fail(call,
                         "at least 1 named capture group must be supplied in the given regex");
    if (!ottl_get_string(call, 0, &text))
        return false;
    struct slice *groups = ottl_alloc(call, count * sizeof(*groups));
    struct ottl_map *map = ottl_map_create(call->memory);
    if (groups == NULL || map == NULL)
        return ottl_no_memory(call);
    *ret = ottl_map_value(map);
    if (!ottl_count_search(call, regex, text.size, count))
        return false;
    if (!pattern_find(pattern, text, groups, count))
        return true;
    for (size_t i = 1; i <= count; i++) {
        const char *name = pattern_group_name(pattern, i);
        struct slice key;
        if (name == NULL)
            continue;
        if (!text_keep(call, slice_of_text(name), &key))
            return false;
        struct ottl_entry *entry = ottl_map_append(map, key);
        if (entry == NULL)
            return ottl_no_memory(call);
        const struct ottl_value value = ottl_string(groups[i - 1]);
        ottl_map_adopt(map, entry, &value);
    }
    return true;
}

static bool extract_patterns(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_regex regex;
    if (!ottl_get_pattern(call, 1, call->state, false, &regex))
        return false;
    bool is_fine = extract(call, &regex, ret);
    ottl_release_pattern(call, &regex);
    return is_fine;
}

static const struct ottl_parameter extract_patterns_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Pattern", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

/* ParseInt */

enum { BASE_MAX = 36, NO_DIGIT = BASE_MAX };

static unsigned digit_of(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    unsigned letter = (byte | 0x20u) - 'a';
    return letter < 26 ? letter + 10 : NO_DIGIT;
}

/* Go's rule for underscores: between digits, and between the base's prefix and a digit. */
static bool underscores_fit(struct slice digits, bool has_prefix)
{
    bool was_digit = has_prefix;
    for (size_t i = 0; i < digits.size; i++) {
        bool is_last = i + 1 == digits.size;
        if (digits.data[i] == '_' && (!was_digit || is_last || digits.data[i + 1] == '_'))
            return false;
        was_digit = digits.data[i] != '_';
    }
    return true;
}

static bool parse_int(struct ottl_call *call, struct ottl_value *ret)
{
    static const struct {
        uint8_t letter;
        uint8_t base;
    } prefixes[] = {{'x', 16}, {'b', 2}, {'o', 8}};
    struct slice text;
    int64_t base;
    if (!ottl_get_string(call, 0, &text))
        return false;
    if (text.size == 0)
        return ottl_fail(call,
                         "invalid target value for ParseInt function, target cannot be empty");
    if (!ottl_get_int(call, 1, &base))
        return false;
    if (base < 0)
        return ottl_fail(call,
                         "invalid base value: %lld for ParseInt function, base cannot be negative",
                         (long long)base);
    struct slice digits = text;
    bool is_negative = text.data[0] == '-';
    if (is_negative || text.data[0] == '+')
        digits = slice_of(digits.data + 1, digits.size - 1);
    if (base == 1 || base > BASE_MAX)
        return ottl_fail(call, "strconv.ParseInt: parsing \"%.*s\": invalid base %lld",
                         (int)text.size, (const char *)text.data, (long long)base);
    bool is_free = base == 0;
    bool has_prefix = false;
    if (is_free) {
        base = 10;
        if (digits.size > 1 && digits.data[0] == '0') {
            unsigned skipped = 1;
            base = 8;
            for (size_t i = 0; digits.size > 2 && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
                if ((digits.data[1] | 0x20) == prefixes[i].letter) {
                    base = prefixes[i].base;
                    skipped = 2;
                }
            digits = slice_of(digits.data + skipped, digits.size - skipped);
            has_prefix = true;
        }
    }
    bool is_valid = digits.size > 0 && (!is_free || underscores_fit(digits, has_prefix));
    bool is_large = false;
    uint64_t limit = (uint64_t)INT64_MAX + is_negative;
    uint64_t number = 0;
    for (size_t i = 0; i < digits.size && is_valid; i++) {
        unsigned digit = digit_of(digits.data[i]);
        if (is_free && digits.data[i] == '_')
            continue;
        is_valid = digit < base;
        if (number > (limit - (digit > limit ? limit : digit)) / (uint64_t)base)
            is_large = true;
        else
            number = number * (uint64_t)base + digit;
    }
    if (!is_valid || is_large)
        return ottl_fail(call, "strconv.ParseInt: parsing \"%.*s\": %s", (int)text.size,
                         (const char *)text.data,
                         !is_valid ? "invalid syntax" : "value out of range");
    *ret = ottl_int(is_negative ? (int64_t)(0 - number) : (int64_t)number);
    return true;
}

static const struct ottl_parameter parse_int_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Base", OTTL_INTS_ONLY, false, false},
    {.name = NULL}};

/* ParseKeyValue, ToKeyValueString */

enum { PAIR_PARTS = 1, PAIRS, SORT_OUTPUT };

static bool prepare_key_value(const struct ottl_preparation *preparation, void **ret_state,
                              struct error *error)
{
    struct slice parts = slice_of_text("=");
    struct slice pairs = slice_of_text(" ");
    *ret_state = NULL;
    if (ottl_is_given(preparation, PAIR_PARTS))
        parts = ottl_literal_text(preparation, PAIR_PARTS);
    if (parts.size == 0)
        return error_set(error, "delimiter cannot be set to an empty string");
    if (ottl_is_given(preparation, PAIRS))
        pairs = ottl_literal_text(preparation, PAIRS);
    if (pairs.size == 0)
        return error_set(error, "pair delimiter cannot be set to an empty string");
    return !slice_equal(parts, pairs) ||
           error_set(error, "pair delimiter \"%.*s\" cannot be equal to delimiter \"%.*s\"",
                     (int)pairs.size, (const char *)pairs.data, (int)parts.size,
                     (const char *)parts.data);
}

static bool get_delimiters(struct ottl_call *call, struct slice *ret_parts, struct slice *ret_pairs)
{
    *ret_parts = slice_of_text("=");
    *ret_pairs = slice_of_text(" ");
    return (!ottl_has(call, PAIR_PARTS) || ottl_get_string(call, PAIR_PARTS, ret_parts)) &&
           (!ottl_has(call, PAIRS) || ottl_get_string(call, PAIRS, ret_pairs));
}

struct pair_reader {
    struct ottl_call *call;
    struct key_index index;
    struct slice parts;
    struct slice bad_pair; /* the first one without a delimiter */
    bool has_bad_pair;
};

static bool add_pair(struct pair_reader *reader, struct slice pair)
{
    const uint8_t *end = memmem(pair.data, pair.size, reader->parts.data, reader->parts.size);
    if (end == NULL) {
        if (!reader->has_bad_pair)
            reader->bad_pair = pair;
        reader->has_bad_pair = true;
        return true;
    }
    struct slice key = slice_of(pair.data, (size_t)(end - pair.data));
    const uint8_t *begin = end + reader->parts.size;
    struct ottl_value value =
        ottl_string(utf8_trim_space(slice_of(begin, (size_t)(pair.data + pair.size - begin))));
    struct ottl_entry *entry = key_index_put(&reader->index, utf8_trim_space(key));
    if (entry == NULL)
        return false;
    ottl_map_adopt(reader->index.map, entry, &value);
    return true;
}

/* Quotation marks keep delimiters together and disappear; a backslash keeps the next one. */
static bool parse_key_value(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, pairs;
    struct pair_reader reader = {.call = call};
    if (!ottl_get_string(call, 0, &text))
        return false;
    if (text.size == 0)
        return ottl_fail(call, "cannot parse from empty target");
    if (!get_delimiters(call, &reader.parts, &pairs))
        return false;
    uint8_t *room = ottl_alloc(call, text.size);
    struct ottl_map *map = ottl_map_create(call->memory);
    if (room == NULL || map == NULL)
        return ottl_no_memory(call);
    key_index_init(&reader.index, call, map);
    size_t begin = 0;
    size_t used = 0;
    uint8_t quote = 0;
    bool is_escaped = false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (quote == 0 && pairs.size <= text.size - i &&
            memcmp(text.data + i, pairs.data, pairs.size) == 0) {
            if (used > begin && !add_pair(&reader, slice_of(room + begin, used - begin)))
                return false;
            begin = used;
            i += pairs.size - 1;
            continue;
        }
        if (is_escaped) {
            is_escaped = false;
        } else {
            if (quote == 0 && (byte == '"' || byte == '\'')) {
                quote = byte;
                continue;
            }
            if (quote != 0 && byte == quote) {
                quote = 0;
                continue;
            }
            is_escaped = byte == '\\';
        }
        room[used++] = byte;
    }
    if (quote != 0)
        return ottl_fail(call, "splitting source into pairs failed: never reached the end of a "
                               "quoted value");
    if (used > begin && !add_pair(&reader, slice_of(room + begin, used - begin)))
        return false;
    if (reader.has_bad_pair)
        return ottl_fail(call,
                         "failed to split pairs into key-values: cannot split \"%.*s\" into 2 "
                         "items, got 1 item(s)",
                         reader.bad_pair.size < 200 ? (int)reader.bad_pair.size : 200,
                         (const char *)reader.bad_pair.data);
    *ret = ottl_map_value(map);
    return true;
}

static const struct ottl_parameter parse_key_value_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Delimiter", OTTL_TEXT_LITERAL, true, false},
    {"PairDelimiter", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

static bool add_quoted(struct text_builder *builder, struct slice text, struct slice parts,
                       struct slice pairs)
{
    /* Go looks for delimiters when quotation marks have got their backslashes. */
    struct text_builder escaped;
    if (!text_builder_init(&escaped, builder->call, text.size))
        return false;
    for (size_t i = 0; i < text.size; i++)
        if ((text.data[i] == '"' && !text_builder_add_byte(&escaped, '\\')) ||
            !text_builder_add_byte(&escaped, text.data[i]))
            return false;
    bool is_quoted = (escaped.size >= parts.size &&
                      memmem(escaped.bytes, escaped.size, parts.data, parts.size) != NULL) ||
                     (escaped.size >= pairs.size &&
                      memmem(escaped.bytes, escaped.size, pairs.data, pairs.size) != NULL);
    return (!is_quoted || text_builder_add_byte(builder, '"')) &&
           text_builder_add(builder, escaped.bytes, escaped.size) &&
           (!is_quoted || text_builder_add_byte(builder, '"'));
}

/* Entries by their keys, those of equal keys as they come: a merge sort of their numbers. */
static uint32_t *sort_keys(struct ottl_call *call, const struct ottl_map *map)
{
    uint32_t *numbers = ottl_alloc(call, 2 * (size_t)map->count * sizeof(*numbers));
    if (numbers == NULL)
        return NULL;
    uint32_t *room = numbers + map->count;
    for (uint32_t i = 0; i < map->count; i++)
        numbers[i] = i;
    for (size_t run = 1; run < map->count; run *= 2) {
        for (size_t begin = 0; begin < map->count; begin += 2 * run) {
            size_t middle = begin + run < map->count ? begin + run : map->count;
            size_t end = begin + 2 * run < map->count ? begin + 2 * run : map->count;
            size_t left = begin;
            size_t right = middle;
            for (size_t at = begin; at < end; at++) {
                bool takes_left =
                    left < middle &&
                    (right == end || slice_compare(map->entries[numbers[left]].key,
                                                   map->entries[numbers[right]].key) <= 0);
                room[at] = takes_left ? numbers[left++] : numbers[right++];
            }
        }
        uint32_t *sorted = room;
        room = numbers;
        numbers = sorted;
    }
    return numbers;
}

static bool to_key_value_string(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    struct slice parts, pairs, text;
    struct text_builder builder;
    uint32_t *order = NULL;
    bool is_sorted = false;
    if (!ottl_get_map(call, 0, &map) || !get_delimiters(call, &parts, &pairs) ||
        (ottl_has(call, SORT_OUTPUT) && !ottl_get_bool(call, SORT_OUTPUT, &is_sorted)))
        return false;
    if ((is_sorted && (order = sort_keys(call, map)) == NULL) ||
        !text_builder_init(&builder, call, 0))
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_entry *entry = &map->entries[order != NULL ? order[i] : i];
        struct ottl_value value;
        if (!ottl_map_read(map, entry, &value))
            return ottl_no_memory(call);
        if (!go_as_string(call, &value, &text) ||
            (i > 0 && !text_builder_add(&builder, pairs.data, pairs.size)) ||
            !add_quoted(&builder, entry->key, parts, pairs) ||
            !text_builder_add(&builder, parts.data, parts.size) ||
            !add_quoted(&builder, text, parts, pairs))
            return false;
    }
    *ret = ottl_string(text_builder_text(&builder));
    return true;
}

static const struct ottl_parameter to_key_value_string_parameters[] = {
    {"Target", OTTL_MAPS_ONLY, false, false},
    {"Delimiter", OTTL_TEXT_LITERAL, true, false},
    {"PairDelimiter", OTTL_TEXT_LITERAL, true, false},
    {"SortOutput", OTTL_BOOL_LITERAL, true, false},
    {.name = NULL}};

/* ParseSeverity */

static bool fail_criteria(struct ottl_call *call, const char *reason)
{
    return ottl_fail(call, "invalid severity mapping criteria: %s", reason);
}

static bool find_value(struct ottl_call *call, struct ottl_map *map, const char *name,
                       struct ottl_value *ret, bool *ret_has)
{
    struct ottl_entry *entry = ottl_map_find(map, slice_of_text(name));
    *ret_has = entry != NULL;
    return entry == NULL || ottl_map_read(map, entry, ret) || ottl_no_memory(call);
}

static bool check_equals(struct ottl_call *call, struct ottl_map *criteria,
                         const struct ottl_value *value, bool *ret_matches)
{
    struct ottl_value equals, item;
    bool has;
    if (!find_value(call, criteria, "equals", &equals, &has))
        return false;
    if (!has)
        return true;
    if (equals.type != OTTL_LIST)
        return fail_criteria(call, "equals must be a list");
    for (uint32_t i = 0; i < equals.list->count; i++) {
        if (!ottl_list_read(equals.list, i, &item))
            return ottl_no_memory(call);
        if (item.type != OTTL_STRING)
            return fail_criteria(call, "equals values must be strings");
        *ret_matches = *ret_matches || (value->type == OTTL_STRING &&
                                        slice_equal(ottl_slice(&item), ottl_slice(value)));
    }
    return true;
}

static bool check_range(struct ottl_call *call, struct ottl_map *criteria,
                        const struct ottl_value *value, bool *ret_matches)
{
    static const char *const ranges[] = {"2xx", "3xx", "4xx", "5xx"};
    enum { CLASS = 100, RANGES = sizeof(ranges) / sizeof(ranges[0]) };
    struct ottl_value range, low, high;
    bool has;
    if (!find_value(call, criteria, "range", &range, &has))
        return false;
    if (!has)
        return true;
    if (range.type == OTTL_MAP) {
        if (!find_value(call, range.map, "min", &low, &has))
            return false;
        if (!has)
            return fail_criteria(call, "range must have a min value");
        if (!find_value(call, range.map, "max", &high, &has))
            return false;
        if (!has)
            return fail_criteria(call, "range must have a max value");
        if (low.type != OTTL_INT)
            return fail_criteria(call, "min must be an int64");
        if (high.type != OTTL_INT)
            return fail_criteria(call, "max must be an int64");
    } else if (range.type == OTTL_STRING) {
        int64_t place = 0;
        while (place < RANGES && !slice_equal_text(ottl_slice(&range), ranges[place]))
            place++;
        if (place == RANGES)
            return ottl_fail(call,
                             "invalid severity mapping criteria: unknown range placeholder: %.*s",
                             (int)range.size, (const char *)range.bytes);
        low = ottl_int((place + 2) * CLASS);
        high = ottl_int((place + 3) * CLASS - 1);
    } else {
        return fail_criteria(call, "range must be a map or a known placeholder string");
    }
    *ret_matches = *ret_matches || (value->type == OTTL_INT && value->integer >= low.integer &&
                                    value->integer <= high.integer);
    return true;
}

/* Checks the level's criteria and whether one of them fits the value. */
static bool check_level(struct ottl_call *call, const struct ottl_value *list,
                        const struct ottl_value *value, bool *ret_matches)
{
    struct ottl_value item;
    if (list->type != OTTL_LIST)
        return ottl_fail(call, "severity mapping criteria must be []any");
    for (uint32_t i = 0; i < list->list->count; i++) {
        if (!ottl_list_read(list->list, i, &item))
            return ottl_no_memory(call);
        if (item.type != OTTL_MAP)
            return ottl_fail(call, "severity mapping criteria items must be map[string]any");
        if (!check_equals(call, item.map, value, ret_matches) ||
            !check_range(call, item.map, value, ret_matches))
            return false;
    }
    return true;
}

static bool prepare_parse_severity(const struct ottl_preparation *preparation, void **ret_state,
                                   struct error *error)
{
    struct ottl_value value;
    (void)error;
    *ret_state = ottl_is_constant(preparation, 1, &value) ? mem_zalloc(1) : NULL;
    return true;
}

static void release_severity(void *state)
{
    mem_free(state);
}

/* The mapping is small and constant: it is checked each time, as Go reports it each time. */
static bool parse_severity(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_map *map;
    struct ottl_value value;
    struct slice text;
    bool has_text;
    bool has_criteria = false;
    *ret = ottl_nil();
    if (call->state == NULL)
        return ottl_fail(call, "severity mapping must be a literal PMap");
    if (!ottl_get_map(call, 1, &map) || !ottl_get(call, 0, &value))
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_value level;
        bool matches = false;
        if (!ottl_map_read(map, &map->entries[i], &level))
            return ottl_no_memory(call);
        if (!check_level(call, &level, &value, &matches))
            return false;
        has_criteria = has_criteria || level.list->count > 0;
        if (matches && ret->type == OTTL_NIL)
            *ret = ottl_string(map->entries[i].key);
    }
    if (ret->type != OTTL_NIL)
        return true;
    if (has_criteria && value.type != OTTL_STRING && value.type != OTTL_INT)
        return ottl_fail(call,
                         "could not map log level: could not evaluate log level: unsupported "
                         "value type: %s",
                         ottl_type_name(&value));
    if (!ottl_to_string_like(call, &value, &text, &has_text))
        return false;
    return ottl_fail(call, "could not map log level: no matching log level found for value '%.*s'",
                     has_text ? (int)text.size : 5, has_text ? (const char *)text.data : "<nil>");
}

static const struct ottl_parameter parse_severity_parameters[] = {
    {"Target", OTTL_ANY, false, false}, {"Mapping", OTTL_MAPS_ONLY, false, false}, {.name = NULL}};

const struct ottl_function ottl_parse_functions[] = {
    {.name = "ExtractPatterns",
     .parameters = extract_patterns_parameters,
     .evaluate = extract_patterns,
     .prepare = prepare_extract_patterns,
     .release = release_pattern,
     .spends_by = 1},
    {.name = "ParseInt", .parameters = parse_int_parameters, .evaluate = parse_int},
    {.name = "ParseKeyValue",
     .parameters = parse_key_value_parameters,
     .evaluate = parse_key_value,
     .prepare = prepare_key_value},
    {.name = "ToKeyValueString",
     .parameters = to_key_value_string_parameters,
     .evaluate = to_key_value_string,
     .prepare = prepare_key_value},
    {.name = "ParseSeverity",
     .parameters = parse_severity_parameters,
     .evaluate = parse_severity,
     .prepare = prepare_parse_severity,
     .release = release_severity},
    {.name = NULL},
};
