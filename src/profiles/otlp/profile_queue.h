/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of profiles that wait to be merged and cut into requests within a limit. Remembers from
 * one cut to the next what has been taken from a batch, so that a large one is read once. One
 * owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/otlp/split.h"
#include "src/profiles/otlp/profile_merge.h"

struct batch;
struct budget;
struct buffer;

struct profile_queue {
    struct budget *budget;
    struct batch **batches; /* references, oldest first; [first, count) */
    size_t first;
    size_t count;
    size_t capacity;
    bool is_merging; /* merge is in use */
    bool is_open;    /* source is in use; it reads the first batch */
    struct profile_merge merge;
    struct profile_source source;
    struct buffer *joined; /* the first batch as one buffer, when it has several parts */
};

void profile_queue_init(struct profile_queue *queue, struct budget *budget);
/* Drops what is still in it. */
void profile_queue_fini(struct profile_queue *queue);
/* Takes a reference. */
void profile_queue_add(struct profile_queue *queue, struct batch *batch);
/* Returns a new batch, like model, with what comes first and is within the limit. *ret_is_last:
 * nothing is left. The queue may not be empty. */
struct batch *profile_queue_cut(struct profile_queue *queue, const struct batch *model,
                                struct otlp_limit limit, bool *ret_is_last);
