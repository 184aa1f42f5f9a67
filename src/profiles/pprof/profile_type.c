/* SPDX-License-Identifier: Apache-2.0 */
/* Finds canonical names by a table: the first row that matches counts. Pure functions; any thread.
 */
#include "src/profiles/pprof/profile_type.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* What a row matches; NULL: anything. A '*' at the end matches any rest. */
struct type_pattern {
    const char *type;
    const char *unit;
    const char *period_type;
    const char *period_unit;
    bool needs_period;
    bool needs_no_time_beside;
};

/* NULL: unchanged. */
struct type_words {
    const char *name;
    const char *type;
    const char *unit;
    const char *period_type;
    const char *period_unit;
    bool counts_periods;
};

#define FROM(sample_type, sample_unit, period)                                                     \
    .from.type = (sample_type), .from.unit = (sample_unit), .from.period_type = (period)
#define TO(label, word, words_unit, period, unit_of_period)                                        \
    .to.name = (label), .to.type = (word), .to.unit = (words_unit), .to.period_type = (period),    \
    .to.period_unit = (unit_of_period)
#define CPU_TIME     TO("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
#define CPU_SAMPLES  TO("process_cpu", "samples", "count", "cpu", "nanoseconds")
#define WALL_TIME    TO("wall", "wall", "nanoseconds", "wall", "nanoseconds")
#define WALL_SAMPLES TO("wall", "samples", "count", "wall", "nanoseconds")

static const struct type_row {
    struct type_pattern from;
    struct type_words to;
} rows[] = {
    /* Samples of a CPU profiler: as time if the period is known and no other type is time. */
    {FROM("samples", "count", "cpu"), .from.period_unit = "nanoseconds", .from.needs_period = true,
     .from.needs_no_time_beside = true, CPU_TIME, .to.counts_periods = true},
    {FROM("samples", "count", "cpu"), CPU_SAMPLES},
    {FROM(NULL, NULL, "wall"), TO("wall", NULL, NULL, "wall", "nanoseconds")},
    {FROM("samples", "count", ""), CPU_SAMPLES},
    {FROM("cpu", "nanoseconds", NULL), CPU_TIME},
    /* Engines of async-profiler. */
    {FROM("cpu", "count", NULL), CPU_SAMPLES},
    {FROM("itimer", "nanoseconds", NULL), CPU_TIME},
    {FROM("itimer", "count", NULL), CPU_SAMPLES},
    {FROM("ctimer", "nanoseconds", NULL), CPU_TIME},
    {FROM("ctimer", "count", NULL), CPU_SAMPLES},
    {FROM("perf_events*", "nanoseconds", NULL), CPU_TIME},
    {FROM("perf_events*", "count", NULL), CPU_SAMPLES},
    {FROM("wall", "nanoseconds", NULL), WALL_TIME},
    {FROM("wall", "count", NULL), WALL_SAMPLES},
    {FROM("j9_wall", "nanoseconds", NULL), WALL_TIME},
    {FROM("j9_wall", "count", NULL), WALL_SAMPLES},
    {FROM("alloc", "count", NULL), TO("memory", "alloc_objects", "count", "space", "bytes")},
    {FROM("alloc", "bytes", NULL), TO("memory", "alloc_space", "bytes", "space", "bytes")},
    {FROM("alloc_*", NULL, NULL), TO("memory", NULL, NULL, "space", "bytes")},
    {FROM("inuse_*", NULL, NULL), TO("memory", NULL, NULL, "space", "bytes")},
    {FROM("goroutine*", "count", NULL),
     TO("goroutine", "goroutine", "count", "goroutine", "count")},
    /* Mutex and block profiles look alike in OTLP unless the period tells them apart. */
    {FROM("contentions", NULL, "block"), TO("block", NULL, NULL, "contentions", "count")},
    {FROM("delay", NULL, "block"), TO("block", NULL, NULL, "contentions", "count")},
    {FROM("contentions", NULL, NULL), TO("mutex", NULL, NULL, "contentions", "count")},
    {FROM("delay", NULL, NULL), TO("mutex", NULL, NULL, "contentions", "count")},
    {FROM("exceptions", NULL, NULL), TO("exception", "exception", NULL, NULL, NULL)},
    /* Under its own name: off_cpu, lock, and others. */
    {FROM(NULL, NULL, NULL), TO(NULL, NULL, NULL, NULL, NULL)},
};

const char *const profile_type_ends[PROFILE_TYPE_ENDS] = {"_root", "_ancestors"};

size_t profile_type_stem_bytes(struct slice type)
{
    for (size_t i = 0; i < PROFILE_TYPE_ENDS; i++) {
        size_t size = strlen(profile_type_ends[i]);
        if (type.size > size &&
            memcmp(type.data + type.size - size, profile_type_ends[i], size) == 0)
            return type.size - size;
    }
    return type.size;
}

static bool fits(const char *pattern, const char *text)
{
    size_t size = pattern == NULL ? 0 : strlen(pattern);
    if (pattern == NULL)
        return true;
    if (size > 0 && pattern[size - 1] == '*')
        return strncmp(pattern, text, size - 1) == 0;
    return strcmp(pattern, text) == 0;
}

/* Letters, digits and underscores: servers refuse '-' in a type and may refuse much else. */
static void copy_word(char to[PROFILE_TYPE_TEXT_MAX], struct slice text)
{
    size_t size = text.size < PROFILE_TYPE_TEXT_MAX ? text.size : PROFILE_TYPE_TEXT_MAX - 1;
    for (size_t i = 0; i < size; i++) {
        char byte = (char)text.data[i];
        bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= '0' && byte <= '9') || byte == '_';
        to[i] = is_plain ? byte : '_';
    }
    to[size] = '\0';
}

static void copy_unit(char to[PROFILE_TYPE_TEXT_MAX], struct slice text)
{
    static const char *const spellings[][2] = {
        {"ns", "nanoseconds"},
        {"nanosecond", "nanoseconds"},
        {"byte", "bytes"},
        {"By", "bytes"},
    };
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
        if (slice_equal_text(text, spellings[i][0]))
            text = slice_of_text(spellings[i][1]);
    copy_word(to, text);
}

static void replace(char text[PROFILE_TYPE_TEXT_MAX], const char *word)
{
    if (word != NULL)
        snprintf(text, PROFILE_TYPE_TEXT_MAX, "%s", word);
}

/* Copies as much as fits. */
static void copy_raw(char to[PROFILE_TYPE_TEXT_MAX], struct slice text)
{
    snprintf(to, PROFILE_TYPE_TEXT_MAX, "%.*s",
             (int)(text.size < PROFILE_TYPE_TEXT_MAX ? text.size : PROFILE_TYPE_TEXT_MAX - 1),
             text.size > 0 ? (const char *)text.data : "");
}

struct profile_type profile_type_plain(const struct profile_type_texts *texts)
{
    struct profile_type type = {.counts_periods = false};
    copy_raw(type.type, texts->type);
    copy_raw(type.unit, texts->unit);
    copy_raw(type.period_type, texts->period_type);
    copy_raw(type.period_unit, texts->period_unit);
    return type;
}

bool profile_type_is_cpu_time(struct slice type, struct slice unit)
{
    return slice_equal_text(type, "cpu") &&
           (slice_equal_text(unit, "nanoseconds") || slice_equal_text(unit, "ns"));
}

struct profile_type profile_type_canonical(const struct profile_type_texts *texts, bool has_period,
                                           bool has_time_beside)
{
    struct profile_type type = {.counts_periods = false};
    const struct type_row *row = rows;
    size_t stem = profile_type_stem_bytes(texts->type);
    copy_word(type.type, slice_of(texts->type.data, stem));
    copy_unit(type.unit, texts->unit);
    copy_word(type.period_type, texts->period_type);
    copy_unit(type.period_unit, texts->period_unit);
    while (!fits(row->from.type, type.type) || !fits(row->from.unit, type.unit) ||
           !fits(row->from.period_type, type.period_type) ||
           !fits(row->from.period_unit, type.period_unit) ||
           (row->from.needs_period && !has_period) ||
           (row->from.needs_no_time_beside && has_time_beside))
        row++;
    replace(type.type, row->to.type);
    replace(type.unit, row->to.unit);
    replace(type.period_type, row->to.period_type);
    replace(type.period_unit, row->to.period_unit);
    replace(type.name, row->to.name != NULL ? row->to.name : type.type);
    if (type.type[0] == '\0')
        replace(type.type, "unknown");
    if (type.name[0] == '\0' || (type.name[0] >= '0' && type.name[0] <= '9'))
        replace(type.name, "unknown");
    type.counts_periods = row->to.counts_periods;
    if (stem < texts->type.size) {
        struct slice end = slice_of(texts->type.data + stem, texts->type.size - stem);
        size_t size = strlen(type.type);
        snprintf(type.type + size, PROFILE_TYPE_TEXT_MAX - size, "%.*s", (int)end.size,
                 (const char *)end.data);
    }
    return type;
}
