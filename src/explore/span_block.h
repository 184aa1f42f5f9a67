/* SPDX-License-Identifier: Apache-2.0 */
/* A block of spans: what the index needs of each in columns, and their bytes, both compressed. Its
 * spans are sorted by trace, then by start, so that a trace lies in one place. Names are numbers of
 * the store's string table. A block never changes. One owner (the explore worker). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec.h"
#include "src/explore/attribute_filter.h"

struct buffer;

/* One span in the index. */
struct span_row {
    uint64_t trace; /* number of its trace in the store */
    uint64_t span_id;
    uint64_t parent_id; /* 0: none */
    uint64_t start_ns;  /* unix */
    uint64_t duration_ns;
    uint32_t service;
    uint32_t name;
    uint32_t offset; /* of its bytes (content of the Span message) among those of its block */
    uint32_t size;
    uint16_t context;
    uint16_t events; /* at most UINT16_MAX are counted */
    uint16_t links;
    uint8_t kind;
    uint8_t status;
};

enum { SPAN_STATUS_ERROR = 2 };

/* Fields of ResourceSpans and of ScopeSpans beside the spans, encoded, which spans share. */
struct span_context {
    struct slice resource;
    struct slice scope;
};

/* Scopes of one resource share its bytes. One without bytes begins where the next one does. */
static inline bool span_contexts_share(const struct span_context *a, const struct span_context *b)
{
    return a->resource.data == b->resource.data && a->resource.size == b->resource.size;
}

/* The rows of one trace; the next one's first row ends them. */
struct block_trace {
    uint64_t trace;
    uint32_t first;
    uint32_t block_before; /* low bits of the number of the one with spans of it; its own: none */
};

struct span_block {
    uint64_t number;
    struct buffer *columns;
    struct buffer *bodies;
    uint32_t columns_raw;
    uint32_t bodies_raw;
    uint32_t spans;
    uint32_t contexts;
    uint32_t traces_count;
    uint32_t traces_live; /* that have not been evicted */
    uint32_t strings_count;
    struct block_trace *traces; /* ascending, and one more, which ends the last */
    uint32_t *strings;          /* ascending: all that rows refer to */
    struct attribute_filter attributes;
    uint64_t start_min_ns;
    uint64_t start_max_ns;
    uint64_t memory; /* bytes, all of it */
};

/* What spans are before they are a block. */
struct span_block_source {
    uint64_t number;
    const struct span_row *rows; /* sorted */
    uint32_t rows_count;
    const uint8_t *bodies; /* rows' offsets are into these */
    const struct span_context *contexts;
    uint32_t contexts_count;
    const uint32_t *strings; /* in any order, each once; sorted here */
    uint32_t strings_count;
    const struct attribute_filter *attributes; /* of the spans and their resources; folded here */
};

/* NULL: no memory, or the codec failed. */
struct span_block *span_block_create(const struct span_block_source *source, struct codec_box *box,
                                     enum codec codec);
void span_block_destroy(struct span_block *block);
/* Decodes all rows into room for `spans` of them. Offsets are into what _bodies returns. False: no
 * memory, or the block is broken. */
bool span_block_rows(const struct span_block *block, struct codec_box *box, enum codec codec,
                     struct span_row *rows);
/* The bytes of all spans: the caller's. NULL as above. */
struct buffer *span_block_bodies(const struct span_block *block, struct codec_box *box,
                                 enum codec codec);
/* A context, from those bytes. */
struct span_context span_block_context(const struct span_block *block, struct slice bodies,
                                       uint32_t context);
/* All of them, in room for block->contexts. */
void span_block_contexts(const struct span_block *block, struct slice bodies,
                         struct span_context *contexts);
/* Where the rows of a trace are. False: it has none here. */
bool span_block_find(const struct span_block *block, uint64_t trace, uint32_t *ret_first,
                     uint32_t *ret_end);
/* NULL: it has none here. */
const struct block_trace *span_block_trace(const struct span_block *block, uint64_t trace);
bool span_block_has_string(const struct span_block *block, uint32_t string);
