/* SPDX-License-Identifier: Apache-2.0 */
/* One batcher and one timer for each combination of client metadata (metadata_keys, and for
 * profiles the tenant). Clients choose the values, so every call takes constant or logarithmic time
 * in the number of partitions, and empty ones are freed. Owned by one lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/timer.h"
#include "src/config/field.h"
#include "src/pipeline/batcher.h"

struct client_info;
struct combination;
struct partitions;

enum partition_state {
    PARTITION_BUSY, /* something is pending, or will be at once */
    PARTITION_DUE,  /* something is pending that its owner wants to flush */
    PARTITION_IDLE, /* nothing is pending: it may be freed */
    PARTITION_STATES,
};

struct partition {
    struct batcher batcher;
    struct timer timer; /* its owner's: flush */
    uint64_t mark_ns;   /* its owner's: when it was last flushed */
    bool is_overdue;    /* its owner's: what is pending should have been flushed */
    void *owner;
    struct partitions *partitions;
    struct combination *combination; /* of values, which other tenants may have too */
    char *key;                       /* the values, each after its length, then the tenant */
    uint64_t bytes;                  /* of memory, charged unless IDLE */
    uint64_t idle_since_ns;
    enum partition_state state;
    struct partition *previous; /* in the list of its state */
    struct partition *next;
};

struct partition_list {
    struct partition *first; /* longest in that state */
    struct partition *last;
    size_t count;
};

struct partitions {
    enum signal_kind signal;
    struct budget *budget;
    struct config_texts keys; /* lower-cased by comparison */
    size_t combinations_max;  /* 0: no limit */
    timer_fn on_timer;        /* arg is the partition */
    void *owner;
    void *tree;                /* of partitions; <search.h>, by key */
    void *combinations;        /* <search.h>, by values */
    size_t combinations_count; /* including the one that has no values at all */
    bool has_none;             /* that one exists */
    struct partition_list lists[PARTITION_STATES];
    struct partition *plain; /* without keys: of clients without a tenant; NULL: none */
};

/* keys and budget outlive the partitions. Each that is not idle is charged to the budget, beyond
 * its limit if need be. */
void partitions_init(struct partitions *partitions, enum signal_kind signal, struct budget *budget,
                     struct config_texts keys, size_t combinations_max);
/* Sets the callback of the partitions' timers. */
void partitions_owned_by(struct partitions *partitions, timer_fn on_timer, void *owner);
/* Nothing may be pending and no timer running. */
void partitions_fini(struct partitions *partitions);

/* Finds or makes the partition of a client (NULL: all values are missing) and of batches with these
 * skips. It is busy until the
 * caller settles it. NULL when it would need one combination of values above the limit and none has
 * been idle for PARTITION_IDLE_MIN_NS. A client without any of the values does not count, nor do
 * tenants that no key names. */
struct partition *partitions_of(struct partitions *partitions, const struct client_info *client,
                                uint32_t skips);
/* Call after partitions_of, batcher_add or batcher_cut. With nothing pending the partition becomes
 * idle: its timer must be stopped, and the caller must forget it. */
void partition_settle(struct partition *partition, bool is_due);
/* The one that has been due longest; NULL: none is. */
struct partition *partitions_due(const struct partitions *partitions);
/* Makes everything pending due. Every partition must have been settled. */
void partitions_all_due(struct partitions *partitions);
bool partitions_have_pending(const struct partitions *partitions);
