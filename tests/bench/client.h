/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the load generator: gRPC over HTTP/2, or HTTP/1.1. Both are written for
 * cheapness: heads are made once, bodies are copied for TLS alone, replies are only classified. */
#pragma once

#include "tests/bench/channel.h"

enum outcome {
    OUTCOME_OK,
    OUTCOME_REFUSED,  /* the peer said: try again */
    OUTCOME_REJECTED, /* it said: never */
    OUTCOME_BROKEN,   /* it said nothing */
};

/* One request on its way; owned by the generator. */
struct exchange {
    struct bytes body;
    uint64_t number;
    uint64_t scheduled_ns;
    void *owner; /* whatever the generator needs to find its way back */
};

struct client_options {
    uint16_t port;
    bool is_tls;
    const char *coding; /* of the bodies: gzip, zstd …; NULL: none */
    const char *path;   /* of HTTP/1.1; gRPC has its traces' */
    const char *type;   /* the same */
    unsigned slots;     /* requests in flight at most */
    void (*on_done)(void *arg, struct exchange *exchange, enum outcome outcome);
    void *arg;
};

struct client_type;

struct client {
    const struct client_type *type;
    struct client_options options;
    struct channel channel;
    bool has_output;
    bool is_writable; /* as far as is known; the socket is watched edge-triggered */
    unsigned in_flight;
};

struct client_type {
    /* Connects; the requests wait until the peer is there. */
    struct client *(*create)(const struct client_options *options);
    /* At most options->slots at a time. Nothing leaves before write(). */
    void (*send)(struct client *client, struct exchange *exchange);
    /* False: the connection is of no use any more. */
    bool (*write)(struct client *client);
    /* The same; calls on_done for each response. */
    bool (*read)(struct client *client);
    /* Reports what was in flight as OUTCOME_BROKEN. */
    void (*destroy)(struct client *client);
};

extern const struct client_type grpc_client_type;
extern const struct client_type http_client_type;
