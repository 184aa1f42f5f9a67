/* SPDX-License-Identifier: Apache-2.0 */
/* A request of OTLP on its way to the pipelines: whole, or, if it would block the lane as a whole
 * because it is very many short messages, in pieces, one a turn. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/base/timer.h"
#include "src/core/receipt.h"

struct batch;
struct buffer;
struct client_info;
struct lane;
struct otlp_figures;
struct outlet;
struct request_piece;

/* How long all waits of a request for room add up to, and the first one after a refusal. */
#define REQUEST_PIECES_WAIT_NS_MAX   ((uint64_t)5 * NS_PER_S)
#define REQUEST_PIECES_WAIT_NS_FIRST ((uint64_t)50 * NS_PER_MS)

enum { REQUEST_PIECES_TEXT_MAX = 256 };

struct request_pieces {
    size_t count;
    size_t offered;
    size_t capacity;
    struct batch **batches;
    /* set by request_pieces_offer */
    struct lane *lane;
    struct outlet *outlet;
    struct receipt *receipt;
    struct client_info *client; /* the request may end before the last piece is offered */
    struct timer turn;
    unsigned under_way;            /* offers that have no outcome */
    bool is_taken;                 /* at least one has been */
    struct request_piece *refused; /* for now; the longest ago first */
    struct outcome refusal;        /* the last of them */
    char refusal_text[REQUEST_PIECES_TEXT_MAX];
    uint64_t pause_ns; /* the next wait; doubles until one is taken */
    uint64_t waited_ns;
};

/* A batch of a request, or of a part of one, with one reference. */
struct batch *request_batch(enum signal_kind signal, uint64_t items, struct buffer *owner,
                            struct slice message);
/* The request, which has passed otlp_check with those figures, in pieces; NULL: it stays whole. On
 * the lane or its helper. */
struct request_pieces *request_pieces_cut(enum signal_kind signal, struct buffer *owner,
                                          struct slice message, const struct otlp_figures *figures,
                                          struct budget *budget);
/* Adds a batch, whose reference it takes, to the struct request_pieces arg, which is zeroed at
 * first. */
void request_pieces_add(void *arg, struct batch *batch);
/* Offers the first piece now and one more in each turn, even after others were refused: the
 * receipt, and so the client, gets the worst outcome. Once one has been taken, those that were
 * refused for now are offered again for up to REQUEST_PIECES_WAIT_NS_MAX: the client would send
 * all of them again. Takes the pieces. On the lane. */
void request_pieces_offer(struct request_pieces *pieces, struct lane *lane, struct outlet *outlet,
                          struct client_info *client, struct receipt *receipt);
/* For pieces that are not offered. NULL is a no-op. */
void request_pieces_free(struct request_pieces *pieces);

/* Charges what short messages take beyond their bytes when they are edited or indexed. */
enum budget_result request_charge(struct buffer *owner, struct slice message,
                                  const struct otlp_figures *figures);
