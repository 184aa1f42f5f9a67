/* SPDX-License-Identifier: Apache-2.0 */
/* The back-end of the daemon under attack: HTTP/1.1 and gRPC on one port, responding well or as
 * badly as a back-end can. It is turned by its owner, never blocks, and lives on one thread. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;

enum { SINK_CONNECTIONS_MAX = 128, SINK_FDS_MAX = SINK_CONNECTIONS_MAX + 1 };

/* Listens on a port of loopback. */
struct sink *sink_create(void);
void sink_destroy(struct sink *sink);
uint16_t sink_port(const struct sink *sink);
enum { SINK_IS_AWAY = 17 };
/* From here on its moods follow from seed. Of 16 responses so many are hostile; with SINK_IS_AWAY
 * it closes each connection as it comes. */
void sink_begin(struct sink *sink, uint64_t seed, unsigned hostile);
/* Fills polls with what it waits for; returns how many, SINK_FDS_MAX at most. */
size_t sink_polls(const struct sink *sink, struct pollfd *polls);
/* The same polls, after poll(). */
void sink_turn(struct sink *sink, const struct pollfd *polls, size_t count);
