/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with chains. Runs on its owner's thread. */
#include "src/explore/string_table.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/base/mem_stats.h"
#include "src/base/random.h"
#include "src/explore/explore_limits.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { BUCKETS_FIRST = 256 };

struct string_entry {
    uint64_t mark;
    uint32_t refs;
    uint32_t hash;
    uint32_t next; /* of the chain */
    uint32_t size;
    uint8_t data[];
};

void string_table_init(struct string_table *table)
{
    *table = (struct string_table){.seed = (uint64_t)(random_uniform() * 0x1p53)};
    table->buckets_count = BUCKETS_FIRST;
    table->buckets = mem_zalloc(BUCKETS_FIRST * sizeof(uint32_t));
    table->entries_capacity = BUCKETS_FIRST;
    table->entries =
        (struct string_entry **)mem_zalloc(BUCKETS_FIRST * sizeof(struct string_entry *));
    table->unused = mem_alloc(BUCKETS_FIRST * sizeof(uint32_t));
    table->entries_count = 1;
    table->bytes = BUCKETS_FIRST * (2 * sizeof(uint32_t) + sizeof(void *));
}

void string_table_fini(struct string_table *table)
{
    for (uint32_t i = 0; i < table->entries_count; i++)
        mem_free(table->entries[i]);
    mem_free((void *)table->entries);
    mem_free(table->buckets);
    mem_free(table->unused);
    *table = (struct string_table){.entries = NULL};
}

static struct slice cut(struct slice text)
{
    if (text.size > EXPLORE_STRING_BYTES_MAX)
        text.size = EXPLORE_STRING_BYTES_MAX;
    return text;
}

static uint32_t find(const struct string_table *table, struct slice text, uint32_t hash)
{
    uint32_t at = table->buckets[hash & (table->buckets_count - 1)];
    while (at != 0) {
        const struct string_entry *entry = table->entries[at];
        if (entry->hash == hash && slice_equal(slice_of(entry->data, entry->size), text))
            break;
        at = entry->next;
    }
    return at;
}

static uint32_t hash_of(const struct string_table *table, struct slice text)
{
    return (uint32_t)XXH3_64bits_withSeed(text.data, text.size, table->seed);
}

static void grow(struct string_table *table)
{
    uint32_t capacity = 2 * table->entries_capacity;
    table->entries = (struct string_entry **)mem_resize((void *)table->entries,
                                                        capacity * sizeof(struct string_entry *));
    table->unused = mem_resize(table->unused, capacity * sizeof(uint32_t));
    table->entries_capacity = capacity;
    mem_free(table->buckets);
    table->buckets_count = capacity;
    table->buckets = mem_zalloc(capacity * sizeof(uint32_t));
    for (uint32_t i = 1; i < table->entries_count; i++) {
        struct string_entry *entry = table->entries[i];
        if (entry == NULL)
            continue;
        uint32_t *bucket = &table->buckets[entry->hash & (capacity - 1)];
        entry->next = *bucket;
        *bucket = i;
    }
    table->bytes += capacity / 2 * (2 * sizeof(uint32_t) + sizeof(void *));
}

uint32_t string_table_add(struct string_table *table, struct slice text, uint64_t mark,
                          bool *ret_is_new)
{
    *ret_is_new = false;
    text = cut(text);
    if (text.size == 0)
        return 0;
    uint32_t hash = hash_of(table, text);
    uint32_t number = find(table, text, hash);
    if (number == 0) {
        if (table->unused_count == 0 && table->entries_count == table->entries_capacity)
            grow(table);
        number =
            table->unused_count > 0 ? table->unused[--table->unused_count] : table->entries_count++;
        struct string_entry *entry = mem_alloc(sizeof(*entry) + text.size);
        uint32_t *bucket = &table->buckets[hash & (table->buckets_count - 1)];
        *entry = (struct string_entry){
            .hash = hash, .size = (uint32_t)text.size, .next = *bucket, .mark = ~mark};
        memcpy(entry->data, text.data, text.size);
        *bucket = number;
        table->entries[number] = entry;
        table->bytes += mem_stats_held(entry);
        table->live++;
    }
    struct string_entry *entry = table->entries[number];
    *ret_is_new = entry->mark != mark;
    entry->mark = mark;
    return number;
}

uint32_t string_table_find(const struct string_table *table, struct slice text)
{
    text = cut(text);
    return text.size > 0 ? find(table, text, hash_of(table, text)) : 0;
}

struct slice string_table_at(const struct string_table *table, uint32_t number)
{
    if (number == 0)
        return slice_of("", 0);
    assert(number < table->entries_count && table->entries[number] != NULL);
    return slice_of(table->entries[number]->data, table->entries[number]->size);
}

void string_table_ref(struct string_table *table, uint32_t number)
{
    if (number == 0)
        return;
    assert(number < table->entries_count && table->entries[number] != NULL);
    table->entries[number]->refs++;
}

void string_table_unref(struct string_table *table, uint32_t number)
{
    if (number == 0)
        return;
    assert(number < table->entries_count && table->entries[number] != NULL);
    struct string_entry *entry = table->entries[number];
    assert(entry->refs > 0);
    if (--entry->refs > 0)
        return;
    uint32_t *at = &table->buckets[entry->hash & (table->buckets_count - 1)];
    while (*at != number)
        at = &table->entries[*at]->next;
    *at = entry->next;
    table->bytes -= mem_stats_held(entry);
    table->live--;
    table->entries[number] = NULL;
    table->unused[table->unused_count++] = number;
    mem_free(entry);
}
