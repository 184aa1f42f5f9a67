/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `spanflame traces …` and `spanflame flame …`. Flags that narrow down are those
 * of the page's address: they become the query of the request. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/cli/arguments/verbs.h"
#include "src/cli/explore/explore_client.h"
#include "src/explore/explore_limits.h"

enum traces_verb {
    TRACES_HELP,
    TRACES_LIST,
    TRACES_SHOW,
    TRACES_SERVICES,
    TRACES_NAMES,
    TRACES_SAVE,
    TRACES_VERBS
};
enum flame_verb {
    FLAME_HELP,
    FLAME_TOP,
    FLAME_TREE,
    FLAME_DIFF,
    FLAME_FOLDED,
    FLAME_PPROF,
    FLAME_VERBS
};

extern const struct verb_table traces_verbs;
extern const struct verb_table flame_verbs;

enum { EXPLORE_WORDS_MAX = 2 };

struct explore_arguments {
    unsigned verb;
    struct explore_client client;
    bool is_json;
    unsigned long long limit; /* of rows; 0: the usual number */
    const char *output;       /* a file; NULL: standard output */
    const char *words[EXPLORE_WORDS_MAX];
    size_t words_count;
    size_t query_size;
    char query[EXPLORE_QUERY_BYTES_MAX]; /* escaped: "service=cart&min=250ms" */
};

/* table is one of the two above. Keeps pointers into arguments and the environment. */
bool explore_arguments_parse(const struct verb_table *table, struct explore_arguments *parsed,
                             int count, char **arguments, struct error *error);
/* Adds a pair to the query. False: it is too long. */
bool explore_arguments_add(struct explore_arguments *parsed, const char *key, const char *value,
                           struct error *error);
void explore_arguments_help(const struct verb_table *table, FILE *out, const char *program);
