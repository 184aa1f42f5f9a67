/* SPDX-License-Identifier: Apache-2.0 */
/* Reference-counted bytes, charged to a budget while they live. Any thread. */
#include "src/base/buffer.h"

#include <assert.h>
#include <stdbool.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

static bool charge(struct budget *budget, size_t amount)
{
    return budget == NULL || budget_try_take(budget, amount);
}

static void uncharge(struct budget *budget, size_t amount)
{
    if (budget != NULL)
        budget_return(budget, amount);
}

static struct buffer *filled_in(struct buffer *buffer, struct budget *budget, size_t capacity)
{
    buffer->budget = budget;
    buffer->capacity = capacity;
    buffer->charged_more = 0;
    buffer->size = 0;
    atomic_init(&buffer->refs, 1);
    return buffer;
}

/* The bytes are charged already. */
static struct buffer *allocated(struct budget *budget, size_t capacity)
{
    size_t total = sizeof(struct buffer) + capacity;
    struct buffer *buffer = mem_try_alloc(total);
    if (buffer == NULL) {
        uncharge(budget, total);
        return NULL;
    }
    return filled_in(buffer, budget, capacity);
}

struct buffer *buffer_try_create(struct budget *budget, size_t capacity)
{
    assert(capacity <= SIZE_MAX - sizeof(struct buffer));
    return charge(budget, sizeof(struct buffer) + capacity) ? allocated(budget, capacity) : NULL;
}

struct buffer *buffer_try_create_margin(struct budget *budget, size_t capacity)
{
    assert(capacity <= SIZE_MAX - sizeof(struct buffer));
    size_t total = sizeof(struct buffer) + capacity;
    return budget == NULL || budget_try_take_margin(budget, total) ? allocated(budget, capacity)
                                                                   : NULL;
}

struct buffer *buffer_create(struct budget *budget, size_t capacity)
{
    assert(capacity <= SIZE_MAX - sizeof(struct buffer));
    size_t total = sizeof(struct buffer) + capacity;
    if (budget != NULL)
        budget_take(budget, total);
    return filled_in(mem_alloc(total), budget, capacity);
}

/* Only a single holder may move it: no other pointer becomes stale. */
static bool is_movable(const struct buffer *buffer)
{
    return atomic_load(&buffer->refs) == 1;
}

struct buffer *buffer_try_grow(struct buffer *buffer, size_t capacity)
{
    assert(is_movable(buffer));
    assert(capacity >= buffer->capacity);
    size_t more = capacity - buffer->capacity;
    struct budget *budget = buffer->budget;
    /* Both exist during the copy, but the end of the new one is not touched yet. */
    size_t copied = sizeof(struct buffer) + buffer->size;
    size_t meanwhile = copied > more ? copied - more : 0;
    if (!charge(budget, more + meanwhile))
        return NULL;
    uintptr_t before = (uintptr_t)buffer;
    struct buffer *moved = mem_try_resize(buffer, sizeof(struct buffer) + capacity);
    if (moved == NULL) {
        uncharge(budget, more + meanwhile);
        return NULL;
    }
    uncharge(budget, meanwhile);
    if (budget != NULL && (uintptr_t)moved != before)
        budget_note_freed(budget, sizeof(struct buffer) + moved->capacity);
    moved->capacity = capacity;
    return moved;
}

struct buffer *buffer_shrink(struct buffer *buffer)
{
    assert(is_movable(buffer));
    assert(buffer->size <= buffer->capacity);
    struct budget *budget = buffer->budget;
    size_t less = buffer->capacity - buffer->size;
    struct buffer *moved = mem_resize(buffer, sizeof(struct buffer) + buffer->size);
    moved->capacity = moved->size;
    uncharge(budget, less);
    return moved;
}

size_t buffer_charge(const struct buffer *buffer)
{
    return sizeof(struct buffer) + buffer->capacity + buffer->charged_more;
}

enum budget_result buffer_try_charge(struct buffer *buffer, size_t more)
{
    if (buffer->budget != NULL && !budget_try_take(buffer->budget, more))
        return buffer_charge(buffer) + more > budget_limit(buffer->budget) ? BUDGET_TOO_SMALL
                                                                           : BUDGET_FULL;
    buffer->charged_more += more;
    return BUDGET_GIVEN;
}

void buffer_ref_many(struct buffer *buffer, unsigned holders)
{
    unsigned old = atomic_fetch_add_explicit(&buffer->refs, holders, memory_order_relaxed);
    assert(old > 0);
}

struct buffer *buffer_ref(struct buffer *buffer)
{
    buffer_ref_many(buffer, 1);
    return buffer;
}

void buffer_unref(struct buffer *buffer)
{
    if (buffer != NULL)
        buffer_unref_many(buffer, 1);
}

void buffer_unref_many(struct buffer *buffer, unsigned holders)
{
    unsigned old = atomic_fetch_sub_explicit(&buffer->refs, holders, memory_order_acq_rel);
    assert(old >= holders);
    if (old > holders)
        return;
    struct budget *budget = buffer->budget;
    size_t total = buffer_charge(buffer);
    mem_free(buffer);
    uncharge(budget, total);
}
