/* SPDX-License-Identifier: Apache-2.0 */
/* explore: gives traces and profiles to the explore extension, which shows them. Never waits: what
 * the extension has no time or room for is counted there, and is delivered nevertheless. One
 * instance per lane and signal, on its lane. */
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/config/component_set.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/explore/explore_data.h"
#include "src/explore/explore_hub.h"

#include <assert.h>

/* No queue, no retries. */
struct explore_exporter_config {
    struct exporter_queue_config exporter_queue;
    const char *extension;
};

static const struct config_field explore_exporter_fields[] = {
    CONFIG_TEXT(struct explore_exporter_config, extension, "extension", "explore",
                "The explore extension that shows them."),
    CONFIG_END,
};

static const struct counter_row no_counters[] = {COUNTER_END};

static void *explore_exporter_share(const struct component *first, unsigned lanes,
                                    struct error *error)
{
    const struct explore_exporter_config *config = first->config;
    assert(lanes <= LANES_MAX);
    if (first->service == NULL ||
        first->service->extension(first->service, config->extension) == NULL) {
        error_set(error,
                  "found no extension \"%s\" among service::extensions, expected the explore "
                  "extension that shows what arrives; add it there and under extensions",
                  config->extension);
        return NULL;
    }
    return explore_hub_get(first->service, config->extension);
}

static void explore_exporter_unshare(void *shared)
{
    explore_hub_release(shared);
}

static void explore_exporter_each_counter(const struct component *self, component_counter_fn add,
                                          void *arg)
{
    static const struct component_counter row = {
        "spanflame_explore_not_kept",
        "Spans and samples that the explore page has not kept, by reason.",
    };
    struct explore_hub *hub = self->shared;
    if (!explore_hub_claim(hub, self))
        return;
    struct explore_figures figures = explore_hub_figures(hub);
    for (size_t i = 0; i < EXPLORE_LOSSES; i++)
        add(&row, &(struct component_label){"reason", explore_loss_names[i]}, 1, figures.lost[i],
            arg);
}

static bool explore_exporter_create(struct component *self, struct error *error)
{
    (void)error;
    explore_hub_claim(self->shared, self);
    return true;
}

static void explore_exporter_consume(struct component *self, struct batch *batch,
                                     struct receipt *receipt)
{
    assert(batch->signal == self->signal);
    explore_hub_offer(self->shared, lane_index(self->lane), batch);
    receipt_resolve(receipt, &outcome_accepted);
}

const struct component_factory explore_exporter_factory = {
    .type = "explore",
    .kind = EXPORTER,
    .stability = "development",
    .signals = SIGNAL_TRACES | SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct explore_exporter_config),
    .fields = explore_exporter_fields,
    .counters_size = sizeof(uint64_t), /* the counters are the hub's */
    .counters = no_counters,
    .each_counter = explore_exporter_each_counter,
    .share = explore_exporter_share,
    .unshare = explore_exporter_unshare,
    .create = explore_exporter_create,
    .consume = explore_exporter_consume,
};
