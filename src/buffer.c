/* SPDX-License-Identifier: Apache-2.0 */
/* Counted bytes, charged to a budget for as long as they live. Any thread. */
#include "src/buffer.h"

#include <assert.h>
#include <stdlib.h>

#include "src/budget.h"
#include "src/mem.h"

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
    buffer->size = 0;
    atomic_init(&buffer->refs, 1);
    return buffer;
}

struct buffer *buffer_try_create(struct budget *budget, size_t capacity)
{
    assert(capacity <= SIZE_MAX - sizeof(struct buffer));
    size_t total = sizeof(struct buffer) + capacity;
    if (!charge(budget, total))
        return NULL;
    struct buffer *buffer = mem_try_alloc(total);
    if (buffer == NULL) {
        uncharge(budget, total);
        return NULL;
    }
    return filled_in(buffer, budget, capacity);
}

struct buffer *buffer_create(struct budget *budget, size_t capacity)
{
    assert(capacity <= SIZE_MAX - sizeof(struct buffer));
    size_t total = sizeof(struct buffer) + capacity;
    if (budget != NULL)
        budget_take(budget, total);
    return filled_in(mem_alloc(total), budget, capacity);
}

/* One holder: nobody else can see the move. */
static struct buffer *move_to(struct buffer *buffer, size_t capacity)
{
    struct buffer *moved = mem_resize(buffer, sizeof(struct buffer) + capacity);
    moved->capacity = capacity;
    return moved;
}

struct buffer *buffer_try_grow(struct buffer *buffer, size_t capacity)
{
    assert(buffer != NULL);
    assert(atomic_load(&buffer->refs) == 1);
    assert(capacity >= buffer->capacity);
    if (!charge(buffer->budget, capacity - buffer->capacity))
        return NULL;
    return move_to(buffer, capacity);
}

struct buffer *buffer_shrink(struct buffer *buffer)
{
    assert(buffer != NULL);
    assert(atomic_load(&buffer->refs) == 1);
    assert(buffer->size <= buffer->capacity);
    uncharge(buffer->budget, buffer->capacity - buffer->size);
    return move_to(buffer, buffer->size);
}

struct buffer *buffer_ref(struct buffer *buffer)
{
    assert(buffer != NULL);
    unsigned old = atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
    assert(old > 0);
    (void)old;
    return buffer;
}

void buffer_unref(struct buffer *buffer)
{
    if (buffer == NULL)
        return;
    unsigned old = atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel);
    assert(old > 0);
    if (old > 1)
        return;
    struct budget *budget = buffer->budget;
    size_t total = sizeof(struct buffer) + buffer->capacity;
    mem_free(buffer);
    uncharge(budget, total);
}
