/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (HTML Standard, 9.2) about new traces. A response holds one event: it is sent
 * when there is news that the request's filter picks, at most once a second, or after
 * LIVE_STATUS_NS, and then the browser asks again by itself, with the id of the last event. On
 * lane 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/base/timer.h"
#include "src/explore/explore_hub.h"

struct http_request;

/* Sends a response: an event stream with that text. */
typedef void (*live_respond_fn)(void *arg, struct http_request *request, struct slice events);

struct live_request {
    struct explore_job job; /* while is_asking */
    struct explore_live *live;
    struct http_request *request; /* NULL: free */
    char *query;                  /* of the request */
    char *question;               /* of the job */
    uint64_t since;               /* number of the newest trace that the browser knows */
    uint64_t began_ns;
    bool is_asking;
};

struct explore_live {
    struct lane *lane;
    struct explore_hub *hub;
    live_respond_fn respond;
    void *arg;
    struct timer timer;
    bool is_ending;
    struct live_request requests[EXPLORE_LIVE_MAX];
};

void explore_live_init(struct explore_live *live, struct lane *lane, struct explore_hub *hub,
                       live_respond_fn respond, void *arg);
/* False: too many wait. */
bool explore_live_take(struct explore_live *live, struct http_request *request);
/* Answers all that wait. */
void explore_live_stop(struct explore_live *live);
