/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that grows and is reused, charged to a budget. One owner. */
#pragma once

#include <stddef.h>

struct budget;

struct scratch {
    void *memory;
    size_t bytes;
};

/* scratch_room for more bytes than it has. */
void *scratch_grow(struct scratch *scratch, struct budget *budget, size_t bytes)
    __attribute__((warn_unused_result));

/* The same, charged beyond the budget's limit if need be. */
void *scratch_grow_beyond(struct scratch *scratch, struct budget *budget, size_t bytes)
    __attribute__((warn_unused_result));

/* Memory of at least that many bytes: the content is kept, the rest is zero. NULL: no memory, and
 * the scratch is unchanged. budget may be NULL. Inline, since there is nearly always room. */
static inline __attribute__((warn_unused_result)) void *scratch_room(struct scratch *scratch,
                                                                     struct budget *budget,
                                                                     size_t bytes)
{
    if (bytes <= scratch->bytes)
        return scratch->memory;
    return scratch_grow(scratch, budget, bytes);
}

/* The same, but what is new holds anything, and there may be more of it: up to `likely`, unless the
 * budget refuses that. */
void *scratch_reserve(struct scratch *scratch, struct budget *budget, size_t bytes, size_t likely)
    __attribute__((warn_unused_result));

/* What scratch_room and scratch_reserve ask of the budget for so many bytes, when there is no room:
 * what there was is returned afterwards. */
size_t scratch_wanted(const struct scratch *scratch, size_t bytes);

void scratch_fini(struct scratch *scratch, struct budget *budget);
