/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the otlp receiver share: the component (otlp_receiver.c), its configuration
 * (otlp_config.c), one request on its way (otlp_exchange.c) and the two protocols (otlp_grpc.c,
 * otlp_http.c). Everything runs on the lane of its instance. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/signal_kind.h"
#include "src/base/timer.h"
#include "src/codec/codec.h"
#include "src/config/field.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/server_front.h"
#include "src/net/server/grpc.h"
#include "src/net/server/http_server.h"
#include "src/profiles/otlp/profile_layout.h"

struct batch;
struct buffer;
struct client_info;

/* The settings, as the option tables of otlp_config.c fill them. Constant once loaded; any thread.
 */
struct otlp_http_protocol {
    struct http_server_config server;
    const char *url_paths[SIGNAL_KINDS];
};

struct otlp_protocols_config {
    bool has_grpc;
    bool has_http;
    struct grpc_server_config grpc;
    struct otlp_http_protocol http;
};

struct otlp_receiver_config {
    struct otlp_protocols_config protocols;
    int profiles_layout; /* 0: found out; else enum profile_layout, plus one */
};

extern const struct config_field otlp_receiver_fields[];
bool otlp_config_check(const void *section, struct error *error);
uint64_t otlp_config_body_bytes_max(const struct otlp_http_protocol *http);
/* The path of a *_url_path key as requests are compared with it; to be freed. NULL when it is no
 * URL. */
char *otlp_config_url_path(const char *text);

enum { OTLP_HTTP_TOO_LARGE = 413, OTLP_HTTP_TOO_SLOW = 408 };

enum otlp_transport { OTLP_GRPC, OTLP_HTTP, OTLP_TRANSPORTS };

struct otlp_receiver_counters {
    counter accepted[OTLP_TRANSPORTS][SIGNAL_KINDS];
    counter refused[OTLP_TRANSPORTS][SIGNAL_KINDS];
    counter failed[OTLP_TRANSPORTS][SIGNAL_KINDS]; /* never counts, as in the Go collector */
    counter layouts[PROFILE_LAYOUTS];              /* requests of profiles */
    counter profiles_rejected;
    counter profile_attributes_dropped;
    struct server_tls_counters tls;
    struct http_server_counters http;
};

struct otlp_receiver {
    struct component base;
    const struct otlp_protocols_config *config;
    enum profile_layout layout; /* PROFILE_LAYOUTS: to be found out */
    struct server_front servers[OTLP_TRANSPORTS];
    char *url_paths[SIGNAL_KINDS];
    struct codec_box *codecs;
    struct codec_box *helper_codecs; /* for the lane's helper */
    struct client_info *last_client; /* of the last request; often the same for the next */
    unsigned exchanges;              /* requests, and receipts that outlive them */
    unsigned servers_open;
    bool is_stopping;
};

/* Of a body. */
enum otlp_encoding { OTLP_PROTOBUF, OTLP_JSON, OTLP_NO_ENCODING };

/* One request. Lives until both its exchange has ended and its receipt has resolved. */
struct otlp_exchange {
    struct otlp_receiver *receiver;
    struct http_request *request; /* NULL once ended */
    enum otlp_transport transport;
    enum signal_kind signal;
    enum otlp_encoding encoding; /* HTTP: of the request, and so of the response */
    enum codec codec;            /* HTTP: Content-Encoding */
    struct client_info *client;  /* authenticated; NULL: created when needed */
    unsigned http_status;        /* HTTP: overrides the one that the code maps to; 0: none */
    bool is_responded;
    bool is_pending; /* the receipt is with the pipeline */
    bool is_helped;  /* the lane's helper reads the body */
    struct grpc_call call;
    uint64_t items;
    uint64_t rejected_profiles; /* malformed Profile messages */
    char *rejected_reason;      /* of the first of them; owned; NULL: none */
    struct receipt receipt;
    struct timer deadline; /* grpc-timeout */
};

/* Each protocol's response to the outcome. */
void otlp_grpc_respond(struct otlp_exchange *exchange, const struct outcome *outcome);
void otlp_http_respond(struct otlp_exchange *exchange, const struct outcome *outcome);
extern const struct http_handler otlp_grpc_handler;
extern const struct http_handler otlp_http_handler;

struct otlp_exchange *otlp_exchange_create(struct otlp_receiver *receiver,
                                           struct http_request *request,
                                           enum otlp_transport transport);
/* Keeps the authenticator's attributes of the client for the pipelines. False: the budget has no
 * room for them, and the request has its response. */
bool otlp_exchange_identify(struct otlp_exchange *exchange, const struct auth_result *result);
/* on_end of both handlers. */
void otlp_exchange_on_end(struct http_request *request, void *arg);
/* Takes the request's payload: inflates it unless codec is CODEC_NONE, checks it and offers it to
 * the pipelines; the response follows. message lies in owner. */
void otlp_exchange_take(struct otlp_exchange *exchange, struct buffer *owner, struct slice message,
                        enum codec codec, uint64_t bytes_max);
/* Responds once; later calls do nothing. */
void otlp_exchange_respond(struct otlp_exchange *exchange, const struct outcome *outcome);
/* The outcome for a body that did not arrive whole. */
struct outcome otlp_body_failure(enum http_failure failure, const char *too_large);
/* The Export…ServiceResponse of an accepted request. Returns its size. */
enum { OTLP_RESPONSE_BYTES_MAX = 512 };
size_t otlp_response_encode(const struct otlp_exchange *exchange, const struct outcome *outcome,
                            uint8_t room[OTLP_RESPONSE_BYTES_MAX]);
/* Call when the receiver may have become idle while it stops. */
void otlp_receiver_check_stopped(struct otlp_receiver *self);
