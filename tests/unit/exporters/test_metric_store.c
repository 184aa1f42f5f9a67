/* SPDX-License-Identifier: Apache-2.0 */
/* What a scrape shows after some requests. Expected texts are what the Go collector's exporter
 * shows for the same requests. */
#include "exporters/prometheus/metric_store.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/config/field.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "src/prometheus/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A metric of one resource and scope. */
#define METRICS_OF(resource, metrics)                                                              \
    "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" resource                               \
    "]},\"scopeMetrics\":[{\"scope\":{\"name\":\"lib\",\"version\":\"1\"},"                        \
    "\"metrics\":[" metrics "]}]}]}"
#define TEXT(key, value)  "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define SERVICE           TEXT("service.name", "shop")
#define INSTANCE          TEXT("service.instance.id", "i1")
#define SCOPE_REST        "otel_scope_schema_url=\"\",otel_scope_version=\"1\""
#define SCOPE             "otel_scope_name=\"lib\"," SCOPE_REST
#define GAUGE(name, body) "{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[" body "]}}"
#define SUM(name, temporality, monotonic, body)                                                    \
    "{\"name\":\"" name "\",\"sum\":{\"aggregationTemporality\":" temporality                      \
    ",\"isMonotonic\":" monotonic ",\"dataPoints\":[" body "]}}"
#define HISTOGRAM(name, temporality, body)                                                         \
    "{\"name\":\"" name "\",\"histogram\":{\"aggregationTemporality\":" temporality                \
    ",\"dataPoints\":[" body "]}}"
#define EXPONENTIAL(name, temporality, body)                                                       \
    "{\"name\":\"" name "\",\"exponentialHistogram\":{\"aggregationTemporality\":" temporality     \
    ",\"dataPoints\":[" body "]}}"
#define POINT(start, time, rest)                                                                   \
    "{\"startTimeUnixNano\":\"" start "\",\"timeUnixNano\":\"" time "\"," rest "}"

enum { REQUESTS_MAX = 4 };

static unsigned pieces; /* besides the last of each request */

static const struct config_pairs no_labels;

struct fixture {
    struct budget budget;
    struct metric_store_settings settings;
    struct metric_store *store;
    uint64_t scraped_ns; /* when scrapes are made; 0: nothing has expired */
};

static void open_store(struct fixture *fixture, uint64_t budget_bytes)
{
    budget_init(&fixture->budget, budget_bytes);
    fixture->settings.budget = &fixture->budget;
    fixture->store = metric_store_create(&fixture->settings);
}

static struct fixture default_fixture(void)
{
    return (struct fixture){
        .settings = {.labels = {.naming = {.name_space = "", .has_suffixes = true},
                                .const_labels = &no_labels,
                                .has_scope = true,
                                .has_service = true},
                     .expiration_ns = 300 * (uint64_t)NS_PER_S},
    };
}

static void close_store(struct fixture *fixture)
{
    metric_store_destroy(fixture->store);
    assert_int_equal(budget_used(&fixture->budget), 0);
    budget_fini(&fixture->budget);
}

static struct metric_store_losses take(struct metric_store *store, struct slice request,
                                       uint64_t now_ns)
{
    struct metric_addition *addition = metric_addition_create(store, request, now_ns);
    while (metric_addition_go_on(addition))
        pieces++;
    return metric_addition_end(addition);
}

static struct metric_store_losses add_at(struct fixture *fixture, const char *json, uint64_t now_s)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX] = "";
    enum json_result result =
        json_read(otlp_request(METRICS), slice_of_text(json), NULL, &encoded, reason);
    assert_string_equal(reason, "");
    assert_int_equal(result, JSON_READ);
    struct metric_store_losses losses =
        take(fixture->store, buffer_slice(encoded), now_s * NS_PER_S);
    losses.name = slice_of(NULL, 0);
    buffer_unref(encoded);
    return losses;
}

static struct metric_store_losses add(struct fixture *fixture, const char *json)
{
    return add_at(fixture, json, 1000);
}

static unsigned expiry_pieces; /* of the last one */

static void expire(struct fixture *fixture, uint64_t now_ns)
{
    size_t at = METRIC_EXPIRY_ALL;
    expiry_pieces = 0;
    do {
        at = metric_store_expire(fixture->store, now_ns, at);
        expiry_pieces++;
    } while (at > 0);
}

static size_t scraped_bytes;
static unsigned pieces_taken; /* of the last snapshot */
static unsigned pieces_released;

/* NULL: no memory. */
static struct metric_snapshot *begin_scrape(struct fixture *fixture)
{
    struct metric_snapshot *snapshot = metric_store_snapshot(fixture->store, fixture->scraped_ns);
    for (pieces_taken = 1; snapshot != NULL && metric_store_take(fixture->store, snapshot);)
        pieces_taken++;
    return snapshot;
}

static void end_scrape(struct fixture *fixture, struct metric_snapshot *snapshot)
{
    for (pieces_released = 1; metric_store_release(fixture->store, snapshot);)
        pieces_released++;
}

/* The caller frees it; scraped_bytes is its size. NULL: no memory. */
static char *finish_scrape(struct fixture *fixture, struct metric_snapshot *snapshot,
                           enum exposition_form form)
{
    const struct exposition_format format = {.form = form, .escaping = ESCAPING_UNDERSCORES};
    struct exposition exposition;
    char *text = NULL;
    exposition_init(&exposition, &format, NULL);
    metric_snapshot_write(snapshot, &exposition);
    if (!exposition.has_failed) {
        text = malloc(exposition.size + 1);
        if (exposition.size > 0)
            memcpy(text, exposition.data, exposition.size);
        text[exposition.size] = '\0';
        scraped_bytes = exposition.size;
    }
    exposition_fini(&exposition);
    end_scrape(fixture, snapshot);
    return text;
}

/* The same. */
static char *scrape(struct fixture *fixture, enum exposition_form form)
{
    struct metric_snapshot *snapshot = begin_scrape(fixture);
    return snapshot != NULL ? finish_scrape(fixture, snapshot, form) : NULL;
}

static void expect(struct fixture *fixture, enum exposition_form form, const char *expected)
{
    char *text = scrape(fixture, form);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

struct shown_case {
    const char *requests[REQUESTS_MAX];
    const char *expected; /* in the text format */
    uint64_t unusable;
};

static const struct shown_case shown_cases[] = {
    {{METRICS_OF(SERVICE, GAUGE("queue.size", POINT("0", "5", "\"asInt\":7")))},
     "# HELP queue_size \n# TYPE queue_size gauge\nqueue_size{job=\"shop\"," SCOPE "} 7\n",
     0},
    /* A counter; what is older than what was shown does not count. */
    {{METRICS_OF(SERVICE, SUM("requests", "2", "true", POINT("1", "5", "\"asDouble\":2.5"))),
      METRICS_OF(SERVICE, SUM("requests", "2", "true", POINT("1", "6", "\"asDouble\":3.5"))),
      METRICS_OF(SERVICE, SUM("requests", "2", "true", POINT("1", "4", "\"asDouble\":9")))},
     "# HELP requests_total \n# TYPE requests_total counter\nrequests_total{job=\"shop\"," SCOPE
     "} 3.5\n",
     0},
    /* Deltas add up, in integers too; behind a gap they begin anew. */
    {{METRICS_OF("", SUM("n", "1", "true", POINT("1", "5", "\"asInt\":2"))),
      METRICS_OF("", SUM("n", "1", "true", POINT("5", "6", "\"asInt\":3")))},
     "# HELP n_total \n# TYPE n_total counter\nn_total{" SCOPE "} 5\n",
     0},
    {{METRICS_OF("", SUM("n", "1", "true", POINT("1", "5", "\"asInt\":2"))),
      METRICS_OF("", SUM("n", "1", "true", POINT("6", "7", "\"asInt\":3")))},
     "# HELP n_total \n# TYPE n_total counter\nn_total{" SCOPE "} 3\n",
     0},
    {{METRICS_OF("", SUM("n", "1", "true", POINT("1", "5", "\"asInt\":2"))),
      METRICS_OF("", SUM("n", "1", "true", POINT("5", "6", "\"asDouble\":0.5")))},
     "# HELP n_total \n# TYPE n_total counter\nn_total{" SCOPE "} 0.5\n",
     0},
    /* What Prometheus has no form for. */
    {{METRICS_OF("", SUM("n", "1", "false", POINT("1", "5", "\"asInt\":2")) "," SUM(
                         "m", "0", "true", POINT("1", "5", "\"asInt\":2")))},
     "",
     2},
    /* A sum that may fall is a gauge. */
    {{METRICS_OF("", SUM("n", "2", "false", POINT("1", "5", "\"asInt\":-2")))},
     "# HELP n \n# TYPE n gauge\nn{" SCOPE "} -2\n",
     0},
    /* Without a recorded value the series ends, and the later points of the metric are passed over.
     */
    {{METRICS_OF("", GAUGE("g", POINT("0", "5", "\"asInt\":1"))),
      METRICS_OF("", GAUGE("g", POINT("0", "6", "\"flags\":1") "," POINT(
                                    "0", "7", "\"asInt\":2,\"attributes\":[" TEXT("a", "b") "]")))},
     "",
     0},
    /* Attributes in any order; of equal names the types must agree. */
    {{METRICS_OF("", GAUGE("g", POINT("0", "5",
                                      "\"asInt\":1,\"attributes\":[" TEXT("a.b", "1") "," TEXT(
                                          "c", "x\\\"y") "]"))),
      METRICS_OF("", GAUGE("g", POINT("0", "6",
                                      "\"asInt\":2,\"attributes\":[" TEXT("c", "x\\\"y") "," TEXT(
                                          "a.b", "1") "]"))),
      METRICS_OF("", SUM("g", "2", "false", POINT("0", "6", "\"asInt\":3"))),
      METRICS_OF("", HISTOGRAM("g", "2", POINT("0", "6", "\"count\":\"0\"")))},
     "# HELP g \n# TYPE g gauge\ng{" SCOPE "} 3\ng{a_b=\"1\",c=\"x\\\"y\"," SCOPE "} 2\n",
     1},
    /* Two labels with one name; labels that are reserved. */
    {{METRICS_OF("", GAUGE("g", POINT("0", "5",
                                      "\"asInt\":1,\"attributes\":[" TEXT("a.b", "1") "," TEXT(
                                          "a_b", "2") "]"))),
      METRICS_OF("",
                 GAUGE("h", POINT("0", "5", "\"asInt\":1,\"attributes\":[" TEXT("__x", "1") "]"))),
      METRICS_OF(SERVICE,
                 GAUGE("k", POINT("0", "5", "\"asInt\":1,\"attributes\":[" TEXT("job", "1") "]")))},
     "",
     3},
    /* A name that is a line of another metric. */
    {{METRICS_OF("", HISTOGRAM("h", "2", POINT("1", "5", "\"count\":\"0\""))),
      METRICS_OF("", GAUGE("h.count", POINT("1", "5", "\"asInt\":1")))},
     "# HELP h \n# TYPE h histogram\nh_bucket{" SCOPE ",le=\"+Inf\"} 0\nh_sum{" SCOPE
     "} 0\nh_count{" SCOPE "} 0\n",
     1},
    /* Histograms: bounds in order, each once. */
    {{METRICS_OF("", HISTOGRAM("h", "2",
                               POINT("1", "5",
                                     "\"count\":\"10\",\"sum\":1.5,\"bucketCounts\":[\"1\",\"2\","
                                     "\"3\",\"4\"],\"explicitBounds\":[5,1,5]")))},
     "# HELP h \n# TYPE h histogram\nh_bucket{" SCOPE ",le=\"1\"} 2\nh_bucket{" SCOPE
     ",le=\"5\"} 3\nh_bucket{" SCOPE ",le=\"+Inf\"} 10\nh_sum{" SCOPE "} 1.5\nh_count{" SCOPE
     "} 10\n",
     0},
    /* Deltas of histograms add up; one that overlaps is left out. */
    {{METRICS_OF("", HISTOGRAM("h", "1",
                               POINT("1", "5",
                                     "\"count\":\"3\",\"sum\":1,\"bucketCounts\":[\"1\",\"2\"],"
                                     "\"explicitBounds\":[1]"))),
      METRICS_OF("", HISTOGRAM("h", "1",
                               POINT("5", "6",
                                     "\"count\":\"1\",\"sum\":2,\"bucketCounts\":[\"1\",\"0\"],"
                                     "\"explicitBounds\":[1]"))),
      METRICS_OF("", HISTOGRAM("h", "1",
                               POINT("4", "7",
                                     "\"count\":\"1\",\"sum\":2,\"bucketCounts\":[\"1\",\"0\"],"
                                     "\"explicitBounds\":[1]")))},
     "# HELP h \n# TYPE h histogram\nh_bucket{" SCOPE ",le=\"1\"} 2\nh_bucket{" SCOPE
     ",le=\"+Inf\"} 4\nh_sum{" SCOPE "} 3\nh_count{" SCOPE "} 4\n",
     1},
    /* With other bounds the newer one counts alone. */
    {{METRICS_OF("", HISTOGRAM("h", "1",
                               POINT("1", "5",
                                     "\"count\":\"3\",\"sum\":1,\"bucketCounts\":[\"1\",\"2\"],"
                                     "\"explicitBounds\":[1]"))),
      METRICS_OF("", HISTOGRAM("h", "1",
                               POINT("5", "6",
                                     "\"count\":\"1\",\"sum\":2,\"bucketCounts\":[\"1\",\"0\"],"
                                     "\"explicitBounds\":[2]")))},
     "# HELP h \n# TYPE h histogram\nh_bucket{" SCOPE ",le=\"2\"} 1\nh_bucket{" SCOPE
     ",le=\"+Inf\"} 1\nh_sum{" SCOPE "} 2\nh_count{" SCOPE "} 1\n",
     0},
    {{METRICS_OF("", "{\"name\":\"s\",\"summary\":{\"dataPoints\":[" POINT(
                         "1", "5",
                         "\"count\":\"3\",\"sum\":6,\"quantileValues\":[{\"quantile\":0.9,"
                         "\"value\":3},{\"quantile\":0.5,\"value\":2}]") "]}}")},
     "# HELP s \n# TYPE s summary\ns{" SCOPE ",quantile=\"0.5\"} 2\ns{" SCOPE
     ",quantile=\"0.9\"} 3\ns_sum{" SCOPE "} 6\ns_count{" SCOPE "} 3\n",
     0},
    /* The text has no native histograms; one whose counts do not add up is not shown at all. */
    {{METRICS_OF(
         "",
         EXPONENTIAL(
             "e", "2",
             POINT("1", "5",
                   "\"count\":\"3\",\"sum\":6,\"scale\":3,\"zeroCount\":\"1\","
                   "\"positive\":{\"bucketCounts\":[\"2\"]}")) "," EXPONENTIAL("wrong", "2",
                                                                               POINT("1", "5",
                                                                                     "\"count\":"
                                                                                     "\"3\"")))},
     "# HELP e \n# TYPE e histogram\ne_bucket{" SCOPE ",le=\"+Inf\"} 3\ne_sum{" SCOPE
     "} 6\ne_count{" SCOPE "} 3\n",
     0},
    /* Resources: with job and instance their other attributes are shown, those that become one
     * label joined. */
    {{METRICS_OF(SERVICE "," INSTANCE "," TEXT("service.namespace", "eu") "," TEXT(
                     "a.b", "1") "," TEXT("a-b", "2") "," TEXT("job", "x"),
                 GAUGE("g", POINT("0", "5", "\"asInt\":1")))},
     "# HELP g \n# TYPE g gauge\ng{instance=\"i1\",job=\"eu/shop\"," SCOPE
     "} 1\n# HELP target_info Target metadata\n# TYPE target_info gauge\n"
     "target_info{a_b=\"1;2\",instance=\"i1\",job=\"eu/shop\"} 1\n",
     0},
    /* Not if one of the two is empty. */
    {{METRICS_OF(TEXT("service.name", "") "," INSTANCE "," TEXT("a", "1"),
                 GAUGE("g", POINT("0", "5", "\"asInt\":1"))),
      METRICS_OF(SERVICE "," TEXT("service.instance.id", ""),
                 GAUGE("h", POINT("0", "5", "\"asInt\":2")))},
     "# HELP g \n# TYPE g gauge\ng{instance=\"i1\",job=\"\"," SCOPE "} 1\n"
     "# HELP h \n# TYPE h gauge\nh{instance=\"\",job=\"shop\"," SCOPE "} 2\n",
     0},
};

static void what_is_shown_follows_the_last_points(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shown_cases) / sizeof(shown_cases[0]); i++) {
        struct fixture fixture = default_fixture();
        uint64_t unusable = 0;
        open_store(&fixture, UINT64_MAX);
        for (size_t k = 0; k < REQUESTS_MAX && shown_cases[i].requests[k] != NULL; k++) {
            struct metric_store_losses losses = add(&fixture, shown_cases[i].requests[k]);
            unusable += losses.unusable;
            assert_int_equal(losses.no_room, 0);
        }
        expect(&fixture, EXPOSITION_TEXT, shown_cases[i].expected);
        assert_int_equal(unusable, shown_cases[i].unusable);
        close_store(&fixture);
    }
}

static const char gauge_request[] = METRICS_OF(SERVICE "," INSTANCE "," TEXT("host.name", "h"),
                                               GAUGE("g", POINT("0", "1500000000", "\"asInt\":1")));

static void settings_decide_about_labels(void **state)
{
    (void)state;
    static const struct config_pair pairs[] = {{"zone", "z"}, {"a b", "q"}};
    static const struct config_pairs labels = {.count = 2, .pairs = pairs};
    struct fixture fixture = default_fixture();
    fixture.settings.labels.const_labels = &labels;
    fixture.settings.labels.has_scope = false;
    fixture.settings.has_timestamps = true;
    fixture.settings.labels.naming.name_space = "my";
    open_store(&fixture, UINT64_MAX);
    add(&fixture, gauge_request);
    expect(&fixture, EXPOSITION_TEXT,
           "# HELP my_g \n# TYPE my_g gauge\n"
           "my_g{a_b=\"q\",instance=\"i1\",job=\"shop\",zone=\"z\"} 1 1500\n"
           "# HELP my_target_info Target metadata\n# TYPE my_target_info gauge\n"
           "my_target_info{host_name=\"h\",instance=\"i1\",job=\"shop\"} 1\n");
    close_store(&fixture);

    fixture = default_fixture();
    fixture.settings.labels.has_scope = false;
    fixture.settings.labels.has_resource = true;
    open_store(&fixture, UINT64_MAX);
    add(&fixture, gauge_request);
    expect(&fixture, EXPOSITION_TEXT,
           "# HELP g \n# TYPE g gauge\n"
           "g{host_name=\"h\",instance=\"i1\",job=\"shop\",service_instance_id=\"i1\","
           "service_name=\"shop\"} 1\n"
           "# HELP target_info Target metadata\n# TYPE target_info gauge\n"
           "target_info{host_name=\"h\",instance=\"i1\",job=\"shop\"} 1\n");
    close_store(&fixture);

    fixture.settings.labels.has_service = false;
    open_store(&fixture, UINT64_MAX);
    add(&fixture, gauge_request);
    char *text = scrape(&fixture, EXPOSITION_TEXT);
    assert_non_null(strstr(text, "g{host_name=\"h\",instance=\"i1\",job=\"shop\"} 1\n"));
    free(text);
    close_store(&fixture);
}

/* Of the exemplars of a counter the last one is shown; each of a histogram in its bucket. */
static void exemplars_are_shown_in_openmetrics(void **state)
{
    (void)state;
    struct fixture fixture = default_fixture();
    fixture.settings.labels.has_scope = false;
    open_store(&fixture, UINT64_MAX);
    add(&fixture,
        METRICS_OF(
            "",
            SUM("n", "2", "true",
                POINT(
                    "1", "5",
                    "\"asInt\":2,\"exemplars\":[{\"asInt\":\"1\",\"timeUnixNano\":"
                    "\"1000000000\",\"spanId\":\"0102030405060708\"},{\"asDouble\":2,"
                    "\"timeUnixNano\":\"2500000000\",\"traceId\":"
                    "\"0102030405060708090a0b0c0d0e0f10\"}]")) "," HISTOGRAM("h", "2",
                                                                             POINT(
                                                                                 "1", "5",
                                                                                 "\"count\":\"2\","
                                                                                 "\"bucketCounts\":"
                                                                                 "[\"1\",\"1\"],"
                                                                                 "\"explicitBounds"
                                                                                 "\":"
                                                                                 "[1],"
                                                                                 "\"exemplars\":[{"
                                                                                 "\"asDouble\":0.5,"
                                                                                 "\"timeUnixNano\":"
                                                                                 "\"1000000000\","
                                                                                 "\"spanId\":"
                                                                                 "\"010203040506070"
                                                                                 "8\"},{"
                                                                                 "\"asDouble\":7,"
                                                                                 "\"timeUnixNano\":"
                                                                                 "\"1000000000\","
                                                                                 "\"spanId\":"
                                                                                 "\"010203040506070"
                                                                                 "9\"}]"))));
    expect(&fixture, EXPOSITION_OPENMETRICS_1,
           "# HELP h \n# TYPE h histogram\n"
           "h_bucket{le=\"1.0\"} 1 # {span_id=\"0102030405060708\"} 0.5 1.0\n"
           "h_bucket{le=\"+Inf\"} 2 # {span_id=\"0102030405060709\"} 7.0 1.0\n"
           "h_sum 0.0\nh_count 2\n"
           "# HELP n \n# TYPE n counter\n"
           "n_total 2.0 # {trace_id=\"0102030405060708090a0b0c0d0e0f10\"} 2.0 2.5\n# EOF\n");
    close_store(&fixture);
}

/* At the coarser scale of both, with the buckets of both. 1: schema 0; 12, 13: positive buckets
 * from index 0 (offset -1 of scale 1 lies in bucket -1 of scale 0, shown as index 0). */
static void deltas_of_exponential_histograms_add_up(void **state)
{
    (void)state;
    static const uint8_t native[] = {
        0x28, 0x00,                                                       /* schema 0 */
        0x31, 0x9d, 0x97, 0x8c, 0xcf, 0x08, 0xba, 0x5b, 0x25,             /* zero_threshold */
        0x38, 0x03,                                                       /* zero_count */
        0x62, 0x04, 0x08, 0x00, 0x10, 0x03, 0x68, 0x02, 0x68, 0x0a, 0x68, /* counts 1, 6, 4 */
        0x03,
    };
    struct fixture fixture = default_fixture();
    fixture.settings.labels.has_scope = false;
    open_store(&fixture, UINT64_MAX);
    add(&fixture, METRICS_OF("", EXPONENTIAL("e", "1",
                                             POINT("1", "5",
                                                   "\"count\":\"7\",\"scale\":1,\"zeroCount\":"
                                                   "\"1\",\"positive\":{\"offset\":-1,"
                                                   "\"bucketCounts\":[\"1\",\"2\",\"3\"]}"))));
    add(&fixture, METRICS_OF("", EXPONENTIAL("e", "1",
                                             POINT("5", "6",
                                                   "\"count\":\"7\",\"scale\":0,\"zeroCount\":"
                                                   "\"2\",\"positive\":{\"offset\":0,"
                                                   "\"bucketCounts\":[\"1\",\"4\"]}"))));
    char *text = scrape(&fixture, EXPOSITION_PROTOBUF);
    assert_non_null(memmem(text, scraped_bytes, native, sizeof(native)));
    free(text);
    /* Buckets too far apart for one histogram: the point is left out. */
    struct metric_store_losses losses =
        add(&fixture, METRICS_OF("", EXPONENTIAL("e", "1",
                                                 POINT("6", "7",
                                                       "\"count\":\"1\",\"positive\":{\"offset\":"
                                                       "2000000000,\"bucketCounts\":[\"1\"]}"))));
    assert_int_equal(losses.no_room, 1);
    close_store(&fixture);
}

/* A bucket's bound is taken for 2^(scale + index + 1); those up to the threshold count as zero. */
static void a_zero_threshold_swallows_buckets(void **state)
{
    (void)state;
    static const struct {
        const char *threshold;
        const uint8_t native[32];
        size_t native_bytes;
    } cases[] = {
        /* zero_count 6, counts 4 and 5 from index 0 on */
        {"1", {0x38, 0x06, 0x62, 0x04, 0x08, 0x02, 0x10, 0x02, 0x68, 0x08, 0x68, 0x02}, 12},
        {"1.5", {0x38, 0x06, 0x62, 0x04, 0x08, 0x02, 0x10, 0x02, 0x68, 0x08, 0x68, 0x02}, 12},
        {"2", {0x38, 0x0a, 0x62, 0x04, 0x08, 0x04, 0x10, 0x01, 0x68, 0x0a}, 10},
        {"1e300", {0x38, 0x0f}, 2},
        {"\"Infinity\"", {0x38, 0x0f}, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char json[512];
        struct fixture fixture = default_fixture();
        fixture.settings.labels.has_scope = false;
        open_store(&fixture, UINT64_MAX);
        add(&fixture, METRICS_OF("", EXPONENTIAL("e", "1",
                                                 POINT("1", "5",
                                                       "\"count\":\"15\",\"positive\":{\"offset\":"
                                                       "-3,\"bucketCounts\":[\"1\",\"2\",\"3\","
                                                       "\"4\",\"5\"]}"))));
        snprintf(json, sizeof(json),
                 METRICS_OF("", EXPONENTIAL("e", "1", POINT("5", "6", "\"zeroThreshold\":%s"))),
                 cases[i].threshold);
        assert_int_equal(add(&fixture, json).no_room, 0);
        char *text = scrape(&fixture, EXPOSITION_PROTOBUF);
        assert_non_null(memmem(text, scraped_bytes, cases[i].native, cases[i].native_bytes));
        free(text);
        close_store(&fixture);
    }
}

/* What is shown of a sum once a delta is added; the caller frees it. is_held: while a snapshot has
 * the sum, which makes the store copy what it would add in place otherwise. */
static char *sum_with(const char *delta, bool is_held, uint64_t *ret_tries)
{
    char json[1024];
    struct fixture fixture = default_fixture();
    fixture.settings.labels.has_scope = false;
    open_store(&fixture, UINT64_MAX);
    add(&fixture,
        METRICS_OF("", EXPONENTIAL("e", "1",
                                   POINT("1", "5",
                                         "\"count\":\"22\",\"sum\":3,\"zeroCount\":\"1\","
                                         "\"zeroThreshold\":0.5,\"positive\":{\"offset\":1,"
                                         "\"bucketCounts\":[\"1\",\"2\",\"3\"]},\"negative\":{"
                                         "\"offset\":5,\"bucketCounts\":[\"4\",\"5\",\"6\"]}"))));
    snprintf(json, sizeof(json), METRICS_OF("", EXPONENTIAL("e", "1", POINT("5", "6", "%s"))),
             delta);
    char *before = scrape(&fixture, EXPOSITION_PROTOBUF);
    const size_t before_bytes = scraped_bytes;
    struct metric_snapshot *held = is_held ? begin_scrape(&fixture) : NULL;
    const uint64_t tries = mem_tries();
    assert_int_equal(add(&fixture, json).no_room, 0);
    *ret_tries = mem_tries() - tries;
    if (held != NULL) {
        char *shown = finish_scrape(&fixture, held, EXPOSITION_PROTOBUF);
        assert_int_equal(scraped_bytes, before_bytes);
        assert_memory_equal(shown, before, before_bytes);
        free(shown);
    }
    free(before);
    char *after = scrape(&fixture, EXPOSITION_PROTOBUF);
    assert_non_null(after);
    close_store(&fixture);
    return after;
}

static void deltas_add_up_in_place_and_in_copies(void **state)
{
    (void)state;
    static const struct {
        const char *delta;
        bool is_in_place;
    } cases[] = {
        {"\"count\":\"1\",\"sum\":2,\"positive\":{\"offset\":2,\"bucketCounts\":[\"1\"]}", true},
        {"\"count\":\"3\",\"sum\":2,\"zeroCount\":\"1\",\"negative\":{\"offset\":6,"
         "\"bucketCounts\":[\"1\",\"1\"]}",
         true},
        {"\"count\":\"6\",\"scale\":2,\"positive\":{\"offset\":4,\"bucketCounts\":[\"1\",\"2\","
         "\"3\"]}",
         true},
        {"\"count\":\"3\",\"scale\":1,\"positive\":{\"offset\":2,\"bucketCounts\":[\"1\",\"2\"]}",
         true},
        /* The threshold swallows it. */
        {"\"count\":\"1\",\"positive\":{\"offset\":-2,\"bucketCounts\":[\"1\"]}", true},
        {"\"sum\":1", true},
        {"\"flags\":0", true},
        /* Buckets before and behind, another scale, another threshold. */
        {"\"count\":\"1\",\"positive\":{\"offset\":0,\"bucketCounts\":[\"1\"]}", false},
        {"\"count\":\"1\",\"positive\":{\"offset\":4,\"bucketCounts\":[\"1\"]}", false},
        {"\"count\":\"1\",\"negative\":{\"offset\":4,\"bucketCounts\":[\"1\"]}", false},
        {"\"count\":\"1\",\"negative\":{\"offset\":8,\"bucketCounts\":[\"1\"]}", false},
        {"\"count\":\"1\",\"scale\":-1,\"positive\":{\"offset\":0,\"bucketCounts\":[\"1\"]}",
         false},
        {"\"zeroThreshold\":0.625", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t tries;
        uint64_t held_tries;
        char *shown = sum_with(cases[i].delta, false, &tries);
        const size_t bytes = scraped_bytes;
        char *held_shown = sum_with(cases[i].delta, true, &held_tries);
        assert_int_equal(scraped_bytes, bytes);
        assert_memory_equal(held_shown, shown, bytes);
        assert_int_equal(tries + cases[i].is_in_place, held_tries);
        free(shown);
        free(held_shown);
    }
}

/* Of one with exemplars a delta leaves none. */
static void a_delta_leaves_no_exemplars(void **state)
{
    (void)state;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add(&fixture, METRICS_OF("", EXPONENTIAL("e", "1",
                                             POINT("1", "5",
                                                   "\"exemplars\":[{\"asDouble\":1,"
                                                   "\"spanId\":\"0102030405060708\"}]"))));
    const uint64_t bytes = metric_store_figures(fixture.store).bytes;
    add(&fixture, METRICS_OF("", EXPONENTIAL("e", "1", POINT("5", "6", "\"flags\":0"))));
    assert_true(metric_store_figures(fixture.store).bytes < bytes);
    close_store(&fixture);
}

/* A metric of delta points: one with so many buckets, then small ones that are added to copies of
 * it, since each has another zero threshold. */
static char *deltas_of_many_buckets(unsigned buckets, unsigned points)
{
    char *json;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    assert_non_null(out);
    fputs("{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"h\","
          "\"exponentialHistogram\":{\"aggregationTemporality\":1,\"dataPoints\":[{"
          "\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"5\",\"positive\":{\"bucketCounts\":[",
          out);
    for (unsigned i = 0; i < buckets; i++)
        fputs(i > 0 ? ",\"1\"" : "\"1\"", out);
    fputs("]}", out);
    for (unsigned i = 0; i < points; i++)
        fprintf(out,
                "},{\"startTimeUnixNano\":\"5\",\"timeUnixNano\":\"5\","
                "\"zeroThreshold\":%ue-300",
                i + 1);
    fputs("}]}}]}]}]}", out);
    fclose(out);
    return json;
}

/* However short the points are. */
static void a_point_costs_the_buckets_that_it_is_added_to(void **state)
{
    (void)state;
    enum { BUCKETS = 16000, POINTS = 100, PIECES_MIN = 4 };
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    char *json = deltas_of_many_buckets(BUCKETS, POINTS);
    const unsigned before = pieces;
    struct metric_store_losses losses = add(&fixture, json);
    assert_int_equal(losses.unusable + losses.no_room, 0);
    assert_true(pieces - before >= PIECES_MIN);
    free(json);
    close_store(&fixture);
}

/* Of a request; the next one may copy again. */
static void copies_of_buckets_have_a_limit(void **state)
{
    (void)state;
    enum { BUCKETS = 16000, POINTS = 1000, COPIES_MIN = 262, COPIES_MAX = 300 };
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    char *json = deltas_of_many_buckets(BUCKETS, POINTS);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t lost = add(&fixture, json).no_room;
        assert_in_range(lost, POINTS - COPIES_MAX, POINTS - COPIES_MIN);
        expire(&fixture, UINT64_MAX);
    }
    free(json);
    close_store(&fixture);
}

/* Deltas that ended before, with other bounds, change nothing; but for the exemplars. */
static void late_deltas_with_other_bounds_copy_nothing(void **state)
{
    (void)state;
    static const char late[] =
        METRICS_OF("", HISTOGRAM("h", "1", POINT("5", "4", "\"count\":\"1\"")));
    struct fixture fixture = default_fixture();
    fixture.settings.labels.has_scope = false;
    open_store(&fixture, UINT64_MAX);
    add(&fixture, METRICS_OF("", HISTOGRAM("h", "1",
                                           POINT("1", "5",
                                                 "\"count\":\"3\",\"sum\":1,\"bucketCounts\":"
                                                 "[\"1\",\"2\"],\"explicitBounds\":[1],"
                                                 "\"exemplars\":[{\"asDouble\":1}]"))));
    uint64_t tries[3];
    for (size_t i = 0; i < 3; i++) {
        const uint64_t before = mem_tries();
        assert_int_equal(add(&fixture, late).no_room, 0);
        tries[i] = mem_tries() - before;
        expect(&fixture, EXPOSITION_TEXT,
               "# HELP h \n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 3\n"
               "h_sum 1\nh_count 3\n");
    }
    assert_int_equal(tries[1], tries[0] - 1);
    assert_int_equal(tries[2], tries[1]);
    close_store(&fixture);
}

/* Counts beyond 2^63 wrap, as in the Go client. */
static void counts_of_exponential_histograms_may_wrap(void **state)
{
    (void)state;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add(&fixture,
        METRICS_OF("",
                   EXPONENTIAL("e", "2",
                               POINT("1", "5",
                                     "\"count\":\"0\",\"positive\":{\"offset\":0,\"bucketCounts\":"
                                     "[\"9223372036854775808\",\"9223372036854775808\"]},"
                                     "\"negative\":{\"offset\":0,\"bucketCounts\":["
                                     "\"9223372036854775808\",\"0\",\"9223372036854775807\","
                                     "\"1\"]}"))));
    char *text = scrape(&fixture, EXPOSITION_PROTOBUF);
    assert_non_null(text);
    assert_true(scraped_bytes > 0);
    free(text);
    close_store(&fixture);
}

/* Each takes many times the bytes that it has in the request. */
static void exemplars_are_charged_before_they_are_kept(void **state)
{
    (void)state;
    enum { EXEMPLARS = 10000, BUDGET_BYTES = 10000 };
    static char json[4 * EXEMPLARS + 1024];
    struct fixture fixture = default_fixture();
    open_store(&fixture, BUDGET_BYTES);
    assert_int_equal(
        add(&fixture, METRICS_OF("", HISTOGRAM("h", "2", POINT("1", "5", "\"count\":\"1\""))))
            .no_room,
        0);
    size_t size = (size_t)snprintf(
        json, sizeof(json),
        "{\"resourceMetrics\":[{\"resource\":{},\"scopeMetrics\":[{\"scope\":{\"name\":\"lib\","
        "\"version\":\"1\"},\"metrics\":[{\"name\":\"h\",\"histogram\":{\"aggregationTemporality\":"
        "2,"
        "\"dataPoints\":[{\"timeUnixNano\":\"6\",\"exemplars\":[{}");
    for (int i = 1; i < EXEMPLARS; i++)
        size += (size_t)snprintf(json + size, sizeof(json) - size, ",{}");
    snprintf(json + size, sizeof(json) - size, "]}]}}]}]}]}");
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX];
    assert_int_equal(json_read(otlp_request(METRICS), slice_of_text(json), NULL, &encoded, reason),
                     JSON_READ);
    const uint64_t tries = mem_tries();
    assert_int_equal(take(fixture.store, buffer_slice(encoded), 1000 * (uint64_t)NS_PER_S).no_room,
                     1);
    assert_int_equal(mem_tries(), tries);
    buffer_unref(encoded);
    close_store(&fixture);
}

static void series_expire(void **state)
{
    (void)state;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add_at(&fixture, METRICS_OF("", GAUGE("a", POINT("0", "5", "\"asInt\":1"))), 1000);
    add_at(&fixture, METRICS_OF("", GAUGE("b", POINT("0", "5", "\"asInt\":1"))), 1200);
    expire(&fixture, 1300 * (uint64_t)NS_PER_S);
    assert_int_equal(metric_store_figures(fixture.store).series, 2);
    expire(&fixture, 1301 * (uint64_t)NS_PER_S);
    expect(&fixture, EXPOSITION_TEXT, "# HELP b \n# TYPE b gauge\nb{" SCOPE "} 1\n");
    /* A snapshot keeps what it shows. */
    struct metric_snapshot *snapshot = begin_scrape(&fixture);
    expire(&fixture, 2000 * (uint64_t)NS_PER_S);
    assert_int_equal(metric_store_figures(fixture.store).series, 0);
    assert_true(metric_snapshot_bytes(snapshot) > 0);
    end_scrape(&fixture, snapshot);
    assert_int_equal(metric_store_figures(fixture.store).bytes, 0);
    close_store(&fixture);
}

/* In one pass: where addresses are checked, each strstr reads the whole text. */
static unsigned lines_of_g(const char *text)
{
    unsigned lines = 0;
    for (; *text != '\0'; text++)
        lines += text[0] == '\n' && text[1] == 'g' && text[2] == '{';
    return lines;
}

/* A scrape shows none of those that are gone, whatever is left of them; if they come again they are
 * shown again. */
static void many_series_expire_in_pieces(void **state)
{
    (void)state;
    enum { SERIES = 30000, POINT_BYTES = 200 };
    static char json[SERIES * POINT_BYTES];
    struct fixture fixture = default_fixture();
    size_t size = (size_t)snprintf(json, sizeof(json),
                                   "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{"
                                   "\"name\":\"g\",\"gauge\":{\"dataPoints\":[");
    for (int i = 0; i < SERIES; i++)
        size += (size_t)snprintf(json + size, sizeof(json) - size,
                                 "%s{\"timeUnixNano\":\"5\",\"asInt\":\"%d\",\"attributes\":["
                                 "{\"key\":\"n\",\"value\":{\"stringValue\":\"%d\"}}]}",
                                 i > 0 ? "," : "", i, i);
    snprintf(json + size, sizeof(json) - size, "]}}]}]}]}");
    open_store(&fixture, UINT64_MAX);
    add_at(&fixture, json, 1000);
    free(scrape(&fixture, EXPOSITION_TEXT));
    add_at(&fixture, METRICS_OF("", GAUGE("g", POINT("0", "5", "\"asInt\":-1"))), 1200);
    fixture.scraped_ns = 1301 * (uint64_t)NS_PER_S;
    const size_t at = metric_store_expire(fixture.store, fixture.scraped_ns, METRIC_EXPIRY_ALL);
    assert_in_range(at, 1, SIZE_MAX - 1);
    assert_in_range(metric_store_figures(fixture.store).series, 2, SERIES);
    expect(&fixture, EXPOSITION_TEXT, "# HELP g \n# TYPE g gauge\ng{" SCOPE "} -1\n");
    expire(&fixture, fixture.scraped_ns);
    assert_in_range(expiry_pieces, 2, 10);
    assert_int_equal(metric_store_figures(fixture.store).series, 1);
    add_at(&fixture, json, 1301);
    char *text = scrape(&fixture, EXPOSITION_TEXT);
    assert_int_equal(lines_of_g(text), SERIES + 1);
    free(text);
    close_store(&fixture);
}

enum { MANY_MAX = 20000, MANY_POINT_BYTES = 200 };

/* Points of a gauge, each with a number of its own as label; more is put into each. */
static void add_numbers(struct fixture *fixture, int from, int count, const char *more)
{
    static char json[MANY_MAX * MANY_POINT_BYTES];
    size_t size = (size_t)snprintf(json, sizeof(json),
                                   "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{"
                                   "\"name\":\"g\",\"gauge\":{\"dataPoints\":[");
    assert_in_range(count, 1, MANY_MAX);
    for (int i = from; i < from + count; i++)
        size += (size_t)snprintf(json + size, sizeof(json) - size,
                                 "%s{\"timeUnixNano\":\"5\",%s,\"attributes\":["
                                 "{\"key\":\"n\",\"value\":{\"stringValue\":\"%06d\"}}]}",
                                 i > from ? "," : "", more, i);
    snprintf(json + size, sizeof(json) - size, "]}}]}]}]}");
    add_at(fixture, json, 1000);
}

/* The numbers that a text shows, which are in order, each once. */
static int numbers_shown(const char *text, int *ret_first, int *ret_last)
{
    int count = 0;
    *ret_last = -1;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        if (strncmp(at, "\ng{n=\"", 6) != 0)
            continue;
        int number = atoi(at + 6);
        assert_true(number > *ret_last);
        *ret_last = number;
        if (count++ == 0)
            *ret_first = number;
    }
    return count;
}

static char *written(struct metric_snapshot *snapshot)
{
    const struct exposition_format format = {.form = EXPOSITION_TEXT,
                                             .escaping = ESCAPING_UNDERSCORES};
    struct exposition exposition;
    exposition_init(&exposition, &format, NULL);
    metric_snapshot_write(snapshot, &exposition);
    assert_false(exposition.has_failed);
    char *text = strndup((const char *)exposition.data, exposition.size);
    exposition_fini(&exposition);
    return text;
}

/* The first piece moves series of a table that has just doubled, and takes none of them yet. */
static void a_table_that_doubles_holds_up_no_snapshot(void **state)
{
    (void)state;
    enum { SERIES = 12289 + 10, LINE_MIN = 32 };
    int first;
    int last;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add_numbers(&fixture, 0, SERIES, "\"asInt\":1");
    struct metric_snapshot *snapshot = metric_store_snapshot(fixture.store, fixture.scraped_ns);
    assert_true(metric_store_take(fixture.store, snapshot));
    assert_in_range(metric_snapshot_bytes(snapshot), 0, LINE_MIN);
    while (metric_store_take(fixture.store, snapshot))
        continue;
    char *text = written(snapshot);
    assert_int_equal(numbers_shown(text, &first, &last), SERIES);
    free(text);
    end_scrape(&fixture, snapshot);
    close_store(&fixture);
}

/* Between its pieces the table grows, and series come and go. */
static void a_snapshot_is_taken_and_released_in_pieces(void **state)
{
    (void)state;
    enum { SERIES = MANY_MAX, NEWS = 12000, REMOVED = 1 };
    int first;
    int last;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    for (int round = 0; round < 3; round++) {
        add_numbers(&fixture, REMOVED * (round + 1), SERIES - REMOVED * (round + 1), "\"asInt\":1");
        struct metric_snapshot *snapshot = metric_store_snapshot(fixture.store, fixture.scraped_ns);
        assert_non_null(snapshot);
        unsigned turns = 1;
        for (; metric_store_take(fixture.store, snapshot); turns++) {
            if (turns == 1)
                add_numbers(&fixture, SERIES + NEWS * round, NEWS, "\"asInt\":2");
            if (turns == 2)
                add_numbers(&fixture, REMOVED * (round + 1), REMOVED, "\"flags\":1");
        }
        assert_in_range(turns, 3, 60);
        char *text = written(snapshot);
        int count = numbers_shown(text, &first, &last);
        free(text);
        assert_in_range(count, SERIES + NEWS * round - REMOVED * (round + 2),
                        SERIES + NEWS * round - REMOVED * (round + 1));
        assert_in_range(first, REMOVED * (round + 1), REMOVED * (round + 2));
        assert_int_equal(last, SERIES + NEWS * round - 1);
        turns = 1;
        for (; metric_store_release(fixture.store, snapshot); turns++)
            if (turns == 2)
                add_numbers(&fixture, SERIES - 1, 2, "\"flags\":1");
        assert_in_range(turns, 3, 60);
        add_numbers(&fixture, SERIES - 1, 2, "\"asInt\":3");
    }
    free(scrape(&fixture, EXPOSITION_TEXT)); /* puts what came last into the order */
    struct metric_snapshot *snapshot = begin_scrape(&fixture);
    assert_in_range(pieces_taken, SERIES / 8192, 60);
    end_scrape(&fixture, snapshot);
    assert_in_range(pieces_released, SERIES / 8192, 60);
    /* What expires while it is taken or released is given back. */
    snapshot = metric_store_snapshot(fixture.store, fixture.scraped_ns);
    assert_true(metric_store_take(fixture.store, snapshot));
    expire(&fixture, 2000 * (uint64_t)NS_PER_S);
    assert_int_equal(metric_store_figures(fixture.store).series, 0);
    while (metric_store_take(fixture.store, snapshot))
        continue;
    free(written(snapshot));
    end_scrape(&fixture, snapshot);
    assert_int_equal(metric_store_figures(fixture.store).bytes, 0);
    /* One that is not taken to its end. */
    add_numbers(&fixture, 0, SERIES, "\"asInt\":1");
    snapshot = metric_store_snapshot(fixture.store, fixture.scraped_ns);
    assert_true(metric_store_take(fixture.store, snapshot));
    end_scrape(&fixture, snapshot);
    char *text = scrape(&fixture, EXPOSITION_TEXT);
    assert_int_equal(numbers_shown(text, &first, &last), SERIES);
    free(text);
    close_store(&fixture);
}

/* One that clashes is tried again when it could be there alone. */
static void a_clash_ends_with_what_it_clashed_with(void **state)
{
    (void)state;
    static const char histogram[] =
        METRICS_OF("", HISTOGRAM("g", "2", POINT("0", "5", "\"count\":\"0\"")));
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add_at(&fixture, METRICS_OF("", GAUGE("g", POINT("0", "5", "\"asInt\":1"))), 1000);
    assert_int_equal(add_at(&fixture, histogram, 1001).unusable, 1);
    assert_int_equal(add_at(&fixture, histogram, 1200).unusable, 1);
    expire(&fixture, 1302 * (uint64_t)NS_PER_S);
    assert_int_equal(add_at(&fixture, histogram, 1302).unusable, 0);
    char *text = scrape(&fixture, EXPOSITION_TEXT);
    assert_non_null(strstr(text, "# TYPE g histogram\n"));
    free(text);
    close_store(&fixture);
}

/* A unit is part of the name. */
static void another_unit_is_another_name(void **state)
{
    (void)state;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add(&fixture, METRICS_OF("", "{\"unit\":\"s\","
                                 "\"name\":\"g\",\"gauge\":{\"dataPoints\":[" POINT(
                                     "0", "5", "\"asInt\":1") "]}}"));
    add(&fixture, METRICS_OF("", "{\"unit\":\"ms\","
                                 "\"name\":\"g\",\"gauge\":{\"dataPoints\":[" POINT(
                                     "0", "6", "\"asInt\":2") "]}}"));
    expect(&fixture, EXPOSITION_TEXT,
           "# HELP g_milliseconds \n# TYPE g_milliseconds gauge\ng_milliseconds{" SCOPE "} 2\n");
    close_store(&fixture);
}

/* Also within one request, when the series was the only one of its resource. */
static void a_unit_may_change_within_a_request(void **state)
{
    (void)state;
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add(&fixture, METRICS_OF(SERVICE "," INSTANCE,
                             "{\"unit\":\"s\",\"name\":\"g\",\"gauge\":{\"dataPoints\":[" POINT(
                                 "0", "5", "\"asInt\":1") "]}},{\"unit\":\"ms\",\"name\":\"g\","
                                                          "\"gauge\":{\"dataPoints\":[" POINT(
                                                              "0", "6", "\"asInt\":2") "]}}"));
    expect(&fixture, EXPOSITION_TEXT,
           "# HELP g_milliseconds \n# TYPE g_milliseconds gauge\n"
           "g_milliseconds{instance=\"i1\",job=\"shop\"," SCOPE "} 2\n"
           "# HELP target_info Target metadata\n# TYPE target_info gauge\n"
           "target_info{instance=\"i1\",job=\"shop\"} 1\n");
    close_store(&fixture);
}

/* They share the bucket beyond all bounds, as bounds that are no numbers come last. */
static void exemplars_that_are_no_numbers_make_one_bucket(void **state)
{
    (void)state;
    static const char exemplar[] = "{\"asDouble\":\"NaN\",\"timeUnixNano\":\"1000000000\","
                                   "\"spanId\":\"0102030405060708\"}";
    char json[4096];
    char exemplars[2048] = "";
    for (size_t i = 0; i < 12; i++)
        snprintf(exemplars + strlen(exemplars), sizeof(exemplars) - strlen(exemplars), "%s%s",
                 i > 0 ? "," : "", exemplar);
    snprintf(json, sizeof(json),
             METRICS_OF("", HISTOGRAM("h", "2",
                                      POINT("1", "5",
                                            "\"count\":\"2\",\"bucketCounts\":[\"1\",\"1\","
                                            "\"0\"],\"explicitBounds\":[\"NaN\",1],"
                                            "\"exemplars\":[%s]"))),
             exemplars);
    struct fixture fixture = default_fixture();
    fixture.settings.labels.has_scope = false;
    open_store(&fixture, UINT64_MAX);
    add(&fixture, json);
    expect(&fixture, EXPOSITION_OPENMETRICS_1,
           "# HELP h \n# TYPE h histogram\nh_bucket{le=\"1.0\"} 1\nh_bucket{le=\"NaN\"} 2\n"
           "h_bucket{le=\"+Inf\"} 2 # {span_id=\"0102030405060708\"} NaN 1.0\n"
           "h_sum 0.0\nh_count 2\n# EOF\n");
    close_store(&fixture);
}

/* Whatever fails, what was there stays, and all is returned. */
static void without_memory_points_are_counted(void **state)
{
    (void)state;
    static const char request[] = METRICS_OF(
        SERVICE "," INSTANCE,
        HISTOGRAM("h", "2",
                  POINT("1", "5",
                        "\"count\":\"1\",\"bucketCounts\":[\"1\",\"0\"],\"explicitBounds\":[1]")));
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    uint64_t before = mem_tries();
    add(&fixture, request);
    uint64_t tries = mem_tries() - before;
    close_store(&fixture);
    assert_true(tries > 3);
    for (uint64_t nth = 1; nth <= tries; nth++) {
        open_store(&fixture, UINT64_MAX);
        add(&fixture, gauge_request);
        struct buffer *encoded;
        char reason[JSON_REASON_BYTES_MAX];
        assert_int_equal(
            json_read(otlp_request(METRICS), slice_of_text(request), NULL, &encoded, reason),
            JSON_READ);
        mem_refuse_nth(nth);
        struct metric_store_losses losses =
            take(fixture.store, buffer_slice(encoded), 1000 * (uint64_t)NS_PER_S);
        mem_refuse_nth(0);
        buffer_unref(encoded);
        char *text = scrape(&fixture, EXPOSITION_TEXT);
        assert_non_null(strstr(text, "\ng{"));
        assert_int_equal(losses.no_room, strstr(text, "\nh_count{") == NULL);
        free(text);
        close_store(&fixture);
    }
    for (uint64_t bytes = 0; bytes < 4000; bytes += 50) {
        open_store(&fixture, bytes);
        struct metric_store_losses losses = add(&fixture, request);
        assert_int_equal(losses.no_room + metric_store_figures(fixture.store).series, 1);
        close_store(&fixture);
    }
}

/* The same, with bytes that are not UTF-8 for each '@'. */
static struct metric_store_losses add_spoilt(struct fixture *fixture, const char *json)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX] = "";
    assert_int_equal(json_read(otlp_request(METRICS), slice_of_text(json), NULL, &encoded, reason),
                     JSON_READ);
    for (size_t i = 0; i < encoded->size; i++)
        encoded->data[i] = encoded->data[i] == '@' ? 0xff : encoded->data[i];
    struct metric_store_losses losses =
        take(fixture->store, buffer_slice(encoded), 1000 * (uint64_t)NS_PER_S);
    losses.name = slice_of(NULL, 0);
    buffer_unref(encoded);
    return losses;
}

/* Prometheus refuses all of a scrape with one such text. */
static void what_is_not_utf8_does_not_spoil_a_scrape(void **state)
{
    static const char *const requests[] = {
        METRICS_OF(SERVICE "," INSTANCE "," TEXT("host.name", "h@"),
                   GAUGE("good", POINT("0", "5", "\"asInt\":1"))),
        METRICS_OF(
            SERVICE,
            GAUGE("value", POINT("0", "5", "\"asInt\":2,\"attributes\":[" TEXT("k", "v@") "]"))),
        METRICS_OF(
            SERVICE,
            GAUGE("key", POINT("0", "5", "\"asInt\":3,\"attributes\":[" TEXT("k@", "v") "]"))),
        METRICS_OF(SERVICE, GAUGE("name@", POINT("0", "5", "\"asInt\":4"))),
        METRICS_OF(SERVICE, GAUGE("help\",\"description\":\"d@", POINT("0", "5", "\"asInt\":5"))),
        ("{\"resourceMetrics\":[{\"scopeMetrics\":[{\"scope\":{\"name\":\"lib@\"},\"metrics\":["
         "{\"name\":\"s\",\"gauge\":{\"dataPoints\":[{\"asInt\":6}]}}]}]}]}"),
    };
    (void)state;
    for (unsigned has_utf8 = 0; has_utf8 < 2; has_utf8++) {
        struct fixture fixture = default_fixture();
        fixture.settings.labels.naming.has_utf8 = has_utf8;
        open_store(&fixture, UINT64_MAX);
        uint64_t unusable = 0;
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
            unusable += add_spoilt(&fixture, requests[i]).unusable;
        char *text = scrape(&fixture, EXPOSITION_TEXT);
        assert_true(utf8_is_valid(slice_of_text(text)));
        assert_non_null(strstr(text, "good{"));
        assert_non_null(strstr(text, "help{"));
        assert_int_equal(unusable, has_utf8 ? 4 : 2);
        free(text);
        close_store(&fixture);
    }
}

/* A name beyond the limit costs nothing for each point. */
static void names_that_are_too_long_are_left_out(void **state)
{
    (void)state;
    enum { NAME_BYTES = 5000 };
    char name[NAME_BYTES + 1];
    char json[2 * NAME_BYTES];
    struct fixture fixture = default_fixture();
    memset(name, 'n', NAME_BYTES);
    name[NAME_BYTES] = '\0';
    open_store(&fixture, UINT64_MAX);
    for (int size = 4096; size <= 4097; size++) {
        snprintf(json, sizeof(json),
                 METRICS_OF("", "{\"name\":\"%.*s\",\"gauge\":{\"dataPoints\":[" POINT(
                                    "0", "5", "\"asInt\":1") "]}}"),
                 size, name);
        assert_int_equal(add(&fixture, json).unusable, size > 4096);
    }
    assert_int_equal(metric_store_figures(fixture.store).series, 1);
    close_store(&fixture);
}

/* Series that are there get their points all the same, and a scrape shows them. */
static void series_take_no_more_than_their_share(void **state)
{
    (void)state;
    enum { SHARE_BYTES = 20000, SERIES = 200 };
    static const char histogram[] =
        METRICS_OF("", HISTOGRAM("h", "2",
                                 POINT("1", "%u",
                                       "\"count\":\"1\",\"bucketCounts\":[\"1\",\"0\"],"
                                       "\"explicitBounds\":[1]")));
    char json[1024];
    uint64_t refused = 0;
    struct fixture fixture = default_fixture();
    fixture.settings.bytes_max = SHARE_BYTES;
    open_store(&fixture, UINT64_MAX);
    snprintf(json, sizeof(json), histogram, 5);
    assert_int_equal(add(&fixture, json).no_room, 0);
    for (int i = 0; i < SERIES; i++) {
        snprintf(
            json, sizeof(json),
            METRICS_OF("", GAUGE("g", POINT("0", "5",
                                            "\"asInt\":1,\"attributes\":[" TEXT("n", "%d") "]"))),
            i);
        refused += add(&fixture, json).no_room;
    }
    struct metric_store_figures figures = metric_store_figures(fixture.store);
    assert_int_equal(figures.series + refused, SERIES + 1);
    assert_true(refused > 0);
    assert_in_range(figures.bytes, SHARE_BYTES * 9 / 10, SHARE_BYTES);
    snprintf(json, sizeof(json), histogram, 6);
    assert_int_equal(add(&fixture, json).no_room, 0);
    free(scrape(&fixture, EXPOSITION_TEXT));
    close_store(&fixture);
}

/* Each bucket repeats the labels. */
static void a_snapshot_knows_the_length_of_its_text(void **state)
{
    (void)state;
    enum { BOUNDS = 500 };
    static char json[64 * BOUNDS];
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    size_t size = (size_t)snprintf(
        json, sizeof(json),
        "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" SERVICE "," INSTANCE "," TEXT(
            "other",
            "1234567890") "]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"h\",\"histogram\":"
                          "{\"aggregationTemporality\":2,\"dataPoints\":[{\"timeUnixNano\":"
                          "\"6\",\"attributes\":[" TEXT("a", "a value of some length that each "
                                                             "line has") "],\"explicitBounds\":[0");
    for (int i = 1; i < BOUNDS; i++)
        size += (size_t)snprintf(json + size, sizeof(json) - size, ",%d", i);
    snprintf(json + size, sizeof(json) - size, "]}]}}]}]}]}");
    for (int round = 0; round < 2; round++) {
        add(&fixture, json);
        struct metric_snapshot *snapshot = begin_scrape(&fixture);
        const uint64_t expected = metric_snapshot_bytes(snapshot);
        end_scrape(&fixture, snapshot);
        free(scrape(&fixture, EXPOSITION_TEXT));
        assert_in_range(expected, scraped_bytes / 2, 2 * scraped_bytes);
    }
    expire(&fixture, UINT64_MAX);
    struct metric_snapshot *snapshot = begin_scrape(&fixture);
    assert_int_equal(metric_snapshot_bytes(snapshot), 0);
    end_scrape(&fixture, snapshot);
    close_store(&fixture);
}

/* What came after a snapshot was begun, and before it was taken. */
static void the_length_is_that_of_what_was_taken(void **state)
{
    (void)state;
    static const char few[] =
        METRICS_OF("", HISTOGRAM("h", "2", POINT("1", "5", "\"explicitBounds\":[1]")));
    static const char many[] = METRICS_OF(
        "", HISTOGRAM("h", "2", POINT("1", "6", "\"explicitBounds\":[1,2,3,4,5,6,7,8,9]")));
    uint64_t expected[2];
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    for (unsigned i = 0; i < 2; i++) {
        add(&fixture, few);
        struct metric_snapshot *snapshot = metric_store_snapshot(fixture.store, 0);
        add(&fixture, many);
        while (metric_store_take(fixture.store, snapshot))
            continue;
        expected[i] = metric_snapshot_bytes(snapshot);
        end_scrape(&fixture, snapshot);
    }
    /* The second one was taken with many all the time. */
    assert_int_equal(expected[0], expected[1]);
    close_store(&fixture);
}

/* A resource is updated after a snapshot took it: another one of its target stays the last. */
static void a_snapshot_knows_which_resource_came_last(void **state)
{
    (void)state;
#define SHOP(version) SERVICE "," INSTANCE "," TEXT("v", version)
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    add_at(&fixture, METRICS_OF(SHOP("1"), GAUGE("a", POINT("0", "5", "\"asInt\":1"))), 1000);
    add_at(&fixture, METRICS_OF(SHOP("2"), GAUGE("b", POINT("0", "5", "\"asInt\":1"))), 1001);
    struct metric_snapshot *snapshot = begin_scrape(&fixture);
    add_at(&fixture, METRICS_OF(SHOP("1"), GAUGE("a", POINT("0", "6", "\"asInt\":1"))), 1002);
    const struct exposition_format format = {.form = EXPOSITION_TEXT,
                                             .escaping = ESCAPING_UNDERSCORES};
    struct exposition exposition;
    exposition_init(&exposition, &format, NULL);
    metric_snapshot_write(snapshot, &exposition);
    assert_non_null(memmem(exposition.data, exposition.size, "v=\"2\"", 5));
    assert_null(memmem(exposition.data, exposition.size, "v=\"1\"", 5));
    exposition_fini(&exposition);
    end_scrape(&fixture, snapshot);
    close_store(&fixture);
}

/* What a scrape needs beside its text is returned, and was charged. */
static void what_a_scrape_needs_is_charged(void **state)
{
    (void)state;
    enum { MANY = 3000, JSON_BYTES = 100 * MANY, PER_NEW_SERIES = 96, PER_BOUND = 48 };
    static const struct {
        const char *head;
        const char *item; /* a number follows */
        const char *item_tail;
        const char *tail;
        size_t bytes; /* for each item, at least */
    } cases[] = {
        {"\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"5\"}",
         ",{\"timeUnixNano\":\"5\",\"attributes\":[{\"key\":\"n\",\"value\":{\"intValue\":", "}}]}",
         "]}", PER_NEW_SERIES},
        {"\"histogram\":{\"aggregationTemporality\":2,\"dataPoints\":[{\"explicitBounds\":[99999",
         ",", "", "]}]}", PER_BOUND},
        {"\"summary\":{\"dataPoints\":[{\"quantileValues\":[{\"quantile\":1}", ",{\"quantile\":0.",
         "}", "]}]}", PER_BOUND},
        {"\"exponentialHistogram\":{\"aggregationTemporality\":2,\"dataPoints\":[{\"positive\":{"
         "\"bucketCounts\":[0",
         ",", "", "]}}]}", sizeof(struct exposition_native_bucket)},
    };
    const struct exposition_format format = {.form = EXPOSITION_TEXT,
                                             .escaping = ESCAPING_UNDERSCORES};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static char json[JSON_BYTES];
        struct fixture fixture = default_fixture();
        struct exposition exposition;
        fixture.settings.labels.has_scope = false;
        open_store(&fixture, UINT64_MAX);
        size_t size = (size_t)snprintf(json, sizeof(json),
                                       "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{"
                                       "\"name\":\"m\",%s",
                                       cases[i].head);
        for (unsigned k = 0; k < MANY; k++)
            size += (size_t)snprintf(json + size, sizeof(json) - size, "%s%u%s", cases[i].item,
                                     MANY + k, cases[i].item_tail);
        snprintf(json + size, sizeof(json) - size, "%s}]}]}]}", cases[i].tail);
        assert_int_equal(add(&fixture, json).no_room, 0);
        struct metric_snapshot *snapshot = begin_scrape(&fixture);
        const uint64_t before = budget_used(&fixture.budget);
        /* The store had more at times. */
        atomic_store(&fixture.budget.high_water, before);
        exposition_init(&exposition, &format, &fixture.budget);
        metric_snapshot_write(snapshot, &exposition);
        assert_false(exposition.has_failed);
        assert_int_equal(budget_used(&fixture.budget) - before, exposition.capacity);
        /* The order is made before the text. */
        const uint64_t text_bytes = i == 0 ? 0 : exposition.capacity;
        assert_true(fixture.budget.high_water - before >= text_bytes + MANY * cases[i].bytes);
        exposition_fini(&exposition);
        end_scrape(&fixture, snapshot);
        close_store(&fixture);
    }
}

/* Four labels beside those of the scope, as many services have them. */
static void a_series_takes_300_bytes(void **state)
{
    (void)state;
    enum { SERIES = 10000 };
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    for (int i = 0; i < SERIES; i++) {
        char json[1024];
        snprintf(json, sizeof(json),
                 METRICS_OF(SERVICE,
                            SUM("http.server.requests", "2", "true",
                                POINT("1", "5",
                                      "\"asInt\":2,\"attributes\":[" TEXT(
                                          "http.route", "/api/v1/orders/%d") "," TEXT("http.method",
                                                                                      "GET") "]"))),
                 i);
        assert_int_equal(add(&fixture, json).no_room, 0);
    }
    struct metric_store_figures figures = metric_store_figures(fixture.store);
    assert_int_equal(figures.series, SERIES);
    print_message("%lu bytes a series\n", (unsigned long)(figures.bytes / SERIES));
    assert_true(figures.bytes / SERIES <= 300);
    close_store(&fixture);
}

/* So that a large request holds neither its lane nor the lock. */
static void a_large_request_is_taken_in_pieces(void **state)
{
    (void)state;
    enum { SERIES = 5000, POINT_BYTES = 200, PIECES_MIN = 5 };
    static char json[SERIES * POINT_BYTES];
    size_t size = (size_t)snprintf(json, sizeof(json),
                                   "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{"
                                   "\"name\":\"g\",\"gauge\":{\"dataPoints\":[");
    for (int i = 0; i < SERIES; i++)
        size += (size_t)snprintf(json + size, sizeof(json) - size,
                                 "%s{\"timeUnixNano\":\"5\",\"asInt\":\"%d\",\"attributes\":["
                                 "{\"key\":\"n\",\"value\":{\"stringValue\":\"%d\"}}]}",
                                 i > 0 ? "," : "", i, i);
    snprintf(json + size, sizeof(json) - size, "]}}]}]}]}");
    struct fixture fixture = default_fixture();
    open_store(&fixture, UINT64_MAX);
    unsigned before = pieces;
    assert_int_equal(add(&fixture, json).no_room, 0);
    assert_true(pieces - before >= PIECES_MIN);
    assert_int_equal(metric_store_figures(fixture.store).series, SERIES);
    char *text = scrape(&fixture, EXPOSITION_TEXT);
    assert_int_equal(lines_of_g(text), SERIES);
    free(text);
    /* What is known costs less. */
    before = pieces;
    add(&fixture, json);
    assert_true(pieces - before < PIECES_MIN);
    close_store(&fixture);
}

static uint32_t drawn(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*seed >> 8) * below >> 24);
}

/* Names and values that begin alike: of two letters, up to so many. */
static void put_word(FILE *out, uint32_t *seed, uint32_t length_max)
{
    for (uint32_t left = drawn(seed, length_max + 1); left > 0; left--)
        fputc(drawn(seed, 8) == 0 ? 'b' : 'a', out);
}

/* Points of random names with up to three attributes of random keys. */
static void add_random(struct fixture *fixture, uint32_t seed, unsigned points)
{
    char *json;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    assert_non_null(out);
    fputs("{\"resourceMetrics\":[{\"scopeMetrics\":[{\"scope\":{\"name\":\"", out);
    put_word(out, &seed, 3);
    fputs("\"},\"metrics\":[", out);
    for (unsigned i = 0; i < points; i++) {
        fprintf(out, "%s{\"name\":\"n", i > 0 ? "," : "");
        put_word(out, &seed, 18);
        fputs("\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"5\",\"asInt\":\"1\"", out);
        fputs(",\"attributes\":[", out);
        const uint32_t count = drawn(&seed, 4);
        for (uint32_t k = 0; k < count; k++) {
            fprintf(out, "%s{\"key\":\"k%u\",\"value\":{\"stringValue\":\"", k > 0 ? "," : "",
                    3 * k + drawn(&seed, 3));
            put_word(out, &seed, 20);
            fputs("\"}}", out);
        }
        fputs("]}]}}", out);
    }
    fputs("]}]}]}", out);
    fclose(out);
    assert_int_equal(add(fixture, json).no_room, 0);
    free(json);
}

static unsigned labels_count(struct slice labels)
{
    struct slice name;
    struct slice value;
    unsigned count = 0;
    while (exposition_label_next(&labels, &name, &value))
        count++;
    return count;
}

/* As the Go client sorts: names, number of labels, values. */
static int compare_lines(struct slice a, struct slice b)
{
    const uint8_t *left_end = memchr(a.data, '{', a.size);
    const uint8_t *right_end = memchr(b.data, '{', b.size);
    assert_true(left_end != NULL && right_end != NULL);
    struct slice left = slice_of(left_end + 1, a.size - (size_t)(left_end - a.data) - 4);
    struct slice right = slice_of(right_end + 1, b.size - (size_t)(right_end - b.data) - 4);
    int order = slice_compare(slice_of(a.data, (size_t)(left_end - a.data)),
                              slice_of(b.data, (size_t)(right_end - b.data)));
    if (order == 0)
        order = (int)labels_count(left) - (int)labels_count(right);
    struct slice name;
    struct slice left_value;
    struct slice right_value;
    while (order == 0 && exposition_label_next(&left, &name, &left_value) &&
           exposition_label_next(&right, &name, &right_value))
        order = slice_compare(left_value, right_value);
    return order;
}

static unsigned lines_in_order(const char *text)
{
    struct slice last = {.size = 0};
    unsigned lines = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        struct slice line = slice_of(text, (size_t)(end - text));
        if (*text == '#')
            continue;
        /* Of equal values the keys differ. */
        if (lines > 0 && compare_lines(last, line) > 0)
            fail_msg("%.*s before %.*s", (int)last.size, (const char *)last.data, (int)line.size,
                     (const char *)line.data);
        last = line;
        lines++;
    }
    return lines;
}

/* At first, and what came since among what was there. */
static void series_are_in_order(void **state)
{
    (void)state;
    enum { POINTS = 900, NEWS = 100, ROUNDS = 8 };
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct fixture fixture = default_fixture();
        open_store(&fixture, UINT64_MAX);
        add_random(&fixture, 4 * round, POINTS);
        add_random(&fixture, 4 * round + 1, POINTS);
        char *text = scrape(&fixture, EXPOSITION_TEXT);
        const unsigned lines = lines_in_order(text);
        assert_true(lines > POINTS);
        assert_int_equal(lines, metric_store_figures(fixture.store).series);
        free(text);
        add_random(&fixture, 4 * round + 2, NEWS);
        text = scrape(&fixture, EXPOSITION_TEXT);
        assert_true(lines_in_order(text) > lines);
        free(text);
        close_store(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_are_in_order),
        cmocka_unit_test(what_is_shown_follows_the_last_points),
        cmocka_unit_test(settings_decide_about_labels),
        cmocka_unit_test(exemplars_are_shown_in_openmetrics),
        cmocka_unit_test(deltas_of_exponential_histograms_add_up),
        cmocka_unit_test(deltas_add_up_in_place_and_in_copies),
        cmocka_unit_test(a_delta_leaves_no_exemplars),
        cmocka_unit_test(a_zero_threshold_swallows_buckets),
        cmocka_unit_test(a_point_costs_the_buckets_that_it_is_added_to),
        cmocka_unit_test(copies_of_buckets_have_a_limit),
        cmocka_unit_test(late_deltas_with_other_bounds_copy_nothing),
        cmocka_unit_test(counts_of_exponential_histograms_may_wrap),
        cmocka_unit_test(exemplars_are_charged_before_they_are_kept),
        cmocka_unit_test(series_expire),
        cmocka_unit_test(many_series_expire_in_pieces),
        cmocka_unit_test(a_table_that_doubles_holds_up_no_snapshot),
        cmocka_unit_test(a_snapshot_is_taken_and_released_in_pieces),
        cmocka_unit_test(a_clash_ends_with_what_it_clashed_with),
        cmocka_unit_test(another_unit_is_another_name),
        cmocka_unit_test(a_unit_may_change_within_a_request),
        cmocka_unit_test(exemplars_that_are_no_numbers_make_one_bucket),
        cmocka_unit_test(without_memory_points_are_counted),
        cmocka_unit_test(what_is_not_utf8_does_not_spoil_a_scrape),
        cmocka_unit_test(names_that_are_too_long_are_left_out),
        cmocka_unit_test(series_take_no_more_than_their_share),
        cmocka_unit_test(a_snapshot_knows_the_length_of_its_text),
        cmocka_unit_test(the_length_is_that_of_what_was_taken),
        cmocka_unit_test(a_snapshot_knows_which_resource_came_last),
        cmocka_unit_test(what_a_scrape_needs_is_charged),
        cmocka_unit_test(a_series_takes_300_bytes),
        cmocka_unit_test(a_large_request_is_taken_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
