/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the proxy for a URL by the rules of Go's client: proxy_url, else HTTP_PROXY, HTTPS_PROXY
 * and NO_PROXY (upper case first), and none for loopback. Reads the environment; any thread. */
#pragma once

#include <stdbool.h>

struct http_url;

/* The proxy's URL, or NULL for none: configured (proxy_url) unless "", or a value of the
 * environment. */
const char *proxy_find(const struct http_url *url, const char *configured);
/* Whether no_proxy, a list of "*", addresses, CIDR blocks and domains with optional ports, covers
 * the URL's host. */
bool proxy_is_excluded(const struct http_url *url, const char *no_proxy);
