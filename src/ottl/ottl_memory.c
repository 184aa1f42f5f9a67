/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks double in size; after a reset they are filled again in the same order. The first is small,
 * not charged, and stays. Runs on the owner's thread. */
#include "src/ottl/ottl_memory.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

enum { BLOCK_BYTES_FIRST = 4096, BLOCK_BYTES_MAX = 1024 * 1024 };

struct ottl_block {
    struct ottl_block *next;
    size_t bytes; /* of data */
    bool is_charged;
    _Alignas(16) uint8_t data[];
};

void ottl_memory_init(struct ottl_memory *memory, size_t max_bytes, struct budget *budget)
{
    *memory = (struct ottl_memory){.max_bytes = max_bytes, .budget = budget};
}

/* Frees the blocks behind `last`, all when it is NULL. */
static void free_behind(struct ottl_memory *memory, struct ottl_block *last)
{
    struct ottl_block *block = last != NULL ? last->next : memory->first;
    while (block != NULL) {
        struct ottl_block *next = block->next;
        if (block->is_charged)
            budget_return(memory->budget, block->bytes);
        memory->held_bytes -= block->bytes;
        mem_free(block);
        block = next;
    }
    if (last != NULL)
        last->next = NULL;
    else
        memory->first = NULL;
    if (memory->first == NULL)
        memory->first_at = NULL;
}

static void enter(struct ottl_memory *memory, struct ottl_block *block)
{
    memory->current = block;
    memory->at = block->data;
    if (block == memory->first)
        memory->first_at = block->data;
    memory->end = block->data + block->bytes;
}

void ottl_memory_fini(struct ottl_memory *memory)
{
    free_behind(memory, NULL);
    assert(memory->held_bytes == 0);
    memory->current = NULL;
    memory->at = memory->end = NULL;
}

void ottl_memory_rewind(struct ottl_memory *memory)
{
    if (memory->held_bytes > OTTL_MEMORY_KEPT_MAX)
        ottl_memory_rest(memory);
    memory->current = NULL;
    memory->at = memory->end = NULL;
    if (memory->first != NULL)
        enter(memory, memory->first);
}

void ottl_memory_rest(struct ottl_memory *memory)
{
    if (memory->first != NULL)
        free_behind(memory, memory->first->is_charged ? NULL : memory->first);
    memory->current = NULL;
    memory->at = memory->end = NULL;
    if (memory->first != NULL)
        enter(memory, memory->first);
}

void ottl_memory_work(struct ottl_memory *memory, uint64_t entries)
{
    enum { ENTRY_BYTES = 16 }; /* looking at one takes as long as reading so many bytes */
    const uint64_t bytes = ENTRY_BYTES * entries;
    if (memory->work_left != NULL)
        *memory->work_left -= bytes < *memory->work_left ? bytes : *memory->work_left;
}

static bool take(const struct ottl_memory *memory, size_t bytes)
{
    if (!memory->may_exceed)
        return budget_try_take(memory->budget, bytes);
    budget_take(memory->budget, bytes);
    return true;
}

void *ottl_memory_grow(struct ottl_memory *memory, size_t bytes)
{
    const size_t whole = (bytes + (bytes == 0) + 15) & ~(size_t)15;
    struct ottl_block *next = memory->current != NULL ? memory->current->next : NULL;
    if (next == NULL || next->bytes < whole) {
        size_t size = memory->current != NULL ? 2 * memory->current->bytes : BLOCK_BYTES_FIRST;
        size = size < BLOCK_BYTES_MAX ? size : BLOCK_BYTES_MAX;
        size = size > whole ? size : whole;
        if (whole < bytes || size > memory->max_bytes - memory->held_bytes)
            size = whole; /* the last bytes of the limit */
        struct ottl_block *block = NULL;
        bool is_charged =
            memory->budget != NULL && (memory->first != NULL || size > BLOCK_BYTES_FIRST);
        if (whole >= bytes && size <= memory->max_bytes - memory->held_bytes &&
            (!is_charged || take(memory, size))) {
            block = mem_try_alloc(sizeof(*block) + size);
            if (block == NULL && is_charged)
                budget_return(memory->budget, size);
        }
        if (block == NULL) {
            memory->refused_bytes = size > 0 ? size : 1;
            memory->has_met_limit = whole < bytes || size > memory->max_bytes - memory->held_bytes;
            return NULL;
        }
        block->bytes = size;
        block->is_charged = is_charged;
        block->next = next;
        if (memory->current != NULL)
            memory->current->next = block;
        else {
            assert(memory->first == NULL);
            memory->first = block;
        }
        memory->held_bytes += size;
        next = block;
    }
    enter(memory, next);
    void *room = memory->at;
    memory->at += whole;
    return room;
}
