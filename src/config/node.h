/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a configuration: scalars, lists and maps, each with its position. Nodes live in the
 * loader's arena. Main thread, while the configuration is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum node_kind {
    NODE_NULL,
    NODE_BOOL,
    NODE_INT,
    NODE_DOUBLE,
    NODE_TEXT,
    NODE_TIME, /* 2001-01-01: YAML's timestamp, which no option takes; as a string it has quotes */
    NODE_LIST,
    NODE_MAP,
    NODE_BROKEN, /* its problem is reported already; every step skips it */
};

/* A file, flag or other source of configuration. */
struct source {
    const char *name; /* as problems print it; never contains a value */
    size_t order;     /* problems are sorted by it */
};

struct position {
    const struct source *source;
    size_t line;   /* from 1 */
    size_t column; /* from 1, in characters */
};

struct node {
    enum node_kind kind;
    bool boolean;
    int64_t integer;
    double real;
    const char *text; /* scalars: what was written, without quotes */
    /* The substituted string, beside its parsed value; the field's type decides which one counts.
     * NULL: not substituted as a whole. */
    const char *verbatim;
    const char *reference; /* "${env:X}": where the value came from; NULL: literal */
    struct position position;
    size_t count; /* LIST, MAP */
    size_t capacity;
    struct node_entry *entries; /* LIST: only the values are set */
    /* MAP with many keys: indices of entries + 1 by hash, open addressing. NULL: linear search */
    uint32_t *slots;
    size_t slots_count; /* a power of two, more than half of them empty */
};

struct node_entry {
    const char *key;
    uint32_t hash; /* MAP: of key */
    struct position position;
    struct node *value;
};

/* Appends an element to a list. */
void node_append(struct arena *arena, struct node *list, struct node *value);
/* Adds an entry to a map that does not have its key yet. */
void node_add(struct arena *arena, struct node *map, struct node_entry entry);
/* NULL: no such key, or not a map. */
struct node_entry *node_find(const struct node *map, const char *key);
struct node *node_value(const struct node *map, const char *key);

enum { NODE_DESCRIPTION_MAX = 160 };
struct node_description {
    char text[NODE_DESCRIPTION_MAX];
};
/* 'the string "abc"', "the number 5", "a list": the value as problems describe it. A substituted
 * value is described by its reference, since it may be a secret. */
struct node_description node_describe(const struct node *node);
/* The same without the value. */
struct node_description node_describe_secret(const struct node *node);
