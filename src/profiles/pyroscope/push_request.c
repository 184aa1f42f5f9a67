/* SPDX-License-Identifier: Apache-2.0 */
/* The walk through a PushRequest. Fields that are not ours to know are skipped. Pure functions; any
 * thread. */
#include "src/profiles/pyroscope/push_request.h"

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

/* A message without messages in it. */
static bool leaf_check(struct slice message, const char **ret_reason)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        continue;
    if (reader.failure != NULL)
        *ret_reason = reader.failure;
    return reader.failure == NULL;
}

static bool series_walk(struct slice message, struct push_figures *figures, const char **ret_reason)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    assert(figures != NULL);
    while (wire_read_field(&reader, &field)) {
        bool is_sample = is_field(&field, SERIES_SAMPLE);
        if ((is_sample || is_field(&field, SERIES_LABEL)) && !leaf_check(field.bytes, ret_reason))
            return false;
        figures->profiles += is_sample;
    }
    if (reader.failure != NULL)
        *ret_reason = reader.failure;
    return reader.failure == NULL;
}

bool push_request_check(struct slice request, struct push_figures *ret_figures,
                        const char **ret_reason)
{
    assert(ret_figures != NULL);
    assert(ret_reason != NULL);
    struct push_figures figures = {.series = 0};
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (!is_field(&field, REQUEST_SERIES))
            continue;
        if (!series_walk(field.bytes, &figures, ret_reason))
            return false;
        figures.series++;
    }
    *ret_reason = reader.failure;
    if (figures.series > PUSH_SERIES_MAX || figures.profiles > PUSH_PROFILES_MAX)
        *ret_reason = "more than 4096 series or profiles in one request";
    *ret_figures = figures;
    return *ret_reason == NULL;
}

static struct series_label label_of(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct series_label label = {.name = {.size = 0}};
    while (wire_read_field(&reader, &field)) {
        if (is_field(&field, LABEL_NAME))
            label.name = field.bytes;
        if (is_field(&field, LABEL_VALUE))
            label.value = field.bytes;
    }
    assert(reader.failure == NULL);
    return label;
}

bool push_next_series(struct wire_reader *reader, struct push_series *ret_series)
{
    assert(ret_series != NULL);
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
        struct series_label label = label_of(field.bytes);
        ret_series->has_too_many_labels |=
            !series_add(&ret_series->labels, label.name, label.value);
    }
    return true;
}

bool push_next_profile(struct push_series *series, struct slice *ret_profile)
{
    assert(ret_profile != NULL);
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
