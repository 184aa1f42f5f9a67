/* SPDX-License-Identifier: Apache-2.0 */
/* Editors of transform that make one data point of several (contrib 0.155, internal/coreinternal/
 * aggregateutil): those of a metric whose attributes and times are equal once attributes are
 * removed or renamed. Points keep the order in which their attributes come first. Run on the
 * processor's thread. */
#include <math.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/base/random.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/ottl/functions/metric_bytes.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_limits.h"
#include "src/ottl/ottl_rewrite.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum aggregation { SUM, MEAN, MIN, MAX, MEDIAN, COUNT, AGGREGATIONS };

static const char *const aggregations[AGGREGATIONS] = {"sum", "mean",   "min",
                                                       "max", "median", "count"};

/* Fields of KeyValue and AnyValue; of HistogramDataPoint; of ExponentialHistogramDataPoint and its
 * Buckets. */
enum { KEY = 1, VALUE = 2, STRING_VALUE = 1 };
enum { POINT_COUNT = 4, POINT_SUM = 5 };
enum { BUCKET_COUNTS = 6, POINT_FLAGS = 10, POINT_MIN = 11, POINT_MAX = 12 };
enum { ZERO_COUNT = 7, POSITIVE = 8, NEGATIVE = 9, EXPONENTIAL_MIN = 12, EXPONENTIAL_MAX = 13 };
enum { BUCKETS_OFFSET = 1, BUCKETS_COUNTS = 2 };

/* Bytes that numbers of one merged point take at most. */
enum { MERGED_NUMBERS_MAX = 160 };
/* Buckets of one side of a merged exponential histogram: they may lie far apart. */
enum { MERGED_BUCKETS_MAX = 16 * 1024 };

/* ---- Points ---- */

struct point {
    struct slice bytes; /* with attributes removed or renamed */
    uint32_t next;      /* of the same group, plus 1; 0: none */
};

struct group {
    struct slice key;
    uint64_t hash;
    uint32_t first; /* points */
    uint32_t last;
    uint32_t count;
};

struct aggregate {
    struct ottl_call *call;
    struct metric metric;
    enum aggregation function;
    struct arena keys;
    struct point *points;
    uint32_t points_count;
    struct group *groups;
    uint32_t groups_count;
    uint32_t *places; /* a hash table of groups, plus 1; a power of two of them */
    uint32_t places_mask;
    uint64_t seed;
    /* For exponential histograms; NULL until two points are merged. */
    struct buckets *sides[2];
};

/* What one attribute becomes. */
enum fate { KEPT, REMOVED, RENAMED };

/* is_settled: an earlier attribute of the point was renamed, or had the key. */
typedef enum fate (*attribute_fate)(struct ottl_call *call, struct slice key, struct slice value,
                                    bool *is_settled);

static enum fate keep_listed(struct ottl_call *call, struct slice key, struct slice value,
                             bool *is_settled)
{
    (void)value;
    (void)is_settled;
    for (unsigned i = 0; i < ottl_items(call, 1); i++) {
        struct slice kept;
        if (ottl_get_item_string(call, 1, i, &kept) && slice_equal(kept, key))
            return KEPT;
    }
    return REMOVED;
}

/* Values that are no strings count as "". */
static enum fate rename_listed(struct ottl_call *call, struct slice key, struct slice encoded,
                               bool *is_settled)
{
    struct slice wanted;
    if (*is_settled || !ottl_get_string(call, 1, &wanted) || !slice_equal(wanted, key))
        return KEPT;
    const struct value value = value_read(encoded);
    const struct slice text = value.type == VALUE_STRING ? value.bytes : slice_of(NULL, 0);
    *is_settled = true;
    for (unsigned i = 0; i < ottl_items(call, 2); i++) {
        struct slice item;
        if (ottl_get_item_string(call, 2, i, &item) && slice_equal(item, text))
            return RENAMED;
    }
    return KEPT;
}

static void read_entry(struct slice content, struct slice *ret_key, struct slice *ret_value)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    *ret_key = *ret_value = slice_of(NULL, 0);
    while (wire_next_field(&reader, &field))
        if (field.type == WIRE_BYTES && field.number == KEY)
            *ret_key = field.bytes;
        else if (field.type == WIRE_BYTES && field.number == VALUE)
            *ret_value = field.bytes;
}

static void put_entry(struct wire_writer *writer, uint32_t number, struct slice key,
                      struct slice text)
{
    const size_t value = wire_field_size(STRING_VALUE, text.size);
    wire_write_header(writer, number,
                      wire_field_size(KEY, key.size) + wire_field_size(VALUE, value));
    wire_write_bytes(writer, KEY, key);
    wire_write_header(writer, VALUE, value);
    wire_write_bytes(writer, STRING_VALUE, text);
}

/* The point itself, when its attributes stay. */
static bool edit_attributes(struct aggregate *self, struct slice bytes, attribute_fate fate_of,
                            struct slice new_value, struct slice *ret)
{
    const uint32_t number = metric_point_attributes(self->metric.kind);
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    struct wire_writer writer = wire_writer_of(NULL, 0);
    struct slice key, value;
    bool is_settled = false;
    bool is_edited = false;
    *ret = bytes;
    while (wire_next_field(&reader, &field)) {
        enum fate fate = KEPT;
        if (field.number == number && field.type == WIRE_BYTES) {
            read_entry(field.bytes, &key, &value);
            fate = fate_of(self->call, key, value, &is_settled);
        }
        if (fate != KEPT && !is_edited) {
            is_edited = true;
            if (!metric_room(self->call, bytes.size + new_value.size + 4 * METRIC_HEADER_MAX,
                             &writer))
                return false;
            wire_write_raw(&writer, slice_of(bytes.data, (size_t)(field.whole.data - bytes.data)));
        }
        if (fate == RENAMED)
            put_entry(&writer, number, key, new_value);
        else if (fate == KEPT && is_edited)
            wire_write_raw(&writer, field.whole);
    }
    if (is_edited)
        *ret = wire_written(&writer);
    return true;
}

static bool read_points(struct aggregate *self, attribute_fate fate_of, struct slice new_value)
{
    struct metric_items items = metric_items_of(self->metric.data, DATA_POINTS);
    struct slice bytes;
    size_t count = 0;
    while (metric_items_next(&items, &bytes))
        count++;
    self->points = ottl_alloc(self->call, count * sizeof(*self->points));
    if (self->points == NULL)
        return false;
    items = metric_items_of(self->metric.data, DATA_POINTS);
    while (metric_items_next(&items, &bytes)) {
        struct point *point = &self->points[self->points_count++];
        *point = (struct point){.bytes = bytes};
        if (fate_of != NULL && !edit_attributes(self, bytes, fate_of, new_value, &point->bytes))
            return false;
    }
    return true;
}

/* ---- Groups ---- */

/* Numbers of a distribution that metric_point does not have. */
struct extremes {
    bool has_min;
    bool has_max;
    double min;
    double max;
    uint32_t flags;
};

static struct extremes read_extremes(enum metric_kind kind, struct slice bytes)
{
    const uint32_t min = kind == METRIC_HISTOGRAM ? POINT_MIN : EXPONENTIAL_MIN;
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    struct extremes read = {.flags = 0};
    while (wire_next_field(&reader, &field)) {
        if (field.number == min && field.type == WIRE_FIXED64) {
            read.has_min = true;
            read.min = double_of_bits(field.number_value);
        } else if (field.number == min + 1 && field.type == WIRE_FIXED64) {
            read.has_max = true;
            read.max = double_of_bits(field.number_value);
        } else if (field.number == POINT_FLAGS && field.type == WIRE_VARINT) {
            read.flags = (uint32_t)field.number_value;
        }
    }
    return read;
}

/* What else must be equal, in front of the attributes' key. */
struct key_head {
    uint64_t time_ns;
    uint64_t start_ns; /* deltas: only what began at the same time is added up */
    uint32_t flags;
    int32_t scale;
    uint32_t bounds_bytes;
    uint8_t has_min;
    uint8_t has_max;
    uint8_t unused[2];
};

static bool no_keys(struct aggregate *self)
{
    return ottl_no_budget(self->call, self->keys.refused_bytes);
}

static bool make_key(struct aggregate *self, struct slice bytes, struct slice *ret)
{
    const enum metric_kind kind = self->metric.kind;
    const struct metric_point point = metric_point_read(kind, bytes);
    struct metric_numbers bounds = {.number = 0};
    struct key_head head = {.time_ns = point.time_ns};
    struct slice attributes;
    if (kind != METRIC_GAUGE && self->metric.temporality == TEMPORALITY_DELTA)
        head.start_ns = point.start_ns;
    if (kind == METRIC_HISTOGRAM || kind == METRIC_EXPONENTIAL) {
        const struct extremes extremes = read_extremes(kind, bytes);
        head.flags = extremes.flags;
        head.has_min = extremes.has_min;
        head.has_max = extremes.has_max;
    }
    if (kind == METRIC_EXPONENTIAL)
        head.scale = point.scale;
    if (kind == METRIC_HISTOGRAM) {
        bounds = metric_bounds(&point);
        head.bounds_bytes = (uint32_t)(metric_numbers_count(bounds) * sizeof(uint64_t));
    }
    if (!attributes_to_json(&self->keys, bytes, metric_point_attributes(kind), &attributes))
        return no_keys(self);
    const size_t size = sizeof(head) + head.bounds_bytes + attributes.size;
    uint8_t *key = arena_try_alloc(&self->keys, size);
    if (key == NULL)
        return no_keys(self);
    memcpy(key, &head, sizeof(head));
    uint8_t *at = key + sizeof(head);
    for (uint64_t bound; kind == METRIC_HISTOGRAM && metric_numbers_next(&bounds, &bound);
         at += sizeof(bound))
        memcpy(at, &bound, sizeof(bound));
    memcpy(at, attributes.data, attributes.size);
    *ret = slice_of(key, (size_t)(at - key) + attributes.size);
    return true;
}

static void add_to_group(struct aggregate *self, uint32_t number, struct slice key)
{
    const uint64_t hash = XXH3_64bits_withSeed(key.data, key.size, self->seed);
    uint32_t place = (uint32_t)hash & self->places_mask;
    for (; self->places[place] != 0; place = (place + 1) & self->places_mask) {
        struct group *group = &self->groups[self->places[place] - 1];
        if (group->hash != hash || !slice_equal(group->key, key))
            continue;
        self->points[group->last].next = number + 1;
        group->last = number;
        group->count++;
        return;
    }
    self->groups[self->groups_count++] =
        (struct group){.key = key, .hash = hash, .first = number, .last = number, .count = 1};
    self->places[place] = self->groups_count;
}

static bool group_points(struct aggregate *self)
{
    uint32_t places = 2;
    while (places < 2 * self->points_count)
        places *= 2;
    self->groups = ottl_alloc(self->call, self->points_count * sizeof(*self->groups));
    self->places = ottl_alloc(self->call, places * sizeof(*self->places));
    if (self->groups == NULL || self->places == NULL)
        return false;
    memset(self->places, 0, places * sizeof(*self->places));
    self->places_mask = places - 1;
    self->seed = (uint64_t)(random_uniform() * 0x1p53);
    for (uint32_t i = 0; i < self->points_count; i++) {
        struct slice key;
        if (!make_key(self, self->points[i].bytes, &key))
            return false;
        add_to_group(self, i, key);
    }
    return true;
}

/* The points of a group behind its first one: false at the end. */
static bool next_point(const struct aggregate *self, uint32_t *at, struct slice *ret)
{
    const uint32_t next = self->points[*at].next;
    if (next == 0)
        return false;
    *at = next - 1;
    *ret = self->points[*at].bytes;
    return true;
}

/* ---- Gauges and sums ---- */

static int compare_doubles(const void *left, const void *right)
{
    double a, b;
    memcpy(&a, left, sizeof(a));
    memcpy(&b, right, sizeof(b));
    return isnan(a) || isnan(b) ? isnan(b) - isnan(a) : (a > b) - (a < b);
}

static int compare_integers(const void *left, const void *right)
{
    int64_t a, b;
    memcpy(&a, left, sizeof(a));
    memcpy(&b, right, sizeof(b));
    return (a > b) - (a < b);
}

/* As Go's math.Max and Min have it: NaN unless there is an infinity, and zeros by their sign. */
static double extreme_of(double a, double b, bool is_max)
{
    const double end = is_max ? INFINITY : -INFINITY;
    if (a == end || b == end)
        return end;
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == 0 && b == 0)
        return (signbit(a) != 0) == is_max ? b : a;
    return is_max ? fmax(a, b) : fmin(a, b);
}

/* Out of range as on Go's amd64. */
static int64_t integer_of(const struct metric_point *point)
{
    const double limit = 9223372036854775808.0;
    if (point->is_integer)
        return point->integer;
    return point->real >= -limit && point->real < limit ? (int64_t)point->real : INT64_MIN;
}

static double double_of(const struct metric_point *point)
{
    return point->is_integer ? (double)point->integer : point->real;
}

static double merge_doubles(const struct aggregate *self, const struct group *group, double *all)
{
    const enum metric_kind kind = self->metric.kind;
    struct slice bytes = self->points[group->first].bytes;
    uint32_t at = group->first;
    struct metric_point point = metric_point_read(kind, bytes);
    double merged = point.real;
    size_t count = 0;
    all[count++] = merged;
    while (next_point(self, &at, &bytes)) {
        point = metric_point_read(kind, bytes);
        const double value = double_of(&point);
        all[count++] = value;
        if (self->function == SUM || self->function == MEAN)
            merged += value;
        else if (self->function == MIN || self->function == MAX)
            merged = extreme_of(merged, value, self->function == MAX);
        else if (self->function == COUNT)
            merged = group->count;
    }
    if (self->function == MEAN)
        merged /= group->count;
    if (self->function != MEDIAN)
        return merged;
    qsort(all, count, sizeof(*all), compare_doubles);
    return count % 2 == 1 ? all[count / 2] : (all[count / 2 - 1] + all[count / 2]) / 2;
}

/* Sums and means leave points with doubles out, as in Go; sums run over. */
static int64_t merge_integers(const struct aggregate *self, const struct group *group, int64_t *all)
{
    const enum metric_kind kind = self->metric.kind;
    struct slice bytes = self->points[group->first].bytes;
    uint32_t at = group->first;
    struct metric_point point = metric_point_read(kind, bytes);
    int64_t merged = point.integer;
    size_t count = 0;
    all[count++] = merged;
    while (next_point(self, &at, &bytes)) {
        point = metric_point_read(kind, bytes);
        const int64_t value = integer_of(&point);
        all[count++] = value;
        if (self->function == SUM || self->function == MEAN)
            merged = (int64_t)((uint64_t)merged + (uint64_t)(point.is_integer ? value : 0));
        else if (self->function == MIN)
            merged = value < merged ? value : merged;
        else if (self->function == MAX)
            merged = value > merged ? value : merged;
        else if (self->function == COUNT)
            merged = group->count;
    }
    if (self->function == MEAN)
        merged /= (int64_t)group->count;
    if (self->function != MEDIAN)
        return merged;
    qsort(all, count, sizeof(*all), compare_integers);
    if (count % 2 == 1)
        return all[count / 2];
    return (int64_t)((uint64_t)all[count / 2 - 1] + (uint64_t)all[count / 2]) / 2;
}

static uint64_t earliest_start(const struct aggregate *self, const struct group *group,
                               bool only_counted)
{
    const enum metric_kind kind = self->metric.kind;
    struct slice bytes = self->points[group->first].bytes;
    uint32_t at = group->first;
    uint64_t start = metric_point_read(kind, bytes).start_ns;
    while (next_point(self, &at, &bytes)) {
        const struct metric_point point = metric_point_read(kind, bytes);
        if ((!only_counted || point.count > 0) && point.start_ns < start)
            start = point.start_ns;
    }
    return start;
}

/* The fields of a point but those whose bits are set, and the start. */
static void put_rest(struct wire_writer *writer, struct slice bytes, uint32_t replaced,
                     uint64_t start_ns)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number != POINT_START &&
            (field.number >= 32 || (replaced >> field.number & 1) == 0))
            wire_write_raw(writer, field.whole);
    if (start_ns != 0)
        wire_write_fixed64(writer, POINT_START, start_ns);
}

#define BIT(number) (UINT32_C(1) << (number))

/* A point without a value stays as it is. */
static bool merge_numbers(struct aggregate *self, const struct group *group, struct slice *ret)
{
    const struct slice first = self->points[group->first].bytes;
    struct wire_reader reader = wire_reader_of(first);
    struct wire_field field;
    struct wire_writer writer;
    uint32_t number = 0;
    while (wire_next_field(&reader, &field))
        if (field.number == NUMBER_AS_DOUBLE || field.number == NUMBER_AS_INT)
            number = field.number;
    if (number == 0)
        return true;
    uint64_t *all = ottl_alloc(self->call, group->count * sizeof(*all));
    if (all == NULL || !metric_room(self->call, first.size + MERGED_NUMBERS_MAX, &writer))
        return false;
    put_rest(&writer, first, BIT(NUMBER_AS_DOUBLE) | BIT(NUMBER_AS_INT),
             earliest_start(self, group, false));
    if (number == NUMBER_AS_DOUBLE)
        wire_write_fixed64(&writer, number, double_bits(merge_doubles(self, group, (double *)all)));
    else
        wire_write_fixed64(&writer, number, (uint64_t)merge_integers(self, group, (int64_t *)all));
    *ret = wire_written(&writer);
    return true;
}

/* ---- Histograms ---- */

/* The sum of all but the buckets, over the points that have counted something. */
struct merged {
    uint64_t count;
    uint64_t zero_count;
    double sum;
    bool has_sum;
    struct extremes extremes;
    size_t exemplars_bytes; /* of points behind the first */
};

static size_t exemplars_size(enum metric_kind kind, struct slice bytes)
{
    struct metric_items items = metric_items_of(bytes, metric_point_exemplars(kind));
    struct slice exemplar;
    size_t size = 0;
    while (metric_items_next(&items, &exemplar))
        size += wire_field_size(metric_point_exemplars(kind), exemplar.size);
    return size;
}

static struct merged merge_distributions(const struct aggregate *self, const struct group *group)
{
    const enum metric_kind kind = self->metric.kind;
    struct slice bytes = self->points[group->first].bytes;
    struct metric_point point = metric_point_read(kind, bytes);
    struct merged merged = {.count = point.count,
                            .zero_count = point.zero_count,
                            .sum = point.sum,
                            .has_sum = point.has_sum,
                            .extremes = read_extremes(kind, bytes)};
    for (uint32_t at = group->first; next_point(self, &at, &bytes);) {
        const struct extremes extremes = read_extremes(kind, bytes);
        point = metric_point_read(kind, bytes);
        if (point.count == 0)
            continue;
        merged.count += point.count;
        merged.zero_count += point.zero_count;
        merged.sum += point.sum;
        merged.has_sum = true;
        if (merged.extremes.has_min && merged.extremes.min > extremes.min)
            merged.extremes.min = extremes.min;
        if (merged.extremes.has_max && merged.extremes.max < extremes.max)
            merged.extremes.max = extremes.max;
        merged.exemplars_bytes += exemplars_size(kind, bytes);
    }
    return merged;
}

/* All but the buckets. */
static void put_distribution(struct wire_writer *writer, const struct aggregate *self,
                             const struct group *group, const struct merged *merged,
                             uint32_t buckets)
{
    const enum metric_kind kind = self->metric.kind;
    const uint32_t min = kind == METRIC_HISTOGRAM ? POINT_MIN : EXPONENTIAL_MIN;
    const uint32_t exemplars = metric_point_exemplars(kind);
    struct slice bytes = self->points[group->first].bytes;
    struct slice exemplar;
    put_rest(writer, bytes, BIT(POINT_COUNT) | BIT(POINT_SUM) | BIT(min) | BIT(min + 1) | buckets,
             earliest_start(self, group, true));
    wire_write_fixed64(writer, POINT_COUNT, merged->count);
    if (merged->has_sum)
        wire_write_fixed64(writer, POINT_SUM, double_bits(merged->sum));
    if (merged->extremes.has_min)
        wire_write_fixed64(writer, min, double_bits(merged->extremes.min));
    if (merged->extremes.has_max)
        wire_write_fixed64(writer, min + 1, double_bits(merged->extremes.max));
    for (uint32_t at = group->first; next_point(self, &at, &bytes);) {
        struct metric_items items = metric_items_of(bytes, exemplars);
        if (metric_point_read(kind, bytes).count == 0)
            continue;
        while (metric_items_next(&items, &exemplar))
            wire_write_bytes(writer, exemplars, exemplar);
    }
}

static bool merge_histograms(struct aggregate *self, const struct group *group, struct slice *ret)
{
    struct slice bytes = self->points[group->first].bytes;
    struct metric_point point = metric_point_read(METRIC_HISTOGRAM, bytes);
    struct metric_numbers numbers = metric_counts(&point);
    const size_t count = metric_numbers_count(numbers);
    const struct merged merged = merge_distributions(self, group);
    struct wire_writer writer;
    uint64_t *counts = ottl_alloc(self->call, count * sizeof(*counts));
    if (counts == NULL || !metric_room(self->call,
                                       bytes.size + merged.exemplars_bytes +
                                           count * sizeof(*counts) + MERGED_NUMBERS_MAX,
                                       &writer))
        return false;
    for (size_t i = 0; i < count; i++)
        metric_numbers_next(&numbers, &counts[i]);
    for (uint32_t at = group->first; next_point(self, &at, &bytes);) {
        point = metric_point_read(METRIC_HISTOGRAM, bytes);
        numbers = metric_counts(&point);
        uint64_t added;
        for (size_t i = 0; point.count > 0 && metric_numbers_next(&numbers, &added); i++) {
            if (i == count)
                return ottl_fail(self->call,
                                 "histograms with the same bounds have %zu and %zu buckets", count,
                                 metric_numbers_count(metric_counts(&point)));
            counts[i] += added;
        }
    }
    put_distribution(&writer, self, group, &merged, BIT(BUCKET_COUNTS));
    if (count > 0)
        wire_write_bytes(&writer, BUCKET_COUNTS, slice_of(counts, count * sizeof(*counts)));
    *ret = wire_written(&writer);
    return true;
}

/* ---- Exponential histograms ---- */

/* One side of the histogram, with room before the first bucket. */
struct buckets {
    uint64_t room[3 * MERGED_BUCKETS_MAX];
    size_t begin;
    size_t count;
    int32_t offset;
    bool has_counts;     /* some bucket is not empty */
    bool has_overflowed; /* a sum of counts */
};

static bool add_behind(struct buckets *to, uint64_t count)
{
    if (to->count == MERGED_BUCKETS_MAX)
        return false;
    if (to->begin + to->count == sizeof(to->room) / sizeof(to->room[0])) {
        memmove(&to->room[MERGED_BUCKETS_MAX], &to->room[to->begin],
                to->count * sizeof(to->room[0]));
        to->begin = MERGED_BUCKETS_MAX;
    }
    to->room[to->begin + to->count++] = count;
    return true;
}

static bool add_before(struct buckets *to, uint64_t count)
{
    if (to->count == MERGED_BUCKETS_MAX)
        return false;
    if (to->begin == 0) {
        memmove(&to->room[MERGED_BUCKETS_MAX], to->room, to->count * sizeof(to->room[0]));
        to->begin = MERGED_BUCKETS_MAX;
    }
    to->room[--to->begin] = count;
    to->count++;
    to->has_counts = true; /* none that is empty comes */
    return true;
}

static bool add_at(struct buckets *to, size_t index, uint64_t count)
{
    if (index >= MERGED_BUCKETS_MAX)
        return false;
    while (to->count <= index)
        if (!add_behind(to, 0))
            return false;
    uint64_t *sum = &to->room[to->begin + index];
    to->has_overflowed = __builtin_add_overflow(*sum, count, sum);
    to->has_counts = to->has_counts || count > 0;
    return !to->has_overflowed;
}

/* Cuts off empty buckets at the front. None are filled in to be cut off here: they lie behind a
 * bucket that is not empty, and stays so. */
static void cut_front(struct buckets *to)
{
    for (; to->count > 0 && to->room[to->begin] == 0; to->count--)
        to->begin++;
}

/* Adds the buckets of a point that lie behind the first of those that are there. */
static bool add_above(struct buckets *to, struct metric_numbers numbers, int64_t shift)
{
    const bool is_first = !to->has_counts && shift > 0; /* all before it will be cut off */
    int64_t from = 0;
    uint64_t added;
    if (is_first)
        to->count = 0;
    for (int64_t i = 0; metric_numbers_next(&numbers, &added); i++) {
        if ((added == 0 && shift != 0) || i + shift < 0)
            continue;
        if (is_first && !to->has_counts)
            from = i + shift;
        if (i + shift >= MERGED_BUCKETS_MAX || !add_at(to, (size_t)(i + shift - from), added))
            return false;
    }
    return true;
}

/* Adds the buckets of a point, where Go adds them. Its buckets below those that are there lose
 * their gaps, and bucket and offset part when empty buckets are cut off at the front. False: too
 * many, or their counts are too large. */
static bool add_buckets(struct ottl_call *call, struct buckets *to, struct slice from)
{
    const int32_t offset = metric_buckets_offset(from);
    struct metric_numbers numbers = metric_buckets_counts(from);
    const size_t count = metric_numbers_count(numbers);
    if (count == 0)
        return true;
    if (offset < to->offset) {
        uint64_t *below = ottl_alloc(call, count * sizeof(*below));
        if (below == NULL)
            return false;
        for (size_t i = 0; i < count; i++)
            metric_numbers_next(&numbers, &below[i]);
        for (size_t i = count; i-- > 0;)
            if (below[i] != 0 && !add_before(to, below[i]))
                return false;
    } else {
        /* Both are int32 in Go: their difference may be negative. */
        const int64_t shift = (int32_t)((uint32_t)offset - (uint32_t)to->offset);
        if (!add_above(to, numbers, shift))
            return false;
    }
    if (offset == to->offset)
        return true;
    to->offset = offset < to->offset ? offset : to->offset;
    cut_front(to);
    return true;
}

static bool begin_side(struct aggregate *self, unsigned side, struct slice first)
{
    struct buckets **buckets = &self->sides[side];
    if (*buckets == NULL)
        *buckets = ottl_alloc(self->call, sizeof(**buckets));
    if (*buckets == NULL)
        return false;
    (*buckets)->begin = MERGED_BUCKETS_MAX;
    (*buckets)->count = 0;
    (*buckets)->has_counts = (*buckets)->has_overflowed = false;
    (*buckets)->offset = metric_buckets_offset(first);
    return add_buckets(self->call, *buckets, first);
}

static size_t side_size(const struct buckets *side, size_t *ret_counts)
{
    size_t counts = 0;
    for (size_t i = 0; i < side->count; i++)
        counts += wire_varint_size(side->room[side->begin + i]);
    *ret_counts = counts;
    return wire_field_size(BUCKETS_COUNTS, counts) + METRIC_HEADER_MAX;
}

static void put_side(struct wire_writer *writer, uint32_t number, const struct buckets *side)
{
    const uint32_t zigzag = (uint32_t)side->offset << 1 ^ (uint32_t)(side->offset >> 31);
    size_t counts;
    side_size(side, &counts);
    wire_write_header(writer, number,
                      1 + wire_varint_size(zigzag) + wire_field_size(BUCKETS_COUNTS, counts));
    wire_write_number(writer, BUCKETS_OFFSET, zigzag);
    wire_write_header(writer, BUCKETS_COUNTS, counts);
    for (size_t i = 0; i < side->count; i++)
        wire_write_varint(writer, side->room[side->begin + i]);
}

static bool merge_exponential(struct aggregate *self, const struct group *group, struct slice *ret)
{
    const struct slice first = self->points[group->first].bytes;
    struct metric_point point = metric_point_read(METRIC_EXPONENTIAL, first);
    const struct merged merged = merge_distributions(self, group);
    struct slice bytes;
    struct wire_writer writer;
    size_t counts;
    bool fits = begin_side(self, 0, point.negative) && begin_side(self, 1, point.positive);
    for (uint32_t at = group->first; fits && next_point(self, &at, &bytes);) {
        point = metric_point_read(METRIC_EXPONENTIAL, bytes);
        fits = point.count == 0 || (add_buckets(self->call, self->sides[0], point.negative) &&
                                    add_buckets(self->call, self->sides[1], point.positive));
    }
    for (size_t i = 0; i < 2 && !fits; i++)
        if (self->sides[i] != NULL && self->sides[i]->has_overflowed)
            return ottl_fail(self->call, "the counts of a bucket of exponential histograms are "
                                         "together more than 64 bits");
    if (!fits)
        return self->call->run->is_out_of_memory
                   ? false
                   : ottl_fail(self->call,
                               "the buckets of exponential histograms lie too far apart: together "
                               "they would have more than %d",
                               MERGED_BUCKETS_MAX);
    const size_t size = first.size + merged.exemplars_bytes + MERGED_NUMBERS_MAX +
                        side_size(self->sides[0], &counts) + side_size(self->sides[1], &counts);
    if (!metric_room(self->call, size, &writer))
        return false;
    put_distribution(&writer, self, group, &merged,
                     BIT(ZERO_COUNT) | BIT(POSITIVE) | BIT(NEGATIVE));
    wire_write_fixed64(&writer, ZERO_COUNT, merged.zero_count);
    put_side(&writer, POSITIVE, self->sides[1]);
    put_side(&writer, NEGATIVE, self->sides[0]);
    *ret = wire_written(&writer);
    return true;
}

/* ---- The metric ---- */

/* The first point of each group becomes what the group is. */
static bool merge_groups(struct aggregate *self)
{
    for (uint32_t i = 0; i < self->groups_count; i++) {
        const struct group *group = &self->groups[i];
        struct slice *bytes = &self->points[group->first].bytes;
        struct slice merged = *bytes;
        if (group->count == 1)
            continue;
        bool is_merged =
            self->metric.kind == METRIC_HISTOGRAM     ? merge_histograms(self, group, &merged)
            : self->metric.kind == METRIC_EXPONENTIAL ? merge_exponential(self, group, &merged)
                                                      : merge_numbers(self, group, &merged);
        if (!is_merged)
            return false;
        *bytes = merged;
    }
    return true;
}

static bool put_metric(struct aggregate *self)
{
    struct wire_writer writer;
    struct slice bytes;
    size_t size = NUMBER_POINT_MAX;
    for (uint32_t i = 0; i < self->groups_count; i++)
        size += wire_field_size(DATA_POINTS, self->points[self->groups[i].first].bytes.size);
    if (!metric_room(self->call, size, &writer))
        return false;
    for (uint32_t i = 0; i < self->groups_count; i++)
        wire_write_bytes(&writer, DATA_POINTS, self->points[self->groups[i].first].bytes);
    metric_put_sum_fields(&writer, self->metric.temporality, self->metric.is_monotonic);
    if (!metric_write(self->call, &self->metric, self->metric.kind, wire_written(&writer), &bytes))
        return false;
    ottl_metric_replace(self->call->run, bytes);
    return true;
}

static bool aggregate(struct aggregate *self, attribute_fate fate_of, struct slice new_value)
{
    arena_init_charged(&self->keys, SIZE_MAX, self->call->run->rewrite->edits.budget);
    bool is_done = read_points(self, fate_of, new_value) && group_points(self) &&
                   merge_groups(self) && put_metric(self);
    arena_clear(&self->keys);
    return is_done;
}

static bool begin(struct ottl_call *call, struct aggregate *ret)
{
    struct slice name;
    struct slice bytes;
    *ret = (struct aggregate){.call = call};
    if (!ottl_get_string(call, 0, &name))
        return false;
    while (!slice_equal_text(name, aggregations[ret->function]))
        ret->function++;
    return metric_read_current(call, &bytes, &ret->metric);
}

static bool aggregate_on_attributes(struct ottl_call *call, struct ottl_value *ret)
{
    struct aggregate self;
    (void)ret;
    if (!begin(call, &self))
        return false;
    if (self.metric.kind == METRIC_SUMMARY)
        return ottl_fail(call,
                         "aggregate_on_attributes does not support aggregating Summary metrics");
    return self.metric.kind == METRIC_NONE ||
           aggregate(&self, ottl_has(call, 1) ? keep_listed : NULL, slice_of(NULL, 0));
}

/* A summary loses its points, as in Go. */
static bool aggregate_on_attribute_value(struct ottl_call *call, struct ottl_value *ret)
{
    struct aggregate self;
    struct slice new_value;
    (void)ret;
    if (!begin(call, &self) || !ottl_get_string(call, 3, &new_value))
        return false;
    if (self.metric.kind == METRIC_SUMMARY)
        return put_metric(&self);
    return self.metric.kind == METRIC_NONE || aggregate(&self, rename_listed, new_value);
}

static bool check_function(const struct ottl_preparation *preparation, void **ret_state,
                           struct error *error)
{
    const struct slice name = ottl_literal_text(preparation, 0);
    *ret_state = NULL;
    for (unsigned i = 0; i < AGGREGATIONS; i++)
        if (slice_equal_text(name, aggregations[i]))
            return true;
    return error_set(error,
                     "invalid aggregation function: 'unsupported function: '%.*s'', valid options: "
                     "sum, mean, min, max, median, count",
                     (int)name.size, (const char *)name.data);
}

static const struct ottl_parameter on_attributes_parameters[] = {
    {"AggregationFunction", OTTL_TEXT_LITERAL, false, false},
    {"Attributes", OTTL_TEXT_LITERAL, true, true},
    {.name = NULL}};
static const struct ottl_parameter on_value_parameters[] = {
    {"AggregationFunction", OTTL_TEXT_LITERAL, false, false},
    {"Attribute", OTTL_TEXT_LITERAL, false, false},
    {"Values", OTTL_TEXT_LITERAL, false, true},
    {"NewValue", OTTL_TEXT_LITERAL, false, false},
    {.name = NULL}};

#define OF_METRICS                                                                                 \
    .users = OTTL_FOR_TRANSFORM, .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC), .makes_metrics = true

const struct ottl_function ottl_aggregate_functions[] = {
    {.name = "aggregate_on_attributes",
     .parameters = on_attributes_parameters,
     .evaluate = aggregate_on_attributes,
     .prepare = check_function,
     OF_METRICS},
    {.name = "aggregate_on_attribute_value",
     .parameters = on_value_parameters,
     .evaluate = aggregate_on_attribute_value,
     .prepare = check_function,
     OF_METRICS},
    {.name = NULL},
};
