/* SPDX-License-Identifier: Apache-2.0 */
/* A glob is written as a regular expression. Pure functions; any thread. */
#include "src/ottl/functions/glob.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8.h"

enum { GROWTH_MAX = 4, AROUND = 16 };

struct glob {
    struct slice rest;
    char *out;      /* has room */
    unsigned depth; /* of open braces */
    struct error *error;
};

static void put(struct glob *glob, const char *text)
{
    size_t size = strlen(text);
    memcpy(glob->out, text, size);
    glob->out += size;
}

/* The next character; empty: the end. False: not UTF-8, where Go's fails, too. */
static bool next(struct glob *glob, struct slice *ret)
{
    *ret = slice_of(glob->rest.data, 0);
    if (glob->rest.size == 0 || glob->rest.data[0] == '\0')
        return true;
    ret->size = utf8_size(glob->rest);
    if (ret->size == 0 || slice_equal_text(*ret, "\xef\xbf\xbd"))
        return error_set(glob->error, "could not read rune");
    glob->rest = slice_of(glob->rest.data + ret->size, glob->rest.size - ret->size);
    return true;
}

static void put_literal(struct glob *glob, struct slice character)
{
    uint8_t byte = character.data[0];
    bool is_plain = character.size > 1 || (byte >= '0' && byte <= '9') ||
                    (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte <= ' ';
    if (!is_plain)
        *glob->out++ = '\\';
    memcpy(glob->out, character.data, character.size);
    glob->out += character.size;
}

/* Behind the opening bracket. */
static bool put_range(struct glob *glob)
{
    struct slice character;
    if (!next(glob, &character))
        return false;
    bool is_not = slice_equal_text(character, "!");
    if (is_not && !next(glob, &character))
        return false;
    if (character.size == 0)
        return error_set(glob->error, "unexpected end of input");
    put(glob, is_not ? "[^" : "[");
    if (glob->rest.size > 0 && glob->rest.data[0] == '-') {
        struct slice high;
        glob->rest = slice_of(glob->rest.data + 1, glob->rest.size - 1);
        if (!next(glob, &high))
            return false;
        if (high.size == 0)
            return error_set(glob->error, "unexpected end of input");
        if (slice_compare(high, character) < 0)
            return error_set(glob->error, "hi character '%.*s' should be greater than lo '%.*s'",
                             (int)high.size, (const char *)high.data, (int)character.size,
                             (const char *)character.data);
        put_literal(glob, character);
        *glob->out++ = '-';
        put_literal(glob, high);
        if (!next(glob, &character))
            return false;
        if (!slice_equal_text(character, "]"))
            return error_set(glob->error, "expected close range character");
        *glob->out++ = ']';
        return true;
    }
    size_t count = 0;
    for (;;) {
        if (character.size == 0)
            return error_set(glob->error, "unexpected end of input");
        if (slice_equal_text(character, "]"))
            break;
        if (slice_equal_text(character, "\\")) {
            if (!next(glob, &character))
                return false;
            if (character.size == 0)
                return error_set(glob->error, "unexpected end of input");
        }
        put_literal(glob, character);
        count++;
        if (!next(glob, &character))
            return false;
    }
    if (count == 0)
        return error_set(glob->error, "could not parse range");
    *glob->out++ = ']';
    return true;
}

static bool put_character(struct glob *glob, struct slice character)
{
    if (slice_equal_text(character, "*")) {
        put(glob, ".*");
        while (glob->rest.size > 0 && glob->rest.data[0] == '*')
            glob->rest = slice_of(glob->rest.data + 1, glob->rest.size - 1);
    } else if (slice_equal_text(character, "?")) {
        put(glob, ".");
    } else if (slice_equal_text(character, "[")) {
        return put_range(glob);
    } else if (slice_equal_text(character, "{")) {
        put(glob, "(?:");
        glob->depth++;
    } else if (slice_equal_text(character, "}") && glob->depth > 0) {
        put(glob, ")");
        glob->depth--;
    } else if (slice_equal_text(character, ",") && glob->depth > 0) {
        put(glob, "|");
    } else if (!slice_equal_text(character, "\\")) {
        put_literal(glob, character);
    } else {
        if (!next(glob, &character))
            return false;
        if (character.size > 0)
            put_literal(glob, character);
    }
    return true;
}

char *glob_expression(struct slice text, struct error *error)
{
    char *expression = mem_alloc(GROWTH_MAX * text.size + AROUND);
    struct glob glob = {.rest = text, .out = expression, .error = error};
    struct slice character;
    bool is_fine;
    put(&glob, "(?s)\\A");
    while ((is_fine = next(&glob, &character)) && character.size > 0)
        if (!(is_fine = put_character(&glob, character)))
            break;
    if (!is_fine) {
        mem_free(expression);
        return NULL;
    }
    size_t open = glob.depth;
    while (open-- > 0)
        put(&glob, ")");
    put(&glob, "\\z");
    *glob.out = '\0';
    return expression;
}

struct pattern *glob_compile(struct slice text, struct error *error)
{
    char *expression = glob_expression(text, error);
    struct pattern *pattern = expression != NULL ? pattern_create(expression, error) : NULL;
    mem_free(expression);
    return pattern;
}
