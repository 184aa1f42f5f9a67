/* SPDX-License-Identifier: Apache-2.0 */
/* Which component types the Go collector's distributions have, so that "unknown here" can be told
 * from a slip of the pen. Pure functions. */
#pragma once

#include <stdbool.h>

#include "src/core/component.h"

bool contrib_names_has(enum component_kind kind, const char *type);
