/* SPDX-License-Identifier: Apache-2.0 */
/* Writing series: the attributes of each once, then one metric after the other. Runs under the lock
 * of the store's user. */
#include "connectors/service_graph/graph_metrics.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/otlp/metrics/metric_writer.h"

/* The series of one request. */
struct piece {
    const struct graph_settings *settings;
    const struct graph_page *page;
    struct metric_writer writer;
    uint64_t time_ns;
    struct nested_output attributes; /* of all series, one after the other */
    size_t count;
    struct graph_series *series[GRAPH_PIECE_SERIES];
    size_t ends[GRAPH_PIECE_SERIES]; /* of its attributes */
};

static struct slice text_slice(const struct graph_text *text)
{
    return slice_of(text->bytes, text->size);
}

static void put_text(struct piece *piece, const char *key, struct slice text)
{
    metric_attribute_put_string(&piece->attributes, slice_of_text(key), text);
}

static void put_dimensions(struct piece *piece, const struct graph_text *dimensions,
                           enum graph_side side)
{
    size_t at = 0;
    for (size_t i = 0; i < piece->settings->dimensions_count && dimensions->size > 0; i++) {
        struct slice value = graph_dimension_read(text_slice(dimensions), &at);
        if (value.data != NULL)
            metric_attribute_put_string(&piece->attributes, piece->page->labels[side][i], value);
    }
}

static void put_attributes(struct piece *piece, const struct graph_series *series)
{
    static const char *const connections[] = {
        [CONNECTION_UNKNOWN] = "",
        [CONNECTION_MESSAGING] = "messaging_system",
        [CONNECTION_DATABASE] = "database",
        [CONNECTION_VIRTUAL_NODE] = "virtual_node",
    };
    static const char *const virtuals[] = {
        [VIRTUAL_NONE] = "",
        [VIRTUAL_CLIENT] = "client",
        [VIRTUAL_SERVER] = "server",
    };
    if (series->client == NULL) {
        metric_attribute_put_bool(&piece->attributes, slice_of_text("otel.metric.overflow"), true);
        return;
    }
    put_text(piece, "client", text_slice(series->client));
    put_text(piece, "server", text_slice(series->server));
    put_text(piece, "connection_type", slice_of_text(connections[series->connection]));
    metric_attribute_put_bool(&piece->attributes, slice_of_text("failed"), series->is_failed);
    put_dimensions(piece, series->client_dimensions, GRAPH_CLIENT);
    put_dimensions(piece, series->server_dimensions, GRAPH_SERVER);
    if (piece->page->has_virtual_label)
        put_text(piece, "virtual_node", slice_of_text(virtuals[series->virtual_node]));
}

static struct point_head head_of(const struct piece *piece, size_t i)
{
    size_t begin = i > 0 ? piece->ends[i - 1] : 0;
    uint64_t offset_ns = piece->page->offset_ns;
    uint64_t start_ns = piece->series[i]->start_ns;
    return (struct point_head){
        .attributes = slice_of(piece->attributes.buffer->data + begin, piece->ends[i] - begin),
        .start_ns = start_ns > offset_ns ? start_ns - offset_ns : 0,
        .time_ns = piece->time_ns,
    };
}

static void begin_sum(struct piece *piece, const char *name)
{
    metric_writer_begin_metric(&piece->writer, &(struct metric_head){
                                                   .name = slice_of_text(name),
                                                   .kind = METRIC_SUM,
                                                   .temporality = TEMPORALITY_CUMULATIVE,
                                                   .is_monotonic = true,
                                               });
}

static void put_requests(struct piece *piece)
{
    begin_sum(piece, "traces_service_graph_request_total");
    for (size_t i = 0; i < piece->count; i++) {
        struct point_head head = head_of(piece, i);
        metric_writer_put_integer(&piece->writer, &head, (int64_t)piece->series[i]->requests);
    }
}

static void put_failed(struct piece *piece)
{
    bool is_begun = false;
    for (size_t i = 0; i < piece->count; i++) {
        struct point_head head = head_of(piece, i);
        if (piece->series[i]->failed == 0)
            continue;
        if (!is_begun)
            begin_sum(piece, "traces_service_graph_request_failed_total");
        is_begun = true;
        metric_writer_put_integer(&piece->writer, &head, (int64_t)piece->series[i]->failed);
    }
}

static void put_latencies(struct piece *piece, enum graph_side side, const char *name)
{
    const struct graph_settings *settings = piece->settings;
    bool is_exponential = settings->exponential_max > 0;
    metric_writer_begin_metric(&piece->writer,
                               &(struct metric_head){
                                   .name = slice_of_text(name),
                                   .unit = slice_of_text("s"),
                                   .kind = is_exponential ? METRIC_EXPONENTIAL : METRIC_HISTOGRAM,
                                   .temporality = TEMPORALITY_CUMULATIVE,
                               });
    for (size_t i = 0; i < piece->count; i++) {
        struct point_head head = head_of(piece, i);
        struct graph_series *series = piece->series[i];
        if (is_exponential)
            metric_writer_put_exponential(&piece->writer, &head,
                                          graph_series_exponential(series, side));
        else
            metric_writer_put_histogram(&piece->writer, &head,
                                        &(struct histogram_value){
                                            .count = series->requests,
                                            .sum = series->sums[side],
                                            .bounds = settings->bounds,
                                            .counts = graph_series_counts(settings, series, side),
                                            .bounds_count = settings->bounds_count,
                                        });
    }
}

enum metric_piece graph_metrics_write(const struct graph_store *store,
                                      const struct graph_page *page, uint64_t wall_ns,
                                      struct budget *budget, size_t *at, struct batch **ret_batch)
{
    struct piece piece = {.settings = &store->settings, .page = page};
    struct graph_series *series;
    piece.time_ns = wall_ns > page->offset_ns ? wall_ns - page->offset_ns : 0;
    piece.attributes.budget = budget;
    while (piece.count < GRAPH_PIECE_SERIES &&
           nested_output_size(&piece.attributes) < GRAPH_PIECE_ATTRIBUTE_BYTES &&
           (series = graph_store_next(store, at)) != NULL) {
        put_attributes(&piece, series);
        piece.series[piece.count] = series;
        piece.ends[piece.count++] = nested_output_size(&piece.attributes);
    }
    if (piece.count == 0)
        return PIECE_END;
    bool has_room = piece.attributes.refused_bytes == 0;
    *ret_batch = NULL;
    if (has_room) {
        metric_writer_init(&piece.writer, budget);
        metric_writer_begin_resource(&piece.writer, slice_of(NULL, 0));
        metric_writer_begin_scope(&piece.writer, slice_of_text("traces_service_graph"),
                                  slice_of(NULL, 0));
        put_requests(&piece);
        put_failed(&piece);
        put_latencies(&piece, GRAPH_SERVER, "traces_service_graph_request_server");
        put_latencies(&piece, GRAPH_CLIENT, "traces_service_graph_request_client");
        *ret_batch = metric_writer_finish(&piece.writer);
        metric_writer_fini(&piece.writer);
    }
    nested_output_fini(&piece.attributes);
    return *ret_batch != NULL ? PIECE_WRITTEN : PIECE_NO_ROOM;
}
