/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of HTTP/1.0 and HTTP/1.1 on one connection: keep-alive, bounded pipelining,
 * Content-Length and chunked bodies, 100-continue. On the server's lane. */
#pragma once

#include "src/net/server/http_connection.h"

extern const struct http_protocol http1_protocol;
