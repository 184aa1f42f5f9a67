/* SPDX-License-Identifier: Apache-2.0 */
/* The libcurl writer: https, proxies, HTTP/2 and where redirects lead, through
 * curl_multi_socket_action on the lane's loop. Follows no redirects itself. Runs on the client's
 * lane. */
#pragma once

struct curl_client;
struct error;
struct http_client_settings;
struct http_post;
struct http_url;

/* Both stay as long as the client. NULL when libcurl cannot be loaded. */
struct curl_client *curl_client_create(const struct http_client_settings *settings,
                                       const struct http_url *url, struct error *error);
/* As http_client_post, to that url with those settings, which are borrowed until done. */
void curl_client_post(struct curl_client *client, const struct http_client_settings *settings,
                      const struct http_url *url, const struct http_post *post);
/* As http_client_close and http_client_destroy. */
void curl_client_close(struct curl_client *client, void (*closed)(void *arg), void *arg);
void curl_client_destroy(struct curl_client *client);
