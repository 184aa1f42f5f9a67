/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a request and all its headers, for include_metadata. On the request's lane. */
#pragma once

#include <stdbool.h>

struct client_info;
struct http_request;

/* The caller owns the result. For gRPC, without the headers of the protocol itself. */
struct client_info *http_request_client(const struct http_request *request, bool is_grpc);
