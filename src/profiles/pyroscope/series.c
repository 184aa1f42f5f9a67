/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a series and their rules. Pure functions; any thread. */
#include "src/profiles/pyroscope/series.h"

#include "src/base/error.h"
#include "src/profiles/pprof/otlp_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

bool series_add(struct series *series, struct slice name, struct slice value)
{
    assert(series->count <= SERIES_LABELS_MAX);
    if (series->count == SERIES_LABELS_MAX)
        return false;
    series->labels[series->count++] = (struct series_label){.name = name, .value = value};
    return true;
}

const struct slice *series_find(const struct series *series, const char *name)
{
    for (size_t i = 0; i < series->count; i++)
        if (slice_equal_text(series->labels[i].name, name))
            return &series->labels[i].value;
    return NULL;
}

bool series_is_private(struct slice name)
{
    return name.size >= 2 && name.data[0] == '_' && name.data[1] == '_';
}

static bool refuse(struct error *error, const char *what, struct slice name)
{
    struct slice shown = otlp_text_cut(name, SHOWN_BYTES_MAX);
    return error_set(error, "%s: '%.*s'", what, (int)shown.size,
                     shown.size > 0 ? (const char *)shown.data : "");
}

static int compare_names(const void *left, const void *right)
{
    return slice_compare(((const struct series_label *)left)->name,
                         ((const struct series_label *)right)->name);
}

static bool has_sorted_names(const struct series *series)
{
    for (size_t i = 1; i < series->count; i++)
        if (slice_compare(series->labels[i - 1].name, series->labels[i].name) >= 0)
            return false;
    return true;
}

/* Clients mostly sort them, so that this takes one pass. */
static bool has_each_name_once(const struct series *series, struct error *error)
{
    struct series sorted;
    if (has_sorted_names(series))
        return true;
    sorted.count = series->count;
    memcpy(sorted.labels, series->labels, series->count * sizeof(series->labels[0]));
    qsort(sorted.labels, sorted.count, sizeof(sorted.labels[0]), compare_names);
    for (size_t i = 1; i < sorted.count; i++)
        if (slice_equal(sorted.labels[i - 1].name, sorted.labels[i].name))
            return refuse(error, "duplicate label name", sorted.labels[i].name);
    return true;
}

bool series_check(const struct series *series, struct error *error)
{
    size_t private_count = 0;
    for (size_t i = 0; i < series->count; i++) {
        struct slice name = series->labels[i].name;
        struct slice value = series->labels[i].value;
        private_count += series_is_private(name);
        if (name.size == 0 || otlp_text_valid(name) < name.size)
            return error_set(error, "invalid label name: expected UTF-8 that is not empty");
        if (name.size > SERIES_NAME_BYTES_MAX)
            return refuse(error, "label name is longer than 1024 bytes", name);
        if (value.size > SERIES_VALUE_BYTES_MAX || otlp_text_valid(value) < value.size)
            return refuse(error, "invalid value of label: expected at most 65535 bytes of UTF-8",
                          name);
    }
    if (!has_each_name_once(series, error))
        return false;
    const struct slice *name = series_find(series, "__name__");
    const struct slice *service = series_find(series, "service_name");
    if (service != NULL && service->size == 0)
        return error_set(error, "service name is not provided: the label service_name is empty");
    if (name == NULL || name->size == 0)
        return error_set(error, "profile series has no name: the label __name__ is missing");
    if (private_count > SERIES_PRIVATE_LABELS_MAX)
        return error_set(error, "found %zu labels that begin with \"__\", expected at most %d",
                         private_count, SERIES_PRIVATE_LABELS_MAX);
    return true;
}
