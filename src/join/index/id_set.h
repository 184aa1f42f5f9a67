/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that were mentioned recently. Bounded: a new id may evict another. Any thread, lock-free. */
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
/* Prefetches the place of id. */
void id_set_expect(const struct id_set *set, uint64_t id);
bool id_set_has(const struct id_set *set, uint64_t id);
/* Removes the id. True at most once for each time it was added. */
bool id_set_take(struct id_set *set, uint64_t id);
