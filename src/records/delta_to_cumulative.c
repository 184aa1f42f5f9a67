/* SPDX-License-Identifier: Apache-2.0 */
/* For each point: it is added to the stream's sum under its lock; the sum is put in its place. Runs
 * on the owner's thread. */
#include "src/records/delta_to_cumulative.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/core/batch.h"
#include "src/records/exponential_sum.h"
#include "src/records/metric_values.h"

enum {
    DATA_POINTS = 1,
    DATA_TEMPORALITY = 2,
};

/* The sum of a stream. Its arrays are in the words: bounds, then counts; or positive counts, then
 * negative ones. */
struct sum_stream {
    struct stream stream; /* first */
    uint64_t seen_ns;     /* on clock_now_ns's scale */
    struct metric_values values;
};

struct stream_table *sum_table_create(uint64_t streams_max, struct budget *budget)
{
    return stream_table_create(sizeof(struct sum_stream), streams_max, budget);
}

static bool is_stale(const struct stream *stream, void *arg)
{
    return ((const struct sum_stream *)stream)->seen_ns < *(const uint64_t *)arg;
}

void sum_table_sweep(struct stream_table *table, unsigned shard, uint64_t before_ns)
{
    stream_table_sweep(table, shard, is_stale, &before_ns);
}

void sum_editor_init(struct sum_editor *editor, struct stream_table *table, struct budget *budget)
{
    *editor = (struct sum_editor){.table = table};
    metric_stream_init(&editor->stream, stream_table_seed(table), true, budget);
    metric_values_arena_init(&editor->arena, budget);
}

void sum_editor_fini(struct sum_editor *editor)
{
    metric_stream_fini(&editor->stream);
    arena_clear(&editor->arena);
}

/* ---- Sums ---- */

/* Two arrays of the values, which the stream keeps in its words. */
static void arrays_of(struct metric_values *values, size_t counts[2], void **arrays[2])
{
    bool is_exponential = values->kind == METRIC_EXPONENTIAL;
    counts[0] = is_exponential ? values->positive.count : values->bounds_count;
    counts[1] = is_exponential ? values->negative.count : values->counts_count;
    arrays[0] = is_exponential ? (void **)&values->positive.counts : (void **)&values->bounds;
    arrays[1] = is_exponential ? (void **)&values->negative.counts : (void **)&values->counts;
}

/* Copies the values into the stream. False: no room, and the stream stays as it was. */
static bool remember(struct stream_table *table, struct sum_stream *stream,
                     const struct metric_values *values)
{
    struct metric_values copy = *values;
    size_t counts[2];
    void **arrays[2];
    arrays_of(&copy, counts, arrays);
    if (!stream_table_set_words(table, &stream->stream, counts[0] + counts[1]))
        return false;
    uint64_t *words = stream->stream.words;
    for (size_t i = 0; i < 2; i++) {
        if (counts[i] > 0)
            memcpy(words, *arrays[i], counts[i] * sizeof(uint64_t));
        *arrays[i] = words;
        if (counts[i] > 0)
            words += counts[i];
    }
    stream->values = copy;
    return true;
}

/* Copies the stream's values, since they change and must stay as they are if there is no room. */
static bool recall(struct arena *arena, const struct sum_stream *stream,
                   struct metric_values *ret_values)
{
    size_t counts[2];
    void **arrays[2];
    *ret_values = stream->values;
    arrays_of(ret_values, counts, arrays);
    for (size_t i = 0; i < 2; i++) {
        void *copy = arena_try_alloc(arena, (counts[i] + 1) * sizeof(uint64_t));
        if (copy == NULL)
            return false;
        if (counts[i] > 0)
            memcpy(copy, *arrays[i], counts[i] * sizeof(uint64_t));
        *arrays[i] = copy;
    }
    return true;
}

static bool are_equal_bounds(const struct metric_values *a, const struct metric_values *b)
{
    if (a->bounds_count != b->bounds_count)
        return false;
    for (size_t i = 0; i < a->bounds_count; i++)
        if (a->bounds[i] != b->bounds[i])
            return false;
    return true;
}

/* As in Go, a number that is none makes the result none. */
static void add_extremes(struct metric_values *sum, const struct metric_values *more)
{
    sum->has_sum = sum->has_sum && more->has_sum;
    sum->sum = sum->has_sum ? sum->sum + more->sum : 0;
    sum->has_min = sum->has_min && more->has_min;
    if (sum->has_min)
        sum->min = isnan(sum->min) || isnan(more->min) ? (double)NAN : fmin(sum->min, more->min);
    sum->has_max = sum->has_max && more->has_max;
    if (sum->has_max)
        sum->max = isnan(sum->max) || isnan(more->max) ? (double)NAN : fmax(sum->max, more->max);
}

static void add_number(struct metric_values *sum, const struct metric_values *more)
{
    if (more->number == METRIC_NO_NUMBER)
        return;
    /* A sum of the other type counts as 0. */
    sum->integer = more->number == METRIC_INTEGER
                       ? (int64_t)((uint64_t)sum->integer + (uint64_t)more->integer)
                       : 0;
    sum->real = more->number == METRIC_REAL ? sum->real + more->real : 0;
    sum->number = more->number;
}

/* The values become the stream's sum, which has no more buckets than can be added to it: of a
 * histogram as many as there are between its bounds. False: no room. */
static bool begin_sum(struct sum_editor *editor, struct sum_stream *stream,
                      const struct metric_values *values)
{
    struct metric_values sum = *values;
    if (values->kind == METRIC_HISTOGRAM && values->counts_count > values->bounds_count + 1)
        sum.counts_count = values->bounds_count + 1;
    if (values->kind == METRIC_EXPONENTIAL && !exponential_limit(&editor->arena, values, &sum))
        return false;
    return remember(editor->table, stream, &sum);
}

/* False: no room. */
static bool add_values(struct arena *arena, struct metric_values *sum, struct metric_values *more)
{
    if (sum->kind == METRIC_SUM) {
        add_number(sum, more);
        return true;
    }
    if (sum->kind == METRIC_EXPONENTIAL) {
        if (!exponential_add(arena, sum, more))
            return false;
        add_extremes(sum, more);
        return true;
    }
    size_t count = sum->counts_count < more->counts_count ? sum->counts_count : more->counts_count;
    for (size_t i = 0; i < count; i++)
        sum->counts[i] += more->counts[i];
    sum->count += more->count;
    add_extremes(sum, more);
    return true;
}

/* Unless the point is lost, the values become the stream's sum. */
static enum sum_loss add_point(struct sum_editor *editor, struct identity_digest key,
                               struct metric_values *values)
{
    struct metric_values sum;
    bool is_new;
    enum sum_loss loss = SUM_NOT_LOST;
    uint64_t time_ns = values->time_ns;
    struct stream *held = stream_table_hold(editor->table, key, &is_new);
    if (held == NULL)
        return SUM_LOST_LIMIT;
    struct sum_stream *stream = (struct sum_stream *)held;
    const bool has_sum = stream->values.time_ns != 0;
    stream->seen_ns = editor->now_ns;
    if (has_sum && values->start_ns < stream->values.start_ns) {
        loss = SUM_LOST_OLDER;
    } else if (has_sum && values->time_ns <= stream->values.time_ns) {
        loss = SUM_LOST_ORDER;
    } else if (!has_sum || !are_equal_bounds(&stream->values, values)) {
        /* With other bounds it begins anew. */
        if (!begin_sum(editor, stream, values))
            loss = SUM_LOST_LIMIT;
    } else if (!recall(&editor->arena, stream, &sum) || !add_values(&editor->arena, &sum, values)) {
        loss = SUM_LOST_LIMIT;
    } else {
        sum.time_ns = time_ns;
        if (remember(editor->table, stream, &sum))
            *values = sum;
        else
            loss = SUM_LOST_LIMIT;
    }
    stream_table_release(editor->table, key);
    return loss;
}

/* ---- Requests ---- */

/* False: the point goes. */
static bool sum_point(struct sum_editor *editor, struct record_edit *edit,
                      const struct metric *metric, const struct wire_field *point)
{
    struct metric_values values;
    struct identity_digest key;
    metric_values_next(&editor->arena);
    if (!metric_values_read(&editor->arena, metric->kind, point->bytes, &values)) {
        editor->points[SUM_LOST_LIMIT]++;
        return false;
    }
    if (!metric_stream_of_point(&editor->stream, edit, metric->kind, point->bytes, 0, 0, &key))
        return true;
    enum sum_loss loss = add_point(editor, key, &values);
    /* What has been added to the sum stays there: the stream's next point shows it. */
    if (loss == SUM_NOT_LOST && !metric_values_put(edit, &editor->arena, &values, point))
        loss = SUM_LOST_LIMIT;
    editor->points[loss]++;
    return loss == SUM_NOT_LOST;
}

static bool sum_metric(void *arg, struct record_edit *edit, const struct wire_field *field)
{
    struct sum_editor *editor = arg;
    const struct metric metric = metric_read(field->bytes);
    struct wire_reader reader = wire_reader_of(field->bytes);
    struct wire_field data = {.number = 0};
    struct wire_field inner;
    if (metric.kind != METRIC_SUM && metric.kind != METRIC_HISTOGRAM &&
        metric.kind != METRIC_EXPONENTIAL)
        return true;
    if (metric.temporality != TEMPORALITY_DELTA)
        return true;
    metric_stream_enter_metric(&editor->stream, &metric);
    while (wire_next_field(&reader, &inner))
        if (inner.number == (uint32_t)metric.kind)
            data = inner;
    size_t opened = record_open(edit, field);
    size_t opened_data = record_open(edit, &data);
    uint64_t kept = 0;
    reader = wire_reader_of(data.bytes);
    while (!edit->has_failed && wire_next_field(&reader, &inner)) {
        if (inner.number == DATA_TEMPORALITY)
            record_put_number(edit, inner.whole, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
        if (inner.number != DATA_POINTS)
            continue;
        if (sum_point(editor, edit, &metric, &inner)) {
            kept++;
        } else {
            edit->dropped++;
            record_remove(edit, inner.whole);
        }
    }
    if (kept == 0) {
        record_forget(edit, opened);
        return false;
    }
    record_close(edit, opened_data, &data);
    record_close(edit, opened, field);
    return true;
}

static void enter(void *arg, struct record_edit *edit, enum record_level level,
                  struct slice content)
{
    struct sum_editor *editor = arg;
    metric_stream_enter(&editor->stream, edit, level, content);
}

static void needs(void *arg, struct slice request, struct record_needs *ret_needs)
{
    const struct sum_editor *editor = arg;
    const uint64_t sum_bytes = exponential_sum_bytes_max();
    const struct exponential_needs exponential = {.sum_bytes = sum_bytes, .work = sum_bytes};
    metric_stream_needs(&editor->stream, request, &exponential, ret_needs);
}

struct batch *sum_editor_run(struct sum_editor *editor, struct record_edit *edit,
                             struct batch *batch)
{
    const struct record_visitor visitor = {
        .arg = editor, .enter = enter, .needs = needs, .record = sum_metric, .drops_empty = true};
    memset(editor->points, 0, sizeof(editor->points));
    editor->now_ns = clock_now_ns();
    struct batch *edited = record_edit_run_on(edit, batch, &visitor);
    metric_stream_clear(&editor->stream);
    arena_clear(&editor->arena);
    return edited;
}
