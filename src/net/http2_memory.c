/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's memory comes from the one allocator entry, and may be refused where that is safe. Any
 * thread. */
#include "src/net/http2_memory.h"

#include "src/mem.h"

#include <stdint.h>
#include <string.h>

static void *allocate(size_t size, void *arg)
{
    (void)arg;
    return mem_try_alloc(size);
}

static void *allocate_zeroed(size_t count, size_t size, void *arg)
{
    (void)arg;
    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = mem_try_alloc(count * size);
    if (memory != NULL)
        memset(memory, 0, count * size);
    return memory;
}

/* Never refused: when its queue of frames cannot grow, nghttp2 1.52 frees an answer's data twice.
 * What it resizes is bounded: that queue, and its buffers of one frame or header. */
static void *reallocate(void *old, size_t size, void *arg)
{
    (void)arg;
    return mem_resize(old, size);
}

static void release(void *memory, void *arg)
{
    (void)arg;
    mem_free(memory);
}

nghttp2_mem http2_memory = {
    .malloc = allocate,
    .free = release,
    .calloc = allocate_zeroed,
    .realloc = reallocate,
};
