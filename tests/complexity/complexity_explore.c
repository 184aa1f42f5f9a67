/* SPDX-License-Identifier: Apache-2.0 */
/* explore: indexing spans, closing their blocks, and building a trace's waterfall. */
#include <assert.h>

#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/explore/trace_store.h"
#include "src/explore/trace_view.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

enum { SPAN = 2, SCOPE_SPANS = 2, RESOURCE_SPANS = 1 };

/* One of trace `trace`, with the name. */
static void put_span(struct profile_bytes *out, size_t trace, size_t span, const char *name)
{
    char id[17];
    size_t begin = out->size;
    snprintf(id, sizeof(id), "%016zu", trace);
    put_bytes(out, 1, id, 16);
    snprintf(id, sizeof(id), "%08zu", span % 100000000);
    put_bytes(out, 2, id, 8);
    put_text(out, 5, name);
    profile_bytes_wrap(out, begin, SPAN);
}

/* What is written since `begin` becomes a scope's spans; what since 0 a resource's. */
static struct slice end_resource(struct profile_bytes *out, size_t padding)
{
    char *text = mem_zalloc(padding + 1);
    memset(text, 'r', padding);
    size_t resource = out->size;
    put_attribute(out, 1, "service.name", "a");
    put_attribute(out, 1, "padding", text);
    profile_bytes_wrap(out, resource, 1);
    profile_bytes_wrap(out, 0, RESOURCE_SPANS);
    mem_free(text);
    return message_done(out);
}

static struct slice spans_of_one_trace(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, 1, i, "n");
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    return end_resource(&out, 0);
}

static struct slice a_trace_for_each(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, n - i, i, "n");
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    return end_resource(&out, 0);
}

static struct slice a_name_for_each(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_span(&out, 1, i, name_of(name, i));
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    return end_resource(&out, 0);
}

static struct slice one_span_id(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, 1, 1, "n");
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    return end_resource(&out, 0);
}

/* Ids that differ in their last bytes alone, as of programs that count them up: the low bits of the
 * row's number are the same. */
static struct slice span_ids_that_count_up(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        uint8_t id[16] = {1};
        size_t begin = out.size;
        put_bytes(&out, 1, id, 16);
        for (unsigned j = 0; j < 8; j++)
            id[j] = (uint8_t)((i + 1) >> 8 * (7 - j));
        put_bytes(&out, 2, id, 8);
        put_text(&out, 5, "n");
        profile_bytes_wrap(&out, begin, SPAN);
    }
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    return end_resource(&out, 0);
}

/* Each scope repeats the resource's bytes in what it means, not in what it takes. */
static struct slice scopes_of_a_large_resource(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t scope = out.size;
        put_span(&out, 1, i, "n");
        profile_bytes_wrap(&out, scope, SCOPE_SPANS);
    }
    return end_resource(&out, 40 * n);
}

/* Were each block to repeat it, however large it is, each would be one span. */
static struct slice spans_of_a_huge_resource(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, 1, i, "n");
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    return end_resource(&out, 800 * n);
}

/* With the attribute that is searched for as the last one. */
static struct slice attributes_of_a_resource(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++)
        put_span(&out, i + 1, i, "n");
    profile_bytes_wrap(&out, 0, SCOPE_SPANS);
    size_t resource = out.size;
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 1, name_of(name, i), "v");
    put_attribute(&out, 1, "wanted", "v");
    profile_bytes_wrap(&out, resource, 1);
    profile_bytes_wrap(&out, 0, RESOURCE_SPANS);
    return message_done(&out);
}

static struct slice many_resources(size_t n)
{
    struct profile_bytes out = {0};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_span(&out, 1, i, "n");
        profile_bytes_wrap(&out, begin, SCOPE_SPANS);
        size_t resource = out.size;
        put_attribute(&out, 1, "service.name", name_of(name, i));
        profile_bytes_wrap(&out, resource, 1);
        profile_bytes_wrap(&out, begin, RESOURCE_SPANS);
    }
    return message_done(&out);
}

static const struct work_shape shapes[] = {
    {"spans of one trace", spans_of_one_trace},
    {"a trace for each", a_trace_for_each},
    {"a name for each", a_name_for_each},
    {"one span id", one_span_id},
    {"span ids that count up", span_ids_that_count_up},
    {"scopes of a large resource", scopes_of_a_large_resource},
    {"many resources", many_resources},
    {"spans of a huge resource", spans_of_a_huge_resource},
    {"attributes of a resource", attributes_of_a_resource},
};

static void run_index(struct slice request)
{
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    work_begin();
    bool is_added = trace_store_add(&store, request, 1) && trace_store_seal(&store);
    assert(is_added);
    while (trace_store_evict(&store)) {
    }
    work_end();
    trace_store_fini(&store);
}

/* The waterfall of the first trace. */
static void run_view(struct slice request)
{
    struct trace_store store;
    struct trace_view view = {.number = 0};
    struct budget budget;
    struct explore_limit limit = {.end_ns = UINT64_MAX};
    struct span_row *rows = mem_alloc(EXPLORE_OPEN_SPANS_MAX * sizeof(rows[0]));
    budget_init(&budget, UINT64_MAX);
    trace_store_init(&store, CODEC_ZSTD);
    bool is_added = trace_store_add(&store, request, 1);
    assert(is_added);
    work_begin();
    if (store.first < store.next) {
        enum explore_result result =
            trace_view_build(&view, &store, store.first, rows, &budget, &limit);
        assert(result == EXPLORE_DONE);
    }
    work_end();
    trace_view_fini(&view);
    trace_store_fini(&store);
    budget_fini(&budget);
    mem_free(rows);
}

static void run_search(struct slice request)
{
    struct trace_store store;
    struct trace_filter filter = {.max_ns = UINT64_MAX,
                                  .end_ns = UINT64_MAX,
                                  .attributes_count = 1,
                                  .attributes = {{slice_of_text("wanted"), slice_of_text("v")}}};
    struct trace_search search = {.before = UINT64_MAX, .enough = UINT64_MAX};
    struct explore_limit limit = {.end_ns = UINT64_MAX};
    struct trace_matches matches;
    struct span_row *rows = mem_alloc(EXPLORE_OPEN_SPANS_MAX * sizeof(rows[0]));
    trace_store_init(&store, CODEC_ZSTD);
    bool is_added = trace_store_add(&store, request, 1) && trace_store_seal(&store);
    assert(is_added);
    work_begin();
    enum explore_result result = trace_filter_run(&filter, &store, rows, &limit, &search, &matches);
    work_end();
    assert(result == EXPLORE_DONE);
    trace_matches_fini(&matches);
    trace_store_fini(&store);
    mem_free(rows);
}

enum { BYTES_PER_BLOCK = 256, BLOCKS_MAX = 1000 };

/* Each trace has spans in the first block and in the last one, and many blocks are between. */
static void run_evict(struct slice request)
{
    struct trace_store store;
    size_t blocks = request.size / BYTES_PER_BLOCK;
    trace_store_init(&store, CODEC_ZSTD);
    bool is_added = trace_store_add(&store, request, 1) && trace_store_seal(&store);
    for (size_t i = 0; i < (blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX); i++) {
        struct profile_bytes out = {0};
        put_span(&out, 1000000 + i, 1, "n");
        profile_bytes_wrap(&out, 0, SCOPE_SPANS);
        struct slice between = end_resource(&out, 0);
        is_added = is_added && trace_store_add(&store, between, 1) && trace_store_seal(&store);
        mem_free((void *)(uintptr_t)between.data);
    }
    is_added = is_added && trace_store_add(&store, request, 1) && trace_store_seal(&store);
    assert(is_added);
    work_begin();
    while (trace_store_evict(&store)) {
    }
    work_end();
    assert(store.spans == 0 && store.blocks_bytes == 0);
    trace_store_fini(&store);
}

static const struct work_stage stages[] = {
    {.name = "indexing spans", .run = run_index, .per_byte_max = 34},
    {.name = "a waterfall", .run = run_view, .per_byte_max = 28},
    {.name = "searching for an attribute", .run = run_search, .per_byte_max = 20},
    {.name = "evicting traces", .run = run_evict, .per_byte_max = 8},
};

int main(int argc, char **argv)
{
    struct error error;
    if (!codec_prepare(CODEC_ZSTD, &error))
        return 77;
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
