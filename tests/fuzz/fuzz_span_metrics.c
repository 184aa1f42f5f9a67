/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of spans that passed the check, added by two lanes, merged and flushed twice. Byte 0
 * chooses the settings, the rest is the request. What comes out has to pass the check, each span
 * with a service counts once, and all memory comes back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/span_metrics/series_export.h"
#include "connectors/span_metrics/span_aggregation.h"
#include "connectors/span_metrics/span_metrics_config.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dimension_config dimension_configs[] = {{.name = "http.method", .glob = ""},
                                                      {.name = "", .glob = "a*"}};
static const char *const scope_names[] = {"lib", "a"};

static const struct export_settings exports[2] = {
    {.has_events = true,
     .has_resource = true,
     .has_service = true,
     .has_name = true,
     .has_kind = true,
     .has_status = true,
     .service_key = "service.name",
     .instance = "id",
     .series_expiration_ns = 1,
     .calls = "calls",
     .duration = "duration",
     .events = "events",
     .unit = "ms"},
    {.is_delta = true,
     .has_otel_status = true,
     .has_status = true,
     .metrics_expiration_ns = 1,
     .calls = "c",
     .duration = "d",
     .events = "e",
     .unit = ""},
};

static void add(struct series_store *store, const struct aggregation_settings *settings,
                struct budget *budget, struct slice request, uint64_t *lost)
{
    struct span_aggregation aggregation;
    span_aggregation_init(&aggregation, settings, store, budget);
    span_aggregation_begin(&aggregation, request, (struct series_time){5, 5});
    while (span_aggregation_go_on(&aggregation))
        continue;
    *lost += aggregation.lost;
    span_aggregation_fini(&aggregation);
}

static void flush(struct series_export *export, uint64_t time_ns)
{
    struct batch *batch;
    series_export_begin(export, time_ns, time_ns);
    while ((batch = series_export_next(export)) != NULL) {
        struct otlp_figures figures;
        const char *reason;
        struct batch_part whole;
        bool is_joined = batch_join(batch, NULL, &whole);
        assert(is_joined);
        bool is_sound = otlp_check(METRICS, whole.bytes, &figures, &reason);
        assert(is_sound && figures.items == batch->items);
        buffer_unref(whole.owner);
        batch_unref(batch);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    struct budget budget;
    const char *reason;
    if (size == 0)
        return 0;
    uint8_t choice = data[0];
    uint8_t *body = mem_copy(data + 1, size - 1);
    struct slice request = slice_of(body, size - 1);
    if (!otlp_check(TRACES, request, &figures, &reason) || figures.has_former_scopes) {
        mem_free(body);
        return 0;
    }
    budget_init(&budget, (choice & 1) != 0 ? UINT64_MAX : 20000);
    const struct config_sections dimension_list = {.count = (choice & 2) != 0 ? 2 : 0,
                                                   .items = dimension_configs};
    const struct config_sections other_list = {.count = (choice & 4) != 0 ? 2 : 0,
                                               .items = dimension_configs};
    const struct span_metrics_config config = {
        .dimensions = dimension_list,
        .histogram = {.dimensions = other_list},
        .events = {.enabled = (choice & 8) != 0, .dimensions = other_list}};
    const struct config_texts scopes = {.count = (choice & 16) != 0 ? 2 : 0, .texts = scope_names};
    const struct config_texts none = {.count = 0};
    struct dimensions *dimensions = dimensions_create(&config);
    size_t bounds_count;
    double *bounds = span_metrics_bounds(&config, &bounds_count);
    bool is_common = (choice & 4) == 0;
    struct series_settings series = {.histogram = (choice & 32) != 0 ? HISTOGRAM_EXPONENTIAL
                                                                     : HISTOGRAM_EXPLICIT,
                                     .has_common_labels = is_common,
                                     .bounds = bounds,
                                     .bounds_count = bounds_count,
                                     .max_size = 20,
                                     .exemplars_max = 1,
                                     .series_max = (choice & 64) != 0 ? 2 : 0,
                                     .resources_max = 2,
                                     .bytes_max = (choice & 1) != 0 ? UINT64_MAX : 10000,
                                     .budget = &budget};
    const struct aggregation_settings settings = {.dimensions = dimensions,
                                                  .key_attributes = &none,
                                                  .scopes = &scopes,
                                                  .has_service = true,
                                                  .has_name = true,
                                                  .has_kind = true,
                                                  .has_status = true,
                                                  .has_histogram = true,
                                                  .has_common_labels = is_common,
                                                  .has_events = config.events.enabled,
                                                  .has_exemplars = true,
                                                  .has_sampling_method = (choice & 16) != 0,
                                                  .unit_ns = 1e6};
    struct series_store main;
    struct series_store other;
    struct delta_times times;
    struct series_export export;
    uint64_t lost = 0;
    span_series_store_init(&main, &series);
    span_series_store_init(&other, &series);
    main.is_main = true;
    delta_times_init(&times, 3, &budget);
    series_export_init(&export, &exports[choice >> 7], &main, &times, &budget);
    for (uint64_t round = 1; round <= 2; round++) {
        add(&main, &settings, &budget, request, &lost);
        add(&other, &settings, &budget, request, &lost);
        while (span_series_store_merge(&main, &other, 3, &lost))
            continue;
        flush(&export, round * 10);
    }
    assert(main.kept <= 2 && main.evicted <= 2);
    series_export_fini(&export);
    delta_times_fini(&times);
    span_series_store_fini(&main);
    span_series_store_fini(&other);
    assert(series.bytes == 0);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    dimensions_destroy(dimensions);
    mem_free(bounds);
    mem_free(body);
    return 0;
}
