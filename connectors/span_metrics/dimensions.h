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

enum { NAME_BITS = 64 };
#define NAME_NONE SIZE_MAX

enum dimension_list {
    DIMENSIONS_ALL,
    DIMENSIONS_CALLS,
    DIMENSIONS_DURATION,
    DIMENSIONS_EVENTS,
    DIMENSION_LISTS
};

struct text_hash {
    uint64_t low;
    uint64_t high;
};

/* An attribute that becomes a label. */
enum { DIMENSION_BY_GLOB = INT32_MAX };

struct span_label {
    struct slice key;
    struct slice value; /* encoded AnyValue; of a default: no data: there is none */
    size_t name;        /* index in names, or DIMENSION_BY_GLOB */
    size_t place;       /* among the matches of globs */
    /* Of a long value, so that spans need not read it again: the size and the hash of its text. */
    bool is_long;
    size_t long_bytes;
    struct text_hash hash;
    struct text_hash key_hash; /* of a long key, by glob */
};

struct dimension {
    struct span_label standard; /* its name, and its default */
};

struct dimension_set {
    size_t count;
    struct dimension *items;
    size_t globs_count;
    struct pattern **globs;
};

/* An attribute that dimensions name. */
struct dimension_name {
    struct slice name;
    uint64_t tail; /* name_tail */
    size_t before; /* the one before with the same name_place, or NAME_NONE */
};

struct dimensions {
    size_t names_count;
    struct dimension_name *names; /* each once, of all lists */
    uint64_t size_bits;           /* of each name's size; with globs: all */
    size_t last[NAME_BITS];       /* name of each place, or NAME_NONE */
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
/* Depends on its size and its last byte. */
static inline unsigned name_place(struct slice name)
{
    const unsigned last = name.size > 0 ? name.data[name.size - 1] : 0;
    return ((unsigned)name.size << 8 | last) * 0x9e3779b1U >> 26;
}
/* Of its size alone: most attributes are ruled out before a byte of them is read. */
static inline uint64_t name_size_bit(struct slice name)
{
    return UINT64_C(1) << name.size % NAME_BITS;
}
/* Of names with equal tails. */
static inline bool name_is_equal(struct slice left, struct slice right)
{
    if (left.size != right.size)
        return false;
    for (size_t at = 0; at + sizeof(uint64_t) < left.size; at += sizeof(uint64_t))
        if (memcmp(left.data + at, right.data + at, sizeof(uint64_t)) != 0)
            return false;
    return true;
}
/* Index of the name, or NAME_NONE. */
static inline size_t dimensions_find(const struct dimensions *dimensions, struct slice name)
{
    size_t i = dimensions->last[name_place(name)];
    uint64_t tail = name_tail(name);
    while (i != NAME_NONE &&
           (dimensions->names[i].tail != tail || !name_is_equal(dimensions->names[i].name, name)))
        i = dimensions->names[i].before;
    return i;
}
struct text_hash text_hash_of(uint64_t seed, struct slice text);
