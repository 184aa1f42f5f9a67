/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC client. In this order: the data, calls (headers and message out, response in, deadline),
 * connections, and the queue between them.
 *
 * Calls wait in one queue until a connection has room for a stream; while no connection is
 * possible they fail at once, unless the settings make them wait. There is one connection per
 * address (round_robin) or one in all (pick_first), opened at once and reopened with gRPC's
 * back-off (connection-backoff.md of grpc/grpc); a failure also triggers a new look-up. On the
 * client's lane. */
#include "src/net/client/grpc_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/field.h"
#include "src/net/client/backend_addresses.h"
#include "src/net/client/grpc_metadata.h"
#include "src/net/client/grpc_target.h"
#include "src/net/client/request_edits.h"
#include "src/net/syntax/grpc_frame.h"

#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum {
    GRPC_ERROR_MAX = 512,
    OWN_FIELDS_MAX = 11,
    TIMEOUT_TEXT_MAX = 16,
    MESSAGE_MAX = GRPC_ERROR_MAX + 128,
};

#define BACKOFF_BASE_NS ((uint64_t)1 * NS_PER_S)
#define BACKOFF_MAX_NS  ((uint64_t)120 * NS_PER_S)
static const double backoff_factor = 1.6;
static const double backoff_jitter = 0.2;

static const char closing_message[] = "the client connection is closing";

/* A call from posting to done. */
struct grpc_call {
    struct grpc_client *client;
    struct grpc_post post;
    struct grpc_call *next; /* in client->asking, client->waiting or client->running */
    struct grpc_call *prev;
    struct http2_client *http2; /* NULL while it waits */
    struct http2_client_stream *stream;
    struct timer deadline;
    uint64_t deadline_ns; /* 0: none */
    bool was_repeated;    /* a server did not process it, and it was sent again */
    /* Its credentials, and while it asks for them. */
    struct credentials_request request;
    bool is_asking;
    struct lane_job failure; /* they are refused */
    char *refusal;
    struct grpc_response response;
};

struct grpc_call_list {
    struct grpc_call *first;
    struct grpc_call *last;
};

enum grpc_link_state { LINK_CONNECTING, LINK_READY, LINK_WAITING };

/* Keeps one connection: to one address, or, with pick_first, to the first that accepts. */
struct grpc_link {
    struct grpc_client *client;
    struct sockaddr_storage address;
    size_t tried; /* pick_first: addresses that have failed in this round */
    enum grpc_link_state state;
    struct http2_client *http2; /* NULL while it waits */
    unsigned failures;          /* in a row */
    bool has_failed;            /* since it was last ready: calls do not wait for it */
    uint64_t since_ns;          /* when it started to connect, or became ready */
    struct timer timer;         /* back-off */
};

struct grpc_client {
    struct grpc_client_settings settings;
    struct lane *lane;
    struct grpc_metadata metadata;
    struct grpc_call_list asking; /* for their credentials */
    struct grpc_call_list waiting;
    struct grpc_call_list running;
    bool are_credentials_closed;
    struct backend_addresses addresses;
    unsigned failed_lookups; /* in a row */
    struct timer lookup_timer;
    struct grpc_link *links[BACKEND_ADDRESSES_MAX];
    size_t links_count;
    size_t next_link;           /* round robin */
    struct http2_client *http2; /* all connections, including draining ones without link */
    struct lane_job job;        /* starts calls, or ends closing */
    char error[GRPC_ERROR_MAX]; /* of the last failed connection */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void list_append(struct grpc_call_list *list, struct grpc_call *call)
{
    assert(call->stream == NULL);
    call->next = NULL;
    call->prev = list->last;
    *(call->prev == NULL ? &list->first : &call->prev->next) = call;
    list->last = call;
}

static void list_prepend(struct grpc_call_list *list, struct grpc_call *call)
{
    assert(call->stream == NULL);
    call->prev = NULL;
    call->next = list->first;
    *(call->next == NULL ? &list->last : &call->next->prev) = call;
    list->first = call;
}

static void list_remove(struct grpc_call_list *list, struct grpc_call *call)
{
    *(call->prev == NULL ? &list->first : &call->prev->next) = call->next;
    *(call->next == NULL ? &list->last : &call->next->prev) = call->prev;
}

/* Removes the call from its list and stream, and reports its result. The caller of post may post or
 * close from inside. */
static void call_end(struct grpc_call *call, const struct grpc_result *result)
{
    struct grpc_client *client = call->client;
    const struct request_credentials *credentials = &client->settings.credentials;
    if (call->is_asking && call->refusal == NULL)
        credentials->forget(credentials->arg, &call->request);
    list_remove(call->is_asking       ? &client->asking
                : call->http2 != NULL ? &client->running
                                      : &client->waiting,
                call);
    lane_timer_stop(client->lane, &call->deadline);
    lane_defer_cancel(client->lane, &call->failure);
    if (call->stream != NULL)
        http2_client_cancel(call->stream);
    lane_defer(client->lane, &client->job);
    struct grpc_result whole = *result;
    whole.edits = &call->request.edits;
    call->post.done(&whole, call->post.arg);
    grpc_response_fini(&call->response);
    request_edits_fini(&call->request.edits);
    mem_free(call->refusal);
    mem_free(call);
}

static void call_fail(struct grpc_call *call, enum status_code code, const char *message)
{
    assert(code != STATUS_OK);
    call_end(call, &(struct grpc_result){.code = code, .wire_code = code, .message = message});
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct grpc_call *call = arg;
    struct grpc_client *client = call->client;
    assert(timer == &call->deadline);
    char message[MESSAGE_MAX];
    if (call->http2 != NULL) {
        /* If the peer has vanished, later calls should not wait for their timeouts. */
        http2_client_probe(call->http2);
        call_fail(call, STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
        return;
    }
    if (call->is_asking) {
        call_fail(call, STATUS_DEADLINE_EXCEEDED,
                  "context deadline exceeded while waiting for credentials");
        return;
    }
    bool has_error = client->error[0] != '\0';
    snprintf(message, sizeof(message),
             "context deadline exceeded while waiting for connections to become ready%s%s",
             has_error ? "; last error: " : "", client->error);
    call_fail(call, STATUS_DEADLINE_EXCEEDED, message);
}

static void on_stream_header(void *arg, struct slice name, struct slice value)
{
    struct grpc_call *call = arg;
    if (!grpc_response_add_header(&call->response, name, value))
        call_fail(
            call, STATUS_INTERNAL,
            "peer header list size exceeded limit: the response's headers are larger than 64 KiB");
}

static void on_stream_headers_end(void *arg)
{
    struct grpc_call *call = arg;
    grpc_response_end_headers(&call->response);
}

static void on_stream_data(void *arg, struct slice data)
{
    struct grpc_call *call = arg;
    if (!grpc_response_add_data(&call->response, data))
        call_fail(call, STATUS_RESOURCE_EXHAUSTED,
                  "grpc: received message larger than max: the response is larger than 4 MiB");
}

static void on_stream_end(void *arg, enum http2_stream_end end, uint32_t code, const char *reason)
{
    struct grpc_call *call = arg;
    struct grpc_result result;
    char message[MESSAGE_MAX];
    call->stream = NULL;
    if (end == HTTP2_STREAM_UNPROCESSED && !call->was_repeated && !call->client->is_closing) {
        /* The server has not processed the call: it is sent once more, before all others. */
        struct grpc_client *client = call->client;
        call->was_repeated = true;
        list_remove(&client->running, call);
        grpc_response_fini(&call->response);
        call->http2 = NULL;
        list_prepend(&client->waiting, call);
        lane_defer(client->lane, &client->job);
    } else if (end == HTTP2_STREAM_COMPLETE) {
        grpc_response_result(&call->response, &result);
        call_end(call, &result);
    } else if (reason[0] == '\0') {
        grpc_response_reset_result(&call->response, code, &result);
        call_end(call, &result);
    } else {
        snprintf(message, sizeof(message), "error reading from server: %s", reason);
        call_fail(call, call->client->is_closing ? STATUS_CANCELLED : STATUS_UNAVAILABLE, message);
    }
}

static const struct http2_stream_events stream_events = {
    .on_header = on_stream_header,
    .on_headers_end = on_stream_headers_end,
    .on_data = on_stream_data,
    .on_end = on_stream_end,
};

/* At most eight digits and a unit, rounded up (PROTOCOL-HTTP2.md of grpc/grpc). */
static void print_timeout(uint64_t timeout_ns, char text[TIMEOUT_TEXT_MAX])
{
    static const struct {
        uint64_t ns;
        char unit;
    } units[] = {{1, 'n'},
                 {NS_PER_US, 'u'},
                 {NS_PER_MS, 'm'},
                 {NS_PER_S, 'S'},
                 {60 * (uint64_t)NS_PER_S, 'M'},
                 {3600 * (uint64_t)NS_PER_S, 'H'}};
    size_t at = 0;
    while (timeout_ns / units[at].ns > 99999998)
        at++;
    assert(at < sizeof(units) / sizeof(units[0]));
    uint64_t number = timeout_ns / units[at].ns + (timeout_ns % units[at].ns != 0);
    snprintf(text, TIMEOUT_TEXT_MAX, "%" PRIu64 "%c", number, units[at].unit);
}

static void on_refused(void *arg)
{
    struct grpc_call *call = arg;
    char message[ERROR_TEXT_MAX + 64];
    snprintf(message, sizeof(message), "transport: per-RPC creds failed due to error: %s",
             call->refusal);
    /* grpc-go makes all of them UNAUTHENTICATED, which loses the data. */
    call_fail(call, call->request.is_temporary ? STATUS_UNAVAILABLE : STATUS_UNAUTHENTICATED,
              message);
}

static void on_credentials(struct credentials_request *request, const char *error)
{
    struct grpc_call *call = request->arg;
    struct grpc_client *client = call->client;
    const char *name;
    char text[ERROR_TEXT_MAX];
    assert(call->is_asking);
    if (error == NULL && !request_edits_check(&request->edits, true, &name)) {
        snprintf(text, sizeof(text), "the name or the value of the header \"%s\" cannot be sent",
                 name);
        error = text;
    }
    if (error != NULL) {
        call->refusal = mem_copy_text(error);
        lane_defer(client->lane, &call->failure);
        return;
    }
    list_remove(&client->asking, call);
    call->is_asking = false;
    list_append(&client->waiting, call);
    lane_defer(client->lane, &client->job);
}

/* The metadata that the credentials make; to be freed with grpc_metadata_fini. */
static void own_metadata(const struct request_edits *edits, struct grpc_metadata *metadata)
{
    struct config_pair *rows = mem_alloc(edits->count * sizeof(*rows));
    size_t count = request_edits_apply(edits, true, rows, 0);
    grpc_metadata_init(metadata, rows, count);
    mem_free(rows);
}

/* Sends a call, which is in no list, on this connection. */
static void call_start(struct grpc_call *call, struct http2_client *http2)
{
    struct grpc_client *client = call->client;
    const struct grpc_client_settings *settings = &client->settings;
    const struct request_credentials *credentials = &settings->credentials;
    struct grpc_metadata own;
    own_metadata(&call->request.edits, &own);
    nghttp2_nv *fields =
        mem_alloc((OWN_FIELDS_MAX + own.count + client->metadata.count) * sizeof(nghttp2_nv));
    char timeout[TIMEOUT_TEXT_MAX];
    size_t count = 0;
    fields[count++] = grpc_metadata_field(":method", "POST");
    fields[count++] = grpc_metadata_field(":scheme", settings->tls != NULL ? "https" : "http");
    fields[count++] = grpc_metadata_field(":path", call->post.path);
    fields[count++] = grpc_metadata_field(":authority", settings->authority);
    fields[count++] = grpc_metadata_field("content-type", "application/grpc");
    fields[count++] = grpc_metadata_field("user-agent", settings->user_agent);
    fields[count++] = grpc_metadata_field("te", "trailers");
    if (call->post.is_compressed)
        fields[count++] = grpc_metadata_field("grpc-encoding", settings->encoding);
    fields[count++] = grpc_metadata_field("grpc-accept-encoding", "gzip");
    if (call->deadline_ns != 0) {
        print_timeout(call->deadline_ns - clock_now_ns(), timeout);
        fields[count++] = grpc_metadata_field("grpc-timeout", timeout);
    }
    if (credentials->name != NULL)
        fields[count++] =
            grpc_metadata_field(credentials->name, credentials->value(credentials->arg));
    assert(count <= OWN_FIELDS_MAX);
    for (size_t i = 0; i < own.count; i++)
        fields[count++] = own.fields[i];
    for (size_t i = 0; i < client->metadata.count; i++) {
        const nghttp2_nv *field = &client->metadata.fields[i];
        bool is_replaced = credentials->name != NULL && grpc_metadata_is(field, credentials->name);
        for (size_t j = 0; j < own.count; j++)
            is_replaced |= field->namelen == own.fields[j].namelen &&
                           memcmp(field->name, own.fields[j].name, field->namelen) == 0;
        if (!is_replaced)
            fields[count++] = *field;
    }

    uint64_t size = call->post.bytes;
    assert(size <= UINT32_MAX);
    const uint8_t prefix[GRPC_PREFIX_BYTES] = {call->post.is_compressed, (uint8_t)(size >> 24),
                                               (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                                               (uint8_t)size};
    const struct http2_request request = {
        .headers = fields,
        .headers_count = count,
        .prefix = slice_of(prefix, sizeof(prefix)),
        .parts = call->post.parts,
        .parts_count = call->post.parts_count,
        .events = &stream_events,
        .arg = call,
    };
    list_append(&client->running, call);
    call->http2 = http2;
    call->stream = http2_client_submit(http2, &request);
    mem_free(fields);
    grpc_metadata_fini(&own);
    if (call->stream == NULL)
        call_fail(call, STATUS_RESOURCE_EXHAUSTED, "out of memory for a stream");
}

/* failures: how many preceded this one. */
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
    bool is_dial = strncmp(reason, "dial ", strlen("dial ")) == 0;
    snprintf(client->error, sizeof(client->error), "connection error: desc = \"%s%s\"",
             is_dial ? "transport: Error while dialing: " : "", reason);
}

/* The link's connection has ended or takes no more calls: schedules another one. */
static void link_replace(struct grpc_link *link)
{
    struct grpc_client *client = link->client;
    bool was_ready = link->state == LINK_READY;
    uint64_t lived_ns = clock_now_ns() - link->since_ns;
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
        link_replace(link);
}

static void on_end(struct http2_client *http2, const char *reason)
{
    struct grpc_client *client = http2_client_owner(http2)->arg;
    struct grpc_link *link = http2_client_owner(http2)->place;
    if (link != NULL) {
        note_error(client, reason);
        link_replace(link);
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
    uint64_t timeout_ns = backoff_ns(link->failures);
    if (client->settings.is_pick_first)
        memcpy(&link->address, backend_address(&client->addresses, link->tried),
               sizeof(link->address));
    link->since_ns = clock_now_ns();
    link->state = LINK_CONNECTING;
    link->http2 = http2_client_create(&(struct http2_client_settings){
        .lane = client->lane,
        .budget = client->settings.budget,
        .address = (const struct sockaddr *)&link->address,
        .connect_timeout_ns =
            timeout_ns > GRPC_CONNECT_TIMEOUT_NS ? timeout_ns : GRPC_CONNECT_TIMEOUT_NS,
        .tls = client->settings.tls,
        .server_name = client->settings.server_name,
        .keepalive = client->settings.keepalive,
        .events = &http2_events,
    });
    if (link->http2 == NULL) {
        note_error(client, "out of memory for a connection");
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
    /* A look-up in between may have found fewer addresses. */
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

/* Calls under way may finish. */
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

/* Opens and closes links as the addresses demand. */
static void update_links(struct grpc_client *client)
{
    const struct backend_addresses *addresses = &client->addresses;
    assert(addresses->count > 0);
    if (client->settings.is_pick_first) {
        if (client->links_count == 0)
            link_add(client, &addresses->list[0]);
        return;
    }
    for (size_t i = client->links_count; i > 0; i--) {
        bool is_listed = false;
        for (size_t j = 0; j < addresses->count; j++)
            is_listed |= is_same(&addresses->list[j], &client->links[i - 1]->address);
        if (!is_listed)
            link_remove(client, i - 1);
    }
    for (size_t i = 0; i < addresses->count; i++) {
        bool is_linked = false;
        for (size_t j = 0; j < client->links_count; j++)
            is_linked |= is_same(&client->links[j]->address, &addresses->list[i]);
        if (!is_linked)
            link_add(client, &addresses->list[i]);
    }
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
    int error = backend_addresses_resolve(&client->addresses, on_resolved, client);
    if (error != 0)
        on_resolved(error, client);
}

static void on_job(void *arg)
{
    struct grpc_client *client = arg;
    assert(lane_is_current(client->lane));
    if (client->is_closing) {
        bool is_gone = client->http2 == NULL && !client->addresses.is_resolving &&
                       client->are_credentials_closed;
        void (*closed)(void *arg) = client->closed;
        if (is_gone && closed != NULL) {
            client->closed = NULL;
            closed(client->closed_arg);
        }
        return;
    }
    /* Waiting calls go round robin to the ready connections with room for one more stream. */
    size_t passed = 0; /* connections in a row that take none */
    while (client->waiting.first != NULL && passed < client->links_count) {
        size_t index = client->next_link % client->links_count;
        const struct grpc_link *link = client->links[index];
        client->next_link = index + 1;
        passed++;
        if (link->state != LINK_READY || !http2_client_has_room(link->http2))
            continue;
        struct grpc_call *call = client->waiting.first;
        passed = 0;
        if (call->deadline_ns != 0 && call->deadline_ns <= clock_now_ns()) {
            on_deadline(&call->deadline, call); /* earlier than its timer, which is about to */
            continue;
        }
        list_remove(&client->waiting, call);
        call_start(call, link->http2);
    }
    if (client->waiting.first == NULL || client->settings.waits_for_ready)
        return;
    bool has_failed = client->links_count > 0 || client->failed_lookups > 0;
    for (size_t i = 0; i < client->links_count; i++)
        has_failed &= client->links[i]->has_failed;
    if (!has_failed)
        return;
    /* No connection is possible. Fails the calls that wait now; calls posted meanwhile wait for the
     * next turn. */
    struct grpc_call *last = client->waiting.last;
    bool is_last = false;
    while (!is_last && !client->is_closing) {
        struct grpc_call *call = client->waiting.first;
        is_last = call == last;
        call_fail(call, STATUS_UNAVAILABLE, client->error);
    }
}

struct grpc_client *grpc_client_create(const struct grpc_client_settings *settings)
{
    struct grpc_client *client = mem_zalloc(sizeof(*client));
    client->settings = *settings;
    client->lane = settings->lane;
    client->job = (struct lane_job){.fn = on_job, .arg = client};
    grpc_metadata_init(&client->metadata, settings->headers, settings->headers_count);
    const struct grpc_target *target = client->settings.target;
    struct backend_addresses *addresses = &client->addresses;
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
    return client;
}

void grpc_client_post(struct grpc_client *client, const struct grpc_post *post)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    assert(!post->is_compressed || client->settings.encoding != NULL);
    struct grpc_call *call = mem_zalloc(sizeof(*call));
    uint64_t timeout_ns = client->settings.timeout_ns;
    call->client = client;
    call->post = *post;
    grpc_response_init(&call->response, client->settings.budget);
    timer_init(&call->deadline, on_deadline, call);
    if (timeout_ns > 0) {
        call->deadline_ns = clock_now_ns() + timeout_ns;
        lane_timer_start(client->lane, &call->deadline, timeout_ns);
    }
    const struct request_credentials *credentials = &client->settings.credentials;
    if (credentials->ask != NULL) {
        call->request = (struct credentials_request){
            .client = post->client, .is_grpc = true, .done = on_credentials, .arg = call};
        call->failure = (struct lane_job){.fn = on_refused, .arg = call};
        call->is_asking = true;
        list_append(&client->asking, call);
        credentials->ask(credentials->arg, &call->request);
        return;
    }
    list_append(&client->waiting, call);
    lane_defer(client->lane, &client->job);
}

static void on_credentials_closed(void *arg)
{
    struct grpc_client *client = arg;
    client->are_credentials_closed = true;
    lane_defer(client->lane, &client->job);
}

void grpc_client_close(struct grpc_client *client, void (*closed)(void *arg), void *arg)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    client->is_closing = true;
    client->closed = closed;
    client->closed_arg = arg;
    lane_timer_stop(client->lane, &client->lookup_timer);
    while (client->links_count > 0)
        link_remove(client, client->links_count - 1);
    struct http2_client *next = NULL;
    for (struct http2_client *http2 = client->http2; http2 != NULL; http2 = next) {
        next = http2_client_owner(http2)->next;
        http2_client_close(http2, closing_message);
    }
    while (client->waiting.first != NULL)
        call_fail(client->waiting.first, STATUS_CANCELLED, closing_message);
    while (client->asking.first != NULL)
        call_fail(client->asking.first, STATUS_CANCELLED, closing_message);
    const struct request_credentials *credentials = &client->settings.credentials;
    if (credentials->close != NULL)
        credentials->close(credentials->arg, on_credentials_closed, client);
    else
        client->are_credentials_closed = true;
    lane_defer(client->lane, &client->job);
}

void grpc_client_destroy(struct grpc_client *client)
{
    if (client == NULL)
        return;
    assert(client->asking.first == NULL);
    assert(client->waiting.first == NULL);
    assert(client->running.first == NULL);
    assert(client->http2 == NULL);
    lane_defer_cancel(client->lane, &client->job);
    grpc_metadata_fini(&client->metadata);
    mem_free(client);
}
