/* SPDX-License-Identifier: Apache-2.0 */
/* The series of one scrape, by hashes: as the target writes them, and as their labels are in the
 * end. 16 bytes a series and some room. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget;

struct series {
    uint64_t written; /* hash of name and labels as written; 0: free */
    uint64_t labels;  /* hash of the labels; 0: its end is not marked */
};

struct series_set {
    struct budget *budget;  /* is charged; NULL: not */
    struct series *entries; /* a power of two of them, or NULL */
    size_t capacity;
    size_t count;
};

void series_set_init(struct series_set *set, struct budget *budget);
void series_set_fini(struct series_set *set);
/* Takes over what is in from, which is empty afterwards. */
void series_set_move(struct series_set *set, struct series_set *from);
/* NULL: it is not there. written is not 0. */
struct series *series_set_find(const struct series_set *set, uint64_t written);
/* Adds one that is not there. NULL: no memory. Valid until the next one is added. */
struct series *series_set_add(struct series_set *set, uint64_t written);
