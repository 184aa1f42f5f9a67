/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of eight words, one cache line each, chosen by the lower bits of the trace's hash. A word
 * has the 46 upper bits, the verdict, and its time in units of 2^32 ns. Any thread. */
#include "src/join/index/trace_verdicts.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/base/random.h"

enum {
    LINE = 8,
    AGE_BITS = 16,
    AGE_SHIFT = 32,
    AGE_MASK = (1 << AGE_BITS) - 1,
    VERDICT_SHIFT = AGE_BITS,
    VERDICT_MASK = 3,
    HASH_SHIFT = AGE_BITS + 2,
    TRIES_MAX = 8, /* while other threads write to the same line */
};
#define HASH_MASK (UINT64_MAX << HASH_SHIFT)

static uint64_t places_for(uint64_t traces)
{
    uint64_t places = LINE;
    while (places < traces)
        places *= 2;
    return places;
}

uint64_t trace_verdicts_bytes(uint64_t traces)
{
    return places_for(traces) * sizeof(uint64_t);
}

bool trace_verdicts_init(struct trace_verdicts *verdicts, uint64_t traces)
{
    uint64_t count = places_for(traces);
    assert(verdicts->places == NULL);
    *verdicts = (struct trace_verdicts){.count = count};
    verdicts->seed = (uint64_t)(random_uniform() * 0x1p53) | 1;
    verdicts->places = mem_try_map(count * sizeof(verdicts->places[0]));
    return verdicts->places != NULL;
}

void trace_verdicts_fini(struct trace_verdicts *verdicts)
{
    if (verdicts->places != NULL)
        mem_unmap((void *)(uintptr_t)verdicts->places,
                  verdicts->count * sizeof(verdicts->places[0]));
    verdicts->places = NULL;
}

/* Seeded: a client chooses the ids. */
static uint64_t hash_of(const struct trace_verdicts *verdicts, const uint64_t trace[2])
{
    uint64_t hash = (trace[0] ^ verdicts->seed) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ trace[1]) * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ hash >> 32 ^ verdicts->seed) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static _Atomic uint64_t *line_of(const struct trace_verdicts *verdicts, uint64_t hash)
{
    uint64_t lines = verdicts->count / LINE;
    return &verdicts->places[(hash & (lines - 1)) * LINE];
}

static enum trace_verdict verdict_of(uint64_t word)
{
    return (enum trace_verdict)(word >> VERDICT_SHIFT & VERDICT_MASK);
}

/* The place of that trace, else an empty one, else the oldest. *ret_word: what it has. */
static _Atomic uint64_t *choose(_Atomic uint64_t *line, uint64_t hash, uint64_t age,
                                uint64_t *ret_word)
{
    _Atomic uint64_t *chosen = NULL;
    uint64_t chosen_age = 0;
    for (unsigned i = 0; i < LINE; i++) {
        uint64_t word = atomic_load_explicit(&line[i], memory_order_relaxed);
        bool is_same = word != 0 && (word & HASH_MASK) == (hash & HASH_MASK);
        uint64_t word_age = word != 0 ? (age - word) & AGE_MASK : AGE_MASK + 1;
        if (chosen != NULL && !is_same && word_age <= chosen_age)
            continue;
        chosen = &line[i];
        chosen_age = word_age;
        *ret_word = word;
        if (is_same)
            break;
    }
    return chosen;
}

void trace_verdicts_put(struct trace_verdicts *verdicts, const uint64_t trace[2],
                        enum trace_verdict verdict, uint64_t now_ns)
{
    uint64_t hash = hash_of(verdicts, trace);
    uint64_t age = now_ns >> AGE_SHIFT & AGE_MASK;
    _Atomic uint64_t *line = line_of(verdicts, hash);
    assert(verdict != TRACE_UNKNOWN);
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        uint64_t before = 0;
        _Atomic uint64_t *place = choose(line, hash, age, &before);
        bool is_same = before != 0 && (before & HASH_MASK) == (hash & HASH_MASK);
        if (is_same && verdict_of(before) >= verdict)
            return;
        uint64_t word = (hash & HASH_MASK) | (uint64_t)verdict << VERDICT_SHIFT | age;
        if (!atomic_compare_exchange_strong(place, &before, word))
            continue;
        atomic_fetch_add_explicit(&verdicts->changes, 1, memory_order_release);
        return;
    }
}

enum trace_verdict trace_verdicts_get(const struct trace_verdicts *verdicts,
                                      const uint64_t trace[2])
{
    uint64_t hash = hash_of(verdicts, trace);
    const _Atomic uint64_t *line = line_of(verdicts, hash);
    enum trace_verdict verdict = TRACE_UNKNOWN;
    for (unsigned i = 0; i < LINE; i++) {
        uint64_t word = atomic_load_explicit(&line[i], memory_order_relaxed);
        if (word != 0 && (word & HASH_MASK) == (hash & HASH_MASK) && verdict_of(word) > verdict)
            verdict = verdict_of(word);
    }
    return verdict;
}
