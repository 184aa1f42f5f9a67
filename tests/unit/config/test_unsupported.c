/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/unsupported.c: what runs and what is left out, and src/config/rewrite.c: the file that
 * is left. */
#include "src/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/slice.h"
#include "src/config/rewrite.h"
#include "src/core/component.h"
#include "tests/unit/config/support.h"

enum { OUTCOME_MAX = 2048 };

static struct load_result load_skipping(const char *text)
{
    static const char *const location = "otel.yaml";
    struct load_result result;
    struct config_request request = {.locations = &location,
                                     .locations_count = 1,
                                     .factories = fake_factories,
                                     .skips_unsupported = true};
    memory_files_set((const char *const[]){location, text, NULL});
    result.config = config_load(&request, &result.problems);
    memory_files_set(NULL);
    return result;
}

/* "traces metrics/2; receivers::kafka component; traces: receivers::kafka component; logs
 * processor" */
static void describe(const struct config *config, char *text)
{
    size_t length = 0;
    for (size_t i = 0; i < config->pipelines_count; i++)
        length += (size_t)snprintf(text + length, OUTCOME_MAX - length, "%s%s", i > 0 ? " " : "",
                                   config->pipelines[i].id);
    for (size_t i = 0; i < config->skips_count; i++) {
        const struct config_skip *skip = &config->skips[i];
        bool is_part = skip->pipeline != NULL && skip->component != NULL;
        assert_non_null(skip->why);
        length += (size_t)snprintf(
            text + length, OUTCOME_MAX - length, "; %s%s%s%s%s %s",
            skip->pipeline != NULL ? skip->pipeline : "", is_part ? ": " : "",
            skip->component != NULL ? skip->section : "", skip->component != NULL ? "::" : "",
            skip->component != NULL ? skip->component : "", skip_reason_name(skip->reason));
    }
}

#define PARTS                                                                                      \
    "receivers: {nop: , kafka: }\n"                                                                \
    "processors: {nop: , filter: }\n"                                                              \
    "exporters: {nop: , loki: }\n"                                                                 \
    "connectors: {forward: , forward/2: , spanmetrics: }\n"
#define MISSING                                                                                    \
    "; receivers::kafka component; processors::filter component; exporters::loki component; "      \
    "connectors::spanmetrics component"
#define PIPELINES(text) PARTS "service: {pipelines: {" text "}}\n"

static void what_runs_and_what_is_left_out(void **state)
{
    static const struct {
        const char *yaml;
        const char *outcome;
    } rows[] = {
        {"receivers: {nop: }\nexporters: {nop: }\n"
         "service: {pipelines: {traces: {receivers: [nop], exporters: [nop]}}}\n",
         "traces"},
        /* Components that no pipeline names. */
        {PIPELINES("traces: {receivers: [nop], exporters: [nop]}"), "traces" MISSING},
        /* A processor: the pipeline. */
        {PIPELINES("traces: {receivers: [nop], processors: [nop, filter], exporters: [nop]}, "
                   "logs: {receivers: [nop], exporters: [nop]}"),
         "logs" MISSING "; traces processor"},
        /* A receiver or exporter beside others, and alone. */
        {PIPELINES("traces: {receivers: [kafka, nop], exporters: [loki, nop]}, "
                   "logs: {receivers: [kafka], exporters: [nop]}, "
                   "metrics: {receivers: [nop], exporters: [loki]}"),
         "traces" MISSING "; traces: exporters::loki component; traces: receivers::kafka "
         "component; logs no_receivers; metrics no_exporters"},
        /* An unsupported connector: the pipeline that only it feeds. */
        {PIPELINES("traces: {receivers: [nop], exporters: [nop, spanmetrics]}, "
                   "metrics: {receivers: [spanmetrics], exporters: [nop]}"),
         "traces" MISSING "; traces: exporters::spanmetrics component; metrics no_receivers"},
        /* Behind a supported connector, to a fixed point, in both directions. */
        {PIPELINES("traces: {receivers: [kafka], exporters: [forward]}, "
                   "traces/b: {receivers: [forward], exporters: [forward/2]}, "
                   "traces/c: {receivers: [forward/2], exporters: [nop]}, "
                   "logs: {receivers: [nop], exporters: [nop]}"),
         "logs" MISSING "; traces no_receivers; traces/b connector; traces/c connector"},
        {PIPELINES("traces: {receivers: [nop], exporters: [forward]}, "
                   "traces/b: {receivers: [forward], exporters: [forward/2]}, "
                   "traces/c: {receivers: [forward/2], exporters: [loki]}, "
                   "logs: {receivers: [nop], exporters: [nop]}"),
         "logs" MISSING "; traces connector; traces/b connector; traces/c no_exporters"},
        {PIPELINES("traces: {receivers: [nop], exporters: [nop, forward]}, "
                   "traces/b: {receivers: [forward], processors: [filter], exporters: [nop]}"),
         "traces" MISSING "; traces: exporters::forward connector; traces/b processor"},
        /* Another pipeline still takes what the connector gives. */
        {PIPELINES("traces: {receivers: [nop], exporters: [forward]}, "
                   "traces/b: {receivers: [forward], processors: [filter], exporters: [nop]}, "
                   "traces/c: {receivers: [forward], exporters: [nop]}"),
         "traces traces/c" MISSING "; traces/b processor"},
        /* An extension that nothing needs. */
        {"receivers: {nop: }\nexporters: {nop: }\nextensions: {health_check: , oidc: }\n"
         "service: {extensions: [oidc, health_check], pipelines: {traces: {receivers: [nop], "
         "exporters: [nop]}}}\n",
         "traces; extensions::oidc component"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char outcome[OUTCOME_MAX] = "";
        struct load_result result = load_skipping(rows[i].yaml);
        assert_loaded(&result);
        describe(result.config, outcome);
        assert_string_equal(outcome, rows[i].outcome);
        for (size_t k = 0; k < result.config->components_count; k++)
            assert_non_null(result.config->components[k].config);
        load_result_clear(&result);
    }
}

static void mistakes_remain_mistakes(void **state)
{
    static const struct {
        const char *yaml;
        const char *problem;
    } rows[] = {
        {PIPELINES("traces: {receivers: [nop, kafak], exporters: [nop]}"),
         "references receiver \"kafak\" which is not configured"},
        /* Also in a pipeline that would be left out. */
        {PIPELINES("traces: {receivers: [nop], exporters: [nop]}, "
                   "logs: {receivers: [kafka], exporters: [lokki]}"),
         "references exporter \"lokki\" which is not configured"},
        {"receivers: {nop: , otpl: }\nexporters: {nop: }\n"
         "service: {pipelines: {traces: {receivers: [nop], exporters: [nop]}}}\n",
         "unknown type: \"otpl\""},
        /* A loose end that was there from the beginning. */
        {PIPELINES("traces: {receivers: [nop], exporters: [nop, forward]}, "
                   "logs: {receivers: [kafka], exporters: [nop]}"),
         "connector \"forward\" used as exporter in [traces] pipeline but not used"},
        {PIPELINES("traces: {receivers: [kafka], exporters: [nop]}, "
                   "logs: {receivers: [nop], exporters: [loki]}"),
         "nothing is left to run"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct load_result result = load_skipping(rows[i].yaml);
        assert_problem(&result, rows[i].problem);
        assert_false(result.problems.has_unsupported);
        load_result_clear(&result);
    }
}

static void only_who_asks_gets_less(void **state)
{
    (void)state;
    struct load_result result =
        load_text(PIPELINES("traces: {receivers: [nop], exporters: [nop]}"));
    assert_problem(&result, "unknown type: \"kafka\"");
    assert_true(result.problems.has_unsupported);
    load_result_clear(&result);
    result = load_text(PARTS "service: {unsupported: skip, pipelines: {traces: {receivers: [nop], "
                             "exporters: [nop]}}}\n");
    assert_loaded(&result);
    assert_int_equal(result.config->skips_count, 4);
    load_result_clear(&result);
    result = load_text(PARTS "service: {unsupported: perhaps, pipelines: {traces: {receivers: "
                             "[nop], exporters: [nop]}}}\n");
    assert_problem(&result, "expected one of \"refuse\", \"skip\"");
    load_result_clear(&result);
}

static const char original[] =
    "\xef\xbb\xbf# Größe: characters are not bytes.\n"
    "receivers:\n"
    "  nop:\n"
    "  # The old one.\n"
    "  kafka:\n"
    "    brokers: [a, b] # two\n"
    "    # of them\n"
    "\n"
    "processors: {filter: {error_mode: ignore}, nop: , batch_up: }\n"
    "exporters:\n"
    "  otlphttp: {endpoint: x}\n"
    "  'otlphttp/2': {endpoint: x}\n"
    "  loki: {endpoint: x}\n"
    "service:\n"
    "  pipelines:\n"
    "    traces: {receivers: [nop, kafka], exporters: [loki, otlphttp, \"otlphttp/2\"]}\n"
    "    logs: # to nowhere\n"
    "      receivers: [nop]\n"
    "      exporters: [loki]\n"
    "    metrics:\n"
    "      receivers:\n"
    "        - kafka\n"
    "        - nop\n"
    "      exporters: [otlphttp, loki, loki]\n";

static const char rewritten[] =
    "\xef\xbb\xbf# Größe: characters are not bytes.\n"
    "receivers:\n"
    "  nop:\n"
    "  # The old one.\n"
    "  # Left out, not supported by spanflame: receivers kafka\n"
    "\n"
    "processors: {nop: , batch_up: }\n"
    "exporters:\n"
    "  otlp_http: {endpoint: x}\n"
    "  'otlp_http/2': {endpoint: x}\n"
    "  # Left out, not supported by spanflame: exporters loki\n"
    "service:\n"
    "  pipelines:\n"
    "    traces: {receivers: [nop], exporters: [otlp_http, \"otlp_http/2\"]}\n"
    "    # Left out, not supported by spanflame: pipeline logs\n"
    "    metrics:\n"
    "      receivers:\n"
    "        # Left out, not supported by spanflame: receivers kafka\n"
    "        - nop\n"
    "      exporters: [otlp_http]\n";

static char *rewrite(const char *text, const struct config *config, struct error *error)
{
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);
    assert_non_null(out);
    bool is_fine = config_rewrite(slice_of_text(text), config, out, error);
    fclose(out);
    if (is_fine)
        return written;
    free(written);
    return NULL;
}

static void what_is_cut_leaves_the_rest_as_it_is(void **state)
{
    struct error error = {.text = ""};
    (void)state;
    struct load_result result = load_skipping(original);
    assert_loaded(&result);
    char *written = rewrite(original, result.config, &error);
    assert_string_equal(error.text, "");
    assert_string_equal(written, rewritten);
    load_result_clear(&result);
    result = load_text(written);
    assert_loaded(&result);
    char *again = rewrite(written, result.config, &error);
    assert_string_equal(again, written);
    load_result_clear(&result);
    free(again);
    free(written);
}

static void what_is_not_in_the_text_cannot_be_cut(void **state)
{
    static const char text[] = "defaults: &all {nop: , kafka: }\n";
    struct error error = {.text = ""};
    (void)state;
    struct load_result result =
        load_skipping(PIPELINES("traces: {receivers: [nop], exporters: [nop]}"));
    assert_loaded(&result);
    assert_null(rewrite(text, result.config, &error));
    assert_non_null(strstr(error.text, "receivers kafka is not written in this file itself"));
    load_result_clear(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_and_what_is_left_out),
        cmocka_unit_test(mistakes_remain_mistakes),
        cmocka_unit_test(only_who_asks_gets_less),
        cmocka_unit_test(what_is_cut_leaves_the_rest_as_it_is),
        cmocka_unit_test(what_is_not_in_the_text_cannot_be_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
