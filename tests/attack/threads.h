/* SPDX-License-Identifier: Apache-2.0 */
/* Watch over the threads of a daemon: how long the turns of its event loops are, and how long its
 * other threads, as helpers, compute without a rest. CPU time counts: the machine may be busy. The
 * daemon must be started with the environment that threads_create has set. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/attack/daemon.h"

struct threads;

struct threads_figures {
    uint64_t turn_ns_max;
    uint64_t work_ns_max; /* of a thread without an event loop, from one rest to the next */
};

/* library: that of tests/support/turn_watch.c, which daemons load. They write to the file at path.
 */
struct threads *threads_create(const char *library, const char *path);
void threads_destroy(struct threads *threads);
/* Another daemon begins. */
void threads_begin(struct threads *threads);
/* To be called often. bytes_sent: all that the daemon was sent so far; bytes_open: of connections
 * that are open. False: a thread computes for longer than they are worth; verdict says so. */
bool threads_look(struct threads *threads, pid_t daemon, uint64_t bytes_sent, uint64_t bytes_open,
                  struct threads_figures *figures, char verdict[static VERDICT_BYTES_MAX]);
