/* SPDX-License-Identifier: Apache-2.0 */
/* The text formats of /ingest and its binary tries: stacks with values. Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct error;
struct stack_profile;

enum text_format {
    TEXT_FOLDED, /* "main;work 3" */
    TEXT_LINES,  /* "main;work": one for each sample */
    TEXT_TRIE,   /* nodes with pieces of stacks: names, values, counts of children */
    TEXT_TREE,   /* the same with a frame in each node */
    TEXT_FORMATS,
};

/* Adds every stack to the profile. False: the error says what is wrong, unless
 * profile->has_no_memory. */
bool text_profile_read(enum text_format format, struct slice body, struct stack_profile *profile,
                       struct error *error);
