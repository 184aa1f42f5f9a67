/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the daemon, and the watch over it. */
#include "tests/attack/traffic.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "tests/attack/http2.h"
#include "tests/attack/tls.h"

/* A page of lane 0 is asked for all the time. What the lane may compute in between: so much, and so
 * much for each byte that was sent meanwhile or for which a prompt client waits; sanitizers make
 * everything slower by ten and more. Sound builds stay below 0.2 s: helpers do what takes long. */
#define STALL_NS          ((uint64_t)300 * NS_PER_MS)
#define STALL_NS_PER_BYTE ((uint64_t)20)
/* For a session, from its last byte on. A bad back-end may slow a pipeline for longer than that:
 * then the back-end turns good, and after as long again no response can be missing but a lost one.
 */
#define RESPONSE_NS ((uint64_t)40 * NS_PER_S)
/* With a good back-end. Tens of thousands of items, three in an export, take more than a minute. */
#define CALM_NS   ((uint64_t)160 * NS_PER_S)
#define BROKEN_NS ((uint64_t)300 * NS_PER_MS) /* the same when responses are not certain */
#define DEAF_NS   ((uint64_t)3 * NS_PER_S)    /* that a client stays which reads nothing */
#define PAUSE_NS  ((uint64_t)40 * NS_PER_MS)  /* of a slow client */
#define LOOK_NS   ((uint64_t)20 * NS_PER_MS)  /* between looks at the process */

struct link {
    int fd; /* -1: free */
    uint64_t number;
    struct session session; /* its bytes are the link's */
    size_t sent;
    struct ssl_st *tls;    /* NULL: in the clear */
    bool awaits_handshake; /* writing needs what the server has to say first */
    bool is_connected;
    bool is_half_closed;
    uint64_t sent_ns; /* when all was sent; 0: not yet */
    uint64_t begun_ns;
    uint64_t paused_ns; /* when a slow client last sent something */
    size_t received;
    char head[16]; /* of the first response */
    struct http2_responses responses;
};

struct traffic {
    struct daemon *daemon;
    struct sink *sink;
    struct threads *threads; /* NULL: they are not watched */
    struct link links[LINKS_MAX];
    struct link watch;     /* asks for the page */
    uint64_t watch_cpu_ns; /* lane 0's CPU time when it was asked for */
    uint64_t watch_bytes;  /* that were under way, and that were sent since */
    uint64_t looked_ns;
    uint64_t now_ns;     /* the traffic's own clock: stands while a busy machine gives it no CPU */
    uint64_t clock_ns;   /* the real one, when now_ns was set */
    uint64_t starved_ns; /* of the daemon and of this process, at that time */
    uint64_t calmed_ns;  /* when the back-end turned good for the sake of slow sessions; 0: not */
    struct traffic_figures figures;
};

struct traffic *traffic_create(struct daemon *daemon, struct sink *sink, struct threads *threads)
{
    struct traffic *traffic = mem_zalloc(sizeof(*traffic));
    traffic->daemon = daemon;
    traffic->sink = sink;
    traffic->threads = threads;
    for (unsigned i = 0; i < LINKS_MAX; i++)
        traffic->links[i].fd = -1;
    traffic->watch.fd = -1;
    traffic->clock_ns = traffic->now_ns = clock_now_ns();
    traffic->starved_ns = daemon_starved_ns(daemon) + process_starved_ns("/proc/self");
    return traffic;
}

/* With RST: thousands of connections must not wait for their ports. */
static void end_link(struct link *link)
{
    tls_close(link->tls);
    link->tls = NULL;
    if (link->fd >= 0) {
        setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
        close(link->fd);
    }
    link->fd = -1;
}

void traffic_destroy(struct traffic *traffic)
{
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        end_link(&traffic->links[i]);
        bytes_fini(&traffic->links[i].session.bytes);
    }
    end_link(&traffic->watch);
    bytes_fini(&traffic->watch.session.bytes);
    mem_free(traffic);
}

static void begin_link(struct traffic *traffic, struct link *link, const struct session *session,
                       uint64_t number)
{
    struct bytes_out bytes = link->session.bytes;
    bytes_clear(&bytes);
    bytes_add(&bytes, session->bytes.data, session->bytes.size);
    *link = (struct link){.fd = -1, .number = number, .session = *session};
    link->session.bytes = bytes;
    link->begun_ns = traffic->now_ns;
    link->fd =
        socket(AF_INET,
               (session->is_packets ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert(link->fd >= 0);
    setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (session->habit == HABIT_DEAF)
        setsockopt(link->fd, SOL_SOCKET, SO_RCVBUF, &(int){1}, sizeof(int));
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port =
                                            htons(traffic->daemon->ports[session->endpoint]),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(link->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
        errno != EINPROGRESS)
        end_link(link);
    else if (endpoint_has_tls(session->endpoint))
        link->tls = tls_open(link->fd, session->is_http2);
}

bool traffic_has_room(const struct traffic *traffic)
{
    unsigned prompt = 0;
    unsigned used = 0;
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        const struct link *link = &traffic->links[i];
        used += link->fd >= 0;
        prompt += link->fd >= 0 && link->session.habit == HABIT_PROMPT;
    }
    return used < LINKS_MAX && prompt < PROMPT_LINKS_MAX;
}

void traffic_send(struct traffic *traffic, const struct session *session, uint64_t number)
{
    struct link *link = traffic->links;
    assert(traffic_has_room(traffic));
    while (link->fd >= 0)
        link++;
    begin_link(traffic, link, session, number);
    traffic->figures.sessions++;
    traffic->figures.requests += session->requests;
}

bool traffic_is_idle(const struct traffic *traffic)
{
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (traffic->links[i].fd >= 0)
            return false;
    return true;
}

bool traffic_is_quiet(const struct traffic *traffic)
{
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (traffic->links[i].fd >= 0 && traffic->links[i].session.habit == HABIT_PROMPT)
            return false;
    return traffic_has_room(traffic);
}

unsigned traffic_under_way(const struct traffic *traffic, uint64_t numbers[static LINKS_MAX])
{
    unsigned count = 0;
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (traffic->links[i].fd >= 0)
            numbers[count++] = traffic->links[i].number;
    return count;
}

const struct traffic_figures *traffic_figures(const struct traffic *traffic)
{
    return &traffic->figures;
}

/* One packet; nobody responds. */
static void write_packet(struct traffic *traffic, struct link *link)
{
    const struct session *session = &link->session;
    if (link->sent + sizeof(uint32_t) <= session->sent_max) {
        size_t size = session_packet_size(session, link->sent);
        link->sent += sizeof(uint32_t);
        ssize_t sent = send(link->fd, session->bytes.data + link->sent, size, MSG_NOSIGNAL);
        if (sent > 0) { /* otherwise it is lost, as packets may be */
            traffic->figures.bytes += (size_t)sent;
            traffic->watch_bytes += (size_t)sent;
        }
        link->sent += size;
    }
    if (link->sent + sizeof(uint32_t) > session->sent_max)
        end_link(link);
}

static void write_link(struct traffic *traffic, struct link *link)
{
    const struct session *session = &link->session;
    if (link->sent < session->sent_max) {
        size_t size = session->sent_max - link->sent;
        if (size > session->piece_bytes)
            size = session->piece_bytes;
        const uint8_t *data = session->bytes.data + link->sent;
        ssize_t sent = link->tls != NULL ? tls_write(link->tls, data, size, &link->awaits_handshake)
                                         : send(link->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0)
            return; /* EAGAIN, or what came to an end: reading tells */
        link->sent += (size_t)sent;
        link->paused_ns = traffic->now_ns;
        traffic->figures.bytes += (size_t)sent;
        traffic->watch_bytes += (size_t)sent;
    }
    if (link->sent < session->sent_max || link->sent_ns > 0)
        return;
    link->sent_ns = traffic->now_ns;
    if (session->habit == HABIT_DEAF)
        return;
    if (session->sent_max < session->bytes.size)
        end_link(link);
    else if (!session->is_sound) {
        link->is_half_closed = true;
        shutdown(link->fd, SHUT_WR);
    }
}

static ssize_t receive(struct link *link, void *data, size_t size)
{
    return link->tls != NULL ? tls_read(link->tls, data, size) : read(link->fd, data, size);
}

static void read_link(struct traffic *traffic, struct link *link)
{
    static uint8_t piece[1 << 16];
    ssize_t got;
    while ((got = receive(link, piece, sizeof(piece))) > 0) {
        if (link->received < sizeof(link->head)) {
            size_t left = sizeof(link->head) - link->received;
            memcpy(link->head + link->received, piece, (size_t)got < left ? (size_t)got : left);
        }
        link->received += (size_t)got;
        if (link->session.is_http2)
            http2_count(&link->responses, piece, (size_t)got);
    }
    bool has_ended = got == 0 || errno != EAGAIN;
    bool has_responses = link->session.is_http2 && link->session.is_sound &&
                         link->responses.ended >= link->session.requests;
    if (!has_ended && !has_responses)
        return;
    traffic->figures.streams += link->responses.ended;
    if (!link->session.is_http2 && link->received > 9 && link->head[9] >= '1' &&
        link->head[9] <= '5')
        traffic->figures.statuses[link->head[9] - '0']++;
    end_link(link);
}

/* False: it waited too long. */
static bool check_time(struct traffic *traffic, struct link *link, uint64_t now_ns)
{
    if (link->fd >= 0 && link->session.habit == HABIT_DEAF) {
        if (now_ns > link->begun_ns + DEAF_NS)
            end_link(link);
        return true;
    }
    if (link->fd < 0 || link->sent_ns == 0) {
        /* A server that stopped reading: it has responded or given up. */
        if (link->fd >= 0 && now_ns > link->begun_ns + RESPONSE_NS)
            end_link(link);
        return true;
    }
    if (link->is_half_closed && now_ns > link->sent_ns + BROKEN_NS) {
        end_link(link);
        return true;
    }
    if (now_ns <= link->sent_ns + RESPONSE_NS)
        return true;
    if (traffic->calmed_ns == 0) {
        sink_begin(traffic->sink, 0, 0);
        traffic->calmed_ns = now_ns;
        traffic->figures.calmed++;
    }
    return now_ns <= traffic->calmed_ns + CALM_NS;
}

static void ask_for_page(struct traffic *traffic)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct session session = {.endpoint = ENDPOINT_HEALTH, .is_sound = true, .requests = 1};
    bytes_add_text(&session.bytes, request);
    session.sent_max = session.piece_bytes = session.bytes.size;
    begin_link(traffic, &traffic->watch, &session, 0);
    bytes_fini(&session.bytes);
}

static uint64_t lane_cpu_ns(const struct daemon *daemon)
{
    return thread_cpu_ns(daemon->pid, daemon->pid);
}

/* The watch's request leaves now: what the lane did while this process had no CPU does not count.
 */
static void begin_watch(struct traffic *traffic)
{
    traffic->watch_cpu_ns = lane_cpu_ns(traffic->daemon);
    traffic->watch_bytes = 0;
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (traffic->links[i].fd >= 0 && traffic->links[i].session.habit == HABIT_PROMPT)
            traffic->watch_bytes += traffic->links[i].sent;
}

static bool has_page(const struct traffic *traffic)
{
    struct pollfd poll_page = {.fd = traffic->watch.fd, .events = POLLIN};
    return poll(&poll_page, 1, 0) > 0;
}

static void turn_clock(struct traffic *traffic)
{
    uint64_t clock_ns = clock_now_ns();
    uint64_t starved_ns = daemon_starved_ns(traffic->daemon) + process_starved_ns("/proc/self");
    uint64_t passed_ns = clock_ns - traffic->clock_ns;
    uint64_t lost_ns = starved_ns > traffic->starved_ns ? starved_ns - traffic->starved_ns : 0;
    traffic->now_ns += passed_ns - (lost_ns < passed_ns ? lost_ns : passed_ns);
    traffic->clock_ns = clock_ns;
    traffic->starved_ns = starved_ns;
}

static bool look_at_threads(struct traffic *traffic, char verdict[static VERDICT_BYTES_MAX])
{
    struct traffic_figures *figures = &traffic->figures;
    uint64_t bytes_open = 0;
    for (unsigned i = 0; i < LINKS_MAX; i++)
        if (traffic->links[i].fd >= 0)
            bytes_open += traffic->links[i].sent;
    if (threads_look(traffic->threads, traffic->daemon->pid, figures->bytes, bytes_open,
                     &figures->threads, verdict))
        return true;
    daemon_signal(traffic->daemon, SIGABRT);
    return false;
}

static bool look(struct traffic *traffic, char verdict[static VERDICT_BYTES_MAX])
{
    struct traffic_figures *figures = &traffic->figures;
    if (!daemon_lives(traffic->daemon, verdict))
        return false;
    if (!daemon_watch_memory(traffic->daemon, verdict))
        return false;
    if (traffic->threads != NULL && !look_at_threads(traffic, verdict))
        return false;
    if (traffic->watch.fd < 0) {
        ask_for_page(traffic);
        return true;
    }
    uint64_t cpu_ns = lane_cpu_ns(traffic->daemon) - traffic->watch_cpu_ns;
    /* A page that came since the last turn came in time. */
    if (traffic->watch.sent_ns == 0 || has_page(traffic))
        return true;
    uint64_t allowed_ns = STALL_NS + STALL_NS_PER_BYTE * traffic->watch_bytes;
    if (cpu_ns > figures->stall_ns_max)
        figures->stall_ns_max = cpu_ns;
    if (cpu_ns > allowed_ns) {
        snprintf(verdict, VERDICT_BYTES_MAX,
                 "stall: no page within %.1f s of lane 0's CPU time, for %llu bytes",
                 (double)cpu_ns / 1e9, (unsigned long long)traffic->watch_bytes);
        daemon_signal(traffic->daemon, SIGABRT);
        return false;
    }
    return true;
}

static short events_of(const struct link *link, uint64_t now_ns)
{
    bool has_more = link->sent_ns == 0;
    bool pauses = link->session.habit == HABIT_SLOW && now_ns < link->paused_ns + PAUSE_NS;
    bool reads = link->session.habit != HABIT_DEAF || link->awaits_handshake;
    bool writes = has_more && !pauses && !link->awaits_handshake;
    return (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

bool traffic_turn(struct traffic *traffic, char verdict[static VERDICT_BYTES_MAX])
{
    struct pollfd polls[SINK_FDS_MAX + LINKS_MAX + 1];
    struct link *links[LINKS_MAX + 1];
    size_t count = 0;
    for (unsigned i = 0; i <= LINKS_MAX; i++) {
        struct link *link = i < LINKS_MAX ? &traffic->links[i] : &traffic->watch;
        if (link->fd < 0)
            continue;
        links[count] = link;
        polls[count++] =
            (struct pollfd){.fd = link->fd, .events = events_of(link, traffic->now_ns)};
    }
    size_t sinks = sink_polls(traffic->sink, polls + count);
    poll(polls, count + sinks, LOOK_NS / NS_PER_MS);
    sink_turn(traffic->sink, polls + count, sinks);
    uint64_t now_ns = traffic->now_ns;
    for (size_t i = 0; i < count; i++) {
        struct link *link = links[i];
        if (polls[i].revents != 0)
            link->awaits_handshake = false;
        if ((polls[i].revents & POLLOUT) != 0 && link->session.is_packets)
            write_packet(traffic, link);
        else if ((polls[i].revents & POLLOUT) != 0) {
            if (link == &traffic->watch)
                begin_watch(traffic);
            write_link(traffic, link);
        }
        if (link->fd >= 0 && link->session.habit == HABIT_DEAF &&
            (polls[i].revents & (POLLHUP | POLLERR)) != 0)
            end_link(link);
        if (link->fd >= 0 && !link->session.is_packets && link->session.habit != HABIT_DEAF &&
            (polls[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            read_link(traffic, link);
        if (!check_time(traffic, link, now_ns)) {
            snprintf(
                verdict, VERDICT_BYTES_MAX,
                "hang: session %llu at %s had no end within %u s, the back-end being good for the "
                "last %u (%zu bytes received, %u of %u streams ended)",
                (unsigned long long)link->number, endpoint_name(link->session.endpoint),
                (unsigned)((now_ns - link->sent_ns) / NS_PER_S), (unsigned)(CALM_NS / NS_PER_S),
                link->received, link->responses.ended, link->session.requests);
            daemon_signal(traffic->daemon, SIGABRT);
            return false;
        }
    }
    uint64_t clock_ns = clock_now_ns();
    if (clock_ns < traffic->looked_ns + LOOK_NS)
        return true;
    traffic->looked_ns = clock_ns;
    turn_clock(traffic);
    return look(traffic, verdict);
}
