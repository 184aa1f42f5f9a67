/* SPDX-License-Identifier: Apache-2.0 */
/* Merges requests of one signal into batches of at most a limit, and tracks which receipts depend
 * on which batch. Used by the batch processor and by sending_queue::batch. Owned by one lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/otlp/split.h"
#include "src/profiles/otlp/profile_queue.h"

struct batch;
struct budget;
struct client_info;
struct outcome;
struct receipt;

/* A pending request. Its receipt resolves once every batch that holds some of its items has an
 * outcome. */
struct batcher_entry {
    struct receipt *receipt; /* NULL: resolved already */
    uint64_t items;          /* not yet cut off */
};

struct batcher {
    enum signal_kind signal;
    struct budget *budget;         /* for the headers that splitting adds */
    struct client_info *client;    /* of the merged batches; NULL: none */
    struct batch *pending;         /* NULL: nothing. For profiles the sums alone, without parts */
    struct buffer *copies;         /* where small requests are copied to; NULL: not yet */
    struct profile_queue profiles; /* pending profiles */
    struct batcher_entry *entries;
    size_t entries_first; /* the entries before are cut off */
    size_t entries_count; /* from entries_first on */
    size_t entries_capacity;
};

/* A request, or a part of it, in a batch. */
struct export_share {
    struct receipt *receipt; /* borrowed */
    uint64_t items;
};

/* A batch to send on, and the requests that wait for it. */
struct export_batch {
    struct batch *batch; /* owned */
    size_t shares_count;
    union {
        struct export_share one;
        struct export_share *many; /* owned array, when there are more than one */
    } shares;
};

/* Takes a reference to client, which may be NULL. */
void batcher_init(struct batcher *batcher, enum signal_kind signal, struct budget *budget,
                  struct client_info *client);
/* Nothing may be pending. */
void batcher_fini(struct batcher *batcher);
uint64_t batcher_items(const struct batcher *batcher);
uint64_t batcher_bytes(const struct batcher *batcher);
/* Takes a reference to the batch; keeps the receipt (may be NULL) until export_batch_resolve. */
void batcher_add(struct batcher *batcher, struct batch *batch, struct receipt *receipt);
/* Cuts the first batch within the limit. Something must be pending. */
struct export_batch batcher_cut(struct batcher *batcher, struct otlp_limit limit);

/* The whole batch, for one receipt. Takes over the caller's reference. */
struct export_batch export_batch_of(struct batch *batch, struct receipt *receipt);
/* shares_count of them. */
const struct export_share *export_batch_shares(const struct export_batch *cut);
/* Resolves all its receipts with the outcome and frees what it owns. Nobody knows whose the items
 * are that the back-end rejected: they are the first requests', each at most what it has. */
void export_batch_resolve(struct export_batch *cut, const struct outcome *outcome);
