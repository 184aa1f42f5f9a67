/* SPDX-License-Identifier: Apache-2.0 */
/* What all benchmark programs need. Single-threaded like its users. */
#include "tests/bench/support.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * BENCH_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * BENCH_NS_PER_S + (uint64_t)used.tv_nsec;
}

void *allocate(size_t size)
{
    void *memory = calloc(1, size == 0 ? 1 : size);

    if (memory == NULL)
        die("out of memory: %zu bytes", size);
    return memory;
}

void byte_buffer_reserve(struct byte_buffer *buffer, size_t extra)
{
    assert(buffer->size <= buffer->capacity);
    if (buffer->capacity - buffer->size >= extra)
        return;

    size_t capacity = buffer->capacity == 0 ? 4096 : buffer->capacity;
    while (capacity - buffer->size < extra)
        capacity *= 2;
    buffer->data = realloc(buffer->data, capacity);
    if (buffer->data == NULL)
        die("out of memory: %zu bytes", capacity);
    buffer->capacity = capacity;
}

void byte_buffer_append(struct byte_buffer *buffer, const void *data, size_t size)
{
    assert(data != NULL);
    byte_buffer_reserve(buffer, size);
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void byte_buffer_free(struct byte_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct byte_buffer){0};
}

uint64_t number_option(const char *name, const char *text, uint64_t low, uint64_t high)
{
    char *end;

    assert(low <= high);
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high)
        die("--%s %s: expected a number from %" PRIu64 " to %" PRIu64, name, text, low, high);
    return value;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

/* Small frames must not wait for an acknowledgement of the peer. */
static void send_at_once(int fd)
{
    int on = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        die("TCP_NODELAY: %s", strerror(errno));
}

static int tcp_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die("socket: %s", strerror(errno));
    return fd;
}

int listen_on(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = tcp_socket();
    int on = 1;

    assert(port != 0);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        die("SO_REUSEADDR: %s", strerror(errno));
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1024) != 0)
        die("cannot listen on 127.0.0.1:%u: %s", port, strerror(errno));
    return fd;
}

int accept_from(int listener)
{
    assert(listener >= 0);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0)
        send_at_once(fd);
    return fd;
}

int connect_to(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = tcp_socket();

    assert(port != 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        die("cannot connect to 127.0.0.1:%u: %s", port, strerror(errno));
    send_at_once(fd);
    return fd;
}

static void control(int epoll, int operation, int fd, struct epoll_event event)
{
    assert(epoll >= 0);
    assert(fd >= 0);
    if (epoll_ctl(epoll, operation, fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
}

void watch(int epoll, int fd, uint32_t events, void *arg)
{
    control(epoll, EPOLL_CTL_ADD, fd, (struct epoll_event){.events = events, .data.ptr = arg});
}

void rewatch(int epoll, int fd, uint32_t events, void *arg)
{
    control(epoll, EPOLL_CTL_MOD, fd, (struct epoll_event){.events = events, .data.ptr = arg});
}
