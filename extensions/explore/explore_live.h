/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (HTML Standard, 9.2) about new traces: one response to each page that is open,
 * on which an event follows when there is news that the page's filter picks, at most once a second,
 * and a status when there has been none for LIVE_STATUS_NS, which also shows that the page is still
 * there. One event at most waits for a page: one that does not take it before the next is dropped,
 * and comes back with the id of the last event that it has. When all places are taken, a new page
 * gets that of the oldest one of the client that has most, so that no client keeps others out. On
 * lane 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/base/timer.h"
#include "src/explore/explore_hub.h"
#include "src/net/syntax/ip_address.h"

struct http_request;

/* Sends the head of a response that is a stream of events. */
typedef void (*live_begin_fn)(void *arg, struct http_request *request);

struct live_request {
    struct explore_job job; /* while is_asking */
    struct explore_live *live;
    struct http_request *request; /* NULL: free */
    char *query;                  /* of the request */
    char *question;               /* of the job */
    uint64_t since;               /* number of the newest trace that the browser knows */
    uint64_t sent_ns;             /* the last event */
    uint64_t serial;              /* less: it is older */
    uint8_t client[IPV6_BYTES];   /* its address; of IPv6 the network, since a host has many */
    bool is_asking;
};

struct explore_live {
    struct lane *lane;
    struct explore_hub *hub;
    live_begin_fn begin;
    void *arg;
    struct timer timer;
    uint64_t next_serial;
    bool is_ending;
    struct live_request requests[EXPLORE_LIVE_MAX];
};

void explore_live_init(struct explore_live *live, struct lane *lane, struct explore_hub *hub,
                       live_begin_fn begin, void *arg);
/* Begins a stream to a GET request. False: EXPLORE_LIVE_MAX are open, and none gives way. */
bool explore_live_take(struct explore_live *live, struct http_request *request);
/* Ends all streams. */
void explore_live_stop(struct explore_live *live);
