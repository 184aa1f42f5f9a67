/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables at work: nodes into the structs that the rows describe. One setter per type. Main
 * thread. */
#pragma once

#include <stdbool.h>

#include "src/config/field.h"
#include "src/config/node.h"
#include "src/config/problems.h"

struct loader;

/* Where a value belongs. */
struct site {
    struct loader *loader;
    const struct path *path;
    struct position position; /* of the key, where a problem has no value to point at */
    bool is_off; /* below a section with enabled: false: ranges and rules do not apply */
};

/* target is the field itself; an absent key is not set at all. */
typedef void (*decode_setter_fn)(const struct site *site, const struct config_field *field,
                                 const struct node *node, void *target);

void decode_bool(const struct site *site, const struct config_field *field, const struct node *node,
                 void *target);
void decode_count(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target);
void decode_int(const struct site *site, const struct config_field *field, const struct node *node,
                void *target);
void decode_double(const struct site *site, const struct config_field *field,
                   const struct node *node, void *target);
void decode_bytes(const struct site *site, const struct config_field *field,
                     const struct node *node, void *target);
void decode_duration(const struct site *site, const struct config_field *field,
                     const struct node *node, void *target);
void decode_text(const struct site *site, const struct config_field *field, const struct node *node,
                 void *target);
void decode_choice(const struct site *site, const struct config_field *field,
                   const struct node *node, void *target);
void decode_texts(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target);
void decode_headers(const struct site *site, const struct config_field *field,
                    const struct node *node, void *target);
void decode_value(const struct site *site, const struct config_field *field,
                  const struct node *node, void *target);

/* The text that a text field takes from this node: its own, or that beside a substituted value.
 * NULL: none. Null gives "". */
const char *decode_text_of(const struct node *node);
/* Reports what was found where expected was. */
void decode_mismatch(const struct site *site, const struct config_field *field,
                     const struct node *node, const char *expected);

/* Fills the struct with the defaults of its rows, sections included. */
void decode_defaults(struct loader *loader, const struct config_field *fields, void *target);
/* What the map says, over the defaults. Keys that the section's table does not have are problems;
 * an optional section takes "enabled" besides. */
void decode_map(const struct site *site, const struct config_field *section, const struct node *map,
                void *target);
/* A section of the struct owner, by its presence rule: null, "enabled", its map, its rules. */
void decode_section(const struct site *site, const struct config_field *field,
                    const struct node *node, void *owner);
