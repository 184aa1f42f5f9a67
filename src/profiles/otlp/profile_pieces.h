/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a request of very many short Profile messages, layout 1.10, into pieces that occupy a lane
 * briefly: each gets a copy of the dictionary and of the resource and scope of its profiles.
 * Profile messages stay whole and in order. Pure function; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct budget;

/* Whether a normalized request should be cut, and there is memory for it. */
bool profile_pieces_are_needed(uint64_t bytes, uint64_t profiles, const struct budget *budget);
/* Passes each piece, a new reference, to take. batch has one part and at least one Profile. A piece
 * has profiles_max Profile messages, or more where the copies would be most of it. */
void profile_pieces_cut(const struct batch *batch, uint64_t profiles_max, struct budget *budget,
                        void (*take)(void *arg, struct batch *piece), void *arg);
