/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 with prior knowledge on one connection (RFC 9113), through nghttp2. On the server's lane.
 */
#pragma once

#include "src/net/server/http_connection.h"

extern const struct http_protocol http2_protocol;
