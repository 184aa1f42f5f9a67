/* SPDX-License-Identifier: Apache-2.0 */
/* Counters are told by the names that receivers and processors have in common. Any thread. */
#include "src/service/picture.h"

#include <stdio.h>
#include <string.h>

#include "src/base/counter.h"
#include "src/base/ring.h"
#include "src/config/component_set.h"
#include "src/config/config.h"
#include "src/config/node.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/service/service_parts.h"

enum { NODE_BYTES_MAX = 512 };

/* pipeline NULL: not a processor. */
static const char *name_node(char room[NODE_BYTES_MAX], const struct config_component *component,
                             const char *pipeline)
{
    snprintf(room, NODE_BYTES_MAX, "%s/%s%s%s", component_kind_name(component->factory->kind),
             component->id, pipeline != NULL ? "@" : "", pipeline != NULL ? pipeline : "");
    return room;
}

static uint64_t read_row(const struct counter_row *row, const void *counters)
{
    const counter *cells = (const counter *)((const char *)counters + row->offset);
    uint64_t total = 0;
    for (unsigned s = 0; s < SIGNAL_KINDS; s++)
        if (row->per_signal == 0 ? s == 0 : (row->per_signal >> s & 1) != 0)
            total += counter_read(&cells[s]);
    return total;
}

static void add_counters(const struct component *component, struct picture_node *node)
{
    const struct counter_row *row = component != NULL ? component->factory->counters : NULL;
    for (; row != NULL && row->name != NULL; row++) {
        if (row->type != COUNTER_SUM)
            continue;
        if (strncmp(row->name, "otelcol_receiver_accepted_", 26) == 0 ||
            strcmp(row->name, "otelcol_processor_incoming_items") == 0)
            node->items += read_row(row, component->counters);
        else if (strncmp(row->name, "otelcol_receiver_refused_", 25) == 0)
            node->refused += read_row(row, component->counters);
    }
}

static void add_queue(const struct component *exporter, struct exporter_queue *queue,
                      struct picture_node *node)
{
    if (exporter == NULL || queue == NULL)
        return;
    const struct exporter_queue_counters *counters = exporter_queue_counters(queue);
    const struct exporter_queue_config *config = exporter->config;
    for (unsigned s = 0; s < SIGNAL_KINDS; s++) {
        node->items += counter_read(&counters->sent[s]);
        node->refused +=
            counter_read(&counters->send_failed[s]) + counter_read(&counters->enqueue_failed[s]);
    }
    node->bytes += counter_read(&counters->offered_bytes.sum);
    node->retries += counter_read(&counters->retries);
    if (config->has_queue) {
        node->queue += exporter_queue_ring_figures(queue).depth;
        node->queue_limit = config->queue.queue_size;
    }
}

static struct picture_node begin(const struct config_component *component, const char *name)
{
    return (struct picture_node){
        .node = name,
        .kind = component_kind_name(component->factory->kind),
        .type = component->factory->type,
        .id = component->id,
        .line = component->origin != NULL ? (uint32_t)component->origin->position.line : 0,
    };
}

void picture_each_node(const struct service *service, picture_node_fn fn, void *arg)
{
    const struct config *config = service->config;
    char name[NODE_BYTES_MAX];
    for (size_t i = 0; i < config->components_count; i++) {
        const struct config_component *component = &config->components[i];
        if (!component->is_used || component->factory == NULL ||
            component->factory->kind == PROCESSOR || component->factory->kind == EXTENSION)
            continue;
        struct picture_node node = begin(component, name_node(name, component, NULL));
        for (unsigned lane = 0; lane < service->lanes_count; lane++) {
            const struct service_lane *part = &service->lanes[lane];
            add_counters(part->receivers[i], &node);
            for (size_t slot = i * SIGNAL_KINDS; slot < (i + 1) * SIGNAL_KINDS; slot++)
                add_queue(part->exporters[slot], part->queues[slot], &node);
        }
        fn(&node, arg);
    }
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        for (size_t j = 0; j < pipeline->processors_count; j++) {
            struct picture_node node = begin(
                pipeline->processors[j], name_node(name, pipeline->processors[j], pipeline->id));
            for (unsigned lane = 0; lane < service->lanes_count; lane++)
                add_counters(service->lanes[lane].processors[i][j], &node);
            fn(&node, arg);
        }
    }
}

void picture_each_edge(const struct service *service, picture_edge_fn fn, void *arg)
{
    const struct config *config = service->config;
    char names[2][NODE_BYTES_MAX];
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        struct picture_edge edge = {.pipeline = pipeline->id,
                                    .signal = signal_name(pipeline->signal)};
        size_t processors = pipeline->processors_count;
        for (size_t r = 0; r < pipeline->receivers_count; r++) {
            edge.from = name_node(names[0], pipeline->receivers[r], NULL);
            if (processors > 0) {
                edge.to = name_node(names[1], pipeline->processors[0], pipeline->id);
                fn(&edge, arg);
                continue;
            }
            for (size_t e = 0; e < pipeline->exporters_count; e++) {
                edge.to = name_node(names[1], pipeline->exporters[e], NULL);
                fn(&edge, arg);
            }
        }
        for (size_t p = 0; p < processors; p++) {
            edge.from = name_node(names[0], pipeline->processors[p], pipeline->id);
            if (p + 1 < processors) {
                edge.to = name_node(names[1], pipeline->processors[p + 1], pipeline->id);
                fn(&edge, arg);
                continue;
            }
            for (size_t e = 0; e < pipeline->exporters_count; e++) {
                edge.to = name_node(names[1], pipeline->exporters[e], NULL);
                fn(&edge, arg);
            }
        }
    }
}
