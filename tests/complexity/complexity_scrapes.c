/* SPDX-License-Identifier: Apache-2.0 */
/* Expositions in both text formats: plain and hostile lines, escapes, names that never end. Lists
 * of targets. */
#include "receivers/prometheus/scraped_metrics.h"
#include "receivers/scrape/target_groups.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/prometheus/exposition_reader.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

static struct slice plain(size_t n)
{
    return repeat("", "http_requests_total{method=\"GET\",code=\"200\"} 1027\n", n, "# EOF\n");
}

static struct slice shortest(size_t n)
{
    return repeat("", "a 1\n", n, "# EOF\n");
}

static struct slice long_numbers(size_t n)
{
    return repeat("", "a 0.12345678901234567\n", n, "# EOF\n");
}

static struct slice bounds(size_t n)
{
    return repeat("# TYPE a histogram\n", "a{le=\"1e3\",le=\"0.00001\"} 1\n", n, "# EOF\n");
}

static struct slice escapes(size_t n)
{
    return repeat("", "a{b=\"\\\\\\n\",c=\"\\\"\"} 1\n", n, "# EOF\n");
}

static struct slice types(size_t n)
{
    return repeat("", "# TYPE a counter\n", n, "# EOF\n");
}

static struct slice helps(size_t n)
{
    return repeat("", "# HELP a \xc3\xa9\\n\n", n, "# EOF\n");
}

static struct slice a_long_value(size_t n)
{
    return repeat("a{b=\"", "\xc3\xa9\\n", n, "\"} 1\n# EOF\n");
}

static struct slice a_long_name(size_t n)
{
    return repeat("", "name", n, " 1\n# EOF\n");
}

static struct slice a_long_help(size_t n)
{
    return repeat("# HELP a ", "\\\\text", n, "\n# EOF\n");
}

static struct slice a_long_number(size_t n)
{
    return repeat("a 0", "123", n, "\n# EOF\n");
}

static struct slice an_open_quote(size_t n)
{
    return repeat("a{b=\"", "\\\"", n, "");
}

static const struct work_shape shapes[] = {
    {"plain lines", plain},
    {"shortest lines", shortest},
    {"long numbers", long_numbers},
    {"bounds", bounds},
    {"escapes", escapes},
    {"types", types},
    {"helps", helps},
    {"a long value", a_long_value},
    {"a long name", a_long_name},
    {"a long help", a_long_help},
    {"an open quote", an_open_quote},
    {"a long number", a_long_number},
};

/* Of the text format alone. */
static struct slice empty_lines(size_t n)
{
    return repeat("", "\n", n, "");
}

static struct slice comments(size_t n)
{
    return repeat("", "#x\n# y\n", n, "");
}

static struct slice line_ends_in_a_value(size_t n)
{
    return repeat("a{b=\"", "\n", n, "\"} 1\n");
}

static const struct work_shape text_shapes[] = {
    {"empty lines", empty_lines},
    {"comments", comments},
    {"line ends in a value", line_ends_in_a_value},
};

/* Of OpenMetrics alone. */
static struct slice exemplars(size_t n)
{
    return repeat("", "a 1 1.5 # {trace_id=\"0123456789abcdef\"} 0.5 1.5\n", n, "# EOF\n");
}

static const struct work_shape openmetrics_shapes[] = {{"exemplars", exemplars}};

static void read_all(struct slice body, enum exposition_protocol protocol)
{
    struct exposition_reader reader;
    struct exposition_entry entry;
    exposition_reader_init(&reader, body, protocol, NULL);
    work_begin();
    while (exposition_reader_next(&reader, &entry))
        continue;
    work_end();
    exposition_reader_fini(&reader);
}

static void run_text(struct slice body)
{
    read_all(body, EXPOSITION_PROTOCOL_TEXT);
}

static void run_openmetrics(struct slice body)
{
    read_all(body, EXPOSITION_PROTOCOL_OPENMETRICS);
}

static const struct work_stage stages[] = {
    {.name = "text", .run = run_text, .per_byte_max = 45},
    {.name = "openmetrics", .run = run_openmetrics, .per_byte_max = 45},
};

/* Lists of targets: JSON, and YAML that is JSON. */
static struct slice targets(size_t n)
{
    return repeat("[{\"targets\":[\"a:1\"", ",\"node-17.example:9100\"", n, "]}]");
}

static struct slice groups(size_t n)
{
    return repeat("[{}", ",{\"targets\":[\"a\"],\"labels\":{\"zone\":\"eu\"}}", n, "]");
}

static struct slice empty_groups(size_t n)
{
    return repeat("[{}", ",{}", n, "]");
}

static struct slice one_label(size_t n)
{
    return repeat("[{\"labels\":{\"a\":\"\"", ",\"a\":\"\"", n, "}}]");
}

static struct slice a_long_target(size_t n)
{
    return repeat("[{\"targets\":[\"", "\\n\\u00e9", n, "\"]}]");
}

static struct slice open_lists(size_t n)
{
    return repeat("[{\"targets\":", "[", n, "");
}

static const struct work_shape list_shapes[] = {
    {"targets", targets},
    {"groups", groups},
    {"empty groups", empty_groups},
    {"one label", one_label},
    {"a long target", a_long_target},
    {"open lists", open_lists},
};

static void read_list(struct slice text, bool is_json)
{
    struct target_groups read;
    struct error error;
    const struct prometheus_label source = {.name = slice_of_text("__meta_filepath"),
                                            .value = slice_of_text("/etc/targets.json")};
    work_begin();
    if (is_json)
        target_groups_read_json(&read, text, &source, NULL, &error);
    else
        target_groups_read_yaml(&read, text, &source, NULL, &error);
    work_end();
    target_groups_free(&read);
}

static void run_json_list(struct slice text)
{
    read_list(text, true);
}

static void run_yaml_list(struct slice text)
{
    read_list(text, false);
}

static const struct work_stage list_stages[] = {
    {.name = "targets in JSON", .run = run_json_list, .per_byte_max = 65},
    {.name = "targets in YAML", .run = run_yaml_list, .per_byte_max = 65},
};

/* Each has names of its own. */
static struct slice target_infos(size_t n)
{
    return numbered("", "target_info{", n, "=\"x\"} 1\n", "");
}

static struct slice scope_infos(size_t n)
{
    return numbered("", "otel_scope_info{otel_scope_name=\"", n, "\",a=\"b\"} 1\n", "");
}

static struct slice samples_of_labels(size_t n)
{
    return numbered("", "a{b=\"", n, "\",otel_scope_c=\"d\"} 1\n", "");
}

static const struct work_shape sample_shapes[] = {
    {"plain lines", plain},
    {"target_info of many labels", target_infos},
    {"scopes", scope_infos},
    {"labels", samples_of_labels},
};

static void run_samples(struct slice body)
{
    const struct scraped_settings settings = {
        .job = slice_of_text("j"), .instance = slice_of_text("i"), .scheme = slice_of_text("http")};
    struct exposition_reader reader;
    struct exposition_entry entry;
    struct scraped_metrics metrics;
    struct relabel_labels labels;
    struct budget budget;
    struct buffer *request;
    budget_init(&budget, UINT64_MAX);
    relabel_labels_init(&labels);
    exposition_reader_init(&reader, body, EXPOSITION_PROTOCOL_TEXT, NULL);
    scraped_metrics_init(&metrics, &settings, SIZE_MAX / 2, &budget);
    work_begin();
    while (exposition_reader_next(&reader, &entry)) {
        if (entry.kind != EXPOSITION_ENTRY_SAMPLE)
            continue;
        relabel_labels_reset(&labels);
        relabel_labels_add(&labels, slice_of_text("__name__"), entry.name);
        for (size_t i = 0; i < entry.labels_count; i++)
            relabel_labels_add(&labels, entry.labels[i].name, entry.labels[i].value);
        const struct scraped_sample sample = {
            .labels = &labels, .value = entry.value, .time_ms = 1};
        scraped_metrics_add(&metrics, &sample);
    }
    bool is_written = scraped_metrics_write(&metrics, &budget, &request);
    work_end();
    assert(is_written);
    buffer_unref(request);
    scraped_metrics_fini(&metrics);
    exposition_reader_fini(&reader);
    relabel_labels_fini(&labels);
    budget_fini(&budget);
}

static const struct work_stage sample_stages[] = {
    {.name = "samples into metrics", .run = run_samples, .per_byte_max = 60},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(int argc, char **argv)
{
    int failed = work_check(stages, COUNT(stages), shapes, COUNT(shapes), argc, argv);
    failed += work_check(&stages[0], 1, text_shapes, COUNT(text_shapes), argc, argv);
    failed += work_check(&stages[1], 1, openmetrics_shapes, COUNT(openmetrics_shapes), argc, argv);
    failed +=
        work_check(list_stages, COUNT(list_stages), list_shapes, COUNT(list_shapes), argc, argv);
    failed += work_check(sample_stages, COUNT(sample_stages), sample_shapes, COUNT(sample_shapes),
                         argc, argv);
    return failed > 0;
}
