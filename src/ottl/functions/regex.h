/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns as arguments: compiled once when they are literals, else for each call. */
#pragma once

#include "src/ottl/ottl_function.h"

struct pattern;

/* For prepare: compiles the argument if it is constant; *ret is NULL otherwise. */
bool ottl_prepare_pattern(const struct ottl_preparation *preparation, unsigned parameter,
                          struct pattern **ret, struct error *error);
/* For evaluate: `prepared`, or the argument's value compiled; *ret_owned has to be destroyed then.
 */
bool ottl_get_pattern(struct ottl_call *call, unsigned parameter, struct pattern *prepared,
                      const struct pattern **ret, struct pattern **ret_owned);
