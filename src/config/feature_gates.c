/* SPDX-License-Identifier: Apache-2.0 */
/* Feature gates, and the flag that sets them, with the Go collector's messages. Main thread. */
#include "src/config/feature_gates.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* Of the ids that an error lists. */
enum { IDS_BYTES_MAX = 512, IDS_REST_MAX = 64 };

struct gate_row {
    const char *id;
    const char *stage;
    bool is_enabled;
    const char *description;
};

/* In the order of their ids, as the table is printed. */
static const struct gate_row rows[FEATURE_GATES] = {
    [GATE_MERGE_APPEND] = {"confmap.enableMergeAppendOption", "Alpha", false,
                           "Appends lists of extensions, receivers and exporters when "
                           "configurations are merged, instead of replacing them."},
    [GATE_ROUTING_IGNORES] = {"connector.routing.defaultErrorModeIgnore", "Beta", true,
                              "The error_mode of routing is ignore by default, not propagate."},
    [GATE_SPAN_METRICS_NO_RESOURCE] =
        {"connector.spanmetrics.excludeResourceMetrics", "Alpha", false,
         "span_metrics leaves resource attributes out, unless add_resource_attributes is set."},
    [GATE_SPAN_METRICS_INSTANCE] = {"connector.spanmetrics.includeCollectorInstanceID", "Beta",
                                    true, "span_metrics adds the label collector.instance.id."},
    [GATE_SPAN_METRICS_LEGACY_NAMES] = {"connector.spanmetrics.legacyMetricNames", "Alpha", false,
                                        "span_metrics has no namespace by default."},
    [GATE_SPAN_METRICS_SECONDS] = {"connector.spanmetrics.useSecondAsDefaultMetricsUnit", "Alpha",
                                   false, "No effect here: say histogram: {unit: s}."},
    [GATE_FILE_COMPRESSION] = {"exporter.file.nativeCompression", "Alpha", false,
                               "The file exporter compresses its files as a whole, for zstd -d, "
                               "instead of each message."},
    [GATE_REMOTE_WRITE_WORKERS] =
        {"exporter.prometheusremotewritexporter.EnableMultipleWorkers", "Alpha", false,
         "No effect here: say max_batch_request_parallelism of prometheus_remote_write."},
    [GATE_REMOTE_WRITE_429] = {"exporter.prometheusremotewritexporter.RetryOn429", "Alpha", false,
                               "No effect here: prometheus_remote_write tries 429 again."},
    [GATE_REMOTE_WRITE_V2] = {"exporter.prometheusremotewritexporter.enableSendingRW2", "Alpha",
                              false,
                              "Allows protobuf_message: io.prometheus.write.v2.Request of "
                              "prometheus_remote_write."},
    [GATE_FILE_DELETION] = {"filelog.allowFileDeletion", "Alpha", false,
                            "Allows delete_after_read of receivers that read files."},
    [GATE_FILTER_LOG_BRIDGE] = {"filter.filterlog.useOTTLBridge", "Alpha", false,
                                "No effect here: include and exclude give the same either way."},
    [GATE_FILTER_METRIC_BRIDGE] = {"filter.filtermetric.useOTTLBridge", "Alpha", false,
                                   "No effect here: include and exclude give the same either way."},
    [GATE_FILTER_SPAN_BRIDGE] = {"filter.filterspan.useOTTLBridge", "Alpha", false,
                                 "No effect here: include and exclude give the same either way."},
    [GATE_OTTL_UNIQUE_NAMES] = {"ottl.PanicDuplicateName", "Beta", true,
                                "No effect here: no function has two definitions."},
    [GATE_OTTL_OTELCOL] = {"ottl.contexts.enableOTelColContext", "Beta", true,
                           "No effect here: OTTL always has the context otelcol."},
    [GATE_OTTL_LAMBDAS] = {"ottl.functions.enableLambda", "Alpha", false,
                           "No effect here: no function takes a lambda."},
    [GATE_QUEUE_BATCH] = {"pkg.exporterhelper.queueBatchEnabled", "Alpha", false,
                          "No effect here: a queue batches if sending_queue::batch is set."},
    [GATE_PROTO_POOLING] = {"pdata.useProtoPooling", "Alpha", false,
                            "No effect here: messages are not decoded into objects."},
    [GATE_FILTER_IGNORES] = {"processor.filter.defaultErrorModeIgnore", "Beta", true,
                             "The error_mode of filter is ignore by default, not propagate."},
    [GATE_TRANSFORM_IGNORES] = {"processor.transform.defaultErrorModeIgnore", "Beta", true,
                                "The error_mode of transform is ignore by default, not propagate."},
    [GATE_TRANSFORM_FLATTENS] = {"transform.flatten.logs", "Alpha", false,
                                 "flatten_data of transform may be on."},
    [GATE_TAIL_COUNT_BYTES] = {"processor.tailsamplingprocessor.metricstatcountbytessampled",
                               "Alpha", false,
                               "tail_sampling counts the bytes that each policy samples."},
    [GATE_TAIL_COUNT_SPANS] = {"processor.tailsamplingprocessor.metricstatcountspanssampled",
                               "Alpha", false,
                               "tail_sampling counts the spans that each policy samples."},
    [GATE_TAIL_RECORD_POLICY] = {"processor.tailsamplingprocessor.recordpolicy", "Alpha", false,
                                 "tail_sampling writes the policy that sampled a trace into the "
                                 "attributes of its scopes."},
    [GATE_RECEIVER_METRICS] = {"receiverhelper.newReceiverMetrics", "Alpha", false,
                               "No effect here yet."},
    [GATE_ALLOW_NO_PIPELINES] = {"service.AllowNoPipelines", "Alpha", false,
                                 "Lets a configuration without pipelines start."},
    [GATE_PARTIAL_RELOAD] = {"service.partialReload", "Alpha", false, "No effect here yet."},
    [GATE_PARTIAL_RELOAD_RECEIVERS] = {"service.partialReloadReceivers", "Beta", true,
                                       "No effect here yet."},
    [GATE_PROFILES_SUPPORT] = {"service.profilesSupport", "Alpha", true,
                               "Allows pipelines of profiles; on here unless turned off."},
    [GATE_SPAN_METRICS_OTEL_STATUS] =
        {"spanmetrics.statusCodeConvention.useOtelPrefix", "Alpha", false,
         "span_metrics has otel.status_code (OK, ERROR) instead of status.code."},
    [GATE_PIPELINE_TELEMETRY] = {"telemetry.newPipelineTelemetry", "Alpha", false,
                                 "No effect here yet."},
};

struct feature_gates feature_gates_default(void)
{
    struct feature_gates gates;
    for (size_t i = 0; i < FEATURE_GATES; i++)
        gates.is_enabled[i] = rows[i].is_enabled;
    return gates;
}

bool feature_gate_is_enabled(const struct feature_gates *gates, enum feature_gate gate)
{
    assert(gate < FEATURE_GATES);
    return gates != NULL ? gates->is_enabled[gate] : rows[gate].is_enabled;
}

/* Appends the formatted text, after "; " if there is text already. */
__attribute__((format(printf, 2, 3))) static void add_error(struct error *error, const char *format,
                                                            ...)
{
    va_list arguments;
    size_t length = strlen(error->text);
    if (length > 0 && length + 3 < sizeof(error->text)) {
        memcpy(error->text + length, "; ", 3);
        length += 2;
    }
    va_start(arguments, format);
    vsnprintf(error->text + length, sizeof(error->text) - length, format, arguments);
    va_end(arguments);
}

bool feature_gates_parse(struct feature_gates *gates, const char *list, struct error *error)
{
    struct error problems = {.text = ""};
    if (*list == '\0')
        return true;
    const char *element = list;
    for (size_t index = 0;; index++) {
        size_t size = strcspn(element, ",");
        bool is_signed = *element == '-' || *element == '+';
        const char *id = element + is_signed;
        size_t id_size = size - is_signed;
        size_t gate = 0;
        while (gate < FEATURE_GATES &&
               (strlen(rows[gate].id) != id_size || memcmp(rows[gate].id, id, id_size) != 0))
            gate++;
        if (size == 0) {
            add_error(&problems, "empty feature gate identifier at index %zu", index);
        } else if (gate < FEATURE_GATES) {
            gates->is_enabled[gate] = *element != '-';
        } else {
            char ids[IDS_BYTES_MAX + IDS_REST_MAX] = "";
            size_t length = 0;
            size_t shown = 0;
            for (; shown < FEATURE_GATES && length + strlen(rows[shown].id) < IDS_BYTES_MAX;
                 shown++)
                length += (size_t)snprintf(ids + length, sizeof(ids) - length, "%s%s",
                                           shown > 0 ? " " : "", rows[shown].id);
            if (shown < FEATURE_GATES)
                snprintf(ids + length, sizeof(ids) - length, " and %zu more: see \"featuregate\"",
                         (size_t)FEATURE_GATES - shown);
            add_error(&problems, "no such feature gate \"%.*s\". valid gates: [%s]", (int)id_size,
                      id, ids);
        }
        if (element[size] == '\0')
            break;
        element += size + 1;
    }
    if (problems.text[0] == '\0')
        return true;
    *error = problems;
    return false;
}

bool feature_gates_print(const struct feature_gates *gates, const char *id, FILE *out)
{
    bool is_found = false;
    if (id == NULL)
        fprintf(out, "%-54s%-10s%-8s%s\n", "ID", "Enabled", "Stage", "Description");
    for (size_t i = 0; i < FEATURE_GATES; i++) {
        const char *enabled =
            feature_gate_is_enabled(gates, (enum feature_gate)i) ? "true" : "false";
        if (id == NULL)
            fprintf(out, "%-54s%-10s%-8s%s\n", rows[i].id, enabled, rows[i].stage,
                    rows[i].description);
        else if (strcmp(id, rows[i].id) == 0)
            fprintf(out, "Feature: %s\nEnabled: %s\nStage: %s\nDescription: %s\n", rows[i].id,
                    enabled, rows[i].stage, rows[i].description);
        is_found |= id == NULL || strcmp(id, rows[i].id) == 0;
    }
    return is_found;
}
