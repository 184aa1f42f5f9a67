/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles side of the join on any request that can be normalized: byte 0 says which of the
 * spans that it names are known, the rest is the request. What comes out is normalized already, has
 * the same samples, or those that are kept or counted besides, and gets nothing more from the
 * same spans; processes that wait for theirs wait no longer than until these come. */
#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/pending_processes.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_enrich.h"
#include "src/join/profiles/profile_keep.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "tests/support/random_otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct join_store *make_store(uint8_t settings)
{
    static const struct join_settings made = {
        .attributes = {{JOIN_SPAN_NAME, {(const uint8_t *)"span_name", 9}},
                       {JOIN_STATUS_CLASS, {(const uint8_t *)"k", 1}},
                       {JOIN_DURATION_BUCKET, {(const uint8_t *)"duration_bucket", 15}},
                       {JOIN_OF_SPAN, {(const uint8_t *)"thread", 6}},
                       {JOIN_OF_RESOURCE, {(const uint8_t *)"b", 1}}},
        .attributes_count = 5,
        .buckets_ns = {100},
        .bucket_texts = {"100ns"},
        .buckets_count = 1,
        .values_max = 2,
        .index_entries = 64,
        .index_bytes = SPAN_SHARD_BYTES_MIN,
        .mark = JOIN_MARK_OBSERVED,
        .repairs_identity = true,
        .hold_ns = 1,
        .keep = {.slow_ns = 4},
    };
    struct join_settings wanted = made;
    wanted.takes_root = (settings & 1) != 0;
    wanted.uses_window = (settings & 2) != 0;
    wanted.finds_single_traces = (settings & 8) != 0;
    wanted.counts_root = (settings & 16) != 0;
    wanted.counts_ancestors = (settings & 32) != 0;
    if ((settings & 4) != 0) {
        struct error error;
        bool is_fine = url_template_read("http://g/{trace_id}/{profile_type}", UINT_MAX,
                                         &wanted.trace_url, &error);
        assert(is_fine);
    }
    struct join_store *store = join_store_create(&wanted, 1);
    assert(store != NULL);
    return store;
}

/* Some samples were taken in spans that they do not name. */
static void add_times(struct join_store *store, const struct profile_links *links, uint8_t which)
{
    for (uint32_t i = 0; i < links->timed_count; i++) {
        const struct timed_sample *timed = &links->timed[i];
        const struct window_span span = {.trace = {1, 2},
                                         .span = i + 1,
                                         .start_ns = timed->from_ns,
                                         .end_ns = timed->until_ns,
                                         .thread = timed->thread};
        const struct span_facts facts = {.trace = {1, 2}, .span = i + 1};
        if ((i & which) == 0)
            continue;
        span_window_begin(&store->window, 0, &links->resources[timed->resource], 1);
        span_window_add(&store->window, 0, &span);
        span_index_add(&store->index, 0, &facts);
    }
}

/* That of the next link, but every fourth is a root; the last one's is the first. */
static uint64_t parent_of(const struct profile_links *links, uint32_t link)
{
    if (link % 4 == 0)
        return 0;
    return links->set.items[link + 1 < links->set.count ? link + 1 : 1].key.span;
}

/* Each process has a root, and so one trace; some are known to be of the service that they say. */
static void add_processes(struct join_store *store, const struct profile_links *links,
                          uint8_t which)
{
    struct wire_reader reader = wire_reader_of(links->from.request);
    const struct span_facts spans[] = {
        {.trace = {3, 4}, .span = 5, .parent = 6},
        {.trace = {3, 4}, .span = 6, .end_ns = UINT64_MAX, .flags = SPAN_IS_LOCAL_ROOT},
    };
    struct profile_resource resource;
    while (profile_next_resource(&reader, &resource)) {
        if (resource.resource.data == NULL)
            continue;
        struct resource_facts facts = resource_facts_of(resource.resource);
        if ((which & 64) != 0)
            process_table_add(&store->processes, 0, &facts, 1);
        if (!store->settings.finds_single_traces)
            continue;
        struct process_keys keys = single_traces_begin(&store->single_traces, &facts, 1);
        for (unsigned i = 0; keys.count > 0 && i < 2; i++)
            single_traces_note(&store->single_traces, &keys, &spans[i], 1);
    }
}

/* Its name and its attribute, behind the attribute of its resource. */
static uint32_t put_texts(struct string_ring *log, uint32_t number)
{
    struct string_record text;
    string_record_begin(&text);
    string_record_add_number(&text, number % 3);
    string_record_add_number(&text, 0);
    string_record_add(&text, "resource", 1 + number % 8, 100);
    uint32_t resource = string_ring_put(log, &text, STRING_KEEP_HALF);
    string_record_begin(&text);
    string_record_add_number(&text, resource);
    string_record_add(&text, "name", 1 + number % 4, 100);
    if (number % 2 != 0)
        string_record_add(&text, "value", 5, 100);
    else
        string_record_add_absent(&text);
    return string_ring_put(log, &text, STRING_KEEP_HALF);
}

/* Every span whose number has a bit in common with `which` is known. */
static void fill_store(struct join_store *store, const struct profile_links *links, uint8_t which)
{
    struct string_ring *log = span_index_ring(&store->index, 0);
    for (uint32_t i = 1; i < links->set.count; i++) {
        const struct link_key *key = &links->set.items[i].key;
        struct span_facts facts = {.trace = {key->trace[0] | 1, key->trace[1]},
                                   .span = key->span,
                                   .parent = parent_of(links, i),
                                   .end_ns = i,
                                   .flags = i % 4 == 0 ? SPAN_IS_LOCAL_ROOT : 0};
        if (key->has_trace)
            facts.trace[0] = key->trace[0];
        if ((i & which) == 0)
            continue;
        facts.strings = put_texts(log, i);
        span_index_add(&store->index, 0, &facts);
    }
    add_times(store, links, which);
    add_processes(store, links, which);
}

static struct batch *batch_of(struct buffer *owner, struct slice request, uint64_t samples)
{
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, owner, request);
    batch->items = samples;
    return batch;
}

static struct buffer *buffer_of(struct slice bytes)
{
    struct buffer *buffer = buffer_create(NULL, bytes.size);
    if (bytes.size > 0)
        memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    return buffer;
}

/* The request enriched; the caller gives the buffer back. */
static struct buffer *enrich(struct profile_enricher *enricher, struct batch *batch,
                             const uint8_t *which, struct enrich_figures *ret_figures)
{
    bool is_open = profile_links_open(&enricher->links, batch->parts[0].bytes, 1);
    assert(is_open);
    if (which != NULL)
        fill_store(enricher->links.store, &enricher->links, *which);
    profile_links_resolve(&enricher->links);
    struct batch *enriched = profile_enrich(enricher, batch, 1, ret_figures);
    struct slice bytes = joined_parts(enriched);
    struct buffer *buffer = buffer_of(bytes);
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(enriched);
    return buffer;
}

/* The normalized request, which must be the request itself when `is_ours`. */
static bool pass(struct buffer *buffer, bool is_ours, struct profile_normalized *ret_normalized)
{
    enum profile_layout layout = is_ours ? LAYOUT_1_10 : PROFILE_LAYOUTS;
    if (profile_normalize(buffer, buffer_slice(buffer), layout, NULL, ret_normalized) !=
        PROFILES_TAKEN) {
        assert(!is_ours);
        return false;
    }
    assert(!is_ours || ret_normalized->rejected_samples == 0);
    return true;
}

/* What keep leaves is normalized already, and has as many samples as it says. */
static void check_keep(struct join_store *store, struct batch *batch, uint8_t which)
{
    const struct keep_rules rules = {.slow_ns = (uint64_t)1 + which % 8,
                                     .keeps_unlinked = (which & 8) != 0};
    struct profile_links links;
    struct profile_normalized normalized;
    profile_links_init(&links, store, NULL);
    bool is_open = profile_links_open(&links, batch->parts[0].bytes, 1);
    assert(is_open);
    profile_links_resolve(&links);
    uint32_t unsettled = profile_keep_unsettled(&links);
    assert(unsettled < links.set.count);
    struct batch *kept = profile_keep(&links, batch, &rules, NULL);
    assert(kept->items <= batch->items);
    if (kept->items > 0) {
        assert(kept->parts_count == 1);
        struct buffer *buffer = buffer_of(kept->parts[0].bytes);
        bool is_fine = pass(buffer, true, &normalized);
        assert(is_fine);
        assert(normalized.samples == kept->items);
        buffer_unref(normalized.owner);
        buffer_unref(buffer);
    }
    batch_unref(kept);
    profile_links_fini(&links);
}

/* Copies are normalized already, and are as many as the figures say. */
static void check_copies(struct join_store *store, struct batch *batch)
{
    struct profile_links links;
    struct profile_normalized normalized;
    struct copies_figures figures;
    if (!profile_copies_are_on(&store->settings))
        return;
    profile_links_init(&links, store, NULL);
    bool is_open = profile_links_open(&links, batch->parts[0].bytes, 1);
    assert(is_open);
    profile_links_resolve(&links);
    struct batch *copied = profile_copies_add(&links, batch, NULL, &figures);
    struct slice bytes = joined_parts(copied);
    struct buffer *buffer = buffer_of(bytes);
    assert(copied->items == batch->items + figures.made);
    bool is_fine = pass(buffer, true, &normalized);
    assert(is_fine);
    assert(normalized.samples == copied->items);
    mem_free((void *)(uintptr_t)bytes.data);
    buffer_unref(normalized.owner);
    buffer_unref(buffer);
    batch_unref(copied);
    profile_links_fini(&links);
}

/* Before any span has come. */
static void collect_awaits(struct join_store *store, struct batch *batch,
                           struct pending_processes *awaits)
{
    struct profile_links links;
    profile_links_init(&links, store, NULL);
    bool is_open = profile_links_open(&links, batch->parts[0].bytes, 1);
    assert(is_open);
    pending_processes_collect(awaits, &links, 1);
    uint32_t count = awaits->count;
    assert(count <= JOIN_PENDING_PROCESSES_MAX);
    bool is_over = pending_processes_are_over(awaits, store, 1);
    assert(is_over == (count == 0) && awaits->count == count);
    profile_links_fini(&links);
}

/* Where memory ends anywhere, all that was charged is given back. */
static void check_shortage(struct join_store *store, struct batch *batch, uint8_t which)
{
    struct budget budget;
    struct profile_links links;
    budget_init(&budget, (uint64_t)which << 8);
    profile_links_init(&links, store, &budget);
    if (profile_links_open(&links, batch->parts[0].bytes, 1))
        profile_links_resolve(&links);
    profile_links_fini(&links);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
}

/* What has gone through once has got everything; but a process that has got a service then may
 * get the trace of the service's processes. */
static void check_again(struct profile_enricher *enricher, struct buffer *first, uint64_t samples,
                        uint64_t repaired)
{
    struct profile_normalized again;
    struct enrich_figures figures;
    bool is_fine = pass(first, true, &again);
    assert(is_fine);
    assert(again.samples == samples);
    struct batch *batch = batch_of(again.owner, again.request, again.samples);
    struct buffer *second = enrich(enricher, batch, NULL, &figures);
    assert(figures.enriched_samples == 0 && figures.repaired == 0);
    assert(figures.labelled <= repaired);
    buffer_unref(second);
    batch_unref(batch);
    buffer_unref(again.owner);
}

static void check_request(const struct profile_normalized *normalized, uint8_t which)
{
    struct join_store *store = make_store(which);
    struct batch *batch = batch_of(normalized->owner, normalized->request, normalized->samples);
    struct pending_processes awaits = {.items = NULL};
    struct profile_enricher enricher;
    struct enrich_figures figures;
    collect_awaits(store, batch, &awaits);
    profile_enricher_init(&enricher, store, NULL);
    struct buffer *first = enrich(&enricher, batch, &which, &figures);
    bool is_over = pending_processes_are_over(&awaits, store, 1);
    assert(is_over);
    check_keep(store, batch, which);
    check_copies(store, batch);
    check_shortage(store, batch, which);
    check_again(&enricher, first, normalized->samples, figures.repaired);
    buffer_unref(first);
    profile_enricher_fini(&enricher);
    pending_processes_fini(&awaits);
    batch_unref(batch);
    join_store_destroy(store);
}

static void check(struct buffer *input, uint8_t which)
{
    struct profile_normalized normalized;
    if (!pass(input, false, &normalized))
        return;
    if (normalized.profiles > 0) /* else it is not passed on */
        check_request(&normalized, which);
    buffer_unref(normalized.owner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct buffer *input = buffer_of(slice_of(data + 1, size - 1));
    check(input, data[0]);
    buffer_unref(input);
    return 0;
}
