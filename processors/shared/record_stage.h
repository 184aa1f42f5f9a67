/* SPDX-License-Identifier: Apache-2.0 */
/* A processor that edits records, or leaves some out, by src/records. */
#pragma once

#include "processors/shared/edit_stage.h"
#include "src/records/record_edit.h"

struct record_stage;

struct record_stage_ops {
    /* As record_edit_run, with the owner's editor for this place. */
    struct batch *(*run)(void *editor, struct record_edit *edit, struct batch *batch);
    /* After it, on the same thread: what the editor has counted in the request. NULL: nothing. */
    void (*report)(const void *editor, uint64_t figures[EDIT_FIGURES_MAX]);
    /* On the lane, after each request that is not refused, with those figures. NULL: nothing. */
    void (*done)(struct record_stage *stage, const uint64_t figures[EDIT_FIGURES_MAX]);
    /* On the lane, when items were dropped for good. NULL: nothing. */
    void (*dropped)(struct record_stage *stage, const struct batch *dropped);
    /* On the lane, after the last request, before the stage has stopped. NULL: nothing. */
    void (*stopped)(struct record_stage *stage);
};

/* First member of the instance. */
struct record_stage {
    struct edit_stage stage;
    const struct record_stage_ops *ops;
    void *editors[EDIT_PLACES];
    struct record_edit edits[EDIT_PLACES];
};

/* Called by create. The editors are the owner's and outlive the stage's destroy. */
void record_stage_init(struct record_stage *self, const struct record_stage_ops *ops, void *on_lane,
                       void *on_helper);
/* Called by destroy; a stage that was not initialized is fine. */
void record_stage_fini(struct record_stage *self);
