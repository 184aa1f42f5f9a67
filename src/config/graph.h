/* SPDX-License-Identifier: Apache-2.0 */
/* How connectors join pipelines: checks with the Go collector's error messages, and the depth and
 * destinations of each pipeline. Main thread, while the configuration is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/config/component_set.h"
#include "src/config/config_types.h"

struct loader;
struct node;

/* Checks that every connector in use is an exporter of one pipeline and a receiver of another, for
 * signals that it supports, and that no pipeline leads back to itself. Sets the depth and the
 * destinations of the pipelines. pipelines[i] is that of node->entries[i]. */
void graph_load(struct loader *loader, const struct component_set *set, const struct node *node,
                struct config_pipeline *pipelines, size_t count);
/* "traces, metrics and logs". signals: enum signal_mask. */
void signals_describe(unsigned signals, char *text, size_t size);
