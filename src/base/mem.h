/* SPDX-License-Identifier: Apache-2.0 */
/* The one allocator entry: every allocation of ours and of the libraries that let us passes here.
 * Any thread. What is small and bounded comes from mem_alloc, which ends the process with one line
 * when memory is gone; what grows with input comes from mem_try_alloc, which may refuse (and is
 * charged to a budget by its caller). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Never NULL; size 0 is allowed and gives a pointer that can be freed. */
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *old, size_t size) __attribute__((returns_nonnull));
char *mem_copy_text(const char *text) __attribute__((returns_nonnull));
void *mem_copy(const void *data, size_t size) __attribute__((returns_nonnull));
/* NULL when refused; the caller answers "try again later". */
void *mem_try_alloc(size_t size) __attribute__((warn_unused_result));
/* The same, zeroed; what is large is not touched by that. */
void *mem_try_zalloc(size_t size) __attribute__((warn_unused_result));
/* The same for memory that grows; old stays as it was when refused. */
void *mem_try_resize(void *old, size_t size) __attribute__((warn_unused_result));
/* Whole pages, so that they can be rested; to be freed with mem_free. */
void *mem_try_alloc_pages(size_t size) __attribute__((warn_unused_result));
/* Gives the pages of such memory back to the system until they are written to again; what they held
 * is lost. size is that of the allocation. */
void mem_rest_pages(void *memory, size_t size);
/* A large table that is read all over, zeroed and not touched by that; NULL when refused. It lies
 * in huge pages where the system has them (madvise(2), MADV_HUGEPAGE): otherwise most looks would
 * cost a walk through the page tables. */
void *mem_try_map(size_t size) __attribute__((warn_unused_result));
/* What _map gave, with the same size; NULL is tolerated. */
void mem_unmap(void *memory, size_t size);
/* NULL is tolerated. */
void mem_free(void *memory);

/* Tests only: refuse the n-th mem_try_… from now on (1 is the next; 0 refuses none), and count
 * the tries. */
void mem_refuse_nth(uint64_t n);
uint64_t mem_tries(void);
