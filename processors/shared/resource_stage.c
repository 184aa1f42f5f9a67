/* SPDX-License-Identifier: Apache-2.0 */
/* A batch whose Resources were edited, told to the stage. */
#include "processors/shared/resource_stage.h"

#include <assert.h>

const struct counter_row resource_stage_rows[] = {
    EDIT_STAGE_ROWS(RESOURCE_STAGE_SIGNALS),
    COUNTER_END,
};

static struct edit_result edit(struct edit_stage *stage, enum edit_place place, struct batch *batch)
{
    /* A Resource may have millions of attributes: large requests are for the helper here, too. */
    struct resource_editor *editor = &((struct resource_stage *)stage)->editors[place];
    struct edit_result result = {.batch = resource_edit(editor, batch)};
    if (result.batch == NULL && editor->is_long)
        result.verdict = EDIT_LONG;
    else if (result.batch == NULL)
        result.verdict = resource_edit_never_fits(editor) ? EDIT_NEVER_FITS : EDIT_NO_ROOM;
    return result;
}

static const struct edit_stage_ops stage_ops = {
    .edit = edit,
    .no_room = "the memory budget has no room to edit resources",
    .never_fits = "editing the resources takes more than the whole memory budget "
                  "(service::budget_mib); send less at a time",
};

void resource_stage_init(struct resource_stage *self, const struct attribute_actions *actions,
                         const struct resource_merge *merge)
{
    for (size_t i = 0; i < EDIT_PLACES; i++)
        resource_editor_init(&self->editors[i], actions, merge, self->stage.base.budget);
    self->editors[EDIT_ON_LANE].lane = self->stage.base.lane;
    self->stage.ops = &stage_ops;
}

void resource_stage_destroy(struct component *component)
{
    struct resource_stage *self = (struct resource_stage *)component;
    assert(self->stage.helped == 0);
    for (size_t i = 0; self->stage.ops != NULL && i < EDIT_PLACES; i++)
        resource_editor_fini(&self->editors[i]);
}
