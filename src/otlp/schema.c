/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of OTLP's messages, leaves first: a list of the fields, then MESSAGE, which expands it
 * twice. A new field is one row here and one line in proto/. Constants. */
#include "src/otlp/schema.h"

#include <assert.h>
#include <stddef.h>

#define WIRE_OF(kind)                                                                              \
    ((kind) <= OTLP_SINT32    ? WIRE_VARINT                                                        \
     : (kind) <= OTLP_DOUBLE  ? WIRE_FIXED64                                                       \
     : (kind) <= OTLP_FIXED32 ? WIRE_FIXED32                                                       \
                              : WIRE_BYTES)
#define ROW(id, text, what, table)                                                                 \
    {                                                                                              \
        .name = #text, .message = (table), .number = (id), .kind = OTLP_##what,                    \
        .wire = WIRE_OF(OTLP_##what)                                                               \
    }
#define SHORT_ROW(id, text, what, table) [id] = ROW(id, text, what, table),
#define PLAN_ROW(id, text, what, table)  [(id) << 3 | WIRE_OF(OTLP_##what)] = OTLP_##what,
#define MESSAGE(symbol, text, list, long_rows)                                                     \
    const struct otlp_message symbol = {                                                           \
        .name = (text),                                                                            \
        .plan = {list(PLAN_ROW)},                                                                  \
        .fields = {list(SHORT_ROW)},                                                               \
        .more = (long_rows),                                                                       \
    }

#define ARRAY_VALUE_FIELDS(X) X(1, values, MESSAGES, &otlp_any_value)
static MESSAGE(otlp_array_value, "ArrayValue", ARRAY_VALUE_FIELDS, NULL);

#define KEY_VALUE_LIST_FIELDS(X) X(1, values, KEY_VALUE, &otlp_key_value)
static MESSAGE(otlp_key_value_list, "KeyValueList", KEY_VALUE_LIST_FIELDS, NULL);

#define ANY_VALUE_FIELDS(X)                                                                        \
    X(1, string_value, STRING, NULL)                                                               \
    X(2, bool_value, BOOL, NULL)                                                                   \
    X(3, int_value, INT64, NULL)                                                                   \
    X(4, double_value, DOUBLE, NULL)                                                               \
    X(5, array_value, MESSAGE, &otlp_array_value)                                                  \
    X(6, kvlist_value, MESSAGE, &otlp_key_value_list)                                              \
    X(7, bytes_value, BYTES, NULL)                                                                 \
    X(8, string_value_strindex, INT32, NULL)
MESSAGE(otlp_any_value, "AnyValue", ANY_VALUE_FIELDS, NULL);

#define KEY_VALUE_FIELDS(X)                                                                        \
    X(1, key, STRING, NULL)                                                                        \
    X(2, value, MESSAGE, &otlp_any_value)                                                          \
    X(3, key_strindex, INT32, NULL)
MESSAGE(otlp_key_value, "KeyValue", KEY_VALUE_FIELDS, NULL);

#define SCOPE_FIELDS(X)                                                                            \
    X(1, name, STRING, NULL)                                                                       \
    X(2, version, STRING, NULL)                                                                    \
    X(3, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(4, dropped_attributes_count, UINT32, NULL)
static MESSAGE(otlp_scope, "InstrumentationScope", SCOPE_FIELDS, NULL);

#define ENTITY_REF_FIELDS(X)                                                                       \
    X(1, schema_url, STRING, NULL)                                                                 \
    X(2, type, STRING, NULL)                                                                       \
    X(3, id_keys, STRINGS, NULL)                                                                   \
    X(4, description_keys, STRINGS, NULL)
static MESSAGE(otlp_entity_ref, "EntityRef", ENTITY_REF_FIELDS, NULL);

#define RESOURCE_FIELDS(X)                                                                         \
    X(1, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(2, dropped_attributes_count, UINT32, NULL)                                                   \
    X(3, entity_refs, MESSAGES, &otlp_entity_ref)
MESSAGE(otlp_resource, "Resource", RESOURCE_FIELDS, NULL);

#define EVENT_FIELDS(X)                                                                            \
    X(1, time_unix_nano, FIXED64, NULL)                                                            \
    X(2, name, STRING, NULL)                                                                       \
    X(3, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(4, dropped_attributes_count, UINT32, NULL)
static MESSAGE(otlp_event, "Event", EVENT_FIELDS, NULL);

#define LINK_FIELDS(X)                                                                             \
    X(1, trace_id, TRACE_ID, NULL)                                                                 \
    X(2, span_id, SPAN_ID, NULL)                                                                   \
    X(3, trace_state, STRING, NULL)                                                                \
    X(4, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(5, dropped_attributes_count, UINT32, NULL)                                                   \
    X(6, flags, FIXED32, NULL)
static MESSAGE(otlp_link, "Link", LINK_FIELDS, NULL);

#define STATUS_FIELDS(X)                                                                           \
    X(2, message, STRING, NULL)                                                                    \
    X(3, code, ENUM, NULL)
static MESSAGE(otlp_status, "Status", STATUS_FIELDS, NULL);

static const struct otlp_field span_more = ROW(16, flags, FIXED32, NULL);
#define SPAN_FIELDS(X)                                                                             \
    X(1, trace_id, TRACE_ID, NULL)                                                                 \
    X(2, span_id, SPAN_ID, NULL)                                                                   \
    X(3, trace_state, STRING, NULL)                                                                \
    X(4, parent_span_id, SPAN_ID, NULL)                                                            \
    X(5, name, STRING, NULL)                                                                       \
    X(6, kind, ENUM, NULL)                                                                         \
    X(7, start_time_unix_nano, FIXED64, NULL)                                                      \
    X(8, end_time_unix_nano, FIXED64, NULL)                                                        \
    X(9, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(10, dropped_attributes_count, UINT32, NULL)                                                  \
    X(11, events, MESSAGES, &otlp_event)                                                           \
    X(12, dropped_events_count, UINT32, NULL)                                                      \
    X(13, links, MESSAGES, &otlp_link)                                                             \
    X(14, dropped_links_count, UINT32, NULL)                                                       \
    X(15, status, MESSAGE, &otlp_status)
static MESSAGE(otlp_span, "Span", SPAN_FIELDS, &span_more);

#define SCOPE_SPANS_FIELDS(X)                                                                      \
    X(1, scope, MESSAGE, &otlp_scope)                                                              \
    X(2, spans, RECORDS, &otlp_span)                                                               \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_scope_spans, "ScopeSpans", SCOPE_SPANS_FIELDS, NULL);

static const struct otlp_field resource_spans_more =
    ROW(1000, deprecated_scope_spans, HOLDERS, &otlp_scope_spans);
#define RESOURCE_SPANS_FIELDS(X)                                                                   \
    X(1, resource, MESSAGE, &otlp_resource)                                                        \
    X(2, scope_spans, HOLDERS, &otlp_scope_spans)                                                  \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_resource_spans, "ResourceSpans", RESOURCE_SPANS_FIELDS, &resource_spans_more);

#define REQUEST_RESOURCE_SPANS_FIELDS(X) X(1, resource_spans, RESOURCES, &otlp_resource_spans)
static MESSAGE(otlp_request_resource_spans, "ExportTraceServiceRequest",
               REQUEST_RESOURCE_SPANS_FIELDS, NULL);

#define EXEMPLAR_FIELDS(X)                                                                         \
    X(2, time_unix_nano, FIXED64, NULL)                                                            \
    X(3, as_double, DOUBLE, NULL)                                                                  \
    X(4, span_id, SPAN_ID, NULL)                                                                   \
    X(5, trace_id, TRACE_ID, NULL)                                                                 \
    X(6, as_int, SFIXED64, NULL)                                                                   \
    X(7, filtered_attributes, KEY_VALUE, &otlp_key_value)
static MESSAGE(otlp_exemplar, "Exemplar", EXEMPLAR_FIELDS, NULL);

#define NUMBER_DATA_POINT_FIELDS(X)                                                                \
    X(2, start_time_unix_nano, FIXED64, NULL)                                                      \
    X(3, time_unix_nano, FIXED64, NULL)                                                            \
    X(4, as_double, DOUBLE, NULL)                                                                  \
    X(5, exemplars, MESSAGES, &otlp_exemplar)                                                      \
    X(6, as_int, SFIXED64, NULL)                                                                   \
    X(7, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(8, flags, UINT32, NULL)
static MESSAGE(otlp_number_data_point, "NumberDataPoint", NUMBER_DATA_POINT_FIELDS, NULL);

#define HISTOGRAM_DATA_POINT_FIELDS(X)                                                             \
    X(2, start_time_unix_nano, FIXED64, NULL)                                                      \
    X(3, time_unix_nano, FIXED64, NULL)                                                            \
    X(4, count, FIXED64, NULL)                                                                     \
    X(5, sum, DOUBLE, NULL)                                                                        \
    X(6, bucket_counts, PACKED_FIXED64, NULL)                                                      \
    X(7, explicit_bounds, PACKED_DOUBLE, NULL)                                                     \
    X(8, exemplars, MESSAGES, &otlp_exemplar)                                                      \
    X(9, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(10, flags, UINT32, NULL)                                                                     \
    X(11, min, DOUBLE, NULL)                                                                       \
    X(12, max, DOUBLE, NULL)
static MESSAGE(otlp_histogram_data_point, "HistogramDataPoint", HISTOGRAM_DATA_POINT_FIELDS, NULL);

#define BUCKETS_FIELDS(X)                                                                          \
    X(1, offset, SINT32, NULL)                                                                     \
    X(2, bucket_counts, PACKED_VARINT, NULL)
static MESSAGE(otlp_buckets, "Buckets", BUCKETS_FIELDS, NULL);

#define EXPONENTIAL_DATA_POINT_FIELDS(X)                                                           \
    X(1, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(2, start_time_unix_nano, FIXED64, NULL)                                                      \
    X(3, time_unix_nano, FIXED64, NULL)                                                            \
    X(4, count, FIXED64, NULL)                                                                     \
    X(5, sum, DOUBLE, NULL)                                                                        \
    X(6, scale, SINT32, NULL)                                                                      \
    X(7, zero_count, FIXED64, NULL)                                                                \
    X(8, positive, MESSAGE, &otlp_buckets)                                                         \
    X(9, negative, MESSAGE, &otlp_buckets)                                                         \
    X(10, flags, UINT32, NULL)                                                                     \
    X(11, exemplars, MESSAGES, &otlp_exemplar)                                                     \
    X(12, min, DOUBLE, NULL)                                                                       \
    X(13, max, DOUBLE, NULL)                                                                       \
    X(14, zero_threshold, DOUBLE, NULL)
static MESSAGE(otlp_exponential_data_point, "ExponentialHistogramDataPoint",
               EXPONENTIAL_DATA_POINT_FIELDS, NULL);

#define VALUE_AT_QUANTILE_FIELDS(X)                                                                \
    X(1, quantile, DOUBLE, NULL)                                                                   \
    X(2, value, DOUBLE, NULL)
static MESSAGE(otlp_value_at_quantile, "ValueAtQuantile", VALUE_AT_QUANTILE_FIELDS, NULL);

#define SUMMARY_DATA_POINT_FIELDS(X)                                                               \
    X(2, start_time_unix_nano, FIXED64, NULL)                                                      \
    X(3, time_unix_nano, FIXED64, NULL)                                                            \
    X(4, count, FIXED64, NULL)                                                                     \
    X(5, sum, DOUBLE, NULL)                                                                        \
    X(6, quantile_values, MESSAGES, &otlp_value_at_quantile)                                       \
    X(7, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(8, flags, UINT32, NULL)
static MESSAGE(otlp_summary_data_point, "SummaryDataPoint", SUMMARY_DATA_POINT_FIELDS, NULL);

#define GAUGE_FIELDS(X) X(1, data_points, RECORDS, &otlp_number_data_point)
static MESSAGE(otlp_gauge, "Gauge", GAUGE_FIELDS, NULL);

#define SUM_FIELDS(X)                                                                              \
    X(1, data_points, RECORDS, &otlp_number_data_point)                                            \
    X(2, aggregation_temporality, ENUM, NULL)                                                      \
    X(3, is_monotonic, BOOL, NULL)
static MESSAGE(otlp_sum, "Sum", SUM_FIELDS, NULL);

#define HISTOGRAM_FIELDS(X)                                                                        \
    X(1, data_points, RECORDS, &otlp_histogram_data_point)                                         \
    X(2, aggregation_temporality, ENUM, NULL)
static MESSAGE(otlp_histogram, "Histogram", HISTOGRAM_FIELDS, NULL);

#define EXPONENTIAL_HISTOGRAM_FIELDS(X)                                                            \
    X(1, data_points, RECORDS, &otlp_exponential_data_point)                                       \
    X(2, aggregation_temporality, ENUM, NULL)
static MESSAGE(otlp_exponential_histogram, "ExponentialHistogram", EXPONENTIAL_HISTOGRAM_FIELDS,
               NULL);

#define SUMMARY_FIELDS(X) X(1, data_points, RECORDS, &otlp_summary_data_point)
static MESSAGE(otlp_summary, "Summary", SUMMARY_FIELDS, NULL);

#define METRIC_FIELDS(X)                                                                           \
    X(1, name, STRING, NULL)                                                                       \
    X(2, description, STRING, NULL)                                                                \
    X(3, unit, STRING, NULL)                                                                       \
    X(5, gauge, HOLDERS, &otlp_gauge)                                                              \
    X(7, sum, HOLDERS, &otlp_sum)                                                                  \
    X(9, histogram, HOLDERS, &otlp_histogram)                                                      \
    X(10, exponential_histogram, HOLDERS, &otlp_exponential_histogram)                             \
    X(11, summary, HOLDERS, &otlp_summary)                                                         \
    X(12, metadata, KEY_VALUE, &otlp_key_value)
static MESSAGE(otlp_metric, "Metric", METRIC_FIELDS, NULL);

#define SCOPE_METRICS_FIELDS(X)                                                                    \
    X(1, scope, MESSAGE, &otlp_scope)                                                              \
    X(2, metrics, HOLDERS, &otlp_metric)                                                           \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_scope_metrics, "ScopeMetrics", SCOPE_METRICS_FIELDS, NULL);

static const struct otlp_field resource_metrics_more =
    ROW(1000, deprecated_scope_metrics, HOLDERS, &otlp_scope_metrics);
#define RESOURCE_METRICS_FIELDS(X)                                                                 \
    X(1, resource, MESSAGE, &otlp_resource)                                                        \
    X(2, scope_metrics, HOLDERS, &otlp_scope_metrics)                                              \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_resource_metrics, "ResourceMetrics", RESOURCE_METRICS_FIELDS,
               &resource_metrics_more);

#define REQUEST_RESOURCE_METRICS_FIELDS(X) X(1, resource_metrics, RESOURCES, &otlp_resource_metrics)
static MESSAGE(otlp_request_resource_metrics, "ExportMetricsServiceRequest",
               REQUEST_RESOURCE_METRICS_FIELDS, NULL);

#define LOG_RECORD_FIELDS(X)                                                                       \
    X(1, time_unix_nano, FIXED64, NULL)                                                            \
    X(2, severity_number, ENUM, NULL)                                                              \
    X(3, severity_text, STRING, NULL)                                                              \
    X(5, body, MESSAGE, &otlp_any_value)                                                           \
    X(6, attributes, KEY_VALUE, &otlp_key_value)                                                   \
    X(7, dropped_attributes_count, UINT32, NULL)                                                   \
    X(8, flags, FIXED32, NULL)                                                                     \
    X(9, trace_id, TRACE_ID, NULL)                                                                 \
    X(10, span_id, SPAN_ID, NULL)                                                                  \
    X(11, observed_time_unix_nano, FIXED64, NULL)                                                  \
    X(12, event_name, STRING, NULL)
static MESSAGE(otlp_log_record, "LogRecord", LOG_RECORD_FIELDS, NULL);

#define SCOPE_LOGS_FIELDS(X)                                                                       \
    X(1, scope, MESSAGE, &otlp_scope)                                                              \
    X(2, log_records, RECORDS, &otlp_log_record)                                                   \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_scope_logs, "ScopeLogs", SCOPE_LOGS_FIELDS, NULL);

static const struct otlp_field resource_logs_more =
    ROW(1000, deprecated_scope_logs, HOLDERS, &otlp_scope_logs);
#define RESOURCE_LOGS_FIELDS(X)                                                                    \
    X(1, resource, MESSAGE, &otlp_resource)                                                        \
    X(2, scope_logs, HOLDERS, &otlp_scope_logs)                                                    \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_resource_logs, "ResourceLogs", RESOURCE_LOGS_FIELDS, &resource_logs_more);

#define REQUEST_RESOURCE_LOGS_FIELDS(X) X(1, resource_logs, RESOURCES, &otlp_resource_logs)
static MESSAGE(otlp_request_resource_logs, "ExportLogsServiceRequest", REQUEST_RESOURCE_LOGS_FIELDS,
               NULL);

#define PROFILE_MAPPING_FIELDS(X)                                                                  \
    X(1, memory_start, UINT64, NULL)                                                               \
    X(2, memory_limit, UINT64, NULL)                                                               \
    X(3, file_offset, UINT64, NULL)                                                                \
    X(4, filename_strindex, INT32, NULL)                                                           \
    X(5, attribute_indices, PACKED_VARINT, NULL)
static MESSAGE(otlp_profile_mapping, "Mapping", PROFILE_MAPPING_FIELDS, NULL);

#define PROFILE_LINE_FIELDS(X)                                                                     \
    X(1, function_index, INT32, NULL)                                                              \
    X(2, line, INT64, NULL)                                                                        \
    X(3, column, INT64, NULL)
static MESSAGE(otlp_profile_line, "Line", PROFILE_LINE_FIELDS, NULL);

#define PROFILE_LOCATION_FIELDS(X)                                                                 \
    X(1, mapping_index, INT32, NULL)                                                               \
    X(2, address, UINT64, NULL)                                                                    \
    X(3, lines, MESSAGES, &otlp_profile_line)                                                      \
    X(4, attribute_indices, PACKED_VARINT, NULL)
static MESSAGE(otlp_profile_location, "Location", PROFILE_LOCATION_FIELDS, NULL);

#define PROFILE_FUNCTION_FIELDS(X)                                                                 \
    X(1, name_strindex, INT32, NULL)                                                               \
    X(2, system_name_strindex, INT32, NULL)                                                        \
    X(3, filename_strindex, INT32, NULL)                                                           \
    X(4, start_line, INT64, NULL)
static MESSAGE(otlp_profile_function, "Function", PROFILE_FUNCTION_FIELDS, NULL);

/* Ids of a wrong length are found where the index is used: they cost one profile, not the request.
 */
#define PROFILE_LINK_FIELDS(X)                                                                     \
    X(1, trace_id, BYTES, NULL)                                                                    \
    X(2, span_id, BYTES, NULL)
static MESSAGE(otlp_profile_link, "Link", PROFILE_LINK_FIELDS, NULL);

#define PROFILE_ATTRIBUTE_FIELDS(X)                                                                \
    X(1, key_strindex, INT32, NULL)                                                                \
    X(2, value, MESSAGE, &otlp_any_value)                                                          \
    X(3, unit_strindex, INT32, NULL)
static MESSAGE(otlp_profile_attribute, "KeyValueAndUnit", PROFILE_ATTRIBUTE_FIELDS, NULL);

#define PROFILE_STACK_FIELDS(X) X(1, location_indices, PACKED_VARINT, NULL)
static MESSAGE(otlp_profile_stack, "Stack", PROFILE_STACK_FIELDS, NULL);

#define PROFILES_DICTIONARY_FIELDS(X)                                                              \
    X(1, mapping_table, MESSAGES, &otlp_profile_mapping)                                           \
    X(2, location_table, MESSAGES, &otlp_profile_location)                                         \
    X(3, function_table, MESSAGES, &otlp_profile_function)                                         \
    X(4, link_table, MESSAGES, &otlp_profile_link)                                                 \
    X(5, string_table, STRINGS, NULL)                                                              \
    X(6, attribute_table, MESSAGES, &otlp_profile_attribute)                                       \
    X(7, stack_table, MESSAGES, &otlp_profile_stack)
static MESSAGE(otlp_profiles_dictionary, "ProfilesDictionary", PROFILES_DICTIONARY_FIELDS, NULL);

#define VALUE_TYPE_FIELDS(X)                                                                       \
    X(1, type_strindex, INT32, NULL)                                                               \
    X(2, unit_strindex, INT32, NULL)
static MESSAGE(otlp_value_type, "ValueType", VALUE_TYPE_FIELDS, NULL);

#define SAMPLE_FIELDS(X)                                                                           \
    X(1, stack_index, INT32, NULL)                                                                 \
    X(2, attribute_indices, PACKED_VARINT, NULL)                                                   \
    X(3, link_index, INT32, NULL)                                                                  \
    X(4, values, PACKED_VARINT, NULL)                                                              \
    X(5, timestamps_unix_nano, PACKED_FIXED64, NULL)
static MESSAGE(otlp_sample, "Sample", SAMPLE_FIELDS, NULL);

#define PROFILE_FIELDS(X)                                                                          \
    X(1, sample_type, MESSAGE, &otlp_value_type)                                                   \
    X(2, samples, RECORDS, &otlp_sample)                                                           \
    X(3, time_unix_nano, FIXED64, NULL)                                                            \
    X(4, duration_nano, UINT64, NULL)                                                              \
    X(5, period_type, MESSAGE, &otlp_value_type)                                                   \
    X(6, period, INT64, NULL)                                                                      \
    X(7, profile_id, BYTES, NULL)                                                                  \
    X(8, dropped_attributes_count, UINT32, NULL)                                                   \
    X(9, original_payload_format, STRING, NULL)                                                    \
    X(10, original_payload, BYTES, NULL)                                                           \
    X(11, attribute_indices, PACKED_VARINT, NULL)
static MESSAGE(otlp_profile, "Profile", PROFILE_FIELDS, NULL);

#define SCOPE_PROFILES_FIELDS(X)                                                                   \
    X(1, scope, MESSAGE, &otlp_scope)                                                              \
    X(2, profiles, HOLDERS, &otlp_profile)                                                         \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_scope_profiles, "ScopeProfiles", SCOPE_PROFILES_FIELDS, NULL);

#define RESOURCE_PROFILES_FIELDS(X)                                                                \
    X(1, resource, MESSAGE, &otlp_resource)                                                        \
    X(2, scope_profiles, HOLDERS, &otlp_scope_profiles)                                            \
    X(3, schema_url, STRING, NULL)
static MESSAGE(otlp_resource_profiles, "ResourceProfiles", RESOURCE_PROFILES_FIELDS, NULL);

#define REQUEST_RESOURCE_PROFILES_FIELDS(X)                                                        \
    X(1, resource_profiles, RESOURCES, &otlp_resource_profiles)                                    \
    X(2, dictionary, MESSAGE, &otlp_profiles_dictionary)
static MESSAGE(otlp_request_resource_profiles, "ExportProfilesServiceRequest",
               REQUEST_RESOURCE_PROFILES_FIELDS, NULL);

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

const struct otlp_field *otlp_field_find(const struct otlp_message *message, uint32_t number)
{
    assert(message != NULL);
    if (number < OTLP_SHORT_FIELDS)
        return message->fields[number].kind != OTLP_NONE ? &message->fields[number] : NULL;
    return message->more != NULL && message->more->number == number ? message->more : NULL;
}
