/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations at random: each line below is drawn on its own. */
#include "tests/attack/setup.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tests/attack/drawing.h"

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
    put_guarded_receivers(drawing);
    put(drawing, "  pyroscope:\n"
                 "    endpoint: 127.0.0.1:${env:ATTACK_PYROSCOPE}\n"
                 "  zipkin:\n"
                 "    endpoint: 127.0.0.1:${env:ATTACK_ZIPKIN}\n"
                 "    include_metadata: true\n");
    PUT_ONE_OF(drawing, "", "    keep_alives_enabled: true\n");
    PUT_ONE_OF(drawing, "", "    parse_string_tags: true\n");
    put(drawing, "  jaeger:\n    protocols:\n"
                 "      grpc: {endpoint: '127.0.0.1:${env:ATTACK_JAEGERGRPC}'}\n"
                 "      thrift_http: {endpoint: '127.0.0.1:${env:ATTACK_JAEGERHTTP}'}\n"
                 "      thrift_binary: {endpoint: '127.0.0.1:${env:ATTACK_JAEGERBINARY}'}\n"
                 "      thrift_compact: {endpoint: '127.0.0.1:${env:ATTACK_JAEGERCOMPACT}'");
    PUT_ONE_OF(drawing, "}\n", ", queue_size: 2, max_packet_size: 3000}\n");
    put(drawing, "  prometheus:\n    config:\n      scrape_configs:\n"
                 "      - job_name: itself\n        scrape_interval: 500ms\n"
                 "        static_configs: [{targets: ['127.0.0.1:${env:ATTACK_PROMETHEUS}', "
                 "'127.0.0.1:${env:ATTACK_SINK}']}]\n");
    PUT_ONE_OF(drawing, "", "        honor_labels: true\n", "        label_limit: 5\n",
               "        metric_relabel_configs: [{source_labels: [__name__], regex: '(.*)_(.*)', "
               "target_label: '$${2}', replacement: '$1$1'}, {regex: 't.*', action: labeldrop}]\n");
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
    put_record_processors(drawing);
    put_statement_processors(drawing);
    put_tail_sampling(drawing);
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
               "max_elapsed_time: 300ms}\n",
               "    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, "
               "max_elapsed_time: 60s}\n");
}

/* Headers of the back-end's requests, from those of the client's. */
static void put_auth(struct drawing *drawing)
{
    PUT_ONE_OF(drawing, "", "", "    auth: {authenticator: headers_setter}\n");
}

static void put_exporters(struct drawing *drawing)
{
    put(drawing, "exporters:\n  nop:\n  explore:\n  debug:\n    use_internal_logger: false\n"
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
    put_auth(drawing);
    put_queue(drawing);
    put_retry(drawing);
    put(drawing, "  otlp_grpc:\n    endpoint: 127.0.0.1:${env:ATTACK_SINK}\n"
                 "    tls: {insecure: true}\n    timeout: 500ms\n");
    PUT_ONE_OF(drawing, "", "    compression: none\n", "    compression: zstd\n",
               "    compression: snappy\n");
    put_auth(drawing);
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
    put(drawing, "  zipkin:\n    endpoint: http://127.0.0.1:${env:ATTACK_SINK}/api/v2/spans\n"
                 "    timeout: 500ms\n");
    PUT_ONE_OF(drawing, "", "    format: proto\n");
    PUT_ONE_OF(drawing, "", "    compression: gzip\n");
    put_queue(drawing);
    put_retry(drawing);
    put_metric_exporters(drawing);
    put_file_exporter(drawing);
}

/* Between brackets; the list ends with NULL. */
static void put_list(struct drawing *drawing, const char *key, const char *const *words)
{
    bytes_add_format(drawing->out, "      %s: [", key);
    for (const char *separator = ""; *words != NULL; separator = ", ", words++)
        bytes_add_format(drawing->out, "%s%s", separator, *words);
    put(drawing, "]\n");
}

enum { WORDS_MAX = 24 };

struct words {
    const char *list[WORDS_MAX + 1];
    unsigned count;
};

static void add_word(struct words *words, const char *word)
{
    assert(words->count < WORDS_MAX);
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

/* Of the list each with a chance of `of` in `among`, in its order. */
static void add_some(struct drawing *drawing, struct words *words, const char *const *list,
                     unsigned of, unsigned among)
{
    for (; *list != NULL; list++)
        if (drawn_below(drawing, among) < of)
            add_word(words, *list);
}

/* The same in any order. */
static void add_shuffled(struct drawing *drawing, struct words *words, const char *const *list,
                         unsigned of, unsigned among)
{
    unsigned first = words->count;
    add_some(drawing, words, list, of, among);
    for (unsigned i = first; i + 1 < words->count; i++) {
        unsigned other = i + (unsigned)drawn_below(drawing, words->count - i);
        const char *word = words->list[i];
        words->list[i] = words->list[other];
        words->list[other] = word;
    }
}

/* What differs between signals. */
struct signal_parts {
    const char *name;
    const char *const *added; /* processors in any order */
    const char *const *exporters;
    const char *const *connectors;
};

static const struct signal_parts signals[] = {
    {"traces",
     (const char *const[]){"attributes", "attributes/spans", "redaction", "probabilistic_sampler",
                           "groupbyattrs", "groupbytrace", "filter", "filter/old", "filter/oldest",
                           "transform", "tail_sampling", NULL},
     (const char *const[]){"zipkin", "file", "explore", NULL},
     (const char *const[]){"span_metrics", "service_graph", "exceptions", "count", "forward",
                           "routing/traces", NULL}},
    {"metrics",
     (const char *const[]){"attributes", "redaction", "groupbyattrs", "filter", "filter/old",
                           "filter/oldest", "transform", "transform/forms", "cumulativetodelta",
                           "deltatocumulative", NULL},
     (const char *const[]){"prometheus", "prometheus_remote_write", "file", NULL},
     (const char *const[]){"count", "forward", "routing/metrics", NULL}},
    {"logs",
     (const char *const[]){"attributes", "redaction", "probabilistic_sampler", "groupbyattrs",
                           "filter", "filter/old", "filter/oldest", "transform", NULL},
     (const char *const[]){"file", NULL},
     (const char *const[]){"count", "forward", "routing/logs", NULL}},
    {"profiles", (const char *const[]){"filter", "transform", NULL},
     (const char *const[]){"file", "explore", NULL},
     (const char *const[]){"profile_metrics", "count", "forward", "routing/profiles", NULL}},
};

static const struct signal_parts *parts_of(const char *pipeline)
{
    const struct signal_parts *parts = signals;
    while (strncmp(parts->name, pipeline, strlen(parts->name)) != 0)
        parts++;
    return parts;
}

/* Which connectors pipelines write to, and so others must read. */
struct joints {
    bool forward_of[sizeof(signals) / sizeof(signals[0])];
    bool routing_of[sizeof(signals) / sizeof(signals[0])];
    struct words metrics; /* what makes them */
    bool exceptions;
};

static void note_connectors(struct joints *joints, const struct signal_parts *parts,
                            const struct words *connectors)
{
    for (unsigned i = 0; i < connectors->count; i++) {
        const char *name = connectors->list[i];
        bool is_known = false;
        for (unsigned j = 0; j < joints->metrics.count; j++)
            is_known |= joints->metrics.list[j] == name;
        if (strcmp(name, "forward") == 0)
            joints->forward_of[parts - signals] = true;
        else if (strncmp(name, "routing", strlen("routing")) == 0)
            joints->routing_of[parts - signals] = true;
        else if (!is_known)
            add_word(&joints->metrics, name);
        joints->exceptions |= strcmp(name, "exceptions") == 0;
    }
}

static void put_processors_of(struct drawing *drawing, const char *name, bool has_added,
                              bool has_join)
{
    static const char *const limits[] = {"memory_limiter", NULL};
    static const char *const profile_limits[] = {"profile_limits", NULL};
    static const char *const resources[] = {"resource", "resource_detection", NULL};
    static const char *const batch[] = {"batch", NULL};
    const struct signal_parts *parts = parts_of(name);
    struct words words = {.count = 0};
    add_some(drawing, &words, limits, 2, 3);
    if (parts->name[0] == 'p')
        add_some(drawing, &words, profile_limits, 2, 3);
    add_some(drawing, &words, resources, 2, 3);
    /* What stands behind it edits what was acknowledged. */
    bool is_batch_first = has_added && drawn_below(drawing, 4) == 0;
    if (is_batch_first)
        add_word(&words, "batch");
    if (has_added)
        add_shuffled(drawing, &words, parts->added, 1, 3);
    if (has_join) {
        add_word(&words, "trace_profile_join");
        /* Which learns of samples. */
        if (parts->name[0] == 't' && drawn_below(drawing, 3) == 0)
            add_word(&words, "tail_sampling/profiled");
    }
    if (!is_batch_first)
        add_some(drawing, &words, batch, 2, 3);
    put_list(drawing, "processors", words.list);
}

static void put_exporters_of(struct drawing *drawing, const char *name, bool has_added,
                             struct joints *joints)
{
    static const char *const exporters[] = {"otlp_http", "otlp_grpc", NULL};
    static const char *const pyroscope[] = {"pyroscope", NULL};
    const struct signal_parts *parts = parts_of(name);
    struct words words = {.count = 0};
    struct words connectors = {.count = 0};
    add_some(drawing, &words, exporters, 2, 3);
    if (parts->name[0] == 'p')
        add_some(drawing, &words, pyroscope, 2, 3);
    if (has_added)
        add_some(drawing, &words, parts->exporters, 1, 2);
    if (has_added && joints != NULL) {
        add_some(drawing, &connectors, parts->connectors, 1, 3);
        note_connectors(joints, parts, &connectors);
    }
    for (unsigned i = 0; i < connectors.count; i++)
        add_word(&words, connectors.list[i]);
    add_word(&words, drawn_below(drawing, 4) == 0 ? "nop" : "debug");
    put_list(drawing, "exporters", words.list);
}

/* Pipelines behind a connector of one signal. */
static void put_behind(struct drawing *drawing, const char *signal, const char *connector,
                       const char *as, unsigned count)
{
    char name[32];
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%s/%s%u", signal, as, i);
        bytes_add_format(drawing->out, "    %s:\n      receivers: [%s]\n", name, connector);
        put_processors_of(drawing, name, true, false);
        put_exporters_of(drawing, name, true, NULL);
    }
}

static struct joints put_pipelines(struct drawing *drawing)
{
    struct joints joints = {.exceptions = false};
    char name[32];
    /* One configuration in four has nothing but receivers, the join, and exporters of OTLP. */
    bool has_added = drawn_below(drawing, 4) != 0;
    bool has_join = !has_added || drawn_below(drawing, 2) == 0;
    for (unsigned i = 0; i < 4 + (drawn_below(drawing, 3) == 0); i++) {
        const struct signal_parts *parts = &signals[i % 4];
        snprintf(name, sizeof(name), "%s%s", parts->name, i < 4 ? "" : "/second");
        bool is_profiles = parts->name[0] == 'p';
        bytes_add_format(drawing->out,
                         "    %s:\n      receivers: [otlp, otlp/guarded, otlp/tls%s]\n", name,
                         is_profiles            ? ", pyroscope"
                         : parts == &signals[0] ? ", zipkin, jaeger"
                                                : "");
        /* The join is in both of its pipelines: it can do nothing in one alone. */
        put_processors_of(drawing, name, has_added,
                          has_join && (is_profiles || parts == &signals[0]));
        put_exporters_of(drawing, name, has_added, &joints);
    }
    for (unsigned i = 0; i < 4; i++) {
        if (joints.forward_of[i])
            put_behind(drawing, signals[i].name, "forward", "behind",
                       1 + (unsigned)drawn_below(drawing, 2));
        if (!joints.routing_of[i])
            continue;
        snprintf(name, sizeof(name), "routing/%s", signals[i].name);
        put_behind(drawing, signals[i].name, name, "routed", ROUTED_PIPELINES);
    }
    if (joints.metrics.count > 0) {
        put(drawing, "    metrics/made:\n");
        put_list(drawing, "receivers", joints.metrics.list);
        put_processors_of(drawing, "metrics", true, false);
        put_exporters_of(drawing, "metrics", true, NULL);
    }
    /* What clients have named, once more through a format and its reader. */
    if (has_added && drawn_below(drawing, 3) == 0) {
        put(drawing, "    metrics/scraped:\n      receivers: [prometheus]\n");
        put_processors_of(drawing, "metrics", true, false);
        put(drawing, "      exporters: [debug]\n");
    }
    if (joints.exceptions) {
        put(drawing, "    logs/made:\n      receivers: [exceptions]\n");
        put_processors_of(drawing, "logs", true, false);
        put_exporters_of(drawing, "logs", true, NULL);
    }
    return joints;
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
                  "  explore:\n"
                  "    endpoint: 127.0.0.1:${env:ATTACK_EXPLORE}\n");
    PUT_ONE_OF(&drawing, "    max_bytes: 8MiB\n", "    max_bytes: 8MiB\n",
               "    max_bytes: 8MiB\n    directory: '${env:ATTACK_EXPLORED}'\n",
               "    max_bytes: 24MiB\n");
    put(&drawing, "  file_storage: {directory: '${env:ATTACK_STORAGE}', "
                  "create_directory: true, max_size: 64MiB}\n"
                  "  headers_setter:\n"
                  "    headers:\n"
                  "    - {key: x-scope-orgid, from_context: x-scope-orgid, action: upsert}\n"
                  "    - {key: x-agent, from_context: user-agent, default_value: none}\n"
                  "    - {key: x-origin, from_context: origin, action: insert}\n");
    put_authenticators(&drawing);
    put(&drawing, "service:\n"
                  "  extensions: [health_check, zpages, pprof, file_storage, explore, "
                  "headers_setter, basicauth, bearertokenauth]\n");
    PUT_ONE_OF(&drawing, "  lanes: 1\n", "  lanes: 1\n", "  lanes: 2\n");
    PUT_ONE_OF(&drawing, "  budget_mib: 64\n", "  budget_mib: 64\n", "  budget_mib: 40\n");
    put(&drawing, "  drain_timeout: 5s\n"
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
    struct joints joints = put_pipelines(&drawing);
    put_connectors(&drawing);
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (joints.routing_of[i])
            put_routing(&drawing, signals[i].name);
}
