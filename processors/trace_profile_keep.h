/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way without the samples that keep left out: those are booked with the answer to
 * the rest, since a request that is refused comes again as it was. Runs on the owner's lane. */
#pragma once

#include <stdint.h>

#include "src/counter.h"

struct batch;
struct component;
struct outcome;
struct receipt;

/* What whole had and kept has not: a batch of items only, for the books; NULL: nothing. The
 * caller's. */
struct batch *trace_profile_keep_lost(const struct batch *whole, const struct batch *kept);
/* The rest has that outcome. Gives lost, which may be NULL, back. */
void trace_profile_keep_book(const struct component *owner, struct batch *lost,
                             const struct outcome *outcome);
/* Passes kept on to the owner's next stage, if there is anything left of it. Takes lost. */
void trace_profile_keep_pass(struct component *owner, struct batch *kept, struct batch *lost,
                             struct receipt *receipt);
