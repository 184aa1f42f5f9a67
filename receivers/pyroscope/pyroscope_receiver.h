/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pyroscope receiver share. pyroscope_receiver.c is the component;
 * pyroscope_transport.c speaks the protocols: requests in, responses out; pyroscope_walk.c makes
 * batches of a body, one profile at a time; pyroscope_delivery.c takes a request through its states
 * and offers its batches to the pipelines. Everything runs on the lane of the instance, except
 * steps of a walk that are too large for it: see pyroscope_step_fn. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/timer.h"
#include "src/codec/codec.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/server_front.h"
#include "src/net/server/grpc.h"
#include "src/net/server/http_server.h"
#include "src/otlp/wire.h"
#include "src/profiles/pyroscope/push_request.h"
#include "src/profiles/pyroscope/upload_check.h"

struct batch;
struct buffer;
struct client_info;
struct codec_box;
struct error;
struct gzip;
struct pyroscope_ingest;

#define PYROSCOPE_NO_MEMORY "the memory budget is used up, try again later"

struct pyroscope_receiver_config {
    struct http_server_config server;
    struct upload_limits limits;
};

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
    struct server_front http;
    uint64_t body_bytes_max;            /* max_request_body_size, also of what a body inflates to */
    const struct upload_limits *limits; /* of the configuration */
    struct gzip *gzip;                  /* of profiles inside of bodies */
    struct gzip *helper_gzip;           /* the same, for the lane's helper */
    struct codec_box *codecs;
    struct codec_box *helper_codecs; /* for the lane's helper */
    struct budget reserve;           /* for HTTP/2 bodies while the budget is short */
    unsigned exchanges;              /* requests, and batches that outlive them */
    unsigned waiting;                /* exchanges in PYROSCOPE_WAITING */
    uint64_t waiting_bytes;
    bool is_server_open;
    bool is_stopping;
};

/* The protocol of the request, and so of the response. */
enum pyroscope_protocol {
    PYROSCOPE_CONNECT,
    PYROSCOPE_GRPC,
    PYROSCOPE_GRPC_WEB,
    PYROSCOPE_PLAIN, /* /ingest */
};

enum pyroscope_state {
    PYROSCOPE_OPENING, /* the body is read and opened; the walk has not begun */
    PYROSCOPE_WALKING, /* the next step of the walk is due, unless too many deliveries are open */
    PYROSCOPE_HELPED,  /* the lane's helper opens the body, or makes that step */
    PYROSCOPE_WAITING, /* for memory or for room in a pipeline, until the timer fires */
    PYROSCOPE_RESTING, /* the lane serves other requests, until the timer fires */
    PYROSCOPE_ENDING,  /* the walk is over, but not all deliveries are */
    PYROSCOPE_DONE,
};

/* The result of one step of the walk. */
enum pyroscope_step {
    PYROSCOPE_STEP_BATCH, /* exchange->batch is to be delivered */
    PYROSCOPE_STEP_NONE,  /* this profile gave no batch, another may follow */
    PYROSCOPE_STEP_BUSY,  /* no memory: repeat the step later */
    PYROSCOPE_STEP_HELP,  /* it would block the lane: repeat the step on the helper */
    PYROSCOPE_STEP_END,
};

struct pyroscope_exchange;

/* The first permanent refusal, else the first. */
struct pyroscope_refusal {
    struct outcome outcome; /* ACCEPTED: none yet */
    char message[512];      /* of outcome */
};

/* One batch on its way through the pipelines, one after the other. */
struct pyroscope_delivery {
    struct pyroscope_exchange *exchange;
    struct batch *batch;
    size_t pipeline; /* has it, or had no room for it */
    bool is_refused; /* for good, by any pipeline */
    struct receipt receipt;
    struct pyroscope_delivery *next; /* in exchange->deferred */
    struct outcome deferral;         /* the pipeline's last refusal */
    char message[256];               /* of deferral */
};

/* Runs on the lane or on its helper. On the helper it may use the exchange's walk and
 * http_status, and what is constant in the receiver, and nothing else: deliveries go on meanwhile.
 */
typedef enum pyroscope_step (*pyroscope_step_fn)(struct pyroscope_exchange *exchange);

enum { PYROSCOPE_JSON_REASON_MAX = 256 };

/* What became of a body: inflated, and then turned from JSON into protobuf. */
struct pyroscope_opening {
    enum codec_result inflated;
    struct buffer *plain; /* owned; NULL: it was not coded, or could not be inflated */
    const char *reason;   /* why not */
    enum push_json_verdict read;
    struct buffer *push;                         /* owned; NULL: it was not JSON, or malformed */
    char json_reason[PYROSCOPE_JSON_REASON_MAX]; /* PUSH_JSON_MALFORMED */
};

/* One request. Lives until the request has ended and the state is OPENING or DONE. */
struct pyroscope_exchange {
    struct pyroscope_receiver *receiver;
    enum pyroscope_state state;
    bool is_running; /* pyroscope_delivery.c's loop is on the stack */

    /* transport */
    struct http_request *request; /* NULL once ended */
    enum pyroscope_protocol protocol;
    bool is_json;         /* the request, and so the response */
    bool is_proto_named;  /* gRPC-web: content type with "+proto" */
    bool is_responded;    /* the server has the response */
    enum codec codec;     /* of the body or message */
    unsigned http_status; /* overrides the status that the code maps to; 0: none */
    struct grpc_call call;
    struct client_info *client;
    uint64_t charged_bytes;           /* to the budget: this struct and the ingest */
    struct timer deadline;            /* of the client */
    struct http_body_plan plan;       /* for reading the body */
    struct buffer *body;              /* inflated; NULL: not read yet, or already freed */
    struct slice message;             /* in body */
    struct pyroscope_opening opening; /* by the lane's helper */

    /* walk */
    pyroscope_step_fn step;  /* NULL: the walk has not begun */
    struct wire_reader push; /* over a PushRequest */
    struct push_series series;
    bool has_series;
    struct pyroscope_ingest *ingest;  /* NULL: a PushRequest */
    struct slice profile;             /* to be converted; no data: find the next one */
    uint64_t inflated_bytes;          /* of all profiles so far */
    uint64_t turn_bytes;              /* counted by pyroscope_account_work since the last rest */
    uint64_t negative;                /* samples left out, not counted yet */
    uint64_t empty;                   /* profiles without samples, not counted yet */
    struct pyroscope_refusal refused; /* by steps, not in worst yet */
    struct helper_work work;
    enum pyroscope_step helper_result;
    uint64_t help_began_ns;

    /* delivery */
    struct batch *batch;                 /* of the last step; NULL: none to offer */
    unsigned deliveries;                 /* that are open */
    uint64_t deliver_bytes;              /* of their batches */
    struct pyroscope_delivery *deferred; /* to be offered again: a pipeline had no room */
    bool has_walked;                     /* the walk is over */
    struct pyroscope_refusal worst;      /* of all refusals, for the response */
    struct timer timer;                  /* ends WAITING and RESTING */
    uint64_t wait_left_ns;               /* how much longer it may wait */
    uint64_t pause_ns;                   /* the next wait; doubles */
    uint64_t waiting_bytes;
    void (*resume)(struct pyroscope_exchange *exchange); /* when the timer has fired */
};

/* ---- transport ---- */

/* For the server; arg is the receiver. */
extern const struct http_handler pyroscope_handler;
/* Responds in the form of the protocol, once; does nothing later, or once the request has ended. */
void pyroscope_respond(struct pyroscope_exchange *exchange, const struct outcome *outcome);

/* ---- walk ---- */

/* Begins to deliver a PushRequest, exchange->message. Responds if it is malformed. */
void pyroscope_push_begin(struct pyroscope_exchange *exchange);
/* Reads query and headers of a request for /ingest, for which pyroscope_ingest_bytes are charged.
 * False: the error says what is wrong. */
bool pyroscope_ingest_open(struct pyroscope_exchange *exchange, struct error *error);
/* How much it takes. */
size_t pyroscope_ingest_bytes(const struct http_request *request);
/* Begins to deliver an upload to /ingest, exchange->message. */
void pyroscope_ingest_begin(struct pyroscope_exchange *exchange);
/* NULL is a no-op. */
void pyroscope_ingest_free(struct pyroscope_ingest *ingest);

/* ---- delivery ---- */

/* Charged with more_bytes for what it will hold. NULL: the budget has no room. */
struct pyroscope_exchange *pyroscope_exchange_create(struct pyroscope_receiver *receiver,
                                                     struct http_request *request,
                                                     enum pyroscope_protocol protocol,
                                                     size_t more_bytes);
/* The request has ended: frees the exchange, now or when it is done. */
void pyroscope_exchange_end(struct pyroscope_exchange *exchange);
/* Calls resume after a pause. False: the request has waited long enough, or too many requests or
 * bytes are waiting already. */
bool pyroscope_wait(struct pyroscope_exchange *exchange, uint64_t bytes,
                    void (*resume)(struct pyroscope_exchange *exchange));
/* Offers the batches that step makes, until it ends; then responds. */
void pyroscope_deliver(struct pyroscope_exchange *exchange, pyroscope_step_fn step);
/* Counts a profile that was read towards the limits of request and turn. */
void pyroscope_account_work(struct pyroscope_exchange *exchange, uint64_t plain_bytes);
/* Remembers a step's refusal for the response. On the thread of the step. */
void pyroscope_refuse(struct pyroscope_exchange *exchange, enum status_code code,
                      const char *message);

/* ---- component ---- */

/* Reports the end of stopping once nothing is left. */
void pyroscope_receiver_check_stopped(struct pyroscope_receiver *self);
