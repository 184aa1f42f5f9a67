/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms of the debug exporter, line by line as the Go collector prints them. */
#include "src/otlp/text/text.h"

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/text/text_parts.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/memory_watch.h"

enum { BLOB_BYTES = 8192 };

/* A message that is being written. */
struct blob {
    uint8_t data[BLOB_BYTES];
    size_t size;
};

static void put_bytes(struct blob *blob, uint32_t number, const void *data, size_t size)
{
    struct wire_writer writer = wire_writer_of(blob->data + blob->size, BLOB_BYTES - blob->size);
    wire_write_bytes(&writer, number, slice_of(data, size));
    assert_false(writer.has_failed);
    blob->size += wire_written(&writer).size;
}

static void put_text(struct blob *blob, uint32_t number, const char *text)
{
    put_bytes(blob, number, text, strlen(text));
}

static void put_blob(struct blob *blob, uint32_t number, const struct blob *inner)
{
    put_bytes(blob, number, inner->data, inner->size);
}

static void put_number(struct blob *blob, uint32_t number, uint64_t value)
{
    struct wire_writer writer = wire_writer_of(blob->data + blob->size, BLOB_BYTES - blob->size);
    wire_write_number(&writer, number, value);
    assert_false(writer.has_failed);
    blob->size += wire_written(&writer).size;
}

static void put_fixed(struct blob *blob, uint32_t number, uint64_t value)
{
    struct wire_writer writer = wire_writer_of(blob->data + blob->size, BLOB_BYTES - blob->size);
    wire_write_fixed64(&writer, number, value);
    assert_false(writer.has_failed);
    blob->size += wire_written(&writer).size;
}

static void put_double(struct blob *blob, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_fixed(blob, number, bits);
}

static void put_attribute(struct blob *blob, uint32_t number, const char *key,
                          const struct blob *value)
{
    struct blob attribute = {.size = 0};
    put_text(&attribute, 1, key);
    put_blob(&attribute, 2, value);
    put_blob(blob, number, &attribute);
}

static struct blob text_value(const char *text)
{
    struct blob value = {.size = 0};
    put_text(&value, 1, text);
    return value;
}

static void put_text_attribute(struct blob *blob, uint32_t number, const char *key,
                               const char *text)
{
    struct blob value = text_value(text);
    put_attribute(blob, number, key, &value);
}

static void put_int_attribute(struct blob *blob, uint32_t number, const char *key, int64_t integer)
{
    struct blob value = {.size = 0};
    put_number(&value, 3, (uint64_t)integer);
    put_attribute(blob, number, key, &value);
}

/* A request of one resource and one scope around a record. */
static struct blob request_of(const struct blob *record)
{
    struct blob request = {.size = 0};
    struct blob entry = {.size = 0};
    struct blob resource = {.size = 0};
    struct blob scope_entry = {.size = 0};
    struct blob scope = {.size = 0};
    put_text_attribute(&resource, 1, "service.name", "shop");
    put_text(&scope, 1, "lib");
    put_text(&scope, 2, "1.0");
    put_blob(&scope_entry, 1, &scope);
    put_blob(&scope_entry, 2, record);
    put_text(&scope_entry, 3, "http://schema/scope");
    put_text(&entry, 3, "http://schema/resource");
    put_blob(&entry, 2, &scope_entry);
    put_blob(&entry, 1, &resource);
    put_blob(&request, 1, &entry);
    return request;
}

static void check_text(enum signal_kind signal, const struct blob *request, bool is_detailed,
                       const char *expected)
{
    struct text text;
    text_init(&text, NULL);
    otlp_text_write(&text, signal, slice_of(request->data, request->size), is_detailed);
    assert_string_equal(text.data, expected);
    text_fini(&text);
}

#define TIMES                                                                                      \
    "StartTimestamp: 2020-02-11 20:26:12.000000321 +0000 UTC\n"                                    \
    "Timestamp: 2020-02-11 20:26:13 +0000 UTC\n"
enum { START_S = 1581452772 };
#define START_NS ((uint64_t)START_S * 1000000000 + 321)
#define END_NS   ((uint64_t)(START_S + 1) * 1000000000)

static struct blob span_of(void)
{
    struct blob span = {.size = 0};
    struct blob event = {.size = 0};
    struct blob link = {.size = 0};
    struct blob status = {.size = 0};
    put_bytes(&span, 1, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20", 16);
    put_bytes(&span, 2, "\21\22\23\24\25\26\27\30", 8);
    put_text(&span, 3, "ot=th:0");
    put_text(&span, 5, "GET /cart");
    put_number(&span, 6, 2);
    put_fixed(&span, 7, START_NS);
    put_fixed(&span, 8, END_NS);
    put_text_attribute(&span, 9, "http.method", "GET");
    put_int_attribute(&span, 9, "http.status_code", 500);
    put_number(&span, 10, 1);
    put_fixed(&event, 1, END_NS);
    put_text(&event, 2, "exception");
    put_text_attribute(&event, 3, "kind", "timeout");
    put_blob(&span, 11, &event);
    put_bytes(&link, 1, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    put_number(&link, 5, 4);
    put_blob(&span, 13, &link);
    put_text(&status, 2, "cancelled");
    put_number(&status, 3, 2);
    put_blob(&span, 15, &status);
    return span;
}

static void spans_read_as_in_go(void **state)
{
    struct blob span = span_of();
    struct blob request = request_of(&span);
    (void)state;
    check_text(TRACES, &request, false,
               "ResourceTraces #0 [http://schema/resource] service.name=shop\n"
               "ScopeTraces #0 lib@1.0 [http://schema/scope]\n"
               "GET /cart 0102030405060708090a0b0c0d0e0f10 1112131415161718 http.method=GET "
               "http.status_code=500\n");
    check_text(TRACES, &request, true,
               "ResourceSpans #0\n"
               "Resource SchemaURL: http://schema/resource\n"
               "Resource attributes:\n"
               "     -> service.name: Str(shop)\n"
               "ScopeSpans #0\n"
               "ScopeSpans SchemaURL: http://schema/scope\n"
               "InstrumentationScope lib 1.0\n"
               "Span #0\n"
               "    Trace ID       : 0102030405060708090a0b0c0d0e0f10\n"
               "    Parent ID      : \n"
               "    ID             : 1112131415161718\n"
               "    Name           : GET /cart\n"
               "    Kind           : Server\n"
               "    TraceState     : ot=th:0\n"
               "    Start time     : 2020-02-11 20:26:12.000000321 +0000 UTC\n"
               "    End time       : 2020-02-11 20:26:13 +0000 UTC\n"
               "    Status code    : Error\n"
               "    Status message : cancelled\n"
               "    DroppedAttributesCount: 1\n"
               "    DroppedEventsCount: 0\n"
               "    DroppedLinksCount: 0\n"
               "Attributes:\n"
               "     -> http.method: Str(GET)\n"
               "     -> http.status_code: Int(500)\n"
               "Events:\n"
               "SpanEvent #0\n"
               "     -> Name: exception\n"
               "     -> Timestamp: 2020-02-11 20:26:13 +0000 UTC\n"
               "     -> DroppedAttributesCount: 0\n"
               "     -> Attributes::\n"
               "          -> kind: Str(timeout)\n"
               "Links:\n"
               "SpanLink #0\n"
               "     -> Trace ID: \n"
               "     -> ID: \n"
               "     -> TraceState: \n"
               "     -> DroppedAttributesCount: 4\n");
}

static void empty_messages_have_their_headings(void **state)
{
    struct blob request = {.size = 0};
    struct blob empty = {.size = 0};
    struct blob entry = {.size = 0};
    (void)state;
    put_blob(&entry, 2, &empty);
    put_blob(&request, 1, &entry);
    check_text(TRACES, &request, false, "ResourceTraces #0\nScopeTraces #0\n");
    struct blob two = request;
    put_blob(&entry, 2, &empty);
    put_blob(&two, 1, &entry);
    check_text(TRACES, &two, false,
               "ResourceTraces #0\nScopeTraces #0\n"
               "ResourceTraces #1\nScopeTraces #1\nScopeTraces #1\n");
    check_text(LOGS, &request, true,
               "ResourceLog #0\nResource SchemaURL: \nScopeLogs #0\nScopeLogs SchemaURL: \n"
               "InstrumentationScope  \n");
    check_text(METRICS, &empty, true, "");
}

static void log_records_read_as_in_go(void **state)
{
    struct blob record = {.size = 0};
    struct blob body = text_value("it happened");
    (void)state;
    put_fixed(&record, 1, START_NS);
    put_number(&record, 2, 10);
    put_text(&record, 3, "INFO2");
    put_blob(&record, 5, &body);
    put_text_attribute(&record, 6, "app", "server");
    put_text(&record, 12, "login");
    struct blob request = request_of(&record);
    check_text(LOGS, &request, false,
               "ResourceLog #0 [http://schema/resource] service.name=shop\n"
               "ScopeLog #0 lib@1.0 [http://schema/scope]\n"
               "it happened app=server\n");
    check_text(LOGS, &request, true,
               "ResourceLog #0\n"
               "Resource SchemaURL: http://schema/resource\n"
               "Resource attributes:\n"
               "     -> service.name: Str(shop)\n"
               "ScopeLogs #0\n"
               "ScopeLogs SchemaURL: http://schema/scope\n"
               "InstrumentationScope lib 1.0\n"
               "LogRecord #0\n"
               "ObservedTimestamp: 1970-01-01 00:00:00 +0000 UTC\n"
               "Timestamp: 2020-02-11 20:26:12.000000321 +0000 UTC\n"
               "SeverityText: INFO2\n"
               "SeverityNumber: Info2(10)\n"
               "EventName: login\n"
               "Body: Str(it happened)\n"
               "Attributes:\n"
               "     -> app: Str(server)\n"
               "Trace ID: \n"
               "Span ID: \n"
               "Flags: 0\n");
}

/* Checks what follows the frame of resource and scope, which the other tests check. */
static void check_metric(const struct blob *metric, const char *normal, const char *detailed)
{
    static const char *const marks[] = {"[http://schema/scope]\n", "Metric #0\n"};
    const char *const expected[] = {normal, detailed};
    struct blob request = request_of(metric);
    for (int i = 0; i < 2; i++) {
        struct text text;
        text_init(&text, NULL);
        otlp_text_write(&text, METRICS, slice_of(request.data, request.size), i == 1);
        const char *begin = strstr(text.data, marks[i]);
        assert_non_null(begin);
        assert_string_equal(begin + strlen(marks[i]), expected[i]);
        text_fini(&text);
    }
}

static struct blob metric_of(uint32_t kind, const struct blob *point, bool is_sum)
{
    struct blob metric = {.size = 0};
    struct blob data = {.size = 0};
    put_blob(&data, 1, point);
    if (kind != 5 && kind != 11)
        put_number(&data, 2, 2);
    if (is_sum)
        put_number(&data, 3, 1);
    put_text(&metric, 1, "m");
    put_text(&metric, 2, "about m");
    put_text(&metric, 3, "1");
    put_blob(&metric, kind, &data);
    return metric;
}

#define DESCRIPTOR(type)                                                                           \
    "Descriptor:\n     -> Name: m\n     -> Description: about m\n     -> Unit: 1\n"                \
    "     -> DataType: " type "\n"
#define LABEL "Data point attributes:\n     -> l: Str(v)\n"

static void numbers_read_as_in_go(void **state)
{
    struct blob point = {.size = 0};
    struct blob exemplar = {.size = 0};
    (void)state;
    put_fixed(&point, 2, START_NS);
    put_fixed(&point, 3, END_NS);
    put_double(&point, 4, 1.5);
    put_text_attribute(&point, 7, "l", "v");
    struct blob gauge = metric_of(5, &point, false);
    check_metric(&gauge, "m{l=v} 1.5\n",
                 DESCRIPTOR("Gauge") "NumberDataPoints #0\n" LABEL TIMES "Value: 1.500000\n");
    put_fixed(&point, 6, (uint64_t)-7);
    put_fixed(&exemplar, 2, END_NS);
    put_double(&exemplar, 3, 15);
    put_bytes(&exemplar, 4, "\21\22\23\24\25\26\27\30", 8);
    put_text_attribute(&exemplar, 7, "a", "b");
    put_blob(&point, 5, &exemplar);
    struct blob sum = metric_of(7, &point, true);
    put_text_attribute(&sum, 12, "unit", "bytes");
    check_metric(&sum, "m{l=v} -7\n",
                 DESCRIPTOR("Sum") "     -> Metadata:\n          -> unit: Str(bytes)\n"
                                   "     -> IsMonotonic: true\n"
                                   "     -> AggregationTemporality: Cumulative\n"
                                   "NumberDataPoints #0\n" LABEL TIMES "Value: -7\n"
                                   "Exemplars:\n"
                                   "Exemplar #0\n"
                                   "     -> Trace ID: \n"
                                   "     -> Span ID: 1112131415161718\n"
                                   "     -> Timestamp: 2020-02-11 20:26:13 +0000 UTC\n"
                                   "     -> Value: 15.000000\n"
                                   "     -> FilteredAttributes:\n"
                                   "          -> a: Str(b)\n");
}

static void histograms_read_as_in_go(void **state)
{
    struct blob point = {.size = 0};
    const double bound = 10;
    const uint64_t counts[] = {1, 2};
    (void)state;
    put_fixed(&point, 2, START_NS);
    put_fixed(&point, 3, END_NS);
    put_fixed(&point, 4, 3);
    put_double(&point, 5, 22.5);
    put_bytes(&point, 6, counts, sizeof(counts));
    put_bytes(&point, 7, &bound, sizeof(bound));
    put_double(&point, 11, 0.5);
    struct blob metric = metric_of(9, &point, false);
    check_metric(&metric, "m{} count=3 sum=22.5 min=0.5 le10=1 2\n",
                 DESCRIPTOR("Histogram") "     -> AggregationTemporality: Cumulative\n"
                                         "HistogramDataPoints #0\n" TIMES "Count: 3\n"
                                         "Sum: 22.500000\n"
                                         "Min: 0.500000\n"
                                         "ExplicitBounds #0: 10.000000\n"
                                         "Buckets #0, Count: 1\n"
                                         "Buckets #1, Count: 2\n");
}

static void exponential_histograms_read_as_in_go(void **state)
{
    struct blob point = {.size = 0};
    struct blob positive = {.size = 0};
    struct blob negative = {.size = 0};
    (void)state;
    put_number(&positive, 1, 2); /* zigzag: 1 */
    put_bytes(&positive, 2, "\1\2", 2);
    put_number(&negative, 1, 1); /* zigzag: -1 */
    put_bytes(&negative, 2, "\3\4", 2);
    put_fixed(&point, 2, START_NS);
    put_fixed(&point, 3, END_NS);
    put_fixed(&point, 4, 11);
    put_number(&point, 6, 2); /* zigzag: 1 */
    put_fixed(&point, 7, 1);
    put_blob(&point, 8, &positive);
    put_blob(&point, 9, &negative);
    struct blob metric = metric_of(10, &point, false);
    check_metric(&metric,
                 "m{} count=11 le-1=4 le-0.7071067811865476=3 zero=1 le2=1 "
                 "le2.82842712474619=2\n",
                 DESCRIPTOR("ExponentialHistogram") "     -> AggregationTemporality: Cumulative\n"
                                                    "ExponentialHistogramDataPoints #0\n" TIMES
                                                    "Count: 11\n"
                                                    "Bucket [-1.414214, -1.000000), Count: 4\n"
                                                    "Bucket [-1.000000, -0.707107), Count: 3\n"
                                                    "Bucket [0, 0], Count: 1\n"
                                                    "Bucket (1.414214, 2.000000], Count: 1\n"
                                                    "Bucket (2.000000, 2.828427], Count: 2\n");
}

static void summaries_read_as_in_go(void **state)
{
    struct blob point = {.size = 0};
    struct blob quantile = {.size = 0};
    (void)state;
    put_double(&quantile, 1, 0.99);
    put_double(&quantile, 2, 15);
    put_fixed(&point, 2, START_NS);
    put_fixed(&point, 3, END_NS);
    put_fixed(&point, 4, 1);
    put_double(&point, 5, 15);
    put_blob(&point, 6, &quantile);
    struct blob metric = metric_of(11, &point, false);
    check_metric(&metric, "m{} count=1 sum=15.000000 q0.99=15\n",
                 DESCRIPTOR("Summary") "SummaryDataPoints #0\n" TIMES "Count: 1\n"
                                       "Sum: 15.000000\n"
                                       "QuantileValue #0: Quantile 0.990000, Value 15.000000\n");
}

struct number_case {
    double number;
    const char *expected; /* shortest, fixed */
};

static const struct number_case numbers[] = {
    {0, "0 0.000000"},
    {-0.5, "-0.5 -0.500000"},
    {0.1, "0.1 0.100000"},
    {100, "100 100.000000"},
    {123456, "123456 123456.000000"},
    {1234567, "1.234567e+06 1234567.000000"},
    {1e21, "1e+21 1000000000000000000000.000000"},
    {0.0001, "0.0001 0.000100"},
    {0.00001, "1e-05 0.000010"},
    {1e100,
     "1e+100 10000000000000000159028911097599180468360808563945281389781327557747838772170381"
     "060813469985856815104.000000"},
    {INFINITY, "+Inf +Inf"},
    {-INFINITY, "-Inf -Inf"},
    {NAN, "NaN NaN"},
};

static void numbers_have_go_s_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct text text;
        text_init(&text, NULL);
        text_add_shortest(&text, numbers[i].number);
        text_add(&text, " ");
        text_add_fixed(&text, numbers[i].number);
        assert_string_equal(text.data, numbers[i].expected);
        text_fini(&text);
    }
}

/* The digits of the shortest form, found by trying one after the other. */
static void check_shortest(double number)
{
    char expected[40];
    char found[40];
    struct text text;
    int count = 1;
    do
        snprintf(expected, sizeof(expected), "%.*e", count - 1, number);
    while (strtod(expected, NULL) != number && count++ < 17);
    text_init(&text, NULL);
    text_add_shortest(&text, number);
    assert_true(strtod(text.data, NULL) == number);
    snprintf(found, sizeof(found), "%.*e", count - 1, strtod(text.data, NULL));
    assert_string_equal(found, expected);
    size_t digits = strcspn(text.data, "e");
    bool has_exponent = text.data[digits] == 'e';
    if (has_exponent && strcmp(text.data, expected) != 0)
        fail_msg("%s, expected %s", text.data, expected);
    text_fini(&text);
}

static void the_shortest_form_has_no_digit_too_many(void **state)
{
    uint64_t bits = 1;
    (void)state;
    for (int exponent = -1074; exponent < 1024; exponent++) { /* where the distance changes */
        double power = ldexp(1, exponent);
        check_shortest(power);
        check_shortest(nextafter(power, 0) > 0 ? nextafter(power, 0) : power);
        check_shortest(nextafter(power, INFINITY));
    }
    for (unsigned i = 0; i < 20000; i++) {
        double number;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        uint64_t some = i % 4 == 0 ? bits >> (12 + bits % 50) : bits; /* subnormal, too */
        memcpy(&number, &some, sizeof(number));
        if (isfinite(number))
            check_shortest(number);
        check_shortest((double)(int64_t)(bits >> (bits % 60)) / 1000);
    }
}

static void values_read_as_in_go(void **state)
{
    struct blob inner = {.size = 0};
    struct blob list = {.size = 0};
    struct blob map = {.size = 0};
    struct blob value = {.size = 0};
    struct blob item = {.size = 0};
    struct text text;
    (void)state;
    put_bytes(&item, 7, "\1\2", 2);
    put_blob(&list, 1, &item);
    struct blob quoted = text_value("a\"b\n\001");
    put_blob(&list, 1, &quoted);
    put_blob(&inner, 5, &list);
    put_text_attribute(&map, 1, "z", "first");
    put_attribute(&map, 1, "list", &inner);
    put_text_attribute(&map, 1, "z", "last");
    put_int_attribute(&map, 1, "n", -3);
    put_blob(&value, 6, &map);
    text_init(&text, NULL);
    text_add_typed_value(&text, slice_of(value.data, value.size));
    assert_string_equal(text.data,
                        "Map({\"list\":[\"AQI=\",\"a\\\"b\\n\\u0001\"],\"n\":-3,\"z\":\"last\"})");
    text_fini(&text);
    text_init(&text, NULL);
    text_add_typed_value(&text, (struct slice){0});
    assert_string_equal(text.data, "Empty()");
    text_fini(&text);
}

static void large_text_is_cut_with_a_mark(void **state)
{
    struct text text;
    (void)state;
    text_init(&text, NULL);
    while (!text.is_cut)
        text_add_slice(&text, slice_of_text("0123456789abcdef"));
    text_add(&text, "more");
    assert_true(text.size <= TEXT_BYTES_MAX);
    assert_non_null(strstr(text.data + text.size - 40, "cut: the text is too large"));
    assert_null(strstr(text.data + text.size - 40, "more"));
    text_fini(&text);
}

/* As many bytes of `value`, wrapped in messages of these numbers, the innermost first. */
static struct profile_bytes wrapped(uint8_t value, size_t size, const uint32_t *fields)
{
    struct profile_bytes out = {0};
    memset(profile_bytes_room(&out, size), value, size);
    out.size = size;
    for (size_t i = 0; fields[i] != 0; i++)
        profile_bytes_wrap(&out, 0, fields[i]);
    return out;
}

/* A request that takes much to print: counts of a histogram, a list of values, entries of a
 * dictionary. */
static struct profile_bytes large_request(enum signal_kind signal)
{
    enum { BYTES = 256 << 10 };
    static const uint32_t histogram[] = {2, 8, 1, 10, 2, 2, 1, 0};
    static const uint32_t log[] = {1, 1, 5, 5, 2, 2, 1, 0};
    struct profile_bytes out = {0};
    if (signal == METRICS)
        return wrapped(1, BYTES, histogram);
    if (signal == LOGS)
        return wrapped('x', BYTES, log);
    for (unsigned i = 0; i < BYTES / 2; i++)
        profile_bytes_wrap(&out, out.size, 1 + i % 7);
    profile_bytes_wrap(&out, 0, 2);
    return out;
}

static void printing_stays_within_the_budget(void **state)
{
    static const enum signal_kind signals[] = {METRICS, LOGS, PROFILES};
    static const uint64_t limits[] = {64 << 10, 1 << 20, 64 << 20};
    enum { SLACK_BYTES = 16 << 10 };
    (void)state;
    for (size_t i = 0; i < 9; i++) {
        enum signal_kind signal = signals[i / 3];
        struct profile_bytes request = large_request(signal);
        struct budget budget;
        struct text text;
        budget_init(&budget, limits[i % 3]);
        memory_watch_begin();
        text_init(&text, &budget);
        otlp_text_write(&text, signal, slice_of(request.data, request.size), true);
        if (signal == PROFILES)
            otlp_text_write_spans(&text, slice_of(request.data, request.size), 5);
        text_fini(&text);
        assert_true(memory_watch_peak() <= atomic_load(&budget.high_water) + SLACK_BYTES);
        assert_true(atomic_load(&budget.high_water) <= limits[i % 3]);
        assert_true(i % 3 < 2 || atomic_load(&budget.high_water) > 256 << 10);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        profile_bytes_fini(&request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_read_as_in_go),
        cmocka_unit_test(empty_messages_have_their_headings),
        cmocka_unit_test(log_records_read_as_in_go),
        cmocka_unit_test(numbers_read_as_in_go),
        cmocka_unit_test(histograms_read_as_in_go),
        cmocka_unit_test(exponential_histograms_read_as_in_go),
        cmocka_unit_test(summaries_read_as_in_go),
        cmocka_unit_test(numbers_have_go_s_forms),
        cmocka_unit_test(the_shortest_form_has_no_digit_too_many),
        cmocka_unit_test(values_read_as_in_go),
        cmocka_unit_test(large_text_is_cut_with_a_mark),
        cmocka_unit_test(printing_stays_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
