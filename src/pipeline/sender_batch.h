/* SPDX-License-Identifier: Apache-2.0 */
/* sending_queue::batch: merges queued requests until they are large or old enough, one gathering
 * for each combination of partition::metadata_keys. Owned by its sender's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct component;
struct piece;
struct receipt;
struct sender_batch;
struct sender_queue_config;

/* on_due(arg) is called when time has made something due. */
struct sender_batch *sender_batch_create(const struct sender_queue_config *config,
                                         struct component *exporter, void (*on_due)(void *arg),
                                         void *arg);
/* Nothing may be pending. NULL is tolerated. */
void sender_batch_destroy(struct sender_batch *gathering);
void sender_batch_add(struct sender_batch *gathering, struct batch *batch, struct receipt *receipt);
bool sender_batch_is_due(const struct sender_batch *gathering);
/* The next piece that is due; false: nothing is. */
bool sender_batch_next(struct sender_batch *gathering, struct piece *ret_piece);
/* From now on everything is due at once. */
void sender_batch_flush(struct sender_batch *gathering);
/* One item alone is above batch::max_size, counted in bytes: it cannot be cut. */
bool sender_batch_is_oversized(const struct sender_queue_config *config, const struct batch *batch);
