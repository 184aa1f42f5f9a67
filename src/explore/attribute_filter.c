/* SPDX-License-Identifier: Apache-2.0 */
/* A pair's bits are taken modulo the size, a power of two: halves laid over each other are the
 * filter of half the size. Values whose text is long to make (doubles, lists, maps, bytes) are
 * noted by their key alone. */
#include "src/explore/attribute_filter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/explore/explore_limits.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    BITS_PER_PAIR = 4,
    BYTES_MIN = 64,
    FILL_PERCENT_MAX = 40, /* of a folded filter: one of 40 absent pairs is not told */
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
};

void attribute_filter_init(struct attribute_filter *filter)
{
    *filter = (struct attribute_filter){.words = mem_zalloc(ATTRIBUTE_FILTER_BYTES_MAX),
                                        .bytes = ATTRIBUTE_FILTER_BYTES_MAX};
}

void attribute_filter_fini(struct attribute_filter *filter)
{
    mem_free(filter->words);
    *filter = (struct attribute_filter){.words = NULL};
}

void attribute_filter_clear(struct attribute_filter *filter)
{
    memset(filter->words, 0, filter->bytes);
}

static uint64_t key_hash(struct slice key, uint64_t seed)
{
    return XXH3_64bits_withSeed(key.data, key.size, seed);
}

static uint64_t pair_hash(uint64_t key, struct slice text)
{
    size_t size = text.size < EXPLORE_STRING_BYTES_MAX ? text.size : EXPLORE_STRING_BYTES_MAX;
    return XXH3_64bits_withSeed(text.data, size, key);
}

static uint32_t bit_of(const struct attribute_filter *filter, uint64_t hash, unsigned number)
{
    uint32_t step = (uint32_t)(hash >> 32) | 1;
    return ((uint32_t)hash + number * step) & (8 * filter->bytes - 1);
}

static void set(struct attribute_filter *filter, uint64_t hash)
{
    for (unsigned i = 0; i < BITS_PER_PAIR; i++) {
        uint32_t bit = bit_of(filter, hash, i);
        filter->words[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

static bool is_set(const struct attribute_filter *filter, uint64_t hash)
{
    for (unsigned i = 0; i < BITS_PER_PAIR; i++) {
        uint32_t bit = bit_of(filter, hash, i);
        if ((filter->words[bit / 64] >> bit % 64 & 1) == 0)
            return false;
    }
    return true;
}

void attribute_filter_note(struct attribute_filter *filter, struct slice encoded, uint64_t seed)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct slice key = slice_of("", 0);
    struct slice value = slice_of("", 0);
    char text[24];
    assert(filter->bytes == ATTRIBUTE_FILTER_BYTES_MAX);
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY_VALUE_KEY)
            key = field.bytes;
        else if (field.number == KEY_VALUE_VALUE)
            value = field.bytes;
    }
    uint64_t hash = key_hash(key, seed);
    struct value read = value_read(value);
    switch (read.type) {
    case VALUE_STRING:
        set(filter, pair_hash(hash, read.bytes));
        break;
    case VALUE_EMPTY:
        set(filter, pair_hash(hash, slice_of("", 0)));
        break;
    case VALUE_BOOL:
        set(filter, pair_hash(hash, slice_of_text(read.boolean ? "true" : "false")));
        break;
    case VALUE_INT:
        snprintf(text, sizeof(text), "%" PRId64, read.integer);
        set(filter, pair_hash(hash, slice_of_text(text)));
        break;
    case VALUE_DOUBLE:
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
        set(filter, hash);
        break;
    }
}

bool attribute_filter_may_have(const struct attribute_filter *filter, struct slice key,
                               struct slice text, uint64_t seed)
{
    uint64_t hash = key_hash(key, seed);
    return is_set(filter, pair_hash(hash, text)) || is_set(filter, hash);
}

struct attribute_filter attribute_filter_fold(const struct attribute_filter *filter)
{
    struct attribute_filter folded = {.words = mem_copy(filter->words, filter->bytes),
                                      .bytes = filter->bytes};
    while (folded.bytes > BYTES_MIN) {
        uint32_t half = folded.bytes / 2 / sizeof(uint64_t);
        uint64_t bits = 0;
        for (uint32_t i = 0; i < half; i++)
            bits += (unsigned)__builtin_popcountll(folded.words[i] | folded.words[half + i]);
        if (100 * bits > FILL_PERCENT_MAX * (uint64_t)half * 64)
            break;
        for (uint32_t i = 0; i < half; i++)
            folded.words[i] |= folded.words[half + i];
        folded.bytes /= 2;
    }
    folded.words = mem_resize(folded.words, folded.bytes);
    return folded;
}
