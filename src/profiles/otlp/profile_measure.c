/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of what the parts of a merge take. Pure functions; any thread. */
#include "src/profiles/otlp/profile_measure.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_groups.h"
#include "src/profiles/otlp/profile_set.h"
#include "src/profiles/otlp/profile_view.h"

enum {
    /* First allocations of everything that grows. */
    FIRST_BYTES = 64 * 1024,
    /* What is written is held in tables or body, and in the result; the body has unused capacity,
     * and its old copy while it grows. */
    TABLES_COPIES = 2,
    BODY_COPIES = 3,
    /* What a Profile gains: its two types, if need be, and its header. */
    PROFILE_MORE_BYTES = 4,
    /* Bytes that merging takes for each byte of a request, at most. */
    GROWTH_MAX = 64,
    DICTIONARY = 2,
};

uint64_t profile_measure_merge(const struct profile_measure *measure)
{
    uint64_t index_bytes = 1; /* of the largest index */
    uint64_t bytes = FIRST_BYTES;
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        uint64_t count = measure->entries[i];
        bytes += profile_set_bytes_max(count) +
                 count * (sizeof(struct profile_entry) + sizeof(uint32_t));
        if (i != PROFILE_STRINGS && wire_varint_size(count) > index_bytes)
            index_bytes = wire_varint_size(count);
    }
    bytes += profile_groups_index_bytes_max(measure->resources, measure->scopes, measure->profiles);
    assert(measure->fixed_bytes <= measure->request_bytes);
    assert(measure->tables_bytes <= measure->fixed_bytes);
    uint64_t body = (measure->request_bytes - measure->fixed_bytes) * index_bytes +
                    (measure->fixed_bytes - measure->tables_bytes) + measure->inlined_bytes +
                    measure->profiles * PROFILE_MORE_BYTES;
    uint64_t headers =
        (measure->resources + measure->scopes + measure->profiles) * PROFILE_HEADER_BYTES_MAX;
    /* The scratch has strings as well. */
    return bytes + BODY_COPIES * body + TABLES_COPIES * measure->tables_bytes + headers +
           measure->inlined_bytes;
}

struct profile_measure profile_measure_of(struct slice request)
{
    struct profile_measure measure = {.request_bytes = request.size};
    struct wire_reader fields = wire_reader_of(request);
    struct wire_field field;
    struct wire_field entry;
    while (wire_next_field(&fields, &field)) {
        if (field.number != DICTIONARY || field.type != WIRE_BYTES)
            continue;
        struct wire_reader entries = wire_reader_of(field.bytes);
        while (wire_next_field(&entries, &entry)) {
            if (entry.number >= 1 && entry.number <= PROFILE_TABLES)
                measure.entries[entry.number - 1]++;
            /* Strings and links have no indices. */
            if (entry.number == PROFILE_STRINGS + 1 || entry.number == PROFILE_LINKS + 1) {
                measure.fixed_bytes += entry.whole.size;
                measure.tables_bytes += entry.whole.size;
            }
        }
    }
    assert(fields.failure == NULL);
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        measure.resources++;
        while (profile_next_scope(&scopes, &scope)) {
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            measure.scopes++;
            measure.profiles += scope.profiles_count;
            while (profile_next_profile(&profiles, &profile))
                measure.fixed_bytes += profile.id.size + profile.payload.size; /* no indices */
        }
    }
    return measure;
}

enum budget_result profile_measure_reserve(struct slice request, uint64_t more,
                                           struct budget *budget, struct budget_reserve *reserve)
{
    if (budget_has_room(budget, more + (uint64_t)request.size * GROWTH_MAX + FIRST_BYTES))
        return budget_reserve(reserve, NULL, 0);
    struct profile_measure measure = profile_measure_of(request);
    more += profile_measure_merge(&measure);
    enum budget_result reserved = budget_reserve(reserve, budget, more);
    bool is_hopeless = reserved == BUDGET_FULL && request.size + more > budget_limit(budget);
    return is_hopeless ? BUDGET_TOO_SMALL : reserved;
}

bool profile_measure_fits(struct slice request, const struct budget *budget)
{
    if (budget_has_room(budget, (uint64_t)request.size * GROWTH_MAX + FIRST_BYTES))
        return true;
    struct profile_measure measure = profile_measure_of(request);
    return budget_has_room(budget, profile_measure_merge(&measure));
}
