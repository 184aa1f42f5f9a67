/* SPDX-License-Identifier: Apache-2.0 */
/* From the client's settings to libcurl's options. Runs on the client's lane. */
#pragma once

#include "src/net/client/curl_library.h"

struct http_client_settings;
struct http_post;
struct http_url;

/* Everything but the headers. The easy handle is fresh or reset; target is the request's own, or
 * NULL for the URL's. */
void curl_options_apply(const struct curl_library *library, CURL *easy,
                        const struct http_client_settings *settings, const struct http_url *url,
                        const char *target);
/* The request's headers; the caller frees the list after the transfer. */
struct curl_slist *curl_options_headers(const struct curl_library *library, CURL *easy,
                                        const struct http_client_settings *settings,
                                        const struct http_url *url, const struct http_post *post);
/* CURLOPT_CONNECT_TO for server_name_override, or NULL; freed as the headers are. */
struct curl_slist *curl_options_connect_to(const struct curl_library *library, CURL *easy,
                                           const struct http_client_settings *settings,
                                           const struct http_url *url);
