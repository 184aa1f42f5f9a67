/* SPDX-License-Identifier: Apache-2.0 */
/* Which service runs in a process, as the resources of its spans say: for profiles that do not name
 * one. One shard per lane, written by that lane alone and read by all without locks; the strings
 * are in the string rings of the span index. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/index/string_ring.h"

struct resource_facts;
struct span_index;

struct process_slot {
    _Atomic uint64_t value;      /* half of a hash, and a place in the shard's string ring */
    _Atomic uint32_t seen_s;     /* when its last spans arrived, by clock_now_ns; never 0 */
    _Atomic uint32_t other_s;    /* when another service last had that name; 0: never */
    _Atomic uint32_t instance_s; /* when another instance of the service did; 0: never */
};

struct process_table {
    struct span_index *index; /* borrowed */
    struct process_slot *slots;
    uint64_t shard_slots;
};

struct process_found {
    uint64_t service;   /* a hash */
    bool has_instances; /* there have been several recently: the instance is not known */
    struct string_record record;
    struct record_reader attributes; /* of record: each an encoded KeyValue */
};

/* False: no memory. */
bool process_table_init(struct process_table *table, struct span_index *index);
void process_table_fini(struct process_table *table);
/* The shard's lane: notes the process of a resource that names its service. */
void process_table_add(struct process_table *table, unsigned shard,
                       const struct resource_facts *facts, uint64_t now_ns);
/* Any thread: the service that runs in the process. False: none is known, or there have been two
 * recently. */
bool process_table_find(const struct process_table *table, const struct resource_facts *facts,
                        uint64_t now_ns, struct process_found *ret_found);
