/* SPDX-License-Identifier: Apache-2.0 */
/* What the HTTP clients (http1_client, curl_client, and http_client above them) have in common: the
 * settings, a request (a POST or a GET) and its result, and the headers of a request: ours, and the
 * user's over them. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/net/client/request_credentials.h"
#include "src/net/client/response_body.h"

struct batch_part;
struct budget;
struct client_info;
struct config_pair;
struct error;
struct http_url;
struct lane;
struct response_notes;
struct tls_client_config;

struct http_client_settings {
    struct lane *lane;
    struct budget *budget; /* large responses are charged to it; NULL: they are not */
    const char *url;       /* of all requests, unless they have their own target */
    const char *user_agent;
    const struct config_pair *headers; /* override ours, including Host */
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
    bool is_get;            /* requests are GETs, without body; otherwise POSTs */
    bool forbids_redirects; /* they are results like others */
};

struct http_result {
    unsigned status;         /* 0: there was no response */
    const char *error;       /* transport error, if status is 0 */
    bool is_late;            /* the timeout has passed */
    bool is_permanent;       /* retrying is useless: a redirect that cannot be followed */
    uint64_t retry_after_ns; /* from Retry-After on 429 and 503 (whole seconds or an HTTP date); 0:
                                none */
    bool has_retry_after;
    struct slice content_type;
    struct slice content_encoding; /* what a sink got is not decoded */
    struct slice body;             /* cut at RESPONSE_BYTES_MAX */
    bool is_cut;
    const char *location;               /* of a redirect (3xx) that was not followed; NULL: none */
    const struct request_edits *edits;  /* what the credentials changed; NULL: nothing */
    const struct response_notes *notes; /* of the headers asked for; NULL: there was no response */
};
typedef void (*http_done_fn)(const struct http_result *result, void *arg);

enum { HTTP_POST_HEADER_BYTES_MAX = 256 }; /* name and value */

struct http_post {
    const struct batch_part *parts; /* body; borrowed until done */
    size_t parts_count;
    uint64_t bytes; /* sum of the parts */
    const char *content_type;
    const char *content_encoding;     /* NULL: none */
    const struct config_pair *header; /* one more, only for this request; NULL: none */
    const struct client_info *client; /* for the credentials; NULL: not known, or several */
    const char *target;        /* path and query, encoded, instead of the URL's; NULL: the URL's */
    struct response_sink sink; /* gets the body of a response with status 2xx; not after done */
    const char *const *noted;  /* response_notes.h: headers to note; NULL: none */
    http_done_fn done;         /* exactly once, never from inside http_client_post */
    void *arg;
    /* Set by http_client. */
    const struct request_edits *edits; /* of its headers; NULL: none */
    uint64_t spent_ns;                 /* of the timeout */
};

/* For the headers that change with each request. */
enum { REQUEST_HEAD_TAIL_MAX = 512 + HTTP_POST_HEADER_BYTES_MAX };

/* Names must be tokens, and values without line ends: no header may inject another one. */
bool request_headers_check(const struct http_client_settings *settings, struct error *error);
/* "GET" or "POST". */
const char *request_method(const struct http_client_settings *settings);
/* The request line and all headers except those of the body. Free with mem_free. */
char *request_head_text(const struct http_client_settings *settings, const struct http_url *url);
/* Content-Type, Content-Encoding, Content-Length and the empty line. Returns the size. */
size_t request_head_tail(const struct http_client_settings *settings, const struct http_post *post,
                         char tail[REQUEST_HEAD_TAIL_MAX]);
/* "name: value\r\n" of the credentials, to be freed with mem_free; NULL: none. */
char *request_head_credentials(const struct http_client_settings *settings);
/* The whole head of a request with edits. Free with secret_free. */
char *request_head_edited(const struct http_client_settings *settings, const struct http_url *url,
                          const struct http_post *post);
/* All headers of a request after its edits, without those of framing. Owned by the caller, who
 * frees it with request_rows_fini; most strings are borrowed from the others. */
struct request_rows {
    size_t count;
    struct config_pair *rows;
    char *authorization; /* of the URL; NULL: none */
};
void request_rows_init(struct request_rows *rows, const struct http_client_settings *settings,
                       const struct http_url *url, const struct http_post *post);
void request_rows_fini(struct request_rows *rows);
/* What is left of the timeout; 0: there is none. */
uint64_t request_timeout_ns(const struct http_client_settings *settings,
                            const struct http_post *post);
/* The user's value of that header, or NULL; "" for the header of the credentials. */
const char *request_header_find(const struct http_client_settings *settings, const char *name);
/* Framing headers are always ours. */
bool request_header_is_framing(const char *name);
/* Whether the credentials replace that header of the user's. */
bool request_header_is_replaced(const struct http_client_settings *settings, const char *name);
