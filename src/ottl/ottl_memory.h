/* SPDX-License-Identifier: Apache-2.0 */
/* Where the values of one record live: a bump allocator that keeps its blocks from record to
 * record, so that in the long run no record allocates. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget;
struct ottl_block;

struct ottl_memory {
    uint8_t *at; /* of the current block */
    uint8_t *end;
    struct ottl_block *current; /* the blocks before it are full; those behind it are free */
    struct ottl_block *first;
    uint8_t *first_at; /* where the first block begins */
    size_t held_bytes; /* by all blocks */
    size_t max_bytes;
    uint64_t *work_left;   /* ottl_run.work_left, for work on large maps; NULL: not counted */
    struct budget *budget; /* all but a small block are charged to it; NULL: not charged */
    bool may_exceed;       /* it is charged beyond its limit if need be */
    bool copies_text;      /* it outlives the values that are put here: their bytes are copied */
    size_t refused_bytes;  /* the last block that was refused; 0: none since the last reset */
    bool has_met_limit;    /* by max_bytes, not by the budget */
    bool is_too_deep;      /* a value was refused for its nesting (OTTL_VALUE_LEVELS_MAX) */
};

void ottl_memory_init(struct ottl_memory *memory, size_t max_bytes, struct budget *budget);
void ottl_memory_fini(struct ottl_memory *memory);
/* Of ottl_memory_reset. */
enum { OTTL_MEMORY_KEPT_MAX = 256 * 1024 };
void ottl_memory_rewind(struct ottl_memory *memory);
/* Forgets every allocation. Keeps the blocks unless they are large. */
static inline void ottl_memory_reset(struct ottl_memory *memory)
{
    memory->refused_bytes = 0;
    memory->has_met_limit = memory->is_too_deep = false;
    if (memory->current == memory->first && memory->held_bytes <= OTTL_MEMORY_KEPT_MAX)
        memory->at = memory->first_at;
    else
        ottl_memory_rewind(memory);
}
/* The same; frees what is charged to the budget. */
void ottl_memory_rest(struct ottl_memory *memory);
/* Counts entries that were looked at, one by one, in a map that lies there. */
void ottl_memory_work(struct ottl_memory *memory, uint64_t entries);
/* ottl_memory_room with another block. */
void *ottl_memory_grow(struct ottl_memory *memory, size_t bytes)
    __attribute__((warn_unused_result));

/* Aligned for every value, not zeroed. NULL: above max_bytes, or the budget refuses. */
static inline __attribute__((warn_unused_result)) void *ottl_memory_room(struct ottl_memory *memory,
                                                                         size_t bytes)
{
    size_t whole = (bytes + (bytes == 0) + 15) & ~(size_t)15;
    if (whole > (size_t)(memory->end - memory->at) || whole < bytes)
        return ottl_memory_grow(memory, bytes);
    void *room = memory->at;
    memory->at += whole;
    return room;
}
