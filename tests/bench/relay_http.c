/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 into the relay: the body is passed on from the buffer that it was received in. */
#include "tests/bench/http1_message.h"
#include "tests/bench/relay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/socket.h>

struct http_front {
    struct source source;
    struct relay *relay;
    struct http1_message message;
    struct job job;
    bool is_busy;
    bool is_gone;
};

static void close_front(struct http_front *front)
{
    close(front->source.fd);
    http1_free(&front->message);
    free(front);
}

static void on_response(struct job *job, bool is_ok)
{
    static const char ok[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    struct http_front *front = job->front;
    const char *text = is_ok ? ok : busy;

    assert(front->is_busy);
    if (front->is_gone) {
        close_front(front);
        return;
    }
    (void)!send(front->source.fd, text, strlen(text), MSG_NOSIGNAL);
    front->is_busy = false;
    http1_consume(&front->message);
}

static void on_ready(struct source *source, uint32_t events)
{
    struct http_front *front = (struct http_front *)source;

    assert(events != 0);
    if (front->is_busy) {
        /* The client speaks before its response: it must have hung up. */
        epoll_ctl(relay_epoll(front->relay), EPOLL_CTL_DEL, source->fd, NULL);
        front->is_gone = true;
        return;
    }
    switch (http1_receive(&front->message, source->fd)) {
    case HTTP1_MORE:
        return;
    case HTTP1_COMPLETE:
        front->is_busy = true;
        front->job.body = http1_body(&front->message);
        relay_submit(front->relay, &front->job);
        return;
    case HTTP1_CLOSED:
    case HTTP1_BROKEN:
        close_front(front);
        return;
    }
}

void relay_front_http(struct relay *relay, int fd)
{
    struct http_front *front = allocate(sizeof *front);

    front->source = (struct source){.on_ready = on_ready, .fd = fd};
    front->relay = relay;
    front->job = (struct job){.front = front, .on_response = on_response};
    watch(relay_epoll(relay), fd, EPOLLIN, front);
}
