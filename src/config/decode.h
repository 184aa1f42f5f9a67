/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes nodes into the structs that option tables describe. Main thread. */
#pragma once

#include <stdbool.h>

#include "src/config/field.h"
#include "src/config/loader.h"

/* Where a value is in the configuration. */
struct site {
    struct loader *loader;
    const struct path *path;
    struct position position; /* of the key, for problems without a value */
    bool is_off; /* below a section with enabled: false: ranges and rules are not checked */
};

/* The value of a string field: the node's string, or the substituted string; "" for null. NULL: the
 * node is not a string. */
const char *decode_text_of(const struct node *node);
/* The row of this key, or NULL. fields may be NULL. */
const struct config_field *decode_find_field(const struct config_field *fields, const char *key);
/* Fills the struct with the defaults of its rows, sections included. */
void decode_defaults(struct loader *loader, const struct config_field *fields, void *target);
/* Decodes a section of the struct owner: its presence (null, "enabled"), its map, its rules.
 * Unknown keys are problems. */
void decode_section(const struct site *site, const struct config_field *field,
                    const struct node *node, void *owner);
