/* SPDX-License-Identifier: Apache-2.0 */
/* YAML bytes to a tree with positions, through libyaml's events: anchors, aliases and merge keys
 * are resolved by copying, so that the result is a tree and every copy counts against the limits of
 * src/base/limits.h. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/error.h"
#include "src/base/slice.h"
#include "src/config/node.h"

struct loader;

/* Where the bytes come from. */
struct yaml_origin {
    /* Of a document: its start. Of a substituted value: the reference, for all of its nodes. */
    struct position position;
    const char *reference; /* NULL: a document */
    size_t depth;          /* of the reference in its tree */
};

struct yaml_failure {
    bool is_limit; /* too deep, too many nodes or aliases: not a syntax error */
    struct position position;
    struct error error;
};

/* The first document, or a null node when there is none. NULL on failure. Duplicate keys in a
 * document are reported to the loader, and the first is kept; in substituted values they are a
 * failure. */
struct node *yaml_tree_parse(struct loader *loader, struct slice bytes,
                             const struct yaml_origin *origin, struct yaml_failure *failure);
