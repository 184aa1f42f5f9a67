/* SPDX-License-Identifier: Apache-2.0 */
/* Our own client for cleartext HTTP/1.1: a pool of connections to one back-end, one exchange at a
 * time on each, bodies sent without copying. Does not follow redirects. On the client's lane. */
#pragma once

struct http1_client;
struct http_client_settings;
struct http_post;
struct http_url;

/* settings and url must outlive the client. */
struct http1_client *http1_client_create(const struct http_client_settings *settings,
                                         const struct http_url *url);
/* Like http_client_post, http_client_close and http_client_destroy. */
void http1_client_post(struct http1_client *client, const struct http_post *post);
void http1_client_close(struct http1_client *client, void (*closed)(void *arg), void *arg);
void http1_client_destroy(struct http1_client *client);
