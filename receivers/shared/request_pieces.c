/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in pieces. Cut on the lane or its helper, offered on the lane. */
#include "receivers/shared/request_pieces.h"

#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/otlp/check.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/split.h"

#include <assert.h>
#include <stdio.h>

/* REPEATED_BYTES_RATIO: bytes of Resources and scopes that all pieces together repeat, at most, for
 * each byte of the request. */
enum {
    REPEATED_BYTES_RATIO = 4,
    EMPTY_MESSAGE_BYTES = 2, /* the shortest there are */
};

struct batch *request_batch(enum signal_kind signal, uint64_t items, struct buffer *owner,
                            struct slice message)
{
    struct batch *batch = batch_create(signal, 1);
    batch_append(batch, owner, message);
    batch->items = items;
    return batch;
}

/* The request's bytes that are not repeated, for as many messages as a piece has. */
static uint64_t dense_bytes(uint64_t bytes, uint64_t messages)
{
    return bytes * DENSE_MESSAGES_MAX / messages;
}

struct request_pieces *request_pieces_cut(enum signal_kind signal, struct buffer *owner,
                                          struct slice message, const struct otlp_figures *figures,
                                          struct budget *budget)
{
    if (figures->items == 0 || figures->messages <= DENSE_MESSAGES_MAX ||
        message.size / figures->messages >= DENSE_MESSAGE_BYTES_MAX)
        return NULL;
    struct batch *rest = request_batch(signal, figures->items, owner, message);
    /* The first piece is short: it shows what a cut repeats. */
    struct otlp_limit limit = {.bytes_max = (uint64_t)DENSE_MESSAGES_MAX * EMPTY_MESSAGE_BYTES,
                               .cuts_anywhere = true,
                               .repeats_freely = true};
    uint64_t allowance = REPEATED_BYTES_RATIO * rest->bytes;
    struct request_pieces *pieces = mem_zalloc(sizeof(*pieces));
    /* Pieces without items are left out, as requests without items are. */
    while (rest != NULL) {
        struct batch *head;
        struct batch *tail;
        otlp_split(rest, limit, budget, &head, &tail);
        if (tail != NULL) {
            uint64_t repeated = head->bytes + tail->bytes - rest->bytes;
            uint64_t own = message.size - (repeated < message.size ? repeated : message.size);
            allowance -= repeated < allowance ? repeated : allowance;
            /* The more each cut repeats, the fewer there are. */
            uint64_t cuts_max = repeated == 0 ? UINT64_MAX : allowance / repeated;
            limit.bytes_max = tail->bytes / (cuts_max + (cuts_max == 0));
            if (limit.bytes_max < dense_bytes(own, figures->messages))
                limit.bytes_max = dense_bytes(own, figures->messages);
        }
        batch_unref(rest);
        if (head->items > 0)
            request_pieces_add(pieces, head);
        else
            batch_unref(head);
        rest = tail;
    }
    return pieces;
}

void request_pieces_add(void *arg, struct batch *batch)
{
    struct request_pieces *pieces = arg;
    if (pieces->count == pieces->capacity) {
        pieces->capacity = pieces->capacity * 2 + 16;
        pieces->batches = (struct batch **)mem_resize(
            pieces->batches, pieces->capacity * sizeof(pieces->batches[0]));
    }
    pieces->batches[pieces->count++] = batch;
}

void request_pieces_free(struct request_pieces *pieces)
{
    if (pieces == NULL)
        return;
    for (size_t i = pieces->offered; i < pieces->count; i++)
        batch_unref(pieces->batches[i]);
    client_info_unref(pieces->client);
    mem_free(pieces->batches);
    mem_free(pieces);
}

/* A piece on its way to one of the pipelines. */
struct request_piece {
    struct receipt receipt;
    struct request_pieces *pieces;
    struct batch *batch; /* a reference */
    size_t pipeline;
    struct request_piece *next; /* refused after it */
};

/* The receipt may resolve from inside. */
static void offer(struct request_piece *piece, bool is_again)
{
    struct request_pieces *pieces = piece->pieces;
    pieces->under_way++;
    outlet_offer_deferred(pieces->outlet, piece->pipeline, piece->batch, &piece->receipt, is_again);
}

static void end_piece(struct request_piece *piece, const struct outcome *outcome)
{
    receipt_resolve(piece->pieces->receipt, outcome);
    batch_unref(piece->batch);
    mem_free(piece);
}

static struct request_piece *next_refused(struct request_pieces *pieces)
{
    struct request_piece *piece = pieces->refused;
    if (piece != NULL)
        pieces->refused = piece->next;
    return piece;
}

static void give_up(struct request_pieces *pieces)
{
    struct request_piece *piece;
    while ((piece = next_refused(pieces)) != NULL) {
        outlet_give_up(pieces->outlet, piece->pipeline, piece->batch, pieces->refusal.reason);
        end_piece(piece, &pieces->refusal);
    }
}

/* Waits for room once all were offered and some were refused, or ends. */
static void go_on(struct request_pieces *pieces)
{
    if (pieces->under_way > 0 || pieces->offered < pieces->count)
        return;
    if (pieces->refused != NULL && pieces->is_taken &&
        pieces->pause_ns <= REQUEST_PIECES_WAIT_NS_MAX - pieces->waited_ns) {
        lane_timer_start(pieces->lane, &pieces->turn, pieces->pause_ns);
        pieces->waited_ns += pieces->pause_ns;
        pieces->pause_ns = pieces->pause_ns < REQUEST_PIECES_WAIT_NS_FIRST
                               ? REQUEST_PIECES_WAIT_NS_FIRST
                               : 2 * pieces->pause_ns;
        return;
    }
    give_up(pieces);
    request_pieces_free(pieces);
}

static void on_outcome(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct request_piece *piece = arg;
    struct request_pieces *pieces = piece->pieces;
    assert(receipt == &piece->receipt);
    assert(pieces->under_way > 0);
    if (outcome_may_change(outcome)) {
        struct request_piece **end = &pieces->refused;
        while (*end != NULL)
            end = &(*end)->next;
        piece->next = NULL;
        *end = piece;
        snprintf(pieces->refusal_text, sizeof(pieces->refusal_text), "%s", outcome->message);
        pieces->refusal = *outcome;
        pieces->refusal.message = pieces->refusal_text;
        pieces->refusal.details = slice_of(NULL, 0);
    } else {
        pieces->is_taken |= outcome->verdict != REFUSED;
        pieces->pause_ns = DENSE_REST_NS; /* there may be room for the next one */
        end_piece(piece, outcome);
    }
    pieces->under_way--;
    go_on(pieces);
}

/* Offers the next piece to all pipelines. */
static void offer_next(struct request_pieces *pieces)
{
    struct batch *batch = pieces->batches[pieces->offered++];
    batch->client = client_info_ref(pieces->client);
    if (pieces->offered < pieces->count)
        lane_timer_start(pieces->lane, &pieces->turn, DENSE_REST_NS);
    size_t pipelines = outlet_pipelines(pieces->outlet);
    for (size_t i = 0; i < pipelines; i++) {
        struct request_piece *piece = mem_zalloc(sizeof(*piece));
        piece->pieces = pieces;
        piece->batch = batch_ref(batch);
        piece->pipeline = i;
        receipt_init(&piece->receipt, on_outcome, piece);
        offer(piece, false);
    }
    batch_unref(batch);
}

/* One piece a turn, as each may take much work. */
static void on_turn(struct timer *timer, void *arg)
{
    struct request_pieces *pieces = arg;
    assert(!timer_is_running(timer));
    pieces->under_way++; /* keeps the pieces until the offers below are made */
    if (pieces->offered < pieces->count) {
        offer_next(pieces);
    } else {
        struct request_piece *piece = next_refused(pieces);
        receipt_init(&piece->receipt, on_outcome, piece);
        offer(piece, true);
    }
    pieces->under_way--;
    go_on(pieces);
}

void request_pieces_offer(struct request_pieces *pieces, struct lane *lane, struct outlet *outlet,
                          struct client_info *client, struct receipt *receipt)
{
    assert(pieces->count > 0 && pieces->offered == 0);
    pieces->lane = lane;
    pieces->outlet = outlet;
    pieces->receipt = receipt;
    pieces->client = client_info_ref(client);
    pieces->pause_ns = REQUEST_PIECES_WAIT_NS_FIRST;
    timer_init(&pieces->turn, on_turn, pieces);
    receipt_expect(receipt, (unsigned)(pieces->count * outlet_pipelines(outlet)) - 1);
    on_turn(&pieces->turn, pieces);
}

enum budget_result request_charge(struct buffer *owner, struct slice message,
                                  const struct otlp_figures *figures)
{
    uint64_t needed =
        figures->messages * WIRE_MESSAGE_BYTES_MIN + figures->items * WIRE_ITEM_BYTES_MIN;
    if (needed <= message.size)
        return BUDGET_GIVEN;
    return buffer_try_charge(owner, (size_t)(needed - message.size));
}
