/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon under attack, as a child process. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "tests/attack/body.h"

enum { DAEMON_PATH_MAX = 1024, VERDICT_BYTES_MAX = 256 };

struct daemon {
    pid_t pid; /* 0: none runs */
    uint16_t ports[ENDPOINTS];
    clockid_t cpu_clock;
    char log_path[DAEMON_PATH_MAX];
    uint64_t rss_bytes_max;  /* allowed; set by the owner */
    uint64_t rss_bytes_seen; /* since the owner set it to 0 */
    double cpu_s;            /* of this and of all that ran before in this struct */
};

/* Starts it and waits until it is ready. Ports are chosen; it gets sink_port. False: why is
 * in verdict. */
bool daemon_start(struct daemon *daemon, const char *executable, const char *config_path,
                  uint16_t sink_port, char verdict[static VERDICT_BYTES_MAX]);
/* Whether it still runs; when it does not, verdict says how it ended. */
bool daemon_lives(struct daemon *daemon, char verdict[static VERDICT_BYTES_MAX]);
void daemon_signal(const struct daemon *daemon, int number);
/* Waits at most so long for its exit; true: the exit code is 0, and its memory was as allowed. */
bool daemon_await_end(struct daemon *daemon, unsigned seconds,
                      char verdict[static VERDICT_BYTES_MAX]);
/* CPU time that it has used. */
uint64_t daemon_cpu_ns(const struct daemon *daemon);
/* The same of one of its threads; lane 0 runs on the first, whose id is that of the process. */
uint64_t thread_cpu_ns(pid_t process, pid_t thread);
/* Time that its threads were ready to run and had no CPU, on a busy machine. */
uint64_t daemon_starved_ns(const struct daemon *daemon);
/* The same of a process by its directory in /proc. */
uint64_t process_starved_ns(const char *process);
/* Looks at its resident memory. False: it is more than allowed; the daemon was told to abort. */
bool daemon_watch_memory(struct daemon *daemon, char verdict[static VERDICT_BYTES_MAX]);
/* Reads a page of one of its HTTP servers; false: no response. */
bool daemon_read_page(const struct daemon *daemon, enum endpoint endpoint, const char *path,
                      struct bytes_out *out);
/* Whether what was received is accounted for and nothing is in flight; otherwise verdict says what
 * is missing. */
bool daemon_check_ledger(const struct daemon *daemon, char verdict[static VERDICT_BYTES_MAX]);
