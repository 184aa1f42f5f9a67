/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of metrics and their data points (contrib 0.155, pkg/ottl/contexts, ottlmetric and
 * ottldatapoint). What a metric's data say beside its points, temporality and the like, is a record
 * of its own; which fields a point has depends on the metric's data. Runs on the processor's
 * thread. */
#include "src/ottl/ottl_context_metrics.h"

#include <assert.h>

#include "src/otlp/wire.h"
#include "src/ottl/ottl_access.h"
#include "src/ottl/ottl_numbers.h"

/* Of Metric, and of its data. */
enum { NAME = 1, DESCRIPTION = 2, UNIT = 3, METADATA = 12 };
enum { POINTS = 1, TEMPORALITY = 2, IS_MONOTONIC = 3 };
/* Of all data points. */
enum { START = 2, TIME = 3 };
/* Of NumberDataPoint; of the others: what they have in common, and of
 * ExponentialHistogramDataPoint. */
enum { AS_DOUBLE = 4, AS_INT = 6, NUMBER_FLAGS = 8 };
enum { COUNT = 4, SUM = 5, HISTOGRAM_FLAGS = 10 };
enum { BUCKET_COUNTS = 6, EXPLICIT_BOUNDS = 7, QUANTILES = 6 };
enum { SCALE = 6, ZERO_COUNT = 7, POSITIVE = 8, NEGATIVE = 9 };
/* Of Buckets. */
enum { OFFSET = 1, COUNTS = 2, BUCKETS_BYTES_MAX = 16 };

enum ottl_metric_data ottl_metric_data_of(uint32_t field)
{
    static const uint8_t data[OTTL_METRIC_DATA_FIELD_MAX + 1] = {[5] = OTTL_GAUGE,
                                                                 [7] = OTTL_SUM,
                                                                 [9] = OTTL_HISTOGRAM,
                                                                 [10] = OTTL_EXPONENTIAL_HISTOGRAM,
                                                                 [11] = OTTL_SUMMARY};
    return field <= OTTL_METRIC_DATA_FIELD_MAX ? (enum ottl_metric_data)data[field] : OTTL_NO_DATA;
}

uint8_t ottl_data_point_attributes(enum ottl_metric_data kind)
{
    static const uint8_t attributes[] = {[OTTL_NO_DATA] = 0,
                                         [OTTL_GAUGE] = 7,
                                         [OTTL_SUM] = 7,
                                         [OTTL_HISTOGRAM] = 9,
                                         [OTTL_EXPONENTIAL_HISTOGRAM] = 1,
                                         [OTTL_SUMMARY] = 7};
    return attributes[kind];
}

void ottl_data_point_set_kind(struct ottl_record *record, enum ottl_metric_data kind)
{
    record->kind = (uint8_t)kind;
    record->attributes_field = ottl_data_point_attributes(kind);
}

/* The metric's data as a record. NULL: no memory. */
static struct ottl_record *data_of(struct ottl_run *run)
{
    struct ottl_record *data = run->records[OTTL_METRIC_DATA];
    if (!data->is_scanned && !ottl_record_scan(data)) {
        ottl_run_no_memory(run);
        return NULL;
    }
    return data;
}

static bool has_temporality(unsigned kind)
{
    return kind == OTTL_SUM || kind == OTTL_HISTOGRAM || kind == OTTL_EXPONENTIAL_HISTOGRAM;
}

static bool get_type(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    (void)path;
    *ret = ottl_int(run->records[OTTL_METRIC_DATA]->kind);
    return true;
}

/* Go takes any value and does nothing. */
static bool set_type(struct ottl_run *run, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    (void)run;
    (void)path;
    (void)value;
    return true;
}

static bool get_temporality(struct ottl_run *run, const struct ottl_path *path,
                            struct ottl_value *ret)
{
    const struct ottl_record *data = data_of(run);
    (void)path;
    if (data == NULL)
        return false;
    *ret = has_temporality(data->kind) ? ottl_int((int32_t)ottl_field_number(data, TEMPORALITY))
                                       : ottl_nil();
    return true;
}

static bool set_temporality(struct ottl_run *run, const struct ottl_path *path,
                            const struct ottl_value *value)
{
    struct ottl_record *data = data_of(run);
    (void)path;
    if (data == NULL || !ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (has_temporality(data->kind))
        ottl_record_set_number(data, TEMPORALITY, WIRE_VARINT,
                               (uint64_t)(int64_t)(int32_t)value->integer);
    return true;
}

static bool get_monotonic(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    const struct ottl_record *data = data_of(run);
    (void)path;
    if (data == NULL)
        return false;
    *ret =
        data->kind == OTTL_SUM ? ottl_bool(ottl_field_number(data, IS_MONOTONIC) != 0) : ottl_nil();
    return true;
}

static bool set_monotonic(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    struct ottl_record *data = data_of(run);
    (void)path;
    if (data == NULL || !ottl_expect(run, value, OTTL_BOOL, "bool"))
        return false;
    if (data->kind == OTTL_SUM)
        ottl_record_set_number(data, IS_MONOTONIC, WIRE_VARINT, value->boolean);
    return true;
}

static enum ottl_message_kind points_kind(unsigned data)
{
    static const uint8_t kinds[] = {[OTTL_NO_DATA] = 0,
                                    [OTTL_GAUGE] = OTTL_NUMBER_POINTS,
                                    [OTTL_SUM] = OTTL_NUMBER_POINTS,
                                    [OTTL_HISTOGRAM] = OTTL_HISTOGRAM_POINTS,
                                    [OTTL_EXPONENTIAL_HISTOGRAM] =
                                        OTTL_EXPONENTIAL_HISTOGRAM_POINTS,
                                    [OTTL_SUMMARY] = OTTL_SUMMARY_POINTS};
    return (enum ottl_message_kind)kinds[data];
}

static bool get_points(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *data = run->records[OTTL_METRIC_DATA];
    (void)path;
    *ret = data->kind != OTTL_NO_DATA
               ? ottl_messages(points_kind(data->kind), ottl_count_field(run, data, POINTS))
               : ottl_nil();
    return true;
}

static bool set_points(struct ottl_run *run, const struct ottl_path *path,
                       const struct ottl_value *value)
{
    const unsigned kind = run->records[OTTL_METRIC_DATA]->kind;
    (void)path;
    return kind == OTTL_NO_DATA || ottl_expect_message(run, value, points_kind(kind));
}

static const struct ottl_path_row metric_rows[] = {
    {"name", ottl_get_text, ottl_set_text, NAME, false},
    {"description", ottl_get_text, ottl_set_text, DESCRIPTION, false},
    {"unit", ottl_get_text, ottl_set_text, UNIT, false},
    {"type", get_type, set_type, NAME, false},
    {"aggregation_temporality", get_temporality, set_temporality, NAME, false},
    {"is_monotonic", get_monotonic, set_monotonic, NAME, false},
    {"data_points", get_points, set_points, OTTL_NO_FIELD, false},
    {"metadata", ottl_get_attributes, ottl_set_attributes, METADATA, true},
    {.name = NULL},
};

#define METRIC_ENUMS                                                                               \
    {"AGGREGATION_TEMPORALITY_UNSPECIFIED", 0}, {"AGGREGATION_TEMPORALITY_DELTA", 1},              \
        {"AGGREGATION_TEMPORALITY_CUMULATIVE", 2}, {"METRIC_DATA_TYPE_NONE", OTTL_NO_DATA},        \
        {"METRIC_DATA_TYPE_GAUGE", OTTL_GAUGE}, {"METRIC_DATA_TYPE_SUM", OTTL_SUM},                \
        {"METRIC_DATA_TYPE_HISTOGRAM", OTTL_HISTOGRAM},                                            \
        {"METRIC_DATA_TYPE_EXPONENTIAL_HISTOGRAM", OTTL_EXPONENTIAL_HISTOGRAM},                    \
    {                                                                                              \
        "METRIC_DATA_TYPE_SUMMARY", OTTL_SUMMARY                                                   \
    }

static const struct ottl_enum metric_enums[] = {METRIC_ENUMS, {.name = NULL}};

#define OUTER_CONTEXTS                                                                             \
    OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |                               \
        OTTL_CONTEXT_BIT(OTTL_METRIC) | OTTL_CONTEXT_BIT(OTTL_OTELCOL)

const struct ottl_context_type ottl_metric_type = {
    .name = "metric",
    .reaches = OUTER_CONTEXTS,
    .rows = metric_rows,
    .enums = metric_enums,
    .attributes = METADATA,
};

static const struct ottl_path_row no_rows[] = {{.name = NULL}};

const struct ottl_context_type ottl_metric_data_type = {
    .name = "metric's data", .reaches = 0, .rows = no_rows};

/* Data points. */

static const char *point_name(unsigned kind)
{
    static const char *const names[] = {[OTTL_NO_DATA] = "no data point",
                                        [OTTL_GAUGE] = "pmetric.NumberDataPoint",
                                        [OTTL_SUM] = "pmetric.NumberDataPoint",
                                        [OTTL_HISTOGRAM] = "pmetric.HistogramDataPoint",
                                        [OTTL_EXPONENTIAL_HISTOGRAM] =
                                            "pmetric.ExponentialHistogramDataPoint",
                                        [OTTL_SUMMARY] = "pmetric.SummaryDataPoint"};
    return names[kind];
}

static bool is_number(unsigned kind)
{
    return kind == OTTL_GAUGE || kind == OTTL_SUM;
}

static bool fail_kind(struct ottl_run *run, enum ottl_metric_data wanted, unsigned found)
{
    return ottl_run_fail(run, "expects %s but got %s", point_name(wanted), point_name(found));
}

static bool fail_unsupported(struct ottl_run *run, unsigned kind)
{
    return ottl_run_fail(run, "unsupported data point type: %s", point_name(kind));
}

static double to_double(uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof(real));
    return real;
}

static uint64_t of_double(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

/* Of as_double and as_int the one that counts: that was set, or came last. 0: neither. */
static unsigned value_field(const struct ottl_record *point)
{
    bool has_double = (point->present >> AS_DOUBLE & 1) != 0;
    bool has_int = (point->present >> AS_INT & 1) != 0;
    if (has_double && has_int)
        return point->fields[AS_DOUBLE].whole.data > point->fields[AS_INT].whole.data ? AS_DOUBLE
                                                                                      : AS_INT;
    return has_double ? AS_DOUBLE : has_int ? AS_INT : 0;
}

static bool get_value_double(struct ottl_run *run, const struct ottl_path *path,
                             struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL)
        return false;
    *ret = !is_number(point->kind) ? ottl_nil()
           : value_field(point) == AS_DOUBLE
               ? ottl_double(to_double(point->fields[AS_DOUBLE].number))
               : ottl_double(0);
    return true;
}

static bool get_value_int(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL)
        return false;
    *ret = !is_number(point->kind)        ? ottl_nil()
           : value_field(point) == AS_INT ? ottl_int((int64_t)point->fields[AS_INT].number)
                                          : ottl_int(0);
    return true;
}

static bool set_value(struct ottl_run *run, const struct ottl_path *path, unsigned field,
                      uint64_t number)
{
    struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL)
        return false;
    if (!is_number(point->kind))
        return fail_kind(run, OTTL_GAUGE, point->kind);
    ottl_record_remove(point, field == AS_DOUBLE ? AS_INT : AS_DOUBLE);
    ottl_record_set_explicit(point, field, WIRE_FIXED64, number);
    return true;
}

static bool set_value_double(struct ottl_run *run, const struct ottl_path *path,
                             const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_DOUBLE, "float64") &&
           set_value(run, path, AS_DOUBLE, of_double(value->real));
}

static bool set_value_int(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_value(run, path, AS_INT, (uint64_t)value->integer);
}

static unsigned flags_field(unsigned kind)
{
    return kind == OTTL_HISTOGRAM || kind == OTTL_EXPONENTIAL_HISTOGRAM ? HISTOGRAM_FLAGS
                                                                        : NUMBER_FLAGS;
}

static bool get_flags(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL)
        return false;
    *ret = ottl_int((int64_t)(uint32_t)ottl_field_number(point, flags_field(point->kind)));
    return true;
}

static bool set_flags(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL || !ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    ottl_record_set_number(point, flags_field(point->kind), WIRE_VARINT, (uint32_t)value->integer);
    return true;
}

static bool get_count(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL)
        return false;
    *ret = is_number(point->kind) ? ottl_nil() : ottl_int((int64_t)ottl_field_number(point, COUNT));
    return true;
}

static bool set_count(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL || !ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (is_number(point->kind))
        return fail_unsupported(run, point->kind);
    ottl_record_set_number(point, COUNT, WIRE_FIXED64, (uint64_t)value->integer);
    return true;
}

static bool get_sum(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL)
        return false;
    *ret =
        is_number(point->kind) ? ottl_nil() : ottl_double(to_double(ottl_field_number(point, SUM)));
    return true;
}

static bool set_sum(struct ottl_run *run, const struct ottl_path *path,
                    const struct ottl_value *value)
{
    struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL || !ottl_expect(run, value, OTTL_DOUBLE, "float64"))
        return false;
    if (is_number(point->kind))
        return fail_unsupported(run, point->kind);
    /* In histograms its presence means something. */
    if (point->kind == OTTL_SUMMARY)
        ottl_record_set_number(point, SUM, WIRE_FIXED64, of_double(value->real));
    else
        ottl_record_set_explicit(point, SUM, WIRE_FIXED64, of_double(value->real));
    return true;
}

/* The point if it is of an exponential histogram; *ret is nil otherwise. */
static bool is_exponential(struct ottl_run *run, const struct ottl_path *path,
                           struct ottl_record **ret_point)
{
    *ret_point = ottl_record_of(run, path);
    return *ret_point != NULL && (*ret_point)->kind == OTTL_EXPONENTIAL_HISTOGRAM;
}

static int32_t of_zigzag(uint64_t number)
{
    uint32_t value = (uint32_t)number;
    return (int32_t)(value >> 1 ^ (0 - (value & 1)));
}

static uint64_t to_zigzag(int64_t integer)
{
    uint32_t value = (uint32_t)integer;
    return (uint32_t)(value << 1 ^ (0 - (value >> 31)));
}

static bool get_scale(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct ottl_record *point;
    *ret = is_exponential(run, path, &point) ? ottl_int(of_zigzag(ottl_field_number(point, SCALE)))
                                             : ottl_nil();
    return point != NULL;
}

static bool set_scale(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    struct ottl_record *point;
    if (!ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (!is_exponential(run, path, &point))
        return point != NULL && fail_kind(run, OTTL_EXPONENTIAL_HISTOGRAM, point->kind);
    ottl_record_set_number(point, SCALE, WIRE_VARINT, to_zigzag(value->integer));
    return true;
}

static bool get_zero_count(struct ottl_run *run, const struct ottl_path *path,
                           struct ottl_value *ret)
{
    struct ottl_record *point;
    *ret = is_exponential(run, path, &point)
               ? ottl_int((int64_t)ottl_field_number(point, ZERO_COUNT))
               : ottl_nil();
    return point != NULL;
}

static bool set_zero_count(struct ottl_run *run, const struct ottl_path *path,
                           const struct ottl_value *value)
{
    struct ottl_record *point;
    if (!ottl_expect(run, value, OTTL_INT, "int64"))
        return false;
    if (!is_exponential(run, path, &point))
        return point != NULL && fail_kind(run, OTTL_EXPONENTIAL_HISTOGRAM, point->kind);
    ottl_record_set_number(point, ZERO_COUNT, WIRE_FIXED64, (uint64_t)value->integer);
    return true;
}

static unsigned buckets_field(const struct ottl_path *path)
{
    return path->row->name[0] == 'p' ? POSITIVE : NEGATIVE;
}

/* The point's buckets of that side. */
struct buckets {
    struct ottl_record *point;
    struct slice content;
};

/* The point if it is of an exponential histogram. *ret_point NULL: memory is refused. */
static bool read_buckets(struct ottl_run *run, const struct ottl_path *path, struct buckets *ret)
{
    if (!is_exponential(run, path, &ret->point))
        return false;
    ret->content = ottl_field_bytes(ret->point, buckets_field(path));
    return true;
}

/* The same for setters. */
static bool expect_buckets(struct ottl_run *run, const struct ottl_path *path, struct buckets *ret)
{
    return read_buckets(run, path, ret) ||
           (ret->point != NULL && fail_kind(run, OTTL_EXPONENTIAL_HISTOGRAM, ret->point->kind));
}

static bool get_buckets(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct buckets buckets;
    *ret = read_buckets(run, path, &buckets)
               ? ottl_message(buckets_field(path) == POSITIVE ? OTTL_POSITIVE_BUCKETS
                                                              : OTTL_NEGATIVE_BUCKETS,
                              buckets.content)
               : ottl_nil();
    return buckets.point != NULL;
}

static bool set_buckets(struct ottl_run *run, const struct ottl_path *path,
                        const struct ottl_value *value)
{
    struct buckets buckets;
    return ottl_expect_message(run, value, OTTL_POSITIVE_BUCKETS) &&
           expect_buckets(run, path, &buckets) &&
           ottl_put_bytes(run, buckets.point, buckets_field(path), ottl_slice(value));
}

static bool get_offset(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct buckets buckets;
    *ret = ottl_nil();
    if (!read_buckets(run, path, &buckets))
        return buckets.point != NULL;
    struct wire_reader reader = wire_reader_of(buckets.content);
    struct wire_field field;
    ottl_work_fields(run, buckets.point, buckets.content);
    *ret = ottl_int(0);
    while (wire_next_field(&reader, &field))
        if (field.number == OFFSET)
            *ret = ottl_int(of_zigzag(field.number_value));
    return true;
}

/* Writes the buckets with another field of that number; no bytes: without it. */
static bool replace_in_buckets(struct ottl_run *run, const struct ottl_path *path,
                               const struct buckets *buckets, uint32_t number, struct slice whole)
{
    const size_t bytes = buckets->content.size + whole.size;
    uint8_t *room = ottl_memory_room(&buckets->point->memory, bytes);
    if (room == NULL)
        return ottl_run_no_memory(run);
    struct wire_writer writer = wire_writer_of(room, bytes);
    struct wire_reader reader = wire_reader_of(buckets->content);
    struct wire_field field;
    ottl_work_fields(run, buckets->point, buckets->content);
    if (number == OFFSET)
        wire_write_raw(&writer, whole);
    while (wire_next_field(&reader, &field))
        if (field.number != number)
            wire_write_raw(&writer, field.whole);
    if (number != OFFSET)
        wire_write_raw(&writer, whole);
    return ottl_put_bytes(run, buckets->point, buckets_field(path), wire_written(&writer));
}

static bool set_offset(struct ottl_run *run, const struct ottl_path *path,
                       const struct ottl_value *value)
{
    struct buckets buckets;
    uint8_t room[BUCKETS_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    if (!ottl_expect(run, value, OTTL_INT, "int64") || !expect_buckets(run, path, &buckets))
        return false;
    if ((int32_t)value->integer != 0)
        wire_write_number(&writer, OFFSET, to_zigzag(value->integer));
    return replace_in_buckets(run, path, &buckets, OFFSET, wire_written(&writer));
}

static bool get_side_counts(struct ottl_run *run, const struct ottl_path *path,
                            struct ottl_value *ret)
{
    struct buckets buckets;
    *ret = ottl_nil();
    return read_buckets(run, path, &buckets)
               ? ottl_numbers_read(run, &ottl_varint_counts, buckets.point, buckets.content, COUNTS,
                                   ret)
               : buckets.point != NULL;
}

static bool set_side_counts(struct ottl_run *run, const struct ottl_path *path,
                            const struct ottl_value *value)
{
    struct buckets buckets;
    struct slice packed;
    if (!expect_buckets(run, path, &buckets) ||
        !ottl_numbers_pack(run, &ottl_varint_counts, &buckets.point->memory, value, &packed))
        return false;
    const size_t bytes = wire_field_size(COUNTS, packed.size);
    uint8_t *room = ottl_memory_room(&buckets.point->memory, bytes);
    if (room == NULL)
        return ottl_run_no_memory(run);
    struct wire_writer writer = wire_writer_of(room, bytes);
    if (packed.size > 0)
        wire_write_bytes(&writer, COUNTS, packed);
    return replace_in_buckets(run, path, &buckets, COUNTS, wire_written(&writer));
}

static bool set_bucket_counts(struct ottl_run *run, const struct ottl_path *path,
                              const struct ottl_value *value)
{
    struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL || point->kind != OTTL_HISTOGRAM)
        return point != NULL && fail_kind(run, OTTL_HISTOGRAM, point->kind);
    return ottl_numbers_set(run, &ottl_fixed_counts, point, BUCKET_COUNTS, value);
}

static bool set_explicit_bounds(struct ottl_run *run, const struct ottl_path *path,
                                const struct ottl_value *value)
{
    struct ottl_record *point = ottl_record_of(run, path);
    if (point == NULL || point->kind != OTTL_HISTOGRAM)
        return point != NULL && fail_kind(run, OTTL_HISTOGRAM, point->kind);
    return ottl_numbers_set(run, &ottl_fixed_doubles, point, EXPLICIT_BOUNDS, value);
}

static bool get_bucket_counts(struct ottl_run *run, const struct ottl_path *path,
                              struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    *ret = ottl_nil();
    return point != NULL && (point->kind != OTTL_HISTOGRAM ||
                             ottl_numbers_get(run, &ottl_fixed_counts, point, BUCKET_COUNTS, ret));
}

static bool get_explicit_bounds(struct ottl_run *run, const struct ottl_path *path,
                                struct ottl_value *ret)
{
    const struct ottl_record *point = ottl_record_of(run, path);
    *ret = ottl_nil();
    return point != NULL &&
           (point->kind != OTTL_HISTOGRAM ||
            ottl_numbers_get(run, &ottl_fixed_doubles, point, EXPLICIT_BOUNDS, ret));
}

unsigned ottl_data_point_exemplars(enum ottl_metric_data kind)
{
    static const uint8_t fields[] = {[OTTL_NO_DATA] = 0,
                                     [OTTL_GAUGE] = 5,
                                     [OTTL_SUM] = 5,
                                     [OTTL_HISTOGRAM] = 8,
                                     [OTTL_EXPONENTIAL_HISTOGRAM] = 11,
                                     [OTTL_SUMMARY] = 0};
    return fields[kind];
}

static bool get_exemplars(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    const struct ottl_record *point = run->records[path->context];
    const unsigned field = ottl_data_point_exemplars((enum ottl_metric_data)point->kind);
    *ret = field != 0 ? ottl_messages(OTTL_EXEMPLARS, ottl_count_field(run, point, field))
                      : ottl_nil();
    return true;
}

static bool set_exemplars(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    const unsigned kind = run->records[path->context]->kind;
    return ottl_expect_message(run, value, OTTL_EXEMPLARS) &&
           (ottl_data_point_exemplars((enum ottl_metric_data)kind) != 0 ||
            fail_unsupported(run, kind));
}

static bool get_quantiles(struct ottl_run *run, const struct ottl_path *path,
                          struct ottl_value *ret)
{
    const struct ottl_record *point = run->records[path->context];
    *ret = point->kind == OTTL_SUMMARY
               ? ottl_messages(OTTL_QUANTILES, ottl_count_field(run, point, QUANTILES))
               : ottl_nil();
    return true;
}

static bool set_quantiles(struct ottl_run *run, const struct ottl_path *path,
                          const struct ottl_value *value)
{
    const unsigned kind = run->records[path->context]->kind;
    return ottl_expect_message(run, value, OTTL_QUANTILES) &&
           (kind == OTTL_SUMMARY || fail_kind(run, OTTL_SUMMARY, kind));
}

static const struct ottl_path_row data_point_rows[] = {
    {"attributes", ottl_get_attributes, ottl_set_attributes, START, true},
    {"start_time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, START, false},
    {"time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, TIME, false},
    {"start_time", ottl_get_moment, ottl_set_moment, START, false},
    {"time", ottl_get_moment, ottl_set_moment, TIME, false},
    {"value_double", get_value_double, set_value_double, OTTL_ANY_FIELD, false},
    {"value_int", get_value_int, set_value_int, OTTL_ANY_FIELD, false},
    {"flags", get_flags, set_flags, OTTL_ANY_FIELD, false},
    {"count", get_count, set_count, COUNT, false},
    {"sum", get_sum, set_sum, SUM, false},
    {"bucket_counts", get_bucket_counts, set_bucket_counts, BUCKET_COUNTS, OTTL_COPY},
    {"explicit_bounds", get_explicit_bounds, set_explicit_bounds, EXPLICIT_BOUNDS, OTTL_COPY},
    {"scale", get_scale, set_scale, SCALE, false},
    {"zero_count", get_zero_count, set_zero_count, ZERO_COUNT, false},
    {"positive", get_buckets, set_buckets, POSITIVE, false},
    {"positive.offset", get_offset, set_offset, POSITIVE, false},
    {"positive.bucket_counts", get_side_counts, set_side_counts, POSITIVE, OTTL_COPY},
    {"negative", get_buckets, set_buckets, NEGATIVE, false},
    {"negative.offset", get_offset, set_offset, NEGATIVE, false},
    {"negative.bucket_counts", get_side_counts, set_side_counts, NEGATIVE, OTTL_COPY},
    {"exemplars", get_exemplars, set_exemplars, OTTL_NO_FIELD, false},
    {"quantile_values", get_quantiles, set_quantiles, OTTL_NO_FIELD, false},
    {.name = NULL},
};

static const struct ottl_enum data_point_enums[] = {
    METRIC_ENUMS, {"FLAG_NONE", 0}, {"FLAG_NO_RECORDED_VALUE", 1}, {.name = NULL}};

const struct ottl_context_type ottl_data_point_type = {
    .name = "datapoint",
    .reaches = OUTER_CONTEXTS | OTTL_CONTEXT_BIT(OTTL_DATA_POINT),
    .rows = data_point_rows,
    .enums = data_point_enums,
    .attributes = 7,
};

/* Exemplars. */

enum { EXEMPLAR_TIME = 2, EXEMPLAR_DOUBLE = 3, EXEMPLAR_SPAN_ID = 4, EXEMPLAR_TRACE_ID = 5 };
enum { EXEMPLAR_INT = 6, FILTERED_ATTRIBUTES = 7 };

/* Which of the two values it has, the last one if it has both; 0: none. */
static unsigned exemplar_value(const struct ottl_record *exemplar)
{
    const bool has_double = (exemplar->present >> EXEMPLAR_DOUBLE & 1) != 0;
    const bool has_int = (exemplar->present >> EXEMPLAR_INT & 1) != 0;
    if (has_double && has_int)
        return exemplar->fields[EXEMPLAR_DOUBLE].whole.data >
                       exemplar->fields[EXEMPLAR_INT].whole.data
                   ? EXEMPLAR_DOUBLE
                   : EXEMPLAR_INT;
    return has_double ? EXEMPLAR_DOUBLE : has_int ? EXEMPLAR_INT : 0;
}

static bool get_exemplar_double(struct ottl_run *run, const struct ottl_path *path,
                                struct ottl_value *ret)
{
    const struct ottl_record *exemplar = ottl_record_of(run, path);
    if (exemplar == NULL)
        return false;
    *ret = ottl_double(exemplar_value(exemplar) == EXEMPLAR_DOUBLE
                           ? to_double(exemplar->fields[EXEMPLAR_DOUBLE].number)
                           : 0);
    return true;
}

static bool get_exemplar_int(struct ottl_run *run, const struct ottl_path *path,
                             struct ottl_value *ret)
{
    const struct ottl_record *exemplar = ottl_record_of(run, path);
    if (exemplar == NULL)
        return false;
    *ret = ottl_int(exemplar_value(exemplar) == EXEMPLAR_INT
                        ? (int64_t)exemplar->fields[EXEMPLAR_INT].number
                        : 0);
    return true;
}

static bool set_exemplar_value(struct ottl_run *run, const struct ottl_path *path, unsigned field,
                               uint64_t number)
{
    struct ottl_record *exemplar = ottl_record_of(run, path);
    if (exemplar == NULL)
        return false;
    ottl_record_remove(exemplar, field == EXEMPLAR_DOUBLE ? EXEMPLAR_INT : EXEMPLAR_DOUBLE);
    ottl_record_set_explicit(exemplar, field, WIRE_FIXED64, number);
    return true;
}

static bool set_exemplar_double(struct ottl_run *run, const struct ottl_path *path,
                                const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_DOUBLE, "float64") &&
           set_exemplar_value(run, path, EXEMPLAR_DOUBLE, of_double(value->real));
}

static bool set_exemplar_int(struct ottl_run *run, const struct ottl_path *path,
                             const struct ottl_value *value)
{
    return ottl_expect(run, value, OTTL_INT, "int64") &&
           set_exemplar_value(run, path, EXEMPLAR_INT, (uint64_t)value->integer);
}

static const struct ottl_path_row exemplar_rows[] = {
    {"time_unix_nano", ottl_get_nanoseconds, ottl_set_nanoseconds, EXEMPLAR_TIME, false},
    {"time", ottl_get_moment, ottl_set_moment, EXEMPLAR_TIME, false},
    {"double_value", get_exemplar_double, set_exemplar_double, OTTL_ANY_FIELD, false},
    {"int_value", get_exemplar_int, set_exemplar_int, OTTL_ANY_FIELD, false},
    {"trace_id", ottl_get_trace_id, ottl_set_trace_id, EXEMPLAR_TRACE_ID, false},
    {"trace_id.string", ottl_get_trace_id_text, ottl_set_trace_id_text, EXEMPLAR_TRACE_ID, false},
    {"span_id", ottl_get_span_id, ottl_set_span_id, EXEMPLAR_SPAN_ID, false},
    {"span_id.string", ottl_get_span_id_text, ottl_set_span_id_text, EXEMPLAR_SPAN_ID, false},
    {"filtered_attributes", ottl_get_attributes, ottl_set_attributes, FILTERED_ATTRIBUTES, true},
    {.name = NULL},
};

const struct ottl_context_type ottl_exemplar_type = {
    .name = "exemplar",
    .reaches = OUTER_CONTEXTS | OTTL_CONTEXT_BIT(OTTL_DATA_POINT) | OTTL_CONTEXT_BIT(OTTL_EXEMPLAR),
    .rows = exemplar_rows,
    .attributes = FILTERED_ATTRIBUTES,
};
