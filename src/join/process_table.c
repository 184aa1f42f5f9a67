/* SPDX-License-Identifier: Apache-2.0 */
/* A slot is one word: half of the hash and a place. The text at that place begins with the whole
 * hash, so that a slot that has been overwritten meanwhile is found out. */
#include "src/join/process_table.h"

#include <assert.h>
#include <stddef.h>

#include "src/join/join_limits.h"
#include "src/join/resource_facts.h"
#include "src/join/span_index.h"
#include "src/mem.h"

enum { LINE = 8 };

bool process_table_init(struct process_table *table, struct span_index *index)
{
    assert(index->shards_count > 0);
    *table = (struct process_table){.index = index, .shard_slots = 2 * JOIN_PROCESSES_MAX};
    table->slots =
        mem_try_zalloc(index->shards_count * table->shard_slots * sizeof(table->slots[0]));
    return table->slots != NULL;
}

void process_table_fini(struct process_table *table)
{
    assert(table != NULL);
    mem_free((void *)(uintptr_t)table->slots);
    table->slots = NULL;
}

static _Atomic uint64_t *line_of(const struct process_table *table, unsigned shard, uint64_t key)
{
    assert(shard < table->index->shards_count);
    uint64_t lines = table->shard_slots / LINE;
    return &table->slots[shard * table->shard_slots + key % lines * LINE];
}

static void add(struct process_table *table, unsigned shard, uint64_t key, uint32_t place)
{
    uint64_t value = (key & ~(uint64_t)UINT32_MAX) | place;
    _Atomic uint64_t *line = line_of(table, shard, key);
    const struct fact_log *log = span_index_log(table->index, shard);
    unsigned chosen = (unsigned)(key >> 61);
    assert(place != FACT_NOWHERE);
    for (unsigned i = LINE; i > 0; i--) {
        uint64_t old = atomic_load_explicit(&line[i - 1], memory_order_relaxed);
        if (old == value)
            return;
        if (!fact_log_has(log, (uint32_t)old))
            chosen = i - 1;
        if (old >> 32 == key >> 32 && old != 0) {
            chosen = i - 1;
            break;
        }
    }
    atomic_store_explicit(&line[chosen], value, memory_order_release);
}

static void add_hash(struct fact_text *text, uint64_t hash)
{
    assert(hash != 0);
    fact_text_add_number(text, (uint32_t)hash);
    fact_text_add_number(text, (uint32_t)(hash >> 32));
}

static uint64_t next_hash(struct fact_reader *reader)
{
    uint64_t low = fact_next_number(reader);
    assert(low <= UINT32_MAX);
    return low | (uint64_t)fact_next_number(reader) << 32;
}

void process_table_add(struct process_table *table, unsigned shard,
                       const struct resource_facts *facts)
{
    struct fact_text text;
    assert(table->slots != NULL);
    if (facts->service == 0)
        return;
    for (unsigned i = 0; i < RESOURCE_PROCESS_NAMES; i++) {
        if (facts->processes[i] == 0)
            continue;
        fact_text_begin(&text);
        add_hash(&text, facts->processes[i]);
        add_hash(&text, facts->service);
        for (int k = 0; k < RESOURCE_IDENTITY_KEYS; k++)
            if (facts->key_values[k].size > 0 && facts->key_values[k].size <= JOIN_VALUE_BYTES_MAX)
                fact_text_add(&text, facts->key_values[k].data, facts->key_values[k].size,
                              JOIN_VALUE_BYTES_MAX);
        struct fact_log *log = span_index_log(table->index, shard);
        add(table, shard, facts->processes[i], fact_log_put(log, &text, FACT_KEEP_HALF));
    }
}

static bool find(const struct process_table *table, uint64_t key, struct fact_text *ret_text,
                 struct fact_reader *ret_reader)
{
    assert(key != 0);
    for (unsigned shard = 0; shard < table->index->shards_count; shard++) {
        const _Atomic uint64_t *line = line_of(table, shard, key);
        for (unsigned i = 0; i < LINE; i++) {
            uint64_t value = atomic_load_explicit(&line[i], memory_order_acquire);
            if (value >> 32 != key >> 32 ||
                !span_index_text_at(table->index, shard, (uint32_t)value, ret_text))
                continue;
            *ret_reader = fact_text_read(ret_text);
            if (next_hash(ret_reader) == key)
                return true;
        }
    }
    return false;
}

bool process_table_find(const struct process_table *table, const struct resource_facts *facts,
                        uint64_t *ret_service, struct fact_text *ret_text,
                        struct fact_reader *ret_reader)
{
    bool is_found = false;
    assert(facts != NULL);
    for (unsigned i = 0; !is_found && i < RESOURCE_PROCESS_NAMES; i++)
        is_found =
            facts->processes[i] != 0 && find(table, facts->processes[i], ret_text, ret_reader);
    if (is_found)
        *ret_service = next_hash(ret_reader);
    return is_found;
}
