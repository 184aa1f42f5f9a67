/* SPDX-License-Identifier: Apache-2.0 */
/* Scaling of values by their unit. Pure functions; any thread. */
#include "src/cli/profile/value_unit.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

struct step {
    double size; /* in the smallest unit of the family */
    const char *name;
};

static const struct step time_steps[] = {
    {1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}, {60e9, "min"}, {3600e9, "h"}, {0, NULL},
};
static const struct step byte_steps[] = {
    {1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0, NULL},
};

static const struct {
    const char *unit;
    const struct step *steps;
    double size;
} units[] = {
    {"nanoseconds", time_steps, 1}, {"nanosecond", time_steps, 1},
    {"ns", time_steps, 1},          {"microseconds", time_steps, 1e3},
    {"us", time_steps, 1e3},        {"milliseconds", time_steps, 1e6},
    {"ms", time_steps, 1e6},        {"seconds", time_steps, 1e9},
    {"s", time_steps, 1e9},         {"bytes", byte_steps, 1},
    {"byte", byte_steps, 1},        {"By", byte_steps, 1},
};

struct value_unit_text value_unit_text(int64_t value, struct slice unit)
{
    struct value_unit_text text;
    assert(unit.data != NULL || unit.size == 0);
    snprintf(text.text, sizeof(text.text), "%" PRId64, value);
    for (size_t i = 0; value != 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (!slice_equal_text(unit, units[i].unit))
            continue;
        double scaled = (double)value * units[i].size;
        const struct step *step = units[i].steps;
        while (step[1].name != NULL && fabs(scaled) >= step[1].size)
            step++;
        double number = scaled / step->size;
        bool is_whole = step->size <= 1 && number == floor(number);
        snprintf(text.text, sizeof(text.text), "%.*f%s", is_whole ? 0 : 2, number, step->name);
        break;
    }
    return text;
}
