/* SPDX-License-Identifier: Apache-2.0 */
/* The server's validation, in its order and close to its words. On the server string labels of
 * samples, except ids of spans and traces, become labels of series. Pure functions; any thread. */
#include "src/profiles/pyroscope/upload_check.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/profiles/pprof/correlation.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pyroscope/series.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

static bool is_beyond(uint64_t number, uint64_t limit)
{
    return limit > 0 && number > limit;
}

static bool check_label(struct slice name, struct slice value, const struct upload_limits *limits,
                        struct error *error)
{
    struct slice shown = otlp_text_cut(name, SHOWN_BYTES_MAX);
    if (is_beyond(name.size, limits->label_name_bytes))
        return error_set(
            error, "label name too long: '%.*s' has %zu bytes, expected at most %" PRIu64,
            (int)shown.size, (const char *)shown.data, name.size, limits->label_name_bytes);
    if (is_beyond(value.size, limits->label_value_bytes))
        return error_set(error,
                         "label value too long: that of '%.*s' has %zu bytes, expected at most "
                         "%" PRIu64,
                         (int)shown.size, (const char *)shown.data, value.size,
                         limits->label_value_bytes);
    return true;
}

static uint64_t count_names(const struct series *series)
{
    uint64_t count = 0;
    for (size_t i = 0; i < series->count; i++)
        count += series->labels[i].value.size > 0;
    return count;
}

static bool refuse_names(uint64_t count, const struct upload_limits *limits, struct error *error)
{
    assert(count > limits->label_names);
    return error_set(error,
                     "the series has %" PRIu64 " label names, limit %" PRIu64
                     " (max_label_names_per_series)",
                     count, limits->label_names);
}

bool upload_check_series(const struct series *series, const struct upload_limits *limits,
                         struct error *error)
{
    uint64_t count = count_names(series);
    for (size_t i = 0; i < series->count; i++)
        if (!check_label(series->labels[i].name, series->labels[i].value, limits, error))
            return false;
    return !is_beyond(count, limits->label_names) || refuse_names(count, limits, error);
}

bool upload_check_time(int64_t time_ns, const struct upload_limits *limits, uint64_t now_ns,
                       struct error *error)
{
    uint64_t at_ns = time_ns > 0 ? (uint64_t)time_ns : now_ns;
    bool is_old = at_ns < now_ns && is_beyond(now_ns - at_ns, limits->older_than_ns);
    bool is_new = at_ns > now_ns && is_beyond(at_ns - now_ns, limits->newer_than_ns);
    if (!is_old && !is_new)
        return true;
    return error_set(error,
                     "the profile is outside of the ingestion window: its time is %" PRIu64
                     " s %s; look at the sender's clock, or change %s",
                     (is_old ? now_ns - at_ns : at_ns - now_ns) / NS_PER_S,
                     is_old ? "ago" : "ahead",
                     is_old ? "limits::reject_older_than" : "limits::reject_newer_than");
}

/* Whether a label of a sample adds a name to the series. Numbers, ids, empty keys and names that
 * the series has do not. */
static bool adds_name(const struct pprof *pprof, const struct series *series,
                      const struct pprof_label *label)
{
    struct slice key = pprof->strings[label->key];
    if (label->text == 0 || key.size == 0 || correlation_is_key(key))
        return false;
    for (size_t i = 0; i < series->count; i++)
        if (slice_equal(series->labels[i].name, key))
            return false;
    return true;
}

bool upload_check_profile(const struct pprof *pprof, const struct series *series,
                          const struct upload_limits *limits, struct error *error)
{
    if (pprof->sample_types_count == 0)
        return error_set(error, "empty profile: it has no sample type");
    if (!upload_check_time(pprof->time_ns, limits, clock_wall_ns(), error))
        return false;
    for (size_t i = 0; i < pprof->strings_count; i++)
        if (otlp_text_valid(pprof->strings[i]) < pprof->strings[i].size)
            return error_set(error, "string %zu of the profile is not UTF-8", i);
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        struct slice type = pprof->strings[pprof->sample_types[i].type];
        struct slice shown = otlp_text_cut(type, SHOWN_BYTES_MAX);
        if (type.size > 0 && memchr(type.data, '-', type.size) != NULL)
            return error_set(error, "sample type contains -: '%.*s'", (int)shown.size,
                             (const char *)shown.data);
    }
    const uint64_t series_names = count_names(series);
    for (size_t s = 0; s < pprof->samples_count; s++) {
        const struct pprof_sample *sample = &pprof->samples[s];
        const struct pprof_label *labels = sample->labels;
        if (is_beyond(sample->labels_count, limits->sample_labels))
            return error_set(error, "a sample has %zu labels, expected at most %" PRIu64,
                             sample->labels_count, limits->sample_labels);
        for (size_t i = 0; i < sample->labels_count; i++) {
            struct slice name = pprof->strings[labels[i].key];
            struct slice value = pprof->strings[labels[i].text];
            bool is_long = is_beyond(name.size, limits->label_name_bytes) ||
                           is_beyond(value.size, limits->label_value_bytes);
            if (is_long && adds_name(pprof, series, &labels[i]))
                return check_label(name, value, limits, error);
        }
        /* Few samples have so many labels that their names have to be counted. */
        uint64_t names = series_names;
        if (!is_beyond(names + sample->labels_count, limits->label_names))
            continue;
        for (size_t i = 0; i < sample->labels_count; i++) {
            bool is_first = adds_name(pprof, series, &labels[i]);
            for (size_t k = 0; is_first && k < i; k++)
                is_first = labels[k].key != labels[i].key || labels[k].text == 0;
            names += is_first;
        }
        if (is_beyond(names, limits->label_names))
            return refuse_names(names, limits, error);
    }
    return true;
}
