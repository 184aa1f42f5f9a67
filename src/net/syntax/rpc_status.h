/* SPDX-License-Identifier: Apache-2.0 */
/* google.rpc.Status as OTLP answers carry it: protobuf, JSON, and the base64 (RFC 4648) of
 * grpc-status-details-bin. Pure functions, any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/core/receipt.h"

enum {
    RPC_MESSAGE_MAX = 1024, /* longer messages are cut */
    RPC_DETAILS_MAX = 3072, /* more are left out */
    RPC_STATUS_BYTES_MAX = RPC_MESSAGE_MAX + 128 + RPC_DETAILS_MAX,
    RPC_STATUS_JSON_MAX = 6 * RPC_MESSAGE_MAX + 192, /* every byte may need six */
    RPC_STATUS_BASE64_MAX = (RPC_STATUS_BYTES_MAX + 2) / 3 * 4 + 1,
    GRPC_MESSAGE_MAX = 3 * RPC_MESSAGE_MAX + 1, /* percent-encoded */
};

struct rpc_status {
    enum status_code code;
    uint64_t retry_after_ns; /* as RetryInfo; 0: none */
    const char *message;     /* may hold bytes of the client's */
    struct slice details; /* encoded fields 3, in the place of a RetryInfo of ours; may be empty */
};

/* room holds RPC_STATUS_BYTES_MAX; returns the size. */
size_t rpc_status_to_protobuf(const struct rpc_status *status, uint8_t *room);
/* room holds RPC_STATUS_JSON_MAX; returns the size without terminator. Of the details only what
 * retry_after_ns says: JSON would have to know their types. */
size_t rpc_status_to_json(const struct rpc_status *status, char *room);
/* room holds RPC_STATUS_BASE64_MAX. Not padded, as gRPC sends binary metadata. */
void rpc_status_to_base64(const struct rpc_status *status, char *room);
/* room holds GRPC_MESSAGE_MAX. Percent-encodes as PROTOCOL-HTTP2.md of gRPC says. */
void rpc_message_to_grpc(const char *message, char *room);
/* The status of the HTTP answer that means the same, as the Go collector maps it. */
unsigned rpc_code_to_http(enum status_code code);
