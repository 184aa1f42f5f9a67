/* SPDX-License-Identifier: Apache-2.0 */
/* A resolved tree as YAML or JSON, for print-config. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct loader;
struct node;

/* Gives substituted values the type of their fields, adds defaults, and redacts secrets, and all
 * strings below keys and components that are unknown or ignored, since no table says which of them
 * are secrets. Changes the tree. */
void print_prepare(struct loader *loader, struct node *root, bool is_unredacted);
/* False when out of memory or the file cannot be written. */
bool print_yaml(const struct node *root, FILE *out);
bool print_json(const struct node *root, FILE *out);
