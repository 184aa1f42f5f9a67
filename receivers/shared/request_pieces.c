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

static void offer_piece(struct timer *timer, void *arg)
{
    struct request_pieces *pieces = arg;
    struct outlet *outlet = pieces->outlet;
    struct receipt *receipt = pieces->receipt;
    assert(!timer_is_running(timer));
    struct batch *piece = pieces->batches[pieces->offered++];
    piece->client = client_info_ref(pieces->client);
    if (pieces->offered == pieces->count)
        request_pieces_free(pieces);
    else
        lane_timer_start(pieces->lane, &pieces->turn, DENSE_REST_NS);
    outlet_offer(outlet, piece, receipt);
    batch_unref(piece);
}

void request_pieces_offer(struct request_pieces *pieces, struct lane *lane, struct outlet *outlet,
                          struct client_info *client, struct receipt *receipt)
{
    assert(pieces->count > 0 && pieces->offered == 0);
    pieces->lane = lane;
    pieces->outlet = outlet;
    pieces->receipt = receipt;
    pieces->client = client_info_ref(client);
    timer_init(&pieces->turn, offer_piece, pieces);
    receipt_expect(receipt, (unsigned)pieces->count - 1);
    offer_piece(&pieces->turn, pieces);
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
