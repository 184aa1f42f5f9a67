/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the jaeger receiver share: the component (jaeger_receiver.c) and one request on
 * its way (jaeger_exchange.c). Everything runs on the lane of its instance. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/signal_kind.h"
#include "src/codec/codec.h"
#include "src/core/component.h"
#include "src/listen/server_auth.h"
#include "src/listen/server_config.h"
#include "src/listen/server_cors.h"
#include "src/listen/server_tls_context.h"
#include "src/net/server/http_server.h"

enum jaeger_transport { JAEGER_GRPC, JAEGER_HTTP, JAEGER_TRANSPORTS };

/* The settings of this folder's option tables. Constant once loaded; any thread. */
struct jaeger_http_protocol {
    struct http_server_config server;
};

/* Of thrift_compact and thrift_binary, which are refused. */
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
    struct server_tls_counters tls;
    struct http_server_counters http;
};

struct jaeger_receiver {
    struct component base;
    const struct jaeger_protocols_config *config;
    struct http_server *servers[JAEGER_TRANSPORTS]; /* NULL: protocol off */
    struct server_tls_context tls[JAEGER_TRANSPORTS];
    struct server_auth auth[JAEGER_TRANSPORTS];
    struct server_cors cors;
    struct http_common_headers response_headers;
    struct codec_box *codecs;
    uint64_t bytes_max[JAEGER_TRANSPORTS]; /* of a message or body, and of what it inflates to */
    unsigned exchanges;                    /* requests, and receipts that outlive them */
    unsigned servers_open;
    bool is_stopping;
};

extern const struct http_handler jaeger_grpc_handler;
extern const struct http_handler jaeger_http_handler;

/* Call when the receiver may have become idle while it stops. */
void jaeger_receiver_check_stopped(struct jaeger_receiver *self);
