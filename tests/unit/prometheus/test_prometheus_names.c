/* SPDX-License-Identifier: Apache-2.0 */
/* Names and their escapings. Expected are the results of prometheus/otlptranslator 1.0 and
 * prometheus/common 0.68, with the settings of the Go collector 0.155. */
#include "src/prometheus/prometheus_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NAMINGS = 7 };

static const struct prometheus_naming namings[NAMINGS] = {
    {.name_space = "", .has_suffixes = true},
    {.name_space = "my-app", .has_suffixes = true},
    {.name_space = ""},
    {.name_space = "my-app"},
    {.name_space = "", .has_suffixes = true, .has_utf8 = true},
    {.name_space = "my-app", .has_utf8 = true},
    {.name_space = "1x", .has_suffixes = true},
};

/* Sums are monotonic. */
static const struct {
    const char *name;
    const char *unit;
    enum metric_kind kind;
    const char *expected[NAMINGS];
} metrics[] = {
    {"http.requests",
     "",
     METRIC_SUM,
     {"http_requests_total", "my-app_http_requests_total", "http_requests", "my_app_http_requests",
      "http.requests_total", "my-app_http.requests", "_1x_http_requests_total"}},
    {"requests_total",
     "",
     METRIC_SUM,
     {"requests_total", "my-app_requests_total", "requests_total", "my_app_requests_total",
      "requests_total", "my-app_requests_total", "_1x_requests_total"}},
    {"total.requests.total",
     "1",
     METRIC_SUM,
     {"requests_total", "my-app_requests_total", "total_requests_total",
      "my_app_total_requests_total", "total.requests_total", "my-app_total.requests.total",
      "_1x_requests_total"}},
    {"queue.fill",
     "1",
     METRIC_GAUGE,
     {"queue_fill_ratio", "my-app_queue_fill_ratio", "queue_fill", "my_app_queue_fill",
      "queue.fill_ratio", "my-app_queue.fill", "_1x_queue_fill_ratio"}},
    {"fill_ratio",
     "1",
     METRIC_GAUGE,
     {"fill_ratio", "my-app_fill_ratio", "fill_ratio", "my_app_fill_ratio", "fill_ratio",
      "my-app_fill_ratio", "_1x_fill_ratio"}},
    {"up",
     "1",
     METRIC_HISTOGRAM,
     {"up", "my-app_up", "up", "my_app_up", "up", "my-app_up", "_1x_up"}},
    {"latency",
     "ms",
     METRIC_HISTOGRAM,
     {"latency_milliseconds", "my-app_latency_milliseconds", "latency", "my_app_latency",
      "latency_milliseconds", "my-app_latency", "_1x_latency_milliseconds"}},
    {"latency.seconds",
     "s",
     METRIC_HISTOGRAM,
     {"latency_seconds", "my-app_latency_seconds", "latency_seconds", "my_app_latency_seconds",
      "latency.seconds", "my-app_latency.seconds", "_1x_latency_seconds"}},
    {"rate",
     "By/s",
     METRIC_GAUGE,
     {"rate_bytes_per_second", "my-app_rate_bytes_per_second", "rate", "my_app_rate",
      "rate_bytes_per_second", "my-app_rate", "_1x_rate_bytes_per_second"}},
    {"bytes.rate",
     "By/s",
     METRIC_GAUGE,
     {"bytes_rate_per_second", "my-app_bytes_rate_per_second", "bytes_rate", "my_app_bytes_rate",
      "bytes.rate_bytes_per_second", "my-app_bytes.rate", "_1x_bytes_rate_per_second"}},
    {"items",
     "{item}",
     METRIC_GAUGE,
     {"items", "my-app_items", "items", "my_app_items", "items", "my-app_items", "_1x_items"}},
    {"items",
     "{item}/s",
     METRIC_GAUGE,
     {"items_per_second", "my-app_items_per_second", "items", "my_app_items", "items_per_second",
      "my-app_items", "_1x_items_per_second"}},
    {"speed",
     "m/ {x}",
     METRIC_GAUGE,
     {"speed_meters", "my-app_speed_meters", "speed", "my_app_speed", "speed_meters",
      "my-app_speed", "_1x_speed_meters"}},
    {"odd",
     "foo bar",
     METRIC_GAUGE,
     {"odd_foo_bar", "my-app_odd_foo_bar", "odd", "my_app_odd", "odd_foo bar", "my-app_odd",
      "_1x_odd_foo_bar"}},
    {"odd",
     "_a_/_b_",
     METRIC_GAUGE,
     {"odd_a_per_b", "my-app_odd_a_per_b", "odd", "my_app_odd", "odd__a__per__b_", "my-app_odd",
      "_1x_odd_a_per_b"}},
    {"1abc",
     "",
     METRIC_GAUGE,
     {"_1abc", "my-app_1abc", "_1abc", "my_app_1abc", "1abc", "my-app_1abc", "_1x_1abc"}},
    {"_x", "", METRIC_GAUGE, {"x", "my-app_x", "_x", "my_app__x", "_x", "my-app__x", "_1x_x"}},
    {"__a..b__",
     "",
     METRIC_GAUGE,
     {"a_b", "my-app_a_b", "__a_b__", "my_app___a_b__", "__a..b__", "my-app___a..b__", "_1x_a_b"}},
    {"___", "", METRIC_GAUGE, {"", "my-app", "___", "my_app____", "___", "my-app____", "_1x"}},
    {"", "", METRIC_GAUGE, {"", "my-app", "", "my_app_", "", "my-app_", "_1x"}},
    {"\xc2\xb5s",
     "",
     METRIC_GAUGE,
     {"s", "my-app_s", "s", "my_app_s", "\xc2\xb5s", "my-app_\xc2\xb5s", "_1x_s"}},
    {"gr\xc3\xb6\xc3\x9f"
     "e",
     "",
     METRIC_GAUGE,
     {"gr_e", "my-app_gr_e", "gr_e", "my_app_gr_e",
      "gr\xc3\xb6\xc3\x9f"
      "e",
      "my-app_gr\xc3\xb6\xc3\x9f"
      "e",
      "_1x_gr_e"}},
    {"a:b",
     "",
     METRIC_GAUGE,
     {"a:b", "my-app_a:b", "a:b", "my_app_a:b", "a:b", "my-app_a:b", "_1x_a:b"}},
    {"\xc3\xbc",
     "By",
     METRIC_GAUGE,
     {"bytes", "my-app_bytes", "", "my_app_", "\xc3\xbc_bytes", "my-app_\xc3\xbc", "_1x_bytes"}},
    {"x",
     "m\xc2\xb2",
     METRIC_GAUGE,
     {"x_m_", "my-app_x_m_", "x", "my_app_x", "x_m\xc2\xb2", "my-app_x", "_1x_x_m_"}},
    {"count.total",
     "total",
     METRIC_SUM,
     {"count_total", "my-app_count_total", "count_total", "my_app_count_total", "count_total_total",
      "my-app_count.total", "_1x_count_total"}},
    {"x_per_second_total",
     "By/s",
     METRIC_SUM,
     {"x_per_second_bytes_per_second_total", "my-app_x_per_second_bytes_per_second_total",
      "x_per_second_total", "my_app_x_per_second_total", "x_bytes_per_second_total",
      "my-app_x_per_second_total", "_1x_x_per_second_bytes_per_second_total"}},
};

static void metrics_are_named_with_unit_and_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
        for (size_t k = 0; k < NAMINGS; k++) {
            const struct metric metric = {.name = slice_of_text(metrics[i].name),
                                          .unit = slice_of_text(metrics[i].unit),
                                          .kind = metrics[i].kind,
                                          .is_monotonic = metrics[i].kind == METRIC_SUM};
            size_t room = prometheus_metric_name_max(&namings[k], &metric);
            char *name = calloc(1, room + 1);
            size_t size = prometheus_metric_name(&namings[k], &metric, name);
            assert_true(size <= room);
            name[size] = '\0';
            assert_string_equal(name, metrics[i].expected[k]);
            free(name);
        }
}

/* Each kind, words that are suffixes, odd units, odd namespaces. */
static const struct {
    struct prometheus_naming naming; /* namespace, suffixes, UTF-8 */
    const char *name;
    const char *unit;
    enum metric_kind kind;
    bool is_monotonic;
    const char *expected;
} odd_metrics[] = {
    {{"", true, false}, "total.ratio", "1", METRIC_GAUGE, false, "total_ratio"},
    {{"", true, true}, "total.ratio", "1", METRIC_GAUGE, false, "total_ratio"},
    {{"", true, false}, "total.ratio", "1", METRIC_SUM, true, "ratio_total"},
    {{"", true, true}, "total.ratio", "1", METRIC_SUM, true, "total.ratio_total"},
    {{"", true, false}, "total.ratio", "1", METRIC_SUM, false, "total_ratio"},
    {{"", true, true}, "total.ratio", "1", METRIC_SUM, false, "total.ratio"},
    {{"", true, false}, "total.ratio", "1", METRIC_HISTOGRAM, false, "total_ratio"},
    {{"", true, true}, "total.ratio", "1", METRIC_HISTOGRAM, false, "total.ratio"},
    {{"", true, false}, "total.ratio", "1", METRIC_EXPONENTIAL, false, "total_ratio"},
    {{"", true, true}, "total.ratio", "1", METRIC_EXPONENTIAL, false, "total.ratio"},
    {{"", true, false}, "total.ratio", "1", METRIC_SUMMARY, false, "total_ratio"},
    {{"", true, true}, "total.ratio", "1", METRIC_SUMMARY, false, "total.ratio"},
    {{"", true, false}, "total", "", METRIC_SUM, true, "total"},
    {{"", true, true}, "total", "", METRIC_SUM, true, "total_total"},
    {{"", true, false}, "xtotal", "", METRIC_SUM, true, "xtotal_total"},
    {{"", true, true}, "xtotal", "", METRIC_SUM, true, "xtotal_total"},
    {{"", true, false}, "a.total", "", METRIC_SUM, true, "a_total"},
    {{"", true, true}, "a.total", "", METRIC_SUM, true, "a_total"},
    {{"", true, false}, "_total", "", METRIC_SUM, true, "total"},
    {{"", true, true}, "_total", "", METRIC_SUM, true, "_total_total"},
    {{"", true, false}, "a\xc3\xa9total.b", "", METRIC_SUM, true, "a_b_total"},
    {{"", true, true}, "a\xc3\xa9total.b", "", METRIC_SUM, true, "a\xc3\xa9total.b_total"},
    {{"", true, false}, "total", "", METRIC_SUM, false, "total"},
    {{"", true, true}, "total", "", METRIC_SUM, false, "total"},
    {{"", true, false}, "xtotal", "", METRIC_SUM, false, "xtotal"},
    {{"", true, true}, "xtotal", "", METRIC_SUM, false, "xtotal"},
    {{"", true, false}, "a.total", "", METRIC_SUM, false, "a_total"},
    {{"", true, true}, "a.total", "", METRIC_SUM, false, "a.total"},
    {{"", true, false}, "_total", "", METRIC_SUM, false, "total"},
    {{"", true, true}, "_total", "", METRIC_SUM, false, "_total"},
    {{"", true, false}, "a\xc3\xa9total.b", "", METRIC_SUM, false, "a_total_b"},
    {{"", true, true}, "a\xc3\xa9total.b", "", METRIC_SUM, false, "a\xc3\xa9total.b"},
    {{"", true, true}, "ratio", "1", METRIC_GAUGE, false, "ratio_ratio"},
    {{"", true, true}, "x_ratio", "1", METRIC_GAUGE, false, "x_ratio"},
    {{"", true, true}, "xratio", "1", METRIC_GAUGE, false, "xratio_ratio"},
    {{"", true, false}, "x", "/s", METRIC_SUM, true, "x_per_second_total"},
    {{"", true, true}, "x", "/s", METRIC_SUM, true, "x_per_second_total"},
    {{"", true, false}, "x", "s/", METRIC_SUM, true, "x_seconds_total"},
    {{"", true, true}, "x", "s/", METRIC_SUM, true, "x_seconds_total"},
    {{"", true, false}, "x", " s ", METRIC_SUM, true, "x_seconds_total"},
    {{"", true, true}, "x", " s ", METRIC_SUM, true, "x_seconds_total"},
    {{"", true, false}, "x", "\ts/ h\n", METRIC_SUM, true, "x_seconds_per_hour_total"},
    {{"", true, true}, "x", "\ts/ h\n", METRIC_SUM, true, "x_seconds_per_hour_total"},
    {{"", true, false}, "x", "a//", METRIC_SUM, true, "x_a_total"},
    {{"", true, true}, "x", "a//", METRIC_SUM, true, "x_a_per_/_total"},
    {{"", true, false}, "x", "a//b", METRIC_SUM, true, "x_a_per_b_total"},
    {{"", true, true}, "x", "a//b", METRIC_SUM, true, "x_a_per_/b_total"},
    {{"", true, false}, "x", "a/b/c", METRIC_SUM, true, "x_a_per_b_c_total"},
    {{"", true, true}, "x", "a/b/c", METRIC_SUM, true, "x_a_per_b/c_total"},
    {{"", true, false}, "x", "/per_", METRIC_SUM, true, "x_per_per_total"},
    {{"", true, true}, "x", "/per_", METRIC_SUM, true, "x_per_per__total"},
    {{"", true, false}, "x", "1/s", METRIC_SUM, true, "x_per_second_total"},
    {{"", true, true}, "x", "1/s", METRIC_SUM, true, "x_per_second_total"},
    {{"", true, false}, "x", "{a}/{b}", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "{a}/{b}", METRIC_SUM, true, "x_total"},
    {{"", true, false}, "x", "{a}b", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "{a}b", METRIC_SUM, true, "x_total"},
    {{"", true, false}, "x", "a}", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "a}", METRIC_SUM, true, "x_total"},
    {{"", true, false}, "x", "_", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "_", METRIC_SUM, true, "x___total"},
    {{"", true, false}, "x", "__/_", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "__/_", METRIC_SUM, true, "x____per___total"},
    {{"", true, false}, "x", "total/s", METRIC_SUM, true, "x_per_second_total"},
    {{"", true, true}, "x", "total/s", METRIC_SUM, true, "x_total_per_second_total"},
    {{"", true, false}, "x", "total_/s", METRIC_SUM, true, "x_per_second_total"},
    {{"", true, true}, "x", "total_/s", METRIC_SUM, true, "x_total__per_second_total"},
    {{"", true, false}, "x", "\xc2\xb2", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "\xc2\xb2", METRIC_SUM, true, "x_\xc2\xb2_total"},
    {{"", true, false}, "x", "/\xc2\xb2", METRIC_SUM, true, "x_total"},
    {{"", true, true}, "x", "/\xc2\xb2", METRIC_SUM, true, "x_per_\xc2\xb2_total"},
    {{"", true, false}, "x", "%", METRIC_SUM, true, "x_percent_total"},
    {{"", true, true}, "x", "%", METRIC_SUM, true, "x_percent_total"},
    {{"", true, false}, "x", "a:b", METRIC_SUM, true, "x_a:b_total"},
    {{"", true, true}, "x", "a:b", METRIC_SUM, true, "x_a:b_total"},
    {{"", true, false}, "x", "per/s", METRIC_SUM, true, "x_per_per_second_total"},
    {{"", true, true}, "x", "per/s", METRIC_SUM, true, "x_per_per_second_total"},
    {{"9", true, false}, "total.b", "s", METRIC_SUM, true, "_9_b_seconds_total"},
    {{"9", false, false}, "total.b", "s", METRIC_SUM, true, "9_total_b"},
    {{"9", true, true}, "total.b", "s", METRIC_SUM, true, "9_total.b_seconds_total"},
    {{"9", false, true}, "total.b", "s", METRIC_SUM, true, "9_total.b"},
    {{"\xc3\xbc", true, false}, "total.b", "s", METRIC_SUM, true, "\xc3\xbc_b_seconds_total"},
    {{"\xc3\xbc", false, false}, "total.b", "s", METRIC_SUM, true, "_total_b"},
    {{"\xc3\xbc", true, true}, "total.b", "s", METRIC_SUM, true, "\xc3\xbc_total.b_seconds_total"},
    {{"\xc3\xbc", false, true}, "total.b", "s", METRIC_SUM, true, "\xc3\xbc_total.b"},
    {{"..", true, false}, "total.b", "s", METRIC_SUM, true, ".._b_seconds_total"},
    {{"..", false, false}, "total.b", "s", METRIC_SUM, true, "_total_b"},
    {{"..", true, true}, "total.b", "s", METRIC_SUM, true, ".._total.b_seconds_total"},
    {{"..", false, true}, "total.b", "s", METRIC_SUM, true, ".._total.b"},
    {{"_", true, false}, "total.b", "s", METRIC_SUM, true, "__b_seconds_total"},
    {{"_", false, false}, "total.b", "s", METRIC_SUM, true, "__total_b"},
    {{"_", true, true}, "total.b", "s", METRIC_SUM, true, "__total.b_seconds_total"},
    {{"_", false, true}, "total.b", "s", METRIC_SUM, true, "__total.b"},
    {{"a b", true, false}, "total.b", "s", METRIC_SUM, true, "a b_b_seconds_total"},
    {{"a b", false, false}, "total.b", "s", METRIC_SUM, true, "a_b_total_b"},
    {{"a b", true, true}, "total.b", "s", METRIC_SUM, true, "a b_total.b_seconds_total"},
    {{"a b", false, true}, "total.b", "s", METRIC_SUM, true, "a b_total.b"},
    {{"total", true, false}, "total.b", "s", METRIC_SUM, true, "total_b_seconds_total"},
    {{"total", false, false}, "total.b", "s", METRIC_SUM, true, "total_total_b"},
    {{"total", true, true}, "total.b", "s", METRIC_SUM, true, "total_total.b_seconds_total"},
    {{"total", false, true}, "total.b", "s", METRIC_SUM, true, "total_total.b"},
    {{"..", false, false}, "..", "", METRIC_GAUGE, false, ""},
    {{"", false, false}, "9.b", "", METRIC_GAUGE, false, "_9_b"},
    {{"", false, false}, "..9", "", METRIC_GAUGE, false, "_9"},
    {{"", true, false}, "x.seconds.y", "s", METRIC_GAUGE, false, "x_seconds_y"},
    {{"", true, true}, "x.seconds.y", "s", METRIC_GAUGE, false, "x.seconds.y_seconds"},
    {{"", true, true}, "xseconds", "s", METRIC_GAUGE, false, "xseconds"},
    {{"", true, true}, "x.per_second", "By/s", METRIC_GAUGE, false, "x_bytes_per_second"},
    {{"", true, true}, "per_second", "By/s", METRIC_GAUGE, false, "per_second_bytes_per_second"},
    {{"", true, true}, "x.bytes_per_second", "By/s", METRIC_GAUGE, false, "x.bytes_per_second"},
    {{"", true, true},
     "x_bytes_per_second_total",
     "By/s",
     METRIC_SUM,
     true,
     "x_bytes_per_second_total"},
    {{"", true, true}, "second", "By/s", METRIC_GAUGE, false, "second_bytes_per_second"},
    {{"", true, true}, "", "s", METRIC_GAUGE, false, "_seconds"},
    {{"", true, true}, "", "", METRIC_SUM, true, "_total"},
};

static void check_metric(const struct prometheus_naming *naming, const struct metric *metric,
                         const char *expected)
{
    size_t room = prometheus_metric_name_max(naming, metric);
    char *name = malloc(room);
    assert_non_null(name);
    size_t size = prometheus_metric_name(naming, metric, name);
    assert_true(size <= room);
    if (!slice_equal_text(slice_of(name, size), expected))
        fail_msg("\"%.*s\" in \"%.*s\" became \"%.*s\", not \"%s\"", (int)metric->name.size,
                 (const char *)metric->name.data, (int)metric->unit.size,
                 (const char *)metric->unit.data, (int)size, name, expected);
    free(name);
}

static void odd_metrics_are_named_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(odd_metrics) / sizeof(odd_metrics[0]); i++)
        check_metric(&odd_metrics[i].naming,
                     &(struct metric){.name = slice_of_text(odd_metrics[i].name),
                                      .unit = slice_of_text(odd_metrics[i].unit),
                                      .kind = odd_metrics[i].kind,
                                      .is_monotonic = odd_metrics[i].is_monotonic},
                     odd_metrics[i].expected);
}

/* A histogram "x" in that unit, and in "/" with that unit. */
static const struct {
    const char *unit;
    const char *expected;
    const char *expected_per;
} units[] = {
    {"d", "x_days", "x_per_day"},
    {"h", "x_hours", "x_per_hour"},
    {"min", "x_minutes", "x_per_min"},
    {"s", "x_seconds", "x_per_second"},
    {"ms", "x_milliseconds", "x_per_ms"},
    {"us", "x_microseconds", "x_per_us"},
    {"ns", "x_nanoseconds", "x_per_ns"},
    {"By", "x_bytes", "x_per_By"},
    {"KiBy", "x_kibibytes", "x_per_KiBy"},
    {"MiBy", "x_mebibytes", "x_per_MiBy"},
    {"GiBy", "x_gibibytes", "x_per_GiBy"},
    {"TiBy", "x_tibibytes", "x_per_TiBy"},
    {"KBy", "x_kilobytes", "x_per_KBy"},
    {"MBy", "x_megabytes", "x_per_MBy"},
    {"GBy", "x_gigabytes", "x_per_GBy"},
    {"TBy", "x_terabytes", "x_per_TBy"},
    {"m", "x_meters", "x_per_minute"},
    {"V", "x_volts", "x_per_V"},
    {"A", "x_amperes", "x_per_A"},
    {"J", "x_joules", "x_per_J"},
    {"W", "x_watts", "x_per_W"},
    {"g", "x_grams", "x_per_g"},
    {"Cel", "x_celsius", "x_per_Cel"},
    {"Hz", "x_hertz", "x_per_Hz"},
    {"1", "x", "x_per_1"},
    {"%", "x_percent", "x"},
    {"w", "x_w", "x_per_week"},
    {"mo", "x_mo", "x_per_month"},
    {"y", "x_y", "x_per_year"},
    {"By2", "x_By2", "x_per_By2"},
    {"MIN", "x_MIN", "x_per_MIN"},
};

static void units_have_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        char per[16] = "/";
        strcat(per, units[i].unit);
        struct metric metric = {.name = slice_of_text("x"),
                                .unit = slice_of_text(units[i].unit),
                                .kind = METRIC_HISTOGRAM};
        check_metric(&namings[0], &metric, units[i].expected);
        metric.unit = slice_of_text(per);
        check_metric(&namings[0], &metric, units[i].expected_per);
    }
}

/* In ASCII and in UTF-8; "": it cannot be a label. */
static const struct {
    const char *key;
    const char *ascii;
    const char *utf8;
} labels[] = {
    {"a", "a", "a"},
    {"http.method", "http_method", "http.method"},
    {"1st", "key_1st", "1st"},
    {"_x", "_x", "_x"},
    {"__x", "__x", "__x"},
    {"a..b", "a__b", "a..b"},
    {"gr\xc3\xb6\xc3\x9f"
     "e",
     "gr__e",
     "gr\xc3\xb6\xc3\x9f"
     "e"},
    {"_", "", ""},
    {"...", "", "..."},
    {"\xc3\xbc", "", "\xc3\xbc"},
    {"a-b", "a_b", "a-b"},
    {"A1", "A1", "A1"},
    {"9", "key_9", "9"},
    {"9\xc3\xbc", "key_9_", "9\xc3\xbc"},
    {"__", "", ""},
    {"___a", "___a", "___a"},
    {"_9", "_9", "_9"},
    {":", "", ":"},
    {"a:b", "a_b", "a:b"},
    {"\xd9\xa3x", "_x", "\xd9\xa3x"},
    {"a\tb", "a_b", "a\tb"},
    {"A_", "A_", "A_"},
    {"\xe4\xb8\x96\xe7\x95\x8cx", "__x", "\xe4\xb8\x96\xe7\x95\x8cx"},
    {"\xf0\x9f\x98\x80"
     "9",
     "_9",
     "\xf0\x9f\x98\x80"
     "9"},
    {" ", "", " "},
    {"a__b", "a__b", "a__b"},
    {"__name__", "__name__", "__name__"},
};

static void check_label(const struct prometheus_naming *naming, const char *key,
                        const char *expected)
{
    struct slice text = slice_of_text(key);
    char *name = calloc(1, prometheus_label_name_max(text) + 1);
    size_t size = prometheus_label_name(naming, text, name);
    name[size] = '\0';
    assert_string_equal(name, expected);
    free(name);
}

static void labels_keep_their_underscores(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        check_label(&namings[0], labels[i].key, labels[i].ascii);
        check_label(&namings[4], labels[i].key, labels[i].utf8);
    }
    check_label(&namings[0], "", "");
    check_label(&namings[4], "", "");
}

/* In the order of enum prometheus_escaping. */
static const struct {
    const char *name;
    const char *expected[4];
} escapings[] = {
    {"plain_name", {"plain_name", "plain_name", "plain_name", "plain_name"}},
    {"a.b", {"a.b", "a_b", "a_dot_b", "U__a_2e_b"}},
    {"a_b.c", {"a_b.c", "a_b_c", "a__b_dot_c", "U__a__b_2e_c"}},
    {"1abc", {"1abc", "_abc", "__abc", "U___31_abc"}},
    {"gr\xc3\xb6\xc3\x9f"
     "e",
     {"gr\xc3\xb6\xc3\x9f"
      "e",
      "gr__e", "gr____e", "U__gr_f6__df_e"}},
    {"a b", {"a b", "a_b", "a__b", "U__a_20_b"}},
    {"x\xe2\x82\xac", {"x\xe2\x82\xac", "x_", "x__", "U__x_20ac_"}},
    {"a:b.c", {"a:b.c", "a:b_c", "a:b_dot_c", "U__a:b_2e_c"}},
    {"9", {"9", "_", "__", "U___39_"}},
    {"_.", {"_.", "__", "___dot_", "U_____2e_"}},
    {"..", {"..", "__", "_dot__dot_", "U___2e__2e_"}},
    {"\xe4\xb8\x96.9", {"\xe4\xb8\x96.9", "__9", "___dot_9", "U___4e16__2e_9"}},
    {"\xf0\x9f\x98\x80", {"\xf0\x9f\x98\x80", "_", "__", "U___1f600_"}},
    {"\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf",
     {"\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf", "__", "____", "U___10ffff__10ffff_"}},
    {"a\nb", {"a\nb", "a_b", "a__b", "U__a_a_b"}},
    {"\"", {"\"", "_", "__", "U___22_"}},
    {"9:", {"9:", "_:", "__:", "U___39_:"}},
    {"a_9.__b", {"a_9.__b", "a_9___b", "a__9_dot_____b", "U__a__9_2e_____b"}},
    {"\xc3\xbc_", {"\xc3\xbc_", "__", "____", "U___fc___"}},
    /* A plain name stays, though it has an underscore. */
    {"_", {"_", "_", "_", "_"}},
};

/* LabelNamer with UnderscoreLabelSanitization, without PreserveMultipleUnderscores. */
static void labels_of_remote_write_join_underscores(void **state)
{
    static const struct {
        const char *key;
        const char *expected;
    } rows[] = {
        {"http.method", "http_method"},
        {"a..b", "a_b"},
        {"a__b", "a_b"},
        {"1a", "key_1a"},
        {"_a", "key_a"},
        {"__a", "key_a"},
        {".a", "key_a"},
        {"__a__", "__a__"},
        {"__a..b__", "__a_b__"},
        {"__1__", "__1__"},
        {"___a__", "___a__"},
        {"_", "key_"},
        {"__", "key_"},
        {"___", "key_"},
        {"____", ""},
        {"__.__", ""},
        {"", ""},
        {"a_", "a_"},
        {"\xc3\xa9", "key_"},
        {"a\xc3\xa9z", "a_z"},
        {"A9", "A9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice key = slice_of_text(rows[i].key);
        char *text = malloc(prometheus_label_name_max(key) + 1);
        text[prometheus_label_name_joined(key, text)] = '\0';
        assert_string_equal(text, rows[i].expected);
        free(text);
    }
}

static void units_stand_alone_in_metadata(void **state)
{
    static const struct {
        const char *unit;
        const char *expected[2]; /* with UTF-8 the latter */
    } rows[] = {
        {"By/s", {"bytes_per_second", "bytes_per_second"}},
        {"s", {"seconds", "seconds"}},
        {"1", {"", ""}},
        {"{req}/m", {"per_minute", "per_minute"}},
        {"", {"", ""}},
        {"a b", {"a_b", "a b"}},
        {"_x_", {"x", "x"}},
        {"__x__", {"x", "_x_"}},
        {"_", {"", ""}},
        {"/s", {"per_second", "per_second"}},
        {"a/__", {"a_per", "a_per__"}},
        {"{a}", {"", ""}},
        {"KiBy/mo", {"kibibytes_per_month", "kibibytes_per_month"}},
        {"\xc3\xa9/\xc3\xa9", {"per", "\xc3\xa9_per_\xc3\xa9"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t k = 0; k < 2; k++) {
            const struct prometheus_naming naming = {.name_space = "", .has_utf8 = k == 1};
            struct slice unit = slice_of_text(rows[i].unit);
            char *text = malloc(prometheus_unit_max(unit) + 1);
            text[prometheus_unit(&naming, unit, text)] = '\0';
            assert_string_equal(text, rows[i].expected[k]);
            free(text);
        }
}

static void names_are_escaped_for_the_client(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(escapings) / sizeof(escapings[0]); i++)
        for (size_t k = 0; k < 4; k++) {
            struct slice name = slice_of_text(escapings[i].name);
            size_t room = prometheus_escape_max(name);
            char *text = calloc(1, room + 1);
            size_t size = prometheus_escape((enum prometheus_escaping)k, name, text);
            assert_true(size <= room);
            text[size] = '\0';
            assert_string_equal(text, escapings[i].expected[k]);
            free(text);
        }
}

static void plain_names_are_those_of_the_first_clients(void **state)
{
    (void)state;
    assert_true(prometheus_name_is_plain(slice_of_text("a_b:c9")));
    assert_true(prometheus_name_is_plain(slice_of_text("_")));
    assert_false(prometheus_name_is_plain(slice_of_text("")));
    assert_false(prometheus_name_is_plain(slice_of_text("9a")));
    assert_false(prometheus_name_is_plain(slice_of_text("a.b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_named_with_unit_and_kind),
        cmocka_unit_test(odd_metrics_are_named_too),
        cmocka_unit_test(units_have_words),
        cmocka_unit_test(labels_keep_their_underscores),
        cmocka_unit_test(labels_of_remote_write_join_underscores),
        cmocka_unit_test(units_stand_alone_in_metadata),
        cmocka_unit_test(names_are_escaped_for_the_client),
        cmocka_unit_test(plain_names_are_those_of_the_first_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
