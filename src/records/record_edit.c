/* SPDX-License-Identifier: Apache-2.0 */
/* The walk, and changes as splices. Work in proportion to the bytes. Runs on the owner's thread. */
#include "src/records/record_edit.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/batch_writer.h"
#include "src/records/record_limits.h"

void record_edit_init(struct record_edit *edit, struct budget *budget)
{
    *edit = (struct record_edit){.budget = budget, .written_max = UINT64_MAX};
    splice_list_init(&edit->splices, budget);
}

void record_edit_fini(struct record_edit *edit)
{
    splice_list_fini(&edit->splices);
}

/* Where a slice of the request lies in it. */
static uint64_t place_of(const struct record_edit *edit, const uint8_t *at)
{
    struct slice bytes = edit->whole->parts[0].bytes;
    assert(at >= bytes.data && at <= bytes.data + bytes.size);
    return (uint64_t)(at - bytes.data);
}

/* By the splices so far. */
static uint64_t held_bytes(const struct record_edit *edit)
{
    const struct splice_list *splices = &edit->splices;
    return splices->capacity * sizeof(splices->items[0]) + splices->inserts.capacity;
}

/* Whether an edit that may exceed the budget may take so much. */
static bool may_take(const struct record_edit *edit, uint64_t needed)
{
    /* What was expected is reserved. Small changes always go on. */
    return edit->expected_bytes > 0 || needed <= BATCH_LATE_BYTES_FREE ||
           batch_has_room(edit->batch, edit->budget, needed);
}

/* How much of the batch is copied: all of it, at most, or what lies between changes. */
static uint64_t copied_bytes(const struct record_edit *edit)
{
    enum { CHANGES_MORE = 3 }; /* than there are: those at hand, and the end */
    const uint64_t between = (edit->splices.count + CHANGES_MORE) * BATCH_WRITER_BORROWED_MIN;
    return edit->may_exceed && between < edit->batch->bytes ? between : edit->batch->bytes;
}

/* For `bytes` new bytes now, and for the request that gets them at the end. */
static bool has_room(struct record_edit *edit, size_t bytes)
{
    if (edit->has_failed)
        return false;
    uint64_t changed = edit->splices.inserts.size + bytes;
    if (edit->batch->bytes + changed > RECORD_REQUEST_BYTES_MAX) {
        edit->missed_bytes = UINT64_MAX;
        edit->has_failed = true;
        return false;
    }
    uint64_t needed = splice_list_growth(&edit->splices, 3, bytes) + changed + copied_bytes(edit);
    if (edit->may_exceed ? may_take(edit, needed) : budget_has_room(edit->budget, needed))
        return true;
    edit->missed_bytes = needed + edit->batch->bytes + held_bytes(edit);
    edit->has_failed = true;
    return false;
}

bool record_edit_has_room(const struct record_edit *edit, size_t changes, uint64_t bytes)
{
    const struct splice_list *splices = &edit->splices;
    uint64_t changed = splices->inserts.size + bytes;
    /* Small changes that nobody asks about come to no more than the request has bytes. */
    if (2 * edit->batch->bytes + changed > RECORD_REQUEST_BYTES_MAX)
        return false;
    uint64_t needed = splice_list_growth(splices, changes, bytes) + changed + edit->batch->bytes;
    return held_bytes(edit) + needed <= edit->expected_bytes ||
           batch_has_room(edit->batch, edit->budget, needed);
}

size_t record_open(struct record_edit *edit, const struct wire_field *message)
{
    return splice_open(&edit->splices, place_of(edit, message->whole.data),
                       place_of(edit, message->whole.data + message->whole.size) -
                           message->bytes.size);
}

void record_close(struct record_edit *edit, size_t opened, const struct wire_field *message)
{
    splice_close(&edit->splices, opened, message->number, message->bytes.size);
}

void record_drop(struct record_edit *edit, size_t opened, const struct wire_field *message)
{
    splice_rewind(&edit->splices, opened);
    record_remove(edit, message->whole);
}

void record_forget(struct record_edit *edit, size_t opened)
{
    splice_rewind(&edit->splices, opened);
}

void record_remove(struct record_edit *edit, struct slice old)
{
    if (old.size > 0 && has_room(edit, 0))
        splice_add_from(&edit->splices, place_of(edit, old.data), old.size,
                        edit->splices.inserts.size);
}

uint8_t *record_replace(struct record_edit *edit, struct slice old, size_t bytes)
{
    struct profile_bytes *inserts = &edit->splices.inserts;
    size_t begin = inserts->size;
    if (!has_room(edit, bytes))
        return NULL;
    uint8_t *room = profile_bytes_room(inserts, bytes);
    inserts->size += bytes;
    splice_add_from(&edit->splices, place_of(edit, old.data), old.size, begin);
    return room;
}

void record_put_number(struct record_edit *edit, struct slice old, uint32_t number, uint64_t value)
{
    size_t size = wire_varint_size(wire_tag(number, WIRE_VARINT)) + wire_varint_size(value);
    uint8_t *room = record_replace(edit, old, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_number(&writer, number, value);
    assert(!writer.has_failed && writer.at == writer.end);
}

void record_put_fixed64(struct record_edit *edit, struct slice old, uint32_t number, uint64_t value)
{
    size_t size = wire_varint_size(wire_tag(number, WIRE_FIXED64)) + sizeof(value);
    uint8_t *room = record_replace(edit, old, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    wire_write_fixed64(&writer, number, value);
    assert(!writer.has_failed && writer.at == writer.end);
}

static void put_value(struct record_edit *edit, struct slice old, const struct record_value *value)
{
    if (value->kind == RECORD_GONE) {
        record_remove(edit, old);
    } else if (value->kind == RECORD_FIXED64) {
        record_put_fixed64(edit, old, value->number, value->bits);
    } else if (value->kind == RECORD_VARINT) {
        record_put_number(edit, old, value->number, value->bits);
    } else {
        size_t size = wire_field_size(value->number, value->bytes.size);
        uint8_t *room = record_replace(edit, old, size);
        if (room == NULL)
            return;
        struct wire_writer writer = wire_writer_of(room, size);
        wire_write_bytes(&writer, value->number, value->bytes);
        assert(!writer.has_failed && writer.at == writer.end);
    }
}

void record_put_values(struct record_edit *edit, struct slice content,
                       const struct record_value *values, size_t count)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint32_t put = 0; /* bits of the values */
    assert(count <= RECORD_VALUES_MAX);
    while (!edit->has_failed && wire_next_field(&reader, &field)) {
        size_t i = 0;
        while (i < count && values[i].number != field.number)
            i++;
        if (i == count)
            continue;
        if ((put >> i & 1) != 0)
            record_remove(edit, field.whole);
        else
            put_value(edit, field.whole, &values[i]);
        put |= UINT32_C(1) << i;
    }
    for (size_t i = 0; i < count; i++)
        if ((put >> i & 1) == 0)
            put_value(edit, slice_of(content.data + content.size, 0), &values[i]);
}

void record_replace_attributes(struct record_edit *edit, struct slice old, uint32_t number,
                               const struct attribute_list *list)
{
    size_t size = attribute_list_bytes(list, number);
    uint8_t *room = record_replace(edit, old, size);
    if (room == NULL)
        return;
    struct wire_writer writer = wire_writer_of(room, size);
    attribute_list_write(list, number, &writer);
    assert(!writer.has_failed && writer.at == writer.end);
}

void record_put_attributes(struct record_edit *edit, struct slice content, uint32_t number,
                           const struct attribute_list *list)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    bool is_put = false;
    if (!list->has_changed || edit->has_failed)
        return;
    while (wire_next_field(&reader, &field)) {
        if (field.number != number)
            continue;
        if (is_put)
            record_remove(edit, field.whole);
        else
            record_replace_attributes(edit, field.whole, number, list);
        is_put = true;
    }
    assert(reader.failure == NULL);
    if (!is_put)
        record_replace_attributes(edit, slice_of(content.data + content.size, 0), number, list);
}

static void add_attributes(struct slice content, uint32_t number, struct attribute_list *list)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == number)
            attribute_list_add(list, field.bytes);
    assert(reader.failure == NULL);
}

void record_read_attributes(struct record_edit *edit, struct slice content, uint32_t number,
                            struct attribute_list *list)
{
    list->may_exceed = edit->may_exceed;
    list->free_bytes = edit->expected_bytes > 0 ? UINT64_MAX : BATCH_LATE_BYTES_FREE;
    list->arena.may_exceed = edit->may_exceed;
    attribute_list_next(list);
    add_attributes(content, number, list);
}

void record_read_head_attributes(struct record_edit *edit, struct slice content, uint32_t number,
                                 struct attribute_list *list)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    record_read_attributes(edit, slice_of(NULL, 0), number, list);
    while (wire_next_field(&reader, &field))
        if (field.number == RECORDS_HEAD)
            add_attributes(field.bytes, number, list);
    assert(reader.failure == NULL);
}

bool record_list_is_whole(struct record_edit *edit, const struct attribute_list *list)
{
    const struct arena *arena = &list->arena;
    /* Values beyond the arena's own limit stay unchanged; that is no failure. */
    if (list->has_failed || (arena->budget != NULL && arena->refused_bytes > 0 &&
                             arena->refused_bytes <= arena->max_bytes)) {
        /* While it grows there are two of it, and one is twice the other. */
        const size_t lists = list->has_failed ? 3 * list->capacity : list->capacity;
        edit->missed_bytes = edit->batch->bytes + held_bytes(edit) +
                             lists * sizeof(struct attribute) + arena->refused_bytes;
        edit->has_failed = true;
    }
    return !edit->has_failed;
}

enum { STEP_BYTES = 64 };

static bool walk_on(struct record_edit *edit, size_t steps)
{
    enum { STEPS_PER_LOOK = 64 };
    if (!edit->may_give_up || edit->has_failed)
        return !edit->has_failed;
    edit->steps += steps;
    if (edit->steps < STEPS_PER_LOOK)
        return true;
    edit->steps = 0;
    edit->is_long = edit->has_failed = lane_held_ns(edit->lane) >= LANE_EDIT_NS;
    return !edit->has_failed;
}

bool record_edit_goes_on(struct record_edit *edit)
{
    return walk_on(edit, 1);
}

bool record_edit_rereads(struct record_edit *edit, uint64_t bytes)
{
    edit->reread_bytes += bytes;
    if (edit->reread_bytes > RECORD_REREAD_BYTES_MIN &&
        (edit->reread_bytes - RECORD_REREAD_BYTES_MIN) / RECORD_REREAD_FACTOR_MAX >
            edit->batch->bytes &&
        !edit->has_failed) {
        edit->missed_bytes = UINT64_MAX;
        edit->has_failed = true;
    }
    return walk_on(edit, 1 + (size_t)(bytes / STEP_BYTES));
}

bool record_edit_goes_into(struct record_edit *edit, struct slice text)
{
    if (edit->may_give_up && !edit->has_failed && text.size > RECORD_LANE_TEXT_BYTES_MAX)
        edit->is_long = edit->has_failed = true;
    return walk_on(edit, text.size / STEP_BYTES);
}

/* False: it is left out. */
static bool visit_message(struct record_edit *edit, const struct record_visitor *visitor,
                          enum record_level level, const struct wire_field *message)
{
    size_t opened = record_open(edit, message);
    struct wire_reader reader = wire_reader_of(message->bytes);
    struct wire_field field;
    bool has_children = false;
    if (visitor->enter != NULL)
        visitor->enter(visitor->arg, edit, level, message->bytes);
    if (visitor->takes != NULL && !visitor->takes(visitor->arg, edit, level, message->bytes)) {
        record_drop(edit, opened, message);
        return false;
    }
    while (record_edit_goes_on(edit) && wire_next_field(&reader, &field)) {
        if (field.number == RECORDS_HEAD && visitor->head != NULL) {
            visitor->head(visitor->arg, edit, level, &field);
        } else if (field.number == RECORDS_CHILDREN) {
            /* Recursion of depth two. */
            if (level == RECORD_RESOURCE)
                has_children |= visit_message(edit, visitor, RECORD_SCOPE, &field);
            else if (visitor->record(visitor->arg, edit, &field))
                has_children = true;
            else
                record_remove(edit, field.whole);
        }
    }
    assert(reader.failure == NULL);
    if (!has_children && visitor->drops_empty) {
        record_drop(edit, opened, message);
        return false;
    }
    record_close(edit, opened, message);
    return true;
}

bool record_edit_begin(struct record_edit *edit, struct batch *batch)
{
    assert(batch->signal != PROFILES);
    edit->batch = batch;
    edit->dropped = 0;
    edit->may_exceed = batch_may_exceed(batch);
    edit->is_long = edit->may_give_up = false;
    edit->reread_bytes = 0;
    edit->has_failed = edit->may_exceed && budget_is_overdrawn(edit->budget);
    edit->missed_bytes = 0;
    if (edit->has_failed)
        return false;
    if (batch->parts_count > 1 && !batch_has_room(batch, edit->budget, batch->bytes)) {
        edit->missed_bytes = 2 * batch->bytes;
        edit->has_failed = true;
        return false;
    }
    if (batch->bytes > 0)
        edit->whole = batch_in_one_part(batch, edit->budget);
    return true;
}

void record_edit_end(struct record_edit *edit)
{
    splice_list_forget(&edit->splices);
    batch_unref(edit->whole);
    edit->whole = NULL;
}

/* Walks, and ends the edit that has begun. */
static struct batch *walk(struct record_edit *edit, struct batch *batch,
                          const struct record_visitor *visitor)
{
    struct wire_field field;
    struct wire_reader reader = wire_reader_of(edit->whole->parts[0].bytes);
    while (record_edit_goes_on(edit) && wire_next_field(&reader, &field))
        if (field.number == RECORDS_RESOURCES)
            visit_message(edit, visitor, RECORD_RESOURCE, &field);
    assert(reader.failure == NULL);
    struct batch *edited = NULL;
    if (!edit->has_failed && edit->splices.count == 0) {
        edited = batch_ref(batch);
    } else if (!edit->has_failed) {
        edited = splice_apply(&edit->splices, batch, edit->budget);
        assert(edit->dropped <= edited->items);
        edited->items -= edit->dropped;
    }
    record_edit_end(edit);
    return edited;
}

struct batch *record_edit_run(struct record_edit *edit, struct batch *batch,
                              const struct record_visitor *visitor)
{
    if (!record_edit_begin(edit, batch))
        return NULL;
    if (batch->bytes == 0)
        return batch_ref(batch);
    edit->may_give_up = edit->lane != NULL;
    return walk(edit, batch, visitor);
}

/* A batch that may go beyond the budget does so by what is expected of it. */
static bool reserve_needs(struct record_edit *edit, const struct record_needs *needs,
                          struct budget_reserve *reserve)
{
    const uint64_t needed = needs->at_once + needs->written;
    if (!edit->may_exceed) {
        if (budget_reserve(reserve, edit->budget, needed) == BUDGET_GIVEN)
            return true;
        edit->missed_bytes = needed + edit->batch->bytes;
        edit->has_failed = true;
        return false;
    }
    budget_begin_late();
    const bool is_given = budget_reserve(reserve, edit->budget, needed) == BUDGET_GIVEN;
    budget_end_late();
    if (is_given)
        return true;
    if (needed <= BATCH_LATE_BYTES_FREE || batch_has_room(edit->batch, edit->budget, needed))
        return budget_reserve(reserve, NULL, 0) == BUDGET_GIVEN;
    edit->missed_bytes = needed + edit->batch->bytes;
    edit->has_failed = true;
    return false;
}

struct batch *record_edit_run_on(struct record_edit *edit, struct batch *batch,
                                 const struct record_visitor *visitor)
{
    struct record_needs needs = {.at_once = 0};
    struct budget_reserve reserve;
    if (!record_edit_begin(edit, batch))
        return NULL;
    if (batch->bytes == 0)
        return batch_ref(batch);
    visitor->needs(visitor->arg, edit->whole->parts[0].bytes, &needs);
    if (needs.work > edit->written_max)
        edit->is_long = edit->has_failed = true;
    if (edit->is_long || !reserve_needs(edit, &needs, &reserve)) {
        record_edit_end(edit);
        return NULL;
    }
    edit->expected_bytes = needs.written;
    edit->may_exceed = true;
    struct batch *edited = walk(edit, batch, visitor);
    budget_release(&reserve);
    return edited;
}

bool record_may_grow(const struct batch *batch, uint64_t bytes)
{
    return bytes <= RECORD_GROUPED_BYTES_MIN || bytes / RECORD_GROUPED_GROWTH_MAX <= batch->bytes;
}

bool record_edit_never_fits(const struct record_edit *edit)
{
    return edit->has_failed && edit->missed_bytes > budget_room_max(edit->budget, edit->may_exceed);
}
