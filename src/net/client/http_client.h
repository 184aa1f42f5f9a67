/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP client of one exporter on one lane: POSTs a body given as parts. Cleartext HTTP/1.1 is sent
 * by our own client (http1_client), without copying; TLS, proxies, HTTP/2 and redirects by libcurl
 * (curl_client), loaded when first needed.
 *
 * Redirects (301, 302, 303, 307, 308, RFC 9110 §15.4) are followed with POST and body, up to
 * BACKEND_REQUESTS_MAX requests in all, but never from https to http. Another scheme, host or port
 * gets neither the configured headers, nor those of the request, nor credentials. A redirect
 * without Location is returned as the result, as in Go's client. On the client's lane. */
#pragma once

#include "src/net/client/http_post.h"

struct error;
struct http_client;
struct request_secrets;

/* Checks the URL ("http://host[:port]/path", or https) and the headers; connects later. What
 * settings points to must outlive the client. NULL: error has the reason. */
struct http_client *http_client_create(const struct http_client_settings *settings,
                                       struct error *error);
/* Copies post; what it points to is borrowed until done. Not after http_client_close. */
void http_client_post(struct http_client *client, const struct http_post *post);
/* The secrets in the request with that result, which no log may show. Borrowed from the client, its
 * settings and the result. */
struct request_secrets http_client_secrets(const struct http_client *client,
                                           const struct http_result *result);
/* Aborts requests (done gets an error), closes connections, then calls closed(arg) once, in a later
 * turn of the loop. */
void http_client_close(struct http_client *client, void (*closed)(void *arg), void *arg);
/* After closed, or if nothing was ever posted. NULL is a no-op. */
void http_client_destroy(struct http_client *client);
