/* SPDX-License-Identifier: Apache-2.0 */
/* Names only, one text per kind, with blanks between and around. Pure functions. */
#include "src/config/contrib_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES_MAX = 64 };

static const char *const names[] = {
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
        "windowseventlog windowsperfcounters windowsservice yanggrpc zipkin zookeeper ",
    [PROCESSOR] =
        " attributes batch coralogix cumulativetodelta deltatocumulative deltatorate "
        "dnslookup filter geoip groupbyattrs groupbytrace interval isolationforest k8sattributes "
        "k8s_attributes log_dedup logdedup logstransform logs_transform memory_limiter "
        "metricsgeneration metricstarttime "
        "metricstransform probabilistic_sampler queuebatch redaction remotetap resource "
        "resourcedetection routing schema span spanmetrics spanpruning servicegraph sumologic "
        "tail_sampling "
        "transform unroll ",
    [EXPORTER] =
        " alertmanager alibabacloud_logservice awscloudwatchlogs awsemf awskinesis awss3 "
        "awsxray azureblob azuredataexplorer azuremonitor bmchelix carbon cassandra clickhouse "
        "coralogix datadog dataset debug doris dynatrace elasticsearch faro file googlecloud "
        "googlecloudpubsub googlecloudstorage googlemanagedprometheus honeycombmarker influxdb "
        "instana jaeger jaeger_thrift kafka kinetica loadbalancing load_balancing logging "
        "logicmonitor logzio loki mezmo nop opencensus opensearch oracleobservability otelarrow "
        "otlp otlp_grpc otlp_http otlphttp parquet prometheus prometheusremotewrite "
        "prometheus_remote_write pulsar rabbitmq sapm sematext sentry signalfx skywalking "
        "splunk_hec "
        "stef sumologic syslog tencentcloud_logservice tinybird topic wavefront zipkin ",
    [CONNECTOR] = " count datadog exceptions failover forward grafanacloud metricsaslogs otlpjson "
                  "roundrobin routing servicegraph signaltometrics slowsql spanmetrics sum ",
    [EXTENSION] =
        " ack asapclient avro_log_encoding awscloudwatchmetricstreams_encoding awslogs_encoding "
        "awsproxy azure_auth azure_encoding basicauth bearertokenauth cgroupruntime datadog "
        "db_storage "
        "docker_observer ecs_observer ecs_task_observer file_storage googleclientauth "
        "google_cloud_logentry_encoding headers_setter health_check healthcheckv2 host_observer "
        "http_forwarder jaeger_encoding jaegerremotesampling json_log_encoding k8s_leader_elector "
        "k8s_observer kafkatopics_observer memory_ballast memory_limiter oauth2client oidc opamp "
        "otlp_encoding pprof redis_storage remotetap sigv4auth skywalking_encoding "
        "solarwindsapmsettings sumologic "
        "text_encoding zipkin_encoding zpages ",
};

bool contrib_names_has(enum component_kind kind, const char *type)
{
    char word[NAME_BYTES_MAX + 3];
    assert((size_t)kind < sizeof(names) / sizeof(names[0]));
    if (strlen(type) > NAME_BYTES_MAX)
        return false;
    snprintf(word, sizeof(word), " %s ", type);
    return strstr(names[kind], word) != NULL;
}
