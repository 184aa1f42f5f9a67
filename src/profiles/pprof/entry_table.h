/* SPDX-License-Identifier: Apache-2.0 */
/* A growing run of bytes, and a table that keeps each encoded entry once: a protobuf dictionary
 * under construction. Charged to a budget; the error is sticky. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/content_table.h"
#include "src/base/scratch.h"
#include "src/base/slice.h"

struct budget;

struct byte_run {
    struct scratch scratch;
    size_t size;
};

static inline struct slice byte_run_slice(const struct byte_run *run)
{
    return slice_of(run->scratch.memory, run->size);
}

struct entry_table {
    struct budget *budget;
    struct byte_run bytes; /* every entry as field `number`, one after the other */
    struct content_table contents;
    uint32_t number;
    bool has_failed;
};

/* The table of a repeated field; entry 0, without content, is there from the start. */
void entry_table_init(struct entry_table *table, uint32_t number, struct budget *budget);
void entry_table_fini(struct entry_table *table);
/* The index of the entry with that content; adds it if it is new. */
uint32_t entry_table_add(struct entry_table *table, struct slice content);

/* False: no memory. */
bool byte_run_append(struct byte_run *run, struct budget *budget, struct slice bytes);
/* Appends a message as field `number`. */
bool byte_run_append_message(struct byte_run *run, struct budget *budget, uint32_t number,
                             struct slice content);
