/* SPDX-License-Identifier: Apache-2.0 */
/* forward: passes batches unchanged from one pipeline to others of the same signal: to process the
 * same telemetry in several ways, or to join pipelines into one. It keeps nothing: a request gets
 * the joined response of the pipelines downstream. One instance per lane and signal, on its lane.
 */
#include <assert.h>

#include "src/base/counter.h"
#include "src/core/batch.h"
#include "src/core/component.h"

#define FORWARDED_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

struct forward_counters {
    counter consumed[SIGNAL_KINDS];
};

static const struct counter_row forward_counters[] = {
    COUNTER_BY_SIGNAL(struct forward_counters, consumed, COUNTER_SUM,
                      "spanflame_connector_consumed_%s", FORWARDED_SIGNALS, NULL, NULL,
                      "Items passed to the connector, refused ones included."),
    COUNTER_END,
};

static void forward_count(struct component *self, const struct batch *batch)
{
    struct forward_counters *counters = self->counters;
    assert(batch->signal == self->output);
    counter_add(&counters->consumed[batch->signal], batch->items);
}

static void forward_consume(struct component *self, struct batch *batch, struct receipt *receipt)
{
    forward_count(self, batch);
    outlet_pass(self->outlets[self->output], batch, receipt);
}

const struct component_factory forward_connector_factory = {
    .type = "forward",
    .kind = CONNECTOR,
    .stability = "beta",
    .connects = {[TRACES] = SIGNAL_TRACES,
                 [METRICS] = SIGNAL_METRICS,
                 [LOGS] = SIGNAL_LOGS,
                 [PROFILES] = SIGNAL_PROFILES},
    .passes_on = true,
    .count_passed = forward_count,
    .instance_size = sizeof(struct component),
    .counters_size = sizeof(struct forward_counters),
    .counters = forward_counters,
    .consume = forward_consume,
};
