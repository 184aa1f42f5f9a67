/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the jaeger receiver share: the component (jaeger_receiver.c), one request on
 * its way (jaeger_exchange.c) and packets of UDP (jaeger_packets.c). Everything runs on the lane of
 * its instance. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "receivers/shared/span_exchange.h"
#include "src/base/counter.h"
#include "src/base/signal_kind.h"
#include "src/codec/codec.h"
#include "src/core/component.h"
#include "src/listen/server_front.h"
#include "src/net/server/http_server.h"

struct error;
struct packet_socket;

enum jaeger_transport {
    JAEGER_GRPC,
    JAEGER_HTTP,
    JAEGER_SERVERS,
    JAEGER_COMPACT = JAEGER_SERVERS, /* these two are UDP */
    JAEGER_BINARY,
    JAEGER_TRANSPORTS,
};

/* The settings of this folder's option tables. Constant once loaded; any thread. */
struct jaeger_http_protocol {
    struct http_server_config server;
};

/* Of thrift_compact and thrift_binary. */
struct jaeger_udp_protocol {
    const char *endpoint;
    uint64_t queue_size;
    uint64_t packet_bytes_max;
    uint64_t workers;
    uint64_t socket_buffer_bytes;
};

struct jaeger_protocols_config {
    bool has_grpc;
    bool has_http;
    bool has_compact;
    bool has_binary;
    struct grpc_server_config grpc;
    struct jaeger_http_protocol http;
    struct jaeger_udp_protocol compact;
    struct jaeger_udp_protocol binary;
};

struct jaeger_sampling_config {
    const char *host_endpoint;
    const char *strategy_file;
    uint64_t reload_interval_ns;
};

struct jaeger_receiver_config {
    struct jaeger_protocols_config protocols;
    bool has_sampling;
    struct jaeger_sampling_config sampling;
};

struct jaeger_receiver_counters {
    counter accepted[JAEGER_TRANSPORTS][SIGNAL_KINDS];
    counter refused[JAEGER_TRANSPORTS][SIGNAL_KINDS];
    counter dropped_packets[JAEGER_TRANSPORTS][SIGNAL_KINDS];
    struct server_tls_counters tls;
    struct http_server_counters http;
};

/* A socket for packets, of the instance on lane 0. */
struct jaeger_packets {
    struct jaeger_receiver *receiver;
    enum jaeger_transport transport;
    const struct jaeger_udp_protocol *config; /* NULL: protocol off */
    struct packet_socket *socket;             /* NULL: closed */
    uint64_t pending;                         /* packets whose receipts are open */
};

struct jaeger_receiver {
    struct component base;
    const struct jaeger_protocols_config *config;
    struct server_front servers[JAEGER_SERVERS];
    struct jaeger_packets packets[JAEGER_TRANSPORTS - JAEGER_SERVERS];
    struct span_front front;
    uint64_t bytes_max[JAEGER_SERVERS]; /* of a message or body, and of what it inflates to */
    unsigned exchanges;                 /* requests, and receipts that outlive them; packets */
    unsigned servers_open;              /* and sockets */
    bool is_stopping;
};

extern const struct span_exchange_ops jaeger_exchange_ops;
extern const struct http_handler jaeger_grpc_handler;
extern const struct http_handler jaeger_http_handler;

/* Opens the socket. Starts nothing on failure. */
bool jaeger_packets_open(struct jaeger_packets *packets, struct error *error);

/* Call when the receiver may have become idle while it stops. */
void jaeger_receiver_check_stopped(struct jaeger_receiver *self);
