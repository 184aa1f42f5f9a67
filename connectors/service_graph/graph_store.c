/* SPDX-License-Identifier: Apache-2.0 */
/* Edges and series. Names and dimensions are kept once and counted, so that an edge has a fixed
 * size and a series is found by the addresses of its names. An edge waits for its other half in a
 * list in order of age, since all wait equally long. Runs under the lock of the store's user. */
#include "connectors/service_graph/graph_store.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/otlp/metrics/exponential_histogram.h"

enum { SLAB_CHUNK_OBJECTS = 64 };

/* One request between two services. The texts are never NULL. */
struct graph_edge {
    struct graph_edge *newer; /* also links free edges */
    struct graph_edge *older;
    uint64_t trace[2];
    uint64_t span;
    uint64_t expires_ns;
    uint64_t client_ns; /* latencies */
    uint64_t server_ns;
    struct graph_text *client;
    struct graph_text *server;
    struct graph_text *client_dimensions;
    struct graph_text *server_dimensions;
    struct graph_text *peer;
    uint8_t peer_rank;
    uint8_t connection;
    uint8_t virtual_node;
    bool is_failed;
};

/* Of which there is one for all stores, never written. */
static struct graph_text empty_text;

void graph_store_init(struct graph_store *store, const struct graph_settings *settings,
                      struct budget *budget)
{
    size_t side_bytes = settings->exponential_max > 0
                            ? sizeof(struct exponential_histogram)
                            : (settings->bounds_count + 1) * sizeof(uint64_t);
    *store = (struct graph_store){.settings = *settings, .budget = budget};
    store->seed = (uint64_t)(random_uniform() * 0x1p53);
    store->edge_slab.object_bytes = sizeof(struct graph_edge);
    store->series_slab.object_bytes = sizeof(struct graph_series) + GRAPH_SIDES * side_bytes;
    store->epoch_ns = clock_wall_ns();
}

uint64_t graph_hash(const struct graph_store *store, struct slice bytes)
{
    return XXH3_64bits_withSeed(bytes.data, bytes.size, store->seed);
}

/* Adds to a table whose entries are charged. */
static bool table_add(struct graph_store *store, struct hash_table *table, uint64_t hash,
                      void *object)
{
    const size_t growth = hash_table_growth(table);
    const size_t most = hash_table_bytes(table) + growth;
    if (growth > 0 && !budget_try_take(store->budget, growth))
        return false;
    bool is_added = hash_table_add(table, hash, object);
    if (hash_table_bytes(table) < most)
        budget_return(store->budget, most - hash_table_bytes(table));
    return is_added;
}

static void table_clear(struct graph_store *store, struct hash_table *table)
{
    size_t bytes = hash_table_bytes(table);
    hash_table_clear(table);
    budget_return(store->budget, bytes);
}

/* Slabs */

static size_t slab_chunk_bytes(const struct graph_slab *slab)
{
    return SLAB_CHUNK_OBJECTS * slab->object_bytes;
}

static void *slab_at(const struct graph_slab *slab, size_t place)
{
    return slab->chunks[place / SLAB_CHUNK_OBJECTS] +
           place % SLAB_CHUNK_OBJECTS * slab->object_bytes;
}

/* Frees all objects. */
static void slab_clear(struct graph_store *store, struct graph_slab *slab)
{
    for (size_t i = 0; i < slab->chunks_count; i++)
        mem_free(slab->chunks[i]);
    budget_return(store->budget, slab->chunks_count * slab_chunk_bytes(slab) +
                                     slab->chunks_capacity * sizeof(slab->chunks[0]));
    mem_free((void *)slab->chunks);
    *slab = (struct graph_slab){.object_bytes = slab->object_bytes};
}

static bool slab_grow(struct graph_store *store, struct graph_slab *slab)
{
    struct budget *budget = store->budget;
    if (slab->chunks_count == slab->chunks_capacity) {
        size_t before = slab->chunks_capacity * sizeof(slab->chunks[0]);
        size_t bytes = before > 0 ? 2 * before : 8 * sizeof(slab->chunks[0]);
        if (!budget_try_take(budget, bytes))
            return false;
        uint8_t **chunks = (uint8_t **)mem_try_resize((void *)slab->chunks, bytes);
        budget_return(budget, chunks != NULL ? before : bytes);
        if (chunks == NULL)
            return false;
        slab->chunks = chunks;
        slab->chunks_capacity = bytes / sizeof(slab->chunks[0]);
    }
    if (!budget_try_take(budget, slab_chunk_bytes(slab)))
        return false;
    uint8_t *chunk = mem_try_zalloc(slab_chunk_bytes(slab));
    if (chunk == NULL) {
        budget_return(budget, slab_chunk_bytes(slab));
        return false;
    }
    slab->chunks[slab->chunks_count++] = chunk;
    /* The first one on top. */
    for (size_t i = SLAB_CHUNK_OBJECTS; i-- > 0;) {
        void *object = chunk + i * slab->object_bytes;
        memcpy(object, (void *)&slab->free_objects, sizeof(slab->free_objects));
        slab->free_objects = object;
    }
    return true;
}

/* Zeroed. NULL: no memory. */
static void *slab_take(struct graph_store *store, struct graph_slab *slab)
{
    if (slab->free_objects == NULL && !slab_grow(store, slab))
        return NULL;
    void *object = slab->free_objects;
    memcpy((void *)&slab->free_objects, object, sizeof(slab->free_objects));
    memset(object, 0, slab->object_bytes);
    slab->used++;
    return object;
}

static void slab_give(struct graph_slab *slab, void *object)
{
    assert(slab->used > 0);
    memset(object, 0, slab->object_bytes);
    memcpy(object, (void *)&slab->free_objects, sizeof(slab->free_objects));
    slab->free_objects = object;
    slab->used--;
}

/* Texts */

static size_t text_bytes(size_t size)
{
    return sizeof(struct graph_text) + size;
}

static struct graph_text *text_ref(struct graph_text *text)
{
    if (text != &empty_text)
        text->refs++;
    return text;
}

static void text_unref(struct graph_store *store, struct graph_text *text)
{
    if (text == &empty_text || text == NULL || --text->refs > 0)
        return;
    hash_table_remove(&store->texts, text->hash, text);
    budget_return(store->budget, text_bytes(text->size));
    mem_free(text);
}

/* A reference; NULL: no memory. */
static struct graph_text *text_take(struct graph_store *store, const struct graph_word *word)
{
    size_t at = 0;
    struct graph_text *text;
    size_t size = word->bytes.size;
    if (size == 0)
        return &empty_text;
    while ((text = hash_table_next(&store->texts, word->hash, &at)) != NULL)
        if (slice_equal(slice_of(text->bytes, text->size), word->bytes))
            return text_ref(text);
    assert(size <= UINT32_MAX);
    if (!budget_try_take(store->budget, text_bytes(size)))
        return NULL;
    text = mem_try_alloc(text_bytes(size));
    if (text != NULL) {
        *text = (struct graph_text){.hash = word->hash, .refs = 1, .size = (uint32_t)size};
        memcpy(text->bytes, word->bytes.data, size);
        if (table_add(store, &store->texts, word->hash, text))
            return text;
    }
    mem_free(text);
    budget_return(store->budget, text_bytes(size));
    return NULL;
}

static struct graph_text *text_take_plain(struct graph_store *store, const char *plain)
{
    struct slice bytes = slice_of_text(plain);
    return text_take(store, &(struct graph_word){.bytes = bytes, .hash = graph_hash(store, bytes)});
}

/* Takes over the reference. */
static void text_set(struct graph_store *store, struct graph_text **place, struct graph_text *text)
{
    text_unref(store, *place);
    *place = text;
}

/* Dimensions: for each a length, one more than that of the value, or 0 if it is absent; and the
 * value. */

size_t graph_dimension_write(uint8_t *room, struct slice value)
{
    size_t at = 0;
    uint32_t length = value.data == NULL ? 0 : (uint32_t)value.size + 1;
    for (; length >= 0x80; length >>= 7)
        room[at++] = (uint8_t)(length | 0x80);
    room[at++] = (uint8_t)length;
    if (value.data != NULL && value.size > 0)
        memcpy(room + at, value.data, value.size);
    return at + (value.data == NULL ? 0 : value.size);
}

struct slice graph_dimension_read(struct slice record, size_t *at)
{
    uint32_t length = 0;
    unsigned shift = 0;
    uint8_t byte;
    if (record.size == 0)
        return slice_of(NULL, 0);
    do {
        assert(*at < record.size);
        byte = record.data[(*at)++];
        length |= (uint32_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte >= 0x80);
    if (length == 0)
        return slice_of(NULL, 0);
    struct slice value = slice_of(record.data + *at, length - 1);
    assert(value.size <= record.size - *at);
    *at += value.size;
    return value;
}

/* A span that came twice: what its second form lacks stays as it was. NULL: no memory. */
static struct graph_text *dimensions_join(struct graph_store *store, const struct graph_text *old,
                                          struct graph_text *new)
{
    size_t size = 0;
    size_t ats[2] = {0};
    struct slice records[2] = {slice_of(old->bytes, old->size), slice_of(new->bytes, new->size)};
    if (old->size == 0 || old == new)
        return text_ref(new);
    uint8_t *room = mem_try_alloc((size_t)old->size + new->size);
    if (room == NULL)
        return NULL;
    for (size_t i = 0; i < store->settings.dimensions_count; i++) {
        struct slice kept = graph_dimension_read(records[0], &ats[0]);
        struct slice found = graph_dimension_read(records[1], &ats[1]);
        size += graph_dimension_write(room + size, found.data != NULL ? found : kept);
    }
    struct slice bytes = slice_of(room, size);
    struct graph_text *joined =
        text_take(store, &(struct graph_word){.bytes = bytes, .hash = graph_hash(store, bytes)});
    mem_free(room);
    return joined;
}

/* Series */

static uint64_t series_hash(const struct graph_edge *edge, uint64_t seed)
{
    const uint64_t key[5] = {
        (uint64_t)(uintptr_t)edge->client,
        (uint64_t)(uintptr_t)edge->server,
        (uint64_t)(uintptr_t)edge->client_dimensions,
        (uint64_t)(uintptr_t)edge->server_dimensions,
        (uint64_t)edge->connection << 1 | edge->is_failed,
    };
    return XXH3_64bits_withSeed(key, sizeof(key), seed);
}

static struct graph_series *series_find(const struct graph_store *store,
                                        const struct graph_edge *edge, uint64_t hash)
{
    size_t at = 0;
    struct graph_series *series;
    while ((series = hash_table_next(&store->series, hash, &at)) != NULL)
        if (series->client == edge->client && series->server == edge->server &&
            series->client_dimensions == edge->client_dimensions &&
            series->server_dimensions == edge->server_dimensions &&
            series->connection == edge->connection && series->is_failed == edge->is_failed)
            return series;
    return NULL;
}

static struct graph_series *series_create(struct graph_store *store)
{
    struct graph_series *series = slab_take(store, &store->series_slab);
    if (series == NULL)
        return NULL;
    series->start_ns = store->epoch_ns;
    for (unsigned i = 0; store->settings.exponential_max > 0 && i < GRAPH_SIDES; i++)
        exponential_histogram_init(graph_series_exponential(series, i));
    store->series_count++;
    return series;
}

/* The one for the edge; NULL: no memory. */
static struct graph_series *series_for(struct graph_store *store, const struct graph_edge *edge)
{
    uint64_t hash = series_hash(edge, store->seed);
    struct graph_series *series = series_find(store, edge, hash);
    uint64_t max = store->settings.series_max;
    if (series != NULL)
        return series;
    if (max == 0 || store->series_count - (store->overflow != NULL) < max) {
        series = series_create(store);
        if (series != NULL && table_add(store, &store->series, hash, series)) {
            series->client = text_ref(edge->client);
            series->server = text_ref(edge->server);
            series->client_dimensions = text_ref(edge->client_dimensions);
            series->server_dimensions = text_ref(edge->server_dimensions);
            series->connection = edge->connection;
            series->is_failed = edge->is_failed;
            return series;
        }
        if (series != NULL) {
            slab_give(&store->series_slab, series);
            store->series_count--;
        }
    }
    if (store->overflow == NULL)
        store->overflow = series_create(store);
    return store->overflow;
}

static void series_remove(struct graph_store *store, struct graph_series *series)
{
    if (series == store->overflow) {
        store->overflow = NULL;
    } else {
        const struct graph_edge key = {
            .client = series->client,
            .server = series->server,
            .client_dimensions = series->client_dimensions,
            .server_dimensions = series->server_dimensions,
            .connection = series->connection,
            .is_failed = series->is_failed,
        };
        hash_table_remove(&store->series, series_hash(&key, store->seed), series);
        text_unref(store, series->client);
        text_unref(store, series->server);
        text_unref(store, series->client_dimensions);
        text_unref(store, series->server_dimensions);
    }
    for (unsigned i = 0; store->settings.exponential_max > 0 && i < GRAPH_SIDES; i++)
        exponential_histogram_fini(graph_series_exponential(series, i), store->budget);
    slab_give(&store->series_slab, series);
    store->series_count--;
}

/* Counts the edge, which stays as it is. */
static void count_edge(struct graph_store *store, const struct graph_edge *edge, uint64_t now_ns,
                       struct graph_figures *figures)
{
    const struct graph_settings *settings = &store->settings;
    struct graph_series *series = series_for(store, edge);
    const double seconds[GRAPH_SIDES] = {
        [GRAPH_SERVER] = (double)edge->server_ns / 1e9,
        [GRAPH_CLIENT] = (double)edge->client_ns / 1e9,
    };
    if (series == NULL) {
        figures->dropped++;
        return;
    }
    series->requests++;
    series->failed += edge->is_failed;
    series->virtual_node = edge->virtual_node;
    series->updated_ns = now_ns;
    if (settings->exponential_max > 0) {
        for (unsigned i = 0; i < GRAPH_SIDES; i++)
            exponential_histogram_add(graph_series_exponential(series, i), seconds[i], 1,
                                      settings->exponential_max, store->budget);
        return;
    }
    for (unsigned i = 0; i < GRAPH_SIDES; i++) {
        series->sums[i] += seconds[i];
        graph_series_counts(
            settings, series,
            i)[explicit_bucket(settings->bounds, settings->bounds_count, seconds[i])]++;
    }
}

/* Edges */

static struct graph_edge *edge_find(const struct graph_store *store, const struct graph_half *half,
                                    uint64_t hash)
{
    size_t at = 0;
    struct graph_edge *edge;
    while ((edge = hash_table_next(&store->edges, hash, &at)) != NULL)
        if (edge->trace[0] == half->trace[0] && edge->trace[1] == half->trace[1] &&
            edge->span == half->span)
            return edge;
    return NULL;
}

static uint64_t edge_hash(const struct graph_store *store, const uint64_t trace[2], uint64_t span)
{
    const uint64_t key[3] = {trace[0], trace[1], span};
    return XXH3_64bits_withSeed(key, sizeof(key), store->seed);
}

static void edge_forget_texts(struct graph_store *store, const struct graph_edge *edge)
{
    text_unref(store, edge->client);
    text_unref(store, edge->server);
    text_unref(store, edge->client_dimensions);
    text_unref(store, edge->server_dimensions);
    text_unref(store, edge->peer);
}

static void edge_remove(struct graph_store *store, struct graph_edge *edge, uint64_t hash)
{
    hash_table_remove(&store->edges, hash, edge);
    *(edge->newer != NULL ? &edge->newer->older : &store->newest) = edge->older;
    *(edge->older != NULL ? &edge->older->newer : &store->oldest) = edge->newer;
    edge_forget_texts(store, edge);
    slab_give(&store->edge_slab, edge);
    store->edges_count--;
}

/* Puts the half into the edge. False: no memory, and the edge is as it was. */
static bool edge_take(struct graph_store *store, struct graph_edge *edge,
                      const struct graph_half *half)
{
    struct graph_text *service = text_take(store, &half->service);
    struct graph_text *dimensions = text_take(store, &half->dimensions);
    struct graph_text **own = half->is_client ? &edge->client_dimensions : &edge->server_dimensions;
    bool has_peer =
        half->is_client && half->peer_rank <= edge->peer_rank && half->peer_rank != GRAPH_NO_PEER;
    bool has_database = half->is_client && half->has_database;
    struct graph_text *peer = has_peer ? text_take(store, &half->peer) : &empty_text;
    struct graph_text *database = has_database ? text_take(store, &half->database) : &empty_text;
    struct graph_text *joined = NULL;
    if (dimensions != NULL)
        joined = dimensions_join(store, *own, dimensions);
    text_unref(store, dimensions);
    if (service == NULL || joined == NULL || peer == NULL || database == NULL) {
        text_unref(store, service);
        text_unref(store, joined);
        text_unref(store, peer);
        text_unref(store, database);
        return false;
    }
    edge->connection = half->is_messaging ? CONNECTION_MESSAGING : CONNECTION_UNKNOWN;
    edge->is_failed |= half->is_failed;
    text_set(store, own, joined);
    text_set(store, half->is_client ? &edge->client : &edge->server, service);
    *(half->is_client ? &edge->client_ns : &edge->server_ns) = half->latency_ns;
    if (has_peer) {
        text_set(store, &edge->peer, peer);
        edge->peer_rank = half->peer_rank;
    }
    /* A database sends no spans: the client's has all there is. */
    if (has_database) {
        edge->connection = CONNECTION_DATABASE;
        edge->server_ns = half->latency_ns;
        text_set(store, &edge->server, database);
    }
    return true;
}

static bool edge_is_complete(const struct graph_edge *edge)
{
    return edge->client->size > 0 && edge->server->size > 0;
}

/* Keeps a new edge. False: no room. */
static bool edge_keep(struct graph_store *store, const struct graph_edge *edge, uint64_t hash,
                      uint64_t now_ns, struct graph_figures *figures)
{
    const struct graph_settings *settings = &store->settings;
    if (store->edges_count >= settings->edges_max)
        graph_store_expire(store, now_ns, 1, figures);
    if (store->edges_count >= settings->edges_max)
        return false;
    struct graph_edge *kept = slab_take(store, &store->edge_slab);
    if (kept == NULL)
        return false;
    if (!table_add(store, &store->edges, hash, kept)) {
        slab_give(&store->edge_slab, kept);
        return false;
    }
    *kept = *edge;
    kept->expires_ns =
        settings->ttl_ns < UINT64_MAX - now_ns ? now_ns + settings->ttl_ns : UINT64_MAX;
    kept->newer = NULL;
    kept->older = store->newest;
    *(store->newest != NULL ? &store->newest->newer : &store->oldest) = kept;
    store->newest = kept;
    store->edges_count++;
    return true;
}

static void add_half(struct graph_store *store, const struct graph_half *half, uint64_t now_ns,
                     struct graph_figures *figures)
{
    uint64_t hash = edge_hash(store, half->trace, half->span);
    struct graph_edge *edge = edge_find(store, half, hash);
    if (edge != NULL) {
        if (!edge_take(store, edge, half)) {
            figures->dropped++;
        } else if (edge_is_complete(edge)) {
            count_edge(store, edge, now_ns, figures);
            edge_remove(store, edge, hash);
        }
        return;
    }
    struct graph_edge new = {
        .trace = {half->trace[0], half->trace[1]},
        .span = half->span,
        .client = &empty_text,
        .server = &empty_text,
        .client_dimensions = &empty_text,
        .server_dimensions = &empty_text,
        .peer = &empty_text,
        .peer_rank = GRAPH_NO_PEER,
    };
    if (!edge_take(store, &new, half)) {
        figures->dropped++;
        return;
    }
    if (edge_is_complete(&new)) {
        figures->edges++;
        count_edge(store, &new, now_ns, figures);
        edge_forget_texts(store, &new);
    } else if (edge_keep(store, &new, hash, now_ns, figures)) {
        figures->edges++;
    } else {
        figures->dropped++;
        edge_forget_texts(store, &new);
    }
}

void graph_store_add(struct graph_store *store, const struct graph_half *halves, size_t count,
                     uint64_t now_ns, struct graph_figures *figures)
{
    for (size_t i = 0; i < count; i++)
        add_half(store, &halves[i], now_ns, figures);
}

/* What is known of it is counted if its other end may be a node that sends no spans. */
static void expire_edge(struct graph_store *store, struct graph_edge *edge, uint64_t now_ns,
                        struct graph_figures *figures)
{
    struct graph_text *name;
    figures->expired++;
    if (!store->settings.has_virtual_nodes)
        return;
    edge->connection = CONNECTION_VIRTUAL_NODE;
    if (edge->client->size == 0 && edge->span == 0) {
        name = text_take_plain(store, "user");
        if (name == NULL) {
            figures->dropped++;
            return;
        }
        text_set(store, &edge->client, name);
        edge->virtual_node = VIRTUAL_CLIENT;
        count_edge(store, edge, now_ns, figures);
    }
    if (edge->server->size == 0) {
        name = edge->peer_rank != GRAPH_NO_PEER ? text_ref(edge->peer)
                                                : text_take_plain(store, "unknown");
        if (name == NULL) {
            figures->dropped++;
            return;
        }
        text_set(store, &edge->server, name);
        edge->virtual_node = VIRTUAL_SERVER;
        count_edge(store, edge, now_ns, figures);
    }
}

bool graph_store_expire(struct graph_store *store, uint64_t now_ns, size_t edges_max,
                        struct graph_figures *figures)
{
    for (size_t i = 0; i < edges_max; i++) {
        struct graph_edge *edge = store->oldest;
        if (edge == NULL || edge->expires_ns >= now_ns)
            return false;
        expire_edge(store, edge, now_ns, figures);
        edge_remove(store, edge, edge_hash(store, edge->trace, edge->span));
    }
    return true;
}

struct graph_series *graph_store_next(const struct graph_store *store, size_t *at)
{
    const struct graph_slab *slab = &store->series_slab;
    while (*at < slab->chunks_count * SLAB_CHUNK_OBJECTS) {
        struct graph_series *series = slab_at(slab, (*at)++);
        if (series->requests > 0)
            return series;
    }
    return NULL;
}

bool graph_store_clean(struct graph_store *store, uint64_t now_ns, uint64_t wall_ns, size_t *at,
                       size_t series_max)
{
    for (size_t i = 0; i < series_max; i++) {
        struct graph_series *series = graph_store_next(store, at);
        if (series == NULL) {
            if (store->series_slab.used == 0)
                slab_clear(store, &store->series_slab);
            if (store->edge_slab.used == 0)
                slab_clear(store, &store->edge_slab);
            return false;
        }
        /* It may have been updated after now_ns, by another lane. */
        if (now_ns <= series->updated_ns || now_ns - series->updated_ns <= GRAPH_SERIES_KEEP_NS)
            continue;
        series_remove(store, series);
        store->epoch_ns = wall_ns;
    }
    return true;
}

void graph_store_clear(struct graph_store *store)
{
    size_t at = 0;
    struct graph_series *series;
    while (store->oldest != NULL)
        edge_remove(store, store->oldest,
                    edge_hash(store, store->oldest->trace, store->oldest->span));
    while ((series = graph_store_next(store, &at)) != NULL)
        series_remove(store, series);
    assert(store->texts.count == 0);
    slab_clear(store, &store->series_slab);
    slab_clear(store, &store->edge_slab);
    table_clear(store, &store->texts);
    table_clear(store, &store->edges);
    table_clear(store, &store->series);
}
