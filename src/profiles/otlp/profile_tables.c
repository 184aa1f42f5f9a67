/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a dictionary that is being built. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_tables.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"

void profile_tables_init(struct profile_tables *tables, struct budget *budget)
{
    tables->scratch = (struct profile_bytes){.budget = budget};
    for (uint32_t i = 0; i < PROFILE_TABLES; i++)
        profile_set_init_field(&tables->sets[i], budget, i + 1);
}

void profile_tables_fini(struct profile_tables *tables)
{
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        profile_set_fini(&tables->sets[i]);
    profile_bytes_fini(&tables->scratch);
}

void profile_tables_clear(struct profile_tables *tables)
{
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        profile_set_clear(&tables->sets[i]);
}

struct profile_tables_mark profile_tables_mark(const struct profile_tables *tables)
{
    struct profile_tables_mark mark;
    assert(tables->sets[0].count > 0);
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        mark.counts[i] = tables->sets[i].count;
    return mark;
}

void profile_tables_cut(struct profile_tables *tables, const struct profile_tables_mark *mark)
{
    assert(mark->counts[0] > 0);
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        profile_set_cut(&tables->sets[i], mark->counts[i]);
}

uint64_t profile_tables_bytes(const struct profile_tables *tables)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        bytes += tables->sets[i].encoded_bytes;
    assert(bytes > 0);
    return bytes;
}

uint8_t *profile_tables_write(const struct profile_tables *tables, uint8_t *at)
{
    const uint8_t *begin = at;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        at = profile_set_write(&tables->sets[i], at);
    assert((uint64_t)(at - begin) == profile_tables_bytes(tables));
    return at;
}

static bool is_large(const struct profile_set *set)
{
    return set->encoded_bytes >= PROFILE_LARGE_BYTES;
}

uint64_t profile_tables_small_bytes(const struct profile_tables *tables)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        bytes += is_large(&tables->sets[i]) ? 0 : tables->sets[i].encoded_bytes;
    return bytes;
}

void profile_tables_hand_out(const struct profile_tables *tables, struct buffer *buffer,
                             struct batch *batch)
{
    size_t begin = 0; /* of what batch does not have yet */
    assert(buffer->capacity - buffer->size >= profile_tables_small_bytes(tables));
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        const struct profile_set *set = &tables->sets[i];
        if (!is_large(set)) {
            profile_set_write(set, buffer->data + buffer->size);
            buffer->size += set->encoded_bytes;
            continue;
        }
        batch_append(batch, buffer, slice_of(buffer->data + begin, buffer->size - begin));
        profile_set_hand_out(set, batch);
        begin = buffer->size;
    }
    batch_append(batch, buffer, slice_of(buffer->data + begin, buffer->size - begin));
}
