/* SPDX-License-Identifier: Apache-2.0 */
/* A slot has half of the hash of a name and a place. The record at that place begins with the whole
 * hash, so that a record that was overwritten is recognised. Where two services had one name within
 * JOIN_WARM_UP_NS, neither is returned. */
#include "src/join/index/process_table.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/join/index/resource_facts.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"
#include "src/profiles/pprof/otlp_text.h"

enum { LINE = 8, NAMES = RESOURCE_PROCESS_NAMES + 1 };

bool process_table_init(struct process_table *table, struct span_index *index)
{
    *table = (struct process_table){.index = index, .shard_slots = 2 * JOIN_PROCESSES_MAX};
    table->slots =
        mem_try_zalloc(index->shards_count * table->shard_slots * sizeof(table->slots[0]));
    return table->slots != NULL;
}

void process_table_fini(struct process_table *table)
{
    mem_free(table->slots);
    table->slots = NULL;
}

static struct process_slot *line_of(const struct process_table *table, unsigned shard, uint64_t key)
{
    assert(shard < table->index->shards_count);
    uint64_t lines = table->shard_slots / LINE;
    return &table->slots[shard * table->shard_slots + key % lines * LINE];
}

/* The most certain name first; 0: there is none of that kind. A pod may have several containers. */
static uint64_t name_of(const struct resource_facts *facts, unsigned name)
{
    return name < RESOURCE_PROCESS_NAMES ? facts->processes[name] : facts->pod;
}

/* Never 0. */
static uint32_t seconds_of(uint64_t now_ns)
{
    assert(now_ns / NS_PER_S < UINT32_MAX);
    return (uint32_t)(now_ns / NS_PER_S) + 1;
}

static bool is_recent(uint32_t then_s, uint32_t now_s)
{
    return then_s != 0 && (then_s >= now_s || now_s - then_s <= JOIN_WARM_UP_NS / NS_PER_S);
}

/* False: the record was overwritten, or is of another name. */
static bool read_found(const struct process_table *table, unsigned shard, uint64_t key,
                       uint64_t value, struct process_found *ret_found, uint64_t *ret_container)
{
    assert(key != 0);
    if (value >> 32 != key >> 32 ||
        !span_index_strings_at(table->index, shard, (uint32_t)value, &ret_found->record))
        return false;
    ret_found->attributes = string_record_read(&ret_found->record);
    if (record_next_hash(&ret_found->attributes) != key)
        return false;
    ret_found->service = record_next_hash(&ret_found->attributes);
    *ret_container = record_next_hash(&ret_found->attributes);
    return true;
}

static bool is_same_record(const struct string_record *a, const struct string_record *b)
{
    return a->bytes == b->bytes && memcmp(a->words, b->words, a->bytes) == 0;
}

/* Whether profiles may take the value: invalid UTF-8 would make them unreadable. */
static bool is_readable(const struct resource_facts *facts, int key)
{
    char room[VALUE_TEXT_BYTES];
    struct slice string;
    return facts->key_values[key].size > 0 && facts->key_values[key].size <= JOIN_VALUE_BYTES_MAX &&
           value_text_of(facts->values[key], room, &string) &&
           otlp_text_valid(string) == string.size;
}

void process_table_add(struct process_table *table, unsigned shard,
                       const struct resource_facts *facts, uint64_t now_ns)
{
    struct string_ring *strings = span_index_ring(table->index, shard);
    struct string_record record;
    record.bytes = 0; /* not written yet; the rest of it is large */
    if (!facts->has_service || !is_readable(facts, RESOURCE_SERVICE_NAME))
        return;
    for (unsigned i = 0; i < NAMES; i++) {
        uint64_t key = name_of(facts, i);
        if (key == 0)
            continue;
        if (record.bytes == 0) {
            string_record_begin(&record);
            string_record_add_hash(&record, 0); /* the name */
            string_record_add_hash(&record, facts->service);
            string_record_add_hash(&record, facts->pod_container);
            for (int k = 0; k < RESOURCE_IDENTITY_KEYS; k++)
                if (is_readable(facts, k))
                    string_record_add(&record, facts->key_values[k].data, facts->key_values[k].size,
                                      JOIN_VALUE_BYTES_MAX);
        }
        record.words[0] = key;
        uint32_t place = string_ring_put(strings, &record, STRING_KEEP_HALF);
        assert(place != STRING_NOWHERE);
        /* The slot of that name, else one whose record is gone, else any. */
        struct process_slot *line = line_of(table, shard, key);
        struct process_slot *slot = &line[key >> 61];
        for (unsigned k = LINE; k > 0; k--) {
            uint64_t held = atomic_load_explicit(&line[k - 1].value, memory_order_relaxed);
            if (held >> 32 == key >> 32 && held != 0) {
                slot = &line[k - 1];
                break;
            }
            if (!string_ring_has(strings, (uint32_t)held))
                slot = &line[k - 1];
        }
        uint64_t value = (key & ~(uint64_t)UINT32_MAX) | place;
        uint64_t old = atomic_load_explicit(&slot->value, memory_order_relaxed);
        struct process_found before;
        uint64_t container;
        if (old >> 32 != key >> 32) {
            atomic_store_explicit(&slot->other_s, 0, memory_order_relaxed);
            atomic_store_explicit(&slot->instance_s, 0, memory_order_relaxed);
        } else if (old != value && read_found(table, shard, key, old, &before, &container)) {
            /* The process that had the name has given it up, or shares it. */
            uint32_t seen_s = atomic_load_explicit(&slot->seen_s, memory_order_relaxed);
            if (before.service != facts->service)
                atomic_store_explicit(&slot->other_s, seen_s, memory_order_relaxed);
            else if (!is_same_record(&before.record, &record))
                atomic_store_explicit(&slot->instance_s, seen_s, memory_order_relaxed);
        }
        atomic_store_explicit(&slot->seen_s, seconds_of(now_ns), memory_order_relaxed);
        if (old != value)
            atomic_store_explicit(&slot->value, value, memory_order_release);
    }
}

bool process_table_find(const struct process_table *table, const struct resource_facts *facts,
                        uint64_t now_ns, struct process_found *ret_found)
{
    const uint32_t now_s = seconds_of(now_ns);
    bool is_found = false;
    bool is_doubtful = false;
    bool has_instances = false;
    for (unsigned i = 0; i < NAMES && (!is_found || is_doubtful); i++) {
        uint64_t key = name_of(facts, i);
        uint64_t wanted = i == RESOURCE_PROCESS_NAMES ? facts->pod_container : 0; /* container */
        uint32_t found_s = 0;
        is_found = false;
        is_doubtful = false;
        has_instances = false;
        /* Compares what each shard has with what others have had; the last seen wins. */
        for (unsigned shard = 0; key != 0 && shard < table->index->shards_count; shard++) {
            const struct process_slot *slot = line_of(table, shard, key);
            const struct process_slot *end = slot + LINE;
            struct process_found here;
            uint64_t container;
            for (; slot < end; slot++) {
                uint64_t value = atomic_load_explicit(&slot->value, memory_order_acquire);
                if (read_found(table, shard, key, value, &here, &container) &&
                    (wanted == 0 || container == 0 || container == wanted))
                    break;
            }
            if (slot == end)
                continue;
            uint32_t seen_s = atomic_load_explicit(&slot->seen_s, memory_order_relaxed);
            uint32_t other_s = atomic_load_explicit(&slot->other_s, memory_order_relaxed);
            uint32_t instance_s = atomic_load_explicit(&slot->instance_s, memory_order_relaxed);
            bool are_both_recent =
                is_found && is_recent(seen_s, now_s) && is_recent(found_s, now_s);
            is_doubtful |= is_recent(other_s, now_s) ||
                           (are_both_recent && here.service != ret_found->service);
            has_instances |= is_recent(instance_s, now_s) ||
                             (are_both_recent && !is_same_record(&here.record, &ret_found->record));
            if (is_found && found_s >= seen_s)
                continue;
            is_found = true;
            found_s = seen_s;
            ret_found->service = here.service;
            ret_found->record = here.record;
            ret_found->attributes = string_record_read(&ret_found->record);
            ret_found->attributes.at += here.attributes.at - (const uint8_t *)here.record.words;
        }
    }
    ret_found->has_instances = has_instances;
    return is_found && !is_doubtful;
}
