/* SPDX-License-Identifier: Apache-2.0 */
/* The traces side of the join on any request that passes the walker: byte 0 is where the body is
 * cut into two parts, 1 which spans are marked and what is remembered of them. What comes out is
 * well-formed, has the same spans, and is marked once and for all. */
#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/spans/span_reader.h"
#include "src/otlp/check.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct join_store *store_of(uint8_t settings)
{
    struct join_settings made = {
        .attributes = {{JOIN_SPAN_NAME, slice_of_text("span_name")},
                       {JOIN_STATUS_CLASS, slice_of_text("status_class")},
                       {JOIN_OF_SPAN, slice_of_text("a")},
                       {JOIN_OF_RESOURCE, slice_of_text("b")}},
        .attributes_count = settings & 4 ? 4 : 1,
        .values_max = 10,
        .index_entries = 50,
        .index_bytes = SPAN_SHARD_BYTES_MIN,
        .mark = (enum join_mark)(settings & 3),
        .repairs_identity = true,
        .uses_window = (settings & 16) != 0,
        .finds_single_traces = (settings & 64) != 0,
    };
    struct error error;
    bool is_fine = url_template_read((settings & 8) != 0 ? "http://g/{service_name}{from_ms}" : "",
                                     UINT_MAX, &made.profile_url, &error);
    assert(is_fine);
    struct join_store *store = join_store_create(&made, 1);
    assert(store != NULL);
    /* Either profiles of unknown processes have come, and any span may have some, or those of one
     * service. */
    service_set_add(&store->services, settings & 32, (settings & 32) == 0, 1);
    return store;
}

static void check_read(struct span_reader *reader, struct batch *batch, uint64_t now_ns)
{
    struct otlp_figures figures;
    struct span_figures spans;
    const char *reason;
    struct batch *marked = span_reader_read(reader, batch, now_ns, &spans);
    struct slice bytes = joined_parts(marked);
    bool is_fine = otlp_check(TRACES, bytes, &figures, &reason);
    assert(is_fine);
    assert(figures.items == batch->items && marked->items == batch->items);
    assert(oracle_decodes(TRACES, bytes));
    assert(spans.marked == 0 || marked != batch);
    assert(spans.marked > 0 || marked == batch || reader->store->settings.profile_url.count > 0);
    assert(spans.indexed <= batch->items);
    mem_free((void *)(uintptr_t)bytes.data);
    struct batch *again = span_reader_read(reader, marked, now_ns + 1, &spans);
    assert(again == marked);
    assert(spans.marked == 0);
    batch_unref(again);
    batch_unref(marked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    struct span_reader reader;
    const char *reason;
    if (size < HEADER_BYTES)
        return 0;
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(TRACES, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    struct batch *batch = two_parts(TRACES, body, body.size * data[0] / 256);
    struct join_store *store = store_of(data[1]);
    batch->items = figures.items;
    span_reader_init(&reader, store, 0, NULL);
    check_read(&reader, batch, (data[1] & 128) != 0 ? 2 * JOIN_WARM_UP_NS : 1);
    span_reader_fini(&reader);
    join_store_destroy(store);
    batch_unref(batch);
    return 0;
}
