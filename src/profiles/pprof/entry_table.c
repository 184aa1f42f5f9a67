/* SPDX-License-Identifier: Apache-2.0 */
/* Finds entries by content: open addressing over the encoded bytes. Runs on the owner's thread. */
#include "src/profiles/pprof/entry_table.h"

#include <assert.h>

#include "src/base/random.h"
#include "src/otlp/wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PLACES_FIRST = 64, HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX };

struct slot {
    uint32_t hash;
    uint32_t offset; /* of the content */
    uint32_t size;
    uint32_t index; /* 0: free; entry 0 has no slot */
};

bool byte_run_append(struct byte_run *run, struct budget *budget, struct slice bytes)
{
    uint8_t *memory = scratch_room(&run->scratch, budget, run->size + bytes.size);
    if (memory == NULL)
        return false;
    if (bytes.size > 0)
        memcpy(memory + run->size, bytes.data, bytes.size);
    run->size += bytes.size;
    return true;
}

bool byte_run_append_message(struct byte_run *run, struct budget *budget, uint32_t number,
                             struct slice content)
{
    uint8_t header[HEADER_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(header, sizeof(header));
    wire_write_header(&writer, number, content.size);
    return byte_run_append(run, budget, wire_written(&writer)) &&
           byte_run_append(run, budget, content);
}

void entry_table_init(struct entry_table *table, uint32_t number, struct budget *budget)
{
    assert(number > 0);
    *table = (struct entry_table){.budget = budget, .number = number, .count = 1};
    table->seed = (uint64_t)(random_uniform() * 0x1p53);
    table->has_failed = !byte_run_append_message(&table->bytes, budget, number, slice_of(NULL, 0));
}

void entry_table_fini(struct entry_table *table)
{
    scratch_fini(&table->bytes.scratch, table->budget);
    scratch_fini(&table->slots, table->budget);
}

/* Doubles the slots. */
static bool grow(struct entry_table *table)
{
    assert(table->count > 0);
    uint32_t places = table->places > 0 ? 2 * table->places : PLACES_FIRST;
    struct scratch fresh = {.bytes = 0};
    struct slot *slots = scratch_room(&fresh, table->budget, places * sizeof(slots[0]));
    const struct slot *old = table->slots.memory;
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < table->places; i++) {
        uint32_t at = old[i].hash & (places - 1);
        if (old[i].index == 0)
            continue;
        while (slots[at].index != 0)
            at = (at + 1) & (places - 1);
        slots[at] = old[i];
    }
    scratch_fini(&table->slots, table->budget);
    table->slots = fresh;
    table->places = places;
    return true;
}

uint32_t entry_table_add(struct entry_table *table, struct slice content)
{
    assert(table->number > 0);
    if (content.size == 0 || table->has_failed)
        return 0;
    if (2 * table->count >= table->places && !grow(table)) {
        table->has_failed = true;
        return 0;
    }
    /* Not FNV: its collisions can be the same for every seed. */
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(content.data, content.size, table->seed);
    struct slot *slots = table->slots.memory;
    const uint8_t *bytes = table->bytes.scratch.memory;
    uint32_t at = hash & (table->places - 1);
    for (; slots[at].index != 0; at = (at + 1) & (table->places - 1))
        if (slots[at].hash == hash &&
            slice_equal(slice_of(bytes + slots[at].offset, slots[at].size), content))
            return slots[at].index;
    table->has_failed =
        table->bytes.size + content.size > INT32_MAX ||
        !byte_run_append_message(&table->bytes, table->budget, table->number, content);
    if (table->has_failed)
        return 0;
    slots[at] = (struct slot){
        .hash = hash,
        .offset = (uint32_t)(table->bytes.size - content.size),
        .size = (uint32_t)content.size,
        .index = table->count++,
    };
    return slots[at].index;
}
