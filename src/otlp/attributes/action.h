/* SPDX-License-Identifier: Apache-2.0 */
/* One compiled attribute action. Shared by attribute_actions.c, which applies them, and action.c,
 * which makes them; nobody else includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/otlp/value.h"

struct pattern;

enum { ACTION_GROUPS_MAX = 64 };

enum action_verb {
    ACTION_INSERT,
    ACTION_UPDATE,
    ACTION_UPSERT,
    ACTION_DELETE,
    ACTION_HASH,
    ACTION_EXTRACT,
    ACTION_CONVERT,
    ACTION_VERBS,
};

/* Texts point into the configuration; values and the pattern are owned. */
struct action {
    enum action_verb verb;
    struct slice key;
    bool has_value;
    bool has_default_value;
    struct slice value;
    struct slice default_value;
    struct slice from_attribute; /* no data: not a source */
    const char *from_context;    /* NULL: not a source */
    struct pattern *pattern;
    enum value_type converted_type;
};

struct attribute_actions {
    size_t count;
    struct action items[];
};
