/* SPDX-License-Identifier: Apache-2.0 */
/* bench_relay, the yardstick of the benchmark: the least that a program can do which takes OTLP
 * requests and passes them on over HTTP/1.1. No checks, no queue limits, no retries, and the
 * response waits for the sink's. One thread; what is here is shared by its two fronts. Frozen: a
 * change makes earlier ratios incomparable. */
#pragma once

#include "tests/bench/support.h"

/* Something that epoll watches; first member of its struct. */
struct source {
    void (*on_ready)(struct source *source, uint32_t events);
    int fd;
};

/* A request from its last byte until the sink's response. */
struct job {
    struct job *next;
    struct bytes body;
    struct byte_buffer bytes; /* gRPC: the message with its prefix */
    void *front;              /* the connection; NULL when it has gone */
    int32_t stream;
    void (*on_response)(struct job *job, bool is_ok);
};

struct relay;

/* Bytes for one recv(), shared by all connections. */
enum { RELAY_READ_BYTES = 256 * 1024 };
extern uint8_t relay_read_bytes[RELAY_READ_BYTES];

int relay_epoll(const struct relay *relay);
/* Sends the job, or keeps it until an upstream connection is free. */
void relay_submit(struct relay *relay, struct job *job);
/* Jobs are used again and again, the warmest first. */
struct job *relay_job(struct relay *relay);
void relay_job_free(struct relay *relay, struct job *job);
/* Calls fn(front) once at the end of this turn of the loop. */
struct turn_end {
    void (*fn)(struct turn_end *end);
    struct turn_end *next;
    bool is_due;
};
void relay_at_turn_end(struct relay *relay, struct turn_end *end);

/* The two ways in: they own the accepted socket. */
void relay_front_http(struct relay *relay, int fd);
void relay_front_grpc(struct relay *relay, int fd);
