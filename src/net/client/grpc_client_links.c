/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a gRPC client: one for each address (round_robin) or one in all (pick_first),
 * opened at once, reopened with gRPC's back-off (connection-backoff.md of grpc/grpc), and looked up
 * anew when one fails. On the client's lane. */
#include "src/net/client/grpc_client_state.h"

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/net/client/grpc_target.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define BACKOFF_BASE_NS ((uint64_t)1 * NS_PER_S)
#define BACKOFF_MAX_NS  ((uint64_t)120 * NS_PER_S)
static const double backoff_factor = 1.6;
static const double backoff_jitter = 0.2;

/* failures: how many there were before this one. */
static uint64_t backoff_ns(unsigned failures)
{
    double delay = (double)BACKOFF_BASE_NS;
    if (failures == 0)
        return BACKOFF_BASE_NS;
    for (unsigned i = 0; i < failures && delay < (double)BACKOFF_MAX_NS; i++)
        delay *= backoff_factor;
    if (delay > (double)BACKOFF_MAX_NS)
        delay = (double)BACKOFF_MAX_NS;
    return (uint64_t)(delay * (1 + backoff_jitter * (2 * random_uniform() - 1)));
}

static bool is_name(const struct grpc_client *client)
{
    return client->addresses.expires_ns != UINT64_MAX;
}

static void look_up_in(struct grpc_client *client, uint64_t delay_ns)
{
    assert(is_name(client));
    if (!client->addresses.is_resolving && !timer_is_running(&client->lookup_timer))
        lane_timer_start(client->lane, &client->lookup_timer, delay_ns);
}

static void reconnect_in(struct grpc_link *link, uint64_t delay_ns)
{
    assert(link->http2 == NULL);
    link->state = LINK_WAITING;
    lane_timer_start(link->client->lane, &link->timer, delay_ns);
}

static void note_error(struct grpc_client *client, const char *reason)
{
    assert(reason != NULL);
    bool is_dial = strncmp(reason, "dial ", strlen("dial ")) == 0;
    snprintf(client->error, sizeof(client->error), "connection error: desc = \"%s%s\"",
             is_dial ? "transport: Error while dialing: " : "", reason);
}

/* The link's connection is gone, or takes no more calls: another one is due. */
static void replace(struct grpc_link *link)
{
    struct grpc_client *client = link->client;
    bool was_ready = link->state == LINK_READY;
    uint64_t lived_ns = clock_now_ns() - link->since_ns;
    assert(link->http2 != NULL);
    http2_client_owner(link->http2)->place = NULL;
    link->http2 = NULL;
    if (is_name(client))
        look_up_in(client, 0);
    lane_defer(client->lane, &client->job);
    if (was_ready && lived_ns >= BACKOFF_BASE_NS) {
        reconnect_in(link, 0);
    } else if (!was_ready && client->settings.is_pick_first &&
               link->tried + 1 < client->addresses.count) {
        link->tried++;
        reconnect_in(link, 0);
    } else {
        link->has_failed |= !was_ready;
        link->tried = 0;
        reconnect_in(link, backoff_ns(link->failures++));
    }
}

static void on_ready(struct http2_client *http2)
{
    struct grpc_link *link = http2_client_owner(http2)->place;
    if (link == NULL) {
        http2_client_drain(http2);
        return;
    }
    struct grpc_client *client = link->client;
    assert(link->http2 == http2);
    link->state = LINK_READY;
    link->has_failed = false;
    link->failures = 0;
    link->since_ns = clock_now_ns();
    lane_defer(client->lane, &client->job);
}

static void on_room(struct http2_client *http2)
{
    struct grpc_client *client = http2_client_owner(http2)->arg;
    lane_defer(client->lane, &client->job);
}

static void on_draining(struct http2_client *http2, bool has_too_many_pings)
{
    struct grpc_client *client = http2_client_owner(http2)->arg;
    struct grpc_link *link = http2_client_owner(http2)->place;
    if (has_too_many_pings && client->settings.keepalive.time_ns < UINT64_MAX / 2)
        client->settings.keepalive.time_ns *= 2;
    if (link != NULL)
        replace(link);
}

static void on_end(struct http2_client *http2, const char *reason)
{
    struct grpc_client *client = http2_client_owner(http2)->arg;
    struct grpc_link *link = http2_client_owner(http2)->place;
    if (link != NULL) {
        note_error(client, reason);
        replace(link);
    }
    http2_client_close(http2, reason);
}

static void on_closed(struct http2_client *http2)
{
    struct http2_client_owner *owner = http2_client_owner(http2);
    struct grpc_client *client = owner->arg;
    assert(owner->place == NULL || client->is_closing);
    if (owner->prev == NULL)
        client->http2 = owner->next;
    else
        http2_client_owner(owner->prev)->next = owner->next;
    if (owner->next != NULL)
        http2_client_owner(owner->next)->prev = owner->prev;
    lane_defer(client->lane, &client->job);
}

static const struct http2_client_events http2_events = {
    .on_ready = on_ready,
    .on_room = on_room,
    .on_draining = on_draining,
    .on_end = on_end,
    .on_closed = on_closed,
};

static void link_connect(struct grpc_link *link)
{
    struct grpc_client *client = link->client;
    assert(link->http2 == NULL);
    uint64_t patience_ns = backoff_ns(link->failures);
    if (client->settings.is_pick_first)
        memcpy(&link->address, backend_address(&client->addresses, link->tried),
               sizeof(link->address));
    link->since_ns = clock_now_ns();
    link->state = LINK_CONNECTING;
    link->http2 = http2_client_create(&(struct http2_client_settings){
        .lane = client->lane,
        .address = (const struct sockaddr *)&link->address,
        .connect_timeout_ns =
            patience_ns > GRPC_CONNECT_TIMEOUT_NS ? patience_ns : GRPC_CONNECT_TIMEOUT_NS,
        .tls = client->settings.tls,
        .server_name = client->settings.server_name,
        .keepalive = client->settings.keepalive,
        .events = &http2_events,
    });
    if (link->http2 == NULL) {
        note_error(client, "no memory left for a connection");
        reconnect_in(link, backoff_ns(link->failures++));
        return;
    }
    struct http2_client_owner *owner = http2_client_owner(link->http2);
    *owner = (struct http2_client_owner){.next = client->http2, .arg = client, .place = link};
    if (client->http2 != NULL)
        http2_client_owner(client->http2)->prev = link->http2;
    client->http2 = link->http2;
}

static void on_link_timer(struct timer *timer, void *arg)
{
    struct grpc_link *link = arg;
    assert(timer == &link->timer);
    (void)timer;
    /* A look-up in between may have brought fewer addresses. */
    if (link->tried >= link->client->addresses.count)
        link->tried = 0;
    link_connect(link);
}

static void link_add(struct grpc_client *client, const struct sockaddr_storage *address)
{
    assert(client->links_count < BACKEND_ADDRESSES_MAX);
    struct grpc_link *link = mem_zalloc(sizeof(*link));
    link->client = client;
    link->address = *address;
    timer_init(&link->timer, on_link_timer, link);
    client->links[client->links_count++] = link;
    link_connect(link);
}

/* Calls under way on it may finish. */
static void link_remove(struct grpc_client *client, size_t index)
{
    struct grpc_link *link = client->links[index];
    struct http2_client *http2 = link->http2;
    client->links[index] = client->links[--client->links_count];
    lane_timer_stop(client->lane, &link->timer);
    if (http2 != NULL) {
        http2_client_owner(http2)->place = NULL;
        http2_client_drain(http2);
    }
    mem_free(link);
}

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    size_t size = a->ss_family == AF_INET    ? sizeof(struct sockaddr_in)
                  : a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                             : sizeof(*a);
    return a->ss_family == b->ss_family && memcmp(a, b, size) == 0;
}

static bool is_listed(const struct backend_addresses *addresses, const struct grpc_link *link)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (is_same(&addresses->list[i], &link->address))
            return true;
    return false;
}

static bool is_linked(const struct grpc_client *client, const struct sockaddr_storage *address)
{
    for (size_t i = 0; i < client->links_count; i++)
        if (is_same(&client->links[i]->address, address))
            return true;
    return false;
}

/* Makes the links what the addresses say. */
static void update_links(struct grpc_client *client)
{
    const struct backend_addresses *addresses = &client->addresses;
    assert(addresses->count > 0);
    if (client->settings.is_pick_first) {
        if (client->links_count == 0)
            link_add(client, &addresses->list[0]);
        return;
    }
    for (size_t i = client->links_count; i > 0; i--)
        if (!is_listed(addresses, client->links[i - 1]))
            link_remove(client, i - 1);
    for (size_t i = 0; i < addresses->count; i++)
        if (!is_linked(client, &addresses->list[i]))
            link_add(client, &addresses->list[i]);
}

static void on_resolved(int result, void *arg)
{
    struct grpc_client *client = arg;
    assert(!client->addresses.is_resolving);
    lane_defer(client->lane, &client->job);
    if (client->is_closing)
        return;
    if (result == 0) {
        client->failed_lookups = 0;
        update_links(client);
        return;
    }
    bool is_unknown = result == UV_EAI_NONAME || result == UV_EAI_NODATA;
    if (client->links_count == 0)
        snprintf(client->error, sizeof(client->error),
                 "name resolver error: dial tcp: lookup %s: %s", client->addresses.host,
                 is_unknown ? "no such host" : uv_strerror(result));
    look_up_in(client, backoff_ns(client->failed_lookups++));
}

static void on_lookup_timer(struct timer *timer, void *arg)
{
    struct grpc_client *client = arg;
    assert(timer == &client->lookup_timer);
    (void)timer;
    int error = backend_addresses_resolve(&client->addresses, on_resolved, client);
    if (error != 0)
        on_resolved(error, client);
}

void grpc_client_links_start(struct grpc_client *client)
{
    const struct grpc_target *target = client->settings.target;
    struct backend_addresses *addresses = &client->addresses;
    assert(client->links_count == 0);
    timer_init(&client->lookup_timer, on_lookup_timer, client);
    backend_addresses_init(addresses, client->lane, target->host, target->port);
    if (target->path[0] != '\0') {
        struct sockaddr_un *address = (struct sockaddr_un *)&addresses->list[0];
        address->sun_family = AF_UNIX;
        strcpy(address->sun_path, target->path);
        addresses->count = 1;
        addresses->expires_ns = UINT64_MAX;
    }
    if (addresses->count > 0)
        update_links(client);
    else
        look_up_in(client, 0);
}

void grpc_client_links_stop(struct grpc_client *client, const char *reason)
{
    assert(client->is_closing);
    lane_timer_stop(client->lane, &client->lookup_timer);
    while (client->links_count > 0)
        link_remove(client, client->links_count - 1);
    struct http2_client *next = NULL;
    for (struct http2_client *http2 = client->http2; http2 != NULL; http2 = next) {
        next = http2_client_owner(http2)->next;
        http2_client_close(http2, reason);
    }
}

bool grpc_client_links_are_gone(const struct grpc_client *client)
{
    return client->http2 == NULL && !client->addresses.is_resolving;
}

struct http2_client *grpc_client_pick(struct grpc_client *client)
{
    assert(!client->is_closing);
    for (size_t i = 0; i < client->links_count; i++) {
        size_t index = (client->next_link + i) % client->links_count;
        const struct grpc_link *link = client->links[index];
        if (link->state != LINK_READY || !http2_client_has_room(link->http2))
            continue;
        client->next_link = index + 1;
        return link->http2;
    }
    return NULL;
}

bool grpc_client_is_failing(const struct grpc_client *client)
{
    if (client->links_count == 0)
        return client->failed_lookups > 0;
    for (size_t i = 0; i < client->links_count; i++)
        if (!client->links[i]->has_failed)
            return false;
    return true;
}
