/* SPDX-License-Identifier: Apache-2.0 */
/* What a pyroscope exporter remembers between requests: the series of a batch that are settled, so
 * that a retry skips them, and the times of a series that are taken, because the server keeps only
 * one profile for each. Both are bounded. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;

/* At most NUMBER_SET_MAX numbers. */
struct number_set {
    uint64_t *slots; /* 0: free */
    size_t count;
    size_t capacity; /* a power of two, or 0 */
};

enum { NUMBER_SET_MAX = 16384 };

bool number_set_has(const struct number_set *set, uint64_t number);
/* number is not 0. False: the set is full. */
bool number_set_add(struct number_set *set, uint64_t number);
/* Adds as many as there is room for. */
void number_set_add_all(struct number_set *set, const struct number_set *others);
void number_set_clear(struct number_set *set);

/* Identifies a batch that is sent again, by its content. */
struct batch_name {
    uint64_t hash;
    uint64_t bytes;
    uint64_t arrival_ns;
};
struct batch_name batch_name_of(const struct batch *batch);
/* One number for a post of a batch. */
uint64_t batch_name_owner(const struct batch_name *name, uint64_t post);

enum { MEMORY_BATCHES_MAX = 32, MEMORY_TIMES_MAX = 4096, MEMORY_TIME_STEPS_MAX = 1000 };

struct settled_batch {
    struct batch_name name; /* bytes 0: free */
    struct number_set posts;
    uint64_t rejected; /* samples of posts that were refused for good */
    uint64_t stored;   /* samples of posts that were accepted */
    /* The state after 429, too much at a time. */
    bool is_limited;        /* there was one */
    uint64_t limited_post;  /* the last post that got it while nothing else was sent */
    unsigned limited_times; /* in a row */
    struct number_set cut;  /* parts that must be sent in pieces */
};
void settled_batch_clear(struct settled_batch *settled);
/* Records a 429 for that post. True: it got more than SETTLED_LIMITED_TIMES while nothing else was
 * sent, so it is more than the server will ever accept. */
enum { SETTLED_LIMITED_TIMES = 3 };
bool settled_batch_limited(struct settled_batch *settled, uint64_t post, bool is_idle);

struct pyroscope_memory {
    struct settled_batch batches[MEMORY_BATCHES_MAX];
    size_t next_batch; /* the oldest, to be replaced */
    size_t batches_count;
    struct number_set times[2];  /* the younger and the older half */
    struct number_set owners[2]; /* time and owner in one */
};

void pyroscope_memory_fini(struct pyroscope_memory *memory);
/* Removes and returns what is settled of the batch. */
struct settled_batch pyroscope_memory_take(struct pyroscope_memory *memory,
                                           const struct batch_name *name);
/* Keeps it for the next attempt, in place of the oldest one. Takes over its posts. */
void pyroscope_memory_keep(struct pyroscope_memory *memory, const struct batch_name *name,
                           struct settled_batch *settled);

/* The first time from time_ns on that no other owner has taken for the series. The same owner gets
 * the same time again. */
uint64_t pyroscope_memory_time(struct pyroscope_memory *memory, uint64_t series, uint64_t owner,
                               uint64_t time_ns);
