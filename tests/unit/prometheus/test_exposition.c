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

/* OpenMetrics marks numbers that are no counts by ".0". */
static void openmetrics_marks_whole_numbers(void **state)
{
    (void)state;
    static const struct exposition_format format = {.form = EXPOSITION_OPENMETRICS_0,
                                                    .escaping = ESCAPING_UNDERSCORES};
    static const struct {
        double value;
        const char *text;
    } numbers[] = {
        {0, "0.0"},
        {-0.0, "0.0"},
        {1, "1.0"},
        {-1, "-1.0"},
        {0.5, "0.5"},
        {123456, "123456.0"},
        {1000000, "1e+06"},
        {1234567, "1.234567e+06"},
        {1e21, "1e+21"},
        {5e-324, "5e-324"},
        {(double)NAN, "NaN"},
        {(double)INFINITY, "+Inf"},
        {-(double)INFINITY, "-Inf"},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char expected[128];
        snprintf(expected, sizeof(expected), "# HELP g \n# TYPE g gauge\ng %s\n# EOF\n",
                 numbers[i].text);
        char *text = write_one(&format, "g", "", EXPOSITION_GAUGE,
                               &(struct exposition_sample){.value = numbers[i].value});
        assert_string_equal(text, expected);
        free(text);
    }
}

static uint64_t next_random(uint64_t *bits)
{
    *bits ^= *bits << 13;
    *bits ^= *bits >> 7;
    *bits ^= *bits << 17;
    return *bits;
}

/* Of any bits, and of few decimals, small and large. */
static double random_number(uint64_t *bits)
{
    static const double scales[] = {1, 10, 1e3, 1e9, 1e-3, 1e-9, 1e22, 1e300};
    double value;
    uint64_t random = next_random(bits);
    memcpy(&value, &random, sizeof(value));
    if (random % 3 == 0)
        value = (double)(int64_t)next_random(bits) / scales[next_random(bits) % 8];
    else if (random % 3 == 1)
        value = (double)(next_random(bits) % 1000000) / scales[next_random(bits) % 8];
    return isfinite(value) && value != 0 ? value : 1;
}

static size_t digits_of(const char *text)
{
    size_t digits = 0;
    size_t zeros = 0;
    for (; *text != '\n' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        digits += digits > 0 || *text != '0';
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits > zeros ? digits - zeros : 1; /* those at the end of 1000 are none */
}

static void random_numbers_read_back_the_same(void **state)
{
    (void)state;
    enum { ROUNDS = 200, NUMBERS = 1000 };
    uint64_t bits = 6364136223846793005U;
    for (size_t round = 0; round < ROUNDS; round++) {
        static double values[NUMBERS];
        struct exposition exposition;
        exposition_init(&exposition, &text_format, NULL);
        exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text("g"),
                                                                  .type = EXPOSITION_GAUGE});
        size_t at = exposition.size;
        for (size_t i = 0; i < NUMBERS; i++) {
            values[i] = random_number(&bits);
            exposition_add(&exposition, &(struct exposition_sample){.value = values[i]});
        }
        assert_false(exposition.has_failed);
        for (size_t i = 0; i < NUMBERS; i++) {
            const char *text = (const char *)exposition.data + at;
            char *end;
            assert_memory_equal(text, "g ", 2);
            double value = strtod(text + 2, &end);
            assert_int_equal(*end, '\n');
            assert_memory_equal(&value, &values[i], sizeof(value));
            size_t digits = digits_of(text + 2);
            assert_in_range(digits, 1, 17);
            if (digits > 1) {
                char shorter[64];
                snprintf(shorter, sizeof(shorter), "%.*e", (int)digits - 2, value);
                assert_true(strtod(shorter, NULL) != value);
            }
            at = (size_t)(end + 1 - (const char *)exposition.data);
        }
        assert_int_equal(at, exposition.size);
        exposition_fini(&exposition);
    }
}

/* As it was given, and in both versions of OpenMetrics, which differ in nothing but the media
 * type. */
static void check_forms(enum prometheus_escaping escaping, const char *name,
                        enum exposition_type type, const struct exposition_sample *sample,
                        const char *expected, const char *expected_openmetrics)
{
    static const enum exposition_form forms[] = {EXPOSITION_TEXT, EXPOSITION_OPENMETRICS_0,
                                                 EXPOSITION_OPENMETRICS_1};
    for (size_t i = 0; i < 3; i++) {
        const struct exposition_format format = {.form = forms[i], .escaping = escaping};
        char *text = write_one(&format, name, "", type, sample);
        assert_string_equal(text, i == 0 ? expected : expected_openmetrics);
        free(text);
    }
}

static const struct exposition_exemplar both_ids = {
    .value = -1,
    .time_ns = 1234567891234567890,
    .trace_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255},
    .span_id = {1, 2, 3, 4, 5, 6, 7, 8},
    .has_trace_id = true,
    .has_span_id = true};

static void exemplars_are_shown_with_their_ids(void **state)
{
    (void)state;
    const struct exposition_exemplar no_ids = {.value = 1, .time_ns = 1};
    const struct exposition_exemplar trace_only = {
        .value = 0.25, .trace_id = {[15] = 1}, .has_trace_id = true};
    const struct exposition_exemplar some[] = {trace_only, both_ids};
    const struct exposition_bucket with_infinity[] = {
        {.bound = -1, .count = 1, .exemplar = &no_ids},
        {.bound = 0, .count = 2, .exemplar = &trace_only},
        {.bound = (double)INFINITY, .count = 3, .exemplar = &both_ids},
    };
    /* Of a counter the last one. */
    check_forms(ESCAPING_UNDERSCORES, "a_total", EXPOSITION_COUNTER,
                &(struct exposition_sample){.value = 1,
                                            .has_time = true,
                                            .time_ns = 2000000000,
                                            .exemplars = some,
                                            .exemplars_count = 2},
                "# HELP a_total \n# TYPE a_total counter\na_total 1 2000\n",
                "# HELP a \n# TYPE a counter\na_total 1.0 2.0 # "
                "{trace_id=\"000102030405060708090a0b0c0d0eff\",span_id=\"0102030405060708\"} "
                "-1.0 1.2345678912345679e+09\n# EOF\n");
    check_forms(ESCAPING_UNDERSCORES, "a_total", EXPOSITION_COUNTER,
                &(struct exposition_sample){.exemplars = &no_ids, .exemplars_count = 1},
                "# HELP a_total \n# TYPE a_total counter\na_total 0\n",
                "# HELP a \n# TYPE a counter\na_total 0.0\n# EOF\n");
    /* The bucket of all values occurs once. */
    check_forms(
        ESCAPING_UNDERSCORES, "h", EXPOSITION_HISTOGRAM,
        &(struct exposition_sample){.count = 3, .buckets = with_infinity, .buckets_count = 3},
        "# HELP h \n# TYPE h histogram\nh_bucket{le=\"-1\"} 1\nh_bucket{le=\"0\"} 2\n"
        "h_bucket{le=\"+Inf\"} 3\nh_sum 0\nh_count 3\n",
        "# HELP h \n# TYPE h histogram\nh_bucket{le=\"-1.0\"} 1\n"
        "h_bucket{le=\"0.0\"} 2 # {trace_id=\"00000000000000000000000000000001\"} 0.25 0.0\n"
        "h_bucket{le=\"+Inf\"} 3 # {trace_id=\"000102030405060708090a0b0c0d0eff\","
        "span_id=\"0102030405060708\"} -1.0 1.2345678912345679e+09\n"
        "h_sum 0.0\nh_count 3\n# EOF\n");
}

static void counts_are_numbers_in_text_only(void **state)
{
    (void)state;
    check_forms(ESCAPING_UNDERSCORES, "s", EXPOSITION_SUMMARY,
                &(struct exposition_sample){.value = (double)NAN, .count = UINT64_MAX},
                "# HELP s \n# TYPE s summary\ns_sum NaN\ns_count 1.8446744073709552e+19\n",
                "# HELP s \n# TYPE s summary\ns_sum NaN\ns_count 18446744073709551615\n# EOF\n");
}

/* Text has no native histograms: only all values are left. */
static void native_histograms_have_one_bucket_in_text(void **state)
{
    (void)state;
    static const struct exposition_native_bucket bucket = {.index = 1, .count = 2};
    const struct exposition_native native = {.positive = &bucket, .positive_count = 1};
    check_forms(
        ESCAPING_UNDERSCORES, "h", EXPOSITION_HISTOGRAM,
        &(struct exposition_sample){
            .count = 2, .native = &native, .exemplars = &both_ids, .exemplars_count = 1},
        "# HELP h \n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 0\nh_count 2\n",
        "# HELP h \n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 0.0\nh_count 2\n# EOF\n");
}

static void quoted_names_stand_in_the_braces(void **state)
{
    (void)state;
    check_forms(ESCAPING_NONE, "a.b_total", EXPOSITION_COUNTER, &(struct exposition_sample){0},
                "# HELP \"a.b_total\" \n# TYPE \"a.b_total\" counter\n{\"a.b_total\"} 0\n",
                "# HELP \"a.b\" \n# TYPE \"a.b\" counter\n{\"a.b_total\"} 0.0\n# EOF\n");
    check_forms(ESCAPING_NONE, "a.b", EXPOSITION_COUNTER, &(struct exposition_sample){0},
                "# HELP \"a.b\" \n# TYPE \"a.b\" counter\n{\"a.b\"} 0\n",
                "# HELP \"a.b\" \n# TYPE \"a.b\" unknown\n{\"a.b\"} 0.0\n# EOF\n");
    check_forms(ESCAPING_NONE, "a\"\\\n", EXPOSITION_GAUGE, &(struct exposition_sample){0},
                "# HELP \"a\\\"\\\\\\n\" \n# TYPE \"a\\\"\\\\\\n\" gauge\n"
                "{\"a\\\"\\\\\\n\"} 0\n",
                "# HELP \"a\\\"\\\\\\n\" \n# TYPE \"a\\\"\\\\\\n\" gauge\n"
                "{\"a\\\"\\\\\\n\"} 0.0\n# EOF\n");
    check_forms(ESCAPING_NONE, "s.", EXPOSITION_SUMMARY,
                &(struct exposition_sample){.buckets = quantiles, .buckets_count = 1},
                "# HELP \"s.\" \n# TYPE \"s.\" summary\n{\"s.\",quantile=\"0.5\"} 1.25\n"
                "{\"s._sum\"} 0\n{\"s._count\"} 0\n",
                "# HELP \"s.\" \n# TYPE \"s.\" summary\n{\"s.\",quantile=\"0.5\"} 1.25\n"
                "{\"s._sum\"} 0.0\n{\"s._count\"} 0\n# EOF\n");
    check_forms(ESCAPING_VALUES, "a.b", EXPOSITION_GAUGE, &(struct exposition_sample){0},
                "# HELP U__a_2e_b \n# TYPE U__a_2e_b gauge\nU__a_2e_b 0\n",
                "# HELP U__a_2e_b \n# TYPE U__a_2e_b gauge\nU__a_2e_b 0.0\n# EOF\n");
}

/* Plain labels, and those that need quotes or escaping, of a plain metric. Their values keep their
 * escapes. */
static void labels_are_quoted_or_escaped(void **state)
{
    (void)state;
    static const char *const expected[] = {
        [ESCAPING_NONE] = "{a=\"\\\\\\n\",\"b.\\\"c\"=\"\",d_=\"\xc3\xbc\"}",
        [ESCAPING_UNDERSCORES] = "{a=\"\\\\\\n\",b__c=\"\",d_=\"\xc3\xbc\"}",
        [ESCAPING_DOTS] = "{a=\"\\\\\\n\",b_dot___c=\"\",d_=\"\xc3\xbc\"}",
        [ESCAPING_VALUES] = "{a=\"\\\\\\n\",U__b_2e__22_c=\"\",d_=\"\xc3\xbc\"}",
    };
    char labels[64];
    size_t size = exposition_label(slice_of_text("a"), slice_of_text("\\\n"), labels);
    labels[size++] = ',';
    size += exposition_label(slice_of_text("b.\"c"), slice_of_text(""), labels + size);
    labels[size++] = ',';
    size += exposition_label(slice_of_text("d_"), slice_of_text("\xc3\xbc"), labels + size);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        char text[128];
        char openmetrics[128];
        snprintf(text, sizeof(text), "# HELP g \n# TYPE g gauge\ng%s 0\n", expected[i]);
        snprintf(openmetrics, sizeof(openmetrics), "# HELP g \n# TYPE g gauge\ng%s 0.0\n# EOF\n",
                 expected[i]);
        check_forms((enum prometheus_escaping)i, "g", EXPOSITION_GAUGE,
                    &(struct exposition_sample){.labels = slice_of(labels, size)}, text,
                    openmetrics);
    }
}

static void families_and_series_follow_each_other(void **state)
{
    (void)state;
    static const struct exposition_sample series[] = {{LABELS("a=\"1\"")}, {LABELS("a=\"2\"")}};
    static const char expected[] =
        "# HELP longer_than_the_next \n# TYPE longer_than_the_next gauge\n"
        "longer_than_the_next{a=\"1\"} 0.0\nlonger_than_the_next{a=\"2\"} 0.0\n"
        "# HELP \"b.c\" \n# TYPE \"b.c\" gauge\n{\"b.c\",a=\"1\"} 0.0\n{\"b.c\",a=\"2\"} 0.0\n"
        "# HELP d \n# TYPE d gauge\nd{a=\"1\"} 0.0\nd{a=\"2\"} 0.0\n# EOF\n";
    static const char *const names[] = {"longer_than_the_next", "b.c", "d"};
    static const struct exposition_format format = {.form = EXPOSITION_OPENMETRICS_1,
                                                    .escaping = ESCAPING_NONE};
    struct exposition exposition;
    exposition_init(&exposition, &format, NULL);
    for (size_t i = 0; i < 3; i++) {
        exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text(names[i]),
                                                                  .type = EXPOSITION_GAUGE});
        for (size_t k = 0; k < 2; k++)
            exposition_add(&exposition, &series[k]);
    }
    exposition_end(&exposition);
    assert_int_equal(exposition.size, sizeof(expected) - 1);
    assert_memory_equal(exposition.data, expected, sizeof(expected) - 1);
    exposition_fini(&exposition);
    /* Nothing but the end. */
    exposition_init(&exposition, &format, NULL);
    exposition_end(&exposition);
    assert_int_equal(exposition.size, 6);
    assert_memory_equal(exposition.data, "# EOF\n", 6);
    exposition_fini(&exposition);
    exposition_init(&exposition, &text_format, NULL);
    exposition_end(&exposition);
    assert_int_equal(exposition.size, 0);
    exposition_fini(&exposition);
}

#define BYTES(text) (text), sizeof(text) - 1

static void check_protobuf(enum prometheus_escaping escaping, const char *name,
                           enum exposition_type type, const struct exposition_sample *samples,
                           size_t count, const char *expected, size_t size)
{
    const struct exposition_format format = {.form = EXPOSITION_PROTOBUF, .escaping = escaping};
    struct exposition exposition;
    exposition_init(&exposition, &format, NULL);
    exposition_begin(&exposition, &(struct exposition_family){.name = slice_of_text(name),
                                                              .help = slice_of_text("hi"),
                                                              .type = type});
    for (size_t i = 0; i < count; i++)
        exposition_add(&exposition, &samples[i]);
    exposition_end(&exposition);
    assert_int_equal(exposition.size, size);
    assert_memory_equal(exposition.data, expected, size);
    exposition_fini(&exposition);
}

/* The expected bytes were written by Go. */
static void protobuf_has_each_type(void **state)
{
    (void)state;
    static const struct exposition_native_bucket negative[] = {
        {.index = -3, .count = 2}, {.index = 1, .count = 1}, {.index = 4, .count = 3}};
    static const struct exposition_native native = {.schema = -2,
                                                    .zero_threshold = 0.5,
                                                    .zero_count = 1,
                                                    .negative = negative,
                                                    .negative_count = 3};
    struct exposition_exemplar trace = both_ids;
    trace.value = 2;
    trace.time_ns = 1500000000;
    trace.trace_id[15] = 15;
    char labels[64];
    size_t size = exposition_label(slice_of_text("c.d"), slice_of_text("x\"y\n\\"), labels);
    struct exposition_sample samples[2] = {{.labels = slice_of(labels, size),
                                            .value = 3,
                                            .has_time = true,
                                            .time_ns = 1234567890,
                                            .created_ns = 3000000000,
                                            .exemplars = &trace,
                                            .exemplars_count = 1}};
    check_protobuf(
        ESCAPING_DOTS, "a.b_total", EXPOSITION_COUNTER, samples, 1,
        BYTES("\x9d\x01\n\x0e"
              "a_dot_b__total\x12\x02hi\x18\x00\"\x84\x01\n\x10\n\x07"
              "c_dot_d\x12\x05x\"y\n\\\x1am\x09\x00\x00\x00\x00\x00\x00\x08@\x12^\n,\n\x08trace_"
              "id\x12 000102030405060708090a0b0c0d0e0f\n\x1b\n\x07span_id\x12\x10"
              "0102030405060708\x11\x00\x00\x00\x00\x00\x00\x00@"
              "\x1a\x08\x08\x01\x10\x80\xca\xb5\xee\x01\x1a\x02\x08\x03"
              "0\xd2\x09"));
    samples[0] = (struct exposition_sample){
        .value = -0.5, .has_time = true, .time_ns = 1234567890, .created_ns = 3000000000};
    samples[1] = (struct exposition_sample){.labels = slice_of(labels, size)};
    check_protobuf(
        ESCAPING_NONE, "g.1", EXPOSITION_GAUGE, samples, 2,
        BYTES("6\n\x03g.1\x12\x02hi\x18\x01\"\x0e\x12\x09\x09\x00\x00\x00\x00\x00\x00\xe0\xbf"
              "0\xd2\x09\"\x19\n\x0c\n\x03"
              "c.d\x12\x05x\"y\n\\\x12\x09\x09\x00\x00\x00\x00\x00\x00\x00\x00"));
    samples[0] = (struct exposition_sample){.labels = slice_of(labels, size),
                                            .value = 7,
                                            .count = 2,
                                            .buckets = quantiles,
                                            .buckets_count = 1,
                                            .has_time = true,
                                            .time_ns = 1234567890,
                                            .created_ns = 5};
    check_protobuf(ESCAPING_UNDERSCORES, "s", EXPOSITION_SUMMARY, samples, 1,
                   BYTES("A\n\x01s\x12\x02hi\x18\x02\"6\n\x0c\n\x03"
                         "c_d\x12\x05x\"y\n\\\"#\x08\x02\x11\x00\x00\x00\x00\x00\x00\x1c@"
                         "\x1a\x12\x09\x00\x00\x00\x00\x00\x00\xe0?"
                         "\x11\x00\x00\x00\x00\x00\x00\xf4?\"\x02\x10\x05"
                         "0\xd2\x09"));
    samples[0] = (struct exposition_sample){
        .value = 7, .count = 5, .buckets = buckets, .buckets_count = 2, .created_ns = 3000000000};
    check_protobuf(ESCAPING_UNDERSCORES, "h", EXPOSITION_HISTOGRAM, samples, 1,
                   BYTES("h\n\x01h\x12\x02hi\x18\x04\"]:[\x08\x05\x11\x00\x00\x00\x00\x00\x00\x1c@"
                         "\x1a=\x08\x03\x11\x00\x00\x00\x00\x00\x00\xe0?\x1a"
                         "0\n\x1b\n\x07span_id\x12\x10"
                         "0102030405060708\x11\x00\x00\x00\x00\x00\x00\x00@"
                         "\x1a\x08\x08\x01\x10\x80\xca\xb5\xee\x01\x1a\x0b\x08\x04\x11\x00\x00\x00"
                         "\x00\x00\x00$@z\x02\x08\x03"));
    samples[0] = (struct exposition_sample){
        .value = 7, .count = 9, .native = &native, .exemplars = &exemplar, .exemplars_count = 1};
    check_protobuf(
        ESCAPING_UNDERSCORES, "n", EXPOSITION_HISTOGRAM, samples, 1,
        BYTES("n\n\x01n\x12\x02hi\x18\x04\"c:a\x08\x09\x11\x00\x00\x00\x00\x00\x00\x1c@(\x03"
              "1\x00\x00\x00\x00\x00\x00\xe0?"
              "8\x01J\x04\x08\x05\x10\x01J\x04\x08\x06\x10\x04P\x04P\x01P\x01P\x00P\x06\x82\x01"
              "0\n\x1b\n\x07span_id\x12\x10"
              "0102030405060708\x11\x00\x00\x00\x00\x00\x00\x00@"
              "\x1a\x08\x08\x01\x10\x80\xca\xb5\xee\x01"));
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
    static const char scrape[] =
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
        "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
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
        {scrape, true, EXPOSITION_OPENMETRICS_1, ESCAPING_NONE},
        /* The escaping of a form that there is not holds. */
        {scrape, false, EXPOSITION_TEXT, ESCAPING_NONE},
        {"text/plain;q=0.4,application/openmetrics-text;version=0.0.1;q=0.5", true,
         EXPOSITION_OPENMETRICS_0, ESCAPING_UNDERSCORES},
        {"application/openmetrics-text;q=0.5,text/plain;q=0.5", true, EXPOSITION_OPENMETRICS_0,
         ESCAPING_UNDERSCORES},
        {"text/plain;q=0.5,application/openmetrics-text;q=0.5", true, EXPOSITION_TEXT,
         ESCAPING_UNDERSCORES},
        {"text/plain;q=0", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"text/plain;version=0.0.3;escaping=dots,application/openmetrics-text;version=0.0.1", true,
         EXPOSITION_OPENMETRICS_0, ESCAPING_DOTS},
        {"text/plain;escaping=dots;escaping=values", true, EXPOSITION_TEXT, ESCAPING_VALUES},
        {"application/vnd.google.protobuf;proto=other;encoding=delimited,"
         "application/openmetrics-text;version=1.0.0",
         true, EXPOSITION_OPENMETRICS_1, ESCAPING_UNDERSCORES},
        {"application/vnd.google.protobuf;encoding=delimited;q=1.0,text/plain;escaping=dots;q=0.1",
         true, EXPOSITION_TEXT, ESCAPING_DOTS},
        {"application/json;escaping=values;q=0.9,text/html;escaping=dots", true, EXPOSITION_TEXT,
         ESCAPING_VALUES},
        {"*/*;q=0.9,application/openmetrics-text;version=1.0.0;q=0.1", true,
         EXPOSITION_OPENMETRICS_1, ESCAPING_UNDERSCORES},
        {"*", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
        {"text/plain;charset=utf-8;version=0.0.4", true, EXPOSITION_TEXT, ESCAPING_UNDERSCORES},
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

static void media_types_name_version_and_escaping(void **state)
{
    (void)state;
    static const struct {
        struct exposition_format format;
        const char *expected;
    } cases[] = {
        {{EXPOSITION_TEXT, ESCAPING_NONE},
         "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8"},
        {{EXPOSITION_OPENMETRICS_0, ESCAPING_DOTS},
         "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=dots"},
        {{EXPOSITION_OPENMETRICS_1, ESCAPING_VALUES},
         "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=values"},
        {{EXPOSITION_PROTOBUF, ESCAPING_UNDERSCORES},
         "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
         "encoding=delimited; escaping=underscores"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char type[EXPOSITION_TYPE_BYTES_MAX];
        exposition_content_type(&cases[i].format, type);
        assert_string_equal(type, cases[i].expected);
    }
}

/* A header of any length does no harm; its first ranges count. */
static void a_long_accept_is_read_from_its_begin(void **state)
{
    (void)state;
    enum { RANGES = 1000 };
    static const char range[] = "text/html;q=0.5,";
    static const char last[] = "application/openmetrics-text";
    char *accept = calloc(1, sizeof(last) + RANGES * sizeof(range));
    strcat(accept, "text/plain;escaping=dots;q=0.6,");
    char *end = accept + strlen(accept);
    for (size_t i = 0; i < RANGES; i++, end += sizeof(range) - 1)
        memcpy(end, range, sizeof(range) - 1);
    struct exposition_format format = exposition_negotiate(slice_of_text(accept), true);
    assert_int_equal(format.form, EXPOSITION_TEXT);
    assert_int_equal(format.escaping, ESCAPING_DOTS);
    free(accept);
}

/* Three families with long names, labels that need escaping, and exemplars. */
static void write_much(struct exposition *exposition)
{
    enum { NAME_BYTES = 3000 };
    static char name[NAME_BYTES];
    static char labels[2 * NAME_BYTES + 16];
    static const enum exposition_type types[] = {EXPOSITION_COUNTER, EXPOSITION_HISTOGRAM,
                                                 EXPOSITION_SUMMARY};
    memset(name, '.', sizeof(name));
    struct slice slice = slice_of(name, sizeof(name));
    size_t size = exposition_label(slice, slice_of_text("\n"), labels);
    for (size_t i = 0; i < 3; i++) {
        bool is_summary = types[i] == EXPOSITION_SUMMARY;
        exposition_begin(exposition, &(struct exposition_family){
                                         .name = slice, .help = slice, .type = types[i]});
        exposition_add(exposition,
                       &(struct exposition_sample){.labels = slice_of(labels, size),
                                                   .has_time = true,
                                                   .buckets = is_summary ? quantiles : buckets,
                                                   .buckets_count = 1,
                                                   .exemplars = &both_ids,
                                                   .exemplars_count = 1});
    }
    exposition_end(exposition);
}

static struct exposition_format format_of(size_t i)
{
    return (struct exposition_format){.form = (enum exposition_form)(i % 4),
                                      .escaping = (enum prometheus_escaping)(i / 4)};
}

/* Whichever of the allocations is refused, it is told, and a budget gets back what it gave. */
static void each_refusal_of_memory_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < 16; i++) {
        const struct exposition_format format = format_of(i);
        struct budget budget;
        struct exposition exposition;
        budget_init(&budget, UINT64_MAX);
        uint64_t before = mem_tries();
        exposition_init(&exposition, &format, &budget);
        write_much(&exposition);
        uint64_t tries = mem_tries() - before;
        assert_false(exposition.has_failed);
        assert_int_equal(budget_used(&budget), exposition.capacity);
        assert_true(exposition.capacity >= exposition.size && tries > 3);
        exposition_fini(&exposition);
        assert_int_equal(budget_used(&budget), 0);
        for (uint64_t nth = 1; nth <= tries; nth++) {
            exposition_init(&exposition, &format, &budget);
            mem_refuse_nth(nth);
            write_much(&exposition);
            mem_refuse_nth(0);
            assert_true(exposition.has_failed);
            assert_int_equal(budget_used(&budget), exposition.capacity);
            exposition_fini(&exposition);
            assert_int_equal(budget_used(&budget), 0);
        }
        budget_fini(&budget);
    }
}

static void a_budget_that_is_too_small_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < 16; i++) {
        const struct exposition_format format = format_of(i);
        struct exposition exposition;
        struct budget budget;
        exposition_init(&exposition, &format, NULL);
        write_much(&exposition);
        size_t needed = exposition.capacity;
        size_t size = exposition.size;
        exposition_fini(&exposition);
        for (size_t limit = 0; limit < size; limit += size / 8) {
            budget_init(&budget, limit);
            exposition_init(&exposition, &format, &budget);
            write_much(&exposition);
            assert_true(exposition.has_failed);
            assert_true(exposition.capacity <= limit);
            exposition_fini(&exposition);
            assert_int_equal(budget_used(&budget), 0);
            budget_fini(&budget);
        }
        budget_init(&budget, needed);
        exposition_init(&exposition, &format, &budget);
        write_much(&exposition);
        assert_false(exposition.has_failed);
        exposition_fini(&exposition);
        budget_fini(&budget);
    }
}

/* Memory is doubled while there is room, but a text is written if the budget has room for it. */
static void a_budget_may_be_little_more_than_the_text(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20, PERCENT = 80, NAME_BYTES = 1000 };
    char name[NAME_BYTES];
    struct budget budget;
    struct exposition exposition;
    memset(name, 'n', sizeof(name));
    budget_init(&budget, LIMIT);
    exposition_init(&exposition, &text_format, &budget);
    exposition_begin(&exposition, &(struct exposition_family){.name = slice_of(name, sizeof(name)),
                                                              .type = EXPOSITION_GAUGE});
    while (!exposition.has_failed && exposition.size < LIMIT / 100 * PERCENT)
        exposition_add(&exposition, &(struct exposition_sample){.value = 1});
    assert_false(exposition.has_failed);
    exposition_fini(&exposition);
    budget_fini(&budget);
}

static void without_memory_nothing_more_is_written(void **state)
{
    (void)state;
    struct budget budget;
    struct exposition exposition;
    budget_init(&budget, 10);
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

/* Escaped first, then without "_total". */
static void a_counter_is_named_by_its_escaped_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum prometheus_escaping escaping;
        const char *type;
    } cases[] = {
        {"a.b_total", ESCAPING_DOTS, "\n# TYPE a_dot_b_ counter\n"},
        {"a.b_total", ESCAPING_VALUES, "\n# TYPE U__a_2e_b_ counter\n"},
        {"a.b_total", ESCAPING_NONE, "\n# TYPE \"a.b\" counter\n"},
        {"a.total", ESCAPING_UNDERSCORES, "\n# TYPE a counter\n"},
        {"a.total", ESCAPING_NONE, "\n# TYPE \"a.total\" unknown\n"},
        {"_total", ESCAPING_UNDERSCORES, "\n# TYPE \"\" counter\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct exposition_format format = {.form = EXPOSITION_OPENMETRICS_1,
                                                 .escaping = cases[i].escaping};
        char *text = write_one(&format, cases[i].name, "", EXPOSITION_COUNTER,
                               &(struct exposition_sample){.value = 1});
        assert_non_null(strstr(text, cases[i].type));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_lines),
        cmocka_unit_test(names_are_quoted_or_escaped),
        cmocka_unit_test(labels_read_back),
        cmocka_unit_test(numbers_have_the_fewest_digits),
        cmocka_unit_test(openmetrics_marks_whole_numbers),
        cmocka_unit_test(random_numbers_read_back_the_same),
        cmocka_unit_test(exemplars_are_shown_with_their_ids),
        cmocka_unit_test(counts_are_numbers_in_text_only),
        cmocka_unit_test(native_histograms_have_one_bucket_in_text),
        cmocka_unit_test(quoted_names_stand_in_the_braces),
        cmocka_unit_test(labels_are_quoted_or_escaped),
        cmocka_unit_test(families_and_series_follow_each_other),
        cmocka_unit_test(protobuf_has_each_type),
        cmocka_unit_test(protobuf_has_native_histograms),
        cmocka_unit_test(the_client_chooses_form_and_escaping),
        cmocka_unit_test(media_types_name_version_and_escaping),
        cmocka_unit_test(a_long_accept_is_read_from_its_begin),
        cmocka_unit_test(each_refusal_of_memory_is_told),
        cmocka_unit_test(a_budget_that_is_too_small_is_told),
        cmocka_unit_test(a_budget_may_be_little_more_than_the_text),
        cmocka_unit_test(a_counter_is_named_by_its_escaped_name),
        cmocka_unit_test(without_memory_nothing_more_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
