/* SPDX-License-Identifier: Apache-2.0 */
/* Counters are told by the names that receivers and processors have in common. Any thread. */
#include "src/service/picture.h"

#include <stdio.h>
#include <string.h>

#include "src/base/counter.h"
#include "src/base/limits.h"
#include "src/base/ring.h"
#include "src/config/component_set.h"
#include "src/config/config.h"
#include "src/config/node.h"
#include "src/config/print.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/journal/journal.h"
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

static void add_join(const struct component *processor, struct picture_sums *sums)
{
    static const char prefix[] = "otelcol_processor_trace_profile_join_";
    const struct counter_row *row = processor->factory->counters;
    if (strcmp(processor->factory->type, "trace_profile_join") != 0)
        return;
    sums->has_join = true;
    for (; row != NULL && row->name != NULL; row++) {
        if (strncmp(row->name, prefix, sizeof(prefix) - 1) != 0)
            continue;
        const char *name = row->name + sizeof(prefix) - 1;
        uint64_t *to = strcmp(name, "hits") == 0            ? &sums->hits
                       : strcmp(name, "misses") == 0        ? &sums->misses
                       : strcmp(name, "held_requests") == 0 ? &sums->held_requests
                       : strcmp(name, "held_bytes") == 0    ? &sums->held_bytes
                                                            : NULL;
        if (to != NULL)
            *to += read_row(row, processor->counters);
    }
}

/* What waits is what the exporter that is furthest behind has not finished. */
static void add_journal(struct journal *journal, struct picture_sums *sums)
{
    struct journal_backlog waits;
    uint64_t records = 0;
    uint64_t bytes = 0;
    sums->has_journal = true;
    for (size_t i = 0; journal_each_backlog(journal, i, &waits); i++) {
        records = waits.records > records ? waits.records : records;
        bytes = waits.amount.bytes > bytes ? waits.amount.bytes : bytes;
        if (waits.oldest_wall_ns > 0 &&
            (sums->oldest_wall_ns == 0 || waits.oldest_wall_ns < sums->oldest_wall_ns))
            sums->oldest_wall_ns = waits.oldest_wall_ns;
    }
    sums->waiting_records += records;
    sums->waiting_bytes += bytes;
    sums->is_full |= journal_health(journal).is_full;
}

struct picture_sums picture_sums(const struct service *service)
{
    const struct config *config = service->config;
    struct picture_sums sums = {.has_join = false};
    for (size_t i = 0; i < config->pipelines_count; i++) {
        if (service->journals != NULL && service->journals[i] != NULL)
            add_journal(service->journals[i], &sums);
        for (size_t j = 0; j < config->pipelines[i].processors_count; j++)
            for (unsigned lane = 0; lane < service->lanes_count; lane++)
                if (service->lanes[lane].processors[i][j] != NULL)
                    add_join(service->lanes[lane].processors[i][j], &sums);
    }
    return sums;
}

/* The counters of a node's instances, which have the same rows. */
struct instances {
    const void *items[LANES_MAX * SIGNAL_KINDS];
    size_t count;
};

static void tell_counters(const struct counter_row *row, const struct instances *instances,
                          picture_counter_fn fn, void *arg)
{
    for (; instances->count > 0 && row != NULL && row->name != NULL; row++) {
        char name[128];
        if (row->type == COUNTER_HISTOGRAM)
            continue;
        for (unsigned s = 0; s < SIGNAL_KINDS; s++) {
            const char *marker = strstr(row->name, "%s");
            struct picture_counter told = {.name = name,
                                           .labels = {row->label, row->second_label},
                                           .values = {row->label_value, row->second_value}};
            if (row->per_signal == 0 ? s > 0 : (row->per_signal >> s & 1) == 0)
                continue;
            for (size_t i = 0; i < instances->count; i++)
                told.value += counter_read(
                    &((const counter *)((const char *)instances->items[i] + row->offset))[s]);
            if (marker != NULL)
                snprintf(name, sizeof(name), "%.*s%s%s", (int)(marker - row->name), row->name,
                         signal_items((enum signal_kind)s), marker + strlen("%s"));
            else
                snprintf(name, sizeof(name), "%s", row->name);
            fn(&told, arg);
        }
    }
}

static void add_instance(struct instances *instances, const struct component *component)
{
    if (component != NULL && component->factory->counters != NULL)
        instances->items[instances->count++] = component->counters;
}

static void tell_shared(const struct service *service, size_t place, picture_counter_fn fn,
                        void *arg)
{
    static const struct counter_row *const queue_rows[] = {
        exporter_queue_sent_rows, exporter_queue_failed_rows, exporter_queue_enqueue_rows,
        exporter_queue_progress_rows};
    const struct counter_row *rows = service->config->components[place].factory->counters;
    struct instances instances = {.count = 0};
    struct instances queues = {.count = 0};
    for (unsigned lane = 0; lane < service->lanes_count; lane++) {
        const struct service_lane *part = &service->lanes[lane];
        add_instance(&instances, part->receivers[place]);
        for (size_t slot = place * SIGNAL_KINDS; slot < (place + 1) * SIGNAL_KINDS; slot++) {
            add_instance(&instances, part->exporters[slot]);
            if (part->exporters[slot] != NULL && part->queues[slot] != NULL)
                queues.items[queues.count++] = exporter_queue_counters(part->queues[slot]);
        }
    }
    tell_counters(rows, &instances, fn, arg);
    for (size_t i = 0; i < sizeof(queue_rows) / sizeof(queue_rows[0]); i++)
        tell_counters(queue_rows[i], &queues, fn, arg);
}

bool picture_node_detail(const struct service *service, const char *node, picture_counter_fn fn,
                         void *arg, FILE *yaml)
{
    const struct config *config = service->config;
    char name[NODE_BYTES_MAX];
    for (size_t i = 0; i < config->components_count; i++) {
        const struct config_component *component = &config->components[i];
        if (!component->is_used || component->factory == NULL ||
            component->factory->kind == PROCESSOR ||
            strcmp(name_node(name, component, NULL), node) != 0)
            continue;
        tell_shared(service, i, fn, arg);
        return print_component(component, yaml);
    }
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        for (size_t j = 0; j < pipeline->processors_count; j++) {
            const struct config_component *component = pipeline->processors[j];
            struct instances instances = {.count = 0};
            if (strcmp(name_node(name, component, pipeline->id), node) != 0)
                continue;
            for (unsigned lane = 0; lane < service->lanes_count; lane++)
                add_instance(&instances, service->lanes[lane].processors[i][j]);
            tell_counters(component->factory->counters, &instances, fn, arg);
            return print_component(component, yaml);
        }
    }
    return false;
}
