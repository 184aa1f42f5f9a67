/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC client of one exporter on one lane, for unary calls: resolves its target, keeps one HTTP/2
 * connection to each address (or to one of them), reconnects with gRPC's back-off, and starts calls
 * in the order in which they were posted. On the client's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/core/receipt.h"
#include "src/net/client/grpc_response.h"
#include "src/net/client/http2_client.h"
#include "src/net/client/request_credentials.h"

struct batch_part;
struct budget;
struct client_info;
struct config_pair;
struct grpc_client;
struct grpc_target;
struct lane;
struct tls_context;

struct grpc_client_settings {
    struct lane *lane;
    struct budget
        *budget; /* large responses and ciphertext are charged to it; NULL: they are not */
    const struct grpc_target *target;
    const char *authority;
    struct tls_context *tls; /* NULL: cleartext */
    const char *server_name; /* with TLS: the name in the server's certificate */
    const char *user_agent;
    const struct config_pair *headers; /* metadata of every call */
    size_t headers_count;
    struct request_credentials credentials;
    const char *encoding; /* grpc-encoding of compressed messages; NULL: none is compressed */
    uint64_t timeout_ns;  /* of a call, from posting to the end of the response; 0: none */
    struct http2_keepalive keepalive;
    bool is_pick_first;   /* one connection, not one per address */
    bool waits_for_ready; /* calls wait for a connection instead of failing */
};

typedef void (*grpc_done_fn)(const struct grpc_result *result, void *arg);

struct grpc_post {
    const char *path;                 /* "/package.Service/Method" */
    const struct batch_part *parts;   /* the message; each part has an owner, which is referenced */
    size_t parts_count;               /* the array is borrowed until done */
    uint64_t bytes;                   /* sum of the parts, less than 4 GiB */
    bool is_compressed;               /* by settings->encoding */
    const struct client_info *client; /* for the credentials; NULL: not known, or several */
    grpc_done_fn done;                /* exactly once, never from inside grpc_client_post */
    void *arg;
};

/* Starts to connect. What settings points to must outlive the client. */
struct grpc_client *grpc_client_create(const struct grpc_client_settings *settings);
/* Copies post. Not after grpc_client_close. */
void grpc_client_post(struct grpc_client *client, const struct grpc_post *post);
/* Aborts calls (done gets CANCELLED), closes connections, then calls closed(arg) once, in a later
 * turn of the loop. */
void grpc_client_close(struct grpc_client *client, void (*closed)(void *arg), void *arg);
/* After closed. NULL is a no-op. */
void grpc_client_destroy(struct grpc_client *client);
