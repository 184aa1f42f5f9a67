/* SPDX-License-Identifier: Apache-2.0 */
/* One mapping, used from its begin again and again. */
#include "tests/attack/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGNMENT = 16, KEPT_BYTES = 64 << 20 };

void pool_init(struct pool *pool, size_t capacity)
{
    void *begin = mmap(NULL, capacity, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        abort();
    *pool = (struct pool){.begin = begin, .capacity = capacity};
}

void pool_fini(struct pool *pool)
{
    munmap(pool->begin, pool->capacity);
    *pool = (struct pool){.begin = NULL};
}

void *pool_alloc(struct pool *pool, size_t size)
{
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded < size || rounded > pool->capacity - pool->used)
        abort();
    void *memory = pool->begin + pool->used;
    pool->used += rounded;
    return memory;
}

void pool_reset(struct pool *pool)
{
    assert(pool->begin != NULL);
    if (pool->used > KEPT_BYTES) /* a rare large one is not kept for ever */
        madvise(pool->begin + KEPT_BYTES, pool->used - KEPT_BYTES, MADV_DONTNEED);
    pool->used = 0;
}
