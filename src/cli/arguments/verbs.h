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

/* A flag of a verb: its place in the table, and its value, NULL when it takes none. */
typedef bool (*verb_flag_fn)(void *parsed, size_t flag, const char *value, struct error *error);
/* Parses a verb ("-h" and "--help" are "help", also behind another one) and its flags, which take
 * their value as "--flag=value" or "--flag value" and may appear anywhere. Other words are moved to
 * the front of arguments, in order. Without arguments it is "help". */
bool verb_parse(const struct verb_table *table, int count, char **arguments, verb_flag_fn take_flag,
                void *parsed, unsigned *ret_verb, size_t *ret_words, struct error *error)
    __attribute__((warn_unused_result));
/* "Usage:", then `about`, whole lines, then "Verbs:" and "Flags:". */
void verb_print_help(const struct verb_table *table, const char *program, const char *about,
                     FILE *out);

/* The verb or flag at an index of its table; false beyond the last. */
bool verb_word(const struct verb_table *table, size_t index, struct command_word *word);
bool verb_flag_word(const struct verb_table *table, size_t index, struct command_word *word);
