/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are told apart by hashes of 64 bits: two spans with the same one do not occur. On the
 * explore worker. */
#include "src/explore/span_cpu.h"

#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/explore/profile_store.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SPANS_PER_LOOK = 1024 }; /* at the clock */

static uint64_t hash_of(const struct span_cpu *table, const uint8_t *trace_id, const void *span_id)
{
    uint8_t both[24];
    memcpy(both, trace_id, 16);
    memcpy(both + 16, span_id, 8);
    return XXH3_64bits_withSeed(both, sizeof(both), table->seed) | 1;
}

static struct span_cpu_entry *place_of(const struct span_cpu *table, uint64_t hash)
{
    size_t at = (hash >> 20) & (table->places - 1);
    while (table->entries[at].hash != 0 && table->entries[at].hash != hash)
        at = (at + 1) & (table->places - 1);
    return &table->entries[at];
}

enum explore_result span_cpu_init(struct span_cpu *table, const struct profile_store *store,
                                  struct budget *budget, const struct explore_limit *limit)
{
    size_t count = 0;
    *table = (struct span_cpu){
        .places = 64, .seed = (uint64_t)(random_uniform() * 0x1p53), .budget = budget};
    for (size_t i = 0; i < profile_store_blocks(store); i++)
        count += profile_store_block(store, i)->spans_count;
    while (table->places < 2 * count)
        table->places *= 2;
    if (budget != NULL && !budget_try_take(budget, table->places * sizeof(table->entries[0])))
        return EXPLORE_NO_MEMORY;
    table->entries = mem_try_zalloc(table->places * sizeof(table->entries[0]));
    if (table->entries == NULL) {
        if (budget != NULL)
            budget_return(budget, table->places * sizeof(table->entries[0]));
        return EXPLORE_NO_MEMORY;
    }
    size_t seen = 0;
    for (size_t i = 0; i < profile_store_blocks(store); i++) {
        const struct profile_block *block = profile_store_block(store, i);
        for (size_t j = 0; j < block->spans_count; j++) {
            const struct span_samples *span = &block->spans[j];
            if (++seen % SPANS_PER_LOOK == 0 && explore_is_over(limit)) {
                span_cpu_fini(table);
                return EXPLORE_TOO_LONG;
            }
            uint64_t hash = hash_of(table, span->trace_id, span->span_id);
            struct span_cpu_entry *entry = place_of(table, hash);
            entry->hash = hash;
            entry->cpu_ns += span_samples_cpu_ns(span);
            entry->samples += span_samples_count(span);
        }
    }
    return EXPLORE_DONE;
}

void span_cpu_fini(struct span_cpu *table)
{
    if (table->entries != NULL && table->budget != NULL)
        budget_return(table->budget, table->places * sizeof(table->entries[0]));
    mem_free(table->entries);
    table->entries = NULL;
}

const struct span_cpu_entry *span_cpu_find(const struct span_cpu *table,
                                           const uint8_t trace_id[static 16], uint64_t span_id)
{
    const struct span_cpu_entry *entry = place_of(table, hash_of(table, trace_id, &span_id));
    return entry->hash != 0 ? entry : NULL;
}
