/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the distinct values of an attribute in each epoch, by their hashes. Any thread, lock-free.
 */
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
    _Atomic uint64_t state; /* the epoch and, in its lower half, its number of values */
};

/* False: no memory. */
bool value_cap_init(struct value_cap *cap, uint64_t most);
void value_cap_fini(struct value_cap *cap);
/* Whether the value is among the first `most` of the epoch. A new epoch starts empty. */
bool value_cap_admits(struct value_cap *cap, struct slice value, uint32_t epoch);
