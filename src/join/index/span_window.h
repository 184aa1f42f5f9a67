/* SPDX-License-Identifier: Apache-2.0 */
/* Recent spans, found by process and time: for samples that name none. One shard per lane, written
 * by that lane alone and read by all without locks; the oldest spans by arrival are evicted first.
 * Used with window_fallback only. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/resource_facts.h"
#include "src/join/index/thread_facts.h"

struct window_span {
    uint64_t trace[2];
    uint64_t span;
    uint64_t parent; /* 0: none */
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t resource; /* hash of its resource: equal for the same producer */
    struct thread_facts thread;
};

/* When and where a sample was taken. */
struct window_place {
    uint64_t names[RESOURCE_NAMES]; /* of the process, as in resource_facts */
    uint64_t from_ns;               /* its first and its last timestamp */
    uint64_t until_ns;
    uint32_t resource;
    struct thread_facts thread;
};

enum { WINDOW_ENTRY_WORDS = 10 };

struct window_entry {
    _Atomic uint64_t words[WINDOW_ENTRY_WORDS]; /* seqlock.h */
};

/* A name of a process. Two words that are consistent if mixed ^ process is the name. */
struct window_alias {
    _Atomic uint64_t mixed;
    _Atomic uint64_t process;
};

struct window_shard {
    struct window_entry *entries;
    uint64_t entries_count;
    _Atomic uint64_t *heads; /* number of the newest span in a list; 0: none */
    uint64_t heads_count;    /* a power of two */
    struct window_alias *aliases;
    uint64_t number;  /* of the newest span; for the writer alone, as the next three */
    uint64_t process; /* of the resource at hand */
    uint64_t wall_ns;
    uint32_t victim;                /* alias that is evicted next, in any line */
    _Atomic uint32_t levels;        /* a bit for each level that has spans */
    _Atomic uint64_t gone_until_ns; /* spans that ended by then may have been evicted */
};

struct span_window {
    unsigned shards_count;
    struct window_shard *shards; /* NULL: not used */
};

/* Memory for that many spans. */
uint64_t span_window_bytes(unsigned shards, uint64_t entries);
/* False: no memory. */
bool span_window_init(struct span_window *window, unsigned shards, uint64_t entries);
void span_window_fini(struct span_window *window);

/* The shard's lane: spans of this resource follow. wall_ns: Unix time, as spans have. */
void span_window_begin(struct span_window *window, unsigned shard,
                       const struct resource_facts *resource, uint64_t wall_ns);
void span_window_add(struct span_window *window, unsigned shard, const struct window_span *span);
/* Any thread: the only innermost span at that place, within JOIN_SKEW_NS. False: there is none, or
 * it is ambiguous. Adds the spans and slots that it looked at to looks. */
bool span_window_find(const struct span_window *window, const struct window_place *place,
                      struct window_span *ret_span, uint64_t *looks);
