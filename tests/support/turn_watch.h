/* SPDX-License-Identifier: Apache-2.0 */
/* What turn_watch.c, loaded into a daemon, tells whoever maps the same file: for each thread with
 * an event loop a slot. tests/e2e/support/turn_watch.py reads the same. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum { TURN_WATCH_SLOTS = 64 };

/* Times are of the thread's CPU clock. The reader sets to 0 what is to begin anew. */
struct turn_watch_slot {
    _Atomic uint64_t longest_ns; /* of one turn */
    _Atomic uint64_t total_ns;
    _Atomic uint64_t turns;
    _Atomic uint64_t began_ns; /* the turn under way; 0: the thread waits */
    _Atomic uint64_t thread;   /* its id, as in /proc; 0: the slot is free */
};
