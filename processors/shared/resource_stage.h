/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that edits the Resources of every request and passes all on. A changed batch shares
 * all bytes outside its Resources with the one that arrived. Runs on its pipeline's lane; the
 * lane's helper edits large requests. */
#pragma once

#include "src/base/counter.h"
#include "src/core/component.h"
#include "src/otlp/attributes/resource_edit.h"

#define RESOURCE_STAGE_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

struct resource_stage_counters {
    counter incoming[SIGNAL_KINDS];
    counter outgoing[SIGNAL_KINDS];
};
extern const struct counter_row resource_stage_rows[];

/* First member of the instance. */
struct resource_stage {
    struct component base;
    bool has_editors;
    struct resource_editor editor;
    struct resource_editor helper_editor; /* for the lane's helper */
    unsigned helped;                      /* requests that are with the helper */
    bool is_stopping;
};

/* Called by create. Either may be NULL; both outlive the stage. */
void resource_stage_init(struct resource_stage *self, const struct attribute_actions *actions,
                         const struct resource_merge *merge);
/* Slots of the factory. */
void resource_stage_consume(struct component *component, struct batch *batch,
                            struct receipt *receipt);
void resource_stage_stop(struct component *component);
void resource_stage_destroy(struct component *component);
