/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for one request after the other: handed out in order and taken back
 * all at once, so that its pages are touched once. One owner, one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pool {
    uint8_t *begin;
    size_t used;
    size_t capacity;
};

/* capacity: the address space that is reserved; memory is taken as it is
 * touched. */
void pool_init(struct pool *pool, size_t capacity);
void pool_fini(struct pool *pool);
/* 16-byte aligned, not zeroed. Ends the process when the capacity is reached.
 */
void *pool_alloc(struct pool *pool, size_t size) __attribute__((returns_nonnull));
/* Takes everything back. */
void pool_reset(struct pool *pool);
