/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration leaves to defaults, written out, for print-config. Main thread. */
#pragma once

struct config_field;
struct loader;
struct node;

/* Adds what is absent to the map that a table reads, and turns a null that means "with defaults"
 * into such a map. Sections that are off stay as they are, so that the output reads back as the
 * same; so do values without a default. Stops quietly at CONFIG_NODES_MAX. */
void print_defaults(struct loader *loader, const struct config_field *fields, struct node *node);
