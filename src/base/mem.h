/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator entry: every allocation of ours, and of libraries that allow it, passes here. Any
 * thread. Small bounded sizes use mem_alloc, which ends the process with one line when memory runs
 * out; sizes that grow with input use mem_try_alloc, which may fail (and the caller charges them to
 * a budget). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Never NULL; size 0 returns a pointer that can be freed. */
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *old, size_t size) __attribute__((returns_nonnull));
char *mem_copy_text(const char *text) __attribute__((returns_nonnull));
void *mem_copy(const void *data, size_t size) __attribute__((returns_nonnull));
/* NULL when out of memory; the caller reports a retryable error. */
void *mem_try_alloc(size_t size) __attribute__((warn_unused_result));
/* The same, zeroed; does not touch large blocks. */
void *mem_try_zalloc(size_t size) __attribute__((warn_unused_result));
/* Resizes; old stays as it was on failure. */
void *mem_try_resize(void *old, size_t size) __attribute__((warn_unused_result));
/* Allocates whole pages, for mem_rest. Free with mem_free. */
void *mem_try_alloc_pages(size_t size) __attribute__((warn_unused_result));
/* Returns the pages of such a block to the system until they are written again; their content is
 * lost. size is that of the allocation. */
void mem_rest_pages(void *memory, size_t size);
/* A large zeroed table with random access, in huge pages where the system has them (madvise(2),
 * MADV_HUGEPAGE): otherwise most accesses would miss the TLB. Untouched at first; NULL on
 * failure. */
void *mem_try_map(size_t size) __attribute__((warn_unused_result));
/* Frees a mem_map of the same size; NULL is a no-op. */
void mem_unmap(void *memory, size_t size);
/* For what is large and lives for a moment: from 2 MiB on as mem_try_map, since to get and give
 * back small pages takes longer than to fill them. Not zeroed. Free with the same size. */
void *mem_try_alloc_large(size_t size) __attribute__((warn_unused_result));
void mem_free_large(void *memory, size_t size);
/* Resizes such a block, or begins one from NULL; its content stays. From 2 MiB on the system moves
 * the pages (mremap(2)), so that they are never there twice. NULL: old stays as it was. */
void *mem_try_resize_large(void *old, size_t old_size, size_t size)
    __attribute__((warn_unused_result));
/* NULL is a no-op. */
void mem_free(void *memory);
/* What a small allocation of that size takes, for budgets: the allocator has places of few sizes,
 * 16 bytes apart up to 128, then four for each power of two (jemalloc(3), "size classes"). */
size_t mem_taken(size_t size);

/* Tests only: fail the n-th mem_try_… from now on (1 is the next; 0 fails none), and count the
 * calls. */
void mem_refuse_nth(uint64_t n);
uint64_t mem_tries(void);
