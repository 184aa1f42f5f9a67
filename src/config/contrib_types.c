/* SPDX-License-Identifier: Apache-2.0 */
/* The component types of the Go collector's distributions, and what to do without them. Pure
 * functions. */
#include "src/config/contrib_types.h"

#include <stdio.h>
#include <string.h>

enum { CONTRIB_TYPE_MAX = 64 };

/* One string per kind, with blanks between and around. */
static const char *const contrib_types[] = {
    [RECEIVER] =
        " active_directory_ds activedirectoryds aerospike apache apachespark awscloudwatch "
        "awscontainerinsightreceiver awsecscontainermetrics awsfirehose awslambda awss3 awsxray "
        "azureblob azureeventhub azure_event_hub azuremonitor azure_monitor bigip carbon chrony "
        "ciscoos cloudflare cloudfoundry collectd couchdb datadog docker_stats docker_observer "
        "elasticsearch envoyals expvar faro file filelog file_log filestats flinkmetrics "
        "fluentforward "
        "github gitlab githubgen googlecloudmonitoring googlecloudpubsub googlecloudspanner "
        "haproxy "
        "hostmetrics httpcheck http_check huaweicloudcesreceiver iis influxdb jaeger jmx journald "
        "k8s_cluster k8s_events k8sobjects k8slog kafka kafkametrics kubeletstats libhoney "
        "loki memcached mongodb mongodbatlas mysql namedpipe netflow nginx nop nsxt ntp opencensus "
        "oracledb osquery otelarrow otlp otlpjsonfile podman_stats postgresql pprof prometheus "
        "prometheus_simple prometheusremotewrite pulsar purefa purefb pyroscope rabbitmq "
        "receiver_creator redfish redis riak saphana signalfx simpleprometheus skywalking snmp "
        "snowflake solace splunk_hec splunkenterprise sqlquery sqlserver sshcheck statsd stef "
        "syslog "
        "systemd tcpcheck tcplog tlscheck udplog vcenter vcr wavefront webhookevent "
        "windowseventlog windowsperfcounters windowsservice yanggrpc azurefunctions "
        "googlecloudpubsubpush icmpcheck "
        "macosunifiedlogging sapm host_metrics k8s_objects zipkin zookeeper ",
    [PROCESSOR] =
        " attributes batch cardinalityguardian coralogix drain genainormalizer lookup queued_retry "
        "metrics_transform cumulativetodelta deltatocumulative deltatorate "
        "dnslookup filter geoip groupbyattrs groupbytrace interval isolationforest k8sattributes "
        "k8s_attributes log_dedup logdedup logstransform logs_transform memory_limiter "
        "metricsgeneration metricstarttime "
        "metricstransform probabilistic_sampler queuebatch redaction remotetap resource "
        "resourcedetection routing schema span spanmetrics spanpruning servicegraph sumologic "
        "tail_sampling "
        "transform unroll ",
    [EXPORTER] =
        " alertmanager alibabacloud_logservice awscloudwatchlogs awsemf awskinesis awss3 "
        "awsxray azureblob azure_blob azure_monitor azuredataexplorer azuremonitor bmchelix carbon "
        "cassandra clickhouse "
        "coralogix datadog dataset debug doris dynatrace elasticsearch faro file googlecloud "
        "googlecloudpubsub googlecloudstorage googlemanagedprometheus honeycombmarker influxdb "
        "instana jaeger jaeger_thrift kafka kinetica loadbalancing load_balancing logging "
        "logicmonitor logzio loki mezmo nop opencensus opensearch oracleobservability otelarrow "
        "otlp otlp_grpc otlp_http otlphttp parquet prometheus prometheusremotewrite "
        "prometheus_remote_write pulsar rabbitmq sapm sematext sentry signalfx skywalking "
        "splunk_hec "
        "stef sumologic syslog tencentcloud_logservice tinybird topic wavefront zipkin ",
    [CONNECTOR] =
        " count datadog exceptions failover forward grafanacloud metricsaslogs otlpjson "
        "roundrobin routing service_graph servicegraph signaltometrics slowsql spanmetrics sum ",
    [EXTENSION] =
        " ack asapclient avro_log_encoding awscloudwatchmetricstreams_encoding awslogs_encoding "
        "awsproxy azure_auth azure_encoding basicauth bearertokenauth cgroupruntime datadog "
        "db_storage "
        "docker_observer ecs_observer ecs_task_observer googleclientauth "
        "google_cloud_logentry_encoding headers_setter health_check healthcheckv2 host_observer "
        "http_forwarder jaeger_encoding jaegerremotesampling jaeger_remote_sampling healthcheck_v2 "
        "json_log_encoding k8s_leader_elector "
        "k8s_observer kafkatopics_observer memory_ballast memory_limiter oauth2client oidc opamp "
        "otlp_encoding pprof redis_storage remotetap sigv4auth skywalking_encoding "
        "solarwindsapmsettings sumologic "
        "text_encoding zipkin_encoding zpages ",
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
    {EXTENSION, false, "healthcheck_v2", "use health_check"},
    {PROCESSOR, false, "span",
     "use transform: set(span.name, ...) and set(span.attributes[...], ...)"},
    {PROCESSOR, false, "metricstransform", "use transform with metric_statements"},
    {PROCESSOR, false, "metrics_transform", "use transform with metric_statements"},
    {PROCESSOR, false, "k8sattributes",
     "set k8s.* attributes in the pods, by OTEL_RESOURCE_ATTRIBUTES from the downward API"},
    {PROCESSOR, false, "k8s_attributes",
     "set k8s.* attributes in the pods, by OTEL_RESOURCE_ATTRIBUTES from the downward API"},
    {EXPORTER, false, "datadog", "Datadog's agent takes OTLP: use otlp_grpc with its port 4317"},
    {EXPORTER, false, "elasticsearch",
     "Elastic's APM server takes OTLP: use otlp_grpc or otlp_http with it"},
    {EXPORTER, false, "awsxray",
     "AWS takes OTLP through a collector of theirs: use otlp_grpc with it"},
    {RECEIVER, false, "hostmetrics",
     "let Prometheus' node_exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "host_metrics",
     "let Prometheus' node_exporter serve them and scrape it with prometheus"},
    {RECEIVER, false, "filelog",
     "let another collector read the files, and send OTLP to the otlp receiver"},
    {RECEIVER, false, "file_log",
     "let another collector read the files, and send OTLP to the otlp receiver"},
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
    {RECEIVER, false, "http_check", "let blackbox_exporter probe and scrape it with prometheus"},
};

struct contrib_type contrib_type_find(enum component_kind kind, const char *type)
{
    char word[CONTRIB_TYPE_MAX + 3];
    snprintf(word, sizeof(word), " %.*s ", CONTRIB_TYPE_MAX, type);
    struct contrib_type found = {.is_known = strstr(contrib_types[kind], word) != NULL};
    for (size_t i = 0; found.is_known && i < sizeof(advices) / sizeof(advices[0]); i++) {
        if (advices[i].kind != kind || strcmp(advices[i].type, type) != 0)
            continue;
        found.is_removed = advices[i].is_removed;
        found.advice = advices[i].advice;
    }
    return found;
}
