/* SPDX-License-Identifier: Apache-2.0 */
/* Text to trees, by the grammar of contrib 0.155 (pkg/ottl, grammar.go): what Go accepts is
 * accepted, and nothing else. Trees point into the text and the arena. Pure functions. */
#pragma once

#include "src/ottl/ottl_tree.h"

struct arena;
struct ottl_problem;

bool ottl_parse_statement(struct arena *arena, struct slice text, struct ottl_statement *ret,
                          struct ottl_problem *problem);
bool ottl_parse_condition(struct arena *arena, struct slice text, struct ottl_tree **ret,
                          struct ottl_problem *problem);
bool ottl_parse_value(struct arena *arena, struct slice text, struct ottl_tree **ret,
                      struct ottl_problem *problem);
