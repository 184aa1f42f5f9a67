/* SPDX-License-Identifier: Apache-2.0 */
/* Which service runs in a process, as the resources of its spans say: for profiles that do not say
 * it themselves. One shard per lane, written by that lane alone and read by all without locks; the
 * texts lie in the logs of the span index. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/fact_log.h"

struct resource_facts;
struct span_index;

struct process_table {
    struct span_index *index; /* borrowed */
    _Atomic uint64_t *slots;  /* part of a hash, and a place in the shard's log */
    uint64_t shard_slots;
};

/* False: no memory. */
bool process_table_init(struct process_table *table, struct span_index *index);
void process_table_fini(struct process_table *table);
/* The shard's lane: a process whose resource says which service it is of. */
void process_table_add(struct process_table *table, unsigned shard,
                       const struct resource_facts *facts);
/* Any thread: the service that runs in the process, and its attributes, each an encoded KeyValue,
 * in ret_text from *ret_reader on. False: it is not known. */
bool process_table_find(const struct process_table *table, const struct resource_facts *facts,
                        uint64_t *ret_service, struct fact_text *ret_text,
                        struct fact_reader *ret_reader);
