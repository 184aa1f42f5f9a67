/* SPDX-License-Identifier: Apache-2.0 */
/* On lane 0. */
#include "extensions/explore/explore_live.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/explore/explore_query.h"
#include "src/net/server/http_server.h"

enum { EVENT_BYTES_MAX = 512 };
#define LIVE_TICK_NS   ((uint64_t)1 * NS_PER_S)
#define LIVE_STATUS_NS ((uint64_t)15 * NS_PER_S)
#define LIVE_RETRY     "retry: 1000\n"
#define LIVE_LEAVE     "retry: 60000\n\n" /* else it came back at once, for another one's place */

static void finish(struct live_request *waiting, bool is_whole)
{
    struct http_request *request = waiting->request;
    assert(!waiting->is_asking);
    waiting->request = NULL;
    mem_free(waiting->query);
    waiting->query = NULL;
    http_stream_end(request, is_whole);
}

/* Sends an event, or ends a stream whose page has gone or does not take events. */
static void send_event(struct live_request *waiting, const char *event)
{
    waiting->sent_ns = clock_now_ns();
    if (!http_stream_send(waiting->request, slice_of_text(event)))
        finish(waiting, false);
}

static void send_status(struct live_request *waiting)
{
    char event[EVENT_BYTES_MAX];
    struct explore_figures figures = explore_hub_figures(waiting->live->hub);
    snprintf(event, sizeof(event),
             LIVE_RETRY "id: %" PRIu64 "\nevent: status\ndata: {\"traces\":%" PRIu64
                        ",\"spans\":%" PRIu64 ",\"usedBytes\":%" PRIu64 "}\n\n",
             waiting->since, figures.traces, figures.spans, figures.used_bytes);
    send_event(waiting, event);
}

/* The answer is {"count":12,"newest":"345"}. */
static void on_answer(struct explore_job *job)
{
    static const char newest_key[] = "\"newest\":\"";
    char event[EVENT_BYTES_MAX];
    struct live_request *waiting =
        (struct live_request *)((char *)job - offsetof(struct live_request, job));
    struct slice body =
        job->body != NULL && job->status == 200 ? buffer_slice(job->body) : slice_of("", 0);
    const uint8_t *key = memmem(body.data, body.size, newest_key, sizeof(newest_key) - 1);
    uint64_t newest = waiting->since;
    if (key != NULL) {
        const uint8_t *digits = key + sizeof(newest_key) - 1;
        const uint8_t *end = memchr(digits, '"', (size_t)(body.data + body.size - digits));
        if (end != NULL)
            explore_read_number(slice_of(digits, (size_t)(end - digits)), &newest);
    }
    waiting->is_asking = false;
    waiting->since = newest;
    bool has_news = key != NULL && !slice_begins_with(body, "{\"count\":0,");
    if (has_news)
        snprintf(event, sizeof(event), LIVE_RETRY "id: %" PRIu64 "\nevent: new\ndata: %.*s\n\n",
                 newest, (int)body.size, (const char *)body.data);
    buffer_unref(job->body);
    mem_free(waiting->question);
    waiting->question = NULL;
    if (has_news)
        send_event(waiting, event);
    if (waiting->live->is_ending && waiting->request != NULL)
        finish(waiting, true);
}

static void ask(struct live_request *waiting)
{
    size_t size = strlen(waiting->query) + 64;
    waiting->question = mem_alloc(size);
    snprintf(waiting->question, size, "after=%" PRIu64 "&%s", waiting->since, waiting->query);
    waiting->job = (struct explore_job){.lane = waiting->live->lane,
                                        .done = on_answer,
                                        .path = (char *)(uintptr_t) "live",
                                        .query = waiting->question};
    waiting->is_asking = explore_hub_ask(waiting->live->hub, &waiting->job);
    if (waiting->is_asking)
        return;
    mem_free(waiting->question); /* it asks again at the next tick */
    waiting->question = NULL;
}

static void on_tick(struct timer *timer, void *arg)
{
    struct explore_live *live = arg;
    uint64_t newest = explore_hub_figures(live->hub).newest;
    bool is_any = false;
    for (size_t i = 0; i < EXPLORE_LIVE_MAX; i++) {
        struct live_request *waiting = &live->requests[i];
        if (waiting->request == NULL || waiting->is_asking) {
            is_any |= waiting->request != NULL;
            continue;
        }
        if (http_request_is_gone(waiting->request)) {
            finish(waiting, false);
            continue;
        }
        is_any = true;
        if (newest != waiting->since)
            ask(waiting);
        if (!waiting->is_asking && clock_now_ns() - waiting->sent_ns >= LIVE_STATUS_NS)
            send_status(waiting);
    }
    if (is_any)
        lane_timer_start(live->lane, timer, LIVE_TICK_NS);
}

void explore_live_init(struct explore_live *live, struct lane *lane, struct explore_hub *hub,
                       live_begin_fn begin, void *arg)
{
    *live = (struct explore_live){.lane = lane, .hub = hub, .begin = begin, .arg = arg};
    timer_init(&live->timer, on_tick, live);
}

static void read_client(const struct http_request *request, uint8_t ret_client[IPV6_BYTES])
{
    enum { NETWORK_BYTES = 8, MAPPED_BYTES = 12 };
    static const uint8_t mapped[MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};
    memset(ret_client, 0, IPV6_BYTES);
    if (ip_address_parse(slice_of_text(http_request_peer_address(request)), ret_client) &&
        memcmp(ret_client, mapped, MAPPED_BYTES) != 0)
        memset(ret_client + NETWORK_BYTES, 0, IPV6_BYTES - NETWORK_BYTES);
}

static size_t count_of(const struct explore_live *live, const uint8_t client[IPV6_BYTES])
{
    size_t count = 0;
    for (size_t i = 0; i < EXPLORE_LIVE_MAX; i++)
        count += live->requests[i].request != NULL &&
                 memcmp(live->requests[i].client, client, IPV6_BYTES) == 0;
    return count;
}

/* Ends the oldest stream of the client that has most, its own if another has no more with the new
 * one. NULL: others have one each, or are about to get an event. */
static struct live_request *make_room(struct explore_live *live, const uint8_t client[IPV6_BYTES])
{
    struct live_request *oldest = NULL;
    size_t most = 0;
    for (size_t i = 0; i < EXPLORE_LIVE_MAX; i++) {
        struct live_request *waiting = &live->requests[i];
        bool is_own = memcmp(waiting->client, client, IPV6_BYTES) == 0;
        /* Twice, so that its own count more than those of another client that has as many. */
        size_t count = 2 * (count_of(live, waiting->client) + is_own) + is_own;
        if (waiting->is_asking || count < most ||
            (count == most && waiting->serial > oldest->serial))
            continue;
        most = count;
        oldest = waiting;
    }
    if (most <= 2)
        return NULL;
    finish(oldest, http_stream_send(oldest->request, slice_of_text(LIVE_LEAVE)));
    return oldest;
}

bool explore_live_take(struct explore_live *live, struct http_request *request)
{
    struct slice query = http_request_query(request);
    struct slice last = http_request_header(request, "last-event-id");
    uint8_t client[IPV6_BYTES];
    struct live_request *waiting = live->requests;
    if (live->is_ending || query.size > EXPLORE_QUERY_BYTES_MAX)
        return false;
    read_client(request, client);
    while (waiting < live->requests + EXPLORE_LIVE_MAX && waiting->request != NULL)
        waiting++;
    if (waiting == live->requests + EXPLORE_LIVE_MAX)
        waiting = make_room(live, client);
    if (waiting == NULL)
        return false;
    *waiting = (struct live_request){
        .live = live,
        .request = request,
        .since = explore_hub_figures(live->hub).newest,
        .serial = live->next_serial++,
        .query = mem_alloc(query.size + 1),
    };
    memcpy(waiting->client, client, sizeof(client));
    if (query.size > 0)
        memcpy(waiting->query, query.data, query.size);
    waiting->query[query.size] = '\0';
    uint64_t known;
    if (explore_read_number(last, &known))
        waiting->since = known;
    live->begin(live->arg, request);
    send_status(waiting);
    if (!timer_is_running(&live->timer))
        lane_timer_start(live->lane, &live->timer, LIVE_TICK_NS);
    return true;
}

void explore_live_stop(struct explore_live *live)
{
    live->is_ending = true;
    if (timer_is_running(&live->timer))
        lane_timer_stop(live->lane, &live->timer);
    for (size_t i = 0; i < EXPLORE_LIVE_MAX; i++)
        if (live->requests[i].request != NULL && !live->requests[i].is_asking)
            finish(&live->requests[i], true);
}
