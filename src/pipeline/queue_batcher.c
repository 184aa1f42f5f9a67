/* SPDX-License-Identifier: Apache-2.0 */
/* Batching inside the sending queue. Runs on the exporter's lane. */
#include "src/pipeline/queue_batcher.h"

#include <assert.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/partition.h"

struct queue_batcher {
    const struct sending_queue_config *config;
    struct component *exporter;
    void (*on_due)(void *arg);
    void *arg;
    struct partitions partitions;
    bool is_flushing;
};

/* mark_ns of a partition is 0, or 1 once its flush_timeout is over. */
enum { NOT_TIMED_OUT, TIMED_OUT };

static void on_timeout(struct timer *timer, void *arg)
{
    struct partition *partition = arg;
    struct queue_batcher *self = partition->owner;
    assert(timer == &partition->timer);
    partition->mark_ns = TIMED_OUT;
    partition_settle(partition, true);
    self->on_due(self->arg);
}

struct queue_batcher *queue_batcher_create(const struct sending_queue_config *config,
                                           struct component *exporter, void (*on_due)(void *arg),
                                           void *arg)
{
    assert(config->has_batch);
    struct queue_batcher *self = mem_zalloc(sizeof(*self));
    self->config = config;
    self->exporter = exporter;
    self->on_due = on_due;
    self->arg = arg;
    /* No limit: a partition with something pending holds at least one request of the queue. */
    partitions_init(&self->partitions, exporter->signal, exporter->budget,
                    config->batch.partition.metadata_keys, 0);
    partitions_owned_by(&self->partitions, on_timeout, self);
    return self;
}

void queue_batcher_destroy(struct queue_batcher *self)
{
    if (self == NULL)
        return;
    partitions_fini(&self->partitions);
    mem_free(self);
}

static uint64_t size_of(const struct queue_batcher *self, const struct batcher *batcher)
{
    return queue_batch_sizer(self->config) == QUEUE_BYTES ? batcher_bytes(batcher)
                                                          : batcher_items(batcher);
}

static struct otlp_limit limit_of(const struct sending_queue_config *config)
{
    assert(config->has_batch);
    bool is_bytes = queue_batch_sizer(config) == QUEUE_BYTES;
    return (struct otlp_limit){
        .items_max = is_bytes ? 0 : config->batch.max_size,
        .bytes_max = is_bytes ? config->batch.max_size : 0,
    };
}

static bool is_due(const struct queue_batcher *self, const struct partition *partition)
{
    if (partition->batcher.pending == NULL)
        return false;
    return self->is_flushing || partition->mark_ns == TIMED_OUT ||
           size_of(self, &partition->batcher) >= self->config->batch.min_size;
}

static void start_timer(struct queue_batcher *self, struct partition *partition)
{
    assert(self->config->batch.flush_timeout_ns > 0);
    lane_timer_start(self->exporter->lane, &partition->timer, self->config->batch.flush_timeout_ns);
}

void queue_batcher_add(struct queue_batcher *self, struct batch *batch, struct receipt *receipt)
{
    assert(batch->signal == self->exporter->signal);
    struct partition *partition = partitions_of(&self->partitions, batch->client);
    if (partition->batcher.pending == NULL)
        start_timer(self, partition);
    batcher_add(&partition->batcher, batch, receipt);
    partition_settle(partition, is_due(self, partition));
}

bool queue_batcher_is_due(const struct queue_batcher *self)
{
    return partitions_due(&self->partitions) != NULL;
}

bool queue_batcher_next(struct queue_batcher *self, struct export_batch *ret_cut)
{
    struct partition *partition = partitions_due(&self->partitions);
    if (partition == NULL)
        return false;
    *ret_cut = batcher_cut(&partition->batcher, limit_of(self->config));
    if (partition->batcher.pending == NULL) {
        partition->mark_ns = NOT_TIMED_OUT;
        lane_timer_stop(self->exporter->lane, &partition->timer);
    } else if (partition->mark_ns == NOT_TIMED_OUT) {
        /* What is left over is a new batch, with all of its time before it. */
        start_timer(self, partition);
    }
    partition_settle(partition, is_due(self, partition));
    return true;
}

void queue_batcher_flush(struct queue_batcher *self)
{
    self->is_flushing = true;
    partitions_all_due(&self->partitions);
}

bool queue_batcher_is_oversized(const struct sending_queue_config *config,
                                const struct batch *batch)
{
    if (!config->has_batch || queue_batch_sizer(config) != QUEUE_BYTES)
        return false;
    return config->batch.max_size > 0 && batch->bytes > config->batch.max_size && batch->items <= 1;
}
