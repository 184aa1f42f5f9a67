/* SPDX-License-Identifier: Apache-2.0 */
/* Edits resources in two steps per Resource… message: first collects the content of the Resource
 * (there may be several `resource` fields, which together are one message, anywhere); then, if the
 * actions change it, writes the message anew with the Resource first. Runs on the editor's lane. */
#include "src/otlp/attributes/resource_edit.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/batch_writer.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/rope.h"
#include "src/otlp/wire.h"

/* Resource…: 1 resource, 3 schema_url, for each of the four signals. */
enum { RESOURCES = 1, RESOURCE = 1, ATTRIBUTES = 1, SCHEMA_URL = 3 };

/* One batch while it is edited. Bytes up to `written` are in the writer, if there is one. */
struct edit {
    struct resource_editor *editor;
    struct batch *batch;
    struct batch *edited; /* NULL while nothing has changed */
    struct batch_writer writer;
    struct rope written;
    bool has_failed; /* the budget has no room */
};

/* The Resource of one Resource… message. */
struct resource {
    struct slice content;
    uint64_t fields_bytes; /* of its fields, tags and lengths included */
    unsigned fields;
    bool has_schema_url; /* the message */
};

void resource_editor_init(struct resource_editor *editor, const struct attribute_actions *actions,
                          const struct resource_merge *merge, struct budget *budget)
{
    *editor = (struct resource_editor){.actions = actions, .merge = merge, .budget = budget};
    attribute_list_init(&editor->list, EDIT_BYTES_MAX, budget);
}

void resource_editor_fini(struct resource_editor *editor)
{
    attribute_list_fini(&editor->list);
}

/* Fields of a Resource that are not attributes; writer may be NULL to only measure them. */
static size_t other_bytes(struct slice content, struct wire_writer *writer)
{
    size_t size = 0;
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number == ATTRIBUTES)
            continue;
        size += field.whole.size;
        if (writer != NULL)
            wire_write_raw(writer, field.whole);
    }
    return size;
}

static void write_up_to(struct edit *edit, const struct rope *to)
{
    assert(to->at >= edit->written.at);
    batch_writer_borrow(&edit->writer, edit->written, to->at - edit->written.at);
    edit->written = *to;
}

/* The schema URL that the message gets; empty: none. */
static struct slice new_schema_url(const struct edit *edit, const struct resource *resource)
{
    const struct resource_merge *merge = edit->editor->merge;
    return merge == NULL || resource->has_schema_url ? slice_of(NULL, 0) : merge->schema_url;
}

static void merge_attributes(struct attribute_list *list, const struct resource_merge *merge)
{
    for (size_t i = 0; i < merge->count; i++) {
        const struct attribute *attribute = &merge->attributes[i];
        if (merge->overrides || attribute_list_find(list, attribute->key) == NULL)
            attribute_list_put(list, attribute->key, attribute->value);
    }
}

/* Edits of what nobody would send again may exceed the budget: by little, or as batch_has_room
 * says. */
static bool has_room(const struct edit *edit, uint64_t bytes)
{
    const struct budget *budget = edit->editor->budget;
    const uint64_t written = edit->edited != NULL ? edit->edited->bytes : 0;
    if (!edit->editor->list.may_exceed)
        return budget_has_room(budget, bytes);
    return written + bytes <= BATCH_LATE_BYTES_FREE || batch_has_room(edit->batch, budget, bytes);
}

/* The Resource as edited, then everything else of the message. */
static void write_message(struct edit *edit, const struct rope_field *message,
                          const struct resource *resource)
{
    const struct slice schema_url = new_schema_url(edit, resource);
    size_t schema_bytes = schema_url.size > 0 ? wire_field_size(SCHEMA_URL, schema_url.size) : 0;
    struct batch_writer *writer = &edit->writer;
    assert(resource->fields_bytes <= message->content_bytes);
    size_t resource_bytes = attribute_list_bytes(&edit->editor->list, ATTRIBUTES) +
                            other_bytes(resource->content, NULL);
    uint64_t rest_bytes = message->content_bytes - resource->fields_bytes;
    if (!has_room(edit, 2 * (uint64_t)resource_bytes)) {
        edit->has_failed = true;
        edit->editor->missed_bytes += 2 * resource_bytes;
        return;
    }
    if (edit->edited == NULL) {
        edit->edited = batch_create_like(edit->batch, edit->batch->parts_count + 4);
        edit->edited->items = edit->batch->items;
        batch_writer_init(writer, edit->edited, edit->editor->budget);
    }
    write_up_to(edit, &message->begin);
    batch_writer_header(writer, RESOURCES,
                        rest_bytes + wire_field_size(RESOURCE, resource_bytes) + schema_bytes);
    batch_writer_header(writer, RESOURCE, resource_bytes);
    struct wire_writer out =
        wire_writer_of(batch_writer_room(writer, resource_bytes), resource_bytes);
    attribute_list_write(&edit->editor->list, ATTRIBUTES, &out);
    other_bytes(resource->content, &out);
    assert(!out.has_failed && out.at == out.end);
    struct rope rope = message->content;
    struct rope_field field;
    edit->written = rope;
    while (rope_read_field(&rope, message->content.at + message->content_bytes, &field)) {
        if (field.number != RESOURCE)
            continue;
        write_up_to(edit, &field.begin);
        edit->written = rope;
    }
    write_up_to(edit, &rope);
    if (schema_bytes == 0)
        return;
    out = wire_writer_of(batch_writer_room(writer, schema_bytes), schema_bytes);
    wire_write_bytes(&out, SCHEMA_URL, schema_url);
    assert(!out.has_failed && out.at == out.end);
}

static void edit_message(struct edit *edit, const struct rope_field *message)
{
    assert(message->number == RESOURCES);
    struct attribute_list *list = &edit->editor->list;
    const struct arena *arena = &list->arena;
    /* Sum up the `resource` fields; content is valid if it is one field inside one part. */
    struct resource resource = {0};
    struct rope rope = message->content;
    struct rope_field found;
    while (rope_read_field(&rope, message->content.at + message->content_bytes, &found)) {
        if (found.number == SCHEMA_URL)
            resource.has_schema_url = found.content_bytes > 0;
        if (found.number != RESOURCE)
            continue;
        resource.fields_bytes += found.size;
        resource.fields++;
        resource.content = rope_contiguous(&found.content, found.content_bytes);
        if (resource.content.size < found.content_bytes)
            resource.fields++; /* in two pieces, to be joined as well */
    }
    attribute_list_clear(list);
    bool has_content = resource.fields <= 1;
    if (!has_content) {
        /* Join all contents, if there is memory. */
        uint8_t *joined = arena_try_alloc(&list->arena, (size_t)resource.fields_bytes);
        size_t used = 0;
        has_content = joined != NULL;
        rope = message->content;
        while (has_content &&
               rope_read_field(&rope, message->content.at + message->content_bytes, &found)) {
            if (found.number != RESOURCE)
                continue;
            rope_copy(found.content, found.content_bytes, joined + used);
            used += found.content_bytes;
        }
        resource.content = slice_of(joined, used);
    }
    if (has_content) {
        struct wire_reader reader = wire_reader_of(resource.content);
        struct wire_field field;
        while (wire_read_field(&reader, &field))
            if (field.number == ATTRIBUTES)
                attribute_list_add(list, field.bytes);
        assert(reader.failure == NULL);
        if (edit->editor->actions != NULL)
            attribute_actions_apply(edit->editor->actions, edit->batch->client, list);
        if (edit->editor->merge != NULL)
            merge_attributes(list, edit->editor->merge);
    }
    /* Values beyond the arena's own limit stay unchanged; that is no failure. */
    edit->has_failed = list->has_failed || (arena->budget != NULL && arena->refused_bytes > 0 &&
                                            arena->refused_bytes <= arena->max_bytes);
    bool changes = list->has_changed || new_schema_url(edit, &resource).size > 0;
    if (has_content && changes && !edit->has_failed)
        write_message(edit, message, &resource);
}

static bool gives_up(const struct resource_editor *editor, uint64_t messages)
{
    enum { MESSAGES_PER_LOOK = 64 };
    return editor->lane != NULL && messages % MESSAGES_PER_LOOK == 0 &&
           lane_held_ns(editor->lane) >= LANE_EDIT_NS;
}

struct batch *resource_edit(struct resource_editor *editor, struct batch *batch)
{
    struct edit edit = {.editor = editor, .batch = batch, .written = rope_of(batch)};
    struct rope rope = rope_of(batch);
    struct rope_field field;
    uint64_t messages = 0;
    editor->missed_bytes = 0;
    editor->is_long = false;
    /* A refusal for good would lose such a batch; while too much is taken already, it waits. */
    editor->list.may_exceed = batch_may_exceed(batch);
    editor->list.free_bytes = BATCH_LATE_BYTES_FREE;
    editor->list.arena.budget = editor->list.may_exceed ? NULL : editor->budget;
    if (editor->list.may_exceed && budget_is_overdrawn(editor->budget))
        return NULL;
    while (!edit.has_failed && rope_read_field(&rope, batch->bytes, &field)) {
        if (field.number == RESOURCES)
            edit_message(&edit, &field);
        if (!edit.has_failed && gives_up(editor, ++messages))
            edit.has_failed = editor->is_long = true;
    }
    editor->missed_bytes += batch->parts_count > 0 ? buffer_charge(batch->parts[0].owner) : 0;
    attribute_list_clear(&editor->list);
    if (edit.edited == NULL)
        return edit.has_failed ? NULL : batch_ref(batch);
    if (!edit.has_failed)
        write_up_to(&edit, &rope);
    batch_writer_fini(&edit.writer);
    if (!edit.has_failed)
        return edit.edited;
    editor->missed_bytes += edit.edited->bytes;
    batch_unref(edit.edited);
    return NULL;
}

bool resource_edit_never_fits(const struct resource_editor *editor)
{
    return editor->missed_bytes > budget_room_max(editor->budget, editor->list.may_exceed);
}
