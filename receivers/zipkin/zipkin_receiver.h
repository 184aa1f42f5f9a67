/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the zipkin receiver share: the component (zipkin_receiver.c) and one request on
 * its way (zipkin_exchange.c). Everything runs on the lane of its instance. */
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
#include "src/zipkin/zipkin_read.h"

/* Constant once loaded; any thread. */
struct zipkin_receiver_config {
    struct http_server_config server;
    bool parses_strings;
};

struct zipkin_receiver_counters {
    counter accepted[ZIPKIN_FORMS][SIGNAL_KINDS];
    counter refused[ZIPKIN_FORMS][SIGNAL_KINDS];
    struct server_tls_counters tls;
    struct http_server_counters http;
};

struct zipkin_receiver {
    struct component base;
    const struct zipkin_receiver_config *config;
    struct server_front http;
    struct span_front front;
    uint64_t body_bytes_max; /* of a body, and of what it inflates to */
    unsigned exchanges;      /* requests, and receipts that outlive them */
    bool is_server_open;
    bool is_stopping;
};

extern const struct span_exchange_ops zipkin_exchange_ops;
extern const struct http_handler zipkin_handler;

/* Call when the receiver may have become idle while it stops. */
void zipkin_receiver_check_stopped(struct zipkin_receiver *self);
