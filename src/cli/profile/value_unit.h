/* SPDX-License-Identifier: Apache-2.0 */
/* Formats profile values for humans: "1.23s", "4.50MiB", "17". Pure function; any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"

enum { VALUE_UNIT_TEXT_MAX = 40 };

struct value_unit_text {
    char text[VALUE_UNIT_TEXT_MAX];
};

/* Values of unknown units are printed without a unit. */
struct value_unit_text value_unit_text(int64_t value, struct slice unit);
