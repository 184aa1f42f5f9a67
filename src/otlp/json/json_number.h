/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of OTLP/JSON, as Go's strconv reads them. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct json_range {
    int64_t min; /* 0: there is no sign */
    uint64_t max;
};

/* Decimal digits, with a sign if the range has negative numbers; leading zeros are fine. False when
 * it is something else, or out of range. */
bool json_integer(struct slice text, struct json_range range, uint64_t *ret_bits);
/* text is a number in JSON's grammar. False when it is out of range, or longer than anybody would
 * write it. */
bool json_double(struct slice text, double *ret_real);
