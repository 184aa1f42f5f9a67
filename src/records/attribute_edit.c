/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses, then edits one record after the other. Runs on the owner's thread. */
#include "src/records/attribute_edit.h"

#include <assert.h>

#include "src/core/batch.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/records/record_limits.h"
#include "src/records/record_match.h"

enum { SPAN_ATTRIBUTES = 9, LOG_ATTRIBUTES = 6, DATA_POINTS = 1 };

void attribute_editor_init(struct attribute_editor *editor, const struct attribute_actions *actions,
                           const struct record_matcher *include,
                           const struct record_matcher *exclude, struct budget *budget)
{
    *editor = (struct attribute_editor){.actions = actions, .include = include, .exclude = exclude};
    attribute_list_init(&editor->list, RECORD_VALUES_BYTES_MAX, budget);
}

void attribute_editor_fini(struct attribute_editor *editor)
{
    attribute_list_fini(&editor->list);
}

static void enter(void *arg, struct record_edit *edit, enum record_level level,
                  struct slice content)
{
    struct attribute_editor *editor = arg;
    const struct record_matcher *include = editor->include;
    const struct record_matcher *exclude = editor->exclude;
    if (level == RECORD_SCOPE) {
        editor->takes_scope = include == NULL || record_matcher_takes_scope(include, content);
        editor->excludes_scope = exclude != NULL && record_matcher_takes_scope(exclude, content);
        return;
    }
    if ((include != NULL && record_matcher_needs_resource(include)) ||
        (exclude != NULL && record_matcher_needs_resource(exclude)))
        record_read_head_attributes(edit, content, RESOURCE_ATTRIBUTES, &editor->list);
    else
        attribute_list_next(&editor->list);
    editor->takes_resource = include == NULL || record_matcher_takes_resource(
                                                    include, &editor->list.arena, &editor->list);
    editor->excludes_resource = exclude != NULL && record_matcher_takes_resource(
                                                       exclude, &editor->list.arena, &editor->list);
    record_list_is_whole(edit, &editor->list);
}

/* Whether the record, whose attributes are in the list, is to be edited. */
static bool chooses(struct attribute_editor *editor, struct slice content)
{
    struct arena *arena = &editor->list.arena;
    if (!editor->takes_resource || !editor->takes_scope)
        return false;
    if (editor->include != NULL &&
        !record_matcher_takes_record(editor->include, arena, content, &editor->list))
        return false;
    return editor->exclude == NULL || !editor->excludes_resource || !editor->excludes_scope ||
           !record_matcher_takes_record(editor->exclude, arena, content, &editor->list);
}

static void edit_attributes(struct attribute_editor *editor, struct record_edit *edit,
                            const struct wire_field *message, uint32_t number)
{
    attribute_actions_apply(editor->actions, edit->batch->client, &editor->list);
    if (!record_list_is_whole(edit, &editor->list) || !editor->list.has_changed)
        return;
    size_t opened = record_open(edit, message);
    record_put_attributes(edit, message->bytes, number, &editor->list);
    record_close(edit, opened, message);
}

static void edit_points(struct attribute_editor *editor, struct record_edit *edit,
                        const struct wire_field *data)
{
    uint32_t number = metric_point_attributes((enum metric_kind)data->number);
    size_t opened = record_open(edit, data);
    struct wire_reader reader = wire_reader_of(data->bytes);
    struct wire_field point;
    while (record_edit_goes_on(edit) && wire_next_field(&reader, &point)) {
        if (point.number != DATA_POINTS)
            continue;
        record_read_attributes(edit, point.bytes, number, &editor->list);
        edit_attributes(editor, edit, &point, number);
    }
    record_close(edit, opened, data);
}

static void edit_metric(struct attribute_editor *editor, struct record_edit *edit,
                        const struct wire_field *metric)
{
    size_t opened = record_open(edit, metric);
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == METRIC_GAUGE || field.number == METRIC_SUM ||
            field.number == METRIC_HISTOGRAM || field.number == METRIC_EXPONENTIAL ||
            field.number == METRIC_SUMMARY)
            edit_points(editor, edit, &field);
    record_close(edit, opened, metric);
}

static bool edit_record(void *arg, struct record_edit *edit, const struct wire_field *record)
{
    struct attribute_editor *editor = arg;
    if (edit->batch->signal == METRICS) {
        attribute_list_next(&editor->list);
        if (chooses(editor, record->bytes))
            edit_metric(editor, edit, record);
        return true;
    }
    uint32_t number = edit->batch->signal == TRACES ? SPAN_ATTRIBUTES : LOG_ATTRIBUTES;
    record_read_attributes(edit, record->bytes, number, &editor->list);
    if (record_list_is_whole(edit, &editor->list) && chooses(editor, record->bytes))
        edit_attributes(editor, edit, record, number);
    return true;
}

struct batch *attribute_editor_run(struct attribute_editor *editor, struct record_edit *edit,
                                   struct batch *batch)
{
    const struct record_visitor visitor = {.arg = editor, .enter = enter, .record = edit_record};
    struct batch *edited = record_edit_run(edit, batch, &visitor);
    attribute_list_clear(&editor->list);
    return edited;
}
