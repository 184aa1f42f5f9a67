/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of pipelines and connectors. Its nodes are the pipelines and the pairs: a connector
 * with one of the signals that it takes and one of those that it gives. A pipeline leads to the
 * pairs that it exports to, a pair to the pipelines that receive from it. Main thread. */
#include "src/config/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/config/config_limits.h"
#include "src/config/loader.h"

enum { PAIRS = SIGNAL_KINDS * SIGNAL_KINDS, GRAPH_TEXT_MAX = 1024 };

struct connector {
    const struct config_component *component;
    unsigned takes; /* the signals of the pipelines that export to it */
    unsigned gives; /* the signals of the pipelines that receive from it */
};

struct edge {
    size_t from;
    size_t to;
    struct edge *next_out; /* of the same from */
    struct edge *next_in;  /* of the same to */
};

struct graph_node {
    struct edge *out;
    struct edge *in;
    size_t waits_for;      /* edges from nodes that are not in order yet */
    size_t depth;          /* pairs before it, on the longest path */
    uint64_t destinations; /* CONFIG_DESTINATIONS_MAX + 1: above the limit */
};

struct graph {
    struct loader *loader;
    struct config_pipeline *pipelines;
    size_t pipelines_count;
    const struct config_component *components;
    size_t *numbers; /* by component: its place in connectors, from 1 on; 0: no pipeline names it */
    struct connector *connectors;
    size_t connectors_count;
    struct graph_node *nodes; /* the pipelines, then PAIRS for each connector */
    size_t nodes_count;
    size_t *order; /* nodes, each behind all that lead to it; without those on a cycle */
    size_t ordered;
};

void signals_describe(unsigned signals, char *text, size_t size)
{
    assert(size > 0);
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < SIGNAL_KINDS && length < size; i++) {
        if ((signals & 1u << i) == 0)
            continue;
        const char *separator = length == 0 ? "" : (signals >> (i + 1)) != 0 ? ", " : " and ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", separator,
                                   signal_name((enum signal_kind)i));
    }
}

static bool is_connector(const struct config_component *component)
{
    return component->factory != NULL && component->factory->kind == CONNECTOR;
}

static struct connector *connector_of(const struct graph *graph,
                                      const struct config_component *component)
{
    size_t number = graph->numbers[component - graph->components];
    assert(number > 0);
    return &graph->connectors[number - 1];
}

static size_t pair_node(const struct graph *graph, const struct connector *connector, unsigned in,
                        unsigned out)
{
    return graph->pipelines_count + (size_t)(connector - graph->connectors) * PAIRS +
           (size_t)in * SIGNAL_KINDS + out;
}

/* The signals from which the connector can make that one. */
static unsigned sources_of(const struct connector *connector, unsigned out)
{
    unsigned signals = 0;
    for (unsigned in = 0; in < SIGNAL_KINDS; in++)
        if ((connector->component->factory->connects[in] & 1u << out) != 0)
            signals |= 1u << in;
    return signals;
}

/* Makes the connector part of the graph. */
static struct connector *collect(struct graph *graph, const struct config_component *component)
{
    size_t *number = &graph->numbers[component - graph->components];
    if (*number == 0) {
        graph->connectors[graph->connectors_count].component = component;
        *number = ++graph->connectors_count;
    }
    return connector_of(graph, component);
}

static void report_at(const struct graph *graph, const struct config_component *connector,
                      const char *text)
{
    struct path root = {.parent = NULL};
    struct path section = {.parent = &root, .key = component_kind_section(CONNECTOR)};
    struct path path = {.parent = &section, .key = connector->origin->key};
    loader_problem(graph->loader, connector->origin->position, &path, "%s", text);
}

/* One end of the connector is loose: no pipeline at the other end takes that signal. */
static void report_loose_end(const struct graph *graph, const struct config_component *connector,
                             enum component_kind role, enum signal_kind signal, unsigned fitting)
{
    char names[GRAPH_TEXT_MAX] = "";
    char text[2 * GRAPH_TEXT_MAX];
    char signals[64];
    size_t length = 0;
    bool is_exporter = role == EXPORTER;
    for (size_t i = 0; i < graph->pipelines_count && length < sizeof(names); i++) {
        const struct config_pipeline *pipeline = &graph->pipelines[i];
        size_t count = is_exporter ? pipeline->exporters_count : pipeline->receivers_count;
        for (size_t j = 0; j < count && length < sizeof(names); j++) {
            if ((is_exporter ? pipeline->exporters : pipeline->receivers)[j] != connector ||
                pipeline->signal != signal)
                continue;
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                                       length > 0 ? " " : "", pipeline->id);
        }
    }
    length = (size_t)snprintf(
        text, sizeof(text),
        "connector \"%s\" used as %s in [%s] pipeline but not used in any supported %s pipeline",
        connector->id, component_kind_name(role), names,
        component_kind_name(is_exporter ? RECEIVER : EXPORTER));
    signals_describe(fitting, signals, sizeof(signals));
    if (fitting == 0)
        snprintf(text + length, sizeof(text) - length, "; it does not support %s there",
                 signal_name(signal));
    else
        snprintf(text + length, sizeof(text) - length,
                 "; expected it among the %s of a pipeline of %s",
                 component_kind_section(is_exporter ? RECEIVER : EXPORTER), signals);
    report_at(graph, connector, text);
}

static void add_edge(struct graph *graph, size_t from, size_t to)
{
    struct edge *edge = loader_zalloc(graph->loader, sizeof(*edge));
    *edge = (struct edge){
        .from = from, .to = to, .next_out = graph->nodes[from].out, .next_in = graph->nodes[to].in};
    graph->nodes[from].out = edge;
    graph->nodes[to].in = edge;
    graph->nodes[to].waits_for++;
}

/* Kahn's algorithm. */
static void sort(struct graph *graph)
{
    graph->order = loader_zalloc(graph->loader, graph->nodes_count * sizeof(graph->order[0]));
    for (size_t i = 0; i < graph->nodes_count; i++)
        if (graph->nodes[i].waits_for == 0)
            graph->order[graph->ordered++] = i;
    for (size_t i = 0; i < graph->ordered; i++) {
        const struct graph_node *node = &graph->nodes[graph->order[i]];
        size_t depth = node->depth + (graph->order[i] >= graph->pipelines_count);
        for (const struct edge *edge = node->out; edge != NULL; edge = edge->next_out) {
            struct graph_node *next = &graph->nodes[edge->to];
            next->depth = depth > next->depth ? depth : next->depth;
            if (--next->waits_for == 0)
                graph->order[graph->ordered++] = edge->to;
        }
    }
}

/* The edge by which a cycle, or a path that begins on one, leads to the node. */
static const struct edge *edge_to(const struct graph *graph, size_t node)
{
    const struct edge *edge = graph->nodes[node].in;
    while (graph->nodes[edge->from].waits_for == 0)
        edge = edge->next_in;
    return edge;
}

/* Nodes that are not in order have another such node before them, so that a walk backwards among
 * them ends up on a cycle. Reports it from its first pair on, in the direction of the data, to the
 * same pair again. */
static void report_cycle(const struct graph *graph)
{
    size_t node = 0;
    while (graph->nodes[node].waits_for == 0)
        node++;
    for (size_t steps = 0; steps < graph->nodes_count; steps++)
        node = edge_to(graph, node)->from;
    size_t first = graph->nodes_count;
    for (size_t steps = 0; steps < graph->nodes_count; steps++) {
        if (node >= graph->pipelines_count && node < first)
            first = node;
        node = edge_to(graph, node)->from;
    }
    size_t *cycle = loader_zalloc(graph->loader, (graph->nodes_count + 1) * sizeof(cycle[0]));
    size_t count = 0;
    node = first;
    do {
        cycle[count++] = node;
        node = edge_to(graph, node)->from;
    } while (node != first);
    cycle[count++] = first;
    char text[GRAPH_TEXT_MAX];
    size_t length = (size_t)snprintf(text, sizeof(text), "cycle detected: ");
    for (size_t i = count; i > 0 && length < sizeof(text); i--) {
        const char *arrow = i == count ? "" : " -> ";
        if (cycle[i - 1] >= graph->pipelines_count) {
            size_t number = (cycle[i - 1] - graph->pipelines_count) / PAIRS;
            size_t pair = (cycle[i - 1] - graph->pipelines_count) % PAIRS;
            length += (size_t)snprintf(text + length, sizeof(text) - length,
                                       "%sconnector \"%s\" (%s to %s)", arrow,
                                       graph->connectors[number].component->id,
                                       signal_name((enum signal_kind)(pair / SIGNAL_KINDS)),
                                       signal_name((enum signal_kind)(pair % SIGNAL_KINDS)));
            continue;
        }
        const struct config_pipeline *pipeline = &graph->pipelines[cycle[i - 1]];
        for (size_t j = 0; j < pipeline->processors_count && length < sizeof(text); j++)
            length += (size_t)snprintf(text + length, sizeof(text) - length,
                                       "%sprocessor \"%s\" in pipeline \"%s\"", arrow,
                                       pipeline->processors[j]->id, pipeline->id);
    }
    size_t number = (first - graph->pipelines_count) / PAIRS;
    report_at(graph, graph->connectors[number].component, text);
}

static uint64_t add_destinations(uint64_t sum, uint64_t more)
{
    sum += more;
    return sum > CONFIG_DESTINATIONS_MAX ? CONFIG_DESTINATIONS_MAX + 1 : sum;
}

/* Counts back to front. */
static void count_destinations(struct graph *graph)
{
    for (size_t i = graph->ordered; i > 0; i--) {
        size_t number = graph->order[i - 1];
        struct graph_node *node = &graph->nodes[number];
        if (number >= graph->pipelines_count &&
            !graph->connectors[(number - graph->pipelines_count) / PAIRS]
                 .component->factory->passes_on) {
            node->destinations = 1;
            continue;
        }
        for (const struct edge *edge = node->out; edge != NULL; edge = edge->next_out)
            node->destinations =
                add_destinations(node->destinations, graph->nodes[edge->to].destinations);
        if (number >= graph->pipelines_count)
            continue;
        const struct config_pipeline *pipeline = &graph->pipelines[number];
        for (size_t j = 0; j < pipeline->exporters_count; j++)
            node->destinations =
                add_destinations(node->destinations, !is_connector(pipeline->exporters[j]));
    }
}

void graph_load(struct loader *loader, const struct component_set *set, const struct node *node,
                struct config_pipeline *pipelines, size_t count)
{
    struct path root = {.parent = NULL};
    struct path service = {.parent = &root, .key = "service"};
    struct path section = {.parent = &service, .key = "pipelines"};
    struct graph graph = {.loader = loader,
                          .pipelines = pipelines,
                          .pipelines_count = count,
                          .components = set->items};
    assert(node->count == count);
    graph.connectors = loader_zalloc(graph.loader, set->count * sizeof(graph.connectors[0]));
    graph.numbers = loader_zalloc(graph.loader, set->count * sizeof(graph.numbers[0]));
    for (size_t i = 0; i < graph.pipelines_count; i++) {
        const struct config_pipeline *pipeline = &graph.pipelines[i];
        for (size_t j = 0; j < pipeline->exporters_count; j++)
            if (is_connector(pipeline->exporters[j]))
                collect(&graph, pipeline->exporters[j])->takes |= 1u << pipeline->signal;
        for (size_t j = 0; j < pipeline->receivers_count; j++)
            if (is_connector(pipeline->receivers[j]))
                collect(&graph, pipeline->receivers[j])->gives |= 1u << pipeline->signal;
    }
    size_t problems = loader_problems(graph.loader);
    for (size_t i = 0; i < graph.connectors_count; i++) {
        const struct connector *connector = &graph.connectors[i];
        const struct config_component *component = connector->component;
        for (unsigned s = 0; s < SIGNAL_KINDS; s++) {
            unsigned outputs = component->factory->connects[s];
            unsigned sources = sources_of(connector, s);
            if (loader_problems(graph.loader) - problems >= CONFIG_ERRORS_MAX)
                return;
            if ((connector->takes & 1u << s) != 0 && (outputs & connector->gives) == 0)
                report_loose_end(&graph, component, EXPORTER, (enum signal_kind)s, outputs);
            if ((connector->gives & 1u << s) != 0 && (sources & connector->takes) == 0)
                report_loose_end(&graph, component, RECEIVER, (enum signal_kind)s, sources);
        }
    }
    if (loader_problems(graph.loader) != problems)
        return;
    graph.nodes_count = graph.pipelines_count + graph.connectors_count * PAIRS;
    graph.nodes = loader_zalloc(graph.loader, graph.nodes_count * sizeof(graph.nodes[0]));
    for (size_t i = 0; i < graph.pipelines_count; i++) {
        const struct config_pipeline *pipeline = &graph.pipelines[i];
        for (size_t j = 0; j < pipeline->exporters_count; j++) {
            if (!is_connector(pipeline->exporters[j]))
                continue;
            const struct connector *connector = connector_of(&graph, pipeline->exporters[j]);
            unsigned outputs = connector->component->factory->connects[pipeline->signal];
            for (unsigned out = 0; out < SIGNAL_KINDS; out++)
                if ((outputs & connector->gives & 1u << out) != 0)
                    add_edge(&graph, i, pair_node(&graph, connector, pipeline->signal, out));
        }
        for (size_t j = 0; j < pipeline->receivers_count; j++) {
            if (!is_connector(pipeline->receivers[j]))
                continue;
            const struct connector *connector = connector_of(&graph, pipeline->receivers[j]);
            unsigned sources = sources_of(connector, pipeline->signal) & connector->takes;
            for (unsigned in = 0; in < SIGNAL_KINDS; in++)
                if ((sources & 1u << in) != 0)
                    add_edge(&graph, pair_node(&graph, connector, in, pipeline->signal), i);
        }
    }
    sort(&graph);
    if (graph.ordered < graph.nodes_count) {
        report_cycle(&graph);
        return;
    }
    count_destinations(&graph);
    for (size_t i = 0; i < count; i++) {
        struct path path = {.parent = &section, .key = node->entries[i].key};
        pipelines[i].depth = graph.nodes[i].depth;
        pipelines[i].destinations = (unsigned)graph.nodes[i].destinations;
        if (pipelines[i].destinations <= CONFIG_DESTINATIONS_MAX)
            continue;
        loader_problem(loader, node->entries[i].position, &path,
                       "paths through connectors lead from here to more than %d exporters, "
                       "counted once for each path; expected at most that many",
                       CONFIG_DESTINATIONS_MAX);
        return;
    }
}
