/* SPDX-License-Identifier: Apache-2.0 */
/* Values of profiles as people read them: "1.23s", "4.50MiB", "17". Pure function; any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"

enum { VALUE_UNIT_TEXT_MAX = 40 };

struct value_unit_text {
    char text[VALUE_UNIT_TEXT_MAX];
};

/* Units that it does not know go without one. */
struct value_unit_text value_unit_text(int64_t value, struct slice unit);
