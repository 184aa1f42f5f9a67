/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of profiles that wait to be merged, and are cut into requests that keep a limit. What has
 * been taken from a batch is remembered from one cut to the next, so that a large one is read once.
 * One owner, one thread at a time. */
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
    struct batch **batches; /* references, oldest first; those before `first` are gone */
    size_t first;
    size_t count;
    size_t capacity;
    bool is_merging; /* merge is in use */
    bool is_open;    /* so is source, which reads the first batch */
    struct profile_merge merge;
    struct profile_source source;
    struct buffer *joined; /* the first batch in one piece, when it has several parts */
};

void profile_queue_init(struct profile_queue *queue, struct budget *budget);
/* Forgets what is still in it. */
void profile_queue_fini(struct profile_queue *queue);
/* Takes a reference. */
void profile_queue_add(struct profile_queue *queue, struct batch *batch);
/* A new batch, like model, with what comes first and keeps the limit. *ret_is_last: nothing is
 * left. The queue may not be empty. */
struct batch *profile_queue_cut(struct profile_queue *queue, const struct batch *model,
                                struct otlp_limit limit, bool *ret_is_last);
