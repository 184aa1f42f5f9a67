/* SPDX-License-Identifier: Apache-2.0 */
/* service::pipelines and service::extensions: references to components, and the checks of the graph
 * that they make. Main thread, while the configuration is loaded. */
#pragma once

#include "src/config/component_set.h"
#include "src/config/config_types.h"
#include "src/config/node.h"

struct loader;

/* service may be NULL or of any kind; position is where to report what is missing. Marks the
 * components that are used. */
void pipelines_load(struct loader *loader, const struct node *service, struct position position,
                    const struct component_set *set, struct config *config);
