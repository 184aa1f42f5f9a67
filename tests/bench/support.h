/* SPDX-License-Identifier: Apache-2.0 */
/* What all benchmark programs need: exiting with a reason, the clock, sockets on loopback, memory
 * that is never NULL. The rig shares nothing with the daemon, so that it cannot share its errors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_NS_PER_S  ((uint64_t)1000000000)
#define BENCH_NS_PER_MS ((uint64_t)1000000)

struct bytes {
    const uint8_t *data;
    size_t size;
};

/* A growing byte string that its owner fills. */
struct byte_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
uint64_t now_ns(void);
/* User and system time of this process so far. */
uint64_t cpu_ns(void);
/* Never NULL: running out of memory ends the program. */
void *allocate(size_t size);
/* After this, at least extra bytes fit behind buffer->size. */
void byte_buffer_reserve(struct byte_buffer *buffer, size_t extra);
void byte_buffer_append(struct byte_buffer *buffer, const void *data, size_t size);
void byte_buffer_free(struct byte_buffer *buffer);

/* Parses a decimal number in [low, high], or dies naming the option. */
uint64_t number_option(const char *name, const char *text, uint64_t low, uint64_t high);
/* Non-blocking sockets on 127.0.0.1; they die when they cannot be had. */
int listen_on(uint16_t port);
int accept_from(int listener);
int connect_to(uint16_t port);
/* The events are level-triggered; data.ptr is arg. */
void watch(int epoll, int fd, uint32_t events, void *arg);
void rewatch(int epoll, int fd, uint32_t events, void *arg);
