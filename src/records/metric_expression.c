/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles expressions by precedence climbing (main thread, at start), then evaluates them (any
 * thread). All types are known once an expression is compiled, so that nothing can fail later. */
#include "src/records/metric_expression.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8.h"
#include "src/base/utf8_case.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/value.h"

/* Of one expression. Nodes as in the Go collector; depth bounds the recursion. */
enum { NODES_MAX = 10000, DEPTH_MAX = 100 };

enum result_type { TYPE_BOOL, TYPE_INT, TYPE_STRING, TYPE_NIL };

/* What a node gives, by its type. */
struct result {
    bool boolean;
    int64_t integer;
    struct slice text;
};

enum node_kind {
    NODE_LITERAL,
    NODE_METRIC_NAME,
    NODE_METRIC_TYPE,
    NODE_LABEL,     /* left: the key */
    NODE_HAS_LABEL, /* left: the key */
    NODE_LENGTH,
    NODE_LOWER,
    NODE_UPPER,
    NODE_NOT,
    NODE_ALL, /* elements */
    NODE_ANY, /* elements */
    NODE_IN,  /* left, and elements */
    NODE_EQUAL,
    NODE_LESS,
    NODE_LESS_OR_EQUAL,
    NODE_MATCHES, /* left, and the pattern */
    NODE_CONTAINS,
    NODE_STARTS_WITH,
    NODE_ENDS_WITH,
};

/* Nodes refer to each other by index; NONE is none. */
enum { NONE = -1 };

struct node {
    enum node_kind kind;
    enum result_type type;
    bool is_certain; /* Go knows the type before it runs: literals, operators and len, not labels */
    unsigned depth;  /* of what is below */
    size_t column;
    int left;
    int right;
    int elements; /* the first … */
    int last;     /* … the last, and … */
    int next;     /* … of an element the next one */
    struct result literal;
    struct pattern *pattern;
};

struct metric_expression {
    struct node *nodes;
    int count;
    int root;
    bool needs_labels;
    unsigned names;   /* how often it has MetricName */
    uint8_t *strings; /* of the literals */
};

/* ---- Tokens ---- */

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_STRING, TOKEN_INT, TOKEN_SIGN, TOKEN_WRONG };

struct token {
    enum token_kind kind;
    struct slice text;  /* as written; strings: what they say */
    const char *source; /* where it begins */
    int64_t integer;
};

struct compiler {
    struct metric_expression *expression;
    const char *source;
    const char *at; /* behind the token at hand */
    uint8_t *string_at;
    struct token token;
    int capacity;
    unsigned depth;
    struct error *error;
};

static size_t column_of(const struct compiler *compiler, const char *at)
{
    return (size_t)(at - compiler->source) + 1;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters beyond ASCII name nothing that there is; they are taken so that errors show them whole.
 */
static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static bool fail_token(struct compiler *compiler, const char *at, const char *what)
{
    compiler->token = (struct token){.kind = TOKEN_WRONG, .source = at};
    return error_set(compiler->error, "column %zu: %s", column_of(compiler, at), what);
}

/* The value of hexadecimal digits, or octal ones; -1: they are not digits of that base. */
static int digit_value(char c, int base)
{
    int value = is_digit(c)              ? c - '0'
                : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                         : base;
    return value < base ? value : -1;
}

static void put_character(struct compiler *compiler, uint32_t c)
{
    enum {
        TWO = 0x80,
        THREE = 0x800,
        FOUR = 0x10000,
        SURROGATES = 0xd800,
        SURROGATES_END = 0xe000
    };
    enum { REPLACEMENT = 0xfffd, CONTINUES = 0x80, BITS = 6, MASK = 0x3f };
    uint8_t *at = compiler->string_at;
    if (c >= SURROGATES && c < SURROGATES_END)
        c = REPLACEMENT;
    if (c < TWO) {
        *at++ = (uint8_t)c;
    } else if (c < THREE) {
        *at++ = (uint8_t)(0xc0 | c >> BITS);
    } else if (c < FOUR) {
        *at++ = (uint8_t)(0xe0 | c >> 2 * BITS);
        *at++ = (uint8_t)(CONTINUES | (c >> BITS & MASK));
    } else {
        *at++ = (uint8_t)(0xf0 | c >> 3 * BITS);
        *at++ = (uint8_t)(CONTINUES | (c >> 2 * BITS & MASK));
        *at++ = (uint8_t)(CONTINUES | (c >> BITS & MASK));
    }
    if (c >= TWO)
        *at++ = (uint8_t)(CONTINUES | (c & MASK));
    compiler->string_at = at;
}

/* Just so many digits of an escape. */
static const char *read_digits(const char *at, int base, int digits, uint32_t *ret_value)
{
    uint32_t value = 0;
    for (int i = 0; i < digits; i++, at++) {
        int digit = digit_value(*at, base);
        if (digit < 0)
            return NULL;
        value = value * (uint32_t)base + (uint32_t)digit;
    }
    *ret_value = value;
    return at;
}

/* \u{1F600} */
static const char *read_braced(const char *at, uint32_t *ret_value)
{
    enum { DIGITS_MAX = 6 };
    int digits = 0;
    while (digit_value(at[digits], 16) >= 0)
        digits++;
    if (digits == 0 || digits > DIGITS_MAX || at[digits] != '}')
        return NULL;
    return read_digits(at, 16, digits, ret_value) + 1;
}

/* What follows a backslash, to the strings. NULL: it is no escape. */
static const char *read_escape(struct compiler *compiler, const char *at, char quote)
{
    static const char named[] = "abfnrtv\\";
    static const char values[] = "\a\b\f\n\r\t\v\\";
    enum { CHARACTER_MAX = 0x10ffff, HEX = 16, OCTAL = 8 };
    const char *name = *at != '\0' ? strchr(named, *at) : NULL;
    uint32_t value = 0;
    if (name != NULL || *at == quote) {
        *compiler->string_at++ = (uint8_t)(name != NULL ? values[name - named] : quote);
        return at + 1;
    }
    if (*at == 'x')
        at = read_digits(at + 1, HEX, 2, &value);
    else if (*at == 'u')
        at = at[1] == '{' ? read_braced(at + 2, &value) : read_digits(at + 1, HEX, 4, &value);
    else if (*at == 'U')
        at = read_digits(at + 1, HEX, 8, &value);
    else
        at = *at >= '0' && *at <= '3' ? read_digits(at, OCTAL, 3, &value) : NULL;
    if (at == NULL || value > CHARACTER_MAX)
        return NULL;
    put_character(compiler, value);
    return at;
}

/* "…" and '…' with escapes; `…` as written, a doubled ` for one. */
static bool read_string(struct compiler *compiler, const char *start)
{
    const char quote = *start;
    const char *at = start + 1;
    const uint8_t *string = compiler->string_at;
    for (;;) {
        if (*at == '\0' || (*at == '\n' && quote != '`'))
            return fail_token(compiler, start, "a string without its end");
        if (*at == quote && !(quote == '`' && at[1] == '`'))
            break;
        if (*at == '\\' && quote != '`') {
            const char *next = read_escape(compiler, at + 1, quote);
            if (next == NULL)
                return fail_token(compiler, at,
                                  "an invalid escape; a backslash in a string is written \\\\, or "
                                  "as it is between ` and `");
            at = next;
            continue;
        }
        at += *at == quote;
        *compiler->string_at++ = (uint8_t)*at++;
    }
    compiler->token = (struct token){
        .kind = TOKEN_STRING,
        .text = slice_of(string, (size_t)(compiler->string_at - string)),
        .source = start,
    };
    compiler->at = at + 1;
    return true;
}

static bool read_int(struct compiler *compiler, const char *start)
{
    enum { DIGITS_MAX = 20 };
    char digits[DIGITS_MAX + 1];
    size_t count = 0;
    const char *at = start;
    for (; is_digit(*at) || *at == '_'; at++)
        if (*at != '_' && count < DIGITS_MAX)
            digits[count++] = *at;
    digits[count] = '\0';
    if (is_name_char(*at) || *at == '.')
        return fail_token(compiler, start, "expected a whole number in decimal digits") ||
               error_unsupported(compiler->error);
    errno = 0;
    int64_t value = strtoll(digits, NULL, 10);
    if (errno != 0 || count == DIGITS_MAX)
        return fail_token(compiler, start, "the number is too large");
    compiler->token = (struct token){.kind = TOKEN_INT,
                                     .text = slice_of(start, (size_t)(at - start)),
                                     .source = start,
                                     .integer = value};
    compiler->at = at;
    return true;
}

/* Blanks and comments. NULL: a comment does not end. */
static const char *skip_space(const char *at)
{
    for (;;) {
        while (is_space(*at))
            at++;
        if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            at = strstr(at + 2, "*/");
            if (at == NULL)
                return NULL;
            at += 2;
        } else {
            return at;
        }
    }
}

/* Reads the next token. False: it is none, and nothing more is read. */
static bool advance(struct compiler *compiler)
{
    static const char *const pairs[] = {"&&", "||", "==", "!=", "<=", ">=", "??", "?.", "..", "**"};
    const char *start = skip_space(compiler->at);
    if (compiler->token.kind == TOKEN_WRONG)
        return false;
    if (start == NULL)
        return fail_token(compiler, compiler->at, "a comment without its end");
    compiler->token = (struct token){.kind = TOKEN_END, .source = start};
    compiler->at = start;
    if (*start == '\0')
        return true;
    if (*start == '"' || *start == '\'' || *start == '`')
        return read_string(compiler, start);
    if (is_digit(*start))
        return read_int(compiler, start);
    size_t size = 0;
    while (is_name_char(start[size]))
        size++;
    compiler->token.kind = size > 0 ? TOKEN_NAME : TOKEN_SIGN;
    for (size_t i = 0; size == 0 && i < sizeof(pairs) / sizeof(pairs[0]); i++)
        size = strncmp(start, pairs[i], 2) == 0 ? 2 : 0;
    size += size == 0;
    compiler->token.text = slice_of(start, size);
    compiler->at = start + size;
    return true;
}

static bool is_sign(const struct compiler *compiler, const char *text)
{
    return compiler->token.kind == TOKEN_SIGN && slice_equal_text(compiler->token.text, text);
}

static bool is_word(const struct compiler *compiler, const char *text)
{
    return compiler->token.kind == TOKEN_NAME && slice_equal_text(compiler->token.text, text);
}

/* ---- Compiling ---- */

/* What the whole language has and this subset has not: other names, and operators. */
static bool is_of_whole_language(const struct token *token)
{
    static const char signs[] = "+-*/%^.?|[{#;";
    return token->kind == TOKEN_NAME ||
           (token->kind == TOKEN_SIGN && strchr(signs, token->text.data[0]) != NULL);
}

/* At the token at hand, unless it was wrong itself. Return NONE. */
static int fail(struct compiler *compiler, const char *expected)
{
    const struct token *token = &compiler->token;
    if (token->kind == TOKEN_WRONG)
        return NONE;
    if (token->kind == TOKEN_END)
        error_set(compiler->error, "column %zu: expected %s, found the end",
                  column_of(compiler, token->source), expected);
    else
        error_set(compiler->error, "column %zu: expected %s, found %.*s",
                  column_of(compiler, token->source), expected, (int)(compiler->at - token->source),
                  token->source);
    if (is_of_whole_language(token))
        error_unsupported(compiler->error);
    compiler->token.kind = TOKEN_WRONG;
    return NONE;
}

static int fail_at(struct compiler *compiler, size_t column, const char *what)
{
    if (compiler->token.kind != TOKEN_WRONG)
        error_set(compiler->error, "column %zu: %s", column, what);
    compiler->token.kind = TOKEN_WRONG;
    return NONE;
}

static struct node *node_of(const struct compiler *compiler, int index)
{
    assert(index >= 0 && index < compiler->expression->count);
    return &compiler->expression->nodes[index];
}

static int add_node(struct compiler *compiler, struct node node)
{
    struct metric_expression *expression = compiler->expression;
    const int below[] = {node.left, node.right, node.elements};
    if (compiler->token.kind == TOKEN_WRONG)
        return NONE;
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
        if (below[i] != NONE && node_of(compiler, below[i])->depth >= node.depth)
            node.depth = node_of(compiler, below[i])->depth + 1;
    if (node.depth > DEPTH_MAX)
        return fail_at(compiler, node.column, "the expression is nested too deeply");
    if (expression->count == NODES_MAX)
        return fail_at(compiler, node.column, "the expression has too many parts");
    if (expression->count == compiler->capacity) {
        compiler->capacity = compiler->capacity == 0 ? 16 : 2 * compiler->capacity;
        expression->nodes = mem_resize(expression->nodes,
                                       (size_t)compiler->capacity * sizeof(expression->nodes[0]));
    }
    node.next = NONE;
    expression->nodes[expression->count] = node;
    return expression->count++;
}

/* A node that gives a boolean. */
static struct node boolean_node(enum node_kind kind, size_t column, int left, int right)
{
    return (struct node){.kind = kind,
                         .type = TYPE_BOOL,
                         .is_certain = true,
                         .column = column,
                         .left = left,
                         .right = right,
                         .elements = NONE};
}

static bool is_of_type(struct compiler *compiler, int node, enum result_type type)
{
    return node != NONE && node_of(compiler, node)->type == type;
}

static int parse_expression(struct compiler *compiler, int precedence);

static bool expect(struct compiler *compiler, const char *sign, const char *expected)
{
    if (!is_sign(compiler, sign))
        return fail(compiler, expected) != NONE;
    return advance(compiler);
}

/* Label(…) and the like, behind the name. */
static int parse_call(struct compiler *compiler, enum node_kind kind, size_t column)
{
    if (!expect(compiler, "(", "'(' and one string"))
        return NONE;
    int argument = parse_expression(compiler, 0);
    if (argument == NONE)
        return NONE;
    if (!is_of_type(compiler, argument, TYPE_STRING))
        return fail_at(compiler, node_of(compiler, argument)->column, "expected a string");
    if (is_sign(compiler, ","))
        advance(compiler);
    if (!expect(compiler, ")", "')'"))
        return NONE;
    struct node node = boolean_node(kind, column, argument, NONE);
    if (kind != NODE_HAS_LABEL)
        node.type = kind == NODE_LENGTH ? TYPE_INT : TYPE_STRING;
    node.is_certain = kind != NODE_LABEL && kind != NODE_HAS_LABEL;
    compiler->expression->needs_labels |= kind == NODE_LABEL || kind == NODE_HAS_LABEL;
    return add_node(compiler, node);
}

static int parse_name(struct compiler *compiler)
{
    static const struct {
        const char *name;
        enum node_kind kind;
    } functions[] = {{"Label", NODE_LABEL},
                     {"HasLabel", NODE_HAS_LABEL},
                     {"len", NODE_LENGTH},
                     {"lower", NODE_LOWER},
                     {"upper", NODE_UPPER}};
    const size_t column = column_of(compiler, compiler->token.source);
    struct node node = boolean_node(NODE_LITERAL, column, NONE, NONE);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (is_word(compiler, functions[i].name))
            return advance(compiler) ? parse_call(compiler, functions[i].kind, column) : NONE;
    if (is_word(compiler, "true") || is_word(compiler, "false")) {
        node.literal.boolean = is_word(compiler, "true");
    } else if (is_word(compiler, "nil")) {
        node.type = TYPE_NIL;
    } else if (is_word(compiler, "MetricName") || is_word(compiler, "MetricType")) {
        node.kind = is_word(compiler, "MetricName") ? NODE_METRIC_NAME : NODE_METRIC_TYPE;
        compiler->expression->names += node.kind == NODE_METRIC_NAME;
        node.type = TYPE_STRING;
        node.is_certain = false;
    } else {
        return fail(compiler, "MetricName, MetricType, Label(\"key\"), HasLabel(\"key\"), len, "
                              "lower, upper, a string or a number");
    }
    return advance(compiler) ? add_node(compiler, node) : NONE;
}

/* -1, and not …, ! … */
static int parse_unary(struct compiler *compiler)
{
    enum { NOT_PRECEDENCE = 50 };
    const size_t column = column_of(compiler, compiler->token.source);
    struct node node = boolean_node(NODE_NOT, column, NONE, NONE);
    if (is_sign(compiler, "-")) {
        if (!advance(compiler))
            return NONE;
        if (compiler->token.kind != TOKEN_INT)
            return fail(compiler, "a whole number");
        node.kind = NODE_LITERAL;
        node.type = TYPE_INT;
        node.literal.integer = -compiler->token.integer;
        return advance(compiler) ? add_node(compiler, node) : NONE;
    }
    if (!advance(compiler))
        return NONE;
    node.left = parse_expression(compiler, NOT_PRECEDENCE);
    if (node.left == NONE)
        return NONE;
    if (!is_of_type(compiler, node.left, TYPE_BOOL))
        return fail_at(compiler, column,
                       "not (or !) takes a boolean, and only what follows it directly: write "
                       "not (…)");
    return add_node(compiler, node);
}

static int parse_primary(struct compiler *compiler)
{
    const struct token token = compiler->token;
    struct node node = boolean_node(NODE_LITERAL, column_of(compiler, token.source), NONE, NONE);
    if (is_sign(compiler, "!") || is_sign(compiler, "-") || is_word(compiler, "not"))
        return parse_unary(compiler);
    if (is_sign(compiler, "(")) {
        if (!advance(compiler))
            return NONE;
        int inside = parse_expression(compiler, 0);
        return inside != NONE && expect(compiler, ")", "')'") ? inside : NONE;
    }
    if (token.kind == TOKEN_NAME)
        return parse_name(compiler);
    if (token.kind != TOKEN_STRING && token.kind != TOKEN_INT)
        return fail(compiler, "a condition");
    node.type = token.kind == TOKEN_INT ? TYPE_INT : TYPE_STRING;
    node.literal = (struct result){.integer = token.integer, .text = token.text};
    return advance(compiler) ? add_node(compiler, node) : NONE;
}

static int parse_matches(struct compiler *compiler, int left, size_t column)
{
    struct node node = boolean_node(NODE_MATCHES, column, left, NONE);
    struct error error;
    if (compiler->token.kind != TOKEN_STRING)
        return fail(compiler, "a regular expression, a string");
    if (memchr(compiler->token.text.data, '\0', compiler->token.text.size) != NULL)
        return fail(compiler, "a regular expression without NUL");
    char *text = mem_zalloc(compiler->token.text.size + 1);
    memcpy(text, compiler->token.text.data, compiler->token.text.size);
    node.pattern = pattern_create(text, &error);
    mem_free(text);
    if (node.pattern == NULL)
        return fail_at(compiler, column_of(compiler, compiler->token.source), error.text);
    int added = advance(compiler) ? add_node(compiler, node) : NONE;
    if (added == NONE)
        pattern_destroy(node.pattern);
    return added;
}

enum { OR_PRECEDENCE = 10, AND_PRECEDENCE = 15, COMPARISON_PRECEDENCE = 20 };

/* Appends to the elements of a node. */
static int add_element(struct compiler *compiler, int list, int element)
{
    struct node *node = node_of(compiler, list);
    if (node->elements == NONE)
        node->elements = element;
    else
        node_of(compiler, node->last)->next = element;
    node->last = element;
    if (node_of(compiler, element)->depth >= node->depth)
        node->depth = node_of(compiler, element)->depth + 1;
    return node->depth > DEPTH_MAX
               ? fail_at(compiler, node->column, "the expression is nested too deeply")
               : list;
}

/* a and b and c are one node, so that long chains are not deep. */
static int chain(struct compiler *compiler, enum node_kind kind, size_t column, int left, int right)
{
    if (left == NONE || right == NONE)
        return NONE;
    const int sides[] = {left, right};
    for (size_t i = 0; i < 2; i++)
        if (!is_of_type(compiler, sides[i], TYPE_BOOL))
            return fail_at(compiler, node_of(compiler, sides[i])->column,
                           "expected a condition on each side of and, or");
    if (node_of(compiler, left)->kind == kind)
        return add_element(compiler, left, right);
    int list = add_node(compiler, boolean_node(kind, column, NONE, NONE));
    if (list == NONE || add_element(compiler, list, left) == NONE)
        return NONE;
    return add_element(compiler, list, right);
}

/* The list behind `in`: [a, b], all of the type of what is looked for. */
static int parse_in(struct compiler *compiler, int left, size_t column)
{
    const enum result_type type = node_of(compiler, left)->type;
    if (!is_sign(compiler, "["))
        return fail(compiler, "a list, as in [\"a\", \"b\"]");
    int list = add_node(compiler, boolean_node(NODE_IN, column, left, NONE));
    if (list == NONE || !advance(compiler))
        return NONE;
    while (!is_sign(compiler, "]")) {
        if (node_of(compiler, list)->elements != NONE && !expect(compiler, ",", "',' or ']'"))
            return NONE;
        if (is_sign(compiler, "]"))
            break;
        int element = parse_expression(compiler, 0);
        if (element == NONE)
            return NONE;
        if (!is_of_type(compiler, element, type) || (type != TYPE_STRING && type != TYPE_INT))
            return fail_at(compiler, node_of(compiler, element)->column,
                           "in takes a string and a list of strings, or a number and a list of "
                           "numbers");
        if (add_element(compiler, list, element) == NONE)
            return NONE;
    }
    return advance(compiler) ? list : NONE;
}

static int compare_equal(struct compiler *compiler, size_t column, int left, int right,
                         bool is_negated)
{
    const struct node *a = node_of(compiler, left);
    const struct node *b = node_of(compiler, right);
    if (a->type != b->type && a->is_certain && b->is_certain && a->type != TYPE_NIL &&
        b->type != TYPE_NIL)
        return fail_at(compiler, column, "values of different types are never equal");
    int equal = add_node(compiler, boolean_node(NODE_EQUAL, column, left, right));
    return is_negated ? add_node(compiler, boolean_node(NODE_NOT, column, equal, NONE)) : equal;
}

/* a < b, or, with the sides changed, a > b. */
static int compare_order(struct compiler *compiler, struct slice sign, size_t column, int left,
                         int right)
{
    const bool is_swapped = sign.data[0] == '>';
    const enum result_type type = node_of(compiler, left)->type;
    if (type != node_of(compiler, right)->type || (type != TYPE_INT && type != TYPE_STRING))
        return fail_at(compiler, column, "expected two strings, or two numbers, to compare");
    return add_node(compiler, boolean_node(sign.size == 2 ? NODE_LESS_OR_EQUAL : NODE_LESS, column,
                                           is_swapped ? right : left, is_swapped ? left : right));
}

static bool is_order(const struct compiler *compiler)
{
    return is_sign(compiler, "<") || is_sign(compiler, "<=") || is_sign(compiler, ">") ||
           is_sign(compiler, ">=");
}

/* a < b < c is a < b and b < c. */
static int parse_order(struct compiler *compiler, int left)
{
    int root = NONE;
    while (is_order(compiler)) {
        const struct token sign = compiler->token;
        const size_t column = column_of(compiler, sign.source);
        if (!advance(compiler))
            return NONE;
        int right = parse_expression(compiler, COMPARISON_PRECEDENCE + 1);
        if (right == NONE)
            return NONE;
        int compared = compare_order(compiler, sign.text, column, left, right);
        root = root == NONE ? compared : chain(compiler, NODE_ALL, column, root, compared);
        if (root == NONE || compared == NONE)
            return NONE;
        left = right;
    }
    return root;
}

/* contains, startsWith, endsWith: two strings. */
static int parse_string_operator(struct compiler *compiler, enum node_kind kind, int left,
                                 size_t column)
{
    int right = parse_expression(compiler, COMPARISON_PRECEDENCE + 1);
    if (right == NONE)
        return NONE;
    if (!is_of_type(compiler, right, TYPE_STRING))
        return fail_at(compiler, node_of(compiler, right)->column, "expected a string");
    return add_node(compiler, boolean_node(kind, column, left, right));
}

/* The operators that a word may stand for, which `not` may negate. */
static const struct {
    const char *word;
    enum node_kind kind;
} word_operators[] = {{"in", NODE_IN},
                      {"matches", NODE_MATCHES},
                      {"contains", NODE_CONTAINS},
                      {"startsWith", NODE_STARTS_WITH},
                      {"endsWith", NODE_ENDS_WITH}};
enum { WORD_OPERATORS = sizeof(word_operators) / sizeof(word_operators[0]) };

static int parse_word_operator(struct compiler *compiler, int left)
{
    const size_t column = column_of(compiler, compiler->token.source);
    const bool is_negated = is_word(compiler, "not");
    int made = NONE;
    size_t i = 0;
    if (is_negated && !advance(compiler))
        return NONE;
    while (i < WORD_OPERATORS && !is_word(compiler, word_operators[i].word))
        i++;
    if (i == WORD_OPERATORS)
        return fail(compiler, "in, matches, contains, startsWith or endsWith after not");
    if (word_operators[i].kind != NODE_IN && !is_of_type(compiler, left, TYPE_STRING))
        return fail_at(compiler, node_of(compiler, left)->column, "expected a string");
    if (!advance(compiler))
        return NONE;
    if (word_operators[i].kind == NODE_IN)
        made = parse_in(compiler, left, column);
    else if (word_operators[i].kind == NODE_MATCHES)
        made = parse_matches(compiler, left, column);
    else
        made = parse_string_operator(compiler, word_operators[i].kind, left, column);
    return made != NONE && is_negated
               ? add_node(compiler, boolean_node(NODE_NOT, column, made, NONE))
               : made;
}

static bool is_word_operator(const struct compiler *compiler)
{
    bool is_one = is_word(compiler, "not");
    for (size_t i = 0; i < WORD_OPERATORS; i++)
        is_one |= is_word(compiler, word_operators[i].word);
    return is_one;
}

/* One operator of at least that precedence, and what is right of it. Sets *ret_is_done when there
 * is none. */
static int parse_operator(struct compiler *compiler, int left, int precedence, bool *ret_is_done)
{
    const size_t column = column_of(compiler, compiler->token.source);
    const bool is_or = is_sign(compiler, "||") || is_word(compiler, "or");
    const bool is_and = is_sign(compiler, "&&") || is_word(compiler, "and");
    const bool is_unequal = is_sign(compiler, "!=");
    if (is_or || is_and) {
        const int own = is_or ? OR_PRECEDENCE : AND_PRECEDENCE;
        *ret_is_done = own < precedence;
        if (*ret_is_done || !advance(compiler))
            return *ret_is_done ? left : NONE;
        int right = parse_expression(compiler, own + 1);
        return chain(compiler, is_or ? NODE_ANY : NODE_ALL, column, left, right);
    }
    *ret_is_done = COMPARISON_PRECEDENCE < precedence;
    if (*ret_is_done)
        return left;
    if (is_order(compiler))
        return parse_order(compiler, left);
    if (is_word_operator(compiler))
        return parse_word_operator(compiler, left);
    if (!is_unequal && !is_sign(compiler, "==")) {
        *ret_is_done = true;
        return left;
    }
    if (!advance(compiler))
        return NONE;
    int right = parse_expression(compiler, COMPARISON_PRECEDENCE + 1);
    return right == NONE ? NONE : compare_equal(compiler, column, left, right, is_unequal);
}

/* Recursion is bounded by DEPTH_MAX. */
static int parse_expression(struct compiler *compiler, int precedence)
{
    if (compiler->depth == DEPTH_MAX)
        return fail_at(compiler, column_of(compiler, compiler->token.source),
                       "the expression is nested too deeply");
    compiler->depth++;
    int left = parse_primary(compiler);
    bool is_done = false;
    while (left != NONE && !is_done)
        left = parse_operator(compiler, left, precedence, &is_done);
    compiler->depth--;
    return left;
}

struct metric_expression *metric_expression_create(const char *text, struct error *error)
{
    struct metric_expression *expression = mem_zalloc(sizeof(*expression));
    struct compiler compiler = {
        .expression = expression, .source = text, .at = text, .error = error};
    expression->strings = mem_alloc(strlen(text) + 1); /* strings only shrink */
    compiler.string_at = expression->strings;
    expression->root = advance(&compiler) ? parse_expression(&compiler, 0) : NONE;
    if (expression->root != NONE && compiler.token.kind != TOKEN_END)
        expression->root = fail(&compiler, "and, or, a comparison or the end");
    if (expression->root != NONE && !is_of_type(&compiler, expression->root, TYPE_BOOL))
        expression->root =
            fail_at(&compiler, 1, "expected a condition, which is true or false for a data point");
    if (expression->root != NONE)
        return expression;
    metric_expression_destroy(expression);
    return NULL;
}

void metric_expression_destroy(struct metric_expression *expression)
{
    if (expression == NULL)
        return;
    for (int i = 0; i < expression->count; i++)
        pattern_destroy(expression->nodes[i].pattern);
    mem_free(expression->nodes);
    mem_free(expression->strings);
    mem_free(expression);
}

bool metric_expression_needs_labels(const struct metric_expression *expression)
{
    return expression->needs_labels;
}

unsigned metric_expression_names(const struct metric_expression *expression)
{
    return expression->names;
}

/* ---- Evaluating ---- */

/* "": there is none, or it is no string. */
static struct slice label_text(const struct metric_expression_point *point, struct slice key)
{
    const struct attribute *label = attribute_list_find(point->labels, key);
    struct value value = {.type = VALUE_EMPTY};
    if (label != NULL)
        value = value_read(label->value);
    return value.type == VALUE_STRING ? value.bytes : slice_of(NULL, 0);
}

static struct slice type_text(enum metric_kind kind)
{
    return slice_of_text(kind == METRIC_GAUGE         ? "Gauge"
                         : kind == METRIC_SUM         ? "Sum"
                         : kind == METRIC_HISTOGRAM   ? "Histogram"
                         : kind == METRIC_EXPONENTIAL ? "ExponentialHistogram"
                         : kind == METRIC_SUMMARY     ? "Summary"
                                                      : "Empty");
}

/* In characters; a byte that is no UTF-8 is one. */
static int64_t length_of(struct slice text)
{
    int64_t count = 0;
    for (; text.size > 0; count++) {
        size_t size = utf8_size(text);
        size += size == 0;
        text = slice_of(text.data + size, text.size - size);
    }
    return count;
}

static struct slice change_case(struct arena *arena, struct slice text, bool is_upper)
{
    uint8_t *room = arena_try_alloc(arena, text.size * UTF8_CASE_GROWTH_MAX);
    if (room == NULL)
        return slice_of(NULL, 0);
    return slice_of(room, is_upper ? utf8_to_upper(text, room) : utf8_to_lower(text, room));
}

static bool contains(struct slice text, struct slice part)
{
    return part.size == 0 ||
           (text.size > 0 && memmem(text.data, text.size, part.data, part.size) != NULL);
}

static bool begins(struct slice text, struct slice part)
{
    return part.size <= text.size && slice_equal(slice_of(text.data, part.size), part);
}

static bool ends(struct slice text, struct slice part)
{
    return part.size <= text.size &&
           slice_equal(slice_of(text.data + (text.size - part.size), part.size), part);
}

static int compare(enum result_type type, const struct result *a, const struct result *b)
{
    if (type == TYPE_STRING)
        return slice_compare(a->text, b->text);
    if (type == TYPE_INT)
        return (a->integer > b->integer) - (a->integer < b->integer);
    return type == TYPE_NIL ? 0 : (int)a->boolean - (int)b->boolean;
}

static struct result evaluate(const struct metric_expression *expression, int index,
                              const struct metric_expression_point *point);

static bool any_element(const struct metric_expression *expression, const struct node *node,
                        const struct metric_expression_point *point, bool wanted)
{
    for (int i = node->elements; i != NONE; i = expression->nodes[i].next)
        if (evaluate(expression, i, point).boolean == wanted)
            return true;
    return false;
}

static bool is_in(const struct metric_expression *expression, const struct node *node,
                  const struct result *wanted, const struct metric_expression_point *point)
{
    for (int i = node->elements; i != NONE; i = expression->nodes[i].next) {
        struct result found = evaluate(expression, i, point);
        if (compare(expression->nodes[i].type, wanted, &found) == 0)
            return true;
    }
    return false;
}

/* Of two values: a comparison, or an operator of strings. */
static bool holds(const struct metric_expression *expression, const struct node *node,
                  const struct result *left, const struct result *right)
{
    const enum result_type type = expression->nodes[node->left].type;
    if (node->kind == NODE_EQUAL)
        return type == expression->nodes[node->right].type && compare(type, left, right) == 0;
    if (node->kind == NODE_LESS)
        return compare(type, left, right) < 0;
    if (node->kind == NODE_LESS_OR_EQUAL)
        return compare(type, left, right) <= 0;
    if (node->kind == NODE_CONTAINS)
        return contains(left->text, right->text);
    return node->kind == NODE_STARTS_WITH ? begins(left->text, right->text)
                                          : ends(left->text, right->text);
}

/* Recursion is bounded by DEPTH_MAX. */
static struct result evaluate(const struct metric_expression *expression, int index,
                              const struct metric_expression_point *point)
{
    const struct node *node = &expression->nodes[index];
    struct result left = {.boolean = false};
    struct result right = {.boolean = false};
    if (node->left != NONE)
        left = evaluate(expression, node->left, point);
    if (node->right != NONE)
        right = evaluate(expression, node->right, point);
    switch (node->kind) {
    case NODE_LITERAL:
        return node->literal;
    case NODE_METRIC_NAME:
        return (struct result){.text = point->name};
    case NODE_METRIC_TYPE:
        return (struct result){.text = type_text(point->kind)};
    case NODE_LABEL:
        return (struct result){.text = label_text(point, left.text)};
    case NODE_HAS_LABEL:
        return (struct result){.boolean = attribute_list_find(point->labels, left.text) != NULL};
    case NODE_LENGTH:
        return (struct result){.integer = length_of(left.text)};
    case NODE_LOWER:
    case NODE_UPPER:
        return (struct result){.text =
                                   change_case(point->arena, left.text, node->kind == NODE_UPPER)};
    case NODE_NOT:
        return (struct result){.boolean = !left.boolean};
    case NODE_ALL:
        return (struct result){.boolean = !any_element(expression, node, point, false)};
    case NODE_ANY:
        return (struct result){.boolean = any_element(expression, node, point, true)};
    case NODE_IN:
        return (struct result){.boolean = is_in(expression, node, &left, point)};
    case NODE_MATCHES:
        return (struct result){.boolean = pattern_matches(node->pattern, left.text)};
    case NODE_EQUAL:
    case NODE_LESS:
    case NODE_LESS_OR_EQUAL:
    case NODE_CONTAINS:
    case NODE_STARTS_WITH:
    case NODE_ENDS_WITH:
    default:
        return (struct result){.boolean = holds(expression, node, &left, &right)};
    }
}

bool metric_expression_takes(const struct metric_expression *expression,
                             const struct metric_expression_point *point)
{
    return evaluate(expression, expression->root, point).boolean;
}
