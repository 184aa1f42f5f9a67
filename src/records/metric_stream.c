/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of digests, so that long names are not read for each point. Runs on the owner's thread.
 */
#include "src/records/metric_stream.h"

#include "src/core/batch.h"
#include "src/records/record_limits.h"

void metric_stream_init(struct metric_stream *stream, uint64_t seed, bool uses_scope_attributes,
                        struct budget *budget)
{
    *stream = (struct metric_stream){
        .seed = seed,
        .uses_scope_attributes = uses_scope_attributes,
    };
    identity_init(&stream->identity, budget);
    attribute_list_init(&stream->list, RECORD_VALUES_BYTES_MAX, budget);
}

void metric_stream_fini(struct metric_stream *stream)
{
    identity_fini(&stream->identity);
    attribute_list_fini(&stream->list);
}

void metric_stream_clear(struct metric_stream *stream)
{
    identity_clear(&stream->identity);
    attribute_list_clear(&stream->list);
}

static struct identity_digest finish(struct metric_stream *stream)
{
    struct identity_digest digest = identity_digest(&stream->identity, 0, stream->seed);
    identity_cut(&stream->identity, 0);
    return digest;
}

void metric_stream_enter(struct metric_stream *stream, struct record_edit *edit,
                         enum record_level level, struct slice content)
{
    struct identity *identity = &stream->identity;
    if (level == RECORD_RESOURCE) {
        record_read_head_attributes(edit, content, RESOURCE_ATTRIBUTES, &stream->list);
        identity_put_attributes(identity, &stream->list);
        record_list_is_whole(edit, &stream->list);
        stream->resource = finish(stream);
        return;
    }
    struct slice texts[2] = {slice_of(NULL, 0), slice_of(NULL, 0)};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != RECORDS_HEAD)
            continue;
        struct wire_reader head = wire_reader_of(field.bytes);
        while (wire_next_field(&head, &field)) {
            if (field.number == SCOPE_NAME)
                texts[0] = field.bytes;
            if (field.number == SCOPE_VERSION)
                texts[1] = field.bytes;
        }
    }
    if (stream->uses_scope_attributes) {
        record_read_head_attributes(edit, content, SCOPE_ATTRIBUTES, &stream->list);
        identity_put_attributes(identity, &stream->list);
        record_list_is_whole(edit, &stream->list);
    }
    identity_put_text(identity, texts[0]);
    identity_put_text(identity, texts[1]);
    stream->scope = finish(stream);
}

void metric_stream_enter_metric(struct metric_stream *stream, const struct metric *metric)
{
    struct identity *identity = &stream->identity;
    identity_put_number(identity, stream->owner);
    identity_put_raw(identity, &stream->resource, sizeof(stream->resource));
    identity_put_raw(identity, &stream->scope, sizeof(stream->scope));
    identity_put_text(identity, metric->name);
    identity_put_text(identity, metric->unit);
    identity_put_number(identity, (uint64_t)metric->kind);
    identity_put_number(identity, metric->is_monotonic);
    stream->metric = finish(stream);
}

bool metric_stream_of_point(struct metric_stream *stream, struct record_edit *edit,
                            enum metric_kind kind, struct slice point, uint64_t start_ns,
                            uint64_t number, struct identity_digest *ret_key)
{
    struct identity *identity = &stream->identity;
    record_read_attributes(edit, point, metric_point_attributes(kind), &stream->list);
    identity_put_raw(identity, &stream->metric, sizeof(stream->metric));
    identity_put_number(identity, start_ns);
    identity_put_number(identity, number);
    identity_put_attributes(identity, &stream->list);
    if (identity->has_failed) {
        edit->missed_bytes = edit->batch->bytes + identity->block.bytes;
        edit->has_failed = true;
    }
    *ret_key = finish(stream);
    return record_list_is_whole(edit, &stream->list);
}
