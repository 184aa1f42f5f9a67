/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that grows and is used again and again, charged to a budget. One owner. */
#pragma once

#include <stddef.h>

struct budget;

struct scratch {
    void *memory;
    size_t bytes;
};

/* The memory with more bytes than it has; as scratch_room. */
void *scratch_grow(struct scratch *scratch, struct budget *budget, size_t bytes)
    __attribute__((warn_unused_result));

/* At least so many bytes, what was there kept, the rest zero; NULL when refused, the scratch then
 * being as it was. budget may be NULL. Nearly always there is room, so that is asked inline. */
static inline __attribute__((warn_unused_result)) void *scratch_room(struct scratch *scratch,
                                                                     struct budget *budget,
                                                                     size_t bytes)
{
    if (bytes <= scratch->bytes)
        return scratch->memory;
    return scratch_grow(scratch, budget, bytes);
}

void scratch_fini(struct scratch *scratch, struct budget *budget);
