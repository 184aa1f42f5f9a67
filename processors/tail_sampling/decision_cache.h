/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the latest decisions, by the last 8 bytes of the trace's id. The least recently used is
 * forgotten for a new one: exactly so in caches of up to DECISION_CACHE_EXACT_MAX, roughly in
 * larger ones, which take about 9 bytes for each. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct budget;
struct decision_cache;
struct error;

enum { DECISION_CACHE_EXACT_MAX = 65536 };

/* size: decisions that it remembers, at least 1. with_values: a number for each, else none is kept.
 * The memory is charged at once, and touched as it fills. NULL: the budget has no room for it. */
struct decision_cache *decision_cache_create(uint64_t size, bool with_values,
                                             struct budget *budget);
/* NULL is a no-op. */
void decision_cache_destroy(struct decision_cache *cache);
/* Bytes that one of that size takes. */
uint64_t decision_cache_bytes(uint64_t size, bool with_values);

/* Whether the decision is remembered, which counts as a use. *ret_value: its number, or 0. */
bool decision_cache_get(struct decision_cache *cache, uint64_t key, uint16_t *ret_value);
/* Remembers a decision, also again. */
void decision_cache_put(struct decision_cache *cache, uint64_t key, uint16_t value);
