/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between src/base/mem.h and its users by the linker's --wrap. One thread. */
#include "tests/support/memory_watch.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>

static int64_t held;
static int64_t peak;

void *__real_mem_alloc(size_t size);
void *__real_mem_zalloc(size_t size);
void *__real_mem_resize(void *old, size_t size);
void *__real_mem_try_alloc(size_t size);
void *__real_mem_try_zalloc(size_t size);
void *__real_mem_try_resize(void *old, size_t size);
void *__real_mem_copy(const void *data, size_t size);
char *__real_mem_copy_text(const char *text);
void __real_mem_free(void *memory);

void *__wrap_mem_alloc(size_t size);
void *__wrap_mem_zalloc(size_t size);
void *__wrap_mem_resize(void *old, size_t size);
void *__wrap_mem_try_alloc(size_t size);
void *__wrap_mem_try_zalloc(size_t size);
void *__wrap_mem_try_resize(void *old, size_t size);
void *__wrap_mem_copy(const void *data, size_t size);
char *__wrap_mem_copy_text(const char *text);
void __wrap_mem_free(void *memory);

void memory_watch_begin(void)
{
    held = 0;
    peak = 0;
}

uint64_t memory_watch_peak(void)
{
    return (uint64_t)peak;
}

static void *taken(void *memory)
{
    held += (int64_t)malloc_usable_size(memory);
    if (held > peak)
        peak = held;
    return memory;
}

/* What grows may be there twice while it is copied. */
static void *resized(void *memory, size_t before)
{
    taken(memory);
    held -= memory != NULL ? (int64_t)before : 0;
    return memory;
}

void *__wrap_mem_alloc(size_t size)
{
    return taken(__real_mem_alloc(size));
}

void *__wrap_mem_zalloc(size_t size)
{
    return taken(__real_mem_zalloc(size));
}

void *__wrap_mem_resize(void *old, size_t size)
{
    size_t before = malloc_usable_size(old);
    return resized(__real_mem_resize(old, size), before);
}

void *__wrap_mem_try_alloc(size_t size)
{
    return taken(__real_mem_try_alloc(size));
}

void *__wrap_mem_try_zalloc(size_t size)
{
    return taken(__real_mem_try_zalloc(size));
}

void *__wrap_mem_try_resize(void *old, size_t size)
{
    size_t before = malloc_usable_size(old);
    return resized(__real_mem_try_resize(old, size), before);
}

void *__wrap_mem_copy(const void *data, size_t size)
{
    return taken(__real_mem_copy(data, size));
}

char *__wrap_mem_copy_text(const char *text)
{
    return taken(__real_mem_copy_text(text));
}

void __wrap_mem_free(void *memory)
{
    held -= (int64_t)malloc_usable_size(memory);
    __real_mem_free(memory);
}
