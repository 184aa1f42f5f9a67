/* SPDX-License-Identifier: Apache-2.0 */
/* bench_load: sends a fixed number of OTLP trace requests, or of bodies from files, over gRPC or
 * HTTP/1.1 on loopback and prints as JSON the statuses and latencies. Closed loop: as fast
 * as the responses come. Open loop (--rate): request i is due at start + i / rate whatever happened
 * before, and its latency counts from then. Span ids are unique over the run, except in bodies that
 * are made before it: those from files, and gzip. */
#include "tests/bench/canned.h"
#include "tests/bench/client.h"
#include "tests/bench/histogram.h"
#include "tests/bench/payload.h"
#include "tests/bench/span_ids.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

enum { EVENTS_MAX = 256, CONNECTIONS_MAX = 20000, FAILURES_MAX = 1000 };

struct options {
    struct client_options client;
    const struct client_type *type;
    unsigned connections;
    uint32_t spans;
    uint32_t span_bytes;
    uint64_t requests;
    uint64_t rate; /* requests per second; 0: closed loop */
    bool retries;
    uint64_t retry_ns;
    uint64_t timeout_ns;
    const char *acked_file;
    bool makes_gzip;
    const char *bodies; /* folder; NULL: spans are made here */
};

/* A place in flight: an exchange, the connection that it belongs to, its own copy of the body. */
struct place {
    struct exchange exchange;
    struct payload payload;
    unsigned connection;
};

struct postponed {
    uint64_t number;
    uint64_t scheduled_ns;
    uint64_t due_ns;
};

struct load {
    struct options options;
    int epoll;
    struct client **clients;
    struct place *places;
    uint32_t *id_offsets;       /* the same in all bodies */
    struct place **free_places; /* a ring, so that all connections have their turn */
    unsigned places_count;
    unsigned free_first;
    unsigned free_count;
    struct canned_set canned;  /* empty: each request has spans of its own */
    struct postponed *retries; /* a ring of options.requests */
    uint64_t retry_first;
    uint64_t retry_count;

    uint64_t next_number;
    uint64_t start_ns;
    uint64_t start_cpu_ns; /* what preparing the bodies took */
    uint64_t end_ns;
    uint64_t counts[OUTCOME_BROKEN + 1]; /* by enum outcome */
    uint64_t final;                      /* requests that will not be sent again */
    uint64_t ids_sum;                    /* of the spans in requests that got OK */
    uint64_t reconnects;
    unsigned failures; /* connections lost since the last response */
    uint64_t body_bytes;
    uint8_t *acked; /* bit n: request n got OK */
    struct histogram latency;
};

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"http", no_argument, NULL, 'h'},
    {"gzip", no_argument, NULL, 'z'},
    {"connections", required_argument, NULL, 'c'},
    {"in-flight", required_argument, NULL, 'f'},
    {"spans", required_argument, NULL, 's'},
    {"span-bytes", required_argument, NULL, 'b'},
    {"requests", required_argument, NULL, 'n'},
    {"rate", required_argument, NULL, 'r'},
    {"retry-ms", required_argument, NULL, 'y'},
    {"timeout-s", required_argument, NULL, 't'},
    {"acked", required_argument, NULL, 'a'},
    {"bodies", required_argument, NULL, 'i'},
    {"coding", required_argument, NULL, 'e'},
    {"path", required_argument, NULL, 'u'},
    {"type", required_argument, NULL, 'm'},
    {"tls", no_argument, NULL, 'l'},
    {0},
};

static const char usage[] =
    "usage: bench_load --port PORT --requests N [--http] [--gzip] [--spans N] [--span-bytes N]\n"
    "                  [--connections N] [--in-flight N] [--rate N] [--retry-ms N]\n"
    "                  [--timeout-s N] [--acked FILE] [--tls]\n"
    "                  [--bodies FOLDER [--coding NAME] [--path PATH] [--type TYPE]]\n"
    "  --in-flight N  requests at once on each gRPC connection\n"
    "  --rate N       requests per second, open loop\n"
    "  --retry-ms N   sends what was refused again after so long\n"
    "  --acked FILE   writes a bitmap of the requests that got OK\n"
    "  --bodies FOLDER  sends its files, whose names are their weights; --spans says how many "
    "spans\n"
    "                   or samples each holds, --coding how they are compressed, and with --http\n"
    "                   --path and --type where they go and as what";

static void read_option(struct options *options, int option)
{
    switch (option) {
    case 'p':
        options->client.port = (uint16_t)number_option("port", optarg, 1, UINT16_MAX);
        return;
    case 'h':
        options->type = &http_client_type;
        return;
    case 'z':
        options->makes_gzip = true;
        options->client.coding = "gzip";
        return;
    case 'c':
        options->connections = (unsigned)number_option("connections", optarg, 1, CONNECTIONS_MAX);
        return;
    case 'f':
        options->client.slots = (unsigned)number_option("in-flight", optarg, 1, 10000);
        return;
    case 's':
        options->spans = (uint32_t)number_option("spans", optarg, 1, PAYLOAD_SPANS_MAX);
        return;
    case 'b':
        options->span_bytes = (uint32_t)number_option("span-bytes", optarg, PAYLOAD_SPAN_BYTES_MIN,
                                                      PAYLOAD_SPAN_BYTES_MAX);
        return;
    case 'n':
        options->requests = number_option("requests", optarg, 1, UINT32_MAX);
        return;
    case 'r':
        options->rate = number_option("rate", optarg, 1, 10000000);
        return;
    case 'y':
        options->retries = true;
        options->retry_ns = number_option("retry-ms", optarg, 1, 60000) * BENCH_NS_PER_MS;
        return;
    case 't':
        options->timeout_ns = number_option("timeout-s", optarg, 1, 86400) * BENCH_NS_PER_S;
        return;
    case 'a':
        options->acked_file = optarg;
        return;
    case 'i':
        options->bodies = optarg;
        return;
    case 'e':
        options->client.coding = optarg;
        return;
    case 'u':
        options->client.path = optarg;
        return;
    case 'm':
        options->client.type = optarg;
        return;
    case 'l':
        options->client.is_tls = true;
        return;
    default:
        die("%s", usage);
    }
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {
        .client = {.slots = 1, .path = "/v1/traces", .type = "application/x-protobuf"},
        .type = &grpc_client_type,
        .connections = 1,
        .spans = 1000,
        .span_bytes = 672,
        .timeout_ns = 120 * BENCH_NS_PER_S,
    };

    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;)
        read_option(&options, option);
    if (options.client.port == 0 || options.requests == 0)
        die("%s", usage);
    if (options.type == &http_client_type && options.client.slots != 1)
        die("--in-flight is for gRPC; HTTP/1.1 has one request in flight on each connection");
    return options;
}

static uint64_t first_span(const struct load *load, uint64_t request)
{
    assert(request < load->options.requests);
    return request * load->options.spans + 1;
}

static void put_free(struct load *load, struct place *place)
{
    assert(load->free_count < load->places_count);
    load->free_places[(load->free_first + load->free_count) % load->places_count] = place;
    load->free_count++;
}

static struct place *take_free(struct load *load)
{
    struct place *place = load->free_places[load->free_first];

    assert(load->free_count > 0);
    load->free_first = (load->free_first + 1) % load->places_count;
    load->free_count--;
    return place;
}

static void postpone(struct load *load, const struct exchange *exchange)
{
    uint64_t at = (load->retry_first + load->retry_count) % load->options.requests;

    assert(load->retry_count < load->options.requests);
    load->retries[at] = (struct postponed){
        .number = exchange->number,
        .scheduled_ns = exchange->scheduled_ns,
        .due_ns = now_ns() + load->options.retry_ns,
    };
    load->retry_count++;
}

static void on_acknowledged(struct load *load, const struct exchange *exchange)
{
    uint64_t number = exchange->number;

    assert(number < load->options.requests);
    load->acked[number / 8] |= (uint8_t)(1U << (number % 8));
    load->ids_sum += load->canned.count > 0
                         ? load->canned.bodies[number % load->canned.count].weight
                         : payload_weight(load->options.spans, first_span(load, number));
    histogram_add(&load->latency, now_ns() - exchange->scheduled_ns);
}

static void on_done(void *arg, struct exchange *exchange, enum outcome outcome)
{
    struct load *load = arg;
    bool may_retry = outcome == OUTCOME_REFUSED || outcome == OUTCOME_BROKEN;

    assert(exchange->owner != NULL);
    assert(load->final < load->options.requests);
    load->counts[outcome]++;
    if (outcome != OUTCOME_BROKEN)
        load->failures = 0;
    if (outcome == OUTCOME_OK)
        on_acknowledged(load, exchange);
    if (may_retry && load->options.retries)
        postpone(load, exchange);
    else
        load->final++;
    put_free(load, exchange->owner);
}

/* All bodies are copies of one; their ids are set when they are sent. */
static void make_places(struct load *load)
{
    const struct options *options = &load->options;
    struct payload payload = payload_make(options->spans, options->span_bytes, 1);

    load->places_count = options->connections * options->client.slots;
    load->places = allocate(load->places_count * sizeof *load->places);
    load->free_places = allocate(load->places_count * sizeof(struct place *));
    for (unsigned i = 0; i < load->places_count; i++) {
        struct place *place = &load->places[i];
        place->connection = i % options->connections;
        place->exchange.owner = place;
        put_free(load, place);
        if (load->canned.count > 0)
            continue;
        place->payload = (struct payload){.id_offsets = payload.id_offsets, .spans = payload.spans};
        byte_buffer_append(&place->payload.body, payload.body.data, payload.body.size);
    }
    load->id_offsets = payload.id_offsets;
    byte_buffer_free(&payload.body);
}

static void open_connection(struct load *load, unsigned index)
{
    struct client *client = load->options.type->create(&load->options.client);

    assert(index < load->options.connections);
    load->clients[index] = client;
    watch(load->epoll, client->channel.fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
          (void *)(uintptr_t)index);
}

static struct load *load_create(const struct options *options)
{
    struct load *load = allocate(sizeof *load);

    assert(options->requests > 0);
    assert(options->connections > 0);
    load->options = *options;
    load->options.client.on_done = on_done;
    load->options.client.arg = load;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->acked = allocate(options->requests / 8 + 1);
    load->clients = allocate(options->connections * sizeof(struct client *));
    if (options->retries)
        load->retries = allocate(options->requests * sizeof *load->retries);
    if (options->bodies != NULL)
        load->canned = canned_read(options->bodies);
    else if (options->makes_gzip)
        load->canned = canned_gzip(options->spans, options->span_bytes);
    make_places(load);
    for (unsigned i = 0; i < options->connections; i++)
        open_connection(load, i);
    return load;
}

static void load_destroy(struct load *load)
{
    for (unsigned i = 0; i < load->options.connections; i++)
        load->options.type->destroy(load->clients[i]);
    for (unsigned i = 0; i < load->places_count; i++)
        byte_buffer_free(&load->places[i].payload.body);
    canned_free(&load->canned);
    free(load->id_offsets);
    free(load->free_places);
    free(load->places);
    free(load->retries);
    free(load->acked);
    free(load->clients);
    close(load->epoll);
    free(load);
}

static void send_request(struct load *load, uint64_t number, uint64_t scheduled_ns)
{
    struct place *place = take_free(load);
    struct client *client = load->clients[place->connection];
    struct byte_buffer *body = &place->payload.body;

    assert(client->in_flight < load->options.client.slots);
    if (load->canned.count > 0)
        body = &load->canned.bodies[number % load->canned.count].body;
    else
        payload_renumber(&place->payload, first_span(load, number));
    place->exchange.body = (struct bytes){body->data, body->size};
    place->exchange.number = number;
    place->exchange.scheduled_ns = scheduled_ns;
    load->body_bytes += body->size;
    load->options.type->send(client, &place->exchange);
}

static uint64_t due_time(const struct load *load, uint64_t number)
{
    uint64_t rate = load->options.rate;

    assert(number < load->options.requests);
    if (rate == 0)
        return 0;
    return load->start_ns + number / rate * BENCH_NS_PER_S + number % rate * BENCH_NS_PER_S / rate;
}

/* Sends whatever is due and has a place. Returns when the next is due, UINT64_MAX when a response
 * must come first. */
static uint64_t send_due(struct load *load)
{
    uint64_t now = now_ns();

    while (load->free_count > 0) {
        const struct postponed *retry = &load->retries[load->retry_first];
        if (load->retry_count > 0 && retry->due_ns <= now) {
            send_request(load, retry->number, retry->scheduled_ns);
            load->retry_first = (load->retry_first + 1) % load->options.requests;
            load->retry_count--;
            continue;
        }
        uint64_t retry_ns = load->retry_count > 0 ? retry->due_ns : UINT64_MAX;
        if (load->next_number == load->options.requests)
            return retry_ns;
        uint64_t due_ns = due_time(load, load->next_number);
        if (due_ns > now)
            return due_ns < retry_ns ? due_ns : retry_ns;
        send_request(load, load->next_number++, due_ns == 0 ? now : due_ns);
    }
    return UINT64_MAX;
}

static void reopen(struct load *load, unsigned index)
{
    struct client *client = load->clients[index];

    assert(index < load->options.connections);
    load->reconnects++;
    if (++load->failures > FAILURES_MAX)
        die("the connections to port %u keep breaking", load->options.client.port);
    load->options.type->destroy(client);
    open_connection(load, index);
}

static void on_event(struct load *load, const struct epoll_event *event)
{
    unsigned index = (unsigned)event->data.u64;
    struct client *client = load->clients[index];
    bool is_ended = (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    bool is_usable = true;

    assert(index < load->options.connections);
    client->is_writable |= (event->events & EPOLLOUT) != 0;
    if ((event->events & EPOLLIN) != 0 || is_ended)
        is_usable = load->options.type->read(client);
    /* What came before the end is read first. */
    while (is_ended && is_usable)
        is_usable = load->options.type->read(client);
    if (!is_usable)
        reopen(load, index);
}

static void write_all(struct load *load)
{
    for (unsigned i = 0; i < load->options.connections; i++)
        if (!load->options.type->write(load->clients[i]))
            reopen(load, i);
}

static int wait_ms(uint64_t due_ns, uint64_t now)
{
    enum { RESPONSE_WAIT_MS = 100 };

    if (due_ns <= now)
        return 0;
    uint64_t wait = (due_ns - now) / BENCH_NS_PER_MS;
    return wait > RESPONSE_WAIT_MS ? RESPONSE_WAIT_MS : (int)wait;
}

/* False: it took longer than the timeout. */
static bool run(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];

    assert(load->free_count == load->places_count);
    load->start_ns = now_ns();
    load->start_cpu_ns = cpu_ns();
    while (load->final < load->options.requests) {
        uint64_t due_ns = send_due(load);
        write_all(load);
        uint64_t now = now_ns();
        if (now - load->start_ns > load->options.timeout_ns)
            break;
        int count = epoll_wait(load->epoll, events, EVENTS_MAX, wait_ms(due_ns, now));
        for (int i = 0; i < count; i++)
            on_event(load, &events[i]);
    }
    load->end_ns = now_ns();
    return load->final == load->options.requests;
}

static double in_ms(uint64_t ns)
{
    return (double)ns / (double)BENCH_NS_PER_MS;
}

static void print_result(const struct load *load, bool is_complete)
{
    const struct histogram *latency = &load->latency;

    assert(latency->count == load->counts[OUTCOME_OK]);
    printf("{\"complete\": %s, \"requests\": %" PRIu64 ", \"spans\": %" PRIu64 ", \"ok\": %" PRIu64
           ", \"refused\": %" PRIu64 ", \"rejected\": %" PRIu64 ", \"broken\": %" PRIu64
           ", \"reconnects\": %" PRIu64 ", \"body_bytes\": %" PRIu64 ", \"ids_sum\": \"%016" PRIx64
           "\", \"seconds\": %.6f, \"cpu_ns\": %" PRIu64,
           is_complete ? "true" : "false", load->options.requests,
           load->options.requests * load->options.spans, load->counts[OUTCOME_OK],
           load->counts[OUTCOME_REFUSED], load->counts[OUTCOME_REJECTED],
           load->counts[OUTCOME_BROKEN], load->reconnects, load->body_bytes, load->ids_sum,
           in_ms(load->end_ns - load->start_ns) / 1000, cpu_ns() - load->start_cpu_ns);
    printf(", \"latency_ms\": {\"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f}}\n",
           in_ms(histogram_quantile(latency, 0.5)), in_ms(histogram_quantile(latency, 0.99)),
           in_ms(histogram_quantile(latency, 0.999)), in_ms(latency->max));
}

static void write_acked(const struct load *load)
{
    FILE *file = fopen(load->options.acked_file, "wb");
    size_t size = load->options.requests / 8 + 1;

    assert(load->options.acked_file != NULL);
    if (file == NULL || fwrite(load->acked, 1, size, file) != size || fclose(file) != 0)
        die("cannot write %s: %s", load->options.acked_file, strerror(errno));
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    struct load *load = load_create(&options);
    bool is_complete = run(load);

    print_result(load, is_complete);
    if (options.acked_file != NULL)
        write_acked(load);
    load_destroy(load);
    return is_complete ? 0 : 1;
}
