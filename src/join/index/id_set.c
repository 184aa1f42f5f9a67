/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in lines of eight; in a full line the new id determines which one is evicted. Any thread. */
#include "src/join/index/id_set.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"

enum { LINE = 8 };

bool id_set_init(struct id_set *set, uint64_t places)
{
    assert(places >= LINE);
    assert((places & (places - 1)) == 0);
    *set = (struct id_set){.count = places};
    set->places = mem_try_zalloc(places * sizeof(set->places[0]));
    return set->places != NULL;
}

void id_set_fini(struct id_set *set)
{
    mem_free((void *)(uintptr_t)set->places);
    set->places = NULL;
}

static uint64_t mix(uint64_t id)
{
    assert(id != 0);
    id *= 0x9e3779b97f4a7c15u;
    return id ^ id >> 29;
}

static _Atomic uint64_t *line_of(const struct id_set *set, uint64_t id)
{
    return &set->places[mix(id) % (set->count / LINE) * LINE];
}

static _Atomic uint64_t *find(const struct id_set *set, uint64_t id)
{
    _Atomic uint64_t *line = line_of(set, id);
    for (unsigned i = 0; i < LINE; i++)
        if (atomic_load_explicit(&line[i], memory_order_relaxed) == id)
            return &line[i];
    return NULL;
}

void id_set_add(struct id_set *set, uint64_t id)
{
    _Atomic uint64_t *line = line_of(set, id);
    if (find(set, id) != NULL)
        return;
    if (!atomic_load_explicit(&set->is_used, memory_order_relaxed))
        atomic_store_explicit(&set->is_used, true, memory_order_relaxed);
    for (unsigned i = 0; i < LINE; i++) {
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong(&line[i], &empty, id))
            return;
    }
    atomic_store_explicit(&line[mix(id) >> 61], id, memory_order_relaxed);
}

void id_set_expect(const struct id_set *set, uint64_t id)
{
    if (atomic_load_explicit(&set->is_used, memory_order_relaxed))
        __builtin_prefetch(line_of(set, id));
}

bool id_set_has(const struct id_set *set, uint64_t id)
{
    return atomic_load_explicit(&set->is_used, memory_order_relaxed) && find(set, id) != NULL;
}

bool id_set_take(struct id_set *set, uint64_t id)
{
    if (!atomic_load_explicit(&set->is_used, memory_order_relaxed))
        return false;
    _Atomic uint64_t *place = find(set, id);
    return place != NULL && atomic_compare_exchange_strong(place, &id, 0);
}
