/* SPDX-License-Identifier: Apache-2.0 */
/* A resolved tree as YAML or JSON, for print-config. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct config_component;
struct loader;
struct node;

/* Gives substituted values the type of their fields, adds defaults, and redacts secrets, and all
 * strings below keys and components that are unknown or ignored, since no table says which of them
 * are secrets. Changes the tree. */
void print_prepare(struct loader *loader, struct node *root, bool is_unredacted);
/* False when out of memory or the file cannot be written. */
bool print_yaml(const struct node *root, FILE *out);
bool print_json(const struct node *root, FILE *out);
/* A component's section as it was written, with its key, as YAML: strings that are secrets are
 * redacted as above, defaults are not added. False as above, or when nobody has written it. Any
 * thread. */
bool print_component(const struct config_component *component, FILE *out);
