/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that one thread writes and any thread reads without locks. The first word of an entry is
 * a stamp: 0 while it is empty or being written, else different for each write. The writer clears
 * the stamp, stores the other words with release, then the new stamp; a reader loads the stamp
 * before and after the words, which it loads with acquire, and takes equality for proof. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SEQLOCK_STAMP, SEQLOCK_WORDS_MAX = 16 };

/* The writer: words has the stamp first, which is not 0. */
static inline void seqlock_write(_Atomic uint64_t *entry, const uint64_t *words, unsigned count)
{
    atomic_store_explicit(&entry[SEQLOCK_STAMP], 0, memory_order_relaxed);
#pragma GCC unroll SEQLOCK_WORDS_MAX
    for (unsigned i = 1; i < count; i++)
        atomic_store_explicit(&entry[i], words[i], memory_order_release);
    atomic_store_explicit(&entry[SEQLOCK_STAMP], words[SEQLOCK_STAMP], memory_order_release);
}

/* False: the entry is empty or being written. */
static inline bool seqlock_read(const _Atomic uint64_t *entry, uint64_t *ret_words, unsigned count)
{
    uint64_t stamp = atomic_load_explicit(&entry[SEQLOCK_STAMP], memory_order_acquire);
    ret_words[SEQLOCK_STAMP] = stamp;
    if (stamp == 0)
        return false;
#pragma GCC unroll SEQLOCK_WORDS_MAX
    for (unsigned i = 1; i < count; i++)
        ret_words[i] = atomic_load_explicit(&entry[i], memory_order_acquire);
    return atomic_load_explicit(&entry[SEQLOCK_STAMP], memory_order_relaxed) == stamp;
}

/* One word of an entry, for its writer. */
static inline uint64_t seqlock_own_word(const _Atomic uint64_t *entry, unsigned word)
{
    return atomic_load_explicit(&entry[word], memory_order_relaxed);
}
