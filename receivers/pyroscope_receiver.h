/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pyroscope receiver share: the component and its routes
 * (pyroscope_receiver.c), one request on its way (pyroscope_exchange.c), its two doors
 * (pyroscope_push.c, pyroscope_ingest.c) and the forms of answers (pyroscope_answer.c). Everything
 * runs on the lane of its instance. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/listen_auth.h"
#include "receivers/listen_cors.h"
#include "receivers/listen_tls.h"
#include "receivers/pyroscope_config.h"
#include "src/component.h"
#include "src/counter.h"
#include "src/net/codec.h"
#include "src/net/grpc.h"
#include "src/net/http_server.h"
#include "src/otlp/wire.h"
#include "src/pyroscope/push_request.h"
#include "src/receipt.h"
#include "src/timer.h"

struct batch;
struct buffer;
struct client_info;
struct gzip;
struct pyroscope_exchange;
struct pyroscope_ingest;

/* How the client speaks, and so how it is answered. */
enum pyroscope_protocol {
    PYROSCOPE_CONNECT,
    PYROSCOPE_GRPC,
    PYROSCOPE_GRPC_WEB,
    PYROSCOPE_PLAIN, /* /ingest */
};

struct pyroscope_receiver_counters {
    counter accepted[SIGNAL_KINDS];
    counter refused[SIGNAL_KINDS];
    counter waits;
    counter empty;
    struct listen_tls_counters tls;
};

struct pyroscope_receiver {
    struct component base;
    struct http_server *server;
    struct listen_tls tls;
    struct listen_auth auth;
    struct listen_cors cors;
    char *response_header_names[RESPONSE_HEADERS_MAX]; /* in lower case */
    struct gzip *gzip;                                 /* of profiles inside of bodies */
    struct codec_box *codecs;
    unsigned exchanges; /* requests, and batches that outlive them */
    unsigned waiting;   /* of these, how many wait for room */
    uint64_t waiting_bytes;
    bool is_server_open;
    bool is_stopping;
};

/* What an exchange makes of its body, one profile after the other. */
enum pyroscope_step {
    PYROSCOPE_STEP_BATCH, /* exchange->batch is to be offered */
    PYROSCOPE_STEP_BUSY,  /* no memory: the same step again, later */
    PYROSCOPE_STEP_END,
};
typedef enum pyroscope_step (*pyroscope_step_fn)(struct pyroscope_exchange *exchange);

/* One request. Lives until both its exchange has ended and what it holds has a taker. */
struct pyroscope_exchange {
    struct pyroscope_receiver *receiver;
    struct http_request *request; /* NULL once ended */
    enum pyroscope_protocol protocol;
    bool is_json;        /* of the request, and so of its answer */
    enum codec codec;    /* of the body or message */
    bool is_proto_named; /* gRPC-web: content type with "+proto" */
    bool is_answered;
    bool is_pending;        /* the receipt is with the pipeline */
    bool is_waiting;        /* for room; counted as such in the receiver */
    uint64_t waiting_bytes; /* the same */
    bool is_pumping;
    bool has_ended; /* there is nothing more to offer */
    struct grpc_call call;
    unsigned http_status; /* instead of the one that the code maps to; 0: that one */
    struct client_info *client;
    /* the walk through the body */
    pyroscope_step_fn step;
    struct buffer *body; /* inflated */
    struct slice message;
    struct wire_reader reader;
    struct push_series series;
    bool has_series;
    struct pyroscope_ingest *ingest; /* what the query said; NULL: Push */
    struct slice profile;            /* being converted; no data: the next one is to be read */
    /* what became of it */
    struct batch *batch; /* is being offered */
    struct outcome worst;
    char text[512]; /* of worst */
    struct receipt receipt;
    struct timer look; /* whether there is room now */
    struct timer deadline;
    uint64_t patience_ns;       /* how much longer it may wait */
    uint64_t pause_ns;          /* until the next look; doubles */
    struct http_body_plan plan; /* of a body that waits to be read */
};

struct pyroscope_exchange *pyroscope_exchange_create(struct pyroscope_receiver *receiver,
                                                     struct http_request *request,
                                                     enum pyroscope_protocol protocol);
void pyroscope_exchange_end(struct http_request *request);
/* Reads the body, once there is room for it; on_body follows. */
void pyroscope_exchange_read(struct pyroscope_exchange *exchange,
                             const struct http_body_plan *plan);
/* Takes what step makes, until it ends; then the answer follows. */
void pyroscope_exchange_start(struct pyroscope_exchange *exchange, pyroscope_step_fn step);
/* Of several refusals one that cannot be mended is told, and of these the first. */
void pyroscope_exchange_refuse(struct pyroscope_exchange *exchange, enum status_code code,
                               const char *text);
/* Answers with it, once; later calls do nothing. */
void pyroscope_exchange_answer(struct pyroscope_exchange *exchange, const struct outcome *outcome);
/* Refuses and answers. */
void pyroscope_exchange_fail(struct pyroscope_exchange *exchange, enum status_code code,
                             const char *text);
/* A batch of what was converted. */
struct batch *pyroscope_exchange_batch(struct pyroscope_exchange *exchange, struct buffer *request,
                                       uint64_t items);

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
void pyroscope_receiver_check_stopped(struct pyroscope_receiver *receiver);
