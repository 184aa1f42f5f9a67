/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server over TLS against clients that behave, are slow, silent, in cleartext, or gone.
 * Real sockets, a clock that stands still. */
#include "src/net/server/http_server.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"
#include "src/core/batch.h"
#include "src/net/client/client_socket.h"
#include "src/net/tls/tls_channel.h"
#include "src/net/tls/tls_context.h"
#include "tests/support/certificates.h"
#include "tests/support/http_fixture.h"
#include "tests/support/loopback.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"

enum { BUDGET_BYTES = 4 << 20, TURNS_MAX = 20000, BODY_BYTES = 150 * 1000, REASON_BYTES_MAX = 256 };

static const char *const http1[] = {"http/1.1", NULL};
static const char *const h2[] = {"h2", NULL};
static const char *const both[] = {"h2", "http/1.1", NULL};

static struct tls_context *server_context;
static struct budget allowance;
static char last_reason[REASON_BYTES_MAX];

/* A client whose plaintext is seen. */
struct client {
    struct loopback *wire;
    struct tls_context *context;
    struct tls_channel *tls;
    size_t taken; /* of what came by wire */
    ptrdiff_t state;
    size_t size;
    char *text; /* zero-ended */
};

static void on_handshake_failed(void *arg, const char *peer, const char *reason)
{
    (void)arg;
    assert_string_equal(peer, "127.0.0.1");
    snprintf(last_reason, sizeof(last_reason), "%s", reason);
}

static struct tls_context *make_server_context(const char *const *protocols)
{
    static struct tls_server_config config;
    struct error error;
    config = (struct tls_server_config){.common = {.cert_file = certificates_path("server.pem"),
                                                   .key_file = certificates_path("server.key")}};
    const struct tls_context_settings settings = {.protocols = protocols,
                                                  .on_handshake_failed = on_handshake_failed};
    struct tls_context *context = tls_context_create_server(&config, &settings, &error);
    assert_non_null(context);
    return context;
}

static void add_tls(struct http_server_settings *settings)
{
    settings->tls = server_context;
}

static void add_probe_tls(struct http_server_settings *settings)
{
    settings->tls = server_context;
    budget_init_allowance(&allowance, settings->budget, HTTP_PROBES_BYTES);
    settings->budget = &allowance;
}

static void add_grpc_tls(struct http_server_settings *settings)
{
    settings->tls = server_context;
    settings->has_http1 = false;
}

static int start_with(void **state, const char *const *protocols,
                      void (*adjust)(struct http_server_settings *))
{
    clock_fake_start(NS_PER_S, (uint64_t)784111777 * NS_PER_S);
    last_reason[0] = '\0';
    server_context = make_server_context(protocols);
    *state = http_fixture_create_with(BUDGET_BYTES, adjust);
    return 0;
}

static int start(void **state)
{
    return start_with(state, both, add_tls);
}

static int start_grpc(void **state)
{
    return start_with(state, h2, add_grpc_tls);
}

static void add_impatient_tls(struct http_server_settings *settings)
{
    settings->tls = server_context;
    settings->write_deadline_ns = (uint64_t)5 * NS_PER_S;
}

static int start_impatient(void **state)
{
    return start_with(state, both, add_impatient_tls);
}

static int finish(void **state)
{
    http_fixture_destroy(*state);
    tls_context_destroy(server_context);
    clock_fake_stop();
    return 0;
}

static struct client *open_client(struct http_fixture *fixture, const char *const *protocols,
                                  const char *version)
{
    static struct tls_client_config config;
    struct error error;
    struct client *client = calloc(1, sizeof(*client));
    config = (struct tls_client_config){.common = {.ca_file = certificates_path("ca.pem"),
                                                   .min_version = version,
                                                   .max_version = version}};
    client->context = tls_context_create_client(
        &config, &(struct tls_context_settings){.protocols = protocols}, &error);
    assert_non_null(client->context);
    client->tls = tls_channel_create(client->context, "localhost", &error);
    assert_non_null(client->tls);
    client->text = calloc(1, LARGE_RESPONSE_BYTES + LOOPBACK_TEXT_MAX);
    client->wire = http_fixture_connect(fixture);
    return client;
}

static void close_client(struct client *client)
{
    loopback_close(client->wire);
    tls_channel_destroy(client->tls);
    tls_context_destroy(client->context);
    free(client->text);
    free(client);
}

static void send_output(struct client *client)
{
    struct slice output = tls_channel_output(client->tls);
    if (output.size > 0)
        loopback_send_bytes(client->wire, output.data, output.size);
    tls_channel_sent(client->tls, output.size);
}

/* Takes what has arrived, and sends the resulting records. */
static void turn(struct client *client)
{
    struct loopback *wire = client->wire;
    ptrdiff_t count = 1;
    send_output(client);
    loopback_settle(wire);
    tls_channel_feed(client->tls,
                     (struct slice){.data = (const uint8_t *)wire->text, .size = wire->size});
    while (count > 0) {
        count = tls_channel_read(client->tls, client->text + client->size, 65536);
        if (count > 0)
            client->size += (size_t)count;
    }
    client->state = count;
    assert_true(tls_channel_keep(client->tls));
    loopback_forget(wire);
    send_output(client);
}

static void shake(struct client *client)
{
    for (unsigned i = 0; i < TURNS_MAX && !tls_channel_is_open(client->tls); i++)
        turn(client);
    assert_true(tls_channel_is_open(client->tls));
}

static void say(struct client *client, const char *text)
{
    assert_true(tls_channel_write(client->tls, slice_of_text(text)));
    send_output(client);
}

static void expect(struct client *client, const char *text)
{
    for (unsigned i = 0; i < TURNS_MAX && strstr(client->text, text) == NULL; i++)
        turn(client);
    if (strstr(client->text, text) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", text, client->text);
}

static void expect_size(struct client *client, size_t size)
{
    for (unsigned i = 0; i < TURNS_MAX && client->size < size; i++)
        turn(client);
    assert_true(client->size >= size);
}

/* close_notify, and then the end of the connection. */
static void expect_clean_end(struct client *client)
{
    for (unsigned i = 0; i < TURNS_MAX && client->state != TLS_CLOSED; i++)
        turn(client);
    assert_int_equal(client->state, TLS_CLOSED);
    loopback_expect_end(client->wire);
}

static void requests_get_responses_in_every_version(void **state)
{
    static const char *const versions[] = {"1.2", "1.3"};
    for (size_t i = 0; i < 2; i++) {
        struct client *client = open_client(*state, http1, versions[i]);
        shake(client);
        say(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
        expect(client, "\r\n\r\nhello");
        say(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nagain");
        expect(client, "\r\n\r\nagain");
        close_client(client);
    }
}

static void a_client_without_protocols_is_listened_to(void **state)
{
    struct client *client = open_client(*state, NULL, NULL);
    shake(client);
    say(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    expect(client, "\r\n\r\nearly");
    close_client(client);
}

static void http2_begins_where_it_was_agreed_on(void **state)
{
    static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    struct client *client = open_client(*state, both, NULL);
    shake(client);
    assert_string_equal(tls_channel_protocol(client->tls), "h2");
    say(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_true(tls_channel_write(client->tls, slice_of(settings, sizeof(settings))));
    expect_size(client, 9);
    assert_int_equal(client->text[3], 4); /* its SETTINGS */
    close_client(client);
}

static char *body_of(size_t size)
{
    char *body = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)('a' + i % 23);
    body[size] = '\0';
    return body;
}

static void large_bodies_pass_whole(void **state)
{
    struct client *client = open_client(*state, http1, NULL);
    char *body = body_of(BODY_BYTES);
    char head[128];
    snprintf(head, sizeof(head), "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n",
             BODY_BYTES);
    shake(client);
    for (unsigned i = 0; i < 2; i++) {
        client->size = 0;
        memset(client->text, 0, BODY_BYTES + 1024);
        say(client, head);
        say(client, body);
        expect_size(client, BODY_BYTES);
        expect(client, body);
    }
    free(body);
    close_client(client);
}

static void a_large_response_waits_for_its_reader(void **state)
{
    struct client *client = open_client(*state, http1, NULL);
    shake(client);
    say(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 10; i++)
        lane_turn(((struct http_fixture *)*state)->lane);
    expect_size(client, LARGE_RESPONSE_BYTES);
    say(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    expect_size(client, client->size + 5);
    assert_non_null(strstr(client->text + LARGE_RESPONSE_BYTES, "early"));
    close_client(client);
}

/* Its pieces are encrypted where they lie. */
static void a_lent_response_waits_for_its_reader(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "GET /lent HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    assert_true(budget_used(&fixture->budget) < MIB);
    expect(client, "\r\n\r\n");
    const size_t head = (size_t)(strstr(client->text, "\r\n\r\n") + 4 - client->text);
    expect_size(client, head + LARGE_RESPONSE_BYTES);
    for (size_t i = 0; i < LARGE_RESPONSE_BYTES; i++)
        if (client->text[head + i] != (char)('a' + i / 4096 % 23))
            fail_msg("byte %zu", i);
    http_fixture_expect_ends(fixture, 1);
    assert_int_equal(fixture->releases, 1);
    say(client, "GET /lent HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 2);
    close_client(client);
    http_fixture_expect_ends(fixture, 2);
    assert_int_equal(fixture->releases, 2);
}

/* Though each piece of it is written on its own. */
static void a_write_timeout_is_for_the_whole_response(void **state)
{
    enum { TURNS_PER_SECOND = 10, PIECE_BYTES = 20000 };
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    http_fixture_expect_requests(fixture, 1);
    for (int second = 0; second < 5; second++) {
        for (unsigned i = 0; i < TURNS_PER_SECOND; i++) {
            (void)recv(client->wire->fd, client->text, PIECE_BYTES, 0);
            lane_turn(fixture->lane);
        }
        assert_int_equal(http_server_figures(fixture->server).aborted_total, 0);
        clock_fake_advance(NS_PER_S);
    }
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(http_server_figures(fixture->server).aborted_total, 1);
    close_client(client);
}

#if defined(__SANITIZE_ADDRESS__)
typedef void free_hook(const volatile void *block);
typedef void malloc_hook(const volatile void *block, size_t size);
int __sanitizer_install_malloc_and_free_hooks(malloc_hook *on_malloc, free_hook *on_free);

static size_t largest_block;

static void on_malloc(const volatile void *block, size_t size)
{
    (void)block;
    if (size > largest_block)
        largest_block = size;
}

static void on_free(const volatile void *block)
{
    (void)block;
}
#endif

/* The ciphertext of a response is nowhere as a whole. */
static void a_response_is_encrypted_as_the_socket_takes_it(void **state)
{
#if defined(__SANITIZE_ADDRESS__)
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    assert_true(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
    largest_block = 0;
    say(client, "GET /large HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 10; i++)
        lane_turn(fixture->lane);
    /* The handler's body is as large as that. */
    assert_int_equal(largest_block, LARGE_RESPONSE_BYTES);
    expect_size(client, LARGE_RESPONSE_BYTES);
    close_client(client);
#else
    (void)state;
    skip();
#endif
}

static void bytes_behind_a_request_wait_for_its_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
                "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\ntwo");
    say(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nthree");
    http_fixture_expect_requests(fixture, 1);
    turn(client);
    assert_int_equal(client->size, 0);
    http_fixture_release(fixture);
    expect(client, "three");
    assert_true(strstr(client->text, "one") < strstr(client->text, "two"));
    close_client(client);
}

/* Each turn has time for two requests of each client, and the last one lets the others wait for the
 * next turn, which begins with the sockets. */
static void input_waits_for_what_came_before_it(void **state)
{
    enum { CLIENTS = 4, REQUESTS = 80, QUERY_BYTES = 7000 };
    const uint64_t each = TLS_CONNECTION_BYTES + TLS_READ_BYTES + 2 * HTTP1_HEAD_READ_BYTES +
                          4 * KIB; /* a stash, a head, and what is to be written */
    struct http_fixture *fixture = *state;
    struct client *clients[CLIENTS];
    char *query = body_of(QUERY_BYTES);
    char *requests = malloc(REQUESTS * (QUERY_BYTES + 100));
    size_t size = 0;
    uint64_t most = 0;
    for (unsigned i = 0; i < REQUESTS; i++)
        size += (size_t)snprintf(requests + size, QUERY_BYTES + 100,
                                 "GET /slow?%s HTTP/1.1\r\n" HOST "\r\n", query);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = open_client(fixture, http1, NULL);
        shake(clients[i]);
        assert_true(tls_channel_write(clients[i]->tls, slice_of(requests, size)));
    }
    for (unsigned i = 0; i < TURNS_MAX && fixture->ends < CLIENTS * REQUESTS; i++) {
        for (unsigned j = 0; j < CLIENTS; j++) {
            struct slice output = tls_channel_output(clients[j]->tls);
            ssize_t sent = output.size == 0
                               ? 0
                               : send(clients[j]->wire->fd, output.data, output.size, MSG_NOSIGNAL);
            if (sent > 0)
                tls_channel_sent(clients[j]->tls, (size_t)sent);
        }
        lane_turn(fixture->lane);
        if (budget_used(&fixture->budget) > most)
            most = budget_used(&fixture->budget);
    }
    assert_int_equal(fixture->ends, CLIENTS * REQUESTS);
    assert_in_range(most, CLIENTS * (TLS_CONNECTION_BYTES + TLS_READ_BYTES / 2), CLIENTS * each);
    for (unsigned i = 0; i < CLIENTS; i++)
        close_client(clients[i]);
    free(requests);
    free(query);
}

static void send_records(struct loopback *wire, BIO *records)
{
    char *data;
    long size = BIO_get_mem_data(records, &data);
    if (size > 0)
        loopback_send_bytes(wire, data, (size_t)size);
    (void)BIO_reset(records);
    lane_turn(wire->lane);
}

/* The server's socket of that connection. */
static int peer_of(const struct loopback *wire)
{
    enum { FDS_MAX = 1024 };
    struct sockaddr_in own;
    socklen_t size = sizeof(own);
    assert_int_equal(getsockname(wire->fd, (struct sockaddr *)&own, &size), 0);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct sockaddr_in peer = {.sin_family = AF_UNSPEC};
        size = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == own.sin_port)
            return fd;
    }
    fail_msg("the server has not taken the connection");
    return -1;
}

/* A client that makes the server say so much, without reading it, that writes wait before any
 * protocol was chosen. The refusal of its first line waits, too, and the rest of its bytes. */
static void a_protocol_is_chosen_while_writes_wait(void **state)
{
    enum { UPDATES = 200, ROUNDS_MAX = 5000, ROOM_BYTES = 2048 };
    struct http_fixture *fixture = *state;
    struct loopback *wire = http_fixture_connect(fixture);
    const int room = ROOM_BYTES;
    unsigned rounds = 0;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *records = BIO_new(BIO_s_mem());
    assert_int_equal(setsockopt(wire->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    SSL_set_bio(ssl, BIO_new_socket(wire->fd, BIO_NOCLOSE), records);
    SSL_set_connect_state(ssl);
    for (; SSL_do_handshake(ssl) != 1; rounds++) {
        assert_true(rounds < ROUNDS_MAX);
        send_records(wire, records);
    }
    assert_int_equal(SSL_write(ssl, "PRI * HTTP/2.0\r\n\r\nS", 19), 19);
    send_records(wire, records);
    lane_turn(fixture->lane);
    assert_int_equal(setsockopt(peer_of(wire), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
    const uint64_t used = budget_used(&fixture->budget);
    while (budget_used(&fixture->budget) <= used) { /* what waits is charged */
        assert_true(rounds++ < ROUNDS_MAX);
        for (unsigned i = 0; i < UPDATES; i++) {
            SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
            assert_int_equal(SSL_do_handshake(ssl), 1);
        }
        send_records(wire, records);
    }
    assert_int_equal(SSL_write(ssl, "X", 1), 1);
    send_records(wire, records);
    loopback_settle(wire);
    assert_int_equal(fixture->requests, 0);
    SSL_free(ssl);
    SSL_CTX_free(context);
    loopback_reset(wire);
    http_fixture_expect_connections(fixture, 0);
}

/* More than one turn takes, before and within the head. */
static void records_without_data_hold_no_request(void **state)
{
    enum { UPDATES = 3 * TLS_IDLE_RECORDS_PER_TURN + 1, ROUNDS_MAX = 5000 };
    static const char *const pieces[] = {"GET /early HTTP/1.1\r\n", HOST "\r\n"};
    struct http_fixture *fixture = *state;
    struct loopback *wire = http_fixture_connect(fixture);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *records = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, BIO_new_socket(wire->fd, BIO_NOCLOSE), records);
    SSL_set_connect_state(ssl);
    for (unsigned rounds = 0; SSL_do_handshake(ssl) != 1; rounds++) {
        assert_true(rounds < ROUNDS_MAX);
        send_records(wire, records);
    }
    for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        for (unsigned j = 0; j < UPDATES; j++) {
            SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
            assert_int_equal(SSL_do_handshake(ssl), 1);
        }
        const int size = (int)strlen(pieces[i]);
        assert_int_equal(SSL_write(ssl, pieces[i], size), size);
        send_records(wire, records);
    }
    http_fixture_expect_ends(fixture, 1);
    SSL_free(ssl);
    SSL_CTX_free(context);
    loopback_close(wire);
    http_fixture_expect_connections(fixture, 0);
}

static void a_request_that_came_before_a_stop_gets_its_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    http_fixture_stop(fixture);
    expect(client, "\r\n\r\nhello");
    expect_clean_end(client);
    close_client(client);
}

static void the_servers_end_is_a_clean_one(void **state)
{
    struct client *client = open_client(*state, http1, NULL);
    shake(client);
    say(client, "POST /bye HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    expect(client, "\r\n\r\nok");
    expect_clean_end(client);
    close_client(client);
}

static void a_client_may_end_first_and_read_its_response(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    tls_channel_end(client->tls);
    send_output(client);
    http_fixture_expect_requests(fixture, 1);
    turn(client);
    http_fixture_release(fixture);
    expect(client, "\r\n\r\nok");
    expect_clean_end(client);
    close_client(client);
}

static void a_client_that_goes_within_a_record_ends_its_request(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 50\r\n\r\nhalf");
    http_fixture_expect_requests(fixture, 1);
    assert_true(tls_channel_write(client->tls, slice_of_text("more that is cut")));
    struct slice output = tls_channel_output(client->tls);
    loopback_send_bytes(client->wire, output.data, output.size - 3);
    loopback_shutdown(client->wire);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(fixture->bodies, 0);
    close_client(client);
}

static void a_broken_record_ends_the_connection(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    expect(client, "early");
    loopback_send(client->wire, "\x17\x03\x03\x20\x20 no ciphertext at all, but enough of it");
    loopback_send(client->wire, "GET / HTTP/1.1\r\n\r\n");
    char *junk = body_of(0x2020);
    loopback_send(client->wire, junk);
    free(junk);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(http_server_figures(fixture->server).aborted_total, 1);
    close_client(client);
}

static void expect_failed_handshake(struct http_fixture *fixture, const char *reason)
{
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(http_server_figures(fixture->server).handshakes_failed_total, 1);
    if (strstr(last_reason, reason) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", reason, last_reason);
    assert_int_equal(fixture->requests, 0);
}

static void a_slow_handshake_ends_after_ten_seconds(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    struct slice hello = tls_channel_output(client->tls);
    for (size_t second = 0; second < 9; second++) {
        loopback_send_bytes(client->wire, hello.data + second, 1);
        loopback_settle(client->wire);
        clock_fake_advance(NS_PER_S);
        loopback_settle(client->wire);
        assert_false(client->wire->has_ended);
        assert_int_equal(http_server_figures(fixture->server).connections, 1);
    }
    clock_fake_advance(NS_PER_S);
    loopback_expect_end(client->wire);
    expect_failed_handshake(fixture, "did not finish the handshake in time");
    close_client(client);
}

static void after_the_handshake_a_head_has_its_own_ten_seconds(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    clock_fake_advance(9 * (uint64_t)NS_PER_S);
    shake(client);
    clock_fake_advance(9 * (uint64_t)NS_PER_S);
    say(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    expect(client, "early");
    close_client(client);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(http_server_figures(fixture->server).handshakes_failed_total, 0);
}

static void cleartext_clients_are_pointed_to_https(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST /v1/traces HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nok");
    loopback_expect_end(client);
    assert_string_equal(client->text, "HTTP/1.0 400 Bad Request\r\n\r\n"
                                      "Client sent an HTTP request to an HTTPS server.\n");
    loopback_close(client);
    expect_failed_handshake(fixture, "http request");
}

static void garbage_is_closed(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "\x01\x02garbage garbage garbage");
    loopback_expect_end(client);
    loopback_close(client);
    expect_failed_handshake(fixture, "");
}

static void an_endless_hello_is_not_listened_to(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    /* Records of 16 KB of a ClientHello that announces 16 MB. */
    static uint8_t record[5 + 16384] = {0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff};
    loopback_send_bytes(client, record, sizeof(record));
    loopback_expect_end(client);
    loopback_close(client);
    expect_failed_handshake(fixture, "excessive message size");
}

static void grpc_insists_on_http2(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, NULL, NULL);
    shake(client);
    expect_clean_end(client);
    close_client(client);
    expect_failed_handshake(fixture, "does not offer the protocol h2");
}

static void grpc_closes_cleartext_connections_silently(void **state)
{
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    loopback_send(client, "POST / HTTP/1.1\r\n" HOST "\r\n");
    loopback_expect_end(client);
    assert_int_equal(client->size, 0);
    loopback_close(client);
    expect_failed_handshake(fixture, "http request");
}

enum { FLOOD = 12, FLOOD_TAKEN = 8 };

/* Room for eight handshakes with a hello of at most 1 KiB, and not for a ninth connection. */
enum { FLOOD_BYTES = FLOOD_TAKEN * (TLS_HANDSHAKE_BYTES + HTTP_CONNECTION_BYTES + 1024) };

static int start_flood(void **state)
{
    start(state);
    struct http_fixture *fixture = *state;
    budget_lower(&fixture->budget, TLS_HANDSHAKES_PART * FLOOD_BYTES);
    return 0;
}

static void handshakes_take_their_part_of_the_budget(void **state)
{
    static const char alert[] = {21, 3, 1, 0, 2, 2, 80};
    struct http_fixture *fixture = *state;
    struct client *clients[FLOOD];
    for (size_t i = 0; i < FLOOD; i++) {
        clients[i] = open_client(fixture, http1, NULL);
        struct slice hello = tls_channel_output(clients[i]->tls);
        assert_in_range(hello.size, 1, 1024);
        loopback_send_bytes(clients[i]->wire, hello.data, hello.size);
        loopback_settle(clients[i]->wire);
    }
    for (size_t i = FLOOD_TAKEN; i < FLOOD; i++) {
        loopback_expect_end(clients[i]->wire);
        assert_int_equal(clients[i]->wire->size, sizeof(alert));
        assert_memory_equal(clients[i]->wire->text, alert, sizeof(alert));
    }
    http_fixture_expect_connections(fixture, FLOOD_TAKEN);
    assert_true(budget_used(&fixture->budget) <= FLOOD_BYTES);
    assert_true(budget_used(&fixture->budget) > FLOOD_TAKEN * TLS_HANDSHAKE_BYTES);
    assert_int_equal(http_server_figures(fixture->server).handshakes_failed_total,
                     FLOOD - FLOOD_TAKEN);
    assert_string_equal(last_reason, "too many handshakes at once");
    for (size_t i = 0; i < FLOOD; i++)
        close_client(clients[i]);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(budget_used(&fixture->budget), 0);
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    expect(client, "early");
    assert_int_equal(budget_used(&fixture->budget), TLS_CONNECTION_BYTES + HTTP_CONNECTION_BYTES);
    close_client(client);
}

/* Those that are let in have room for all of their handshake. */
static void clients_that_connect_together_do_not_starve_each_other(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *clients[FLOOD];
    for (size_t i = 0; i < FLOOD; i++)
        clients[i] = open_client(fixture, http1, NULL);
    loopback_settle(clients[0]->wire);
    for (size_t i = 0; i < FLOOD_TAKEN; i++) {
        struct slice hello = tls_channel_output(clients[i]->tls);
        loopback_send_bytes(clients[i]->wire, hello.data, hello.size);
    }
    loopback_settle(clients[0]->wire);
    http_fixture_expect_connections(fixture, FLOOD_TAKEN);
    assert_int_equal(http_server_figures(fixture->server).handshakes_failed_total,
                     FLOOD - FLOOD_TAKEN);
    for (size_t i = 0; i < FLOOD; i++)
        close_client(clients[i]);
    http_fixture_expect_connections(fixture, 0);
    assert_int_equal(budget_used(&fixture->budget), 0);
}

static void clients_that_connect_when_the_budget_is_used_up_get_an_error(void **state)
{
    struct http_fixture *fixture = *state;
    uint64_t others = budget_limit(&fixture->budget) - TLS_HANDSHAKE_BYTES - HTTP_CONNECTION_BYTES;
    assert_true(budget_try_take(&fixture->budget, others));
    struct client *client = open_client(fixture, http1, NULL);
    loopback_settle(client->wire);
    assert_false(client->wire->has_ended);
    struct client *late = open_client(fixture, http1, NULL);
    loopback_expect_end(late->wire);
    assert_int_equal(late->wire->size, 7);
    send_output(client);
    loopback_expect_end(client->wire);
    assert_int_equal(client->wire->size, 7);
    assert_string_equal(last_reason, "the memory budget is used up");
    http_fixture_expect_connections(fixture, 0);
    budget_return(&fixture->budget, others);
    close_client(client);
    close_client(late);
}

static int start_for_probes(void **state)
{
    return start_with(state, both, add_probe_tls);
}

static void probes_go_beyond_an_exhausted_budget(void **state)
{
    struct http_fixture *fixture = *state;
    const uint64_t others = BUDGET_BYTES + BUDGET_BYTES / BUDGET_MARGIN_PART + 256 * KIB;
    budget_take(&fixture->budget, others);
    struct client *client = open_client(fixture, http1, NULL);
    shake(client);
    say(client, "GET /early HTTP/1.1\r\n" HOST "\r\n");
    expect(client, "early");
    assert_int_equal(budget_used(&fixture->budget),
                     others + TLS_CONNECTION_BYTES + HTTP_CONNECTION_BYTES);
    close_client(client);
    /* Not without a bound. */
    enum { CLIENTS = HTTP_PROBES_BYTES / TLS_HANDSHAKE_BYTES + 10 };
    struct loopback *clients[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = http_fixture_connect(fixture);
        loopback_settle(clients[i]);
        assert_true(budget_used(&fixture->budget) <= others + HTTP_PROBES_BYTES);
    }
    loopback_expect_end(clients[CLIENTS - 1]);
    for (unsigned i = 0; i < CLIENTS; i++)
        loopback_close(clients[i]);
    http_fixture_expect_connections(fixture, 0);
    budget_return(&fixture->budget, others);
}

static void a_handshake_of_many_small_records_is_not_listened_to(void **state)
{
    enum { RECORD = 5 + 1000, RECORDS = 70 };
    struct http_fixture *fixture = *state;
    struct loopback *client = http_fixture_connect(fixture);
    /* A ClientHello of 128,000 bytes, in steps that are read one by one. */
    static uint8_t first[RECORD] = {0x16, 3, 1, 3, 0xe8, 1, 1, 0xf4, 0, 3, 3};
    static uint8_t next[RECORD] = {0x16, 3, 1, 3, 0xe8};
    loopback_send_bytes(client, first, sizeof(first));
    loopback_settle(client);
    for (unsigned i = 1; i < RECORDS && !client->has_ended; i++) {
        loopback_send_bytes(client, next, sizeof(next));
        loopback_settle(client);
    }
    loopback_expect_end(client);
    loopback_close(client);
    expect_failed_handshake(fixture, "more than a handshake needs");
}

static void a_stop_ends_handshakes(void **state)
{
    struct http_fixture *fixture = *state;
    struct client *client = open_client(fixture, http1, NULL);
    struct slice hello = tls_channel_output(client->tls);
    loopback_send_bytes(client->wire, hello.data, hello.size / 2);
    loopback_settle(client->wire);
    http_fixture_stop(fixture);
    loopback_turn_until(fixture->lane, &fixture->has_stopped);
    close_client(client);
}

static int make(void **state)
{
    (void)state;
    return certificates_make() ? 0 : -1;
}

static int clean(void **state)
{
    (void)state;
    certificates_remove();
    return 0;
}

#define WITH_SERVER(test)      cmocka_unit_test_setup_teardown(test, start, finish)
#define WITH_GRPC_SERVER(test) cmocka_unit_test_setup_teardown(test, start_grpc, finish)

/* ---- Our own client ---- */

static bool has_connected;
static bool has_closed;
static bool has_bytes;

static void on_connected(void *owner)
{
    (void)owner;
    has_connected = true;
}

static void on_bytes(void *owner, const uint8_t *data, size_t size)
{
    (void)owner;
    (void)data;
    (void)size;
    has_bytes = true;
}

static void on_drained(void *owner)
{
    (void)owner;
}

static void on_end(void *owner, const char *reason)
{
    (void)owner;
    (void)reason;
}

static void on_closed(void *owner)
{
    (void)owner;
    has_closed = true;
}

static int choose_h2(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_size,
                     const unsigned char *offer, unsigned size, void *arg)
{
    (void)ssl;
    (void)size;
    (void)arg;
    *ret_name = offer + 1; /* the only one */
    *ret_size = offer[0];
    return SSL_TLSEXT_ERR_OK;
}

/* More than one turn of the client takes. */
static void records_without_data_hold_no_response(void **state)
{
    enum { UPDATES = 3 * TLS_IDLE_RECORDS_PER_TURN + 1 };
    static const struct client_socket_events events = {on_connected, on_bytes, on_drained, on_end,
                                                       on_closed};
    struct http_fixture *fixture = *state;
    struct error error;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t address_size = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &address_size), 0);
    const struct tls_client_config config = {.common = {.ca_file = certificates_path("ca.pem")}};
    struct tls_context *context =
        tls_context_create_client(&config, &(struct tls_context_settings){.protocols = h2}, &error);
    assert_non_null(context);
    has_connected = has_closed = has_bytes = false;
    struct client_socket *client = client_socket_create(&(struct client_socket_settings){
        .lane = fixture->lane,
        .address = (const struct sockaddr *)&address,
        .connect_timeout_ns = NS_PER_S,
        .tls = context,
        .server_name = "localhost",
        .events = &events,
    });
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
    assert_true(fd >= 0);
    SSL_CTX *server = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(server, certificates_path("server.pem")),
                     1);
    assert_int_equal(
        SSL_CTX_use_PrivateKey_file(server, certificates_path("server.key"), SSL_FILETYPE_PEM), 1);
    SSL_CTX_set_alpn_select_cb(server, choose_h2, NULL);
    SSL *ssl = SSL_new(server);
    SSL_set_fd(ssl, fd);
    SSL_set_accept_state(ssl);
    for (unsigned i = 0; SSL_do_handshake(ssl) != 1; i++) {
        assert_true(i < TURNS_MAX);
        lane_turn(fixture->lane);
    }
    for (unsigned i = 0; i < UPDATES; i++) {
        SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        assert_int_equal(SSL_do_handshake(ssl), 1);
    }
    assert_int_equal(SSL_write(ssl, "data", 4), 4);
    loopback_turn_until(fixture->lane, &has_bytes);
    /* And reads on. */
    has_bytes = false;
    assert_int_equal(SSL_write(ssl, "data", 4), 4);
    loopback_turn_until(fixture->lane, &has_bytes);
    client_socket_close(client);
    loopback_turn_until(fixture->lane, &has_closed);
    tls_context_destroy(context);
    SSL_free(ssl);
    SSL_CTX_free(server);
    close(fd);
    close(listening);
}

/* Large enough for the kernel not to take it. */
static void ciphertext_that_waits_is_charged_to_the_client(void **state)
{
    enum { SIZE = 16 << 20, LEAST = 4 << 20 };
    static const struct client_socket_events events = {on_connected, on_bytes, on_drained, on_end,
                                                       on_closed};
    struct http_fixture *fixture = *state;
    struct budget budget;
    struct error error;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct tls_client_config config = {.common = {.ca_file = certificates_path("ca.pem")}};
    struct tls_context *context =
        tls_context_create_client(&config, &(struct tls_context_settings){.protocols = h2}, &error);
    uint8_t *bytes = mem_zalloc(SIZE);
    const struct batch_part part = {.bytes = slice_of(bytes, SIZE)};
    assert_non_null(context);
    budget_init(&budget, 1);
    has_connected = has_closed = false;
    address.sin_port = htons((uint16_t)atoi(strrchr(fixture->address, ':') + 1));
    struct client_socket *socket = client_socket_create(&(struct client_socket_settings){
        .lane = fixture->lane,
        .budget = &budget,
        .address = (const struct sockaddr *)&address,
        .connect_timeout_ns = NS_PER_S,
        .tls = context,
        .server_name = "localhost",
        .events = &events,
    });
    loopback_turn_until(fixture->lane, &has_connected);
    assert_int_equal(budget_used(&budget), 0);
    assert_false(client_socket_write(socket, &part, 1));
    assert_true(budget_used(&budget) > LEAST);
    client_socket_close(socket);
    loopback_turn_until(fixture->lane, &has_closed);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    tls_context_destroy(context);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(requests_get_responses_in_every_version),
        WITH_SERVER(a_client_without_protocols_is_listened_to),
        WITH_SERVER(http2_begins_where_it_was_agreed_on),
        WITH_SERVER(large_bodies_pass_whole),
        WITH_SERVER(a_large_response_waits_for_its_reader),
        WITH_SERVER(a_lent_response_waits_for_its_reader),
        cmocka_unit_test_setup_teardown(a_write_timeout_is_for_the_whole_response, start_impatient,
                                        finish),
        WITH_SERVER(a_response_is_encrypted_as_the_socket_takes_it),
        WITH_SERVER(bytes_behind_a_request_wait_for_its_response),
        WITH_SERVER(input_waits_for_what_came_before_it),
        WITH_SERVER(a_protocol_is_chosen_while_writes_wait),
        WITH_SERVER(records_without_data_hold_no_request),
        WITH_SERVER(a_request_that_came_before_a_stop_gets_its_response),
        WITH_SERVER(the_servers_end_is_a_clean_one),
        WITH_SERVER(a_client_may_end_first_and_read_its_response),
        WITH_SERVER(a_client_that_goes_within_a_record_ends_its_request),
        WITH_SERVER(a_broken_record_ends_the_connection),
        WITH_SERVER(a_slow_handshake_ends_after_ten_seconds),
        WITH_SERVER(after_the_handshake_a_head_has_its_own_ten_seconds),
        WITH_SERVER(cleartext_clients_are_pointed_to_https),
        WITH_SERVER(garbage_is_closed),
        WITH_SERVER(an_endless_hello_is_not_listened_to),
        WITH_GRPC_SERVER(grpc_insists_on_http2),
        WITH_GRPC_SERVER(grpc_closes_cleartext_connections_silently),
        WITH_GRPC_SERVER(records_without_data_hold_no_response),
        WITH_GRPC_SERVER(ciphertext_that_waits_is_charged_to_the_client),
        WITH_SERVER(a_handshake_of_many_small_records_is_not_listened_to),
        cmocka_unit_test_setup_teardown(handshakes_take_their_part_of_the_budget, start_flood,
                                        finish),
        cmocka_unit_test_setup_teardown(clients_that_connect_together_do_not_starve_each_other,
                                        start_flood, finish),
        WITH_SERVER(clients_that_connect_when_the_budget_is_used_up_get_an_error),
        cmocka_unit_test_setup_teardown(probes_go_beyond_an_exhausted_budget, start_for_probes,
                                        finish),
        WITH_SERVER(a_stop_ends_handshakes),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make, clean);
}
