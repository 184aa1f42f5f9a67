/* SPDX-License-Identifier: Apache-2.0 */
/* Editors that replace text: replace_pattern and replace_match of one value, replace_all_patterns
 * and replace_all_matches of a map's. Runs on the processor's thread. */
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8.h"
#include "src/ottl/functions/glob.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/regex.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"

/* The parameters after these are in all four: the replacement, a function, its format. */
enum { PATTERN_OF_ONE = 1, PATTERN_OF_ALL = 2 };

/* Those that are no literals. */
enum { REPLACEMENT_BYTES_MAX = 64 * 1024 };

/* What is constant. */
struct replacing {
    struct pattern *pattern;       /* NULL: the argument is not constant */
    struct pattern_template *form; /* NULL: the replacement or the pattern is not constant */
    bool is_of_keys;
};

/* What one call replaces. */
struct rewriting {
    struct ottl_regex regex;
    const struct pattern_template *form;
    unsigned function; /* the parameter; the next one is its format */
    struct slice *groups;
    size_t groups_count;
    struct pattern_template *owned_form;
};

static void release_replacing(void *state)
{
    struct replacing *replacing = state;
    if (replacing == NULL)
        return;
    pattern_template_destroy(replacing->form);
    pattern_destroy(replacing->pattern);
    mem_free(replacing);
}

static bool has_zero(struct slice text)
{
    return text.size > 0 && memchr(text.data, '\0', text.size) != NULL;
}

static struct pattern_template *form_of(const struct pattern *pattern, struct slice text)
{
    char *copy = mem_alloc(text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    struct pattern_template *form = pattern_template_create(pattern, copy);
    mem_free(copy);
    return form;
}

static bool prepare_patterns(const struct ottl_preparation *preparation, unsigned parameter,
                             void **ret_state, struct error *error)
{
    struct replacing *replacing = mem_zalloc(sizeof(*replacing));
    struct ottl_value value;
    *ret_state = NULL;
    if (!ottl_prepare_pattern(preparation, parameter, &replacing->pattern, error)) {
        release_replacing(replacing);
        return false;
    }
    if (replacing->pattern != NULL && ottl_is_constant(preparation, parameter + 1, &value) &&
        value.type == OTTL_STRING && !has_zero(ottl_slice(&value)))
        replacing->form = form_of(replacing->pattern, ottl_slice(&value));
    *ret_state = replacing;
    return true;
}

static bool prepare_pattern(const struct ottl_preparation *preparation, void **ret_state,
                            struct error *error)
{
    return prepare_patterns(preparation, PATTERN_OF_ONE, ret_state, error);
}

static bool prepare_all_patterns(const struct ottl_preparation *preparation, void **ret_state,
                                 struct error *error)
{
    struct slice mode = ottl_literal_text(preparation, 1);
    *ret_state = NULL;
    if (!slice_equal_text(mode, "key") && !slice_equal_text(mode, "value"))
        return error_set(error, "invalid mode %.*s, must be either 'key' or 'value'",
                         (int)mode.size, (const char *)mode.data);
    if (!prepare_patterns(preparation, PATTERN_OF_ALL, ret_state, error))
        return false;
    ((struct replacing *)*ret_state)->is_of_keys = slice_equal_text(mode, "key");
    return true;
}

/* Go's format of a replacement: %s stands for it. Anything else behind a percent sign is refused;
 * of several %s only the first has something to show. */
static bool apply_format(struct ottl_call *call, unsigned parameter, struct slice *text)
{
    struct slice format;
    struct text_builder builder;
    bool has_text = false;
    if (!ottl_has(call, parameter))
        return true;
    if (!ottl_get_string(call, parameter, &format))
        return false;
    bool is_valid = format.size > 0 && memchr(format.data, '\n', format.size) == NULL;
    for (size_t i = 0; i < format.size; i++) {
        if (format.data[i] != '%' || i + 1 == format.size)
            continue;
        is_valid = is_valid && format.data[i + 1] == 's';
        has_text = true;
        i++;
    }
    if (!is_valid || !has_text)
        return ottl_fail(call, "replacementFormat must be format string containing a single %%s "
                               "and no other format specifiers");
    if (!text_builder_init(&builder, call, format.size + text->size))
        return false;
    for (size_t i = 0; i < format.size; i++) {
        struct slice piece = slice_of(format.data + i, 1);
        if (format.data[i] == '%' && i + 1 < format.size) {
            piece = has_text ? *text : slice_of_text("%!s(MISSING)");
            has_text = false;
            i++;
        } else if (format.data[i] == '%') {
            piece = slice_of_text("%!(NOVERB)");
        }
        if (!text_builder_add(&builder, piece.data, piece.size))
            return false;
    }
    *text = text_builder_text(&builder);
    return true;
}

/* What the function makes of text. */
static bool apply_function(struct ottl_call *call, unsigned parameter, const char *failure,
                           struct slice *text)
{
    struct ottl_value value = ottl_string(*text);
    struct ottl_value made = ottl_nil();
    if (!ottl_apply(call, parameter, &value, 1, &made))
        return false;
    if (made.type != OTTL_STRING)
        return ottl_fail(call, "%s", failure);
    *text = ottl_slice(&made);
    return apply_format(call, parameter + 1, text);
}

static bool add_replacement(const struct rewriting *rewriting, struct text_builder *builder)
{
    struct ottl_call *call = builder->call;
    size_t room = builder->capacity - builder->size;
    size_t size = pattern_template_expand(rewriting->form, rewriting->groups,
                                          builder->bytes + builder->size, room);
    if (size > room) {
        if (!text_builder_room(builder, size))
            return false;
        pattern_template_expand(rewriting->form, rewriting->groups, builder->bytes + builder->size,
                                size);
    }
    if (!ottl_has(call, rewriting->function)) {
        builder->size += size;
        return true;
    }
    struct slice text;
    return text_keep(call, slice_of(builder->bytes + builder->size, size), &text) &&
           apply_function(call, rewriting->function, "the replacement value must be a string",
                          &text) &&
           text_builder_add(builder, text.data, text.size);
}

/* For a pattern that is a text of a record: what it takes is counted. A plain text is looked for up
 * to the end of the match, other patterns may have to look at all that follows. */
static __attribute__((noinline)) bool find_counted(struct ottl_call *call,
                                                   const struct rewriting *rewriting,
                                                   struct slice text, size_t at, bool *ret_matches)
{
    const struct ottl_regex *regex = &rewriting->regex;
    const struct slice *match = &rewriting->groups[0];
    const size_t groups = rewriting->groups_count - 1;
    const bool is_plain = pattern_steps(regex->pattern) == 1;
    size_t searched = text.size - at;
    if (!is_plain && !ottl_count_search(call, regex, searched, groups))
        return false;
    *ret_matches =
        pattern_find_from(regex->pattern, text, at, rewriting->groups, rewriting->groups_count);
    if (is_plain && *ret_matches)
        searched = (size_t)(match->data + match->size - (text.data + at));
    return !is_plain || ottl_count_search(call, regex, searched, groups);
}

/* The next match at or after `at`. False: *ret_matches is not set. */
static inline bool find_from(struct ottl_call *call, const struct rewriting *rewriting,
                             struct slice text, size_t at, bool *ret_matches)
{
    if (rewriting->regex.made.pattern != NULL)
        return find_counted(call, rewriting, text, at, ret_matches);
    *ret_matches = pattern_find_from(rewriting->regex.pattern, text, at, rewriting->groups,
                                     rewriting->groups_count);
    return true;
}

/* As Go's ReplaceAllString: an empty match right behind another one is none. *ret_matches: there is
 * one, and *ret is the new text. */
static bool rewrite(struct ottl_call *call, const struct rewriting *rewriting, struct slice text,
                    struct slice *ret, bool *ret_matches)
{
    struct text_builder builder;
    size_t copied = 0;
    size_t at = 0;
    if (text.size == 0)
        text = slice_of("", 0);
    bool has_more;
    if (!find_from(call, rewriting, text, 0, &has_more))
        return false;
    *ret_matches = has_more;
    if (!has_more)
        return true;
    if (!text_builder_init(&builder, call, text.size))
        return false;
    while (has_more) {
        size_t begin = (size_t)(rewriting->groups[0].data - text.data);
        size_t end = begin + rewriting->groups[0].size;
        if (!text_builder_add(&builder, text.data + copied, begin - copied))
            return false;
        if ((end > copied || begin == 0) && !add_replacement(rewriting, &builder))
            return false;
        copied = end;
        size_t width = at < text.size ? utf8_size(slice_of(text.data + at, text.size - at)) : 0;
        size_t next = at + (width > 0 ? width : 1);
        at = next > end ? next : end;
        has_more = at <= text.size;
        if (has_more && !find_from(call, rewriting, text, at, &has_more))
            return false;
    }
    if (!text_builder_add(&builder, text.data + copied, text.size - copied))
        return false;
    *ret = text_builder_text(&builder);
    return true;
}

/* Gets pattern and form. The caller ends it in any case. */
static bool begin_rewriting(struct ottl_call *call, unsigned parameter, struct slice replacement,
                            struct rewriting *rewriting)
{
    const struct replacing *replacing = call->state;
    *rewriting = (struct rewriting){.function = parameter + 2, .form = replacing->form};
    if (!ottl_get_pattern(call, parameter, replacing->pattern, false, &rewriting->regex))
        return false;
    if (rewriting->form == NULL) {
        if (has_zero(replacement))
            return ottl_fail(call, "a replacement with a zero byte");
        if (replacement.size > REPLACEMENT_BYTES_MAX)
            return ottl_fail(call, "a replacement of more than %d bytes", REPLACEMENT_BYTES_MAX);
        /* Each name in it is looked up among the groups. */
        if (!ottl_count_search(call, &rewriting->regex, replacement.size, 0))
            return false;
        rewriting->form = rewriting->owned_form = form_of(rewriting->regex.pattern, replacement);
    }
    rewriting->groups_count = pattern_template_groups(rewriting->form);
    if (rewriting->groups_count == 0)
        rewriting->groups_count = 1;
    rewriting->groups = ottl_alloc(call, rewriting->groups_count * sizeof(*rewriting->groups));
    return rewriting->groups != NULL;
}

static void end_rewriting(struct ottl_call *call, struct rewriting *rewriting)
{
    pattern_template_destroy(rewriting->owned_form);
    ottl_release_pattern(call, &rewriting->regex);
}

static bool replace_pattern(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_value value;
    struct rewriting rewriting;
    struct slice text;
    bool matches = false;
    (void)ret;
    if (!ottl_get(call, 0, &value))
        return false;
    if (value.type == OTTL_NIL)
        return true;
    if (!ottl_get_string(call, PATTERN_OF_ONE + 1, &text))
        return false;
    if (value.type != OTTL_STRING)
        return true;
    bool is_fine = begin_rewriting(call, PATTERN_OF_ONE, text, &rewriting) &&
                   rewrite(call, &rewriting, ottl_slice(&value), &text, &matches);
    end_rewriting(call, &rewriting);
    if (!is_fine || !matches)
        return is_fine;
    value = ottl_string(text);
    return ottl_set(call, 0, &value);
}

/* After a failure: whether it ends the call, which failures of functions do not. */
static bool must_end(struct ottl_call *call, const struct rewriting *rewriting)
{
    return call->memory->refused_bytes > 0 || ottl_has_searched_too_long(call, &rewriting->regex);
}

/* A failure of the function leaves the value as it is. */
static bool replace_in_values(struct ottl_call *call, const struct rewriting *rewriting,
                              struct ottl_map *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_value value;
        struct slice text;
        bool matches;
        if (!ottl_map_read(map, &map->entries[i], &value))
            return ottl_no_memory(call);
        if (value.type != OTTL_STRING)
            continue;
        if (!rewrite(call, rewriting, ottl_slice(&value), &text, &matches)) {
            if (must_end(call, rewriting))
                return false;
            continue;
        }
        value = matches ? ottl_string(text) : value;
        if (matches && !ottl_map_set(map, &map->entries[i], &value))
            return ottl_no_memory(call);
    }
    return true;
}

/* The entries move to their new keys, one by one; of equal ones the last counts, at the place of
 * the first. An entry whose function fails is lost, as in Go. */
static bool replace_in_keys(struct ottl_call *call, const struct rewriting *rewriting,
                            struct ottl_map *map)
{
    const uint32_t count = map->count;
    struct key_index index;
    uint32_t kept = 0;
    uint32_t i;
    bool has_changed = false;
    bool is_fine = true;
    key_index_init(&index, call, map);
    for (i = 0; i < count && is_fine; i++) {
        struct ottl_entry entry = map->entries[i];
        bool matches;
        if (!rewrite(call, rewriting, entry.key, &entry.key, &matches)) {
            has_changed = true;
            if (must_end(call, rewriting))
                break;
            continue;
        }
        entry.is_new = entry.is_new || matches;
        entry.ready = NULL;
        struct ottl_entry *same = key_index_find(&index, entry.key, kept);
        has_changed = has_changed || matches || same != NULL;
        if (same != NULL) {
            same->value = entry.value;
            same->is_new = true;
            same->ready = NULL;
            continue;
        }
        struct ottl_value key = ottl_string(entry.key);
        if (matches && !ottl_value_copy(map->base.memory, NULL, &key, &key)) {
            has_changed = true;
            ottl_no_memory(call);
            break;
        }
        entry.key = ottl_slice(&key);
        map->entries[kept] = entry;
        is_fine = key_index_note(&index, kept++);
    }
    if (!has_changed)
        return is_fine;
    is_fine = is_fine && i == count;
    for (; i < count; i++) /* memory or time was refused: the rest stays as it is */
        map->entries[kept++] = map->entries[i];
    map->count = kept;
    map->moves++;
    ottl_container_touch(&map->base);
    return is_fine;
}

static bool replace_all_patterns(struct ottl_call *call, struct ottl_value *ret)
{
    const struct replacing *replacing = call->state;
    struct ottl_map *map;
    struct rewriting rewriting;
    struct slice text;
    (void)ret;
    if (!ottl_get_map(call, 0, &map) || !ottl_get_string(call, PATTERN_OF_ALL + 1, &text))
        return false;
    bool is_fine = begin_rewriting(call, PATTERN_OF_ALL, text, &rewriting) &&
                   (replacing->is_of_keys ? replace_in_keys(call, &rewriting, map)
                                          : replace_in_values(call, &rewriting, map));
    end_rewriting(call, &rewriting);
    return is_fine;
}

static bool prepare_match(const struct ottl_preparation *preparation, void **ret_state,
                          struct error *error)
{
    struct ottl_value value;
    *ret_state = NULL;
    if (!ottl_is_constant(preparation, PATTERN_OF_ONE, &value) || value.type != OTTL_STRING)
        return true;
    *ret_state = glob_compile(ottl_slice(&value), error);
    return *ret_state != NULL || error_prefix(error, "the pattern \"%.*s\" is not valid",
                                              (int)value.size, (const char *)value.bytes);
}

static void release_match(void *state)
{
    pattern_destroy(state);
}

/* The replacement, or what the function makes of it. */
static bool get_replacement(struct ottl_call *call, struct slice *ret)
{
    enum { REPLACEMENT = PATTERN_OF_ONE + 1, FUNCTION };
    return ottl_get_string(call, REPLACEMENT, ret) &&
           (!ottl_has(call, FUNCTION) ||
            apply_function(call, FUNCTION, "replacement value is not a string", ret));
}

/* Whether a value is a text that matches. */
static bool search(struct ottl_call *call, const struct ottl_regex *regex,
                   const struct ottl_value *value, bool *ret_matches)
{
    *ret_matches = false;
    if (value->type != OTTL_STRING)
        return true;
    if (!ottl_count_search(call, regex, value->size, 0))
        return false;
    *ret_matches = pattern_matches(regex->pattern, ottl_slice(value));
    return true;
}

static bool replace_match(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_regex regex;
    struct ottl_value value;
    struct slice replacement;
    bool matches = false;
    (void)ret;
    if (!ottl_get_pattern(call, PATTERN_OF_ONE, call->state, true, &regex))
        return false;
    bool is_fine = ottl_get(call, 0, &value) && get_replacement(call, &replacement) &&
                   search(call, &regex, &value, &matches);
    ottl_release_pattern(call, &regex);
    if (!matches)
        return is_fine;
    value = ottl_string(replacement);
    return ottl_set(call, 0, &value);
}

static bool match_values(struct ottl_call *call, const struct ottl_regex *regex)
{
    struct ottl_map *map;
    struct slice replacement;
    if (!ottl_get_map(call, 0, &map) || !get_replacement(call, &replacement))
        return false;
    for (uint32_t i = 0; i < map->count; i++) {
        struct ottl_value value;
        bool matches;
        if (!ottl_map_read(map, &map->entries[i], &value))
            return ottl_no_memory(call);
        if (!search(call, regex, &value, &matches))
            return false;
        if (!matches)
            continue;
        value = ottl_string(replacement);
        if (!ottl_map_set(map, &map->entries[i], &value))
            return ottl_no_memory(call);
    }
    return true;
}

static bool replace_all_matches(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_regex regex;
    (void)ret;
    if (!ottl_get_pattern(call, PATTERN_OF_ONE, call->state, true, &regex))
        return false;
    bool is_fine = match_values(call, &regex);
    ottl_release_pattern(call, &regex);
    return is_fine;
}

static const struct ottl_parameter pattern_parameters[] = {
    {"Target", OTTL_PATH, false, false},
    {"RegexPattern", OTTL_STRINGS_ONLY, false, false},
    {"Replacement", OTTL_STRINGS_ONLY, false, false},
    {"Function", OTTL_FUNCTION_NAME, true, false},
    {"ReplacementFormat", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};

static const struct ottl_parameter all_patterns_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Mode", OTTL_TEXT_LITERAL, false, false},
    {"RegexPattern", OTTL_STRINGS_ONLY, false, false},
    {"Replacement", OTTL_STRINGS_ONLY, false, false},
    {"Function", OTTL_FUNCTION_NAME, true, false},
    {"ReplacementFormat", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};

static const struct ottl_parameter match_parameters[] = {
    {"Target", OTTL_PATH, false, false},
    {"Pattern", OTTL_STRINGS_ONLY, false, false},
    {"Replacement", OTTL_STRINGS_ONLY, false, false},
    {"Function", OTTL_FUNCTION_NAME, true, false},
    {"ReplacementFormat", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};

static const struct ottl_parameter all_matches_parameters[] = {
    {"Target", OTTL_MAP_PATH, false, false},
    {"Pattern", OTTL_STRINGS_ONLY, false, false},
    {"Replacement", OTTL_STRINGS_ONLY, false, false},
    {"Function", OTTL_FUNCTION_NAME, true, false},
    {"ReplacementFormat", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};

const struct ottl_function ottl_replace_functions[] = {
    {.name = "replace_pattern",
     .parameters = pattern_parameters,
     .evaluate = replace_pattern,
     .prepare = prepare_pattern,
     .release = release_replacing,
     .users = OTTL_FOR_TRANSFORM,
     .spends_by = PATTERN_OF_ONE},
    {.name = "replace_all_patterns",
     .parameters = all_patterns_parameters,
     .evaluate = replace_all_patterns,
     .prepare = prepare_all_patterns,
     .release = release_replacing,
     .users = OTTL_FOR_TRANSFORM,
     .spends_by = PATTERN_OF_ALL},
    {.name = "replace_match",
     .parameters = match_parameters,
     .evaluate = replace_match,
     .prepare = prepare_match,
     .release = release_match,
     .users = OTTL_FOR_TRANSFORM,
     .spends_by = PATTERN_OF_ONE},
    {.name = "replace_all_matches",
     .parameters = all_matches_parameters,
     .evaluate = replace_all_matches,
     .prepare = prepare_match,
     .release = release_match,
     .users = OTTL_FOR_TRANSFORM,
     .spends_by = PATTERN_OF_ONE},
    {.name = NULL},
};
