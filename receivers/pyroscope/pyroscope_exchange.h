/* SPDX-License-Identifier: Apache-2.0 */
/* One request of the pyroscope receiver on its way: what is known of it, the walk through its body,
 * and what became of that. Runs on its receiver's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receivers/pyroscope/pyroscope_receiver.h"
#include "src/base/lane.h"
#include "src/base/timer.h"
#include "src/codec/codec.h"
#include "src/core/receipt.h"
#include "src/net/server/grpc.h"
#include "src/net/server/http_server.h"
#include "src/otlp/wire.h"
#include "src/profiles/pyroscope/push_request.h"

struct batch;
struct buffer;
struct client_info;
struct pprof_upload;
struct pyroscope_ingest;

/* How the client speaks, and so how it is answered. */
enum pyroscope_protocol {
    PYROSCOPE_CONNECT,
    PYROSCOPE_GRPC,
    PYROSCOPE_GRPC_WEB,
    PYROSCOPE_PLAIN, /* /ingest */
};

/* What an exchange makes of its body, one profile after the other. */
enum pyroscope_step {
    PYROSCOPE_STEP_BATCH, /* exchange->batch is to be offered */
    PYROSCOPE_STEP_NONE,  /* this one came to nothing, another may follow */
    PYROSCOPE_STEP_BUSY,  /* no memory: the same step again, later */
    PYROSCOPE_STEP_HELP,  /* it would hold the lane: the same step again, on the helper */
    PYROSCOPE_STEP_END,
};
/* On the lane, or on its helper, where it may touch nothing of the lane's: of the exchange only
 * what the walk through the body is about, of the receiver only what is constant. */
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
    bool is_resting; /* other requests have their turn */
    bool is_helped;  /* the lane's helper makes the step: see pyroscope_step_fn */
    bool has_ended;  /* there is nothing more to offer */
    struct grpc_call call;
    unsigned http_status; /* instead of the one that the code maps to; 0: that one */
    struct client_info *client;
    /* the walk through the body */
    pyroscope_step_fn step;
    struct helper_work work;         /* a step that the helper makes */
    enum pyroscope_step work_result; /* of it */
    uint64_t help_began_ns;          /* the same */
    uint64_t negative;               /* samples left out, not counted yet */
    uint64_t empty;                  /* profiles without samples, not counted yet */
    struct buffer *body;             /* inflated */
    struct slice message;
    struct wire_reader reader;
    struct push_series series;
    bool has_series;
    struct pyroscope_ingest *ingest; /* what the query said; NULL: Push */
    struct slice profile;            /* being converted; no data: the next one is to be read */
    uint64_t inflated_bytes;         /* of all profiles so far */
    uint64_t turn_bytes;             /* of these and what counts as such, since it last rested */
    void (*again)(struct pyroscope_exchange *exchange); /* before step: what waits for memory */
    /* what became of it */
    struct batch *batch;   /* is being offered */
    size_t pipeline;       /* to which one */
    bool is_kept;          /* that one had no room, and is to be asked again */
    bool is_batch_refused; /* by any of them */
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
/* Calls again once there may be memory, or answers that there is none. */
void pyroscope_exchange_wait(struct pyroscope_exchange *exchange,
                             void (*again)(struct pyroscope_exchange *exchange));
/* Takes what step makes, until it ends; then the answer follows. */
void pyroscope_exchange_start(struct pyroscope_exchange *exchange, pyroscope_step_fn step);
/* Whether a step that reads so many bytes is one for the helper, and is not there yet. */
bool pyroscope_exchange_needs_help(const struct pyroscope_exchange *exchange, size_t bytes,
                                   bool may_be_gzip);
/* For profiles inside of the body, on the thread that makes the step. */
struct gzip *pyroscope_exchange_gzip(const struct pyroscope_exchange *exchange);
/* A profile of so many bytes, inflated, was read. */
void pyroscope_exchange_worked(struct pyroscope_exchange *exchange, uint64_t plain_bytes);
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
/* What the configuration refuses. */
const struct upload_limits *pyroscope_exchange_limits(const struct pyroscope_exchange *exchange);
/* What the tables of a series are in OTLP becomes exchange->batch. NONE: they were refused, or hold
 * nothing; BUSY: no memory. */
enum pyroscope_step pyroscope_exchange_convert(struct pyroscope_exchange *exchange,
                                               const struct series *series,
                                               const struct pprof_upload *upload);
