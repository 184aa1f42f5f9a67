/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers batches and times within bounds. Runs on the exporter's lane. */
#include "exporters/pyroscope/pyroscope_memory.h"

#include "src/base/mem.h"
#include "src/core/batch.h"

#include <assert.h>
#include <string.h>

enum { SET_CAPACITY_FIRST = 16 };

/* A hash of two numbers, never 0. */
static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
    hash *= 0xc4ceb9fe1a85ec53u;
    hash ^= hash >> 29;
    return hash != 0 ? hash : 1;
}

static size_t place_of(const struct number_set *set, uint64_t number)
{
    assert(set->capacity > 0);
    size_t place = mixed(number, 0) & (set->capacity - 1);
    while (set->slots[place] != 0 && set->slots[place] != number)
        place = (place + 1) & (set->capacity - 1);
    return place;
}

bool number_set_has(const struct number_set *set, uint64_t number)
{
    assert(number != 0);
    return set->capacity > 0 && set->slots[place_of(set, number)] == number;
}

bool number_set_add(struct number_set *set, uint64_t number)
{
    assert(number != 0);
    if (number_set_has(set, number))
        return true;
    if (set->count == NUMBER_SET_MAX)
        return false;
    if (2 * set->count >= set->capacity) {
        struct number_set old = *set;
        set->capacity = old.capacity > 0 ? 2 * old.capacity : SET_CAPACITY_FIRST;
        set->slots = mem_zalloc(set->capacity * sizeof(set->slots[0]));
        for (size_t i = 0; i < old.capacity; i++)
            if (old.slots[i] != 0)
                set->slots[place_of(set, old.slots[i])] = old.slots[i];
        mem_free(old.slots);
    }
    set->slots[place_of(set, number)] = number;
    set->count++;
    return true;
}

void number_set_add_all(struct number_set *set, const struct number_set *others)
{
    for (size_t i = 0; i < others->capacity; i++)
        if (others->slots[i] != 0)
            number_set_add(set, others->slots[i]);
}

void number_set_clear(struct number_set *set)
{
    mem_free(set->slots);
    *set = (struct number_set){.count = 0};
}

struct batch_name batch_name_of(const struct batch *batch)
{
    struct batch_name name = {.bytes = batch->bytes, .arrival_ns = batch->arrival_ns};
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice bytes = batch->parts[i].bytes;
        uint64_t word = 0;
        for (; bytes.size >= sizeof(word); bytes.size -= sizeof(word), bytes.data += sizeof(word)) {
            memcpy(&word, bytes.data, sizeof(word));
            name.hash = mixed(name.hash, word);
        }
        word = 0;
        if (bytes.size > 0)
            memcpy(&word, bytes.data, bytes.size);
        name.hash = mixed(name.hash, word);
    }
    return name;
}

uint64_t batch_name_owner(const struct batch_name *name, uint64_t post)
{
    assert(post != 0);
    return mixed(mixed(name->hash, name->arrival_ns), post);
}

void settled_batch_clear(struct settled_batch *settled)
{
    number_set_clear(&settled->posts);
    number_set_clear(&settled->cut);
}

bool settled_batch_limited(struct settled_batch *settled, uint64_t post, bool is_idle)
{
    assert(post != 0);
    settled->is_limited = true;
    if (!is_idle)
        return false;
    if (settled->limited_post != post)
        settled->limited_times = 0;
    settled->limited_post = post;
    return ++settled->limited_times > SETTLED_LIMITED_TIMES;
}

void pyroscope_memory_fini(struct pyroscope_memory *memory)
{
    for (size_t i = 0; i < MEMORY_BATCHES_MAX; i++)
        settled_batch_clear(&memory->batches[i]);
    for (size_t i = 0; i < 2; i++) {
        number_set_clear(&memory->times[i]);
        number_set_clear(&memory->owners[i]);
    }
}

struct settled_batch pyroscope_memory_take(struct pyroscope_memory *memory,
                                           const struct batch_name *name)
{
    struct settled_batch none = {.rejected = 0};
    if (memory->batches_count == 0 || name->bytes == 0)
        return none;
    for (size_t i = 0; i < MEMORY_BATCHES_MAX; i++) {
        struct settled_batch found = memory->batches[i];
        if (found.name.hash != name->hash || found.name.bytes != name->bytes ||
            found.name.arrival_ns != name->arrival_ns)
            continue;
        memory->batches[i] = none;
        memory->batches_count--;
        return found;
    }
    return none;
}

void pyroscope_memory_keep(struct pyroscope_memory *memory, const struct batch_name *name,
                           struct settled_batch *settled)
{
    struct settled_batch *place = &memory->batches[memory->next_batch];
    bool has_news = settled->posts.count > 0 || settled->is_limited;
    if (!has_news || name->bytes == 0) {
        settled_batch_clear(settled);
        return;
    }
    for (size_t i = 0; i < MEMORY_BATCHES_MAX && place->name.bytes != 0; i++)
        if (memory->batches[i].name.bytes == 0)
            place = &memory->batches[i];
    if (place->name.bytes != 0)
        memory->next_batch = (memory->next_batch + 1) % MEMORY_BATCHES_MAX;
    else
        memory->batches_count++;
    settled_batch_clear(place);
    settled->name = *name;
    *place = *settled;
    *settled = (struct settled_batch){.rejected = 0};
}

static bool has(const struct number_set sets[2], uint64_t number)
{
    return number_set_has(&sets[0], number) || number_set_has(&sets[1], number);
}

/* The younger half is full and becomes the older one. */
static void age(struct number_set sets[2])
{
    number_set_clear(&sets[1]);
    sets[1] = sets[0];
    sets[0] = (struct number_set){.count = 0};
}

uint64_t pyroscope_memory_time(struct pyroscope_memory *memory, uint64_t series, uint64_t owner,
                               uint64_t time_ns)
{
    for (uint64_t step = 0; step < MEMORY_TIME_STEPS_MAX; step++) {
        uint64_t time = mixed(series, time_ns + step);
        if (has(memory->owners, mixed(time, owner)))
            return time_ns + step;
        if (has(memory->times, time))
            continue;
        if (memory->times[0].count == MEMORY_TIMES_MAX) {
            age(memory->times);
            age(memory->owners);
        }
        number_set_add(&memory->times[0], time);
        number_set_add(&memory->owners[0], mixed(time, owner));
        return time_ns + step;
    }
    return time_ns + MEMORY_TIME_STEPS_MAX;
}
