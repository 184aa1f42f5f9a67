/* SPDX-License-Identifier: Apache-2.0 */
/* Names of types, as Go prints them. Pure functions. */
#include "src/ottl/ottl_value.h"

#include <assert.h>

const char *ottl_type_name(const struct ottl_value *value)
{
    static const char *const lists[] = {"pcommon.Slice", "[]interface {}", "[]string", "[]int64",
                                        "[]float64",     "[]bool",         "[]uint64"};
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
        [OTTL_MESSAGE] = "a message",
        [OTTL_ENCODED] = "pcommon.Value",
    };
    assert(value->type < sizeof(names) / sizeof(names[0]));
    if (value->type == OTTL_LIST)
        return lists[value->form];
    if (value->type == OTTL_MAP && value->form == OTTL_FORM_ANY)
        return "map[string]interface {}";
    return names[value->type];
}
