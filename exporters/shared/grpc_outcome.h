/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed call of an OTLP/gRPC back-end means to the sender: to be repeated or not, and in
 * which words. Pure functions; any thread. */
#pragma once

#include "src/core/receipt.h"
#include "src/net/syntax/rpc_status.h"

struct grpc_result;

/* Where stands what an outcome points to. */
struct grpc_outcome_room {
    char text[2048];
    uint8_t details[RPC_DETAILS_MAX];
};

/* result is anything but OK. */
struct outcome grpc_outcome_refused(const struct grpc_result *result,
                                    struct grpc_outcome_room *room);
