/* SPDX-License-Identifier: Apache-2.0 */
/* What all edits of records have in common: how a request lies in memory does not matter, what does
 * not change is shared, and memory stays within the budget. */
#include "src/records/record_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/attributes/attribute_actions.h"
#include "src/otlp/check.h"
#include "src/records/attribute_edit.h"
#include "src/records/cumulative_to_delta.h"
#include "src/records/delta_to_cumulative.h"
#include "src/records/group_by_attributes.h"
#include "src/records/record_limits.h"
#include "src/records/record_sampler.h"
#include "src/records/redact_text.h"
#include "src/records/redaction.h"
#include "src/records/trace_split.h"
#include "tests/support/memory_watch.h"
#include "tests/support/random_otlp.h"

enum { ROUNDS = 150, SLACK_BYTES = 96 * 1024 };

/* One edit with editors of its own. NULL: refused. */
typedef struct batch *(*edit_fn)(struct record_edit *edit, struct batch *batch,
                                 struct budget *budget);

static struct batch *edit_attributes(struct record_edit *edit, struct batch *batch,
                                     struct budget *budget)
{
    const struct attribute_action_config configs[] = {
        {.action = "insert",
         .key = "new",
         .from_attribute = "",
         .from_context = "client.address",
         .pattern = "",
         .converted_type = ""},
        {.action = "hash",
         .key = "a",
         .from_attribute = "",
         .from_context = "",
         .pattern = "^k",
         .converted_type = ""},
    };
    struct error error;
    struct attribute_editor editor;
    struct attribute_actions *actions = attribute_actions_create(configs, 2, &error);
    assert_non_null(actions);
    attribute_editor_init(&editor, actions, NULL, NULL, budget);
    struct batch *edited = attribute_editor_run(&editor, edit, batch);
    attribute_editor_fini(&editor);
    attribute_actions_destroy(actions);
    return edited;
}

static struct batch *sample(struct record_edit *edit, struct batch *batch, struct budget *budget)
{
    const struct record_sampler_settings settings = {
        .percentage = 60, .precision = 4, .uses_trace_id = true};
    struct record_sampler sampler;
    if (batch->signal == METRICS)
        return batch_ref(batch);
    record_sampler_init(&sampler, &settings, budget);
    struct batch *edited = record_sampler_run(&sampler, edit, batch);
    record_sampler_fini(&sampler);
    return edited;
}

static struct batch *redact(struct record_edit *edit, struct batch *batch, struct budget *budget)
{
    static const char *const values[] = {"[a-m]+", "[0-9]"};
    const struct redaction_settings settings = {
        .allows_all_keys = true,
        .redacts_all_types = true,
        .blocked_values = {.count = 2, .texts = values},
        .has_counts = true,
        .has_keys = true,
    };
    struct error error;
    struct redaction redaction;
    struct redaction_rules *rules = redaction_rules_create(&settings, &error);
    assert_non_null(rules);
    redaction_init(&redaction, rules, budget);
    struct batch *edited = redaction_run(&redaction, edit, batch);
    redaction_fini(&redaction);
    redaction_rules_destroy(rules);
    return edited;
}

static struct batch *group(struct record_edit *edit, struct batch *batch, struct budget *budget)
{
    const struct slice keys[] = {slice_of_text("a"), slice_of_text("k")};
    struct attribute_grouper grouper;
    attribute_grouper_init(&grouper, keys, 2, budget);
    struct batch *edited = attribute_grouper_run(&grouper, edit, batch);
    attribute_grouper_fini(&grouper);
    return edited;
}

static struct batch *make_deltas(struct record_edit *edit, struct batch *batch,
                                 struct budget *budget)
{
    static const struct delta_match all;
    const struct delta_settings settings = {
        .initial = DELTA_INITIAL_KEEP, .include = &all, .exclude = &all};
    struct delta_editor editor;
    if (batch->signal != METRICS)
        return batch_ref(batch);
    struct stream_table *table = delta_table_create(budget);
    delta_editor_init(&editor, &settings, table, edit->budget);
    struct batch *edited = delta_editor_run(&editor, edit, batch);
    delta_editor_fini(&editor);
    stream_table_destroy(table);
    return edited;
}

static struct batch *add_up(struct record_edit *edit, struct batch *batch, struct budget *budget)
{
    struct sum_editor editor;
    if (batch->signal != METRICS)
        return batch_ref(batch);
    struct stream_table *table = sum_table_create(UINT64_MAX, budget);
    sum_editor_init(&editor, table, edit->budget);
    struct batch *edited = sum_editor_run(&editor, edit, batch);
    sum_editor_fini(&editor);
    stream_table_destroy(table);
    return edited;
}

static const edit_fn edits[] = {edit_attributes, sample, redact, group, make_deltas, add_up};
enum { EDITS = sizeof(edits) / sizeof(edits[0]) };

static struct batch *run(edit_fn fn, struct batch *batch, struct budget *budget)
{
    struct record_edit edit;
    record_edit_init(&edit, budget);
    struct batch *edited = fn(&edit, batch, budget);
    assert_int_equal(edited == NULL, edit.has_failed);
    record_edit_fini(&edit);
    return edited;
}

static void check_is_sound(const struct batch *batch, struct slice bytes)
{
    struct otlp_figures figures;
    const char *reason;
    if (!otlp_check(batch->signal, bytes, &figures, &reason))
        fail_msg("%s", reason);
    assert_int_equal(figures.items, batch->items);
}

static struct batch *random_batch(uint64_t seed, bool is_whole)
{
    struct random_source random = {.state = seed};
    enum signal_kind signal = (enum signal_kind)(seed % 3);
    struct slice request = random_request(&random, signal);
    struct batch *batch = is_whole ? two_parts(signal, request, request.size)
                                   : random_parts(&random, signal, request);
    struct otlp_figures figures;
    const char *reason;
    assert_true(otlp_check(signal, request, &figures, &reason));
    batch->items = figures.items;
    mem_free((void *)(uintptr_t)request.data);
    return batch;
}

static void parts_do_not_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < EDITS; i++)
        for (uint64_t seed = 0; seed < ROUNDS; seed++) {
            struct slice bytes[2];
            for (unsigned k = 0; k < 2; k++) {
                struct batch *batch = random_batch(seed, k == 0);
                struct batch *edited = run(edits[i], batch, NULL);
                bytes[k] = joined_parts(edited);
                check_is_sound(edited, bytes[k]);
                batch_unref(edited);
                batch_unref(batch);
            }
            if (!slice_equal(bytes[0], bytes[1]))
                fail_msg("edit %zu, seed %u", i, (unsigned)seed);
            mem_free((void *)(uintptr_t)bytes[0].data);
            mem_free((void *)(uintptr_t)bytes[1].data);
        }
}

/* Whatever the limit is, the result is refused or the same, and all memory comes back. */
static void any_budget_gives_all_or_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < EDITS; i++)
        for (uint64_t seed = 0; seed < ROUNDS / 3; seed++) {
            struct batch *batch = random_batch(seed, seed % 2 == 0);
            struct batch *free_one = run(edits[i], batch, NULL);
            struct slice expected = joined_parts(free_one);
            bool is_given = false;
            for (uint64_t limit = 64; limit < (1 << 26); limit += limit / 4) {
                struct budget budget;
                budget_init(&budget, limit);
                struct batch *edited = run(edits[i], batch, &budget);
                assert_true(!is_given || edited != NULL || edits[i] == group);
                is_given = edited != NULL;
                /* Streams that have no room are dropped. */
                if (is_given && edits[i] != make_deltas && edits[i] != add_up) {
                    struct slice found = joined_parts(edited);
                    assert_true(slice_equal(found, expected));
                    mem_free((void *)(uintptr_t)found.data);
                }
                batch_unref(edited);
                assert_int_equal(budget_used(&budget), 0);
                budget_fini(&budget);
            }
            assert_true(is_given);
            mem_free((void *)(uintptr_t)expected.data);
            batch_unref(free_one);
            batch_unref(batch);
        }
}

/* What two bytes are for a record, or for an attribute of one. */
static struct batch *many(enum signal_kind signal, size_t count, bool are_records)
{
    size_t size = 2 * count;
    struct buffer *buffer = buffer_create(NULL, size + 64);
    struct buffer *inner = buffer_create(NULL, size + 32);
    uint8_t *content = inner->data;
    uint8_t tag = are_records ? 0x12 : signal == TRACES ? 0x4a : 0x32;
    for (size_t i = 0; i < count; i++) {
        content[2 * i] = tag;
        content[2 * i + 1] = 0;
    }
    inner->size = size;
    /* Outwards: a record, unless they are records, a scope, a resource. */
    static const uint32_t numbers[] = {2, 2, 1};
    for (size_t i = are_records ? 1 : 0; i < 3; i++) {
        struct wire_writer out = wire_writer_of(buffer->data, size + 64);
        wire_write_bytes(&out, numbers[i], slice_of(inner->data, inner->size));
        struct slice written = wire_written(&out);
        memcpy(inner->data, written.data, written.size);
        inner->size = written.size;
    }
    struct batch *batch = two_parts(signal, slice_of(inner->data, inner->size), inner->size);
    batch->items = are_records ? count : 1;
    buffer_unref(inner);
    buffer_unref(buffer);
    return batch;
}

/* Most that is held is what was charged. */
static void an_edit_stays_within_the_budget(void **state)
{
    enum { COUNT = 100000 };
    static const uint64_t limits[] = {1 << 20, 16 << 20, 512 << 20};
    static const edit_fn charged_edits[] = {edit_attributes, sample, redact, group};
    (void)state;
    for (size_t i = 0; i < sizeof(charged_edits) / sizeof(charged_edits[0]); i++)
        for (unsigned k = 0; k < 12; k++) {
            struct batch *batch = many(k % 2 == 0 ? TRACES : LOGS, COUNT, k % 4 >= 2);
            uint64_t limit = limits[k / 4];
            struct budget budget;
            budget_init(&budget, limit);
            memory_watch_begin();
            struct batch *edited = run(charged_edits[i], batch, &budget);
            uint64_t charged = atomic_load(&budget.high_water);
            if (memory_watch_peak() > charged + charged / 8 + SLACK_BYTES)
                fail_msg("edit %zu, shape %u: %llu held, %llu charged", i, k,
                         (unsigned long long)memory_watch_peak(), (unsigned long long)charged);
            if (charged > limit + limit / 8 + 2 * SLACK_BYTES)
                fail_msg("edit %zu, shape %u: %llu charged of %llu", i, k,
                         (unsigned long long)charged, (unsigned long long)limit);
            batch_unref(edited);
            assert_int_equal(budget_used(&budget), 0);
            budget_fini(&budget);
            batch_unref(batch);
        }
}

/* Whoever is refused though nobody else holds memory is told so. */
static void what_never_fits_is_called_so(void **state)
{
    enum { COUNT = 50000, LIMIT_MIN = 1 << 20, LIMIT_MAX = 32 << 20 };
    static const edit_fn charged_edits[] = {edit_attributes, sample, redact, group};
    unsigned refusals = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(charged_edits) / sizeof(charged_edits[0]); i++)
        for (unsigned k = 0; k < 4; k++) {
            struct batch *batch = many(k % 2 == 0 ? TRACES : LOGS, COUNT, k >= 2);
            for (uint64_t limit = LIMIT_MIN; limit < LIMIT_MAX; limit += limit / 8) {
                struct record_edit edit;
                struct budget budget;
                budget_init(&budget, limit);
                budget_take(&budget, batch->bytes);
                record_edit_init(&edit, &budget);
                struct batch *edited = charged_edits[i](&edit, batch, &budget);
                refusals += edited == NULL;
                if (edited == NULL && !record_edit_never_fits(&edit))
                    fail_msg("edit %zu, shape %u: limit %llu", i, k, (unsigned long long)limit);
                record_edit_fini(&edit);
                batch_unref(edited);
                budget_return(&budget, batch->bytes);
                budget_fini(&budget);
            }
            batch_unref(batch);
        }
    assert_true(refusals > 40);
}

/* A sum with one point. Two bytes are one of its attributes, or an element of the only one's map.
 */
static struct batch *dense_point(size_t count, unsigned temporality, bool is_nested)
{
    enum { HEADERS = 128, SUM_TEMPORALITY = 2, SUM_IS_MONOTONIC = 3 };
    static const uint32_t flat[] = {1, 7, 2, 2, 1}; /* point, Sum, Metric, Scope…, Resource… */
    static const uint32_t nested[] = {6, 2, 7, 1, 7, 2, 2, 1}; /* the same, AnyValue, KeyValue */
    const uint32_t *numbers = is_nested ? nested : flat;
    const size_t levels = is_nested ? 8 : 5;
    struct buffer *buffer = buffer_create(NULL, 2 * count + HEADERS);
    struct buffer *inner = buffer_create(NULL, 2 * count + HEADERS);
    for (size_t i = 0; i < count; i++) {
        inner->data[2 * i] = is_nested ? 0x0a : 0x3a;
        inner->data[2 * i + 1] = 0;
    }
    inner->size = 2 * count;
    for (size_t i = 0; i < levels; i++) {
        struct wire_writer out = wire_writer_of(buffer->data, 2 * count + HEADERS);
        wire_write_bytes(&out, numbers[i], slice_of(inner->data, inner->size));
        if (i + 5 == levels) {
            wire_write_number(&out, SUM_TEMPORALITY, temporality);
            wire_write_number(&out, SUM_IS_MONOTONIC, 1);
        }
        struct slice written = wire_written(&out);
        memcpy(inner->data, written.data, written.size);
        inner->size = written.size;
    }
    struct batch *batch = two_parts(METRICS, slice_of(inner->data, inner->size), inner->size);
    batch->items = 1;
    buffer_unref(inner);
    buffer_unref(buffer);
    return batch;
}

/* Those who remember streams cannot be refused in the middle: they are before, or all is charged.
 */
static void a_dense_point_stays_within_the_budget(void **state)
{
    enum { COUNT = 100000 };
    static const uint64_t limits[] = {4 << 20, 24 << 20, 512 << 20};
    (void)state;
    for (unsigned k = 0; k < 12; k++) {
        bool are_sums = k % 2 == 1;
        struct batch *batch = dense_point(COUNT, are_sums ? 1 : 2, k % 4 >= 2);
        uint64_t limit = limits[k / 4];
        struct budget budget;
        budget_init(&budget, limit);
        memory_watch_begin();
        struct batch *edited = run(are_sums ? add_up : make_deltas, batch, &budget);
        uint64_t charged = atomic_load(&budget.high_water);
        if (memory_watch_peak() > charged + charged / 8 + SLACK_BYTES)
            fail_msg("shape %u: %llu held, %llu charged", k,
                     (unsigned long long)memory_watch_peak(), (unsigned long long)charged);
        if (charged > limit)
            fail_msg("shape %u: %llu charged of %llu", k, (unsigned long long)charged,
                     (unsigned long long)limit);
        assert_int_equal(edited != NULL, k / 4 == 2);
        batch_unref(edited);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        batch_unref(batch);
    }
}

/* A request of one metric whose data, but for the temporality, is in the one buffer; the other has
 * as much room. Both are released. */
static struct batch *metric_batch(enum metric_kind kind, unsigned temporality, size_t points,
                                  struct buffer *from, struct buffer *into, size_t room)
{
    const uint32_t numbers[] = {(uint32_t)kind, 2, 2, 1}; /* data, Metric, Scope…, Resource… */
    struct wire_writer out = wire_writer_of(from->data + from->size, room - from->size);
    wire_write_number(&out, 2, temporality);
    from->size += wire_written(&out).size;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct buffer *inner = from;
        out = wire_writer_of(into->data, room);
        wire_write_bytes(&out, numbers[i], buffer_slice(inner));
        into->size = wire_written(&out).size;
        from = into;
        into = inner;
    }
    struct batch *batch = two_parts(METRICS, buffer_slice(from), from->size);
    batch->items = points;
    buffer_unref(from);
    buffer_unref(into);
    return batch;
}

/* An exponential histogram whose points, of streams from `first` on, have so many buckets of one
 * byte. */
static struct batch *wide_points(size_t first, size_t count, size_t buckets, unsigned temporality,
                                 uint64_t time_ns)
{
    enum { POINT_MORE = 128, COUNT_BYTES = 9, TIME = 3, COUNT = 4, POSITIVE = 8, COUNTS = 2 };
    const size_t size = (buckets + POINT_MORE) * (count + 1);
    struct buffer *from = buffer_create(NULL, size);
    struct buffer *into = buffer_create(NULL, size);
    struct wire_writer out = wire_writer_of(from->data, size);
    memset(into->data, 1, size); /* the counts */
    const struct slice counts = slice_of(into->data, buckets);
    const size_t positive = wire_field_size(COUNTS, buckets);
    for (size_t i = first; i < first + count; i++) {
        char key[32];
        snprintf(key, sizeof(key), "k%zu", i);
        const size_t attribute = wire_field_size(1, strlen(key));
        wire_write_header(&out, 1,
                          wire_field_size(1, attribute) + 2 * COUNT_BYTES +
                              wire_field_size(POSITIVE, positive));
        wire_write_header(&out, 1, attribute);
        wire_write_bytes(&out, 1, slice_of_text(key));
        wire_write_fixed64(&out, TIME, time_ns);
        wire_write_fixed64(&out, COUNT, buckets);
        wire_write_header(&out, POSITIVE, positive);
        wire_write_bytes(&out, COUNTS, counts);
    }
    from->size = wire_written(&out).size;
    return metric_batch(METRIC_EXPONENTIAL, temporality, count, from, into, size);
}

/* Points of one stream, a nanosecond apart, that count one observation and have so many counts, all
 * of them one, but no bounds. */
static struct batch *stream_points(enum metric_kind kind, size_t count, size_t counts,
                                   unsigned temporality, uint64_t time_ns)
{
    enum { POINT_MORE = 64, TIME = 3, COUNT = 4, BUCKET_COUNTS = 6, POSITIVE = 8, COUNTS = 2 };
    const size_t size = (counts * sizeof(uint64_t) + POINT_MORE) * (count + 1);
    struct buffer *point = buffer_create(NULL, size);
    struct buffer *from = buffer_create(NULL, size);
    struct buffer *into = buffer_create(NULL, size);
    struct wire_writer out = wire_writer_of(from->data, size);
    for (size_t i = 0; i < count; i++) {
        struct wire_writer fields = wire_writer_of(point->data, size);
        wire_write_fixed64(&fields, TIME, time_ns + i);
        if (counts > 0)
            wire_write_fixed64(&fields, COUNT, counts);
        if (counts > 0 && kind == METRIC_EXPONENTIAL)
            wire_write_header(&fields, POSITIVE, wire_field_size(COUNTS, counts));
        const uint32_t number = kind == METRIC_EXPONENTIAL ? COUNTS : BUCKET_COUNTS;
        const size_t count_bytes = kind == METRIC_EXPONENTIAL ? 1 : sizeof(uint64_t);
        if (counts > 0)
            wire_write_header(&fields, number, counts * count_bytes);
        for (size_t k = 0; k < counts * count_bytes; k++)
            wire_write_varint(&fields, k % count_bytes == 0);
        wire_write_bytes(&out, 1, wire_written(&fields));
    }
    from->size = wire_written(&out).size;
    buffer_unref(point);
    return metric_batch(kind, temporality, count, from, into, size);
}

/* Streams that are known get their buckets later: those count against the same quarter, and a point
 * that has no room is lost and counted. */
static void streams_and_their_buckets_take_a_quarter_of_the_budget(void **state)
{
    enum { STREAMS = 500, AT_ONCE = 50, SLACK = 1024 };
    /* A sum has few buckets. */
    static const size_t buckets[] = {8000, 150};
    static const uint64_t limits[] = {32 << 20, 1440 << 10};
    static const struct delta_match all;
    const struct delta_settings settings = {
        .initial = DELTA_INITIAL_KEEP, .include = &all, .exclude = &all};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        bool are_sums = k == 1;
        struct budget budget;
        struct record_edit edit;
        struct delta_editor deltas;
        struct sum_editor sums;
        uint64_t lost = 0;
        budget_init(&budget, limits[k]);
        struct stream_table *table =
            are_sums ? sum_table_create(UINT64_MAX, &budget) : delta_table_create(&budget);
        record_edit_init(&edit, &budget);
        delta_editor_init(&deltas, &settings, table, &budget);
        sum_editor_init(&sums, table, &budget);
        for (size_t i = 0; i <= STREAMS / AT_ONCE; i++) {
            size_t first = i > 0 ? (i - 1) * AT_ONCE : 0;
            size_t count = i > 0 ? AT_ONCE : STREAMS;
            struct batch *batch =
                wide_points(first, count, i > 0 ? buckets[k] : 0, are_sums ? 1 : 2, i + 1);
            struct batch *edited = are_sums ? sum_editor_run(&sums, &edit, batch)
                                            : delta_editor_run(&deltas, &edit, batch);
            assert_non_null(edited);
            uint64_t lost_now = are_sums
                                    ? sums.points[SUM_LOST_LIMIT]
                                    : deltas.figures.dropped[DELTA_EXPONENTIAL][DELTA_LOST_FULL];
            assert_int_equal(edited->items + lost_now, count);
            assert_true(i > 0 || lost_now == 0);
            lost += lost_now;
            batch_unref(edited);
            batch_unref(batch);
            assert_in_range(budget_used(&budget), 1, limits[k] / 4 + SLACK);
        }
        assert_in_range(lost, STREAMS / 2, STREAMS - 1);
        delta_editor_fini(&deltas);
        sum_editor_fini(&sums);
        record_edit_fini(&edit);
        stream_table_destroy(table);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

/* The first is as it came; what the others are added to has few buckets, so that a short point
 * does not become a long one. */
static void few_buckets_are_written_for_short_points(void **state)
{
    enum { COUNTS = 4000, POINTS = 500, POINT_BYTES_MAX = 512 };
    static const enum metric_kind kinds[] = {METRIC_HISTOGRAM, METRIC_EXPONENTIAL};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct record_edit edit;
        struct sum_editor sums;
        struct stream_table *table = sum_table_create(UINT64_MAX, NULL);
        record_edit_init(&edit, NULL);
        sum_editor_init(&sums, table, NULL);
        struct batch *seed = stream_points(kinds[i], 1, COUNTS, TEMPORALITY_DELTA, 1);
        struct batch *edited = sum_editor_run(&sums, &edit, seed);
        assert_int_equal(edited->bytes, seed->bytes);
        batch_unref(edited);
        batch_unref(seed);
        struct batch *points = stream_points(kinds[i], POINTS, 0, TEMPORALITY_DELTA, 2);
        edited = sum_editor_run(&sums, &edit, points);
        assert_int_equal(edited->items, POINTS);
        assert_in_range(edited->bytes, points->bytes, POINTS * POINT_BYTES_MAX);
        batch_unref(edited);
        batch_unref(points);
        record_edit_fini(&edit);
        sum_editor_fini(&sums);
        stream_table_destroy(table);
    }
}

/* Short points of a stream with many buckets become many bytes. What has no room is left out, but
 * not of the sum. */
static void points_that_have_no_room_stay_in_the_sum(void **state)
{
    enum { COUNTS = 160, POINTS = 50000, LIMIT = 32 << 20, COUNT_FIELD = 0x21 };
    (void)state;
    struct budget budget;
    struct record_edit edit;
    struct sum_editor sums;
    budget_init(&budget, LIMIT);
    struct stream_table *table = sum_table_create(UINT64_MAX, &budget);
    record_edit_init(&edit, &budget);
    sum_editor_init(&sums, table, &budget);
    struct batch *seed = stream_points(METRIC_EXPONENTIAL, 1, COUNTS, TEMPORALITY_DELTA, 1);
    batch_unref(sum_editor_run(&sums, &edit, seed));
    struct batch *points = stream_points(METRIC_EXPONENTIAL, POINTS, 0, TEMPORALITY_DELTA, 2);
    memory_watch_begin();
    struct batch *edited = sum_editor_run(&sums, &edit, points);
    assert_non_null(edited);
    assert_in_range(memory_watch_peak(), LIMIT / 2, LIMIT + SLACK_BYTES);
    assert_in_range(sums.points[SUM_LOST_LIMIT], 1, POINTS - 1);
    assert_int_equal(edited->items + sums.points[SUM_LOST_LIMIT], POINTS);
    assert_in_range(atomic_load(&budget.high_water), LIMIT / 2, LIMIT);
    batch_unref(edited);
    struct batch *last = stream_points(METRIC_EXPONENTIAL, 1, 1, TEMPORALITY_DELTA, POINTS + 2);
    edited = sum_editor_run(&sums, &edit, last);
    struct slice bytes = joined_parts(edited);
    uint8_t expected[9] = {COUNT_FIELD};
    memcpy(expected + 1, &(uint64_t){COUNTS + 1}, sizeof(uint64_t));
    assert_non_null(memmem(bytes.data, bytes.size, expected, sizeof(expected)));
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(edited);
    batch_unref(last);
    batch_unref(points);
    batch_unref(seed);
    record_edit_fini(&edit);
    sum_editor_fini(&sums);
    stream_table_destroy(table);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

/* Before the first of them is remembered. */
static void a_lane_leaves_many_remembered_points_to_the_helper(void **state)
{
    static const struct {
        enum metric_kind kind;
        size_t points;
        bool is_long;
    } cases[] = {{METRIC_HISTOGRAM, 2000, false},
                 {METRIC_HISTOGRAM, 20000, true},
                 {METRIC_EXPONENTIAL, 50, false},
                 {METRIC_EXPONENTIAL, 2000, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct record_edit edit;
        struct sum_editor sums;
        struct stream_table *table = sum_table_create(UINT64_MAX, NULL);
        record_edit_init(&edit, NULL);
        sum_editor_init(&sums, table, NULL);
        edit.written_max = HELPED_BYTES_MIN;
        struct batch *batch =
            stream_points(cases[i].kind, cases[i].points, 0, TEMPORALITY_DELTA, 1);
        struct batch *edited = sum_editor_run(&sums, &edit, batch);
        assert_int_equal(edit.is_long, cases[i].is_long);
        assert_int_equal(edited == NULL, cases[i].is_long);
        assert_int_equal(stream_table_count(table), cases[i].is_long ? 0 : 1);
        batch_unref(edited);
        batch_unref(batch);
        record_edit_fini(&edit);
        sum_editor_fini(&sums);
        stream_table_destroy(table);
    }
}

/* A short point is compared with all buckets of the one before. */
static void a_lane_leaves_points_of_wide_streams_to_the_helper(void **state)
{
    enum { COUNTS = 200000 };
    static const struct delta_match all;
    const struct delta_settings settings = {
        .initial = DELTA_INITIAL_KEEP, .include = &all, .exclude = &all};
    (void)state;
    struct record_edit edit;
    struct delta_editor deltas;
    struct stream_table *table = delta_table_create(NULL);
    record_edit_init(&edit, NULL);
    delta_editor_init(&deltas, &settings, table, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct batch *batch = stream_points(METRIC_EXPONENTIAL, 1, i == 1 ? COUNTS : 0,
                                            TEMPORALITY_CUMULATIVE, 1 + i);
        edit.written_max = i == 1 ? UINT64_MAX : HELPED_BYTES_MIN;
        struct batch *edited = delta_editor_run(&deltas, &edit, batch);
        assert_int_equal(edit.is_long, i == 2);
        assert_int_equal(edited == NULL, i == 2);
        batch_unref(edited);
        batch_unref(batch);
    }
    record_edit_fini(&edit);
    delta_editor_fini(&deltas);
    stream_table_destroy(table);
}

/* Each count of a byte is a word, and more than once. What was accepted waits for room. */
static void the_values_of_a_point_are_charged(void **state)
{
    enum { COUNTS = 1000000 };
    static const uint64_t limits[] = {24 << 20, 14 << 20};
    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        const bool are_sums = k % 2 == 1;
        const uint64_t limit = limits[k % 2];
        struct batch *batch = stream_points(METRIC_EXPONENTIAL, 1, COUNTS, are_sums ? 1 : 2, 1);
        struct budget budget;
        budget_init(&budget, limit);
        batch->is_acknowledged = k >= 2;
        if (batch->is_acknowledged) {
            budget_take(&budget, limit);
            assert_null(run(are_sums ? add_up : make_deltas, batch, &budget));
            assert_int_equal(budget_used(&budget), limit);
            budget_return(&budget, limit);
            atomic_store(&budget.high_water, 0);
        }
        memory_watch_begin();
        struct batch *edited = run(are_sums ? add_up : make_deltas, batch, &budget);
        const uint64_t charged = atomic_load(&budget.high_water);
        assert_non_null(edited);
        assert_in_range(memory_watch_peak(), COUNTS * sizeof(uint64_t),
                        charged + charged / 8 + SLACK_BYTES);
        batch_unref(edited);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        batch_unref(batch);
    }
}

/* Also if it was accepted: else the copy alone would go beyond any bound. */
static void a_batch_in_parts_is_copied_within_the_budget(void **state)
{
    enum { LIMIT = 64 << 20, MARGIN = LIMIT / BUDGET_MARGIN_PART, SLACK = 4096 };
    static const size_t sizes[] = {LIMIT / 4, LIMIT / 2 + MARGIN};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const size_t bytes = sizes[i / 2];
        struct budget budget;
        struct record_edit edit;
        budget_init(&budget, LIMIT);
        record_edit_init(&edit, &budget);
        struct buffer *buffer = buffer_create(&budget, bytes);
        memset(buffer->data, 0, bytes);
        struct batch *batch = batch_create(TRACES, 2);
        batch_append(batch, buffer, slice_of(buffer->data + bytes / 2, bytes / 2));
        batch_append(batch, buffer, slice_of(buffer->data, bytes / 2));
        batch->is_acknowledged = i % 2 > 0;
        const uint64_t others = LIMIT - 2 * bytes + SLACK + (batch->is_acknowledged ? MARGIN : 0);
        if (i < 2)
            budget_take(&budget, others);
        assert_false(record_edit_begin(&edit, batch));
        assert_true(record_edit_never_fits(&edit) == (i >= 2));
        if (i < 2) {
            budget_return(&budget, others);
            assert_true(record_edit_begin(&edit, batch));
            record_edit_end(&edit);
        }
        record_edit_fini(&edit);
        batch_unref(batch);
        buffer_unref(buffer);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

/* Spans, each of a trace and with a value of "a" of its own, of one resource of that size. */
static struct batch *one_resource(size_t resource_bytes, size_t spans)
{
    enum { SPAN_MAX = 64, MORE = 64, SPAN_ATTRIBUTES = 9 };
    const size_t size = resource_bytes + spans * SPAN_MAX + MORE;
    struct buffer *children = buffer_create(NULL, size);
    struct buffer *request = buffer_create(NULL, size);
    struct wire_writer out = wire_writer_of(children->data, size);
    memset(request->data, 'r', resource_bytes);
    for (size_t i = 0; i < spans; i++) {
        uint8_t id[TRACE_ID_BYTES] = {0};
        char value[32];
        snprintf(value, sizeof(value), "%zu", i);
        memcpy(id, &i, sizeof(i));
        const size_t text = wire_field_size(1, strlen(value));
        const size_t attribute = wire_field_size(1, 1) + wire_field_size(2, text);
        wire_write_header(
            &out, 2, wire_field_size(1, sizeof(id)) + wire_field_size(SPAN_ATTRIBUTES, attribute));
        wire_write_bytes(&out, 1, slice_of(id, sizeof(id)));
        wire_write_header(&out, SPAN_ATTRIBUTES, attribute);
        wire_write_bytes(&out, 1, slice_of_text("a"));
        wire_write_header(&out, 2, text);
        wire_write_bytes(&out, 1, slice_of_text(value));
    }
    struct slice all = wire_written(&out);
    struct buffer *head = buffer_create(NULL, resource_bytes + MORE);
    const size_t text = wire_field_size(1, resource_bytes);
    const size_t attribute = wire_field_size(1, 1) + wire_field_size(2, text);
    out = wire_writer_of(head->data, head->capacity);
    wire_write_header(&out, 1, wire_field_size(1, attribute));
    wire_write_header(&out, 1, attribute);
    wire_write_bytes(&out, 1, slice_of_text("r"));
    wire_write_header(&out, 2, text);
    wire_write_bytes(&out, 1, slice_of(request->data, resource_bytes));
    struct slice resource = wire_written(&out);
    out = wire_writer_of(request->data, size);
    wire_write_header(&out, 1, resource.size + wire_field_size(2, all.size));
    wire_write_raw(&out, resource);
    wire_write_bytes(&out, 2, all);
    struct slice written = wire_written(&out);
    struct batch *batch = two_parts(TRACES, written, written.size);
    batch->items = spans;
    buffer_unref(children);
    buffer_unref(head);
    buffer_unref(request);
    return batch;
}

/* What groups records anew repeats their resource. */
struct regrouped {
    bool is_done;
    bool is_long;
    bool never_fits;
};

static struct regrouped regroup(struct batch *batch, struct budget *budget, uint64_t written_max,
                                bool is_by_trace)
{
    struct regrouped result = {.is_done = false};
    if (is_by_trace) {
        struct trace_split split;
        trace_split_init(&split, budget);
        enum trace_split_result verdict = trace_split_run(&split, batch, written_max);
        result = (struct regrouped){verdict == TRACE_SPLIT_DONE, verdict == TRACE_SPLIT_LONG,
                                    verdict == TRACE_SPLIT_TOO_LARGE};
        trace_split_fini(&split);
        return result;
    }
    struct record_edit edit;
    record_edit_init(&edit, budget);
    edit.written_max = written_max;
    struct batch *edited = group(&edit, batch, budget);
    result = (struct regrouped){edited != NULL, edit.is_long,
                                edited == NULL && !edit.is_long && record_edit_never_fits(&edit)};
    batch_unref(edited);
    record_edit_fini(&edit);
    return result;
}

static void few_bytes_do_not_become_many(void **state)
{
    enum { SPANS = 400, SMALL = 8 << 10, LARGE = 64 << 10, LIMIT = 1 << 30, ON_LANE = 1 << 20 };
    (void)state;
    for (int is_by_trace = 0; is_by_trace < 2; is_by_trace++) {
        struct budget budget;
        budget_init(&budget, LIMIT);
        struct batch *small = one_resource(SMALL, SPANS);
        struct batch *large = one_resource(LARGE, SPANS);
        assert_true(regroup(small, &budget, UINT64_MAX, is_by_trace).is_done);
        assert_true(regroup(small, &budget, ON_LANE, is_by_trace).is_long);
        assert_true(regroup(large, &budget, UINT64_MAX, is_by_trace).never_fits);
        large->is_acknowledged = true;
        assert_true(regroup(large, &budget, UINT64_MAX, is_by_trace).never_fits);
        batch_unref(small);
        batch_unref(large);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

/* By the margin, unless it is no more than other edits take; then they wait. */
static void acknowledged_batches_exceed_the_budget_by_little(void **state)
{
    enum { LIMIT = 16 << 20, SPANS = 400, SMALL = 8 << 10 }; /* becomes more than 3 MiB */
    (void)state;
    for (int is_by_trace = 0; is_by_trace < 2; is_by_trace++) {
        struct budget budget;
        struct batch *batch = one_resource(SMALL, SPANS);
        batch->is_acknowledged = true;
        budget_init(&budget, LIMIT);
        budget_take(&budget, LIMIT - (8 << 20));
        assert_true(regroup(batch, &budget, UINT64_MAX, is_by_trace).is_done);
        budget_take(&budget, 7 << 20);
        const struct regrouped late = regroup(batch, &budget, UINT64_MAX, is_by_trace);
        assert_false(late.is_done || late.never_fits || late.is_long);
        batch->is_stored = true;
        assert_false(regroup(batch, &budget, UINT64_MAX, is_by_trace).is_done);
        budget_return(&budget, budget_used(&budget));
        batch_unref(batch);
        budget_fini(&budget);
    }
}

/* By the clock, on a lane that has been held for long already. Streams that are summed up remember
 * what they have seen: they cannot begin anew. */
static void a_lane_that_is_held_long_leaves_the_edit_to_the_helper(void **state)
{
    enum { COUNT = 200 };
    (void)state;
    clock_fake_start(NS_PER_S, NS_PER_S);
    struct lane *lane = lane_create(0);
    clock_fake_advance(LANE_EDIT_NS);
    for (size_t i = 0; i < EDITS; i++) {
        const bool remembers = edits[i] == make_deltas || edits[i] == add_up;
        struct batch *batch = many(remembers ? METRICS : LOGS, COUNT, true);
        struct record_edit edit;
        record_edit_init(&edit, NULL);
        edit.lane = lane;
        struct batch *edited = edits[i](&edit, batch, NULL);
        assert_int_equal(edit.is_long, !remembers);
        assert_int_equal(edited == NULL, edit.is_long);
        batch_unref(edited);
        edit.lane = NULL;
        edited = edits[i](&edit, batch, NULL);
        assert_non_null(edited);
        assert_false(edit.is_long);
        batch_unref(edited);
        record_edit_fini(&edit);
        batch_unref(batch);
    }
    lane_destroy(lane);
    clock_fake_stop();
}

/* Whatever the time: a long text is searched by the helper. */
static void a_lane_leaves_long_texts_to_the_helper(void **state)
{
    static const size_t sizes[] = {RECORD_LANE_TEXT_BYTES_MAX, RECORD_LANE_TEXT_BYTES_MAX + 1};
    (void)state;
    clock_fake_start(NS_PER_S, NS_PER_S);
    struct lane *lane = lane_create(0);
    for (size_t i = 0; i < 4; i++) {
        struct batch *batch = one_resource(sizes[i % 2], 1);
        struct record_edit edit;
        clock_fake_stop();
        clock_fake_start(0, NS_PER_S);
        record_edit_init(&edit, NULL);
        edit.lane = i < 2 ? lane : NULL;
        struct batch *edited = redact(&edit, batch, NULL);
        assert_int_equal(edit.is_long, i == 1);
        assert_int_equal(edited == NULL, i == 1);
        batch_unref(edited);
        record_edit_fini(&edit);
        batch_unref(batch);
    }
    lane_destroy(lane);
    clock_fake_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_do_not_matter),
        cmocka_unit_test(any_budget_gives_all_or_nothing),
        cmocka_unit_test(an_edit_stays_within_the_budget),
        cmocka_unit_test(what_never_fits_is_called_so),
        cmocka_unit_test(a_dense_point_stays_within_the_budget),
        cmocka_unit_test(few_bytes_do_not_become_many),
        cmocka_unit_test(acknowledged_batches_exceed_the_budget_by_little),
        cmocka_unit_test(a_lane_that_is_held_long_leaves_the_edit_to_the_helper),
        cmocka_unit_test(a_lane_leaves_long_texts_to_the_helper),
        cmocka_unit_test(streams_and_their_buckets_take_a_quarter_of_the_budget),
        cmocka_unit_test(few_buckets_are_written_for_short_points),
        cmocka_unit_test(points_that_have_no_room_stay_in_the_sum),
        cmocka_unit_test(a_lane_leaves_many_remembered_points_to_the_helper),
        cmocka_unit_test(a_lane_leaves_points_of_wide_streams_to_the_helper),
        cmocka_unit_test(the_values_of_a_point_are_charged),
        cmocka_unit_test(a_batch_in_parts_is_copied_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
