/* SPDX-License-Identifier: Apache-2.0 */
/* What service_graph knows: edges of which one half was seen, and the series that complete edges
 * are counted in. One for all lanes, since the halves of an edge may arrive on different ones; its
 * user holds a lock around each call. Allocates only for what is new, charged to the budget. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/clock.h"
#include "src/base/hash_table.h"
#include "src/base/slice.h"
#include "src/otlp/metrics/exponential_histogram.h"

struct budget;

/* A series that was not updated for this long is forgotten, as in the Go collector. */
#define GRAPH_SERIES_KEEP_NS ((uint64_t)15 * 60 * NS_PER_S)

enum graph_connection {
    CONNECTION_UNKNOWN,
    CONNECTION_MESSAGING,
    CONNECTION_DATABASE,
    CONNECTION_VIRTUAL_NODE,
};

/* Which end of an edge is a node that sends no spans. */
enum graph_virtual { VIRTUAL_NONE, VIRTUAL_CLIENT, VIRTUAL_SERVER };

/* Constant; what it points to outlives the store. */
struct graph_settings {
    size_t dimensions_count;
    const double *bounds; /* seconds */
    size_t bounds_count;
    uint32_t exponential_max; /* buckets of an exponential histogram; 0: bounds are used */
    bool has_virtual_nodes;
    uint64_t ttl_ns;
    uint64_t edges_max;
    uint64_t series_max; /* without the overflow series; 0: no limit */
};

/* Bytes with their graph_hash. */
struct graph_word {
    struct slice bytes;
    uint64_t hash;
};

/* No peer attribute. Lower ranks are earlier in virtual_node_peer_attributes. */
enum { GRAPH_NO_PEER = UINT8_MAX };

/* A client, producer, server or consumer span: one half of an edge. Borrows its bytes. */
struct graph_half {
    uint64_t trace[2];
    uint64_t span; /* of the client side */
    uint64_t latency_ns;
    struct graph_word service;
    struct graph_word dimensions; /* graph_dimensions, or empty: none is present */
    struct graph_word database;   /* clients, with has_database */
    struct graph_word peer;       /* clients, unless peer_rank is GRAPH_NO_PEER */
    uint8_t peer_rank;
    bool has_database;
    bool is_client;
    bool is_messaging;
    bool is_failed;
};

struct graph_figures {
    uint64_t edges; /* new ones */
    uint64_t expired;
    uint64_t dropped; /* spans for which there was no room */
};

/* Counted bytes, one object for all uses. */
struct graph_text {
    uint64_t hash;
    uint64_t refs;
    uint32_t size;
    uint8_t bytes[];
};

/* Where a request was timed. */
enum graph_side { GRAPH_SERVER, GRAPH_CLIENT, GRAPH_SIDES };

struct graph_series {
    struct graph_text *client; /* NULL in the overflow series, as the next three */
    struct graph_text *server;
    struct graph_text *client_dimensions;
    struct graph_text *server_dimensions;
    uint8_t connection; /* enum graph_connection */
    uint8_t virtual_node;
    bool is_failed;
    uint64_t requests; /* 0: not in use */
    uint64_t failed;
    uint64_t updated_ns;      /* on clock_now_ns's scale */
    uint64_t start_ns;        /* Unix time: before the first point that it can have had */
    double sums[GRAPH_SIDES]; /* seconds; without exponential histograms */
    /* Of each side bounds_count + 1 counts, or a struct exponential_histogram. */
    uint64_t distributions[];
};

/* Objects of one size in chunks that do not move. */
struct graph_slab {
    size_t object_bytes;
    uint8_t **chunks;
    size_t chunks_count;
    size_t chunks_capacity;
    void *free_objects;
    size_t used;
};

struct graph_edge;

struct graph_store {
    struct graph_settings settings;
    struct budget *budget;
    uint64_t seed; /* of hashes, so that clients cannot choose ids that collide */
    struct hash_table texts;
    struct hash_table edges;
    struct graph_slab edge_slab;
    struct graph_edge *oldest; /* edges in the order in which they expire */
    struct graph_edge *newest;
    uint64_t edges_count;
    struct hash_table series;
    struct graph_slab series_slab;
    uint64_t series_count; /* with the overflow series */
    struct graph_series *overflow;
    /* Unix time: a new series has had no point since. */
    uint64_t epoch_ns;
};

void graph_store_init(struct graph_store *store, const struct graph_settings *settings,
                      struct budget *budget);
/* Forgets everything and frees all memory; it can be used again. */
void graph_store_clear(struct graph_store *store);
/* Any thread, without the lock. */
uint64_t graph_hash(const struct graph_store *store, struct slice bytes);

/* Takes in the halves, in their order. Adds to figures. */
void graph_store_add(struct graph_store *store, const struct graph_half *halves, size_t count,
                     uint64_t now_ns, struct graph_figures *figures);
/* Ends at most edges_max edges that have waited longer than the ttl. True: there may be more. */
bool graph_store_expire(struct graph_store *store, uint64_t now_ns, size_t edges_max,
                        struct graph_figures *figures);
/* Forgets those of the next series_max series from *at on, which begins as 0, that were not updated
 * for GRAPH_SERIES_KEEP_NS; at the end also memory that is not in use. wall_ns: Unix time now.
 * True: there are more. */
bool graph_store_clean(struct graph_store *store, uint64_t now_ns, uint64_t wall_ns, size_t *at,
                       size_t series_max);
/* The next series from *at on, which begins as 0; NULL after the last. Series may come and go
 * between the calls. */
struct graph_series *graph_store_next(const struct graph_store *store, size_t *at);

static inline uint64_t *graph_series_counts(const struct graph_settings *settings,
                                            struct graph_series *series, enum graph_side side)
{
    return series->distributions + side * (settings->bounds_count + 1);
}
static inline struct exponential_histogram *graph_series_exponential(struct graph_series *series,
                                                                     enum graph_side side)
{
    return (struct exponential_histogram *)(void *)series->distributions + side;
}

/* A record of dimensions has one after the other, in the order of the settings. Writes one; without
 * data it is absent. Returns the bytes written: at most GRAPH_DIMENSION_HEADER_MAX more than the
 * value has. */
enum { GRAPH_DIMENSION_HEADER_MAX = 5 };
size_t graph_dimension_write(uint8_t *room, struct slice value);
/* Reads the one at *at and moves past it; of an empty record all are absent. */
struct slice graph_dimension_read(struct slice record, size_t *at);
