/* SPDX-License-Identifier: Apache-2.0 */
/* Names of metrics. Pure functions; any thread. */
#include "src/profiles/pyroscope/ingest_type.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pyroscope/sample_type_config.h"

#include <assert.h>
#include <string.h>

enum { SHOWN_BYTES_MAX = 64 };

/* An ending of an application's name, and what it says of its texts. */
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

/* What the server takes sample types for that no config names. */
static const struct {
    const char *type;
    const char *display_name;
} display_names_by_default[] = {
    {"samples", "cpu"},
    {"goroutine", "goroutines"},
    {"contentions", "mutex_count"},
    {"delay", "mutex_duration"},
};

static bool contains(struct slice text, const char *part)
{
    return text.size > 0 && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

/* NULL: none of them. */
static const char *metric_of(struct slice type)
{
    static const struct {
        const char *part;
        const char *metric;
    } parts[] = {
        {"cpu", "process_cpu"}, {"alloc_", "memory"}, {"inuse_", "memory"},
        {"mutex_", "mutex"},    {"block_", "block"},  {"goroutines", "goroutines"},
    };
    if (slice_equal_text(type, "space") || slice_equal_text(type, "objects"))
        return "memory";
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (contains(type, parts[i].part))
            return parts[i].metric;
    return NULL;
}

static struct slice display_name_by_default(struct slice type)
{
    for (size_t i = 0; i < sizeof(display_names_by_default) / sizeof(display_names_by_default[0]);
         i++)
        if (slice_equal_text(type, display_names_by_default[i].type))
            return slice_of_text(display_names_by_default[i].display_name);
    return type;
}

bool ingest_type_of_pprof(const struct pprof *pprof, struct slice display_names,
                          struct slice *ret_metric, struct error *error)
{
    assert(ret_metric != NULL);
    struct slice type = {.size = 0};
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        type = pprof->strings[pprof->sample_types[i].type];
        *ret_metric = type;
        if (slice_equal_text(type, "wall"))
            return true;
    }
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        type = pprof->strings[pprof->sample_types[i].type];
        *ret_metric = display_name_by_default(type);
        if (display_names.size > 0 &&
            !sample_type_config_display_name(display_names, type, ret_metric, error))
            return false;
        const char *metric = metric_of(*ret_metric);
        if (metric != NULL) {
            *ret_metric = slice_of_text(metric);
            return true;
        }
    }
    return true;
}

/* Times of stacks that a clock took: as many periods as samples. */
static void apply_period(struct ingest_text_type *type, uint64_t sample_rate)
{
    bool is_wall = strcmp(type->metric, "wall") == 0;
    if ((!is_wall && strcmp(type->metric, "process_cpu") != 0) || sample_rate == 0 ||
        sample_rate > NS_PER_S)
        return;
    type->head.type = is_wall ? "wall" : "cpu";
    type->head.unit = "nanoseconds";
    type->head.period_type = "cpu";
    type->head.period_unit = "nanoseconds";
    type->head.period = NS_PER_S / sample_rate;
    type->head.scale = type->head.period;
}

bool ingest_type_of_text(struct slice app, uint64_t sample_rate, struct ingest_text_type *ret_type,
                         struct error *error)
{
    assert(ret_type != NULL);
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
        apply_period(ret_type, sample_rate);
        return true;
    }
    return error_set(error, "unknown profile type: %.*s",
                     (int)(ending.size < SHOWN_BYTES_MAX ? ending.size : SHOWN_BYTES_MAX),
                     (const char *)ending.data);
}
