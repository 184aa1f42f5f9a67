/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the join's profiles side: reading links, looking them up, writing attributes
 * into every sample; and the same with samples that count for local roots and ancestors, too.
 * Arguments: samples per request, spans that they name, spans in the index. Prints the best of
 * several runs, in ns of processor time per byte that came in. Between two runs other memory is
 * read, so that the index is not in the caches, as in a daemon that has other things to do. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_enrich.h"
#include "src/profiles/otlp/profile_bytes.h"

enum {
    SAMPLES = 5000,
    SPANS = 200,
    INDEXED = 50000,
    STACKS = 3000,
    DEPTH = 25,
    FUNCTIONS = 3000,
    TYPE = FUNCTIONS + 1, /* strings behind those of the functions: cpu, nanoseconds */
    CHAIN = 4,            /* spans of a trace, each the parent of the next */
    RUNS = 25
};
enum { ROOM = 256, CACHES = 32 << 20, CACHE_LINE = 64 };

static uint64_t state = 1;

static uint64_t below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

/* The trace and the span of a number; the numbers that requests name are spread over the index. */
static void make_ids(uint64_t number, uint64_t ret_ids[3])
{
    assert(number > 0);
    ret_ids[0] = ((number - 1) / CHAIN + 1) * 0x9e3779b97f4a7c15u;
    ret_ids[1] = 7;
    ret_ids[2] = number * 0xbf58476d1ce4e5b9u;
}

static void put_links(struct profile_bytes *out, uint64_t spans, uint64_t indexed)
{
    for (uint64_t i = 0; i < spans; i++) {
        uint64_t ids[3];
        size_t link = out->size;
        make_ids(1 + i * (indexed / spans), ids);
        profile_bytes_field(out, 1, slice_of(ids, 2 * sizeof(ids[0])));
        profile_bytes_field(out, 2, slice_of(&ids[2], sizeof(ids[2])));
        profile_bytes_wrap(out, link, 4);
    }
}

static void put_dictionary(struct profile_bytes *out, uint64_t spans, uint64_t indexed)
{
    char text[ROOM];
    size_t begin = out->size;
    for (uint32_t table = 1; table <= PROFILE_TABLES; table++)
        profile_bytes_wrap(out, out->size, table);
    for (uint64_t i = 1; i <= FUNCTIONS; i++) {
        snprintf(text, sizeof(text), "com.example.service.SomeClass.method_%u", (unsigned)i);
        profile_bytes_field(out, 5, slice_of_text(text));
        size_t function = out->size;
        profile_bytes_number(out, 1, i);
        profile_bytes_wrap(out, function, 3);
        size_t location = out->size;
        profile_bytes_number(out, 2, 0x400000 + i * 64);
        size_t line = out->size;
        profile_bytes_number(out, 1, i);
        profile_bytes_wrap(out, line, 3);
        profile_bytes_wrap(out, location, 2);
    }
    profile_bytes_field(out, 5, slice_of_text("cpu"));
    profile_bytes_field(out, 5, slice_of_text("nanoseconds"));
    put_links(out, spans, indexed);
    for (unsigned i = 0; i < STACKS; i++) {
        size_t stack = out->size;
        for (unsigned depth = 0; depth < DEPTH; depth++) {
            uint8_t *at = profile_bytes_room(out, ROOM);
            out->size += (size_t)(profile_put_varint(at, 1 + below(FUNCTIONS)) - at);
        }
        profile_bytes_wrap(out, stack, 1);
        profile_bytes_wrap(out, stack, 7);
    }
    profile_bytes_wrap(out, begin, 2);
}

static struct batch *make_request(uint64_t samples, uint64_t spans, uint64_t indexed)
{
    struct profile_bytes out = {0};
    profile_bytes_number(&out, 1, TYPE);
    profile_bytes_number(&out, 2, TYPE + 1);
    profile_bytes_wrap(&out, 0, 1);
    for (uint64_t i = 0; i < samples; i++) {
        size_t begin = out.size;
        profile_bytes_number(&out, 1, 1 + below(STACKS - 1));
        profile_bytes_number(&out, 3, 1 + below(spans));
        profile_bytes_field(&out, 4, slice_of("\5", 1));
        profile_bytes_field(&out, 5, slice_of("\1\2\3\4\5\6\7\7", 8));
        profile_bytes_wrap(&out, begin, 2);
    }
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 1);
    put_dictionary(&out, spans, indexed);
    struct buffer *buffer = buffer_create(NULL, out.size);
    struct batch *batch = batch_create(PROFILES, 1);
    memcpy(buffer->data, out.data, out.size);
    buffer->size = out.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = samples;
    buffer_unref(buffer);
    profile_bytes_fini(&out);
    return batch;
}

static void index_spans(struct join_store *store, uint64_t spans)
{
    struct string_record text;
    struct string_ring *log = span_index_ring(&store->index, 0);
    for (uint64_t i = 1; i <= spans; i++) {
        uint64_t ids[3];
        make_ids(i, ids);
        struct span_facts facts = {.trace = {ids[0], ids[1]}, .span = ids[2]};
        if (i % CHAIN == 1) {
            facts.flags = SPAN_IS_LOCAL_ROOT;
        } else {
            make_ids(i - 1, ids);
            facts.parent = ids[2];
        }
        string_record_begin(&text);
        string_record_add_number(&text, string_ring_put(log, &text, STRING_KEEP_HALF));
        string_record_add(&text, "GET /api/v1/orders/{id}", 10 + i % 13, JOIN_VALUE_BYTES_MAX);
        facts.strings = string_ring_put(log, &text, STRING_KEEP_HALF);
        span_index_add(&store->index, 0, &facts);
    }
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_join(struct join_store *store, struct batch *batch, double *ret_look_up_ns)
{
    struct profile_enricher enricher;
    struct enrich_figures figures;
    double begin = cpu_ns();
    profile_enricher_init(&enricher, store, NULL);
    bool is_open = profile_links_open(&enricher.links, batch->parts[0].bytes, 1);
    assert(is_open);
    profile_links_resolve(&enricher.links);
    *ret_look_up_ns = cpu_ns() - begin;
    struct batch *enriched = profile_enrich(&enricher, batch, 1, &figures);
    assert(figures.enriched_samples == batch->items);
    batch_unref(enriched);
    profile_enricher_fini(&enricher);
    return cpu_ns() - begin;
}

/* As finish() of the trace_profile_join processor does it. */
static double time_counted(struct join_store *store, struct batch *batch, double *ret_factor)
{
    struct profile_enricher enricher;
    struct copies_figures copies;
    struct enrich_figures figures;
    double begin = cpu_ns();
    profile_enricher_init(&enricher, store, NULL);
    bool is_open = profile_links_open(&enricher.links, batch->parts[0].bytes, 1);
    assert(is_open);
    profile_links_resolve(&enricher.links);
    struct batch *copied = profile_copies_add(&enricher.links, batch, NULL, &copies);
    assert(copies.made > 0 && copies.left_out == 0);
    struct batch *whole = batch_in_one_part(copied, NULL);
    is_open = profile_links_open(&enricher.links, whole->parts[0].bytes, 1);
    assert(is_open);
    profile_links_resolve(&enricher.links);
    struct batch *enriched = profile_enrich(&enricher, whole, 1, &figures);
    assert(figures.enriched_samples == whole->items);
    *ret_factor = (double)enriched->bytes / (double)batch->bytes;
    batch_unref(enriched);
    batch_unref(whole);
    batch_unref(copied);
    profile_enricher_fini(&enricher);
    return cpu_ns() - begin;
}

/* The sum, so that the reading cannot be left out. */
static uint64_t read_other_memory(const uint8_t *memory)
{
    uint64_t sum = 0;
    assert(memory != NULL);
    for (size_t i = 0; i < CACHES; i += CACHE_LINE)
        sum += memory[i];
    return sum;
}

int main(int count, char **arguments)
{
    static const struct join_settings settings = {
        /* the defaults */
        .attributes = {{JOIN_SPAN_NAME, {(const uint8_t *)"span_name", 9}}},
        .attributes_count = 1,
        .values_max = 1000,
        .repairs_identity = true,
        .finds_single_traces = true,
        .mark = JOIN_MARK_LOCAL_ROOTS,
        .index_entries = 200000,
        .index_bytes = 32 * MIB,
    };
    uint64_t samples = count > 1 ? strtoull(arguments[1], NULL, 10) : SAMPLES;
    uint64_t spans = count > 2 ? strtoull(arguments[2], NULL, 10) : SPANS;
    uint64_t indexed = count > 3 ? strtoull(arguments[3], NULL, 10) : INDEXED;
    struct join_store *store = join_store_create(&settings, 1);
    uint8_t *memory = malloc(CACHES);
    assert(spans > 0 && spans <= indexed);
    struct batch *batch = make_request(samples, spans, indexed);
    uint64_t sum = 0;
    double best[3] = {1e18, 1e18, 1e18};
    double factor = 0;
    assert(store != NULL && memory != NULL);
    memset(memory, 1, CACHES);
    index_spans(store, indexed);
    for (unsigned run = 0; run < RUNS; run++) {
        double look_up;
        sum += read_other_memory(memory);
        double whole = time_join(store, batch, &look_up);
        best[0] = look_up < best[0] ? look_up : best[0];
        best[1] = whole < best[1] ? whole : best[1];
        store->settings.counts_root = true;
        store->settings.counts_ancestors = true;
        sum += read_other_memory(memory);
        double counted = time_counted(store, batch, &factor);
        best[2] = counted < best[2] ? counted : best[2];
        store->settings.counts_root = false;
        store->settings.counts_ancestors = false;
    }
    double bytes = (double)batch->bytes;
    printf("join: %.0f bytes, %.0f B/sample; ns/B: links %.2f, all %.2f; ns/sample: %.1f, %.1f\n",
           bytes, bytes / (double)samples, best[0] / bytes, best[1] / bytes,
           best[0] / (double)samples, best[1] / (double)samples);
    printf("counted for roots and ancestors: ns/B: %.2f; %.2f times the bytes\n", best[2] / bytes,
           factor);
    batch_unref(batch);
    join_store_destroy(store);
    free(memory);
    return sum == 2 * (uint64_t)RUNS * CACHES / CACHE_LINE ? EXIT_SUCCESS : EXIT_FAILURE;
}
