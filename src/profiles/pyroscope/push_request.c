/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through a PushRequest and reads one from JSON. Unknown fields and keys are skipped. Pure
 * functions; any thread. */
#include "src/profiles/pyroscope/push_request.h"

#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"

#include <assert.h>

/* Fields of PushRequest, RawProfileSeries, LabelPair and RawSample. */
enum {
    REQUEST_SERIES = 1,
    SERIES_LABEL = 1,
    SERIES_SAMPLE = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1,
};

static bool is_field(const struct wire_field *field, uint32_t number)
{
    return field->number == number && field->type == WIRE_BYTES;
}

bool push_request_check(struct slice request, struct push_figures *ret_figures,
                        const char **ret_reason)
{
    struct push_figures figures = {.series = 0};
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    struct wire_field inner;
    while (wire_read_field(&reader, &field)) {
        if (!is_field(&field, REQUEST_SERIES))
            continue;
        struct wire_reader series = wire_reader_of(field.bytes);
        while (wire_read_field(&series, &inner)) {
            bool is_sample = is_field(&inner, SERIES_SAMPLE);
            if (!is_sample && !is_field(&inner, SERIES_LABEL))
                continue;
            struct wire_reader leaf = wire_reader_of(inner.bytes); /* no messages in it */
            while (wire_read_field(&leaf, &field))
                continue;
            if (leaf.failure != NULL) {
                *ret_reason = leaf.failure;
                return false;
            }
            figures.profiles += is_sample;
        }
        if (series.failure != NULL) {
            *ret_reason = series.failure;
            return false;
        }
        figures.series++;
    }
    *ret_reason = reader.failure;
    if (figures.series > PUSH_SERIES_MAX || figures.profiles > PUSH_PROFILES_MAX)
        *ret_reason = "more than 4096 series or profiles in one request";
    *ret_figures = figures;
    return *ret_reason == NULL;
}

bool push_next_series(struct wire_reader *reader, struct push_series *ret_series)
{
    struct wire_field field;
    do {
        if (!wire_read_field(reader, &field))
            return false;
    } while (!is_field(&field, REQUEST_SERIES));
    struct wire_reader labels = wire_reader_of(field.bytes);
    ret_series->samples = labels;
    ret_series->labels.count = 0;
    ret_series->has_too_many_labels = false;
    while (wire_read_field(&labels, &field)) {
        if (!is_field(&field, SERIES_LABEL))
            continue;
        struct wire_reader pair = wire_reader_of(field.bytes);
        struct series_label label = {.name = {.size = 0}};
        while (wire_read_field(&pair, &field)) {
            if (is_field(&field, LABEL_NAME))
                label.name = field.bytes;
            if (is_field(&field, LABEL_VALUE))
                label.value = field.bytes;
        }
        assert(pair.failure == NULL);
        ret_series->has_too_many_labels |=
            !series_add(&ret_series->labels, label.name, label.value);
    }
    return true;
}

bool push_next_profile(struct push_series *series, struct slice *ret_profile)
{
    struct wire_field field;
    do {
        if (!wire_read_field(&series->samples, &field))
            return false;
    } while (!is_field(&field, SERIES_SAMPLE));
    struct wire_reader reader = wire_reader_of(field.bytes);
    *ret_profile = slice_of(NULL, 0);
    while (wire_read_field(&reader, &field))
        if (is_field(&field, SAMPLE_PROFILE))
            *ret_profile = field.bytes;
    return true;
}

/* ---- JSON ---- */

#define FIELD(id, proto, json, what, table)                                                        \
    [id] = {.name = (proto),                                                                       \
            .json_name = (json),                                                                   \
            .message = (table),                                                                    \
            .number = (id),                                                                        \
            .kind = (what),                                                                        \
            .wire = WIRE_BYTES,                                                                    \
            .name_size = sizeof(proto) - 1,                                                        \
            .json_name_size = sizeof(json) - 1}

static const struct otlp_message label_message = {
    .name = "LabelPair",
    .fields = {FIELD(LABEL_NAME, "name", "name", OTLP_STRING, NULL),
               FIELD(LABEL_VALUE, "value", "value", OTLP_STRING, NULL)},
};

static const struct otlp_message sample_message = {
    .name = "RawSample",
    .fields = {FIELD(SAMPLE_PROFILE, "raw_profile", "rawProfile", OTLP_WEB_BYTES, NULL)},
};

static const struct otlp_message series_message = {
    .name = "RawProfileSeries",
    .fields = {FIELD(SERIES_LABEL, "labels", "labels", OTLP_MESSAGES, &label_message),
               FIELD(SERIES_SAMPLE, "samples", "samples", OTLP_MESSAGES, &sample_message)},
};

static const struct otlp_message request_message = {
    .name = "PushRequest",
    .fields = {FIELD(REQUEST_SERIES, "series", "series", OTLP_MESSAGES, &series_message)},
};

enum push_json_verdict push_json_read(struct slice json, struct budget *budget,
                                      struct buffer **ret_request, const char **ret_reason)
{
    static _Thread_local char reason[JSON_REASON_BYTES_MAX];
    *ret_reason = reason;
    switch (json_read(&request_message, json, budget, ret_request, reason)) {
    case JSON_READ:
        return PUSH_JSON_READ;
    case JSON_MALFORMED:
        return PUSH_JSON_MALFORMED;
    case JSON_TOO_LARGE:
        return PUSH_JSON_TOO_LARGE;
    case JSON_NO_BUDGET:
    default:
        return PUSH_JSON_BUSY;
    }
}
