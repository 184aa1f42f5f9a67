/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of OTTL, as contrib 0.155 cuts them (pkg/ottl, grammar.go, buildLexer): the first rule
 * that matches counts, not the longest. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;
struct ottl_problem;

enum ottl_token_type {
    OTTL_TOKEN_END,
    OTTL_TOKEN_BYTES, /* 0x… */
    OTTL_TOKEN_FLOAT,
    OTTL_TOKEN_INT,
    OTTL_TOKEN_STRING,
    OTTL_TOKEN_NIL,
    OTTL_TOKEN_NOT,
    OTTL_TOKEN_OR,
    OTTL_TOKEN_AND,
    OTTL_TOKEN_COMPARISON,
    OTTL_TOKEN_ARROW,
    OTTL_TOKEN_ADD_SUBTRACT,
    OTTL_TOKEN_MULTIPLY_DIVIDE,
    OTTL_TOKEN_BOOLEAN,
    OTTL_TOKEN_EQUAL,
    OTTL_TOKEN_PUNCTUATION, /* ( ) { } : , . [ ] */
    OTTL_TOKEN_UPPERCASE,
    OTTL_TOKEN_LOWERCASE,
    OTTL_TOKEN_UNDERSCORE,
};

struct ottl_token {
    uint8_t type; /* enum ottl_token_type */
    uint32_t at;  /* in the text */
    uint32_t end;
    struct slice text; /* of strings: unquoted */
};

/* All tokens of a text, the last being END. White space is left out. */
bool ottl_lex(struct arena *arena, struct slice text, struct ottl_token **ret_tokens,
              size_t *ret_count, struct ottl_problem *problem);
