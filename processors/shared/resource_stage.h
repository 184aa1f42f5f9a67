/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that edits the Resources of every request and passes all on. A changed batch shares
 * all bytes outside its Resources with the one that arrived. */
#pragma once

#include "processors/shared/edit_stage.h"
#include "src/otlp/attributes/resource_edit.h"

#define RESOURCE_STAGE_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

/* For struct edit_stage_counters. */
extern const struct counter_row resource_stage_rows[];

/* First member of the instance. */
struct resource_stage {
    struct edit_stage stage;
    struct resource_editor editors[EDIT_PLACES];
};

/* Called by create. Either may be NULL; both outlive the stage. */
void resource_stage_init(struct resource_stage *self, const struct attribute_actions *actions,
                         const struct resource_merge *merge);
/* Slot of the factory; a stage that was not initialized is fine. */
void resource_stage_destroy(struct component *component);
