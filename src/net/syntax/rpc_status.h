/* SPDX-License-Identifier: Apache-2.0 */
/* google.rpc.Status in OTLP responses: as protobuf, JSON, and base64 (RFC 4648) for
 * grpc-status-details-bin. Pure functions, any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/core/receipt.h"

enum {
    RPC_MESSAGE_MAX = 1024, /* longer messages are cut */
    RPC_DETAILS_MAX = 3072, /* more are omitted */
    RPC_STATUS_BYTES_MAX = RPC_MESSAGE_MAX + 128 + RPC_DETAILS_MAX,
    RPC_STATUS_JSON_MAX = 6 * RPC_MESSAGE_MAX + 192, /* a byte may take six */
    RPC_STATUS_BASE64_MAX = (RPC_STATUS_BYTES_MAX + 2) / 3 * 4 + 1,
    GRPC_MESSAGE_MAX = 3 * RPC_MESSAGE_MAX + 1, /* percent-encoded */
};

struct rpc_status {
    enum status_code code;
    uint64_t retry_after_ns; /* as RetryInfo; 0: none */
    const char *message;     /* may contain bytes sent by the client */
    struct slice details;    /* encoded fields 3, instead of our RetryInfo; may be empty */
};

/* room holds RPC_STATUS_BYTES_MAX; returns the size. */
size_t rpc_status_to_protobuf(const struct rpc_status *status, uint8_t *room);
/* room holds RPC_STATUS_JSON_MAX; returns the size without terminator. Of the details only
 * retry_after_ns is written: JSON needs their types. */
size_t rpc_status_to_json(const struct rpc_status *status, char *room);
/* room holds RPC_STATUS_BASE64_MAX. Not padded, as gRPC sends binary metadata. */
void rpc_status_to_base64(const struct rpc_status *status, char *room);
/* room holds GRPC_MESSAGE_MAX. Percent-encodes by PROTOCOL-HTTP2.md of grpc/grpc. */
void rpc_message_to_grpc(const char *message, char *room);
/* The HTTP status for a code, as in the Go collector. */
unsigned rpc_code_to_http(enum status_code code);
