/* SPDX-License-Identifier: Apache-2.0 */
/* nop: accepts everything and sends it nowhere. One instance per lane and signal, on its lane. */
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

#include <assert.h>

/* No keys, no queue, no retries. */
struct nop_exporter_config {
    struct exporter_queue_config exporter_queue;
};

static void nop_exporter_consume(struct component *self, struct batch *batch,
                                 struct receipt *receipt)
{
    assert(batch->signal == self->signal);
    receipt_resolve(receipt, &outcome_accepted);
}

const struct component_factory nop_exporter_factory = {
    .type = "nop",
    .kind = EXPORTER,
    .stability = "beta",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct nop_exporter_config),
    .consume = nop_exporter_consume,
};
