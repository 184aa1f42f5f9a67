/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a service: extensions, then on every lane exporters, connectors and processors, and
 * receivers last, so that data arrives only when it can be processed. Main thread, before lanes
 * run. */
#include "src/service/service.h"

#include <assert.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/rss_trim.h"
#include "src/config/component_set.h"
#include "src/service/journals.h"
#include "src/service/service_parts.h"
#include "src/service/telemetry.h"

static bool start(struct component *component, struct error *error)
{
    if (component == NULL || component->is_started)
        return true;
    /* Set even if the start fails, so that whatever it has opened is stopped. */
    component->is_started = true;
    if (component->factory->start != NULL && !component->factory->start(component, error)) {
        const char *kind = component_kind_name(component->factory->kind);
        log_error(&component->logger, "Failed to start component", log_text("error", error->text),
                  log_text("type", component->factory->type), log_text("id", component->id));
        return error_prefix(error, "failed to start \"%s\" %s", component->id, kind);
    }
    return true;
}

/* A pipeline's connectors, which start after the processors of all pipelines that they feed, and
 * its processors. */
static bool start_pipeline(const struct service *service, const struct service_lane *part,
                           size_t index, struct error *error)
{
    const struct config_pipeline *pipeline = &service->config->pipelines[index];
    for (size_t i = 0; i < pipeline->exporters_count; i++) {
        size_t first = connector_slot(component_slot(service, pipeline->exporters[i]),
                                      pipeline->signal, (enum signal_kind)0);
        for (size_t j = first; j < first + SIGNAL_KINDS; j++)
            if (!start(part->connectors[j], error))
                return false;
    }
    for (size_t i = pipeline->processors_count; i > 0; i--)
        if (!start(part->processors[index][i - 1], error))
            return false;
    return true;
}

bool service_start(struct service *service, struct error *error)
{
    assert(atomic_load(&service->state) == SERVICE_BUILT);
    if (service->config->service.has_metrics_reader) {
        service->telemetry = telemetry_create(service, error);
        if (service->telemetry == NULL)
            return error_prefix(error, "failed to initialize service telemetry");
    }
    for (size_t i = 0; i < service->config->extensions_count; i++)
        if (!start(service->extensions[i], error))
            return error_prefix(error, "failed to start extensions");
    size_t slots = service->config->components_count * SIGNAL_KINDS;
    for (unsigned lane = 0; lane < service->lanes_count; lane++)
        for (size_t i = 0; i < slots; i++)
            if (!start(service->lanes[lane].exporters[i], error))
                return error_prefix(error, "cannot start pipelines");
    /* Back to front. */
    const struct config *config = service->config;
    for (unsigned lane = 0; lane < service->lanes_count; lane++)
        for (size_t depth = config->depth + 1; depth > 0; depth--)
            for (size_t i = 0; i < config->pipelines_count; i++)
                if (config->pipelines[i].depth == depth - 1 &&
                    !start_pipeline(service, &service->lanes[lane], i, error))
                    return error_prefix(error, "cannot start pipelines");
    if (!journals_start(service, error))
        return error_prefix(error, "cannot start pipelines");
    /* Lane 0 last: its instances open the listeners and deal connections to the others. */
    for (unsigned lane = service->lanes_count; lane > 0; lane--)
        for (size_t i = 0; i < service->config->components_count; i++)
            if (!start(service->lanes[lane - 1].receivers[i], error))
                return error_prefix(error, "cannot start pipelines");
    service->ready_wall_ns = clock_wall_ns();
    atomic_store(&service->state, SERVICE_READY);
    log_info(NULL, "Everything is ready. Begin running and processing data.");
    rss_trim();
    return true;
}

uint64_t service_abandoned_items(const struct service *service)
{
    return service->abandoned_items;
}
