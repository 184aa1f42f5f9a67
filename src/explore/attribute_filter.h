/* SPDX-License-Identifier: Apache-2.0 */
/* Which attributes the spans of a block may have: a Bloom filter of pairs of key and value as text,
 * so that a search for a rare one opens few blocks. A filter that grows is of a fixed size; one
 * that is done is folded to as few bytes as still tell most absent pairs. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { ATTRIBUTE_FILTER_BYTES_MAX = 64 * 1024 };

struct attribute_filter {
    uint64_t *words;
    uint32_t bytes; /* a power of two */
};

/* Of the largest size, and empty. */
void attribute_filter_init(struct attribute_filter *filter);
void attribute_filter_fini(struct attribute_filter *filter);
/* Removes all pairs. */
void attribute_filter_clear(struct attribute_filter *filter);

/* Notes an attribute, an encoded KeyValue. seed: the same for all filters of a store. */
void attribute_filter_note(struct attribute_filter *filter, struct slice encoded, uint64_t seed);
/* False: nothing that was noted has that key and, as text, that value. */
bool attribute_filter_may_have(const struct attribute_filter *filter, struct slice key,
                               struct slice text, uint64_t seed);

/* A copy as small as may be: the caller's. */
struct attribute_filter attribute_filter_fold(const struct attribute_filter *filter);
