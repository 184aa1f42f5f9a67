/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of one gRPC call while it arrives: headers, message, trailers, all bounded; and what
 * it means by gRPC's rules. Pure functions over a value of its owner; on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/net/syntax/rpc_status.h"

struct grpc_result;

enum {
    GRPC_ANSWER_WORDS_MAX = 256,
    GRPC_CONTENT_TYPE_MAX = 64,
    GRPC_ENCODING_MAX = 16,
    GRPC_DETAILS_MAX = 4096, /* in base64; larger ones are passed over */
};

struct grpc_answer {
    unsigned http_status;
    unsigned blocks; /* of headers */
    bool is_grpc;    /* by its content type */
    bool has_content_type;
    bool has_status;
    unsigned code; /* grpc-status */
    size_t header_bytes;
    uint64_t data_bytes;
    struct slice body;    /* owned */
    struct slice details; /* owned, decoded */
    char *message;        /* owned, decoded; NULL: none */
    size_t encoding_size;
    char encoding[GRPC_ENCODING_MAX];
    char content_type[GRPC_CONTENT_TYPE_MAX]; /* for messages */
    char words[GRPC_ANSWER_WORDS_MAX];        /* that the result points to */
};

void grpc_answer_init(struct grpc_answer *answer);
void grpc_answer_fini(struct grpc_answer *answer);
/* False: the headers are more than we take. */
bool grpc_answer_add_header(struct grpc_answer *answer, struct slice name, struct slice value);
void grpc_answer_end_headers(struct grpc_answer *answer);
/* False: the peer sends without end. */
bool grpc_answer_add_data(struct grpc_answer *answer, struct slice data);
/* What the whole answer says; valid as long as the answer. */
void grpc_answer_result(struct grpc_answer *answer, struct grpc_result *ret_result);
/* What RST_STREAM says, by gRPC's table. */
void grpc_answer_reset_result(struct grpc_answer *answer, uint32_t code,
                              struct grpc_result *ret_result);
