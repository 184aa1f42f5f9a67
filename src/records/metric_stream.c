/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of digests, so that long names are not read for each point. Runs on the owner's thread.
 */
#include "src/records/metric_stream.h"

#include "src/core/batch.h"
#include "src/records/metric_values.h"
#include "src/records/record_limits.h"

void metric_stream_init(struct metric_stream *stream, uint64_t seed, bool uses_scope_attributes,
                        struct budget *budget)
{
    *stream = (struct metric_stream){
        .seed = seed,
        .uses_scope_attributes = uses_scope_attributes,
    };
    identity_init(&stream->identity, budget);
    stream->identity.may_exceed = true;
    attribute_list_init(&stream->list, RECORD_VALUES_BYTES_MAX, budget);
}

void metric_stream_fini(struct metric_stream *stream)
{
    identity_fini(&stream->identity);
    attribute_list_fini(&stream->list);
}

void metric_stream_clear(struct metric_stream *stream)
{
    struct budget *budget = stream->identity.budget;
    identity_fini(&stream->identity);
    identity_init(&stream->identity, budget);
    stream->identity.may_exceed = true;
    attribute_list_clear(&stream->list);
}

/* ---- Needs ---- */

/* While they are summed up. */
struct tally {
    uint64_t attributes; /* of the message whose attributes take most */
    uint64_t values;     /* of the data point whose values take most */
    uint64_t changes;
    uint64_t work;
};

static void tally_attributes(struct tally *tally, struct slice message, uint32_t number)
{
    if (message.size < METRIC_STREAM_SMALL_BYTES)
        return;
    uint64_t needed = identity_needs(message, number);
    if (needed > tally->attributes)
        tally->attributes = needed;
}

/* Of a Resource… or Scope… message. */
static void tally_head(struct tally *tally, const struct wire_field *head, uint32_t number)
{
    if (head->number == RECORDS_HEAD)
        tally_attributes(tally, head->bytes, number);
}

static void tally_point(struct tally *tally, enum metric_kind kind, struct slice point,
                        const struct exponential_needs *exponential)
{
    enum {
        CHANGES = 3, /* its header; numbers together; the start at its end */
        POINT_WORK = 128,
        BYTES_WORK = 2,  /* reading and writing */
        COUNTS_WORK = 8, /* the same for counts of one byte, which become words */
    };
    const bool is_exponential = kind == METRIC_EXPONENTIAL;
    uint64_t values = metric_values_bytes_max(kind, point.size, exponential->sum_bytes);
    if (values > tally->values)
        tally->values = values;
    tally->changes += CHANGES;
    tally->work += POINT_WORK + (is_exponential ? COUNTS_WORK * point.size + exponential->work
                                                : BYTES_WORK * point.size);
    tally_attributes(tally, point, metric_point_attributes(kind));
}

static void tally_metric(struct tally *tally, struct slice metric,
                         const struct exponential_needs *exponential)
{
    enum { POINTS = 1, TEMPORALITY = 2, CHANGES = 2 /* two headers */ };
    struct wire_field data;
    struct wire_field field;
    struct wire_reader reader = wire_reader_of(metric);
    while (wire_next_field(&reader, &data)) {
        const enum metric_kind kind = (enum metric_kind)data.number;
        if (data.type != WIRE_BYTES ||
            (kind != METRIC_SUM && kind != METRIC_HISTOGRAM && kind != METRIC_EXPONENTIAL))
            continue;
        tally->changes += CHANGES;
        struct wire_reader fields = wire_reader_of(data.bytes);
        while (wire_next_field(&fields, &field)) {
            tally->changes += field.number == TEMPORALITY;
            if (field.number == POINTS)
                tally_point(tally, kind, field.bytes, exponential);
        }
    }
}

void metric_stream_needs(const struct metric_stream *stream, struct slice request,
                         const struct exponential_needs *exponential,
                         struct record_needs *ret_needs)
{
    enum {
        /* While lists grow there are two of them, and one is twice the other; then the request is
         * written. */
        CHANGE_BYTES = 3 * sizeof(struct splice),
        BYTES_PART = 4,
    };
    struct wire_reader resources = wire_reader_of(request);
    struct wire_field resource;
    struct wire_field scope;
    struct wire_field field;
    struct tally tally = {.work = request.size};
    while (wire_next_field(&resources, &resource)) {
        if (resource.number != RECORDS_RESOURCES)
            continue;
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (wire_next_field(&scopes, &scope)) {
            tally_head(&tally, &scope, RESOURCE_ATTRIBUTES);
            if (scope.number != RECORDS_CHILDREN)
                continue;
            struct wire_reader fields = wire_reader_of(scope.bytes);
            while (wire_next_field(&fields, &field)) {
                if (stream->uses_scope_attributes)
                    tally_head(&tally, &field, SCOPE_ATTRIBUTES);
                if (field.number == RECORDS_CHILDREN)
                    tally_metric(&tally, field.bytes, exponential);
            }
        }
    }
    *ret_needs = (struct record_needs){
        .at_once = tally.attributes + tally.values,
        .written = BYTES_PART * request.size + CHANGE_BYTES * tally.changes,
        .work = tally.work,
    };
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
