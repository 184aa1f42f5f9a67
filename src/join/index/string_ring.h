/* SPDX-License-Identifier: Apache-2.0 */
/* Records of strings that many index entries share, each stored once in a ring of words that
 * overwrites its oldest. One thread writes; any thread reads without locks and detects when a
 * record was overwritten. A record that is put again after half of the ring was written is stored
 * again, so that it lasts about as long as the new entry that refers to it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

/* Of one record, padded with zeros: 4 KiB. */
enum { RECORD_WORDS_MAX = 512 };

struct string_record {
    uint32_t bytes;
    uint64_t words[RECORD_WORDS_MAX];
};

struct string_slot {
    uint32_t hash;
    uint32_t place;
};

struct string_ring {
    _Atomic uint64_t *words;
    uint64_t capacity;         /* in words */
    uint64_t head;             /* words written so far; for the writer alone */
    uint64_t head_at;          /* where in the ring that is */
    _Atomic uint64_t tail;     /* words before it were overwritten */
    struct string_slot *slots; /* records by hash, incomplete; for the writer alone */
    uint32_t slots_count;
    uint64_t seed;
};

/* A place is where a record begins: the lower 32 bits of its offset in words. Never 0. */
enum { STRING_NOWHERE = 0 };

/* Allocates that many bytes, once; at least STRING_RING_BYTES_MIN. False: no memory. */
#define STRING_RING_BYTES_MIN ((uint64_t)64 * 1024)
bool string_ring_init(struct string_ring *ring, uint64_t bytes);
void string_ring_fini(struct string_ring *ring);

/* The writer: returns the place of the record, which stays valid until at least the given share of
 * the ring has been written. */
enum string_keep { STRING_KEEP_HALF = 2, STRING_KEEP_THREE_QUARTERS = 4 };
uint32_t string_ring_put(struct string_ring *ring, const struct string_record *record,
                         enum string_keep keep);
/* Any thread. False: the record was overwritten. */
bool string_ring_read(const struct string_ring *ring, uint32_t place,
                      struct string_record *ret_record);
/* Any thread. */
bool string_ring_has(const struct string_ring *ring, uint32_t place);

/* Building a record, field by field. An absent field differs from an empty one. */
void string_record_begin(struct string_record *record);
void string_record_add_number(struct string_record *record, uint32_t number);
void string_record_add_hash(struct string_record *record, uint64_t hash);
/* Truncated between characters to what fits and to bytes_max. */
void string_record_add(struct string_record *record, const void *data, uint64_t bytes,
                       uint64_t bytes_max);
void string_record_add_absent(struct string_record *record);

/* Reading it back in the same order. Beyond its end numbers and hashes are 0. */
struct record_reader {
    const uint8_t *at;
    const uint8_t *end;
};
struct record_reader string_record_read(const struct string_record *record);
uint32_t record_next_number(struct record_reader *reader);
uint64_t record_next_hash(struct record_reader *reader);
/* False: absent. */
bool record_next(struct record_reader *reader, struct slice *ret_field);
