/* SPDX-License-Identifier: Apache-2.0 */
/* Offers batches that a processor has acknowledged to the next stage. A batch that is refused for
 * now is kept and offered again, oldest first, before any other; one that memory keeps out for
 * DOWNSTREAM_KEPT_OUT_MAX_NS, or DOWNSTREAM_SHUT_IN_MAX_NS without a journal, is lost or left to
 * the journal, and so are those after it that memory keeps out until one is taken again. While
 * exporters hold much of the memory because their back-end is away, none is. Losses are counted in
 * the ledger. Stages without a queue work inside downstream_offer, so it ends its turn of the loop
 * after DOWNSTREAM_TURN_NS. Runs on the lane of its owner. */
#pragma once

#include <stdbool.h>

#include "src/base/lane.h"
#include "src/base/timer.h"
#include "src/core/receipt.h"

struct batch;
struct component;
struct downstream_retry;

/* A batch under way; embedded by its owner. */
struct downstream_batch {
    struct receipt receipt;
    struct batch *batch; /* a reference, released by the owner in on_end */
    struct downstream_retry *owner;
    struct downstream_batch *next;
    uint64_t kept_out_ns; /* since when want of memory keeps it out; 0: something else, or
                             nothing */
    uint64_t offered_ns;  /* when it was last offered */
};

struct downstream_retry {
    struct component *component;
    struct downstream_batch *refused; /* oldest first */
    unsigned count;                   /* offered and unresolved, refused ones included */
    uint64_t kept_out_ns;             /* since when want of memory keeps out every batch; 0: none */
    uint64_t refused_ns;              /* when it last did */
    uint64_t leaving_ns;              /* when exporters last held memory meanwhile */
    uint64_t put_off_ns;              /* the same of a back-end that is away, which they wait for */
    uint64_t attempt_ns;              /* how long the last that memory kept out was under way */
    struct timer timer;
    struct lane_job end_of_turn; /* queued from the first offer of a turn on */
    uint64_t turn_until_ns;
    bool is_turn_over;
    bool is_stopping;
    /* The batch was taken, lost and counted, or left to the journal. */
    void (*on_end)(struct downstream_batch *offered, const struct outcome *outcome);
    /* There may be room again. Called from the loop, never from inside another call. */
    void (*on_room)(struct component *component);
};

/* Batches under way at once: without a sending queue downstream, each waits for its export. In a
 * pipeline with a journal all do, and the queue shall not run dry. */
enum { DOWNSTREAM_BATCHES_MAX = 16, DOWNSTREAM_STORED_BATCHES_MAX = 256 };

void downstream_init(struct downstream_retry *downstream, struct component *component,
                     void (*on_end)(struct downstream_batch *offered,
                                    const struct outcome *outcome),
                     void (*on_room)(struct component *component));
/* From now on on_room follows every on_end, so that the component can stop. */
void downstream_stop(struct downstream_retry *downstream);
/* Nothing may be under way. on_room is not called any more. */
void downstream_end(struct downstream_retry *downstream);
/* True while the next stage has to take something first, or others have the lane. */
bool downstream_is_blocked(const struct downstream_retry *downstream);
/* True while a refused batch waits here to be offered again: a limit downstream is met. A blocked
 * one that is not refusing has as many under way as there may be, or goes on in the next turn. */
bool downstream_is_refusing(const struct downstream_retry *downstream);
/* Set offered->batch first. Must not be blocked. */
void downstream_offer(struct downstream_retry *downstream, struct downstream_batch *offered);
