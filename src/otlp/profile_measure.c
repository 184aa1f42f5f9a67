/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of what the parts of a merge say that they take. Pure functions; any thread. */
#include "src/otlp/profile_measure.h"

#include <assert.h>

#include "src/otlp/profile_groups.h"
#include "src/otlp/profile_set.h"
#include "src/otlp/wire.h"

enum {
    /* First pieces of everything that grows. */
    FIRST_BYTES = 64 * 1024,
    /* What is written lies in tables or body, and in the result; the body has room left, or what
     * it had before it grew. */
    COPIES = 3,
    /* What a Profile gets beside what it has: its two types, if need be, and its header. */
    PROFILE_MORE_BYTES = 16,
};

uint64_t profile_measure_merge(const struct profile_measure *measure)
{
    uint64_t index_bytes = 1; /* most that an index takes */
    uint64_t bytes = FIRST_BYTES;
    assert(measure != NULL);
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        uint64_t count = measure->entries[i];
        bytes += profile_set_bytes_max(count) +
                 count * (sizeof(struct profile_entry) + sizeof(uint32_t));
        if (i != PROFILE_STRINGS && wire_varint_size(count) > index_bytes)
            index_bytes = wire_varint_size(count);
    }
    bytes += profile_groups_index_bytes_max(measure->resources, measure->scopes, measure->profiles);
    uint64_t written = measure->request_bytes * index_bytes + measure->inlined_bytes +
                       measure->profiles * PROFILE_MORE_BYTES;
    return bytes + COPIES * written + measure->inlined_bytes; /* the scratch has texts as well */
}
