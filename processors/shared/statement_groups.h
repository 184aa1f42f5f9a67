/* SPDX-License-Identifier: Apache-2.0 */
/* What processors of OTTL have in common in their configuration: groups {context, conditions,
 * statements, error_mode}. Errors have the steps below the group. Main thread. */
#pragma once

#include "src/config/feature_gates.h"
#include "src/config/field.h"
#include "src/ottl/ottl_plan.h"

struct component;
struct error;

struct statement_group {
    enum ottl_context context; /* OTTL_CONTEXTS: not given */
    enum ottl_error_mode error_mode;
    const struct config_value *conditions; /* LIST; NULL: not given */
    const struct config_value *statements; /* the same */
};

/* The error_mode of a processor's section; "": ignore, or propagate without the gate. component is
 * NULL while the configuration is checked. */
bool statement_error_mode(const char *text, const struct component *component,
                          enum feature_gate gate, enum ottl_error_mode *ret, struct error *error);
/* Reads a map; error_mode is what the group has if it gives none. Filters have no statements. */
bool statement_group_read(const struct config_value *map, enum signal_kind signal,
                          bool has_statements, enum ottl_error_mode error_mode,
                          struct statement_group *ret, struct error *error);
/* The strings of a list, for ottl_group; NULL: an element is none, and the error says which. The
 * caller frees the array with mem_free. */
const char **statement_texts(const struct config_value *list, struct error *error);
