/* SPDX-License-Identifier: Apache-2.0 */
/* Converters of strings. Runs on the processor's thread. */
#include "src/base/error.h"
#include "src/base/pattern.h"
#include "src/base/short_bytes.h"
#include "src/base/utf8.h"
#include "src/base/utf8_case.h"
#include "src/base/utf8_classes.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/regex.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"

static bool prepare_is_match(const struct ottl_preparation *preparation, void **ret_state,
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

/* nil matches nothing. */
static bool is_match(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_regex regex;
    struct slice text;
    bool has;
    if (!ottl_get_pattern(call, 1, call->state, false, &regex))
        return false;
    bool is_fine = ottl_get_string_like(call, 0, &text, &has) &&
                   (!has || ottl_count_search(call, &regex, text.size, 0));
    if (is_fine)
        *ret = ottl_bool(has && pattern_matches(regex.pattern, text));
    ottl_release_pattern(call, &regex);
    return is_fine;
}

static const struct ottl_parameter is_match_parameters[] = {
    {"Target", OTTL_STRING_LIKE, false, false},
    {"Pattern", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

static bool concat(struct ottl_call *call, struct ottl_value *ret)
{
    enum { FEW = 8 };
    const unsigned count = ottl_items(call, 0);
    struct slice few[FEW];
    struct slice delimiter;
    size_t bytes = 0;
    if (!ottl_get_string(call, 1, &delimiter))
        return false;
    struct slice *texts = count <= FEW ? few : ottl_alloc(call, count * sizeof(*texts));
    if (texts == NULL)
        return false;
    for (unsigned i = 0; i < count; i++) {
        bool has;
        if (!ottl_get_item_string_like(call, 0, i, &texts[i], &has))
            return false;
        if (!has)
            texts[i] = slice_of_text("<nil>");
        bytes += texts[i].size + (i > 0 ? delimiter.size : 0);
    }
    uint8_t *at = ottl_alloc(call, bytes);
    if (at == NULL)
        return false;
    *ret = ottl_string(slice_of(at, bytes));
    for (unsigned i = 0; i < count; i++) {
        if (i > 0) {
            short_copy(at, delimiter.data, delimiter.size);
            at += delimiter.size;
        }
        short_copy(at, texts[i].data, texts[i].size);
        at += texts[i].size;
    }
    return true;
}

static const struct ottl_parameter concat_parameters[] = {
    {"Vals", OTTL_STRING_LIKE, false, true},
    {"Delimiter", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

/* Whether a character begins here: no continuation byte. */
static bool begins_character(uint8_t byte)
{
    return (byte & 0xc0) != 0x80;
}

static bool substring(struct ottl_call *call, struct ottl_value *ret)
{
    int64_t start, length;
    struct slice text;
    if (!ottl_get_int(call, 1, &start))
        return false;
    if (start < 0)
        return ottl_fail(call, "invalid start for substring function, %lld cannot be negative",
                         (long long)start);
    if (!ottl_get_int(call, 2, &length))
        return false;
    if (length <= 0)
        return ottl_fail(call,
                         "invalid length for substring function, %lld cannot be negative or zero",
                         (long long)length);
    if (!ottl_get_string(call, 0, &text))
        return false;
    if (start > (int64_t)text.size || length > (int64_t)text.size - start)
        return ottl_fail(call,
                         "invalid range for substring function, start(%lld)+length(%lld) cannot be "
                         "greater than the length of target string(%zu)",
                         (long long)start, (long long)length, text.size);
    size_t begin = (size_t)start;
    size_t end = (size_t)(start + length);
    bool is_whole = false;
    if (ottl_has(call, 3) && !ottl_get_bool(call, 3, &is_whole))
        return false;
    if (is_whole) {
        while (begin < text.size && !begins_character(text.data[begin]))
            begin++;
        while (begin < end && end < text.size && !begins_character(text.data[end]))
            end--;
        end = end < begin ? begin : end;
    }
    *ret = ottl_string(slice_of(text.data + begin, end - begin));
    return true;
}

static const struct ottl_parameter substring_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Start", OTTL_INTS_ONLY, false, false},
    {"Length", OTTL_INTS_ONLY, false, false},
    {"Utf8Safe", OTTL_BOOL_LITERAL, true, false},
    {.name = NULL}};

/* The first place of part in text, or NULL. */
static const uint8_t *find(struct slice text, struct slice part)
{
    return text.size < part.size ? NULL : memmem(text.data, text.size, part.data, part.size);
}

/* Without a delimiter each character is a part. */
static bool split(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, delimiter;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, 1, &delimiter))
        return false;
    struct ottl_list *list = ottl_list_create(call->memory);
    if (list == NULL)
        return ottl_no_memory(call);
    *ret = ottl_list_value(list, OTTL_FORM_STRINGS);
    while (delimiter.size > 0 || text.size > 0) {
        struct slice part = text;
        size_t used = text.size;
        const uint8_t *place = delimiter.size > 0 ? find(text, delimiter) : NULL;
        if (place != NULL) {
            part.size = (size_t)(place - text.data);
            used = part.size + delimiter.size;
        } else if (delimiter.size == 0) {
            size_t size = utf8_size(text);
            part.size = used = size > 0 ? size : 1;
        }
        struct ottl_value item = ottl_string(part);
        if (!ottl_list_append(list, &item))
            return ottl_no_memory(call);
        if (delimiter.size > 0 && place == NULL)
            break;
        text = slice_of(text.data + used, text.size - used);
    }
    return true;
}

static const struct ottl_parameter split_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Delimiter", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

/* Cases. */

static bool convert_plain(struct ottl_call *call, struct slice text, bool is_upper,
                          struct ottl_value *ret)
{
    bool is_ascii = true;
    for (size_t i = 0; i < text.size && is_ascii; i++)
        is_ascii = text.data[i] < 0x80;
    uint8_t *room = ottl_alloc(call, is_ascii ? text.size : text.size * UTF8_CASE_GROWTH_MAX);
    if (room == NULL)
        return false;
    size_t size = is_upper ? utf8_to_upper(text, room) : utf8_to_lower(text, room);
    *ret = ottl_string(slice_of(room, size));
    return true;
}

static bool is_capital(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z';
}

static bool is_small(uint8_t byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_gap(uint8_t byte)
{
    return byte == '_' || byte == ' ' || byte == '-' || byte == '.';
}

/* As the Go package strcase: letters and digits only, a capital at the start, behind a gap and
 * behind a digit; of capitals in a row all but the first become small. */
static bool convert_camel(struct ottl_call *call, struct slice text, struct ottl_value *ret)
{
    text = utf8_trim_space(text);
    uint8_t *room = ottl_alloc(call, text.size);
    if (room == NULL)
        return false;
    size_t used = 0;
    bool is_next_capital = true;
    bool was_capital = false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_letter = is_capital(byte) || is_small(byte);
        bool was = was_capital;
        was_capital = is_capital(byte);
        if (is_next_capital && is_small(byte))
            byte = (uint8_t)(byte - 'a' + 'A');
        else if (!is_next_capital && was && is_capital(byte))
            byte = (uint8_t)(byte - 'A' + 'a');
        if (is_letter || is_digit(byte))
            room[used++] = byte;
        is_next_capital = !is_letter && (is_digit(byte) || is_gap(byte));
    }
    *ret = ottl_string(slice_of(room, used));
    return true;
}

/* As the Go package strcase: small letters, with an underscore where letters change case, between
 * letters and digits, and for each gap. */
static bool convert_snake(struct ottl_call *call, struct slice text, struct ottl_value *ret)
{
    text = utf8_trim_space(text);
    enum { GROWTH_MAX = 2 };
    uint8_t *room = ottl_alloc(call, text.size * GROWTH_MAX);
    if (room == NULL)
        return false;
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        uint8_t next = i + 1 < text.size ? text.data[i + 1] : 0;
        uint8_t small = is_capital(byte) ? (uint8_t)(byte - 'A' + 'a') : byte;
        bool changes = (is_capital(byte) && (is_small(next) || is_digit(next))) ||
                       (is_small(byte) && (is_capital(next) || is_digit(next))) ||
                       (is_digit(byte) && (is_capital(next) || is_small(next)));
        if (!changes) {
            room[used++] = is_gap(byte) ? '_' : small;
            continue;
        }
        if (is_capital(byte) && is_small(next) && i > 0 && is_capital(text.data[i - 1]))
            room[used++] = '_';
        room[used++] = small;
        if (is_small(byte) || is_digit(byte) || is_digit(next))
            room[used++] = '_';
    }
    *ret = ottl_string(slice_of(room, used));
    return true;
}

static bool to_lower_case(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    return ottl_get_string(call, 0, &text) && convert_plain(call, text, false, ret);
}

static bool to_upper_case(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    return ottl_get_string(call, 0, &text) && convert_plain(call, text, true, ret);
}

static bool to_camel_case(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    return ottl_get_string(call, 0, &text) && convert_camel(call, text, ret);
}

static bool to_snake_case(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    return ottl_get_string(call, 0, &text) && convert_snake(call, text, ret);
}

static bool prepare_convert_case(const struct ottl_preparation *preparation, void **ret_state,
                                 struct error *error)
{
    struct slice name = ottl_literal_text(preparation, 1);
    *ret_state = NULL;
    return slice_equal_text(name, "lower") || slice_equal_text(name, "upper") ||
           slice_equal_text(name, "snake") || slice_equal_text(name, "camel") ||
           error_set(error, "invalid case: %.*s, allowed cases are: lower, upper, snake, camel",
                     (int)name.size, (const char *)name.data);
}

static bool convert_case(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, name;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, 1, &name))
        return false;
    if (slice_equal_text(name, "snake"))
        return convert_snake(call, text, ret);
    if (slice_equal_text(name, "camel"))
        return convert_camel(call, text, ret);
    return convert_plain(call, text, slice_equal_text(name, "upper"), ret);
}

static const struct ottl_parameter convert_case_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"ToCase", OTTL_TEXT_LITERAL, false, false},
    {.name = NULL}};

/* Ends. */

static bool has_prefix(struct slice text, struct slice prefix)
{
    return text.size >= prefix.size && slice_equal(slice_of(text.data, prefix.size), prefix);
}

static bool has_suffix(struct slice text, struct slice suffix)
{
    return text.size >= suffix.size &&
           slice_equal(slice_of(text.data + (text.size - suffix.size), suffix.size), suffix);
}

static bool has_prefix_call(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, prefix;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, 1, &prefix))
        return false;
    *ret = ottl_bool(has_prefix(text, prefix));
    return true;
}

static bool has_suffix_call(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, suffix;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, 1, &suffix))
        return false;
    *ret = ottl_bool(has_suffix(text, suffix));
    return true;
}

static bool trim_prefix(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, prefix;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, 1, &prefix))
        return false;
    if (has_prefix(text, prefix))
        text = slice_of(text.data + prefix.size, text.size - prefix.size);
    *ret = ottl_string(text);
    return true;
}

static bool trim_suffix(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text, suffix;
    if (!ottl_get_string(call, 0, &text) || !ottl_get_string(call, 1, &suffix))
        return false;
    if (has_suffix(text, suffix))
        text.size -= suffix.size;
    *ret = ottl_string(text);
    return true;
}

static const struct ottl_parameter prefix_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Prefix", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

static const struct ottl_parameter suffix_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Suffix", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

/* Whether the set has the character, which is not empty. Bytes that are not UTF-8 are all alike. */
static bool has_character(struct slice set, struct slice character)
{
    static const char unknown[] = "\xef\xbf\xbd";
    if (utf8_size(character) == 0)
        character = slice_of_text(unknown);
    while (set.size > 0) {
        size_t size = utf8_size(set);
        struct slice one = size > 0 ? slice_of(set.data, size) : slice_of_text(unknown);
        if (slice_equal(one, character))
            return true;
        size = size > 0 ? size : 1;
        set = slice_of(set.data + size, set.size - size);
    }
    return false;
}

/* The last character of text, which is not empty, or its last byte. */
static struct slice last_character(struct slice text)
{
    enum { CHARACTER_BYTES_MAX = 4 };
    for (size_t i = 1; i <= CHARACTER_BYTES_MAX && i <= text.size; i++)
        if (utf8_size(slice_of(text.data + text.size - i, i)) == i)
            return slice_of(text.data + text.size - i, i);
    return slice_of(text.data + text.size - 1, 1);
}

static bool trim(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    struct slice set = slice_of_text(" ");
    if (!ottl_get_string(call, 0, &text) || (ottl_has(call, 1) && !ottl_get_string(call, 1, &set)))
        return false;
    while (text.size > 0) {
        size_t size = utf8_size(text);
        size = size > 0 ? size : 1;
        if (!has_character(set, slice_of(text.data, size)))
            break;
        text = slice_of(text.data + size, text.size - size);
    }
    while (text.size > 0) {
        struct slice last = last_character(text);
        if (!has_character(set, last))
            break;
        text.size -= last.size;
    }
    *ret = ottl_string(text);
    return true;
}

static const struct ottl_parameter trim_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Replacement", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

static const struct ottl_parameter one_string[] = {{"Target", OTTL_STRINGS_ONLY, false, false},
                                                   {.name = NULL}};

const struct ottl_function ottl_string_functions[] = {
    {.name = "IsMatch",
     .parameters = is_match_parameters,
     .evaluate = is_match,
     .prepare = prepare_is_match,
     .release = release_pattern,
     .spends_by = 1},
    {.name = "Concat", .parameters = concat_parameters, .evaluate = concat},
    {.name = "Substring", .parameters = substring_parameters, .evaluate = substring},
    {.name = "Split", .parameters = split_parameters, .evaluate = split},
    {.name = "ConvertCase",
     .parameters = convert_case_parameters,
     .evaluate = convert_case,
     .prepare = prepare_convert_case},
    {.name = "ToLowerCase", .parameters = one_string, .evaluate = to_lower_case},
    {.name = "ToUpperCase", .parameters = one_string, .evaluate = to_upper_case},
    {.name = "ToCamelCase", .parameters = one_string, .evaluate = to_camel_case},
    {.name = "ToSnakeCase", .parameters = one_string, .evaluate = to_snake_case},
    {.name = "HasPrefix", .parameters = prefix_parameters, .evaluate = has_prefix_call},
    {.name = "HasSuffix", .parameters = suffix_parameters, .evaluate = has_suffix_call},
    {.name = "TrimPrefix", .parameters = prefix_parameters, .evaluate = trim_prefix},
    {.name = "TrimSuffix", .parameters = suffix_parameters, .evaluate = trim_suffix},
    {.name = "Trim", .parameters = trim_parameters, .evaluate = trim},
    {.name = NULL},
};
