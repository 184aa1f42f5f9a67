/* SPDX-License-Identifier: Apache-2.0 */
/* bench_relay: the loop of the yardstick and its connections to the sink. See relay.h. */
#include "tests/bench/gzip_body.h"
#include "tests/bench/http1_message.h"
#include "tests/bench/relay.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/epoll.h>
#include <sys/uio.h>

enum { UPSTREAMS = 4, EVENTS_MAX = 256, BATCH_JOBS_MAX = 1000, HEAD_BYTES_MAX = 256 };

uint8_t relay_read_bytes[RELAY_READ_BYTES];

/* A connection to the sink; one POST at a time. */
struct upstream {
    struct source source;
    struct relay *relay;
    struct job *jobs; /* of the POST that is on its way; NULL: idle */
    struct http1_message reply;
    char head[HEAD_BYTES_MAX];
    struct iovec parts[BATCH_JOBS_MAX + 1];
    unsigned parts_count;
    unsigned part_at;
    struct byte_buffer inflated;
    struct byte_buffer deflated;
};

struct relay {
    struct source listener;
    int epoll;
    bool is_http;
    bool inflates;
    bool deflates;
    bool batches;
    uint16_t sink_port;
    struct upstream upstreams[UPSTREAMS];
    struct job *first_job; /* wait for an idle upstream */
    struct job *last_job;
    struct job *spare_jobs;
    struct turn_end *turn_ends;
};

int relay_epoll(const struct relay *relay)
{
    return relay->epoll;
}

struct job *relay_job(struct relay *relay)
{
    struct job *job = relay->spare_jobs;

    if (job == NULL)
        return allocate(sizeof *job);
    relay->spare_jobs = job->next;
    return job;
}

void relay_job_free(struct relay *relay, struct job *job)
{
    assert(job->bytes.size <= job->bytes.capacity);
    job->bytes.size = 0;
    job->next = relay->spare_jobs;
    relay->spare_jobs = job;
}

void relay_at_turn_end(struct relay *relay, struct turn_end *end)
{
    assert(end->fn != NULL);
    if (end->is_due)
        return;
    end->is_due = true;
    end->next = relay->turn_ends;
    relay->turn_ends = end;
}

void relay_submit(struct relay *relay, struct job *job)
{
    assert(job->on_response != NULL);
    job->next = NULL;
    if (relay->first_job == NULL)
        relay->first_job = job;
    else
        relay->last_job->next = job;
    relay->last_job = job;
}

/* One job, or in batches all that wait. */
static void take_jobs(struct relay *relay, struct upstream *upstream)
{
    unsigned jobs_max = relay->batches ? BATCH_JOBS_MAX : 1;
    struct job *last = NULL;

    upstream->jobs = relay->first_job;
    for (unsigned i = 0; i < jobs_max && relay->first_job != NULL; i++) {
        last = relay->first_job;
        relay->first_job = last->next;
    }
    assert(last != NULL);
    last->next = NULL;
}

/* Puts the bodies into parts[1…]; the first part is for the head. */
static void make_body(struct upstream *upstream)
{
    struct bytes bodies[BATCH_JOBS_MAX];
    unsigned count = 0;

    assert(upstream->jobs != NULL);
    for (const struct job *job = upstream->jobs; job != NULL; job = job->next)
        bodies[count++] = job->body;
    if (upstream->relay->inflates) {
        assert(count == 1);
        if (!gzip_body_inflate(bodies[0], &upstream->inflated))
            die("a body that is not gzip");
        bodies[0] = (struct bytes){upstream->inflated.data, upstream->inflated.size};
    }
    if (upstream->relay->deflates) {
        gzip_body_deflate(bodies, count, &upstream->deflated);
        bodies[0] = (struct bytes){upstream->deflated.data, upstream->deflated.size};
        count = 1;
    }
    for (unsigned i = 0; i < count; i++)
        upstream->parts[i + 1] = (struct iovec){(void *)(uintptr_t)bodies[i].data, bodies[i].size};
    upstream->parts_count = count + 1;
    upstream->part_at = 0;
}

static void send_parts(struct upstream *upstream)
{
    while (upstream->part_at < upstream->parts_count) {
        struct iovec *part = &upstream->parts[upstream->part_at];
        ssize_t sent =
            writev(upstream->source.fd, part, (int)(upstream->parts_count - upstream->part_at));
        if (sent < 0 && errno == EAGAIN) {
            rewatch(upstream->relay->epoll, upstream->source.fd, EPOLLIN | EPOLLOUT, upstream);
            return;
        }
        if (sent < 0)
            die("the sink has gone");
        size_t left = (size_t)sent;
        for (; upstream->part_at < upstream->parts_count && left >= part->iov_len; part++) {
            left -= part->iov_len;
            upstream->part_at++;
        }
        if (upstream->part_at < upstream->parts_count) {
            part->iov_base = (uint8_t *)part->iov_base + left;
            part->iov_len -= left;
        }
    }
}

static void begin_post(struct relay *relay, struct upstream *upstream)
{
    size_t size = 0;

    assert(upstream->jobs == NULL);
    take_jobs(relay, upstream);
    make_body(upstream);
    for (unsigned i = 1; i < upstream->parts_count; i++)
        size += upstream->parts[i].iov_len;
    int head_size =
        snprintf(upstream->head, sizeof upstream->head,
                 "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                 "Content-Type: application/x-protobuf\r\n%sContent-Length: %zu\r\n\r\n",
                 relay->sink_port, relay->deflates ? "Content-Encoding: gzip\r\n" : "", size);
    assert(head_size > 0 && (size_t)head_size < sizeof upstream->head);
    upstream->parts[0] = (struct iovec){upstream->head, (size_t)head_size};
    send_parts(upstream);
}

static void finish_post(struct upstream *upstream)
{
    bool is_ok = upstream->reply.status == 200;
    struct job *next;

    assert(upstream->jobs != NULL);
    http1_consume(&upstream->reply);
    for (struct job *job = upstream->jobs; job != NULL; job = next) {
        next = job->next;
        job->on_response(job, is_ok);
    }
    upstream->jobs = NULL;
}

static void on_upstream(struct source *source, uint32_t events)
{
    struct upstream *upstream = (struct upstream *)source;

    if ((events & EPOLLOUT) != 0) {
        rewatch(upstream->relay->epoll, source->fd, EPOLLIN, upstream);
        send_parts(upstream);
    }
    if ((events & EPOLLIN) == 0)
        return;
    enum http1_state state = http1_receive(&upstream->reply, source->fd);
    if (state == HTTP1_CLOSED || state == HTTP1_BROKEN)
        die("the sink has gone");
    if (state == HTTP1_COMPLETE)
        finish_post(upstream);
}

static void on_listener(struct source *source, uint32_t events)
{
    struct relay *relay = (struct relay *)source;
    int fd = accept_from(source->fd);

    (void)events;
    if (fd < 0)
        return;
    if (relay->is_http)
        relay_front_http(relay, fd);
    else
        relay_front_grpc(relay, fd);
}

static void end_turn(struct relay *relay)
{
    for (unsigned i = 0; i < UPSTREAMS && relay->first_job != NULL; i++)
        if (relay->upstreams[i].jobs == NULL)
            begin_post(relay, &relay->upstreams[i]);

    struct turn_end *ends = relay->turn_ends;
    relay->turn_ends = NULL;
    while (ends != NULL) {
        struct turn_end *end = ends;
        ends = end->next;
        end->is_due = false;
        end->fn(end);
    }
}

static void run(struct relay *relay)
{
    struct epoll_event events[EVENTS_MAX];

    for (;;) {
        int wait_ms = relay->turn_ends == NULL ? -1 : 0;
        int count = epoll_wait(relay->epoll, events, EVENTS_MAX, wait_ms);
        for (int i = 0; i < count; i++) {
            struct source *source = events[i].data.ptr;
            source->on_ready(source, events[i].events);
        }
        end_turn(relay);
    }
}

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"sink-port", required_argument, NULL, 's'},
    {"http", no_argument, NULL, 'h'},
    {"inflate", no_argument, NULL, 'i'},
    {"deflate", no_argument, NULL, 'd'},
    {"batch", no_argument, NULL, 'b'},
    {0},
};

static const char usage[] = "usage: bench_relay --port PORT --sink-port PORT [--http] [--inflate]"
                            " [--deflate] [--batch]";

static void read_options(struct relay *relay, int argc, char **argv)
{
    uint64_t port = 0;

    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (option == 'p')
            port = number_option("port", optarg, 1, UINT16_MAX);
        else if (option == 's')
            relay->sink_port = (uint16_t)number_option("sink-port", optarg, 1, UINT16_MAX);
        else if (option == 'h')
            relay->is_http = true;
        else if (option == 'i')
            relay->inflates = true;
        else if (option == 'd')
            relay->deflates = true;
        else if (option == 'b')
            relay->batches = true;
        else
            die("%s", usage);
    }
    if (port == 0 || relay->sink_port == 0 || (relay->inflates && relay->batches))
        die("%s", usage);
    relay->listener = (struct source){.on_ready = on_listener, .fd = listen_on((uint16_t)port)};
}

int main(int argc, char **argv)
{
    static struct relay relay;

    read_options(&relay, argc, argv);
    relay.epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(relay.epoll, relay.listener.fd, EPOLLIN, &relay.listener);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        struct upstream *upstream = &relay.upstreams[i];
        upstream->source =
            (struct source){.on_ready = on_upstream, .fd = connect_to(relay.sink_port)};
        upstream->relay = &relay;
        watch(relay.epoll, upstream->source.fd, EPOLLIN, upstream);
    }
    run(&relay);
}
