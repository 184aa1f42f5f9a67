/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `spanflame profile …`. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/cli/arguments/verbs.h"
#include "src/cli/profile/profile_file.h"

struct error;

enum profile_verb { VERB_HELP, VERB_SHOW, VERB_CONVERT, VERB_MERGE, VERB_DIFF, PROFILE_VERBS };

struct profile_arguments {
    enum profile_verb verb;
    char **files; /* input files; owned by the caller */
    size_t files_count;
    const char *output;     /* convert, merge */
    enum profile_format to; /* the same */
    const char *type;       /* show, diff; NULL: all */
    const char *flamegraph; /* show; NULL: none */
    bool is_json;
    bool has_rows_max;
    size_t rows_max; /* 0: all */
};

/* arguments are those after "profile"; they are reordered. False: error describes the invalid
 * one. */
bool profile_arguments_parse(struct profile_arguments *parsed, int count, char **arguments,
                             struct error *error);
void profile_arguments_help(FILE *out, const char *program);

extern const struct verb_table profile_verbs;
