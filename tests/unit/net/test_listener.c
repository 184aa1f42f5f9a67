/* SPDX-License-Identifier: Apache-2.0 */
/* A listener alone: which lane gets a connection, how many it accepts, the options of a socket. */
#include "src/net/socket/listener.h"

#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/net/socket/endpoint.h"
#include "src/net/socket/inherited_listeners.h"
#include "tests/support/loopback.h"

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
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMBERS = 3, OPEN_MAX = 4, SOCKETS_MAX = 8, TURNS_MAX = 2000 };

/* Keeps the sockets that it is dealt. */
struct keeper {
    struct listener_member member;
    int sockets[SOCKETS_MAX];
    int count;
    unsigned refused;
    bool has_left;
};

struct rig {
    struct lane *lane;
    struct keeper keepers[MEMBERS];
};

static void adopt(void *arg, int fd, const struct sockaddr *peer)
{
    struct keeper *keeper = arg;
    assert_int_equal(peer->sa_family, AF_INET);
    assert_true(keeper->count < SOCKETS_MAX);
    keeper->sockets[keeper->count++] = fd;
}

static void refused(void *arg)
{
    struct keeper *keeper = arg;
    keeper->refused++;
}

static void left(void *arg)
{
    struct keeper *keeper = arg;
    assert_null(keeper->member.listener);
    keeper->has_left = true;
}

static void let_go(struct keeper *keeper)
{
    assert_true(keeper->count > 0);
    close(keeper->sockets[--keeper->count]);
    atomic_fetch_sub(&keeper->member.open_count, 1);
}

static int start(void **state)
{
    static struct rig rig;
    struct listener_member *members[MEMBERS];
    rig = (struct rig){.lane = lane_create(0)};
    for (int i = 0; i < MEMBERS; i++) {
        rig.keepers[i].member.lane = rig.lane;
        rig.keepers[i].member.adopt = adopt;
        rig.keepers[i].member.refused = refused;
        rig.keepers[i].member.left = left;
        rig.keepers[i].member.arg = &rig.keepers[i];
        members[i] = &rig.keepers[i].member;
    }
    struct error error;
    if (!listener_open(members, MEMBERS, OPEN_MAX, "tcp", "127.0.0.1:0", &error))
        fail_msg("%s", error.text);
    *state = &rig;
    return 0;
}

/* The last member first: the one that opened the listener is not special to the others. */
static int finish(void **state)
{
    struct rig *rig = *state;
    for (int i = MEMBERS - 1; i >= 0; i--) {
        while (rig->keepers[i].count > 0)
            let_go(&rig->keepers[i]);
        if (!rig->keepers[i].has_left) {
            listener_leave(&rig->keepers[i].member);
            loopback_turn_until(rig->lane, &rig->keepers[i].has_left);
        }
    }
    lane_destroy(rig->lane);
    return 0;
}

static int open_sockets(const struct rig *rig)
{
    int count = 0;
    for (int i = 0; i < MEMBERS; i++)
        count += rig->keepers[i].count;
    return count;
}

static struct loopback *connect_and_expect(struct rig *rig, int open_count)
{
    const char *address = listener_address(rig->keepers[0].member.listener);
    struct loopback *client = loopback_connect(rig->lane, address);
    for (int turn = 0; turn < TURNS_MAX && open_sockets(rig) < open_count; turn++) {
        lane_turn(rig->lane);
        poll(NULL, 0, turn < 10 ? 0 : 1);
    }
    assert_int_equal(open_sockets(rig), open_count);
    return client;
}

static void sockets_go_round_the_members(void **state)
{
    struct rig *rig = *state;
    struct loopback *clients[OPEN_MAX];
    for (int i = 0; i < OPEN_MAX; i++)
        clients[i] = connect_and_expect(rig, i + 1);
    assert_int_equal(rig->keepers[0].count, 2);
    assert_int_equal(rig->keepers[1].count, 1);
    assert_int_equal(rig->keepers[2].count, 1);
    for (int i = 0; i < OPEN_MAX; i++)
        loopback_close(clients[i]);
}

static void what_is_over_the_limit_is_closed_at_once(void **state)
{
    struct rig *rig = *state;
    struct loopback *clients[OPEN_MAX];
    for (int i = 0; i < OPEN_MAX; i++)
        clients[i] = connect_and_expect(rig, i + 1);
    struct loopback *late = connect_and_expect(rig, OPEN_MAX);
    loopback_expect_end(late);
    assert_int_equal(listener_refused(rig->keepers[0].member.listener), 1);
    assert_int_equal(rig->keepers[0].refused, 1);
    assert_int_equal(rig->keepers[1].refused, 0);
    let_go(&rig->keepers[1]);
    struct loopback *later = connect_and_expect(rig, OPEN_MAX);
    assert_false(later->has_ended);
    loopback_close(later);
    loopback_close(late);
    for (int i = 0; i < OPEN_MAX; i++)
        loopback_close(clients[i]);
}

static void a_member_that_has_left_gets_nothing(void **state)
{
    struct rig *rig = *state;
    listener_leave(&rig->keepers[1].member);
    loopback_turn_until(rig->lane, &rig->keepers[1].has_left);
    struct loopback *clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = connect_and_expect(rig, i + 1);
    assert_int_equal(rig->keepers[1].count, 0);
    for (int i = 0; i < 3; i++)
        loopback_close(clients[i]);
}

static void accepted_sockets_are_ready_for_use(void **state)
{
    struct rig *rig = *state;
    struct loopback *client = connect_and_expect(rig, 1);
    int fd = rig->keepers[0].sockets[0];
    int on = 0;
    socklen_t size = sizeof(on);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
    assert_true(on != 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
    assert_true(on != 0);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    loopback_close(client);
}

static void on_unix_socket(void *arg, int fd, const struct sockaddr *peer)
{
    struct keeper *keeper = arg;
    char host[ENDPOINT_HOST_TEXT_MAX];
    endpoint_print_host(peer, host);
    assert_string_equal(host, "");
    keeper->sockets[keeper->count++] = fd;
}

/* The error of opening the path for another keeper; "": none. */
static const char *open_path(struct keeper *keeper, struct lane *lane, const char *path)
{
    static struct error error;
    struct listener_member *member = &keeper->member;
    *keeper = (struct keeper){.member = {.lane = lane, .adopt = on_unix_socket, .left = left}};
    member->arg = keeper;
    error.text[0] = '\0';
    listener_open(&member, 1, OPEN_MAX, "unix", path, &error);
    return error.text;
}

static void unix_sockets_are_files_that_come_and_go(void **state)
{
    struct keeper keeper;
    struct keeper second;
    char folder[] = "/tmp/spanflame-listener-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct lane *lane = lane_create(0);
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/otlp.sock", folder);
    assert_string_equal(open_path(&keeper, lane, address.sun_path), "");
    assert_string_equal(listener_address(keeper.member.listener), address.sun_path);
    assert_non_null(strstr(open_path(&second, lane, address.sun_path),
                           "/otlp.sock: bind: address already in use"));

    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    for (int turn = 0; turn < TURNS_MAX && keeper.count == 0; turn++)
        lane_turn(lane);
    assert_int_equal(keeper.count, 1);
    let_go(&keeper);
    close(client);
    listener_leave(&keeper.member);
    loopback_turn_until(lane, &keeper.has_left);
    assert_int_equal(access(address.sun_path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
    lane_destroy(lane);
}

/* A reload closes one listener and opens the next; clients that connect in between must not notice.
 */
static void unix_sockets_are_kept_over_a_reload(void **state)
{
    struct keeper keeper;
    struct keeper second;
    char folder[] = "/tmp/spanflame-listener-XXXXXX";
    char path[64];
    struct lane *lane = lane_create(0);
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/otlp.sock", folder);
    assert_string_equal(open_path(&keeper, lane, path), "");
    inherited_listeners_begin();
    listener_leave(&keeper.member);
    loopback_turn_until(lane, &keeper.has_left);
    assert_int_equal(access(path, F_OK), 0);
    assert_string_equal(open_path(&second, lane, path), "");
    listener_leave(&second.member);
    loopback_turn_until(lane, &second.has_left);
    inherited_listeners_end(); /* not inherited again */
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
    lane_destroy(lane);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(sockets_go_round_the_members),
        LIVE(what_is_over_the_limit_is_closed_at_once),
        LIVE(a_member_that_has_left_gets_nothing),
        LIVE(accepted_sockets_are_ready_for_use),
        cmocka_unit_test(unix_sockets_are_files_that_come_and_go),
        cmocka_unit_test(unix_sockets_are_kept_over_a_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
