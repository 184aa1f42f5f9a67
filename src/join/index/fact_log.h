/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that many index entries share, each kept once: a ring of words that is written on and on.
 * One thread writes; any thread reads, without locks, and finds out when what it wanted has been
 * overwritten. A text that is asked for again after half of the ring has gone by is written anew,
 * so that what a new entry points to outlives it, or nearly. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

/* Of one text, its words padded with zeros: 4 KiB. */
enum { FACT_WORDS_MAX = 512 };

struct fact_text {
    uint32_t bytes;
    uint64_t words[FACT_WORDS_MAX];
};

struct fact_slot {
    uint32_t hash;
    uint32_t place;
};

struct fact_log {
    _Atomic uint64_t *words;
    uint64_t capacity;       /* in words */
    uint64_t head;           /* words written since the begin; the writer's own */
    uint64_t head_at;        /* where in the ring that is */
    _Atomic uint64_t tail;   /* older words are gone */
    struct fact_slot *slots; /* the writer's own: what was written, by hash; may forget */
    uint32_t slots_count;
    uint64_t seed;
};

/* A place is where a text begins, in words since the begin, its lower 32 bits. Never 0. */
enum { FACT_NOWHERE = 0 };

/* Takes bytes in all, once: at least FACT_LOG_BYTES_MIN. False: no memory. */
#define FACT_LOG_BYTES_MIN ((uint64_t)64 * 1024)
bool fact_log_init(struct fact_log *log, uint64_t bytes);
void fact_log_fini(struct fact_log *log);

/* The writer: where the text stands. It stays there for the next `keep` of the ring at least. */
enum fact_keep { FACT_KEEP_HALF = 2, FACT_KEEP_THREE_QUARTERS = 4 };
uint32_t fact_log_put(struct fact_log *log, const struct fact_text *text, enum fact_keep keep);
/* Any thread: false when it is gone. */
bool fact_log_read(const struct fact_log *log, uint32_t place, struct fact_text *ret_text);
/* Any thread. */
bool fact_log_has(const struct fact_log *log, uint32_t place);

/* Building a text: fields one after the other. An absent field is not an empty one. */
void fact_text_begin(struct fact_text *text);
void fact_text_add_number(struct fact_text *text, uint32_t number);
void fact_text_add_hash(struct fact_text *text, uint64_t hash);
/* What does not fit, or is longer than bytes_max, is cut between characters. */
void fact_text_add(struct fact_text *text, const void *data, uint64_t bytes, uint64_t bytes_max);
void fact_text_add_absent(struct fact_text *text);

/* Reading it back, in that order. Beyond its end numbers and hashes are 0. */
struct fact_reader {
    const uint8_t *at;
    const uint8_t *end;
};
struct fact_reader fact_text_read(const struct fact_text *text);
uint32_t fact_next_number(struct fact_reader *reader);
uint64_t fact_next_hash(struct fact_reader *reader);
/* False: absent. */
bool fact_next(struct fact_reader *reader, struct slice *ret_field);
