/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts and unquotes. A word boundary is looked for behind words only, as Go's lexer does, which
 * matches each rule against the rest of the text. Pure functions. */
#include "src/ottl/ottl_lexer.h"

#include <assert.h>

#include "src/base/arena.h"
#include "src/base/hex.h"
#include "src/ottl/ottl_problem.h"

struct lexer {
    struct slice text;
    size_t at;
    struct arena *arena;
    struct ottl_problem *problem;
};

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_upper(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z';
}

static bool is_lower(uint8_t byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool is_word(uint8_t byte)
{
    return is_digit(byte) || is_upper(byte) || is_lower(byte) || byte == '_';
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

/* 0 at the end. */
static uint8_t peek(const struct lexer *lexer, size_t ahead)
{
    return ahead < lexer->text.size - lexer->at ? lexer->text.data[lexer->at + ahead] : 0;
}

static size_t count_digits(const struct lexer *lexer, size_t from)
{
    size_t count = 0;
    while (is_digit(peek(lexer, from + count)))
        count++;
    return count;
}

/* The length of the float that begins here, or 0: digits and a point, one digit at least, an
 * exponent if there is one. */
static size_t float_size(const struct lexer *lexer)
{
    size_t before = count_digits(lexer, 0);
    if (peek(lexer, before) != '.')
        return 0;
    size_t after = count_digits(lexer, before + 1);
    if (before + after == 0)
        return 0;
    size_t size = before + 1 + after;
    if (peek(lexer, size) == 'e' || peek(lexer, size) == 'E') {
        size_t sign = peek(lexer, size + 1) == '+' || peek(lexer, size + 1) == '-';
        size_t digits = count_digits(lexer, size + 1 + sign);
        if (digits > 0)
            size += 1 + sign + digits;
    }
    return size;
}

static size_t hex_size(const struct lexer *lexer)
{
    size_t digits = 0;
    if (peek(lexer, 0) != '0' || peek(lexer, 1) != 'x')
        return 0;
    while (hex_digit(peek(lexer, 2 + digits)) < 16)
        digits++;
    return digits > 0 ? 2 + digits : 0;
}

/* The length of a string with its quotes, or 0: it has no end, or a line ends behind a backslash.
 */
static size_t string_size(const struct lexer *lexer)
{
    const uint8_t *data = lexer->text.data;
    for (size_t i = lexer->at + 1; i < lexer->text.size; i++) {
        if (data[i] == '"')
            return i + 1 - lexer->at;
        if (data[i] == '\\' && (++i == lexer->text.size || data[i] == '\n'))
            return 0;
    }
    return 0;
}

static size_t word_size(const struct lexer *lexer, const char *word)
{
    size_t size = strlen(word);
    bool is_there = lexer->text.size - lexer->at >= size &&
                    memcmp(lexer->text.data + lexer->at, word, size) == 0;
    return is_there && !is_word(peek(lexer, size)) ? size : 0;
}

static size_t put_rune(uint8_t *at, uint32_t rune)
{
    if (rune < 0x80) {
        at[0] = (uint8_t)rune;
        return 1;
    }
    if (rune < 0x800) {
        at[0] = (uint8_t)(0xc0 | rune >> 6);
        at[1] = (uint8_t)(0x80 | (rune & 0x3f));
        return 2;
    }
    if (rune < 0x10000) {
        at[0] = (uint8_t)(0xe0 | rune >> 12);
        at[1] = (uint8_t)(0x80 | (rune >> 6 & 0x3f));
        at[2] = (uint8_t)(0x80 | (rune & 0x3f));
        return 3;
    }
    at[0] = (uint8_t)(0xf0 | rune >> 18);
    at[1] = (uint8_t)(0x80 | (rune >> 12 & 0x3f));
    at[2] = (uint8_t)(0x80 | (rune >> 6 & 0x3f));
    at[3] = (uint8_t)(0x80 | (rune & 0x3f));
    return 4;
}

/* Reads the escape behind a backslash (strconv.UnquoteChar): *ret_used bytes. False: there is none
 * like it. */
static bool read_escape(const uint8_t *at, size_t left, uint32_t *ret_rune, size_t *ret_used)
{
    static const char names[] = "abfnrtv\\\"";
    static const char runes[] = "\a\b\f\n\r\t\v\\\"";
    const char *name = at[0] != 0 ? strchr(names, at[0]) : NULL;
    unsigned digits = at[0] == 'x' ? 2 : at[0] == 'u' ? 4 : at[0] == 'U' ? 8 : 0;
    uint32_t rune = 0;
    if (name != NULL) {
        *ret_rune = (uint32_t)runes[name - names];
        *ret_used = 1;
        return true;
    }
    if (digits > 0) {
        for (unsigned i = 1; i <= digits; i++) {
            unsigned digit = i < left ? hex_digit(at[i]) : 16;
            if (digit > 15)
                return false;
            rune = rune << 4 | digit;
        }
        *ret_used = 1 + digits;
        *ret_rune = rune;
        return digits == 2 || (rune < 0xd800 || (rune >= 0xe000 && rune <= 0x10ffff));
    }
    if (left < 3)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (at[i] < '0' || at[i] > '7')
            return false;
        rune = rune << 3 | (uint32_t)(at[i] - '0');
    }
    *ret_used = 3;
    *ret_rune = rune;
    return rune <= 0xff;
}

/* Bytes of the character at `at`, or 0: it is not UTF-8. */
static size_t utf8_size(const uint8_t *at, size_t left)
{
    size_t size = at[0] < 0x80                     ? 1
                  : at[0] >= 0xc2 && at[0] < 0xe0  ? 2
                  : at[0] >= 0xe0 && at[0] < 0xf0  ? 3
                  : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                   : 0;
    if (size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
        return 0;
    return size;
}

/* The content of a string without its quotes and escapes. What is not UTF-8 becomes U+FFFD. */
static bool unquote(struct lexer *lexer, struct ottl_token *token)
{
    enum { GROWTH_MAX = 3, REPLACEMENT = 0xfffd };
    struct slice inner = slice_of(token->text.data + 1, token->text.size - 2);
    token->text = inner;
    bool is_plain = true;
    for (size_t i = 0; i < inner.size && is_plain; i++)
        is_plain = inner.data[i] != '\\' && inner.data[i] < 0x80;
    if (is_plain)
        return true;
    uint8_t *room = arena_try_alloc(lexer->arena, GROWTH_MAX * inner.size);
    size_t used = 0;
    if (room == NULL)
        return ottl_problem_set(lexer->problem, token->at, "the statements are too large");
    for (size_t i = 0; i < inner.size;) {
        const uint8_t *at = inner.data + i;
        size_t size = utf8_size(at, inner.size - i);
        if (at[0] == '\\') {
            uint32_t rune;
            if (!read_escape(at + 1, inner.size - i - 1, &rune, &size))
                return ottl_problem_set(lexer->problem, (uint32_t)(at - lexer->text.data),
                                        "unknown escape sequence in a string; write \\\\ for a "
                                        "backslash");
            used += put_rune(room + used, rune);
            i += 1 + size;
        } else if (size == 0) {
            used += put_rune(room + used, REPLACEMENT);
            i++;
        } else {
            memcpy(room + used, at, size);
            used += size;
            i += size;
        }
    }
    assert(used <= GROWTH_MAX * inner.size);
    token->text = slice_of(room, used);
    return true;
}

static size_t name_size(const struct lexer *lexer, bool (*is_letter)(uint8_t byte))
{
    size_t size = 0;
    if (!is_letter(peek(lexer, 0)))
        return 0;
    while (is_letter(peek(lexer, size)) || is_digit(peek(lexer, size)) || peek(lexer, size) == '_')
        size++;
    return size;
}

static size_t operator_size(const struct lexer *lexer, enum ottl_token_type *ret_type)
{
    uint8_t first = peek(lexer, 0);
    uint8_t second = peek(lexer, 1);
    *ret_type = OTTL_TOKEN_COMPARISON;
    if ((first == '=' || first == '!' || first == '>' || first == '<') && second == '=')
        return 2;
    if (first == '>' || first == '<')
        return 1;
    if (first == '=') {
        *ret_type = second == '>' ? OTTL_TOKEN_ARROW : OTTL_TOKEN_EQUAL;
        return second == '>' ? 2 : 1;
    }
    *ret_type = first == '+' || first == '-'   ? OTTL_TOKEN_ADD_SUBTRACT
                : first == '*' || first == '/' ? OTTL_TOKEN_MULTIPLY_DIVIDE
                                               : OTTL_TOKEN_PUNCTUATION;
    if (*ret_type != OTTL_TOKEN_PUNCTUATION)
        return 1;
    return first != 0 && strchr("(){}:,.[]", first) != NULL ? 1 : 0;
}

/* 0: no rule matches. */
static size_t next_size(const struct lexer *lexer, enum ottl_token_type *ret_type)
{
    static const struct {
        const char *word;
        enum ottl_token_type type;
    } words[] = {{"nil", OTTL_TOKEN_NIL},      {"not", OTTL_TOKEN_NOT},
                 {"or", OTTL_TOKEN_OR},        {"and", OTTL_TOKEN_AND},
                 {"true", OTTL_TOKEN_BOOLEAN}, {"false", OTTL_TOKEN_BOOLEAN}};
    uint8_t first = peek(lexer, 0);
    size_t size = 0;
    if (is_digit(first) || first == '.') {
        *ret_type = OTTL_TOKEN_BYTES;
        if ((size = hex_size(lexer)) > 0)
            return size;
        *ret_type = OTTL_TOKEN_FLOAT;
        if ((size = float_size(lexer)) > 0)
            return size;
        *ret_type = OTTL_TOKEN_INT;
        if ((size = count_digits(lexer, 0)) > 0)
            return size;
    }
    if (first == '"') {
        *ret_type = OTTL_TOKEN_STRING;
        return string_size(lexer);
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        *ret_type = words[i].type;
        if ((size = word_size(lexer, words[i].word)) > 0)
            return size;
    }
    *ret_type = OTTL_TOKEN_UPPERCASE;
    if ((size = name_size(lexer, is_upper)) > 0)
        return size;
    *ret_type = OTTL_TOKEN_LOWERCASE;
    if ((size = name_size(lexer, is_lower)) > 0)
        return size;
    *ret_type = OTTL_TOKEN_UNDERSCORE;
    if ((size = word_size(lexer, "_")) > 0)
        return size;
    return operator_size(lexer, ret_type);
}

bool ottl_lex(struct arena *arena, struct slice text, struct ottl_token **ret_tokens,
              size_t *ret_count, struct ottl_problem *problem)
{
    struct lexer lexer = {.text = text, .arena = arena, .problem = problem};
    size_t count = 0;
    if (text.size > OTTL_TEXT_BYTES_MAX)
        return ottl_problem_set(problem, 0, "%zu bytes long; at most %d are allowed", text.size,
                                OTTL_TEXT_BYTES_MAX);
    struct ottl_token *tokens = arena_try_alloc(arena, (text.size + 1) * sizeof(*tokens));
    if (tokens == NULL)
        return ottl_problem_set(problem, 0, "the statements are too large");
    for (;;) {
        enum ottl_token_type type = OTTL_TOKEN_END;
        while (lexer.at < text.size && is_space(text.data[lexer.at]))
            lexer.at++;
        size_t size = lexer.at < text.size ? next_size(&lexer, &type) : 0;
        if (size == 0 && lexer.at < text.size)
            return ottl_problem_set(problem, (uint32_t)lexer.at,
                                    text.data[lexer.at] == '"'
                                        ? "a string without its closing quotation mark"
                                        : "a character that statements do not have here");
        tokens[count] = (struct ottl_token){.type = (uint8_t)type,
                                            .at = (uint32_t)lexer.at,
                                            .end = (uint32_t)(lexer.at + size),
                                            .text = slice_of(text.data + lexer.at, size)};
        if (type == OTTL_TOKEN_STRING && !unquote(&lexer, &tokens[count]))
            return false;
        count++;
        lexer.at += size;
        if (type == OTTL_TOKEN_END)
            break;
    }
    *ret_tokens = tokens;
    *ret_count = count;
    return true;
}
