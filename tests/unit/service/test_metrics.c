/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics page: sums over lanes, order, names and suffixes, histograms, escaping. */
#include "src/service/metrics.h"

#include "src/base/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct metrics_style plain;
static const struct metric_labels none;

static void expect_page(struct metrics *metrics, const struct metrics_style *style,
                        const char *expected)
{
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    metrics_print(metrics, style, out);
    fclose(out);
    assert_string_equal(page, expected);
    free(page);
    metrics_destroy(metrics);
}

static void samples_are_sorted_by_name_and_equal_ones_summed(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(METRICS_NORMAL);
    const struct metric_labels a = {.pairs = {{"exporter", "a"}}};
    const struct metric_labels b = {.pairs = {{"exporter", "b"}, {"x", ""}}};
    metrics_add(metrics, "zeta", COUNTER_GAUGE, "Last.", &none, 1.5);
    metrics_add(metrics, "alpha", COUNTER_SUM, "First.", &b, 4);
    metrics_add(metrics, "alpha", COUNTER_SUM, "First.", &a, 1);
    metrics_add(metrics, "alpha", COUNTER_SUM, "First.", &b, 3);
    expect_page(metrics, &plain,
                "# HELP alpha First.\n"
                "# TYPE alpha counter\n"
                "alpha{exporter=\"b\",x=\"\"} 7\n"
                "alpha{exporter=\"a\"} 1\n"
                "# HELP zeta Last.\n"
                "# TYPE zeta gauge\n"
                "zeta 1.5\n");
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(METRICS_NORMAL);
    const struct metric_labels labels = {.pairs = {{"id", "a\"b\\c\nd"}}};
    metrics_add(metrics, "m", COUNTER_GAUGE, "Help.", &labels, 0);
    expect_page(metrics, &plain, "# HELP m Help.\n# TYPE m gauge\nm{id=\"a\\\"b\\\\c\\nd\"} 0\n");
}

static void values_are_whole_or_exact(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-3, "-3"},
        {1e6, "1000000"},
        {8999999999999999.0, "8999999999999999"},
        {1e16, "10000000000000000"},
        {0.25, "0.25"},
        {1e-9, "1.0000000000000001e-09"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char expected[128];
        struct metrics *metrics = metrics_create(METRICS_NORMAL);
        metrics_add(metrics, "m", COUNTER_GAUGE, "Help.", &none, rows[i].value);
        snprintf(expected, sizeof(expected), "# HELP m Help.\n# TYPE m gauge\nm %s\n",
                 rows[i].text);
        expect_page(metrics, &plain, expected);
    }
}

struct suffix_row {
    struct metrics_style style;
    const char *name;
    enum counter_type type;
    const char *printed;
};

static void suffixes_follow_the_style(void **state)
{
    (void)state;
    static const struct suffix_row rows[] = {
        {{false, false}, "otelcol_sent", COUNTER_SUM, "otelcol_sent"},
        {{true, false}, "otelcol_sent", COUNTER_SUM, "otelcol_sent_total"},
        {{true, false}, "otelcol_sent_total", COUNTER_SUM, "otelcol_sent_total"},
        {{true, false}, "otelcol_size", COUNTER_GAUGE, "otelcol_size"},
        {{false, true}, "otelcol_process_uptime", COUNTER_SUM, "otelcol_process_uptime_seconds"},
        {{true, true},
         "otelcol_process_uptime",
         COUNTER_SUM,
         "otelcol_process_uptime_seconds_total"},
        {{true, true},
         "otelcol_process_memory_rss",
         COUNTER_GAUGE,
         "otelcol_process_memory_rss_bytes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char expected[512];
        struct metrics *metrics = metrics_create(METRICS_NORMAL);
        metrics_add(metrics, rows[i].name, rows[i].type, "Help.", &none, 2);
        snprintf(expected, sizeof(expected), "# HELP %s Help.\n# TYPE %s %s\n%s 2\n",
                 rows[i].printed, rows[i].printed,
                 rows[i].type == COUNTER_SUM ? "counter" : "gauge", rows[i].printed);
        expect_page(metrics, &rows[i].style, expected);
    }
}

struct example_counters {
    counter plain;
    counter items[SIGNAL_KINDS];
    counter by_label[SIGNAL_KINDS];
    counter fixed;
    struct histogram sizes;
};

static const uint64_t size_bounds[] = {10, 100};

static const struct counter_row example_rows[] = {
    COUNTER(struct example_counters, plain, COUNTER_SUM, "a_plain", "Plain."),
    COUNTER_BY_SIGNAL(struct example_counters, items, COUNTER_SUM, "b_sent_%s_all",
                      SIGNAL_TRACES | SIGNAL_LOGS, "transport", "http", "By name."),
    COUNTER_BY_SIGNAL(struct example_counters, by_label, COUNTER_SUM, "c_items", SIGNAL_PROFILES,
                      NULL, NULL, "By label."),
    COUNTER_HISTOGRAM_ROW(struct example_counters, sizes, "d_sizes", size_bounds, METRICS_NORMAL,
                          "Sizes."),
    COUNTER_END,
};

static void a_components_rows_become_series(void **state)
{
    (void)state;
    static struct example_counters lanes[2];
    struct metrics *metrics = metrics_create(METRICS_NORMAL);
    const struct metric_labels labels = {.pairs = {{"receiver", "otlp"}}};
    for (size_t i = 0; i < 2; i++) {
        counter_add(&lanes[i].plain, 1 + i);
        counter_add(&lanes[i].items[TRACES], 5);
        counter_add(&lanes[i].items[METRICS], 99); /* not in the row's mask */
        counter_add(&lanes[i].by_label[PROFILES], 7);
        histogram_record(&lanes[i].sizes, size_bounds, 2, 10 + 100 * i);
        metrics_add_counters(metrics, example_rows, &lanes[i], &labels, -1);
    }
    expect_page(metrics, &plain,
                "# HELP a_plain Plain.\n# TYPE a_plain counter\n"
                "a_plain{receiver=\"otlp\"} 3\n"
                "# HELP b_sent_log_records_all By name.\n# TYPE b_sent_log_records_all counter\n"
                "b_sent_log_records_all{receiver=\"otlp\",transport=\"http\"} 0\n"
                "# HELP b_sent_spans_all By name.\n# TYPE b_sent_spans_all counter\n"
                "b_sent_spans_all{receiver=\"otlp\",transport=\"http\"} 10\n"
                "# HELP c_items By label.\n# TYPE c_items counter\n"
                "c_items{otel_signal=\"profiles\",receiver=\"otlp\"} 14\n"
                "# HELP d_sizes Sizes.\n# TYPE d_sizes histogram\n"
                "d_sizes_bucket{receiver=\"otlp\",le=\"10\"} 1\n"
                "d_sizes_bucket{receiver=\"otlp\",le=\"100\"} 1\n"
                "d_sizes_bucket{receiver=\"otlp\",le=\"+Inf\"} 2\n"
                "d_sizes_sum{receiver=\"otlp\"} 120\n"
                "d_sizes_count{receiver=\"otlp\"} 2\n");
}

static void rows_are_shown_from_their_level_on(void **state)
{
    (void)state;
    static struct example_counters counters;
    for (enum metrics_level level = METRICS_BASIC; level <= METRICS_DETAILED; level++) {
        static const struct counter_row rows[] = {
            COUNTER_FROM(struct example_counters, plain, COUNTER_SUM, "a", METRICS_NORMAL, "A."),
            COUNTER_FROM(struct example_counters, fixed, COUNTER_SUM, "b", METRICS_DETAILED, "B."),
            COUNTER_END,
        };
        static const char *const pages[] = {
            [METRICS_BASIC] = "",
            [METRICS_NORMAL] = "# HELP a A.\n# TYPE a counter\na 0\n",
            [METRICS_DETAILED] = "# HELP a A.\n# TYPE a counter\na 0\n"
                                 "# HELP b B.\n# TYPE b counter\nb 0\n",
        };
        struct metrics *metrics = metrics_create(level);
        metrics_add_counters(metrics, rows, &counters, &none, -1);
        expect_page(metrics, &plain, pages[level]);
    }
}

static void an_instance_of_one_signal_shows_that_signal_only(void **state)
{
    (void)state;
    static struct example_counters counters;
    struct metrics *metrics = metrics_create(METRICS_NORMAL);
    metrics_add_counters(metrics, &example_rows[1], &counters, &none, LOGS);
    expect_page(metrics, &plain,
                "# HELP b_sent_log_records_all By name.\n# TYPE b_sent_log_records_all counter\n"
                "b_sent_log_records_all{transport=\"http\"} 0\n"
                "# HELP d_sizes Sizes.\n# TYPE d_sizes histogram\n"
                "d_sizes_bucket{le=\"10\"} 0\nd_sizes_bucket{le=\"100\"} 0\n"
                "d_sizes_bucket{le=\"+Inf\"} 0\nd_sizes_sum 0\nd_sizes_count 0\n");
}

static void many_samples_are_kept(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(METRICS_NORMAL);
    static char names[1000][16];
    for (size_t i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof(names[i]), "m%03zu", i);
        metrics_add(metrics, names[i], COUNTER_SUM, "Help.", &none, (double)i);
    }
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    metrics_print(metrics, &plain, out);
    fclose(out);
    assert_non_null(strstr(page, "\nm999 999\n"));
    assert_non_null(strstr(page, "\nm001 1\n"));
    free(page);
    metrics_destroy(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_sorted_by_name_and_equal_ones_summed),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(values_are_whole_or_exact),
        cmocka_unit_test(suffixes_follow_the_style),
        cmocka_unit_test(a_components_rows_become_series),
        cmocka_unit_test(rows_are_shown_from_their_level_on),
        cmocka_unit_test(an_instance_of_one_signal_shows_that_signal_only),
        cmocka_unit_test(many_samples_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
