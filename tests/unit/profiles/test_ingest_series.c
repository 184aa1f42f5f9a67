/* SPDX-License-Identifier: Apache-2.0 */
/* What uploads are profiles of, by the server's tables. */
#include "src/profiles/pyroscope/ingest_series.h"

#include "src/base/error.h"
#include "src/profiles/pprof/pprof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void metrics_come_from_sample_types(void **state)
{
    static const struct {
        const char *types[3];
        const char *config;
        const char *metric;
    } cases[] = {
        {{"samples", "cpu"}, NULL, "process_cpu"},
        {{"samples", "wall"}, NULL, "wall"},
        {{"sample", "count"}, NULL, "count"},
        {{"alloc_objects", "alloc_space"}, NULL, "memory"},
        {{"inuse_objects"}, NULL, "memory"},
        {{"objects", "space"}, NULL, "memory"},
        {{"goroutine"}, NULL, "goroutines"},
        {{"contentions", "delay"}, NULL, "mutex"},
        {{"contentions", "delay"},
         "{\"contentions\": {\"display-name\": \"block_count\", \"units\": \"x\"}, "
         "\"delay\": {\"display-name\": \"block_duration\"}}",
         "block"},
        {{"goroutine"}, "{\"goroutine\": {}}", "goroutine"},
        {{"goroutine"}, "{}", "goroutine"},
        {{"a", "b"}, "{\"b\": {\"display-name\": \"my_cpu\"}}", "process_cpu"},
        {{"a"}, "[]", "! sample_type_config: json: expected an object"},
        {{"a"}, "{\"a\": 1}", "! sample_type_config: json: expected an object"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice strings[3];
        struct pprof_value_type types[3];
        size_t count = 0;
        for (; count < 3 && cases[i].types[count] != NULL; count++) {
            strings[count] = slice_of_text(cases[i].types[count]);
            types[count] = (struct pprof_value_type){.type = (uint32_t)count};
        }
        struct pprof pprof = {.strings = strings,
                              .strings_count = count,
                              .sample_types = types,
                              .sample_types_count = count};
        struct slice metric = {.size = 0};
        struct error error = {.text = ""};
        char found[ERROR_TEXT_MAX + 2];
        struct slice config = slice_of_text(cases[i].config != NULL ? cases[i].config : "");
        if (ingest_type_of_pprof(&pprof, config, &metric, &error))
            snprintf(found, sizeof(found), "%.*s", (int)metric.size, (const char *)metric.data);
        else
            snprintf(found, sizeof(found), "! %s", error.text);
        assert_string_equal(found, cases[i].metric);
    }
}

static void the_ending_of_the_name_decides_the_text_format(void **state)
{
    static const struct {
        const char *app;
        uint64_t rate;
        const char *text;
    } cases[] = {
        {"app", 100, "app: process_cpu cpu/nanoseconds by 10000000"},
        {"my.app.cpu", 50, "my.app: process_cpu cpu/nanoseconds by 20000000"},
        {"app.itimer", 100, "app: process_cpu cpu/nanoseconds by 10000000"},
        {"app.cpu", 0, "app: process_cpu samples/count by 1"},
        {"app.wall", 100, "app: wall wall/nanoseconds by 10000000"},
        {"app.alloc_space", 100, "app: memory alloc_space/bytes by 1"},
        {"app.inuse_objects", 100, "app: memory inuse_objects/count by 1"},
        {"app.goroutines", 100, "app: goroutine goroutines/count by 1"},
        {"app.mutex_duration", 100, "app: mutex delay/nanoseconds by 1"},
        {"app.lock_count", 100, "app: block contentions/count by 1"},
        {"app.exceptions", 100, "app: exceptions samples/count by 1"},
        {"app.cats", 100, "! unknown profile type: cats"},
        {"app.", 100, "! unknown profile type: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ingest_text_type type;
        struct error error = {.text = ""};
        char found[ERROR_TEXT_MAX + 2];
        if (ingest_type_of_text(slice_of_text(cases[i].app), cases[i].rate, &type, &error))
            snprintf(found, sizeof(found), "%.*s: %s %s/%s by %llu", (int)type.app.size,
                     (const char *)type.app.data, type.metric, type.head.type, type.head.unit,
                     (unsigned long long)type.head.scale);
        else
            snprintf(found, sizeof(found), "! %s", error.text);
        assert_string_equal(found, cases[i].text);
    }
}

/* It is read once for each type. */
static void a_configuration_of_types_has_a_limit(void **state)
{
    enum { BYTES_MAX = 65536 };
    static char config[BYTES_MAX + 1];
    struct slice strings[] = {slice_of_text(""), slice_of_text("a")};
    struct pprof_value_type type = {.type = 1};
    struct pprof pprof = {
        .strings = strings, .strings_count = 2, .sample_types = &type, .sample_types_count = 1};
    struct slice metric;
    struct error error = {.text = ""};
    (void)state;
    memset(config, ' ', sizeof(config));
    memcpy(config, "{}", 2);
    assert_true(ingest_type_of_pprof(&pprof, slice_of(config, BYTES_MAX), &metric, &error));
    assert_false(ingest_type_of_pprof(&pprof, slice_of(config, BYTES_MAX + 1), &metric, &error));
    assert_non_null(strstr(error.text, "sample_type_config has 65537 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_come_from_sample_types),
        cmocka_unit_test(a_configuration_of_types_has_a_limit),
        cmocka_unit_test(the_ending_of_the_name_decides_the_text_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
