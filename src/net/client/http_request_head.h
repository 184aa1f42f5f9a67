/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of an exporter's requests: ours, and the user's over them. Both writers send the same
 * ones. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/net/client/http_client.h"

struct error;
struct http_url;

/* Room for the headers that change with each request. */
enum { REQUEST_HEAD_TAIL_MAX = 512 + HTTP_POST_HEADER_BYTES_MAX };

/* Names are tokens and values hold no line ends: a header cannot bring another one. */
bool request_headers_check(const struct http_client_settings *settings, struct error *error);
/* The request line and everything but the headers of the body. Freed with mem_free. */
char *request_head_text(const struct http_client_settings *settings, const struct http_url *url);
/* Content-Type, Content-Encoding and Content-Length, and the empty line. Returns the size. */
size_t request_head_tail(const struct http_client_settings *settings, const struct http_post *post,
                         char tail[REQUEST_HEAD_TAIL_MAX]);
/* "name: value\r\n" of the credentials, freed with mem_free; NULL when there are none. */
char *request_head_credentials(const struct http_client_settings *settings);
/* The user's value of that header, or NULL; credentials count as one, with "". */
const char *request_header_find(const struct http_client_settings *settings, const char *name);
/* What is ours alone, whatever the user says: the framing. */
bool request_header_is_framing(const char *name);
/* Whether the credentials stand in the place of that header of the user's. */
bool request_header_is_replaced(const struct http_client_settings *settings, const char *name);
