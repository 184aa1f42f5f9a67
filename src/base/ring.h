/* SPDX-License-Identifier: Apache-2.0 */
/* FIFO of pointers between two stages of one lane. Grows and shrinks with its content; its user
 * bounds it by what it charges per item: the budget, or queue_size. Only the lane uses it, except
 * ring_figures. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ring;

struct ring_figures {
    size_t depth;      /* items in it now */
    size_t high_water; /* maximum depth so far */
    size_t capacity;   /* items that fit without growing */
    uint64_t refusals; /* items that its user refused; filled in by the user */
};

/* Empty, without memory for items. */
struct ring *ring_create(void);
/* Must be empty. NULL is a no-op. */
void ring_destroy(struct ring *ring);
/* item is not NULL. */
void ring_push(struct ring *ring, void *item);
/* The oldest item; NULL when empty. */
void *ring_pop(struct ring *ring);
/* The same, without removing it. */
void *ring_first(const struct ring *ring);
size_t ring_depth(const struct ring *ring);
/* Any thread; a snapshot. refusals is 0. */
struct ring_figures ring_figures(const struct ring *ring);
