/* SPDX-License-Identifier: Apache-2.0 */
/* Grows charged memory. Runs on the thread of its owner. */
#include "src/base/scratch.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

enum { BYTES_FIRST = 256 };

void *scratch_grow(struct scratch *scratch, struct budget *budget, size_t bytes)
{
    assert(bytes > scratch->bytes);
    size_t wanted = scratch->bytes > 0 ? scratch->bytes : BYTES_FIRST;
    if (bytes > SIZE_MAX / 2)
        return NULL;
    while (wanted < bytes)
        wanted *= 2;
    /* Both exist while it is copied. */
    if (budget != NULL && !budget_try_take(budget, wanted))
        return NULL;
    void *memory = mem_try_resize(scratch->memory, wanted);
    if (budget != NULL)
        budget_return(budget, memory != NULL ? scratch->bytes : wanted);
    if (memory == NULL)
        return NULL;
    memset((uint8_t *)memory + scratch->bytes, 0, wanted - scratch->bytes);
    *scratch = (struct scratch){.memory = memory, .bytes = wanted};
    return memory;
}

void scratch_fini(struct scratch *scratch, struct budget *budget)
{
    if (budget != NULL && scratch->bytes > 0)
        budget_return(budget, scratch->bytes);
    mem_free(scratch->memory);
    *scratch = (struct scratch){.bytes = 0};
}
