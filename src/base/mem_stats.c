/* SPDX-License-Identifier: Apache-2.0 */
/* Allocator figures: jemalloc's where it is linked, else glibc's. Any thread. */
#include "src/base/mem_stats.h"

#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/types.h>

#if defined(SPANFLAME_HAS_JEMALLOC)
#include <jemalloc/jemalloc.h>

static uint64_t read_figure(const char *name)
{
    size_t value = 0;
    size_t size = sizeof(value);
    return mallctl(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

#define TEXT_OF(name)    #name
#define OF_ALL_ARENAS(i) TEXT_OF(i)
#define ALL_ARENAS       OF_ALL_ARENAS(MALLCTL_ARENAS_ALL)

/* Figures are as of the last refresh. */
static void refresh(void)
{
    uint64_t epoch = 1;
    size_t size = sizeof(epoch);
    mallctl("epoch", &epoch, &size, &epoch, size);
}

uint64_t mem_stats_dirty_bytes(void)
{
    refresh();
    return (read_figure("stats.arenas." ALL_ARENAS ".pdirty") +
            read_figure("stats.arenas." ALL_ARENAS ".pmuzzy")) *
           read_figure("arenas.page");
}

void mem_stats_purge(void)
{
    mallctl("arena." ALL_ARENAS ".purge", NULL, NULL, NULL, 0);
}

/* jemalloc(3), opt.dirty_decay_ms: 0 returns pages when they are freed. */
static void set_decay(const char *kind, bool keeps)
{
    char name[64];
    ssize_t decay_ms = 0;
    size_t size = sizeof(decay_ms);
    snprintf(name, sizeof(name), "opt.%s_decay_ms", kind);
    if (keeps && mallctl(name, &decay_ms, &size, NULL, 0) != 0)
        return;
    snprintf(name, sizeof(name), "arenas.%s_decay_ms", kind);
    mallctl(name, NULL, NULL, &decay_ms, sizeof(decay_ms)); /* of arenas that come later */
    unsigned arenas = 0;
    size = sizeof(arenas);
    mallctl("arenas.narenas", &arenas, &size, NULL, 0);
    for (unsigned i = 0; i < arenas; i++) {
        snprintf(name, sizeof(name), "arena.%u.%s_decay_ms", i, kind);
        mallctl(name, NULL, NULL, &decay_ms, sizeof(decay_ms)); /* fails for those not in use */
    }
}

void mem_stats_keep_freed(bool keeps)
{
    set_decay("dirty", keeps);
    set_decay("muzzy", keeps);
}

struct mem_stats mem_stats_read(void)
{
    refresh();
    return (struct mem_stats){
        .allocated_bytes = read_figure("stats.allocated"),
        .resident_bytes = read_figure("stats.resident"),
        .mapped_bytes = read_figure("stats.mapped"),
    };
}

bool mem_stats_dump_profile(const char *path)
{
    return mallctl("prof.dump", NULL, NULL, &path, sizeof(path)) == 0;
}
#else
uint64_t mem_stats_dirty_bytes(void)
{
    return 0;
}

void mem_stats_purge(void)
{
    malloc_trim(0);
}

void mem_stats_keep_freed(bool keeps)
{
    (void)keeps;
}

struct mem_stats mem_stats_read(void)
{
    struct mallinfo2 info = mallinfo2();
    assert(info.arena >= info.uordblks);
    return (struct mem_stats){
        .allocated_bytes = info.uordblks + info.hblkhd,
        .resident_bytes = info.arena + info.hblkhd,
        .mapped_bytes = info.arena + info.hblkhd,
    };
}

bool mem_stats_dump_profile(const char *path)
{
    (void)path;
    return false;
}
#endif

size_t mem_stats_held(const void *memory)
{
    /* jemalloc gives large blocks a page more, to begin them at different lines of the caches. */
    enum { LARGE_BYTES = 16 * 1024, PAGE_BYTES = 4096 };
    size_t bytes = malloc_usable_size((void *)(uintptr_t)memory);
    return bytes >= LARGE_BYTES ? bytes + PAGE_BYTES : bytes;
}
