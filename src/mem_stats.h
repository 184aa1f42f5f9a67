/* SPDX-License-Identifier: Apache-2.0 */
/* What the allocator says of itself. Any thread. */
#pragma once

#include <stdint.h>

struct mem_stats {
    uint64_t allocated_bytes;
    uint64_t resident_bytes;
    uint64_t mapped_bytes;
};

struct mem_stats mem_stats_read(void);
