/* SPDX-License-Identifier: Apache-2.0 */
/* Flushing. Runs on the owner's lane. */
#include "connectors/shared/metric_flush.h"

#include <assert.h>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

/* A request in the pipelines downstream. */
struct metric_offer {
    struct receipt receipt;
    struct metric_flush *flush;
    uint64_t points;
};

static void put_piece(void *arg);

/* Begins the next flush, if one is wanted and nothing of the last one is left. */
static void go_on(struct metric_flush *flush)
{
    if (flush->is_under_way || flush->offers > 0)
        return;
    if (!flush->is_wanted) {
        flush->idle(flush->owner);
        return;
    }
    flush->is_wanted = false;
    flush->is_under_way = true;
    flush->is_first = true;
    flush->wall_ns = clock_wall_ns();
    put_piece(flush);
}

static void on_answered(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct metric_offer *offer = arg;
    struct metric_flush *flush = offer->flush;
    assert(receipt == &offer->receipt);
    if (outcome->verdict != ACCEPTED)
        log_error(&flush->owner->logger, "failed to flush metrics",
                  log_text("error", outcome->message),
                  log_int("data_points", (int64_t)offer->points));
    mem_free(offer);
    assert(flush->offers > 0);
    flush->offers--;
    go_on(flush);
}

static void put_piece(void *arg)
{
    struct metric_flush *flush = arg;
    struct component *owner = flush->owner;
    struct batch *batch = NULL;
    assert(flush->is_under_way);
    enum metric_piece piece = flush->write(owner, flush->wall_ns, flush->is_first, &batch);
    flush->is_first = false;
    if (piece != PIECE_WRITTEN) {
        if (piece == PIECE_NO_ROOM)
            log_error(&owner->logger, "failed to flush metrics",
                      log_text("error", "the memory budget has no room for them; they are sent at "
                                        "the next flush"));
        flush->is_under_way = false;
        go_on(flush);
        return;
    }
    lane_rest(owner->lane);
    lane_defer(owner->lane, &flush->next);
    if (batch == NULL)
        return;
    struct metric_offer *offer = mem_zalloc(sizeof(*offer));
    offer->flush = flush;
    offer->points = batch->items;
    receipt_init(&offer->receipt, on_answered, offer);
    flush->offers++;
    outlet_offer(owner->outlets[METRICS], batch, &offer->receipt);
    batch_unref(batch);
}

void metric_flush_init(struct metric_flush *flush, struct component *owner,
                       enum metric_piece (*write)(struct component *, uint64_t, bool,
                                                  struct batch **),
                       void (*idle)(struct component *))
{
    *flush = (struct metric_flush){.owner = owner, .write = write, .idle = idle};
    flush->next = (struct lane_job){.fn = put_piece, .arg = flush};
}

void metric_flush_ask(struct metric_flush *flush)
{
    flush->is_wanted = true;
    go_on(flush);
}

void metric_flush_finish(struct metric_flush *flush)
{
    go_on(flush);
}
