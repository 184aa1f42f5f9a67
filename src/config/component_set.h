/* SPDX-License-Identifier: Apache-2.0 */
/* The components of a configuration, used or not, decoded and checked. Main thread, while it is
 * loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/config/config_types.h"
#include "src/config/node.h"
#include "src/core/component.h"

struct error;
struct loader;
struct suggestion;

enum { COMPONENT_KINDS = EXTENSION + 1 };

struct component_set {
    size_t count;
    size_t capacity;
    struct config_component *items; /* factory NULL: its problem is reported already */
    enum component_kind *kinds;     /* beside items */
    /* Finds them: maps whose keys are the ids of one kind; where the first id of each kind is in
     * places; and where each id's item is. */
    struct node ids[COMPONENT_KINDS];
    size_t firsts[COMPONENT_KINDS];
    size_t *places;
};

/* "receiver", "receivers". */
const char *component_kind_name(enum component_kind kind);
const char *component_kind_section(enum component_kind kind);
/* False: not the key of a section of components. */
bool component_kind_find(const char *section, enum component_kind *ret_kind);
/* Reads receivers, processors, exporters, connectors and extensions. */
void component_set_load(struct loader *loader, const struct node *root, struct component_set *set);
/* NULL: not defined. */
struct config_component *component_set_find(const struct component_set *set,
                                            enum component_kind kind, const char *id);
/* The id that is meant, of a component of these kinds (bits). */
struct suggestion component_set_suggest(const struct loader *loader,
                                        const struct component_set *set, unsigned kinds,
                                        const char *found);
/* The factory of this kind whose type or alias this is, or NULL. ret_alias may be NULL. */
const struct component_factory *component_factory_find(const struct loader *loader,
                                                       enum component_kind kind, const char *type,
                                                       const char **ret_alias);
/* Prefixes "file:line:column: path: " to an error about the component, by the error's steps
 * (src/base/error.h). */
void config_component_locate(const struct config_component *component, struct error *error);
