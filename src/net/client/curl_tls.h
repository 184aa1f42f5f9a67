/* SPDX-License-Identifier: Apache-2.0 */
/* A client's tls section as options of libcurl's easy handles. On the client's lane. */
#pragma once

#include <stdbool.h>

#include "src/net/client/curl_library.h"

struct tls_client_config;

/* tls may be NULL: the defaults. What it points to stays as long as the handle. */
void curl_tls_apply(const struct curl_library *library, CURL *easy,
                    const struct tls_client_config *tls);
/* Whether OpenSSL can do what the section asks for: before the first request, where it can still
 * be said well. */
bool curl_tls_check(const struct tls_client_config *tls, struct error *error);
