/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar. A field's name says what it means, which the tables spell the same everywhere:
 * "…_strindex", "stack_index", "time_unix_nano". */
#include "tests/attack/form.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define ROW(id, text, json, what, table)                                                           \
    [id] = {.name = #text,                                                                         \
            .json_name = #json,                                                                    \
            .message = (table),                                                                    \
            .number = (id),                                                                        \
            .kind = OTLP_##what,                                                                   \
            .name_size = sizeof(#text) - 1,                                                        \
            .json_name_size = sizeof(#json) - 1}
#define MESSAGE(symbol, ...)                                                                       \
    static const struct otlp_message symbol = {.name = #symbol, .fields = {__VA_ARGS__}}

/* What the tables of layout 1.10 have and do not export is taken from there by walking. */
static const struct otlp_message *inside(const struct otlp_message *message, uint32_t number)
{
    const struct otlp_field *field = otlp_field_find(message, number);
    assert(field != NULL && field->message != NULL);
    return field->message;
}

/* pprof (google/pprof, profile.proto). Its ids are named as tables here. */
MESSAGE(pprof_value_type, ROW(1, type_strindex, type, INT64, NULL),
        ROW(2, unit_strindex, unit, INT64, NULL));
MESSAGE(pprof_label, ROW(1, key_strindex, key, INT64, NULL), ROW(2, str_strindex, str, INT64, NULL),
        ROW(3, num, num, INT64, NULL), ROW(4, num_unit_strindex, numUnit, INT64, NULL));
MESSAGE(pprof_sample, ROW(1, location_ids, locationId, PACKED_UINT64, NULL),
        ROW(2, values, value, PACKED_INT64, NULL), ROW(3, label, label, MESSAGES, &pprof_label));
MESSAGE(pprof_mapping, ROW(1, id, id, UINT64, NULL),
        ROW(2, memory_start, memoryStart, UINT64, NULL),
        ROW(3, memory_limit, memoryLimit, UINT64, NULL),
        ROW(4, file_offset, fileOffset, UINT64, NULL),
        ROW(5, filename_strindex, filename, INT64, NULL),
        ROW(6, build_id_strindex, buildId, INT64, NULL),
        ROW(7, has_functions, hasFunctions, BOOL, NULL),
        ROW(8, has_filenames, hasFilenames, BOOL, NULL),
        ROW(9, has_line_numbers, hasLineNumbers, BOOL, NULL),
        ROW(10, has_inline_frames, hasInlineFrames, BOOL, NULL));
MESSAGE(pprof_line, ROW(1, function_id, functionId, UINT64, NULL), ROW(2, line, line, INT64, NULL),
        ROW(3, column, column, INT64, NULL));
MESSAGE(pprof_location, ROW(1, id, id, UINT64, NULL), ROW(2, mapping_id, mappingId, UINT64, NULL),
        ROW(3, address, address, UINT64, NULL), ROW(4, line, line, MESSAGES, &pprof_line),
        ROW(5, is_folded, isFolded, BOOL, NULL));
MESSAGE(pprof_function, ROW(1, id, id, UINT64, NULL), ROW(2, name_strindex, name, INT64, NULL),
        ROW(3, system_name_strindex, systemName, INT64, NULL),
        ROW(4, filename_strindex, filename, INT64, NULL),
        ROW(5, start_line, startLine, INT64, NULL));
MESSAGE(pprof_profile, ROW(1, sample_type, sampleType, MESSAGES, &pprof_value_type),
        ROW(2, sample, sample, RECORDS, &pprof_sample),
        ROW(3, mapping_table, mapping, MESSAGES, &pprof_mapping),
        ROW(4, location_table, location, MESSAGES, &pprof_location),
        ROW(5, function_table, function, MESSAGES, &pprof_function),
        ROW(6, string_table, stringTable, STRINGS, NULL),
        ROW(7, drop_frames_strindex, dropFrames, INT64, NULL),
        ROW(8, keep_frames_strindex, keepFrames, INT64, NULL),
        ROW(9, time_nanos, timeNanos, INT64, NULL),
        ROW(10, duration_nanos, durationNanos, INT64, NULL),
        ROW(11, period_type, periodType, MESSAGE, &pprof_value_type),
        ROW(12, period, period, INT64, NULL),
        ROW(13, comment_strindices, comment, PACKED_INT64, NULL),
        ROW(14, default_type_strindex, defaultSampleType, INT64, NULL));

/* push.v1 (grafana/pyroscope, push.proto). */
MESSAGE(push_label, ROW(1, key, name, STRING, NULL), ROW(2, value, value, STRING, NULL));
MESSAGE(push_sample, ROW(1, raw_profile, rawProfile, BYTES, NULL), ROW(2, ID, ID, STRING, NULL));
MESSAGE(push_series, ROW(1, labels, labels, KEY_VALUE, &push_label),
        ROW(2, samples, samples, RECORDS, &push_sample));
MESSAGE(push_request, ROW(1, series, series, RESOURCES, &push_series));

/* zipkin.proto (openzipkin/zipkin-api). */
MESSAGE(zipkin_endpoint, ROW(1, service_name, serviceName, STRING, NULL),
        ROW(2, ipv4, ipv4, BYTES, NULL), ROW(3, ipv6, ipv6, BYTES, NULL),
        ROW(4, port, port, INT32, NULL));
MESSAGE(zipkin_annotation, ROW(1, micros, timestamp, FIXED64, NULL),
        ROW(2, value, value, STRING, NULL));
MESSAGE(zipkin_tag, ROW(1, key, key, STRING, NULL), ROW(2, value, value, STRING, NULL));
MESSAGE(zipkin_span, ROW(1, trace_id, traceId, BYTES, NULL),
        ROW(2, parent_span_id, parentId, BYTES, NULL), ROW(3, span_id, id, BYTES, NULL),
        ROW(4, kind, kind, ENUM, NULL), ROW(5, name, name, STRING, NULL),
        ROW(6, micros, timestamp, FIXED64, NULL), ROW(7, duration, duration, UINT64, NULL),
        ROW(8, local_endpoint, localEndpoint, MESSAGE, &zipkin_endpoint),
        ROW(9, remote_endpoint, remoteEndpoint, MESSAGE, &zipkin_endpoint),
        ROW(10, annotations, annotations, MESSAGES, &zipkin_annotation),
        ROW(11, tags, tags, KEY_VALUE, &zipkin_tag), ROW(12, debug, debug, BOOL, NULL),
        ROW(13, shared, shared, BOOL, NULL));
MESSAGE(zipkin_spans, ROW(1, spans, spans, RECORDS, &zipkin_span));

/* Jaeger's model.proto and collector.proto (api_v2). */
MESSAGE(jaeger_time, ROW(1, seconds, seconds, INT64, NULL), ROW(2, nanos, nanos, INT32, NULL));
MESSAGE(jaeger_duration, ROW(1, whole, seconds, INT64, NULL), ROW(2, nanos, nanos, INT32, NULL));
MESSAGE(jaeger_tag, ROW(1, key, key, STRING, NULL), ROW(2, v_type, vType, ENUM, NULL),
        ROW(3, v_str, vStr, STRING, NULL), ROW(4, v_bool, vBool, BOOL, NULL),
        ROW(5, v_int64, vInt64, INT64, NULL), ROW(6, v_float64, vFloat64, DOUBLE, NULL),
        ROW(7, v_binary, vBinary, BYTES, NULL));
MESSAGE(jaeger_log, ROW(1, timestamp, timestamp, MESSAGE, &jaeger_time),
        ROW(2, fields, fields, KEY_VALUE, &jaeger_tag));
MESSAGE(jaeger_reference, ROW(1, trace_id, traceId, BYTES, NULL),
        ROW(2, span_id, spanId, BYTES, NULL), ROW(3, ref_type, refType, ENUM, NULL));
MESSAGE(jaeger_process, ROW(1, service_name, serviceName, STRING, NULL),
        ROW(2, tags, tags, KEY_VALUE, &jaeger_tag));
MESSAGE(jaeger_span, ROW(1, trace_id, traceId, BYTES, NULL), ROW(2, span_id, spanId, BYTES, NULL),
        ROW(3, operation_name, operationName, STRING, NULL),
        ROW(4, references, references, MESSAGES, &jaeger_reference),
        ROW(5, flags, flags, UINT32, NULL), ROW(6, start_time, startTime, MESSAGE, &jaeger_time),
        ROW(7, duration, duration, MESSAGE, &jaeger_duration),
        ROW(8, tags, tags, KEY_VALUE, &jaeger_tag), ROW(9, logs, logs, MESSAGES, &jaeger_log),
        ROW(10, process, process, MESSAGE, &jaeger_process),
        ROW(11, process_id, processId, STRING, NULL), ROW(12, warnings, warnings, STRINGS, NULL));
MESSAGE(jaeger_batch, ROW(1, spans, spans, RECORDS, &jaeger_span),
        ROW(2, process, process, MESSAGE, &jaeger_process));
MESSAGE(jaeger_request, ROW(1, batch, batch, HOLDER, &jaeger_batch));

/* Layout 1.7 (opentelemetry-proto v1.7.0, profiles.proto). */
MESSAGE(old_value_type, ROW(1, type_strindex, typeStrindex, INT32, NULL),
        ROW(2, unit_strindex, unitStrindex, INT32, NULL),
        ROW(3, aggregation_temporality, aggregationTemporality, ENUM, NULL));
MESSAGE(old_sample, ROW(1, locations_start_index, locationsStartIndex, INT32, NULL),
        ROW(2, locations_length, locationsLength, INT32, NULL),
        ROW(3, values, value, PACKED_INT64, NULL),
        ROW(4, attribute_indices, attributeIndices, PACKED_INT32, NULL),
        ROW(5, link_index, linkIndex, INT32, NULL),
        ROW(6, timestamps_unix_nano, timestampsUnixNano, PACKED_UINT64, NULL));
MESSAGE(old_unit, ROW(1, attribute_key_strindex, attributeKeyStrindex, INT32, NULL),
        ROW(2, unit_strindex, unitStrindex, INT32, NULL));
static struct otlp_message old_location = {
    .name = "old_location",
    .fields = {ROW(1, mapping_index, mappingIndex, INT32, NULL),
               ROW(2, address, address, UINT64, NULL), ROW(3, line, line, MESSAGES, NULL),
               ROW(4, is_folded, isFolded, BOOL, NULL),
               ROW(5, attribute_indices, attributeIndices, PACKED_INT32, NULL)}};
static struct otlp_message old_dictionary = {
    .name = "old_dictionary",
    .fields = {ROW(1, mapping_table, mappingTable, MESSAGES, NULL),
               ROW(2, location_table, locationTable, MESSAGES, &old_location),
               ROW(3, function_table, functionTable, MESSAGES, NULL),
               ROW(4, link_table, linkTable, MESSAGES, NULL),
               ROW(5, string_table, stringTable, STRINGS, NULL),
               ROW(6, attribute_table, attributeTable, MESSAGES, &otlp_key_value),
               ROW(7, attribute_units, attributeUnits, MESSAGES, &old_unit)}};
MESSAGE(old_profile, ROW(1, sample_type, sampleType, MESSAGES, &old_value_type),
        ROW(2, sample, sample, RECORDS, &old_sample),
        ROW(3, location_indices, locationIndices, PACKED_INT32, NULL),
        ROW(4, time_nanos, timeNanos, INT64, NULL),
        ROW(5, duration_nanos, durationNanos, INT64, NULL),
        ROW(6, period_type, periodType, MESSAGE, &old_value_type),
        ROW(7, period, period, INT64, NULL),
        ROW(8, comment_strindices, commentStrindices, PACKED_INT32, NULL),
        ROW(9, default_sample_type_index, defaultSampleTypeIndex, INT32, NULL),
        ROW(10, profile_id, profileId, PROFILE_ID, NULL),
        ROW(12, original_payload_format, originalPayloadFormat, STRING, NULL),
        ROW(13, original_payload, originalPayload, BYTES, NULL),
        ROW(14, attribute_indices, attributeIndices, PACKED_INT32, NULL));

/* 1.8 and 1.9 number the fields of samples, 1.8 those of profiles too, in another way than 1.10. */
MESSAGE(sample_1_9, ROW(1, stack_index, stackIndex, INT32, NULL),
        ROW(2, values, values, PACKED_INT64, NULL),
        ROW(3, attribute_indices, attributeIndices, PACKED_INT32, NULL),
        ROW(4, link_index, linkIndex, INT32, NULL),
        ROW(5, timestamps_unix_nano, timestampsUnixNano, PACKED_FIXED64, NULL));

enum { MESSAGES_MAX = 24 };
/* Copies of messages of 1.10 with another message inside. */
static struct otlp_message copies[MESSAGES_MAX];
static unsigned copies_count;

static struct otlp_message *copy_of(const struct otlp_message *message)
{
    assert(copies_count < MESSAGES_MAX);
    copies[copies_count] = *message;
    return &copies[copies_count++];
}

static const struct otlp_message *request_with_profile(const struct otlp_message *profile,
                                                       const struct otlp_message *dictionary)
{
    const struct otlp_message *new = otlp_request(PROFILES);
    struct otlp_message *request = copy_of(new);
    struct otlp_message *resource = copy_of(inside(new, 1));
    struct otlp_message *scope = copy_of(inside(inside(new, 1), 2));
    request->fields[1].message = resource;
    resource->fields[2].message = scope;
    scope->fields[2].message = profile;
    if (dictionary != NULL)
        request->fields[2].message = dictionary;
    return request;
}

static const struct otlp_message *new_profile(void)
{
    return inside(inside(inside(otlp_request(PROFILES), 1), 2), 2);
}

static const struct otlp_message *request_1_9(void)
{
    struct otlp_message *profile = copy_of(new_profile());
    profile->fields[2].message = &sample_1_9;
    return request_with_profile(profile, NULL);
}

/* Comments are field 7, and what follows them is one further. */
static const struct otlp_message *request_1_8(void)
{
    struct otlp_message *profile = copy_of(new_profile());
    for (uint16_t i = 12; i > 7; i--) {
        profile->fields[i] = profile->fields[i - 1];
        profile->fields[i].number = i;
    }
    static const struct otlp_field comments[] = {
        ROW(0, comment_strindices, commentStrindices, PACKED_INT32, NULL)};
    profile->fields[7] = comments[0];
    profile->fields[7].number = 7;
    profile->fields[2].message = &sample_1_9;
    return request_with_profile(profile, NULL);
}

static const struct otlp_message *request_1_7(void)
{
    const struct otlp_message *dictionary = inside(otlp_request(PROFILES), 2);
    old_location.fields[3].message = inside(inside(dictionary, 2), 3);
    for (uint32_t i = 1; i <= 4; i++)
        if (i != 2)
            old_dictionary.fields[i].message = inside(dictionary, i);
    return request_with_profile(&old_profile, &old_dictionary);
}

struct meaning {
    const char *name;
    enum form_role role;
    enum form_table to;
};

static const struct meaning meanings[] = {
    {"attribute_indices", ROLE_INDEX, TABLE_ATTRIBUTES},
    {"mapping_index", ROLE_INDEX, TABLE_MAPPINGS},
    {"location_indices", ROLE_INDEX, TABLE_LOCATIONS},
    {"function_index", ROLE_INDEX, TABLE_FUNCTIONS},
    {"link_index", ROLE_INDEX, TABLE_LINKS},
    {"stack_index", ROLE_INDEX, TABLE_STACKS},
    {"comment_strindices", ROLE_INDEX, TABLE_STRINGS},
    {"location_ids", ROLE_ID, TABLE_LOCATIONS},
    {"mapping_id", ROLE_ID, TABLE_MAPPINGS},
    {"function_id", ROLE_ID, TABLE_FUNCTIONS},
    {"id", ROLE_OWN_ID, TABLE_NONE},
    {"mapping_table", ROLE_ENTRY, TABLE_MAPPINGS},
    {"location_table", ROLE_ENTRY, TABLE_LOCATIONS},
    {"function_table", ROLE_ENTRY, TABLE_FUNCTIONS},
    {"link_table", ROLE_ENTRY, TABLE_LINKS},
    {"string_table", ROLE_ENTRY, TABLE_STRINGS},
    {"attribute_table", ROLE_ENTRY, TABLE_ATTRIBUTES},
    {"stack_table", ROLE_ENTRY, TABLE_STACKS},
    {"time_unix_nano", ROLE_TIME, TABLE_NONE},
    {"start_time_unix_nano", ROLE_TIME, TABLE_NONE},
    {"end_time_unix_nano", ROLE_TIME, TABLE_NONE},
    {"observed_time_unix_nano", ROLE_TIME, TABLE_NONE},
    {"timestamps_unix_nano", ROLE_TIME, TABLE_NONE},
    {"time_nanos", ROLE_TIME, TABLE_NONE},
    {"micros", ROLE_MICROS, TABLE_NONE},
    {"seconds", ROLE_SECONDS, TABLE_NONE},
    {"trace_id", ROLE_TRACE_ID, TABLE_NONE},
    {"span_id", ROLE_SPAN_ID, TABLE_NONE},
    {"parent_span_id", ROLE_SPAN_ID, TABLE_NONE},
    {"key", ROLE_KEY, TABLE_NONE},
    {"sample_type", ROLE_TYPES, TABLE_NONE},
    {"values", ROLE_VALUES, TABLE_NONE},
    {"locations_start_index", ROLE_FIRST, TABLE_NONE},
    {"locations_length", ROLE_LENGTH, TABLE_NONE},
    {"raw_profile", ROLE_ZIPPED, TABLE_NONE},
};

static void give_meaning(struct form_field *field, const struct otlp_message *owner)
{
    const char *name = field->field->name;
    size_t size = strlen(name);
    static const char suffix[] = "_strindex";
    field->role = ROLE_PLAIN;
    if (size >= sizeof(suffix) && strcmp(name + size - (sizeof(suffix) - 1), suffix) == 0) {
        field->role = ROLE_INDEX;
        field->to = TABLE_STRINGS;
    }
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (strcmp(name, meanings[i].name) != 0)
            continue;
        field->role = meanings[i].role;
        field->to = meanings[i].to;
    }
    if (owner == &old_profile && field->field->number == 3)
        field->role = ROLE_RANGE;
    /* Arrays, lists and quantiles have values too. */
    if (field->role == ROLE_VALUES && !otlp_kind_is_packed(field->field->kind))
        field->role = ROLE_PLAIN;
}

enum { FORMS_MAX = 128 };
static struct form forms[FORMS_MAX];
static unsigned forms_count;

static const struct form *build(const struct otlp_message *message)
{
    for (unsigned i = 0; i < forms_count; i++)
        if (forms[i].message == message)
            return &forms[i];
    assert(forms_count < FORMS_MAX);
    struct form *form = &forms[forms_count++];
    form->message = message;
    for (uint32_t i = 0; i <= OTLP_SHORT_FIELDS; i++) {
        const struct otlp_field *field =
            i < OTLP_SHORT_FIELDS ? otlp_field_find(message, i) : message->more;
        if (field == NULL)
            continue;
        struct form_field *made = &form->fields[form->count++];
        made->field = field;
        give_meaning(made, message);
        if (field->message != NULL)
            made->message = build(field->message);
    }
    return form;
}

const struct form *form_of(enum form_request request)
{
    static const struct form *roots[FORM_REQUESTS];
    assert(request < FORM_REQUESTS);
    if (roots[0] == NULL) {
        roots[FORM_TRACES] = build(otlp_request(TRACES));
        roots[FORM_METRICS] = build(otlp_request(METRICS));
        roots[FORM_LOGS] = build(otlp_request(LOGS));
        roots[FORM_PROFILES] = build(otlp_request(PROFILES));
        roots[FORM_PROFILES_1_9] = build(request_1_9());
        roots[FORM_PROFILES_1_8] = build(request_1_8());
        roots[FORM_PROFILES_1_7] = build(request_1_7());
        roots[FORM_PPROF] = build(&pprof_profile);
        roots[FORM_PUSH] = build(&push_request);
        roots[FORM_ZIPKIN] = build(&zipkin_spans);
        roots[FORM_JAEGER] = build(&jaeger_request);
    }
    return roots[request];
}

const struct form *form_any_value(void)
{
    form_of(FORM_TRACES);
    return build(&otlp_any_value);
}
