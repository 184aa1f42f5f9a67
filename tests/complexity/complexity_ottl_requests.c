/* SPDX-License-Identifier: Apache-2.0 */
/* OTTL where a statement's work depends on more than its own record: points that are aggregated,
 * the dictionary of profiles that is read and extended, and logs that are flattened. */
#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/ottl/ottl_runner.h"
#include "src/records/log_flattening.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

static void put_fixed(struct profile_bytes *out, uint32_t number, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, 32);
    uint8_t *end = profile_put_varint(at, wire_tag(number, WIRE_FIXED64));
    memcpy(end, &value, sizeof(value));
    out->size += (size_t)(end - at) + sizeof(value);
}

/* ---- Metrics ---- */

enum { SUM = 7, HISTOGRAM = 9, EXPONENTIAL = 10, SUMMARY = 11, SUM_ATTRIBUTES = 7, QUANTILES = 6 };

/* Ends the data (its points have been added since data) and the metric. */
static void end_metric(struct profile_bytes *out, size_t begin, size_t data, uint32_t kind)
{
    enum { TEMPORALITY = 2, DELTA = 1 };
    put_number(out, TEMPORALITY, DELTA);
    profile_bytes_wrap(out, data, kind);
    profile_bytes_wrap(out, begin, 2);
}

static size_t begin_metric(struct profile_bytes *out)
{
    put_text(out, 1, "m");
    return out->size;
}

static struct slice metrics_done(struct profile_bytes *out)
{
    profile_bytes_wrap(out, 0, 2);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static void put_number_point(struct profile_bytes *out, const char *value)
{
    enum { TIME = 3, AS_INT = 6 };
    size_t begin = out->size;
    put_attribute(out, SUM_ATTRIBUTES, "a", value);
    put_fixed(out, TIME, 1);
    put_fixed(out, AS_INT, 5);
    profile_bytes_wrap(out, begin, 1);
}

static struct slice sum_of(size_t n, bool is_distinct)
{
    struct profile_bytes out = {0};
    char name[32];
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++)
        put_number_point(&out, name_of(name, is_distinct ? i : 0));
    end_metric(&out, 0, data, SUM);
    return metrics_done(&out);
}

static struct slice distinct_points(size_t n)
{
    return sum_of(n, true);
}

static struct slice equal_points(size_t n)
{
    return sum_of(n, false);
}

static struct slice wide_points(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    size_t data = begin_metric(&out);
    for (size_t point = 0; point < 2; point++) {
        size_t begin = out.size;
        for (size_t i = 0; i < n / 2; i++)
            put_attribute(&out, SUM_ATTRIBUTES, name_of(name, i), "v");
        profile_bytes_wrap(&out, begin, 1);
    }
    end_metric(&out, 0, data, SUM);
    return metrics_done(&out);
}

static struct slice many_metrics(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        size_t data = begin_metric(&out);
        put_number_point(&out, "v");
        end_metric(&out, begin, data, SUM);
    }
    return metrics_done(&out);
}

static void put_histogram(struct profile_bytes *out, size_t bounds)
{
    enum { COUNT = 4, BUCKETS = 6, BOUNDS = 7 };
    size_t begin = out->size;
    put_fixed(out, COUNT, bounds + 1);
    for (size_t i = 0; i <= bounds; i++)
        put_fixed(out, BUCKETS, 1);
    for (size_t i = 0; i < bounds; i++) {
        uint64_t bits;
        const double bound = (double)i;
        memcpy(&bits, &bound, sizeof(bits));
        put_fixed(out, BOUNDS, bits);
    }
    profile_bytes_wrap(out, begin, 1);
}

static struct slice histograms(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++)
        put_histogram(&out, i % 2); /* those of one form are one group */
    end_metric(&out, 0, data, HISTOGRAM);
    return metrics_done(&out);
}

static struct slice long_histograms(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < 4; i++)
        put_histogram(&out, n / 4);
    end_metric(&out, 0, data, HISTOGRAM);
    return metrics_done(&out);
}

static void put_exponential_fields(struct profile_bytes *out, uint64_t scale, uint64_t offset,
                                   uint64_t count)
{
    enum { COUNT = 4, SCALE = 6, POSITIVE = 8, OFFSET = 1, BUCKET_COUNTS = 2 };
    put_fixed(out, COUNT, 1);
    put_number(out, SCALE, scale);
    size_t buckets = out->size;
    put_number(out, OFFSET, offset);
    put_number(out, BUCKET_COUNTS, count);
    profile_bytes_wrap(out, buckets, POSITIVE);
}

static void put_exponential_of(struct profile_bytes *out, uint64_t scale, uint64_t offset,
                               uint64_t count)
{
    size_t begin = out->size;
    put_exponential_fields(out, scale, offset, count);
    profile_bytes_wrap(out, begin, 1);
}

static void put_exponential(struct profile_bytes *out, uint64_t scale, uint64_t offset)
{
    put_exponential_of(out, scale, offset, 1);
}

/* Buckets far apart, of which each point fills one. Numbers are in zigzag form. */
static struct slice distant_buckets(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++)
        put_exponential(&out, 0, i % 2 == 0 ? 0 : 30000);
    end_metric(&out, 0, data, EXPONENTIAL);
    return metrics_done(&out);
}

/* Each is coarser than the one before, down to the coarsest there is, and up again. */
static struct slice scales(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++)
        put_exponential(&out, 40 - 2 * (i % 20), 2000);
    end_metric(&out, 0, data, EXPONENTIAL);
    return metrics_done(&out);
}

/* Their sums are zero again and again, and what was filled in between could be cut off. */
static struct slice wrapped_buckets(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++)
        put_exponential_of(&out, 0, i % 2 == 1 ? 30000 : 0, i % 2 == 1 || i == 0 ? 1 : UINT64_MAX);
    end_metric(&out, 0, data, EXPONENTIAL);
    return metrics_done(&out);
}

/* An empty bucket, and one far behind it, in each group. */
static struct slice empty_fronts(size_t n)
{
    enum { EXPONENTIAL_TIME = 3 };
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_fixed(&out, EXPONENTIAL_TIME, i / 2);
        put_exponential_fields(&out, 0, i % 2 == 1 ? 30000 : 0, i % 2);
        profile_bytes_wrap(&out, begin, 1);
    }
    end_metric(&out, 0, data, EXPONENTIAL);
    return metrics_done(&out);
}

static struct slice summary_points(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, 1, "", 0);
    profile_bytes_wrap(&out, data, SUMMARY);
    profile_bytes_wrap(&out, 0, 2);
    return metrics_done(&out);
}

/* Of which each point is long, and its sum short. */
static struct slice long_summary_points(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    for (size_t i = 0; i < n / 40; i++) {
        size_t begin = out.size;
        for (size_t k = 0; k < 40; k++)
            put_bytes(&out, QUANTILES, "", 0);
        profile_bytes_wrap(&out, begin, 1);
    }
    profile_bytes_wrap(&out, data, SUMMARY);
    profile_bytes_wrap(&out, 0, 2);
    return metrics_done(&out);
}

static struct slice quantiles_of_a_point(size_t n)
{
    struct profile_bytes out = {0};
    size_t data = begin_metric(&out);
    size_t begin = out.size;
    put_attribute(&out, SUM_ATTRIBUTES, "a", "v");
    for (size_t i = 0; i < n; i++)
        put_bytes(&out, QUANTILES, "", 0);
    profile_bytes_wrap(&out, begin, 1);
    profile_bytes_wrap(&out, data, SUMMARY);
    profile_bytes_wrap(&out, 0, 2);
    return metrics_done(&out);
}

/* n summaries of a point with a long attribute and many quantiles. */
static struct slice long_quantiles(size_t n)
{
    enum { TEXT_BYTES = 4000, POINT_QUANTILES = 2000 };
    struct profile_bytes out = {0};
    char text[TEXT_BYTES + 1];
    memset(text, 'v', TEXT_BYTES);
    text[TEXT_BYTES] = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t metric = out.size;
        const size_t begin = begin_metric(&out);
        put_attribute(&out, SUM_ATTRIBUTES, "a", text);
        for (size_t k = 0; k < POINT_QUANTILES; k++)
            put_bytes(&out, QUANTILES, "", 0);
        profile_bytes_wrap(&out, begin, 1);
        profile_bytes_wrap(&out, begin, SUMMARY);
        profile_bytes_wrap(&out, metric, 2);
    }
    return metrics_done(&out);
}

static const struct work_shape quantile_shapes[] = {
    {"long quantiles", long_quantiles},
};

static const struct work_shape metric_shapes[] = {
    {"distinct points", distinct_points}, {"equal points", equal_points},
    {"wide points", wide_points},         {"many metrics", many_metrics},
    {"histograms", histograms},           {"long histograms", long_histograms},
    {"distant buckets", distant_buckets}, {"scales", scales},
    {"wrapped buckets", wrapped_buckets}, {"empty fronts", empty_fronts},
    {"summary points", summary_points},   {"long summary points", long_summary_points},
    {"quantiles", quantiles_of_a_point},
};

/* ---- Profiles ---- */

enum { SAMPLE_ATTRIBUTES = 2, STRING_TABLE = 5, ATTRIBUTE_TABLE = 6 };
enum { KEY_STRING = 1 }; /* "a" */

static struct profile_bytes dictionary_begin(void)
{
    struct profile_bytes dictionary = {0};
    put_text(&dictionary, STRING_TABLE, "");
    put_text(&dictionary, STRING_TABLE, "a");
    put_bytes(&dictionary, ATTRIBUTE_TABLE, "", 0);
    return dictionary;
}

static void put_entry(struct profile_bytes *dictionary, uint64_t key, const char *value)
{
    size_t begin = dictionary->size;
    put_number(dictionary, 1, key);
    size_t inner = dictionary->size;
    put_text(dictionary, 1, value);
    profile_bytes_wrap(dictionary, inner, 2);
    profile_bytes_wrap(dictionary, begin, ATTRIBUTE_TABLE);
}

static void put_sample(struct profile_bytes *samples, uint64_t first, uint64_t count)
{
    enum { VALUES = 4 };
    size_t begin = samples->size;
    for (uint64_t i = 0; i < count; i++)
        put_number(samples, SAMPLE_ATTRIBUTES, first + i);
    put_number(samples, VALUES, 1);
    profile_bytes_wrap(samples, begin, 2);
}

/* Samples of one profile, and the dictionary behind them. */
static struct slice profiles_done(struct profile_bytes *samples, struct profile_bytes *dictionary)
{
    profile_bytes_wrap(samples, 0, 2);
    profile_bytes_wrap(samples, 0, 2);
    profile_bytes_wrap(samples, 0, 1);
    profile_bytes_wrap(dictionary, 0, 2);
    profile_bytes_add(samples, profile_bytes_slice(dictionary));
    profile_bytes_fini(dictionary);
    return message_done(samples);
}

static struct slice samples_of(size_t n, bool is_distinct)
{
    struct profile_bytes samples = {0};
    struct profile_bytes dictionary = dictionary_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_entry(&dictionary, KEY_STRING, name_of(name, is_distinct ? i : 0));
        put_sample(&samples, 1 + i, 1);
    }
    return profiles_done(&samples, &dictionary);
}

static struct slice distinct_entries(size_t n)
{
    return samples_of(n, true);
}

static struct slice equal_entries(size_t n)
{
    return samples_of(n, false);
}

static struct slice shared_entry(size_t n)
{
    struct profile_bytes samples = {0};
    struct profile_bytes dictionary = dictionary_begin();
    put_entry(&dictionary, KEY_STRING, "v");
    for (size_t i = 0; i < n; i++)
        put_sample(&samples, 1, 1);
    return profiles_done(&samples, &dictionary);
}

static struct slice wide_sample(size_t n)
{
    struct profile_bytes samples = {0};
    struct profile_bytes dictionary = dictionary_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_text(&dictionary, STRING_TABLE, name_of(name, i));
        put_entry(&dictionary, 2 + i, "v");
    }
    put_sample(&samples, 1, n);
    return profiles_done(&samples, &dictionary);
}

static struct slice unused_strings(size_t n)
{
    struct profile_bytes samples = {0};
    struct profile_bytes dictionary = dictionary_begin();
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_text(&dictionary, STRING_TABLE, name_of(name, i));
    put_sample(&samples, 0, 0);
    return profiles_done(&samples, &dictionary);
}

static struct slice equal_strings(size_t n)
{
    struct profile_bytes samples = {0};
    struct profile_bytes dictionary = dictionary_begin();
    char name[32];
    for (size_t i = 0; i < n; i++) {
        put_text(&dictionary, STRING_TABLE, "k");
        put_entry(&dictionary, 2 + i, name_of(name, i));
        put_sample(&samples, 1 + i, 1);
    }
    return profiles_done(&samples, &dictionary);
}

/* Values that are equal to nothing, and entries that statements do not take. */
static struct slice strange_entries(size_t n, bool has_unit)
{
    struct profile_bytes samples = {0};
    struct profile_bytes dictionary = dictionary_begin();
    const uint64_t not_a_number = 0x7ff8000000000001;
    for (size_t i = 0; i < n; i++) {
        size_t begin = dictionary.size;
        put_number(&dictionary, 1, KEY_STRING);
        size_t inner = dictionary.size;
        put_fixed(&dictionary, 4, not_a_number);
        profile_bytes_wrap(&dictionary, inner, 2);
        if (has_unit)
            put_number(&dictionary, 3, KEY_STRING);
        profile_bytes_wrap(&dictionary, begin, ATTRIBUTE_TABLE);
        put_sample(&samples, 1 + i, 1);
    }
    return profiles_done(&samples, &dictionary);
}

static struct slice not_numbers(size_t n)
{
    return strange_entries(n, false);
}

static struct slice with_units(size_t n)
{
    return strange_entries(n, true);
}

static const struct work_shape profile_shapes[] = {
    {"distinct entries", distinct_entries}, {"equal entries", equal_entries},
    {"a shared entry", shared_entry},       {"a wide sample", wide_sample},
    {"unused strings", unused_strings},     {"equal strings", equal_strings},
    {"not numbers", not_numbers},           {"units", with_units},
};

/* ---- Logs ---- */

enum { LOG_SEVERITY_NUMBER = 2, LOG_SEVERITY_TEXT = 3 };

static void put_record(struct profile_bytes *out)
{
    size_t begin = out->size;
    put_text(out, LOG_SEVERITY_TEXT, "INFO");
    profile_bytes_wrap(out, begin, 2);
}

/* A Resource with that many scopes of that many records. */
static void put_resource(struct profile_bytes *out, const char *host, size_t scopes, size_t records)
{
    size_t begin = out->size;
    put_attribute(out, 1, "host", host);
    profile_bytes_wrap(out, begin, 1);
    for (size_t s = 0; s < scopes; s++) {
        size_t scope = out->size;
        for (size_t r = 0; r < records; r++)
            put_record(out);
        profile_bytes_wrap(out, scope, 2);
    }
    profile_bytes_wrap(out, begin, 1);
}

static struct slice one_resource(size_t n)
{
    struct profile_bytes out = {0};
    put_resource(&out, "h", 1, n);
    return message_done(&out);
}

static struct slice one_record_scopes(size_t n)
{
    struct profile_bytes out = {0};
    put_resource(&out, "h", n, 1);
    return message_done(&out);
}

static struct slice resources_of(size_t n, bool is_distinct)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_resource(&out, name_of(name, is_distinct ? i : 0), 1, 1);
    return message_done(&out);
}

static struct slice distinct_resources(size_t n)
{
    return resources_of(n, true);
}

static struct slice equal_resources(size_t n)
{
    return resources_of(n, false);
}

static const struct work_shape log_shapes[] = {
    {"one resource", one_resource},
    {"one record in each scope", one_record_scopes},
    {"distinct resources", distinct_resources},
    {"equal resources", equal_resources},
};

/* One record that has two fields again and again, the one of the higher number first. */
static struct slice repeated_fields(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_text(&out, LOG_SEVERITY_TEXT, "");
    for (size_t i = 0; i < n; i++)
        put_number(&out, LOG_SEVERITY_NUMBER, 1);
    for (unsigned i = 0; i < 2; i++)
        profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static const struct work_shape record_shapes[] = {
    {"repeated fields", repeated_fields},
};

/* n records with an attribute whose key is long and whose map has many entries with no key. */
static struct slice long_prefixes(size_t n)
{
    enum { PREFIX_BYTES = 4000, ENTRIES = 2000, LOG_ATTRIBUTES = 6, MAP_VALUE = 6 };
    struct profile_bytes out = {0};
    char prefix[PREFIX_BYTES + 1];
    memset(prefix, 'k', PREFIX_BYTES);
    prefix[PREFIX_BYTES] = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = out.size;
        put_text(&out, 1, prefix);
        const size_t map = out.size;
        for (size_t k = 0; k < ENTRIES; k++)
            put_bytes(&out, 1, "", 0);
        profile_bytes_wrap(&out, map, MAP_VALUE);
        profile_bytes_wrap(&out, map, 2);
        profile_bytes_wrap(&out, begin, LOG_ATTRIBUTES);
        profile_bytes_wrap(&out, begin, 2);
    }
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static const struct work_shape prefix_shapes[] = {
    {"long prefixes", long_prefixes},
};

static void run_flattened(struct slice input)
{
    struct log_flattening flattening;
    struct batch *batch = message_batch(LOGS, input);
    struct batch *split;
    struct batch *joined;
    log_flattening_init(&flattening, NULL);
    work_begin();
    enum log_flattening_verdict verdict = log_flattening_split(&flattening, batch, &split);
    assert(verdict == LOGS_DONE);
    verdict = log_flattening_join(&flattening, split, &joined);
    work_end();
    assert(verdict == LOGS_DONE);
    work_produced(split->bytes);
    work_produced(joined->bytes);
    log_flattening_fini(&flattening);
    batch_unref(split);
    batch_unref(joined);
    batch_unref(batch);
}

static const struct work_stage log_stages[] = {
    {.name = "flatten logs", .run = run_flattened, .per_byte_max = 27},
};

/* ---- Stages ---- */

static void run(struct slice input, enum signal_kind signal, enum ottl_context context,
                const char *const *statements, size_t count)
{
    struct error error;
    struct ottl_runner runner;
    struct ottl_plan *plan = ottl_plan_create(signal, OTTL_FOR_TRANSFORM);
    struct ottl_group group = {.context = context,
                               .paths = OTTL_PATHS_OF_CONTEXT,
                               .error_mode = OTTL_SILENT,
                               .statements = statements,
                               .statements_count = count};
    struct batch *batch = message_batch(signal, input);
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    ottl_runner_init(&runner, plan, NULL);
    work_begin();
    struct ottl_result result = ottl_runner_run(&runner, batch);
    work_end();
    for (size_t i = 0; i < result.batch->parts_count; i++)
        work_produced(result.batch->parts[i].bytes.size);
    batch_unref(result.batch);
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
    batch_unref(batch);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define STAGE(name, signal, context, ...)                                                          \
    static void run_##name(struct slice input)                                                     \
    {                                                                                              \
        static const char *const statements[] = {__VA_ARGS__};                                     \
        run(input, signal, context, statements, COUNT_OF(statements));                             \
    }

STAGE(sum, METRICS, OTTL_METRIC, "aggregate_on_attributes(\"sum\")")
STAGE(none, METRICS, OTTL_METRIC, "aggregate_on_attributes(\"max\", [])")
STAGE(median, METRICS, OTTL_METRIC, "aggregate_on_attributes(\"median\", [\"a\"])")
STAGE(value, METRICS, OTTL_METRIC,
      "aggregate_on_attribute_value(\"sum\", \"a\", [\"k000001\", \"v\"], \"other\")")
STAGE(percentile, METRICS, OTTL_METRIC, "extract_percentile_metric(99.0)")
STAGE(counts, METRICS, OTTL_DATA_POINT, "convert_summary_count_val_to_sum(\"delta\", true)")
STAGE(quantiles, METRICS, OTTL_METRIC, "convert_summary_quantile_val_to_gauge()")

static const struct work_stage metric_stages[] = {
    {.name = "aggregate, all keys", .run = run_sum, .per_byte_max = 78},
    {.name = "aggregate, no keys", .run = run_none, .per_byte_max = 84},
    {.name = "median", .run = run_median, .per_byte_max = 84},
    {.name = "aggregate values", .run = run_value, .per_byte_max = 84},
    {.name = "percentile", .run = run_percentile, .per_byte_max = 20},
    {.name = "counts of summaries", .run = run_counts, .per_byte_max = 20},
    {.name = "quantiles of summaries", .run = run_quantiles, .per_byte_max = 24},
};

enum { LONG_N = 100 };

static const struct work_stage quantile_stages[] = {
    {.name = "long quantiles", .run = run_quantiles, .n = LONG_N, .per_byte_max = 8},
};

STAGE(constant, PROFILES, OTTL_PROFILE_SAMPLE, "set(attributes[\"b\"], \"x\")")
STAGE(made, PROFILES, OTTL_PROFILE_SAMPLE,
      "set(attributes[\"b\"], Concat([\"x\", attributes[\"a\"]], \"-\"))")
STAGE(removed, PROFILES, OTTL_PROFILE_SAMPLE, "delete_key(attributes, \"a\")")
STAGE(replaced, PROFILES, OTTL_PROFILE_SAMPLE,
      "replace_all_patterns(attributes, \"value\", \"0\", \"1\")")
STAGE(renamed, PROFILES, OTTL_PROFILE_SAMPLE,
      "replace_all_patterns(attributes, \"key\", \"0\", \"1\")")
STAGE(type, PROFILES, OTTL_PROFILE, "set(sample_type.type, \"x\")")

static const struct work_stage profile_stages[] = {
    {.name = "set a constant", .run = run_constant, .per_byte_max = 60},
    {.name = "set what is made", .run = run_made, .per_byte_max = 87},
    {.name = "delete_key", .run = run_removed, .per_byte_max = 65},
    {.name = "replace values", .run = run_replaced, .per_byte_max = 69},
    {.name = "replace keys", .run = run_renamed, .per_byte_max = 69},
    {.name = "set a type", .run = run_type, .per_byte_max = 5},
};

STAGE(severity, LOGS, OTTL_LOG, "set(severity_number, SEVERITY_NUMBER_INFO)",
      "set(severity_text, \"INFO\")")

STAGE(prefixes, LOGS, OTTL_LOG, "flatten(attributes)")

static const struct work_stage prefix_stages[] = {
    {.name = "flatten long prefixes", .run = run_prefixes, .n = LONG_N, .per_byte_max = 20},
};

static const struct work_stage record_stages[] = {
    {.name = "set fields that are repeated", .run = run_severity, .per_byte_max = 220},
};

int main(int argc, char **argv)
{
    return work_check(metric_stages, COUNT_OF(metric_stages), metric_shapes,
                      COUNT_OF(metric_shapes), argc, argv) +
               work_check(profile_stages, COUNT_OF(profile_stages), profile_shapes,
                          COUNT_OF(profile_shapes), argc, argv) +
               work_check(log_stages, COUNT_OF(log_stages), log_shapes, COUNT_OF(log_shapes), argc,
                          argv) +
               work_check(record_stages, COUNT_OF(record_stages), record_shapes,
                          COUNT_OF(record_shapes), argc, argv) +
               work_check(prefix_stages, COUNT_OF(prefix_stages), prefix_shapes,
                          COUNT_OF(prefix_shapes), argc, argv) +
               work_check(quantile_stages, COUNT_OF(quantile_stages), quantile_shapes,
                          COUNT_OF(quantile_shapes), argc, argv) >
           0;
}
