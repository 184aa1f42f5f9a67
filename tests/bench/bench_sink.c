/* SPDX-License-Identifier: Apache-2.0 */
/* bench_sink: the back-end of a benchmark. Takes traces and profiles by OTLP/HTTP and profiles by
 * Pyroscope's Push on loopback, proves what arrived (requests, bytes, spans or samples, ids) and
 * responds with 200: at once, late, at a bounded rate, or not at all while stalled. OTLP/gRPC on
 * the same port gets OK at once. GET /stats returns the figures, GET /reset forgets them, GET
 * /stall and GET /resume do what they say; SIGTERM prints the figures and ends. */
#include "tests/bench/body_coding.h"
#include "tests/bench/http1_message.h"
#include "tests/bench/sink_grpc.h"
#include "tests/bench/span_ids.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    EVENTS_MAX = 64,
    STATS_BYTES_MAX = 1024,
    SPANS_MAX_LIMIT = 1 << 30,
    FDS_MAX = 65536,
    COUNTED_MAX = 4
};

struct connection {
    int fd;
    bool is_known;          /* its first bytes came */
    struct sink_grpc *grpc; /* NULL: it speaks HTTP/1.1 */
    struct http1_message message;
    struct connection *next; /* among those whose response is due later */
    uint64_t due_ns;
};

struct sink {
    int epoll;
    int listener;
    bool counts_spans;
    enum body_kind relayed; /* what comes to /v1/traces */
    uint64_t delay_ns;
    uint64_t spans_per_s; /* 0: no bound */
    const char *seen_file;
    uint64_t spans_max;

    struct connection *connections[FDS_MAX]; /* by socket */
    bool is_stalled;
    uint64_t busy_until_ns; /* bounded rate: when the work taken so far is done */
    struct connection *first_due;
    struct connection *last_due;
    struct byte_buffer inflated;

    uint64_t requests;
    uint64_t body_bytes; /* inflated */
    uint64_t wire_bytes; /* heads and bodies */
    uint64_t malformed;
    struct span_ids ids;
    const char *counted[COUNTED_MAX]; /* strings, and how often the bodies held each */
    uint64_t found[COUNTED_MAX];
    unsigned counted_count;
};

static volatile sig_atomic_t is_ended;

static void on_end(int signal_number)
{
    is_ended = signal_number;
}

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"count-spans", no_argument, NULL, 'c'},
    {"spans-max", required_argument, NULL, 'm'},
    {"seen", required_argument, NULL, 'f'},
    {"delay-ms", required_argument, NULL, 'd'},
    {"spans-per-s", required_argument, NULL, 'r'},
    {"relayed", required_argument, NULL, 'k'},
    {"count", required_argument, NULL, 't'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const char usage[] =
    "usage: bench_sink --port PORT [--count-spans] [--spans-max N] [--seen FILE]\n"
    "                  [--delay-ms N] [--spans-per-s N] [--relayed traces|profiles|push]\n"
    "                  [--count STRING]…\n"
    "  --relayed KIND  what the relay posts, which knows one path only\n"
    "  --spans-max N  notes which of the spans 1…N arrived, and how often more than once\n"
    "  --seen FILE    writes that as a bitmap at the end\n"
    "  --count STRING counts how often the bodies hold STRING; at most 4 strings";

static enum body_kind kind_option(const char *text)
{
    static const char *const names[] = {"traces", "profiles", "push"};

    for (unsigned kind = BODY_TRACES; kind <= BODY_PUSH; kind++)
        if (strcmp(text, names[kind]) == 0)
            return (enum body_kind)kind;
    die("%s", usage);
}

static void read_options(struct sink *sink, int argc, char **argv)
{
    uint64_t port = 0;

    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (option == 'p')
            port = number_option("port", optarg, 1, UINT16_MAX);
        else if (option == 'c')
            sink->counts_spans = true;
        else if (option == 'm')
            sink->spans_max = number_option("spans-max", optarg, 1, SPANS_MAX_LIMIT);
        else if (option == 'f')
            sink->seen_file = optarg;
        else if (option == 'd')
            sink->delay_ns = number_option("delay-ms", optarg, 0, 600000) * BENCH_NS_PER_MS;
        else if (option == 'r')
            sink->spans_per_s = number_option("spans-per-s", optarg, 1, UINT32_MAX);
        else if (option == 'k')
            sink->relayed = kind_option(optarg);
        else if (option == 't' && sink->counted_count < COUNTED_MAX && *optarg != '\0')
            sink->counted[sink->counted_count++] = optarg;
        else
            die("%s", usage);
    }
    if (port == 0 || (sink->seen_file != NULL && sink->spans_max == 0))
        die("%s", usage);
    sink->listener = listen_on((uint16_t)port);
    sink->counts_spans |= sink->spans_max > 0 || sink->spans_per_s > 0;
}

static int print_stats(const struct sink *sink, char *text, size_t size)
{
    const struct span_ids *ids = &sink->ids;
    const uint64_t *found = sink->found;

    return snprintf(text, size,
                    "{\"requests\": %" PRIu64 ", \"body_bytes\": %" PRIu64
                    ", \"wire_bytes\": %" PRIu64 ", \"malformed\": %" PRIu64 ", \"spans\": %" PRIu64
                    ", \"ids_sum\": \"%016" PRIx64 "\", \"unique\": %" PRIu64
                    ", \"duplicates\": %" PRIu64 ", \"unknown\": %" PRIu64 ", \"cpu_ns\": %" PRIu64
                    ", \"found\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "]}\n",
                    sink->requests, sink->body_bytes, sink->wire_bytes, sink->malformed, ids->spans,
                    ids->sum, ids->unique, ids->duplicates, ids->unknown, cpu_ns(), found[0],
                    found[1], found[2], found[3]);
}

/* Responses are small: a socket that cannot take one at once belongs to a peer that has gone. */
static void respond(const struct connection *connection, const char *type, const char *body)
{
    char text[STATS_BYTES_MAX + 128];
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
                        type, strlen(body), body);

    assert(size > 0 && (size_t)size < sizeof text);
    if (send(connection->fd, text, (size_t)size, MSG_NOSIGNAL) != size && errno != EPIPE &&
        errno != ECONNRESET)
        die("cannot respond: %s", strerror(errno));
}

static void reset(struct sink *sink)
{
    free(sink->ids.bitmap);
    span_ids_init(&sink->ids, sink->spans_max);
    sink->requests = sink->body_bytes = sink->wire_bytes = sink->malformed = 0;
    memset(sink->found, 0, sizeof sink->found);
}

static void take_control(struct sink *sink, struct connection *connection)
{
    char text[STATS_BYTES_MAX];

    assert(connection->message.head_size > 0);
    if (http1_starts_with(&connection->message, "GET /reset "))
        reset(sink);
    else if (http1_starts_with(&connection->message, "GET /stall "))
        sink->is_stalled = true;
    else if (http1_starts_with(&connection->message, "GET /resume "))
        sink->is_stalled = false;
    print_stats(sink, text, sizeof text);
    respond(connection, "application/json", text);
    http1_consume(&connection->message);
}

/* A request as it came, whatever the protocol. */
struct request {
    enum body_kind kind;
    enum body_coding coding;
    struct bytes body;
    size_t wire_size;
};

static void count_strings(struct sink *sink, struct bytes body)
{
    for (unsigned i = 0; i < sink->counted_count; i++) {
        size_t length = strlen(sink->counted[i]);
        const uint8_t *end = body.data + body.size;
        const uint8_t *at = body.data;
        while ((at = memmem(at, (size_t)(end - at), sink->counted[i], length)) != NULL) {
            sink->found[i]++;
            at += length;
        }
    }
}

/* Returns how many spans the request holds; 0 when they are not counted. */
static uint64_t count_request(struct sink *sink, const struct request *request)
{
    struct bytes body = request->body;
    uint64_t spans_before = sink->ids.spans;

    assert(request->wire_size >= body.size);
    sink->requests++;
    sink->wire_bytes += request->wire_size;
    if (!sink->counts_spans) {
        sink->body_bytes += body.size;
        return 0;
    }
    if (request->coding != BODY_PLAIN) {
        if (!body_decode(request->coding, body, &sink->inflated)) {
            sink->malformed++;
            return 0;
        }
        body = (struct bytes){sink->inflated.data, sink->inflated.size};
    }
    sink->body_bytes += body.size;
    count_strings(sink, body);
    if (!span_ids_add_body(&sink->ids, request->kind, body))
        sink->malformed++;
    return sink->ids.spans - spans_before;
}

static uint64_t due_time(struct sink *sink, uint64_t spans)
{
    uint64_t now = now_ns();

    if (sink->spans_per_s == 0)
        return now + sink->delay_ns;
    if (sink->busy_until_ns < now)
        sink->busy_until_ns = now;
    sink->busy_until_ns += spans * BENCH_NS_PER_S / sink->spans_per_s;
    return sink->busy_until_ns + sink->delay_ns;
}

/* Nothing is read from a connection whose response is due. */
static void respond_later(struct sink *sink, struct connection *connection, uint64_t due_ns)
{
    assert(sink->last_due == NULL || sink->last_due->due_ns <= due_ns);
    rewatch(sink->epoll, connection->fd, 0, connection);
    connection->due_ns = due_ns;
    connection->next = NULL;
    if (sink->last_due == NULL)
        sink->first_due = connection;
    else
        sink->last_due->next = connection;
    sink->last_due = connection;
}

static enum body_kind kind_of(const struct sink *sink, const struct http1_message *message)
{
    if (http1_starts_with(message, "POST /push.v1.PusherService/Push "))
        return BODY_PUSH;
    if (http1_starts_with(message, "POST /v1development/profiles "))
        return BODY_PROFILES;
    return sink->relayed;
}

static void take_request(struct sink *sink, struct connection *connection)
{
    if (http1_starts_with(&connection->message, "GET ")) {
        take_control(sink, connection);
        return;
    }

    const struct http1_message *message = &connection->message;
    const struct request request = {
        .kind = kind_of(sink, message),
        .coding = message->coding,
        .body = http1_body(message),
        .wire_size = message->wire_size,
    };
    uint64_t spans = count_request(sink, &request);
    http1_consume(&connection->message);
    if (sink->is_stalled || sink->delay_ns > 0 || sink->spans_per_s > 0)
        respond_later(sink, connection, due_time(sink, spans));
    else
        respond(connection, "application/x-protobuf", "");
}

static void take_message(void *arg, struct bytes message, bool is_gzip, size_t wire_size)
{
    const struct request request = {
        .coding = is_gzip ? BODY_GZIP : BODY_PLAIN,
        .body = message,
        .wire_size = wire_size,
    };

    count_request(arg, &request);
}

static void respond_due(struct sink *sink)
{
    uint64_t now = now_ns();

    while (!sink->is_stalled && sink->first_due != NULL && sink->first_due->due_ns <= now) {
        struct connection *connection = sink->first_due;
        sink->first_due = connection->next;
        if (sink->first_due == NULL)
            sink->last_due = NULL;
        assert(sink->connections[connection->fd] == connection);
        respond(connection, "application/x-protobuf", "");
        rewatch(sink->epoll, connection->fd, EPOLLIN, connection);
    }
}

static int wait_ms(const struct sink *sink)
{
    if (sink->is_stalled || sink->first_due == NULL)
        return -1;
    uint64_t now = now_ns();
    if (sink->first_due->due_ns <= now)
        return 0;
    return (int)((sink->first_due->due_ns - now + BENCH_NS_PER_MS - 1) / BENCH_NS_PER_MS);
}

static bool is_due(const struct sink *sink, const struct connection *connection)
{
    for (const struct connection *at = sink->first_due; at != NULL; at = at->next)
        if (at == connection)
            return true;
    return false;
}

static void close_connection(struct sink *sink, struct connection *connection)
{
    assert(sink->connections[connection->fd] == connection);
    sink->connections[connection->fd] = NULL;
    close(connection->fd);
    sink_grpc_close(connection->grpc);
    http1_free(&connection->message);
    free(connection);
}

static void on_connection(struct sink *sink, struct connection *connection)
{
    assert(sink->connections[connection->fd] == connection);
    if (sink->first_due != NULL && is_due(sink, connection)) {
        /* The peer went away before its response; respond_due() meets it. */
        epoll_ctl(sink->epoll, EPOLL_CTL_MOD, connection->fd,
                  &(struct epoll_event){.events = EPOLLET, .data.ptr = connection});
        return;
    }
    if (!connection->is_known && sink_grpc_is_next(connection->fd))
        connection->grpc = sink_grpc_open(connection->fd, take_message, sink);
    connection->is_known = true;
    if (connection->grpc != NULL) {
        if (!sink_grpc_receive(connection->grpc))
            close_connection(sink, connection);
        return;
    }
    switch (http1_receive(&connection->message, connection->fd)) {
    case HTTP1_MORE:
        return;
    case HTTP1_COMPLETE:
        take_request(sink, connection);
        return;
    case HTTP1_CLOSED:
    case HTTP1_BROKEN:
        close_connection(sink, connection);
        return;
    }
}

static void on_listener(struct sink *sink)
{
    int fd = accept_from(sink->listener);

    if (fd < 0)
        return;
    struct connection *connection = allocate(sizeof *connection);
    assert(fd < FDS_MAX);
    connection->fd = fd;
    sink->connections[fd] = connection;
    watch(sink->epoll, fd, EPOLLIN, connection);
}

static void run(struct sink *sink)
{
    struct epoll_event events[EVENTS_MAX];

    while (!is_ended) {
        int count = epoll_wait(sink->epoll, events, EVENTS_MAX, wait_ms(sink));
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == sink)
                on_listener(sink);
            else
                on_connection(sink, events[i].data.ptr);
        }
        respond_due(sink);
    }
}

static void write_seen(const struct sink *sink)
{
    FILE *file = fopen(sink->seen_file, "wb");
    size_t size = sink->spans_max / 8 + 1;

    assert(sink->ids.bitmap != NULL);
    if (file == NULL || fwrite(sink->ids.bitmap, 1, size, file) != size || fclose(file) != 0)
        die("cannot write %s: %s", sink->seen_file, strerror(errno));
}

int main(int argc, char **argv)
{
    static struct sink sink;
    char text[STATS_BYTES_MAX];

    read_options(&sink, argc, argv);
    signal(SIGTERM, on_end);
    signal(SIGINT, on_end);
    span_ids_init(&sink.ids, sink.spans_max);
    sink.epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(sink.epoll, sink.listener, EPOLLIN, &sink);
    run(&sink);
    print_stats(&sink, text, sizeof text);
    fputs(text, stdout);
    if (sink.seen_file != NULL)
        write_seen(&sink);
    return 0;
}
