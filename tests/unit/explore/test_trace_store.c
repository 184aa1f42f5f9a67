/* SPDX-License-Identifier: Apache-2.0 */
/* The store against a naive one: after any order of additions, seals and evictions it has the same
 * traces with the same spans, and evicts whole traces, the oldest first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/explore/trace_request.h"
#include "src/explore/trace_store.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/wire.h"
#include "tests/unit/explore/span_request.h"

enum { ROUNDS = 60, STEPS = 120, SPANS_MAX = 40, MODEL_SPANS_MAX = 20000 };

static const char *const services[] = {"a", "cart", "db"};
static const char *const names[] = {"GET /", "query", "op", "x", ""};

/* What the naive store has: all spans that were added and whose trace was not evicted. */
static struct test_span model[MODEL_SPANS_MAX];
static size_t model_count;
static uint64_t order[MODEL_SPANS_MAX]; /* traces by first arrival */
static size_t order_first;
static size_t order_count;

static void model_add(const struct test_span *span)
{
    assert_true(model_count < MODEL_SPANS_MAX);
    size_t i = order_first;
    while (i < order_count && order[i] != span->trace)
        i++;
    if (i == order_count)
        order[order_count++] = span->trace;
    model[model_count++] = *span;
}

static void model_evict(void)
{
    uint64_t trace = order[order_first++];
    size_t kept = 0;
    for (size_t i = 0; i < model_count; i++)
        if (model[i].trace != trace)
            model[kept++] = model[i];
    model_count = kept;
}

static void check_trace(struct trace_store *store, uint64_t number, uint64_t trace)
{
    const struct trace_record *record = trace_store_record(store, number);
    uint8_t id[16];
    uint32_t spans = 0;
    uint32_t errors = 0;
    uint64_t start_ns = UINT64_MAX;
    uint64_t end_ns = 0;
    trace_id_of(trace, id);
    assert_memory_equal(record->id, id, 16);
    assert_int_equal(trace_store_find(store, id), number);
    for (size_t i = 0; i < model_count; i++) {
        if (model[i].trace != trace)
            continue;
        spans++;
        errors += model[i].status == 2;
        uint64_t end = model[i].start_ns + model[i].duration_ns;
        start_ns = model[i].start_ns < start_ns ? model[i].start_ns : start_ns;
        end_ns = end > end_ns ? end : end_ns;
    }
    assert_int_equal(record->spans, spans);
    assert_int_equal(record->errors, errors);
    assert_int_equal(record->start_ns, start_ns);
    assert_int_equal(record->end_ns, end_ns);
}

static const struct test_span *model_find(uint64_t trace, uint64_t span_id)
{
    for (size_t i = 0; i < model_count; i++)
        if (model[i].trace == trace && row_span_id_of(model[i].span) == span_id)
            return &model[i];
    return NULL;
}

/* All rows of the live traces, with their bytes, are the model's spans. */
static void check_rows(struct trace_store *store)
{
    static struct span_row rows[EXPLORE_OPEN_SPANS_MAX];
    size_t seen = 0;
    uint64_t before = 0;
    for (size_t at = 0; at < trace_store_blocks(store); at++) {
        struct block_view view = trace_store_block(store, at);
        assert_true(trace_store_rows(store, &view, rows));
        struct buffer *bodies = trace_store_bodies(store, &view);
        assert_non_null(bodies);
        for (uint32_t i = 0; i < view.spans; i++) {
            const struct span_row *row = &rows[i];
            if (i > 0)
                assert_true(row->trace >= before);
            before = row->trace;
            if (row->trace < store->first)
                continue;
            uint32_t first, end;
            assert_true(block_view_find(&view, row->trace, &first, &end));
            assert_true(i >= first && i < end);
            const struct test_span *span =
                model_find(order[order_first + (row->trace - store->first)], row->span_id);
            assert_non_null(span);
            assert_int_equal(row->parent_id, span->parent != 0 ? row_span_id_of(span->parent) : 0);
            assert_int_equal(row->start_ns, span->start_ns);
            assert_int_equal(row->duration_ns, span->duration_ns);
            assert_int_equal(row->status, span->status);
            assert_int_equal(row->events, span->events);
            assert_true(
                slice_equal_text(string_table_at(&store->strings, row->service), span->service));
            assert_true(slice_equal_text(string_table_at(&store->strings, row->name), span->name));
            assert_true(row->name == 0 || block_view_has_string(store, &view, row->name));
            struct buffer *expected = span_request(span, 1);
            /* The span is the last message of the request of one. */
            assert_true(expected->size > row->size);
            assert_memory_equal(bodies->data + row->offset,
                                expected->data + expected->size - row->size, row->size);
            struct span_context context =
                trace_store_context(store, &view, buffer_slice(bodies), row->context);
            assert_non_null(memmem(context.resource.data, context.resource.size, span->service,
                                   strlen(span->service)));
            buffer_unref(expected);
            seen++;
        }
        buffer_unref(bodies);
    }
    assert_int_equal(seen, model_count);
    assert_int_equal(store->spans, model_count);
}

static void agrees_with_a_naive_store(void **state)
{
    (void)state;
    struct error error;
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct trace_store store;
        uint64_t next_span = 1;
        srandom(round + 1);
        trace_store_init(&store, CODEC_ZSTD);
        model_count = order_first = order_count = 0;
        unsigned traces = 1 + (unsigned)random() % 60;
        for (unsigned step = 0; step < STEPS; step++) {
            unsigned what = (unsigned)random() % 10;
            if (what < 6) {
                struct test_span spans[SPANS_MAX];
                size_t count = 1 + (size_t)random() % SPANS_MAX;
                for (size_t i = 0; i < count; i++) {
                    const uint64_t span = next_span++;
                    spans[i] = (struct test_span){
                        .trace = 1 + (uint64_t)random() % traces + step / 20 * 7,
                        .span = span,
                        .parent = random() % 3 == 0 ? 0 : 1 + (uint64_t)random() % next_span,
                        .service = services[random() % 3],
                        .name = names[random() % 5],
                        .start_ns = 1000000000 + (uint64_t)random() % 1000000,
                        .duration_ns = (uint64_t)random() % 100000,
                        .status = (uint8_t)(random() % 3),
                        .events = (unsigned)random() % 4,
                    };
                }
                struct buffer *request = span_request(spans, count);
                assert_true(trace_store_add(&store, buffer_slice(request), step));
                buffer_unref(request);
                for (size_t i = 0; i < count; i++)
                    model_add(&spans[i]);
            } else if (what < 8) {
                assert_int_equal(trace_store_evict(&store), order_first < order_count);
                if (order_first < order_count)
                    model_evict();
            } else {
                assert_true(trace_store_seal(&store));
            }
            assert_int_equal(store.next - store.first, order_count - order_first);
            for (size_t i = order_first; i < order_count; i++)
                check_trace(&store, store.first + (i - order_first), order[i]);
            if (step % 8 == 0)
                check_rows(&store);
        }
        check_rows(&store);
        while (trace_store_evict(&store)) {
        }
        assert_int_equal(store.spans, 0);
        assert_int_equal(store.blocks_bytes, 0);
        assert_int_equal(store.strings.live, 0);
        trace_store_fini(&store);
    }
}

/* Many traces through a small limit: memory stays below it, and what is left is the newest. */
static void keeps_a_limit_of_bytes(void **state)
{
    (void)state;
    enum { LIMIT = 8 << 20, TRACES = 30000 };
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    for (uint64_t trace = 1; trace <= TRACES; trace++) {
        struct test_span spans[3];
        for (uint64_t i = 0; i < 3; i++)
            spans[i] = (struct test_span){.trace = trace,
                                          .span = trace * 4 + i,
                                          .parent = i > 0 ? trace * 4 : 0,
                                          .service = services[i],
                                          .name = names[i],
                                          .start_ns = trace * 1000 + i,
                                          .duration_ns = 100,
                                          .padding = 300};
        struct buffer *request = span_request(spans, 3);
        assert_true(trace_store_add(&store, buffer_slice(request), trace));
        buffer_unref(request);
        while (trace_store_bytes(&store) > LIMIT)
            assert_true(trace_store_evict(&store));
    }
    uint64_t kept = store.next - store.first;
    assert_true(store.evicted_traces > 0);
    assert_int_equal(kept + store.evicted_traces, TRACES);
    /* 900 bytes of noise for each trace, 30 % of which is left after compression at worst. */
    assert_true(kept > LIMIT / 1300);
    for (uint64_t number = store.first; number < store.next; number++) {
        uint8_t id[16];
        trace_id_of(number, id); /* numbers begin at 1, as these traces do */
        assert_memory_equal(trace_store_record(&store, number)->id, id, 16);
        assert_int_equal(trace_store_record(&store, number)->spans, 3);
    }
    trace_store_fini(&store);
}

/* One trace larger than the limit leaves nothing behind, not even in the middle of it. */
static void evicts_a_trace_that_is_too_large(void **state)
{
    (void)state;
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    for (uint64_t i = 0; i < 200; i++) {
        struct test_span span = {.trace = 1,
                                 .span = i + 1,
                                 .service = "a",
                                 .name = "large",
                                 .start_ns = 5,
                                 .padding = 60000};
        struct buffer *request = span_request(&span, 1);
        assert_true(trace_store_add(&store, buffer_slice(request), i));
        buffer_unref(request);
        while (trace_store_bytes(&store) > (6 << 20) && trace_store_evict(&store)) {
        }
        assert_true(trace_store_bytes(&store) <= (6 << 20));
    }
    assert_true(store.evicted_traces > 0);
    trace_store_fini(&store);
}

static void passes_over_spans_without_a_trace(void **state)
{
    (void)state;
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    /* ResourceSpans { ScopeSpans { Span { name: "x" } } }, without a trace id. */
    static const uint8_t bytes[] = {0x0a, 7, 0x12, 5, 0x12, 3, 0x2a, 1, 'x'};
    assert_true(trace_store_add(&store, slice_of(bytes, sizeof(bytes)), 1));
    assert_int_equal(store.next, store.first);
    assert_int_equal(store.spans, 0);
    trace_store_fini(&store);
}

enum { SHARING = 400, LIMIT_BYTES = 8 << 20 };

/* A request whose resource has so many bytes beside its name, and spans of traces of their own. */
static struct buffer *request_of_resource(size_t bytes, unsigned count, unsigned padding)
{
    struct test_span *spans = mem_zalloc(count * sizeof(spans[0]));
    char *service = mem_alloc(bytes + 1);
    memset(service, 's', bytes);
    service[bytes] = '\0';
    for (unsigned i = 0; i < count; i++)
        spans[i] = (struct test_span){.trace = 1 + i,
                                      .span = 1 + i,
                                      .service = service,
                                      .name = "n",
                                      .start_ns = 1000,
                                      .padding = padding};
    struct buffer *request = span_request(spans, count);
    mem_free(service);
    mem_free(spans);
    return request;
}

/* What spans share is in each block again: it may be part of a block, but not most of it. */
static void a_large_resource_does_not_become_a_block_for_each_span(void **state)
{
    (void)state;
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    struct buffer *request = request_of_resource(EXPLORE_CONTEXT_BYTES_MAX, SHARING, 0);
    assert_true(trace_store_add(&store, buffer_slice(request), 1));
    assert_int_equal(store.too_large, SHARING);
    assert_int_equal(store.spans, 0);
    assert_int_equal(trace_store_blocks(&store), 0);
    buffer_unref(request);
    /* With a little less it is kept, in blocks with as many spans as fit beside it. */
    request = request_of_resource(EXPLORE_CONTEXT_BYTES_MAX - 64, SHARING, 10000);
    assert_true(trace_store_add(&store, buffer_slice(request), 1));
    assert_int_equal(store.too_large, SHARING);
    assert_int_equal(store.spans, SHARING);
    assert_in_range(trace_store_blocks(&store), 5, 7);
    for (size_t at = 0; at + 1 < trace_store_blocks(&store); at++) {
        struct block_view view = trace_store_block(&store, at);
        assert_in_range(view.block->bodies_raw, EXPLORE_OPEN_BYTES_MAX - 20000,
                        EXPLORE_OPEN_BYTES_MAX + 64);
        struct buffer *bodies = trace_store_bodies(&store, &view);
        struct span_context context = trace_store_context(&store, &view, buffer_slice(bodies), 0);
        assert_non_null(memmem(request->data, EXPLORE_OPEN_BYTES_MAX, context.resource.data,
                               context.resource.size));
        assert_in_range(context.resource.size, EXPLORE_CONTEXT_BYTES_MAX - 64,
                        EXPLORE_CONTEXT_BYTES_MAX);
        buffer_unref(bodies);
    }
    buffer_unref(request);
    trace_store_fini(&store);
}

/* Adds the request's only resource, with a schema_url in its scope behind the spans. */
static void add_with_url(struct trace_store *store, const struct buffer *request, struct slice url)
{
    struct nested_output output = {.budget = NULL};
    struct wire_reader requests = wire_reader_of(buffer_slice(request));
    struct wire_field whole, field;
    assert_true(wire_next_field(&requests, &whole));
    struct wire_reader reader = wire_reader_of(whole.bytes);
    struct nested_message resource = nested_put_begin(&output, 1, 4);
    while (wire_next_field(&reader, &field)) {
        if (field.number != 2) {
            nested_put_raw(&output, field.whole);
            continue;
        }
        struct nested_message scope = nested_put_begin(&output, 2, 3);
        nested_put_raw(&output, field.bytes);
        nested_put_bytes(&output, 3, url);
        nested_put_end(&output, scope);
    }
    nested_put_end(&output, resource);
    assert_true(trace_store_add(store, buffer_slice(output.buffer), 1));
    nested_output_fini(&output);
}

/* Two resources that take turns, each time with another scope, would be in the block as often. */
static void resources_that_take_turns_do_not_swell_a_block(void **state)
{
    (void)state;
    enum { TURNS = 64, RESOURCE = 100000 };
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    struct buffer *requests[2];
    for (size_t i = 0; i < 2; i++)
        requests[i] = request_of_resource(RESOURCE + i, 1, 0);
    for (size_t turn = 0; turn < TURNS; turn++) {
        char url[32];
        snprintf(url, sizeof(url), "scope %zu", turn);
        add_with_url(&store, requests[turn % 2], slice_of_text(url));
    }
    assert_int_equal(store.spans, TURNS);
    assert_true(trace_store_seal(&store));
    for (size_t at = 0; at < trace_store_blocks(&store); at++)
        assert_in_range(trace_store_block(&store, at).block->bodies_raw, RESOURCE,
                        EXPLORE_OPEN_BYTES_MAX + RESOURCE);
    for (size_t i = 0; i < 2; i++)
        buffer_unref(requests[i]);
    trace_store_fini(&store);
}

/* Each block of one scope's spans has the fields of both messages. */
static void all_blocks_have_the_resource_and_the_scope(void **state)
{
    (void)state;
    enum { RESOURCE = 50000, URL = 70000 };
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    struct buffer *request = request_of_resource(RESOURCE, SHARING, 10000);
    char *url = mem_alloc(URL);
    for (size_t i = 0; i < URL; i++)
        url[i] = (char)('a' + i * i % 23);
    /* They do not begin a block at first. */
    struct buffer *before = request_of_resource(RESOURCE / 2, 1, 0);
    assert_true(trace_store_add(&store, buffer_slice(before), 1));
    buffer_unref(before);
    add_with_url(&store, request, slice_of(url, URL));
    assert_int_equal(store.spans, 1 + SHARING);
    assert_true(trace_store_blocks(&store) > 3);
    for (size_t at = 0; at < trace_store_blocks(&store); at++) {
        struct block_view view = trace_store_block(&store, at);
        struct buffer *bodies = trace_store_bodies(&store, &view);
        struct span_context context =
            trace_store_context(&store, &view, buffer_slice(bodies), at == 0 ? 1 : 0);
        assert_in_range(context.resource.size, RESOURCE, RESOURCE + 64);
        assert_non_null(memmem(request->data, EXPLORE_OPEN_BYTES_MAX, context.resource.data,
                               context.resource.size));
        assert_in_range(context.scope.size, URL, URL + 8);
        assert_memory_equal(context.scope.data + context.scope.size - URL, url, URL);
        buffer_unref(bodies);
    }
    mem_free(url);
    buffer_unref(request);
    trace_store_fini(&store);
}

enum { PAIRS = 200, SHARED = 200 * 1000 };

/* The spans of each trace have one of two large resources each: as a request, too, the block has
 * these once. */
static void a_block_as_a_request_is_not_much_larger(void **state)
{
    (void)state;
    static struct test_span spans[2 * PAIRS];
    static struct span_row rows[EXPLORE_OPEN_SPANS_MAX];
    struct nested_output output = {.budget = NULL};
    char *service[2];
    for (size_t i = 0; i < 2; i++) {
        service[i] = mem_alloc(SHARED + 1);
        memset(service[i], 'a' + (int)i, SHARED);
        service[i][SHARED] = '\0';
    }
    for (size_t i = 0; i < 2 * PAIRS; i++)
        spans[i] = (struct test_span){.trace = 1 + i % PAIRS,
                                      .span = 1 + i,
                                      .service = service[i / PAIRS],
                                      .name = "n",
                                      .start_ns = 1000 + i};
    struct buffer *request = span_request(spans, 2 * PAIRS);
    struct trace_store store[2];
    trace_store_init(&store[0], CODEC_ZSTD);
    trace_store_init(&store[1], CODEC_ZSTD);
    assert_true(trace_store_add(&store[0], buffer_slice(request), 1));
    assert_int_equal(trace_store_blocks(&store[0]), 1);
    struct block_view view = trace_store_block(&store[0], 0);
    struct buffer *bodies = trace_store_bodies(&store[0], &view);
    assert_true(trace_store_rows(&store[0], &view, rows));
    assert_true(
        trace_request_put(&output, &store[0], &view, buffer_slice(bodies), rows, 0, view.spans));
    buffer_unref(bodies);
    assert_in_range(nested_output_size(&output), 2 * SHARED, request->size + 64);
    assert_true(trace_store_add(&store[1], buffer_slice(output.buffer), 1));
    assert_int_equal(store[1].spans, 2 * PAIRS);
    assert_int_equal(store[1].next, store[0].next);
    assert_int_equal(store[1].contexts_count, 2);
    nested_output_fini(&output);
    for (size_t i = 0; i < 2; i++) {
        trace_store_fini(&store[i]);
        mem_free(service[i]);
    }
    buffer_unref(request);
}

/* A request of one span: a resource with an attribute of so many bytes (0: none), a scope of that
 * name (NULL: none). */
static struct buffer *request_of_scope(uint64_t trace, size_t resource_bytes, const char *scope)
{
    struct nested_output output = {.budget = NULL};
    char *text = mem_zalloc(resource_bytes + 1);
    uint8_t id[16];
    trace_id_of(trace, id);
    struct nested_message resource_spans = nested_put_begin(&output, 1, 3);
    if (resource_bytes > 0) {
        struct nested_message resource = nested_put_begin(&output, 1, 3);
        nested_put_bytes(&output, 1, slice_of(text, resource_bytes));
        nested_put_end(&output, resource);
    }
    struct nested_message scope_spans = nested_put_begin(&output, 2, 1);
    if (scope != NULL)
        nested_put_bytes(&output, 1, slice_of_text(scope));
    struct nested_message span = nested_put_begin(&output, 2, 1);
    nested_put_bytes(&output, 1, slice_of(id, 16));
    nested_put_bytes(&output, 2, slice_of(id + 8, 8));
    nested_put_end(&output, span);
    nested_put_end(&output, scope_spans);
    nested_put_end(&output, resource_spans);
    struct buffer *request = buffer_create(NULL, output.buffer->size);
    memcpy(request->data, output.buffer->data, output.buffer->size);
    request->size = output.buffer->size;
    nested_output_fini(&output);
    mem_free(text);
    return request;
}

/* A resource that is not there has no bytes, and begins where the next one does: taking turns with
 * it, that one is in the block each time. */
static void a_block_is_as_large_as_it_counts(void **state)
{
    (void)state;
    struct trace_store store;
    char scope[32];
    trace_store_init(&store, CODEC_ZSTD);
    for (unsigned i = 0; i < PAIRS; i++) {
        snprintf(scope, sizeof(scope), "s%u", i);
        struct buffer *none = request_of_scope(1 + i, 0, i > 0 ? scope : NULL);
        struct buffer *large = request_of_scope(1 + i, SHARED, scope);
        assert_true(trace_store_add(&store, buffer_slice(none), 1));
        assert_true(trace_store_add(&store, buffer_slice(large), 1));
        buffer_unref(none);
        buffer_unref(large);
    }
    assert_true(trace_store_seal(&store));
    for (size_t i = 0; i < trace_store_blocks(&store); i++)
        assert_in_range(trace_store_block(&store, i).block->bodies_raw, 1,
                        2 * EXPLORE_OPEN_BYTES_MAX);
    trace_store_fini(&store);
}

/* What a request is written of gives each span its own resource. */
static void spans_without_a_resource_get_no_other(void **state)
{
    (void)state;
    static struct span_row rows[EXPLORE_OPEN_SPANS_MAX];
    struct nested_output output = {.budget = NULL};
    struct buffer *none = request_of_scope(1, 0, NULL);
    struct buffer *large = request_of_scope(2, SHARED, NULL);
    struct trace_store store;
    uint64_t found = 0;
    trace_store_init(&store, CODEC_ZSTD);
    for (uint64_t i = 0; i < PAIRS; i++) {
        trace_id_of(1 + i, none->data + none->size - 26);
        trace_id_of(1 + i, large->data + large->size - 26);
        assert_true(trace_store_add(&store, buffer_slice(none), 1));
        assert_true(trace_store_add(&store, buffer_slice(large), 1));
    }
    assert_int_equal(store.next, 1 + PAIRS);
    assert_int_equal(trace_store_blocks(&store), 1);
    struct block_view view = trace_store_block(&store, 0);
    struct buffer *bodies = trace_store_bodies(&store, &view);
    assert_true(trace_store_rows(&store, &view, rows));
    assert_true(
        trace_request_put(&output, &store, &view, buffer_slice(bodies), rows, 0, view.spans));
    struct wire_reader reader = wire_reader_of(buffer_slice(output.buffer));
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        struct wire_reader inner = wire_reader_of(field.bytes);
        struct wire_field part;
        bool has_resource = false;
        while (wire_next_field(&inner, &part)) {
            has_resource |= part.number == 1;
            struct wire_reader scope = wire_reader_of(part.bytes);
            struct wire_field span;
            while (part.number == 2 && wire_next_field(&scope, &span))
                found += has_resource;
        }
    }
    assert_int_equal(found, PAIRS);
    nested_output_fini(&output);
    buffer_unref(bodies);
    buffer_unref(none);
    buffer_unref(large);
    trace_store_fini(&store);
}

/* Its room is not that of spans to come. */
static void a_large_span_leaves_no_room_behind(void **state)
{
    (void)state;
    enum { SMALL = 100, KEPT_MAX = 512 * 1024 };
    struct trace_store store;
    struct nested_output output = {.budget = NULL};
    uint8_t *text = mem_zalloc(EXPLORE_SPAN_BYTES_MAX);
    uint8_t id[16];
    trace_id_of(1, id);
    struct nested_message resource_spans = nested_put_begin(&output, 1, 4);
    struct nested_message scope_spans = nested_put_begin(&output, 2, 4);
    struct nested_message span = nested_put_begin(&output, 2, 4);
    nested_put_bytes(&output, 1, slice_of(id, 16));
    nested_put_bytes(&output, 3, slice_of(text, EXPLORE_SPAN_BYTES_MAX - SMALL));
    nested_put_end(&output, span);
    nested_put_end(&output, scope_spans);
    nested_put_end(&output, resource_spans);
    trace_store_init(&store, CODEC_ZSTD);
    assert_true(trace_store_add(&store, buffer_slice(output.buffer), 1));
    assert_int_equal(store.spans, 1);
    assert_true(trace_store_evict(&store));
    assert_in_range(trace_store_bytes(&store), 0, KEPT_MAX);
    trace_store_fini(&store);
    nested_output_fini(&output);
    mem_free(text);
}

static bool evict_some(void *arg)
{
    struct trace_store *store = arg;
    assert_true(trace_store_bytes(store) <= LIMIT_BYTES + 4 * EXPLORE_OPEN_BYTES_MAX);
    while (trace_store_bytes(store) > LIMIT_BYTES && trace_store_evict(store)) {
    }
    return store->evicted_traces < SHARING;
}

/* The owner evicts, or ends it, in the middle of a request with more than all that may be kept. */
static void one_request_may_be_larger_than_the_limit(void **state)
{
    (void)state;
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    store.goes_on = evict_some;
    store.goes_on_arg = &store;
    struct buffer *request = request_of_resource(10, 3 * SHARING, 20000);
    assert_true(request->size > 2 * LIMIT_BYTES);
    assert_false(trace_store_add(&store, buffer_slice(request), 1));
    assert_true(store.evicted_traces >= SHARING);
    assert_true(store.spans_total < 3 * SHARING);
    buffer_unref(request);
    trace_store_fini(&store);
}

/* What is left of requests that there was no memory for does not fill the block. */
static void a_block_without_spans_begins_anew(void **state)
{
    (void)state;
    struct trace_store store;
    trace_store_init(&store, CODEC_ZSTD);
    store.contexts_count = EXPLORE_CONTEXTS_MAX;
    memset(store.contexts, 0, EXPLORE_CONTEXTS_MAX * sizeof(store.contexts[0]));
    struct buffer *request = request_of_resource(10, 1, 0);
    assert_true(trace_store_add(&store, buffer_slice(request), 1));
    assert_int_equal(store.contexts_count, 1);
    assert_int_equal(store.spans, 1);
    buffer_unref(request);
    trace_store_fini(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_naive_store),
        cmocka_unit_test(keeps_a_limit_of_bytes),
        cmocka_unit_test(evicts_a_trace_that_is_too_large),
        cmocka_unit_test(passes_over_spans_without_a_trace),
        cmocka_unit_test(a_large_resource_does_not_become_a_block_for_each_span),
        cmocka_unit_test(resources_that_take_turns_do_not_swell_a_block),
        cmocka_unit_test(all_blocks_have_the_resource_and_the_scope),
        cmocka_unit_test(a_block_as_a_request_is_not_much_larger),
        cmocka_unit_test(a_block_is_as_large_as_it_counts),
        cmocka_unit_test(a_large_span_leaves_no_room_behind),
        cmocka_unit_test(spans_without_a_resource_get_no_other),
        cmocka_unit_test(one_request_may_be_larger_than_the_limit),
        cmocka_unit_test(a_block_without_spans_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
