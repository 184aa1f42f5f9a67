/* SPDX-License-Identifier: Apache-2.0 */
/* Reads packets while there are some, up to a bound for each turn of the loop. Runs on its lane. */
#include "src/net/socket/packet_socket.h"

#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/net/socket/endpoint.h"
#include "src/net/socket/inherited_listeners.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

/* Of a turn, so that other sockets of the lane do not starve. */
enum { PACKETS_PER_TURN_MAX = 64, BYTES_PER_TURN_MAX = 128 * 1024 };

static const char transport[] = "udp";

struct packet_socket {
    struct packet_socket_settings settings;
    int fd;
    uv_poll_t poll;
    void (*closed)(void *arg); /* NULL: open */
    void *closed_arg;
    char *endpoint; /* as configured: for inherited_listeners */
    char address[ENDPOINT_TEXT_MAX];
    uint8_t packet[]; /* bytes_max */
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct packet_socket *self = poll->data;
    size_t left = BYTES_PER_TURN_MAX;
    (void)status;
    (void)events;
    assert(lane_is_current(self->settings.lane));
    for (unsigned i = 0; i < PACKETS_PER_TURN_MAX && left > 0 && self->closed == NULL; i++) {
        size_t room = self->settings.bytes_max;
        /* With MSG_TRUNC the result is the size of the packet, also when only a part fits. */
        ssize_t size = recv(self->fd, self->packet, room, MSG_TRUNC | MSG_DONTWAIT);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            break; /* none is left, or an error of the socket, which is cleared by this */
        size_t used = (size_t)size < room ? (size_t)size : room;
        left -= used < left ? used : left;
        self->settings.on_packet(self->settings.arg, slice_of(self->packet, used), (size_t)size);
    }
    lane_catch_up(self->settings.lane);
}

/* Go's form: "bind: address already in use". */
static bool fail(struct error *error, const char *step)
{
    const char *reason = strerror(errno);
    return error_set(error, "%s: %c%s", step, tolower((unsigned char)reason[0]), reason + 1);
}

static bool open_socket(const char *endpoint, int *ret_fd, struct error *error)
{
    struct endpoint parsed;
    struct endpoint_address address;
    if (!endpoint_parse(endpoint, &parsed, error) ||
        !endpoint_resolve(&parsed, "tcp", &address, error))
        return error_prefix(error, "listen %s", transport);
    int family = address.address.ss_family;
    int v6_only = !address.is_dual;
    int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(error, "socket") || error_prefix(error, "listen %s", transport);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
    if (bind(fd, (const struct sockaddr *)&address.address, address.size) != 0) {
        fail(error, "bind");
        close(fd);
        return error_prefix(error, "listen %s %s", transport, address.text);
    }
    *ret_fd = fd;
    return true;
}

struct packet_socket *packet_socket_open(const struct packet_socket_settings *settings,
                                         struct error *error)
{
    assert(settings->bytes_max <= PACKET_BYTES_MAX);
    assert(lane_is_current(settings->lane));
    int fd = inherited_listeners_take(transport, settings->endpoint);
    if (fd < 0 && !open_socket(settings->endpoint, &fd, error))
        return NULL;
    if (settings->buffer_bytes > 0) {
        /* The kernel gives what net.core.rmem_max allows, as to the Go collector. */
        int bytes = settings->buffer_bytes < INT_MAX ? (int)settings->buffer_bytes : INT_MAX;
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
    struct packet_socket *self = mem_zalloc(sizeof(*self) + settings->bytes_max);
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    self->settings = *settings;
    self->fd = fd;
    self->endpoint = mem_copy_text(settings->endpoint);
    int failed = getsockname(fd, (struct sockaddr *)&address, &size);
    assert(failed == 0);
    endpoint_print((const struct sockaddr *)&address, self->address);
    self->poll.data = self;
    failed = uv_poll_init(lane_loop(settings->lane), &self->poll, fd);
    assert(failed == 0);
    failed = uv_poll_start(&self->poll, UV_READABLE, on_poll);
    assert(failed == 0);
    return self;
}

const char *packet_socket_address(const struct packet_socket *socket)
{
    return socket->address;
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct packet_socket *self = handle->data;
    void (*closed)(void *arg) = self->closed;
    void *arg = self->closed_arg;
    if (!inherited_listeners_put(self->fd, transport, self->endpoint))
        close(self->fd);
    mem_free(self->endpoint);
    mem_free(self);
    closed(arg);
}

void packet_socket_close(struct packet_socket *socket, void (*closed)(void *arg), void *arg)
{
    assert(lane_is_current(socket->settings.lane));
    assert(socket->closed == NULL && closed != NULL);
    socket->closed = closed;
    socket->closed_arg = arg;
    uv_close((uv_handle_t *)&socket->poll, on_poll_closed);
}
