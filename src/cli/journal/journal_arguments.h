/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `spanflame journal …`. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/base/signal_kind.h"
#include "src/cli/arguments/verbs.h"

struct error;

enum journal_verb { JOURNAL_HELP, JOURNAL_LIST, JOURNAL_VERIFY, JOURNAL_EXPORT, JOURNAL_VERBS };

struct journal_arguments {
    enum journal_verb verb;
    const char *directory;
    bool is_json;            /* list, verify */
    bool is_all;             /* export: also what every exporter has finished */
    const char *exporter;    /* export; NULL: any */
    enum signal_kind signal; /* export; SIGNAL_KINDS: all */
};

/* arguments are those after "journal"; they are reordered. False: error describes the invalid one.
 */
bool journal_arguments_parse(struct journal_arguments *parsed, int count, char **arguments,
                             struct error *error);
void journal_arguments_help(FILE *out, const char *program);

extern const struct verb_table journal_verbs;
