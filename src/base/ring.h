/* SPDX-License-Identifier: Apache-2.0 */
/* First-in first-out queue of pointers between two stages of one lane. It grows with what is in it
 * and gives the memory back; what bounds it is what its user charges for each item: the budget, or
 * queue_size. Everything but ring_figures belongs to the lane. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ring;

struct ring_figures {
    size_t depth;      /* items in it now */
    size_t high_water; /* the most that it ever held */
    size_t capacity;   /* items that fit without growing */
    uint64_t refusals; /* items that its user had no room for: the user's to fill in */
};

/* Empty, without memory for items. */
struct ring *ring_create(void);
/* Must be empty. NULL is tolerated. */
void ring_destroy(struct ring *ring);
/* item is not NULL. */
void ring_push(struct ring *ring, void *item);
/* The oldest item; NULL when empty. */
void *ring_pop(struct ring *ring);
/* The same, which stays in the ring. */
void *ring_first(const struct ring *ring);
size_t ring_depth(const struct ring *ring);
/* Any thread; a moment's view. refusals is 0. */
struct ring_figures ring_figures(const struct ring *ring);
