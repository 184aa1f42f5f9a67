/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts on one lane for many. A socket is passed to another lane as a task; a member leaves by a
 * task to the listener's lane and one back, so that no socket can arrive after that. */
#include "src/net/socket/listener.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/socket/endpoint.h"
#include "src/net/socket/inherited_listeners.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* Limits accepts per turn of the loop, so that open connections do not starve. */
enum { ACCEPTS_PER_TURN_MAX = 64, KEEPALIVE_S = 15 };
/* How long accepting pauses after errors of accept(). */
#define ACCEPT_REST_NS ((uint64_t)100 * NS_PER_MS)

struct listener {
    struct lane *lane;
    int fd;
    int spare_fd; /* closed briefly when file descriptors run out, to refuse a connection */
    uv_poll_t poll;
    struct timer rest;
    const struct listener_member *first; /* listening ends when it leaves; only compared */
    struct listener_member *members[LANES_MAX];
    size_t member_count;
    size_t next_member;
    uint64_t open_max;
    _Atomic uint64_t refused;
    bool is_closing;
    bool is_closed;
    char address[ENDPOINT_TEXT_MAX];
    char *transport; /* as configured: for inherited_listeners */
    char *endpoint;
};

/* An accepted socket on its way to another lane. */
struct deal {
    struct lane_task task; /* first: the task is the deal */
    struct listener_member *member;
    int fd;
    struct sockaddr_storage peer;
};

static void free_if_unused(struct listener *listener)
{
    assert(listener->member_count <= LANES_MAX);
    if (!listener->is_closed || listener->member_count > 0)
        return;
    mem_free(listener->transport);
    mem_free(listener->endpoint);
    mem_free(listener);
}

static void on_deal(struct lane_task *task)
{
    struct deal *deal = (struct deal *)task;
    assert(lane_is_current(deal->member->lane));
    deal->member->adopt(deal->member->arg, deal->fd, (const struct sockaddr *)&deal->peer);
    mem_free(deal);
}

static uint64_t open_count(const struct listener *listener)
{
    assert(listener->member_count <= LANES_MAX);
    uint64_t count = 0;
    for (size_t i = 0; i < listener->member_count; i++)
        count += atomic_load_explicit(&listener->members[i]->open_count, memory_order_relaxed);
    return count;
}

static void refuse(struct listener *listener, int fd)
{
    assert(fd >= 0);
    const struct listener_member *first = listener->members[0];
    atomic_fetch_add_explicit(&listener->refused, 1, memory_order_relaxed);
    if (first->refused != NULL)
        first->refused(first->arg);
    close(fd);
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void rest(struct listener *listener)
{
    assert(!listener->is_closing);
    uv_poll_stop(&listener->poll);
    lane_timer_start(listener->lane, &listener->rest, ACCEPT_REST_NS);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct listener *listener = poll->data;
    assert(lane_is_current(listener->lane));
    for (int i = 0; i < ACCEPTS_PER_TURN_MAX && !listener->is_closing; i++) {
        struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
        socklen_t size = sizeof(peer);
        assert(listener->fd >= 0);
        int fd =
            accept4(listener->fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (fd < 0) {
            bool rests = errno != EAGAIN;
            if (errno == EMFILE || errno == ENFILE) {
                /* No file descriptor is left: a refused client can retry, a waiting one cannot. */
                if (listener->spare_fd >= 0)
                    close(listener->spare_fd);
                fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
                if (fd >= 0)
                    refuse(listener, fd);
                listener->spare_fd = open_spare();
                rests = fd < 0 || listener->spare_fd < 0;
            }
            if (rests)
                rest(listener);
            return;
        }
        assert(listener->member_count > 0);
        if (open_count(listener) >= listener->open_max) {
            refuse(listener, fd);
            continue;
        }
        struct listener_member *member =
            listener->members[listener->next_member++ % listener->member_count];
        atomic_fetch_add_explicit(&member->open_count, 1, memory_order_relaxed);
        if (member->lane == listener->lane) {
            member->adopt(member->arg, fd, (const struct sockaddr *)&peer);
            continue;
        }
        struct deal *deal = mem_alloc(sizeof(*deal));
        *deal = (struct deal){.task = {.fn = on_deal}, .member = member, .fd = fd, .peer = peer};
        lane_post(member->lane, &deal->task);
    }
}

static void on_rested(struct timer *timer, void *arg)
{
    struct listener *listener = arg;
    assert(timer == &listener->rest);
    uv_poll_start(&listener->poll, UV_READABLE, on_poll);
}

/* Go's form: "bind: address already in use". */
static bool fail(struct error *error, const char *step)
{
    const char *reason = strerror(errno);
    return error_set(error, "%s: %c%s", step, tolower((unsigned char)reason[0]), reason + 1);
}

static bool open_socket(const struct endpoint_address *address, int *ret_fd, struct error *error)
{
    int on = 1;
    int v6_only = !address->is_dual;
    int family = address->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(error, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
    /* Accepted sockets inherit these. Failures are ignored. */
    int seconds = KEEPALIVE_S;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    bool is_bound = bind(fd, (const struct sockaddr *)&address->address, address->size) == 0;
    if (is_bound && listen(fd, SOMAXCONN) == 0) {
        *ret_fd = fd;
        return true;
    }
    fail(error, is_bound ? "listen" : "bind");
    close(fd);
    return false;
}

bool listener_open(struct listener_member *const *members, size_t count, uint64_t open_max,
                   const char *transport, const char *endpoint, struct error *error)
{
    assert(open_max > 0);
    assert(count > 0 && count <= LANES_MAX);
    assert(lane_is_current(members[0]->lane));
    int fd = inherited_listeners_take(transport, endpoint);
    if (fd < 0) {
        struct endpoint parsed;
        struct endpoint_address address;
        bool is_fine = strcmp(transport, "unix") == 0
                           ? endpoint_of_path(endpoint, &address, error)
                           : endpoint_parse(endpoint, &parsed, error) &&
                                 endpoint_resolve(&parsed, transport, &address, error);
        if (!is_fine)
            return error_prefix(error, "listen %s", transport);
        if (!open_socket(&address, &fd, error))
            return error_prefix(error, "listen %s %s", transport, address.text);
    }
    struct listener *listener = mem_zalloc(sizeof(*listener));
    listener->lane = members[0]->lane;
    listener->fd = fd;
    listener->spare_fd = open_spare();
    listener->open_max = open_max;
    listener->transport = mem_copy_text(transport);
    listener->endpoint = mem_copy_text(endpoint);
    listener->member_count = count;
    listener->first = members[0];
    for (size_t i = 0; i < count; i++) {
        assert(members[i]->listener == NULL);
        listener->members[i] = members[i];
        members[i]->listener = listener;
    }
    if (strcmp(transport, "unix") == 0) {
        snprintf(listener->address, sizeof(listener->address), "%s", endpoint);
    } else {
        struct sockaddr_storage address;
        socklen_t size = sizeof(address);
        int failed = getsockname(fd, (struct sockaddr *)&address, &size);
        assert(failed == 0);
        endpoint_print((const struct sockaddr *)&address, listener->address);
    }
    timer_init(&listener->rest, on_rested, listener);
    listener->poll.data = listener;
    int failed = uv_poll_init(lane_loop(listener->lane), &listener->poll, fd);
    assert(failed == 0);
    failed = uv_poll_start(&listener->poll, UV_READABLE, on_poll);
    assert(failed == 0);
    return true;
}

const char *listener_address(const struct listener *listener)
{
    return listener->address;
}

uint64_t listener_refused(const struct listener *listener)
{
    return atomic_load_explicit(&listener->refused, memory_order_relaxed);
}

static void remove_member(struct listener *listener, const struct listener_member *member)
{
    for (size_t i = 0; i < listener->member_count; i++) {
        if (listener->members[i] != member)
            continue;
        listener->members[i] = listener->members[--listener->member_count];
        return;
    }
    assert(false && "a member of this listener");
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct listener_member *first = listener->members[0];
    assert(first == listener->first);
    if (!inherited_listeners_put(listener->fd, listener->transport, listener->endpoint)) {
        endpoint_forget(listener->transport, listener->endpoint);
        close(listener->fd);
    }
    if (listener->spare_fd >= 0)
        close(listener->spare_fd);
    remove_member(listener, first);
    first->listener = NULL;
    listener->is_closed = true;
    first->left(first->arg);
    free_if_unused(listener);
}

/* Back on the member's lane. */
static void on_left(struct lane_task *task)
{
    struct listener_member *member =
        (struct listener_member *)((char *)task - offsetof(struct listener_member, task));
    member->listener = NULL;
    member->left(member->arg);
}

/* On the listener's lane. */
static void on_leave(struct lane_task *task)
{
    struct listener_member *member =
        (struct listener_member *)((char *)task - offsetof(struct listener_member, task));
    struct listener *listener = member->listener;
    assert(lane_is_current(listener->lane));
    remove_member(listener, member);
    task->fn = on_left;
    lane_post(member->lane, task);
    free_if_unused(listener);
}

void listener_leave(struct listener_member *member)
{
    assert(lane_is_current(member->lane));
    struct listener *listener = member->listener;
    if (member == listener->first) {
        assert(!listener->is_closing);
        listener->is_closing = true;
        timer_stop(lane_timers(listener->lane), &listener->rest);
        uv_close((uv_handle_t *)&listener->poll, on_poll_closed);
        return;
    }
    member->task.fn = on_leave;
    lane_post(listener->lane, &member->task);
}
