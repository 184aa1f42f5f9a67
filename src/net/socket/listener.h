/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket on one lane that distributes connections round robin to members on their own
 * lanes. It lives until every member has left. Opened and closed on the lane of member 0. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include "src/base/lane.h"

struct error;
struct listener;

/* Receives accepted sockets; embedded by its owner. */
struct listener_member {
    struct lane *lane;
    /* Takes over the socket, which is non-blocking. On the member's lane. */
    void (*adopt)(void *arg, int fd, const struct sockaddr *peer);
    /* A connection was closed at once, as listener_refused counts them. Called for member 0, on its
     * lane. NULL: not reported. */
    void (*refused)(void *arg);
    /* After listener_leave: adopt is not called any more. On the member's lane, in a later turn. */
    void (*left)(void *arg);
    void *arg;
    struct listener *listener;   /* NULL: not listening */
    struct lane_task task;       /* of leaving, to the listener's lane and back */
    _Atomic uint64_t open_count; /* sockets given to it and not closed yet */
};

/* Listens for the members, the first of which is on the calling lane. All members together have at
 * most open_max open sockets; more are closed at once. */
bool listener_open(struct listener_member *const *members, size_t count, uint64_t open_max,
                   const char *transport, const char *endpoint, struct error *error);
/* "127.0.0.1:4318", port 0 resolved; the path of a unix socket. */
const char *listener_address(const struct listener *listener);
/* Connections that were closed at once: over open_max, or no file descriptor left. */
uint64_t listener_refused(const struct listener *listener);
/* The member gets no more sockets. Listening ends when member 0 leaves. On the member's lane. */
void listener_leave(struct listener_member *member);
