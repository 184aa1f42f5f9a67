/* SPDX-License-Identifier: Apache-2.0 */
/* A non-blocking client on loopback beside a lane that the test turns by hand: every wait turns the
 * lane and is bounded. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct lane;

enum { LOOPBACK_TEXT_MAX = 512 * 1024 };

struct loopback {
    struct lane *lane;
    int fd;
    bool has_ended; /* the server sent FIN or RST */
    bool was_reset;
    size_t size;
    char text[LOOPBACK_TEXT_MAX + 1]; /* what came, zero-ended */
};

/* Connects to "127.0.0.1:4318" or "[::1]:4318"; fails the test when it cannot. */
struct loopback *loopback_connect(struct lane *lane, const char *address);
void loopback_close(struct loopback *loopback);
/* A port of 127.0.0.1 that was free a moment ago, as "127.0.0.1:PORT". */
void loopback_find_port(char address[static 32]);
/* RST instead of FIN. */
void loopback_reset(struct loopback *loopback);
void loopback_shutdown(struct loopback *loopback);
/* Sends all of it, turning the lane while the socket is full. */
void loopback_send(struct loopback *loopback, const char *text);
void loopback_send_bytes(struct loopback *loopback, const void *data, size_t size);
/* Turns the lane a few times and takes what has come. */
void loopback_settle(struct loopback *loopback);
/* Turns until the string has come, or fails the test. */
void loopback_expect(struct loopback *loopback, const char *text);
/* Turns until the server has closed, or fails the test. */
void loopback_expect_end(struct loopback *loopback);
/* Forgets what came. */
void loopback_forget(struct loopback *loopback);
/* Turns a lane until *flag, or fails the test. */
void loopback_turn_until(struct lane *lane, const bool *flag);
