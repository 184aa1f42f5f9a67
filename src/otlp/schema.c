/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of OTLP's messages, leaves first: a list of the fields, then MESSAGE, which expands it
 * three times. A new field is one row here and one line in proto/. Constants. */
#include "src/otlp/schema.h"

#include <assert.h>
#include <stddef.h>

#define WIRE_OF(kind)                                                                              \
    ((kind) <= OTLP_SINT32    ? WIRE_VARINT                                                        \
     : (kind) <= OTLP_DOUBLE  ? WIRE_FIXED64                                                       \
     : (kind) <= OTLP_FIXED32 ? WIRE_FIXED32                                                       \
                              : WIRE_BYTES)
/* table: of the nested message, or the names of an enumeration. */
/* clang-format makes these lines too wide: */
/* clang-format off */
#define ROW(id, text, json, what, table)                                                           \
    {                                                                                              \
        .name = #text, .json_name = #json,                                                         \
        .message = _Generic((table), const struct otlp_message *: (table), default: NULL),         \
        .names = _Generic((table), const struct otlp_names *: (table), default: NULL),             \
        .number = (id), .kind = OTLP_##what, .wire = WIRE_OF(OTLP_##what),                         \
        .name_size = sizeof(#text) - 1, .json_name_size = sizeof(#json) - 1                        \
    }
/* clang-format on */
#define SHORT_ROW(id, text, json, what, table)  [id] = ROW(id, text, json, what, table),
#define PLAN_ROW(id, text, json, what, table)   [(id) << 3 | WIRE_OF(OTLP_##what)] = OTLP_##what,
#define BIT(id)                                 (1u << (id))
#define SINGLE_BIT(id, text, json, what, table) | (OTLP_##what == OTLP_MESSAGE ? BIT(id) : 0)
/* one_of: bits of the members of the oneof; optional: of scalars with explicit presence. */
#define MESSAGE_WITH(symbol, text, list, long_rows, one_of_bits, optional_bits)                    \
    const struct otlp_message symbol = {                                                           \
        .name = (text),                                                                            \
        .plan = {list(PLAN_ROW)},                                                                  \
        .fields = {list(SHORT_ROW)},                                                               \
        .more = (long_rows),                                                                       \
        .one_of = (one_of_bits),                                                                   \
        .optional = (optional_bits),                                                               \
        .embedded = (0 list(SINGLE_BIT)) & ~(one_of_bits),                                         \
    }
#define MESSAGE(symbol, text, list, long_rows) MESSAGE_WITH(symbol, text, list, long_rows, 0u, 0u)

#define NAMES(symbol, ...)                                                                         \
    static const char *const symbol##_texts[] = {__VA_ARGS__};                                     \
    static const struct otlp_names symbol = {                                                      \
        .texts = symbol##_texts,                                                                   \
        .count = sizeof(symbol##_texts) / sizeof(symbol##_texts[0]),                               \
    }

NAMES(span_kinds, "SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
      "SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER");
NAMES(status_codes, "STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR");
NAMES(temporalities, "AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA",
      "AGGREGATION_TEMPORALITY_CUMULATIVE");
NAMES(severities, "SEVERITY_NUMBER_UNSPECIFIED", "SEVERITY_NUMBER_TRACE", "SEVERITY_NUMBER_TRACE2",
      "SEVERITY_NUMBER_TRACE3", "SEVERITY_NUMBER_TRACE4", "SEVERITY_NUMBER_DEBUG",
      "SEVERITY_NUMBER_DEBUG2", "SEVERITY_NUMBER_DEBUG3", "SEVERITY_NUMBER_DEBUG4",
      "SEVERITY_NUMBER_INFO", "SEVERITY_NUMBER_INFO2", "SEVERITY_NUMBER_INFO3",
      "SEVERITY_NUMBER_INFO4", "SEVERITY_NUMBER_WARN", "SEVERITY_NUMBER_WARN2",
      "SEVERITY_NUMBER_WARN3", "SEVERITY_NUMBER_WARN4", "SEVERITY_NUMBER_ERROR",
      "SEVERITY_NUMBER_ERROR2", "SEVERITY_NUMBER_ERROR3", "SEVERITY_NUMBER_ERROR4",
      "SEVERITY_NUMBER_FATAL", "SEVERITY_NUMBER_FATAL2", "SEVERITY_NUMBER_FATAL3",
      "SEVERITY_NUMBER_FATAL4");

#define ARRAY_VALUE_FIELDS(X) X(1, values, values, MESSAGES, &otlp_any_value)
static MESSAGE(otlp_array_value, "ArrayValue", ARRAY_VALUE_FIELDS, NULL);

#define KEY_VALUE_LIST_FIELDS(X) X(1, values, values, KEY_VALUE, &otlp_key_value)
static MESSAGE(otlp_key_value_list, "KeyValueList", KEY_VALUE_LIST_FIELDS, NULL);

#define ANY_VALUE_FIELDS(X)                                                                        \
    X(1, string_value, stringValue, STRING, NULL)                                                  \
    X(2, bool_value, boolValue, BOOL, NULL)                                                        \
    X(3, int_value, intValue, INT64, NULL)                                                         \
    X(4, double_value, doubleValue, DOUBLE, NULL)                                                  \
    X(5, array_value, arrayValue, MESSAGE, &otlp_array_value)                                      \
    X(6, kvlist_value, kvlistValue, MESSAGE, &otlp_key_value_list)                                 \
    X(7, bytes_value, bytesValue, BYTES, NULL)                                                     \
    X(8, string_value_strindex, stringValueStrindex, INT32, NULL)
MESSAGE_WITH(otlp_any_value, "AnyValue", ANY_VALUE_FIELDS, NULL,
             BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8), 0u);

#define KEY_VALUE_FIELDS(X)                                                                        \
    X(1, key, key, STRING, NULL)                                                                   \
    X(2, value, value, MESSAGE, &otlp_any_value)                                                   \
    X(3, key_strindex, keyStrindex, INT32, NULL)
MESSAGE(otlp_key_value, "KeyValue", KEY_VALUE_FIELDS, NULL);

#define SCOPE_FIELDS(X)                                                                            \
    X(1, name, name, STRING, NULL)                                                                 \
    X(2, version, version, STRING, NULL)                                                           \
    X(3, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(4, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)
static MESSAGE(otlp_scope, "InstrumentationScope", SCOPE_FIELDS, NULL);

#define ENTITY_REF_FIELDS(X)                                                                       \
    X(1, schema_url, schemaUrl, STRING, NULL)                                                      \
    X(2, type, type, STRING, NULL)                                                                 \
    X(3, id_keys, idKeys, STRINGS, NULL)                                                           \
    X(4, description_keys, descriptionKeys, STRINGS, NULL)
static MESSAGE(otlp_entity_ref, "EntityRef", ENTITY_REF_FIELDS, NULL);

#define RESOURCE_FIELDS(X)                                                                         \
    X(1, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(2, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)                           \
    X(3, entity_refs, entityRefs, MESSAGES, &otlp_entity_ref)
MESSAGE(otlp_resource, "Resource", RESOURCE_FIELDS, NULL);

#define EVENT_FIELDS(X)                                                                            \
    X(1, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(2, name, name, STRING, NULL)                                                                 \
    X(3, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(4, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)
static MESSAGE(otlp_event, "Event", EVENT_FIELDS, NULL);

#define LINK_FIELDS(X)                                                                             \
    X(1, trace_id, traceId, TRACE_ID, NULL)                                                        \
    X(2, span_id, spanId, SPAN_ID, NULL)                                                           \
    X(3, trace_state, traceState, STRING, NULL)                                                    \
    X(4, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(5, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)                           \
    X(6, flags, flags, FIXED32, NULL)
static MESSAGE(otlp_link, "Link", LINK_FIELDS, NULL);

#define STATUS_FIELDS(X)                                                                           \
    X(2, message, message, STRING, NULL)                                                           \
    X(3, code, code, ENUM, &status_codes)
static MESSAGE(otlp_status, "Status", STATUS_FIELDS, NULL);

static const struct otlp_field span_more = ROW(16, flags, flags, FIXED32, NULL);
#define SPAN_FIELDS(X)                                                                             \
    X(1, trace_id, traceId, TRACE_ID, NULL)                                                        \
    X(2, span_id, spanId, SPAN_ID, NULL)                                                           \
    X(3, trace_state, traceState, STRING, NULL)                                                    \
    X(4, parent_span_id, parentSpanId, SPAN_ID, NULL)                                              \
    X(5, name, name, STRING, NULL)                                                                 \
    X(6, kind, kind, ENUM, &span_kinds)                                                            \
    X(7, start_time_unix_nano, startTimeUnixNano, FIXED64, NULL)                                   \
    X(8, end_time_unix_nano, endTimeUnixNano, FIXED64, NULL)                                       \
    X(9, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(10, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)                          \
    X(11, events, events, MESSAGES, &otlp_event)                                                   \
    X(12, dropped_events_count, droppedEventsCount, UINT32, NULL)                                  \
    X(13, links, links, MESSAGES, &otlp_link)                                                      \
    X(14, dropped_links_count, droppedLinksCount, UINT32, NULL)                                    \
    X(15, status, status, MESSAGE, &otlp_status)
static MESSAGE(otlp_span, "Span", SPAN_FIELDS, &span_more);

#define SCOPE_SPANS_FIELDS(X)                                                                      \
    X(1, scope, scope, MESSAGE, &otlp_scope)                                                       \
    X(2, spans, spans, RECORDS, &otlp_span)                                                        \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_scope_spans, "ScopeSpans", SCOPE_SPANS_FIELDS, NULL);

static const struct otlp_field resource_spans_more =
    ROW(1000, deprecated_scope_spans, deprecatedScopeSpans, HOLDERS, &otlp_scope_spans);
#define RESOURCE_SPANS_FIELDS(X)                                                                   \
    X(1, resource, resource, MESSAGE, &otlp_resource)                                              \
    X(2, scope_spans, scopeSpans, HOLDERS, &otlp_scope_spans)                                      \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_resource_spans, "ResourceSpans", RESOURCE_SPANS_FIELDS, &resource_spans_more);

#define REQUEST_RESOURCE_SPANS_FIELDS(X)                                                           \
    X(1, resource_spans, resourceSpans, RESOURCES, &otlp_resource_spans)
static MESSAGE(otlp_request_resource_spans, "ExportTraceServiceRequest",
               REQUEST_RESOURCE_SPANS_FIELDS, NULL);

#define EXEMPLAR_FIELDS(X)                                                                         \
    X(2, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(3, as_double, asDouble, DOUBLE, NULL)                                                        \
    X(4, span_id, spanId, SPAN_ID, NULL)                                                           \
    X(5, trace_id, traceId, TRACE_ID, NULL)                                                        \
    X(6, as_int, asInt, SFIXED64, NULL)                                                            \
    X(7, filtered_attributes, filteredAttributes, KEY_VALUE, &otlp_key_value)
static MESSAGE_WITH(otlp_exemplar, "Exemplar", EXEMPLAR_FIELDS, NULL, BIT(3) | BIT(6), 0u);

#define NUMBER_DATA_POINT_FIELDS(X)                                                                \
    X(2, start_time_unix_nano, startTimeUnixNano, FIXED64, NULL)                                   \
    X(3, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(4, as_double, asDouble, DOUBLE, NULL)                                                        \
    X(5, exemplars, exemplars, MESSAGES, &otlp_exemplar)                                           \
    X(6, as_int, asInt, SFIXED64, NULL)                                                            \
    X(7, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(8, flags, flags, UINT32, NULL)
static MESSAGE_WITH(otlp_number_data_point, "NumberDataPoint", NUMBER_DATA_POINT_FIELDS, NULL,
                    BIT(4) | BIT(6), 0u);

#define HISTOGRAM_DATA_POINT_FIELDS(X)                                                             \
    X(2, start_time_unix_nano, startTimeUnixNano, FIXED64, NULL)                                   \
    X(3, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(4, count, count, FIXED64, NULL)                                                              \
    X(5, sum, sum, DOUBLE, NULL)                                                                   \
    X(6, bucket_counts, bucketCounts, PACKED_FIXED64, NULL)                                        \
    X(7, explicit_bounds, explicitBounds, PACKED_DOUBLE, NULL)                                     \
    X(8, exemplars, exemplars, MESSAGES, &otlp_exemplar)                                           \
    X(9, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(10, flags, flags, UINT32, NULL)                                                              \
    X(11, min, min, DOUBLE, NULL)                                                                  \
    X(12, max, max, DOUBLE, NULL)
static MESSAGE_WITH(otlp_histogram_data_point, "HistogramDataPoint", HISTOGRAM_DATA_POINT_FIELDS,
                    NULL, 0u, BIT(5) | BIT(11) | BIT(12));

#define BUCKETS_FIELDS(X)                                                                          \
    X(1, offset, offset, SINT32, NULL)                                                             \
    X(2, bucket_counts, bucketCounts, PACKED_UINT64, NULL)
static MESSAGE(otlp_buckets, "Buckets", BUCKETS_FIELDS, NULL);

#define EXPONENTIAL_DATA_POINT_FIELDS(X)                                                           \
    X(1, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(2, start_time_unix_nano, startTimeUnixNano, FIXED64, NULL)                                   \
    X(3, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(4, count, count, FIXED64, NULL)                                                              \
    X(5, sum, sum, DOUBLE, NULL)                                                                   \
    X(6, scale, scale, SINT32, NULL)                                                               \
    X(7, zero_count, zeroCount, FIXED64, NULL)                                                     \
    X(8, positive, positive, MESSAGE, &otlp_buckets)                                               \
    X(9, negative, negative, MESSAGE, &otlp_buckets)                                               \
    X(10, flags, flags, UINT32, NULL)                                                              \
    X(11, exemplars, exemplars, MESSAGES, &otlp_exemplar)                                          \
    X(12, min, min, DOUBLE, NULL)                                                                  \
    X(13, max, max, DOUBLE, NULL)                                                                  \
    X(14, zero_threshold, zeroThreshold, DOUBLE, NULL)
static MESSAGE_WITH(otlp_exponential_data_point, "ExponentialHistogramDataPoint",
                    EXPONENTIAL_DATA_POINT_FIELDS, NULL, 0u, BIT(5) | BIT(12) | BIT(13));

#define VALUE_AT_QUANTILE_FIELDS(X)                                                                \
    X(1, quantile, quantile, DOUBLE, NULL)                                                         \
    X(2, value, value, DOUBLE, NULL)
static MESSAGE(otlp_value_at_quantile, "ValueAtQuantile", VALUE_AT_QUANTILE_FIELDS, NULL);

#define SUMMARY_DATA_POINT_FIELDS(X)                                                               \
    X(2, start_time_unix_nano, startTimeUnixNano, FIXED64, NULL)                                   \
    X(3, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(4, count, count, FIXED64, NULL)                                                              \
    X(5, sum, sum, DOUBLE, NULL)                                                                   \
    X(6, quantile_values, quantileValues, MESSAGES, &otlp_value_at_quantile)                       \
    X(7, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(8, flags, flags, UINT32, NULL)
static MESSAGE(otlp_summary_data_point, "SummaryDataPoint", SUMMARY_DATA_POINT_FIELDS, NULL);

#define GAUGE_FIELDS(X) X(1, data_points, dataPoints, RECORDS, &otlp_number_data_point)
static MESSAGE(otlp_gauge, "Gauge", GAUGE_FIELDS, NULL);

#define SUM_FIELDS(X)                                                                              \
    X(1, data_points, dataPoints, RECORDS, &otlp_number_data_point)                                \
    X(2, aggregation_temporality, aggregationTemporality, ENUM, &temporalities)                    \
    X(3, is_monotonic, isMonotonic, BOOL, NULL)
static MESSAGE(otlp_sum, "Sum", SUM_FIELDS, NULL);

#define HISTOGRAM_FIELDS(X)                                                                        \
    X(1, data_points, dataPoints, RECORDS, &otlp_histogram_data_point)                             \
    X(2, aggregation_temporality, aggregationTemporality, ENUM, &temporalities)
static MESSAGE(otlp_histogram, "Histogram", HISTOGRAM_FIELDS, NULL);

#define EXPONENTIAL_HISTOGRAM_FIELDS(X)                                                            \
    X(1, data_points, dataPoints, RECORDS, &otlp_exponential_data_point)                           \
    X(2, aggregation_temporality, aggregationTemporality, ENUM, &temporalities)
static MESSAGE(otlp_exponential_histogram, "ExponentialHistogram", EXPONENTIAL_HISTOGRAM_FIELDS,
               NULL);

#define SUMMARY_FIELDS(X) X(1, data_points, dataPoints, RECORDS, &otlp_summary_data_point)
static MESSAGE(otlp_summary, "Summary", SUMMARY_FIELDS, NULL);

#define METRIC_FIELDS(X)                                                                           \
    X(1, name, name, STRING, NULL)                                                                 \
    X(2, description, description, STRING, NULL)                                                   \
    X(3, unit, unit, STRING, NULL)                                                                 \
    X(5, gauge, gauge, HOLDER, &otlp_gauge)                                                        \
    X(7, sum, sum, HOLDER, &otlp_sum)                                                              \
    X(9, histogram, histogram, HOLDER, &otlp_histogram)                                            \
    X(10, exponential_histogram, exponentialHistogram, HOLDER, &otlp_exponential_histogram)        \
    X(11, summary, summary, HOLDER, &otlp_summary)                                                 \
    X(12, metadata, metadata, KEY_VALUE, &otlp_key_value)
static MESSAGE_WITH(otlp_metric, "Metric", METRIC_FIELDS, NULL,
                    BIT(5) | BIT(7) | BIT(9) | BIT(10) | BIT(11), 0u);

#define SCOPE_METRICS_FIELDS(X)                                                                    \
    X(1, scope, scope, MESSAGE, &otlp_scope)                                                       \
    X(2, metrics, metrics, HOLDERS, &otlp_metric)                                                  \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_scope_metrics, "ScopeMetrics", SCOPE_METRICS_FIELDS, NULL);

static const struct otlp_field resource_metrics_more =
    ROW(1000, deprecated_scope_metrics, deprecatedScopeMetrics, HOLDERS, &otlp_scope_metrics);
#define RESOURCE_METRICS_FIELDS(X)                                                                 \
    X(1, resource, resource, MESSAGE, &otlp_resource)                                              \
    X(2, scope_metrics, scopeMetrics, HOLDERS, &otlp_scope_metrics)                                \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_resource_metrics, "ResourceMetrics", RESOURCE_METRICS_FIELDS,
               &resource_metrics_more);

#define REQUEST_RESOURCE_METRICS_FIELDS(X)                                                         \
    X(1, resource_metrics, resourceMetrics, RESOURCES, &otlp_resource_metrics)
static MESSAGE(otlp_request_resource_metrics, "ExportMetricsServiceRequest",
               REQUEST_RESOURCE_METRICS_FIELDS, NULL);

#define LOG_RECORD_FIELDS(X)                                                                       \
    X(1, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(2, severity_number, severityNumber, ENUM, &severities)                                       \
    X(3, severity_text, severityText, STRING, NULL)                                                \
    X(5, body, body, MESSAGE, &otlp_any_value)                                                     \
    X(6, attributes, attributes, KEY_VALUE, &otlp_key_value)                                       \
    X(7, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)                           \
    X(8, flags, flags, FIXED32, NULL)                                                              \
    X(9, trace_id, traceId, TRACE_ID, NULL)                                                        \
    X(10, span_id, spanId, SPAN_ID, NULL)                                                          \
    X(11, observed_time_unix_nano, observedTimeUnixNano, FIXED64, NULL)                            \
    X(12, event_name, eventName, STRING, NULL)
static MESSAGE(otlp_log_record, "LogRecord", LOG_RECORD_FIELDS, NULL);

#define SCOPE_LOGS_FIELDS(X)                                                                       \
    X(1, scope, scope, MESSAGE, &otlp_scope)                                                       \
    X(2, log_records, logRecords, RECORDS, &otlp_log_record)                                       \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_scope_logs, "ScopeLogs", SCOPE_LOGS_FIELDS, NULL);

static const struct otlp_field resource_logs_more =
    ROW(1000, deprecated_scope_logs, deprecatedScopeLogs, HOLDERS, &otlp_scope_logs);
#define RESOURCE_LOGS_FIELDS(X)                                                                    \
    X(1, resource, resource, MESSAGE, &otlp_resource)                                              \
    X(2, scope_logs, scopeLogs, HOLDERS, &otlp_scope_logs)                                         \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_resource_logs, "ResourceLogs", RESOURCE_LOGS_FIELDS, &resource_logs_more);

#define REQUEST_RESOURCE_LOGS_FIELDS(X)                                                            \
    X(1, resource_logs, resourceLogs, RESOURCES, &otlp_resource_logs)
static MESSAGE(otlp_request_resource_logs, "ExportLogsServiceRequest", REQUEST_RESOURCE_LOGS_FIELDS,
               NULL);

#define PROFILE_MAPPING_FIELDS(X)                                                                  \
    X(1, memory_start, memoryStart, UINT64, NULL)                                                  \
    X(2, memory_limit, memoryLimit, UINT64, NULL)                                                  \
    X(3, file_offset, fileOffset, UINT64, NULL)                                                    \
    X(4, filename_strindex, filenameStrindex, INT32, NULL)                                         \
    X(5, attribute_indices, attributeIndices, PACKED_INT32, NULL)
static MESSAGE(otlp_profile_mapping, "Mapping", PROFILE_MAPPING_FIELDS, NULL);

#define PROFILE_LINE_FIELDS(X)                                                                     \
    X(1, function_index, functionIndex, INT32, NULL)                                               \
    X(2, line, line, INT64, NULL)                                                                  \
    X(3, column, column, INT64, NULL)
static MESSAGE(otlp_profile_line, "Line", PROFILE_LINE_FIELDS, NULL);

#define PROFILE_LOCATION_FIELDS(X)                                                                 \
    X(1, mapping_index, mappingIndex, INT32, NULL)                                                 \
    X(2, address, address, UINT64, NULL)                                                           \
    X(3, lines, lines, MESSAGES, &otlp_profile_line)                                               \
    X(4, attribute_indices, attributeIndices, PACKED_INT32, NULL)
static MESSAGE(otlp_profile_location, "Location", PROFILE_LOCATION_FIELDS, NULL);

#define PROFILE_FUNCTION_FIELDS(X)                                                                 \
    X(1, name_strindex, nameStrindex, INT32, NULL)                                                 \
    X(2, system_name_strindex, systemNameStrindex, INT32, NULL)                                    \
    X(3, filename_strindex, filenameStrindex, INT32, NULL)                                         \
    X(4, start_line, startLine, INT64, NULL)
static MESSAGE(otlp_profile_function, "Function", PROFILE_FUNCTION_FIELDS, NULL);

/* Ids of a wrong length are found where the index is used: they cost one profile, not the request.
 */
#define PROFILE_LINK_FIELDS(X)                                                                     \
    X(1, trace_id, traceId, LOOSE_TRACE_ID, NULL)                                                  \
    X(2, span_id, spanId, LOOSE_SPAN_ID, NULL)
static MESSAGE(otlp_profile_link, "Link", PROFILE_LINK_FIELDS, NULL);

#define PROFILE_ATTRIBUTE_FIELDS(X)                                                                \
    X(1, key_strindex, keyStrindex, INT32, NULL)                                                   \
    X(2, value, value, MESSAGE, &otlp_any_value)                                                   \
    X(3, unit_strindex, unitStrindex, INT32, NULL)
static MESSAGE(otlp_profile_attribute, "KeyValueAndUnit", PROFILE_ATTRIBUTE_FIELDS, NULL);

#define PROFILE_STACK_FIELDS(X) X(1, location_indices, locationIndices, PACKED_INT32, NULL)
static MESSAGE(otlp_profile_stack, "Stack", PROFILE_STACK_FIELDS, NULL);

#define PROFILES_DICTIONARY_FIELDS(X)                                                              \
    X(1, mapping_table, mappingTable, MESSAGES, &otlp_profile_mapping)                             \
    X(2, location_table, locationTable, MESSAGES, &otlp_profile_location)                          \
    X(3, function_table, functionTable, MESSAGES, &otlp_profile_function)                          \
    X(4, link_table, linkTable, MESSAGES, &otlp_profile_link)                                      \
    X(5, string_table, stringTable, STRINGS, NULL)                                                 \
    X(6, attribute_table, attributeTable, MESSAGES, &otlp_profile_attribute)                       \
    X(7, stack_table, stackTable, MESSAGES, &otlp_profile_stack)
static MESSAGE(otlp_profiles_dictionary, "ProfilesDictionary", PROFILES_DICTIONARY_FIELDS, NULL);

#define VALUE_TYPE_FIELDS(X)                                                                       \
    X(1, type_strindex, typeStrindex, INT32, NULL)                                                 \
    X(2, unit_strindex, unitStrindex, INT32, NULL)
static MESSAGE(otlp_value_type, "ValueType", VALUE_TYPE_FIELDS, NULL);

#define SAMPLE_FIELDS(X)                                                                           \
    X(1, stack_index, stackIndex, INT32, NULL)                                                     \
    X(2, attribute_indices, attributeIndices, PACKED_INT32, NULL)                                  \
    X(3, link_index, linkIndex, INT32, NULL)                                                       \
    X(4, values, values, PACKED_INT64, NULL)                                                       \
    X(5, timestamps_unix_nano, timestampsUnixNano, PACKED_FIXED64, NULL)
static MESSAGE(otlp_sample, "Sample", SAMPLE_FIELDS, NULL);

#define PROFILE_FIELDS(X)                                                                          \
    X(1, sample_type, sampleType, MESSAGE, &otlp_value_type)                                       \
    X(2, samples, samples, RECORDS, &otlp_sample)                                                  \
    X(3, time_unix_nano, timeUnixNano, FIXED64, NULL)                                              \
    X(4, duration_nano, durationNano, UINT64, NULL)                                                \
    X(5, period_type, periodType, MESSAGE, &otlp_value_type)                                       \
    X(6, period, period, INT64, NULL)                                                              \
    X(7, profile_id, profileId, PROFILE_ID, NULL)                                                  \
    X(8, dropped_attributes_count, droppedAttributesCount, UINT32, NULL)                           \
    X(9, original_payload_format, originalPayloadFormat, STRING, NULL)                             \
    X(10, original_payload, originalPayload, BYTES, NULL)                                          \
    X(11, attribute_indices, attributeIndices, PACKED_INT32, NULL)
static MESSAGE(otlp_profile, "Profile", PROFILE_FIELDS, NULL);

#define SCOPE_PROFILES_FIELDS(X)                                                                   \
    X(1, scope, scope, MESSAGE, &otlp_scope)                                                       \
    X(2, profiles, profiles, HOLDERS, &otlp_profile)                                               \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_scope_profiles, "ScopeProfiles", SCOPE_PROFILES_FIELDS, NULL);

#define RESOURCE_PROFILES_FIELDS(X)                                                                \
    X(1, resource, resource, MESSAGE, &otlp_resource)                                              \
    X(2, scope_profiles, scopeProfiles, HOLDERS, &otlp_scope_profiles)                             \
    X(3, schema_url, schemaUrl, STRING, NULL)
static MESSAGE(otlp_resource_profiles, "ResourceProfiles", RESOURCE_PROFILES_FIELDS, NULL);

#define REQUEST_RESOURCE_PROFILES_FIELDS(X)                                                        \
    X(1, resource_profiles, resourceProfiles, RESOURCES, &otlp_resource_profiles)                  \
    X(2, dictionary, dictionary, MESSAGE, &otlp_profiles_dictionary)
static MESSAGE(otlp_request_resource_profiles, "ExportProfilesServiceRequest",
               REQUEST_RESOURCE_PROFILES_FIELDS, NULL);

#define TRACE_PARTIAL_FIELDS(X)                                                                    \
    X(1, rejected_spans, rejectedSpans, INT64, NULL)                                               \
    X(2, error_message, errorMessage, STRING, NULL)
static MESSAGE(otlp_trace_partial, "ExportTracePartialSuccess", TRACE_PARTIAL_FIELDS, NULL);

#define TRACE_RESPONSE_FIELDS(X) X(1, partial_success, partialSuccess, MESSAGE, &otlp_trace_partial)
static MESSAGE(otlp_trace_response, "ExportTraceServiceResponse", TRACE_RESPONSE_FIELDS, NULL);

#define METRICS_PARTIAL_FIELDS(X)                                                                  \
    X(1, rejected_data_points, rejectedDataPoints, INT64, NULL)                                    \
    X(2, error_message, errorMessage, STRING, NULL)
static MESSAGE(otlp_metrics_partial, "ExportMetricsPartialSuccess", METRICS_PARTIAL_FIELDS, NULL);

#define METRICS_RESPONSE_FIELDS(X)                                                                 \
    X(1, partial_success, partialSuccess, MESSAGE, &otlp_metrics_partial)
static MESSAGE(otlp_metrics_response, "ExportMetricsServiceResponse", METRICS_RESPONSE_FIELDS,
               NULL);

#define LOGS_PARTIAL_FIELDS(X)                                                                     \
    X(1, rejected_log_records, rejectedLogRecords, INT64, NULL)                                    \
    X(2, error_message, errorMessage, STRING, NULL)
static MESSAGE(otlp_logs_partial, "ExportLogsPartialSuccess", LOGS_PARTIAL_FIELDS, NULL);

#define LOGS_RESPONSE_FIELDS(X) X(1, partial_success, partialSuccess, MESSAGE, &otlp_logs_partial)
static MESSAGE(otlp_logs_response, "ExportLogsServiceResponse", LOGS_RESPONSE_FIELDS, NULL);

#define PROFILES_PARTIAL_FIELDS(X)                                                                 \
    X(1, rejected_profiles, rejectedProfiles, INT64, NULL)                                         \
    X(2, error_message, errorMessage, STRING, NULL)
static MESSAGE(otlp_profiles_partial, "ExportProfilesPartialSuccess", PROFILES_PARTIAL_FIELDS,
               NULL);

#define PROFILES_RESPONSE_FIELDS(X)                                                                \
    X(1, partial_success, partialSuccess, MESSAGE, &otlp_profiles_partial)
static MESSAGE(otlp_profiles_response, "ExportProfilesServiceResponse", PROFILES_RESPONSE_FIELDS,
               NULL);

#define RPC_STATUS_FIELDS(X)                                                                       \
    X(1, code, code, INT32, NULL)                                                                  \
    X(2, message, message, STRING, NULL)
MESSAGE(otlp_rpc_status, "google.rpc.Status", RPC_STATUS_FIELDS, NULL);

const struct otlp_message *otlp_request(enum signal_kind signal)
{
    static const struct otlp_message *const requests[SIGNAL_KINDS] = {
        [TRACES] = &otlp_request_resource_spans,
        [METRICS] = &otlp_request_resource_metrics,
        [LOGS] = &otlp_request_resource_logs,
        [PROFILES] = &otlp_request_resource_profiles,
    };
    assert(signal < SIGNAL_KINDS);
    return requests[signal];
}

const struct otlp_message *otlp_response(enum signal_kind signal)
{
    static const struct otlp_message *const responses[SIGNAL_KINDS] = {
        [TRACES] = &otlp_trace_response,
        [METRICS] = &otlp_metrics_response,
        [LOGS] = &otlp_logs_response,
        [PROFILES] = &otlp_profiles_response,
    };
    assert(signal < SIGNAL_KINDS);
    return responses[signal];
}

const struct otlp_field *otlp_field_find(const struct otlp_message *message, uint32_t number)
{
    if (number < OTLP_SHORT_FIELDS)
        return message->fields[number].kind != OTLP_NONE ? &message->fields[number] : NULL;
    return message->more != NULL && message->more->number == number ? message->more : NULL;
}
