/* SPDX-License-Identifier: Apache-2.0 */
/* Spoils a valid tree as an attacker does, by its structure: indices beyond every bound, counts,
 * widths and wire types, nesting, duplicates, unknown fields, lengths that lie. One thread. */
#pragma once

#include "tests/attack/grow.h"

/* Applies so many changes to what is below root. */
void mutate(struct world *world, struct pool *pool, struct node *root, unsigned changes);
/* Changes single bytes, cuts or extends what was written. */
void mutate_bytes(struct world *world, struct bytes_out *bytes, size_t begin);
/* A number that code is apt to get wrong; about how many entries there are, or 0. */
uint64_t odd_number(struct world *world, uint64_t about);
