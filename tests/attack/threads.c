/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at /proc and at what the daemon's event loops write about themselves. */
#include "tests/attack/threads.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "tests/support/turn_watch.h"

/* What a turn may take: so much, and so much for each byte that came of late or whose connection is
 * open. Sanitizers make everything slower by ten and more. */
#define TURN_NS          ((uint64_t)300 * NS_PER_MS)
#define TURN_NS_PER_BYTE ((uint64_t)20)
/* The same of a helper, from one rest to the next: it may have several requests in a row. */
#define WORK_NS          ((uint64_t)20 * NS_PER_S)
#define WORK_NS_PER_BYTE ((uint64_t)1000)

enum { THREADS_MAX = 256, LATE_LOOKS = 64 };

/* A thread without an event loop. */
struct worker {
    pid_t id;         /* 0: free */
    uint64_t rest_ns; /* its CPU time when it was last seen to rest */
    uint64_t bytes;   /* that had been sent then */
};

struct threads {
    int file;
    struct turn_watch_slot *slots; /* shared with the daemon */
    uint64_t sent[LATE_LOOKS];     /* bytes at each of the last looks, in a ring */
    unsigned looks;
    struct worker workers[THREADS_MAX];
};

struct threads *threads_create(const char *library, const char *path)
{
    struct threads *threads = mem_zalloc(sizeof(*threads));
    const size_t size = TURN_WATCH_SLOTS * sizeof(threads->slots[0]);
    threads->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *room = MAP_FAILED;
    if (threads->file >= 0 && ftruncate(threads->file, (off_t)size) == 0)
        room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, threads->file, 0);
    if (room == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    threads->slots = room;
    setenv("TURN_WATCH_FILE", path, 1);
    setenv("LD_PRELOAD", library, 1);
    return threads;
}

void threads_destroy(struct threads *threads)
{
    if (threads == NULL)
        return;
    munmap(threads->slots, TURN_WATCH_SLOTS * sizeof(threads->slots[0]));
    close(threads->file);
    mem_free(threads);
}

void threads_begin(struct threads *threads)
{
    memset(threads->slots, 0, TURN_WATCH_SLOTS * sizeof(threads->slots[0]));
    memset(threads->workers, 0, sizeof(threads->workers));
    memset(threads->sent, 0, sizeof(threads->sent));
    threads->looks = 0;
}

static bool rests(pid_t daemon, pid_t thread)
{
    char path[64];
    char state = 'S';
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)daemon, (int)thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return true;
    if (fscanf(file, "%*u (%*[^)]) %c", &state) != 1)
        state = 'S';
    fclose(file);
    return state != 'R';
}

/* The longest turn that has ended since the last look, or the one under way. */
static uint64_t turn_ns(struct turn_watch_slot *slot, pid_t daemon)
{
    uint64_t longest_ns = atomic_exchange(&slot->longest_ns, 0);
    uint64_t began_ns = atomic_load(&slot->began_ns);
    if (began_ns == 0)
        return longest_ns;
    uint64_t now_ns = thread_cpu_ns(daemon, (pid_t)atomic_load(&slot->thread));
    bool is_same = atomic_load(&slot->began_ns) == began_ns;
    uint64_t spent_ns = is_same && now_ns > began_ns ? now_ns - began_ns : 0;
    return spent_ns > longest_ns ? spent_ns : longest_ns;
}

static bool check_turns(struct threads *threads, pid_t daemon, uint64_t bytes,
                        struct threads_figures *figures, char verdict[static VERDICT_BYTES_MAX])
{
    for (unsigned i = 0; i < TURN_WATCH_SLOTS; i++) {
        uint64_t ns = turn_ns(&threads->slots[i], daemon);
        if (ns > figures->turn_ns_max)
            figures->turn_ns_max = ns;
        if (ns <= TURN_NS + TURN_NS_PER_BYTE * bytes)
            continue;
        snprintf(verdict, VERDICT_BYTES_MAX,
                 "stall: a turn of event loop %u took %.2f s of CPU time, for %llu bytes", i,
                 (double)ns / 1e9, (unsigned long long)bytes);
        return false;
    }
    return true;
}

static bool has_event_loop(const struct threads *threads, pid_t thread)
{
    for (unsigned i = 0; i < TURN_WATCH_SLOTS; i++)
        if ((pid_t)atomic_load(&threads->slots[i].thread) == thread)
            return true;
    return false;
}

/* NULL: there are too many. */
static struct worker *worker_of(struct threads *threads, pid_t thread)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        struct worker *worker = &threads->workers[i];
        if (worker->id != thread && worker->id != 0)
            continue;
        worker->id = thread;
        return worker;
    }
    return NULL;
}

static bool check_worker(struct worker *worker, pid_t daemon, uint64_t bytes_sent,
                         uint64_t bytes_open, struct threads_figures *figures,
                         char verdict[static VERDICT_BYTES_MAX])
{
    uint64_t now_ns = thread_cpu_ns(daemon, worker->id);
    uint64_t ns = now_ns > worker->rest_ns ? now_ns - worker->rest_ns : 0;
    uint64_t bytes = bytes_sent - worker->bytes + bytes_open;
    if (ns > figures->work_ns_max)
        figures->work_ns_max = ns;
    if (rests(daemon, worker->id)) {
        worker->rest_ns = now_ns;
        worker->bytes = bytes_sent;
    }
    if (ns <= WORK_NS + WORK_NS_PER_BYTE * bytes)
        return true;
    snprintf(verdict, VERDICT_BYTES_MAX,
             "stall: a helper took %.1f s of CPU time without a rest, for %llu bytes",
             (double)ns / 1e9, (unsigned long long)bytes);
    return false;
}

static bool check_workers(struct threads *threads, pid_t daemon, uint64_t bytes_sent,
                          uint64_t bytes_open, struct threads_figures *figures,
                          char verdict[static VERDICT_BYTES_MAX])
{
    char path[64];
    bool is_fine = true;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)daemon);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return true;
    for (struct dirent *entry = readdir(directory); entry != NULL && is_fine;
         entry = readdir(directory)) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        struct worker *worker =
            thread == 0 || has_event_loop(threads, thread) ? NULL : worker_of(threads, thread);
        if (worker != NULL)
            is_fine = check_worker(worker, daemon, bytes_sent, bytes_open, figures, verdict);
    }
    closedir(directory);
    return is_fine;
}

bool threads_look(struct threads *threads, pid_t daemon, uint64_t bytes_sent, uint64_t bytes_open,
                  struct threads_figures *figures, char verdict[static VERDICT_BYTES_MAX])
{
    uint64_t *late = &threads->sent[threads->looks++ % LATE_LOOKS];
    uint64_t bytes = bytes_sent - *late + bytes_open;
    *late = bytes_sent;
    return check_turns(threads, daemon, bytes, figures, verdict) &&
           check_workers(threads, daemon, bytes_sent, bytes_open, figures, verdict);
}
