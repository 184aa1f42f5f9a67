/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles side of the join on any request that passes the door: byte 0 says which of the spans
 * that it names are known, the rest is the request. What comes out passes the door as it is, has
 * the same samples, or those that are kept or counted besides, and learns nothing more from the
 * same spans; processes that wait for theirs wait no longer than until these come. */
#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "src/batch.h"
#include "src/buffer.h"
#include "src/error.h"
#include "src/join/join_store.h"
#include "src/join/profile_awaits.h"
#include "src/join/profile_copies.h"
#include "src/join/profile_enrich.h"
#include "src/join/profile_keep.h"
#include "src/mem.h"
#include "src/otlp/profile_door.h"
#include "tests/support/random_otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct join_store *make_store(uint8_t settings)
{
    static const struct join_settings made = {
        .attributes = {{JOIN_SPAN_NAME, {(const uint8_t *)"span_name", 9}},
                       {JOIN_STATUS_CLASS, {(const uint8_t *)"k", 1}},
                       {JOIN_DURATION_BUCKET, {(const uint8_t *)"duration_bucket", 15}}},
        .attributes_count = 3,
        .buckets_ns = {100},
        .bucket_texts = {"100ns"},
        .buckets_count = 1,
        .values_max = 2,
        .index_entries = 100,
        .index_bytes = SPAN_SHARD_BYTES_MIN,
        .mark = JOIN_MARK_OBSERVED,
        .repairs_identity = true,
        .hold_ns = 1,
    };
    struct join_settings wanted = made;
    wanted.takes_root = (settings & 1) != 0;
    wanted.uses_window = (settings & 2) != 0;
    wanted.finds_lone_traces = (settings & 8) != 0;
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
static void learn_times(struct join_store *store, const struct profile_links *links, uint8_t which)
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

/* That of the next link, or of none. */
static uint64_t parent_of(const struct profile_links *links, uint32_t link)
{
    return link + 1 < links->keys.count ? links->links[link + 1].key.span
                                        : links->links[link].key.span + 1;
}

/* Each process has a span, and so one trace. */
static void learn_processes(struct join_store *store, const struct profile_links *links)
{
    struct wire_reader reader = wire_reader_of(links->from.request);
    const struct span_facts span = {.trace = {3, 4}, .span = 5, .parent = 6};
    struct profile_resource resource;
    while (store->settings.finds_lone_traces && profile_next_resource(&reader, &resource)) {
        if (resource.resource.data == NULL)
            continue;
        struct resource_facts facts = resource_facts_of(resource.resource);
        struct lone_keys keys = lone_traces_begin(&store->lone, &facts, 1);
        if (keys.count > 0)
            lone_traces_note(&store->lone, &keys, &span, 1);
    }
}

/* Every span whose number has a bit in common with `which` is known; odd ones have a parent. */
static void learn(struct join_store *store, const struct profile_links *links, uint8_t which)
{
    struct fact_text text;
    struct fact_log *log = span_index_log(&store->index, 0);
    for (uint32_t i = 1; i < links->keys.count; i++) {
        const struct link_key *key = &links->links[i].key;
        struct span_facts facts = {.trace = {key->trace[0] | 1, key->trace[1]},
                                   .span = key->span,
                                   .parent = i % 2 != 0 ? parent_of(links, i) : 0,
                                   .end_ns = i,
                                   .flags = i % 2 != 0 ? 0 : SPAN_IS_LOCAL_ROOT};
        if (key->has_trace)
            facts.trace[0] = key->trace[0];
        if ((i & which) == 0)
            continue;
        fact_text_begin(&text);
        fact_text_add_number(&text, fact_log_put(log, &text, FACT_KEEP_HALF));
        fact_text_add(&text, "name", 1 + i % 4, 100);
        facts.texts = fact_log_put(log, &text, FACT_KEEP_HALF);
        span_index_add(&store->index, 0, &facts);
    }
    learn_times(store, links, which);
    learn_processes(store, links);
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
static struct buffer *enrich(struct join_store *store, struct batch *batch, const uint8_t *which,
                             uint64_t *ret_enriched)
{
    struct profile_enricher enricher;
    struct enrich_figures figures;
    profile_enricher_init(&enricher, store, NULL);
    bool is_open = profile_links_open(&enricher.links, batch->parts[0].bytes, 1);
    assert(is_open);
    if (which != NULL)
        learn(store, &enricher.links, *which);
    profile_links_resolve(&enricher.links);
    struct batch *enriched = profile_enrich(&enricher, batch, 1, &figures);
    struct slice bytes = joined_parts(enriched);
    struct buffer *buffer = buffer_of(bytes);
    *ret_enriched = figures.enriched_samples;
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(enriched);
    profile_enricher_fini(&enricher);
    return buffer;
}

/* The request as the door lets it pass, which it must do as it is when `is_ours`. */
static bool pass(struct buffer *buffer, bool is_ours, struct profile_passed *ret_passed)
{
    enum profile_layout layout = is_ours ? LAYOUT_1_10 : PROFILE_LAYOUTS;
    if (profile_door(buffer, buffer_slice(buffer), layout, NULL, ret_passed) != PROFILES_TAKEN) {
        assert(!is_ours);
        return false;
    }
    assert(!is_ours || ret_passed->rejected_samples == 0);
    return true;
}

/* What keep leaves passes the door as it is, and has as many samples as it says. */
static void check_keep(struct join_store *store, struct batch *batch, uint8_t which)
{
    const struct keep_rules rules = {.slow_ns = (uint64_t)1 + which % 8,
                                     .keeps_unlinked = (which & 8) != 0};
    struct profile_links links;
    struct profile_passed passed;
    profile_links_init(&links, store, NULL);
    bool is_open = profile_links_open(&links, batch->parts[0].bytes, 1);
    assert(is_open);
    profile_links_resolve(&links);
    struct batch *kept = profile_keep(&links, batch, &rules, NULL);
    assert(kept->items <= batch->items);
    if (kept->items > 0) {
        assert(kept->parts_count == 1);
        struct buffer *buffer = buffer_of(kept->parts[0].bytes);
        bool is_fine = pass(buffer, true, &passed);
        assert(is_fine);
        assert(passed.samples == kept->items);
        buffer_unref(passed.owner);
        buffer_unref(buffer);
    }
    batch_unref(kept);
    profile_links_fini(&links);
}

/* Copies pass the door as they are, and are as many as it is said. */
static void check_copies(struct join_store *store, struct batch *batch)
{
    struct profile_links links;
    struct profile_passed passed;
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
    bool is_fine = pass(buffer, true, &passed);
    assert(is_fine);
    assert(passed.samples == copied->items);
    mem_free((void *)(uintptr_t)bytes.data);
    buffer_unref(passed.owner);
    buffer_unref(buffer);
    batch_unref(copied);
    profile_links_fini(&links);
}

/* Before any span has come, and after. */
static void check_awaits(struct join_store *store, struct batch *batch)
{
    struct profile_awaits awaits = {.items = NULL};
    struct profile_links links;
    profile_links_init(&links, store, NULL);
    bool is_open = profile_links_open(&links, batch->parts[0].bytes, 1);
    assert(is_open);
    profile_awaits_collect(&awaits, &links, 1);
    uint32_t count = awaits.count;
    assert(count <= JOIN_AWAITED_MAX);
    bool is_over = profile_awaits_are_over(&awaits, store, 1);
    assert(is_over == (count == 0) && awaits.count == count);
    profile_awaits_fini(&awaits);
    profile_links_fini(&links);
}

static void check(struct buffer *input, uint8_t which)
{
    struct profile_passed passed;
    struct profile_passed again;
    uint64_t enriched;
    if (!pass(input, false, &passed))
        return;
    if (passed.profiles > 0) { /* else nobody passes it on */
        struct join_store *store = make_store(which);
        struct batch *batch = batch_of(passed.owner, passed.request, passed.samples);
        check_awaits(store, batch);
        struct buffer *first = enrich(store, batch, &which, &enriched);
        check_keep(store, batch, which);
        check_copies(store, batch);
        batch_unref(batch);
        bool is_fine = pass(first, true, &again);
        assert(is_fine);
        assert(again.samples == passed.samples);
        batch = batch_of(again.owner, again.request, again.samples);
        struct buffer *second = enrich(store, batch, NULL, &enriched);
        assert(enriched == 0);
        buffer_unref(second);
        batch_unref(batch);
        buffer_unref(again.owner);
        buffer_unref(first);
        join_store_destroy(store);
    }
    buffer_unref(passed.owner);
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
