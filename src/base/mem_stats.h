/* SPDX-License-Identifier: Apache-2.0 */
/* Allocator figures. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_stats {
    uint64_t allocated_bytes;
    uint64_t resident_bytes;
    uint64_t mapped_bytes;
};

struct mem_stats mem_stats_read(void);
/* The bytes that the allocator keeps for a block of mem_alloc, which are more than were asked for:
 * what memory that stays for long is to be counted with. 0 for NULL. */
size_t mem_stats_held(const void *memory);
/* Bytes of freed pages that the allocator keeps resident; 0 if unknown. */
uint64_t mem_stats_dirty_bytes(void);
/* Returns all of them to the system. */
void mem_stats_purge(void);
/* Whether the allocator keeps freed pages resident for a while (as it does at first), or returns
 * them at once. One thread at a time. */
void mem_stats_keep_freed(bool keeps);
/* Writes jemalloc's heap profile in its text form to this file. False: the process was started
 * without profiling (MALLOC_CONF=prof:true), jemalloc is not linked, or the file cannot be
 * written. */
bool mem_stats_dump_profile(const char *path);
