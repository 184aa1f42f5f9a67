/* SPDX-License-Identifier: Apache-2.0 */
/* One pipeline of one lane: a ring in front, the processors in order, and a fan-out to the queues
 * of its exporters and to its connectors. Requests wait in the ring until the current socket has
 * been read; their memory is charged to the budget, which alone bounds the ring. Runs on its
 * lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/ring.h"
#include "src/core/component.h"

struct batch;
struct budget;
struct journal;
struct pipeline;
struct receipt;
struct exporter_queue;

struct pipeline_settings {
    struct lane *lane;
    struct ledger *ledger;
    struct budget *budget;               /* for the requests in the pipeline */
    struct component *const *processors; /* in order; their next and before are set here */
    size_t processors_count;
    struct exporter_queue *const *queues;
    size_t queues_count;
    struct component *const *connectors;
    size_t connectors_count;
    unsigned exporters; /* destinations of each item, those behind connectors included */
    const char *id;     /* outlives the pipeline; NULL in some tests */
};

/* Copies the lists. */
struct pipeline *pipeline_create(const struct pipeline_settings *settings);
/* Must be drained. NULL is a no-op. */
void pipeline_destroy(struct pipeline *pipeline);
/* Puts a receiver's request into the ring, or refuses it (UNAVAILABLE) when the budget is used up.
 * The receipt, which may be NULL, resolves exactly once. */
void pipeline_offer(struct pipeline *pipeline, struct batch *batch, struct receipt *receipt);
/* Whether it needs a journal: an exporter stores (exporter_queue_stores), or one behind a connector
 * that passes items on. */
bool pipeline_stores(const struct pipeline *pipeline);
/* Exporters, and pipelines behind connectors, that have progress of their own in its journal. */
size_t pipeline_storing(const struct pipeline *pipeline);
/* Requests are committed to the journal before they are accepted, and come back from it. Its
 * exporters are those that store, and then the pipelines behind connectors that need a journal, in
 * the order of the settings and of the connectors' outlets. Requests of more than bytes_max are
 * refused for good. The lanes' instances of the pipeline
 * share it; it outlives them. Before the journal starts, and before anything is offered to a
 * pipeline that needs one. */
void pipeline_set_journal(struct pipeline *pipeline, struct journal *journal, uint64_t bytes_max);
/* What the journal's entries need (journal_settings). */
size_t pipeline_entry_bytes(void);
/* Calls done(arg) once, when the ring is empty and the fan-out holds nothing. Nothing more may be
 * offered. */
void pipeline_drain(struct pipeline *pipeline, void (*done)(void *arg), void *arg);
/* Any thread. refusals: requests that the budget had no room for. */
struct ring_figures pipeline_ring_figures(const struct pipeline *pipeline);

/* Where the batches of one signal of a receiver or a connector go: one or more pipelines. */
struct outlet *outlet_create(struct pipeline *const *pipelines, size_t count);
void outlet_destroy(struct outlet *outlet);
/* The number of destinations of an item that goes to all of them. */
unsigned outlet_exporters(const struct outlet *outlet);
/* Whether one of its pipelines needs a journal. */
bool outlet_stores(const struct outlet *outlet);
