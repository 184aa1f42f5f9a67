/* SPDX-License-Identifier: Apache-2.0 */
/* A client's and a server's channel shake hands in memory: what they trust, what they agree on, and
 * how every failure reads. */
#include "src/net/tls/tls_channel.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_context.h"
#include "tests/support/certificates.h"

#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS_MAX = 64, ROOM_BYTES = 40000 };

static const char *const h2[] = {"h2", NULL};
static const char *const http1[] = {"http/1.1", NULL};
static const char *const both[] = {"h2", "http/1.1", NULL};
static const char *const spdy[] = {"spdy/3", NULL};

/* Both ends; what each has read so far. */
struct link {
    struct tls_context *contexts[2];
    struct tls_channel *channels[2];
    ptrdiff_t states[2]; /* the last result of tls_channel_read */
    size_t sizes[2];
    uint8_t rooms[2][ROOM_BYTES];
    size_t step; /* ciphertext travels in pieces of so many bytes */
};

enum { CLIENT, SERVER };

static struct config_texts texts(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return (struct config_texts){.count = count, .texts = list};
}

static void read_out(struct link *link, int end)
{
    ptrdiff_t count = 1;
    while (count > 0) {
        assert_true(link->sizes[end] < ROOM_BYTES);
        count = tls_channel_read(link->channels[end], link->rooms[end] + link->sizes[end],
                                 ROOM_BYTES - link->sizes[end]);
        if (count > 0)
            link->sizes[end] += (size_t)count;
    }
    link->states[end] = count;
}

/* Carries what waits at one end to the other; false when nothing does. */
static bool carry(struct link *link, int from)
{
    int to = from == CLIENT ? SERVER : CLIENT;
    struct slice output = tls_channel_output(link->channels[from]);
    if (output.size == 0)
        return false;
    size_t size = link->step == 0 || output.size < link->step ? output.size : link->step;
    tls_channel_feed(link->channels[to], (struct slice){.data = output.data, .size = size});
    read_out(link, to);
    assert_true(tls_channel_keep(link->channels[to]));
    tls_channel_sent(link->channels[from], size);
    return true;
}

static void settle(struct link *link)
{
    for (unsigned i = 0; i < 100000; i++) {
        bool moved = carry(link, CLIENT);
        moved |= carry(link, SERVER);
        if (!moved)
            return;
    }
    fail_msg("the two ends never come to rest");
}

static void begin_link(struct link *link, const char *name)
{
    struct error error;
    link->channels[CLIENT] = tls_channel_create(link->contexts[CLIENT], name, &error);
    link->channels[SERVER] = tls_channel_create(link->contexts[SERVER], NULL, &error);
    assert_non_null(link->channels[CLIENT]);
    assert_non_null(link->channels[SERVER]);
    memset(link->sizes, 0, sizeof(link->sizes));
    memset(link->states, 0, sizeof(link->states));
}

static void end_link(struct link *link)
{
    for (int end = CLIENT; end <= SERVER; end++) {
        tls_channel_destroy(link->channels[end]);
        link->channels[end] = NULL;
    }
}

static void free_link(struct link *link)
{
    end_link(link);
    tls_context_destroy(link->contexts[CLIENT]);
    tls_context_destroy(link->contexts[SERVER]);
    free(link);
}

static struct tls_context *server_of(const struct tls_server_config *config,
                                     const struct tls_context_settings *settings)
{
    struct error error;
    struct tls_context *context = tls_context_create_server(config, settings, &error);
    if (context == NULL)
        fail_msg("%s", error.text);
    return context;
}

static struct tls_context *client_of(const struct tls_client_config *config,
                                     const struct tls_context_settings *settings)
{
    struct error error;
    struct tls_context *context = tls_context_create_client(config, settings, &error);
    if (context == NULL)
        fail_msg("%s", error.text);
    return context;
}

/* One handshake. Names of files stand without their endings. */
struct shake {
    const char *title;
    const char *server; /* NULL: server */
    const char *client_ca;
    const char *client; /* NULL: no certificate */
    const char *ca;     /* NULL: ca; "": the system's */
    const char *name;   /* NULL: localhost */
    const char *override;
    bool skips_verify;
    const char *server_min, *server_max, *client_min, *client_max;
    const char *const *server_suites;
    const char *const *client_suites;
    const char *const *server_curves;
    const char *const *client_curves;
    bool takes_insecure;
    const char *const *server_protocols;
    const char *const *client_protocols;
    /* The result: a protocol, or the error of either end. */
    const char *protocol;
    const char *server_error;
    const char *client_error;
};

static const char *const cbc[] = {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", NULL};
static const char *const rsa_key[] = {"TLS_RSA_WITH_AES_128_CBC_SHA", NULL};
static const char *const aes_256[] = {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", NULL};
static const char *const of_1_3[] = {"TLS_AES_128_GCM_SHA256", NULL};
static const char *const p384[] = {"P384", NULL};
static const char *const x25519[] = {"X25519", "P256", NULL};
static const char *const p521[] = {"P521", NULL};

static const struct shake shakes[] = {
    {.title = "a server of a trusted authority"},
    {.title = "an address as the name", .name = "127.0.0.1"},
    {.title = "an RSA key", .server = "rsa-server"},
    {.title = "a chain of two", .server = "chain"},
    {.title = "no intermediate",
     .server = "leaf",
     .client_error = "certificate of the server is refused: unable to get local issuer",
     .server_error = "alert unknown ca"},
    {.title = "the server's own certificate as authority", .server = "self", .ca = "self"},
    {.title = "a leaf as authority", .ca = "server"},
    {.title = "an intermediate as authority", .server = "leaf", .ca = "intermediate"},
    {.title = "a foreign server",
     .server = "foreign-server",
     .client_error = "certificate of the server is refused: unable to get local issuer",
     .server_error = "alert unknown ca"},
    {.title = "a self-signed server",
     .server = "self",
     .client_error = "certificate of the server is refused: self-signed certificate",
     .server_error = "alert unknown ca"},
    {.title = "the system does not know our authority",
     .ca = "",
     .client_error = "certificate of the server is refused",
     .server_error = "alert unknown ca"},
    {.title = "a foreign server, unchecked", .server = "foreign-server", .skips_verify = true},
    {.title = "an expired server",
     .server = "expired-server",
     .client_error = "certificate of the server is refused: certificate has expired",
     .server_error = "alert certificate expired"},
    {.title = "another name",
     .name = "other.test",
     .client_error = "certificate of the server is refused: hostname mismatch",
     .server_error = "alert bad certificate"},
    {.title = "another address",
     .name = "127.0.0.2",
     .client_error = "certificate of the server is refused: IP address mismatch",
     .server_error = "alert bad certificate"},
    {.title = "the subject names no host",
     .server = "nameless",
     .name = "nameless",
     .client_error = "hostname mismatch",
     .server_error = "alert bad certificate"},
    {.title = "a name that overrides", .name = "other.test", .override = "backend.test"},
    {.title = "a client with a certificate", .client_ca = "ca", .client = "client"},
    {.title = "a server's certificate as client's", .client_ca = "ca", .client = "server"},
    {.title = "a client without certificate, TLS 1.2",
     .client_ca = "ca",
     .client_max = "1.2",
     .server_error = "peer did not return a certificate",
     .client_error = "handshake failure"},
    {.title = "a client without certificate",
     .client_ca = "ca",
     .server_error = "peer did not return a certificate",
     .client_error = "certificate required"},
    {.title = "a foreign client",
     .client_ca = "ca",
     .client = "foreign-client",
     .server_error = "certificate of the client is refused: unable to get local issuer",
     .client_error = "unknown ca"},
    {.title = "an expired client",
     .client_ca = "ca",
     .client = "expired-client",
     .server_error = "certificate of the client is refused: certificate has expired",
     .client_error = "certificate expired"},
    {.title = "TLS 1.2 at most", .client_max = "1.2"},
    {.title = "TLS 1.3 only", .server_min = "1.3"},
    {.title = "TLS 1.0, where both allow it",
     .server_min = "1.0",
     .client_min = "1.0",
     .client_max = "1.0"},
    {.title = "versions that do not meet",
     .server_min = "1.3",
     .client_max = "1.2",
     .server_error = "unsupported protocol",
     .client_error = "alert protocol version"},
    {.title = "TLS 1.1, which the default refuses",
     .client_min = "1.1",
     .client_max = "1.1",
     .server_error = "unsupported protocol",
     .client_error = "alert protocol version"},
    {.title = "a suite that both have",
     .server_suites = aes_256,
     .client_suites = aes_256,
     .client_max = "1.2"},
    {.title = "an old suite, which is Go's default too", .client_suites = cbc, .client_max = "1.2"},
    {.title = "no suite in common",
     .server_suites = aes_256,
     .client_suites = cbc,
     .client_max = "1.2",
     .server_error = "no shared cipher",
     .client_error = "handshake failure"},
    {.title = "suites of TLS 1.3 leave no other version",
     .server_suites = of_1_3,
     .client_max = "1.2",
     .server_error = "unsupported protocol",
     .client_error = "alert protocol version"},
    {.title = "an insecure suite that both are configured to take",
     .server = "rsa-server",
     .server_suites = rsa_key,
     .client_suites = rsa_key,
     .takes_insecure = true,
     .client_max = "1.2"},
    {.title = "a curve that both have", .server_curves = p384, .client_curves = p384},
    {.title = "curves in order", .server_curves = x25519, .client_curves = x25519},
    {.title = "no curve in common",
     .server_curves = p384,
     .client_curves = p521,
     .server_error = "no suitable key share",
     .client_error = "handshake failure"},
    {.title = "the server's first protocol",
     .server_protocols = both,
     .client_protocols = both,
     .protocol = "h2"},
    {.title = "the protocol that both know",
     .server_protocols = both,
     .client_protocols = http1,
     .protocol = "http/1.1"},
    {.title = "a client without protocols", .server_protocols = both, .protocol = ""},
    {.title = "HTTP/1.1 where only HTTP/2 is spoken",
     .server_protocols = h2,
     .client_protocols = http1,
     .protocol = ""},
    {.title = "an unknown protocol",
     .server_protocols = both,
     .client_protocols = spdy,
     .server_error = "no application protocol",
     .client_error = "no application protocol"},
};

static const char *with_ending(const char *name, const char *ending)
{
    char file[64];
    if (name == NULL)
        return NULL;
    snprintf(file, sizeof(file), "%s%s", name, ending);
    return certificates_path(file);
}

static struct link *link_of(const struct shake *row)
{
    const char *server_name = row->server == NULL ? "server" : row->server;
    const char *ca = row->ca == NULL ? "ca" : row->ca;
    static struct tls_server_config server;
    static struct tls_client_config client;
    server = (struct tls_server_config){
        .common = {.cert_file = with_ending(server_name, ".pem"),
                   .key_file = with_ending(server_name, ".key"),
                   .min_version = row->server_min,
                   .max_version = row->server_max,
                   .cipher_suites = texts(row->server_suites),
                   .include_insecure_cipher_suites = row->takes_insecure,
                   .curve_preferences = texts(row->server_curves)},
        .client_ca_file = with_ending(row->client_ca, ".pem"),
    };
    client = (struct tls_client_config){
        .common = {.ca_file = ca[0] == '\0' ? "" : with_ending(ca, ".pem"),
                   .cert_file = with_ending(row->client, ".pem"),
                   .key_file = with_ending(row->client, ".key"),
                   .min_version = row->client_min,
                   .max_version = row->client_max,
                   .cipher_suites = texts(row->client_suites),
                   .include_insecure_cipher_suites = row->takes_insecure,
                   .curve_preferences = texts(row->client_curves)},
        .server_name_override = row->override,
        .insecure_skip_verify = row->skips_verify,
    };
    struct link *link = calloc(1, sizeof(*link));
    link->contexts[SERVER] =
        server_of(&server, &(struct tls_context_settings){.protocols = row->server_protocols});
    link->contexts[CLIENT] =
        client_of(&client, &(struct tls_context_settings){.protocols = row->client_protocols});
    begin_link(link, row->name == NULL ? "localhost" : row->name);
    return link;
}

static void check_end(const struct link *link, int end, const struct shake *row, const char *words)
{
    const struct tls_channel *channel = link->channels[end];
    const char *side = end == CLIENT ? "client" : "server";
    if (words == NULL && (link->states[end] == TLS_FAILED || !tls_channel_is_open(channel)))
        fail_msg("%s: the %s fails: %s", row->title, side,
                 link->states[end] == TLS_FAILED ? tls_channel_error(channel) : "hangs");
    if (words != NULL && link->states[end] != TLS_FAILED)
        fail_msg("%s: the %s does not fail", row->title, side);
    if (words != NULL && strstr(tls_channel_error(channel), words) == NULL)
        fail_msg("%s: the %s says \"%s\", not \"%s\"", row->title, side, tls_channel_error(channel),
                 words);
    if (words == NULL && row->protocol != NULL)
        assert_string_equal(tls_channel_protocol(channel), row->protocol);
}

static void hands_are_shaken_or_refused_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shakes) / sizeof(shakes[0]); i++) {
        struct link *link = link_of(&shakes[i]);
        settle(link);
        check_end(link, SERVER, &shakes[i], shakes[i].server_error);
        check_end(link, CLIENT, &shakes[i], shakes[i].client_error);
        assert_false(tls_channel_met_http(link->channels[SERVER]));
        free_link(link);
    }
}

static void say(struct link *link, int end, const char *text)
{
    assert_true(tls_channel_write(link->channels[end], slice_of_text(text)));
}

static void expect(const struct link *link, int end, const char *text)
{
    assert_int_equal(link->sizes[end], strlen(text));
    assert_memory_equal(link->rooms[end], text, strlen(text));
}

static void bytes_arrive_both_ways(void **state)
{
    static const size_t steps[] = {0, 1, 3, 1000};
    static const char *const versions[] = {"1.2", "1.3"};
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct link *link =
            link_of(&(struct shake){.client_min = versions[i % 2], .client_max = versions[i % 2]});
        link->step = steps[i / 2];
        settle(link);
        say(link, CLIENT, "ping");
        say(link, CLIENT, "-pong");
        settle(link);
        say(link, SERVER, "yes");
        settle(link);
        expect(link, SERVER, "ping-pong");
        expect(link, CLIENT, "yes");
        free_link(link);
    }
}

static void large_data_passes_in_pieces_of_any_size(void **state)
{
    static uint8_t data[ROOM_BYTES - 1];
    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    struct link *link = link_of(&(struct shake){.title = ""});
    settle(link);
    struct slice plaintext = {.data = data, .size = sizeof(data)};
    assert_true(tls_channel_write(link->channels[CLIENT], plaintext));
    link->step = 777;
    settle(link);
    assert_int_equal(link->sizes[SERVER], sizeof(data));
    assert_memory_equal(link->rooms[SERVER], data, sizeof(data));
    free_link(link);
}

static void what_is_not_read_yet_is_kept(void **state)
{
    (void)state;
    struct link *link = link_of(&(struct shake){.title = ""});
    struct tls_channel *server;
    uint8_t room[4];
    settle(link);
    server = link->channels[SERVER];
    say(link, CLIENT, "abcdefgh");
    say(link, CLIENT, "ij");
    struct slice output = tls_channel_output(link->channels[CLIENT]);
    char *bytes = mem_copy(output.data, output.size);
    tls_channel_feed(server, (struct slice){.data = (uint8_t *)bytes, .size = output.size});
    assert_int_equal(tls_channel_read(server, room, sizeof(room)), 4);
    assert_memory_equal(room, "abcd", 4);
    assert_true(tls_channel_keep(server));
    mem_free(bytes);
    assert_true(tls_channel_has_input(server));
    tls_channel_sent(link->channels[CLIENT], output.size);
    say(link, CLIENT, "kl");
    settle(link);
    expect(link, SERVER, "efghijkl");
    assert_false(tls_channel_has_input(server));
    free_link(link);
}

static void the_end_differs_from_failure(void **state)
{
    (void)state;
    struct link *link = link_of(&(struct shake){.title = ""});
    settle(link);
    say(link, CLIENT, "last words");
    tls_channel_end(link->channels[CLIENT]);
    tls_channel_end(link->channels[CLIENT]);
    settle(link);
    expect(link, SERVER, "last words");
    assert_int_equal(link->states[SERVER], TLS_CLOSED);
    /* Half-closed: the reply still comes (RFC 8446 §6.1). */
    say(link, SERVER, "reply");
    settle(link);
    expect(link, CLIENT, "reply");
    assert_false(tls_channel_write(link->channels[CLIENT], slice_of_text("after the end")));
    mem_refuse_nth(1);
    assert_false(tls_channel_write(link->channels[SERVER], slice_of_text("no memory")));
    mem_refuse_nth(0);
    assert_true(tls_channel_error(link->channels[SERVER])[0] != '\0');
    free_link(link);
}

static void torn_records_wait_and_broken_ones_fail(void **state)
{
    (void)state;
    struct link *link = link_of(&(struct shake){.title = ""});
    settle(link);
    say(link, CLIENT, "whole");
    struct slice output = tls_channel_output(link->channels[CLIENT]);
    uint8_t *bytes = mem_copy(output.data, output.size);
    tls_channel_feed(link->channels[SERVER],
                     (struct slice){.data = bytes, .size = output.size - 1});
    read_out(link, SERVER);
    assert_int_equal(link->states[SERVER], 0);
    assert_true(tls_channel_keep(link->channels[SERVER]));
    bytes[output.size - 1] ^= 1;
    tls_channel_feed(link->channels[SERVER],
                     (struct slice){.data = bytes + output.size - 1, .size = 1});
    read_out(link, SERVER);
    assert_int_equal(link->states[SERVER], TLS_FAILED);
    assert_non_null(strstr(tls_channel_error(link->channels[SERVER]), "bad record mac"));
    assert_false(tls_channel_write(link->channels[SERVER], slice_of_text("late")));
    mem_free(bytes);
    free_link(link);
}

static void bytes_that_are_not_tls_fail_at_once(void **state)
{
    static const struct {
        const char *text;
        bool is_http;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
        {"POST /v1/traces HTTP/1.1\r\n\r\n", true},
        {"HEAD / HTTP/1.1\r\n\r\n", true},
        {"PUT / HTTP/1.1\r\n\r\n", true},
        {"OPTIONS * HTTP/1.1\r\n\r\n", true},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
        {"SSH-2.0-OpenSSH_9.2\r\n", false},
        {"\x16\x03\x01\xff\xff nothing that fits", false},
        {"\x16\x09\x09\x01\x01 no such version", false},
    };
    (void)state;
    struct link *link = link_of(&(struct shake){.title = ""});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        end_link(link);
        begin_link(link, "localhost");
        tls_channel_feed(link->channels[SERVER], slice_of_text(rows[i].text));
        read_out(link, SERVER);
        assert_int_equal(link->states[SERVER], TLS_FAILED);
        assert_int_equal(tls_channel_met_http(link->channels[SERVER]), rows[i].is_http);
        assert_true(tls_channel_error(link->channels[SERVER])[0] != '\0');
        assert_true(tls_channel_keep(link->channels[SERVER]));
    }
    free_link(link);
}

static void a_refused_allocation_closes_and_does_not_crash(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth < TURNS_MAX; nth++) {
        struct link *link = link_of(&(struct shake){.title = ""});
        uint64_t before = mem_tries();
        mem_refuse_nth(nth);
        for (unsigned turn = 0; turn < TURNS_MAX; turn++)
            if (link->states[CLIENT] < 0 || link->states[SERVER] < 0 ||
                (!carry(link, CLIENT) && !carry(link, SERVER)))
                break;
        mem_refuse_nth(0);
        bool is_whole = mem_tries() - before < nth;
        if (is_whole)
            assert_true(tls_channel_is_open(link->channels[SERVER]));
        free_link(link);
        if (is_whole)
            return;
    }
    fail_msg("the handshake allocates for ever");
}

struct reloads {
    unsigned fine;
    unsigned failed;
    char error[ERROR_TEXT_MAX];
};

static void on_reload(void *arg, const struct error *error)
{
    struct reloads *reloads = arg;
    reloads->fine += error == NULL;
    reloads->failed += error != NULL;
    if (error != NULL)
        snprintf(reloads->error, sizeof(reloads->error), "%s", error->text);
}

/* True when a client that trusts only this certificate gets on with the server. */
static bool is_served(struct link *link, const char *certificate, const char *client)
{
    struct tls_client_config config = {.common = {.ca_file = with_ending(certificate, ".pem"),
                                                  .cert_file = with_ending(client, ".pem"),
                                                  .key_file = with_ending(client, ".key")}};
    link->contexts[CLIENT] = client_of(&config, &(struct tls_context_settings){.protocols = NULL});
    begin_link(link, "localhost");
    settle(link);
    bool is_fine = link->states[SERVER] == 0 && tls_channel_is_open(link->channels[SERVER]) &&
                   link->states[CLIENT] == 0 && tls_channel_is_open(link->channels[CLIENT]);
    end_link(link);
    tls_context_destroy(link->contexts[CLIENT]);
    link->contexts[CLIENT] = NULL;
    return is_fine;
}

static void certificates_are_read_again_after_the_interval(void **state)
{
    (void)state;
    struct reloads reloads = {0};
    const struct tls_context_settings settings = {.on_reload = on_reload, .arg = &reloads};
    struct link *link = calloc(1, sizeof(*link));
    clock_fake_start(NS_PER_S, NS_PER_S);
    certificates_copy("server.pem", "rotated.pem");
    certificates_copy("server.key", "rotated.key");
    struct tls_server_config server = {.common = {.cert_file = certificates_path("rotated.pem"),
                                                  .key_file = certificates_path("rotated.key"),
                                                  .reload_interval_ns = 60 * (uint64_t)NS_PER_S}};
    link->contexts[SERVER] = server_of(&server, &settings);
    assert_true(is_served(link, "server", NULL));

    certificates_copy("second-server.pem", "rotated.pem");
    clock_fake_advance(59 * (uint64_t)NS_PER_S);
    assert_true(is_served(link, "server", NULL));
    assert_int_equal(reloads.fine + reloads.failed, 0);

    /* The key has not come yet: the old pair stays, and a second later another look is worth it. */
    clock_fake_advance(NS_PER_S);
    assert_true(is_served(link, "server", NULL));
    assert_int_equal(reloads.failed, 1);
    assert_non_null(
        strstr(reloads.error, "rotated.key: its key does not belong to the certificate"));
    certificates_copy("second-server.key", "rotated.key");
    assert_true(is_served(link, "server", NULL));
    clock_fake_advance(NS_PER_S);
    assert_true(is_served(link, "second-server", NULL));
    assert_false(is_served(link, "server", NULL));
    assert_int_equal(reloads.fine, 1);
    clock_fake_advance(60 * (uint64_t)NS_PER_S);
    assert_true(is_served(link, "second-server", NULL));
    assert_int_equal(reloads.fine, 1); /* nothing changed */
    free_link(link);
    clock_fake_stop();
}

static void open_channels_outlive_their_context(void **state)
{
    (void)state;
    struct link *link = link_of(&(struct shake){.title = ""});
    settle(link);
    for (int end = CLIENT; end <= SERVER; end++) {
        tls_context_destroy(link->contexts[end]);
        link->contexts[end] = NULL;
    }
    say(link, CLIENT, "still here");
    settle(link);
    expect(link, SERVER, "still here");
    free_link(link);
}

static void client_authorities_are_read_again_when_they_change(void **state)
{
    (void)state;
    struct reloads reloads = {0};
    const struct tls_context_settings settings = {.on_reload = on_reload, .arg = &reloads};
    struct link *link = calloc(1, sizeof(*link));
    clock_fake_start(NS_PER_S, NS_PER_S);
    certificates_copy("ca.pem", "rotated-ca.pem");
    struct tls_server_config server = {.common = {.cert_file = certificates_path("server.pem"),
                                                  .key_file = certificates_path("server.key")},
                                       .client_ca_file = certificates_path("rotated-ca.pem"),
                                       .client_ca_file_reload = true};
    link->contexts[SERVER] = server_of(&server, &settings);
    assert_true(is_served(link, "ca", "client"));
    assert_false(is_served(link, "ca", "foreign-client"));

    certificates_copy("foreign-ca.pem", "rotated-ca.pem");
    assert_true(is_served(link, "ca", "client")); /* within the second */
    clock_fake_advance(TLS_CLIENT_CA_LOOK_NS);
    assert_true(is_served(link, "ca", "foreign-client"));
    assert_false(is_served(link, "ca", "client"));
    assert_int_equal(reloads.fine, 1);

    certificates_write("rotated-ca.pem", "no certificate\n");
    clock_fake_advance(TLS_CLIENT_CA_LOOK_NS);
    assert_true(is_served(link, "ca", "foreign-client"));
    assert_int_equal(reloads.failed, 1);
    assert_non_null(strstr(reloads.error, "rotated-ca.pem: it contains no certificate"));
    free_link(link);
    clock_fake_stop();
}

static void inline_pem_serves_as_files_do(void **state)
{
    (void)state;
    char *certificate = certificates_text("server.pem");
    char *key = certificates_text("server.key");
    char *ca = certificates_text("ca.pem");
    struct tls_server_config server = {.common = {.cert_pem = certificate, .key_pem = key}};
    struct tls_client_config client = {.common = {.ca_pem = ca}};
    const struct tls_context_settings settings = {.protocols = h2};
    struct link *link = calloc(1, sizeof(*link));
    link->contexts[SERVER] = server_of(&server, &settings);
    link->contexts[CLIENT] = client_of(&client, &settings);
    begin_link(link, "localhost");
    settle(link);
    assert_string_equal(tls_channel_protocol(link->channels[CLIENT]), "h2");
    free_link(link);
    mem_free(certificate);
    mem_free(key);
    mem_free(ca);
}

struct refusal {
    const char *certificate;
    const char *key;
    const char *client_ca;
    const char *ca;
    const char *error;
};

static const char *const post_quantum[] = {"P256", "X25519MLKEM768", NULL};

static const struct refusal refusals[] = {
    {"missing.pem", "server.key", NULL, NULL, "missing.pem: No such file or directory"},
    {"server.pem", "missing.key", NULL, NULL, "missing.key: No such file or directory"},
    {"", "server.key", NULL, NULL, "Is a directory"},
    {"server.key", "server.key", NULL, NULL, "server.key: it contains no certificate"},
    {"der.pem", "der.key", NULL, NULL, "der.pem: it contains no certificate"},
    {"cut.pem", "server.key", NULL, NULL, "cut.pem: its certificate 1 cannot be read: "},
    {"server.pem", "server.pem", NULL, NULL,
     "server.pem: it contains a certificate rather than a key"},
    {"server.pem", "openssl.log", NULL, NULL, "openssl.log: it contains no key"},
    {"server.pem", "client.key", NULL, NULL, "client.key: its key does not belong to the"},
    {"encrypted.pem", "encrypted.key", NULL, NULL, "encrypted.key: its key is encrypted"},
    {"server.pem", "server.key", "missing.pem", NULL, "tls::client_ca_file: cannot read"},
    {"server.pem", "server.key", "server.key", NULL, "server.key: it contains no certificate"},
    {"server.pem", "server.key", NULL, "missing.pem", "tls::ca_file: cannot read"},
};

static void bad_files_are_named(void **state)
{
    (void)state;
    char *text = certificates_text("server.pem");
    strcpy(strstr(text, "-----END"), "-----END CERTIFICATE-----\n");
    memset(strchr(text, '\n') + 65, '\n', 40);
    certificates_write("cut.pem", text);
    mem_free(text);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const struct refusal *row = &refusals[i];
        struct error error = {.text = ""};
        struct tls_server_config config = {
            .common = {.cert_file = certificates_path(row->certificate),
                       .key_file = certificates_path(row->key),
                       .ca_file = certificates_path(row->ca)},
            .client_ca_file = certificates_path(row->client_ca)};
        assert_null(tls_context_create_server(
            &config, &(struct tls_context_settings){.protocols = h2}, &error));
        if (strstr(error.text, row->error) == NULL || strncmp(error.text, "tls::", 5) != 0)
            fail_msg("row %zu says \"%s\", not \"%s\"", i, error.text, row->error);
        assert_null(strchr(error.text, '\n')); /* nothing of a file is quoted */
    }
}

/* The first extension of that type in a ClientHello: its length and content. */
static uint8_t *extension_of(uint8_t *hello, size_t size, uint8_t type, size_t *ret_size)
{
    size_t at = 5 + 4 + 2 + 32;                        /* record, handshake, version, random */
    at += 1 + (size_t)hello[at];                       /* session id */
    at += 2 + (size_t)hello[at] * 256 + hello[at + 1]; /* suites */
    at += 1 + (size_t)hello[at] + 2;                   /* compression; length of the extensions */
    while (at + 4 <= size) {
        *ret_size = (size_t)hello[at + 2] * 256 + hello[at + 3];
        if (hello[at] == 0 && hello[at + 1] == type)
            return hello + at + 4;
        at += 4 + *ret_size;
    }
    fail_msg("there is no extension %u", type);
    return NULL;
}

/* A handshake by ffdhe8192 takes a server two hundred times longer than one by X25519. */
static void only_curves_are_agreed_on(void **state)
{
    enum { GROUPS = 10, KEY_SHARE = 51, FFDHE8192 = 4 };
    (void)state;
    struct link *link = calloc(1, sizeof(*link));
    link->contexts[CLIENT] =
        client_of(&(struct tls_client_config){.common = {.ca_file = certificates_path("ca.pem")}},
                  &(struct tls_context_settings){.protocols = h2});
    link->contexts[SERVER] = server_of(
        &(struct tls_server_config){.common = {.cert_file = certificates_path("server.pem"),
                                               .key_file = certificates_path("server.key")}},
        &(struct tls_context_settings){.protocols = h2});
    begin_link(link, "localhost");
    struct slice output = tls_channel_output(link->channels[CLIENT]);
    uint8_t *hello = malloc(output.size);
    memcpy(hello, output.data, output.size);
    size_t size;
    uint8_t *groups = extension_of(hello, output.size, GROUPS, &size);
    assert_int_equal(size, 2 + 4 * 2);
    for (size_t i = 2; i < size; i += 2) {
        assert_int_equal(groups[i], 0); /* finite fields are 256 and more */
        groups[i] = 1;
        groups[i + 1] = FFDHE8192;
    }
    uint8_t *share = extension_of(hello, output.size, KEY_SHARE, &size);
    share[2] = 1;
    share[3] = FFDHE8192;
    tls_channel_feed(link->channels[SERVER], slice_of(hello, output.size));
    read_out(link, SERVER);
    assert_int_equal(link->states[SERVER], TLS_FAILED);
    assert_string_equal(tls_channel_error(link->channels[SERVER]), "no suitable key share");
    free(hello);
    free_link(link);
}

static void a_protocol_of_any_length_is_no_invariant(void **state)
{
    static const char *const long_name[] = {"a-protocol-with-a-long-name", NULL};
    (void)state;
    struct link *link = calloc(1, sizeof(*link));
    link->contexts[CLIENT] =
        client_of(&(struct tls_client_config){.common = {.ca_file = certificates_path("ca.pem")}},
                  &(struct tls_context_settings){.protocols = long_name});
    link->contexts[SERVER] = server_of(
        &(struct tls_server_config){.common = {.cert_file = certificates_path("server.pem"),
                                               .key_file = certificates_path("server.key")}},
        &(struct tls_context_settings){.protocols = long_name});
    begin_link(link, "localhost");
    settle(link);
    assert_int_equal(link->states[CLIENT], TLS_FAILED);
    assert_false(tls_channel_is_open(link->channels[CLIENT]));
    assert_non_null(strstr(tls_channel_error(link->channels[CLIENT]), "(ALPN)"));
    free_link(link);
}

/* A client of OpenSSL's own, which sends what ours never does, and a channel. */
struct stranger {
    SSL_CTX *context;
    SSL *ssl;
    BIO *input;
    BIO *output;
    struct tls_context *server_context;
    struct tls_channel *server;
};

static struct slice output_of(const struct stranger *stranger)
{
    char *data;
    long size = BIO_get_mem_data(stranger->output, &data);
    return slice_of(data, (size_t)size);
}

/* What the client has written goes to the channel, and back. */
static void exchange(struct stranger *stranger)
{
    uint8_t room[16];
    tls_channel_feed(stranger->server, output_of(stranger));
    assert_int_equal(tls_channel_read(stranger->server, room, sizeof(room)), 0);
    assert_true(tls_channel_keep(stranger->server));
    (void)BIO_reset(stranger->output);
    struct slice output = tls_channel_output(stranger->server);
    if (output.size > 0)
        assert_int_equal(BIO_write(stranger->input, output.data, (int)output.size), output.size);
    tls_channel_sent(stranger->server, output.size);
}

static void greet(struct stranger *stranger)
{
    enum { ROUNDS_MAX = 10 };
    struct error error;
    stranger->server_context = server_of(
        &(struct tls_server_config){.common = {.cert_file = certificates_path("server.pem"),
                                               .key_file = certificates_path("server.key")}},
        &(struct tls_context_settings){.protocols = h2});
    stranger->server = tls_channel_create(stranger->server_context, NULL, &error);
    stranger->context = SSL_CTX_new(TLS_client_method());
    stranger->ssl = SSL_new(stranger->context);
    stranger->input = BIO_new(BIO_s_mem());
    stranger->output = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(stranger->input, -1);
    SSL_set_bio(stranger->ssl, stranger->input, stranger->output);
    SSL_set_connect_state(stranger->ssl);
    for (unsigned i = 0; SSL_do_handshake(stranger->ssl) != 1; i++) {
        assert_true(i < ROUNDS_MAX);
        exchange(stranger);
    }
    exchange(stranger);
    assert_true(tls_channel_is_open(stranger->server));
}

static void leave(struct stranger *stranger)
{
    SSL_free(stranger->ssl);
    SSL_CTX_free(stranger->context);
    tls_channel_destroy(stranger->server);
    tls_context_destroy(stranger->server_context);
}

static void update_keys(struct stranger *stranger, unsigned times, int kind)
{
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(SSL_key_update(stranger->ssl, kind), 1);
        assert_int_equal(SSL_do_handshake(stranger->ssl), 1);
    }
}

/* Feeds what the client has written, and reads for as many turns as it takes. */
static ptrdiff_t read_turns(struct stranger *stranger, uint8_t *room, size_t size)
{
    ptrdiff_t count = 0;
    tls_channel_feed(stranger->server, output_of(stranger));
    while (count == 0 && tls_channel_has_input(stranger->server)) {
        count = tls_channel_read(stranger->server, room, size);
        assert_true(tls_channel_keep(stranger->server));
    }
    return count;
}

enum { KEY_UPDATE_BYTES = 5 + 5 + 1 + 16 };

static void records_without_data_take_turns_and_are_bounded(void **state)
{
    enum { TURNS = 3 };
    (void)state;
    struct stranger stranger;
    uint8_t bytes[16];
    greet(&stranger);
    update_keys(&stranger, TURNS * TLS_IDLE_RECORDS_PER_TURN, SSL_KEY_UPDATE_NOT_REQUESTED);
    assert_int_equal(SSL_write(stranger.ssl, "data", 4), 4);
    tls_channel_feed(stranger.server, output_of(&stranger));
    for (unsigned i = 0; i < TURNS; i++) {
        assert_int_equal(tls_channel_read(stranger.server, bytes, sizeof(bytes)), 0);
        assert_true(tls_channel_has_input(stranger.server));
        assert_true(tls_channel_keep(stranger.server));
    }
    assert_int_equal(tls_channel_read(stranger.server, bytes, sizeof(bytes)), 4);
    assert_memory_equal(bytes, "data", 4);
    assert_true(tls_channel_keep(stranger.server));
    assert_false(tls_channel_has_input(stranger.server));
    (void)BIO_reset(stranger.output);

    update_keys(&stranger, TLS_IDLE_BYTES_MAX / KEY_UPDATE_BYTES + 1, SSL_KEY_UPDATE_NOT_REQUESTED);
    assert_int_equal(SSL_write(stranger.ssl, "data", 4), 4);
    assert_int_equal(read_turns(&stranger, bytes, sizeof(bytes)), TLS_FAILED);
    assert_non_null(strstr(tls_channel_error(stranger.server), "records without data"));
    leave(&stranger);
}

static void replies_that_nobody_reads_are_bounded(void **state)
{
    (void)state;
    struct stranger stranger;
    uint8_t bytes[16];
    greet(&stranger);
    /* OpenSSL writes a reply with the next one. */
    ptrdiff_t count = 1;
    for (unsigned i = 0; count == 1; i++) {
        assert_in_range(tls_channel_output(stranger.server).size, i < 2 ? 0 : 1,
                        TLS_REPLIES_BYTES_MAX);
        update_keys(&stranger, 1, SSL_KEY_UPDATE_REQUESTED);
        assert_int_equal(SSL_write(stranger.ssl, "x", 1), 1);
        count = read_turns(&stranger, bytes, sizeof(bytes));
        (void)BIO_reset(stranger.output);
    }
    assert_int_equal(count, TLS_FAILED);
    assert_non_null(strstr(tls_channel_error(stranger.server), "does not read"));
    leave(&stranger);
}

static void curves_that_the_library_lacks_are_reported(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    struct tls_client_config config = {.common = {.curve_preferences = texts(post_quantum)}};
    struct tls_context *context =
        tls_context_create_client(&config, &(struct tls_context_settings){.protocols = h2}, &error);
    if (context == NULL)
        assert_non_null(strstr(error.text, "does not support all of P-256:X25519MLKEM768"));
    tls_context_destroy(context);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_are_shaken_or_refused_in_words),
        cmocka_unit_test(bytes_arrive_both_ways),
        cmocka_unit_test(large_data_passes_in_pieces_of_any_size),
        cmocka_unit_test(what_is_not_read_yet_is_kept),
        cmocka_unit_test(the_end_differs_from_failure),
        cmocka_unit_test(torn_records_wait_and_broken_ones_fail),
        cmocka_unit_test(bytes_that_are_not_tls_fail_at_once),
        cmocka_unit_test(a_refused_allocation_closes_and_does_not_crash),
        cmocka_unit_test(certificates_are_read_again_after_the_interval),
        cmocka_unit_test(open_channels_outlive_their_context),
        cmocka_unit_test(client_authorities_are_read_again_when_they_change),
        cmocka_unit_test(inline_pem_serves_as_files_do),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(only_curves_are_agreed_on),
        cmocka_unit_test(a_protocol_of_any_length_is_no_invariant),
        cmocka_unit_test(records_without_data_take_turns_and_are_bounded),
        cmocka_unit_test(replies_that_nobody_reads_are_bounded),
        cmocka_unit_test(curves_that_the_library_lacks_are_reported),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
