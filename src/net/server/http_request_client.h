/* SPDX-License-Identifier: Apache-2.0 */
/* Who sent a request, with all its headers, for include_metadata. Pure function; on the request's
 * lane. */
#pragma once

#include <stdbool.h>

struct client_info;
struct http_request;

/* One holder: the caller. Of a gRPC request without the headers of the protocol itself. */
struct client_info *http_request_client(const struct http_request *request, bool is_grpc);
