/* SPDX-License-Identifier: Apache-2.0 */
/* An open table of hashes that only grows. Any thread. */
#include "src/join/index/service_set.h"

#include <assert.h>
#include <stddef.h>

enum { LINKED = 1, MATCHED = 2, FLAGS = LINKED | MATCHED };

static uint64_t key_bits(uint64_t key)
{
    uint64_t bits = key & ~(uint64_t)FLAGS;
    assert(key != 0);
    return bits != 0 ? bits : (uint64_t)FLAGS + 1;
}

/* The slot that has the key, or the empty one where it would go; NULL: the table is full. */
static _Atomic uint64_t *find(const struct service_set *set, uint64_t key)
{
    uint64_t bits = key_bits(key);
    _Atomic uint64_t *slots = (_Atomic uint64_t *)(uintptr_t)set->slots;
    assert(set != NULL);
    for (unsigned i = 0; i < SERVICE_SLOTS; i++) {
        _Atomic uint64_t *slot = &slots[(bits / (FLAGS + 1) + i) % SERVICE_SLOTS];
        uint64_t value = atomic_load(slot);
        if (value == 0 || (value & ~(uint64_t)FLAGS) == bits)
            return slot;
    }
    return NULL;
}

static bool try_insert(struct service_set *set, uint64_t key)
{
    if (atomic_load(&set->count) >= JOIN_SERVICES_MAX)
        return false;
    for (;;) {
        uint64_t empty = 0;
        _Atomic uint64_t *slot = find(set, key);
        assert(slot != NULL);
        if (atomic_load(slot) != 0)
            return true;
        if (atomic_compare_exchange_strong(slot, &empty, key_bits(key))) {
            atomic_fetch_add(&set->count, 1);
            return true;
        }
    }
}

void service_set_add(struct service_set *set, uint64_t key, bool is_linked, uint64_t now_ns)
{
    uint64_t never = 0;
    assert(now_ns > 0);
    if (atomic_load_explicit(&set->first_ns, memory_order_relaxed) == 0)
        atomic_compare_exchange_strong(&set->first_ns, &never, now_ns);
    if (key == 0 || !try_insert(set, key)) {
        if (is_linked && !atomic_load(&set->has_strangers))
            atomic_store(&set->has_strangers, true);
        return;
    }
    _Atomic uint64_t *slot = find(set, key);
    if (!is_linked || (atomic_load(slot) & LINKED) != 0)
        return;
    uint64_t before = atomic_fetch_or(slot, LINKED);
    if ((before & FLAGS) == 0)
        atomic_fetch_add(&set->unmatched, 1);
}

bool service_set_has(const struct service_set *set, uint64_t key)
{
    const _Atomic uint64_t *slot = key != 0 ? find(set, key) : NULL;
    assert(set != NULL);
    return slot != NULL && atomic_load_explicit(slot, memory_order_relaxed) != 0;
}

void service_set_match(struct service_set *set, uint64_t key)
{
    _Atomic uint64_t *slot = key != 0 ? find(set, key) : NULL;
    assert(set != NULL);
    uint64_t value = slot != NULL ? atomic_load(slot) : 0;
    if (value == 0 || (value & MATCHED) != 0)
        return;
    uint64_t before = atomic_fetch_or(slot, MATCHED);
    if ((before & FLAGS) == LINKED)
        atomic_fetch_sub(&set->unmatched, 1);
}

bool service_set_is_matched(const struct service_set *set, uint64_t key)
{
    const _Atomic uint64_t *slot = key != 0 ? find(set, key) : NULL;
    assert(set != NULL);
    return slot != NULL && (atomic_load_explicit(slot, memory_order_relaxed) & MATCHED) != 0;
}

bool service_set_is_linked(const struct service_set *set, uint64_t key)
{
    const _Atomic uint64_t *slot = key != 0 ? find(set, key) : NULL;
    assert(set != NULL);
    return slot != NULL && (atomic_load_explicit(slot, memory_order_relaxed) & LINKED) != 0;
}

bool service_set_is_warm(const struct service_set *set, uint64_t now_ns)
{
    uint64_t first_ns = atomic_load_explicit(&set->first_ns, memory_order_relaxed);
    assert(set != NULL);
    return first_ns != 0 && now_ns - first_ns >= JOIN_WARM_UP_NS &&
           atomic_load_explicit(&set->unmatched, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&set->has_strangers, memory_order_relaxed);
}

bool service_set_may_have(const struct service_set *set, uint64_t key)
{
    assert(set != NULL);
    return atomic_load_explicit(&set->count, memory_order_relaxed) == 0 ||
           atomic_load_explicit(&set->has_strangers, memory_order_relaxed) ||
           service_set_has(set, key);
}
