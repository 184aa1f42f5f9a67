/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/config.c and what it calls: sources, merging, the graph, and every mistake at once. */
#include "src/config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/config/config_limits.h"
#include "src/config/feature_gates.h"
#include "src/core/component.h"
#include "tests/unit/config/support.h"

#define PLAIN                                                                                      \
    "receivers: {nop: , otlp: {protocols: {grpc: }}}\n"                                            \
    "processors: {batch: }\n"                                                                      \
    "exporters: {nop: , debug: }\n"
#define PIPELINE(text) PLAIN "service: {pipelines: {" text "}}\n"
#define CONNECTED(text)                                                                            \
    PLAIN "connectors: {forward: , forward/2: , forward/3: , count: }\n"                           \
          "service: {pipelines: {" text "}}\n"
#define FINE "service: {pipelines: {traces: {receivers: [nop], exporters: [nop]}}}\n"

/* Each has exactly one problem. */
static const struct {
    const char *yaml;
    const char *problem;
} mistakes[] = {
    {"", "otel.yaml:1:1: empty configuration file"},
    {"# nothing\n", "empty configuration file"},
    {"{}", "empty configuration file"},
    {"---\n---\nreceivers: {nop: }\n", "empty configuration file"},
    {"text", "otel.yaml:1:1: found a string, expected a map with the keys"},
    {PLAIN FINE "foo: 1\n", "otel.yaml:5:1: foo: found an unknown key, expected receivers, "},
    {PLAIN FINE "recievers: \n", "(did you mean \"receivers\"?)"},
    {"receivers: {nop: , foo/1: }\nexporters: {nop: }\n" FINE,
     "otel.yaml:1:20: receivers::foo/1: unknown type: \"foo\" for id: \"foo/1\" (valid values: "
     "[otlp nop])"},
    {"receivers: {nop: , otlpp: }\nexporters: {nop: }\n" FINE, "(did you mean \"otlp\"?)"},
    {"receivers: {nop: , batch: }\nexporters: {nop: }\n" FINE,
     "there is such a component, but of another kind"},
    {"receivers: {nop: , hostmetrics: }\nexporters: {nop: }\n" FINE,
     "the Go collector has such a component, this build does not"},
    /* Today's names, older ones, and those that came after 0.155; what does the same is said of all
     * of them. */
    {"receivers: {nop: , file_log: }\nexporters: {nop: }\n" FINE,
     "this build does not: let another collector read the files"},
    {"receivers: {nop: , kafka_metrics/a: }\nexporters: {nop: }\n" FINE,
     "this build does not: let a Kafka exporter serve them"},
    {"receivers: {nop: , fluent_forward: }\nexporters: {nop: }\n" FINE,
     "this build does not: let a collector that has it send OTLP to the otlp receiver"},
    {"receivers: {nop: , profiling: }\nexporters: {nop: }\n" FINE,
     "this build does not: run the profiler by itself"},
    /* There is a receiver of this name, but Go has an exporter, too. */
    {"receivers: {nop: }\nexporters: {nop: , otlp: }\n" FINE,
     "the Go collector has such a component, this build does not: send OTLP to a collector"},
    {"receivers: {nop: , sql_query: }\nexporters: {nop: }\n" FINE, "this build does not: let a"},
    {"receivers: {nop: }\nexporters: {nop: , clickhouse: }\n" FINE,
     "this build does not: send OTLP to a collector that has it, by otlp_grpc"},
    {"receivers: {nop: , file__log: }\nexporters: {nop: }\n" FINE,
     "unknown type: \"file__log\" for id: \"file__log\" (valid values: [otlp nop])"},
    {PLAIN "connectors: {routing/a: }\n" FINE,
     "otel.yaml:4:14: connectors::routing/a: unknown type: \"routing\" for id: \"routing/a\" "
     "(valid "
     "values: [forward count]); the Go collector has such a component, this build does not"},
    {"receivers: {nop: }\nexporters: {nop: , jaeger_thrift: }\n" FINE,
     "Jaeger takes OTLP, so use otlp_grpc with Jaeger's port 4317"},
    {"receivers: {nop: }\nexporters: {nop: , loki: }\n" FINE,
     "the Go collector has removed it, too: Loki 3 takes OTLP, so use otlp_http with endpoint: "
     "http://LOKI:3100/otlp"},
    {"receivers: {nop: }\nprocessors: {spanmetrics: }\nexporters: {nop: }\n" FINE,
     "it is the connector span_metrics now"},
    {PLAIN "extensions: {memory_ballast: }\n" FINE,
     "leave it out; the processor memory_limiter bounds the memory"},
    {"receivers: {nop: , hostmetrics: }\nexporters: {nop: }\n" FINE,
     "this build does not: let Prometheus' node_exporter serve them"},
    {PLAIN "connectors: {forwrad: }\n" FINE, "(did you mean \"forward\"?)"},
    {PLAIN "connectors: {nop: }\n" FINE, "connectors::nop: unknown type: \"nop\""},
    {PLAIN "connectors: {forward: {copies: 2}}\n" FINE,
     "connectors::forward::copies: found an unknown key, expected none at all here"},
    {PLAIN "connectors: [forward]\n" FINE,
     "otel.yaml:4:13: connectors: found a list, expected a map of components"},
    {CONNECTED("traces: {receivers: [nop], processors: [forward], exporters: [nop]}"),
     "references processor \"forward\" which is not configured; expected one of those below "
     "processors"},
    {CONNECTED("traces: {receivers: [nop], exporters: [forwrad]}"),
     "otel.yaml:5:62: service::pipelines::traces: references exporter \"forwrad\" which is not "
     "configured; expected one of those below exporters or connectors (did you mean "
     "\"forward\"?)"},
    {CONNECTED("traces: {receivers: [nop], exporters: [forward]}"),
     "otel.yaml:4:14: connectors::forward: connector \"forward\" used as exporter in [traces] "
     "pipeline but not used in any supported receiver pipeline; expected it among the receivers of "
     "a pipeline of traces"},
    {CONNECTED("traces: {receivers: [forward], exporters: [nop]}, traces/b: {receivers: [nop, "
               "forward], exporters: [nop]}"),
     "otel.yaml:4:14: connectors::forward: connector \"forward\" used as receiver in [traces "
     "traces/b] pipeline but not used in any supported exporter pipeline; expected it among the "
     "exporters of a pipeline of traces"},
    /* Used in a way that it supports elsewhere, but not here. */
    {CONNECTED("traces: {receivers: [nop], exporters: [forward]}, traces/b: {receivers: [forward], "
               "exporters: [nop]}, logs: {receivers: [forward], exporters: [nop]}"),
     "connector \"forward\" used as receiver in [logs] pipeline but not used in any supported "
     "exporter pipeline; expected it among the exporters of a pipeline of logs"},
    {CONNECTED("logs: {receivers: [nop], exporters: [count]}"),
     "connectors::count: connector \"count\" used as exporter in [logs] pipeline but not used in "
     "any supported receiver pipeline; expected it among the receivers of a pipeline of metrics "
     "and logs"},
    {CONNECTED("metrics: {receivers: [nop], exporters: [count]}, traces: {receivers: [nop], "
               "exporters: [count]}, metrics/b: {receivers: [count], exporters: [nop]}"),
     "connector \"count\" used as exporter in [metrics] pipeline but not used in any supported "
     "receiver pipeline; it does not support metrics there"},
    {CONNECTED("traces: {receivers: [nop, forward], exporters: [forward, nop]}"),
     "otel.yaml:4:14: connectors::forward: cycle detected: connector \"forward\" (traces to "
     "traces) -> connector \"forward\" (traces to traces)"},
    {CONNECTED("traces/in: {receivers: [nop], exporters: [forward]}, traces: {receivers: "
               "[forward/2], processors: [batch], exporters: [forward]}, traces/b: {receivers: "
               "[forward], exporters: [forward/2, forward/3]}, traces/out: {receivers: "
               "[forward/3], exporters: [nop]}"),
     "cycle detected: connector \"forward\" (traces to traces) -> connector \"forward/2\" (traces "
     "to traces) -> processor \"batch\" in pipeline \"traces\" -> connector \"forward\" (traces to "
     "traces)"},
    {"receivers: {nop: , otlp: {protocols: {grpc: , htttp: }}}\nexporters: {nop: }\n" FINE,
     "otel.yaml:1:47: receivers::otlp::protocols::htttp: found an unknown key, expected one of "
     "this section (did you mean \"http\"?)"},
    {"receivers: {nop: {foo: 1}}\nexporters: {nop: }\n" FINE,
     "receivers::nop::foo: found an unknown key, expected none at all here"},
    {"receivers: {nop: , otlp: }\nexporters: {nop: }\n" FINE,
     "receivers::otlp::protocols: must specify at least one protocol"},
    {"receivers: {nop: 5}\nexporters: {nop: }\n" FINE,
     "receivers::nop: found the number 5, expected a map"},
    {"receivers: {nop: , 'nop/ a': , nop/a: }\nexporters: {nop: }\n" FINE,
     "otel.yaml:1:32: receivers::nop/a: duplicate name \"nop/a\""},
    {"receivers: {nop: , nop/: }\nexporters: {nop: }\n" FINE,
     "the part after / should not be empty"},
    {PLAIN "service: {}", "service::pipelines: service must have at least one pipeline"},
    {PLAIN "service: ", "service::pipelines: service must have at least one pipeline"},
    {PLAIN, "service::pipelines: service must have at least one pipeline"},
    {PLAIN "service: {pipelines: {}}", "service must have at least one pipeline"},
    {PIPELINE("traces: {exporters: [nop]}"),
     "otel.yaml:4:23: service::pipelines::traces: must have at least one receiver"},
    {PIPELINE("traces: {receivers: [nop], exporters: []}"),
     "service::pipelines::traces: must have at least one exporter"},
    {PIPELINE("traces: {receivers: [nop/2], exporters: [nop]}"),
     "otel.yaml:4:44: service::pipelines::traces: references receiver \"nop/2\" which is not "
     "configured; expected one of those below receivers"},
    {PIPELINE("traces: {receivers: [nop], processors: [bacth], exporters: [nop]}"),
     "references processor \"bacth\" which is not configured; expected one of those below "
     "processors (did you mean \"batch\"?)"},
    {PIPELINE("traces: {receivers: [nop], exporters: [otlp_http]}"),
     "references exporter \"otlp_http\" which is not configured"},
    {PLAIN "service: {extensions: [zpages], pipelines: {traces: {receivers: [nop], exporters: "
           "[nop]}}}",
     "otel.yaml:4:24: service::extensions: references extension \"zpages\" which is not "
     "configured"},
    {PIPELINE("traces: {receivers: [nop], processors: [batch, batch], exporters: [nop]}"),
     "otel.yaml:4:70: service::pipelines::traces: references processor \"batch\" multiple times"},
    {PIPELINE("traces: {receivers: nop, exporters: [nop]}"),
     "service::pipelines::traces::receivers: found the string \"nop\", expected a list"},
    {PIPELINE("traces: {receivers: 'nop,otlp', exporters: [nop]}"), "expected a list"},
    {PIPELINE("traces: {receivers: {nop: }, exporters: [nop]}"), "found a map, expected a list"},
    {PIPELINE("traces: {receivers: [nop, null], exporters: [nop]}"),
     "service::pipelines::traces::receivers::1: found null, expected the name of a component"},
    {PIPELINE("traces: {receivers: [5], exporters: [nop]}"), "found the number 5, expected"},
    {PIPELINE("traces: x"), "service::pipelines::traces: found the string \"x\", expected a map"},
    {PIPELINE("traces: '${nope:x}'"),
     "service::pipelines::traces: scheme \"nope\" is not supported"},
    {PIPELINE("traces: {receivers: [nop], exporters: [nop], recievers: [nop]}"),
     "service::pipelines::traces::recievers: found an unknown key"},
    {PIPELINE("trace: {receivers: [nop], exporters: [nop]}"),
     "service::pipelines::trace: unknown pipeline signal: \"trace\"; expected traces, metrics, "
     "logs or profiles (did you mean \"traces\"?)"},
    {PIPELINE("traces/: {receivers: [nop], exporters: [nop]}"),
     "in \"traces/\" id: the part after / should not be empty"},
    {PIPELINE("/x: {receivers: [nop], exporters: [nop]}"), "the part before / should not be empty"},
    {PIPELINE("profiles: {receivers: [otlp], processors: [batch], exporters: [debug]}"),
     "otel.yaml:4:23: service::pipelines::profiles: failed to create \"debug\" exporter, in "
     "pipeline \"profiles\": telemetry type is not supported: found profiles, expected traces, "
     "metrics and logs"},
    {PLAIN "service: {pipeline: {}, pipelines: {traces: {receivers: [nop], exporters: [nop]}}}",
     "service::pipeline: found an unknown key, expected one of this section (did you mean "
     "\"pipelines\"?)"},
    {PLAIN FINE "processors: {}\n", "otel.yaml:5:1: found the key \"processors\" a second time"},
};

static void each_mistake_has_one_problem_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct load_result result = load_text(mistakes[i].yaml);
        assert_problem(&result, mistakes[i].problem);
        if (result.problems.count != 1)
            fail_msg("%s:\n%s", mistakes[i].yaml, problems_to_text(&result.problems));
        load_result_clear(&result);
    }
}

static void all_missing_sections_are_reported(void **state)
{
    struct load_result result = load_text("processors: {batch: }");
    (void)state;
    assert_int_equal(result.problems.count, 3);
    assert_problem(&result, "no receiver configuration specified in config");
    assert_problem(&result, "no exporter configuration specified in config");
    assert_problem(&result, "service must have at least one pipeline");
    load_result_clear(&result);
}

static const char *const fine[] = {
    PIPELINE("traces: {receivers: [nop], exporters: [nop]}"),
    PIPELINE("traces: {receivers: [nop, nop], exporters: [nop, nop]}"),
    PIPELINE("profiles: {receivers: [nop], exporters: [nop]}"),
    PIPELINE("traces/a/b: {receivers: [' nop '], processors: , exporters: [nop]}"),
    PLAIN "connectors: \nextensions: \n" FINE,
    CONNECTED("traces: {receivers: [nop], exporters: [nop]}"), /* not used at all */
    CONNECTED("traces: {receivers: [nop], exporters: [forward, nop, forward]}, traces/b: "
              "{receivers: [forward, nop], exporters: [nop]}, logs: {receivers: [nop], exporters: "
              "[forward]}, logs/b: {receivers: [forward, forward], exporters: [nop]}"),
    CONNECTED("traces: {receivers: [nop], exporters: [count]}, logs: {receivers: [nop], "
              "exporters: [count]}, metrics: {receivers: [count], exporters: [nop]}"),
    "receivers::nop: \nexporters::nop: \nservice::pipelines::traces::receivers: [nop]\n"
    "service::pipelines::traces::exporters: [nop]\n",
    "receivers: {nop: &a {}}\nexporters: {nop: *a}\n" FINE,
};

static void what_the_go_collector_loads_loads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        struct load_result result = load_text(fine[i]);
        assert_loaded(&result);
        assert_int_equal(result.problems.count, 0);
        load_result_clear(&result);
    }
}

/* The second would be merged with the first, map by map. */
static void keys_of_many_parts_are_refused(void **state)
{
    enum { PARTS = 20000 };
    char *part = mem_alloc(3 * PARTS + 1);
    char *text = mem_alloc(2 * 3 * PARTS + 1024);
    (void)state;
    for (size_t i = 0; i < PARTS; i++)
        memcpy(part + 3 * i, "a::", 3);
    part[3 * PARTS] = '\0';
    sprintf(text, "? %sx\n: 1\n? %sy\n: 2\n" FINE, part, part);
    struct load_result result = load_text(text);
    assert_null(result.config);
    assert_problem(&result, "otel.yaml:1:3: lists and maps nest deeper than 64");
    assert_problem(&result, "otel.yaml:3:3: lists and maps nest deeper than 64");
    load_result_clear(&result);
    part[3 * 62] = '\0';
    sprintf(text, PLAIN FINE "processors::nop::%sx: 1\n", part);
    result = load_text(text);
    assert_problem(&result, "otel.yaml:5:1: lists and maps nest deeper than 64");
    load_result_clear(&result);
    part[3 * 61] = '\0';
    sprintf(text, PLAIN FINE "processors::nop::%sx: 1\n", part);
    result = load_text(text);
    assert_problem(&result, "processors::nop::a: found an unknown key");
    assert_int_equal(result.problems.count, 1);
    load_result_clear(&result);
    mem_free(part);
    mem_free(text);
}

static void a_connector_named_as_an_exporter_is_ambiguous(void **state)
{
    struct load_result result =
        load_text("receivers: {nop: , forward/a: }\nexporters: {nop: , forward: }\n"
                  "connectors: {forward: , forward/a: }\n" FINE);
    (void)state;
    assert_problem(&result, "otel.yaml:3:14: connectors::forward: ambiguous ID: Found both "
                            "\"forward\" exporter and \"forward\" connector. Change one of the "
                            "components' IDs to eliminate ambiguity (e.g. rename \"forward\" "
                            "connector to \"forward/connector\")");
    assert_problem(&result, "otel.yaml:3:25: connectors::forward/a: ambiguous ID: Found both "
                            "\"forward/a\" receiver and \"forward/a\" connector.");
    load_result_clear(&result);
}

static const struct config_pipeline *pipeline_of(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->pipelines_count; i++)
        if (strcmp(config->pipelines[i].id, id) == 0)
            return &config->pipelines[i];
    fail_msg("no pipeline %s", id);
    return NULL;
}

static void pipelines_know_how_deep_they_are_and_how_many_exporters_they_lead_to(void **state)
{
    struct load_result result = load_text(CONNECTED(
        "traces/c: {receivers: [forward, forward/2], exporters: [nop, debug]}, traces/b: "
        "{receivers: [forward], exporters: [forward/2, nop]}, traces/a: {receivers: [nop], "
        "exporters: [forward, nop, count]}, metrics: {receivers: [count], exporters: [nop]}, "
        "logs: {receivers: [nop], exporters: [nop]}"));
    (void)state;
    assert_loaded(&result);
    static const struct {
        const char *id;
        size_t depth;
        unsigned destinations;
    } expected[] = {{"traces/a", 0, 7}, /* nop, count, b's 3, c's 2 */
                    {"traces/b", 1, 3},
                    {"traces/c", 2, 2},
                    {"metrics", 1, 1},
                    {"logs", 0, 1}};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct config_pipeline *pipeline = pipeline_of(result.config, expected[i].id);
        assert_int_equal(pipeline->depth, expected[i].depth);
        assert_int_equal(pipeline->destinations, expected[i].destinations);
    }
    assert_int_equal(result.config->depth, 2);
    load_result_clear(&result);
}

/* Each connector doubles what the one before it sends. */
static void the_ways_through_connectors_are_bounded(void **state)
{
    char yaml[16384];
    (void)state;
    for (unsigned doublings = 16; doublings <= 64; doublings++) {
        int length = sprintf(yaml, "receivers: {nop: }\nexporters: {nop: }\nconnectors: {");
        for (unsigned i = 0; i < doublings; i++)
            length += sprintf(yaml + length, "forward/%u: , ", i);
        length +=
            sprintf(yaml + length, "}\nservice:\n  pipelines:\n    traces: {receivers: [nop], "
                                   "exporters: [forward/0]}\n");
        for (unsigned i = 0; i < doublings; i++)
            for (unsigned j = 0; j < 2; j++) {
                length += sprintf(yaml + length,
                                  "    traces/%u-%u: {receivers: [forward/%u], "
                                  "exporters: [",
                                  i, j, i);
                length += i + 1 < doublings ? sprintf(yaml + length, "forward/%u]}\n", i + 1)
                                            : sprintf(yaml + length, "nop]}\n");
            }
        assert_true((size_t)length < sizeof(yaml));
        struct load_result result = load_text(yaml);
        if (doublings > 16)
            assert_problem(&result, "service::pipelines::traces: paths through connectors lead "
                                    "from here to more than 65536 exporters");
        else
            assert_int_equal(pipeline_of(result.config, "traces")->destinations, 65536);
        load_result_clear(&result);
    }
}

static void the_graph_is_as_written(void **state)
{
    struct load_result result = load_text(
        "extensions: {health_check: , health_check/2: }\n"
        "receivers: {otlp: {protocols: {grpc: }}, nop: }\n"
        "processors: {batch: , batch/b: }\n"
        "exporters: {otlphttp/x: {endpoint: 'http://h'}, nop: }\n"
        "service: {extensions: [health_check], pipelines: {traces: {receivers: [otlp, nop, otlp], "
        "processors: [batch/b, batch], exporters: [otlphttp/x, otlphttp/x]}, logs/l: {receivers: "
        "[otlp], exporters: [otlphttp/x]}}}\n");
    (void)state;
    assert_loaded(&result);
    const struct config *config = result.config;
    assert_int_equal(config->components_count, 8);
    assert_string_equal(config->components[0].id, "health_check");
    assert_true(config->components[0].is_used);
    assert_false(config->components[1].is_used);
    assert_int_equal(config->extensions_count, 1);
    assert_int_equal(config->pipelines_count, 2);
    const struct config_pipeline *traces = &config->pipelines[0];
    assert_int_equal(traces->signal, TRACES);
    assert_int_equal(traces->receivers_count, 2);
    assert_string_equal(traces->receivers[1]->id, "nop");
    assert_int_equal(traces->processors_count, 2);
    assert_string_equal(traces->processors[0]->id, "batch/b");
    assert_int_equal(traces->exporters_count, 1);
    assert_string_equal(traces->exporters[0]->id, "otlphttp/x");
    assert_string_equal(traces->exporters[0]->factory->type, "otlp_http");
    assert_string_equal(traces->exporters[0]->alias, "otlphttp");
    assert_null(traces->receivers[0]->alias);
    assert_string_equal(config->pipelines[1].id, "logs/l");
    assert_ptr_equal(config->pipelines[1].receivers[0], traces->receivers[0]);
    assert_int_equal(result.problems.warnings_count, 1);
    assert_warning(&result, "otel.yaml:4:13: exporters::otlphttp/x: \"otlphttp\" alias is "
                            "deprecated; use \"otlp_http\" instead");
    load_result_clear(&result);
}

static void names_of_later_collectors_work_as_well(void **state)
{
    (void)state;
    struct load_result result = load_text(
        "receivers: {nop: }\nprocessors: {batch_up/a: {send_batch_size: 3}}\nexporters: {nop: }\n"
        "service: {pipelines: {traces: {receivers: [nop], processors: [batch_up/a], exporters: "
        "[nop]}}}\n");
    assert_loaded(&result);
    const struct config_component *batch = result.config->pipelines[0].processors[0];
    assert_string_equal(batch->factory->type, "batch");
    assert_string_equal(batch->id, "batch_up/a");
    assert_null(batch->alias); /* nothing to rename */
    assert_int_equal(result.problems.warnings_count, 0);
    load_result_clear(&result);
}

static void problems_of_all_kinds_come_together_in_file_order(void **state)
{
    struct load_result result = load_text("receivers:\n"
                                          "  otlp: {protocols: {gprc: }}\n"
                                          "  kafka: \n"
                                          "processors:\n"
                                          "  batch: {timeout: 5x}\n"
                                          "exporters:\n"
                                          "  nop:\n"
                                          "  debug: {a: '${x:y}'}\n"
                                          "service:\n"
                                          "  pipelines:\n"
                                          "    traces: {receivers: [otlp, kafka], exporters: [x]}\n"
                                          "    profiles: {receivers: [otlp], exporters: [debug]}\n"
                                          "more: 1\n");
    static const char *const starts[] = {
        "otel.yaml:2:22: ", "otel.yaml:3:3: ",   "otel.yaml:5:20: ", "otel.yaml:8:11: ",
        "otel.yaml:8:14: ", "otel.yaml:11:52: ", "otel.yaml:12:5: ", "otel.yaml:13:1: "};
    (void)state;
    assert_null(result.config);
    if (result.problems.count != sizeof(starts) / sizeof(starts[0]))
        fail_msg("%s", problems_to_text(&result.problems));
    for (size_t i = 0; i < result.problems.count; i++)
        if (strncmp(result.problems.texts[i], starts[i], strlen(starts[i])) != 0)
            fail_msg("%s: %s", starts[i], result.problems.texts[i]);
    load_result_clear(&result);
}

#define APPENDIX_HEAD                                                                              \
    "receivers:\n"                                                                                 \
    "  otlp:\n"                                                                                    \
    "    protocols:\n"                                                                             \
    "      grpc:\n"                                                                                \
    "        endpoint: 0.0.0.0:4317\n"                                                             \
    "      http:\n"                                                                                \
    "        endpoint: 0.0.0.0:4318\n"                                                             \
    "  otlp/profiles:\n"                                                                           \
    "    protocols:\n"                                                                             \
    "      grpc:\n"                                                                                \
    "        endpoint: 0.0.0.0:4327\n"                                                             \
    "processors:\n"                                                                                \
    "  batch:\n"                                                                                   \
    "    timeout: 1s\n"                                                                            \
    "  resource:\n"                                                                                \
    "    attributes:\n"                                                                            \
    "    - key: service.name\n"                                                                    \
    "      from_attribute: service.name\n"                                                         \
    "      action: upsert\n"                                                                       \
    "exporters:\n"                                                                                 \
    "  otlphttp/traces:\n"                                                                         \
    "    endpoint: https://otlp.example.com\n"                                                     \
    "    headers:\n"                                                                               \
    "      x-token: ${CONFIG_TEST_TOKEN}\n"                                                        \
    "  otlphttp/pyroscope:\n"                                                                      \
    "    endpoint: http://pyroscope:4040\n"                                                        \
    "service:\n"                                                                                   \
    "  pipelines:\n"                                                                               \
    "    traces:\n"                                                                                \
    "      receivers: [otlp]\n"                                                                    \
    "      processors: [batch, resource]\n"                                                        \
    "      exporters: [otlphttp/traces]\n"

static void a_gateway_of_traces_and_profiles_loads(void **state)
{
    (void)state;
    unsetenv("CONFIG_TEST_TOKEN");
    struct load_result result = load_text(APPENDIX_HEAD);
    assert_loaded(&result);
    assert_warning(&result, "otel.yaml:24:16: exporters::otlphttp/traces::headers::x-token: "
                            "Configuration references unset environment variable "
                            "\"CONFIG_TEST_TOKEN\"");
    assert_int_equal(result.problems.warnings_count, 3);
    load_result_clear(&result);
    result = load_text(APPENDIX_HEAD "    profiles:\n"
                                     "      receivers: [otlp/profiles]\n"
                                     "      processors: [batch]\n"
                                     "      exporters: [otlphttp/pyroscope]\n");
    assert_loaded(&result);
    assert_int_equal(result.config->pipelines_count, 2);
    load_result_clear(&result);
}

/* A load from several places. */
static struct load_result load_request(struct config_request request, const char *const *files)
{
    struct load_result result;
    request.factories = fake_factories;
    while (request.locations != NULL && request.locations[request.locations_count] != NULL)
        request.locations_count++;
    while (request.settings != NULL && request.settings[request.settings_count] != NULL)
        request.settings_count++;
    memory_files_set(files);
    result.config = config_load(&request, &result.problems);
    memory_files_set(NULL);
    return result;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void maps_merge_deeply_and_lists_are_replaced(void **state)
{
    static const char *const files[] = {
        "a.yaml",
        "receivers: {nop: }\nexporters: {nop: }\n"
        "processors: {probe: {count: 1, texts: [a, b], always: {size: 2}}}\n" FINE,
        "b.yaml", "processors: {probe: {texts: [c], always: {name: x}}}\n", NULL};
    struct load_result result =
        load_request((struct config_request){.locations = LIST("a.yaml", "b.yaml")}, files);
    const struct probe_config *probe = probe_of(&result);
    (void)state;
    assert_int_equal(probe->count, 1);
    assert_int_equal(probe->texts.count, 1);
    assert_int_equal(probe->always.size, 2);
    assert_string_equal(probe->always.name, "x");
    load_result_clear(&result);
}

static void null_wipes_what_an_empty_map_keeps(void **state)
{
    static const char *const files[] = {
        "a.yaml",
        "receivers: {nop: }\nexporters: {nop: }\nprocessors: {probe: }\n"
        "service: {pipelines: {traces: {receivers: [nop], processors: [probe], exporters: "
        "[nop]}}}\n",
        "null.yaml",
        "processors:\n",
        "empty.yaml",
        "processors: {}\n",
        NULL};
    struct load_result result =
        load_request((struct config_request){.locations = LIST("a.yaml", "empty.yaml")}, files);
    (void)state;
    assert_loaded(&result);
    load_result_clear(&result);
    result = load_request((struct config_request){.locations = LIST("a.yaml", "null.yaml")}, files);
    assert_int_equal(result.problems.count, 1);
    assert_problem(&result, "a.yaml:4:63: service::pipelines::traces: references processor "
                            "\"probe\" which is not configured");
    load_result_clear(&result);
}

static void settings_come_after_all_files(void **state)
{
    struct load_result result = load_request(
        (struct config_request){
            .locations = LIST("yaml:receivers::nop: ", "yaml:exporters::nop: ",
                              "yaml:processors::probe::count: 5", "yaml:" FINE),
            .settings = LIST("processors.probe.count=7", " processors.probe.text = a=b ",
                             "processors.probe.texts=[x, y]", "processors.probe.always.size=3")},
        LIST("none", ""));
    const struct probe_config *probe = probe_of(&result);
    (void)state;
    assert_int_equal(probe->count, 7);
    assert_string_equal(probe->text, "a=b");
    assert_int_equal(probe->texts.count, 2);
    assert_int_equal(probe->always.size, 3);
    load_result_clear(&result);
}

static const struct {
    const char *location;
    const char *setting;
    const char *problem;
} sources[] = {
    {"missing.yaml", NULL, "missing.yaml:1:1: unable to read the file missing.yaml: No such file"},
    {"file:missing.yaml", NULL, "missing.yaml:1:1: unable to read the file missing.yaml"},
    {"9:x", NULL, "9:x:1:1: invalid uri: \"9:x\""},
    {"vault:x", NULL, "vault:x:1:1: scheme \"vault\" is not supported for uri \"vault:x\""},
    {"https://h/c", NULL, "configuration from http and https is not supported"},
    {"yaml:a::b: [s3cret", NULL, "yaml:a::b:2:1: this is not valid YAML"},
    {"env:CONFIG_TEST_LIST", NULL, "env:CONFIG_TEST_LIST:1:1: found a list, expected a map"},
    {NULL, "processors.probe.count", "--set=processors.probe.count:1:1: missing equal sign"},
    {NULL, "processors.probe.count=[", "--set=processors.probe.count:2:1: this is not"},
    {NULL, NULL,
     "command line:1:1: found 0 configurations, expected 1 to 100; at least one config "
     "flag must be provided"},
};

static void sources_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    setenv("CONFIG_TEST_LIST", "[a]", 1);
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        struct load_result result =
            load_request((struct config_request){.locations = LIST(sources[i].location),
                                                 .settings = LIST(sources[i].setting)},
                         LIST("none", ""));
        assert_problem(&result, sources[i].problem);
        assert_int_equal(result.problems.count, 1);
        assert_null(strstr(result.problems.texts[0], "s3cret"));
        load_result_clear(&result);
    }
}

static void a_whole_configuration_may_come_from_the_environment(void **state)
{
    (void)state;
    setenv("CONFIG_TEST_WHOLE", PLAIN FINE, 1);
    struct load_result result = load_request(
        (struct config_request){.locations = LIST("env:CONFIG_TEST_WHOLE")}, LIST("none", ""));
    assert_loaded(&result);
    load_result_clear(&result);
}

static int failing_open(const char *path, int flags, mode_t mode)
{
    (void)path;
    (void)flags;
    (void)mode;
    return -EACCES;
}

static ssize_t failing_read(int fd, void *data, size_t size)
{
    (void)fd;
    (void)data;
    (void)size;
    return -EIO;
}

static void failures_of_the_file_system_are_problems(void **state)
{
    struct fileops ops;
    struct load_result result;
    static const char *const location = "otel.yaml";
    struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = fake_factories};
    (void)state;
    memory_files_set(LIST(location, PLAIN FINE));
    ops = *fileops();
    ops.open = failing_open;
    fileops_replace(&ops);
    result.config = config_load(&request, &result.problems);
    assert_problem(&result, "otel.yaml:1:1: unable to read the file otel.yaml: Permission denied");
    load_result_clear(&result);
    memory_files_set(LIST(location, PLAIN FINE));
    ops = *fileops();
    ops.read = failing_read;
    fileops_replace(&ops);
    result.config = config_load(&request, &result.problems);
    assert_problem(&result, "unable to read the file otel.yaml: Input/output error");
    load_result_clear(&result);
    memory_files_set(NULL);
}

static void feature_gates_change_what_is_allowed(void **state)
{
    struct feature_gates gates = feature_gates_default();
    struct error error;
    static const char *const files[] = {
        "a.yaml",
        PLAIN "extensions: {health_check: , health_check/2: }\n"
              "service: {extensions: [health_check], pipelines: {profiles: {receivers: "
              "[nop], exporters: [nop]}}}\n",
        "b.yaml",
        "service: {extensions: [health_check/2, health_check]}\n",
        "c.yaml",
        PLAIN,
        NULL};
    struct config_request request = {.locations = LIST("a.yaml", "b.yaml"), .gates = &gates};
    (void)state;
    struct load_result result = load_request(request, files);
    assert_loaded(&result);
    assert_string_equal(result.config->extensions[0]->id, "health_check/2");
    load_result_clear(&result);
    assert_true(feature_gates_parse(&gates, "confmap.enableMergeAppendOption", &error));
    result = load_request(request, files);
    assert_loaded(&result);
    assert_int_equal(result.config->extensions_count, 2);
    assert_string_equal(result.config->extensions[0]->id, "health_check");
    load_result_clear(&result);
    assert_true(feature_gates_parse(&gates, "-service.profilesSupport", &error));
    result = load_request(request, files);
    assert_problem(&result, "gate");
    load_result_clear(&result);
    assert_true(feature_gates_parse(&gates, "+service.AllowNoPipelines", &error));
    result =
        load_request((struct config_request){.locations = LIST("c.yaml"), .gates = &gates}, files);
    assert_loaded(&result);
    load_result_clear(&result);
}

static void wrong_feature_gates_are_reported_in_the_go_collectors_words(void **state)
{
    struct feature_gates gates = feature_gates_default();
    struct error error;
    (void)state;
    assert_true(feature_gates_parse(&gates, "", &error));
    assert_true(gates.is_enabled[GATE_PROFILES_SUPPORT]);
    assert_false(feature_gates_parse(&gates, "x,,-pdata.useProtoPooling,", &error));
    assert_non_null(strstr(error.text, "no such feature gate \"x\". valid gates: [confmap.enable"));
    assert_non_null(strstr(error.text, "; empty feature gate identifier at index 1"));
    assert_non_null(strstr(error.text, "; empty feature gate identifier at index 3"));
    assert_false(feature_gates_parse(&gates, "-", &error));
}

static void a_file_above_the_limit_is_refused(void **state)
{
    size_t size = (size_t)CONFIG_FILE_BYTES_MAX + 1;
    char *bytes = malloc(size);
    struct load_result result;
    static const char *const location = "otel.yaml";
    struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = fake_factories};
    (void)state;
    memset(bytes, '#', size);
    memory_files_set_bytes(bytes, size);
    result.config = config_load(&request, &result.problems);
    assert_problem(&result, "it is larger than 8388608 bytes");
    load_result_clear(&result);
    memory_files_set(NULL);
    free(bytes);
}

static void a_hundred_problems_are_reported_and_the_rest_counted(void **state)
{
    char text[8192] = PLAIN FINE;
    size_t length = strlen(text);
    (void)state;
    for (int i = 0; i < 150; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "key%d: 1\n", i);
    struct load_result result = load_text(text);
    assert_int_equal(result.problems.count, 101);
    assert_string_equal(result.problems.texts[100], "… and 50 more");
    load_result_clear(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_has_one_problem_with_its_place),
        cmocka_unit_test(all_missing_sections_are_reported),
        cmocka_unit_test(what_the_go_collector_loads_loads),
        cmocka_unit_test(keys_of_many_parts_are_refused),
        cmocka_unit_test(a_connector_named_as_an_exporter_is_ambiguous),
        cmocka_unit_test(pipelines_know_how_deep_they_are_and_how_many_exporters_they_lead_to),
        cmocka_unit_test(the_ways_through_connectors_are_bounded),
        cmocka_unit_test(the_graph_is_as_written),
        cmocka_unit_test(names_of_later_collectors_work_as_well),
        cmocka_unit_test(problems_of_all_kinds_come_together_in_file_order),
        cmocka_unit_test(a_gateway_of_traces_and_profiles_loads),
        cmocka_unit_test(maps_merge_deeply_and_lists_are_replaced),
        cmocka_unit_test(null_wipes_what_an_empty_map_keeps),
        cmocka_unit_test(settings_come_after_all_files),
        cmocka_unit_test(sources_that_cannot_be_read_are_named),
        cmocka_unit_test(a_whole_configuration_may_come_from_the_environment),
        cmocka_unit_test(failures_of_the_file_system_are_problems),
        cmocka_unit_test(feature_gates_change_what_is_allowed),
        cmocka_unit_test(wrong_feature_gates_are_reported_in_the_go_collectors_words),
        cmocka_unit_test(a_file_above_the_limit_is_refused),
        cmocka_unit_test(a_hundred_problems_are_reported_and_the_rest_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
