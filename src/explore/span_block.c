/* SPDX-License-Identifier: Apache-2.0 */
/* Columns are varints, so that few bits are left to compress; ids stay as they are. Runs on the
 * owner's thread. */
#include "src/explore/span_block.h"

#include <assert.h>
#include <stdlib.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/mem_stats.h"
#include "src/explore/block_bytes.h"
#include "src/otlp/wire.h"

enum {
    ROW_BYTES_MAX = 8 + 9 + 9 * WIRE_VARINT_BYTES_MAX + 2,
    PARENT_NONE = 0,
    PARENT_FOLLOWS = 1, /* its eight bytes do */
    PARENT_BEFORE = 2,  /* and more: so many rows before this one, less one */
    PARENT_LOOK_BACK = 24,
};
#define RESOURCE_AS_BEFORE UINT32_MAX /* in place of its size: that of the context before */

static bool shares_resource(const struct span_context *contexts, uint32_t at)
{
    return at > 0 && span_contexts_share(&contexts[at], &contexts[at - 1]);
}

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static struct buffer *inflate(const struct buffer *compressed, uint32_t raw, struct codec_box *box,
                              enum codec codec)
{
    struct buffer *output = NULL;
    if (codec_inflate(box, codec, buffer_slice(compressed), raw, &output) != CODEC_OK)
        return NULL;
    if (output->size == raw)
        return output;
    buffer_unref(output);
    return NULL;
}

/* Span ids first, then each column whole: like values stand together. */
static void write_columns(struct wire_writer *writer, const struct span_block_source *source)
{
    const struct span_row *rows = source->rows;
    uint32_t count = source->rows_count;
    for (uint32_t i = 0; i < count; i++)
        wire_write_raw(writer, slice_of(&rows[i].span_id, sizeof(rows[i].span_id)));
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].parent_id == 0) {
            wire_write_varint(writer, PARENT_NONE);
            continue;
        }
        uint32_t back = 1;
        while (back <= PARENT_LOOK_BACK && back <= i && rows[i - back].span_id != rows[i].parent_id)
            back++;
        if (back <= PARENT_LOOK_BACK && back <= i) {
            wire_write_varint(writer, PARENT_BEFORE + back - 1);
        } else {
            wire_write_varint(writer, PARENT_FOLLOWS);
            wire_write_raw(writer, slice_of(&rows[i].parent_id, sizeof(rows[i].parent_id)));
        }
    }
    uint64_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        wire_write_varint(writer, zigzag(rows[i].start_ns - before));
        before = rows[i].start_ns;
    }
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, rows[i].duration_ns);
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, rows[i].service);
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, rows[i].name);
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, rows[i].size);
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, rows[i].context);
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, (uint64_t)rows[i].events << 1 | (rows[i].links > 0));
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].links > 0)
            wire_write_varint(writer, rows[i].links);
    for (uint32_t i = 0; i < count; i++)
        wire_write_varint(writer, (uint64_t)rows[i].kind << 2 | rows[i].status);
}

static void add_trace(struct span_block *block, uint64_t trace, uint32_t first)
{
    block->traces[block->traces_count++] = (struct block_trace){.trace = trace, .first = first};
}

struct span_block *span_block_create(const struct span_block_source *source, struct codec_box *box,
                                     enum codec codec)
{
    uint32_t count = source->rows_count;
    assert(count > 0);
    uint64_t bodies = (uint64_t)source->contexts_count * 2 * sizeof(uint32_t);
    for (uint32_t i = 0; i < source->contexts_count; i++)
        bodies += (shares_resource(source->contexts, i) ? 0 : source->contexts[i].resource.size) +
                  source->contexts[i].scope.size;
    for (uint32_t i = 0; i < count; i++)
        bodies += source->rows[i].size;
    uint64_t columns_max = (uint64_t)count * ROW_BYTES_MAX;
    if (bodies > UINT32_MAX || columns_max > UINT32_MAX)
        return NULL;
    uint8_t *raw = mem_try_alloc(bodies > columns_max ? bodies : columns_max);
    if (raw == NULL)
        return NULL;
    struct span_block *block = mem_zalloc(sizeof(*block));
    block->number = source->number;
    block->spans = count;
    block->contexts = source->contexts_count;
    block->start_min_ns = UINT64_MAX;

    struct wire_writer writer = wire_writer_of(raw, columns_max);
    write_columns(&writer, source);
    block->columns_raw = (uint32_t)wire_written(&writer).size;
    block->columns = block_bytes_compress(wire_written(&writer), box, codec);

    writer = wire_writer_of(raw, bodies);
    for (uint32_t i = 0; i < source->contexts_count; i++) {
        uint32_t sizes[2] = {shares_resource(source->contexts, i)
                                 ? RESOURCE_AS_BEFORE
                                 : (uint32_t)source->contexts[i].resource.size,
                             (uint32_t)source->contexts[i].scope.size};
        wire_write_raw(&writer, slice_of(sizes, sizeof(sizes)));
    }
    for (uint32_t i = 0; i < source->contexts_count; i++) {
        if (!shares_resource(source->contexts, i))
            wire_write_raw(&writer, source->contexts[i].resource);
        wire_write_raw(&writer, source->contexts[i].scope);
    }
    uint32_t traces = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct span_row *row = &source->rows[i];
        wire_write_raw(&writer, slice_of(source->bodies + row->offset, row->size));
        traces += i == 0 || row->trace != row[-1].trace;
    }
    assert(wire_written(&writer).size == bodies);
    block->bodies_raw = (uint32_t)bodies;
    block->bodies = block_bytes_compress(wire_written(&writer), box, codec);
    mem_free(raw);

    block->traces = mem_alloc((traces + 1) * sizeof(block->traces[0]));
    for (uint32_t i = 0; i < count; i++) {
        const struct span_row *row = &source->rows[i];
        if (i == 0 || row->trace != row[-1].trace)
            add_trace(block, row->trace, i);
        if (row->start_ns < block->start_min_ns)
            block->start_min_ns = row->start_ns;
        if (row->start_ns > block->start_max_ns)
            block->start_max_ns = row->start_ns;
    }
    add_trace(block, UINT64_MAX, count);
    block->traces_count--;
    block->traces_live = block->traces_count;
    block->strings_count = source->strings_count;
    block->strings = mem_copy(source->strings, source->strings_count * sizeof(uint32_t));
    qsort(block->strings, block->strings_count, sizeof(uint32_t), compare_numbers);
    block->attributes = attribute_filter_fold(source->attributes);
    if (block->columns == NULL || block->bodies == NULL) {
        span_block_destroy(block);
        return NULL;
    }
    block->memory = mem_stats_held(block) + mem_stats_held(block->columns) +
                    mem_stats_held(block->bodies) + mem_stats_held(block->traces) +
                    mem_stats_held(block->strings) + mem_stats_held(block->attributes.words);
    return block;
}

void span_block_destroy(struct span_block *block)
{
    if (block == NULL)
        return;
    buffer_unref(block->columns);
    buffer_unref(block->bodies);
    mem_free(block->traces);
    mem_free(block->strings);
    attribute_filter_fini(&block->attributes);
    mem_free(block);
}

bool span_block_rows(const struct span_block *block, struct codec_box *box, enum codec codec,
                     struct span_row *rows)
{
    struct buffer *raw = inflate(block->columns, block->columns_raw, box, codec);
    if (raw == NULL)
        return false;
    uint32_t count = block->spans;
    struct wire_reader reader = wire_reader_of(buffer_slice(raw));
    bool is_whole = raw->size >= count * sizeof(uint64_t);
    for (uint32_t i = 0; is_whole && i < count; i++) {
        memcpy(&rows[i].span_id, reader.at, sizeof(uint64_t));
        reader.at += sizeof(uint64_t);
    }
#define COLUMN(statement)                                                                          \
    for (uint32_t i = 0; is_whole && i < count; i++) {                                             \
        uint64_t value = wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);                         \
        statement;                                                                                 \
    }
    COLUMN({
        rows[i].parent_id = 0;
        if (value >= PARENT_BEFORE) {
            uint64_t back = value - PARENT_BEFORE + 1;
            is_whole = back <= i;
            rows[i].parent_id = is_whole ? rows[i - back].span_id : 0;
        } else if (value == PARENT_FOLLOWS) {
            is_whole = (size_t)(reader.end - reader.at) >= sizeof(uint64_t);
            if (is_whole)
                memcpy(&rows[i].parent_id, reader.at, sizeof(uint64_t));
            reader.at += is_whole ? sizeof(uint64_t) : 0;
        }
    })
    uint64_t start = 0;
    COLUMN(rows[i].start_ns = start += unzigzag(value))
    COLUMN(rows[i].duration_ns = value)
    COLUMN(rows[i].service = (uint32_t)value)
    COLUMN(rows[i].name = (uint32_t)value)
    uint64_t offset = (uint64_t)block->contexts * 2 * sizeof(uint32_t);
    COLUMN({
        rows[i].offset = (uint32_t)offset; /* of the first span: without the contexts' bytes yet */
        rows[i].size = (uint32_t)value;
        offset += value;
    })
    uint64_t contexts_bytes = block->bodies_raw - offset;
    is_whole = is_whole && offset <= block->bodies_raw;
    COLUMN({
        rows[i].offset += (uint32_t)contexts_bytes;
        rows[i].context = (uint16_t)value;
    })
    COLUMN({
        rows[i].events = (uint16_t)(value >> 1);
        rows[i].links = value & 1;
    })
    for (uint32_t i = 0; is_whole && i < count; i++)
        if (rows[i].links > 0)
            rows[i].links = (uint16_t)wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX);
    COLUMN({
        rows[i].kind = (uint8_t)(value >> 2);
        rows[i].status = value & 3;
    })
#undef COLUMN
    is_whole = is_whole && reader.failure == NULL && reader.at == reader.end;
    buffer_unref(raw);
    for (uint32_t t = 0; t < block->traces_count; t++)
        for (uint32_t i = block->traces[t].first; i < block->traces[t + 1].first; i++)
            rows[i].trace = block->traces[t].trace;
    return is_whole;
}

struct buffer *span_block_bodies(const struct span_block *block, struct codec_box *box,
                                 enum codec codec)
{
    return inflate(block->bodies, block->bodies_raw, box, codec);
}

/* Reads the context of that number, which begins *at, after the one before it. */
static void next_context(const struct span_block *block, struct slice bodies, uint32_t context,
                         size_t *at, struct span_context *found)
{
    uint32_t sizes[2];
    if (context == 0)
        *at = (size_t)block->contexts * 2 * sizeof(uint32_t);
    memcpy(sizes, bodies.data + context * sizeof(sizes), sizeof(sizes));
    bool is_shared = sizes[0] == RESOURCE_AS_BEFORE;
    uint32_t resource = is_shared ? 0 : sizes[0];
    if ((uint64_t)*at + resource + sizes[1] > bodies.size)
        return;
    if (!is_shared)
        found->resource = slice_of(bodies.data + *at, resource);
    found->scope = slice_of(bodies.data + *at + resource, sizes[1]);
    *at += (size_t)resource + sizes[1];
}

struct span_context span_block_context(const struct span_block *block, struct slice bodies,
                                       uint32_t context)
{
    struct span_context found = {.resource = {.data = NULL}};
    size_t at = 0;
    for (uint32_t i = 0; i <= context && i < block->contexts; i++)
        next_context(block, bodies, i, &at, &found);
    return found;
}

void span_block_contexts(const struct span_block *block, struct slice bodies,
                         struct span_context *contexts)
{
    struct span_context found = {.resource = {.data = NULL}};
    size_t at = 0;
    for (uint32_t i = 0; i < block->contexts; i++) {
        next_context(block, bodies, i, &at, &found);
        contexts[i] = found;
    }
}

const struct block_trace *span_block_trace(const struct span_block *block, uint64_t trace)
{
    uint32_t low = 0;
    uint32_t high = block->traces_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (block->traces[middle].trace < trace)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < block->traces_count && block->traces[low].trace == trace;
    return is_there ? &block->traces[low] : NULL;
}

bool span_block_find(const struct span_block *block, uint64_t trace, uint32_t *ret_first,
                     uint32_t *ret_end)
{
    const struct block_trace *found = span_block_trace(block, trace);
    if (found == NULL)
        return false;
    *ret_first = found[0].first;
    *ret_end = found[1].first;
    return true;
}

bool span_block_has_string(const struct span_block *block, uint32_t string)
{
    return bsearch(&string, block->strings, block->strings_count, sizeof(uint32_t),
                   compare_numbers) != NULL;
}
