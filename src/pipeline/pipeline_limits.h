/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of pipelines and their queues. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

enum {
    PIPELINE_RING_HURRY = 256, /* requests in the ring that run before the next socket is read */
    PARTITIONS_IDLE_MAX = 256, /* idle ones kept by one processor or queue on a lane */
    PARTITION_IDLE_BYTES_MAX = 8192,
    /* Exports that wait for a retry, over all lanes, of an exporter that stores: the rest waits in
     * the journal. */
    EXPORTER_PROBES_MAX = 8,
};
/* While these fill up, and nothing is taken, one more is tried each time this has passed: a
 * back-end that refuses some requests may take the others. */
#define EXPORTER_SCOUT_NS ((uint64_t)100 * NS_PER_MS)
/* An idle partition may be replaced by another combination of values after this. */
#define PARTITION_IDLE_MIN_NS ((uint64_t)1 * NS_PER_S)
/* Work of one turn of the loop, with that of stages without a queue, after which a processor offers
 * no more batches. */
#define DOWNSTREAM_TURN_NS ((uint64_t)5 * NS_PER_MS)
/* How long want of memory may keep a batch out. Who holds the memory may be waiting behind the
 * batch itself, and then it would wait for ever. Twice the time after which exporters give up on a
 * back-end by default: what they held is free by then, unless they try again for longer. Then
 * the time begins anew with each retry while they hold much of the budget (budget_note_put_off). */
#define DOWNSTREAM_KEPT_OUT_MAX_NS ((uint64_t)600 * NS_PER_S)
/* The same while exporters hold next to nothing (budget_is_leaving): only what other stages keep
 * for a while can come free then. Twice the time for which tail_sampling does by default. */
#define DOWNSTREAM_SHUT_IN_MAX_NS ((uint64_t)60 * NS_PER_S)
/* Between refusals that are farther apart there was memory. */
#define DOWNSTREAM_SPELL_NS (DOWNSTREAM_SHUT_IN_MAX_NS / 2)
/* A batch that memory keeps out is offered again after so many times as long as the last attempt
 * took, edits on the way included, which leaves most of a core to others; within these bounds. One
 * that was refused for another reason is offered again after the lower one. */
enum { DOWNSTREAM_RETRY_FACTOR = 4 };
#define DOWNSTREAM_RETRY_MIN_NS ((uint64_t)10 * NS_PER_MS)
#define DOWNSTREAM_RETRY_MAX_NS ((uint64_t)1 * NS_PER_S)
/* Profiles are merged at once, when they are cut: whatever the size of a batch is to be, it is sent
 * as soon as it has so many bytes, which take about 40 ms. The last request may have more. */
#define PROFILES_PENDING_BYTES_MAX (2 * MIB)
/* How often, while memory is short, who sends one batch of profiles at a time checks whether the
 * previous one is gone, or there is memory again. */
#define SHORT_OF_MEMORY_NS ((uint64_t)10 * NS_PER_MS)
/* Work of one turn of the loop after which a queue begins no more exports. */
#define EXPORTER_TURN_NS ((uint64_t)5 * NS_PER_MS)
