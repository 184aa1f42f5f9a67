/* SPDX-License-Identifier: Apache-2.0 */
/* The component types of the Go collector's distributions, to tell components that this build lacks
 * from typing errors. Pure functions. */
#pragma once

#include <stdbool.h>

#include "src/core/component.h"

bool contrib_names_has(enum component_kind kind, const char *type);
