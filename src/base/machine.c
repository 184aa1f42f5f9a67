/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's files about memory and this process. Any thread. */
#include "src/base/machine.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/fileops.h"

enum { MACHINE_FILE_BYTES_MAX = 4096 };

/* Files of /proc and /sys have no size, so they are read to the end. */
static bool read_text(const char *path, char text[static MACHINE_FILE_BYTES_MAX])
{
    const struct fileops *ops = fileops();
    int fd = ops->open(path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    ssize_t got = ops->read(fd, text, MACHINE_FILE_BYTES_MAX - 1);
    ops->close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    return true;
}

uint64_t machine_memory_bytes(void)
{
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    char text[MACHINE_FILE_BYTES_MAX];
    uint64_t least = UINT64_MAX;
    uint64_t kib = 0;
    if (read_text("/proc/meminfo", text) && sscanf(text, "MemTotal: %" SCNu64, &kib) == 1 &&
        kib > 0 && kib <= UINT64_MAX / 1024)
        least = kib * 1024;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        /* "max" is not a number; v1's huge number for "no limit" is above the total; 0, with which
         * nothing runs, counts as none. */
        uint64_t limit = 0;
        if (read_text(limits[i], text) && sscanf(text, "%" SCNu64, &limit) == 1 && limit > 0 &&
            limit < least)
            least = limit;
    }
    return least;
}

unsigned machine_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    assert(count > 0);
    return (unsigned)count;
}

struct process_figures machine_process(void)
{
    char text[MACHINE_FILE_BYTES_MAX];
    struct process_figures figures = {0};
    struct rusage usage;
    uint64_t pages = 0;
    if (read_text("/proc/self/statm", text) && sscanf(text, "%*u %" SCNu64, &pages) == 1)
        figures.rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    int failed = getrusage(RUSAGE_SELF, &usage);
    assert(failed == 0);
    figures.cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                          (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    return figures;
}
