/* SPDX-License-Identifier: Apache-2.0 */
/* For each point: the stream's last values are read and replaced under its lock; what comes out is
 * put back. Runs on the owner's thread. */
#include "src/records/cumulative_to_delta.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/pattern.h"
#include "src/core/batch.h"
#include "src/records/metric_values.h"

enum {
    DATA_POINTS = 1,
    DATA_TEMPORALITY = 2, /* of sums and histograms */
    BUCKETS_PARTS = 2,
};

/* The last values of a stream. Words: bounds, then counts; or positive counts, then negative
 * ones. */
struct delta_stream {
    struct stream stream; /* first */
    uint64_t time_ns;
    uint64_t fresh_ns; /* the same, but not after it came */
    int64_t integer;
    double real;
    uint64_t count;
    double sum;
    uint64_t zero_count;
    double zero_threshold;
    int32_t scale;
    int32_t offsets[BUCKETS_PARTS];
    size_t sizes[BUCKETS_PARTS];
};

struct stream_table *delta_table_create(struct budget *budget)
{
    return stream_table_create(sizeof(struct delta_stream), UINT64_MAX, budget);
}

static bool is_stale(const struct stream *stream, void *arg)
{
    return ((const struct delta_stream *)stream)->fresh_ns < *(const uint64_t *)arg;
}

void delta_table_sweep(struct stream_table *table, unsigned shard, uint64_t before_ns)
{
    stream_table_sweep(table, shard, is_stale, &before_ns);
}

void delta_editor_init(struct delta_editor *editor, const struct delta_settings *settings,
                       struct stream_table *table, struct budget *budget)
{
    *editor = (struct delta_editor){.settings = *settings, .table = table};
    metric_stream_init(&editor->stream, stream_table_seed(table), false, budget);
    metric_values_arena_init(&editor->arena, budget);
}

void delta_editor_fini(struct delta_editor *editor)
{
    metric_stream_fini(&editor->stream);
    arena_clear(&editor->arena);
}

/* ---- Deltas ---- */

static bool remember_words(struct stream_table *table, struct delta_stream *stream,
                           const void *first, size_t first_count, const void *second,
                           size_t second_count)
{
    if (!stream_table_set_words(table, &stream->stream, first_count + second_count))
        return false;
    if (first_count > 0)
        memcpy(stream->stream.words, first, first_count * sizeof(uint64_t));
    if (second_count > 0)
        memcpy(stream->stream.words + first_count, second, second_count * sizeof(uint64_t));
    stream->sizes[0] = first_count;
    stream->sizes[1] = second_count;
    return true;
}

/* False: no room for its buckets, and what the stream holds is of no use any more. */
static bool remember(const struct delta_editor *editor, struct delta_stream *stream,
                     const struct metric_values *values)
{
    struct stream_table *table = editor->table;
    stream->time_ns = values->time_ns;
    stream->fresh_ns = values->time_ns < editor->now_ns ? values->time_ns : editor->now_ns;
    stream->integer = values->integer;
    stream->real = values->real;
    stream->count = values->count;
    stream->sum = values->sum;
    stream->zero_count = values->zero_count;
    stream->zero_threshold = values->zero_threshold;
    stream->scale = values->scale;
    if (values->kind == METRIC_HISTOGRAM)
        return remember_words(table, stream, values->bounds, values->bounds_count, values->counts,
                              values->counts_count);
    if (values->kind != METRIC_EXPONENTIAL)
        return true;
    stream->offsets[0] = values->positive.offset;
    stream->offsets[1] = values->negative.offset;
    return remember_words(table, stream, values->positive.counts, values->positive.count,
                          values->negative.counts, values->negative.count);
}

static bool are_equal_bounds(const struct delta_stream *stream, const struct metric_values *values)
{
    if (stream->sizes[0] != values->bounds_count)
        return false;
    for (size_t i = 0; i < values->bounds_count; i++) {
        double bound;
        memcpy(&bound, &stream->stream.words[i], sizeof(bound));
        if (bound != values->bounds[i])
            return false;
    }
    return true;
}

/* The delta takes the place of the values; `old` is what was before. */
static bool subtract_histogram(const struct delta_stream *old, struct metric_values *values,
                               enum delta_loss *ret_loss)
{
    *ret_loss = DELTA_LOST_BUCKETS;
    if (old->sizes[1] != values->counts_count || !are_equal_bounds(old, values))
        return false;
    /* A counter that began anew is passed on as it is. */
    if (values->count < old->count)
        return true;
    values->count -= old->count;
    values->sum -= old->sum;
    for (size_t i = 0; i < values->counts_count; i++)
        values->counts[i] -= old->stream.words[old->sizes[0] + i];
    return true;
}

/* Buckets of a stream while they are made coarser. */
struct old_buckets {
    int64_t offset;
    size_t count;
    uint64_t *counts; /* may be changed */
};

/* Takes the buckets up to that one away. Returns what was in them. */
static uint64_t trim_buckets(struct old_buckets *buckets, int32_t threshold)
{
    int64_t index = (int32_t)((uint32_t)threshold - (uint32_t)buckets->offset);
    uint64_t trimmed = 0;
    if (index < 0)
        return 0;
    size_t count = (uint64_t)index + 1 < buckets->count ? (size_t)index + 1 : buckets->count;
    for (size_t i = 0; i < count; i++)
        trimmed += buckets->counts[i];
    if (count > 0)
        buckets->counts += count;
    buckets->count -= count;
    buckets->offset += (int64_t)count;
    return trimmed;
}

static void coarsen_buckets(struct old_buckets *buckets, uint32_t bits)
{
    unsigned shift = bits < 63 ? bits : 63;
    int64_t offset = buckets->offset >> shift;
    size_t count = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        size_t place = (size_t)(((buckets->offset + (int64_t)i) >> shift) - offset);
        uint64_t value = buckets->counts[i];
        if (place >= count) {
            /* In place: it is never beyond the one that is read. */
            assert(place <= i);
            buckets->counts[place] = 0;
            count = place + 1;
        }
        buckets->counts[place] += value;
    }
    buckets->offset = offset;
    buckets->count = count;
}

static void subtract_buckets(struct metric_buckets *buckets, const struct old_buckets *old)
{
    int64_t offset = 0;
    size_t count = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        int64_t bucket = buckets->offset + (int64_t)i;
        int64_t index = bucket - old->offset;
        uint64_t before = index >= 0 && index < (int64_t)old->count ? old->counts[index] : 0;
        uint64_t value = buckets->counts[i];
        if (value <= before)
            continue;
        if (count == 0)
            offset = bucket;
        /* In place, with zeros between: it is never beyond the one that is read. */
        while ((int64_t)count < bucket - offset)
            buckets->counts[count++] = 0;
        buckets->counts[count++] = value - before;
    }
    buckets->offset = count > 0 ? (int32_t)offset : 0;
    buckets->count = count;
}

static int32_t bucket_of(double threshold, int32_t scale)
{
    double place = ceil(log(threshold) * ldexp(M_LOG2E, scale)) - 1;
    return place >= INT32_MIN && place <= INT32_MAX ? (int32_t)place : INT32_MIN;
}

/* False: a reset, after which the stream stays as it was, as in Go. Changes the stream's words. */
static bool subtract_exponential(struct delta_stream *old, struct metric_values *values)
{
    struct old_buckets buckets[BUCKETS_PARTS] = {
        {old->offsets[0], old->sizes[0], old->stream.words},
        {old->offsets[1], old->sizes[1],
         old->sizes[1] > 0 ? old->stream.words + old->sizes[0] : NULL},
    };
    uint64_t zero_count = old->zero_count;
    if (values->count < old->count || values->zero_threshold < old->zero_threshold ||
        values->scale > old->scale)
        return false;
    values->count -= old->count;
    values->sum -= old->sum;
    if (values->zero_threshold > old->zero_threshold) {
        int32_t threshold = bucket_of(values->zero_threshold, old->scale);
        for (size_t i = 0; i < BUCKETS_PARTS; i++)
            zero_count += trim_buckets(&buckets[i], threshold);
    }
    values->zero_count -= zero_count;
    if (values->scale < old->scale)
        for (size_t i = 0; i < BUCKETS_PARTS; i++)
            coarsen_buckets(&buckets[i], (uint32_t)((int64_t)old->scale - values->scale));
    subtract_buckets(&values->positive, &buckets[0]);
    subtract_buckets(&values->negative, &buckets[1]);
    return true;
}

static bool subtract_number(const struct delta_stream *old, struct metric_values *values)
{
    if (values->number == METRIC_REAL) {
        bool is_reset = values->real < old->real;
        values->real -= old->real;
        return !is_reset;
    }
    bool is_reset = values->integer < old->integer;
    values->integer = (int64_t)((uint64_t)values->integer - (uint64_t)old->integer);
    values->number = METRIC_INTEGER;
    return !is_reset;
}

/* The first point of a stream. */
static bool begin_stream(const struct delta_editor *editor, struct metric_values *values)
{
    if (editor->settings.initial == DELTA_INITIAL_AUTO)
        return values->start_ns >= editor->settings.started_ns &&
               values->time_ns != values->start_ns;
    values->start_ns = 0;
    if (values->kind == METRIC_SUM && values->number == METRIC_NO_NUMBER)
        values->number = METRIC_INTEGER;
    return editor->settings.initial == DELTA_INITIAL_KEEP;
}

/* Copies the values that remember needs, since the delta takes their place. */
static bool copy_arrays(struct arena *arena, const struct metric_values *values,
                        struct metric_values *ret_copy)
{
    const size_t counts[] = {values->counts_count, values->positive.count, values->negative.count};
    uint64_t *const arrays[] = {values->counts, values->positive.counts, values->negative.counts};
    uint64_t **const copies[] = {&ret_copy->counts, &ret_copy->positive.counts,
                                 &ret_copy->negative.counts};
    *ret_copy = *values;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (counts[i] == 0)
            continue;
        *copies[i] = arena_try_alloc(arena, counts[i] * sizeof(uint64_t));
        if (*copies[i] == NULL)
            return false;
        memcpy(*copies[i], arrays[i], counts[i] * sizeof(uint64_t));
    }
    return true;
}

/* True: the values are the delta. */
static bool convert(struct delta_editor *editor, struct identity_digest key,
                    struct metric_values *values, enum delta_loss *ret_loss)
{
    struct metric_values given;
    bool is_new;
    *ret_loss = DELTA_LOST_FULL;
    if (!copy_arrays(&editor->arena, values, &given))
        return false;
    struct stream *held = stream_table_hold(editor->table, key, &is_new);
    if (held == NULL)
        return false;
    struct delta_stream *stream = (struct delta_stream *)held;
    bool is_valid = true;
    bool stays = false;
    *ret_loss = DELTA_LOST_INITIAL;
    if (is_new) {
        is_valid = begin_stream(editor, values);
    } else {
        *ret_loss = DELTA_LOST_RESET;
        values->start_ns = stream->time_ns;
        if (values->kind == METRIC_SUM) {
            is_valid = subtract_number(stream, values);
        } else if (values->kind == METRIC_EXPONENTIAL) {
            is_valid = subtract_exponential(stream, values);
            stays = !is_valid;
        } else {
            /* Prometheus's marker of a stale series. */
            if (isnan(values->sum))
                given.sum = values->sum = stream->sum;
            is_valid = subtract_histogram(stream, values, ret_loss);
        }
    }
    if (!stays && !remember(editor, stream, &given)) {
        *ret_loss = DELTA_LOST_FULL;
        stream_table_forget(editor->table, &stream->stream);
        return false;
    }
    stream_table_release(editor->table, key);
    return is_valid;
}

/* ---- Requests ---- */

static bool has_name(const struct delta_match *match, struct slice name)
{
    for (size_t i = 0; i < match->names_count; i++)
        if (match->patterns != NULL ? pattern_matches(match->patterns[i], name)
                                    : slice_equal_text(name, match->names[i]))
            return true;
    return false;
}

static bool takes_metric(const struct delta_settings *settings, const struct metric *metric,
                         enum delta_type type)
{
    const struct delta_match *include = settings->include;
    const struct delta_match *exclude = settings->exclude;
    if (include->names_count > 0 && !has_name(include, metric->name))
        return false;
    if (include->has_types && !include->types[type])
        return false;
    return !has_name(exclude, metric->name) && !(exclude->has_types && exclude->types[type]);
}

/* False: the point goes. */
static bool convert_point(struct delta_editor *editor, struct record_edit *edit,
                          const struct metric *metric, enum delta_type type,
                          const struct wire_field *point)
{
    struct metric_values values;
    struct identity_digest key;
    enum delta_loss loss;
    metric_values_next(&editor->arena);
    bool is_read = metric_values_read(&editor->arena, metric->kind, point->bytes, &values);
    if (!is_read) {
        editor->figures.dropped[type][DELTA_LOST_FULL]++;
        return false;
    }
    if (values.is_absent)
        return false;
    if (values.kind == METRIC_SUM && values.number == METRIC_REAL && isnan(values.real))
        return true;
    bool is_double = values.kind == METRIC_SUM && values.number == METRIC_REAL;
    bool has_none = values.kind == METRIC_SUM && values.number == METRIC_NO_NUMBER;
    if (!metric_stream_of_point(&editor->stream, edit, metric->kind, point->bytes, values.start_ns,
                                is_double ? 2 : has_none, &key))
        return true;
    bool had_nan = isnan(values.sum);
    double sum = values.sum;
    if (!convert(editor, key, &values, &loss)) {
        editor->figures.dropped[type][loss]++;
        return false;
    }
    /* A sum that is no number stays. */
    if (had_nan)
        values.sum = sum;
    if (values.kind == METRIC_SUM && values.number == METRIC_NO_NUMBER)
        values.number = METRIC_INTEGER;
    values.has_min = values.has_max = false;
    if (!metric_values_put(edit, &editor->arena, &values, point)) {
        editor->figures.dropped[type][DELTA_LOST_FULL]++;
        return false;
    }
    editor->figures.converted[type]++;
    return true;
}

static bool convert_metric(void *arg, struct record_edit *edit, const struct wire_field *field)
{
    struct delta_editor *editor = arg;
    const struct metric metric = metric_read(field->bytes);
    struct wire_reader reader = wire_reader_of(field->bytes);
    struct wire_field data = {.number = 0};
    struct wire_field inner;
    enum delta_type type = metric.kind == METRIC_SUM         ? DELTA_SUM
                           : metric.kind == METRIC_HISTOGRAM ? DELTA_HISTOGRAM
                                                             : DELTA_EXPONENTIAL;
    if (metric.kind != METRIC_SUM && metric.kind != METRIC_HISTOGRAM &&
        metric.kind != METRIC_EXPONENTIAL)
        return true;
    if (metric.temporality != TEMPORALITY_CUMULATIVE ||
        (metric.kind == METRIC_SUM && !metric.is_monotonic) ||
        !takes_metric(&editor->settings, &metric, type))
        return true;
    metric_stream_enter_metric(&editor->stream, &metric);
    while (wire_next_field(&reader, &inner))
        if (inner.number == (uint32_t)metric.kind)
            data = inner;
    size_t opened = record_open(edit, field);
    size_t opened_data = record_open(edit, &data);
    uint64_t kept = 0;
    uint64_t dropped = 0;
    reader = wire_reader_of(data.bytes);
    while (!edit->has_failed && wire_next_field(&reader, &inner)) {
        if (inner.number == DATA_TEMPORALITY)
            record_put_number(edit, inner.whole, DATA_TEMPORALITY, TEMPORALITY_DELTA);
        if (inner.number != DATA_POINTS)
            continue;
        if (convert_point(editor, edit, &metric, type, &inner)) {
            kept++;
        } else {
            dropped++;
            record_remove(edit, inner.whole);
        }
    }
    edit->dropped += dropped;
    /* As in Go: a sum without points goes, a histogram that had none stays as it is. */
    if (kept == 0) {
        record_forget(edit, opened);
        return dropped == 0 && metric.kind != METRIC_SUM;
    }
    record_close(edit, opened_data, &data);
    record_close(edit, opened, field);
    return true;
}

static void enter(void *arg, struct record_edit *edit, enum record_level level,
                  struct slice content)
{
    struct delta_editor *editor = arg;
    metric_stream_enter(&editor->stream, edit, level, content);
}

static void needs(void *arg, struct slice request, struct record_needs *ret_needs)
{
    const struct delta_editor *editor = arg;
    /* All buckets of the stream's last point, however few this one has. */
    const uint64_t bytes = stream_table_words_max(editor->table) * sizeof(uint64_t);
    const struct exponential_needs exponential = {.work = bytes};
    metric_stream_needs(&editor->stream, request, &exponential, ret_needs);
}

struct batch *delta_editor_run(struct delta_editor *editor, struct record_edit *edit,
                               struct batch *batch)
{
    const struct record_visitor visitor = {.arg = editor,
                                           .enter = enter,
                                           .needs = needs,
                                           .record = convert_metric,
                                           .drops_empty = true};
    memset(&editor->figures, 0, sizeof(editor->figures));
    editor->now_ns = clock_wall_ns();
    struct batch *edited = record_edit_run_on(edit, batch, &visitor);
    metric_stream_clear(&editor->stream);
    arena_clear(&editor->arena);
    return edited;
}
