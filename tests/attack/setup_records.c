/* SPDX-License-Identifier: Apache-2.0 */
/* Processors of records and series, connectors, and exporters with formats of their own, at
 * random. */
#include "tests/attack/drawing.h"

static void put_attributes(struct drawing *drawing)
{
    static const char *const actions[] = {
        "    - {key: added, value: 7, action: insert}\n",
        "    - {key: http.route, value: /one, action: update}\n",
        "    - {key: tag, from_attribute: bytes, action: upsert}\n",
        "    - {key: tenant, from_context: metadata.x-scope-orgid, action: upsert}\n",
        "    - {key: thread.id, action: delete}\n",
        "    - {pattern: '(?i)^[s-z]', action: delete}\n",
        "    - {key: bytes, action: hash}\n",
        "    - {key: tag, pattern: '^(?P<first>.)(?P<rest>.*)$', action: extract}\n",
        "    - {key: process.pid, action: convert, converted_type: double}\n",
        "    - {key: list, value: [1, 2.5, yes], action: upsert}\n",
        NULL,
    };
    put(drawing, "  attributes:\n");
    PUT_ONE_OF(
        drawing, "",
        "    include: {match_type: regexp, resources: [{key: host.name, value: '.*'}]}\n",
        "    exclude: {match_type: strict, resources: [{key: service.name, value: cart}]}\n");
    put(drawing, "    actions:\n");
    put_lines(drawing, actions, 1, 2, true);
    put(drawing, "  attributes/spans:\n");
    PUT_ONE_OF(drawing, "    include: {match_type: strict, services: [checkout, cart]}\n",
               "    exclude: {match_type: regexp, attributes: [{key: tag, value: '[0-9]+'}]}\n",
               "    include: {match_type: regexp, span_names: ['^.a'], libraries: [{name: '.*'}], "
               "span_kinds: [SPAN_KIND_SERVER]}\n");
    put(drawing, "    actions:\n");
    put_lines(drawing, actions, 1, 2, true);
}

static void put_redaction(struct drawing *drawing)
{
    put(drawing, "  redaction:\n");
    PUT_ONE_OF(drawing, "    allow_all_keys: true\n", "    allow_all_keys: true\n",
               "    allowed_keys: [service.name, tag, http.route, bytes, db.statement]\n");
    PUT_ONE_OF(drawing, "", "    blocked_key_patterns: ['^t', '.*id$']\n");
    PUT_ONE_OF(drawing, "", "    blocked_values: ['4[0-9]{2,3}', '[a-c]+']\n");
    PUT_ONE_OF(drawing, "", "    allowed_values: ['42', '^cart$']\n");
    PUT_ONE_OF(drawing, "", "    ignored_keys: [tag]\n", "    ignored_key_patterns: ['^s']\n");
    PUT_ONE_OF(drawing, "", "    redact_all_types: true\n");
    PUT_ONE_OF(drawing, "", "    hash_function: md5\n", "    hash_function: sha1\n",
               "    hash_function: sha3\n",
               "    hash_function: hmac-sha256\n"
               "    hmac_key: of_at_least_32_bytes_or_it_is_refused\n");
    PUT_ONE_OF(drawing, "", "",
               "    db_sanitizer: {sql: {enabled: true, attributes: [tag, db.statement]}, "
               "redis: {enabled: true, attributes: [bytes]}, valkey: {enabled: true}, "
               "memcached: {enabled: true}, mongo: {enabled: true, attributes: [http.route]}, "
               "opensearch: {enabled: true}, es: {enabled: true}}\n");
    PUT_ONE_OF(drawing, "", "    url_sanitizer: {enabled: true, attributes: [http.route, tag]}\n");
    PUT_ONE_OF(drawing, "", "    summary: debug\n", "    summary: info\n", "    summary: silent\n");
}

void put_record_processors(struct drawing *drawing)
{
    put_attributes(drawing);
    put_redaction(drawing);
    put(drawing, "  probabilistic_sampler:\n");
    PUT_ONE_OF(drawing, "    sampling_percentage: 50\n", "    sampling_percentage: 0.01\n",
               "    sampling_percentage: 100\n");
    PUT_ONE_OF(drawing, "", "    mode: equalizing\n", "    mode: proportional\n",
               "    mode: hash_seed\n    hash_seed: 22\n");
    PUT_ONE_OF(drawing, "", "    fail_closed: false\n");
    PUT_ONE_OF(drawing, "", "    sampling_precision: 14\n");
    PUT_ONE_OF(drawing, "", "    attribute_source: record\n    from_attribute: tag\n");
    PUT_ONE_OF(drawing, "", "    sampling_priority: bytes\n");
    put(drawing, "  groupbyattrs:\n");
    PUT_ONE_OF(drawing, "    keys: [tag]\n", "    keys: []\n",
               "    keys: [http.route, thread.id, service.name, bytes, '']\n");
    put(drawing, "  groupbytrace:\n");
    PUT_ONE_OF(drawing, "    wait_duration: 100ms\n", "    wait_duration: 0s\n",
               "    wait_duration: 1s\n    num_traces: 3\n");
    put(drawing, "  cumulativetodelta:\n");
    PUT_ONE_OF(drawing, "", "    max_staleness: 100ms\n");
    PUT_ONE_OF(drawing, "    initial_value: auto\n", "    initial_value: keep\n",
               "    initial_value: drop\n");
    PUT_ONE_OF(drawing, "", "    exclude: {match_type: regexp, metrics: ['^[a-c]']}\n",
               "    include: {metric_types: [sum, histogram]}\n");
    put(drawing, "  deltatocumulative:\n");
    PUT_ONE_OF(drawing, "    max_stale: 5m\n", "    max_stale: 1s\n");
    PUT_ONE_OF(drawing, "", "    max_streams: 3\n", "    max_streams: 100\n");
}

void put_metric_exporters(struct drawing *drawing)
{
    put(drawing, "  prometheus:\n    endpoint: 127.0.0.1:${env:ATTACK_PROMETHEUS}\n");
    PUT_ONE_OF(drawing, "", "    namespace: spaces and 'quotes'\n");
    PUT_ONE_OF(drawing, "", "    const_labels: {tag: of all, job: mine}\n");
    PUT_ONE_OF(drawing, "", "    send_timestamps: true\n");
    PUT_ONE_OF(drawing, "", "    metric_expiration: 300ms\n");
    PUT_ONE_OF(drawing, "", "    enable_open_metrics: true\n");
    PUT_ONE_OF(drawing, "", "    without_scope_info: true\n");
    PUT_ONE_OF(drawing, "", "    resource_to_telemetry_conversion: {enabled: true}\n");
    PUT_ONE_OF(drawing, "", "    add_metric_suffixes: false\n",
               "    translation_strategy: NoUTF8EscapingWithSuffixes\n",
               "    translation_strategy: NoTranslation\n");
    put(drawing, "  prometheus_remote_write:\n"
                 "    endpoint: http://127.0.0.1:${env:ATTACK_SINK}/api/v1/write\n"
                 "    timeout: 500ms\n");
    /* A request for each series would take longer than span metrics take to be flushed again. */
    PUT_ONE_OF(drawing, "", "    max_batch_size_bytes: 1000\n", "    max_batch_size_bytes: 300\n");
    PUT_ONE_OF(drawing, "", "    external_labels: {a: b, job: c}\n");
    PUT_ONE_OF(drawing, "", "    send_metadata: true\n");
    PUT_ONE_OF(drawing, "", "    target_info: {enabled: false}\n");
    PUT_ONE_OF(drawing, "", "    resource_to_telemetry_conversion: {enabled: true}\n");
    PUT_ONE_OF(drawing, "", "    translation_strategy: UnderscoreEscapingWithoutSuffixes\n",
               "    protobuf_message: io.prometheus.write.v2.Request\n",
               "    protobuf_message: io.prometheus.write.v2.Request\n"
               "    translation_strategy: NoTranslation\n");
    PUT_ONE_OF(drawing, "", "    wal: {directory: '${env:ATTACK_STORAGE}/wal', buffer_size: 5}\n");
    PUT_ONE_OF(drawing, "", "    remote_write_queue: {enabled: false}\n",
               "    remote_write_queue: {queue_size: 20, num_consumers: 1}\n");
    PUT_ONE_OF(drawing, "    retry_on_failure: {enabled: false}\n",
               "    retry_on_failure: {initial_interval: 20ms, max_interval: 50ms, "
               "max_elapsed_time: 300ms}\n");
}

void put_file_exporter(struct drawing *drawing)
{
    put(drawing, "  file:\n");
    PUT_ONE_OF(drawing, "    path: ${env:ATTACK_STORAGE}/records\n",
               "    path: ${env:ATTACK_STORAGE}/records\n    rotation: {max_megabytes: 1, "
               "max_backups: 2}\n",
               "    path: ${env:ATTACK_STORAGE}/of/*.json\n    group_by: {enabled: true, "
               "resource_attribute: host.name, max_open_files: 3}\n");
    PUT_ONE_OF(drawing, "", "    format: proto\n");
    PUT_ONE_OF(drawing, "", "    compression: zstd\n");
    PUT_ONE_OF(drawing, "    flush_interval: 50ms\n", "    flush_interval: 1s\n");
    put(drawing, "    create_directory: true\n");
}

void put_connectors(struct drawing *drawing)
{
    put(drawing, "connectors:\n  forward:\n  span_metrics:\n");
    /* What is flushed for ever needs pauses, in which nothing is in flight: then the ledger is
     * read. */
    PUT_ONE_OF(drawing, "    metrics_flush_interval: 50ms\n    metrics_expiration: 200ms\n",
               "    metrics_flush_interval: 50ms\n    series_expiration: 200ms\n"
               "    metrics_expiration: 1s\n",
               "    metrics_flush_interval: 3s\n");
    PUT_ONE_OF(drawing, "", "    dimensions: [{name: http.route}, {name: tag, default: none}]\n",
               "    dimensions: [{glob: 'thread*'}]\n");
    PUT_ONE_OF(drawing, "", "    exclude_dimensions: [span.kind, status.code]\n");
    PUT_ONE_OF(drawing, "", "    aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA\n");
    PUT_ONE_OF(drawing, "", "    histogram: {unit: s, explicit: {buckets: [1ms, 1s]}}\n",
               "    histogram: {exponential: {max_size: 5}}\n", "    histogram: {disable: true}\n");
    PUT_ONE_OF(drawing, "", "    exemplars: {enabled: true, max_per_data_point: 2}\n");
    PUT_ONE_OF(drawing, "", "    events: {enabled: true, dimensions: [{name: tag}]}\n");
    PUT_ONE_OF(drawing, "", "    aggregation_cardinality_limit: 3\n");
    PUT_ONE_OF(drawing, "", "    resource_metrics_cache_size: 2\n");
    PUT_ONE_OF(drawing, "", "    resource_metrics_key_attributes: [service.name]\n");
    PUT_ONE_OF(drawing, "", "    naming: tempo\n");
    PUT_ONE_OF(drawing, "", "    add_resource_attributes: true\n");
    put(drawing, "  service_graph:\n");
    PUT_ONE_OF(drawing, "    metrics_flush_interval: 3s\n", "    metrics_flush_interval: 0s\n");
    PUT_ONE_OF(drawing, "    store: {ttl: 100ms, max_items: 3}\n", "    store: {ttl: 1s}\n");
    PUT_ONE_OF(drawing, "", "    store_expiration_loop: 20ms\n    cache_loop: 20ms\n");
    PUT_ONE_OF(drawing, "", "    dimensions: [http.route, tag]\n");
    PUT_ONE_OF(drawing, "", "    latency_histogram_buckets: [1ms, 10ms]\n",
               "    exponential_histogram_max_size: 10\n");
    PUT_ONE_OF(drawing, "", "    virtual_node_peer_attributes: [tag, http.route]\n");
    PUT_ONE_OF(drawing, "", "    virtual_node_extra_label: true\n");
    PUT_ONE_OF(drawing, "", "    database_name_attributes: [bytes, tag]\n");
    PUT_ONE_OF(drawing, "", "    aggregation_cardinality_limit: 2\n");
    put(drawing, "  exceptions:\n");
    PUT_ONE_OF(drawing, "    dimensions: [{name: tag}]\n",
               "    dimensions: [{name: exception.type}, {name: tag, default: x}]\n");
    PUT_ONE_OF(drawing, "", "    exemplars: {enabled: true}\n");
    PUT_ONE_OF(drawing, "", "    aggregation_cardinality_limit: 2\n");
    put(drawing, "  count:\n");
    PUT_ONE_OF(drawing, "    spans: {all: }\n",
               "    spans: {n: {conditions: ['name == \"main\" or attributes[\"tag\"] != nil'], "
               "attributes: [{key: tag}, {key: host.name, default_value: none}]}}\n",
               "    spanevents: {n: {conditions: ['Int(attributes[\"bytes\"]) > 3'], attributes: "
               "[{key: bytes}]}}\n");
    PUT_ONE_OF(drawing, "",
               "    datapoints: {n: {attributes: [{key: tag}, {key: service.name}]}}\n",
               "    logs: {n: {conditions: ['IsMatch(body, \"o\")'], attributes: [{key: tag}]}}\n");
    PUT_ONE_OF(drawing, "",
               "    profiles: {n: {conditions: ['sample_type.type == \"cpu\"'], attributes: [{key: "
               "tag}, {key: service.name, default_value: none}]}}\n");
    put(drawing, "  profile_metrics:\n");
    PUT_ONE_OF(drawing, "    metrics_flush_interval: 50ms\n    metrics_expiration: 200ms\n",
               "    metrics_flush_interval: 3s\n");
    PUT_ONE_OF(drawing, "", "    dimensions: [span_name, http.route, thread.id, tag]\n");
    PUT_ONE_OF(drawing, "", "    resource_attributes: [service.name, host.name, tag]\n");
    PUT_ONE_OF(drawing, "", "    aggregation_cardinality_limit: 3\n");
}
