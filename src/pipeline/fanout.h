/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pipeline: gives a batch to the queues of all its exporters, and to its connectors.
 * A full queue refuses for itself alone; a batch that no queue has room for is refused as a whole,
 * and the caller may offer it again. With block_on_overflow a batch waits here until there is room,
 * and later batches wait behind it. A connector has no queue: it always gets the batch once no
 * queue blocks, and resolves the receipt when the pipelines behind it have. Batches are immutable,
 * so all share the same bytes.
 *
 * In a pipeline with a journal, the exporters that store and the pipelines behind connectors that
 * need a journal are told apart, by bits in the order of the queues and then of the connectors and
 * their outlets: a batch may skip some, and an outcome says which have not finished it. Runs on its
 * lane. */
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
    struct budget *budget;                /* for batches that connectors have not resolved yet */
    struct exporter_queue *const *queues; /* outlive the fan-out, as the connectors do */
    size_t queues_count;
    struct component *const *connectors;
    size_t connectors_count;
    void (*on_free)(void *arg); /* it is not blocked any more */
    void *arg;
};

/* Copies the lists. */
struct fanout *fanout_create(const struct fanout_settings *settings);
/* Must not be blocked. */
void fanout_destroy(struct fanout *fanout);
/* The next component of the last processor. */
struct component *fanout_component(struct fanout *fanout);
/* True while it holds batches for a queue with block_on_overflow. It takes more, but the pipeline
 * should leave them in its ring: only processors that have acknowledged what they gathered pass it
 * on then, each at most DOWNSTREAM_BATCHES_MAX at once. */
bool fanout_is_blocked(const struct fanout *fanout);
