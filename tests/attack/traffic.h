/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the daemon: sends sessions side by side, waits for what must come back, and
 * watches how long a lane is held and how much memory is taken. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/attack/daemon.h"
#include "tests/attack/session.h"
#include "tests/attack/sink.h"
#include "tests/attack/threads.h"

/* Links in all, and those of clients that are prompt: others do not keep them waiting. */
enum { LINKS_MAX = 48, PROMPT_LINKS_MAX = 8, STATUS_CLASSES = 6 };

struct traffic_figures {
    uint64_t sessions;
    uint64_t requests;
    uint64_t bytes;
    uint64_t statuses[STATUS_CLASSES]; /* of HTTP/1.1 by their first digit */
    uint64_t streams;                  /* of HTTP/2 that were ended */
    uint64_t stall_ns_max; /* longest CPU time of lane 0 in which a page had no response */
    struct threads_figures threads;
    uint64_t calmed; /* lives in which the back-end had to turn good before slow sessions ended */
};

struct traffic;

/* Of a daemon that has started. threads: NULL, or its threads are watched, too. */
struct traffic *traffic_create(struct daemon *daemon, struct sink *sink, struct threads *threads);
void traffic_destroy(struct traffic *traffic);
/* Begins with a session; its bytes are copied. Only when there is room. */
bool traffic_has_room(const struct traffic *traffic);
void traffic_send(struct traffic *traffic, const struct session *session, uint64_t number);
/* Waits a little and moves what can be moved. False: the daemon has ended, or hangs, or took too
 * much; verdict says which. */
bool traffic_turn(struct traffic *traffic, char verdict[static VERDICT_BYTES_MAX]);
bool traffic_is_idle(const struct traffic *traffic);
/* Whether all prompt clients have their responses. */
bool traffic_is_quiet(const struct traffic *traffic);
/* Numbers of the sessions under way; returns how many. */
unsigned traffic_under_way(const struct traffic *traffic, uint64_t numbers[static LINKS_MAX]);
const struct traffic_figures *traffic_figures(const struct traffic *traffic);
