/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that the explore page can show: spans in compressed blocks, a record for each trace in
 * the order of arrival, and the names that filters ask for. New spans wait in the open block, where
 * queries see them, too. Keeps to a limit of bytes by evicting whole traces, the oldest first. One
 * owner (the explore worker), nothing is locked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/hash_table.h"
#include "src/codec/codec.h"
#include "src/explore/explore_limits.h"
#include "src/explore/span_block.h"
#include "src/explore/string_table.h"

struct buffer;

struct trace_record {
    uint8_t id[16];
    uint64_t start_ns;    /* unix, of its first span */
    uint64_t end_ns;      /* of its last */
    uint64_t arrived_ns;  /* unix */
    uint32_t first_block; /* the low bits of the numbers of the first and last block with spans */
    uint32_t last_block;
    uint32_t block_before; /* the one with spans before the last; the last itself: none */
    uint32_t spans;
    uint32_t errors;
    uint32_t root_name;
    uint32_t root_service;
    uint8_t root_kind;
    bool has_root;
};

enum { TRACES_PER_CHUNK = 1024 };

struct trace_store {
    struct string_table strings;
    struct codec_box *box;
    enum codec codec;
    /* Records, by number from `first` to `next`, in chunks. */
    struct trace_record **chunks;
    size_t chunks_count;
    size_t chunks_capacity;
    uint64_t first;
    uint64_t next;
    struct hash_table numbers; /* by trace id; objects are numbers */
    uint64_t seed;
    /* Blocks, oldest first, from `blocks_begin`. */
    struct span_block **blocks;
    size_t blocks_begin;
    size_t blocks_end;
    size_t blocks_capacity;
    uint64_t next_block; /* number of the open one */
    /* The open block. */
    struct span_row *rows;
    uint32_t rows_count;
    uint32_t rows_capacity;
    bool is_sorted;
    uint8_t *bodies;
    size_t bodies_size;
    size_t bodies_capacity;
    struct span_context *contexts; /* slices are offsets into context_bytes until they are read */
    uint32_t contexts_count;
    uint64_t contexts_size; /* what the block will have of them: some resources more than once */
    uint8_t *context_bytes;
    size_t context_bytes_size;
    size_t context_bytes_capacity;
    uint32_t *open_strings;
    uint32_t open_strings_count;
    uint32_t open_strings_capacity;
    struct attribute_filter open_attributes;
    struct block_trace *open_traces; /* while sorted */
    uint32_t open_traces_count;
    uint32_t open_traces_capacity;
    /* Sums. */
    uint64_t blocks_bytes;
    uint64_t spans;
    uint64_t spans_total;
    uint64_t evicted_traces;
    uint64_t broken_blocks;
    uint64_t too_large; /* spans that are not kept: they, or their resource and scope, are large */
    /* Called after each block that _add ends, for instance to evict. False: it adds no more. NULL:
     * nothing is called. */
    bool (*goes_on)(void *arg);
    void *goes_on_arg;
};

/* codec is prepared. */
void trace_store_init(struct trace_store *store, enum codec codec);
void trace_store_fini(struct trace_store *store);

/* Adds all spans of a request that has passed otlp_check; now_ns: unix. False: no memory, or
 * goes_on has ended it; some are missing. Does not evict. */
bool trace_store_add(struct trace_store *store, struct slice request, uint64_t now_ns);
/* Bytes of memory. */
uint64_t trace_store_bytes(const struct trace_store *store);
/* Evicts the oldest trace. False: there is none. */
bool trace_store_evict(struct trace_store *store);
/* When the oldest trace came; UINT64_MAX: there is none. */
uint64_t trace_store_oldest_ns(const struct trace_store *store);

/* number is from first to next. */
struct trace_record *trace_store_record(const struct trace_store *store, uint64_t number);
/* UINT64_MAX: not here. */
uint64_t trace_store_find(const struct trace_store *store, const uint8_t id[static 16]);

/* A block as queries see it: rows sorted by trace, and where each trace begins. */
struct block_view {
    const struct span_block *block; /* NULL: the open one */
    const struct block_trace *traces;
    uint32_t traces_count;
    uint32_t spans;
};
/* The number of blocks, the open one included if it has spans. */
size_t trace_store_blocks(struct trace_store *store);
/* index 0 is the oldest. Valid until the next _add or _evict. */
struct block_view trace_store_block(struct trace_store *store, size_t index);
/* Its place among them for a block number's low bits. */
size_t trace_store_block_of(const struct trace_store *store, uint32_t number);
bool block_view_has_string(const struct trace_store *store, const struct block_view *view,
                           uint32_t string);
/* False: no span of the block, nor the resource of one, has that attribute. */
bool block_view_may_have(const struct trace_store *store, const struct block_view *view,
                         struct slice key, struct slice text);
bool block_view_find(const struct block_view *view, uint64_t trace, uint32_t *ret_first,
                     uint32_t *ret_end);
/* Its rows, in room for view->spans of them. False: no memory, or it is broken. */
bool trace_store_rows(struct trace_store *store, const struct block_view *view,
                      struct span_row *rows);
/* The bytes that offsets of its rows are into; to release: buffer_unref. NULL as above. */
struct buffer *trace_store_bodies(struct trace_store *store, const struct block_view *view);
struct span_context trace_store_context(const struct trace_store *store,
                                        const struct block_view *view, struct slice bodies,
                                        uint32_t context);
/* All of them, in room for EXPLORE_CONTEXTS_MAX. Returns how many. */
uint32_t trace_store_contexts(const struct trace_store *store, const struct block_view *view,
                              struct slice bodies, struct span_context *contexts);
/* Closes the open block, for tests and a directory. */
bool trace_store_seal(struct trace_store *store);
