/* SPDX-License-Identifier: Apache-2.0 */
/* Editors of transform that change the numbers of a metric's data points (contrib 0.155, processor/
 * transformprocessor/internal/metrics): another unit, other buckets. Run on the processor's
 * thread. */
#include <math.h>
#include <string.h>

#include "src/base/error.h"
#include "src/ottl/functions/metric_bytes.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_context_metrics.h"
#include "src/ottl/ottl_record.h"
#include "src/ottl/ottl_rewrite.h"

enum { NAME = 1, DESCRIPTION = 2, UNIT = 3, POINTS = 1, TEMPORALITY = 2 };
enum { HEADER_MAX = 16, POINT_MAX = 96 };

/* ---- scale_metric ---- */

/* What has to be multiplied in a message of eight-byte numbers, which keep their places. */
struct scaled {
    uint32_t doubles; /* fields, as bits */
    uint32_t integers;
    uint32_t messages; /* a field that repeats messages; 0: none */
    const struct scaled *inner;
};

static void scale_real(uint8_t *at, double factor)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof(bits));
    bits = double_bits(double_of_bits(bits) * factor);
    memcpy(at, &bits, sizeof(bits));
}

/* Out of range as on Go's amd64. */
static void scale_integer(uint8_t *at, double factor)
{
    const double limit = 9223372036854775808.0;
    int64_t integer;
    memcpy(&integer, at, sizeof(integer));
    double real = (double)integer * factor;
    integer = real >= -limit && real < limit ? (int64_t)real : INT64_MIN;
    memcpy(at, &integer, sizeof(integer));
}

/* Recursion is bounded by the tables' depth. */
static void scale_message(uint8_t *base, struct slice content, const struct scaled *what,
                          double factor)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 0 || field.number >= 32)
            continue;
        const uint32_t bit = UINT32_C(1) << field.number;
        uint8_t *end = base + (field.whole.data - content.data) + field.whole.size;
        if (field.type == WIRE_FIXED64 && (what->doubles & bit) != 0)
            scale_real(end - sizeof(uint64_t), factor);
        else if (field.type == WIRE_FIXED64 && (what->integers & bit) != 0)
            scale_integer(end - sizeof(uint64_t), factor);
        else if (field.type == WIRE_BYTES && (what->doubles & bit) != 0)
            for (size_t i = sizeof(uint64_t); i <= field.bytes.size; i += sizeof(uint64_t))
                scale_real(end - i, factor);
        else if (field.type == WIRE_BYTES && field.number == what->messages)
            scale_message(end - field.bytes.size, field.bytes, what->inner, factor);
    }
}

#define BIT(number) (UINT32_C(1) << (number))

/* AS_DOUBLE 4, AS_INT 6; SUM 5, bounds 7, exemplars 8, min 11, max 12; quantiles 6: value 2. */
static const struct scaled number_points = {.doubles = BIT(4), .integers = BIT(6)};
static const struct scaled exemplars = {.doubles = BIT(3), .integers = BIT(6)};
static const struct scaled histogram_points = {
    .doubles = BIT(5) | BIT(7) | BIT(11) | BIT(12), .messages = 8, .inner = &exemplars};
static const struct scaled quantiles = {.doubles = BIT(2)};
static const struct scaled summary_points = {.doubles = BIT(5), .messages = 6, .inner = &quantiles};
static const struct scaled numbers_data = {.messages = POINTS, .inner = &number_points};
static const struct scaled histogram_data = {.messages = POINTS, .inner = &histogram_points};
static const struct scaled summary_data = {.messages = POINTS, .inner = &summary_points};

static bool scale_metric(struct ottl_call *call, struct ottl_value *ret)
{
    double factor;
    struct slice unit = slice_of(NULL, 0);
    struct slice bytes;
    struct wire_field field;
    const bool has_unit = ottl_has(call, 1);
    (void)ret;
    if (!ottl_get_double(call, 0, &factor))
        return false;
    if (has_unit && !ottl_get_string(call, 1, &unit)) {
        char reason[OTTL_ERROR_BYTES_MAX];
        memcpy(reason, call->run->error, sizeof(reason));
        return ottl_run_fail(call->run, "could not get unit from ScaleArguments: %.400s", reason);
    }
    if (!ottl_metric_current(call->run, &bytes))
        return false;
    const enum metric_kind kind = metric_read(bytes).kind;
    if (kind == METRIC_EXPONENTIAL)
        return ottl_fail(call,
                         "exponential histograms are not supported by the 'scale_metric' function");
    if (kind == METRIC_NONE)
        return ottl_fail(call, "unsupported metric type: 'Empty'");
    const size_t size = bytes.size + unit.size + HEADER_MAX;
    uint8_t *room = ottl_alloc(call, size);
    if (room == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(room, size);
    struct wire_reader reader = wire_reader_of(bytes);
    while (wire_next_field(&reader, &field))
        if (!has_unit || field.number != UNIT)
            wire_write_raw(&writer, field.whole);
    if (unit.size > 0)
        wire_write_bytes(&writer, UNIT, unit);
    const struct slice written = wire_written(&writer);
    const struct scaled metric = {.messages = (uint32_t)kind,
                                  .inner = kind == METRIC_HISTOGRAM ? &histogram_data
                                           : kind == METRIC_SUMMARY ? &summary_data
                                                                    : &numbers_data};
    scale_message(room, written, &metric, factor);
    ottl_metric_replace(call->run, written);
    return true;
}

/* ---- merge_histogram_buckets ---- */

enum { BUCKET_COUNTS = 6, EXPLICIT_BOUNDS = 7 };

/* Buckets of the data point at hand, with what statements have changed. */
struct buckets {
    uint64_t *counts;
    size_t counts_count;
    uint64_t *bounds; /* doubles */
    size_t bounds_count;
};

static bool read_fixed(struct ottl_call *call, const struct ottl_record *record, unsigned number,
                       uint64_t **ret, size_t *ret_count)
{
    struct metric_point point = {.kind = METRIC_HISTOGRAM, .bytes = record->bytes};
    const bool is_set = (record->changed >> number & 1) != 0;
    const struct slice set = record->fields[number].bytes;
    struct metric_numbers numbers =
        number == BUCKET_COUNTS ? metric_counts(&point) : metric_bounds(&point);
    size_t count = is_set ? set.size / sizeof(**ret) : metric_numbers_count(numbers);
    *ret_count = 0;
    *ret = ottl_alloc(call, count * sizeof(**ret));
    if (*ret == NULL)
        return false;
    if (is_set && count > 0)
        memcpy(*ret, set.data, count * sizeof(**ret));
    while (!is_set && *ret_count < count && metric_numbers_next(&numbers, *ret + *ret_count))
        ++*ret_count;
    *ret_count = count;
    return true;
}

static void remove_bound(struct buckets *buckets, double target)
{
    const double epsilon = 1e-12;
    size_t i = 0;
    while (i < buckets->bounds_count &&
           !(fabs(double_of_bits(buckets->bounds[i]) - target) < epsilon))
        i++;
    if (i == buckets->bounds_count)
        return;
    buckets->counts[i + 1] += buckets->counts[i];
    for (size_t j = i; j + 1 < buckets->bounds_count; j++)
        buckets->bounds[j] = buckets->bounds[j + 1];
    for (size_t j = i; j + 1 < buckets->counts_count; j++)
        buckets->counts[j] = buckets->counts[j + 1];
    buckets->bounds_count--;
    buckets->counts_count--;
}

static void limit_buckets(struct buckets *buckets, uint64_t most)
{
    const size_t count = buckets->counts_count;
    if (count <= most)
        return;
    for (size_t i = 1; i < buckets->bounds_count; i++)
        if (!(double_of_bits(buckets->bounds[i]) > double_of_bits(buckets->bounds[i - 1])))
            return;
    const size_t together = (size_t)((count - 1) / most + 1);
    size_t kept = 0;
    for (size_t i = 0; i < count; i += together) {
        uint64_t sum = 0;
        for (size_t j = i; j < count && j < i + together; j++)
            sum += buckets->counts[j];
        buckets->counts[kept++] = sum;
    }
    buckets->counts_count = kept;
    kept = 0;
    for (size_t i = together - 1; i < buckets->bounds_count; i += together)
        buckets->bounds[kept++] = buckets->bounds[i];
    buckets->bounds_count = kept;
}

static bool is_limit(struct slice method)
{
    return slice_equal_text(method, "limit_buckets");
}

static const char most_expected[] =
    "target_value must be a positive integer when method is \"limit_buckets\", got %g";

static bool is_most(double target)
{
    return target >= 1 && trunc(target) == target && target <= 9223372036854775808.0;
}

static bool check_merge(const struct ottl_preparation *preparation, void **ret_state,
                        struct error *error)
{
    const struct slice method = ottl_literal_text(preparation, 1);
    struct ottl_value target;
    *ret_state = NULL;
    if (ottl_is_given(preparation, 1) && !is_limit(method) &&
        !slice_equal_text(method, "remove_explicit_bound"))
        return error_set(error,
                         "unsupported method \"%.*s\", expected \"remove_explicit_bound\" or "
                         "\"limit_buckets\"",
                         (int)method.size, (const char *)method.data);
    if (!ottl_is_constant(preparation, 0, &target))
        return true;
    if (target.type == OTTL_NIL)
        return error_set(error, "target_value must not be nil");
    double real = target.type == OTTL_INT      ? (double)target.integer
                  : target.type == OTTL_DOUBLE ? target.real
                                               : 1;
    return !is_limit(method) || is_most(real) || error_set(error, most_expected, real);
}

static bool merge_buckets(struct ottl_call *call, struct ottl_value *ret)
{
    struct ottl_record *record = call->run->records[OTTL_DATA_POINT];
    struct slice method = slice_of(NULL, 0);
    struct buckets buckets;
    double target;
    bool has_target;
    (void)ret;
    if (record->kind != OTTL_HISTOGRAM)
        return true;
    if (!ottl_get_double_like(call, 0, &target, &has_target) ||
        (ottl_has(call, 1) && !ottl_get_string(call, 1, &method)))
        return false;
    if (!has_target)
        return ottl_fail(call, "target_value must not be nil");
    if (is_limit(method) && !is_most(target))
        return ottl_fail(call, most_expected, target);
    if (!record->is_scanned && !ottl_record_scan(record))
        return ottl_run_no_memory(call->run);
    if (!read_fixed(call, record, BUCKET_COUNTS, &buckets.counts, &buckets.counts_count) ||
        !read_fixed(call, record, EXPLICIT_BOUNDS, &buckets.bounds, &buckets.bounds_count))
        return false;
    const size_t before = buckets.counts_count;
    if (buckets.bounds_count + 1 != before || before == 1)
        return true;
    if (is_limit(method))
        limit_buckets(&buckets, target < 1e9 ? (uint64_t)target : UINT64_MAX);
    else
        remove_bound(&buckets, target);
    if (buckets.counts_count == before)
        return true;
    return (ottl_record_set_bytes(
                record, BUCKET_COUNTS,
                slice_of(buckets.counts, buckets.counts_count * sizeof(uint64_t))) &&
            ottl_record_set_bytes(
                record, EXPLICIT_BOUNDS,
                slice_of(buckets.bounds, buckets.bounds_count * sizeof(uint64_t)))) ||
           ottl_run_no_memory(call->run);
}

/* ---- convert_exponential_histogram_to_histogram ---- */

enum distribution { UPPER, MIDPOINT, UNIFORM, BY_SHARE };

struct conversion {
    enum distribution distribution;
    double *bounds;
    size_t count;
    uint64_t *counts; /* of the point at hand */
};

static bool read_distribution(struct slice text, enum distribution *ret)
{
    static const char *const names[] = {
        [UPPER] = "upper", [MIDPOINT] = "midpoint", [UNIFORM] = "uniform", [BY_SHARE] = "random"};
    *ret = BY_SHARE;
    if (text.size == 0)
        return true;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *ret = (enum distribution)i;
        if (slice_equal_text(text, names[i]))
            return true;
    }
    return false;
}

static bool check_conversion(const struct ottl_preparation *preparation, void **ret_state,
                             struct error *error)
{
    const struct slice text = ottl_literal_text(preparation, 0);
    enum distribution distribution;
    *ret_state = NULL;
    if (!read_distribution(text, &distribution))
        return error_set(error,
                         "invalid conversion function: %.*s, must be one of [upper, midpoint, "
                         "random, uniform]",
                         (int)text.size, (const char *)text.data);
    return ottl_literal_items(preparation, 1) > 0 ||
           error_set(error, "explicit bounds cannot be empty: []");
}

/* A bucket from lower to upper that lies in more than one of the others. */
static void distribute(struct conversion *to, uint64_t count, double lower, double upper)
{
    const size_t last = to->count - 1;
    size_t start = 0;
    size_t end;
    if (to->distribution == UPPER || to->distribution == MIDPOINT) {
        const bool is_upper = to->distribution == UPPER;
        const double at = is_upper ? upper : (upper + lower) / 2;
        while (start < to->count && !(at <= to->bounds[start]))
            start++;
        if (start == to->count)
            start = last;
        else if (!is_upper && start > 0)
            start--;
        to->counts[start] += count;
        return;
    }
    while (start < last && !(lower <= to->bounds[start]))
        start++;
    for (end = start; end < last && !(upper <= to->bounds[end]);)
        end++;
    const uint64_t buckets = end - start + 1;
    uint64_t left = count;
    for (size_t i = start; to->distribution == BY_SHARE && end > start && i <= end; i++) {
        double from = i == 0 || to->bounds[i - 1] < lower ? lower : to->bounds[i - 1];
        double share = (fmin(to->bounds[i], upper) - from) / (upper - lower);
        double part = share > 0 ? floor((double)count * share) : 0;
        uint64_t whole = part < (double)left ? (uint64_t)part : left;
        to->counts[i] += whole;
        left -= whole;
    }
    for (size_t i = start; i <= end; i++)
        to->counts[i] += left / buckets + (i - start < left % buckets);
}

static void convert_buckets(struct conversion *to, const struct metric_point *point)
{
    enum { SCALE_MIN = -4096 }; /* here and below the factor is infinite */
    const double factor = ldexp(M_LN2, point->scale > SCALE_MIN ? -point->scale : -SCALE_MIN);
    struct metric_numbers numbers = metric_buckets_counts(point->positive);
    uint32_t index = (uint32_t)metric_buckets_offset(point->positive);
    uint64_t count;
    memset(to->counts, 0, to->count * sizeof(to->counts[0]));
    if (point->zero_count > 0 && to->bounds[0] == 0)
        to->counts[0] += point->zero_count;
    for (; metric_numbers_next(&numbers, &count); index++) {
        const double lower = exp((double)(int32_t)index * factor);
        const double upper = exp((double)(int32_t)(index + 1) * factor);
        size_t i = 1;
        if (lower > to->bounds[to->count - 1]) {
            to->counts[to->count - 1] += count;
            continue;
        }
        while (i < to->count && !(lower > to->bounds[i - 1] && upper <= to->bounds[i]))
            i++;
        if (i < to->count)
            to->counts[i - 1] += count;
        else
            distribute(to, count, lower, upper);
    }
}

/* Of ExponentialHistogramDataPoint, and of HistogramDataPoint. */
enum { EXP_ATTRIBUTES = 1, EXP_EXEMPLARS = 11, EXP_MIN = 12, EXP_MAX = 13 };
enum { ATTRIBUTES = 9, EXEMPLARS = 8, MIN = 11, MAX = 12, START = 2, TIME = 3, COUNT = 4, SUM = 5 };

static void convert_point(struct conversion *to, struct slice bytes, uint8_t *room, size_t size,
                          struct slice *ret)
{
    const struct metric_point point = metric_point_read(METRIC_EXPONENTIAL, bytes);
    struct wire_writer writer = wire_writer_of(room, size);
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    uint64_t min = 0;
    uint64_t max = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number == EXP_ATTRIBUTES && field.type == WIRE_BYTES)
            wire_write_bytes(&writer, ATTRIBUTES, field.bytes);
        else if (field.number == EXP_EXEMPLARS && field.type == WIRE_BYTES)
            wire_write_bytes(&writer, EXEMPLARS, field.bytes);
        else if (field.number == EXP_MIN)
            min = field.number_value;
        else if (field.number == EXP_MAX)
            max = field.number_value;
    }
    convert_buckets(to, &point);
    if (point.start_ns != 0)
        wire_write_fixed64(&writer, START, point.start_ns);
    if (point.time_ns != 0)
        wire_write_fixed64(&writer, TIME, point.time_ns);
    if (point.count != 0)
        wire_write_fixed64(&writer, COUNT, point.count);
    wire_write_fixed64(&writer, SUM, double_bits(point.has_sum ? point.sum : 0));
    wire_write_bytes(&writer, BUCKET_COUNTS,
                     slice_of(to->counts, to->count * sizeof(to->counts[0])));
    wire_write_bytes(&writer, EXPLICIT_BOUNDS,
                     slice_of(to->bounds, to->count * sizeof(to->bounds[0])));
    wire_write_fixed64(&writer, MIN, min);
    wire_write_fixed64(&writer, MAX, max);
    *ret = wire_written(&writer);
}

static bool convert_histogram(struct ottl_call *call, struct ottl_value *ret)
{
    struct conversion to = {.count = ottl_items(call, 1)};
    struct slice text;
    struct slice bytes;
    struct slice point;
    size_t points_count = 0;
    size_t most = 0;
    (void)ret;
    if (!ottl_get_string(call, 0, &text) || !ottl_metric_current(call->run, &bytes))
        return false;
    const struct metric metric = metric_read(bytes);
    if (metric.kind != METRIC_EXPONENTIAL)
        return true;
    read_distribution(text, &to.distribution);
    to.bounds = ottl_alloc(call, to.count * sizeof(to.bounds[0]));
    to.counts = ottl_alloc(call, to.count * sizeof(to.counts[0]));
    if (to.bounds == NULL || to.counts == NULL)
        return false;
    for (unsigned i = 0; i < to.count; i++) {
        struct ottl_value bound;
        if (!ottl_get_item(call, 1, i, &bound))
            return false;
        to.bounds[i] = bound.real;
    }
    struct metric_items points = metric_items_of(metric.data, POINTS);
    for (; metric_items_next(&points, &point); points_count++)
        most = point.size > most ? point.size : most;
    const size_t fixed = POINT_MAX + 2 * to.count * sizeof(uint64_t);
    const size_t size = bytes.size + metric.data.size + (points_count + 1) * fixed;
    uint8_t *one = ottl_alloc(call, 2 * most + fixed);
    uint8_t *data_room = ottl_alloc(call, size);
    uint8_t *room = ottl_alloc(call, 2 * size);
    if (one == NULL || data_room == NULL || room == NULL)
        return false;
    struct wire_writer data = wire_writer_of(data_room, size);
    points = metric_items_of(metric.data, POINTS);
    while (metric_items_next(&points, &point)) {
        convert_point(&to, point, one, 2 * most + fixed, &point);
        wire_write_bytes(&data, POINTS, point);
    }
    if (metric.temporality != 0)
        wire_write_number(&data, TEMPORALITY, metric.temporality);
    struct wire_writer writer = wire_writer_of(room, 2 * size);
    if (metric.name.size > 0)
        wire_write_bytes(&writer, NAME, metric.name);
    if (metric.description.size > 0)
        wire_write_bytes(&writer, DESCRIPTION, metric.description);
    if (metric.unit.size > 0)
        wire_write_bytes(&writer, UNIT, metric.unit);
    wire_write_bytes(&writer, METRIC_HISTOGRAM, wire_written(&data));
    ottl_metric_replace(call->run, wire_written(&writer));
    return true;
}

static const struct ottl_parameter convert_parameters[] = {
    {"DistributionFn", OTTL_TEXT_LITERAL, false, false},
    {"ExplicitBounds", OTTL_DOUBLE_LITERAL, false, true},
    {.name = NULL}};
static const struct ottl_parameter scale_parameters[] = {
    {"Multiplier", OTTL_DOUBLE_LITERAL, false, false},
    {"Unit", OTTL_STRINGS_ONLY, true, false},
    {.name = NULL}};
static const struct ottl_parameter merge_parameters[] = {
    {"TargetValue", OTTL_DOUBLE_LIKE, false, false},
    {"Method", OTTL_TEXT_LITERAL, true, false},
    {.name = NULL}};

const struct ottl_function ottl_metric_value_functions[] = {
    {.name = "scale_metric",
     .parameters = scale_parameters,
     .evaluate = scale_metric,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC),
     .makes_metrics = true},
    {.name = "convert_exponential_histogram_to_histogram",
     .parameters = convert_parameters,
     .evaluate = convert_histogram,
     .prepare = check_conversion,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC),
     .makes_metrics = true},
    {.name = "merge_histogram_buckets",
     .parameters = merge_parameters,
     .evaluate = merge_buckets,
     .prepare = check_merge,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_DATA_POINT)},
    {.name = NULL},
};
