/* SPDX-License-Identifier: Apache-2.0 */
/* https over HTTP/2 to a back-end that has vanished without a word: the kernel gives up its
 * connection before TCP's quarter of an hour, so that later requests get another one. */
#include "src/net/client/http_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/core/batch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_SECONDS_MAX = 20 };

static bool is_closed;

static void on_done(const struct http_result *result, void *arg)
{
    (void)result;
    (void)arg;
}

static void on_closed(void *arg)
{
    (void)arg;
    is_closed = true;
}

/* The client's socket that is connected to the port; -1: none yet. */
static int find_socket(in_port_t port)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t size = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == port)
            return fd;
    }
    return -1;
}

static void unacknowledged_bytes_end_a_connection(void **state)
{
    static const struct batch_part part = {.bytes = {.data = (const uint8_t *)"x", .size = 1}};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct error error;
    char url[64];
    (void)state;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/", (unsigned)ntohs(address.sin_port));
    struct lane *lane = lane_create(0);
    struct http_client *client =
        http_client_create(&(struct http_client_settings){.lane = lane,
                                                          .url = url,
                                                          .user_agent = "test/1",
                                                          .timeout_ns = 20 * (uint64_t)NS_PER_S,
                                                          .has_keep_alive = true,
                                                          .proxy_url = ""},
                           &error);
    if (client == NULL)
        fail_msg("%s", error.text);
    http_client_post(client, &(struct http_post){.parts = &part,
                                                 .parts_count = 1,
                                                 .bytes = 1,
                                                 .content_type = "text/plain",
                                                 .done = on_done});
    int fd = -1;
    for (time_t end = time(NULL) + TEST_SECONDS_MAX; fd < 0; fd = find_socket(address.sin_port)) {
        lane_turn(lane);
        sched_yield();
        assert_true(time(NULL) <= end);
    }
    unsigned limit_ms = 0;
    size = sizeof(limit_ms);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &size), 0);
    assert_in_range(limit_ms, 1, 60 * 1000);
    http_client_close(client, on_closed, NULL);
    while (!is_closed)
        lane_turn(lane);
    http_client_destroy(client);
    lane_destroy(lane);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unacknowledged_bytes_end_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
