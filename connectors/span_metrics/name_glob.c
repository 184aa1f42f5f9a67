/* SPDX-License-Identifier: Apache-2.0 */
/* Globs to regular expressions. Main thread. */
#include "connectors/span_metrics/name_glob.h"

#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8.h"

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

struct pattern *name_glob_create(const char *glob, struct error *error)
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
