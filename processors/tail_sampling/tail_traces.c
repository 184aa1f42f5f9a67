/* SPDX-License-Identifier: Apache-2.0 */
/* A table of traces with linear hashing (Litwin, 1980). Runs on its lane. */
#include "processors/tail_sampling/tail_traces.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

enum { CHUNK_ENTRIES = 256, CHUNKS_FIRST = 16 };

/* So that numbers of buckets stay below UINT32_MAX, also in twice the power of two below. */
#define ENTRIES_MAX (UINT32_MAX / 8)

/* Half as many again: most ids that are not there are then known not to be without a look at
 * another trace, which would be a cache miss. */
static size_t buckets_for(size_t traces)
{
    return traces + traces / 2 + 1;
}

static size_t bytes_of(size_t words)
{
    return sizeof(struct tail_trace) + words * sizeof(uint64_t);
}

size_t tail_traces_entry_bytes(size_t words)
{
    return bytes_of(words) + sizeof(tail_number) + sizeof(tail_number) / 2;
}

bool tail_traces_init(struct tail_traces *traces, size_t words, uint64_t entries_max,
                      struct budget *budget)
{
    assert(words > 0);
    *traces = (struct tail_traces){.budget = budget, .words = words, .seed = tail_seed_make()};
    traces->trace_bytes = bytes_of(words);
    traces->entries_max = entries_max < ENTRIES_MAX ? (uint32_t)entries_max : ENTRIES_MAX;
    traces->unused = 1;
    traces->buckets_count = 1;
    traces->buckets_low = 1;
    traces->buckets = mem_try_map(buckets_for(traces->entries_max) * sizeof(traces->buckets[0]));
    return traces->buckets != NULL;
}

void tail_traces_fini(struct tail_traces *traces)
{
    if (traces->buckets == NULL)
        return;
    for (size_t i = 0; i < traces->chunks_count; i++)
        mem_free(traces->chunks[i]);
    budget_return(traces->budget,
                  traces->chunks_count * CHUNK_ENTRIES * tail_traces_entry_bytes(traces->words));
    mem_free((void *)traces->chunks);
    mem_unmap(traces->buckets, buckets_for(traces->entries_max) * sizeof(traces->buckets[0]));
    traces->buckets = NULL;
}

struct tail_trace *tail_traces_at(const struct tail_traces *traces, tail_number number)
{
    assert(number > 0 && number < traces->unused);
    uint8_t *chunk = traces->chunks[(number - 1) / CHUNK_ENTRIES];
    return (struct tail_trace *)(void *)(chunk +
                                         (number - 1) % CHUNK_ENTRIES * traces->trace_bytes);
}

static uint32_t bucket_of(const struct tail_traces *traces, const uint8_t *id)
{
    uint32_t bucket = (uint32_t)tail_hash(&traces->seed, id) & (2 * traces->buckets_low - 1);
    return bucket < traces->buckets_count ? bucket : bucket - traces->buckets_low;
}

struct tail_trace *tail_traces_find(const struct tail_traces *traces,
                                    const uint8_t id[TAIL_TRACE_ID_BYTES])
{
    tail_number number = traces->buckets[bucket_of(traces, id)];
    while (number != 0) {
        struct tail_trace *trace = tail_traces_at(traces, number);
        if (memcmp(trace->id, id, TAIL_TRACE_ID_BYTES) == 0)
            return trace;
        number = trace->chain;
    }
    return NULL;
}

static void fetch(const struct tail_traces *traces, tail_number number)
{
    enum { LINE_BYTES = 64 };
    if (number == 0)
        return;
    const char *trace = (const char *)tail_traces_at(traces, number);
    __builtin_prefetch(trace);
    __builtin_prefetch(trace + LINE_BYTES);
}

void tail_traces_expect(const struct tail_traces *traces, const uint8_t id[TAIL_TRACE_ID_BYTES],
                        bool is_near)
{
    const tail_number *bucket = &traces->buckets[bucket_of(traces, id)];
    if (is_near)
        fetch(traces, *bucket);
    else
        __builtin_prefetch(bucket);
}

/* What tail_traces_remove and the others look at of a trace that is at hand soon, and the trace
 * behind it. */
static void fetch_around(const struct tail_traces *traces, const struct tail_slabs *slabs,
                         const struct tail_trace *trace)
{
    __builtin_prefetch(&traces->buckets[bucket_of(traces, trace->id)]);
    tail_spans_expect(slabs, &trace->spans);
    fetch(traces, trace->next);
}

struct tail_ahead tail_ahead_of(const struct tail_traces *traces, const struct tail_slabs *slabs,
                                tail_number number)
{
    enum { DISTANCE = 4 }; /* what one trace takes is less than memory does */
    struct tail_ahead ahead = {.next = number};
    for (unsigned i = 0; i < DISTANCE; i++)
        tail_ahead_step(traces, slabs, &ahead);
    return ahead;
}

void tail_ahead_step(const struct tail_traces *traces, const struct tail_slabs *slabs,
                     struct tail_ahead *ahead)
{
    if (ahead->next == 0)
        return;
    const struct tail_trace *trace = tail_traces_at(traces, ahead->next);
    fetch_around(traces, slabs, trace);
    ahead->next = trace->next;
}

/* Behind the others of its bucket, which have just been looked at: the oldest, which is the first
 * to be removed, is found without a look at others. */
static void append(struct tail_traces *traces, uint32_t bucket, struct tail_trace *trace)
{
    tail_number *at = &traces->buckets[bucket];
    while (*at != 0)
        at = &tail_traces_at(traces, *at)->chain;
    trace->chain = 0;
    *at = trace->number;
}

/* Adds a bucket, with what belongs there of the one that it is cut from, in the same order. */
static void cut_bucket(struct tail_traces *traces)
{
    assert(traces->buckets_count < buckets_for(traces->entries_max));
    uint32_t added = traces->buckets_count++;
    tail_number *from = &traces->buckets[added - traces->buckets_low];
    tail_number *to = &traces->buckets[added];
    while (*from != 0) {
        struct tail_trace *trace = tail_traces_at(traces, *from);
        if (bucket_of(traces, trace->id) != added) {
            from = &trace->chain;
            continue;
        }
        *from = trace->chain;
        trace->chain = 0;
        *to = trace->number;
        to = &trace->chain;
    }
    if (traces->buckets_count == 2 * traces->buckets_low)
        traces->buckets_low *= 2;
}

static void add_chunk(struct tail_traces *traces)
{
    size_t bytes = CHUNK_ENTRIES * tail_traces_entry_bytes(traces->words);
    budget_take(traces->budget, bytes);
    if (traces->chunks_count == traces->chunks_capacity) {
        traces->chunks_capacity =
            traces->chunks_capacity > 0 ? 2 * traces->chunks_capacity : CHUNKS_FIRST;
        traces->chunks = (uint8_t **)mem_resize((void *)traces->chunks,
                                                traces->chunks_capacity * sizeof(uint8_t *));
    }
    traces->chunks[traces->chunks_count++] = mem_alloc(CHUNK_ENTRIES * traces->trace_bytes);
}

struct tail_trace *tail_traces_add(struct tail_traces *traces,
                                   const uint8_t id[TAIL_TRACE_ID_BYTES])
{
    tail_number number = traces->free;
    assert(traces->count < traces->entries_max);
    if (number != 0) {
        traces->free = tail_traces_at(traces, number)->chain;
    } else {
        number = traces->unused++;
        if ((number - 1) / CHUNK_ENTRIES == traces->chunks_count)
            add_chunk(traces);
    }
    struct tail_trace *trace = tail_traces_at(traces, number);
    memset(trace, 0, traces->trace_bytes);
    memcpy(trace->id, id, TAIL_TRACE_ID_BYTES);
    trace->number = number;
    traces->count++;
    while (traces->buckets_count < buckets_for(traces->count))
        cut_bucket(traces);
    append(traces, bucket_of(traces, id), trace);
    fetch(traces, traces->free); /* for the next one */
    trace->older = traces->newest;
    if (traces->newest != 0)
        tail_traces_at(traces, traces->newest)->newer = number;
    else
        traces->oldest = number;
    traces->newest = number;
    return trace;
}

void tail_traces_remove(struct tail_traces *traces, struct tail_trace *trace)
{
    assert(trace->spans.last.slab == 0);
    assert(trace->previous == 0 && trace->next == 0);
    tail_number *at = &traces->buckets[bucket_of(traces, trace->id)];
    while (*at != trace->number)
        at = &tail_traces_at(traces, *at)->chain;
    *at = trace->chain;
    if (trace->older != 0)
        tail_traces_at(traces, trace->older)->newer = trace->newer;
    else
        traces->oldest = trace->newer;
    if (trace->newer != 0)
        tail_traces_at(traces, trace->newer)->older = trace->older;
    else
        traces->newest = trace->older;
    trace->chain = traces->free;
    traces->free = trace->number;
    trace->number = 0;
    traces->count--;
}

void tail_list_push(struct tail_traces *traces, struct tail_list *list, struct tail_trace *trace)
{
    assert(trace->previous == 0 && trace->next == 0);
    trace->previous = list->last;
    if (list->last != 0)
        tail_traces_at(traces, list->last)->next = trace->number;
    else
        list->first = trace->number;
    list->last = trace->number;
    list->count++;
}

void tail_list_take(struct tail_traces *traces, struct tail_list *list, struct tail_trace *trace)
{
    assert(list->count > 0);
    if (trace->previous != 0)
        tail_traces_at(traces, trace->previous)->next = trace->next;
    else
        list->first = trace->next;
    if (trace->next != 0)
        tail_traces_at(traces, trace->next)->previous = trace->previous;
    else
        list->last = trace->previous;
    trace->previous = 0;
    trace->next = 0;
    list->count--;
}

void tail_list_join(struct tail_traces *traces, struct tail_list *list, struct tail_list *from)
{
    if (from->count == 0)
        return;
    if (list->last != 0) {
        tail_traces_at(traces, list->last)->next = from->first;
        tail_traces_at(traces, from->first)->previous = list->last;
    } else {
        list->first = from->first;
    }
    list->last = from->last;
    list->count += from->count;
    *from = (struct tail_list){.first = 0};
}
