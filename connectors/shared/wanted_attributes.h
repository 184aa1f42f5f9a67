/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the attributes of a resource, span or event that a configuration names. Plain values; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { WANTED_NAMES_MAX = 64 };

/* Borrows the names. */
struct wanted_names {
    struct slice names[WANTED_NAMES_MAX];
    unsigned count;
    uint64_t lengths; /* a bit for each length of a name, modulo 64 */
};

/* Encoded AnyValues by the places of their names; without bytes they are the empty value. */
struct wanted_values {
    uint64_t has; /* a bit for each; the others are not set */
    struct slice encoded[WANTED_NAMES_MAX];
};

/* Adds a name unless it is there. False: there are too many. */
bool wanted_names_add(struct wanted_names *names, struct slice name, uint8_t *ret_place);
/* Takes an encoded KeyValue, which otlp_check has passed, if it is wanted. The first of equal keys
 * counts, as in the Go collector. */
void wanted_values_read(const struct wanted_names *names, struct slice attribute,
                        struct wanted_values *values);

static inline bool wanted_values_has(const struct wanted_values *values, uint8_t place)
{
    return (values->has >> place & 1) != 0;
}
