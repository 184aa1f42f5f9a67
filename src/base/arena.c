/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked bump allocator. Under AddressSanitizer each allocation gets a poisoned gap behind it, so
 * that an overrun inside a chunk is seen. One thread at a time. */
#include "src/base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
enum { ARENA_GAP_BYTES = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
enum { ARENA_GAP_BYTES = 0 };
#endif

enum { ARENA_ALIGNMENT = 16, ARENA_CHUNK_BYTES = 4096 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t capacity;
    size_t used;
    _Alignas(ARENA_ALIGNMENT) uint8_t data[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
    *arena = (struct arena){.max_bytes = max_bytes};
}

void arena_init_charged(struct arena *arena, size_t max_bytes, struct budget *budget)
{
    arena_init(arena, max_bytes);
    arena->budget = budget;
}

void arena_clear(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        ASAN_UNPOISON_MEMORY_REGION(chunk->data, chunk->capacity);
        mem_free(chunk);
    }
    arena->used_bytes = 0;
    if (arena->charged_bytes > 0)
        budget_return(arena->budget, arena->charged_bytes);
    arena->charged_bytes = 0;
    arena->refused_bytes = 0;
}

/* With the gap and the alignment that the arena adds. */
static size_t rounded_up(size_t size)
{
    return (size + ARENA_GAP_BYTES + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
}

/* Chunks double up to a point, so that large arenas are a few chunks and small ones waste little.
 */
static size_t chunk_bytes(const struct arena *arena, size_t at_least)
{
    assert(at_least <= SIZE_MAX - sizeof(struct arena_chunk));
    size_t wanted = arena->used_bytes < ARENA_CHUNK_BYTES ? ARENA_CHUNK_BYTES : arena->used_bytes;
    if (wanted > 16 * ARENA_CHUNK_BYTES)
        wanted = 16 * ARENA_CHUNK_BYTES;
    wanted -= sizeof(struct arena_chunk); /* a power of two fits the allocator's size classes */
    return wanted > at_least ? wanted : at_least;
}

static void add_chunk(struct arena *arena, struct arena_chunk *chunk, size_t capacity)
{
    chunk->next = arena->chunks;
    chunk->capacity = capacity;
    chunk->used = 0;
    arena->chunks = chunk;
    ASAN_POISON_MEMORY_REGION(chunk->data, capacity);
}

static bool is_above_cap(const struct arena *arena, size_t size)
{
    assert(arena->used_bytes <= arena->max_bytes);
    return size > arena->max_bytes || arena->used_bytes > arena->max_bytes - size;
}

static bool has_room(const struct arena *arena, size_t size)
{
    const struct arena_chunk *chunk = arena->chunks;
    return chunk != NULL && chunk->capacity - chunk->used >= rounded_up(size);
}

static void *take(struct arena *arena, size_t size)
{
    assert(has_room(arena, size));
    struct arena_chunk *chunk = arena->chunks;
    void *memory = chunk->data + chunk->used;
    chunk->used += rounded_up(size);
    arena->used_bytes += size;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memory;
}

/* False when budget or allocator refuse. */
static bool try_add_chunk(struct arena *arena, size_t capacity)
{
    size_t size = sizeof(struct arena_chunk) + capacity;
    if (arena->budget != NULL && arena->may_exceed)
        budget_take(arena->budget, size);
    else if (arena->budget != NULL && !budget_try_take(arena->budget, size))
        return false;
    struct arena_chunk *chunk = mem_try_alloc(size);
    if (chunk != NULL)
        add_chunk(arena, chunk, capacity);
    if (chunk != NULL && arena->budget != NULL)
        arena->charged_bytes += size;
    else if (arena->budget != NULL)
        budget_return(arena->budget, size);
    return chunk != NULL;
}

void *arena_try_alloc(struct arena *arena, size_t size)
{
    if (is_above_cap(arena, size) ||
        (!has_room(arena, size) && !try_add_chunk(arena, chunk_bytes(arena, rounded_up(size))))) {
        arena->refused_bytes = arena->used_bytes + size;
        return NULL;
    }
    return take(arena, size);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    assert(!is_above_cap(arena, size));
    if (!has_room(arena, size)) {
        size_t capacity = chunk_bytes(arena, rounded_up(size));
        size_t chunk_size = sizeof(struct arena_chunk) + capacity;
        add_chunk(arena, mem_alloc(chunk_size), capacity);
        if (arena->budget != NULL) {
            budget_take(arena->budget, chunk_size);
            arena->charged_bytes += chunk_size;
        }
    }
    return take(arena, size);
}

char *arena_copy_text(struct arena *arena, const char *text, size_t size)
{
    assert(text != NULL || size == 0);
    char *copy = arena_alloc(arena, size + 1);
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}
