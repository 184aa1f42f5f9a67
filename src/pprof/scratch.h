/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that grows and is used again and again, charged to a budget. One owner. */
#pragma once

#include <stddef.h>

struct budget;

struct scratch {
    void *memory;
    size_t bytes;
};

/* At least so many bytes, what was there kept, the rest zero; NULL when refused, the scratch then
 * being as it was. budget may be NULL. */
void *scratch_room(struct scratch *scratch, struct budget *budget, size_t bytes)
    __attribute__((warn_unused_result));
void scratch_fini(struct scratch *scratch, struct budget *budget);
