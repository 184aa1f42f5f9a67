/* SPDX-License-Identifier: Apache-2.0 */
/* The component types of the Go collector's distributions, to tell components that this build lacks
 * from typing errors, and to say what to use instead. Pure functions. */
#pragma once

#include <stdbool.h>

#include "src/core/component.h"

struct contrib_type {
    bool is_known;      /* a distribution has it, or had it */
    bool is_removed;    /* 0.155 no longer has it */
    const char *advice; /* what to do instead, without a period; NULL: nothing is known */
};

struct contrib_type contrib_type_find(enum component_kind kind, const char *type);
