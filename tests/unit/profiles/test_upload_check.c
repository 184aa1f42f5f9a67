/* SPDX-License-Identifier: Apache-2.0 */
/* Which uploads the server refuses, and which it accepts. */
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pyroscope/series.h"
#include "src/profiles/pyroscope/upload_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct upload_limits limits = {
    .label_names = 4,
    .label_name_bytes = 8,
    .label_value_bytes = 6,
    .sample_labels = 5,
    .older_than_ns = (uint64_t)3600 * NS_PER_S,
    .newer_than_ns = (uint64_t)600 * NS_PER_S,
};

static const struct upload_limits none = {.label_names = 0};

static struct series series_of(const char *const pairs[][2], size_t count)
{
    struct series series = {.count = 0};
    for (size_t i = 0; i < count && pairs[i][0] != NULL; i++)
        assert_true(series_add(&series, slice_of_text(pairs[i][0]), slice_of_text(pairs[i][1])));
    return series;
}

static void labels_of_series_have_limits(void **state)
{
    static const struct {
        const char *pairs[5][2];
        const char *reason;
    } cases[] = {
        {{{"__name__", "cpu"}, {"a", "b"}, {"c", "d"}, {"e", "f"}}, ""},
        {{{"__name__", "cpu"}, {"a", ""}, {"c", "d"}, {"e", "f"}, {"g", "h"}}, ""},
        {{{"__name__", "cpu"}, {"a", "b"}, {"c", "d"}, {"e", "f"}, {"g", "h"}},
         "the series has 5 label names, limit 4"},
        {{{"12345678", "123456"}}, ""},
        {{{"123456789", "a"}}, "label name too long: '123456789' has 9 bytes, expected at most 8"},
        {{{"a", "1234567"}}, "label value too long: that of 'a' has 7 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct series series = series_of(cases[i].pairs, 5);
        struct error error = {.text = ""};
        bool is_fine = upload_check_series(&series, &limits, &error);
        assert_int_equal(is_fine, cases[i].reason[0] == '\0');
        assert_non_null(strstr(error.text, cases[i].reason));
        assert_true(upload_check_series(&series, &none, &error));
    }
}

static void times_lie_in_a_window(void **state)
{
    static const struct {
        int64_t time_s; /* 10 000 is now */
        const char *reason;
    } cases[] = {
        {0, ""},     {-5, ""},
        {6400, ""},  {6399, "3601 s ago; look at the sender's clock"},
        {10600, ""}, {10601, "601 s ahead"},
    };
    const uint64_t now_ns = (uint64_t)10000 * NS_PER_S;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error error = {.text = ""};
        int64_t time_ns = cases[i].time_s * NS_PER_S;
        bool is_fine = upload_check_time(time_ns, &limits, now_ns, &error);
        assert_int_equal(is_fine, cases[i].reason[0] == '\0');
        assert_non_null(strstr(error.text, cases[i].reason));
        assert_true(upload_check_time(time_ns, &none, now_ns, &error));
    }
}

enum { TEXTS = 12, LABELS = 6 };

/* One sample with these labels; "#" in front of a key makes a number of its value. */
struct profile_case {
    const char *type; /* NULL: none */
    const char *labels[LABELS + 1][2];
    const char *reason;
};

static void check_profile(const struct profile_case *c)
{
    struct slice texts[TEXTS + 2] = {{.size = 0}};
    struct pprof_label labels[LABELS] = {{.key = 0}};
    struct pprof_value_type type = {.type = 1};
    int64_t value = 1;
    struct pprof_sample sample = {.values = &value, .labels = labels};
    size_t used = 2;
    texts[1] = slice_of_text(c->type != NULL ? c->type : "");
    for (; sample.labels_count < LABELS && c->labels[sample.labels_count][0] != NULL;
         sample.labels_count++) {
        const char *const *pair = c->labels[sample.labels_count];
        bool is_number = pair[0][0] == '#';
        texts[used] = slice_of_text(pair[0]);
        texts[used + 1] = slice_of_text(pair[1]);
        labels[sample.labels_count] = (struct pprof_label){
            .key = (uint32_t)used, .text = is_number ? 0 : (uint32_t)used + 1, .number = is_number};
        used += 2;
    }
    const struct pprof pprof = {.strings = texts,
                                .strings_count = used,
                                .sample_types = &type,
                                .sample_types_count = c->type != NULL,
                                .samples = &sample,
                                .samples_count = 1};
    static const char *const pairs[][2] = {{"__name__", "cpu"}, {"region", "eu"}};
    struct series series = series_of(pairs, 2);
    struct error error = {.text = ""};
    bool is_fine = upload_check_profile(&pprof, &series, &limits, &error);
    if (is_fine != (c->reason[0] == '\0') || strstr(error.text, c->reason) == NULL)
        fail_msg("expected \"%s\", found \"%s\"", c->reason, error.text);
}

static void profiles_keep_the_rules_of_the_server(void **state)
{
    static const struct profile_case cases[] = {
        {"cpu", {{"a", "b"}, {"c", "d"}}, ""},
        {NULL, {{NULL}}, "empty profile"},
        {"cpu-time", {{NULL}}, "sample type contains -: 'cpu-time'"},
        {"c\xffu", {{NULL}}, "string 1 of the profile is not UTF-8"},
        {"cpu", {{"a", "b"}, {"c", "d"}, {"e", "f"}}, "the series has 5 label names, limit 4"},
        {"cpu", {{"a", "b"}, {"c", "d"}, {"region", "us"}, {"span_id", "5"}}, ""},
        {"cpu", {{"a", "b"}, {"c", "d"}, {"#e", "f"}, {"trace_id", "5"}}, ""},
        {"cpu", {{"a", "1234567"}}, "label value too long: that of 'a'"},
        {"cpu", {{"#a", "1234567"}, {"span_id", "1234567"}, {"region", "1234567"}}, ""},
        {"cpu", {{"123456789", "a"}}, "label name too long"},
        {"cpu",
         {{"#a", ""}, {"#b", ""}, {"#c", ""}, {"#d", ""}, {"#e", ""}, {"#f", ""}},
         "a sample has 6 labels, expected at most 5"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_profile(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_of_series_have_limits),
        cmocka_unit_test(times_lie_in_a_window),
        cmocka_unit_test(profiles_keep_the_rules_of_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
