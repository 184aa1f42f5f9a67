/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what is changed and pending in the records of a metric, when a function asks for it. Runs
 * on the processor's thread. */
#include "src/ottl/ottl_rewrite.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_context_metrics.h"
#include "src/ottl/ottl_record.h"

void ottl_rewrite_init(struct ottl_rewrite *rewrite, struct budget *budget)
{
    *rewrite = (struct ottl_rewrite){.is_rewritten = false};
    ottl_edits_init(&rewrite->edits, budget);
}

void ottl_rewrite_fini(struct ottl_rewrite *rewrite)
{
    scratch_fini(&rewrite->appended, rewrite->edits.budget);
    ottl_edits_fini(&rewrite->edits);
}

void ottl_rewrite_begin(struct ottl_rewrite *rewrite, uint64_t batch_bytes)
{
    scratch_fini(&rewrite->appended, rewrite->edits.budget);
    ottl_edits_clear(&rewrite->edits);
    rewrite->appended_bytes = 0;
    rewrite->left_bytes = OTTL_APPENDED_BYTES_MIN + OTTL_APPENDED_FACTOR_MAX * batch_bytes;
}

void ottl_edits_reuse(struct ottl_edits *edits)
{
    ottl_edits_cut(edits, 0, 0);
    edits->used_bytes = 0;
    edits->is_unsorted = false;
    edits->are_messages_unsorted = false;
}

bool ottl_rewrite_apply(struct ottl_edits *edits, struct slice content, struct ottl_memory *memory,
                        struct slice *ret)
{
    struct batch whole = {.signal = METRICS, .parts_count = 1, .bytes = content.size};
    if (edits->has_failed)
        return false;
    struct buffer *copy = buffer_try_create(edits->budget, content.size);
    if (copy == NULL) {
        edits->refused_bytes = content.size;
        return false;
    }
    if (content.size > 0)
        memcpy(copy->data, content.data, content.size);
    copy->size = content.size;
    whole.parts = &whole.first_part;
    whole.first_part = (struct batch_part){.owner = copy, .bytes = buffer_slice(copy)};
    struct batch *edited = ottl_edits_apply(edits, &whole, edits->budget);
    uint8_t *room = edited != NULL ? ottl_memory_room(memory, (size_t)edited->bytes) : NULL;
    if (room != NULL) {
        *ret = slice_of(room, (size_t)edited->bytes);
        for (size_t i = 0; i < edited->parts_count; i++) {
            const struct slice part = edited->parts[i].bytes;
            if (part.size > 0)
                memcpy(room, part.data, part.size);
            room += part.size;
        }
    }
    bool is_written = room != NULL;
    if (!is_written)
        edits->refused_bytes += content.size + (edited != NULL ? (size_t)edited->bytes : 0);
    batch_unref(edited);
    buffer_unref(copy);
    return is_written;
}

void ottl_metric_open_data(struct ottl_run *run)
{
    const struct ottl_record *metric = run->records[OTTL_METRIC];
    struct ottl_record *data = run->records[OTTL_METRIC_DATA];
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field field;
    ottl_record_open(data);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || ottl_metric_data_of(field.number) == OTTL_NO_DATA)
            continue;
        ottl_record_borrow(data, field.bytes, 0,
                           metric->at + (uint64_t)(field.bytes.data - metric->bytes.data));
        data->kind = (uint8_t)ottl_metric_data_of(field.number);
    }
}

/* Notes the changes of both records by places in the metric's content. */
static bool note_changes(struct ottl_edits *edits, struct ottl_record *metric,
                         struct ottl_record *data)
{
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field field;
    if (ottl_record_has_changed(data)) {
        while (wire_next_field(&reader, &field)) {
            if (field.bytes.data != data->bytes.data || field.bytes.size != data->bytes.size ||
                field.type != WIRE_BYTES || ottl_metric_data_of(field.number) == OTTL_NO_DATA)
                continue;
            ottl_edits_add_message(edits, (uint64_t)(field.whole.data - metric->bytes.data),
                                   (uint64_t)(field.bytes.data - metric->bytes.data),
                                   field.bytes.size, field.number);
        }
        if (!ottl_record_finish(data, edits))
            return false;
    }
    return !ottl_record_has_changed(metric) || ottl_record_finish(metric, edits);
}

bool ottl_metric_current(struct ottl_run *run, struct slice *ret_metric)
{
    struct ottl_edits *edits = &run->rewrite->edits;
    struct ottl_record *metric = run->records[OTTL_METRIC];
    struct ottl_record *data = run->records[OTTL_METRIC_DATA];
    const uint64_t metric_at = metric->at;
    const uint64_t data_at = data->at;
    *ret_metric = metric->bytes;
    if (!ottl_record_has_changed(metric) && !ottl_record_has_changed(data))
        return true;
    ottl_edits_reuse(edits);
    metric->at = 0;
    data->at = data_at - metric_at;
    bool is_written = note_changes(edits, metric, data) &&
                      ottl_rewrite_apply(edits, metric->bytes, run->memory, ret_metric);
    metric->at = metric_at;
    data->at = data_at;
    return is_written || ottl_run_no_memory(run);
}

void ottl_metric_replace(struct ottl_run *run, struct slice metric)
{
    struct ottl_record *record = run->records[OTTL_METRIC];
    ottl_record_reopen(record);
    ottl_record_borrow(record, metric, 0, 0);
    ottl_metric_open_data(run);
    run->rewrite->is_rewritten = true;
}

bool ottl_metric_append(struct ottl_run *run, struct slice metric)
{
    struct ottl_rewrite *rewrite = run->rewrite;
    const uint64_t size = metric.size;
    const size_t padded =
        (metric.size + OTTL_APPENDED_ALIGNMENT - 1) & ~(size_t)(OTTL_APPENDED_ALIGNMENT - 1);
    if (sizeof(size) + padded > rewrite->left_bytes)
        return ottl_run_fail(run, "the statements append more than %d times the request",
                             OTTL_APPENDED_FACTOR_MAX);
    uint8_t *room = scratch_room(&rewrite->appended, rewrite->edits.budget,
                                 rewrite->appended_bytes + sizeof(size) + padded);
    if (room == NULL)
        return ottl_run_no_budget(run, 2 * (rewrite->appended_bytes + sizeof(size) + padded));
    room += rewrite->appended_bytes;
    memcpy(room, &size, sizeof(size));
    if (metric.size > 0)
        memcpy(room + sizeof(size), metric.data, metric.size);
    rewrite->appended_bytes += sizeof(size) + padded;
    rewrite->left_bytes -= sizeof(size) + padded;
    return true;
}

const struct ottl_made *ottl_metric_made(struct ottl_run *run, const void *statement)
{
    struct ottl_rewrite *rewrite = run->rewrite;
    const uint64_t generations =
        run->records[OTTL_METRIC]->generation + run->records[OTTL_METRIC_DATA]->generation;
    if (rewrite->made_generations != generations)
        rewrite->made = NULL;
    rewrite->made_generations = generations;
    const struct ottl_made *made = rewrite->made;
    while (made != NULL && made->statement != statement)
        made = made->next;
    return made;
}

bool ottl_metric_keep(struct ottl_run *run, const void *statement, struct slice metric)
{
    struct ottl_memory *memory = &run->records[OTTL_METRIC]->memory;
    struct ottl_made *made = ottl_memory_room(memory, sizeof(*made));
    uint8_t *bytes = made != NULL ? ottl_memory_room(memory, metric.size) : NULL;
    if (bytes == NULL)
        return ottl_run_no_memory(run);
    *made = (struct ottl_made){.statement = statement, .next = run->rewrite->made};
    if (metric.data != NULL) {
        memcpy(bytes, metric.data, metric.size);
        made->bytes = slice_of(bytes, metric.size);
    }
    run->rewrite->made = made;
    return true;
}
