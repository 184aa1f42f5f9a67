/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts, and the paths of those that all signals have. Constants. */
#include "src/ottl/ottl_context.h"

#include "src/ottl/ottl_access.h"
#include "src/ottl/ottl_context_logs.h"
#include "src/ottl/ottl_context_metrics.h"
#include "src/ottl/ottl_context_otelcol.h"
#include "src/ottl/ottl_context_profiles.h"
#include "src/ottl/ottl_context_traces.h"

static const char *const names[OTTL_CONTEXTS] = {
    [OTTL_RESOURCE] = "resource", [OTTL_SCOPE] = "scope",
    [OTTL_SPAN] = "span",         [OTTL_SPAN_EVENT] = "spanevent",
    [OTTL_METRIC] = "metric",     [OTTL_DATA_POINT] = "datapoint",
    [OTTL_EXEMPLAR] = "exemplar", [OTTL_LOG] = "log",
    [OTTL_PROFILE] = "profile",   [OTTL_PROFILE_SAMPLE] = "profilesample",
    [OTTL_OTELCOL] = "otelcol",   [OTTL_METRIC_DATA] = "",
};

static const struct ottl_path_row resource_rows[] = {
    {"attributes", ottl_get_attributes, ottl_set_attributes, 1, true},
    {"dropped_attributes_count", ottl_get_uint32, ottl_set_uint32, 2, false},
    {"schema_url", ottl_get_text, ottl_set_text, OTTL_SCHEMA_URL, false},
    {.name = NULL},
};

static const struct ottl_context_type resource_type = {
    .name = "resource",
    .reaches = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_OTELCOL),
    .rows = resource_rows,
    .attributes = 1,
};

static const struct ottl_path_row scope_rows[] = {
    {"name", ottl_get_text, ottl_set_text, 1, false},
    {"version", ottl_get_text, ottl_set_text, 2, false},
    {"attributes", ottl_get_attributes, ottl_set_attributes, 3, true},
    {"dropped_attributes_count", ottl_get_uint32, ottl_set_uint32, 4, false},
    {"schema_url", ottl_get_text, ottl_set_text, OTTL_SCHEMA_URL, false},
    {.name = NULL},
};

static const struct ottl_context_type scope_type = {
    .name = "scope",
    .reaches = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE) |
               OTTL_CONTEXT_BIT(OTTL_OTELCOL),
    .rows = scope_rows,
    .attributes = 3,
};

const struct ottl_context_type *ottl_context_type(enum ottl_context context)
{
    static const struct ottl_context_type *const types[OTTL_CONTEXTS] = {
        [OTTL_RESOURCE] = &resource_type,
        [OTTL_SCOPE] = &scope_type,
        [OTTL_LOG] = &ottl_log_type,
        [OTTL_METRIC] = &ottl_metric_type,
        [OTTL_DATA_POINT] = &ottl_data_point_type,
        [OTTL_EXEMPLAR] = &ottl_exemplar_type,
        [OTTL_PROFILE] = &ottl_profile_type,
        [OTTL_PROFILE_SAMPLE] = &ottl_profile_sample_type,
        [OTTL_OTELCOL] = &ottl_otelcol_type,
        [OTTL_METRIC_DATA] = &ottl_metric_data_type,
        [OTTL_SPAN] = &ottl_span_type,
        [OTTL_SPAN_EVENT] = &ottl_span_event_type,
    };
    return context < OTTL_CONTEXTS ? types[context] : NULL;
}

enum ottl_context ottl_context_find(struct slice name)
{
    for (unsigned i = 0; i < OTTL_METRIC_DATA; i++)
        if (slice_equal_text(name, names[i]))
            return (enum ottl_context)i;
    return slice_equal_text(name, "instrumentation_scope") ? OTTL_SCOPE : OTTL_CONTEXTS;
}
