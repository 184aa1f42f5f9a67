/* SPDX-License-Identifier: Apache-2.0 */
/* A request of spans in a format that is converted to OTLP (Zipkin's, Jaeger's), from its head to
 * its response: login, body, conversion, pipelines. The receiver says how a body is read and in
 * which form its clients want responses. Everything runs on the receiver's lane, but for the
 * reading of large bodies. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/lane.h"
#include "src/base/slice.h"
#include "src/codec/codec.h"
#include "src/core/receipt.h"
#include "src/net/server/http_server.h"
#include "src/otlp/converted_spans.h"

struct auth_result;
struct client_info;
struct component;
struct request_pieces;
struct server_config;
struct server_front;
struct span_exchange;
struct span_reading;

/* "http: request body too large", as Go says it. */
extern const char span_exchange_too_large[];

struct span_exchange_ops {
    /* Sets verdict, and spans or reason, from the message of the reading. Pure function: on the
     * lane or its helper. */
    void (*read)(struct span_reading *reading);
    /* Responds. Called once, while the request is open. retry_after_ns: 0: no hint. */
    void (*respond)(struct span_exchange *exchange, const struct outcome *outcome,
                    uint64_t retry_after_ns);
    /* Refuses a body that could not be inflated (CODEC_TOO_LARGE or CODEC_MALFORMED). NULL: as
     * HTTP does. */
    void (*refuse_compressed)(struct span_exchange *exchange, enum codec_result result,
                              const char *reason);
    /* The receipt resolved: counts the exchange's spans. */
    void (*count)(struct span_exchange *exchange, bool is_accepted);
    /* Nothing refers to the exchange any more: frees it. */
    void (*end)(struct span_exchange *exchange);
    /* In front of the reason of a malformed body. NULL: nothing. */
    const char *(*malformed_prefix)(const struct span_exchange *exchange);
};

/* What the exchanges of one receiver have in common; part of its instance. */
struct span_front {
    struct component *receiver;
    const struct span_exchange_ops *ops;
    const struct server_front *http; /* of requests over HTTP */
    struct codec_box *codecs;
    struct codec_box *helper_codecs; /* for the lane's helper */
};

/* First member of a receiver's exchange. Lives until its request has ended, its body is read, and
 * its receipt has resolved. */
struct span_exchange {
    const struct span_front *front;
    struct http_request *request; /* NULL once ended */
    struct client_info *client;   /* NULL: there was no memory for it, which refuses the spans */
    unsigned http_status;         /* overrides the one that the outcome maps to; 0: none */
    uint64_t spans;
    bool is_responded;
    bool is_pending; /* the receipt is with the pipelines */
    bool is_helped;  /* the lane's helper reads the body */
    struct receipt receipt;
};

/* Reading a body: its input and its result. Touches nothing of the lane, so that the helper can do
 * it too. */
struct span_reading {
    struct helper_work work; /* first */
    struct span_exchange *exchange;
    struct budget *budget;
    struct buffer *body; /* of message */
    struct slice message;
    enum codec codec;           /* CODEC_NONE: the message is inflated, or not coded */
    uint64_t bytes_max;         /* of what it inflates to */
    enum codec_result inflated; /* other than CODEC_OK: nothing was read */
    const char *inflate_reason;
    uint64_t now_ns; /* Unix time */
    enum conversion verdict;
    struct converted_spans spans;
    struct request_pieces *pieces; /* of a dense request; NULL: it stays whole */
    char reason[CONVERSION_REASON_BYTES_MAX];
};

/* Handles preflight, login and unknown codings of a request over HTTP. Returns false after it has
 * responded, or while the login is checked. codec: of the request's content-encoding, CODECS:
 * unknown. */
bool span_front_admit(const struct span_front *front, struct http_request *request,
                      enum codec codec, struct auth_result *result);
/* Responds with an error as Go's http.Error writes it. retry_after_ns: 0: no hint. */
void span_front_respond_text(const struct span_front *front, struct http_request *request,
                             unsigned status, const char *message, uint64_t retry_after_ns);
/* 202 without a body. */
void span_front_respond_accepted(const struct span_front *front, struct http_request *request);

/* Makes the zeroed exchange the request's context. */
void span_exchange_begin(struct span_exchange *exchange, const struct span_front *front,
                         struct http_request *request, const struct server_config *listen,
                         bool is_grpc, const struct auth_result *result);
/* Responds once; later calls are no-ops. */
void span_exchange_respond(struct span_exchange *exchange, const struct outcome *outcome);
/* http_status: 0: what the code maps to. */
void span_exchange_refuse(struct span_exchange *exchange, unsigned http_status,
                          enum status_code code, const char *message);
/* The status of a refused request over HTTP. */
unsigned span_exchange_status(const struct span_exchange *exchange, const struct outcome *outcome,
                              unsigned permanent_status);
/* Inflates the message, which lies in body, reads it, and offers its spans. bytes_max: of what it
 * inflates to. */
void span_exchange_take(struct span_exchange *exchange, struct buffer *body, struct slice message,
                        enum codec codec, uint64_t bytes_max);

/* For struct http_handler. */
void span_exchange_on_body_failed(struct http_request *request, enum http_failure failure,
                                  void *arg);
void span_exchange_on_end(struct http_request *request, void *arg);
