/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens are as lenient as in Go, where a statement need not be correct: what cannot be read stays
 * as it is, and a zero byte ends the statement. Signs belong to the number behind them. */
#include "src/records/sql_obfuscator.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "src/base/arena.h"
#include "src/base/utf8_classes.h"
#include "src/records/query_output.h"

/* The body of a function of PostgreSQL is a statement itself, without others inside. */
#define FUNCTION_TAG "$func$"

struct lexer {
    struct query_output *output;
    const uint8_t *data;
    size_t at;
    size_t end;
    bool is_mysql;
    bool is_nested;
};

/* 0 behind the end, too: there all ends, as at a zero byte. */
static uint8_t byte_at(const struct lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->end ? lexer->data[lexer->at + ahead] : 0;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_word_letter(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static bool is_one_of(uint8_t byte, const char *set)
{
    return byte != 0 && strchr(set, byte) != NULL;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool is_operator(uint8_t byte)
{
    return is_one_of(byte, "+-*/=<>!&|^%~?@:#");
}

/* 0: it is none. */
static size_t letter_size(const struct lexer *lexer, size_t ahead)
{
    uint8_t byte = byte_at(lexer, ahead);
    if (byte < 0x80)
        return is_word_letter(byte);
    size_t from = lexer->at + ahead;
    return utf8_wide_letter_size(slice_of(lexer->data + from, lexer->end - from));
}

/* Of those that stay as they are only what follows a dot makes a difference: behind a name it is
 * a part of it. */
static bool is_keyword(struct slice word)
{
    /* Ascending. */
    static const char *const words[] = {
        "ADD",       "ALL",       "ALTER",     "ANALYZE", "AND",        "ANY",    "AS",
        "ASC",       "ASSERTION", "BEGIN",     "BETWEEN", "BY",         "CASE",   "CHECK",
        "CLONE",     "CLUSTER",   "COLUMN",    "COMMIT",  "CONSTRAINT", "COPY",   "CREATE",
        "CUBE",      "DATABASE",  "DECLARE",   "DEFAULT", "DELETE",     "DESC",   "DISTINCT",
        "DOMAIN",    "DROP",      "ELSE",      "END",     "ESCAPE",     "EXEC",   "EXECUTE",
        "EXISTS",    "EXPLAIN",   "FOREIGN",   "FROM",    "GRANT",      "GROUP",  "HAVING",
        "IF",        "ILIKE",     "IN",        "INDEX",   "INNER",      "INSERT", "INTO",
        "IS",        "JOIN",      "KEY",       "LEFT",    "LIKE",       "LIMIT",  "LITERAL",
        "MERGE",     "NOT",       "OF",        "OFFSET",  "ON",         "ONLY",   "OR",
        "ORDER",     "OUT",       "OUTER",     "PLPGSQL", "PRIMARY",    "PROC",   "PROCEDURE",
        "RECURSIVE", "REPLACE",   "RETURNING", "RETURNS", "REVOKE",     "RIGHT",  "ROLLBACK",
        "ROLLUP",    "ROWNUM",    "SELECT",    "SET",     "SKIP",       "SOME",   "STRAIGHT_JOIN",
        "TABLE",     "TEMPORARY", "TOP",       "TRIGGER", "TRUNCATE",   "UNION",  "UNIQUE",
        "UNLOGGED",  "UPDATE",    "USE",       "USING",   "VACCUM",     "VALUES", "VIEW",
        "WHERE",     "WINDOW",    "WITH",
    };
    size_t from = 0;
    size_t to = sizeof(words) / sizeof(words[0]);
    while (from < to) {
        size_t middle = (from + to) / 2;
        size_t size = strlen(words[middle]);
        size_t common = size < word.size ? size : word.size;
        int order = strncasecmp(words[middle], (const char *)word.data, common);
        if (order == 0 && size == word.size)
            return true;
        if (order < 0 || (order == 0 && size < word.size))
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

static void hide_digits(const struct lexer *lexer, size_t begin)
{
    size_t at = begin;
    while (at < lexer->at) {
        size_t from = at;
        while (at < lexer->at && is_digit(lexer->data[at]))
            at++;
        if (at > from)
            query_output_hide(lexer->output, from, at);
        else
            at++;
    }
}

/* Names of functions keep their digits. */
static void take_identifier(struct lexer *lexer)
{
    size_t begin = lexer->at;
    bool is_plain = lexer->data[begin] < 0x80;
    bool has_digits = false;
    while (is_plain && is_word_letter(byte_at(lexer, 0)))
        lexer->at++;
    uint8_t byte = byte_at(lexer, 0);
    if (is_plain && (byte == 0 || is_space(byte) || is_one_of(byte, "(),;.:[]{}"))) {
        struct slice word = slice_of(lexer->data + begin, lexer->at - begin);
        if (slice_equal_nocase(word, "NULL") || slice_equal_nocase(word, "TRUE") ||
            slice_equal_nocase(word, "FALSE")) {
            query_output_hide(lexer->output, begin, lexer->at);
            return;
        }
        if (byte != '.' || is_keyword(word))
            return;
    }
    for (size_t size = 1; size > 0; lexer->at += size) {
        byte = byte_at(lexer, 0);
        has_digits |= is_digit(byte);
        size = is_digit(byte) || is_one_of(byte, "\".?$#/@!") ? 1 : letter_size(lexer, 0);
    }
    if (has_digits && !(is_plain && byte == '('))
        hide_digits(lexer, begin);
}

static void take_decimal(struct lexer *lexer)
{
    for (uint8_t byte; (byte = byte_at(lexer, 0)) != 0; lexer->at++) {
        bool is_exponent = byte == 'e' || byte == 'E';
        if (!is_digit(byte) && byte != '.' && !is_exponent)
            return;
        if (is_exponent && is_one_of(byte_at(lexer, 1), "+-"))
            lexer->at++;
    }
}

static void take_number(struct lexer *lexer)
{
    size_t begin = lexer->at;
    uint8_t next = byte_at(lexer, 1);
    if (byte_at(lexer, 0) == '0' && (next == 'x' || next == 'X')) {
        lexer->at += 2;
        while (is_one_of(byte_at(lexer, 0), "0123456789abcdefABCDEF"))
            lexer->at++;
    } else if (byte_at(lexer, 0) == '0' && next >= '0' && next <= '7') {
        while (is_one_of(byte_at(lexer, 0), "01234567"))
            lexer->at++;
    } else {
        lexer->at++;
        take_decimal(lexer);
    }
    query_output_hide(lexer->output, begin, lexer->at);
}

/* Up to the end if it is not closed. */
static void take_string(struct lexer *lexer, uint8_t quote)
{
    size_t begin = lexer->at++;
    for (uint8_t byte; (byte = byte_at(lexer, 0)) != 0;) {
        lexer->at++;
        if (byte == quote)
            break;
        if (byte == '\\' && byte_at(lexer, 0) != 0)
            lexer->at++;
    }
    query_output_hide(lexer->output, begin, lexer->at);
}

/* One that is not closed stays as it is. Parts that a dot joins are one. */
static void take_quoted_identifier(struct lexer *lexer, uint8_t quote)
{
    size_t begin = lexer->at++;
    for (uint8_t byte; (byte = byte_at(lexer, 0)) != 0; lexer->at++) {
        if (byte != quote)
            continue;
        if (byte_at(lexer, 1) != '.' || byte_at(lexer, 2) != quote) {
            lexer->at++;
            hide_digits(lexer, begin);
            return;
        }
        lexer->at += 2;
    }
}

static void skip_line(struct lexer *lexer)
{
    while (byte_at(lexer, 0) != 0 && byte_at(lexer, 0) != '\n')
        lexer->at++;
}

static void skip_comment(struct lexer *lexer)
{
    lexer->at += 2;
    while (byte_at(lexer, 0) != 0 && !(byte_at(lexer, 0) == '*' && byte_at(lexer, 1) == '/'))
        lexer->at++;
    if (byte_at(lexer, 0) != 0)
        lexer->at += 2;
}

static void take_statement(struct lexer *lexer);

/* White space around the statement of a function's body goes, as around a whole one. */
static void take_function(const struct lexer *lexer, size_t begin, size_t end)
{
    struct query_output *output = lexer->output;
    struct lexer inner = *lexer;
    size_t written = query_output_flush(output, begin).size;
    inner.at = begin;
    inner.end = end;
    inner.is_nested = true;
    take_statement(&inner);
    struct slice whole = query_output_flush(output, inner.at);
    query_output_skip(output, inner.at, end);
    if (output->has_failed)
        return;
    struct slice body = utf8_trim_space(slice_of(whole.data + written, whole.size - written));
    if (body.size > 0)
        memmove(output->room + written, body.data, body.size);
    output->size = written + body.size;
}

/* The tag is all up to the next dollar sign, with both. A text that is not closed stays as it is.
 */
static void take_dollar_string(struct lexer *lexer)
{
    size_t begin = lexer->at;
    const uint8_t *data = lexer->data;
    const uint8_t *mark = memchr(data + begin + 1, '$', lexer->end - begin - 1);
    lexer->at = lexer->end;
    if (mark == NULL)
        return;
    size_t tag_size = (size_t)(mark + 1 - (data + begin));
    size_t at = begin + tag_size;
    /* A tag has no dollar sign but its first and its last byte: few bytes are compared twice. */
    while (at + tag_size <= lexer->end && memcmp(data + at, data + begin, tag_size) != 0) {
        const uint8_t *next = memchr(data + at + 1, '$', lexer->end - at - 1);
        at = next != NULL ? (size_t)(next - data) : lexer->end;
    }
    if (at + tag_size > lexer->end)
        return;
    lexer->at = at + tag_size;
    if (slice_equal_text(slice_of(data + begin, tag_size), FUNCTION_TAG)) {
        assert(!lexer->is_nested);
        take_function(lexer, begin + tag_size, at);
    } else {
        query_output_hide(lexer->output, begin, lexer->at);
    }
}

static void take_operator(struct lexer *lexer)
{
    uint8_t last = byte_at(lexer, 0);
    lexer->at++;
    uint8_t byte = byte_at(lexer, 0);
    /* Those of JSON end here. */
    if ((last == '-' || last == '#') && byte == '>') {
        lexer->at += byte_at(lexer, 1) == '>' ? 2 : 1;
        return;
    }
    if ((last == '#' && byte == '-') || (last == '?' && (byte == '|' || byte == '&')) ||
        (last == '<' && byte == '@')) {
        lexer->at++;
        return;
    }
    while (is_operator(byte) && !(last == '=' && (byte == '?' || byte == '@'))) {
        last = byte;
        lexer->at++;
        byte = byte_at(lexer, 0);
    }
}

static void take_dollar(struct lexer *lexer)
{
    size_t begin = lexer->at;
    if (!is_digit(byte_at(lexer, 1))) {
        take_dollar_string(lexer);
        return;
    }
    lexer->at++;
    while (is_digit(byte_at(lexer, 0)))
        lexer->at++;
    query_output_hide(lexer->output, begin, lexer->at);
}

/* Variables keep their names. */
static void take_at_sign(struct lexer *lexer)
{
    size_t signs = byte_at(lexer, 1) == '@' ? 2 : 1;
    uint8_t next = byte_at(lexer, signs);
    if (is_digit(next) || letter_size(lexer, signs) > 0) {
        lexer->at += signs + 1;
        while (is_digit(byte_at(lexer, 0)) || is_word_letter(byte_at(lexer, 0)))
            lexer->at++;
        /* As in Go, which ends a variable inside a character beyond ASCII. */
        lexer->at += letter_size(lexer, 0) > 0;
    } else if (signs == 2 || next == '?' || next == '>') {
        lexer->at += 2;
    } else {
        take_operator(lexer);
    }
}

static void take_token(struct lexer *lexer)
{
    uint8_t byte = byte_at(lexer, 0);
    uint8_t next = byte_at(lexer, 1);
    size_t begin = lexer->at;
    if (is_space(byte)) {
        lexer->at++;
    } else if (letter_size(lexer, 0) > 0) {
        take_identifier(lexer);
    } else if (byte == '\'' || (byte == '"' && lexer->is_mysql)) {
        take_string(lexer, byte);
    } else if (byte == '"' || (byte == '`' && lexer->is_mysql)) {
        take_quoted_identifier(lexer, byte);
    } else if ((byte == '-' && next == '-') || (byte == '#' && lexer->is_mysql)) {
        skip_line(lexer);
    } else if (byte == '/' && next == '*') {
        skip_comment(lexer);
    } else if ((byte == '+' || byte == '-') && (is_digit(next) || next == '.')) {
        lexer->at++;
        take_decimal(lexer);
        query_output_hide(lexer->output, begin, lexer->at);
    } else if (is_digit(byte)) {
        take_number(lexer);
    } else if (byte == '$') {
        take_dollar(lexer);
    } else if (byte == '@') {
        take_at_sign(lexer);
    } else if (is_operator(byte) && byte != '*') {
        take_operator(lexer);
    } else {
        lexer->at++;
    }
}

/* Ends at the end, or at a zero byte. */
static void take_statement(struct lexer *lexer)
{
    while (byte_at(lexer, 0) != 0)
        take_token(lexer);
}

struct slice sql_obfuscate(struct arena *arena, struct slice text, bool is_mysql)
{
    struct query_output output = query_output_of(arena, text);
    struct lexer lexer = {
        .output = &output, .data = text.data, .end = text.size, .is_mysql = is_mysql};
    take_statement(&lexer);
    output.text.size = lexer.at;
    return utf8_trim_space(query_output_finish(&output));
}
