/* SPDX-License-Identifier: Apache-2.0 */
/* Gatherings told apart by client metadata (metadata_keys, and for profiles the tenant): one gather
 * and one timer for each combination of values. Owned by one lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/config/field.h"
#include "src/gather.h"
#include "src/timer.h"

struct client_info;

struct partition {
    struct gather gather;
    struct timer timer; /* its owner's: flush */
    uint64_t mark_ns;   /* its owner's: when it was last flushed */
    void *owner;
    char *key; /* the values, each behind its length */
    struct partition *next;
};

struct partitions {
    enum signal_kind signal;
    struct budget *budget;
    struct config_texts keys; /* lower-cased by comparison */
    size_t count_max;         /* 0: no limit */
    timer_fn on_timer;        /* arg is the partition */
    void *owner;
    size_t count;
    void *tree; /* of <search.h>, by key */
    struct partition *first;
    struct partition *plain; /* without keys: of clients without a tenant; NULL: none came yet */
};

/* keys outlive the partitions. */
void partitions_init(struct partitions *partitions, enum signal_kind signal, struct budget *budget,
                     struct config_texts keys, size_t count_max);
/* Who hears of the timers. */
void partitions_owned_by(struct partitions *partitions, timer_fn on_timer, void *owner);
/* Nothing may be pending and no timer running. */
void partitions_fini(struct partitions *partitions);
/* The partition of a client (NULL: all values are missing), made when it is new; NULL when there
 * are too many. */
struct partition *partitions_of(struct partitions *partitions, const struct client_info *client);
