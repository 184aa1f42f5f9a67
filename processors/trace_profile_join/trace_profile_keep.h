/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way without the samples that keep left out: those are booked with the answer to
 * the rest, since a request that is refused comes again as it was, without the copies that
 * count_for added. Runs on the owner's lane. */
#pragma once

#include <stdint.h>

#include "src/base/counter.h"

struct batch;
struct component;
struct outcome;
struct receipt;

/* A request that may go on; references of the holder's own. The last two are batches of items only,
 * for the books. */
struct finished {
    struct batch *batch;
    struct batch *lost;   /* what keep left out; NULL: nothing */
    struct batch *copies; /* in batch, received by the books already; NULL: none */
};

/* The rest has that outcome. Gives lost, which may be NULL, back. */
void trace_profile_keep_book(const struct component *owner, struct batch *lost,
                             const struct outcome *outcome);
/* Passes it on to the owner's next stage, if there is anything left of it. Takes all references. */
void trace_profile_keep_pass(struct component *owner, const struct finished *finished,
                             struct receipt *receipt);
