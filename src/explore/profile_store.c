/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the owner's thread. */
#include "src/explore/profile_store.h"

#include <assert.h>
#include <stdlib.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/mem_stats.h"
#include "src/base/random.h"
#include "src/explore/block_bytes.h"
#include "src/explore/explore_limits.h"
#include "src/explore/service_name.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_merge.h"
#include "src/profiles/otlp/profile_view.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    BLOCKS_FIRST = 64,
    SERVICES_MAX = 256, /* of one block; the others are not found by their name */
};

uint64_t span_samples_count(const struct span_samples *samples)
{
    return samples->counted > 0 ? samples->counted
           : samples->timed > 0 ? samples->timed
                                : samples->others;
}

uint64_t span_samples_cpu_ns(const struct span_samples *samples)
{
    return samples->cpu_ns > 0 ? samples->cpu_ns : samples->counted_ns;
}

void profile_store_init(struct profile_store *store, struct string_table *strings,
                        struct codec_box *box, enum codec codec)
{
    *store = (struct profile_store){.strings = strings, .box = box, .codec = codec};
    store->seed = (uint64_t)(random_uniform() * 0x1p53);
    store->next_block = 1;
}

static void free_block(struct profile_store *store, struct profile_block *block)
{
    for (size_t i = 0; i < block->services_count; i++)
        string_table_unref(store->strings, block->services[i]);
    buffer_unref(block->bytes);
    mem_free(block->spans);
    mem_free(block->services);
    mem_free(block);
}

void profile_store_fini(struct profile_store *store)
{
    profile_store_close(store);
    for (size_t i = store->blocks_begin; i < store->blocks_end; i++)
        free_block(store, store->blocks[i]);
    mem_free((void *)store->blocks);
    size_t at = 0;
    void *trace;
    while ((trace = hash_table_each(&store->traces, &at)) != NULL)
        mem_free(trace);
    hash_table_clear(&store->traces);
    *store = (struct profile_store){.blocks = NULL};
}

static int compare_spans(const void *a, const void *b)
{
    return memcmp(a, b, offsetof(struct span_samples, cpu_ns));
}

/* Adds up entries of the same span, which are sorted. */
static size_t join_spans(struct span_samples *spans, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || compare_spans(&spans[kept - 1], &spans[i]) != 0) {
            spans[kept++] = spans[i];
            continue;
        }
        struct span_samples *to = &spans[kept - 1];
        to->cpu_ns += spans[i].cpu_ns;
        to->counted_ns += spans[i].counted_ns;
        to->counted += spans[i].counted;
        to->timed += spans[i].timed;
        to->others += spans[i].others;
    }
    return kept;
}

static uint64_t hash_of(const struct profile_store *store, const uint8_t *id)
{
    return XXH3_64bits_withSeed(id, 16, store->seed);
}

/* NULL: no block has samples of it. */
static struct trace_samples *find_samples(const struct profile_store *store, const uint8_t *id)
{
    uint64_t hash = hash_of(store, id);
    size_t at = 0;
    struct trace_samples *found;
    do
        found = hash_table_next(&store->traces, hash, &at);
    while (found != NULL && memcmp(found->id, id, sizeof(found->id)) != 0);
    return found;
}

uint64_t profile_store_samples(const struct profile_store *store, const uint8_t id[static 16])
{
    const struct trace_samples *found = find_samples(store, id);
    return found != NULL ? found->samples : 0;
}

/* Takes back what the first of the block's spans have been counted for. */
static void forget_traces(struct profile_store *store, const struct profile_block *block,
                          size_t spans_count)
{
    for (size_t i = 0; i < spans_count; i++) {
        const struct span_samples *span = &block->spans[i];
        bool is_last = i + 1 == spans_count || memcmp(span->trace_id, span[1].trace_id, 16) != 0;
        struct trace_samples *from = find_samples(store, span->trace_id);
        assert(from != NULL && from->blocks > 0);
        uint64_t count = span_samples_count(span);
        from->samples -= count < from->samples ? count : from->samples;
        if (!is_last || --from->blocks > 0)
            continue;
        hash_table_remove(&store->traces, hash_of(store, from->id), from);
        mem_free(from);
    }
}

/* Counts a block's samples for its traces. False: no memory, nothing is counted. */
static bool count_traces(struct profile_store *store, const struct profile_block *block)
{
    for (size_t i = 0; i < block->spans_count; i++) {
        const struct span_samples *span = &block->spans[i];
        struct trace_samples *to = find_samples(store, span->trace_id);
        bool is_first = i == 0 || memcmp(span->trace_id, span[-1].trace_id, 16) != 0;
        if (to == NULL) {
            to = mem_try_zalloc(sizeof(*to));
            if (to != NULL)
                memcpy(to->id, span->trace_id, sizeof(to->id));
            if (to == NULL || !hash_table_add(&store->traces, hash_of(store, to->id), to)) {
                mem_free(to);
                forget_traces(store, block, i);
                return false;
            }
        }
        to->blocks += is_first;
        to->samples += span_samples_count(span);
    }
    return true;
}

/* How a profile's values are counted. */
enum measure { MEASURES_CPU_TIME, MEASURES_SAMPLES, MEASURES_OTHERS };

static enum measure measure_of(const struct profile_dictionary *dictionary,
                               const struct profile *profile)
{
    struct slice type = profile_string_at(dictionary, profile->sample_type.type);
    struct slice unit = profile_string_at(dictionary, profile->sample_type.unit);
    if (slice_equal_text(type, "cpu") && slice_equal_text(unit, "nanoseconds"))
        return MEASURES_CPU_TIME;
    return slice_equal_text(type, "samples") ? MEASURES_SAMPLES : MEASURES_OTHERS;
}

static void count_sample(const struct profile_sample *sample, enum measure measure,
                         int64_t cpu_period, struct span_samples *to)
{
    struct profile_numbers_reader values = profile_numbers_read(&sample->values);
    uint64_t number;
    int64_t sum = 0;
    bool has_values = false;
    while (profile_numbers_next(&values, &number)) {
        has_values = true;
        if ((int64_t)number > 0 && sum <= INT64_MAX - (int64_t)number)
            sum += (int64_t)number;
    }
    if (!has_values)
        sum = (int64_t)profile_numbers_count(&sample->timestamps);
    switch (measure) {
    case MEASURES_CPU_TIME:
        to->cpu_ns += (uint64_t)sum;
        to->timed += cpu_period > 0 && sum > cpu_period ? (uint32_t)(sum / cpu_period) : 1;
        break;
    case MEASURES_SAMPLES:
        to->counted += (uint32_t)(sum < UINT32_MAX ? sum : UINT32_MAX);
        if (cpu_period > 0 && sum < INT64_MAX / cpu_period)
            to->counted_ns += (uint64_t)(sum * cpu_period);
        break;
    case MEASURES_OTHERS:
        to->others++;
        break;
    }
}

static bool take(const struct profile_store *store, uint64_t bytes)
{
    return store->budget == NULL || budget_try_take(store->budget, bytes);
}

static void give_back(const struct profile_store *store, uint64_t bytes)
{
    if (store->budget != NULL && bytes > 0)
        budget_return(store->budget, bytes);
}

/* Fills in what the block's index says of a request. False: no memory. */
static bool read_request(struct profile_store *store, struct profile_block *block,
                         struct slice request)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    uint32_t services[SERVICES_MAX];
    arena_init_charged(&arena, PROFILE_INDEX_BYTES_MAX, store->budget);
    bool is_open = profile_dictionary_open(&dictionary, &arena, request);
    uint32_t links = is_open ? dictionary.counts[PROFILE_LINKS] : 0;
    uint64_t charge = (links + UINT64_C(1)) * sizeof(struct span_samples);
    is_open = is_open && take(store, charge);
    struct span_samples *spans = is_open ? mem_try_zalloc(charge) : NULL;
    if (spans == NULL) {
        give_back(store, is_open ? charge : 0);
        arena_clear(&arena);
        return false;
    }
    struct profile_iterator at = profile_iterator_of(request);
    const uint8_t *last_resource = NULL;
    while (profile_iterator_next(&at)) {
        const struct profile *profile = &at.profile;
        enum measure measure = measure_of(&dictionary, profile);
        bool is_cpu_period =
            slice_equal_text(profile_string_at(&dictionary, profile->period_type.type), "cpu") &&
            slice_equal_text(profile_string_at(&dictionary, profile->period_type.unit),
                             "nanoseconds");
        block->profiles++;
        uint64_t end_ns = profile->time_unix_ns + profile->duration_ns;
        if (profile->time_unix_ns > 0 && profile->time_unix_ns < block->start_ns)
            block->start_ns = profile->time_unix_ns;
        if (end_ns > block->end_ns)
            block->end_ns = end_ns;
        if (at.resource.bytes.data != last_resource && block->services_count < SERVICES_MAX) {
            bool is_new;
            uint32_t number =
                string_table_add(store->strings, service_name_of(at.resource.resource),
                                 UINT64_MAX - block->number, &is_new);
            last_resource = at.resource.bytes.data;
            for (size_t i = 0; is_new && i < block->services_count; i++)
                is_new = services[i] != number;
            if (is_new) {
                string_table_ref(store->strings, number);
                services[block->services_count++] = number;
            }
        }
        struct wire_reader reader = wire_reader_of(profile->bytes);
        struct profile_sample sample;
        while (profile_next_sample(&reader, &sample)) {
            block->samples++;
            if (!profile_index_is_set(sample.link) ||
                !profile_has(&dictionary, PROFILE_LINKS, sample.link))
                continue;
            count_sample(&sample, measure, is_cpu_period ? profile->period : 0,
                         &spans[profile_place(&dictionary, PROFILE_LINKS, sample.link)]);
        }
    }
    size_t count = 0;
    for (uint32_t i = 1; i < links; i++) {
        struct span_samples entry = spans[i];
        if (entry.counted == 0 && entry.timed == 0 && entry.others == 0)
            continue;
        struct profile_link link = profile_link_at(&dictionary, profile_index_of(i));
        if (link.trace_id.size != 16 || link.span_id.size != 8)
            continue;
        memcpy(entry.trace_id, link.trace_id.data, 16);
        memcpy(entry.span_id, link.span_id.data, 8);
        spans[count++] = entry; /* count < i */
    }
    qsort(spans, count, sizeof(spans[0]), compare_spans);
    block->spans_count = join_spans(spans, count);
    block->spans = mem_copy(spans, block->spans_count * sizeof(spans[0]));
    block->services = mem_copy(services, block->services_count * sizeof(services[0]));
    mem_free(spans);
    give_back(store, charge);
    arena_clear(&arena);
    return true;
}

static bool append(struct profile_store *store, struct profile_block *block)
{
    if (store->blocks_end == store->blocks_capacity) {
        size_t kept = store->blocks_end - store->blocks_begin;
        size_t capacity = kept < BLOCKS_FIRST / 2 ? BLOCKS_FIRST : 2 * kept;
        void *blocks = mem_try_alloc(capacity * sizeof(struct profile_block *));
        if (blocks == NULL)
            return false;
        if (kept > 0)
            memcpy(blocks, (const void *)(store->blocks + store->blocks_begin),
                   kept * sizeof(struct profile_block *));
        mem_free((void *)store->blocks);
        store->blocks = (struct profile_block **)blocks;
        store->blocks_open -= store->blocks_begin;
        store->blocks_end = kept;
        store->blocks_begin = 0;
        store->blocks_capacity = capacity;
    }
    if (!count_traces(store, block))
        return false;
    store->blocks[store->blocks_end++] = block;
    store->bytes += block->memory;
    store->samples += block->samples;
    store->profiles += block->profiles;
    store->generation++;
    return true;
}

static struct profile_block *make_block(struct profile_store *store, struct slice request,
                                        uint64_t now_ns)
{
    struct profile_block *block = mem_zalloc(sizeof(*block));
    block->number = store->next_block++;
    block->arrived_ns = now_ns;
    block->start_ns = UINT64_MAX;
    block->raw = (uint32_t)request.size;
    if (request.size <= UINT32_MAX && read_request(store, block, request))
        return block;
    free_block(store, block);
    return NULL;
}

static void weigh(struct profile_block *block)
{
    block->memory = mem_stats_held(block) + mem_stats_held(block->bytes) +
                    mem_stats_held(block->spans) + mem_stats_held(block->services);
}

/* Removes the block at that place, which is the first or one of the open ones, at the end. */
static void drop_block(struct profile_store *store, struct profile_block *block)
{
    forget_traces(store, block, block->spans_count);
    store->bytes -= block->memory;
    store->samples -= block->samples;
    store->profiles -= block->profiles;
    store->generation++;
    free_block(store, block);
}

/* Merges the requests of the open window into one block. */
static void close_window(struct profile_store *store)
{
    struct profile_merge merge;
    struct profile_source source;
    struct otlp_limit limit = {.bytes_max = 0};
    size_t first = store->blocks_open;
    size_t end = store->blocks_end;
    uint64_t now_ns = store->blocks[end - 1]->arrived_ns;
    bool is_whole = true;
    uint64_t samples = 0;
    for (size_t i = first; i < end; i++)
        samples += store->blocks[i]->samples;
    profile_merge_init(&merge, store->budget);
    for (size_t i = first; is_whole && i < end; i++) {
        struct slice request = buffer_slice(store->blocks[i]->bytes);
        is_whole = profile_measure_fits(request, store->budget) &&
                   profile_source_open(&source, request, &merge);
        if (!is_whole)
            break;
        is_whole = profile_merge_take(&merge, &source, limit);
        profile_source_close(&source);
    }
    struct buffer *merged = is_whole ? profile_merge_finish(&merge, NULL) : NULL;
    profile_merge_fini(&merge);
    struct profile_block *block =
        merged != NULL ? make_block(store, buffer_slice(merged), now_ns) : NULL;
    struct buffer *compressed =
        block != NULL ? block_bytes_compress(buffer_slice(merged), store->box, store->codec) : NULL;
    buffer_unref(merged);
    /* Those that could not be merged are lost: there was no memory. */
    for (size_t i = first; i < end; i++)
        drop_block(store, store->blocks[i]);
    store->blocks_end = first;
    store->open_bytes = 0;
    if (compressed == NULL) {
        store->samples_lost += samples;
        if (block != NULL)
            free_block(store, block);
        return;
    }
    block->bytes = compressed;
    block->is_compressed = true;
    weigh(block);
    if (append(store, block)) {
        store->blocks_open = store->blocks_end;
    } else {
        store->samples_lost += samples;
        free_block(store, block);
    }
}

static bool add_request(struct profile_store *store, struct slice request, uint64_t now_ns)
{
    struct profile_block *block = make_block(store, request, now_ns);
    if (block == NULL)
        return false;
    block->bytes = buffer_try_create(NULL, request.size);
    if (block->bytes == NULL) {
        free_block(store, block);
        return false;
    }
    memcpy(block->bytes->data, request.data, request.size);
    block->bytes->size = request.size;
    weigh(block);
    if (!append(store, block)) {
        free_block(store, block);
        return false;
    }
    store->samples_total += block->samples;
    store->open_bytes += request.size;
    if (store->open_bytes >= EXPLORE_PROFILES_BYTES_MAX)
        close_window(store);
    return true;
}

bool profile_store_add(struct profile_store *store, struct slice request, uint64_t now_ns)
{
    if (request.size == 0)
        return true;
    /* For the copy, until the owner charges what is kept. */
    if (!take(store, request.size))
        return false;
    bool is_added = add_request(store, request, now_ns);
    give_back(store, request.size);
    return is_added;
}

void profile_store_seal(struct profile_store *store)
{
    if (store->blocks_open < store->blocks_end)
        close_window(store);
}

uint64_t profile_store_bytes(const struct profile_store *store)
{
    return store->bytes + hash_table_bytes(&store->traces) +
           store->traces.count * sizeof(struct trace_samples) +
           store->blocks_capacity * sizeof(struct profile_block *);
}

bool profile_store_evict(struct profile_store *store)
{
    if (store->blocks_begin == store->blocks_end)
        return false;
    struct profile_block *block = store->blocks[store->blocks_begin++];
    if (store->blocks_open < store->blocks_begin) {
        store->blocks_open = store->blocks_begin;
        store->open_bytes -= block->raw;
    }
    drop_block(store, block);
    store->evicted_blocks++;
    return true;
}

uint64_t profile_store_oldest_ns(const struct profile_store *store)
{
    return store->blocks_begin < store->blocks_end ? store->blocks[store->blocks_begin]->arrived_ns
                                                   : UINT64_MAX;
}

size_t profile_store_blocks(const struct profile_store *store)
{
    return store->blocks_end - store->blocks_begin;
}

const struct profile_block *profile_store_block(const struct profile_store *store, size_t index)
{
    assert(store->blocks_begin + index < store->blocks_end);
    return store->blocks[store->blocks_begin + index];
}

/* The first entry of a trace; spans_count: none. */
static size_t find_trace(const struct profile_block *block, const uint8_t *id)
{
    size_t low = 0;
    size_t high = block->spans_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(block->spans[middle].trace_id, id, 16) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < block->spans_count && memcmp(block->spans[low].trace_id, id, 16) == 0;
    return is_there ? low : block->spans_count;
}

bool profile_block_has_trace(const struct profile_block *block, const uint8_t id[static 16])
{
    return find_trace(block, id) < block->spans_count;
}

bool profile_block_has_service(const struct profile_block *block, uint32_t service)
{
    for (size_t i = 0; i < block->services_count; i++)
        if (block->services[i] == service)
            return true;
    return block->services_count == SERVICES_MAX;
}

void profile_store_services(const struct profile_store *store, uint64_t *bits)
{
    for (size_t i = 0; i < profile_store_blocks(store); i++) {
        const struct profile_block *block = profile_store_block(store, i);
        for (size_t j = 0; j < block->services_count; j++)
            bits[block->services[j] / 64] |= UINT64_C(1) << block->services[j] % 64;
        if (block->services_count == SERVICES_MAX) { /* it may have any other, too */
            memset(bits, 0xff, (store->strings->entries_count / 64 + 1) * sizeof(bits[0]));
            return;
        }
    }
}

size_t profile_store_spans(const struct profile_store *store, const uint8_t id[static 16],
                           struct span_samples **ret_spans)
{
    *ret_spans = NULL;
    size_t count = 0;
    if (profile_store_samples(store, id) == 0)
        return 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (size_t i = 0; i < profile_store_blocks(store); i++) {
            const struct profile_block *block = profile_store_block(store, i);
            size_t first = find_trace(block, id);
            size_t end = first;
            while (end < block->spans_count && memcmp(block->spans[end].trace_id, id, 16) == 0)
                end++;
            if (pass == 1 && end > first)
                memcpy(*ret_spans + at, block->spans + first,
                       (end - first) * sizeof(struct span_samples));
            at += end - first;
        }
        count = at;
        if (pass == 0) {
            *ret_spans = mem_try_alloc((count + 1) * sizeof(struct span_samples));
            if (*ret_spans == NULL)
                return 0;
        }
    }
    qsort(*ret_spans, count, sizeof(struct span_samples), compare_spans);
    return join_spans(*ret_spans, count);
}

/* Leaves a block open. When there is no room, those before it have had their time. */
static void keep_open(struct profile_store *store, uint64_t number, struct buffer *bytes,
                      struct budget *budget)
{
    uint64_t size = mem_stats_held(bytes);
    if (size > PROFILE_OPENED_BYTES_MAX)
        return;
    if (store->opened_count == PROFILE_OPENED_MAX || store->opened_budget != budget ||
        store->opened_bytes + size > PROFILE_OPENED_BYTES_MAX)
        profile_store_close(store);
    if (!budget_try_take(budget, size))
        return;
    store->opened[store->opened_count++] =
        (struct profile_opened){.number = number, .bytes = buffer_ref(bytes)};
    store->opened_bytes += size;
    store->opened_budget = budget;
}

struct buffer *profile_store_open(struct profile_store *store, const struct profile_block *block,
                                  struct budget *budget)
{
    struct buffer *output = NULL;
    if (!block->is_compressed)
        return buffer_ref(block->bytes);
    for (size_t i = 0; i < store->opened_count; i++)
        if (store->opened[i].number == block->number)
            return buffer_ref(store->opened[i].bytes);
    if (codec_inflate(store->box, store->codec, buffer_slice(block->bytes), block->raw, &output) !=
        CODEC_OK)
        return NULL;
    if (budget != NULL)
        keep_open(store, block->number, output, budget);
    return output;
}

void profile_store_close(struct profile_store *store)
{
    for (size_t i = 0; i < store->opened_count; i++)
        buffer_unref(store->opened[i].bytes);
    if (store->opened_bytes > 0)
        budget_return(store->opened_budget, store->opened_bytes);
    store->opened_count = 0;
    store->opened_bytes = 0;
    store->opened_budget = NULL;
}
