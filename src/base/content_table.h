/* SPDX-License-Identifier: Apache-2.0 */
/* Finds entries by content, where the contents lie in one growing block of bytes of the owner.
 * Indices begin at 1. Charged to a budget. One owner. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/scratch.h"
#include "src/base/slice.h"

struct budget;

struct content_table {
    struct scratch slots; /* of the hash table */
    uint32_t places;      /* the number of slots, a power of two or 0 */
    uint32_t count;       /* entries, and index 0, which stands for the empty content */
    uint64_t seed;        /* of the hashes, so that clients cannot choose contents that collide */
};

void content_table_init(struct content_table *table);
void content_table_fini(struct content_table *table, struct budget *budget);
/* The index of the content among those in bytes; 0: it is not in the table. *ret_hash is for
 * content_table_add. */
uint32_t content_table_find(const struct content_table *table, const void *bytes,
                            struct slice content, uint32_t *ret_hash);
/* Adds what content_table_find did not find and is now at that offset of the bytes. Returns its
 * index; 0: no memory, and the table is unchanged. budget may be NULL, but is always the same. */
uint32_t content_table_add(struct content_table *table, struct budget *budget, uint32_t hash,
                           size_t offset, size_t size);
