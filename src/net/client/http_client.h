/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP client of one exporter on one lane: POSTs a body given as parts. Cleartext HTTP/1.1 is
 * written by our own scatter/gather writer over kept connections; TLS, proxies, HTTP/2 and
 * redirects go through libcurl's multi interface, which is loaded when it is first needed.
 *
 * Redirects (301, 302, 303, 307, 308, RFC 9110 §15.4) are followed from the answer's Location with
 * POST and body, BACKEND_REQUESTS_MAX requests in all. A redirect never goes from https to http,
 * and the configured headers, those of one request and credentials do not follow to another scheme,
 * host or port. One without a Location is the result as it stands, as in Go's client.
 * Everything here runs on the client's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/net/client/request_credentials.h"

struct batch_part;
struct config_pair;
struct error;
struct http_client;
struct lane;
struct request_secrets;
struct tls_client_config;

struct http_client_settings {
    struct lane *lane;
    const char *url; /* where every request of this client goes */
    const char *user_agent;
    const struct config_pair *headers; /* extra ones, overriding ours, Host included */
    size_t headers_count;
    struct request_credentials credentials;
    uint64_t timeout_ns;      /* whole exchange; 0: none */
    uint64_t connections_max; /* 0: as many as requests */
    uint64_t idle_connections_max;
    uint64_t idle_timeout_ns; /* 0: for ever */
    bool has_keep_alive;
    const char *proxy_url;               /* "": from the environment */
    const struct tls_client_config *tls; /* for https; NULL: the defaults */
    bool forbids_http2;
};

struct http_result {
    unsigned status;         /* 0: no answer came */
    const char *error;       /* transport error in words, when status is 0 */
    bool is_late;            /* none came in time */
    bool is_permanent;       /* trying again cannot help: redirects that cannot be followed */
    uint64_t retry_after_ns; /* from Retry-After on 429 and 503 (whole seconds or an HTTP date); 0:
                                none */
    bool has_retry_after;
    struct slice content_type;
    struct slice body; /* cut at RESPONSE_BYTES_MAX */
    bool is_cut;
    const char *location; /* of a 3xx that was not followed; NULL: it names none */
};
typedef void (*http_done_fn)(const struct http_result *result, void *arg);

enum { HTTP_POST_HEADER_BYTES_MAX = 256 }; /* name and value */

struct http_post {
    const struct batch_part *parts; /* body; borrowed until done */
    size_t parts_count;
    uint64_t bytes; /* sum of the parts */
    const char *content_type;
    const char *content_encoding;     /* NULL: none */
    const struct config_pair *header; /* one more, of this request alone; NULL: none */
    const char *target; /* path and query, encoded, instead of the URL's; NULL: those */
    http_done_fn done;  /* exactly once, never from inside http_client_post */
    void *arg;
};

/* Checks the URL ("http://host[:port]/path", https) and the headers, and prepares; connects later.
 * All that settings points to stays as long as the client. NULL: the error says why. */
struct http_client *http_client_create(const struct http_client_settings *settings,
                                       struct error *error);
/* Copies post; what it points to is borrowed until done. Not once closing has begun. */
void http_client_post(struct http_client *client, const struct http_post *post);
/* What its requests carry that no log may show. Borrowed from the client and its settings. */
struct request_secrets http_client_secrets(const struct http_client *client);
/* Aborts what is under way (done is called with an error), closes connections, then calls
 * closed(arg) once, from a later turn of the loop. */
void http_client_close(struct http_client *client, void (*closed)(void *arg), void *arg);
/* After closed, or when nothing was ever posted. NULL is tolerated. */
void http_client_destroy(struct http_client *client);
