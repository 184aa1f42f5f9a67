/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles dimensions and globs. Main thread. */
#include "connectors/span_metrics/dimensions.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "connectors/span_metrics/span_metrics_config.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/base/utf8.h"
#include "src/otlp/value.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct text_hash text_hash_of(uint64_t seed, struct slice text)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(text.data, text.size, seed);
    return (struct text_hash){hash.low64, hash.high64};
}

/* A regular expression that grows. */
struct expression {
    char *text;
    size_t size;
    size_t capacity;
};

static void add(struct expression *expression, const char *text, size_t size)
{
    if (expression->capacity < expression->size + size + 1) {
        expression->capacity = 2 * (expression->size + size + 1);
        expression->text = mem_resize(expression->text, expression->capacity);
    }
    memcpy(expression->text + expression->size, text, size);
    expression->size += size;
    expression->text[expression->size] = '\0';
}

static void add_text(struct expression *expression, const char *text)
{
    add(expression, text, strlen(text));
}

/* Bytes of the UTF-8 sequence that begins there. */
static size_t sequence_bytes(const char *at)
{
    size_t size = 1;
    while (((unsigned char)at[size] & 0xc0) == 0x80)
        size++;
    return size;
}

/* One character as it is, in or out of brackets. */
static void add_quoted(struct expression *expression, const char *at)
{
    char quoted[16];
    unsigned char byte = (unsigned char)*at;
    if (byte < 0x80) {
        snprintf(quoted, sizeof(quoted), "\\x{%02x}", byte);
        add_text(expression, quoted);
    } else {
        add(expression, at, sequence_bytes(at));
    }
}

/* What follows "[": [abc], [!abc], [a-z] or [!a-z]. Returns what is behind the "]". */
static const char *add_range(struct expression *expression, const char *at, struct error *error)
{
    bool is_not = *at == '!';
    at += is_not;
    const char *first = at;
    add_text(expression, is_not ? "[^" : "[");
    if (*first == '\0') {
        error_set(error, "unexpected end of input");
        return NULL;
    }
    size_t size = sequence_bytes(first);
    if (first[size] == '-') {
        const char *last = first + size + 1;
        size_t last_size = *last != '\0' ? sequence_bytes(last) : 0;
        if (last_size == 0 || last[last_size] != ']') {
            error_set(error, last_size == 0 ? "unexpected end of input"
                                            : "expected close range character");
            return NULL;
        }
        if (size > last_size || (size == last_size && memcmp(last, first, size) < 0)) {
            error_set(error, "hi character '%.*s' should be greater than lo '%.*s'", (int)last_size,
                      last, (int)size, first);
            return NULL;
        }
        add_quoted(expression, first);
        add_text(expression, "-");
        add_quoted(expression, last);
        at = last + last_size;
    } else {
        for (; *at != '\0' && *at != ']'; at += sequence_bytes(at)) {
            if (*at == '\\' && at[1] != '\0')
                at++;
            add_quoted(expression, at);
        }
        if (at == first || *at == '\0') {
            error_set(error, *at == '\0' ? "unexpected end of input" : "could not parse range");
            return NULL;
        }
    }
    add_text(expression, "]");
    return at + 1;
}

struct pattern *glob_create(const char *glob, struct error *error)
{
    struct expression expression = {.text = NULL};
    unsigned depth = 0;
    if (!utf8_is_valid(slice_of_text(glob))) {
        error_set(error, "could not read rune");
        return NULL;
    }
    add_text(&expression, "(?s)\\A(?:");
    for (const char *at = glob; at != NULL && *at != '\0';) {
        if (at[0] == '*') {
            bool is_any = at[1] == '*';
            add_text(&expression, is_any ? ".*" : "[^.]*");
            at += 1 + is_any;
        } else if (at[0] == '?') {
            add_text(&expression, "[^.]");
            at++;
        } else if (at[0] == '[') {
            at = add_range(&expression, at + 1, error);
            if (at == NULL) {
                mem_free(expression.text);
                return NULL;
            }
        } else if (at[0] == '{') {
            depth++;
            add_text(&expression, "(?:");
            at++;
        } else if (at[0] == ',' && depth > 0) {
            add_text(&expression, "|");
            at++;
        } else if (at[0] == '}' && depth > 0) {
            depth--;
            add_text(&expression, ")");
            at++;
        } else if (at[0] == '\\' && at[1] == '\0') {
            at++;
        } else {
            at += at[0] == '\\';
            add_quoted(&expression, at);
            at += sequence_bytes(at);
        }
    }
    /* An open brace at the end counts as closed. */
    for (; depth > 0; depth--)
        add_text(&expression, ")");
    add_text(&expression, ")\\z");
    struct pattern *pattern = pattern_create(expression.text, error);
    mem_free(expression.text);
    return pattern;
}

size_t dimensions_find(const struct dimensions *dimensions, struct slice name)
{
    size_t i = 0;
    if ((dimensions->name_sizes >> name.size % 64 & 1) == 0)
        return dimensions->names_count;
    while (i < dimensions->names_count && !slice_equal(dimensions->names[i], name))
        i++;
    return i;
}

static size_t intern(struct dimensions *dimensions, const char *name)
{
    struct slice text = slice_of_text(name);
    size_t index = dimensions_find(dimensions, text);
    if (index == dimensions->names_count) {
        dimensions->names[dimensions->names_count++] = text;
        dimensions->name_sizes |= UINT64_C(1) << text.size % 64;
    }
    return index;
}

static void compile(struct dimensions *dimensions, struct dimension_set *set,
                    const struct config_sections *sections)
{
    const struct dimension_config *configs = sections->items;
    set->items = mem_alloc(sections->count * sizeof(set->items[0]));
    set->globs = (struct pattern **)mem_alloc(sections->count * sizeof(struct pattern *));
    for (size_t i = 0; i < sections->count; i++) {
        const struct dimension_config *config = &configs[i];
        struct error error;
        if (config->glob[0] != '\0') {
            struct pattern *glob = glob_create(config->glob, &error);
            assert(glob != NULL);
            set->globs[set->globs_count++] = glob;
            dimensions->has_globs = true;
            continue;
        }
        struct dimension *dimension = &set->items[set->count++];
        *dimension = (struct dimension){.name = intern(dimensions, config->name)};
        if (config->standard == NULL || config->standard->type != CONFIG_VALUE_TEXT)
            continue;
        dimension->standard = value_from_config(config->standard);
        dimension->standard_hash =
            text_hash_of(dimensions->seed, slice_of_text(config->standard->text));
    }
}

struct dimensions *dimensions_create(const struct span_metrics_config *config)
{
    const struct config_sections none = {.count = 0};
    const struct config_sections *const sections[DIMENSION_LISTS] = {
        [DIMENSIONS_ALL] = &config->dimensions,
        [DIMENSIONS_CALLS] = &config->calls_dimensions,
        [DIMENSIONS_DURATION] = &config->histogram.dimensions,
        [DIMENSIONS_EVENTS] = config->events.enabled ? &config->events.dimensions : &none,
    };
    struct dimensions *dimensions = mem_zalloc(sizeof(*dimensions));
    size_t count = 0;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++)
        count += sections[i]->count;
    dimensions->names = mem_alloc(count * sizeof(dimensions->names[0]));
    dimensions->seed = (uint64_t)(random_uniform() * 0x1p53);
    for (unsigned i = 0; i < DIMENSION_LISTS; i++)
        compile(dimensions, &dimensions->lists[i], sections[i]);
    return dimensions;
}

void dimensions_destroy(struct dimensions *dimensions)
{
    if (dimensions == NULL)
        return;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++) {
        struct dimension_set *set = &dimensions->lists[i];
        for (size_t j = 0; j < set->count; j++)
            mem_free((void *)(uintptr_t)set->items[j].standard.data);
        for (size_t j = 0; j < set->globs_count; j++)
            pattern_destroy(set->globs[j]);
        mem_free(set->items);
        mem_free((void *)set->globs);
    }
    mem_free(dimensions->names);
    mem_free(dimensions);
}

bool dimensions_are_none(const struct dimensions *dimensions, enum dimension_list list)
{
    return dimensions->lists[list].count == 0 && dimensions->lists[list].globs_count == 0;
}
