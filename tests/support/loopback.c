/* SPDX-License-Identifier: Apache-2.0 */
/* A client for servers on the test's own lane. Waits turn the lane, at most TURNS_MAX times with a
 * poll of one millisecond between, so that the kernel has time to move bytes. */
#include "tests/support/loopback.h"

#include "src/base/lane.h"
#include "src/base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS_MAX = 5000, SETTLE_TURNS = 6, HOST_MAX = 64 };

static void parse_address(const char *text, struct sockaddr_storage *ret_address, socklen_t *size)
{
    const char *colon = strrchr(text, ':');
    assert_non_null(colon);
    uint16_t port = htons((uint16_t)atoi(colon + 1));
    *ret_address = (struct sockaddr_storage){.ss_family = AF_INET};
    if (text[0] == '[') {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;
        *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
        v6->sin6_addr = in6addr_loopback;
        *size = sizeof(*v6);
        return;
    }
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *size = sizeof(*v4);
}

void loopback_find_port(char address[static 32])
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t size = sizeof(any);
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &size), 0);
    close(fd);
    snprintf(address, 32, "127.0.0.1:%u", ntohs(any.sin_port));
}

/* Gives the kernel a moment when nothing was there. */
static void breathe(const struct loopback *loopback)
{
    struct pollfd poller = {.fd = loopback->fd, .events = POLLIN};
    poll(&poller, 1, 1);
}

static bool take(struct loopback *loopback)
{
    if (loopback->has_ended || loopback->size == LOOPBACK_TEXT_MAX)
        return false;
    ssize_t count =
        recv(loopback->fd, loopback->text + loopback->size, LOOPBACK_TEXT_MAX - loopback->size, 0);
    if (count > 0) {
        loopback->size += (size_t)count;
        loopback->text[loopback->size] = '\0';
        return true;
    }
    if (count < 0 && errno == EAGAIN)
        return false;
    loopback->has_ended = true;
    loopback->was_reset = count < 0;
    return true;
}

struct loopback *loopback_connect(struct lane *lane, const char *address)
{
    struct loopback *loopback = mem_zalloc(sizeof(*loopback));
    struct sockaddr_storage peer;
    socklen_t size;
    parse_address(address, &peer, &size);
    loopback->lane = lane;
    loopback->fd = socket(peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(loopback->fd >= 0);
    /* The kernel completes the connection before the server accepts. */
    assert_int_equal(connect(loopback->fd, (struct sockaddr *)&peer, size), 0);
    int on = 1;
    setsockopt(loopback->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    assert_int_equal(fcntl(loopback->fd, F_SETFL, O_NONBLOCK), 0);
    return loopback;
}

void loopback_close(struct loopback *loopback)
{
    close(loopback->fd);
    mem_free(loopback);
}

void loopback_reset(struct loopback *loopback)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(loopback->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    loopback_close(loopback);
}

void loopback_shutdown(struct loopback *loopback)
{
    shutdown(loopback->fd, SHUT_WR);
}

void loopback_send_bytes(struct loopback *loopback, const void *data, size_t size)
{
    const char *next = data;
    for (int turn = 0; size > 0; turn++) {
        assert_true(turn < TURNS_MAX);
        ssize_t count = send(loopback->fd, next, size, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN)
            return;
        if (count > 0) {
            next += count;
            size -= (size_t)count;
        } else {
            lane_turn(loopback->lane);
            take(loopback);
        }
    }
}

void loopback_send(struct loopback *loopback, const char *text)
{
    loopback_send_bytes(loopback, text, strlen(text));
}

void loopback_settle(struct loopback *loopback)
{
    for (int turn = 0; turn < SETTLE_TURNS; turn++) {
        lane_turn(loopback->lane);
        if (!take(loopback) && turn == 0)
            breathe(loopback);
    }
}

void loopback_expect(struct loopback *loopback, const char *text)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        if (strstr(loopback->text, text) != NULL)
            return;
        lane_turn(loopback->lane);
        if (take(loopback))
            continue;
        if (loopback->has_ended)
            break;
        breathe(loopback);
    }
    fail_msg("\"%s\" did not come; what came is \"%s\"", text, loopback->text);
}

void loopback_expect_end(struct loopback *loopback)
{
    for (int turn = 0; turn < TURNS_MAX && !loopback->has_ended; turn++) {
        lane_turn(loopback->lane);
        if (!take(loopback))
            breathe(loopback);
    }
    if (!loopback->has_ended)
        fail_msg("the server did not close; what came is \"%s\"", loopback->text);
}

void loopback_forget(struct loopback *loopback)
{
    loopback->size = 0;
    loopback->text[0] = '\0';
}

void loopback_turn_until(struct lane *lane, const bool *flag)
{
    for (int turn = 0; turn < TURNS_MAX && !*flag; turn++) {
        lane_turn(lane);
        if (!*flag)
            poll(NULL, 0, turn < 10 ? 0 : 1);
    }
    assert_true(*flag);
}
