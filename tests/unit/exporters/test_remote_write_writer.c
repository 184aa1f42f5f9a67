/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP metrics as remote write requests. Expected texts are what the Go collector's translator
 * makes of the same requests. */
#include "exporters/prometheus_remote_write/remote_write_writer.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define SERVICE          TEXT("service.name", "shop")
#define GAUGE(name, body)                                                                          \
    "{\"name\":\"" name "\",\"unit\":\"By\",\"gauge\":{\"dataPoints\":[" body "]}}"
#define SUM(name, temporality, monotonic, body)                                                    \
    "{\"name\":\"" name "\",\"sum\":{\"aggregationTemporality\":" temporality                      \
    ",\"isMonotonic\":" monotonic ",\"dataPoints\":[" body "]}}"
#define HISTOGRAM(name, temporality, body)                                                         \
    "{\"name\":\"" name "\",\"histogram\":{\"aggregationTemporality\":" temporality                \
    ",\"dataPoints\":[" body "]}}"
#define EXPONENTIAL(name, body)                                                                    \
    "{\"name\":\"" name "\",\"exponentialHistogram\":{\"aggregationTemporality\":2,"               \
    "\"dataPoints\":[" body "]}}"
#define SUMMARY(name, body)  "{\"name\":\"" name "\",\"summary\":{\"dataPoints\":[" body "]}}"
#define AT(time, rest)       "{\"timeUnixNano\":\"" time "\"," rest "}"
#define POINT(rest)          AT("5000000", rest)
#define WITH(list, rest)     POINT("\"attributes\":[" list "]," rest)
#define INTEGER(number)      "\"asInt\":\"" number "\""
#define TWO(one, two)        one "," two
#define THREE(one, two, six) one "," two "," six
/* NULL-ended. */
#define METRICS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { TEXT_BYTES = 16384, BATCH_BYTES = 3000000 };

static const struct remote_write_settings standard = {
    .naming = {.name_space = "", .has_suffixes = true},
    .labels = {.has_scope = true, .has_service = true},
    .has_target_info = true,
};
static const struct remote_write_settings version_2 = {
    .naming = {.name_space = "", .has_suffixes = true},
    .labels = {.has_scope = true, .has_service = true, .is_v2 = true},
    .has_target_info = true,
    .is_v2 = true,
};

/* What was read back, as text. */
struct output {
    char text[TEXT_BYTES];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void print(struct output *output, const char *format,
                                                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    output->size += (size_t)vsnprintf(output->text + output->size, TEXT_BYTES - output->size,
                                      format, arguments);
    va_end(arguments);
    assert_true(output->size < TEXT_BYTES);
}

static double to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void print_value(struct output *output, uint64_t bits)
{
    if (bits == 0x7ff0000000000002u)
        print(output, "stale");
    else
        print(output, "%g", to_double(bits));
}

static int64_t zigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void print_label(struct output *output, struct slice label)
{
    struct wire_reader reader = wire_reader_of(label);
    struct wire_field field;
    struct slice texts[3] = {{0}};
    while (wire_read_field(&reader, &field)) {
        assert_in_range(field.number, 1, 2);
        texts[field.number] = field.bytes;
    }
    assert_null(reader.failure);
    print(output, "%.*s=%.*s,", (int)texts[1].size, (const char *)texts[1].data, (int)texts[2].size,
          (const char *)texts[2].data);
}

static void print_histogram(struct output *output, struct slice histogram)
{
    struct wire_reader reader = wire_reader_of(histogram);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        struct wire_reader inner = wire_reader_of(field.bytes);
        struct wire_field part;
        switch (field.number) {
        case 3:
        case 5:
            print(output, " %u:", field.number);
            print_value(output, field.number_value);
            break;
        case 8:
        case 11:
            print(output, " span%u", field.number);
            while (wire_read_field(&inner, &part))
                print(output, "/%lld",
                      part.number == 1 ? (long long)zigzag(part.number_value)
                                       : (long long)part.number_value);
            break;
        case 9:
        case 12:
            print(output, " deltas%u", field.number);
            while (inner.at < inner.end && inner.failure == NULL)
                print(output, "/%lld",
                      (long long)zigzag(wire_read_varint(&inner, WIRE_VARINT_BYTES_MAX)));
            break;
        case 4:
            print(output, " 4:%lld", (long long)zigzag(field.number_value));
            break;
        default:
            print(output, " %u:%lld", field.number, (long long)field.number_value);
            break;
        }
    }
    assert_null(reader.failure);
}

/* Samples and exemplars, whose labels come first. */
static void print_part(struct output *output, struct slice message, bool is_exemplar)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t value = 0;
    int64_t time_ms = 0;
    while (wire_read_field(&reader, &field)) {
        if (is_exemplar && field.number == 1)
            print_label(output, field.bytes);
        else if (field.number == (is_exemplar ? 2u : 1u))
            value = field.number_value;
        else
            time_ms = (int64_t)field.number_value;
    }
    assert_null(reader.failure);
    print_value(output, value);
    print(output, "@%lld", (long long)time_ms);
}

static void print_series(struct output *output, struct slice series)
{
    struct wire_reader reader = wire_reader_of(series);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1)
            print_label(output, field.bytes);
        else
            print(output, field.number == 2 ? " " : field.number == 3 ? " #" : " H");
        if (field.number == 4)
            print_histogram(output, field.bytes);
        else if (field.number > 1)
            print_part(output, field.bytes, field.number == 3);
    }
    assert_null(reader.failure);
    print(output, "\n");
}

static void print_metadata(struct output *output, struct slice metadata)
{
    struct wire_reader reader = wire_reader_of(metadata);
    struct wire_field field;
    print(output, "metadata");
    while (wire_read_field(&reader, &field))
        if (field.type == WIRE_BYTES)
            print(output, " %u:%.*s", field.number, (int)field.bytes.size,
                  (const char *)field.bytes.data);
        else
            print(output, " %u:%llu", field.number, (unsigned long long)field.number_value);
    print(output, "\n");
}

/* ---- version 2.0 ---- */

enum { SYMBOLS_MAX = 4096 };

/* The table of the request at hand, and which of it are referred to. */
struct symbols {
    struct slice list[SYMBOLS_MAX];
    bool is_used[SYMBOLS_MAX];
    size_t count;
};

static void read_symbols(struct symbols *symbols, struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    memset(symbols, 0, sizeof(*symbols));
    while (wire_read_field(&reader, &field)) {
        assert_in_range(field.number, 4, 5);
        if (field.number == 5)
            continue;
        for (size_t i = 0; i < symbols->count; i++)
            assert_false(slice_equal(symbols->list[i], field.bytes));
        assert_true(symbols->count < SYMBOLS_MAX);
        symbols->list[symbols->count++] = field.bytes;
    }
    assert_null(reader.failure);
    assert_int_equal(symbols->list[0].size, 0);
    symbols->is_used[0] = true;
}

static struct slice symbol(struct symbols *symbols, uint64_t place)
{
    assert_true(place < symbols->count);
    symbols->is_used[place] = true;
    return symbols->list[place];
}

static void print_refs(struct output *output, struct symbols *symbols, struct slice refs)
{
    struct wire_reader reader = wire_reader_of(refs);
    for (size_t i = 0; reader.at < reader.end; i++) {
        struct slice text = symbol(symbols, wire_read_varint(&reader, WIRE_SHORT_VARINT_BYTES_MAX));
        print(output, "%.*s%c", (int)text.size, (const char *)text.data, i % 2 == 0 ? '=' : ',');
    }
    assert_null(reader.failure);
}

static void print_exemplar_v2(struct output *output, struct symbols *symbols, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t value = 0;
    int64_t time_ms = 0;
    while (wire_read_field(&reader, &field))
        if (field.number == 1)
            print_refs(output, symbols, field.bytes);
        else if (field.number == 2)
            value = field.number_value;
        else
            time_ms = (int64_t)field.number_value;
    print_value(output, value);
    print(output, "@%lld", (long long)time_ms);
}

/* Type, help and unit. */
static void print_metadata_v2(struct output *output, struct symbols *symbols, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t numbers[5] = {0};
    while (wire_read_field(&reader, &field)) {
        assert_in_range(field.number, 1, 4);
        numbers[field.number] = field.number_value;
    }
    struct slice help = symbol(symbols, numbers[3]);
    struct slice unit = symbol(symbols, numbers[4]);
    print(output, " M%d/%.*s/%.*s", (int)numbers[1], (int)help.size, (const char *)help.data,
          (int)unit.size, (const char *)unit.data);
}

static void print_series_v2(struct output *output, struct symbols *symbols, struct slice series)
{
    struct wire_reader reader = wire_reader_of(series);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        assert_in_range(field.number, 1, 5);
        if (field.number == 1) {
            print_refs(output, symbols, field.bytes);
        } else if (field.number == 2) {
            print(output, " ");
            print_part(output, field.bytes, false);
        } else if (field.number == 3) {
            print(output, " H");
            print_histogram(output, field.bytes);
        } else if (field.number == 4) {
            print(output, " #");
            print_exemplar_v2(output, symbols, field.bytes);
        } else {
            print_metadata_v2(output, symbols, field.bytes);
        }
    }
    assert_null(reader.failure);
    print(output, "\n");
}

/* No request has a symbol that it does not need. */
static void print_request_v2(struct output *output, struct slice request)
{
    struct symbols *symbols = malloc(sizeof(*symbols));
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    read_symbols(symbols, request);
    while (wire_read_field(&reader, &field))
        if (field.number == 5)
            print_series_v2(output, symbols, field.bytes);
    for (size_t i = 0; i < symbols->count; i++)
        assert_true(symbols->is_used[i]);
    free(symbols);
}

static struct buffer *encode(const char *json)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX] = "";
    enum json_result result =
        json_read(otlp_request(METRICS), slice_of_text(json), NULL, &encoded, reason);
    assert_string_equal(reason, "");
    assert_int_equal(result, JSON_READ);
    return encoded;
}

/* A line for each series; "--" between requests. Returns the points of the requests. */
static uint64_t write_all(struct remote_write_set *set, size_t bytes_max, struct output *output)
{
    struct remote_write_cursor cursor = remote_write_cursor_of(set);
    struct buffer *request;
    uint64_t points;
    uint64_t total = 0;
    output->size = 0;
    output->text[0] = '\0';
    while (remote_write_cursor_next(&cursor, NULL, bytes_max, &request, &points) ==
           REMOTE_WRITE_REQUEST) {
        struct wire_reader reader = wire_reader_of(buffer_slice(request));
        struct wire_field field;
        if (output->size > 0)
            print(output, "--\n");
        if (set->is_v2)
            print_request_v2(output, buffer_slice(request));
        while (!set->is_v2 && wire_read_field(&reader, &field))
            if (field.number == 1)
                print_series(output, field.bytes);
            else
                print_metadata(output, field.bytes);
        assert_null(reader.failure);
        total += points;
        buffer_unref(request);
    }
    return total;
}

static struct remote_write_losses translate(const struct remote_write_settings *settings,
                                            const char *json, size_t bytes_max,
                                            struct output *output)
{
    struct budget budget;
    struct remote_write_set set;
    struct remote_write_losses losses;
    struct buffer *request = encode(json);
    budget_init(&budget, UINT64_MAX);
    remote_write_set_init(&set, SIZE_MAX / 2, &budget);
    assert_int_equal(remote_write_translate(buffer_slice(request), settings, &set, &losses),
                     REMOTE_WRITE_TRANSLATED);
    write_all(&set, bytes_max, output);
    remote_write_set_fini(&set);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    buffer_unref(request);
    return losses;
}

/* A request of one resource and scope; freed by the caller. */
static char *request_of(const char *resource, const char *const *metrics)
{
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out,
            "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[%s]},\"scopeMetrics\":["
            "{\"metrics\":[",
            resource);
    for (size_t i = 0; metrics[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", metrics[i]);
    fprintf(out, "]}]}]}");
    fclose(out);
    return json;
}

static struct remote_write_losses expect_of(const struct remote_write_settings *settings,
                                            const char *json, const char *expected)
{
    struct output *output = malloc(sizeof(*output));
    struct remote_write_losses losses = translate(settings, json, BATCH_BYTES, output);
    assert_string_equal(output->text, expected);
    free(output);
    return losses;
}

static struct remote_write_losses expect(const struct remote_write_settings *settings,
                                         const char *resource, const char *const *metrics,
                                         const char *expected)
{
    char *json = request_of(resource, metrics);
    struct remote_write_losses losses = expect_of(settings, json, expected);
    free(json);
    return losses;
}

static void gauges_and_sums_are_samples(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(GAUGE("mem.usage", POINT(INTEGER("7"))),
                   SUM("http.requests", "2", "true", POINT("\"asDouble\":2.5")),
                   SUM("queue", "2", "false", POINT(INTEGER("-3"))),
                   GAUGE("1abc", POINT(INTEGER("0")))),
           "__name__=mem_usage_bytes, 7@5\n"
           "__name__=http_requests_total, 2.5@5\n"
           "__name__=queue, -3@5\n"
           "__name__=_1abc_bytes, 0@5\n");
}

static void points_of_a_series_are_sorted_by_time(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(GAUGE("a", TWO(AT("9000000", INTEGER("1")), AT("3999999", INTEGER("2")))),
                   GAUGE("a", TWO(AT("7000000", INTEGER("3")), AT("3000000", INTEGER("4"))))),
           "__name__=a_bytes, 2@3 4@3 3@7 1@9\n");
}

static void labels_are_joined_and_renamed(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(
               GAUGE("a", WITH(THREE(TEXT("a.b", "1"), TEXT("a-b", "2"), TEXT("a_b", "3")),
                               INTEGER("1"))),
               GAUGE("b", WITH(TWO(THREE(TEXT("__a", "x"), TEXT("_b", "y"), TEXT("1c", "z")),
                                   THREE(TEXT("d..e", "w"), TEXT("__f__", "v"), TEXT("empty", ""))),
                               INTEGER("1")))),
           "__name__=a_bytes,a_b=2;1;3, 1@5\n"
           "__f__=v,__name__=b_bytes,d_e=w,key_1c=z,key_a=x,key_b=y, 1@5\n");
}

static void labels_have_ranks(void **state)
{
    static const struct prometheus_label external[] = {
        {{(const uint8_t *)"job", 3}, {(const uint8_t *)"other", 5}},
        {{(const uint8_t *)"region", 6}, {(const uint8_t *)"eu", 2}},
        {{(const uint8_t *)"zone", 4}, {(const uint8_t *)"z1", 2}}};
    static const char resource[] = SERVICE "," TEXT("service.namespace", "eu") "," TEXT(
        "service.instance.id", "i1") "," TEXT("host..name", "h1");
    static const char scope[] = "{\"name\":\"lib\",\"version\":\"2\",\"attributes\":[" TEXT(
        "k", "v") "," TEXT("name", "left out") "]}";
    static const char metric[] = GAUGE(
        "a", WITH(THREE(TEXT("job", "mine"), TEXT("region", "us"), TEXT("otel.scope.name", "no")),
                  INTEGER("1")));
    struct remote_write_settings settings = standard;
    char json[2048];
    (void)state;
    settings.labels.external = external;
    settings.labels.external_count = 3;
    settings.naming.name_space = "my.ns";
    snprintf(json, sizeof(json),
             "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[%s]},\"scopeMetrics\":["
             "{\"scope\":%s,\"metrics\":[%s]}]}]}",
             resource, scope, metric);
    expect_of(&settings, json,
              "__name__=my.ns_a_bytes,instance=i1,job=eu/shop,otel_scope_k=v,otel_scope_name=lib,"
              "otel_scope_version=2,region=us,zone=z1, 1@5\n"
              "__name__=my.ns_target_info,host__name=h1,instance=i1,job=eu/shop,region=eu,"
              "zone=z1, 1@5\n");
}

static void resource_attributes_may_be_labels(void **state)
{
    static const char resource[] = THREE(SERVICE, TEXT("host", "h1"), TEXT("zone", ""));
    const char *const *metrics =
        METRICS(GAUGE("a", WITH(TWO(TEXT("host", "mine"), TEXT("zone", "z")), INTEGER("1"))));
    struct remote_write_settings settings = standard;
    (void)state;
    settings.labels.has_resource = true;
    settings.has_target_info = false;
    expect(&settings, resource, metrics,
           "__name__=a_bytes,host=h1,job=shop,service_name=shop, 1@5\n");
    settings.labels.has_service = false;
    expect(&settings, resource, metrics, "__name__=a_bytes,host=h1,job=shop, 1@5\n");
}

static void target_info_needs_more_than_a_target(void **state)
{
    const char *const *metrics = METRICS(GAUGE("a", POINT(INTEGER("1"))));
    (void)state;
    expect(&standard, SERVICE, metrics, "__name__=a_bytes,job=shop, 1@5\n");
    expect(&standard, TEXT("host", "h"), metrics, "__name__=a_bytes, 1@5\n");
    /* Its time is the latest, also of metrics that are left out. */
    expect(&standard, TWO(SERVICE, TEXT("host", "h")),
           METRICS(GAUGE("a", POINT(INTEGER("1"))),
                   SUM("d", "1", "true", AT("8000000", INTEGER("1")))),
           "__name__=a_bytes,job=shop, 1@5\n__name__=target_info,host=h,job=shop, 1@8\n");
}

#define EXEMPLARS                                                                                  \
    "\"exemplars\":[{\"timeUnixNano\":\"4000000\",\"asDouble\":0.4,"                               \
    "\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0102030405060708\"},"           \
    "{\"timeUnixNano\":\"3000000\",\"asInt\":\"9\",\"filteredAttributes\":["                       \
    "{\"key\":\"a.b\",\"value\":{\"intValue\":\"1\"}}]}]"

static void histograms_have_buckets_and_exemplars(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(HISTOGRAM("h", "2",
                             POINT("\"count\":\"6\",\"sum\":4.5,\"explicitBounds\":[0.0000005,"
                                   "0.25,1e22],\"bucketCounts\":[1,2,0,3]," EXEMPLARS))),
           "__name__=h_sum, 4.5@5\n"
           "__name__=h_count, 6@5\n"
           "__name__=h_bucket,le=0.0000005, 1@5\n"
           "__name__=h_bucket,le=0.25, 3@5\n"
           "__name__=h_bucket,le=10000000000000000000000, 3@5 #trace_id="
           "0102030405060708090a0b0c0d0e0f10,span_id=0102030405060708,0.4@4 #a.b=1,9@3\n"
           "__name__=h_bucket,le=+Inf, 6@5\n");
    /* Without buckets; a label of the point that would be there twice is replaced. */
    expect(&standard, "",
           METRICS(HISTOGRAM("h", "2",
                             WITH(TWO(TEXT("le", "x"), TEXT("__name__", "y")), "\"count\":\"6\""))),
           "__name__=h_count,le=x, 6@5\n"
           "__name__=h_bucket,le=+Inf, 6@5\n");
}

static void only_counters_have_exemplars(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(SUM("c", "2", "true", POINT(TWO(INTEGER("1"), EXEMPLARS))),
                   SUM("u", "2", "false", POINT(TWO(INTEGER("1"), EXEMPLARS)))),
           "__name__=c_total, 1@5 #trace_id=0102030405060708090a0b0c0d0e0f10,"
           "span_id=0102030405060708,0.4@4 #a.b=1,9@3\n"
           "__name__=u, 1@5\n");
}

static void summaries_have_quantiles(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(SUMMARY("s", POINT("\"count\":\"3\",\"sum\":1.5,\"quantileValues\":["
                                      "{\"quantile\":0.99,\"value\":7},{\"quantile\":1}]"))),
           "__name__=s_sum, 1.5@5\n"
           "__name__=s_count, 3@5\n"
           "__name__=s,quantile=0.99, 7@5\n"
           "__name__=s,quantile=1, 0@5\n");
}

static void exponential_histograms_are_native_ones(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(EXPONENTIAL("e", POINT("\"count\":\"9\",\"sum\":2,\"scale\":3,"
                                          "\"zeroCount\":\"2\",\"positive\":{\"offset\":-2,"
                                          "\"bucketCounts\":[1,0,0,3,0,0,0,1]},"
                                          "\"negative\":{\"offset\":4,"
                                          "\"bucketCounts\":[0,2]}"))),
           "__name__=e, H 1:9 3:2 4:3 5:1e-128 6:2 span8/5/2 deltas9/0/2 span11/-1/4 span11/3/1 "
           "deltas12/1/-1/0/3/-2 15:5\n");
    /* Two buckets each become one; those that are empty stay empty. */
    expect(&standard, "",
           METRICS(EXPONENTIAL("e", POINT("\"count\":\"9\",\"scale\":9,"
                                          "\"zeroThreshold\":0.5,\"positive\":{\"offset\":1,"
                                          "\"bucketCounts\":[0,0,0,4,5]}"))),
           "__name__=e, H 1:9 4:8 5:0.5 6:0 span11/1/3 deltas12/0/0/9 15:5\n");
    struct remote_write_losses losses =
        expect(&standard, "", METRICS(EXPONENTIAL("e", POINT("\"scale\":-5"))), "");
    assert_int_equal(losses.points[REMOTE_WRITE_SCALE], 1);
}

static void points_without_a_value_are_stale(void **state)
{
    (void)state;
    expect(&standard, "",
           METRICS(GAUGE("a", POINT("\"flags\":1,\"asInt\":\"1\"")),
                   HISTOGRAM("h", "2", POINT("\"flags\":1,\"count\":\"1\"")),
                   EXPONENTIAL("e", POINT("\"flags\":1")), SUMMARY("s", POINT("\"flags\":1"))),
           "__name__=a_bytes, stale@5\n"
           "__name__=h_count, stale@5\n"
           "__name__=h_bucket,le=+Inf, stale@5\n"
           "__name__=e, H 1:9218868437227405314 3:stale 5:1e-128 6:0 15:5\n"
           "__name__=s_sum, stale@5\n"
           "__name__=s_count, stale@5\n");
}

static void what_prometheus_cannot_have_is_counted(void **state)
{
    (void)state;
    struct remote_write_losses losses = expect(
        &standard, "",
        METRICS(SUM("d", "1", "true", TWO(POINT(INTEGER("1")), POINT(INTEGER("2")))),
                HISTOGRAM("h", "1", POINT("\"count\":\"1\"")),
                SUM("u", "0", "true", POINT(INTEGER("1"))),
                "{\"name\":\"\\u00e9\",\"gauge\":{\"dataPoints\":[" POINT(INTEGER("1")) "]}}",
                GAUGE("a", WITH(TEXT("", "x"), INTEGER("1"))),
                GAUGE("a", WITH(TEXT("____", "x"), INTEGER("1")))),
        "");
    assert_int_equal(losses.points[REMOTE_WRITE_TEMPORALITY], 4);
    assert_int_equal(losses.points[REMOTE_WRITE_NAME], 3);
    assert_int_equal(losses.total, 7);
    assert_non_null(losses.reason);
}

static void points_with_too_many_labels_are_counted(void **state)
{
    enum { ATTRIBUTE_BYTES = 64 };
    char *json = malloc((REMOTE_WRITE_LABELS_MAX + 8) * ATTRIBUTE_BYTES);
    (void)state;
    for (int more = 0; more < 2; more++) {
        size_t size = (size_t)sprintf(
            json,
            "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"a\",\"gauge\":"
            "{\"dataPoints\":[{\"attributes\":[");
        for (int i = 0; i < REMOTE_WRITE_LABELS_MAX + more; i++)
            size += (size_t)sprintf(json + size, "%s" TEXT("k%d", "v"), i > 0 ? "," : "", i);
        sprintf(json + size, "],\"timeUnixNano\":\"1\"}]}}]}]}]}");
        struct output *output = malloc(sizeof(*output));
        struct remote_write_losses losses = translate(&standard, json, BATCH_BYTES, output);
        assert_int_equal(losses.points[REMOTE_WRITE_LABELS], more);
        assert_int_equal(output->size == 0, more == 1);
        free(output);
    }
    free(json);
}

static void metadata_comes_last_and_only_with_series(void **state)
{
    struct remote_write_settings settings = standard;
    (void)state;
    settings.has_metadata = true;
    expect(&settings, "",
           METRICS("{\"name\":\"c\",\"unit\":\"By/s\",\"description\":\"help\",\"sum\":"
                   "{\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":[" POINT(
                       INTEGER("1")) "]}}",
                   SUM("d", "1", "true", POINT(INTEGER("1")))),
           "__name__=c_bytes_per_second_total, 1@5\n--\n"
           "metadata 1:1 2:c_bytes_per_second_total 4:help 5:bytes_per_second\n"
           "metadata 1:1 2:d_total\n");
}

static void requests_are_cut_at_a_size(void **state)
{
    /* Each series takes 34 bytes: two are below 69 and not below 68. */
    static const struct {
        size_t bytes_max;
        const char *expected;
    } rows[] = {
        {69, "__name__=a_bytes, 1@5\n__name__=b_bytes, 1@5\n--\n__name__=c_bytes, 1@5\n"},
        {68, "__name__=a_bytes, 1@5\n--\n__name__=b_bytes, 1@5\n--\n__name__=c_bytes, 1@5\n"},
        {1, "__name__=a_bytes, 1@5\n--\n__name__=b_bytes, 1@5\n--\n__name__=c_bytes, 1@5\n"},
    };
    struct output *output = malloc(sizeof(*output));
    char *json =
        request_of("", METRICS(GAUGE("a", POINT(INTEGER("1"))), GAUGE("b", POINT(INTEGER("1"))),
                               GAUGE("c", POINT(INTEGER("1")))));
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        translate(&standard, json, rows[i].bytes_max, output);
        assert_string_equal(output->text, rows[i].expected);
    }
    free(json);
    free(output);
}

/* One metric of each type. */
static struct buffer *everything(void)
{
    char *json = request_of(
        TWO(SERVICE, TEXT("host", "h")),
        METRICS(
            GAUGE("a", WITH(THREE(TEXT("a.b", "1"), TEXT("a-b", "2"),
                                  "{\"key\":\"n\",\"value\":{\"doubleValue\":1.5}}"),
                            INTEGER("7"))),
            SUM("c", "2", "true", POINT(TWO(INTEGER("1"), EXEMPLARS))),
            HISTOGRAM(
                "h", "2",
                POINT("\"count\":\"6\",\"explicitBounds\":[1],\"bucketCounts\":[1,5]," EXEMPLARS)),
            EXPONENTIAL("e", POINT("\"positive\":{\"bucketCounts\":[1,5]}," EXEMPLARS)),
            SUMMARY("s", POINT("\"quantileValues\":[{\"quantile\":0.99,\"value\":7}]"))));
    struct buffer *request = encode(json);
    free(json);
    return request;
}

static void check_allocations(struct remote_write_settings settings)
{
    struct buffer *request = everything();
    struct remote_write_losses losses;
    struct output *output = malloc(sizeof(*output));
    struct budget budget;
    bool is_done = false;
    unsigned failures = 0;
    settings.has_metadata = true;
    budget_init(&budget, UINT64_MAX);
    for (uint64_t n = 1; !is_done; n++) {
        struct remote_write_set set;
        remote_write_set_init(&set, SIZE_MAX / 2, &budget);
        uint64_t before = mem_tries();
        mem_refuse_nth(n);
        enum remote_write_result result =
            remote_write_translate(buffer_slice(request), &settings, &set, &losses);
        is_done = mem_tries() - before < n;
        mem_refuse_nth(0);
        failures += !is_done;
        assert_int_equal(result, is_done ? REMOTE_WRITE_TRANSLATED : REMOTE_WRITE_NO_MEMORY);
        if (is_done)
            assert_int_equal(write_all(&set, BATCH_BYTES, output), 5);
        remote_write_set_fini(&set);
        assert_int_equal(budget_used(&budget), 0);
    }
    assert_true(failures > 5);
    budget_fini(&budget);
    free(output);
    buffer_unref(request);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    check_allocations(standard);
    check_allocations(version_2);
}

static void check_full_sets(const struct remote_write_settings *settings)
{
    struct buffer *request = everything();
    struct remote_write_losses losses;
    bool is_whole = false;
    for (size_t bytes = 0; !is_whole; bytes += 50) {
        struct remote_write_set set;
        remote_write_set_init(&set, bytes, NULL);
        enum remote_write_result result =
            remote_write_translate(buffer_slice(request), settings, &set, &losses);
        is_whole = result == REMOTE_WRITE_TRANSLATED;
        if (!is_whole)
            assert_int_equal(result, REMOTE_WRITE_TOO_LARGE);
        assert_true(set.arena.used_bytes <= bytes);
        remote_write_set_fini(&set);
    }
    buffer_unref(request);
}

static void a_full_set_is_too_large(void **state)
{
    (void)state;
    check_full_sets(&standard);
    check_full_sets(&version_2);
}

static void v2_has_symbols_and_metadata(void **state)
{
    (void)state;
    expect(&version_2, TWO(SERVICE, TEXT("host..name", "h")),
           METRICS("{\"name\":\"c\",\"unit\":\"By/s\",\"description\":\"Bytes.\",\"sum\":"
                   "{\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":[" POINT(
                       INTEGER("1")) "]}}",
                   GAUGE("mem", WITH(TEXT("a.b", "shop"), INTEGER("7"))),
                   SUMMARY("s", POINT("\"count\":\"3\",\"quantileValues\":["
                                      "{\"quantile\":0.5,\"value\":7}]"))),
           "__name__=c_bytes_per_second_total,job=shop, 1@5 M1/Bytes./bytes_per_second\n"
           "__name__=mem_bytes,a_b=shop,job=shop, 7@5 M2//bytes\n"
           "__name__=s_sum,job=shop, 0@5 M5//\n"
           "__name__=s_count,job=shop, 3@5 M5//\n"
           "__name__=s,job=shop,quantile=0.5, 7@5 M5//\n"
           "__name__=target_info,host_name=h,job=shop, 1@5 M2/Target metadata/\n");
}

static void v2_notes_the_first_metadata_of_a_series(void **state)
{
    static const char second[] = "{\"name\":\"a\",\"unit\":\"By\",\"description\":\"b\","
                                 "\"gauge\":{\"dataPoints\":[" AT("6000000", INTEGER("2")) "]}}";
    (void)state;
    expect(&version_2, "", METRICS(GAUGE("a", POINT(INTEGER("1"))), second),
           "__name__=a_bytes, 1@5 2@6 M2//bytes\n");
    /* Exponential histograms need no other type. */
    expect(&version_2, "",
           METRICS(EXPONENTIAL("e", POINT("\"count\":\"2\",\"positive\":{\"offset\":-1,"
                                          "\"bucketCounts\":[2]}"))),
           "__name__=e, H 1:2 5:1e-128 6:0 span11/1 deltas12/2 15:5 M3//\n");
}

static void v2_has_exemplars_of_all_types(void **state)
{
    (void)state;
#define BOTH " #span_id=0102030405060708,trace_id=0102030405060708090a0b0c0d0e0f10,0.4@4 #a.b=1,9@3"
    expect(&version_2, "",
           METRICS(SUM("u", "2", "false", POINT(TWO(INTEGER("1"), EXEMPLARS))),
                   HISTOGRAM("h", "2", POINT("\"count\":\"6\"," EXEMPLARS)),
                   EXPONENTIAL("e", POINT(EXEMPLARS))),
           "__name__=u, 1@5" BOTH " M2//\n"
           "__name__=h_count, 6@5 M3//\n"
           "__name__=h_bucket,le=+Inf, 6@5" BOTH " M3//\n"
           "__name__=e, H 1:0 5:1e-128 6:0 15:5" BOTH " M3//\n");
#undef BOTH
}

static void v2_exemplars_have_each_label_once(void **state)
{
    static const char long_text[] = "0123456789012345678901234567890123456789012345678901234567890";
    char list[1024];
    char point[4096];
    (void)state;
    /* An id is not counted twice; what is too long goes as a whole; empty ones are none. */
    snprintf(list, sizeof(list),
             TEXT("trace_id", "mine") "," TEXT("z", "1") "," TEXT("a", "2") "," TEXT("", ""));
    snprintf(point, sizeof(point),
             POINT("\"asInt\":\"1\",\"exemplars\":[{\"asInt\":\"3\",\"traceId\":"
                   "\"0102030405060708090a0b0c0d0e0f10\",\"filteredAttributes\":[%s]},"
                   "{\"asInt\":\"4\",\"filteredAttributes\":[%s]},"
                   "{\"asInt\":\"5\",\"spanId\":\"0102030405060708\",\"filteredAttributes\":[" TEXT(
                       "a", "%s") "," TEXT("b", "%s") "]}]"),
             list, list, long_text, long_text);
    char metric[8192];
    snprintf(metric, sizeof(metric), GAUGE("a", "%s"), point);
    expect(&version_2, "", METRICS(metric),
           "__name__=a_bytes, 1@5 #a=2,trace_id=0102030405060708090a0b0c0d0e0f10,z=1,3@0"
           " #a=2,trace_id=mine,z=1,4@0 #span_id=0102030405060708,5@0 M2//bytes\n");
}

static void v2_may_keep_names(void **state)
{
    struct remote_write_settings settings = version_2;
    const char *const *metrics = METRICS(
        GAUGE("mem.free", WITH(TWO(TEXT("http.route", "/"), TEXT("1c", "z")), INTEGER("1"))),
        GAUGE("b", WITH(TEXT("__", "x"), INTEGER("1"))));
    (void)state;
    settings.naming.has_utf8 = true;
    settings.labels.has_utf8 = true;
    struct remote_write_losses losses =
        expect(&settings, TWO(SERVICE, TEXT("host.name", "h")), metrics,
               "1c=z,__name__=mem.free_bytes,http.route=/,job=shop, 1@5 M2//bytes\n"
               "__name__=target_info,host.name=h,job=shop, 1@5 M2/Target metadata/\n");
    assert_int_equal(losses.points[REMOTE_WRITE_NAME], 1);
    settings.naming.has_suffixes = false;
    settings.has_target_info = false;
    expect(&settings, "", metrics, "1c=z,__name__=mem.free,http.route=/, 1@5 M2//bytes\n");
}

static void v2_requests_have_the_symbols_that_they_need(void **state)
{
    /* A series of a gauge takes 23 bytes, and its symbols 8 + 7, or 8 + 7 + 5 with those that the
     * first needs as well: 43, and 73 together. */
    static const struct {
        size_t bytes_max;
        const char *expected;
    } rows[] = {
        {74, "__name__=a_bytes, 1@5 M2//bytes\n__name__=b_bytes, 1@5 M2//bytes\n--\n"
             "__name__=c_bytes, 1@5 M2//bytes\n"},
        {73, "__name__=a_bytes, 1@5 M2//bytes\n--\n__name__=b_bytes, 1@5 M2//bytes\n--\n"
             "__name__=c_bytes, 1@5 M2//bytes\n"},
        {1, "__name__=a_bytes, 1@5 M2//bytes\n--\n__name__=b_bytes, 1@5 M2//bytes\n--\n"
            "__name__=c_bytes, 1@5 M2//bytes\n"},
    };
    struct output *output = malloc(sizeof(*output));
    char *json =
        request_of("", METRICS(GAUGE("a", POINT(INTEGER("1"))), GAUGE("b", POINT(INTEGER("1"))),
                               GAUGE("c", POINT(INTEGER("1")))));
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        translate(&version_2, json, rows[i].bytes_max, output);
        assert_string_equal(output->text, rows[i].expected);
    }
    free(json);
    free(output);
}

/* Small requests that all need one long text become much more than what they are made of. */
static void v2_repeated_symbols_are_bounded(void **state)
{
    enum { HELP_BYTES = 10000, POINTS = 100, ROW_BYTES = 64, BYTES_MAX = 100000 };
    char *json = malloc(HELP_BYTES + POINTS * ROW_BYTES + 1000);
    size_t size = (size_t)sprintf(json, "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":["
                                        "{\"name\":\"a\",\"description\":\"");
    (void)state;
    memset(json + size, 'h', HELP_BYTES);
    size += HELP_BYTES;
    size += (size_t)sprintf(json + size, "\",\"gauge\":{\"dataPoints\":[");
    for (int i = 0; i < POINTS; i++)
        size += (size_t)sprintf(json + size,
                                "%s{\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":%d}}]}",
                                i > 0 ? "," : "", i);
    sprintf(json + size, "]}}]}]}]}");
    struct buffer *request = encode(json);
    static const struct {
        size_t batch_bytes;
        enum remote_write_next last;
    } rows[] = {{BATCH_BYTES, REMOTE_WRITE_NO_MORE}, {1000, REMOTE_WRITE_TOO_MUCH}};
    for (size_t i = 0; i < 2; i++) {
        struct remote_write_set set;
        struct remote_write_losses losses;
        struct buffer *body;
        uint64_t points;
        size_t bytes = 0;
        enum remote_write_next next;
        remote_write_set_init(&set, BYTES_MAX, NULL);
        assert_int_equal(remote_write_translate(buffer_slice(request), &version_2, &set, &losses),
                         REMOTE_WRITE_TRANSLATED);
        struct remote_write_cursor cursor = remote_write_cursor_of(&set);
        while ((next = remote_write_cursor_next(&cursor, NULL, rows[i].batch_bytes, &body,
                                                &points)) == REMOTE_WRITE_REQUEST) {
            bytes += body->size;
            buffer_unref(body);
        }
        assert_int_equal(next, rows[i].last);
        assert_in_range(bytes, HELP_BYTES, BYTES_MAX);
        remote_write_set_fini(&set);
    }
    buffer_unref(request);
    free(json);
}

/* However many there are: the texts of one do not wait for those of the next. */
static void exemplars_need_memory_one_at_a_time(void **state)
{
    enum { EXEMPLARS_COUNT = 1500, VALUES = 300 };
    static const struct remote_write_settings *const settings[] = {&standard, &version_2};
    char *exemplar = NULL;
    char *json = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&exemplar, &size);
    fprintf(out, "{\"asInt\":\"1\",\"filteredAttributes\":[{\"key\":\"k\",\"value\":"
                 "{\"kvlistValue\":{\"values\":[");
    for (int i = 0; i < VALUES; i++)
        fprintf(out, "%s{\"key\":\"%d\",\"value\":{\"intValue\":1}}", i > 0 ? "," : "", i);
    fprintf(out, "]}}}]}");
    fclose(out);
    out = open_memstream(&json, &size);
    fprintf(out, "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"a\",\"sum\":{"
                 "\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":[{"
                 "\"exemplars\":[");
    for (int i = 0; i < EXEMPLARS_COUNT; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", exemplar);
    fprintf(out, "]}]}}]}]}]}");
    fclose(out);
    struct buffer *request = encode(json);
    for (size_t i = 0; i < 2; i++) {
        struct remote_write_set set;
        struct remote_write_losses losses;
        struct budget budget;
        budget_init(&budget, UINT64_MAX);
        remote_write_set_init(&set, SIZE_MAX / 2, &budget);
        assert_int_equal(remote_write_translate(buffer_slice(request), settings[i], &set, &losses),
                         REMOTE_WRITE_TRANSLATED);
        assert_in_range(atomic_load(&budget.high_water), 1, 4 << 20);
        remote_write_set_fini(&set);
        budget_fini(&budget);
    }
    buffer_unref(request);
    free(exemplar);
    free(json);
}

/* A message with a message of one field, and so on: the numbers from the innermost field out. */
static struct slice nested(struct wire_writer *writer, struct slice content,
                           const uint32_t *numbers, size_t count)
{
    size_t sizes[8];
    sizes[0] = content.size;
    for (size_t i = 1; i < count; i++)
        sizes[i] = wire_field_size(numbers[i - 1], sizes[i - 1]);
    for (size_t i = count; i > 0; i--)
        wire_write_header(writer, numbers[i - 1], sizes[i - 1]);
    wire_write_raw(writer, content);
    return wire_written(writer);
}

/* No later attempt could succeed. */
static void labels_that_never_fit_are_too_large(void **state)
{
    enum { VALUE_BYTES = 52 << 20, HEADERS_BYTES = 128 };
    /* bytes_value, value, attribute, data point, gauge, metric, scope, resource */
    static const uint32_t path[] = {7, 2, 7, 1, 5, 2, 2, 1};
    uint8_t *value = calloc(1, VALUE_BYTES);
    uint8_t *memory = malloc(VALUE_BYTES + HEADERS_BYTES);
    struct wire_writer writer = wire_writer_of(memory, VALUE_BYTES + HEADERS_BYTES);
    struct remote_write_set set;
    struct remote_write_losses losses;
    (void)state;
    struct slice request = nested(&writer, slice_of(value, VALUE_BYTES), path, 8);
    remote_write_set_init(&set, SIZE_MAX / 2, NULL);
    struct remote_write_settings settings = standard;
    settings.naming.name_space = "n";
    assert_int_equal(remote_write_translate(request, &settings, &set, &losses),
                     REMOTE_WRITE_TOO_LARGE);
    remote_write_set_fini(&set);
    free(value);
    free(memory);
}

/* Attributes of a resource that become one label cost work that does not show in what is written.
 */
static void much_work_is_too_large(void **state)
{
    enum { ATTRIBUTES = 500, POINTS = 2000, BYTES_MAX = 1 << 20, ROW_BYTES = 64 };
    char *json = malloc((ATTRIBUTES + POINTS) * ROW_BYTES + 1000);
    size_t size = (size_t)sprintf(json, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[");
    struct remote_write_settings settings = standard;
    (void)state;
    settings.labels.has_resource = true;
    for (int i = 0; i < ATTRIBUTES; i++)
        size += (size_t)sprintf(json + size, "%s" TEXT("k", "v"), i > 0 ? "," : "");
    size +=
        (size_t)sprintf(json + size, "]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"a\",\"gauge\":"
                                     "{\"dataPoints\":[");
    for (int i = 0; i < POINTS; i++)
        size +=
            (size_t)sprintf(json + size, "%s{\"timeUnixNano\":\"%d000000\"}", i > 0 ? "," : "", i);
    sprintf(json + size, "]}}]}]}]}");
    struct buffer *request = encode(json);
    for (size_t times = 1; times <= 16; times *= 16) {
        struct remote_write_set set;
        struct remote_write_losses losses;
        remote_write_set_init(&set, times * BYTES_MAX, NULL);
        assert_int_equal(remote_write_translate(buffer_slice(request), &settings, &set, &losses),
                         times == 1 ? REMOTE_WRITE_TOO_LARGE : REMOTE_WRITE_TRANSLATED);
        assert_true(set.bytes < BYTES_MAX / 4);
        remote_write_set_fini(&set);
    }
    buffer_unref(request);
    free(json);
}

/* So does a long key that becomes a short name. */
static void long_keys_are_work(void **state)
{
    enum { KEY_BYTES = 8000, POINTS = 1000, BYTES_MAX = 1 << 20, ROW_BYTES = 64 };
    char *json = malloc(KEY_BYTES + POINTS * ROW_BYTES + 1000);
    struct remote_write_settings settings = standard;
    (void)state;
    settings.labels.has_resource = true;
    size_t size = (size_t)sprintf(
        json, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"value\":{\"stringValue\":"
              "\"v\"},\"key\":\"k");
    memset(json + size, '-', KEY_BYTES);
    size += KEY_BYTES;
    size += (size_t)sprintf(json + size, "\"}]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"a\","
                                         "\"gauge\":{\"dataPoints\":[");
    for (int i = 0; i < POINTS; i++)
        size +=
            (size_t)sprintf(json + size, "%s{\"timeUnixNano\":\"%d000000\"}", i > 0 ? "," : "", i);
    sprintf(json + size, "]}}]}]}]}");
    struct buffer *request = encode(json);
    for (size_t times = 1; times <= 16; times *= 16) {
        struct remote_write_set set;
        struct remote_write_losses losses;
        remote_write_set_init(&set, times * BYTES_MAX, NULL);
        assert_int_equal(remote_write_translate(buffer_slice(request), &settings, &set, &losses),
                         times == 1 ? REMOTE_WRITE_TOO_LARGE : REMOTE_WRITE_TRANSLATED);
        remote_write_set_fini(&set);
    }
    buffer_unref(request);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gauges_and_sums_are_samples),
        cmocka_unit_test(points_of_a_series_are_sorted_by_time),
        cmocka_unit_test(labels_are_joined_and_renamed),
        cmocka_unit_test(labels_have_ranks),
        cmocka_unit_test(resource_attributes_may_be_labels),
        cmocka_unit_test(target_info_needs_more_than_a_target),
        cmocka_unit_test(histograms_have_buckets_and_exemplars),
        cmocka_unit_test(only_counters_have_exemplars),
        cmocka_unit_test(summaries_have_quantiles),
        cmocka_unit_test(exponential_histograms_are_native_ones),
        cmocka_unit_test(points_without_a_value_are_stale),
        cmocka_unit_test(what_prometheus_cannot_have_is_counted),
        cmocka_unit_test(points_with_too_many_labels_are_counted),
        cmocka_unit_test(metadata_comes_last_and_only_with_series),
        cmocka_unit_test(requests_are_cut_at_a_size),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(a_full_set_is_too_large),
        cmocka_unit_test(exemplars_need_memory_one_at_a_time),
        cmocka_unit_test(labels_that_never_fit_are_too_large),
        cmocka_unit_test(much_work_is_too_large),
        cmocka_unit_test(long_keys_are_work),
        cmocka_unit_test(v2_has_symbols_and_metadata),
        cmocka_unit_test(v2_notes_the_first_metadata_of_a_series),
        cmocka_unit_test(v2_has_exemplars_of_all_types),
        cmocka_unit_test(v2_exemplars_have_each_label_once),
        cmocka_unit_test(v2_may_keep_names),
        cmocka_unit_test(v2_requests_have_the_symbols_that_they_need),
        cmocka_unit_test(v2_repeated_symbols_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
