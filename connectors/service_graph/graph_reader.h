/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the halves of edges from a batch of traces. One per lane; runs on it, without the store's
 * lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/service_graph/graph_store.h"
#include "connectors/shared/wanted_attributes.h"
#include "src/base/arena.h"
#include "src/base/slice.h"

struct batch;
struct budget;
struct error;

enum {
    GRAPH_TEXT_BYTES_MAX = 4096, /* longer names and values are cut */
    GRAPH_RUN_MAX = 64,          /* halves that are handed on together */
    GRAPH_RUN_BYTES = 64 * 1024, /* or when they have copied that much */
};

/* Attributes by their places among the wanted ones. */
struct graph_names {
    uint8_t places[WANTED_NAMES_MAX];
    size_t count;
};

/* The attributes that are wanted. Borrows their names. */
struct graph_keys {
    struct wanted_names wanted;
    struct graph_names dimensions;
    struct graph_names peers;
    struct graph_names databases;
    uint8_t service; /* service.name */
};

/* With what every configuration wants. */
void graph_keys_init(struct graph_keys *keys);
/* Adds a name to one of the lists, unless it is there. False: there are too many. */
bool graph_keys_add(struct graph_keys *keys, struct graph_names *list, const char *name);

struct graph_reader {
    const struct graph_keys *keys;
    const struct graph_store *store; /* for hashes */
    struct budget *budget;
    /* Takes a run of halves, which are valid during the call. */
    void (*take)(void *arg, const struct graph_half *halves, size_t count);
    void *arg;
    struct arena copies; /* of what lies in several parts of the batch */
    struct arena names;  /* texts of resources' values that are no strings */
    struct arena run;    /* texts that live as long as the run */
    struct wanted_values resource;
    /* Of its values, made once for all its spans: a bit for each that was asked for. */
    uint64_t has_text;
    struct slice texts[WANTED_NAMES_MAX]; /* no data: there was no memory for it */
    struct graph_word service;
    struct wanted_values span;
    uint64_t unread; /* spans that the budget had no room for */
    size_t count;
    struct graph_half halves[GRAPH_RUN_MAX];
};

void graph_reader_init(struct graph_reader *reader, const struct graph_keys *keys,
                       const struct graph_store *store, struct budget *budget);
/* Sets take and arg before. The bytes have passed otlp_check. What lies in several parts is copied:
 * at most the bytes of the batch, charged. Returns the number of spans for which there was no
 * memory. */
uint64_t graph_reader_read(struct graph_reader *reader, const struct batch *batch);
