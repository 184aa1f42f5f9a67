/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/print*.c and reference.c: what the commands show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "tests/unit/config/support.h"

enum { OUTPUT_MAX = 64 * 1024 };

static char output[OUTPUT_MAX];

#define CONFIG_TEXT_OF_TEST                                                                        \
    "receivers: {nop: }\n"                                                                         \
    "processors:\n"                                                                                \
    "  probe: {secret: hunter2, secrets: [hunter7, hunter8], headers: {a: hunter3}, old: {deep: "  \
    "[hunter4, 5]}, text: "                                                                        \
    "'${env:CT_PRINTED}', count: 0x10, value: ['1', yes, 1.5, true, null]}\n"                      \
    "exporters:\n"                                                                                 \
    "  otlphttp: {endpoint: 'http://h', headers: [{name: a, value: hunter5}]}\n"                   \
    "service:\n"                                                                                   \
    "  pipelines: {traces: {receivers: [nop], processors: [probe], exporters: [otlphttp]}}\n"      \
    "  telemetry: {traces: {processors: [{batch: {exporter: {headers: hunter6}}}]}}\n"

static bool skips_checks;

static bool print(bool is_unredacted, bool is_json, const char *text)
{
    static const char *const location = "otel.yaml";
    struct config_problems problems;
    struct config_request request = {.locations = &location,
                                     .locations_count = 1,
                                     .factories = fake_factories,
                                     .skips_checks = skips_checks};
    memset(output, 0, sizeof(output));
    FILE *file = fmemopen(output, sizeof(output) - 1, "w");
    setenv("CT_PRINTED", "0123", 1);
    memory_files_set((const char *const[]){location, text, NULL});
    bool is_fine = config_print(&request, is_unredacted, is_json, file, &problems);
    memory_files_set(NULL);
    fclose(file);
    config_problems_clear(&problems);
    return is_fine;
}

static void assert_printed(const char *part)
{
    if (strstr(output, part) == NULL)
        fail_msg("expected: %s\nfound:\n%s", part, output);
}

static void secrets_are_redacted_by_the_option_tables(void **state)
{
    (void)state;
    assert_true(print(false, false, CONFIG_TEXT_OF_TEST));
    assert_null(strstr(output, "hunter"));
    assert_printed("        secret: '[REDACTED]'\n");
    assert_printed("        secrets:\n"
                   "        - '[REDACTED]'\n"
                   "        - '[REDACTED]'\n");
    assert_printed("            a: '[REDACTED]'\n");
    assert_printed("value: '[REDACTED]'\n");
    assert_printed("        text: '0123'\n");
    assert_printed("        count: 16\n");
    assert_printed("        - 'yes'\n");
    assert_printed("        endpoint: http://h\n");
}

static void a_password_in_a_url_is_redacted(void **state)
{
    (void)state;
    assert_true(
        print(false, false,
              "receivers: {nop: }\n"
              "exporters: {otlphttp: {endpoint: 'http://me:hunter7@h/a'}}\n"
              "service: {pipelines: {traces: {receivers: [nop], exporters: [otlphttp]}}}\n"));
    assert_null(strstr(output, "hunter"));
    assert_printed("        endpoint: '[REDACTED]'\n");
}

static void unredacted_output_reads_back_as_the_same(void **state)
{
    static char first[OUTPUT_MAX];
    (void)state;
    assert_true(print(true, false, CONFIG_TEXT_OF_TEST));
    assert_printed("hunter2");
    assert_printed("hunter6");
    memcpy(first, output, sizeof(first));
    assert_true(print(true, false, first));
    assert_string_equal(output, first);
}

static void json_has_the_same_values(void **state)
{
    (void)state;
    assert_true(print(false, true, CONFIG_TEXT_OF_TEST));
    assert_null(strstr(output, "hunter"));
    assert_printed("\"secret\": \"[REDACTED]\"");
    assert_printed("\"count\": 16");
    assert_printed("\"text\": \"0123\"");
    assert_printed("\"nop\": null");
}

static void defaults_are_written_out(void **state)
{
    (void)state;
    assert_true(print(true, false,
                      "receivers: {otlp: {protocols: {grpc: , http: {enabled: false}}}}\n"
                      "processors: {probe: {headers: {a: '${env:CT_PRINTED}'}}}\n"
                      "exporters: {nop: }\n"
                      "service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}\n"));
    assert_printed("            grpc:\n                endpoint: localhost:4317\n");
    assert_printed("            http:\n                enabled: false\nprocessors:");
    assert_printed("            a: '0123'\n");
    assert_printed("        timeout: 200ms\n");
    assert_printed("        count: 8192\n");
    assert_printed("        text: '1.0'\n");
    assert_printed("    nop: null\n");
    assert_printed(
        "            sampling:\n                enabled: true\n                tick: 10s\n");
    assert_null(strstr(output, "enabling:"));
}

/* Read back, the default under the other name would overrule the value. */
static void a_field_with_two_names_is_printed_once(void **state)
{
    static const struct {
        const char *given;
        const char *printed;
        const char *absent;
    } cases[] = {
        {"number: 7", "        number: 7\n", "amount:"},
        {"amount: 7", "        amount: 7\n", "number:"},
        {"flag: true", "        number: -5\n", "amount:"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "receivers: {nop: }\n"
                 "processors: {probe: {%s}}\n"
                 "exporters: {nop: }\n"
                 "service: {pipelines: {traces: {receivers: [nop], processors: [probe], "
                 "exporters: [nop]}}}\n",
                 cases[i].given);
        assert_true(print(true, false, text));
        assert_printed(cases[i].printed);
        if (strstr(output, cases[i].absent) != NULL)
            fail_msg("%s: found %s in\n%s", cases[i].given, cases[i].absent, output);
    }
}

static void nothing_is_printed_of_what_does_not_load(void **state)
{
    (void)state;
    assert_false(print(false, false, "receivers: {nope: }\n"));
    assert_string_equal(output, "");
}

static void without_checks_it_is_printed_and_redacted(void **state)
{
    (void)state;
    skips_checks = true;
    assert_true(print(false, false, "processors: {probe: {secret: hunter2, nope: 1}}\n"));
    assert_printed("nope: 1");
    assert_null(strstr(output, "hunter"));
    /* What no table knows may be a secret. */
    assert_true(print(false, false,
                      "processors: {probe: {nope: hunter3}, absent: {api: {key: hunter4}}}\n"
                      "x-shared: {token: [hunter5]}\nservice: {nope: hunter6, lanes: 2}\n"));
    skips_checks = false;
    assert_printed("key: '[REDACTED]'");
    assert_printed("lanes: 2");
    assert_null(strstr(output, "hunter"));
}

static void the_reference_has_every_key(void **state)
{
    (void)state;
    memset(output, 0, sizeof(output));
    FILE *file = fmemopen(output, sizeof(output) - 1, "w");
    config_print_reference(fake_factories, file);
    fclose(file);
    assert_printed("### processor: `probe`\n\nStability: alpha. Signals: traces, metrics, logs, "
                   "profiles.\n");
    assert_printed("| `timeout` | duration | `200ms` | 0s to 1h | A time. |\n");
    assert_printed("| `count` | whole number | `8192` | `auto`, 0 to 65535 | A count. |\n");
    assert_printed("| `text` | string | `1.0` |  | A string \\| with a bar. |\n");
    assert_printed("| `parts[]::size` | whole number | `7` | 1 to 100 | Its size. |\n");
    assert_printed("| `enabling` | section | off; the bare key turns it on |");
    assert_printed("Deprecated alias: `otlphttp`.");
    assert_printed("| `telemetry::logs::sampling::tick` | duration | `10s` |");
    assert_printed("| `lanes` | whole number | `1` | `auto`, 1 to 64 |");
}

static void the_list_of_components_is_yaml_by_kind(void **state)
{
    (void)state;
    memset(output, 0, sizeof(output));
    FILE *file = fmemopen(output, sizeof(output) - 1, "w");
    config_print_components(fake_factories, file);
    fclose(file);
    assert_printed("buildinfo:\n    command: spanflame\n");
    assert_printed("receivers:\n    - name: otlp\n      module: ");
    assert_printed("      stability:\n        logs: Stable\n        metrics: Stable\n"
                   "        profiles: Stable\n        traces: Stable\n");
    assert_printed("connectors:\n    - name: forward\n");
    assert_printed("        logs-to-logs: Beta\n        logs-to-metrics: Undefined\n");
    assert_printed("        profiles-to-profiles: Beta\n        traces-to-logs: Undefined\n"
                   "        traces-to-metrics: Undefined\n        traces-to-traces: Beta\n"
                   "    - name: count\n");
    assert_printed("extensions:\n    - name: health_check\n");
    assert_printed("        extension: Beta\n");
    assert_printed("    - scheme: env\n");
    assert_null(strstr(output, "otlphttp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_redacted_by_the_option_tables),
        cmocka_unit_test(a_password_in_a_url_is_redacted),
        cmocka_unit_test(unredacted_output_reads_back_as_the_same),
        cmocka_unit_test(json_has_the_same_values),
        cmocka_unit_test(defaults_are_written_out),
        cmocka_unit_test(a_field_with_two_names_is_printed_once),
        cmocka_unit_test(nothing_is_printed_of_what_does_not_load),
        cmocka_unit_test(without_checks_it_is_printed_and_redacted),
        cmocka_unit_test(the_reference_has_every_key),
        cmocka_unit_test(the_list_of_components_is_yaml_by_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
