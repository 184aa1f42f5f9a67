/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as HTTP/1.1 writes them (RFC 9112), and as it must not. One thread. */
#pragma once

#include "tests/attack/body.h"

/* Appends the request. spoils: the framing or a header is made wrong. Returns whether the server
 * may lose track of where requests end. The last request asks for the connection to be closed. */
bool http1_request(struct world *world, const struct body *body, bool spoils, bool is_last,
                   struct bytes_out *out);
