/* SPDX-License-Identifier: Apache-2.0 */
/* The response of one gRPC call while it is received (headers, message, trailers, all bounded), and
 * its meaning by gRPC's rules. Pure functions over a value of its owner; on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/core/receipt.h"
#include "src/net/client/response_body.h"
#include "src/net/syntax/rpc_status.h"

enum {
    GRPC_RESPONSE_TEXT_MAX = 256,
    GRPC_CONTENT_TYPE_MAX = 64,
    GRPC_ENCODING_MAX = 16,
    GRPC_DETAILS_MAX = 4096, /* in base64; larger ones are ignored */
};

struct budget;
struct request_edits;

struct grpc_result {
    enum status_code code;
    unsigned wire_code;    /* as sent by the peer; may be unknown */
    const char *message;   /* the peer's, or why the connection failed */
    struct slice details;  /* grpc-status-details-bin: a google.rpc.Status; empty: none */
    struct slice encoding; /* grpc-encoding of body */
    struct slice body;     /* the first message, of an OK response */
    const struct request_edits *edits; /* what the credentials changed; NULL: nothing */
    bool is_compressed;
    bool is_cut; /* the body is larger than RESPONSE_BYTES_MAX, truncated or missing */
};

struct grpc_response {
    unsigned http_status;
    unsigned blocks; /* of headers */
    bool is_grpc;    /* by its content type */
    bool has_content_type;
    bool has_status;
    unsigned code; /* grpc-status */
    size_t header_bytes;
    struct response_body body;
    struct slice details; /* owned, decoded */
    char *message;        /* owned, decoded; NULL: none */
    size_t encoding_size;
    char encoding[GRPC_ENCODING_MAX];
    char content_type[GRPC_CONTENT_TYPE_MAX]; /* for messages */
    char text[GRPC_RESPONSE_TEXT_MAX];        /* for the message of the result */
};

/* budget: a large body is charged to it; NULL: it is not. */
void grpc_response_init(struct grpc_response *response, struct budget *budget);
/* As after grpc_response_init. */
void grpc_response_fini(struct grpc_response *response);
/* False: the headers are larger than RESPONSE_HEADER_BYTES_MAX. */
bool grpc_response_add_header(struct grpc_response *response, struct slice name,
                              struct slice value);
void grpc_response_end_headers(struct grpc_response *response);
/* False: the body is larger than RESPONSE_DRAIN_BYTES_MAX. */
bool grpc_response_add_data(struct grpc_response *response, struct slice data);
/* The result of the complete response; valid as long as the response. */
void grpc_response_result(struct grpc_response *response, struct grpc_result *ret_result);
/* The result of RST_STREAM, by gRPC's table. */
void grpc_response_reset_result(struct grpc_response *response, uint32_t code,
                                struct grpc_result *ret_result);
