/* SPDX-License-Identifier: Apache-2.0 */
/* Merging profiles over several cuts. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_queue.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/rope.h"
#include "src/profiles/otlp/profile_measure.h"

enum { BATCHES_FIRST = 16 };

void profile_queue_init(struct profile_queue *queue, struct budget *budget)
{
    *queue = (struct profile_queue){.budget = budget};
}

static void end_merging(struct profile_queue *queue)
{
    assert(!queue->is_open);
    if (queue->is_merging)
        profile_merge_fini(&queue->merge);
    queue->is_merging = false;
}

static bool is_empty(const struct profile_queue *queue)
{
    assert(queue->first <= queue->count);
    return queue->first == queue->count;
}

/* Removes the first batch. */
static void drop_first(struct profile_queue *queue)
{
    assert(!is_empty(queue));
    if (queue->is_open)
        profile_source_close(&queue->source);
    queue->is_open = false;
    buffer_unref(queue->joined);
    queue->joined = NULL;
    batch_unref(queue->batches[queue->first++]);
    if (!is_empty(queue))
        return;
    queue->first = 0;
    queue->count = 0;
}

void profile_queue_fini(struct profile_queue *queue)
{
    while (!is_empty(queue))
        drop_first(queue);
    end_merging(queue);
    mem_free((void *)queue->batches);
    queue->batches = NULL;
}

void profile_queue_add(struct profile_queue *queue, struct batch *batch)
{
    assert(batch->signal == PROFILES);
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity > 0 ? 2 * queue->capacity : BATCHES_FIRST;
        queue->batches = (struct batch **)mem_resize((void *)queue->batches,
                                                     queue->capacity * sizeof(queue->batches[0]));
    }
    queue->batches[queue->count++] = batch_ref(batch);
}

/* False: there is no memory to read it. */
static bool open_first(struct profile_queue *queue)
{
    const struct batch *batch = queue->batches[queue->first];
    struct slice request = batch->parts[0].bytes;
    assert(queue->joined == NULL);
    if (batch->parts_count > 1) {
        queue->joined = buffer_create(queue->budget, (size_t)batch->bytes);
        rope_copy(rope_of(batch), batch->bytes, queue->joined->data);
        queue->joined->size = (size_t)batch->bytes;
        request = buffer_slice(queue->joined);
    }
    if (profile_measure_fits(request, queue->budget) &&
        profile_source_open(&queue->source, request, &queue->merge))
        return true;
    buffer_unref(queue->joined);
    queue->joined = NULL;
    return false;
}

struct batch *profile_queue_cut(struct profile_queue *queue, const struct batch *model,
                                struct otlp_limit limit, bool *ret_is_last)
{
    bool is_limited = false;
    assert(!is_empty(queue));
    if (!queue->is_merging)
        profile_merge_init(&queue->merge, queue->budget);
    queue->is_merging = true;
    while (!is_limited && !is_empty(queue)) {
        if (!queue->is_open)
            queue->is_open = open_first(queue);
        is_limited = !queue->is_open || !profile_merge_take(&queue->merge, &queue->source, limit);
        if (!is_limited)
            drop_first(queue);
    }
    struct batch *batch = batch_create_like(model, 1);
    batch->items = queue->merge.items;
    bool is_any =
        profile_merge_hand_out(&queue->merge, queue->is_open ? &queue->source : NULL, batch);
    if (!is_any && is_limited) {
        /* There is no memory to read the first batch: it goes on as it is. */
        batch_append_batch(batch, queue->batches[queue->first]);
        drop_first(queue);
    }
    *ret_is_last = is_empty(queue);
    if (*ret_is_last)
        end_merging(queue);
    return batch;
}
