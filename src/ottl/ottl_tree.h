/* SPDX-License-Identifier: Apache-2.0 */
/* Statements as trees, in an arena: what the parser found, before names and types are checked.
 * Plain data. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

enum ottl_tree_kind {
    /* Values. */
    OTTL_TREE_NIL,
    OTTL_TREE_BOOL,   /* integer: 0 or 1 */
    OTTL_TREE_INT,    /* integer */
    OTTL_TREE_FLOAT,  /* real */
    OTTL_TREE_STRING, /* text */
    OTTL_TREE_BYTES,  /* text: decoded */
    OTTL_TREE_ENUM,   /* text: the symbol */
    OTTL_TREE_PATH,   /* text: the context, maybe empty; first: FIELD… */
    OTTL_TREE_CALL,   /* text: the name; first: ARGUMENT…; keys: KEY… */
    OTTL_TREE_LAMBDA, /* first: PARAMETER…; body */
    OTTL_TREE_MAP,    /* first: ITEM… */
    OTTL_TREE_LIST,   /* first: values */
    OTTL_TREE_MATH,   /* op: enum ottl_arithmetic; first: left and right */
    OTTL_TREE_NEGATE, /* first */
    OTTL_TREE_GROUP,  /* first: in parentheses, or behind a plus: no literal or path any more */
    /* Conditions. */
    OTTL_TREE_OR,  /* first: two or more */
    OTTL_TREE_AND, /* the same */
    OTTL_TREE_NOT,
    OTTL_TREE_COMPARE, /* op: enum ottl_comparison; first: left and right */
    /* Parts of the above. */
    OTTL_TREE_FIELD,     /* text: the name; keys: KEY… */
    OTTL_TREE_KEY,       /* first: a value */
    OTTL_TREE_ARGUMENT,  /* text: its name, maybe empty; first: a value or FUNCTION */
    OTTL_TREE_FUNCTION,  /* text: the name of a function */
    OTTL_TREE_PARAMETER, /* text: the name, "_" for none */
    OTTL_TREE_ITEM,      /* text: the key; first: the value */
};

struct ottl_tree {
    uint8_t kind; /* enum ottl_tree_kind */
    uint8_t op;
    bool is_condition; /* LAMBDA: of its body */
    uint32_t at;       /* byte of the text */
    uint32_t end;
    struct slice text;
    union {
        int64_t integer;
        double real;
    };
    struct ottl_tree *first;
    struct ottl_tree *keys;
    struct ottl_tree *body;
    struct ottl_tree *next; /* of the same list */
};

struct ottl_statement {
    struct ottl_tree *editor; /* CALL */
    struct ottl_tree *where;  /* NULL: always */
};
