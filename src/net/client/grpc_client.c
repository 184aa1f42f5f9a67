/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a gRPC client: they wait in one queue until a connection has room for a stream, and
 * fail at once while no connection can be had, unless told to wait. Runs on the client's lane. */
#include "src/net/client/grpc_client.h"

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/net/client/grpc_client_state.h"
#include "src/net/client/grpc_target.h"

#include <assert.h>
#include <string.h>

static const char closing_words[] = "the client connection is closing";

static void end_closing(struct grpc_client *client)
{
    void (*closed)(void *arg) = client->closed;
    assert(client->is_closing);
    if (closed == NULL || !grpc_client_links_are_gone(client))
        return;
    client->closed = NULL;
    closed(client->closed_arg);
}

/* Those that wait now; what their callers post meanwhile waits for the next turn. */
static void fail_waiting(struct grpc_client *client)
{
    struct grpc_client_call *last = client->waiting.last;
    bool is_last = last == NULL;
    while (!is_last && !client->is_closing) {
        struct grpc_client_call *call = client->waiting.first;
        assert(call != NULL);
        is_last = call == last;
        grpc_client_call_fail(call, STATUS_UNAVAILABLE, client->error);
    }
}

static void on_job(void *arg)
{
    struct grpc_client *client = arg;
    struct http2_client *http2 = NULL;
    assert(lane_is_current(client->lane));
    if (client->is_closing) {
        end_closing(client);
        return;
    }
    while (client->waiting.first != NULL && (http2 = grpc_client_pick(client)) != NULL) {
        struct grpc_client_call *call = client->waiting.first;
        grpc_call_list_remove(&client->waiting, call);
        grpc_client_call_start(call, http2);
    }
    if (client->waiting.first != NULL && !client->settings.waits_for_ready &&
        grpc_client_is_failing(client))
        fail_waiting(client);
}

struct grpc_client *grpc_client_create(const struct grpc_client_settings *settings)
{
    assert(settings->target != NULL);
    assert(settings->authority != NULL && settings->user_agent != NULL);
    struct grpc_client *client = mem_zalloc(sizeof(*client));
    client->settings = *settings;
    client->lane = settings->lane;
    client->job = (struct lane_job){.fn = on_job, .arg = client};
    grpc_metadata_init(&client->metadata, settings->headers, settings->headers_count);
    grpc_client_links_start(client);
    return client;
}

void grpc_client_post(struct grpc_client *client, const struct grpc_post *post)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    assert(post->done != NULL);
    assert(!post->is_compressed || client->settings.encoding != NULL);
    struct grpc_client_call *call = mem_zalloc(sizeof(*call));
    uint64_t timeout_ns = client->settings.timeout_ns;
    call->client = client;
    call->post = *post;
    grpc_answer_init(&call->answer);
    timer_init(&call->deadline, grpc_client_call_on_deadline, call);
    if (timeout_ns > 0) {
        call->deadline_ns = clock_now_ns() + timeout_ns;
        lane_timer_start(client->lane, &call->deadline, timeout_ns);
    }
    grpc_call_list_append(&client->waiting, call);
    lane_defer(client->lane, &client->job);
}

void grpc_client_close(struct grpc_client *client, void (*closed)(void *arg), void *arg)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    assert(closed != NULL);
    client->is_closing = true;
    client->closed = closed;
    client->closed_arg = arg;
    grpc_client_links_stop(client, closing_words);
    while (client->waiting.first != NULL)
        grpc_client_call_fail(client->waiting.first, STATUS_CANCELLED, closing_words);
    lane_defer(client->lane, &client->job);
}

void grpc_client_destroy(struct grpc_client *client)
{
    if (client == NULL)
        return;
    assert(client->waiting.first == NULL);
    assert(client->running.first == NULL);
    assert(client->http2 == NULL);
    lane_defer_cancel(client->lane, &client->job);
    grpc_metadata_fini(&client->metadata);
    mem_free(client);
}
