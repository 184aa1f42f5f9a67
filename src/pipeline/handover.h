/* SPDX-License-Identifier: Apache-2.0 */
/* Hands batches that a processor answers for to the next stage: what that refuses for now is kept
 * and offered again, oldest first, before all else. What is lost goes into the books. One owner,
 * whose lane it runs on. */
#pragma once

#include <stdbool.h>

#include "src/base/timer.h"
#include "src/core/receipt.h"

struct batch;
struct component;
struct handover;

/* A batch on its way; embedded by its user. */
struct handed {
    struct receipt receipt;
    struct batch *batch; /* a reference, the user's to give back at the end */
    struct handover *owner;
    struct handed *next;
};

struct handover {
    struct component *component;
    struct handed *refused; /* oldest first */
    unsigned count;         /* offered and not answered, refused ones included */
    struct timer timer;
    bool is_stopping;
    /* It is over, one way or the other (and then in the books): gives handed back. */
    void (*on_end)(struct handed *handed, const struct outcome *outcome);
    /* There may be room again: from the loop, never from inside another call. */
    void (*on_room)(struct component *component);
};

/* At once under way: without a sending queue behind, each waits for its export. */
enum { HANDOVERS_MAX = 16 };

void handover_init(struct handover *handover, struct component *component,
                   void (*on_end)(struct handed *handed, const struct outcome *outcome),
                   void (*on_room)(struct component *component));
/* From now on on_room is called whenever something is over, so that the component can stop. */
void handover_stop(struct handover *handover);
/* Nothing is under way: on_room will not be called any more. */
void handover_end(struct handover *handover);
/* Whether the next stage must take something first. */
bool handover_is_blocked(const struct handover *handover);
/* Whether the next stage has refused something that waits here to be offered again: a limit behind
 * is met. Otherwise a blocked one has as many under way as it may have. */
bool handover_is_refused(const struct handover *handover);
/* handed->batch is set; only while it is not blocked. */
void handover_give(struct handover *handover, struct handed *handed);
