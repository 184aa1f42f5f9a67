/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers requests of one signal into larger ones and cuts them to a limit, keeping track of whose
 * receipts depend on which piece. Used by the batch processor and by sending_queue::batch. Owned by
 * one lane. */
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

/* A request in the gathering: its receipt waits until every piece that holds some of its items has
 * an answer. */
struct gather_entry {
    struct receipt *receipt; /* NULL: answered already */
    uint64_t items;          /* not yet cut off */
};

struct gather {
    enum signal_kind signal;
    struct budget *budget;         /* for the headers that splitting adds */
    struct client_info *client;    /* what the merged batches say of their senders; NULL: nothing */
    struct batch *pending;         /* NULL: nothing. Of profiles the sums alone, without parts */
    struct buffer *copies;         /* where small requests are copied to; NULL: nowhere yet */
    struct profile_queue profiles; /* where those are */
    struct gather_entry *entries;
    size_t entries_first; /* those before have been cut off */
    size_t entries_count; /* from there on */
    size_t entries_capacity;
};

/* One piece to send on, and who waits for it. */
struct piece {
    struct batch *batch; /* owned */
    size_t receipts_count;
    union {
        struct receipt *one;   /* borrowed */
        struct receipt **many; /* owned array, when there are more than one */
    } receipts;
};

/* Takes a reference to client, which may be NULL. */
void gather_init(struct gather *gather, enum signal_kind signal, struct budget *budget,
                 struct client_info *client);
/* Nothing may be pending. */
void gather_fini(struct gather *gather);
uint64_t gather_items(const struct gather *gather);
uint64_t gather_bytes(const struct gather *gather);
/* Takes a reference to the batch; keeps the receipt (may be NULL) until piece_resolve. */
void gather_add(struct gather *gather, struct batch *batch, struct receipt *receipt);
/* Cuts the first piece that keeps the limit off what is pending, which must be something. */
struct piece gather_cut(struct gather *gather, struct otlp_limit limit);

/* A batch as it is, and the one that waits for it. Takes over the caller's reference. */
struct piece piece_of(struct batch *batch, struct receipt *receipt);
/* receipts_count of them. */
struct receipt *const *piece_receipts(const struct piece *piece);
/* One outcome for all who wait for the piece; frees what the piece owns. */
void piece_resolve(struct piece *piece, const struct outcome *outcome);
