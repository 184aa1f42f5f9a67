/* SPDX-License-Identifier: Apache-2.0 */
/* Appends entries that are not in the table yet. Runs on the owner's thread. */
#include "src/profiles/pprof/entry_table.h"

#include <assert.h>
#include <string.h>

#include "src/otlp/wire.h"

enum { HEADER_BYTES_MAX = 2 * WIRE_SHORT_VARINT_BYTES_MAX };

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
    *table = (struct entry_table){.budget = budget, .number = number};
    content_table_init(&table->contents);
    table->has_failed = !byte_run_append_message(&table->bytes, budget, number, slice_of(NULL, 0));
}

void entry_table_fini(struct entry_table *table)
{
    scratch_fini(&table->bytes.scratch, table->budget);
    content_table_fini(&table->contents, table->budget);
}

uint32_t entry_table_add(struct entry_table *table, struct slice content)
{
    struct byte_run *bytes = &table->bytes;
    uint32_t hash;
    assert(table->number > 0);
    if (content.size == 0 || table->has_failed)
        return 0;
    uint32_t index = content_table_find(&table->contents, bytes->scratch.memory, content, &hash);
    if (index != 0)
        return index;
    if (bytes->size + content.size <= INT32_MAX &&
        byte_run_append_message(bytes, table->budget, table->number, content))
        index = content_table_add(&table->contents, table->budget, hash, bytes->size - content.size,
                                  content.size);
    table->has_failed = index == 0;
    return index;
}
