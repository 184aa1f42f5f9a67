/* SPDX-License-Identifier: Apache-2.0 */
/* What all components share. Runs on the component's lane. */
#include "src/core/component.h"

#include <assert.h>
#include <string.h>

#include "src/base/lane.h"
#include "src/base/stop_latch.h"
#include "src/core/batch.h"

unsigned component_exporters(const struct component *self, const struct batch *batch)
{
    assert(batch->skipped < self->exporters);
    return self->exporters - batch->skipped;
}

struct component *component_beside(struct component *self, const char *type)
{
    struct component *at = self;
    while (at->before != NULL)
        at = at->before;
    while (at != NULL && strcmp(at->factory->type, type) != 0)
        at = at->next;
    return at;
}

void component_consume(struct component *next, struct batch *batch, struct receipt *receipt)
{
    assert(next->lane == NULL || lane_is_current(next->lane));
    next->factory->consume(next, batch, receipt);
}

void component_stopped(struct component *self)
{
    struct stop_latch *latch = self->stopping;
    self->stopping = NULL;
    stop_latch_release(latch);
}
