/* SPDX-License-Identifier: Apache-2.0 */
/* A growing circular array. Only its lane reads and writes the items; the counts are atomic, so
 * that another thread can read the metrics. */
#include "src/base/ring.h"

#include <assert.h>
#include <stdatomic.h>

#include "src/base/mem.h"

/* Capacity after the first push, and the capacity that an empty ring keeps. */
enum { RING_ITEMS_FIRST = 16, RING_ITEMS_KEPT = 1024 };

struct ring {
    void **items;            /* NULL: capacity is 0 */
    size_t head;             /* index of the oldest item, below capacity */
    _Atomic size_t capacity; /* 0 or a power of two */
    _Atomic size_t depth;
    _Atomic size_t high_water;
};

static size_t load(const _Atomic size_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void store(_Atomic size_t *count, size_t value)
{
    atomic_store_explicit(count, value, memory_order_relaxed);
}

struct ring *ring_create(void)
{
    return mem_zalloc(sizeof(struct ring));
}

void ring_destroy(struct ring *ring)
{
    if (ring == NULL)
        return;
    assert(load(&ring->depth) == 0);
    mem_free((void *)ring->items);
    mem_free(ring);
}

void ring_push(struct ring *ring, void *item)
{
    size_t depth = load(&ring->depth);
    if (depth == load(&ring->capacity)) {
        size_t old = load(&ring->capacity);
        size_t capacity = old > 0 ? 2 * old : RING_ITEMS_FIRST;
        void **items = (void **)mem_alloc(capacity * sizeof(*items));
        assert(depth == old);
        for (size_t i = 0; i < depth; i++)
            items[i] = ring->items[(ring->head + i) & (old - 1)];
        mem_free((void *)ring->items);
        ring->items = items;
        ring->head = 0;
        store(&ring->capacity, capacity);
    }
    ring->items[(ring->head + depth) & (load(&ring->capacity) - 1)] = item;
    store(&ring->depth, depth + 1);
    if (depth + 1 > load(&ring->high_water))
        store(&ring->high_water, depth + 1);
}

void *ring_pop(struct ring *ring)
{
    size_t depth = load(&ring->depth);
    if (depth == 0)
        return NULL;
    size_t capacity = load(&ring->capacity);
    void *item = ring->items[ring->head];
    ring->head = (ring->head + 1) & (capacity - 1);
    store(&ring->depth, depth - 1);
    if (depth == 1 && capacity > RING_ITEMS_KEPT) {
        mem_free((void *)ring->items);
        ring->items = NULL;
        ring->head = 0;
        store(&ring->capacity, 0);
    }
    return item;
}

void *ring_first(const struct ring *ring)
{
    return load(&ring->depth) > 0 ? ring->items[ring->head] : NULL;
}

size_t ring_depth(const struct ring *ring)
{
    return load(&ring->depth);
}

struct ring_figures ring_figures(const struct ring *ring)
{
    return (struct ring_figures){
        .depth = load(&ring->depth),
        .high_water = load(&ring->high_water),
        .capacity = load(&ring->capacity),
    };
}
