/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations at random: each line below is drawn on its own. */
#include "tests/attack/setup.h"

#include <string.h>

struct drawing {
    struct random_source random;
    struct bytes_out *out;
};

static uint64_t below(struct drawing *drawing, uint64_t bound)
{
    return random_below(&drawing->random, bound);
}

static void put(struct drawing *drawing, const char *text)
{
    bytes_add_text(drawing->out, text);
}

#define PUT_ONE_OF(drawing, ...)                                                                   \
    do {                                                                                           \
        static const char *const texts[] = {__VA_ARGS__};                                          \
        put(drawing, texts[below(drawing, sizeof(texts) / sizeof(texts[0]))]);                     \
    } while (0)

static void put_receivers(struct drawing *drawing)
{
    put(drawing, "receivers:\n"
                 "  otlp:\n"
                 "    protocols:\n"
                 "      grpc:\n"
                 "        endpoint: 127.0.0.1:${env:ATTACK_GRPC}\n"
                 "        include_metadata: true\n");
    PUT_ONE_OF(drawing, "", "        max_recv_msg_size_mib: 64\n",
               "        max_concurrent_streams: 3\n");
    put(drawing, "      http:\n"
                 "        endpoint: 127.0.0.1:${env:ATTACK_HTTP}\n"
                 "        include_metadata: true\n");
    PUT_ONE_OF(drawing, "", "        max_request_body_size: 100000\n",
               "        cors: {allowed_origins: ['http://*.com']}\n");
    put(drawing, "  pyroscope:\n"
                 "    endpoint: 127.0.0.1:${env:ATTACK_PYROSCOPE}\n");
}

static void put_join(struct drawing *drawing)
{
    put(drawing, "  trace_profile_join:\n"
                 "    control: {endpoint: '127.0.0.1:${env:ATTACK_CONTROL}'}\n"
                 "    index: {entries: 1000, bytes: 1MiB}\n");
    PUT_ONE_OF(drawing, "    hold: 0s\n", "    hold: 200ms\n", "    hold: 700ms\n");
    PUT_ONE_OF(drawing, "", "    hold_bytes: 20000\n");
    PUT_ONE_OF(drawing, "", "    cap: 3\n");
    PUT_ONE_OF(drawing, "", "    attributes: []\n",
               "    attributes: [span_name, http.route, status_class, duration_bucket, "
               "span.http.request.method, resource.host.name]\n");
    PUT_ONE_OF(drawing, "", "    span_id: root\n");
    PUT_ONE_OF(drawing, "", "    count_for: [span, root]\n",
               "    count_for: [span, root, ancestors]\n");
    PUT_ONE_OF(drawing, "", "    repair_identity: false\n");
    PUT_ONE_OF(drawing, "", "    single_trace: \"off\"\n");
    PUT_ONE_OF(drawing, "", "    mark: all\n", "    mark: observed\n", "    mark: \"off\"\n");
    PUT_ONE_OF(drawing, "",
               "    links: {profile: 'http://g/{service_name}/{span_id}?from={from_ms}', "
               "trace: 'http://g/{trace_id}'}\n");
    PUT_ONE_OF(drawing, "", "    window_fallback: true\n");
    PUT_ONE_OF(drawing, "", "    keep: [slow: 1us, error, sampled]\n", "    keep: [error]\n",
               "    keep: [sampled]\n    keep_unlinked: false\n");
}

static void put_processors(struct drawing *drawing)
{
    put(drawing, "processors:\n"
                 "  memory_limiter: {check_interval: 1s, limit_mib: 64}\n"
                 "  resource:\n"
                 "    attributes:\n"
                 "    - {key: added, value: yes, action: insert}\n"
                 "    - {key: service.name, value: 'one', action: update}\n"
                 "    - {key: host.name, from_attribute: host.id, action: upsert}\n"
                 "    - {key: tenant, from_context: metadata.x-scope-orgid, action: upsert}\n"
                 "    - {key: process.pid, action: delete}\n"
                 "    - {key: k8s.pod.uid, action: hash}\n"
                 "    - {key: container.id, pattern: '^(?P<short>.{3})(?P<rest>.*)$', "
                 "action: extract}\n"
                 "    - {key: thread.id, action: convert, converted_type: int}\n"
                 "    - {pattern: 'telemetry.*', action: delete}\n");
    put(drawing, "  resource_detection:\n    detectors: [env, system]\n"
                 "    system: {hostname_sources: [os]}\n");
    PUT_ONE_OF(drawing, "", "    override: false\n");
    put(drawing, "  batch:\n");
    PUT_ONE_OF(drawing, "    timeout: 20ms\n", "    timeout: 200ms\n", "    timeout: 0s\n");
    PUT_ONE_OF(drawing, "", "    send_batch_size: 3\n    send_batch_max_size: 3\n",
               "    send_batch_size: 50\n    send_batch_max_size: 70\n");
    PUT_ONE_OF(drawing, "",
               "    metadata_keys: [x-scope-orgid]\n    metadata_cardinality_limit: 20\n");
    PUT_ONE_OF(drawing, "", "    wait_for_result: true\n");
    put(drawing, "  profile_limits:\n");
    PUT_ONE_OF(drawing, "    max_stack_depth: 60\n", "    max_stack_depth: 3\n");
    PUT_ONE_OF(drawing, "", "    max_samples: 2\n");
    PUT_ONE_OF(drawing, "", "    max_bytes: 3000\n");
    PUT_ONE_OF(drawing, "", "    max_label_values: 2\n");
    PUT_ONE_OF(drawing, "", "    rename: [{pattern: '[a-m]+', replacement: '<$$0$$0$$0>'}]\n");
    PUT_ONE_OF(drawing, "", "    drop_frames: ['^java', 'syscall']\n");
    put_join(drawing);
}

static void put_queue(struct drawing *drawing)
{
    PUT_ONE_OF(
        drawing, "", "    sending_queue: {enabled: false}\n",
        "    sending_queue: {queue_size: 50, num_consumers: 2}\n",
        "    sending_queue: {storage: file_storage}\n",
        "    sending_queue:\n      storage: file_storage\n      queue_size: 10\n"
        "      sizer: items\n      batch: {flush_timeout: 30ms, min_size: 5, max_size: 9}\n",
        "    sending_queue: {sizer: bytes, queue_size: 3000000, wait_for_result: true}\n",
        "    sending_queue:\n      queue_size: 50000\n      sizer: items\n"
        "      batch: {flush_timeout: 30ms, min_size: 20, max_size: 25, "
        "partition: {metadata_keys: [x-scope-orgid]}}\n",
        "    sending_queue:\n      block_on_overflow: true\n      queue_size: 30\n"
        "      batch: {flush_timeout: 30ms, sizer: bytes, min_size: 2000, max_size: 9000}\n");
}

static void put_retry(struct drawing *drawing)
{
    PUT_ONE_OF(drawing, "    retry_on_failure: {enabled: false}\n",
               "    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, "
               "max_elapsed_time: 300ms}\n");
}

static void put_exporters(struct drawing *drawing)
{
    put(drawing, "exporters:\n  nop:\n  debug:\n    use_internal_logger: false\n"
                 "    output_paths: [/dev/null]\n");
    PUT_ONE_OF(drawing, "    verbosity: detailed\n", "    verbosity: detailed\n",
               "    verbosity: normal\n", "    verbosity: basic\n");
    PUT_ONE_OF(drawing, "", "    top_functions: 0\n", "    top_functions: 100\n");
    put(drawing, "  otlp_http:\n    endpoint: http://127.0.0.1:${env:ATTACK_SINK}\n"
                 "    timeout: 500ms\n");
    PUT_ONE_OF(drawing, "", "    encoding: json\n", "    proto_version: '1.9'\n");
    PUT_ONE_OF(drawing, "", "    compression: none\n", "    compression: zstd\n",
               "    compression: snappy\n", "    compression: x-snappy-framed\n",
               "    compression: zlib\n", "    compression: deflate\n", "    compression: lz4\n");
    put_queue(drawing);
    put_retry(drawing);
    put(drawing, "  otlp_grpc:\n    endpoint: 127.0.0.1:${env:ATTACK_SINK}\n"
                 "    tls: {insecure: true}\n    timeout: 500ms\n");
    PUT_ONE_OF(drawing, "", "    compression: none\n", "    compression: zstd\n",
               "    compression: snappy\n");
    put_queue(drawing);
    put_retry(drawing);
    put(drawing, "  pyroscope:\n    endpoint: http://127.0.0.1:${env:ATTACK_SINK}\n"
                 "    timeout: 500ms\n");
    PUT_ONE_OF(drawing, "    mode: otlp\n", "    mode: ingest\n",
               "    mode: push\n    labels: {max_names: 10, max_value_bytes: 32, add: {a: b}}\n",
               "    mode: ingest\n    labels: {names: {thread.id: tid}}\n", "");
    PUT_ONE_OF(drawing, "", "    compression: none\n");
    PUT_ONE_OF(drawing, "", "    trace_id: \"off\"\n");
    PUT_ONE_OF(drawing, "", "    min_server_version: '1'\n", "    min_pyroscope: '2.0'\n");
    PUT_ONE_OF(drawing, "", "    limits: {max_age: 0s, max_future: 0s}\n",
               "    limits: {max_samples: 3, max_stack_depth: 2, max_age: 0s}\n",
               "    limits: {max_bytes: 131072}\n");
    put_queue(drawing);
    put_retry(drawing);
}

/* Some of the words, in their order, between brackets; each with a chance of 2 in 3. */
static void put_some(struct drawing *drawing, const char *key, const char *const *words,
                     const char *last)
{
    bytes_add_format(drawing->out, "      %s: [", key);
    const char *separator = "";
    for (; *words != NULL; words++) {
        if (below(drawing, 3) == 0)
            continue;
        bytes_add_format(drawing->out, "%s%s", separator, *words);
        separator = ", ";
    }
    bytes_add_format(drawing->out, "%s%s]\n", last[0] != 0 ? separator : "", last);
}

static void put_pipeline(struct drawing *drawing, const char *name)
{
    static const char *const common[] = {"memory_limiter", "resource", "resource_detection",
                                         "batch", NULL};
    static const char *const traces[] = {"memory_limiter", "resource", "resource_detection", NULL};
    static const char *const profiles[] = {"memory_limiter", "profile_limits", "resource",
                                           "resource_detection", NULL};
    static const char *const exporters[] = {"otlp_http", "otlp_grpc", NULL};
    static const char *const profile_exporters[] = {"otlp_http", "otlp_grpc", "pyroscope", NULL};
    bool has_batch = below(drawing, 3) != 0;
    bool is_traces = strncmp(name, "traces", 6) == 0;
    bool is_profiles = strncmp(name, "profiles", 8) == 0;
    bytes_add_format(drawing->out, "    %s:\n      receivers: [otlp%s]\n", name,
                     is_profiles ? ", pyroscope" : "");
    /* The join is in both of its pipelines: it can do nothing in one alone. */
    if (is_profiles || is_traces)
        put_some(drawing, "processors", is_profiles ? profiles : traces,
                 has_batch ? "trace_profile_join, batch" : "trace_profile_join");
    else
        put_some(drawing, "processors", common, "");
    put_some(drawing, "exporters", is_profiles ? profile_exporters : exporters,
             below(drawing, 4) == 0 ? "nop" : "debug");
}

void setup_write(uint64_t seed, struct bytes_out *out)
{
    struct drawing drawing = {.random = {.state = seed * 0xbf58476d1ce4e5b9u}, .out = out};
    put_receivers(&drawing);
    put_processors(&drawing);
    put_exporters(&drawing);
    put(&drawing, "extensions:\n"
                  "  health_check: {endpoint: '127.0.0.1:${env:ATTACK_HEALTH}'}\n"
                  "  zpages: {endpoint: '127.0.0.1:${env:ATTACK_ZPAGES}'}\n"
                  "  pprof: {endpoint: '127.0.0.1:${env:ATTACK_PPROF}'}\n"
                  "  file_storage: {directory: '${env:ATTACK_STORAGE}', "
                  "create_directory: true, max_size: 64MiB}\n"
                  "service:\n"
                  "  extensions: [health_check, zpages, pprof, file_storage]\n");
    PUT_ONE_OF(&drawing, "  lanes: 1\n", "  lanes: 1\n", "  lanes: 2\n");
    put(&drawing, "  budget_mib: 64\n"
                  "  drain_timeout: 5s\n"
                  "  telemetry:\n"
                  "    logs:\n");
    PUT_ONE_OF(&drawing, "      level: info\n", "      level: error\n", "      level: debug\n",
               "      encoding: json\n");
    put(&drawing, "    metrics:\n"
                  "      level: detailed\n"
                  "      readers:\n"
                  "      - pull: {exporter: {prometheus: {host: 127.0.0.1, "
                  "port: '${env:ATTACK_METRICS}'}}}\n"
                  "  pipelines:\n");
    put_pipeline(&drawing, "traces");
    put_pipeline(&drawing, "profiles");
    put_pipeline(&drawing, "metrics");
    put_pipeline(&drawing, "logs");
    if (below(&drawing, 3) == 0)
        put_pipeline(&drawing, "profiles/second");
}
