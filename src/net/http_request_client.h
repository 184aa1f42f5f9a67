/* SPDX-License-Identifier: Apache-2.0 */
/* Who sent a request, with all its headers, for include_metadata. Pure function; on the request's
 * lane. */
#pragma once

struct client_info;
struct http_request;

/* One holder: the caller. */
struct client_info *http_request_client(const struct http_request *request);
