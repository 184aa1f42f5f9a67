/* SPDX-License-Identifier: Apache-2.0 */
/* service_graph: reading spans, pairing them, and writing the series that they make. */
#include <assert.h>
#include <stdlib.h>

#include "connectors/service_graph/graph_metrics.h"
#include "connectors/service_graph/graph_reader.h"
#include "connectors/service_graph/graph_store.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { SERVER = 2, CLIENT = 3, TEXT_VALUE = 1, LIST_VALUE = 5, MAP_VALUE = 6, DEEP = 24 };

/* Begins a span; its attributes may follow until end_span. */
static size_t begin_span(struct profile_bytes *out, unsigned kind, uint64_t id)
{
    size_t begin = out->size;
    put_bytes(out, 1, "0123456789abcdef", 16);
    put_bytes(out, kind == CLIENT ? 2 : 4, &id, sizeof(id));
    put_number(out, 6, kind);
    return begin;
}

static void end_span(struct profile_bytes *out, size_t begin)
{
    profile_bytes_wrap(out, begin, 2);
}

static void put_span(struct profile_bytes *out, unsigned kind, uint64_t id)
{
    end_span(out, begin_span(out, kind, id));
}

/* What is written since `begin` becomes the scope of a resource of that service. */
static void end_resource(struct profile_bytes *out, size_t begin, const char *service)
{
    profile_bytes_wrap(out, begin, 2);
    size_t resource = out->size;
    put_attribute(out, 1, "service.name", service);
    profile_bytes_wrap(out, resource, 1);
    profile_bytes_wrap(out, begin, 1);
}

static struct slice lonely_clients(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, CLIENT, i + 1);
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice pairs(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        put_span(&out, CLIENT, i + 1);
        put_span(&out, SERVER, i + 1);
    }
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice one_id(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, SERVER, 1);
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice a_service_for_each_edge(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        size_t span = begin_span(&out, CLIENT, i + 1);
        put_attribute(&out, 9, "db.name", "db");
        end_span(&out, span);
        end_resource(&out, begin, name_of(name, i));
    }
    return message_done(&out);
}

static struct slice a_dimension_for_each_edge(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t span = begin_span(&out, CLIENT, i + 1);
        put_attribute(&out, 9, "dim.one", name_of(name, i));
        put_attribute(&out, 9, "db.name", "db");
        end_span(&out, span);
    }
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice dimensions_that_alternate(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t span = begin_span(&out, CLIENT, 1);
        put_attribute(&out, 9, i % 2 > 0 ? "dim.one" : "dim.two", "x");
        end_span(&out, span);
    }
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice equal_attributes(size_t n)
{
    struct profile_bytes out = {0};
    size_t span = begin_span(&out, CLIENT, 1);
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 9, "dim.one", "x");
    end_span(&out, span);
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice other_attributes(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    size_t span = begin_span(&out, CLIENT, 1);
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 9, name_of(name, i), "x"); /* as long as a wanted name */
    end_span(&out, span);
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice a_wide_value(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    size_t span = begin_span(&out, CLIENT, 1);
    size_t attribute = out.size;
    put_text(&out, 1, "dim.one");
    size_t map = out.size;
    for (size_t i = n; i > 0; i--)
        put_attribute(&out, 1, name_of(name, i), "\x01<");
    profile_bytes_wrap(&out, map, MAP_VALUE);
    profile_bytes_wrap(&out, map, 2);
    profile_bytes_wrap(&out, attribute, 9);
    end_span(&out, span);
    end_resource(&out, 0, "a");
    return message_done(&out);
}

/* Of the resource, for each span. */
static struct slice a_wide_resource_and_spans(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, CLIENT, i + 1);
    profile_bytes_wrap(&out, 0, 2);
    size_t resource = out.size;
    put_attribute(&out, 1, "service.name", "a");
    put_map_attribute(&out, 1, "db.name", n);
    put_map_attribute(&out, 1, "dim.one", n);
    profile_bytes_wrap(&out, resource, 1);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static struct slice deep_values(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n / 8; i++) {
        size_t span = begin_span(&out, CLIENT, i + 1);
        size_t attribute = out.size;
        put_text(&out, 1, "dim.one");
        size_t value = out.size;
        put_text(&out, TEXT_VALUE, "x");
        for (unsigned depth = 0; depth < DEEP; depth++) {
            profile_bytes_wrap(&out, value, 1);
            profile_bytes_wrap(&out, value, LIST_VALUE);
        }
        profile_bytes_wrap(&out, value, 2);
        profile_bytes_wrap(&out, attribute, 9);
        end_span(&out, span);
    }
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice long_text(size_t n)
{
    struct profile_bytes out = {0};
    char *text = calloc(8 * n + 1, 1);
    memset(text, 0x80, 8 * n); /* no character begins anywhere */
    size_t span = begin_span(&out, CLIENT, 1);
    put_attribute(&out, 9, "dim.one", text);
    end_span(&out, span);
    end_resource(&out, 0, "a");
    free(text);
    return message_done(&out);
}

static struct slice empty_spans(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        end_span(&out, out.size);
    end_resource(&out, 0, "a");
    return message_done(&out);
}

static struct slice empty_scopes(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        profile_bytes_wrap(&out, out.size, 2);
    size_t begin = out.size;
    put_span(&out, CLIENT, 1);
    profile_bytes_wrap(&out, begin, 2);
    size_t resource = out.size;
    put_attribute(&out, 1, "service.name", "a");
    profile_bytes_wrap(&out, resource, 1);
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static struct slice many_resource_fields(size_t n)
{
    struct profile_bytes out = {0};
    put_span(&out, CLIENT, 1);
    profile_bytes_wrap(&out, 0, 2);
    for (size_t i = 0; i < n; i++) {
        size_t resource = out.size;
        put_attribute(&out, 1, "service.name", "a");
        profile_bytes_wrap(&out, resource, 1);
    }
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static const struct work_shape shapes[] = {
    {"clients without servers", lonely_clients},
    {"pairs", pairs},
    {"spans with one parent", one_id},
    {"a service for each edge", a_service_for_each_edge},
    {"a dimension for each edge", a_dimension_for_each_edge},
    {"a span again and again", dimensions_that_alternate},
    {"equal attributes", equal_attributes},
    {"attributes of no use", other_attributes},
    {"a wide value", a_wide_value},
    {"a wide resource and spans", a_wide_resource_and_spans},
    {"deep values", deep_values},
    {"a long text", long_text},
    {"empty spans", empty_spans},
    {"empty scopes", empty_scopes},
    {"many resource fields", many_resource_fields},
};

static void take(void *arg, const struct graph_half *halves, size_t count)
{
    struct graph_figures figures = {.edges = 0};
    graph_store_add(arg, halves, count, 1, &figures);
    assert(figures.dropped == 0);
}

/* Reads the request, cut into parts of that size, and ends all edges; writes, if asked to. What is
 * not asked for is not counted. */
static void run(struct slice request, size_t part_bytes, bool writes)
{
    static const double bounds[] = {0.1, 1, 10};
    static const struct slice labels[] = {{(const uint8_t *)"client_dim.one", 14},
                                          {(const uint8_t *)"client_dim.two", 14}};
    const struct graph_settings settings = {
        .dimensions_count = 2,
        .bounds = bounds,
        .bounds_count = 3,
        .has_virtual_nodes = true,
        .edges_max = SIZE_MAX,
    };
    const struct graph_page page = {.labels = {labels, labels}};
    struct graph_keys keys;
    struct graph_store store;
    struct graph_reader reader;
    struct graph_figures figures = {.edges = 0};
    struct otlp_figures checked;
    struct budget budget;
    const char *reason;
    size_t at = 0;
    bool is_sound = otlp_check(TRACES, request, &checked, &reason);
    assert(is_sound);
    budget_init(&budget, UINT64_MAX);
    graph_store_init(&store, &settings, &budget);
    graph_keys_init(&keys);
    bool is_added = graph_keys_add(&keys, &keys.dimensions, "dim.one") &&
                    graph_keys_add(&keys, &keys.dimensions, "dim.two") &&
                    graph_keys_add(&keys, &keys.databases, "db.name") &&
                    graph_keys_add(&keys, &keys.peers, "peer.service");
    assert(is_added);
    graph_reader_init(&reader, &keys, &store, &budget);
    reader.take = take;
    reader.arg = &store;
    struct buffer *buffer = buffer_create(NULL, request.size);
    memcpy(buffer->data, request.data, request.size);
    buffer->size = request.size;
    struct batch *batch = batch_create(TRACES, 1);
    for (size_t i = 0; i < request.size; i += part_bytes + 1) {
        /* A byte from elsewhere keeps the parts from being joined. */
        size_t left = request.size - i;
        batch_append(batch, buffer,
                     slice_of(buffer->data + i, left < part_bytes ? left : part_bytes));
        if (left > part_bytes) {
            struct buffer *one = buffer_create(NULL, 1);
            one->data[0] = request.data[i + part_bytes];
            one->size = 1;
            batch_append(batch, one, buffer_slice(one));
            buffer_unref(one);
        }
    }
    batch->items = checked.items;
    if (!writes)
        work_begin();
    uint64_t unread = graph_reader_read(&reader, batch);
    graph_store_expire(&store, UINT64_MAX, SIZE_MAX, &figures);
    if (!writes)
        work_end();
    assert(unread == 0);
    batch_unref(batch);
    buffer_unref(buffer);
    if (writes)
        work_begin();
    while (writes && graph_metrics_write(&store, &page, 1, &budget, &at, &batch) == PIECE_WRITTEN) {
        work_produced(batch->bytes);
        batch_unref(batch);
    }
    if (writes)
        work_end();
    graph_store_clear(&store);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
}

static void run_whole(struct slice request)
{
    run(request, SIZE_MAX / 2, false);
}

static void run_parts(struct slice request)
{
    run(request, 50, false);
}

static void run_write(struct slice request)
{
    run(request, SIZE_MAX / 2, true);
}

static const struct work_stage stages[] = {
    {.name = "service graph", .run = run_whole, .per_byte_max = 70},
    {.name = "service graph of parts", .run = run_parts, .per_byte_max = 75},
    {.name = "metrics of a service graph", .run = run_write, .per_byte_max = 3},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
