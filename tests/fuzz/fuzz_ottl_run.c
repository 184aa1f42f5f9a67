/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and conditions on any request that passes the walker: byte 0 is where the
 * body is cut into two parts, 1 which plan runs. The result is well-formed and has
 * the items that were not dropped. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/ottl/ottl_runner.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2, TEXTS_MAX = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct row {
    enum signal_kind signal;
    enum ottl_context context;
    const char *texts[TEXTS_MAX]; /* ended by NULL */
    bool are_statements;
};

static const struct row rows[] = {
    {TRACES, OTTL_SPAN, {"attributes[\"a\"] == \"x\" or name < \"n\"", "IsRootSpan()"}, false},
    {TRACES, OTTL_SPAN_EVENT, {"attributes[\"a\"][0] == 1 or name == span.name"}, false},
    {TRACES,
     OTTL_SPAN,
     {"set(attributes[\"a\"], {\"k\": [name, attributes[\"b\"], nil]})",
      "set(resource.attributes[\"s\"], attributes)", "set(status.message, name)",
      "set(resource.schema_url, scope.name)", "set(scope.attributes[\"n\"][\"m\"], kind)",
      "delete_key(attributes, \"b\") where end_time > start_time"},
     true},
    {TRACES,
     OTTL_SPAN_EVENT,
     {"set(span.name, Concat([span.name, name, attributes], \"/\"))",
      "keep_matching_keys(attributes, \"[a-m]\")", "set(span.trace_id, span.trace_id)",
      "merge_maps(span.attributes, attributes, \"upsert\")", "set(time_unix_nano, 0)"},
     true},
    {LOGS,
     OTTL_LOG,
     {"set(attributes[\"b\"], body)", "set(body[\"x\"][2], 1)", "set(body, body.string)",
      "merge_maps(attributes, resource.attributes, \"insert\")",
      "set(resource.attributes[\"l\"], attributes[\"b\"])", "set(event_name, severity_text)"},
     true},
    {METRICS, OTTL_DATA_POINT, {"value_int == 1 or sum > 0.5 or metric.name == \"\""}, false},
    {METRICS,
     OTTL_DATA_POINT,
     {"set(attributes[\"a\"], metric.unit)", "set(value_double, 0.5)", "set(sum, 1.5)",
      "set(bucket_counts, [1, 2])", "set(positive.offset, scale)", "set(metric.is_monotonic, true)",
      "set(flags, 3)"},
     true},
    {METRICS,
     OTTL_METRIC,
     {"set(name, unit)", "scale_metric(2.0, \"s\")", "convert_sum_to_gauge() where name > \"a\"",
      "convert_gauge_to_sum(\"delta\", true)", "extract_sum_metric(true)",
      "extract_count_metric(true)", "copy_metric(name = \"b\") where name < \"a\"",
      "convert_summary_quantile_val_to_gauge()",
      "convert_exponential_histogram_to_histogram(\"random\", [0.0, 2.0, 5.0])",
      "set(metadata[\"a\"], description)"},
     true},
    {METRICS,
     OTTL_DATA_POINT,
     {"set(attributes[\"a\"], metric.unit)", "convert_summary_count_val_to_sum(\"delta\", true)",
      "convert_summary_sum_val_to_sum(\"delta\", true)", "merge_histogram_buckets(1)",
      "merge_histogram_buckets(2, \"limit_buckets\")", "set(metric.name, \"n\")"},
     true},
    {PROFILES,
     OTTL_PROFILE,
     {"set(attributes[\"a\"], sample_type.unit)", "delete_key(attributes, \"b\")",
      "set(period_type.type, original_payload_format)", "set(attribute_indices, [0, 1])",
      "set(original_payload, profile_id.string)", "set(duration, period)"},
     true},
    {PROFILES,
     OTTL_PROFILE_SAMPLE,
     {"set(attributes[\"a\"], link_index)", "set(values, timestamps_unix_nano)",
      "set(profile.attributes, attributes)", "set(timestamps, timestamps)"},
     true},
    {LOGS, OTTL_LOG, {"IsMatch(body, \"a\") or attributes == resource.attributes"}, false},
    {LOGS,
     OTTL_LOG,
     {"set(attributes, ParseCLF(body))", "set(attributes, ParseCLF(body, \"combined\"))",
      "set(attributes, ParseLEEF(body))"},
     true},
    {METRICS,
     OTTL_METRIC,
     {"extract_percentile_metric(50.0)", "extract_percentile_metric(99.9, \"q\")",
      "aggregate_on_attribute_value(\"max\", \"a\", [\"x\", \"\"], \"y\")",
      "aggregate_on_attributes(\"median\", [\"a\", \"b\"])",
      "aggregate_on_attributes(\"mean\", [])"},
     true},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static struct ottl_plan *plan_of(const struct row *row)
{
    struct ottl_plan *plan =
        ottl_plan_create(row->signal, row->are_statements ? OTTL_FOR_TRANSFORM : OTTL_FOR_FILTER);
    struct ottl_group group = {
        .context = row->context, .paths = OTTL_PATHS_BARE, .error_mode = OTTL_SILENT};
    struct error error;
    size_t count = 0;
    while (row->texts[count] != NULL)
        count++;
    *(row->are_statements ? &group.statements : &group.conditions) = row->texts;
    *(row->are_statements ? &group.statements_count : &group.conditions_count) = count;
    bool is_fine = ottl_plan_add(plan, &group, true, &error);
    assert(is_fine);
    ottl_plan_finish(plan);
    return plan;
}

static void run(const struct row *row, struct batch *batch)
{
    struct otlp_figures figures;
    const char *reason;
    struct ottl_runner runner;
    struct ottl_plan *plan = plan_of(row);
    ottl_runner_init(&runner, plan, NULL);
    runner.prunes = !row->are_statements;
    struct ottl_result result = ottl_runner_run(&runner, batch);
    assert(result.verdict != OTTL_REFUSED);
    if (result.verdict == OTTL_EMPTIED)
        assert(result.dropped == batch->items);
    if (result.verdict == OTTL_PASSED) {
        struct slice bytes = joined_parts(result.batch);
        bool is_fine = otlp_check(result.batch->signal, bytes, &figures, &reason);
        assert(is_fine);
        assert(figures.items == result.batch->items);
        assert(figures.items + result.dropped == batch->items + result.made);
        assert(oracle_decodes(result.batch->signal, bytes));
        mem_free((void *)(uintptr_t)bytes.data);
        batch_unref(result.batch);
    }
    ottl_runner_fini(&runner);
    ottl_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    if (size < HEADER_BYTES)
        return 0;
    const struct row *row = &rows[data[1] % ROWS];
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(row->signal, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    struct batch *batch = two_parts(row->signal, body, body.size * data[0] / 256);
    batch->items = figures.items;
    run(row, batch);
    batch_unref(batch);
    return 0;
}
