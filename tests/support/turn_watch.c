/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded into a daemon with LD_PRELOAD: measures how much CPU time each thread spends between two
 * waits of its event loop, for a test that reads the figures from a file that both map
 * (TURN_WATCH_FILE, of TURN_WATCH_SLOTS slots). What other processes take from the CPU meanwhile
 * does not count. Any thread. */
#define _GNU_SOURCE
#include "tests/support/turn_watch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

typedef int (*epoll_wait_fn)(int, struct epoll_event *, int, int);
typedef int (*epoll_pwait_fn)(int, struct epoll_event *, int, int, const sigset_t *);

static struct turn_watch_slot *slots;
static epoll_wait_fn real_epoll_wait;
static epoll_pwait_fn real_epoll_pwait;
static _Atomic unsigned slots_used;
static _Thread_local struct turn_watch_slot *own_slot;
static _Thread_local uint64_t began_ns;

__attribute__((constructor)) static void open_slots(void)
{
    const char *path = getenv("TURN_WATCH_FILE");
    real_epoll_wait = (epoll_wait_fn)dlsym(RTLD_NEXT, "epoll_wait");
    real_epoll_pwait = (epoll_pwait_fn)dlsym(RTLD_NEXT, "epoll_pwait");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        abort();
    void *room =
        mmap(NULL, TURN_WATCH_SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (room == MAP_FAILED || real_epoll_wait == NULL || real_epoll_pwait == NULL)
        abort();
    slots = room;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void end_turn(void)
{
    if (own_slot == NULL) {
        own_slot = &slots[atomic_fetch_add(&slots_used, 1) % TURN_WATCH_SLOTS];
        atomic_store(&own_slot->thread, (uint64_t)gettid());
        return; /* what came before the first wait is the start */
    }
    uint64_t spent_ns = cpu_ns() - began_ns;
    atomic_store(&own_slot->began_ns, 0);
    atomic_fetch_add(&own_slot->turns, 1);
    atomic_fetch_add(&own_slot->total_ns, spent_ns);
    if (spent_ns > atomic_load(&own_slot->longest_ns))
        atomic_store(&own_slot->longest_ns, spent_ns);
}

static void begin_turn(void)
{
    began_ns = cpu_ns();
    atomic_store(&own_slot->began_ns, began_ns);
}

/* libuv calls the one or the other, by what signals are to be masked. A release build hides
 * symbols. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
    end_turn();
    int ready = real_epoll_wait(fd, events, count, timeout);
    begin_turn();
    return ready;
}

EXPORTED int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout,
                         const sigset_t *mask)
{
    end_turn();
    int ready = real_epoll_pwait(fd, events, count, timeout, mask);
    begin_turn();
    return ready;
}
