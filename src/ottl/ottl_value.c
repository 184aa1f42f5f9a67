/* SPDX-License-Identifier: Apache-2.0 */
/* Names of types, as Go prints them. Pure functions. */
#include "src/ottl/ottl_value.h"

#include <assert.h>

const char *ottl_message_name(enum ottl_message_kind kind)
{
    static const char *const names[] = {
        [OTTL_STATUS] = "ptrace.Status",
        [OTTL_SAMPLE_TYPE] = "pprofile.ValueType",
        [OTTL_PERIOD_TYPE] = "pprofile.ValueType",
        [OTTL_POSITIVE_BUCKETS] = "pmetric.ExponentialHistogramDataPointBuckets",
        [OTTL_NEGATIVE_BUCKETS] = "pmetric.ExponentialHistogramDataPointBuckets",
        [OTTL_SAMPLES] = "pprofile.SampleSlice",
        [OTTL_EVENTS] = "ptrace.SpanEventSlice",
        [OTTL_LINKS] = "ptrace.SpanLinkSlice",
        [OTTL_EXEMPLARS] = "pmetric.ExemplarSlice",
        [OTTL_QUANTILES] = "pmetric.SummaryDataPointValueAtQuantileSlice",
        [OTTL_NUMBER_POINTS] = "pmetric.NumberDataPointSlice",
        [OTTL_HISTOGRAM_POINTS] = "pmetric.HistogramDataPointSlice",
        [OTTL_EXPONENTIAL_HISTOGRAM_POINTS] = "pmetric.ExponentialHistogramDataPointSlice",
        [OTTL_SUMMARY_POINTS] = "pmetric.SummaryDataPointSlice",
    };
    assert(kind < sizeof(names) / sizeof(names[0]));
    return names[kind];
}

const char *ottl_type_name(const struct ottl_value *value)
{
    static const char *const lists[] = {"pcommon.Slice", "[]interface {}", "[]string",
                                        "[]int64",       "[]float64",      "[]bool",
                                        "[]uint64",      "[]time.Time"};
    static const char *const names[] = {
        [OTTL_NIL] = "<nil>",
        [OTTL_BOOL] = "bool",
        [OTTL_INT] = "int64",
        [OTTL_DOUBLE] = "float64",
        [OTTL_STRING] = "string",
        [OTTL_BYTES] = "[]uint8",
        [OTTL_TIME] = "time.Time",
        [OTTL_DURATION] = "time.Duration",
        [OTTL_MAP] = "pcommon.Map",
        [OTTL_LIST] = "pcommon.Slice",
        [OTTL_TRACE_ID] = "pcommon.TraceID",
        [OTTL_SPAN_ID] = "pcommon.SpanID",
        [OTTL_PROFILE_ID] = "pprofile.ProfileID",
        [OTTL_ENCODED] = "pcommon.Value",
    };
    if (value->type == OTTL_MESSAGE)
        return ottl_message_name((enum ottl_message_kind)value->form);
    assert(value->type < sizeof(names) / sizeof(names[0]));
    if (value->type == OTTL_LIST)
        return lists[value->form];
    if (value->type == OTTL_MAP && value->form == OTTL_FORM_ANY)
        return "map[string]interface {}";
    return names[value->type];
}
