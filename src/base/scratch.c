/* SPDX-License-Identifier: Apache-2.0 */
/* Grows charged memory. Runs on the thread of its owner. */
#include "src/base/scratch.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

enum { BYTES_FIRST = 256 };

/* Twice what there is, or more. */
size_t scratch_wanted(const struct scratch *scratch, size_t bytes)
{
    assert(bytes <= SIZE_MAX / 2);
    size_t wanted = scratch->bytes > 0 ? scratch->bytes : BYTES_FIRST;
    while (wanted < bytes)
        wanted *= 2;
    return wanted;
}

static void *resize(struct scratch *scratch, struct budget *budget, size_t wanted, bool may_exceed)
{
    /* Both exist while it is copied. */
    if (budget != NULL && may_exceed)
        budget_take(budget, wanted);
    else if (budget != NULL && !budget_try_take(budget, wanted))
        return NULL;
    void *memory = mem_try_resize(scratch->memory, wanted);
    if (budget != NULL)
        budget_return(budget, memory != NULL ? scratch->bytes : wanted);
    if (memory != NULL)
        *scratch = (struct scratch){.memory = memory, .bytes = wanted};
    return memory;
}

static void *grow(struct scratch *scratch, struct budget *budget, size_t bytes, bool may_exceed)
{
    const size_t before = scratch->bytes;
    assert(bytes > before);
    if (bytes > SIZE_MAX / 2)
        return NULL;
    uint8_t *memory = resize(scratch, budget, scratch_wanted(scratch, bytes), may_exceed);
    if (memory != NULL)
        memset(memory + before, 0, scratch->bytes - before);
    return memory;
}

void *scratch_grow(struct scratch *scratch, struct budget *budget, size_t bytes)
{
    return grow(scratch, budget, bytes, false);
}

void *scratch_grow_beyond(struct scratch *scratch, struct budget *budget, size_t bytes)
{
    return grow(scratch, budget, bytes, true);
}

void *scratch_reserve(struct scratch *scratch, struct budget *budget, size_t bytes, size_t likely)
{
    if (bytes <= scratch->bytes)
        return scratch->memory;
    if (bytes > SIZE_MAX / 2)
        return NULL;
    void *memory = likely > bytes ? resize(scratch, budget, likely, false) : NULL;
    return memory != NULL ? memory : resize(scratch, budget, scratch_wanted(scratch, bytes), false);
}

void scratch_fini(struct scratch *scratch, struct budget *budget)
{
    if (budget != NULL && scratch->bytes > 0)
        budget_return(budget, scratch->bytes);
    mem_free(scratch->memory);
    *scratch = (struct scratch){.bytes = 0};
}
