/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pipeline: gives a batch to the queues of all its exporters, and to its connectors.
 * A full queue refuses for itself alone; a batch that nobody has room for is refused as a whole, so
 * that whoever offered it may offer it again. With block_on_overflow a batch waits here until there
 * is room, and what comes behind it waits too. A connector has no queue: it always gets the batch
 * once no queue is waited for, and answers when the pipelines behind it have. Batches are
 * immutable, so all share the same bytes. Runs on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct budget;
struct component;
struct fanout;
struct lane;
struct ledger;
struct exporter_queue;

struct fanout_settings {
    struct lane *lane;
    struct ledger *ledger;
    struct budget *budget;                /* for batches that connectors have not answered yet */
    struct exporter_queue *const *queues; /* which outlive it, as the connectors */
    size_t queues_count;
    struct component *const *connectors;
    size_t connectors_count;
    void (*on_free)(void *arg); /* no batch waits for room any more */
    void *arg;
};

/* Copies the lists. */
struct fanout *fanout_create(const struct fanout_settings *settings);
/* Must not be blocked. */
void fanout_destroy(struct fanout *fanout);
/* What the last processor calls next. */
struct component *fanout_component(struct fanout *fanout);
/* It holds batches for a queue with block_on_overflow. It takes more, but the pipeline should
 * leave them in its ring: only processors that answer for what they have gathered give it to us
 * then, of which each has HANDOVERS_MAX under way at most. */
bool fanout_is_blocked(const struct fanout *fanout);
