/* SPDX-License-Identifier: Apache-2.0 */
/* Which ids were mentioned lately: a fixed number of places, where a newer id may push out an older
 * one. Any thread, without locks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct id_set {
    _Atomic uint64_t *places;
    uint64_t count; /* a power of two */
    _Atomic bool is_used;
};

/* False: no memory. */
bool id_set_init(struct id_set *set, uint64_t places);
void id_set_fini(struct id_set *set);
/* id is not 0. */
void id_set_add(struct id_set *set, uint64_t id);
/* It will be asked for soon: memory may be fetched meanwhile. */
void id_set_expect(const struct id_set *set, uint64_t id);
bool id_set_has(const struct id_set *set, uint64_t id);
/* True once for each time it was added, or less. */
bool id_set_take(struct id_set *set, uint64_t id);
