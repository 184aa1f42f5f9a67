/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator entry over malloc (jemalloc where linked). Any thread. */
#include "src/base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES ((size_t)2 * 1024 * 1024)

static _Atomic uint64_t tries;
static _Atomic uint64_t refused_try; /* the call to fail; 0: none */

static void out_of_memory(void)
{
    static const char line[] = "spanflame: out of memory, giving up\n";
    ssize_t ignored = write(STDERR_FILENO, line, sizeof(line) - 1);
    (void)ignored;
    abort();
}

void *mem_alloc(size_t size)
{
    assert(size <= PTRDIFF_MAX);
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL)
        out_of_memory();
    return memory;
}

void *mem_zalloc(size_t size)
{
    assert(size <= PTRDIFF_MAX);
    void *memory = calloc(1, size > 0 ? size : 1);
    if (memory == NULL)
        out_of_memory();
    return memory;
}

void *mem_resize(void *old, size_t size)
{
    assert(size <= PTRDIFF_MAX);
    void *memory = realloc(old, size > 0 ? size : 1);
    if (memory == NULL)
        out_of_memory();
    return memory;
}

void *mem_copy(const void *data, size_t size)
{
    assert(data != NULL || size == 0);
    void *memory = mem_alloc(size);
    if (size > 0)
        memcpy(memory, data, size);
    return memory;
}

char *mem_copy_text(const char *text)
{
    return mem_copy(text, strlen(text) + 1);
}

static bool is_refused(void)
{
    uint64_t number = atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) + 1;
    return number == atomic_load_explicit(&refused_try, memory_order_relaxed);
}

void *mem_try_alloc(size_t size)
{
    if (is_refused())
        return NULL;
    return malloc(size > 0 ? size : 1);
}

void *mem_try_zalloc(size_t size)
{
    if (is_refused())
        return NULL;
    return calloc(1, size > 0 ? size : 1);
}

void *mem_try_resize(void *old, size_t size)
{
    if (is_refused())
        return NULL;
    return realloc(old, size > 0 ? size : 1);
}

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

void *mem_try_alloc_pages(size_t size)
{
    assert(size > 0 && size <= PTRDIFF_MAX / 2);
    if (is_refused())
        return NULL;
    return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), whole_pages(size));
}

void mem_rest_pages(void *memory, size_t size)
{
    assert((uintptr_t)memory % (size_t)sysconf(_SC_PAGESIZE) == 0);
    madvise(memory, whole_pages(size), MADV_DONTNEED); /* on failure they stay resident */
}

/* The kernel uses a huge page only where an aligned one fits: maps more, and unmaps what precedes
 * the first aligned page. */
void *mem_try_map(size_t size)
{
    assert(size > 0 && size <= PTRDIFF_MAX - HUGE_PAGE_BYTES);
    size_t extra = size >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
    if (is_refused())
        return NULL;
    uint8_t *memory =
        mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (extra == 0)
        return memory;
    size_t before = -(uintptr_t)memory % HUGE_PAGE_BYTES;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t end = (before + size + page - 1) / page * page;
    if (before > 0)
        munmap(memory, before);
    if (end < size + extra)
        munmap(memory + end, size + extra - end);
    madvise(memory + before, size, MADV_HUGEPAGE); /* on failure: small pages */
    return memory + before;
}

void mem_unmap(void *memory, size_t size)
{
    assert(size > 0);
    if (memory != NULL)
        munmap(memory, size);
}

void *mem_try_alloc_large(size_t size)
{
    return size >= HUGE_PAGE_BYTES ? mem_try_map(size) : mem_try_alloc(size);
}

void *mem_try_resize_large(void *old, size_t old_size, size_t size)
{
    if (old != NULL && old_size >= HUGE_PAGE_BYTES && size >= HUGE_PAGE_BYTES) {
        if (is_refused())
            return NULL;
        void *moved = mremap(old, whole_pages(old_size), whole_pages(size), MREMAP_MAYMOVE);
        return moved != MAP_FAILED ? moved : NULL;
    }
    void *memory = mem_try_alloc_large(size);
    if (memory == NULL || old == NULL)
        return memory;
    memcpy(memory, old, old_size < size ? old_size : size);
    mem_free_large(old, old_size);
    return memory;
}

void mem_free_large(void *memory, size_t size)
{
    if (size >= HUGE_PAGE_BYTES)
        mem_unmap(memory, size);
    else
        mem_free(memory);
}

void mem_free(void *memory)
{
    free(memory);
}

size_t mem_taken(size_t size)
{
    enum { QUANTUM = 16, STEPS_MAX = 8 };
    size_t step = QUANTUM;
    while (size > STEPS_MAX * step)
        step *= 2;
    return (size + step - 1) / step * step;
}

void mem_refuse_nth(uint64_t n)
{
    atomic_store(&refused_try, n == 0 ? 0 : atomic_load(&tries) + n);
}

uint64_t mem_tries(void)
{
    return atomic_load(&tries);
}
