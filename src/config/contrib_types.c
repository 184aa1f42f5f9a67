/* SPDX-License-Identifier: Apache-2.0 */
/* The component types of the Go collector's distributions, and what to do without them. Pure
 * functions. */
#include "src/config/contrib_types.h"

#include <stdio.h>
#include <string.h>

enum { CONTRIB_TYPE_MAX = 64 };

/* One string per kind, with blanks between and around: the names of 0.155, older and later ones. */
static const char *const contrib_types[] = {
    [RECEIVER] =
        " active_directory_ds active_directory_inv activedirectoryds aerospike apache "
        "apache_spark apachespark aws_cloudwatch aws_lambda awscloudwatch awscontainerinsight "
        "awscontainerinsightreceiver awsecscontainermetrics awsfirehose awslambda awss3 awsxray "
        "azure_blob azure_event_hub azure_functions azure_monitor azureblob azureeventhub "
        "azurefunctions azuremonitor bigip carbon chrony cisco_os ciscoos cloud_foundry "
        "cloudflare cloudfoundry collectd couchdb datadog dns_check docker_observer docker_stats "
        "elasticsearch envoy_als envoyals expvar faro file file_log file_stats filelog filestats "
        "flink_metrics flinkmetrics fluent_forward fluentforward github githubgen gitlab "
        "google_cloud_spanner googlecloudmonitoring googlecloudpubsub googlecloudpubsubpush "
        "googlecloudspanner haproxy host_metrics hostmetrics http_check httpcheck "
        "huaweicloudcesreceiver icmpcheck icmpcheckreceiver iis influxdb jaeger jmx journald "
        "k8s_cluster k8s_events k8s_objects k8slog k8sobjects kafka kafka_metrics kafkametrics "
        "kubelet_stats kubeletstats libhoney loki macos_unified_logging macosunifiedlogging "
        "memcached mongodb mongodb_atlas mongodbatlas mysql named_pipe namedpipe netflow nginx "
        "nop nsxt ntp opencensus oracledb osquery otelarrow otlp otlp_json_file otlpjsonfile "
        "podman_stats postgresql pprof profiling prometheus prometheus_remote_write "
        "prometheus_simple prometheusremotewrite pulsar purefa purefb pyroscope rabbitmq "
        "receiver_creator redfish redis riak saphana sapm signalfx simpleprometheus skywalking "
        "snmp snowflake solace splunk_enterprise splunk_hec splunkenterprise sql_query sqlquery "
        "sqlserver ssh_check sshcheck statsd stef syslog systemd tcp_check tcp_log tcpcheck "
        "tcplog tls_check tlscheck udp_log udplog vcenter vcr wavefront webhook_event "
        "webhookevent windows_event_log windows_service windowseventlog windowsperfcounters "
        "windowsservice yang_grpc yanggrpc zipkin zookeeper ",
    [PROCESSOR] =
        " attributes aws_ecs_attributes awsecsattributes batch cardinality_guardian "
        "cardinalityguardian coralogix cumulative_to_delta cumulativetodelta datadogsemantics "
        "delta_to_cumulative delta_to_rate deltatocumulative deltatorate dnslookup drain "
        "dynamic_sampling filter gen_ai_normalizer genainormalizer geoip groupbyattrs "
        "groupbytrace interval isolationforest k8s_attributes k8sattributes log_dedup logdedup "
        "logs_transform logstransform lookup memory_limiter metric_start_time metrics_transform "
        "metricsgeneration metricstarttime metricstransform probabilistic_sampler queuebatch "
        "queued_retry redaction remotetap resource resource_detection resourcedetection routing "
        "schema servicegraph span span_pruning spanmetrics spanpruning sumologic tail_sampling "
        "transform unroll ",
    [EXPORTER] =
        " alertmanager alibabacloud_logservice awscloudwatchlogs awsemf awskinesis awss3 awsxray "
        "azure_blob azure_monitor azureblob azuredataexplorer azuremonitor bmc_helix bmchelix "
        "carbon cassandra clickhouse coralogix datadog dataset debug doris dynatrace "
        "elasticsearch faro file google_cloud_storage google_secops googlecloud "
        "googlecloudpubsub googlecloudstorage googlemanagedprometheus honeycomb_marker "
        "honeycombmarker influxdb instana jaeger jaeger_thrift kafka kinetica load_balancing "
        "loadbalancing logging logicmonitor logzio loki mezmo nop opencensus opensearch "
        "oracleobservability otelarrow otlp otlp_grpc otlp_http otlphttp parquet prometheus "
        "prometheus_remote_write prometheusremotewrite pulsar rabbitmq sapm sematext sentry "
        "signalfx skywalking splunk_hec stef sumologic syslog tencentcloud_logservice tinybird "
        "topic wavefront zipkin ",
    [CONNECTOR] =
        " count datadog exceptions failover forward grafanacloud metrics_as_logs metricsaslogs "
        "otlp_json otlpjson round_robin roundrobin routing service_graph servicegraph "
        "signal_to_metrics signaltometrics slow_sql slowsql span_metrics spanmetrics sum ",
    [EXTENSION] =
        " ack asapclient avro_log_encoding aws_iam_db_auth aws_logs_encoding "
        "awscloudwatchmetricstreams_encoding awslogs_encoding awsproxy azure_auth azure_encoding "
        "basicauth bearertokenauth cgroup_runtime cgroupruntime datadog db_storage "
        "docker_observer ecs_observer ecs_task_observer file_storage "
        "google_cloud_logentry_encoding googleclientauth headers_setter health_check "
        "healthcheck_v2 healthcheckv2 host_observer http_forwarder jaeger_encoding "
        "jaeger_remote_sampling jaegerremotesampling json_log_encoding k8s_leader_elector "
        "k8s_observer kafkatopics_observer mcp memory_ballast memory_limiter oauth2client oidc "
        "opamp otlp_encoding pebble_tail_storage pprof redis_storage remotetap sd_notify "
        "sigv4auth skywalking_encoding solarwindsapmsettings sumologic text_encoding "
        "zipkin_encoding zpages ",
};

/* What contrib 0.155 no longer has, and what of the rest people ask for most: what does the same
 * here. */
static const struct {
    enum component_kind kind;
    bool is_removed;
    const char *type;
    const char *advice;
} advices[] = {
    {EXPORTER, true, "jaeger", "Jaeger takes OTLP, so use otlp_grpc with Jaeger's port 4317"},
    {EXPORTER, true, "jaeger_thrift",
     "Jaeger takes OTLP, so use otlp_grpc with Jaeger's port 4317"},
    {EXPORTER, true, "loki",
     "Loki 3 takes OTLP, so use otlp_http with endpoint: http://LOKI:3100/otlp"},
    {EXPORTER, true, "opencensus", "use otlp_grpc"},
    {RECEIVER, true, "opencensus", "let its clients send OTLP to the otlp receiver"},
    {EXPORTER, true, "sapm", "use otlp_http with the OTLP endpoint of the back-end"},
    {RECEIVER, true, "sapm", "let its clients send OTLP to the otlp receiver"},
    {EXPORTER, true, "dynatrace", "Dynatrace takes OTLP, so use otlp_http"},
    {EXPORTER, true, "instana", "Instana takes OTLP, so use otlp_grpc or otlp_http"},
    {EXPORTER, true, "skywalking", "use otlp_grpc with the OTLP port of SkyWalking"},
    {PROCESSOR, true, "spanmetrics", "it is the connector span_metrics now"},
    {PROCESSOR, true, "servicegraph", "it is the connector servicegraph now"},
    {PROCESSOR, true, "routing", "it is the connector routing now"},
    {PROCESSOR, true, "queued_retry",
     "use sending_queue and retry_on_failure of the exporters, which are on by default"},
    {EXTENSION, true, "memory_ballast",
     "leave it out; the processor memory_limiter bounds the memory"},
    {EXTENSION, false, "healthcheckv2", "use health_check"},
    {PROCESSOR, false, "span",
     "use transform: set(span.name, ...) and set(span.attributes[...], ...)"},
    {PROCESSOR, false, "metricstransform", "use transform with metric_statements"},
    {PROCESSOR, false, "k8sattributes",
     "set k8s.* attributes in the pods, by OTEL_RESOURCE_ATTRIBUTES from the downward API"},
    {EXPORTER, false, "datadog", "Datadog's agent takes OTLP: use otlp_grpc with its port 4317"},
    {EXPORTER, false, "elasticsearch",
     "Elastic's APM server takes OTLP: use otlp_grpc or otlp_http with it"},
    {EXPORTER, false, "sentry", "Sentry takes OTLP: use otlp_http with the project's endpoint"},
    {EXPORTER, false, "coralogix", "Coralogix takes OTLP: use otlp_grpc"},
    {EXPORTER, false, "awsxray",
     "AWS takes OTLP through a collector of theirs: use otlp_grpc with it"},
    {RECEIVER, false, "hostmetrics",
     "let Prometheus' node_exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "filelog",
     "let another collector read the files, and send OTLP to the otlp receiver"},
    {RECEIVER, false, "profiling",
     "run the profiler by itself: it sends OTLP to the otlp receiver"},
    {RECEIVER, false, "docker_stats", "let cAdvisor serve them and scrape it with prometheus"},
    {RECEIVER, false, "kubeletstats",
     "scrape the kubelet's /metrics/cadvisor with prometheus, by targets of your own"},
    {RECEIVER, false, "kafkametrics",
     "let a Kafka exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "postgresql",
     "let postgres_exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "redis", "let redis_exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "nginx", "let an nginx exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "httpcheck", "let blackbox_exporter probe and scrape it with prometheus"},
};

/* Of what no row above is about. */
static const char *const usual_advices[] = {
    [RECEIVER] = "let a collector that has it send OTLP to the otlp receiver",
    [EXPORTER] = "send OTLP to a collector that has it, by otlp_grpc",
    [EXTENSION] = NULL, /* the last kind */
};

/* Older names differ from today's in their underscores only: "filelog", "file_log". */
static bool is_same_type(const char *a, const char *b)
{
    while (*a != '\0' || *b != '\0') {
        if (*a == '_')
            a++;
        else if (*b == '_')
            b++;
        else if (*a++ != *b++)
            return false;
    }
    return true;
}

struct contrib_type contrib_type_find(enum component_kind kind, const char *type)
{
    char word[CONTRIB_TYPE_MAX + 3];
    snprintf(word, sizeof(word), " %.*s ", CONTRIB_TYPE_MAX, type);
    struct contrib_type found = {.is_known = strstr(contrib_types[kind], word) != NULL};
    if (!found.is_known)
        return found;
    found.advice = usual_advices[kind];
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        if (advices[i].kind != kind || !is_same_type(advices[i].type, type))
            continue;
        found.is_removed = advices[i].is_removed;
        found.advice = advices[i].advice;
    }
    return found;
}
