/* SPDX-License-Identifier: Apache-2.0 */
/* Mending and labelling. Pure functions; any thread. */
#include "src/profiles/pyroscope/ingest_pprof.h"

#include "src/base/clock.h"
#include "src/profiles/pyroscope/ingest_query.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/series.h"

#include <assert.h>
#include <string.h>

#define YEAR_1970_NS ((int64_t)365 * 86400 * NS_PER_S)

static bool is_scripting(struct slice spy)
{
    return slice_equal_text(spy, "pyspy") || slice_equal_text(spy, "rbspy") ||
           slice_equal_text(spy, "scripting");
}

/* "file name" in the arena; no data: no room. */
static struct slice join(struct arena *arena, struct slice file, struct slice name)
{
    uint8_t *text = arena_try_alloc(arena, file.size + 1 + name.size);
    if (text == NULL)
        return slice_of(NULL, 0);
    memcpy(text, file.data, file.size);
    text[file.size] = ' ';
    memcpy(text + file.size + 1, name.data, name.size);
    return slice_of(text, file.size + 1 + name.size);
}

/* New texts go behind those that are there. */
static bool name_by_file(struct pprof_upload *upload, bool keeps_absolute)
{
    struct pprof *pprof = &upload->pprof;
    size_t most = pprof->strings_count + pprof->functions_count;
    struct slice *strings = arena_try_alloc(&upload->arena, most * sizeof(strings[0]));
    if (strings == NULL)
        return false;
    memcpy(strings, pprof->strings, pprof->strings_count * sizeof(strings[0]));
    pprof->strings = strings;
    for (size_t i = 0; i < pprof->functions_count; i++) {
        struct pprof_function *function = &pprof->functions[i];
        struct slice file = strings[function->filename];
        if (keeps_absolute && file.size > 0 && file.data[0] == '/')
            continue;
        struct slice name = join(&upload->arena, file, strings[function->name]);
        if (name.data == NULL)
            return false;
        function->name = (uint32_t)pprof->strings_count;
        strings[pprof->strings_count++] = name;
    }
    return true;
}

static bool mend_types(struct pprof_upload *upload)
{
    struct pprof *pprof = &upload->pprof;
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        struct slice *type = &pprof->strings[pprof->sample_types[i].type];
        if (type->size == 0 || memchr(type->data, '-', type->size) == NULL)
            continue;
        uint8_t *text = arena_try_alloc(&upload->arena, type->size);
        if (text == NULL)
            return false;
        for (size_t k = 0; k < type->size; k++)
            text[k] = type->data[k] == '-' ? '_' : type->data[k];
        type->data = text;
    }
    return true;
}

bool ingest_pprof_mend(struct pprof_upload *upload, const struct ingest_query *query)
{
    assert(query->memory != NULL);
    struct pprof *pprof = &upload->pprof;
    if (pprof->time_ns < YEAR_1970_NS)
        pprof->time_ns = (int64_t)query->from_ns;
    if (slice_equal_text(query->spy_name, "dotnetspy") && !mend_types(upload))
        return false;
    return !is_scripting(query->spy_name) ||
           name_by_file(upload, slice_equal_text(query->spy_name, "pyspy"));
}

static bool add_missing(struct series *series, const char *name, struct slice value)
{
    assert(name != NULL);
    return value.size == 0 || series_find(series, name) != NULL ||
           series_add(series, slice_of_text(name), value);
}

bool ingest_series_fill(struct series *series, const struct ingest_query *query,
                        const struct ingest_series *what)
{
    assert(series != NULL);
    const struct series *given = &query->name.labels;
    bool has_service = series_find(given, "service_name") != NULL;
    series->count = 0;
    if (!series_add(series, slice_of_text("__name__"), what->metric) ||
        !series_add(series, slice_of_text("__delta__"), slice_of_text("false")))
        return false;
    for (size_t i = 0; i < given->count; i++) {
        struct slice name = given->labels[i].name;
        if (series_is_private(name) && !slice_equal_text(name, "__session_id__"))
            continue;
        if (!series_add(series, name, given->labels[i].value))
            return false;
    }
    return add_missing(series, "pyroscope_spy", query->spy_name) &&
           add_missing(series, "service_name", what->service) &&
           (!has_service || add_missing(series, "app_name", what->app));
}
