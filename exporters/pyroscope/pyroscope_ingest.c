/* SPDX-License-Identifier: Apache-2.0 */
/* The words of /ingest for what OTLP says. Runs on the exporter's lane. */
#include "exporters/pyroscope/pyroscope_ingest.h"

#include "exporters/pyroscope/pyroscope_form.h"
#include "exporters/pyroscope/pyroscope_query.h"
#include "exporters/pyroscope/pyroscope_series.h"
#include "exporters/pyroscope/pyroscope_walk.h"
#include "src/base/clock.h"
#include "src/profiles/otlp/opaque_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_BYTES_MAX = 24, RATE_DEFAULT = 100 };

/* Terminated; nanoseconds, which the server knows by their 19 digits. */
static struct slice number_text(char room[NUMBER_BYTES_MAX], uint64_t number)
{
    int size = snprintf(room, NUMBER_BYTES_MAX, "%" PRIu64, number);
    assert(size > 0);
    return slice_of(room, (size_t)size);
}

static const char *units_of(const struct profile_type *type)
{
    bool is_time = strcmp(type->unit, "nanoseconds") == 0;
    bool is_lock = strcmp(type->name, "mutex") == 0 || strcmp(type->name, "block") == 0;
    if (strcmp(type->unit, "bytes") == 0)
        return "bytes";
    if (is_lock)
        return is_time ? "lock_nanoseconds" : "lock_samples";
    if (strcmp(type->name, "goroutine") == 0)
        return "goroutines";
    return strcmp(type->name, "memory") == 0 ? "objects" : "samples";
}

/* What is there at a time, rather than what happened over one. */
static const char *aggregation_of(const struct profile_type *type)
{
    bool is_state = strncmp(type->type, "inuse_", 6) == 0 || strcmp(type->name, "goroutine") == 0;
    return is_state ? "average" : "sum";
}

static uint64_t sample_rate(const struct pyroscope_walk *walk)
{
    int64_t period = walk->profile.period;
    bool is_time = strcmp(walk->type.period_unit, "nanoseconds") == 0;
    assert(walk->name != 0);
    if (!is_time || period <= 0 || period > NS_PER_S)
        return RATE_DEFAULT;
    return (uint64_t)((NS_PER_S + period / 2) / period);
}

static struct pyroscope_query query_of(const struct pyroscope_ingest *ingest)
{
    assert(ingest->path != NULL);
    return (struct pyroscope_query){.path = ingest->path,
                                    .labels = byte_run_slice(&ingest->series->labels)};
}

bool pyroscope_ingest_profile(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                              struct buffer *profile, uint64_t *changed)
{
    const struct pyroscope_walk *walk = ingest->walk;
    struct pyroscope_query query = query_of(ingest);
    struct slice spy = pyroscope_query_label(query.labels, PYROSCOPE_SPY_LABEL);
    char from[NUMBER_BYTES_MAX];
    char until[NUMBER_BYTES_MAX];
    char rate[NUMBER_BYTES_MAX];
    uint64_t duration_ns = walk->profile.duration_ns;
    assert(ingest->time_ns > 0 && ingest->time_ns <= INT64_MAX);
    pyroscope_query_add(&query, "from", number_text(from, ingest->time_ns));
    if (duration_ns > INT64_MAX - ingest->time_ns) /* as in the profile: none */
        duration_ns = 0;
    pyroscope_query_add(&query, "until", number_text(until, ingest->time_ns + duration_ns));
    pyroscope_query_add(&query, "spyName", spy.size > 0 ? spy : slice_of_text("spanflame"));
    pyroscope_query_add(&query, "sampleRate", number_text(rate, sample_rate(walk)));
    pyroscope_query_add(&query, "units", slice_of_text(units_of(&walk->type)));
    pyroscope_query_add(&query, "aggregationType", slice_of_text(aggregation_of(&walk->type)));
    return pyroscope_form_profile(form, &walk->type, profile) &&
           pyroscope_form_address(form, &query, changed);
}

/* What came with the file goes along as it came, but for a time that was moved. */
bool pyroscope_ingest_upload(struct pyroscope_form *form, const struct pyroscope_ingest *ingest,
                             uint64_t *changed)
{
    static const char *const parameters[] = {"until", "spyName", "sampleRate", "units",
                                             "aggregationType"};
    const struct pyroscope_walk *walk = ingest->walk;
    const struct profile *profile = &walk->profile;
    struct pyroscope_query query = query_of(ingest);
    char moved[NUMBER_BYTES_MAX];
    assert(profile_is_opaque(profile));
    pyroscope_query_add(&query, "format", profile->payload_format);
    pyroscope_query_add(&query, "from",
                        ingest->time_ns != 0
                            ? number_text(moved, ingest->time_ns)
                            : opaque_profile_parameter(&walk->dictionary, profile, "from"));
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
        pyroscope_query_add(&query, parameters[i],
                            opaque_profile_parameter(&walk->dictionary, profile, parameters[i]));
    return pyroscope_form_upload(
               form, profile->payload,
               opaque_profile_parameter(&walk->dictionary, profile, OPAQUE_PROFILE_LABELS)) &&
           pyroscope_form_address(form, &query, changed);
}
