/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 and gRPC client, over a Unix socket, against a server whose bytes are the input. The
 * first byte says whether SETTINGS come first, how the rest is cut and whether time passes; then
 * the server disconnects at any point. Every call ends once, and no byte of a message is kept. */
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/random.h"
#include "src/core/batch.h"
#include "src/net/client/grpc_client.h"
#include "src/net/client/grpc_target.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CALLS = 3, MESSAGE_BYTES = 20000, TURNS = 4, TURNS_MAX = 1000 };

enum { GREETS_ITSELF = 1, CUTS_SMALL = 2, PASSES_TIME = 4, WAITS_FOR_READY = 8 };

static struct lane *lane;
static int listener;
static struct grpc_target target;
static struct buffer *buffer;
static unsigned done;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_done(const struct grpc_result *result, void *arg)
{
    (void)arg;
    assert(result->message != NULL);
    assert(result->body.size <= RESPONSE_BYTES_MAX);
    done++;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert(listener >= 0);
    int failed = bind(listener, (struct sockaddr *)&address, sizeof(address));
    assert(failed == 0);
    failed = listen(listener, 8);
    assert(failed == 0);
}

static char folder[] = "/tmp/fuzz-XXXXXX";

static void remove_folder(void)
{
    unlink(target.path);
    rmdir(folder);
}

static void prepare(void)
{
    clock_fake_start(NS_PER_S, NS_PER_S);
    random_fix(0.5);
    lane = lane_create(0);
    assert(lane != NULL);
    const char *made = mkdtemp(folder);
    assert(made != NULL);
    snprintf(target.path, sizeof(target.path), "%s/socket", made);
    listen_at(target.path);
    atexit(remove_folder);
    buffer = buffer_create(NULL, MESSAGE_BYTES);
    memset(buffer->data, 'm', MESSAGE_BYTES);
}

static void turn(int fd)
{
    uint8_t requests[4096];
    for (unsigned i = 0; i < TURNS; i++) {
        lane_turn(lane);
        while (fd >= 0 && read(fd, requests, sizeof(requests)) > 0)
            continue;
    }
}

static int accept_client(void)
{
    int fd = -1;
    for (unsigned i = 0; i < TURNS_MAX && fd < 0; i++) {
        lane_turn(lane);
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    }
    assert(fd >= 0);
    return fd;
}

static void send_pieces(int fd, unsigned mode, const uint8_t *data, size_t size)
{
    size_t piece = (mode & CUTS_SMALL) != 0 ? 7 : size;
    for (size_t at = 0; at < size; at += piece) {
        size_t part = size - at < piece ? size - at : piece;
        if (send(fd, data + at, part, MSG_NOSIGNAL) != (ssize_t)part)
            return;
        turn(fd);
        if ((mode & PASSES_TIME) != 0)
            clock_fake_advance(NS_PER_S);
    }
}

static void post_calls(struct grpc_client *client)
{
    static struct batch_part parts[CALLS];
    for (size_t i = 0; i < CALLS; i++) {
        size_t size = i * (MESSAGE_BYTES / 2);
        parts[i] = (struct batch_part){buffer, slice_of(buffer->data, size)};
        grpc_client_post(client, &(struct grpc_post){.path = "/service/method",
                                                     .parts = &parts[i],
                                                     .parts_count = 1,
                                                     .bytes = size,
                                                     .done = on_done});
    }
}

/* What a client that reconnects has left behind. */
static void drop_others(void)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    bool is_closed = false;
    if (size == 0)
        return 0;
    if (lane == NULL)
        prepare();
    unsigned mode = data[0];
    done = 0;
    struct grpc_client *client = grpc_client_create(&(struct grpc_client_settings){
        .lane = lane,
        .target = &target,
        .authority = "localhost",
        .user_agent = "fuzz",
        .timeout_ns = 60 * (uint64_t)NS_PER_S,
        .keepalive = {.time_ns = 10 * (uint64_t)NS_PER_S, .timeout_ns = NS_PER_S},
        .waits_for_ready = (mode & WAITS_FOR_READY) != 0,
    });
    post_calls(client);
    int fd = accept_client();
    if ((mode & GREETS_ITSELF) == 0)
        (void)send(fd, settings, sizeof(settings), MSG_NOSIGNAL);
    turn(fd);
    send_pieces(fd, mode, data + 1, size - 1);
    turn(fd);
    close(fd);
    turn(-1);
    grpc_client_close(client, on_closed, &is_closed);
    for (unsigned i = 0; i < TURNS_MAX && !is_closed; i++)
        lane_turn(lane);
    assert(is_closed);
    grpc_client_destroy(client);
    drop_others();
    assert(done == CALLS);
    assert(buffer->refs == 1);
    return 0;
}
