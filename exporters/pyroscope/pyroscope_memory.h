/* SPDX-License-Identifier: Apache-2.0 */
/* What a pyroscope exporter remembers from one request to the next: which series of a batch are
 * settled, so that a retry does not send them again, and which times of a series are taken, because
 * the server keeps only one profile for each. Both are bounded. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;

/* Numbers that are in a set; at most so many. */
struct number_set {
    uint64_t *slots; /* 0: free */
    size_t count;
    size_t capacity; /* a power of two, or 0 */
};

enum { NUMBER_SET_MAX = 16384 };

bool number_set_has(const struct number_set *set, uint64_t number);
/* number is not 0. False: the set is full, and goes without. */
bool number_set_add(struct number_set *set, uint64_t number);
/* As far as there is room. */
void number_set_add_all(struct number_set *set, const struct number_set *others);
void number_set_clear(struct number_set *set);

/* A batch that is to be sent again, known by what it holds. */
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
    uint64_t stored;   /* samples of posts that were not */
    /* What came of 429, the answer to too much at a time. */
    bool is_limited;        /* it came */
    uint64_t limited_post;  /* the last one that got it while nothing else was sent */
    unsigned limited_times; /* in a row */
    struct number_set cut;  /* parts that are to be sent in pieces */
};
void settled_batch_clear(struct settled_batch *settled);
/* Notes a 429 to that post. True: it had more than SETTLED_LIMITED_TIMES of them while nothing else
 * was sent, so that it must be more than the server ever takes. */
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
/* What is settled of the batch, which is handed over and forgotten here. */
struct settled_batch pyroscope_memory_take(struct pyroscope_memory *memory,
                                           const struct batch_name *name);
/* Keeps it for the next attempt, taking over its posts; the oldest one goes. */
void pyroscope_memory_keep(struct pyroscope_memory *memory, const struct batch_name *name,
                           struct settled_batch *settled);

/* The first time from time_ns on that no other owner has taken for the series. The same owner gets
 * the same time again. */
uint64_t pyroscope_memory_time(struct pyroscope_memory *memory, uint64_t series, uint64_t owner,
                               uint64_t time_ns);
