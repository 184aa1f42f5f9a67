/* SPDX-License-Identifier: Apache-2.0 */
/* service_graph on any request that passes the walker: byte 0 has the settings, byte 1 is where the
 * body is cut into two parts. Every half is accounted for, the metrics are well-formed, and nothing
 * stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/service_graph/graph_metrics.h"
#include "connectors/service_graph/graph_reader.h"
#include "connectors/service_graph/graph_store.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct graph {
    struct graph_store store;
    struct graph_figures figures;
    uint64_t halves;
};

static void take(void *arg, const struct graph_half *halves, size_t count)
{
    struct graph *graph = arg;
    graph->halves += count;
    graph_store_add(&graph->store, halves, count, 10, &graph->figures);
}

static void check_metrics(const struct graph *graph, struct budget *budget)
{
    static const struct slice labels[] = {{(const uint8_t *)"client_a", 8},
                                          {(const uint8_t *)"client_b", 8}};
    const struct graph_page page = {.labels = {labels, labels}, .has_virtual_label = true};
    struct otlp_figures figures;
    struct batch *batch;
    const char *reason;
    size_t at = 0;
    uint64_t points = 0;
    uint64_t failed = 0;
    struct graph_series *series;
    while (graph_metrics_write(&graph->store, &page, 1, budget, &at, &batch) == PIECE_WRITTEN) {
        struct slice bytes = joined_parts(batch);
        bool is_sound = otlp_check(METRICS, bytes, &figures, &reason);
        assert(is_sound);
        assert(figures.items == batch->items);
        points += batch->items;
        mem_free((void *)(uintptr_t)bytes.data);
        batch_unref(batch);
    }
    at = 0;
    while ((series = graph_store_next(&graph->store, &at)) != NULL)
        failed += series->failed > 0;
    assert(points == 3 * graph->store.series_count + failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double bounds[] = {0.1, 1};
    if (size < HEADER_BYTES + 1)
        return 0;
    struct graph_settings settings = {
        .dimensions_count = 2,
        .bounds = bounds,
        .bounds_count = 2,
        .exponential_max = (data[0] & 1) != 0 ? 4 : 0,
        .has_virtual_nodes = (data[0] & 2) != 0,
        .ttl_ns = 5,
        .edges_max = (data[0] & 4) != 0 ? 2 : 1000,
        .series_max = (data[0] & 8) != 0 ? 2 : 0,
    };
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    struct otlp_figures figures;
    const char *reason;
    if (!otlp_check(TRACES, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    static struct graph_reader reader;
    struct graph graph = {.halves = 0};
    struct graph_keys keys;
    struct budget budget;
    budget_init(&budget, (data[0] & 16) != 0 ? 40000 : UINT64_MAX);
    graph_store_init(&graph.store, &settings, &budget);
    graph_keys_init(&keys);
    if ((data[0] & 32) != 0)
        keys.wanted.names[keys.service] = slice_of_text("a");
    bool is_added = graph_keys_add(&keys, &keys.dimensions, "a") &&
                    graph_keys_add(&keys, &keys.dimensions, "b") &&
                    graph_keys_add(&keys, &keys.databases, "b") &&
                    graph_keys_add(&keys, &keys.peers, "c");
    assert(is_added);
    graph_reader_init(&reader, &keys, &graph.store, &budget);
    reader.take = take;
    reader.arg = &graph;
    struct batch *batch = two_parts(TRACES, body, data[1] % body.size);
    batch->items = figures.items;
    uint64_t unread = graph_reader_read(&reader, batch);
    assert(graph.halves + unread <= figures.items || unread > 0);
    assert(graph.figures.edges <= graph.halves);
    if (budget.limit == UINT64_MAX) {
        assert(unread == 0);
        check_metrics(&graph, NULL);
    }
    graph_store_expire(&graph.store, 100, SIZE_MAX, &graph.figures);
    assert(graph.store.edges_count == 0);
    check_metrics(&graph, NULL);
    batch_unref(batch);
    graph_store_clear(&graph.store);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
