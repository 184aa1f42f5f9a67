/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that the next service inherits during a reload: connections wait in their
 * backlog, instead of being refused, until it listens on the same endpoint. Lane 0 only. */
#pragma once

#include <stdbool.h>

/* From now on listeners that close put their sockets here. */
void inherited_listeners_begin(void);
/* Closes sockets that were not taken; from now on sockets close with their listeners. */
void inherited_listeners_end(void);
/* False: the caller must close the socket. */
bool inherited_listeners_put(int fd, const char *transport, const char *endpoint);
/* The listening socket of this endpoint, or -1. */
int inherited_listeners_take(const char *transport, const char *endpoint);
