/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a series and their rules. Pure functions; any thread. */
#include "src/profiles/pyroscope/series.h"

#include "src/base/error.h"
#include "src/profiles/pprof/otlp_text.h"

#include <assert.h>

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
    assert(name != NULL);
    for (size_t i = 0; i < series->count; i++)
        if (slice_equal_text(series->labels[i].name, name))
            return &series->labels[i].value;
    return NULL;
}

bool series_is_private(struct slice name)
{
    return name.size >= 2 && name.data[0] == '_' && name.data[1] == '_';
}

static bool is_valid(struct slice text, size_t bytes_max)
{
    return text.size <= bytes_max && otlp_text_valid(text) == text.size;
}

static bool refuse(struct error *error, const char *what, struct slice name)
{
    assert(what != NULL);
    struct slice shown = otlp_text_cut(name, SHOWN_BYTES_MAX);
    return error_set(error, "%s: '%.*s'", what, (int)shown.size,
                     shown.size > 0 ? (const char *)shown.data : "");
}

static bool label_check(const struct series *series, size_t place, struct error *error)
{
    assert(place < series->count);
    const struct series_label *label = &series->labels[place];
    if (label->name.size == 0 || otlp_text_valid(label->name) < label->name.size)
        return error_set(error, "invalid label name: expected UTF-8 that is not empty");
    if (label->name.size > SERIES_NAME_BYTES_MAX)
        return refuse(error, "label name is longer than 1024 bytes", label->name);
    if (!is_valid(label->value, SERIES_VALUE_BYTES_MAX))
        return refuse(error, "invalid value of label: expected at most 65535 bytes of UTF-8",
                      label->name);
    for (size_t i = 0; i < place; i++)
        if (slice_equal(series->labels[i].name, label->name))
            return refuse(error, "duplicate label name", label->name);
    return true;
}

bool series_check(const struct series *series, struct error *error)
{
    assert(error != NULL);
    const struct slice *name = series_find(series, "__name__");
    size_t private_count = 0;
    for (size_t i = 0; i < series->count; i++) {
        private_count += series_is_private(series->labels[i].name);
        if (!label_check(series, i, error))
            return false;
    }
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
