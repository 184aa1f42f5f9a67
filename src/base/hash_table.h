/* SPDX-License-Identifier: Apache-2.0 */
/* Finds objects by 64-bit hashes: open addressing, no order. The table does not look into objects:
 * of equal hashes the caller picks. It doubles: objects then move to the new entries a few with
 * each one that is added, so that none pays for all. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_entry {
    uint64_t hash;
    void *object; /* NULL: free */
};

struct hash_table {
    struct hash_entry *entries; /* a power of two of them, or NULL */
    size_t capacity;
    size_t count;           /* of objects, moved or not */
    struct hash_entry *old; /* half as many, whose objects have not all moved yet; or NULL */
    size_t moved;           /* places of old whose objects have */
};

/* Bytes that the entries take. */
static inline size_t hash_table_bytes(const struct hash_table *table)
{
    const size_t old = table->old != NULL ? table->capacity / 2 : 0;
    return (table->capacity + old) * sizeof(struct hash_entry);
}
/* Bytes that the next hash_table_add allocates. Then, and whenever objects are added, others may
 * be freed. */
size_t hash_table_growth(const struct hash_table *table);
/* For whoever goes through the entries by place: moves objects of so many places that have not
 * moved yet. True: none is left. */
bool hash_table_settle(struct hash_table *table, size_t places);

/* Frees the entries, not the objects. The table is empty afterwards. */
void hash_table_clear(struct hash_table *table);
/* Adds an object, which may be there already. False: no memory. */
bool hash_table_add(struct hash_table *table, uint64_t hash, void *object)
    __attribute__((warn_unused_result));
/* Removes that object; it must be there. */
void hash_table_remove(struct hash_table *table, uint64_t hash, const void *object);
/* The next object with that hash, from *at on, which begins as 0; NULL: there is none. */
void *hash_table_next(const struct hash_table *table, uint64_t hash, size_t *at);
/* Any object, from *at on, which begins as 0; NULL after the last. Nothing is added or removed
 * meanwhile. */
void *hash_table_each(const struct hash_table *table, size_t *at);
