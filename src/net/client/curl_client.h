/* SPDX-License-Identifier: Apache-2.0 */
/* The client for https, proxies, HTTP/2 and targets of redirects, by libcurl on the lane's loop.
 * Does not follow redirects itself. On the client's lane. */
#pragma once

struct curl_client;
struct error;
struct http_client_settings;
struct http_post;
struct http_url;

/* settings and url must outlive the client. NULL: libcurl cannot be loaded, or the tls section is
 * wrong; error has the reason. */
struct curl_client *curl_client_create(const struct http_client_settings *settings,
                                       const struct http_url *url, struct error *error);
/* Like http_client_post, with this url and these settings, which are borrowed until done. */
void curl_client_post(struct curl_client *client, const struct http_client_settings *settings,
                      const struct http_url *url, const struct http_post *post);
/* Like http_client_close and http_client_destroy. */
void curl_client_close(struct curl_client *client, void (*closed)(void *arg), void *arg);
void curl_client_destroy(struct curl_client *client);
