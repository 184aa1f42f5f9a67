/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `spanflame profile …`. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

/* A word of a command line, for shell completion; static strings. */
struct command_word {
    const char *name;
    const char *value; /* "FILE", "yaml|json", another name of its value; NULL: takes none */
    const char *help;
};

/* The verb or flag at an index of its table; false beyond the last. */
bool profile_arguments_verb(size_t index, struct command_word *word);
bool profile_arguments_flag(size_t index, struct command_word *word);
