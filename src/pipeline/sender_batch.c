/* SPDX-License-Identifier: Apache-2.0 */
/* Batching inside the sending queue. Runs on the sender's lane. */
#include "src/pipeline/sender_batch.h"

#include <assert.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/sender_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/partition.h"

struct sender_batch {
    const struct sender_queue_config *config;
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
    struct sender_batch *gathering = partition->owner;
    assert(timer == &partition->timer);
    (void)timer;
    partition->mark_ns = TIMED_OUT;
    partition_settle(partition, true);
    gathering->on_due(gathering->arg);
}

struct sender_batch *sender_batch_create(const struct sender_queue_config *config,
                                         struct component *exporter, void (*on_due)(void *arg),
                                         void *arg)
{
    assert(config->has_batch);
    assert(on_due != NULL);
    struct sender_batch *gathering = mem_zalloc(sizeof(*gathering));
    gathering->config = config;
    gathering->exporter = exporter;
    gathering->on_due = on_due;
    gathering->arg = arg;
    /* No limit: a partition with something pending holds at least one request of the queue. */
    partitions_init(&gathering->partitions, exporter->signal, exporter->budget,
                    config->batch.partition.metadata_keys, 0);
    partitions_owned_by(&gathering->partitions, on_timeout, gathering);
    return gathering;
}

void sender_batch_destroy(struct sender_batch *gathering)
{
    if (gathering == NULL)
        return;
    assert(gathering->exporter != NULL);
    partitions_fini(&gathering->partitions);
    mem_free(gathering);
}

static uint64_t size_of(const struct sender_batch *gathering, const struct gather *gather)
{
    assert(gather != NULL);
    return sender_batch_sizer(gathering->config) == SENDER_BYTES ? gather_bytes(gather)
                                                                 : gather_items(gather);
}

static struct otlp_limit limit_of(const struct sender_queue_config *config)
{
    assert(config->has_batch);
    bool is_bytes = sender_batch_sizer(config) == SENDER_BYTES;
    return (struct otlp_limit){
        .items_max = is_bytes ? 0 : config->batch.max_size,
        .bytes_max = is_bytes ? config->batch.max_size : 0,
    };
}

static bool is_due(const struct sender_batch *gathering, const struct partition *partition)
{
    assert(partition != NULL);
    if (partition->gather.pending == NULL)
        return false;
    return gathering->is_flushing || partition->mark_ns == TIMED_OUT ||
           size_of(gathering, &partition->gather) >= gathering->config->batch.min_size;
}

static void start_timer(struct sender_batch *gathering, struct partition *partition)
{
    assert(gathering->config->batch.flush_timeout_ns > 0);
    lane_timer_start(gathering->exporter->lane, &partition->timer,
                     gathering->config->batch.flush_timeout_ns);
}

void sender_batch_add(struct sender_batch *gathering, struct batch *batch, struct receipt *receipt)
{
    assert(gathering != NULL);
    assert(batch->signal == gathering->exporter->signal);
    assert(receipt != NULL);
    struct partition *partition = partitions_of(&gathering->partitions, batch->client);
    assert(partition != NULL);
    if (partition->gather.pending == NULL)
        start_timer(gathering, partition);
    gather_add(&partition->gather, batch, receipt);
    partition_settle(partition, is_due(gathering, partition));
}

bool sender_batch_is_due(const struct sender_batch *gathering)
{
    assert(gathering != NULL);
    return partitions_due(&gathering->partitions) != NULL;
}

bool sender_batch_next(struct sender_batch *gathering, struct piece *ret_piece)
{
    struct partition *partition = partitions_due(&gathering->partitions);
    assert(ret_piece != NULL);
    if (partition == NULL)
        return false;
    *ret_piece = gather_cut(&partition->gather, limit_of(gathering->config));
    if (partition->gather.pending == NULL) {
        partition->mark_ns = NOT_TIMED_OUT;
        lane_timer_stop(gathering->exporter->lane, &partition->timer);
    } else if (partition->mark_ns == NOT_TIMED_OUT) {
        /* What is left over is a new batch, with all of its time before it. */
        start_timer(gathering, partition);
    }
    partition_settle(partition, is_due(gathering, partition));
    return true;
}

void sender_batch_flush(struct sender_batch *gathering)
{
    assert(gathering != NULL);
    gathering->is_flushing = true;
    partitions_all_due(&gathering->partitions);
}

bool sender_batch_is_oversized(const struct sender_queue_config *config, const struct batch *batch)
{
    assert(batch != NULL);
    if (!config->has_batch || sender_batch_sizer(config) != SENDER_BYTES)
        return false;
    return config->batch.max_size > 0 && batch->bytes > config->batch.max_size && batch->items <= 1;
}
