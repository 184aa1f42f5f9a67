/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of metric streams, one for all lanes: a request of a stream may come to any of
 * them, and their helpers edit, too. So it is in shards, each with a lock that is held for one data
 * point. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/records/identity.h"

struct budget;
struct stream_table;

/* First member of what the owner remembers of a stream. */
struct stream {
    struct identity_digest key;
    uint64_t *words; /* numbers of the owner's; NULL: none */
    size_t words_count;
};

/* Streams beyond streams_max are refused, and so are streams and their words beyond a quarter of
 * the budget's limit. stream_bytes: of the struct that embeds struct stream. */
struct stream_table *stream_table_create(size_t stream_bytes, uint64_t streams_max,
                                         struct budget *budget);
/* NULL is a no-op. */
void stream_table_destroy(struct stream_table *table);
/* Users that have joined leave at their end; the last one empties the table. */
void stream_table_join(struct stream_table *table);
void stream_table_leave(struct stream_table *table);
/* For digests. */
uint64_t stream_table_seed(const struct stream_table *table);
uint64_t stream_table_count(const struct stream_table *table);
/* The most words that a stream has had since the table was empty. */
size_t stream_table_words_max(const struct stream_table *table);

/* The stream, zeroed if it is new; its shard is locked until _release. NULL: refused, and nothing
 * is locked. */
struct stream *stream_table_hold(struct stream_table *table, struct identity_digest key,
                                 bool *ret_is_new);
void stream_table_release(struct stream_table *table, struct identity_digest key);
/* Instead of _release: removes the stream that is held. */
void stream_table_forget(struct stream_table *table, struct stream *stream);
/* Of a stream that is held: makes its words so many, with undefined content. False: they would go
 * beyond the quarter of the budget's limit, and stay as they were. */
bool stream_table_set_words(struct stream_table *table, struct stream *stream, size_t count);

enum { STREAM_SHARDS = 64 };
/* Removes the stale streams of the shard of that index. */
void stream_table_sweep(struct stream_table *table, unsigned index,
                        bool (*is_stale)(const struct stream *stream, void *arg), void *arg);
