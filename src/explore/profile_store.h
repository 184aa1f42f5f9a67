/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles that the explore page can show: requests of a window are merged, with one dictionary
 * for all of them, and compressed. Knows of each block which spans its samples belong to. One owner
 * (the explore worker), nothing is locked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/hash_table.h"
#include "src/base/slice.h"
#include "src/codec/codec.h"
#include "src/explore/string_table.h"

struct budget;
struct buffer;

/* What the samples of one span amount to. */
struct span_samples {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint64_t cpu_ns;     /* of profiles of CPU time */
    uint64_t counted_ns; /* of those that count samples, with a period of CPU time */
    uint32_t counted;    /* samples of such profiles */
    uint32_t timed;      /* of those of CPU time: by their period */
    uint32_t others;     /* records of all others */
};
uint64_t span_samples_count(const struct span_samples *samples);
uint64_t span_samples_cpu_ns(const struct span_samples *samples);

struct profile_block {
    uint64_t number;
    struct buffer *bytes; /* the compressed request; of the open window: as it came */
    uint32_t raw;         /* its size */
    bool is_compressed;
    uint64_t arrived_ns; /* unix, the last part of it */
    uint64_t start_ns;   /* unix, of what it measures */
    uint64_t end_ns;
    uint64_t samples; /* records */
    uint64_t profiles;
    size_t spans_count;
    struct span_samples *spans; /* by trace, then span */
    size_t services_count;
    uint32_t *services; /* numbers of names */
    uint64_t memory;
};

/* How many samples a trace has in all blocks. */
struct trace_samples {
    uint8_t id[16];
    uint64_t samples;
    uint32_t blocks; /* that it has samples in */
};

/* Blocks that stay open between questions, which ask for the same again and again. */
enum { PROFILE_OPENED_MAX = 64, PROFILE_OPENED_BYTES_MAX = 32 * 1024 * 1024 };

struct profile_opened {
    uint64_t number; /* of the block */
    struct buffer *bytes;
};

struct profile_store {
    struct string_table *strings;
    struct codec_box *box;
    enum codec codec;
    struct budget *budget; /* what adding takes meanwhile is charged to it; NULL: to none */
    /* Oldest first, from blocks_begin; those of the open window, from `open` on, are one request
     * each. */
    struct profile_block **blocks;
    size_t blocks_begin;
    size_t blocks_open;
    size_t blocks_end;
    size_t blocks_capacity;
    struct hash_table traces; /* struct trace_samples, by trace id */
    struct profile_opened opened[PROFILE_OPENED_MAX];
    size_t opened_count;
    uint64_t opened_bytes;        /* charged … */
    struct budget *opened_budget; /* … to this one */
    uint64_t seed;
    uint64_t bytes;      /* of the blocks */
    uint64_t open_bytes; /* of those that are open, uncompressed */
    uint64_t next_block;
    uint64_t generation; /* changes with what is kept */
    uint64_t samples;
    uint64_t profiles;
    uint64_t samples_total;
    uint64_t samples_lost; /* that there was no memory to merge */
    uint64_t evicted_blocks;
};

/* strings outlives the store. codec is prepared. */
void profile_store_init(struct profile_store *store, struct string_table *strings,
                        struct codec_box *box, enum codec codec);
void profile_store_fini(struct profile_store *store);

/* Adds a request, normalized and checked; now_ns: unix. False: no memory. Does not evict. */
bool profile_store_add(struct profile_store *store, struct slice request, uint64_t now_ns);
/* Makes a block of what is open, for a directory. */
void profile_store_seal(struct profile_store *store);
uint64_t profile_store_bytes(const struct profile_store *store);
/* Evicts the oldest block. False: there is none. */
bool profile_store_evict(struct profile_store *store);
/* When the oldest block came; UINT64_MAX: there is none. */
uint64_t profile_store_oldest_ns(const struct profile_store *store);

/* Samples of a trace; 0: none. */
uint64_t profile_store_samples(const struct profile_store *store, const uint8_t id[static 16]);
/* What is known of the trace's spans: *ret_spans is the caller's, ascending by span id, each once.
 * Returns how many; 0: none, or no memory. */
size_t profile_store_spans(const struct profile_store *store, const uint8_t id[static 16],
                           struct span_samples **ret_spans);

/* Blocks, oldest first. */
size_t profile_store_blocks(const struct profile_store *store);
const struct profile_block *profile_store_block(const struct profile_store *store, size_t index);
bool profile_block_has_trace(const struct profile_block *block, const uint8_t id[static 16]);
bool profile_block_has_service(const struct profile_block *block, uint32_t service);
/* Sets the bits of the numbers of services that any block has; there is one for each number of
 * strings. */
void profile_store_services(const struct profile_store *store, uint64_t *bits);
/* The request: the caller's. NULL: no memory, or the block is broken. It also stays open for the
 * next question if `budget` has room; NULL: it does not. */
struct buffer *profile_store_open(struct profile_store *store, const struct profile_block *block,
                                  struct budget *budget);
/* Closes all that is open. */
void profile_store_close(struct profile_store *store);
