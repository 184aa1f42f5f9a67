/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that have verbs, as tables: `spanflame profile show …`, `spanflame journal list …`. What
 * parses them, prints their help and completes them runs on the tables. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct error;

/* A word of a command line, for shell completion; static strings. */
struct command_word {
    const char *name;
    const char *value; /* "FILE", "yaml|json", another name of its value; NULL: takes none */
    const char *help;
};

struct verb {
    const char *name;
    const char *usage; /* with its arguments: "show FILE" */
    const char *help;
};

struct verb_flag {
    struct command_word word;
    unsigned verbs; /* that take it, by bit */
};

/* The first verb is "help". */
struct verb_table {
    const char *command; /* "profile" */
    const struct verb *verbs;
    size_t verbs_count;
    const struct verb_flag *flags;
    size_t flags_count;
};

/* Finds the verb; "-h" and "--help" are "help". False: error lists the verbs. */
bool verb_find(const struct verb_table *table, const char *word, unsigned *ret_verb,
               struct error *error);
/* Parses "--flag=value" or "--flag value" at *index, which it moves past a separate value.
 * *ret_value is NULL when the flag takes none. */
bool verb_flag_parse(const struct verb_table *table, unsigned verb, int count, char **arguments,
                     int *index, size_t *ret_flag, const char **ret_value, struct error *error);
/* "Usage:", then `about`, whole lines, then "Verbs:" and "Flags:". */
void verb_print_help(const struct verb_table *table, const char *program, const char *about,
                     FILE *out);

/* The verb or flag at an index of its table; false beyond the last. */
bool verb_word(const struct verb_table *table, size_t index, struct command_word *word);
bool verb_flag_word(const struct verb_table *table, size_t index, struct command_word *word);
