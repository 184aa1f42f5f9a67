/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the join's traces side: what a span of the rig's payload costs to be read and
 * indexed while the index is full: with the default settings, without marks, and with more
 * attributes and a mark on every span. Arguments: spans per request, entries of the index. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/spans/span_reader.h"
#include "tests/bench/payload.h"

enum { SPANS = 1000, SPAN_BYTES = 672, SPANS_PER_ROOT = 8, BATCHES = 400, RUNS = 9 };

static struct batch *batch_of(const struct payload *payload, uint32_t spans)
{
    struct buffer *buffer = buffer_create(NULL, payload->body.size);
    struct batch *batch = batch_create(TRACES, 1);
    memcpy(buffer->data, payload->body.data, payload->body.size);
    buffer->size = payload->body.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = spans;
    buffer_unref(buffer);
    return batch;
}

/* Of one span. The payload's ids go on, so that each is a new one. */
static double time_read(struct span_reader *reader, struct payload *payload, uint64_t *next,
                        uint64_t marks)
{
    double ns = 0;
    for (unsigned i = 0; i < BATCHES; i++) {
        struct span_figures figures;
        payload_renumber(payload, *next);
        *next += payload->spans;
        struct batch *batch = batch_of(payload, payload->spans);
        uint64_t begin = cpu_ns();
        struct batch *read = span_reader_read(reader, batch, 1, &figures);
        ns += (double)(cpu_ns() - begin);
        assert(figures.indexed == payload->spans && figures.marked == marks);
        batch_unref(read);
        batch_unref(batch);
    }
    return ns / BATCHES / payload->spans;
}

static double best_of(struct payload *payload, uint64_t entries, enum join_mark mark, bool has_all)
{
    const uint64_t marks = mark == JOIN_MARK_OFF   ? 0
                           : mark == JOIN_MARK_ALL ? payload->spans
                                                   : payload->spans / SPANS_PER_ROOT;
    const struct join_settings settings = {
        .attributes = {{JOIN_SPAN_NAME, slice_of_text("span_name")},
                       {JOIN_STATUS_CLASS, slice_of_text("status_class")},
                       {JOIN_OF_SPAN, slice_of_text("http.route")}},
        .attributes_count = has_all ? 3 : 1,
        .values_max = 1000,
        .index_entries = entries,
        .index_bytes = entries * 160 + MIB,
        .mark = mark,
        .repairs_identity = true,
    };
    struct join_store *store = join_store_create(&settings, 1);
    struct span_reader reader;
    double best = 1e18;
    uint64_t next = 1;
    assert(store != NULL);
    span_reader_init(&reader, store, 0, NULL);
    for (unsigned run = 0; run < RUNS; run++) {
        double ns = time_read(&reader, payload, &next, marks);
        best = ns < best ? ns : best;
    }
    span_reader_fini(&reader);
    join_store_destroy(store);
    return best;
}

int main(int count, char **arguments)
{
    uint32_t spans = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : SPANS;
    uint64_t entries = count > 2 ? strtoull(arguments[2], NULL, 10) : 200000;
    struct payload payload = payload_make(spans, SPAN_BYTES, 1);
    printf(
        "join, %u spans of %d bytes per request, %llu in the index; ns/span: %.1f, without marks "
        "%.1f, with route, status and every span marked %.1f\n",
        spans, SPAN_BYTES, (unsigned long long)entries,
        best_of(&payload, entries, JOIN_MARK_LOCAL_ROOTS, false),
        best_of(&payload, entries, JOIN_MARK_OFF, false),
        best_of(&payload, entries, JOIN_MARK_ALL, true));
    payload_free(&payload);
    return 0;
}
