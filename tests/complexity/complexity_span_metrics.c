/* SPDX-License-Identifier: Apache-2.0 */
/* span_metrics: requests of spans to series, and series to requests of metrics. */
#include "connectors/span_metrics/series_export.h"
#include "connectors/span_metrics/span_aggregation.h"
#include "connectors/span_metrics/span_metrics_config.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { RESOURCE = 1, SPANS = 2, SPAN_NAME = 5, SPAN_ATTRIBUTES = 9, SPAN_EVENTS = 11 };

static void put_resource(struct profile_bytes *out, const char *value)
{
    size_t begin = out->size;
    put_attribute(out, 1, "service.name", "shop");
    put_attribute(out, 1, "region", value);
    profile_bytes_wrap(out, begin, RESOURCE);
}

/* Closes ScopeSpans, which began at scope, and ResourceSpans, which began at 0. */
static struct slice done(struct profile_bytes *out, size_t scope)
{
    profile_bytes_wrap(out, scope, SPANS);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice spans_of(size_t n, const char *region, bool has_names, size_t attributes,
                             size_t events)
{
    struct profile_bytes out = {0};
    char name[32];
    put_resource(&out, region);
    size_t scope = out.size;
    for (size_t i = 0; i < n; i++) {
        size_t span = out.size;
        if (has_names)
            put_text(&out, SPAN_NAME, name_of(name, i));
        for (size_t j = 0; j < attributes; j++)
            put_attribute(&out, SPAN_ATTRIBUTES, name_of(name, j), "value");
        for (size_t j = 0; j < events; j++)
            put_text(&out, SPAN_EVENTS, "");
        profile_bytes_wrap(&out, span, SPANS);
    }
    return done(&out, scope);
}

static struct slice empty_spans(size_t n)
{
    return spans_of(n, "eu", false, 0, 0);
}

static struct slice distinct_names(size_t n)
{
    return spans_of(n, "eu", true, 0, 0);
}

static struct slice attributes(size_t n)
{
    return spans_of(n, "eu", true, 8, 0);
}

static struct slice empty_events(size_t n)
{
    return spans_of(n, "eu", true, 1, 20);
}

/* Each series has the long label, or is overflow. */
static struct slice a_long_label(size_t n)
{
    char *text = mem_zalloc(8 * n + 1);
    memset(text, 'x', 8 * n);
    struct slice request = spans_of(n, text, true, 0, 0);
    mem_free(text);
    return request;
}

static struct slice one_span(size_t n, uint32_t number, bool is_distinct)
{
    struct profile_bytes out = {0};
    char name[32];
    put_resource(&out, "eu");
    size_t scope = out.size;
    for (size_t i = 0; i < n; i++)
        if (number == SPAN_ATTRIBUTES)
            put_attribute(&out, number, is_distinct ? name_of(name, i) : "region", "value");
        else
            put_text(&out, number, "");
    profile_bytes_wrap(&out, scope, SPANS);
    return done(&out, scope);
}

static struct slice a_span_of_attributes(size_t n)
{
    return one_span(n, SPAN_ATTRIBUTES, true);
}

static struct slice a_span_of_one_attribute(size_t n)
{
    return one_span(n, SPAN_ATTRIBUTES, false);
}

static struct slice a_span_of_events(size_t n)
{
    return one_span(n, SPAN_EVENTS, false);
}

static char *long_text(size_t n)
{
    char *text = mem_alloc(n + 1);
    memset(text, 'k', n);
    text[n] = '\0';
    return text;
}

/* Each event has the name of its span. */
static struct slice events_of_a_long_name(size_t n)
{
    struct profile_bytes out = {0};
    char *name = long_text(8 * n);
    put_resource(&out, "eu");
    size_t scope = out.size;
    put_text(&out, SPAN_NAME, name);
    for (size_t i = 0; i < n; i++)
        put_text(&out, SPAN_EVENTS, "");
    profile_bytes_wrap(&out, scope, SPANS);
    mem_free(name);
    return done(&out, scope);
}

/* Globs match keys of the resource and the span that differ in their last byte. */
static struct slice events_beside_long_keys(size_t n)
{
    enum { KEYS = 8 };
    struct profile_bytes out = {0};
    char *key = long_text(n);
    put_attribute(&out, 1, "service.name", "shop");
    for (unsigned i = 0; i < KEYS; i++) {
        key[n - 1] = (char)('a' + i);
        put_attribute(&out, 1, key, "v");
    }
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t scope = out.size;
    key[n - 1] = 'z';
    put_attribute(&out, SPAN_ATTRIBUTES, key, "v");
    for (size_t i = 0; i < n; i++) {
        size_t event = out.size;
        put_attribute(&out, 3, "k", "v");
        profile_bytes_wrap(&out, event, SPAN_EVENTS);
    }
    profile_bytes_wrap(&out, scope, SPANS);
    mem_free(key);
    return done(&out, scope);
}

static struct slice resources(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_resource(&out, name_of(name, i));
        size_t scope = out.size;
        put_text(&out, SPANS, "");
        profile_bytes_wrap(&out, scope, SPANS);
        profile_bytes_wrap(&out, begin, 1);
    }
    return message_done(&out);
}

static struct slice a_resource_of_attributes(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    put_attribute(&out, 1, "service.name", "shop");
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 1, name_of(name, i), "v");
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t scope = out.size;
    put_text(&out, SPANS, "");
    return done(&out, scope);
}

static struct slice a_resource_of_empty_attributes(size_t n)
{
    struct profile_bytes out = {0};
    put_attribute(&out, 1, "service.name", "shop");
    for (size_t i = 0; i < 100 * n; i++)
        put_text(&out, 1, "");
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t scope = out.size;
    put_text(&out, SPANS, "");
    return done(&out, scope);
}

static struct slice empty_resources(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_text(&out, 1, "");
    return message_done(&out);
}

static struct slice trace_states(size_t n)
{
    struct profile_bytes out = {0};
    char text[64];
    put_resource(&out, "eu");
    size_t scope = out.size;
    for (size_t i = 0; i < n; i++) {
        size_t span = out.size;
        snprintf(text, sizeof(text), "a=b,c=%zu,ot=rv:00000000000001;th:8", i);
        put_text(&out, 3, text);
        profile_bytes_wrap(&out, span, SPANS);
    }
    return done(&out, scope);
}

static struct slice wide_resource_attributes(size_t n)
{
    struct profile_bytes out = {0};
    put_attribute(&out, 1, "service.name", "shop");
    put_map_attribute(&out, 1, "k000001", n); /* a glob's */
    put_list_attribute(&out, 1, "region", n);
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t scope = out.size;
    for (size_t i = 0; i < n; i++)
        put_text(&out, SPANS, "");
    return done(&out, scope);
}

static const struct work_shape shapes[] = {
    {"empty spans", empty_spans},
    {"distinct names", distinct_names},
    {"attributes", attributes},
    {"empty events", empty_events},
    {"a long label", a_long_label},
    {"a span of attributes", a_span_of_attributes},
    {"a span of one attribute", a_span_of_one_attribute},
    {"a span of events", a_span_of_events},
    {"events of a long name", events_of_a_long_name},
    {"events beside long keys", events_beside_long_keys},
    {"resources", resources},
    {"empty resources", empty_resources},
    {"a resource of attributes", a_resource_of_attributes},
    {"a resource of empty attributes", a_resource_of_empty_attributes},
    {"tracestates", trace_states},
    {"wide resource attributes", wide_resource_attributes},
};

static void run(struct slice input, const struct span_metrics_config *config, uint64_t series_max)
{
    static const struct config_texts none;
    struct dimensions *dimensions = dimensions_create(config);
    size_t bounds_count;
    double *bounds = span_metrics_bounds(config, &bounds_count);
    bool is_common = dimensions_are_none(dimensions, DIMENSIONS_DURATION);
    struct series_settings series = {.histogram = HISTOGRAM_EXPLICIT,
                                     .has_common_labels = is_common,
                                     .bounds = bounds,
                                     .bounds_count = bounds_count,
                                     .exemplars_max = 2,
                                     .series_max = series_max,
                                     .resources_max = 1000,
                                     .bytes_max = UINT64_MAX};
    const struct aggregation_settings settings = {.dimensions = dimensions,
                                                  .key_attributes = &none,
                                                  .scopes = &none,
                                                  .has_service = true,
                                                  .has_name = true,
                                                  .has_kind = true,
                                                  .has_status = true,
                                                  .has_histogram = true,
                                                  .has_common_labels = is_common,
                                                  .has_events = config->events.enabled,
                                                  .has_exemplars = true,
                                                  .unit_ns = 1e6};
    const struct export_settings export_settings = {.has_resource = true,
                                                    .has_service = true,
                                                    .has_name = true,
                                                    .has_kind = true,
                                                    .has_status = true,
                                                    .service_key = "service.name",
                                                    .calls = "calls",
                                                    .duration = "duration",
                                                    .events = "events",
                                                    .unit = "ms"};
    struct series_store store;
    struct span_aggregation aggregation;
    struct series_export export;
    span_series_store_init(&store, &series);
    store.is_main = true;
    span_aggregation_init(&aggregation, &settings, &store, NULL);
    series_export_init(&export, &export_settings, &store, NULL, NULL);
    work_begin();
    span_aggregation_begin(&aggregation, input, (struct series_time){1000, 1000});
    while (span_aggregation_go_on(&aggregation))
        continue;
    series_export_begin(&export, 2000, 2000);
    for (struct batch *batch; (batch = series_export_next(&export)) != NULL; batch_unref(batch))
        work_produced(batch->bytes);
    work_end();
    series_export_fini(&export);
    span_aggregation_fini(&aggregation);
    span_series_store_fini(&store);
    dimensions_destroy(dimensions);
    mem_free(bounds);
}

static void run_plain(struct slice input)
{
    static const struct span_metrics_config config;
    run(input, &config, 0);
}

static void run_with_all(struct slice input)
{
    static struct dimension_config dimensions[] = {{.name = "region", .glob = ""},
                                                   {.name = "", .glob = "k*"}};
    static const struct config_sections all = {.count = 2, .items = dimensions};
    const struct span_metrics_config config = {
        .dimensions = {.count = 1, .items = dimensions},
        .histogram.dimensions = all,
        .events = {.enabled = true, .dimensions = all},
    };
    run(input, &config, 0);
}

static void run_limited(struct slice input)
{
    static struct dimension_config dimensions[] = {{.name = "region", .glob = ""}};
    run(input, &(struct span_metrics_config){.dimensions = {.count = 1, .items = dimensions}}, 10);
}

/* The worst are spans and events of two bytes; a request of many of them is added in pieces. */
static const struct work_stage stages[] = {
    {.name = "plain", .run = run_plain, .per_byte_max = 90},
    {.name = "all dimensions", .run = run_with_all, .per_byte_max = 200},
    {.name = "limited", .run = run_limited, .per_byte_max = 110},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
