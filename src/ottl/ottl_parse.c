/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive descent whose functions return NULL, with the position unchanged, where the grammar's
 * rule does not match. Like Go's parser it tries alternatives in order and never comes back to one
 * that has matched. Where two alternatives begin alike, what the first has read is kept for the
 * second, so that nesting does not double the work. Pure functions. */
#include "src/ottl/ottl_parse.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/hex.h"
#include "src/ottl/ottl_compare.h"
#include "src/ottl/ottl_lexer.h"
#include "src/ottl/ottl_problem.h"

enum { EXPECTED_MAX = 6 };

struct parser {
    struct arena *arena;
    struct slice text;
    struct ottl_token *tokens;
    size_t count;
    size_t at; /* token */
    unsigned depth;
    unsigned steps;
    struct ottl_problem *problem;
    bool has_problem; /* one that ends the parsing: limits, and what the grammar forbids by name */
    /* What was expected at the furthest token that did not match. */
    size_t missed_at;
    const char *expected[EXPECTED_MAX];
    unsigned expected_count;
};

static struct ottl_tree *parse_value(struct parser *parser);
static struct ottl_tree *parse_condition(struct parser *parser);
static struct ottl_tree *parse_math(struct parser *parser, struct ottl_tree *left);

static const struct ottl_token *peek(const struct parser *parser)
{
    return &parser->tokens[parser->at];
}

/* enum ottl_token_type */
static unsigned peek_type(const struct parser *parser)
{
    return peek(parser)->type;
}

/* Ends the parsing. Returns NULL. */
static struct ottl_tree *give_up(struct parser *parser, uint32_t at, const char *text)
{
    if (!parser->has_problem)
        ottl_problem_set(parser->problem, at, "%s", text);
    parser->has_problem = true;
    return NULL;
}

static void miss(struct parser *parser, const char *expected)
{
    if (parser->at < parser->missed_at)
        return;
    if (parser->at > parser->missed_at)
        parser->expected_count = 0;
    parser->missed_at = parser->at;
    for (unsigned i = 0; i < parser->expected_count; i++)
        if (strcmp(parser->expected[i], expected) == 0)
            return;
    if (parser->expected_count < EXPECTED_MAX)
        parser->expected[parser->expected_count++] = expected;
}

/* Grammar's literals match any token with that text, strings included. */
static bool take(struct parser *parser, const char *text, const char *expected)
{
    if (peek_type(parser) != OTTL_TOKEN_END && slice_equal_text(peek(parser)->text, text)) {
        parser->at++;
        return true;
    }
    miss(parser, expected);
    return false;
}

static const struct ottl_token *take_type(struct parser *parser, enum ottl_token_type type,
                                          const char *expected)
{
    if (peek_type(parser) == type)
        return &parser->tokens[parser->at++];
    miss(parser, expected);
    return NULL;
}

static struct ottl_tree *make(struct parser *parser, enum ottl_tree_kind kind, uint32_t at)
{
    if (parser->has_problem)
        return NULL;
    struct ottl_tree *tree = arena_try_alloc(parser->arena, sizeof(*tree));
    if (tree == NULL)
        return give_up(parser, at, "the statements are too large");
    *tree = (struct ottl_tree){.kind = (uint8_t)kind, .at = at};
    tree->end = parser->at > 0 ? parser->tokens[parser->at - 1].end : 0;
    return tree;
}

/* Every rule that nests begins with it. */
static bool enter(struct parser *parser)
{
    if (parser->has_problem)
        return false;
    if (parser->depth >= OTTL_DEPTH_MAX) {
        give_up(parser, peek(parser)->at, "nested too deeply");
        return false;
    }
    if (++parser->steps > OTTL_PARSE_STEPS_MAX) {
        give_up(parser, 0, "too complex to be parsed; simplify the nested lambdas");
        return false;
    }
    parser->depth++;
    return true;
}

static struct ottl_tree *leave(struct parser *parser, size_t begin, struct ottl_tree *tree)
{
    parser->depth--;
    if (tree == NULL)
        parser->at = begin;
    else
        tree->end = parser->at > 0 ? parser->tokens[parser->at - 1].end : 0;
    return tree;
}

/* Names are letters' tokens in a row, the first one of that type: I, s, M, atch. */
static bool take_name(struct parser *parser, enum ottl_token_type first, struct slice *ret,
                      const char *expected)
{
    const struct ottl_token *token = take_type(parser, first, expected);
    if (token == NULL)
        return false;
    const struct ottl_token *last = token;
    size_t bytes = token->text.size;
    bool is_contiguous = true;
    while (peek_type(parser) == OTTL_TOKEN_UPPERCASE || peek_type(parser) == OTTL_TOKEN_LOWERCASE) {
        is_contiguous = is_contiguous && last->end == peek(parser)->at;
        last = &parser->tokens[parser->at++];
        bytes += last->text.size;
    }
    *ret = slice_of(token->text.data, bytes);
    if (is_contiguous)
        return true;
    /* Go joins tokens with space between them, too. */
    uint8_t *room = arena_try_alloc(parser->arena, bytes);
    if (room == NULL)
        return give_up(parser, token->at, "the statements are too large") != NULL;
    *ret = slice_of(room, bytes);
    for (; token <= last; token++) {
        memcpy(room, token->text.data, token->text.size);
        room += token->text.size;
    }
    return true;
}

static struct ottl_tree *parse_int(struct parser *parser)
{
    const struct ottl_token *token = take_type(parser, OTTL_TOKEN_INT, "a number");
    if (token == NULL)
        return NULL;
    /* As strconv.ParseInt with base 0: a leading zero means octal. */
    uint64_t value = 0;
    unsigned base = token->text.size > 1 && token->text.data[0] == '0' ? 8 : 10;
    bool is_valid = true;
    for (size_t i = 0; i < token->text.size && is_valid; i++) {
        unsigned digit = token->text.data[i] - (unsigned)'0';
        is_valid = digit < base && !__builtin_mul_overflow(value, base, &value) &&
                   !__builtin_add_overflow(value, digit, &value) && value <= INT64_MAX;
    }
    struct ottl_tree *tree =
        is_valid ? make(parser, OTTL_TREE_INT, token->at)
                 : give_up(parser, token->at,
                           base == 8 ? "not an octal number, as numbers with a leading 0 are"
                                     : "does not fit in 64 bits");
    if (tree != NULL)
        tree->integer = (int64_t)value;
    return tree;
}

static struct ottl_tree *parse_float(struct parser *parser)
{
    enum { DIGITS_MAX = 512 };
    const struct ottl_token *token = take_type(parser, OTTL_TOKEN_FLOAT, "a number");
    char text[DIGITS_MAX];
    if (token == NULL)
        return NULL;
    if (token->text.size >= sizeof(text))
        return give_up(parser, token->at, "a number with too many digits");
    memcpy(text, token->text.data, token->text.size);
    text[token->text.size] = '\0';
    double real = strtod(text, NULL);
    if (real - real != 0)
        return give_up(parser, token->at, "does not fit in a double");
    struct ottl_tree *tree = make(parser, OTTL_TREE_FLOAT, token->at);
    if (tree != NULL)
        tree->real = real;
    return tree;
}

static struct ottl_tree *parse_string(struct parser *parser)
{
    const struct ottl_token *token = take_type(parser, OTTL_TOKEN_STRING, "a string");
    struct ottl_tree *tree = token != NULL ? make(parser, OTTL_TREE_STRING, token->at) : NULL;
    if (tree != NULL)
        tree->text = token->text;
    return tree;
}

static struct ottl_tree *parse_bytes(struct parser *parser)
{
    const struct ottl_token *token = take_type(parser, OTTL_TOKEN_BYTES, "bytes");
    if (token == NULL)
        return NULL;
    if (token->text.size % 2 != 0)
        return give_up(parser, token->at, "bytes need an even number of hexadecimal digits");
    size_t size = token->text.size / 2 - 1;
    uint8_t *room = arena_try_alloc(parser->arena, size);
    struct ottl_tree *tree = room != NULL
                                 ? make(parser, OTTL_TREE_BYTES, token->at)
                                 : give_up(parser, token->at, "the statements are too large");
    if (tree == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++)
        room[i] = (uint8_t)(hex_digit(token->text.data[2 * i + 2]) << 4 |
                            hex_digit(token->text.data[2 * i + 3]));
    tree->text = slice_of(room, size);
    return tree;
}

/* '[' String | Int | math | literal ']' */
static struct ottl_tree *parse_key(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    if (!enter(parser))
        return NULL;
    struct ottl_tree *key = NULL;
    if (take(parser, "[", "\"[\"")) {
        struct ottl_tree *value = parse_string(parser);
        if (value == NULL && peek_type(parser) == OTTL_TOKEN_INT)
            value = parse_int(parser);
        else if (value == NULL)
            value = parse_math(parser, NULL);
        if (value != NULL && take(parser, "]", "\"]\""))
            key = make(parser, OTTL_TREE_KEY, at);
        if (key != NULL)
            key->first = value;
    }
    return leave(parser, begin, key);
}

static struct ottl_tree *parse_keys(struct parser *parser)
{
    struct ottl_tree *first = NULL;
    struct ottl_tree **next = &first;
    for (struct ottl_tree *key; (key = parse_key(parser)) != NULL; next = &key->next)
        *next = key;
    return first;
}

/* (name '=')? (value | function name) */
static struct ottl_tree *parse_argument(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    struct slice name = slice_of(NULL, 0);
    if (!enter(parser))
        return NULL;
    if (!take_name(parser, OTTL_TOKEN_LOWERCASE, &name, "the name of an argument") ||
        take_type(parser, OTTL_TOKEN_EQUAL, "\"=\"") == NULL) {
        parser->at = begin;
        name = slice_of(NULL, 0);
    }
    struct ottl_tree *value = parse_value(parser);
    struct ottl_tree *argument = NULL;
    struct slice function;
    if (value == NULL &&
        take_name(parser, OTTL_TOKEN_UPPERCASE, &function, "the name of a function")) {
        value = make(parser, OTTL_TREE_FUNCTION, at);
        if (value != NULL)
            value->text = function;
    }
    if (value != NULL)
        argument = make(parser, OTTL_TREE_ARGUMENT, at);
    if (argument != NULL) {
        argument->text = name;
        argument->first = value;
    }
    return leave(parser, begin, argument);
}

/* name '(' (argument (',' argument)*)? ')' key* */
static struct ottl_tree *parse_call(struct parser *parser, enum ottl_token_type first)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    struct slice name;
    if (!enter(parser))
        return NULL;
    struct ottl_tree *call = NULL;
    struct ottl_tree *arguments = NULL;
    struct ottl_tree **next = &arguments;
    if (take_name(parser, first, &name, "a function") && take(parser, "(", "\"(\"")) {
        size_t behind = parser->at;
        bool is_complete = true;
        for (struct ottl_tree *argument; (argument = parse_argument(parser)) != NULL;) {
            *next = argument;
            next = &argument->next;
            behind = parser->at;
            is_complete = true;
            if (!take(parser, ",", "\",\""))
                break;
            is_complete = false;
        }
        if (!is_complete)
            parser->at = behind; /* a comma without an argument: not the list's */
        if (take(parser, ")", "\")\""))
            call = make(parser, OTTL_TREE_CALL, at);
    }
    if (call != NULL) {
        call->text = name;
        call->first = arguments;
        call->keys = parse_keys(parser);
    }
    return leave(parser, begin, call);
}

static struct ottl_tree *parse_field(struct parser *parser)
{
    const struct ottl_token *token = take_type(parser, OTTL_TOKEN_LOWERCASE, "a path");
    struct ottl_tree *field = token != NULL ? make(parser, OTTL_TREE_FIELD, token->at) : NULL;
    if (field == NULL)
        return NULL;
    field->text = token->text;
    field->keys = parse_keys(parser);
    field->end = parser->tokens[parser->at - 1].end;
    return field;
}

/* (context '.')? field ('.' field)* */
static struct ottl_tree *parse_path(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    struct slice context = slice_of(NULL, 0);
    if (!enter(parser))
        return NULL;
    if (peek_type(parser) == OTTL_TOKEN_LOWERCASE &&
        slice_equal_text(parser->tokens[parser->at + 1].text, ".")) {
        context = peek(parser)->text;
        parser->at += 2;
    }
    struct ottl_tree *path = NULL;
    struct ottl_tree *fields = parse_field(parser);
    struct ottl_tree *last = fields;
    while (last != NULL) {
        size_t behind = parser->at;
        struct ottl_tree *field = NULL;
        if (take(parser, ".", "\".\""))
            field = parse_field(parser);
        if (field == NULL)
            parser->at = behind;
        last->next = field;
        last = field;
    }
    if (fields != NULL)
        path = make(parser, OTTL_TREE_PATH, at);
    if (path != NULL) {
        path->text = context;
        path->first = fields;
    }
    return leave(parser, begin, path);
}

/* editor | converter | Float | Int | path */
static struct ottl_tree *parse_literal(struct parser *parser)
{
    switch (peek_type(parser)) {
    case OTTL_TOKEN_LOWERCASE: {
        struct ottl_tree *editor = parse_call(parser, OTTL_TOKEN_LOWERCASE);
        if (editor != NULL)
            return give_up(parser, editor->at,
                           "an editor stands at the beginning of a statement only; names of "
                           "converters begin with an uppercase letter");
        return parse_path(parser);
    }
    case OTTL_TOKEN_UPPERCASE:
        return parse_call(parser, OTTL_TOKEN_UPPERCASE);
    case OTTL_TOKEN_FLOAT:
        return parse_float(parser);
    case OTTL_TOKEN_INT:
        return parse_int(parser);
    default:
        miss(parser, "a value");
        return NULL;
    }
}

static struct ottl_tree *make_pair(struct parser *parser, enum ottl_tree_kind kind, uint8_t op,
                                   struct ottl_tree *left, struct ottl_tree *right)
{
    struct ottl_tree *pair = make(parser, kind, left->at);
    if (pair == NULL)
        return NULL;
    pair->op = op;
    pair->first = left;
    left->next = right;
    return pair;
}

/* ('+' | '-')? (literal | '(' math ')') */
static struct ottl_tree *parse_math_value(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    bool is_negative = false;
    bool is_literal = true;
    if (!enter(parser))
        return NULL;
    if (peek_type(parser) == OTTL_TOKEN_ADD_SUBTRACT) {
        is_negative = slice_equal_text(peek(parser)->text, "-");
        is_literal = false;
        parser->at++;
    }
    struct ottl_tree *value = parse_literal(parser);
    if (value == NULL && take(parser, "(", "\"(\"")) {
        is_literal = false;
        value = parse_math(parser, NULL);
        if (value != NULL && !take(parser, ")", "\")\""))
            value = NULL;
    }
    if (value != NULL && !is_literal) {
        struct ottl_tree *group =
            make(parser, is_negative ? OTTL_TREE_NEGATE : OTTL_TREE_GROUP, at);
        if (group != NULL)
            group->first = value;
        value = group;
    }
    return leave(parser, begin, value);
}

/* value (('*' | '/') value)*; left may be read already. */
static struct ottl_tree *parse_product(struct parser *parser, struct ottl_tree *left)
{
    if (left == NULL)
        left = parse_math_value(parser);
    while (left != NULL && peek_type(parser) == OTTL_TOKEN_MULTIPLY_DIVIDE) {
        size_t behind = parser->at;
        bool is_product = slice_equal_text(peek(parser)->text, "*");
        parser->at++;
        struct ottl_tree *right = parse_math_value(parser);
        if (right == NULL) {
            parser->at = behind;
            break;
        }
        left = make_pair(parser, OTTL_TREE_MATH, is_product ? OTTL_MULTIPLY : OTTL_DIVIDE, left,
                         right);
    }
    return left;
}

/* product (('+' | '-') product)*; left, a literal, may be read already. */
static struct ottl_tree *parse_math(struct parser *parser, struct ottl_tree *left)
{
    size_t begin = parser->at;
    if (!enter(parser))
        return NULL;
    left = parse_product(parser, left);
    while (left != NULL && peek_type(parser) == OTTL_TOKEN_ADD_SUBTRACT) {
        size_t behind = parser->at;
        bool is_sum = slice_equal_text(peek(parser)->text, "+");
        parser->at++;
        struct ottl_tree *right = parse_product(parser, NULL);
        if (right == NULL) {
            parser->at = behind;
            break;
        }
        left = make_pair(parser, OTTL_TREE_MATH, is_sum ? OTTL_ADD : OTTL_SUBTRACT, left, right);
    }
    return leave(parser, begin, left);
}

/* '(' (name (',' name)*)? ')' '=>' (value | condition) */
static struct ottl_tree *parse_lambda(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    if (!slice_equal_text(peek(parser)->text, "(") || !enter(parser))
        return NULL;
    parser->at++;
    struct ottl_tree *parameters = NULL;
    struct ottl_tree **next = &parameters;
    while (peek_type(parser) == OTTL_TOKEN_LOWERCASE ||
           peek_type(parser) == OTTL_TOKEN_UNDERSCORE) {
        const struct ottl_token *token = &parser->tokens[parser->at++];
        struct ottl_tree *parameter = make(parser, OTTL_TREE_PARAMETER, token->at);
        if (parameter == NULL)
            return leave(parser, begin, NULL);
        parameter->text = token->text;
        *next = parameter;
        next = &parameter->next;
        if (!slice_equal_text(peek(parser)->text, ","))
            break;
        parser->at++;
        if (peek_type(parser) != OTTL_TOKEN_LOWERCASE && peek_type(parser) != OTTL_TOKEN_UNDERSCORE)
            parser->at = begin; /* the list ends before the comma: no ")" follows */
    }
    if (parser->at == begin || !slice_equal_text(peek(parser)->text, ")") ||
        parser->tokens[parser->at + 1].type != OTTL_TOKEN_ARROW)
        return leave(parser, begin, NULL);
    parser->at += 2;
    size_t body_begin = parser->at;
    bool is_condition = false;
    struct ottl_tree *body = parse_value(parser);
    if (body == NULL || peek_type(parser) == OTTL_TOKEN_OR || peek_type(parser) == OTTL_TOKEN_AND ||
        peek_type(parser) == OTTL_TOKEN_COMPARISON) {
        parser->at = body_begin;
        body = parse_condition(parser);
        is_condition = true;
    }
    if (body != NULL && body->kind == OTTL_TREE_LAMBDA)
        body = give_up(parser, body->at, "the body of a lambda cannot be another lambda");
    struct ottl_tree *lambda = body != NULL ? make(parser, OTTL_TREE_LAMBDA, at) : NULL;
    if (lambda != NULL) {
        lambda->first = parameters;
        lambda->body = body;
        lambda->is_condition = is_condition;
    }
    return leave(parser, begin, lambda);
}

/* '{' (String ':' value ','?)* '}' */
static struct ottl_tree *parse_map(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    if (!take(parser, "{", "\"{\"") || !enter(parser))
        return NULL;
    struct ottl_tree *items = NULL;
    struct ottl_tree **next = &items;
    for (;;) {
        size_t behind = parser->at;
        uint32_t item_at = peek(parser)->at;
        struct ottl_tree *key = parse_string(parser);
        struct ottl_tree *value =
            key != NULL && take(parser, ":", "\":\"") ? parse_value(parser) : NULL;
        struct ottl_tree *item = value != NULL ? make(parser, OTTL_TREE_ITEM, item_at) : NULL;
        if (item == NULL) {
            parser->at = behind;
            break;
        }
        item->text = key->text;
        item->first = value;
        *next = item;
        next = &item->next;
        take(parser, ",", "\",\"");
    }
    struct ottl_tree *map = take(parser, "}", "\"}\"") ? make(parser, OTTL_TREE_MAP, at) : NULL;
    if (map != NULL)
        map->first = items;
    return leave(parser, begin, map);
}

/* '[' value* (',' value)* ']' */
static struct ottl_tree *parse_list(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    if (!take(parser, "[", "\"[\"") || !enter(parser))
        return NULL;
    struct ottl_tree *items = NULL;
    struct ottl_tree **next = &items;
    struct ottl_tree *item;
    for (; (item = parse_value(parser)) != NULL; next = &item->next)
        *next = item;
    for (;;) {
        size_t behind = parser->at;
        item = take(parser, ",", "\",\"") ? parse_value(parser) : NULL;
        if (item == NULL) {
            parser->at = behind;
            break;
        }
        *next = item;
        next = &item->next;
    }
    struct ottl_tree *list = take(parser, "]", "\"]\"") ? make(parser, OTTL_TREE_LIST, at) : NULL;
    if (list != NULL)
        list->first = items;
    return leave(parser, begin, list);
}

static struct ottl_tree *parse_enum(struct parser *parser)
{
    const struct ottl_token *token = peek(parser);
    if (token->type != OTTL_TOKEN_UPPERCASE || token[1].type == OTTL_TOKEN_LOWERCASE)
        return NULL;
    parser->at++;
    struct ottl_tree *symbol = make(parser, OTTL_TREE_ENUM, token->at);
    if (symbol != NULL)
        symbol->text = token->text;
    return symbol;
}

static struct ottl_tree *parse_word(struct parser *parser, enum ottl_tree_kind kind)
{
    const struct ottl_token *token = &parser->tokens[parser->at++];
    struct ottl_tree *word = make(parser, kind, token->at);
    if (word != NULL)
        word->integer = slice_equal_text(token->text, "true");
    return word;
}

/* nil | literal | lambda | math | bytes | string | boolean | enum | map | list */
static struct ottl_tree *parse_value(struct parser *parser)
{
    size_t begin = parser->at;
    if (!enter(parser))
        return NULL;
    struct ottl_tree *value = NULL;
    switch (peek_type(parser)) {
    case OTTL_TOKEN_NIL:
        value = parse_word(parser, OTTL_TREE_NIL);
        break;
    case OTTL_TOKEN_BOOLEAN:
        value = parse_word(parser, OTTL_TREE_BOOL);
        break;
    case OTTL_TOKEN_BYTES:
        value = parse_bytes(parser);
        break;
    default:
        value = parse_literal(parser);
        if (value != NULL && (peek_type(parser) == OTTL_TOKEN_ADD_SUBTRACT ||
                              peek_type(parser) == OTTL_TOKEN_MULTIPLY_DIVIDE)) {
            struct ottl_tree *literal = value;
            value = parse_math(parser, literal);
            /* Go takes what no operand follows as an expression of one. */
            if (value == literal && (value = make(parser, OTTL_TREE_GROUP, literal->at)) != NULL)
                value->first = literal;
        }
        if (value == NULL)
            value = parse_lambda(parser);
        if (value == NULL)
            value = parse_math(parser, NULL);
        if (value == NULL && peek_type(parser) == OTTL_TOKEN_STRING)
            value = parse_string(parser);
        if (value == NULL)
            value = parse_enum(parser);
        if (value == NULL)
            value = parse_map(parser);
        if (value == NULL)
            value = parse_list(parser);
    }
    return leave(parser, begin, value);
}

static bool take_comparison(struct parser *parser, enum ottl_comparison *ret)
{
    static const char *const texts[] = {"==", "!=", "<", "<=", ">=", ">"};
    const struct ottl_token *token = take_type(parser, OTTL_TOKEN_COMPARISON, "a comparison");
    if (token == NULL)
        return false;
    unsigned i = 0;
    while (!slice_equal_text(token->text, texts[i]))
        i++;
    *ret = (enum ottl_comparison)i;
    return true;
}

/* 'not'? (value op value | boolean | converter | '(' condition ')') */
static struct ottl_tree *parse_condition_value(struct parser *parser)
{
    size_t begin = parser->at;
    uint32_t at = peek(parser)->at;
    if (!enter(parser))
        return NULL;
    bool is_negated = peek_type(parser) == OTTL_TOKEN_NOT;
    if (is_negated)
        parser->at++;
    size_t inner = parser->at;
    struct ottl_tree *value = parse_value(parser);
    size_t behind = parser->at;
    struct ottl_tree *condition = NULL;
    enum ottl_comparison op;
    if (value != NULL && take_comparison(parser, &op)) {
        struct ottl_tree *right = parse_value(parser);
        if (right != NULL)
            condition = make_pair(parser, OTTL_TREE_COMPARE, (uint8_t)op, value, right);
    }
    if (condition == NULL) {
        parser->at = behind;
        if (value != NULL && (value->kind == OTTL_TREE_BOOL || value->kind == OTTL_TREE_CALL))
            condition = value;
    }
    if (condition == NULL) {
        parser->at = inner;
        if (take(parser, "(", "\"(\"")) {
            condition = parse_condition(parser);
            if (condition != NULL && !take(parser, ")", "\")\""))
                condition = NULL;
        }
    }
    if (condition != NULL && is_negated) {
        struct ottl_tree *negation = make(parser, OTTL_TREE_NOT, at);
        if (negation != NULL)
            negation->first = condition;
        condition = negation;
    }
    return leave(parser, begin, condition);
}

/* item (op item)*: one item is itself. */
static struct ottl_tree *parse_chain(struct parser *parser, enum ottl_token_type op,
                                     enum ottl_tree_kind kind,
                                     struct ottl_tree *(*parse_item)(struct parser *parser))
{
    struct ottl_tree *first = parse_item(parser);
    if (first == NULL || peek_type(parser) != op)
        return first;
    struct ottl_tree *last = first;
    while (peek_type(parser) == op) {
        size_t behind = parser->at;
        parser->at++;
        struct ottl_tree *item = parse_item(parser);
        if (item == NULL) {
            parser->at = behind;
            break;
        }
        last->next = item;
        last = item;
    }
    if (last == first)
        return first;
    struct ottl_tree *chain = make(parser, kind, first->at);
    if (chain != NULL)
        chain->first = first;
    return chain;
}

static struct ottl_tree *parse_conjunction(struct parser *parser)
{
    return parse_chain(parser, OTTL_TOKEN_AND, OTTL_TREE_AND, parse_condition_value);
}

static struct ottl_tree *parse_condition(struct parser *parser)
{
    size_t begin = parser->at;
    if (!enter(parser))
        return NULL;
    return leave(parser, begin,
                 parse_chain(parser, OTTL_TOKEN_OR, OTTL_TREE_OR, parse_conjunction));
}

static bool begin_parsing(struct parser *parser, struct arena *arena, struct slice text,
                          struct ottl_problem *problem)
{
    *parser = (struct parser){.arena = arena, .text = text, .problem = problem};
    return ottl_lex(arena, text, &parser->tokens, &parser->count, problem);
}

/* Whether all tokens are used; else what was expected instead of the one that is not. */
static bool end_parsing(struct parser *parser, const struct ottl_tree *tree)
{
    char expected[OTTL_ERROR_BYTES_MAX / 2] = "";
    if (parser->has_problem)
        return false;
    if (tree != NULL && peek_type(parser) == OTTL_TOKEN_END)
        return true;
    const struct ottl_token *token = &parser->tokens[parser->missed_at];
    if (tree != NULL && parser->at > parser->missed_at) {
        token = peek(parser);
        parser->expected_count = 0;
    }
    size_t used = 0;
    for (unsigned i = 0; i < parser->expected_count && used < sizeof(expected); i++) {
        const char *comma = i == 0 ? "" : i + 1 == parser->expected_count ? " or " : ", ";
        used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s%s", comma,
                                 parser->expected[i]);
    }
    if (parser->expected_count == 0)
        snprintf(expected, sizeof(expected), "the end");
    if (token->type == OTTL_TOKEN_END)
        return ottl_problem_set(parser->problem, token->at, "the text ends here; expected %s",
                                expected);
    int size = token->end - token->at < 64 ? (int)(token->end - token->at) : 64;
    return ottl_problem_set(parser->problem, token->at, "found \"%.*s\"; expected %s", size,
                            (const char *)parser->text.data + token->at, expected);
}

bool ottl_parse_statement(struct arena *arena, struct slice text, struct ottl_statement *ret,
                          struct ottl_problem *problem)
{
    struct parser parser;
    if (!begin_parsing(&parser, arena, text, problem))
        return false;
    struct ottl_tree *call = parse_call(&parser, OTTL_TOKEN_LOWERCASE);
    bool is_editor = call != NULL;
    if (call == NULL)
        call = parse_call(&parser, OTTL_TOKEN_UPPERCASE);
    ret->editor = call;
    ret->where = NULL;
    size_t behind = parser.at;
    if (call != NULL && take(&parser, "where", "\"where\"")) {
        ret->where = parse_condition(&parser);
        if (ret->where == NULL)
            parser.at = behind;
    }
    if (!end_parsing(&parser, call))
        return false;
    if (!is_editor)
        return ottl_problem_set(problem, call->at,
                                "\"%.*s\" is a converter; a statement begins with an editor, whose "
                                "name begins with a lowercase letter",
                                (int)call->text.size, (const char *)call->text.data);
    if (call->keys != NULL)
        return ottl_problem_set(problem, call->keys->at,
                                "only paths and converters may be indexed, not editors");
    return true;
}

bool ottl_parse_condition(struct arena *arena, struct slice text, struct ottl_tree **ret,
                          struct ottl_problem *problem)
{
    struct parser parser;
    if (!begin_parsing(&parser, arena, text, problem))
        return false;
    *ret = parse_condition(&parser);
    return end_parsing(&parser, *ret);
}

bool ottl_parse_value(struct arena *arena, struct slice text, struct ottl_tree **ret,
                      struct ottl_problem *problem)
{
    struct parser parser;
    if (!begin_parsing(&parser, arena, text, problem))
        return false;
    *ret = parse_value(&parser);
    return end_parsing(&parser, *ret);
}
