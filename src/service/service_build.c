/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and destroys a service. Each lane gets pipelines with their processors, exporters, queues
 * and connectors, a connector after the pipelines that it feeds, and then receivers; extensions
 * come last. Runs on the main thread while no lane runs. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/machine.h"
#include "src/base/mem.h"
#include "src/config/component_set.h"
#include "src/config/feature_gates.h"
#include "src/config/shared/file_storage_config.h"
#include "src/core/batch.h"
#include "src/pipeline/pipeline.h"
#include "src/service/journals.h"
#include "src/service/picture.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "src/service/status_page.h"
#include "src/service/telemetry.h"

/* An instance with its component filled in; create is still to be called. */
static struct component *allocate(struct service *service, struct service_lane *part,
                                  const struct config_component *from)
{
    assert(from->config != NULL);
    const struct component_factory *factory = from->factory;
    assert(factory->instance_size >= sizeof(struct component));
    struct component *component = mem_zalloc(factory->instance_size);
    component->factory = factory;
    component->id = from->id;
    component->config = from->config;
    component->lane = part->lane;
    component->budget = &service->budget;
    component->ledger = &part->ledger;
    component->service = &service->view;
    component->first = component;
    component->counters = mem_zalloc(factory->counters_size);
    component->logger = (struct logger){.component_id = from->id,
                                        .component_kind = component_kind_name(factory->kind)};
    return component;
}

static void destroy(struct component *component)
{
    if (component == NULL)
        return;
    assert(component->factory != NULL);
    if (component->factory->destroy != NULL)
        component->factory->destroy(component);
    mem_free(component->counters);
    mem_free(component);
}

/* Makes what all instances of an id share, with the first of them. */
static bool share_among(struct service *service, const struct config_component *from,
                        struct component *component, struct error *error)
{
    void **common = &service->commons[component_slot(service, from)];
    assert(component->factory->share != NULL);
    assert(component->factory->unshare != NULL);
    if (*common == NULL)
        *common = component->factory->share(component, service->lanes_count, error);
    component->shared = *common;
    return component->shared != NULL;
}

/* Calls create; an error gets its position in the configuration files. */
static bool prepare(const struct config_component *from, struct component *component,
                    struct error *error)
{
    if (component->factory->create == NULL || component->factory->create(component, error))
        return true;
    assert(error->text[0] != '\0');
    config_component_locate(from, error);
    return false;
}

static void set_signal(struct component *component, enum signal_kind signal, const char *pipeline)
{
    assert(signal < SIGNAL_KINDS);
    component->signal = signal;
    component->logger.signal = signal_name(signal);
    component->logger.pipeline_id = pipeline;
}

static bool build_exporter(struct service *service, struct service_lane *part,
                           const struct config_component *from, enum signal_kind signal,
                           struct error *error)
{
    assert(from->factory->kind == EXPORTER);
    assert(part->queues != NULL);
    size_t slot = exporter_slot(component_slot(service, from), signal);
    if (part->queues[slot] != NULL)
        return true;
    struct component *exporter = allocate(service, part, from);
    set_signal(exporter, signal, NULL);
    exporter->exporters = 1;
    part->exporters[slot] = exporter;
    bool has_shared = from->factory->share == NULL || share_among(service, from, exporter, error);
    if (!has_shared || !prepare(from, exporter, error))
        return error_prefix(error, "failed to create \"%s\" exporter for data type \"%s\"",
                            from->id, signal_name(signal));
    if (part == &service->lanes[0])
        exporter_queue_shared_init(&service->shared[slot], from->config);
    part->queues[slot] = exporter_queue_create(exporter, &service->shared[slot]);
    return true;
}

/* NULL: no pipeline takes that signal from it. */
static struct outlet *build_outlet(struct service *service, struct service_lane *part,
                                   const struct config_component *from, enum signal_kind signal)
{
    assert(signal < SIGNAL_KINDS);
    const struct config *config = service->config;
    size_t count = 0;
    struct pipeline **fed =
        (struct pipeline **)mem_alloc(config->pipelines_count * sizeof(struct pipeline *));
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        bool is_fed = false;
        for (size_t j = 0; j < pipeline->receivers_count; j++)
            is_fed |= pipeline->receivers[j] == from;
        if (is_fed && pipeline->signal == signal)
            fed[count++] = part->pipelines[i];
    }
    struct outlet *outlet = count > 0 ? outlet_create(fed, count) : NULL;
    mem_free((void *)fed);
    return outlet;
}

/* One instance for each signal that pipelines take from it. Those pipelines are built already. */
static bool build_connectors(struct service *service, struct service_lane *part,
                             const struct config_component *from, enum signal_kind taken,
                             struct error *error)
{
    assert(from->factory->kind == CONNECTOR);
    for (unsigned given = 0; given < SIGNAL_KINDS; given++) {
        size_t slot = connector_slot(component_slot(service, from), taken, given);
        if ((from->factory->connects[taken] & 1u << given) == 0 || part->connectors[slot] != NULL)
            continue;
        struct outlet *outlet = build_outlet(service, part, from, (enum signal_kind)given);
        if (outlet == NULL)
            continue;
        struct component *connector = allocate(service, part, from);
        set_signal(connector, taken, NULL);
        connector->output = (enum signal_kind)given;
        connector->outlets[given] = outlet;
        connector->exporters = from->factory->passes_on ? outlet_exporters(outlet) : 1;
        connector->is_journaled =
            from->factory->passes_on && !from->factory->chooses && outlet_stores(outlet);
        part->connectors[slot] = connector;
        bool has_shared =
            from->factory->share == NULL || share_among(service, from, connector, error);
        if (!has_shared || !prepare(from, connector, error))
            return error_prefix(error,
                                "failed to create \"%s\" connector for data types \"%s\" to \"%s\"",
                                from->id, signal_name(taken), signal_name(connector->output));
    }
    return true;
}

/* Processors look for one another. */
static bool let_meet(const struct config_pipeline *from, struct component *const *processors,
                     struct error *error)
{
    for (size_t i = 0; i < from->processors_count; i++) {
        struct component *processor = processors[i];
        if (processor->factory->meet == NULL || processor->factory->meet(processor, error))
            continue;
        config_component_locate(from->processors[i], error);
        return error_prefix(error, "failed to create \"%s\" processor, in pipeline \"%s\"",
                            processor->id, from->id);
    }
    return true;
}

static bool build_pipeline(struct service *service, struct service_lane *part, size_t index,
                           struct error *error)
{
    assert(index < service->config->pipelines_count);
    const struct config_pipeline *from = &service->config->pipelines[index];
    for (size_t i = 0; i < from->exporters_count; i++) {
        const struct config_component *to = from->exporters[i];
        bool is_built = to->factory->kind == CONNECTOR
                            ? build_connectors(service, part, to, from->signal, error)
                            : build_exporter(service, part, to, from->signal, error);
        if (!is_built)
            return false;
    }
    assert(part->processors[index] == NULL);
    part->processors[index] =
        (struct component **)mem_zalloc(from->processors_count * sizeof(struct component *));
    for (size_t i = 0; i < from->processors_count; i++) {
        struct component *processor = allocate(service, part, from->processors[i]);
        set_signal(processor, from->signal, from->id);
        processor->exporters = from->destinations;
        part->processors[index][i] = processor;
        bool has_shared = processor->factory->share == NULL ||
                          share_among(service, from->processors[i], processor, error);
        if (!has_shared || !prepare(from->processors[i], processor, error))
            return error_prefix(error, "failed to create \"%s\" processor, in pipeline \"%s\"",
                                processor->id, from->id);
    }
    struct exporter_queue **queues = (struct exporter_queue **)mem_alloc(
        from->exporters_count * sizeof(struct exporter_queue *));
    struct component **connectors = (struct component **)mem_alloc(
        from->exporters_count * SIGNAL_KINDS * sizeof(struct component *));
    size_t queues_count = 0;
    size_t connectors_count = 0;
    for (size_t i = 0; i < from->exporters_count; i++) {
        size_t component = component_slot(service, from->exporters[i]);
        if (from->exporters[i]->factory->kind != CONNECTOR) {
            queues[queues_count++] = part->queues[exporter_slot(component, from->signal)];
            continue;
        }
        size_t first = connector_slot(component, from->signal, (enum signal_kind)0);
        for (size_t j = first; j < first + SIGNAL_KINDS; j++)
            if (part->connectors[j] != NULL)
                connectors[connectors_count++] = part->connectors[j];
    }
    size_t storing = 0;
    for (size_t i = 0; i < queues_count; i++)
        storing += exporter_queue_stores(queues[i]);
    for (size_t i = 0; i < connectors_count; i++) {
        const struct outlet *outlet = connectors[i]->outlets[connectors[i]->output];
        for (size_t j = 0; connectors[i]->is_journaled && j < outlet_pipelines(outlet); j++)
            storing += outlet_stores_at(outlet, j);
    }
    bool is_possible = storing <= STORING_MAX;
    if (is_possible)
        part->pipelines[index] = pipeline_create(&(struct pipeline_settings){
            .lane = part->lane,
            .ledger = &part->ledger,
            .budget = &service->budget,
            .processors = part->processors[index],
            .processors_count = from->processors_count,
            .queues = queues,
            .queues_count = queues_count,
            .connectors = connectors,
            .connectors_count = connectors_count,
            .exporters = from->destinations,
            .id = from->id,
        });
    mem_free((void *)queues);
    mem_free((void *)connectors);
    if (!is_possible)
        return error_set(error,
                         "pipeline \"%s\" has %zu exporters with storage, or pipelines with such "
                         "exporters behind its connectors, expected at most %d",
                         from->id, storing, STORING_MAX);
    return let_meet(from, part->processors[index], error);
}

static void link_over_lanes(struct component *first, struct component *before,
                            struct component *component)
{
    if (component == NULL)
        return;
    assert(first != NULL && before != NULL);
    component->first = first;
    if (component != first)
        before->next_lane = component;
}

static const struct config_component *find_extension(const struct service_view *view,
                                                     const char *id)
{
    const struct config *config = ((const struct service *)view)->config;
    for (size_t i = 0; i < config->extensions_count; i++)
        if (strcmp(config->extensions[i]->id, id) == 0)
            return config->extensions[i];
    return NULL;
}

static const char *instance_id(const struct config *config)
{
    const struct config_pairs *resource = &config->service.resource;
    for (size_t i = 0; i < resource->count; i++)
        if (strcmp(resource->pairs[i].key, "service.instance.id") == 0)
            return resource->pairs[i].value;
    return "";
}

static bool is_ready(const struct service_view *view)
{
    const struct service *service = (const struct service *)view;
    return atomic_load(&service->state) == SERVICE_READY;
}

static uint64_t ready_since_wall_ns(const struct service_view *view)
{
    const struct service *service = (const struct service *)view;
    return service->ready_wall_ns;
}

static void print_page(const struct service_view *view, enum status_page page, FILE *out)
{
    status_page_print((const struct service *)view, page, out);
}

static void each_node(const struct service_view *view, picture_node_fn fn, void *arg)
{
    picture_each_node((const struct service *)view, fn, arg);
}

static struct picture_sums sums(const struct service_view *view)
{
    return picture_sums((const struct service *)view);
}

static bool node_detail(const struct service_view *view, const char *node, picture_counter_fn fn,
                        void *arg, FILE *yaml)
{
    return picture_node_detail((const struct service *)view, node, fn, arg, yaml);
}

static void each_edge(const struct service_view *view, picture_edge_fn fn, void *arg)
{
    picture_each_edge((const struct service *)view, fn, arg);
}

static bool build(struct service *service, struct lane *const *lanes, struct error *error)
{
    for (unsigned i = 0; i < service->lanes_count; i++) {
        service->lanes[i].lane = lanes[i];
        struct service_lane *part = &service->lanes[i];
        assert(part->lane != NULL);
        const struct config *config = service->config;
        size_t components = config->components_count;
        part->receivers = (struct component **)mem_zalloc(components * sizeof(struct component *));
        part->exporters =
            (struct component **)mem_zalloc(components * SIGNAL_KINDS * sizeof(struct component *));
        part->connectors =
            (struct component **)mem_zalloc(components * SIGNAL_PAIRS * sizeof(struct component *));
        part->queues = (struct exporter_queue **)mem_zalloc(components * SIGNAL_KINDS *
                                                            sizeof(struct exporter_queue *));
        part->pipelines =
            (struct pipeline **)mem_zalloc(config->pipelines_count * sizeof(struct pipeline *));
        part->processors =
            (struct component ***)mem_zalloc(config->pipelines_count * sizeof(struct component **));
        for (size_t depth = config->depth + 1; depth > 0; depth--)
            for (size_t j = 0; j < config->pipelines_count; j++)
                if (config->pipelines[j].depth == depth - 1 &&
                    !build_pipeline(service, part, j, error))
                    return error_prefix(error, "failed to build pipelines");
        for (size_t j = 0; j < components; j++) {
            const struct config_component *from = &config->components[j];
            if (from->factory->kind != RECEIVER || !from->is_used)
                continue;
            struct component *receiver = allocate(service, part, from);
            part->receivers[j] = receiver;
            for (int s = 0; s < SIGNAL_KINDS; s++)
                receiver->outlets[s] = build_outlet(service, part, from, (enum signal_kind)s);
            if (!prepare(from, receiver, error))
                return error_prefix(
                    error, "failed to build pipelines: failed to create \"%s\" receiver", from->id);
        }
    }
    assert(service->lanes_count > 0);
    for (unsigned lane = 0; lane < service->lanes_count; lane++) {
        const struct service_lane *first = &service->lanes[0];
        const struct service_lane *before = &service->lanes[lane > 0 ? lane - 1 : 0];
        const struct service_lane *part = &service->lanes[lane];
        for (size_t i = 0; i < service->config->components_count; i++) {
            link_over_lanes(first->receivers[i], before->receivers[i], part->receivers[i]);
            for (size_t j = i * SIGNAL_PAIRS; j < (i + 1) * SIGNAL_PAIRS; j++)
                link_over_lanes(first->connectors[j], before->connectors[j], part->connectors[j]);
            for (int s = 0; s < SIGNAL_KINDS; s++) {
                size_t slot = exporter_slot(i, (enum signal_kind)s);
                link_over_lanes(first->exporters[slot], before->exporters[slot],
                                part->exporters[slot]);
            }
        }
        for (size_t i = 0; i < service->config->pipelines_count; i++)
            for (size_t j = 0; j < service->config->pipelines[i].processors_count; j++)
                link_over_lanes(first->processors[i][j], before->processors[i][j],
                                part->processors[i][j]);
    }
    assert(service->extensions == NULL);
    const struct config *config = service->config;
    service->extensions =
        (struct component **)mem_zalloc(config->extensions_count * sizeof(struct component *));
    for (size_t i = 0; i < config->extensions_count; i++) {
        service->extensions[i] = allocate(service, &service->lanes[0], config->extensions[i]);
        if (!prepare(config->extensions[i], service->extensions[i], error))
            return error_prefix(error,
                                "failed to build extensions: failed to create extension "
                                "\"%s\"",
                                config->extensions[i]->id);
    }
    return true;
}

static bool leaves_out(const struct service_view *view, const char *pipeline)
{
    const struct config *config = ((const struct service *)view)->config;
    for (size_t i = 0; i < config->skips_count; i++)
        if (config->skips[i].component == NULL && strcmp(config->skips[i].pipeline, pipeline) == 0)
            return true;
    return false;
}

static struct service *create(const struct config *config, struct lane *const *lanes,
                              unsigned lanes_count, bool is_rehearsal, struct error *error)
{
    assert(lanes_count > 0 && lanes_count <= LANES_MAX);
    struct service *service = mem_zalloc(sizeof(*service));
    service->view = (struct service_view){.is_rehearsal = is_rehearsal,
                                          .extension = find_extension,
                                          .leaves_out = leaves_out,
                                          .print_page = print_page,
                                          .each_node = each_node,
                                          .each_edge = each_edge,
                                          .sums = sums,
                                          .node_detail = node_detail,
                                          .instance_id = instance_id(config),
                                          .gates = &config->gates,
                                          .is_ready = is_ready,
                                          .ready_since_wall_ns = ready_since_wall_ns};
    service->config = config;
    service->lanes_count = lanes_count;
    service->lanes = mem_zalloc(lanes_count * sizeof(service->lanes[0]));
    service->shared =
        mem_zalloc(config->components_count * SIGNAL_KINDS * sizeof(service->shared[0]));
    service->commons = (void **)mem_zalloc(config->components_count * sizeof(void *));
    service->journals =
        (struct journal **)mem_zalloc(config->pipelines_count * sizeof(struct journal *));
    service->disks = mem_zalloc(config->components_count * sizeof(service->disks[0]));
    for (size_t i = 0; i < config->components_count; i++) {
        const struct config_component *component = &config->components[i];
        bool is_storage =
            component->config != NULL && strcmp(component->factory->type, "file_storage") == 0;
        const struct file_storage_config *storage = is_storage ? component->config : NULL;
        budget_init(&service->disks[i],
                    storage != NULL && storage->max_size > 0 ? storage->max_size : UINT64_MAX);
    }
    service->started_ns = clock_now_ns();
    /* By default half of the machine's memory; the rest is for the application and the kernel. */
    uint64_t budget_mib = config->service.budget_mib;
    budget_init(&service->budget, budget_mib > 0 ? budget_mib * MIB : machine_memory_bytes() / 2);
    budget_count_memory(&service->budget);
    if (build(service, lanes, error))
        return service;
    service_destroy(service);
    return NULL;
}

struct service *service_create(const struct config *config, struct lane *const *lanes,
                               unsigned lanes_count, struct error *error)
{
    return create(config, lanes, lanes_count, false, error);
}

bool service_can_build(const struct config *config, struct lane *lane, bool is_rehearsal,
                       struct error *error)
{
    struct service *service = create(config, &lane, 1, is_rehearsal, error);
    assert(service != NULL || error->text[0] != '\0');
    service_destroy(service);
    return service != NULL;
}

void service_destroy(struct service *service)
{
    if (service == NULL)
        return;
    assert(service->stop_run == NULL);
    telemetry_destroy(service->telemetry);
    for (size_t i = 0; service->extensions != NULL && i < service->config->extensions_count; i++)
        destroy(service->extensions[i]);
    mem_free((void *)service->extensions);
    size_t components = service->config->components_count;
    bool *is_shared = mem_zalloc(components * SIGNAL_KINDS);
    for (unsigned i = 0; i < service->lanes_count; i++) {
        struct service_lane *part = &service->lanes[i];
        for (size_t j = 0; part->receivers != NULL && j < components; j++) {
            if (part->receivers[j] == NULL)
                continue;
            for (int signal = 0; signal < SIGNAL_KINDS; signal++)
                outlet_destroy(part->receivers[j]->outlets[signal]);
            destroy(part->receivers[j]);
        }
        mem_free((void *)part->receivers);
        for (size_t k = 0; part->pipelines != NULL && k < service->config->pipelines_count; k++) {
            pipeline_destroy(part->pipelines[k]);
            if (part->processors[k] == NULL)
                continue;
            for (size_t j = 0; j < service->config->pipelines[k].processors_count; j++)
                destroy(part->processors[k][j]);
            mem_free((void *)part->processors[k]);
        }
        mem_free((void *)part->pipelines);
        mem_free((void *)part->processors);
        for (size_t j = 0; part->connectors != NULL && j < components * SIGNAL_PAIRS; j++) {
            if (part->connectors[j] == NULL)
                continue;
            outlet_destroy(part->connectors[j]->outlets[part->connectors[j]->output]);
            destroy(part->connectors[j]);
        }
        mem_free((void *)part->connectors);
        for (size_t j = 0; part->queues != NULL && j < components * SIGNAL_KINDS; j++) {
            is_shared[j] |= part->queues[j] != NULL;
            exporter_queue_destroy(part->queues[j]);
            destroy(part->exporters[j]);
        }
        mem_free((void *)part->queues);
        mem_free((void *)part->exporters);
    }
    for (size_t j = 0; j < components * SIGNAL_KINDS; j++)
        if (is_shared[j])
            exporter_queue_shared_fini(&service->shared[j]);
    mem_free(is_shared);
    assert(service->commons != NULL);
    for (size_t i = 0; i < components; i++)
        if (service->commons[i] != NULL)
            service->config->components[i].factory->unshare(service->commons[i]);
    mem_free((void *)service->commons);
    journals_destroy(service);
    for (size_t j = 0; j < service->config->components_count; j++)
        budget_fini(&service->disks[j]);
    mem_free(service->disks);
    budget_fini(&service->budget);
    mem_free(service->shared);
    mem_free(service->lanes);
    mem_free(service);
}
