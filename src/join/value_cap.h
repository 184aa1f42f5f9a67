/* SPDX-License-Identifier: Apache-2.0 */
/* Lets so many distinct values of an attribute pass, in each epoch; by their hashes. Any thread,
 * without locks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct value_cap {
    _Atomic uint64_t *slots; /* hash and, in its lowest byte, the epoch */
    uint64_t slots_count;    /* a power of two */
    uint64_t most;
    uint64_t seed;
    _Atomic uint64_t state; /* epoch and, in its lower half, how many values it has */
};

/* False: no memory. */
bool value_cap_init(struct value_cap *cap, uint64_t most);
void value_cap_fini(struct value_cap *cap);
/* Whether the value is among the first ones of its epoch, which a change of epoch forgets. */
bool value_cap_admits(struct value_cap *cap, struct slice value, uint32_t epoch);
