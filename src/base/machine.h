/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the machine, the container and this process, from /proc and /sys. Any thread. */
#pragma once

#include <stdint.h>

/* The memory that this process may use, in bytes: the cgroup's limit (v2, then v1) if set, else all
 * of the machine's. */
uint64_t machine_memory_bytes(void);
/* CPUs that this process may run on, at least 1. */
unsigned machine_cores(void);

struct process_figures {
    uint64_t rss_bytes;
    double cpu_seconds; /* user and system */
};
struct process_figures machine_process(void);
