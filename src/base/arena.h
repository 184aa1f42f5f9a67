/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked bump allocator with a cap, freed whole. One owner, one thread at a time.
 * Under AddressSanitizer each allocation is followed by a poisoned gap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;
struct budget;

struct arena {
    struct arena_chunk *chunks;
    size_t used_bytes; /* allocated so far */
    size_t max_bytes;
    struct budget *budget; /* NULL: not charged */
    bool may_exceed;       /* set by the owner: the budget's limit */
    size_t charged_bytes;
    size_t refused_bytes; /* what it would hold had no _try_alloc failed; 0: none failed */
};

/* Allocates nothing yet. max_bytes limits all allocations together, padding not counted. */
void arena_init(struct arena *arena, size_t max_bytes);
/* The same, charged to a budget (NULL: none), which may make _try_alloc fail unless may_exceed. */
void arena_init_charged(struct arena *arena, size_t max_bytes, struct budget *budget);
/* Frees all allocations. The arena can be used again afterwards. */
void arena_clear(struct arena *arena);
/* 16-byte aligned, not zeroed. Asserts the cap: for sizes that are bounded by construction. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));
/* NULL above the cap, or when the budget or the allocator refuses: for sizes that input decides. */
void *arena_try_alloc(struct arena *arena, size_t size) __attribute__((warn_unused_result));
/* Copies text and terminates it. Asserts the cap. */
char *arena_copy_text(struct arena *arena, const char *text, size_t size)
    __attribute__((returns_nonnull));
