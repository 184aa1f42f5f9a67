/* SPDX-License-Identifier: Apache-2.0 */
/* service_set is an open table of hashes that only grows; recent_services has one word for each
 * service, so that it is read and written at once (when two threads write it, one's time of the
 * last span is lost); pending_services are lines of eight entries. Any thread. */
#include "src/join/index/service_set.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/clock.h"
#include "src/base/mem.h"

enum { LINKED = 1, MATCHED = 2, FLAGS = LINKED | MATCHED };

static uint64_t key_bits(uint64_t key)
{
    uint64_t bits = key & ~(uint64_t)FLAGS;
    assert(key != 0);
    return bits != 0 ? bits : (uint64_t)FLAGS + 1;
}

/* The slot that has the key, or the empty one where it would go; NULL: the table is full.
 * *ret_value is what it had; 0: the key is not in the set. */
static _Atomic uint64_t *find(const struct service_set *set, uint64_t key, uint64_t *ret_value)
{
    uint64_t bits = key_bits(key);
    _Atomic uint64_t *slots = (_Atomic uint64_t *)(uintptr_t)set->slots;
    for (unsigned i = 0; i < SERVICE_SLOTS; i++) {
        _Atomic uint64_t *slot = &slots[(bits / (FLAGS + 1) + i) % SERVICE_SLOTS];
        *ret_value = atomic_load(slot);
        if (*ret_value == 0 || (*ret_value & ~(uint64_t)FLAGS) == bits)
            return slot;
    }
    *ret_value = 0;
    return NULL;
}

void service_set_add(struct service_set *set, uint64_t key, bool is_linked, uint64_t now_ns)
{
    uint64_t never = 0;
    uint64_t value;
    assert(now_ns > 0);
    if (atomic_load_explicit(&set->first_ns, memory_order_relaxed) == 0)
        atomic_compare_exchange_strong(&set->first_ns, &never, now_ns);
    if (key == 0 || atomic_load(&set->count) >= JOIN_SERVICES_MAX) {
        if (is_linked && !atomic_load(&set->has_strangers))
            atomic_store(&set->has_strangers, true);
        return;
    }
    _Atomic uint64_t *slot = find(set, key, &value);
    while (value == 0) {
        if (atomic_compare_exchange_strong(slot, &value, key_bits(key))) {
            value = key_bits(key);
            atomic_fetch_add(&set->count, 1);
        } else if ((value & ~(uint64_t)FLAGS) != key_bits(key)) {
            slot = find(set, key, &value); /* another service has taken the slot */
        }
    }
    if (!is_linked || (value & LINKED) != 0)
        return;
    uint64_t before = atomic_fetch_or(slot, LINKED);
    if ((before & FLAGS) == 0)
        atomic_fetch_add(&set->unmatched, 1);
}

static uint64_t value_of(const struct service_set *set, uint64_t key)
{
    uint64_t value = 0;
    if (key != 0)
        find(set, key, &value);
    return value;
}

bool service_set_has(const struct service_set *set, uint64_t key)
{
    return value_of(set, key) != 0;
}

void service_set_match(struct service_set *set, uint64_t key)
{
    uint64_t value = 0;
    _Atomic uint64_t *slot = key != 0 ? find(set, key, &value) : NULL;
    if (value == 0 || (value & MATCHED) != 0)
        return;
    uint64_t before = atomic_fetch_or(slot, MATCHED);
    if ((before & FLAGS) == LINKED)
        atomic_fetch_sub(&set->unmatched, 1);
}

bool service_set_is_matched(const struct service_set *set, uint64_t key)
{
    return (value_of(set, key) & MATCHED) != 0;
}

bool service_set_is_linked(const struct service_set *set, uint64_t key)
{
    return (value_of(set, key) & LINKED) != 0;
}

bool service_set_is_warm(const struct service_set *set, uint64_t now_ns)
{
    uint64_t first_ns = atomic_load_explicit(&set->first_ns, memory_order_relaxed);
    /* Another thread's profile may be the first, and later than this one's now_ns. */
    return first_ns != 0 && now_ns > first_ns && now_ns - first_ns >= JOIN_WARM_UP_NS &&
           atomic_load_explicit(&set->unmatched, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&set->has_strangers, memory_order_relaxed);
}

bool service_set_may_have(const struct service_set *set, uint64_t key)
{
    return atomic_load_explicit(&set->count, memory_order_relaxed) == 0 ||
           atomic_load_explicit(&set->has_strangers, memory_order_relaxed) ||
           service_set_has(set, key);
}

bool recent_services_has(struct recent_services *recent_services, uint64_t key, uint64_t now_ns)
{
    enum {
        TIME_BITS =
            18, /* three days, then it wraps: a service that old was forgotten long before */
        TIME_MASK = (1 << TIME_BITS) - 1,
        FIRST_SHIFT = TIME_BITS,
        KEY_SHIFT = 2 * TIME_BITS,
        WARM_UP_S = JOIN_WARM_UP_NS / NS_PER_S,
    };
    _Atomic uint64_t *place = &recent_services->places[key % JOIN_SERVICES_MAX];
    uint64_t word = atomic_load_explicit(place, memory_order_relaxed);
    uint64_t now_s = now_ns / NS_PER_S & TIME_MASK;
    uint64_t first_s = word >> FIRST_SHIFT & TIME_MASK;
    uint64_t last_s = word & TIME_MASK;
    assert(key != 0);
    bool is_known = word != 0 && word >> KEY_SHIFT == key >> KEY_SHIFT;
    if (is_known && ((last_s - now_s) & TIME_MASK) <= WARM_UP_S)
        now_s = last_s; /* another thread has seen the service later than this one's now_ns */
    if (!is_known || ((now_s - last_s) & TIME_MASK) > WARM_UP_S)
        first_s = now_s;
    uint64_t seen = key >> KEY_SHIFT << KEY_SHIFT | first_s << FIRST_SHIFT | now_s;
    if (seen != word)
        atomic_store_explicit(place, seen, memory_order_relaxed);
    return ((now_s - first_s) & TIME_MASK) <= WARM_UP_S;
}

enum { LINE = 8, LINES = JOIN_PENDING_SERVICES_MAX / LINE };

bool pending_services_init(struct pending_services *pending_services)
{
    pthread_mutex_init(&pending_services->lock, NULL);
    pending_services->entries =
        mem_try_zalloc((size_t)LINES * LINE * sizeof(pending_services->entries[0]));
    return pending_services->entries != NULL;
}

void pending_services_fini(struct pending_services *pending_services)
{
    if (pending_services->entries != NULL)
        pthread_mutex_destroy(&pending_services->lock);
    mem_free(pending_services->entries);
    pending_services->entries = NULL;
}

bool pending_services_has(struct pending_services *pending_services, uint64_t key, uint64_t now_ns)
{
    assert(key != 0);
    assert(now_ns > 0);
    pthread_mutex_lock(&pending_services->lock);
    struct pending_service *line = &pending_services->entries[key % LINES * LINE];
    struct pending_service *entry = line; /* of that key, else the one to evict */
    for (unsigned i = 0; i < LINE && entry->key != key; i++)
        if (line[i].key == key || line[i].last_ns < entry->last_ns)
            entry = &line[i];
    if (entry->key != key || now_ns > entry->last_ns + JOIN_WARM_UP_NS)
        *entry = (struct pending_service){.key = key, .first_ns = now_ns};
    entry->last_ns = now_ns;
    bool lasts = now_ns <= entry->first_ns + JOIN_WARM_UP_NS;
    pthread_mutex_unlock(&pending_services->lock);
    return lasts;
}
