/* SPDX-License-Identifier: Apache-2.0 */
/* A set of files, found by their first bytes: those that are as long, or that another's begins
 * with. Of the follower's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/hash_table.h"
#include "src/base/slice.h"

struct followed_file;

struct fingerprints {
    struct followed_file **files;
    size_t count;
    size_t capacity;
    size_t size_max;
    uint32_t *sizes; /* by size of the first bytes: how many files have it */
    struct hash_table table;
    uint64_t seed;
};

void fingerprints_init(struct fingerprints *set, size_t size_max);
/* The set is empty. */
void fingerprints_fini(struct fingerprints *set);
/* The file's first bytes stay as they are while it is in the set. False: no memory. */
bool fingerprints_add(struct fingerprints *set, struct followed_file *file);
void fingerprints_remove(struct fingerprints *set, struct followed_file *file);
/* NULL: there is none. */
struct followed_file *fingerprints_find_equal(const struct fingerprints *set, struct slice first);
/* A file whose first bytes are the beginning of these: the longest. */
struct followed_file *fingerprints_find_beginning(const struct fingerprints *set,
                                                  struct slice first);
