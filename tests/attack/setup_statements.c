/* SPDX-License-Identifier: Apache-2.0 */
/* Processors that run OTTL, tail_sampling and routing, at random. */
#include "tests/attack/drawing.h"

static const char *const trace_conditions[] = {
    "    - 'span.attributes[\"http.route\"] == \"/cart/{id}\"'\n",
    "    - 'IsMatch(resource.attributes[\"service.name\"], \"^c\")'\n",
    "    - 'span.kind == SPAN_KIND_SERVER and not IsRootSpan()'\n",
    "    - 'span.end_time_unix_nano - span.start_time_unix_nano > 500000000'\n",
    "    - 'spanevent.name == \"main\" or spanevent.attributes[\"tag\"] != nil'\n",
    "    - 'span.status.code == STATUS_CODE_ERROR'\n",
    "    - 'IsMatch(span.name, \"(a|b)*c|[[:alpha:]]+$\")'\n",
    NULL,
};

static const char *const metric_conditions[] = {
    "    - 'metric.name == \"cpu\" or metric.type == METRIC_DATA_TYPE_SUM'\n",
    "    - 'datapoint.attributes[\"tag\"] == \"true\"'\n",
    "    - 'datapoint.value_int > 1000 or datapoint.value_double < 3.5'\n",
    "    - 'datapoint.count > 5 and datapoint.sum != nil'\n",
    "    - 'IsInt(resource.attributes[\"process.pid\"])'\n",
    NULL,
};

static const char *const log_conditions[] = {
    "    - 'log.severity_number < SEVERITY_NUMBER_INFO'\n",
    "    - 'IsMatch(log.body, \"GET .*\")'\n",
    "    - 'log.body[\"tag\"] != nil or IsMap(log.body)'\n",
    "    - 'log.attributes[\"bytes\"] != nil and Int(log.attributes[\"bytes\"]) > 3'\n",
    "    - 'log.time - log.observed_time > log.observed_time - log.time'\n",
    NULL,
};

static const char *const profile_conditions[] = {
    "    - 'profile.sample_type.type == \"cpu\" or profile.attributes[\"tag\"] != nil'\n",
    "    - 'profilesample.attributes[\"thread.id\"] == nil'\n",
    "    - 'IsMatch(profile.sample_type.type, \"^.{3,5}$$\")'\n",
    "    - 'resource.attributes[\"service.name\"] == \"cart\"'\n",
    NULL,
};

static const char *const trace_statements[] = {
    "    - 'set(span.attributes[\"slow\"], true) where span.end_time_unix_nano > 1'\n",
    "    - 'set(span.attributes[\"tag\"][\"a\"][0][\"b\"], span.attributes)'\n",
    "    - 'delete_key(span.attributes, \"http.route\")'\n",
    "    - 'keep_keys(span.attributes, [\"tag\", \"bytes\", \"thread.id\"])'\n",
    "    - 'keep_matching_keys(resource.attributes, \"^(s|h|t).*\")'\n",
    "    - 'delete_matching_keys(scope.attributes, \"(.)\")'\n",
    "    - 'merge_maps(span.attributes, resource.attributes, \"upsert\")'\n",
    "    - 'merge_maps(resource.attributes, span.attributes, \"insert\")'\n",
    "    - 'set(resource.attributes[\"span\"], span.attributes)'\n",
    "    - 'set(span.name, Concat([span.name, span.trace_id.string, span.kind.string, "
    "String(span.attributes)], \"-\"))'\n",
    "    - 'set(span.status.message, resource.attributes[\"service.name\"])'\n",
    "    - 'set(span.trace_state, span.attributes[\"tag\"])'\n",
    "    - 'set(span.attributes[\"n\"], Int(span.attributes[\"process.pid\"]) * 7 / "
    "span.dropped_links_count)'\n",
    "    - 'set(span.start_time_unix_nano, span.end_time_unix_nano - 9223372036854775807)'\n",
    "    - 'set(span.span_id.string, span.parent_span_id.string)'\n",
    "    - 'set(spanevent.attributes[\"of\"], span.attributes) where spanevent.name != \"\"'\n",
    "    - 'set(spanevent.name, Concat([span.name, spanevent.name], \"\"))'\n",
    "    - 'set(scope.name, span.name)'\n",
    "    - 'set(resource.schema_url, scope.version)'\n",
    NULL,
};

static const char *const metric_statements[] = {
    "    - 'set(metric.name, Concat([metric.name, metric.unit, metric.description], \"/\"))'\n",
    "    - 'set(metric.description, resource.attributes[\"service.name\"])'\n",
    "    - 'set(metric.aggregation_temporality, AGGREGATION_TEMPORALITY_DELTA)'\n",
    "    - 'set(metric.is_monotonic, true)'\n",
    "    - 'set(metric.metadata[\"tag\"], resource.attributes)'\n",
    "    - 'set(datapoint.attributes[\"host\"], resource.attributes[\"host.name\"])'\n",
    "    - 'set(datapoint.value_double, Double(datapoint.attributes[\"bytes\"]))'\n",
    "    - 'set(datapoint.value_int, datapoint.value_int * 3 - 1)'\n",
    "    - 'set(datapoint.bucket_counts, [1, 2, 3])'\n",
    "    - 'set(datapoint.explicit_bounds, [1.5, 2.5])'\n",
    "    - 'set(datapoint.positive.offset, datapoint.scale)'\n",
    "    - 'set(datapoint.count, datapoint.zero_count)'\n",
    "    - 'set(datapoint.start_time, datapoint.time)'\n",
    "    - 'keep_keys(datapoint.attributes, [\"tag\"])'\n",
    "    - 'merge_maps(datapoint.attributes, resource.attributes, \"update\")'\n",
    NULL,
};

static const char *const profile_statements[] = {
    "    - 'set(profile.attributes[\"tag\"], profile.attributes)'\n",
    "    - 'set(profile.sample_type.type, resource.attributes[\"service.name\"])'\n",
    "    - 'set(profilesample.attributes[\"n\"], profile.sample_type.type)'\n",
    "    - 'set(profilesample.attributes[\"tag\"], profilesample.attributes)'\n",
    "    - 'delete_key(profile.attributes, \"tag\")'\n",
    "    - 'set(profile.time_unix_nano, profile.duration_unix_nano)'\n",
    "    - 'set(scope.name, profile.sample_type.unit)'\n",
    NULL,
};

static const char *const log_statements[] = {
    "    - 'merge_maps(log.attributes, log.body, \"insert\") where IsMap(log.body)'\n",
    "    - 'set(log.body, log.attributes)'\n",
    "    - 'set(log.body[\"tag\"][\"n\"], log.body)'\n",
    "    - 'set(log.body, log.body[\"tag\"])'\n",
    "    - 'set(log.body.string, log.severity_text)'\n",
    "    - 'set(log.attributes[\"body\"], String(log.body))'\n",
    "    - 'set(log.attributes[\"list\"][9], log.attributes)'\n",
    "    - 'set(log.severity_number, SEVERITY_NUMBER_ERROR4)'\n",
    "    - 'set(log.time, log.observed_time)'\n",
    "    - 'set(log.trace_id.string, log.attributes[\"trace_id\"])'\n",
    "    - 'delete_matching_keys(log.attributes, \"^.{3,7}$$\")'\n",
    "    - 'set(resource.attributes[\"last\"], log.body)'\n",
    NULL,
};

void put_lines(struct drawing *drawing, const char *const *lines, unsigned of, unsigned among,
               bool needs_one)
{
    bool has_one = false;
    for (const char *const *line = lines; *line != NULL; line++)
        if (drawn_below(drawing, among) < of || (needs_one && !has_one && line[1] == NULL)) {
            put(drawing, *line);
            has_one = true;
        }
}

void put_statement_processors(struct drawing *drawing)
{
    put(drawing, "  filter:\n");
    PUT_ONE_OF(drawing, "", "    error_mode: ignore\n", "    error_mode: silent\n",
               "    error_mode: silent\n");
    put(drawing, "    trace_conditions:\n");
    put_lines(drawing, trace_conditions, 1, 3, true);
    put(drawing, "    metric_conditions:\n");
    put_lines(drawing, metric_conditions, 1, 3, true);
    put(drawing, "    log_conditions:\n");
    put_lines(drawing, log_conditions, 1, 3, true);
    put(drawing, "    profile_conditions:\n");
    put_lines(drawing, profile_conditions, 1, 3, true);
    put(drawing, "  filter/old:\n    error_mode: propagate\n"
                 "    traces: {span: ['name == \"main\"'], "
                 "spanevent: ['attributes[\"tag\"] != nil']}\n"
                 "    logs: {log_record: ['IsMatch(body, \"o\")']}\n"
                 "    metrics: {metric: ['name == \"bytes\"'], "
                 "datapoint: ['attributes[\"bytes\"] != nil']}\n");
    put(drawing, "  filter/oldest:\n    spans:\n");
    PUT_ONE_OF(drawing, "      include: {match_type: strict, services: [checkout, cart]}\n",
               "      exclude: {match_type: regexp, attributes: [{key: tag, value: '[0-9]+'}]}\n",
               "      include: {match_type: regexp, span_names: [a], libraries: [{name: '.*'}]}\n");
    put(drawing, "    logs:\n");
    PUT_ONE_OF(drawing, "      include: {match_type: regexp, bodies: ['o', '[0-9]{2}']}\n",
               "      exclude: {match_type: strict, record_attributes: [{key: tag}], "
               "severity_number: {min: WARN, match_undefined: true}}\n");
    put(drawing, "    metrics:\n");
    PUT_ONE_OF(drawing, "      exclude: {match_type: regexp, metric_names: ['^b', s$]}\n",
               "      include: {match_type: strict, resource_attributes: [{key: service.name}]}\n",
               "      include: {match_type: expr, expressions: ['len(MetricName) < 5', "
               "'HasLabel(\"tag\") and upper(Label(\"tag\")) matches \"[A-M]+\"']}\n",
               "      exclude: {match_type: expr, expressions: ['MetricName in [\"cpu\", "
               "\"bytes\"] or not (Label(\"http.route\") contains \"{\")']}\n");
    put(drawing, "  transform:\n");
    PUT_ONE_OF(drawing, "", "    flatten_data: true\n");
    PUT_ONE_OF(drawing, "    error_mode: ignore\n", "    error_mode: silent\n",
               "    error_mode: silent\n", "    error_mode: propagate\n");
    put(drawing, "    trace_statements:\n");
    put_lines(drawing, trace_statements, 1, 3, true);
    put(drawing, "    metric_statements:\n");
    put_lines(drawing, metric_statements, 1, 3, true);
    put(drawing, "    log_statements:\n");
    put_lines(drawing, log_statements, 1, 3, true);
    put(drawing, "    profile_statements:\n");
    put_lines(drawing, profile_statements, 1, 3, true);
    put(drawing, "  transform/forms:\n    error_mode: silent\n    metric_statements:\n");
    PUT_ONE_OF(
        drawing,
        "      - {context: metric, statements: ['extract_sum_metric(true)', 'scale_metric(2.0, "
        "\"s\")']}\n",
        /* A copy of every metric, copies too, would end at 16 times the request, which batches of
         * three points cannot carry off. */
        "      - {context: metric, statements: ['convert_sum_to_gauge()', "
        "'copy_metric(name=\"copy\") "
        "where metric.name != \"copy\"']}\n",
        "      - {context: metric, statements: "
        "['convert_exponential_histogram_to_histogram(\"random\", [0.0, 5.0])', "
        "'convert_gauge_to_sum(\"delta\", true)']}\n",
        "      - {context: datapoint, statements: ['merge_histogram_buckets(2, "
        "\"limit_buckets\")', 'convert_summary_count_val_to_sum(\"delta\", true)']}\n");
}

static const char *const policies[] = {
    "    - {name: drop, type: drop, drop: {drop_sub_policy: [{name: path, type: string_attribute, "
    "string_attribute: {key: http.route, values: [checkout, /pay]}}]}}\n",
    "    - {name: errors, type: status_code, status_code: {status_codes: [ERROR, UNSET]}}\n",
    "    - {name: slow, type: latency, latency: {threshold_ms: 300}}\n",
    "    - {name: medium, type: latency, latency: {threshold_ms: 10, upper_threshold_ms: 900}}\n",
    "    - {name: some, type: probabilistic, probabilistic: {sampling_percentage: 30}}\n",
    "    - {name: count, type: span_count, span_count: {min_spans: 3, max_spans: 9}}\n",
    "    - {name: number, type: numeric_attribute, numeric_attribute: {key: process.pid, "
    "min_value: 10, max_value: 100000}}\n",
    "    - {name: not number, type: numeric_attribute, numeric_attribute: {key: bytes, "
    "min_value: 1, invert_match: true}}\n",
    "    - {name: pattern, type: string_attribute, string_attribute: {key: service.name, "
    "values: ['^c.*', 'p(a|b)+'], enabled_regex_matching: true, cache_max_size: 10}}\n",
    "    - {name: not pattern, type: string_attribute, string_attribute: {key: tag, "
    "values: ['.'], enabled_regex_matching: true, invert_match: true}}\n",
    "    - {name: state, type: trace_state, trace_state: {key: a, values: [b, c]}}\n",
    "    - {name: boolean, type: boolean_attribute, boolean_attribute: {key: tag, value: true}}\n",
    "    - {name: rate, type: rate_limiting, rate_limiting: {spans_per_second: 100}}\n",
    "    - {name: bytes, type: bytes_limiting, bytes_limiting: {bytes_per_second: 20000}}\n",
    "    - {name: both, type: and, and: {and_sub_policy: ["
    "{name: a, type: latency, latency: {threshold_ms: 100}}, "
    "{name: b, type: not, not: {not_sub_policy: {name: c, type: status_code, "
    "status_code: {status_codes: [OK]}}}}]}}\n",
    "    - {name: shares, type: composite, composite: {max_total_spans_per_second: 300, "
    "policy_order: [d, e], composite_sub_policy: [{name: d, type: always_sample}, "
    "{name: e, type: span_count, span_count: {min_spans: 2}}], "
    "rate_allocation: [{policy: d, percent: 40}, {policy: e, percent: 20}]}}\n",
    "    - {name: conditions, type: ottl_condition, ottl_condition: {error_mode: ignore, span: "
    "['attributes[\"bytes\"] > 3', 'resource.attributes[\"tag\"] != nil'], spanevent: "
    "['name == \"main\"']}}\n",
    "    - {name: failing, type: ottl_condition, ottl_condition: {error_mode: propagate, span: "
    "['attributes[\"tag\"][\"a\"] == scope.name']}}\n",
    "    - {name: all, type: always_sample}\n",
    NULL,
};

static const char *const stateless_policies[] = {
    "    - {name: some, type: probabilistic, probabilistic: {sampling_percentage: 30}}\n",
    "    - {name: state, type: trace_state, trace_state: {key: a, values: [b, c]}}\n",
    "    - {name: errors, type: status_code, status_code: {status_codes: [ERROR]}}\n",
    "    - {name: pattern, type: string_attribute, string_attribute: {key: tag, values: ['.*a'], "
    "enabled_regex_matching: true}}\n",
    NULL,
};

/* They need the join in the same pipeline. */
static const char *const profile_policies[] = {
    "    - {name: profiled, type: profile}\n",
    "    - {name: hot, type: profile, profile: {min_samples: 2, min_cpu: 1us}}\n",
    "    - {name: cold, type: not, not: {not_sub_policy: {name: a, type: profile, profile: "
    "{min_samples: 0, min_cpu: 10ms}}}}\n",
    "    - {name: both, type: and, and: {and_sub_policy: [{name: a, type: profile}, "
    "{name: b, type: latency, latency: {threshold_ms: 10}}]}}\n",
    "    - {name: shares, type: composite, composite: {max_total_spans_per_second: 300, "
    "policy_order: [a], composite_sub_policy: [{name: a, type: profile}], "
    "rate_allocation: [{policy: a, percent: 40}]}}\n",
    "    - {name: cool, type: drop, drop: {drop_sub_policy: [{name: a, type: not, not: "
    "{not_sub_policy: {name: b, type: profile}}}]}}\n",
    NULL,
};

void put_tail_sampling(struct drawing *drawing)
{
    put(drawing, "  tail_sampling/profiled:\n");
    PUT_ONE_OF(drawing, "    decision_wait: 100ms\n", "    decision_wait: 1s\n",
               "    decision_wait: 1s\n    num_traces: 2\n",
               "    decision_wait: 0s\n    num_traces: 100\n    block_on_overflow: true\n");
    PUT_ONE_OF(drawing, "", "    decision_cache: {sampled_cache_size: 4}\n");
    put(drawing, "    policies:\n");
    put_lines(drawing, profile_policies, 1, 2, true);
    put_lines(drawing, policies, 0, 2, true);
    put(drawing, "  tail_sampling:\n");
    /* Where senders are blocked, about num_traces traces pass in each decision_wait: sessions must
     * have their responses within RESPONSE_NS. */
    PUT_ONE_OF(drawing, "    decision_wait: 100ms\n", "    decision_wait: 1s\n",
               "    decision_wait: 1s\n    num_traces: 2\n",
               "    decision_wait: 2s\n    decision_wait_after_root_received: 50ms\n",
               "    decision_wait: 2s\n    decision_wait_after_root_received: 50ms\n"
               "    num_traces: 10\n",
               "    decision_wait: 0s\n    num_traces: 2\n",
               "    decision_wait: 0s\n    num_traces: 100\n    block_on_overflow: true\n",
               "    decision_wait: 1s\n    num_traces: 200\n    block_on_overflow: true\n");
    PUT_ONE_OF(drawing, "", "    decision_cache: {sampled_cache_size: 4}\n",
               "    decision_cache: {sampled_cache_size: 100, non_sampled_cache_size: 100}\n");
    PUT_ONE_OF(drawing, "", "", "    sample_on_first_match: true\n");
    PUT_ONE_OF(drawing, "", "", "    drop_pending_traces_on_shutdown: true\n");
    PUT_ONE_OF(drawing, "", "", "    maximum_trace_size_bytes: 5000\n");
    if (drawn_below(drawing, 4) == 0) { /* spans are decided as they come: by what needs no state */
        put(drawing, "    sampling_strategy: span-ingest\n    policies:\n");
        put_lines(drawing, stateless_policies, 1, 2, true);
        return;
    }
    put(drawing, "    policies:\n");
    put_lines(drawing, policies, 1, 4, true);
}

/* Conditions of routing stand alone. */
static const char *const trace_routes[] = {
    "    - condition: 'span.attributes[\"http.route\"] == \"/cart/{id}\"'\n",
    "    - condition: 'IsMatch(resource.attributes[\"service.name\"], \"^c\")'\n",
    "    - condition: 'span.kind == SPAN_KIND_SERVER and not IsRootSpan()'\n",
    "    - condition: 'span.status.code == STATUS_CODE_ERROR'\n",
    "    - condition: 'span.attributes[\"tag\"][0] == 1 or span.attributes[\"bytes\"] > 3'\n",
    "    - condition: 'resource.attributes[\"host.name\"] != nil'\n",
    "    - context: span\n      statement: 'route() where name == \"main\"'\n",
    "    - context: span\n      statement: 'delete_matching_keys(attributes, \"^[a-m]\")'\n",
};

static const char *const metric_routes[] = {
    "    - condition: 'metric.name == \"cpu\" or metric.type == METRIC_DATA_TYPE_SUM'\n",
    "    - condition: 'datapoint.attributes[\"tag\"] == \"true\"'\n",
    "    - condition: 'datapoint.value_int > 1000 or datapoint.value_double < 3.5'\n",
    "    - condition: 'datapoint.count > 5 and datapoint.sum != nil'\n",
    "    - condition: 'IsInt(resource.attributes[\"process.pid\"])'\n",
    "    - context: resource\n      statement: 'route() where attributes[\"tag\"] != nil'\n",
};

static const char *const log_routes[] = {
    "    - condition: 'log.severity_number < SEVERITY_NUMBER_INFO'\n",
    "    - condition: 'IsMatch(log.body, \"GET .*\")'\n",
    "    - condition: 'log.body[\"tag\"] != nil or IsMap(log.body)'\n",
    "    - condition: 'Int(log.attributes[\"bytes\"]) > 3'\n",
    "    - condition: 'resource.attributes[\"service.name\"] == \"cart\"'\n",
    "    - context: resource\n      statement: 'route() where attributes[\"tag\"] != nil'\n",
    "    - context: resource\n      statement: 'delete_key(attributes, \"tag\")'\n",
    "    - context: log\n      statement: 'delete_key(attributes, \"bytes\") where flags > 3'\n",
};

static const char *const profile_routes[] = {
    "    - condition: 'resource.attributes[\"service.name\"] == \"cart\"'\n",
    "    - condition: 'profile.sample_type.type == \"cpu\" or profile.attributes[\"tag\"] != "
    "nil'\n",
    "    - condition: 'IsMatch(profile.sample_type.unit, \"^n\")'\n",
    "    - context: profile\n      statement: 'delete_key(attributes, \"tag\") where "
    "duration_unix_nano > 0'\n",
    "    - context: resource\n      statement: 'route() where attributes[\"tag\"] != nil'\n",
};

static const char *const request_routes[] = {
    "    - context: request\n      condition: 'request[\"x-scope-orgid\"] == \"a\"'\n",
    "    - context: request\n      condition: 'request[\"x-scope-orgid\"] != \"a\"'\n",
    /* It fails: that is no JSON. */
    ("    - context: otelcol\n      condition: "
     "'ParseJSON(otelcol.client.metadata[\"x-scope-orgid\"][0]) != nil'\n"),
};

#define ROUTES(list) (list), sizeof(list) / sizeof((list)[0])

static const struct route_list {
    char signal; /* its first letter */
    const char *const *routes;
    size_t count;
} route_lists[] = {
    {'t', ROUTES(trace_routes)},
    {'m', ROUTES(metric_routes)},
    {'l', ROUTES(log_routes)},
    {'p', ROUTES(profile_routes)},
};

void put_routing(struct drawing *drawing, const char *signal)
{
    enum { ENTRIES_MAX = 5 };
    const struct route_list *list = route_lists;
    while (list->signal != signal[0])
        list++;
    bytes_add_format(drawing->out, "  routing/%s:\n", signal);
    PUT_ONE_OF(drawing, "", "    error_mode: silent\n", "    error_mode: silent\n",
               "    error_mode: propagate\n");
    if (drawn_below(drawing, 2) == 0)
        bytes_add_format(drawing->out, "    default_pipelines: [%s/routed0]\n", signal);
    put(drawing, "    table:\n");
    /* Each pipeline stands in an entry: those that no entry names get nothing. */
    for (uint64_t i = 0; i < ROUTED_PIPELINES + drawn_below(drawing, ENTRIES_MAX); i++) {
        if (drawn_below(drawing, 4) == 0)
            put(drawing, request_routes[drawn_below(drawing, 3)]);
        else
            put(drawing, list->routes[drawn_below(drawing, list->count)]);
        PUT_ONE_OF(drawing, "", "      action: copy\n", "      action: move\n");
        bytes_add_format(drawing->out, "      pipelines: [%s/routed%u", signal,
                         (unsigned)(i % ROUTED_PIPELINES));
        if (drawn_below(drawing, 3) == 0)
            bytes_add_format(drawing->out, ", %s/routed%u", signal,
                             (unsigned)((i + 1) % ROUTED_PIPELINES));
        put(drawing, "]\n");
    }
}
