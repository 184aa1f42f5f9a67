/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics and labels of uploads to /ingest, by the server's tables. Pure functions; any thread. */
#include "src/profiles/pyroscope/ingest_series.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/otlp/json/json_walk.h"
#include "src/profiles/pyroscope/ingest_query.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

#define YEAR_1970_NS ((int64_t)365 * 86400 * NS_PER_S)

/* An ending of an application's name, and what it says of the profile. */
static const struct {
    const char *ending;
    const char *metric;
    const char *type;
    const char *unit;
} endings[] = {
    {"cpu", "process_cpu", "samples", "count"},
    {"itimer", "process_cpu", "samples", "count"},
    {"wall", "wall", "samples", "count"},
    {"seconds", "wall", "samples", "count"},
    {"nanoseconds", "wall", "samples", "count"},
    {"microseconds", "wall", "samples", "count"},
    {"milliseconds", "wall", "samples", "count"},
    {"inuse_objects", "memory", "inuse_objects", "count"},
    {"inuse_space", "memory", "inuse_space", "bytes"},
    {"alloc_objects", "memory", "alloc_objects", "count"},
    {"alloc_space", "memory", "alloc_space", "bytes"},
    {"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count"},
    {"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes"},
    {"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count"},
    {"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes"},
    {"live", "memory", "live", "count"},
    {"bytes", "memory", "samples", "bytes"},
    {"goroutines", "goroutine", "goroutines", "count"},
    {"mutex_count", "mutex", "contentions", "count"},
    {"mutex_duration", "mutex", "delay", "nanoseconds"},
    {"block_count", "block", "contentions", "count"},
    {"block_duration", "block", "delay", "nanoseconds"},
    {"lock_count", "block", "contentions", "count"},
    {"lock_duration", "block", "delay", "nanoseconds"},
    {"exceptions", "exceptions", "samples", "count"},
};

/* Sets *ret_name to the display name of a sample type in the form's part sample_type_config,
 * {"TYPE": {"display-name": "…", "units": …}, …}; or to the type. Escapes in
 * it are not decoded. */
static bool read_display_name(struct slice json, struct slice type, struct slice *ret_name,
                              struct error *error)
{
    struct json_walk walk = json_walk_of(json);
    struct json_string key;
    struct json_string name;
    *ret_name = type;
    if (json_walk_object(&walk)) {
        while (json_walk_key(&walk, &key)) {
            if (key.has_escapes || !slice_equal(key.raw, type)) {
                json_walk_skip(&walk);
                continue;
            }
            if (!json_walk_object(&walk))
                continue;
            while (json_walk_key(&walk, &key)) {
                if (!json_walk_is(&key, "display-name"))
                    json_walk_skip(&walk);
                else if (json_walk_string(&walk, &name) && name.raw.size > 0)
                    *ret_name = name.raw;
            }
        }
    }
    return json_walk_end(&walk) ||
           error_set(error, "sample_type_config: json: expected %s", walk.failure);
}

bool ingest_type_of_pprof(const struct pprof *pprof, struct slice display_names,
                          struct slice *ret_metric, struct error *error)
{
    /* Display names of sample types that no configuration names. */
    static const struct {
        const char *type;
        const char *display_name;
    } defaults[] = {
        {"samples", "cpu"},
        {"goroutine", "goroutines"},
        {"contentions", "mutex_count"},
        {"delay", "mutex_duration"},
    };
    static const struct {
        const char *part; /* of the display name */
        const char *metric;
    } parts[] = {
        {"cpu", "process_cpu"}, {"alloc_", "memory"}, {"inuse_", "memory"},
        {"mutex_", "mutex"},    {"block_", "block"},  {"goroutines", "goroutines"},
    };
    if (display_names.size > UPLOAD_TYPES_BYTES_MAX)
        return error_set(error, "sample_type_config has %zu bytes, expected at most %d",
                         display_names.size, UPLOAD_TYPES_BYTES_MAX);
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        *ret_metric = pprof->strings[pprof->sample_types[i].type];
        if (slice_equal_text(*ret_metric, "wall"))
            return true;
    }
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        struct slice type = pprof->strings[pprof->sample_types[i].type];
        struct slice name = type;
        const char *metric = NULL;
        for (size_t k = 0; k < sizeof(defaults) / sizeof(defaults[0]); k++)
            if (slice_equal_text(type, defaults[k].type))
                name = slice_of_text(defaults[k].display_name);
        if (display_names.size > 0 && !read_display_name(display_names, type, &name, error))
            return false;
        if (slice_equal_text(name, "space") || slice_equal_text(name, "objects"))
            metric = "memory";
        for (size_t k = 0; metric == NULL && k < sizeof(parts) / sizeof(parts[0]); k++)
            if (name.size > 0 &&
                name.size <= SERIES_VALUE_BYTES_MAX && /* longer ones are refused */
                memmem(name.data, name.size, parts[k].part, strlen(parts[k].part)) != NULL)
                metric = parts[k].metric;
        *ret_metric = metric != NULL ? slice_of_text(metric) : name;
        if (metric != NULL)
            return true;
    }
    return true;
}

bool ingest_type_of_text(struct slice app, uint64_t sample_rate, struct ingest_text_type *ret_type,
                         struct error *error)
{
    const uint8_t *dot = app.size > 0 ? memrchr(app.data, '.', app.size) : NULL;
    size_t size = dot != NULL ? (size_t)(dot - app.data) : app.size;
    struct slice ending = slice_of_text("cpu");
    if (dot != NULL)
        ending = slice_of(dot + 1, app.size - size - 1);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (!slice_equal_text(ending, endings[i].ending))
            continue;
        *ret_type = (struct ingest_text_type){
            .app = slice_of(app.data, size),
            .metric = endings[i].metric,
            .head = {.type = endings[i].type, .unit = endings[i].unit, .scale = 1},
        };
        /* Samples taken by a clock become times: each is worth one period. */
        bool is_wall = strcmp(endings[i].metric, "wall") == 0;
        bool is_timed = is_wall || strcmp(endings[i].metric, "process_cpu") == 0;
        if (is_timed && sample_rate > 0 && sample_rate <= NS_PER_S) {
            ret_type->head.type = is_wall ? "wall" : "cpu";
            ret_type->head.unit = "nanoseconds";
            ret_type->head.period_type = "cpu";
            ret_type->head.period_unit = "nanoseconds";
            ret_type->head.period = NS_PER_S / sample_rate;
            ret_type->head.scale = ret_type->head.period;
        }
        return true;
    }
    return error_set(error, "unknown profile type: %.*s",
                     (int)(ending.size < SHOWN_BYTES_MAX ? ending.size : SHOWN_BYTES_MAX),
                     (const char *)ending.data);
}

bool ingest_pprof_mend(struct pprof_upload *upload, const struct ingest_query *query)
{
    struct pprof *pprof = &upload->pprof;
    struct slice spy = query->spy_name;
    if (pprof->time_ns < YEAR_1970_NS)
        pprof->time_ns = (int64_t)query->from_ns;
    bool is_dotnet = slice_equal_text(spy, "dotnetspy");
    for (size_t i = 0; is_dotnet && i < pprof->sample_types_count; i++) {
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
    bool is_python = slice_equal_text(spy, "pyspy");
    if (!is_python && !slice_equal_text(spy, "rbspy") && !slice_equal_text(spy, "scripting"))
        return true;
    /* Puts each function's file before its name; new strings follow those that are there. */
    size_t most = pprof->strings_count + pprof->functions_count;
    struct slice *strings = arena_try_alloc(&upload->arena, most * sizeof(strings[0]));
    if (strings == NULL)
        return false;
    memcpy(strings, pprof->strings, pprof->strings_count * sizeof(strings[0]));
    pprof->strings = strings;
    for (size_t i = 0; i < pprof->functions_count; i++) {
        struct pprof_function *function = &pprof->functions[i];
        struct slice file = strings[function->filename];
        struct slice name = strings[function->name];
        if (is_python && file.size > 0 && file.data[0] == '/')
            continue;
        size_t size = file.size + 1 + name.size;
        uint8_t *text = arena_try_alloc(&upload->arena, size);
        if (text == NULL)
            return false;
        memcpy(text, file.data, file.size);
        text[file.size] = ' ';
        memcpy(text + file.size + 1, name.data, name.size);
        function->name = (uint32_t)pprof->strings_count;
        strings[pprof->strings_count++] = slice_of(text, size);
    }
    return true;
}

static bool add_missing(struct series *series, const char *name, struct slice value)
{
    return value.size == 0 || series_find(series, name) != NULL ||
           series_add(series, slice_of_text(name), value);
}

bool ingest_series_fill(struct series *series, const struct ingest_query *query,
                        const struct ingest_series *what)
{
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
