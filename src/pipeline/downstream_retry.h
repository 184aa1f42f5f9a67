/* SPDX-License-Identifier: Apache-2.0 */
/* Offers batches that a processor has acknowledged to the next stage. A batch that is refused for
 * now is kept and offered again, oldest first, before any other. Losses are counted in the ledger.
 * Runs on the lane of its owner. */
#pragma once

#include <stdbool.h>

#include "src/base/timer.h"
#include "src/core/receipt.h"

struct batch;
struct component;
struct downstream_retry;

/* A batch under way; embedded by its owner. */
struct downstream_batch {
    struct receipt receipt;
    struct batch *batch; /* a reference that the owner gives back at the end */
    struct downstream_retry *owner;
    struct downstream_batch *next;
};

struct downstream_retry {
    struct component *component;
    struct downstream_batch *refused; /* oldest first */
    unsigned count;                   /* offered and not answered, refused ones included */
    struct timer timer;
    bool is_stopping;
    /* The batch was taken or lost (and counted): gives it back to the owner. */
    void (*on_end)(struct downstream_batch *offered, const struct outcome *outcome);
    /* There may be room again. Called from the loop, never from inside another call. */
    void (*on_room)(struct component *component);
};

/* Under way at once: without a sending queue behind, each waits for its export. */
enum { DOWNSTREAM_BATCHES_MAX = 16 };

void downstream_init(struct downstream_retry *downstream, struct component *component,
                     void (*on_end)(struct downstream_batch *offered,
                                    const struct outcome *outcome),
                     void (*on_room)(struct component *component));
/* From now on on_room is called after every end, so that the component can stop. */
void downstream_stop(struct downstream_retry *downstream);
/* Nothing is under way: on_room will not be called any more. */
void downstream_end(struct downstream_retry *downstream);
/* Whether the next stage must take something first. */
bool downstream_is_blocked(const struct downstream_retry *downstream);
/* Whether the next stage has refused something that waits here to be offered again: a limit behind
 * is met. Otherwise a blocked one has as many under way as it may have. */
bool downstream_is_refusing(const struct downstream_retry *downstream);
/* offered->batch is set. Only while it is not blocked. */
void downstream_offer(struct downstream_retry *downstream, struct downstream_batch *offered);
