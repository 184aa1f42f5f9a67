/* SPDX-License-Identifier: Apache-2.0 */
/* sending_queue::batch: merges queued requests until they are large or old enough, with one batcher
 * for each combination of partition::metadata_keys. Owned by the lane of its queue. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct component;
struct export_batch;
struct receipt;
struct queue_batcher;
struct sending_queue_config;

/* on_due(arg) is called when time has made something due. */
struct queue_batcher *queue_batcher_create(const struct sending_queue_config *config,
                                           struct component *exporter, void (*on_due)(void *arg),
                                           void *arg);
/* Nothing may be pending. NULL is tolerated. */
void queue_batcher_destroy(struct queue_batcher *self);
void queue_batcher_add(struct queue_batcher *self, struct batch *batch, struct receipt *receipt);
bool queue_batcher_is_due(const struct queue_batcher *self);
/* The next batch that is due; false: none is. */
bool queue_batcher_next(struct queue_batcher *self, struct export_batch *ret_cut);
/* From now on everything is due at once. */
void queue_batcher_flush(struct queue_batcher *self);
/* One item alone is above batch::max_size, counted in bytes: it cannot be cut. */
bool queue_batcher_is_oversized(const struct sending_queue_config *config,
                                const struct batch *batch);
