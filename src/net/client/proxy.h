/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy a URL goes through, by the rules of Go's client: proxy_url, else HTTP_PROXY,
 * HTTPS_PROXY and NO_PROXY (upper case first), and never for this machine itself. Reads the
 * environment; any thread. */
#pragma once

#include <stdbool.h>

struct http_url;

/* The proxy's URL, or NULL for none. configured is the user's proxy_url, "" without; what is
 * returned is it, or lives in the environment. */
const char *proxy_find(const struct http_url *url, const char *configured);
/* Whether NO_PROXY's text, a list of "*", addresses, CIDR blocks and domains with optional ports,
 * names the URL's host. */
bool proxy_is_excluded(const struct http_url *url, const char *no_proxy);
