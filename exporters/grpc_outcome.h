/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed call of an OTLP/gRPC back-end means to the sender: to be repeated or not, and in
 * which words. Pure functions; any thread. */
#pragma once

#include "src/receipt.h"

struct grpc_result;

enum { GRPC_OUTCOME_TEXT_MAX = 2048 };

/* result is anything but OK; text is what the outcome's message points to. */
struct outcome grpc_outcome_refused(const struct grpc_result *result,
                                    char text[GRPC_OUTCOME_TEXT_MAX]);
