/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of series: their rules, and their way into OTLP and back. */
#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/otlp/value.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pyroscope/series_otlp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "a=b,c=d" */
static struct series series_of(char *text)
{
    struct series series = {.count = 0};
    for (char *pair = strtok(text, ","); pair != NULL; pair = strtok(NULL, ",")) {
        size_t size = strcspn(pair, "=");
        series_add(&series, slice_of(pair, size), slice_of_text(pair + size + 1));
    }
    return series;
}

static void labels_keep_the_rules_of_the_server(void **state)
{
    static const char *const cases[][2] = {
        {"__name__=cpu,service_name=a,host.name=h", ""},
        {"service_name=a", "profile series has no name: the label __name__ is missing"},
        {"__name__=,a=b", "profile series has no name: the label __name__ is missing"},
        {"__name__=x,a=b,a=c", "duplicate label name: 'a'"},
        {"c=1,__name__=x,b=2,a=3,b=4", "duplicate label name: 'b'"},
        {"c=1,__name__=x,b=2,a=3", ""},
        {"__name__=x,=c", "invalid label name: expected UTF-8 that is not empty"},
        {"__name__=x,\xff=c", "invalid label name: expected UTF-8 that is not empty"},
        {"__name__=x,a=\xff", "invalid value of label: expected at most 65535 bytes of UTF-8: 'a'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error error = {.text = ""};
        char *text = strdup(cases[i][0]);
        struct series series = series_of(text);
        assert_int_equal(series_check(&series, &error), cases[i][1][0] == '\0');
        assert_string_equal(error.text, cases[i][1]);
        free(text);
    }
}

static const int64_t one_value[] = {5};
static struct pprof_value_type types[] = {{.type = 1, .unit = 2}};
static struct pprof_sample samples[] = {{.values = one_value}};
static struct slice strings[3];

static struct pprof one_sample(void)
{
    strings[0] = slice_of_text("");
    strings[1] = slice_of_text("cpu");
    strings[2] = slice_of_text("nanoseconds");
    return (struct pprof){.strings = strings,
                          .strings_count = 3,
                          .sample_types = types,
                          .sample_types_count = 1,
                          .samples = samples,
                          .samples_count = 1};
}

/* Resource attributes, those named as labels with a '*', and the private ones in brackets. */
static void describe(struct slice request, char *to, size_t size)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    struct profile_iterator at = profile_iterator_of(request);
    size_t used = 0;
    arena_init(&arena, 1 << 20);
    assert_true(profile_dictionary_open(&dictionary, &arena, request));
    assert_true(profile_iterator_next(&at));
    struct slice names = profile_label_names(&dictionary, &at.profile);
    struct wire_reader attributes = wire_reader_of(at.resource.resource);
    struct wire_field field;
    while (wire_read_field(&attributes, &field)) {
        struct otlp_pair pair = otlp_text_pair(&dictionary, field.bytes);
        struct value value = value_read(pair.value);
        used += (size_t)snprintf(to + used, size - used, "%.*s=%.*s%s ", (int)pair.key.size,
                                 (const char *)pair.key.data, (int)value.bytes.size,
                                 (const char *)value.bytes.data,
                                 profile_label_names_has(names, pair.key) ? "*" : "");
    }
    struct series_privates privates;
    series_privates_init(&privates, &dictionary, NULL);
    series_privates_read(&privates, &at.profile);
    assert_false(privates.has_failed);
    for (size_t i = 0; i < privates.count; i++) {
        struct series_label label = privates.labels[i];
        used += (size_t)snprintf(to + used, size - used, "[%.*s=%.*s]", (int)label.name.size,
                                 (const char *)label.name.data, (int)label.value.size,
                                 (const char *)label.value.data);
    }
    series_privates_fini(&privates);
    arena_clear(&arena);
}

static void labels_travel_and_stay_distinct(void **state)
{
    static const char *const cases[][2] = {
        {"__name__=cpu,service_name=a,host.name=h,__delta__=false",
         "service.name=a* host.name=h* [__name__=cpu][__delta__=false]"},
        {"__name__=cpu,empty=,x=y", "x=y* [__name__=cpu]"},
        {"__name__=cpu,service.name=otel", "service.name=otel* [__name__=cpu]"},
        {"__name__=cpu,service.name=otel,service_name=a",
         "service.name=a* [__name__=cpu][service.name=otel]"},
    };
    char found[512];
    struct pprof pprof = one_sample();
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = strdup(cases[i][0]);
        struct series series = series_of(text);
        struct buffer *request = NULL;
        assert_true(series_to_otlp(&series, &pprof, NULL, &request, NULL));
        describe(buffer_slice(request), found, sizeof(found));
        assert_string_equal(found, cases[i][1]);
        buffer_unref(request);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_keep_the_rules_of_the_server),
        cmocka_unit_test(labels_travel_and_stay_distinct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
