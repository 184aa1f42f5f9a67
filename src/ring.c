/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded slot-sequence ring: many producers, one consumer, no lock. */
#include "src/ring.h"

#include <assert.h>
#include <stdatomic.h>

#include "src/mem.h"

enum { CACHE_LINE_BYTES = 64 };

struct ring_slot {
    _Atomic size_t sequence; /* position: free for that push; position + 1: holds that item */
    void *item;
};

/* Allocations are 16-byte aligned; the padding keeps head and tail on cache lines of their own
 * wherever the ring starts. */
struct ring {
    size_t mask;
    char padding_before_tail[CACHE_LINE_BYTES];
    _Atomic size_t tail; /* next push */
    _Atomic size_t high_water;
    _Atomic uint64_t refusals;
    char padding_before_head[CACHE_LINE_BYTES];
    _Atomic size_t head; /* next pop; written by the owner only */
    char padding_before_slots[CACHE_LINE_BYTES];
    struct ring_slot slots[];
};

struct ring *ring_create(size_t capacity)
{
    size_t rounded = 2;
    assert(capacity <= (size_t)1 << 30);
    while (rounded < capacity)
        rounded *= 2;
    struct ring *ring = mem_zalloc(sizeof(*ring) + rounded * sizeof(ring->slots[0]));
    ring->mask = rounded - 1;
    for (size_t i = 0; i < rounded; i++)
        atomic_init(&ring->slots[i].sequence, i);
    return ring;
}

void ring_destroy(struct ring *ring)
{
    if (ring == NULL)
        return;
    assert(ring_figures(ring).depth == 0);
    mem_free(ring);
}

static void raise_high_water(struct ring *ring, size_t tail)
{
    assert(ring->mask > 0);
    size_t depth = tail - atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t high = atomic_load_explicit(&ring->high_water, memory_order_relaxed);
    while (depth > high && depth <= ring->mask + 1 &&
           !atomic_compare_exchange_weak_explicit(&ring->high_water, &high, depth,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

bool ring_try_push(struct ring *ring, void *item)
{
    assert(ring != NULL);
    assert(item != NULL);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    for (;;) {
        struct ring_slot *slot = &ring->slots[tail & ring->mask];
        size_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
        if (sequence == tail) {
            if (atomic_compare_exchange_weak_explicit(&ring->tail, &tail, tail + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                slot->item = item;
                atomic_store_explicit(&slot->sequence, tail + 1, memory_order_release);
                raise_high_water(ring, tail + 1);
                return true;
            }
        } else if ((ptrdiff_t)(sequence - tail) < 0) {
            atomic_fetch_add_explicit(&ring->refusals, 1, memory_order_relaxed);
            return false;
        } else {
            tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        }
    }
}

void *ring_try_pop(struct ring *ring)
{
    assert(ring != NULL);
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    struct ring_slot *slot = &ring->slots[head & ring->mask];
    if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != head + 1)
        return NULL;
    void *item = slot->item;
    assert(item != NULL);
    atomic_store_explicit(&ring->head, head + 1, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, head + ring->mask + 1, memory_order_release);
    return item;
}

struct ring_figures ring_figures(const struct ring *ring)
{
    assert(ring != NULL);
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    return (struct ring_figures){
        .depth = tail - head <= ring->mask + 1 ? tail - head : 0,
        .high_water = atomic_load_explicit(&ring->high_water, memory_order_relaxed),
        .capacity = ring->mask + 1,
        .refusals = atomic_load_explicit(&ring->refusals, memory_order_relaxed),
    };
}
