/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes nodes into the structs that option tables describe. One setter per type; sections take
 * their defaults first, then the keys of the map, then their rules. Types are strict, as in the Go
 * collector: a number is not a string; only substituted values adapt to the field. An explicit null
 * is the type's zero. Recursion follows the tables. Main thread. */
#include "src/config/decode.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/base/error.h"
#include "src/config/byte_size.h"
#include "src/config/duration.h"
#include "src/config/loader.h"
#include "src/config/scalar.h"
#include "src/config/suggest.h"
#include "src/config/yaml_tree.h"

enum { EXPECTED_TEXT_MAX = 512 };

/* target is the field itself; an absent key is not set at all. */
typedef void (*decode_setter_fn)(const struct site *site, const struct config_field *field,
                                 const struct node *node, void *target);

static void decode_map(const struct site *site, const struct config_field *section,
                       const struct node *map, void *target);

const char *decode_text_of(const struct node *node)
{
    if (node->verbatim != NULL)
        return node->verbatim;
    if (node->kind == NODE_NULL)
        return "";
    return node->kind == NODE_TEXT ? node->text : NULL;
}

static void report_mismatch(const struct site *site, const struct config_field *field,
                            const struct node *node, const char *expected)
{
    if (node->kind == NODE_BROKEN)
        return;
    bool may_be_secret = field->type == CONFIG_TYPE_SECRET || field->type == CONFIG_TYPE_SECRETS ||
                         field->type == CONFIG_TYPE_HEADERS;
    /* Users also write a secret in the place of its section. */
    const struct config_field *inner = field->type == CONFIG_TYPE_SECTION ? field->fields : NULL;
    for (; inner != NULL && inner->key != NULL; inner++)
        may_be_secret |= inner->type == CONFIG_TYPE_SECRET || inner->type == CONFIG_TYPE_SECRETS;
    struct node_description found =
        may_be_secret ? node_describe_secret(node) : node_describe(node);
    loader_problem(site->loader, node->position, site->path, "found %s, expected %s", found.text,
                   expected);
}

/* The hint "without quotes", if the value would be fine without them. */
static const char *quotes_hint(const struct node *node, enum node_kind kind)
{
    if (node->kind != NODE_TEXT || node->reference != NULL)
        return "";
    enum node_kind unquoted = text_to_scalar(node->text).kind;
    return unquoted == kind ? " (without quotes)" : "";
}

static void decode_bool(const struct site *site, const struct config_field *field,
                        const struct node *node, void *target)
{
    char expected[EXPECTED_TEXT_MAX];
    bool *boolean = target;
    if (node->kind == NODE_BOOL || node->kind == NODE_NULL) {
        *boolean = node->kind == NODE_BOOL && node->boolean;
        return;
    }
    snprintf(expected, sizeof(expected), "true or false%s", quotes_hint(node, NODE_BOOL));
    report_mismatch(site, field, node, expected);
}

/* Truncates doubles, as the Go collector does silently. */
static bool take_whole(const struct site *site, const struct node *node, int64_t *ret_integer)
{
    if (node->kind == NODE_NULL)
        *ret_integer = 0;
    else if (node->kind == NODE_INT)
        *ret_integer = node->integer;
    else if (node->kind == NODE_DOUBLE && fabs(node->real) < 9e18)
        *ret_integer = (int64_t)node->real;
    else
        return false;
    if (node->kind == NODE_DOUBLE && (double)*ret_integer != node->real)
        loader_warning(site->loader, node->position, site->path,
                       "found %s, which is cut to %" PRIi64 "; expected a whole number",
                       node_describe(node).text, *ret_integer);
    return true;
}

static void describe_words(const struct config_field *field, char *text, size_t size)
{
    assert(size > 0);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s\"%s\"", i > 0 ? ", " : "",
                                   field->choices[i]);
}

/* A word of the row means its index. False: reported. */
static bool take_in_range(const struct site *site, const struct config_field *field,
                          const struct node *node, int64_t *ret_integer)
{
    char expected[EXPECTED_TEXT_MAX];
    int64_t integer = 0;
    assert(field->min <= field->max);
    bool may_be_word = field->choices != NULL && node->kind == NODE_TEXT;
    for (int64_t i = 0; may_be_word && field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], node->text) != 0)
            continue;
        *ret_integer = i;
        return true;
    }
    /* -0.5 is not truncated to a count of 0. */
    bool is_signed = field->type == CONFIG_TYPE_INT || node->kind != NODE_DOUBLE || node->real >= 0;
    bool is_fitting = is_signed && take_whole(site, node, &integer) &&
                      (site->is_off || (integer >= field->min && integer <= field->max));
    if (is_fitting) {
        *ret_integer = integer;
        return true;
    }
    assert(field->type == CONFIG_TYPE_COUNT || field->type == CONFIG_TYPE_INT);
    char words[EXPECTED_TEXT_MAX / 2];
    describe_words(field, words, sizeof(words));
    size_t length = (size_t)snprintf(expected, sizeof(expected), "%s%sa whole number", words,
                                     words[0] != '\0' ? " or " : "");
    if (field->min == INT64_MIN && field->max == INT64_MAX)
        snprintf(expected + length, sizeof(expected) - length, "%s", quotes_hint(node, NODE_INT));
    else if (field->max == INT64_MAX)
        snprintf(expected + length, sizeof(expected) - length, " of at least %" PRIi64 "%s",
                 field->min, quotes_hint(node, NODE_INT));
    else
        snprintf(expected + length, sizeof(expected) - length, " from %" PRIi64 " to %" PRIi64 "%s",
                 field->min, field->max, quotes_hint(node, NODE_INT));
    report_mismatch(site, field, node, expected);
    return false;
}

static void decode_count(const struct site *site, const struct config_field *field,
                         const struct node *node, void *target)
{
    int64_t integer;
    uint64_t *count = target;
    assert(field->min >= 0);
    if (take_in_range(site, field, node, &integer))
        *count = integer > 0 ? (uint64_t)integer : 0;
}

static void decode_int(const struct site *site, const struct config_field *field,
                       const struct node *node, void *target)
{
    int64_t *integer = target;
    take_in_range(site, field, node, integer);
}

static void decode_double(const struct site *site, const struct config_field *field,
                          const struct node *node, void *target)
{
    double *real = target;
    if (node->kind == NODE_NULL)
        *real = 0;
    else if (node->kind == NODE_INT)
        *real = (double)node->integer;
    else if (node->kind == NODE_DOUBLE)
        *real = node->real;
    else
        report_mismatch(site, field, node, "a number");
}

static void decode_duration(const struct site *site, const struct config_field *field,
                            const struct node *node, void *target)
{
    char expected[EXPECTED_TEXT_MAX];
    int64_t duration_ns = 0;
    uint64_t *field_ns = target;
    const char *problem = NULL; /* "": the wrong type */
    if (node->kind == NODE_TEXT)
        problem = text_to_duration_ns(node->text, &duration_ns);
    else if (!take_whole(site, node, &duration_ns))
        problem = "";
    else if (duration_ns != 0)
        loader_warning(site->loader, node->position, site->path,
                       "found %s, which is read as nanoseconds; expected a duration with its "
                       "unit, such as \"%" PRIi64 "s\"",
                       node_describe(node).text, duration_ns);
    bool is_fitting = site->is_off || (duration_ns >= field->min && duration_ns <= field->max);
    assert(field->min <= field->max);
    if (problem == NULL && is_fitting) {
        *field_ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;
        if (duration_ns < 0 && !site->is_off)
            loader_warning(site->loader, node->position, site->path,
                           "found %s; a negative duration is taken as 0", node_describe(node).text);
        return;
    }
    size_t size = sizeof(expected);
    size_t length;
    if (field->max == INT64_MAX && field->min <= 0)
        length = (size_t)snprintf(expected, size, "a duration such as \"200ms\" or \"1m30s\"");
    else if (field->max == INT64_MAX)
        length = (size_t)snprintf(expected, size, "a duration of at least %s",
                                  duration_to_text(field->min).text);
    else
        length =
            (size_t)snprintf(expected, size, "a duration from %s to %s",
                             duration_to_text(field->min).text, duration_to_text(field->max).text);
    if (problem != NULL && *problem != '\0' && length < size)
        snprintf(expected + length, size - length, " (%s)", problem);
    report_mismatch(site, field, node, expected);
}

static void decode_bytes(const struct site *site, const struct config_field *field,
                         const struct node *node, void *target)
{
    char expected[EXPECTED_TEXT_MAX];
    uint64_t bytes = 0;
    uint64_t *field_bytes = target;
    bool is_number = node->kind == NODE_INT && node->integer >= 0;
    bool is_size =
        is_number || node->kind == NODE_NULL ||
        (node->kind == NODE_TEXT &&
         (field->is_level ? text_to_bytes_in_any_case : text_to_bytes)(node->text, &bytes));
    assert(field->min >= 0 && field->min <= field->max);
    if (is_number)
        bytes = (uint64_t)node->integer;
    if (is_size &&
        (site->is_off || (bytes >= (uint64_t)field->min && bytes <= (uint64_t)field->max))) {
        *field_bytes = bytes;
        return;
    }
    snprintf(expected, sizeof(expected), "a number of bytes from %s to %s, such as \"64MiB\"",
             bytes_to_text((uint64_t)field->min).text, bytes_to_text((uint64_t)field->max).text);
    report_mismatch(site, field, node, expected);
}

static void decode_text(const struct site *site, const struct config_field *field,
                        const struct node *node, void *target)
{
    const char **text = target;
    const char *found = decode_text_of(node);
    if (field->refuses_empty && field->accepts == NULL && node->kind == NODE_TEXT &&
        node->text[0] == '\0')
        report_mismatch(site, field, node, "a string that is not empty, or no such key");
    else if (found != NULL)
        *text = node->kind != NODE_NULL ? found
                : field->is_nullable    ? NULL
                : field->refuses_empty  ? ""
                                        : found;
    else
        report_mismatch(site, field, node,
                        node->kind == NODE_LIST || node->kind == NODE_MAP
                            ? "a string"
                            : "a string (put it in quotes)");
}

static void decode_choice(const struct site *site, const struct config_field *field,
                          const struct node *node, void *target)
{
    char words[EXPECTED_TEXT_MAX / 2];
    char expected[EXPECTED_TEXT_MAX];
    int *index = target;
    bool is_unset = field->refuses_empty && node->kind == NODE_NULL;
    bool is_empty = field->refuses_empty && node->kind == NODE_TEXT && node->text[0] == '\0';
    const char *found = is_unset ? "" : is_empty ? NULL : decode_text_of(node);
    struct suggestion suggestion = loader_suggestion(site->loader, found != NULL ? found : "");
    if (field->is_level && node->kind == NODE_NULL) {
        *index = 0;
        return;
    }
    for (int i = 0; field->choices[i] != NULL; i++) {
        bool is_number = field->is_level && node->kind == NODE_INT && node->integer == i;
        if (is_number || (found != NULL &&
                          (field->is_level ? strcasecmp : strcmp)(field->choices[i], found) == 0)) {
            *index = i;
            return;
        }
        suggestion_consider(&suggestion, field->choices[i]);
    }
    describe_words(field, words, sizeof(words));
    snprintf(expected, sizeof(expected), "one of %s%s", words,
             suggestion_to_text(&suggestion).text);
    report_mismatch(site, field, node, expected);
}

static void decode_texts(const struct site *site, const struct config_field *field,
                         const struct node *node, void *target)
{
    struct config_texts *texts = target;
    if (node->kind == NODE_TEXT && field->type != CONFIG_TYPE_SECRETS) {
        /* "a,b" becomes a list of two, "" an empty one. */
        struct loader *loader = site->loader;
        if (!loader_charge_expanded(loader, strlen(node->text))) {
            loader_problem(loader, node->position, site->path, "found too many long lists");
            return;
        }
        size_t count = *node->text != '\0' ? 1 : 0;
        for (const char *at = strchr(node->text, ','); at != NULL; at = strchr(at + 1, ','))
            count++;
        const char **parts = loader_zalloc(loader, count * sizeof(*parts));
        char *rest = loader_copy_text(loader, node->text);
        for (size_t i = 0; i < count; i++) {
            parts[i] = rest;
            rest += strcspn(rest, ",");
            *rest++ = '\0';
        }
        *texts = (struct config_texts){.count = count, .texts = parts};
        return;
    }
    if (node->kind == NODE_NULL) {
        if (node->reference != NULL)
            *texts = (struct config_texts){.count = 0};
        return;
    }
    if (node->kind != NODE_LIST) {
        report_mismatch(site, field, node, "a list of strings");
        return;
    }
    const char **parts = loader_zalloc(site->loader, node->count * sizeof(*parts));
    for (size_t i = 0; i < node->count; i++) {
        struct path path = {.parent = site->path, .index = i};
        struct site element = *site;
        element.path = &path;
        parts[i] = "";
        decode_text(&element, field, node->entries[i].value, &parts[i]);
    }
    *texts = (struct config_texts){.count = node->count, .texts = parts};
}

static void decode_pairs(const struct site *site, const struct config_field *field,
                         const struct node *node, void *target)
{
    struct config_pairs *pairs = target;
    if (node->kind == NODE_NULL) {
        if (node->reference != NULL)
            *pairs = (struct config_pairs){.count = 0};
        return;
    }
    if (node->kind != NODE_MAP) {
        report_mismatch(site, field, node, "a map of strings");
        return;
    }
    struct config_pair *parts = loader_zalloc(site->loader, node->count * sizeof(*parts));
    for (size_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        struct path path = {.parent = site->path, .key = entry->key, .index = i};
        struct site inner = *site;
        inner.path = &path;
        parts[i] = (struct config_pair){.key = entry->key, .value = ""};
        decode_text(&inner, field, entry->value, &parts[i].value);
    }
    *pairs = (struct config_pairs){.count = node->count, .pairs = parts};
}

static void decode_headers(const struct site *site, const struct config_field *field,
                           const struct node *node, void *target)
{
    struct config_pairs *headers = target;
    if (node->kind == NODE_NULL) {
        if (node->reference != NULL)
            *headers = (struct config_pairs){.count = 0};
        return;
    }
    if (node->kind != NODE_LIST && node->kind != NODE_MAP) {
        report_mismatch(site, field, node, "a map of strings, or a list of {name: …, value: …}");
        return;
    }
    struct config_pair *pairs = loader_zalloc(site->loader, node->count * sizeof(*pairs));
    struct node names = {.kind = NODE_MAP}; /* those of a list so far */
    for (size_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        struct path path = {.parent = site->path, .key = entry->key, .index = i};
        struct site inner = *site;
        inner.path = &path;
        if (node->kind == NODE_MAP) {
            pairs[i] = (struct config_pair){.key = entry->key, .value = ""};
            decode_text(&inner, field, entry->value, &pairs[i].value);
            continue;
        }
        pairs[i] = (struct config_pair){.key = "", .value = ""};
        const struct node *name = node_value(entry->value, "name");
        const struct node *value = node_value(entry->value, "value");
        size_t known = (name != NULL ? 1u : 0u) + (value != NULL ? 1u : 0u);
        if (entry->value->kind != NODE_MAP || entry->value->count != known || name == NULL) {
            report_mismatch(&inner, field, entry->value, "a map with the keys name and value");
            continue;
        }
        struct path name_path = {.parent = &path, .key = "name"};
        struct path value_path = {.parent = &path, .key = "value"};
        inner.path = &name_path;
        decode_text(&inner, field, name, &pairs[i].key);
        inner.path = &value_path;
        if (value != NULL)
            decode_text(&inner, field, value, &pairs[i].value);
        if (pairs[i].key[0] == '\0')
            continue;
        if (node_find(&names, pairs[i].key) == NULL)
            node_add(&site->loader->arena, &names,
                     (struct node_entry){.key = pairs[i].key, .value = entry->value});
        else
            loader_problem(site->loader, entry->value->position, &path,
                           "duplicate keys in map-style list: [%s]; expected each name once",
                           pairs[i].key);
    }
    *headers = (struct config_pairs){.count = node->count, .pairs = pairs};
}

static void copy_value(struct loader *loader, const struct node *node, struct config_value *value)
{
    static const enum config_value_type types[] = {
        [NODE_NULL] = CONFIG_VALUE_NULL,   [NODE_BOOL] = CONFIG_VALUE_BOOL,
        [NODE_INT] = CONFIG_VALUE_INT,     [NODE_DOUBLE] = CONFIG_VALUE_DOUBLE,
        [NODE_TEXT] = CONFIG_VALUE_TEXT,   [NODE_TIME] = CONFIG_VALUE_NULL,
        [NODE_LIST] = CONFIG_VALUE_LIST,   [NODE_MAP] = CONFIG_VALUE_MAP,
        [NODE_BROKEN] = CONFIG_VALUE_NULL,
    };
    *value = (struct config_value){.type = types[node->kind],
                                   .boolean = node->boolean,
                                   .integer = node->integer,
                                   .real = node->real,
                                   .text = node->kind == NODE_TEXT ? node->text : NULL,
                                   .count = node->count};
    if (node->count == 0)
        return;
    struct config_value *items = loader_zalloc(loader, node->count * sizeof(*items));
    const char **keys = loader_zalloc(loader, node->count * sizeof(*keys));
    for (size_t i = 0; i < node->count; i++) {
        copy_value(loader, node->entries[i].value, &items[i]);
        keys[i] = node->entries[i].key;
    }
    value->items = items;
    value->keys = node->kind == NODE_MAP ? keys : NULL;
}

static void refuse_times(const struct site *site, const struct node *node)
{
    if (node->kind == NODE_TIME)
        loader_problem(site->loader, node->position, site->path,
                       "found %s, expected any other value; put it in quotes to make it a string",
                       node_describe(node).text);
    for (size_t i = 0; i < node->count; i++) {
        struct path path = {.parent = site->path, .key = node->entries[i].key, .index = i};
        struct site inner = *site;
        inner.path = &path;
        refuse_times(&inner, node->entries[i].value);
    }
}

static void decode_value(const struct site *site, const struct config_field *field,
                         const struct node *node, void *target)
{
    const struct config_value **value = target;
    (void)field;
    struct config_value *copy = loader_zalloc(site->loader, sizeof(*copy));
    refuse_times(site, node);
    copy_value(site->loader, node, copy);
    *value = copy;
}

static void *field_at(const struct config_field *field, void *target)
{
    assert(field->type != CONFIG_TYPE_END);
    return (char *)target + field->offset;
}

static bool *enabled_at(const struct config_field *field, void *target)
{
    assert(field->presence != CONFIG_ALWAYS);
    return (bool *)((char *)target + field->enabled_offset);
}

static void check_section(const struct site *site, const struct config_field *field,
                          const struct node *node, const void *section)
{
    struct error error = {.text = ""};
    struct place place;
    if (field->check == NULL || site->is_off || field->check(section, &error))
        return;
    place_find(&error, node, site->position, site->path, &place);
    if (error.is_unsupported)
        loader_unsupported(site->loader, place.position, place.path, "%s", error.text);
    else
        loader_problem(site->loader, place.position, place.path, "%s", error.text);
}

void decode_section(const struct site *site, const struct config_field *field,
                    const struct node *node, void *owner)
{
    struct site inner = *site;
    struct node empty = {.kind = NODE_MAP, .position = node->position};
    bool is_on = true;
    if (node->kind == NODE_MAP && field->presence != CONFIG_ALWAYS) {
        struct path path = {.parent = site->path, .key = "enabled"};
        const struct node *enabled = node_value(node, path.key);
        /* The Go collector has a plain boolean there. */
        bool may_be_null = field->presence == CONFIG_ON_UNLESS_UNSET;
        if (enabled != NULL && enabled->kind == NODE_BOOL)
            is_on = enabled->boolean;
        else if (enabled != NULL && enabled->kind == NODE_NULL && may_be_null)
            is_on = false;
        else if (enabled != NULL && enabled->kind != NODE_BROKEN)
            loader_problem(site->loader, enabled->position, &path,
                           "found %s, expected true or false%s", node_describe(enabled).text,
                           enabled->kind == NODE_NULL ? " (or no such key)" : "");
    } else if (node->kind == NODE_NULL && field->presence != CONFIG_ALWAYS) {
        if (field->presence == CONFIG_ON_UNLESS_UNSET)
            is_on = node->reference == NULL;
        else
            is_on = field->presence != CONFIG_NULL_IS_OFF || node->reference != NULL;
    } else if (node->kind != NODE_NULL && node->kind != NODE_MAP) {
        report_mismatch(site, field, node, "a map");
        return;
    }
    if (field->presence != CONFIG_ALWAYS)
        *enabled_at(field, owner) = is_on;
    size_t problems = loader_problems(site->loader);
    inner.is_off = site->is_off || !is_on;
    decode_map(&inner, field, node->kind == NODE_MAP ? node : &empty, field_at(field, owner));
    if (loader_problems(site->loader) == problems)
        check_section(&inner, field, node, field_at(field, owner));
}

static void decode_sections(const struct site *site, const struct config_field *field,
                            const struct node *node, void *target)
{
    struct config_sections *sections = target;
    assert(field->section_size > 0);
    if (node->kind == NODE_NULL)
        return;
    if (node->kind != (field->is_map ? NODE_MAP : NODE_LIST)) {
        report_mismatch(site, field, node, field->is_map ? "a map of maps" : "a list of maps");
        return;
    }
    if (field->is_map && node->count == 0)
        return;
    char *items = loader_zalloc(site->loader, node->count * field->section_size);
    for (size_t i = 0; i < node->count; i++) {
        const char *name = field->is_map ? node->entries[i].key : NULL;
        struct path path = {.parent = site->path, .key = name, .index = i};
        struct site element = *site;
        element.path = &path;
        element.position = node->entries[i].position;
        void *section = items + i * field->section_size;
        decode_defaults(element.loader, field->fields, section);
        if (field->is_map)
            memcpy(section, &name, sizeof(name));
        if (field->is_map && node->entries[i].value->kind == NODE_NULL) {
            continue;
        } else if (node->entries[i].value->kind != NODE_MAP) {
            report_mismatch(&element, field, node->entries[i].value, "a map");
        } else {
            size_t problems = loader_problems(element.loader);
            decode_map(&element, field, node->entries[i].value, section);
            if (loader_problems(element.loader) == problems)
                check_section(&element, field, node->entries[i].value, section);
        }
    }
    *sections = (struct config_sections){.count = node->count, .items = items};
}

static const decode_setter_fn setters[] = {
    [CONFIG_TYPE_BOOL] = decode_bool,         [CONFIG_TYPE_COUNT] = decode_count,
    [CONFIG_TYPE_INT] = decode_int,           [CONFIG_TYPE_DOUBLE] = decode_double,
    [CONFIG_TYPE_BYTES] = decode_bytes,       [CONFIG_TYPE_DURATION] = decode_duration,
    [CONFIG_TYPE_TEXT] = decode_text,         [CONFIG_TYPE_SECRET] = decode_text,
    [CONFIG_TYPE_CHOICE] = decode_choice,     [CONFIG_TYPE_TEXTS] = decode_texts,
    [CONFIG_TYPE_SECRETS] = decode_texts,     [CONFIG_TYPE_HEADERS] = decode_headers,
    [CONFIG_TYPE_PAIRS] = decode_pairs,       [CONFIG_TYPE_VALUE] = decode_value,
    [CONFIG_TYPE_SECTIONS] = decode_sections,
};

/* Copies a path from the stack to the arena. */
static const struct path *copy_path(struct loader *loader, const struct path *path)
{
    if (path == NULL)
        return NULL;
    struct path *copy = loader_zalloc(loader, sizeof(*copy));
    *copy = *path;
    copy->parent = copy_path(loader, path->parent);
    return copy;
}

static void set_field(const struct site *site, const struct config_field *field,
                      const struct node *node, void *owner)
{
    if (node->kind == NODE_BROKEN)
        return;
    if (field->type == CONFIG_TYPE_SECTION) {
        decode_section(site, field, node, owner);
        return;
    }
    if (field->type == CONFIG_TYPE_IGNORED) {
        /* Checks the type and discards the value. */
        union {
            bool boolean;
            int64_t integer;
            uint64_t duration_ns;
            const char *text;
            struct config_texts texts;
            const struct config_value *value;
        } unused;
        struct config_field typed = *field;
        typed.type = field->ignored_type;
        if (typed.type == CONFIG_TYPE_SECTION || typed.type == CONFIG_TYPE_SECTIONS) {
            enum node_kind kind = typed.type == CONFIG_TYPE_SECTION ? NODE_MAP : NODE_LIST;
            assert(kind == NODE_MAP || kind == NODE_LIST);
            if (node->kind != kind && node->kind != NODE_NULL)
                report_mismatch(site, field, node, kind == NODE_MAP ? "a map" : "a list");
        } else {
            assert((size_t)typed.type < sizeof(setters) / sizeof(setters[0]));
            assert(setters[typed.type] != NULL);
            setters[typed.type](site, &typed, node, &unused);
        }
        return;
    }
    assert((size_t)field->type < sizeof(setters) / sizeof(setters[0]));
    assert(setters[field->type] != NULL);
    setters[field->type](site, field, node, field_at(field, owner));
    if (field->accepts == NULL)
        return;
    /* The component being decoded names an extension, which is checked once all are known. */
    const char *name = *(const char **)field_at(field, owner);
    struct loader *loader = site->loader;
    if (site->is_off || loader->component == NULL)
        return;
    if (name[0] == '\0') {
        if (node->kind == NODE_TEXT && node->reference == NULL)
            loader_problem(loader, node->position, site->path,
                           "found an empty string, expected the id of an extension");
        return;
    }
    struct extension_name *noted = loader_zalloc(loader, sizeof(*noted));
    *noted = (struct extension_name){
        .next = loader->extension_names,
        .user = loader->component,
        .field = field,
        .name = name,
        .path = copy_path(loader, site->path),
        .position = site->position,
    };
    loader->extension_names = noted;
}

/* Called for keys that the user wrote, not for defaults. */
static void warn_of_key(const struct site *site, const struct config_field *field,
                        const struct node *node, void *owner)
{
    assert(field->warn == NULL || field->type == CONFIG_TYPE_TEXT ||
           field->type == CONFIG_TYPE_TEXTS);
    if (node->kind == NODE_BROKEN || node->kind == NODE_NULL)
        return;
    if (field->type == CONFIG_TYPE_IGNORED || field->has_no_effect)
        loader_warning(site->loader, site->position, site->path,
                       "found a key that has no effect here: %s", field->help);
    if (field->warn == NULL)
        return;
    if (field->type == CONFIG_TYPE_TEXTS) {
        const struct config_texts *texts = field_at(field, owner);
        for (size_t i = 0; i < texts->count; i++) {
            struct path path = {.parent = site->path, .index = i};
            bool is_list = node->kind == NODE_LIST;
            const char *warning = field->warn(texts->texts[i]);
            if (warning != NULL)
                loader_warning(site->loader, is_list ? node->entries[i].position : node->position,
                               is_list ? &path : site->path, "found \"%s\", %s", texts->texts[i],
                               warning);
        }
        return;
    }
    const char *warning = field->warn(*(const char **)field_at(field, owner));
    if (warning != NULL)
        loader_warning(site->loader, node->position, site->path, "%s", warning);
}

void decode_defaults(struct loader *loader, const struct config_field *fields, void *target)
{
    for (const struct config_field *field = fields; field != NULL && field->key != NULL; field++) {
        if (field->type == CONFIG_TYPE_SECTION) {
            if (field->presence != CONFIG_ALWAYS)
                *enabled_at(field, target) = field->presence == CONFIG_DEFAULT_ON ||
                                             field->presence == CONFIG_ON_UNLESS_UNSET;
            decode_defaults(loader, field->fields, field_at(field, target));
        } else if (field->type == CONFIG_TYPE_TEXT || field->type == CONFIG_TYPE_SECRET) {
            const char **text = field_at(field, target);
            *text = field->default_text != NULL || field->is_nullable ? field->default_text : "";
        } else if (field->default_text != NULL) {
            /* Defaults are decoded like substituted values: parsed, with their text beside them.
             * They do not count against the user's limits. */
            static const struct source source = {.name = "default"};
            struct position position = {.source = &source};
            struct path root = {.parent = NULL};
            struct path path = {.parent = &root, .key = field->key};
            struct site site = {.loader = loader, .path = &path, .position = position};
            struct scalar scalar = text_to_scalar(field->default_text);
            struct node node = {.kind = scalar.kind,
                                .boolean = scalar.boolean,
                                .integer = scalar.integer,
                                .real = scalar.real,
                                .text = field->default_text,
                                .verbatim = field->default_text,
                                .position = position};
            bool is_list = field->type == CONFIG_TYPE_TEXTS || field->type == CONFIG_TYPE_HEADERS ||
                           field->type == CONFIG_TYPE_VALUE || field->type == CONFIG_TYPE_SECTIONS;
            size_t nodes = loader->nodes_count;
            size_t bytes = loader->expanded_bytes;
            size_t problems = loader_problems(loader);
            loader->nodes_count = 0;
            loader->expanded_bytes = 0;
            struct yaml_origin origin = {.position = position, .reference = "default"};
            struct yaml_failure failure;
            struct node *parsed =
                is_list
                    ? yaml_tree_parse(loader, slice_of_text(field->default_text), &origin, &failure)
                    : &node;
            set_field(&site, field, parsed, target);
            loader->nodes_count = nodes;
            loader->expanded_bytes = bytes;
            assert(loader_problems(loader) == problems);
        }
    }
}

const struct config_field *decode_find_field(const struct config_field *fields, const char *key)
{
    for (const struct config_field *field = fields; field != NULL && field->key != NULL; field++)
        if (strcmp(field->key, key) == 0)
            return field;
    return NULL;
}

static void decode_map(const struct site *site, const struct config_field *section,
                       const struct node *map, void *target)
{
    assert(map != NULL && map->kind == NODE_MAP);
    bool is_optional = section->type == CONFIG_TYPE_SECTION && section->presence != CONFIG_ALWAYS;
    for (size_t i = 0; i < map->count; i++) {
        const struct node_entry *entry = &map->entries[i];
        const struct config_field *field = decode_find_field(section->fields, entry->key);
        if (field == NULL && is_optional && strcmp(entry->key, "enabled") == 0)
            continue;
        struct path path = {.parent = site->path, .key = entry->key};
        if (field == NULL) {
            struct suggestion suggestion = loader_suggestion(site->loader, entry->key);
            for (const struct config_field *known = section->fields;
                 known != NULL && known->key != NULL; known++)
                suggestion_consider(&suggestion, known->key);
            if (section->fields == NULL)
                loader_problem(site->loader, entry->position, &path,
                               "found an unknown key, expected none at all here");
            else
                loader_problem(site->loader, entry->position, &path,
                               "found an unknown key, expected one of this section%s",
                               suggestion_to_text(&suggestion).text);
            continue;
        }
        struct site inner = *site;
        inner.path = &path;
        inner.position = entry->position;
        set_field(&inner, field, entry->value, target);
        warn_of_key(&inner, field, entry->value, target);
    }
    /* Runs the rules of mandatory sections that the map does not have. */
    struct node empty = {.kind = NODE_MAP, .position = map->position};
    assert(map->kind == NODE_MAP);
    for (const struct config_field *field = section->fields; field != NULL && field->key != NULL;
         field++) {
        struct path path = {.parent = site->path, .key = field->key};
        struct site inner = *site;
        inner.path = &path;
        if (field->type == CONFIG_TYPE_SECTION && field->presence == CONFIG_ALWAYS &&
            node_find(map, field->key) == NULL)
            decode_section(&inner, field, &empty, target);
    }
}
