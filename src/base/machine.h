/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine, the container and the kernel say of this process. Reads /proc and /sys; any
 * thread. */
#pragma once

#include <stdint.h>

/* The memory that this process may use: the cgroup's limit (v2, then v1) where one is set, else all
 * of it. Bytes. */
uint64_t machine_memory_bytes(void);
/* Processors that this process may run on, at least 1. */
unsigned machine_cores(void);

struct process_figures {
    uint64_t rss_bytes;
    double cpu_seconds; /* user and system */
};
struct process_figures machine_process(void);
