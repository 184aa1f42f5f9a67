/* SPDX-License-Identifier: Apache-2.0 */
/* Shards are chosen by bits of the digest. Any thread. */
#include "src/records/stream_table.h"

#include <assert.h>
#include <string.h>

#include <pthread.h>

#include "src/base/budget.h"
#include "src/base/hash_table.h"
#include "src/base/mem.h"
#include "src/base/random.h"

enum {
    BUDGET_PART = 4,
    ENTRY_BYTES = 2 * sizeof(struct hash_entry), /* of the hash table, half full */
};

struct shard {
    pthread_mutex_t lock;
    struct hash_table streams;
};

struct stream_table {
    size_t stream_bytes;
    uint64_t streams_max;
    uint64_t seed;
    struct budget *budget; /* NULL: not charged */
    _Atomic unsigned users;
    _Atomic uint64_t count;
    _Atomic uint64_t bytes;
    _Atomic size_t words_max; /* of one stream so far */
    struct shard shards[STREAM_SHARDS];
};

struct stream_table *stream_table_create(size_t stream_bytes, uint64_t streams_max,
                                         struct budget *budget)
{
    struct stream_table *table = mem_zalloc(sizeof(*table));
    assert(stream_bytes >= sizeof(struct stream));
    table->stream_bytes = stream_bytes;
    table->streams_max = streams_max;
    table->budget = budget;
    table->seed = (uint64_t)(random_uniform() * 0x1p53);
    for (size_t i = 0; i < STREAM_SHARDS; i++)
        pthread_mutex_init(&table->shards[i].lock, NULL);
    return table;
}

static void charge(struct stream_table *table, size_t bytes)
{
    atomic_fetch_add_explicit(&table->bytes, bytes, memory_order_relaxed);
    if (table->budget != NULL)
        budget_take(table->budget, bytes);
}

static void discharge(struct stream_table *table, size_t bytes)
{
    atomic_fetch_sub_explicit(&table->bytes, bytes, memory_order_relaxed);
    if (table->budget != NULL)
        budget_return(table->budget, bytes);
}

static void free_stream(struct stream_table *table, struct stream *stream)
{
    discharge(table,
              table->stream_bytes + ENTRY_BYTES + stream->words_count * sizeof(stream->words[0]));
    atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
    mem_free(stream->words);
    mem_free(stream);
}

static void forget_all(struct stream_table *table)
{
    for (size_t i = 0; i < STREAM_SHARDS; i++) {
        struct shard *shard = &table->shards[i];
        size_t at = 0;
        pthread_mutex_lock(&shard->lock);
        for (struct stream *stream; (stream = hash_table_each(&shard->streams, &at)) != NULL;)
            free_stream(table, stream);
        hash_table_clear(&shard->streams);
        pthread_mutex_unlock(&shard->lock);
    }
    atomic_store_explicit(&table->words_max, 0, memory_order_relaxed);
}

void stream_table_destroy(struct stream_table *table)
{
    if (table == NULL)
        return;
    forget_all(table);
    for (size_t i = 0; i < STREAM_SHARDS; i++)
        pthread_mutex_destroy(&table->shards[i].lock);
    mem_free(table);
}

void stream_table_join(struct stream_table *table)
{
    atomic_fetch_add_explicit(&table->users, 1, memory_order_relaxed);
}

void stream_table_leave(struct stream_table *table)
{
    if (atomic_fetch_sub_explicit(&table->users, 1, memory_order_acq_rel) == 1)
        forget_all(table);
}

uint64_t stream_table_seed(const struct stream_table *table)
{
    return table->seed;
}

uint64_t stream_table_count(const struct stream_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

size_t stream_table_words_max(const struct stream_table *table)
{
    return atomic_load_explicit(&table->words_max, memory_order_relaxed);
}

static void note_words(struct stream_table *table, size_t count)
{
    size_t most = stream_table_words_max(table);
    while (count > most &&
           !atomic_compare_exchange_weak_explicit(&table->words_max, &most, count,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

static struct shard *shard_of(struct stream_table *table, struct identity_digest key)
{
    return &table->shards[key.words[1] % STREAM_SHARDS];
}

static uint64_t bytes_max(const struct stream_table *table)
{
    return table->budget != NULL ? budget_limit(table->budget) / BUDGET_PART : UINT64_MAX;
}

/* Room for one more stream is counted before it is there: several lanes may ask at once. */
static bool has_room(struct stream_table *table)
{
    if (atomic_load_explicit(&table->bytes, memory_order_relaxed) + table->stream_bytes >
        bytes_max(table))
        return false;
    uint64_t count = atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
    if (count < table->streams_max)
        return true;
    atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
    return false;
}

struct stream *stream_table_hold(struct stream_table *table, struct identity_digest key,
                                 bool *ret_is_new)
{
    struct shard *shard = shard_of(table, key);
    struct stream *stream;
    size_t at = 0;
    *ret_is_new = false;
    pthread_mutex_lock(&shard->lock);
    while ((stream = hash_table_next(&shard->streams, key.words[0], &at)) != NULL)
        if (stream->key.words[1] == key.words[1])
            return stream;
    if (has_room(table)) {
        stream = mem_zalloc(table->stream_bytes);
        stream->key = key;
        if (hash_table_add(&shard->streams, key.words[0], stream)) {
            charge(table, table->stream_bytes + ENTRY_BYTES);
            *ret_is_new = true;
            return stream;
        }
        atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
        mem_free(stream);
    }
    pthread_mutex_unlock(&shard->lock);
    return NULL;
}

void stream_table_release(struct stream_table *table, struct identity_digest key)
{
    pthread_mutex_unlock(&shard_of(table, key)->lock);
}

void stream_table_forget(struct stream_table *table, struct stream *stream)
{
    struct shard *shard = shard_of(table, stream->key);
    hash_table_remove(&shard->streams, stream->key.words[0], stream);
    free_stream(table, stream);
    pthread_mutex_unlock(&shard->lock);
}

bool stream_table_set_words(struct stream_table *table, struct stream *stream, size_t count)
{
    const size_t word_bytes = sizeof(stream->words[0]);
    if (count == stream->words_count)
        return true;
    charge(table, count * word_bytes);
    if (count > stream->words_count && atomic_load_explicit(&table->bytes, memory_order_relaxed) -
                                               stream->words_count * word_bytes >
                                           bytes_max(table)) {
        discharge(table, count * word_bytes);
        return false;
    }
    discharge(table, stream->words_count * word_bytes);
    mem_free(stream->words);
    stream->words = count > 0 ? mem_alloc(count * word_bytes) : NULL;
    stream->words_count = count;
    note_words(table, count);
    return true;
}

void stream_table_sweep(struct stream_table *table, unsigned index,
                        bool (*is_stale)(const struct stream *stream, void *arg), void *arg)
{
    struct shard *shard = &table->shards[index];
    struct stream *stream;
    size_t count = 0;
    size_t at = 0;
    pthread_mutex_lock(&shard->lock);
    while ((stream = hash_table_each(&shard->streams, &at)) != NULL)
        count += is_stale(stream, arg);
    /* Entries move when one is removed: they are listed first. */
    struct stream **stale = (struct stream **)mem_alloc((count + 1) * sizeof(struct stream *));
    size_t listed = 0;
    at = 0;
    while (listed < count && (stream = hash_table_each(&shard->streams, &at)) != NULL)
        if (is_stale(stream, arg))
            stale[listed++] = stream;
    for (size_t i = 0; i < listed; i++) {
        hash_table_remove(&shard->streams, stale[i]->key.words[0], stale[i]);
        free_stream(table, stale[i]);
    }
    mem_free((void *)stale);
    pthread_mutex_unlock(&shard->lock);
}
