/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, checks and prints configurations. The result is described in src/config/config_types.h.
 * Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/config/config_types.h"

/* NULL when there are problems. Fills problems in any case, with warnings too; free them with
 * config_problems_clear. */
struct config *config_load(const struct config_request *request, struct config_problems *problems);
/* NULL is a no-op. */
void config_destroy(struct config *config);
void config_problems_clear(struct config_problems *problems);

/* print-config: the resolved tree as JSON or YAML; secrets as [REDACTED] unless is_unredacted.
 * False: as for config_load. */
bool config_print(const struct config_request *request, bool is_unredacted, bool is_json, FILE *out,
                  struct config_problems *problems);
/* config/reference.md, from the option tables alone. */
void config_print_reference(const struct component_factory *const *factories, FILE *out);
/* The `components` command: YAML. */
void config_print_components(const struct component_factory *const *factories, FILE *out);
