/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that outlive their listener while the service reloads: connections wait in
 * their backlog instead of being refused, until the new service listens at the same endpoint.
 * Lane 0 only. */
#pragma once

#include <stdbool.h>

/* From now on listeners that close leave their sockets here. */
void kept_sockets_begin(void);
/* Closes what nobody took; from now on sockets are closed with their listeners. */
void kept_sockets_end(void);
/* True: the socket is kept. False: the caller closes it. */
bool kept_sockets_put(int fd, const char *transport, const char *endpoint);
/* A listening socket of the same endpoint, or -1. */
int kept_sockets_take(const char *transport, const char *endpoint);
