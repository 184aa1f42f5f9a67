/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded ring of pointers between two stages: any thread pushes, its owner pops (slots with
 * sequence numbers, after Vyukov). A full ring refuses: that is the back-pressure. Empty when the
 * slot at head has not been written, full when the slot at tail has not been read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

struct ring_figures {
    size_t depth;      /* items in it now */
    size_t high_water; /* the most that it ever held */
    size_t capacity;
    uint64_t refusals; /* pushes that found it full */
};

/* capacity is rounded up to a power of two, at least 2. */
struct ring *ring_create(size_t capacity);
/* Must be empty. NULL is tolerated. */
void ring_destroy(struct ring *ring);
/* False, and counted, when full. Any thread. */
bool ring_try_push(struct ring *ring, void *item) __attribute__((warn_unused_result));
/* NULL when empty. Owner only. */
void *ring_try_pop(struct ring *ring);
/* Any thread; a moment's view. */
struct ring_figures ring_figures(const struct ring *ring);
