/* SPDX-License-Identifier: Apache-2.0 */
/* One word for each service, so that it is read and written at once: of two threads that meet at
 * one, one's time of the last span is lost. Runs on any thread. */
#include "src/join/index/recent_services.h"

#include <assert.h>

#include "src/base/clock.h"

enum {
    TIME_BITS = 18, /* three days, then around: a service that old is forgotten long before */
    TIME_MASK = (1 << TIME_BITS) - 1,
    FIRST_SHIFT = TIME_BITS,
    KEY_SHIFT = 2 * TIME_BITS,
    WARM_UP_S = JOIN_WARM_UP_NS / NS_PER_S,
};

static uint64_t word_of(uint64_t key, uint64_t first_s, uint64_t last_s)
{
    assert(first_s <= TIME_MASK && last_s <= TIME_MASK);
    return key >> KEY_SHIFT << KEY_SHIFT | first_s << FIRST_SHIFT | last_s;
}

bool recent_services_has(struct recent_services *recent_services, uint64_t key, uint64_t now_ns)
{
    _Atomic uint64_t *place = &recent_services->places[key % JOIN_SERVICES_MAX];
    uint64_t word = atomic_load_explicit(place, memory_order_relaxed);
    uint64_t now_s = now_ns / NS_PER_S & TIME_MASK;
    uint64_t first_s = word >> FIRST_SHIFT & TIME_MASK;
    uint64_t last_s = word & TIME_MASK;
    assert(key != 0);
    if (word == 0 || word >> KEY_SHIFT != key >> KEY_SHIFT ||
        ((now_s - last_s) & TIME_MASK) > WARM_UP_S)
        first_s = now_s;
    uint64_t seen = word_of(key, first_s, now_s);
    if (seen != word)
        atomic_store_explicit(place, seen, memory_order_relaxed);
    return ((now_s - first_s) & TIME_MASK) <= WARM_UP_S;
}
