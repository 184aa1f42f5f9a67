/* SPDX-License-Identifier: Apache-2.0 */
/* Families in each form, as the Go client writes them. */
#include "src/prometheus/exposition.h"

#include "src/base/budget.h"
#include "src/base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct exposition_format text_format = {.form = EXPOSITION_TEXT,
                                                     .escaping = ESCAPING_UNDERSCORES};

/* One family with one series. The caller frees the text. */
static char *write_one(const struct exposition_format *format, const char *name, const char *help,
                       enum exposition_type type, const struct exposition_sample *sample)
{
    struct exposition exposition;
    exposition_init(&exposition, format, NULL);
    exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text(name),
                                                              .help = slice_of_text(help),
                                                              .type = type});
    exposition_add(&exposition, sample);
    exposition_end(&exposition);
    assert_false(exposition.has_failed);
    char *text = calloc(1, exposition.size + 1);
    memcpy(text, exposition.data, exposition.size);
    exposition_fini(&exposition);
    return text;
}

static const struct exposition_exemplar exemplar = {
    .value = 2, .time_ns = 1500000000, .span_id = {1, 2, 3, 4, 5, 6, 7, 8}, .has_span_id = true};
static const struct exposition_bucket buckets[] = {
    {.bound = 0.5, .count = 3, .exemplar = &exemplar}, {.bound = 10, .count = 4}};
static const struct exposition_bucket quantiles[] = {{.bound = 0.5, .value = 1.25}};

#define LABELS(text)                                                                               \
    .labels = {.data = (const uint8_t *)(text), .size = sizeof(text) - 1}, .has_plain_labels = true

static const struct {
    const char *name;
    const char *help;
    enum exposition_type type;
    struct exposition_sample sample;
    const char *text;
    const char *openmetrics;
} families[] = {
    {"a_total",
     "An \"a\"\\ or\nso",
     EXPOSITION_COUNTER,
     {LABELS("b=\"c\""), .value = 3, .exemplars = &exemplar, .exemplars_count = 1},
     "# HELP a_total An \"a\"\\\\ or\\nso\n# TYPE a_total counter\na_total{b=\"c\"} 3\n",
     "# HELP a An \\\"a\\\"\\\\ or\\nso\n# TYPE a counter\n"
     "a_total{b=\"c\"} 3.0 # {span_id=\"0102030405060708\"} 2.0 1.5\n# EOF\n"},
    {"a",
     "",
     EXPOSITION_COUNTER,
     {.value = 3},
     "# HELP a \n# TYPE a counter\na 3\n",
     "# HELP a \n# TYPE a unknown\na 3.0\n# EOF\n"},
    {"g",
     "",
     EXPOSITION_GAUGE,
     {.value = 0.5, .has_time = true, .time_ns = 1234567890},
     "# HELP g \n# TYPE g gauge\ng 0.5 1234\n",
     "# HELP g \n# TYPE g gauge\ng 0.5 1.234\n# EOF\n"},
    {"h",
     "",
     EXPOSITION_HISTOGRAM,
     {.value = 7, .count = 5, .buckets = buckets, .buckets_count = 2},
     "# HELP h \n# TYPE h histogram\nh_bucket{le=\"0.5\"} 3\nh_bucket{le=\"10\"} 4\n"
     "h_bucket{le=\"+Inf\"} 5\nh_sum 7\nh_count 5\n",
     "# HELP h \n# TYPE h histogram\n"
     "h_bucket{le=\"0.5\"} 3 # {span_id=\"0102030405060708\"} 2.0 1.5\n"
     "h_bucket{le=\"10.0\"} 4\nh_bucket{le=\"+Inf\"} 5\nh_sum 7.0\nh_count 5\n# EOF\n"},
    {"s",
     "",
     EXPOSITION_SUMMARY,
     {LABELS("b=\"c\""), .value = 7, .count = 2000000, .buckets = quantiles, .buckets_count = 1},
     "# HELP s \n# TYPE s summary\ns{b=\"c\",quantile=\"0.5\"} 1.25\ns_sum{b=\"c\"} 7\n"
     "s_count{b=\"c\"} 2e+06\n",
     "# HELP s \n# TYPE s summary\ns{b=\"c\",quantile=\"0.5\"} 1.25\ns_sum{b=\"c\"} 7.0\n"
     "s_count{b=\"c\"} 2000000\n# EOF\n"},
};

static void each_type_has_its_lines(void **state)
{
    (void)state;
    static const struct exposition_format openmetrics = {.form = EXPOSITION_OPENMETRICS_1,
                                                         .escaping = ESCAPING_UNDERSCORES};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        char *text = write_one(&text_format, families[i].name, families[i].help, families[i].type,
                               &families[i].sample);
        assert_string_equal(text, families[i].text);
        free(text);
        text = write_one(&openmetrics, families[i].name, families[i].help, families[i].type,
                         &families[i].sample);
        assert_string_equal(text, families[i].openmetrics);
        free(text);
    }
}

/* Names with other characters are quoted for clients that take them, and escaped for others. */
static void names_are_quoted_or_escaped(void **state)
{
    (void)state;
    static const struct {
        enum prometheus_escaping escaping;
        const char *expected;
    } cases[] = {
        {ESCAPING_NONE, "# HELP \"a.b\" \n# TYPE \"a.b\" histogram\n"
                        "{\"a.b_bucket\",\"c.d\"=\"x\\\"y\",le=\"+Inf\"} 0\n"
                        "{\"a.b_sum\",\"c.d\"=\"x\\\"y\"} 0\n"
                        "{\"a.b_count\",\"c.d\"=\"x\\\"y\"} 0\n"},
        {ESCAPING_UNDERSCORES, "# HELP a_b \n# TYPE a_b histogram\n"
                               "a_b_bucket{c_d=\"x\\\"y\",le=\"+Inf\"} 0\n"
                               "a_b_sum{c_d=\"x\\\"y\"} 0\na_b_count{c_d=\"x\\\"y\"} 0\n"},
        {ESCAPING_DOTS, "# HELP a_dot_b \n# TYPE a_dot_b histogram\n"
                        "a_dot_b_bucket{c_dot_d=\"x\\\"y\",le=\"+Inf\"} 0\n"
                        "a_dot_b_sum{c_dot_d=\"x\\\"y\"} 0\na_dot_b_count{c_dot_d=\"x\\\"y\"} 0\n"},
    };
    char labels[64];
    size_t size = exposition_label(slice_of_text("c.d"), slice_of_text("x\"y"), labels);
    assert_true(size <= exposition_label_max(slice_of_text("c.d"), slice_of_text("x\"y")));
    const struct exposition_sample sample = {.labels = slice_of(labels, size)};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct exposition_format format = {.form = EXPOSITION_TEXT,
                                                 .escaping = cases[i].escaping};
        char *text = write_one(&format, "a.b", "", EXPOSITION_HISTOGRAM, &sample);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

/* Labels read back as they were, still escaped. */
static void labels_read_back(void **state)
{
    (void)state;
    char text[128];
    struct slice name;
    struct slice value;
    size_t size = exposition_label(slice_of_text("a"), slice_of_text("x,\"\\\n="), text);
    text[size++] = ',';
    size += exposition_label(slice_of_text("b\"c"), slice_of_text(""), text + size);
    struct slice labels = slice_of(text, size);
    assert_true(exposition_label_next(&labels, &name, &value));
    assert_true(slice_equal_text(name, "a"));
    assert_true(slice_equal_text(value, "x,\\\"\\\\\\n="));
    assert_true(exposition_label_next(&labels, &name, &value));
    assert_true(slice_equal_text(name, "b\\\"c"));
    assert_int_equal(value.size, 0);
    assert_false(exposition_label_next(&labels, &name, &value));
}

/* What a gauge of that value shows. */
static void number_text(double value, char text[64])
{
    char *whole = write_one(&text_format, "g", "", EXPOSITION_GAUGE,
                            &(struct exposition_sample){.value = value});
    char *number = strstr(whole, "\ng ") + 3;
    number[strlen(number) - 1] = '\0';
    snprintf(text, 64, "%s", number);
    free(whole);
}

static void numbers_have_the_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } numbers[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1, "-1"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {123456, "123456"},
        {1234567, "1.234567e+06"},
        {1000000, "1e+06"},
        {999999.5, "999999.5"},
        {1e21, "1e+21"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {-0.000123, "-0.000123"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {9007199254740993.0, "9.007199254740992e+15"},
        {(double)NAN, "NaN"},
        {(double)INFINITY, "+Inf"},
        {-(double)INFINITY, "-Inf"},
    };
    char text[64];
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        number_text(numbers[i].value, text);
        assert_string_equal(text, numbers[i].text);
    }
    uint64_t bits = 88172645463325252U;
    for (size_t i = 0; i < 50000; i++) {
        double value;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof(value));
        if (i % 2 == 0)
            value = (double)(bits % 100000000) / 1000;
        if (isnan(value) || isinf(value))
            continue;
        number_text(value, text);
        assert_true(strtod(text, NULL) == value);
        size_t digits = 0;
        char shorter[64];
        for (const char *c = text; *c != '\0' && *c != 'e'; c++)
            digits += *c >= '0' && *c <= '9' && (digits > 0 || *c != '0');
        assert_true(digits <= 17);
        snprintf(shorter, sizeof(shorter), "%.*e", digits > 1 ? (int)digits - 2 : 0, value);
        /* Zeros at the end of whole numbers are no digits of theirs. */
        bool is_whole = strpbrk(text, ".e") == NULL;
        assert_true(is_whole || digits <= 1 || strtod(shorter, NULL) != value);
    }
}

/* MetricFamily behind its size: 1 name, 2 help, 3 type, 4 metric (7 histogram: 1 count, 2 sum, 3
 * bucket, 5 schema, 6 zero_threshold, 7 zero_count, 12 positive_span, 13 positive_delta, 16
 * exemplars). */
static void protobuf_has_native_histograms(void **state)
{
    (void)state;
    static const struct exposition_native_bucket positive[] = {
        {.index = 2, .count = 5}, {.index = 4, .count = 1}, {.index = 9, .count = 2}};
    static const struct exposition_native native = {.schema = 3,
                                                    .zero_threshold = 0.5,
                                                    .zero_count = 1,
                                                    .positive = positive,
                                                    .positive_count = 3};
    static const struct exposition_format format = {.form = EXPOSITION_PROTOBUF,
                                                    .escaping = ESCAPING_UNDERSCORES};
    static const uint8_t expected[] = {
        0x4f, 0x0a, 0x01, 'h',  0x12, 0x00, 0x18, 0x04,                /* the family */
        0x22, 0x46, 0x3a, 0x44,                                        /* metric, histogram */
        0x08, 0x09, 0x11, 0,    0,    0,    0,    0,    0, 0x1c, 0x40, /* count, sum 7 */
        0x28, 0x06, 0x31, 0,    0,    0,    0,    0,    0, 0xe0, 0x3f,
        0x38, 0x01,                                     /* schema, zero */
        0x62, 0x04, 0x08, 0x04, 0x10, 0x03,             /* 2, three long */
        0x62, 0x04, 0x08, 0x08, 0x10, 0x01,             /* 4 further, one */
        0x68, 0x0a, 0x68, 0x09, 0x68, 0x02, 0x68, 0x02, /* 5, 0, 1, 2 */
        0x7a, 0x02, 0x08, 0x03,                         /* created at 3 s */
    };
    struct exposition exposition;
    exposition_init(&exposition, &format, NULL);
    exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text("h"),
                                                              .type = EXPOSITION_HISTOGRAM});
    exposition_add(&exposition,
                   &(struct exposition_sample){
                       .value = 7, .count = 9, .native = &native, .created_ns = 3000000000});
    exposition_end(&exposition);
    /* The sizes of the nested messages follow from the rest. */
    uint8_t wanted[sizeof(expected)];
    memcpy(wanted, expected, sizeof(expected));
    wanted[0] = (uint8_t)(sizeof(expected) - 1);
    wanted[9] = (uint8_t)(sizeof(expected) - 10);
    wanted[11] = (uint8_t)(sizeof(expected) - 12);
    assert_int_equal(exposition.size, sizeof(expected));
    assert_memory_equal(exposition.data, wanted, sizeof(wanted));
    exposition_fini(&exposition);
}

static void the_client_chooses_form_and_escaping(void **state)
{
    (void)state;
    static const char protobuf[] =
        "application/"
        "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    const struct {
        const char *accept;
        bool has_openmetrics;
        enum exposition_form form;
        enum prometheus_escaping escaping;
    } cases[] = {
        {"", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"*/*", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"text/html", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"application/openmetrics-text", true, EXPOSITION_OPENMETRICS_0, ESCAPING_UNDERSCORES},
        {"application/openmetrics-text", false, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"application/openmetrics-text;version=1.0.0,text/plain;q=0.5", true,
         EXPOSITION_OPENMETRICS_1, ESCAPING_UNDERSCORES},
        {"application/openmetrics-text;version=2.0.0,text/plain;q=0.5", true, EXPOSITION_TEXT,
         ESCAPING_UNDERSCORES},
        {"application/openmetrics-text;version=1.0.0;q=0.3, text/plain ; version=0.0.4", true,
         EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.5", true,
         EXPOSITION_TEXT, ESCAPING_NONE},
        {"text/plain;escaping=dots", true, EXPOSITION_TEXT, ESCAPING_DOTS},
        {"text/plain;escaping=values", true, EXPOSITION_TEXT, ESCAPING_VALUES},
        {"text/plain;escaping=other", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {protobuf, false, EXPOSITION_PROTOBUF, ESCAPING_UNDERSCORES},
        {"application/vnd.google.protobuf", false, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {",;=,;;,q=;/", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct exposition_format format =
            exposition_negotiate(slice_of_text(cases[i].accept), cases[i].has_openmetrics);
        assert_int_equal(format.form, cases[i].form);
        assert_int_equal(format.escaping, cases[i].escaping);
    }
    char type[EXPOSITION_TYPE_BYTES_MAX];
    exposition_content_type(&text_format, type);
    assert_string_equal(type, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
}

static void without_memory_nothing_more_is_written(void **state)
{
    (void)state;
    struct budget budget;
    struct exposition exposition;
    budget_init(&budget, 1000);
    exposition_init(&exposition, &text_format, &budget);
    exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text("g"),
                                                              .type = EXPOSITION_GAUGE});
    assert_true(exposition.has_failed);
    exposition_end(&exposition);
    exposition_fini(&exposition);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        exposition_init(&exposition, &text_format, NULL);
        mem_refuse_nth(nth);
        exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text("g"),
                                                                  .type = EXPOSITION_GAUGE});
        exposition_add(&exposition, &(struct exposition_sample){.value = 1});
        mem_refuse_nth(0);
        assert_true(exposition.has_failed);
        exposition_fini(&exposition);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_lines),
        cmocka_unit_test(names_are_quoted_or_escaped),
        cmocka_unit_test(labels_read_back),
        cmocka_unit_test(numbers_have_the_fewest_digits),
        cmocka_unit_test(protobuf_has_native_histograms),
        cmocka_unit_test(the_client_chooses_form_and_escaping),
        cmocka_unit_test(without_memory_nothing_more_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
