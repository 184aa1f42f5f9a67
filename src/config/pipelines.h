/* SPDX-License-Identifier: Apache-2.0 */
/* Loads service::pipelines and service::extensions: references to components, which form a graph.
 * Main thread, while the configuration is loaded. */
#pragma once

#include "src/config/component_set.h"
#include "src/config/config_types.h"
#include "src/config/node.h"

struct loader;

/* service may be NULL or of any kind; problems about missing keys are reported at position. Marks
 * the components in use. */
void pipelines_load(struct loader *loader, const struct node *service, struct position position,
                    const struct component_set *set, struct config *config);
