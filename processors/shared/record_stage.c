/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that record_edit has made, told to the stage. */
#include "processors/shared/record_stage.h"

#include <assert.h>

#include "src/base/limits.h"
#include "src/core/batch.h"

static struct edit_result edit(struct edit_stage *stage, enum edit_place place, struct batch *batch)
{
    struct record_stage *self = (struct record_stage *)stage;
    struct record_edit *edit = &self->edits[place];
    struct batch *edited = self->ops->run(self->editors[place], edit, batch);
    if (edited == NULL && edit->is_long)
        return (struct edit_result){.verdict = EDIT_LONG};
    if (edited == NULL)
        return (struct edit_result){.verdict = record_edit_never_fits(edit) ? EDIT_NEVER_FITS
                                                                            : EDIT_NO_ROOM};
    struct edit_result result = {.batch = edited, .dropped = batch->items - edited->items};
    if (self->ops->report != NULL)
        self->ops->report(self->editors[place], result.figures);
    /* Metrics without data points are no items, but pass. */
    bool is_emptied = edited->bytes == 0 && batch->bytes > 0;
    if (is_emptied) {
        batch_unref(edited);
        result.batch = NULL;
    }
    return result;
}

static void edited(struct edit_stage *stage, const struct edit_result *result)
{
    struct record_stage *self = (struct record_stage *)stage;
    if (self->ops->done != NULL)
        self->ops->done(self, result->figures);
}

static void dropped(struct edit_stage *stage, const struct batch *batch)
{
    struct record_stage *self = (struct record_stage *)stage;
    if (self->ops->dropped != NULL)
        self->ops->dropped(self, batch);
}

static void stopped(struct edit_stage *stage)
{
    struct record_stage *self = (struct record_stage *)stage;
    if (self->ops->stopped != NULL)
        self->ops->stopped(self);
}

static const struct edit_stage_ops stage_ops = {
    .edit = edit,
    .edited = edited,
    .dropped = dropped,
    .stopped = stopped,
    .no_room = "the memory budget has no room to edit the request",
    .never_fits = "editing the request takes more than the whole memory budget "
                  "(service::budget_mib), or makes it many times larger; send less at a time",
};

void record_stage_init(struct record_stage *self, const struct record_stage_ops *ops, void *on_lane,
                       void *on_helper)
{
    self->ops = ops;
    self->editors[EDIT_ON_LANE] = on_lane;
    self->editors[EDIT_ON_HELPER] = on_helper;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        record_edit_init(&self->edits[i], self->stage.base.budget);
    self->edits[EDIT_ON_LANE].lane = self->stage.base.lane;
    self->edits[EDIT_ON_LANE].written_max = HELPED_BYTES_MIN;
    self->stage.ops = &stage_ops;
}

void record_stage_fini(struct record_stage *self)
{
    assert(self->stage.helped == 0);
    for (size_t i = 0; self->ops != NULL && i < EDIT_PLACES; i++)
        record_edit_fini(&self->edits[i]);
}
