/* SPDX-License-Identifier: Apache-2.0 */
/* One request to one of the daemon's endpoints: path, headers and a body that is grown, spoilt,
 * written and compressed. http1.h and http2.h put it on the wire. One thread. */
#pragma once

#include "tests/attack/mutate.h"

struct pool;
struct codec_box;

/* Where the daemon listens. */
enum endpoint {
    ENDPOINT_HTTP,
    ENDPOINT_GRPC,
    ENDPOINT_GUARDED_HTTP, /* with an authenticator */
    ENDPOINT_GUARDED_GRPC,
    ENDPOINT_TLS_HTTP,
    ENDPOINT_TLS_GRPC,
    ENDPOINT_PYROSCOPE,
    ENDPOINT_HEALTH,
    ENDPOINT_ZPAGES,
    ENDPOINT_PPROF,
    ENDPOINT_METRICS,
    ENDPOINT_CONTROL,
    ENDPOINT_EXPLORE,
    ENDPOINT_PROMETHEUS, /* of the exporter */
    ENDPOINT_ZIPKIN,
    ENDPOINT_JAEGER_GRPC,
    ENDPOINT_JAEGER_HTTP,
    ENDPOINT_JAEGER_COMPACT, /* UDP */
    ENDPOINT_JAEGER_BINARY,  /* UDP */
    ENDPOINTS,
};

/* As in the names of files. */
const char *endpoint_name(enum endpoint endpoint);
/* Packets instead of a connection. */
bool endpoint_takes_packets(enum endpoint endpoint);
bool endpoint_has_tls(enum endpoint endpoint);

enum { PATH_BYTES_MAX = 1024, HEADERS_MAX = 8 };

struct body {
    enum endpoint endpoint;
    bool is_grpc;
    bool is_endless; /* so is the response, until the client leaves */
    const char *method;
    char path[PATH_BYTES_MAX];
    const char *type;
    const char *encoding; /* of HTTP, or of gRPC's message; NULL: none */
    struct {
        const char *name;
        char value[160];
    } headers[HEADERS_MAX];
    unsigned headers_count;
    struct bytes_out content;
};

/* What bodies are made with. */
struct body_maker {
    struct world *world;
    struct pool *pool;
    struct codec_box *codecs;
    struct bytes_out scratch;
    size_t size_max; /* of a body, before compression */
    bool is_valid;   /* nothing is spoilt */
};

/* A request for the OTLP receiver; body->content is cleared first. */
void body_make_otlp(struct body_maker *maker, struct body *body, bool is_grpc);
void body_make_push(struct body_maker *maker, struct body *body);
void body_make_ingest(struct body_maker *maker, struct body *body);
/* One of the four forms of Zipkin. */
void body_make_zipkin(struct body_maker *maker, struct body *body);
void body_make_jaeger(struct body_maker *maker, struct body *body, bool is_grpc);
/* One packet. */
void body_make_jaeger_packet(struct body_maker *maker, struct body *body);
/* A question to the explore page. */
void body_make_question(struct body_maker *maker, struct body *body);
/* For the pages: health, zpages, pprof, metrics, keep. */
void body_make_page(struct body_maker *maker, struct body *body);
