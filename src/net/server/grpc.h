/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over HTTP/2 (PROTOCOL-HTTP2.md of grpc/grpc) for unary calls with one message each way, on
 * top of http_server.h: checks the headers of a call, unframes the message, responds with status
 * trailers. Messages and codes are grpc-go's. On the server's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/codec/codec.h"
#include "src/net/server/http_server.h"
#include "src/net/syntax/grpc_frame.h"
#include "src/net/syntax/rpc_status.h"

#define GRPC_NO_TIMEOUT UINT64_MAX

struct grpc_call {
    enum codec codec;    /* grpc-encoding; grpc_unframe reads the compressed flag */
    bool is_proto_named; /* content type with "+proto": responses have it, too */
    uint64_t timeout_ns; /* GRPC_NO_TIMEOUT */
};

/* Checks method, content type, timeout, binary metadata and encoding. False: it has responded. */
bool grpc_accept(struct http_request *request, struct grpc_call *ret_call);
/* Splits the path "/package.Service/Method". False: it has responded. */
bool grpc_split_path(struct http_request *request, const struct grpc_call *call,
                     struct slice *ret_service, struct slice *ret_method);
/* The size of the whole body, from its prefix; 0 if the message is larger than max_bytes: respond
 * RESOURCE_EXHAUSTED with text. */
enum { GRPC_TEXT_MAX = 128 };
uint64_t grpc_body_size(const uint8_t *prefix, uint64_t max_bytes, char text[GRPC_TEXT_MAX]);

struct grpc_message {
    struct slice bytes;
    bool is_compressed;
    struct rpc_status refusal;
};
/* Finds the first message of a body. False: refusal has the reason. */
bool grpc_unframe(const struct http_request *request, const struct grpc_call *call,
                  struct slice body, struct grpc_message *ret_message);

/* OK with one message of at most GRPC_REPLY_BYTES_MAX bytes. */
enum { GRPC_REPLY_BYTES_MAX = 256 };
void grpc_respond(struct http_request *request, const struct grpc_call *call, struct slice message);
void grpc_respond_status(struct http_request *request, const struct grpc_call *call,
                         const struct rpc_status *status);
