/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions: which attributes become labels. Compiled from the configuration, immutable, shared by
 * all lanes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/pattern.h"
#include "src/base/slice.h"

struct span_metrics_config;

/* Matches of the globs of a list in one message that become labels; others are left out. */
enum { GLOB_MATCHES_MAX = 128 };

enum dimension_list {
    DIMENSIONS_ALL,
    DIMENSIONS_CALLS,
    DIMENSIONS_DURATION,
    DIMENSIONS_EVENTS,
    DIMENSION_LISTS
};

/* What stands for a value in keys: the hash of its text. */
struct text_hash {
    uint64_t low;
    uint64_t high;
};

struct dimension {
    size_t name;           /* index in names */
    struct slice standard; /* encoded AnyValue; without data there is none */
    struct text_hash standard_hash;
};

struct dimension_set {
    size_t count;
    struct dimension *items;
    size_t globs_count;
    struct pattern **globs;
};

struct dimensions {
    size_t names_count;
    struct slice *names; /* each once, of all lists */
    uint64_t *tails;     /* of each name: name_tail */
    uint64_t name_sizes; /* bit (size % 64) for each name: what it lacks is none of them */
    bool has_globs;
    uint64_t seed; /* of all hashes */
    struct dimension_set lists[DIMENSION_LISTS];
};

/* The configuration has passed span_metrics_check. */
struct dimensions *dimensions_create(const struct span_metrics_config *config);
/* NULL is a no-op. */
void dimensions_destroy(struct dimensions *dimensions);
/* True: the list adds no labels. */
bool dimensions_are_none(const struct dimensions *dimensions, enum dimension_list list);
/* The last eight bytes, or all: what tells names apart soonest. */
static inline uint64_t name_tail(struct slice name)
{
    uint64_t tail = 0;
    if (name.size >= sizeof(tail))
        memcpy(&tail, name.data + name.size - sizeof(tail), sizeof(tail));
    else if (name.size > 0)
        memcpy(&tail, name.data, name.size);
    return tail;
}
/* Index of the name; names_count: it is none. */
size_t dimensions_find(const struct dimensions *dimensions, struct slice name);
struct text_hash text_hash_of(uint64_t seed, struct slice text);
