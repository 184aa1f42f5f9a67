/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves out what the Go collector has and this build lacks: components, and the pipelines that
 * cannot run without them. Main thread, while the configuration is loaded. */
#pragma once

#include <stddef.h>

#include "src/config/component_set.h"
#include "src/config/config_types.h"

struct loader;
struct node;

/* Components that refer to an extension that is left out are left out too. Moves all that are left
 * out to the end of the set, and returns how many come before them: those that may run. */
size_t unsupported_settle(struct loader *loader, struct component_set *set);
/* Leaves out of the pipelines and of service::extensions what cannot run, and marks the components
 * that are still in use. A pipeline stays as long as all of its processors, a receiver and an
 * exporter do; a connector stays in a pipeline while a pipeline at its other side does. Changes
 * config->pipelines_count; pipelines are those of config. No pipeline left is a problem. Returns
 * the map of the pipelines that are left. Without skips_unsupported nothing changes. */
const struct node *unsupported_prune(struct loader *loader, const struct component_set *set,
                                     const struct node *node, struct config_pipeline *pipelines,
                                     struct config *config);
