/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pyroscope receiver share: the component and its routes
 * (pyroscope_receiver.c), one request on its way (pyroscope_exchange.c), its two doors
 * (pyroscope_push.c, pyroscope_ingest.c) and the forms of answers (pyroscope_answer.c). Everything
 * runs on the lane of its instance. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/pyroscope/pyroscope_config.h"
#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/core/component.h"
#include "src/listen/server_auth.h"
#include "src/listen/server_cors.h"
#include "src/listen/server_tls_context.h"
#include "src/net/server/http_server.h"

struct codec_box;
struct gzip;
struct outcome;
struct pyroscope_exchange;
struct pyroscope_ingest;

struct pyroscope_receiver_counters {
    counter accepted[SIGNAL_KINDS];
    counter refused[SIGNAL_KINDS];
    counter waits;
    counter empty;
    counter negative;
    struct server_tls_counters tls;
    struct http_server_counters http;
};

struct pyroscope_receiver {
    struct component base;
    struct http_server *server;
    struct server_tls_context tls;
    struct server_auth auth;
    struct server_cors cors;
    struct http_common_headers response_headers;
    struct gzip *gzip;        /* of profiles inside of bodies */
    struct gzip *helper_gzip; /* the same, on the lane's helper */
    struct codec_box *codecs;
    struct budget reserve; /* for bodies that cannot wait to be read while the budget is short */
    unsigned exchanges;    /* requests, and batches that outlive them */
    unsigned waiting;      /* of these, how many wait for room */
    uint64_t waiting_bytes;
    bool is_server_open;
    bool is_stopping;
};

/* In the form of the protocol. */
void pyroscope_answer(struct pyroscope_exchange *exchange, const struct outcome *outcome);
/* Before there is an exchange. text may be NULL. */
void pyroscope_respond_text(const struct pyroscope_receiver *receiver, struct http_request *request,
                            unsigned status, const char *text);
void pyroscope_respond(const struct pyroscope_receiver *receiver, struct http_request *request,
                       struct http_response *response);

/* The doors: a request for them, and its body. */
void pyroscope_push_request(struct pyroscope_receiver *receiver, struct http_request *request);
void pyroscope_push_body(struct pyroscope_exchange *exchange);
void pyroscope_ingest_request(struct pyroscope_receiver *receiver, struct http_request *request);
void pyroscope_ingest_body(struct pyroscope_exchange *exchange);
/* NULL is tolerated. */
void pyroscope_ingest_free(struct pyroscope_ingest *ingest);

/* The receiver may have become idle while it stops. */
void pyroscope_receiver_check_stopped(struct pyroscope_receiver *self);
