/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the gRPC client share: the queue of calls (grpc_client.c), one call on its
 * stream (grpc_client_call.c), connections and addresses (grpc_client_links.c). On the client's
 * lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/net/client/backend_addresses.h"
#include "src/net/client/grpc_answer.h"
#include "src/net/client/grpc_client.h"
#include "src/net/client/grpc_metadata.h"

enum { GRPC_ERROR_MAX = 512 };

/* A call from posting to done. */
struct grpc_client_call {
    struct grpc_client *client;
    struct grpc_post post;
    struct grpc_client_call *next; /* in client->waiting or client->running */
    struct grpc_client_call *prev;
    struct http2_client *http2; /* NULL while it waits */
    struct http2_client_stream *stream;
    struct timer deadline;
    uint64_t deadline_ns; /* 0: none */
    bool was_repeated;    /* a server had not looked at it, and it was sent again */
    struct grpc_answer answer;
};

struct grpc_call_list {
    struct grpc_client_call *first;
    struct grpc_client_call *last;
};

enum grpc_link_state { LINK_CONNECTING, LINK_READY, LINK_WAITING };

/* The place of one connection: to one address, or, with pick_first, to the first that answers. */
struct grpc_link {
    struct grpc_client *client;
    struct sockaddr_storage address;
    size_t tried; /* pick_first: addresses that have failed in this round */
    enum grpc_link_state state;
    struct http2_client *http2; /* NULL while it waits */
    unsigned failures;          /* in a row */
    bool has_failed;            /* since it was last ready: no call waits for it */
    uint64_t since_ns;          /* when it began to connect, or became ready */
    struct timer timer;         /* back-off */
};

struct grpc_client {
    struct grpc_client_settings settings;
    struct lane *lane;
    struct grpc_metadata metadata;
    struct grpc_call_list waiting;
    struct grpc_call_list running;
    struct backend_addresses addresses;
    unsigned failed_lookups; /* in a row */
    struct timer lookup_timer;
    struct grpc_link *links[BACKEND_ADDRESSES_MAX];
    size_t links_count;
    size_t next_link;           /* round robin */
    struct http2_client *http2; /* all connections, those without link too */
    struct lane_job job;        /* hands out calls, or ends closing */
    char error[GRPC_ERROR_MAX]; /* why the last connection failed */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* Opens what the addresses call for; looks them up first when they are a name. */
void grpc_client_links_start(struct grpc_client *client);
/* Ends every connection and timer. */
void grpc_client_links_stop(struct grpc_client *client, const char *reason);
/* False while a connection has yet to close, or a look-up to end. */
bool grpc_client_links_are_gone(const struct grpc_client *client);
/* A connection with room for one more stream, each in its turn; NULL: none. */
struct http2_client *grpc_client_pick(struct grpc_client *client);
/* True when every connection has failed since it was last ready: waiting is in vain for now. */
bool grpc_client_is_failing(const struct grpc_client *client);

/* Sends the call, which is in no list, on that connection. */
void grpc_client_call_start(struct grpc_client_call *call, struct http2_client *http2);
/* Takes the call from its list and stream and tells its caller, who may post or close from inside.
 */
void grpc_client_call_end(struct grpc_client_call *call, const struct grpc_result *result);
void grpc_client_call_fail(struct grpc_client_call *call, enum status_code code,
                           const char *message);
void grpc_client_call_on_deadline(struct timer *timer, void *arg);

void grpc_call_list_append(struct grpc_call_list *list, struct grpc_client_call *call);
void grpc_call_list_prepend(struct grpc_call_list *list, struct grpc_client_call *call);
void grpc_call_list_remove(struct grpc_call_list *list, struct grpc_client_call *call);
