/* SPDX-License-Identifier: Apache-2.0 */
/* https through libcurl against a TLS server with a CA of its own (tests/support/tls_backend.py).
 * The server's names are 127.0.0.1 and backend.test. Skipped without python3 or openssl;
 * where both are there, a server that does not start is a failure. */
#include "src/net/client/http_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"
#include "src/core/batch.h"
#include "tests/support/skip.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_SECONDS_MAX = 30, BODY_BYTES = 300 * 1000 };

struct server {
    pid_t pid;
    int input; /* closing it ends the server */
    unsigned port;
    char folder[64];
};

static struct server server;

static bool has_tools(void)
{
    return system("python3 -c 'import ssl' >/dev/null 2>&1 && command -v openssl >/dev/null") == 0;
}

static int start_server(void **state)
{
    int input[2];
    int output[2];
    (void)state;
    if (!has_tools())
        return 0;
    signal(SIGPIPE, SIG_IGN);
    strcpy(server.folder, "/tmp/spanflame-test-tls-XXXXXX");
    if (mkdtemp(server.folder) == NULL || pipe(input) != 0 || pipe(output) != 0)
        return -1;
    server.pid = fork();
    if (server.pid == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        close(input[1]);
        close(output[0]);
        execlp("python3", "python3", "tests/support/tls_backend.py", server.folder, NULL);
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    server.input = input[1];
    FILE *said = fdopen(output[0], "r");
    char line[32] = "";
    if (fgets(line, sizeof(line), said) != NULL)
        server.port = (unsigned)strtoul(line, NULL, 10);
    fclose(said);
    return server.port != 0 ? 0 : -1;
}

static int stop_server(void **state)
{
    static const char *const names[] = {"ca.key",     "ca.pem",     "ca.srl",     "server.key",
                                        "server.csr", "server.ext", "server.pem", "client.key",
                                        "client.csr", "client.ext", "client.pem"};
    (void)state;
    if (server.pid == 0)
        return 0;
    close(server.input);
    waitpid(server.pid, NULL, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", server.folder, names[i]);
        unlink(path);
    }
    rmdir(server.folder);
    return 0;
}

struct seen {
    bool is_done;
    bool is_closed;
    unsigned status;
    bool is_permanent;
    char error[512];
    char body[512];
};

static void on_done(const struct http_result *result, void *arg)
{
    struct seen *seen = arg;
    seen->is_done = true;
    seen->status = result->status;
    seen->is_permanent = result->is_permanent;
    snprintf(seen->error, sizeof(seen->error), "%s", result->error == NULL ? "" : result->error);
    snprintf(seen->body, sizeof(seen->body), "%.*s", (int)result->body.size,
             (const char *)result->body.data);
}

static void on_closed(void *arg)
{
    ((struct seen *)arg)->is_closed = true;
}

static void turn_until(struct lane *lane, const bool *flag)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    while (!*flag) {
        lane_turn(lane);
        sched_yield(); /* the server is another process */
        if (time(NULL) > end)
            fail_msg("nothing happened for %d seconds", TEST_SECONDS_MAX);
    }
}

/* Posts to target count times with one client, so that the connection is used again. */
static struct seen post_to(const char *target, struct http_client_settings settings, unsigned count)
{
    static uint8_t bytes[BODY_BYTES];
    const struct batch_part parts[] = {{.bytes = {.data = bytes, .size = 7}},
                                       {.bytes = {.data = bytes, .size = BODY_BYTES - 7}}};
    struct error error;
    struct seen seen = {0};
    char url[128];
    snprintf(url, sizeof(url), "https://127.0.0.1:%u%s", server.port, target);
    settings.lane = lane_create(0);
    settings.url = url;
    settings.user_agent = "test/1";
    settings.timeout_ns = 20 * (uint64_t)NS_PER_S;
    settings.idle_connections_max = 2;
    settings.has_keep_alive = true;
    struct http_client *client = http_client_create(&settings, &error);
    if (client == NULL)
        fail_msg("%s", error.text);
    for (unsigned i = 0; i < count; i++) {
        seen.is_done = false;
        http_client_post(client, &(struct http_post){.parts = parts,
                                                     .parts_count = 2,
                                                     .bytes = BODY_BYTES,
                                                     .content_type = "application/x-protobuf",
                                                     .done = on_done,
                                                     .arg = &seen});
        assert_false(seen.is_done);
        turn_until(settings.lane, &seen.is_done);
    }
    http_client_close(client, on_closed, &seen);
    turn_until(settings.lane, &seen.is_closed);
    http_client_destroy(client);
    lane_destroy(settings.lane);
    return seen;
}

static struct seen post(struct http_client_settings settings, unsigned count)
{
    return post_to("/v1/logs", settings, count);
}

static char *path_to(const char *name)
{
    static char paths[4][128];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", server.folder, name);
    return path;
}

static char *text_of(const char *name)
{
    char *text;
    size_t size;
    assert_int_equal(file_read_whole(path_to(name), 65536, &text, &size), 0);
    return text;
}

static void needs_server(void)
{
    if (server.port == 0)
        skip_because("python3 with ssl, or the openssl command, is missing");
}

static const char *const aes_256[] = {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"};
static const char *const aes_256_rsa[] = {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"};
static const char *const of_1_3[] = {"TLS_AES_128_GCM_SHA256"};
static const char *const p384[] = {"P384"};
static const char *const p521[] = {"P521"};

#define ONE(list)                                                                                  \
    {                                                                                              \
        .count = 1, .texts = (list)                                                                \
    }

/* Posts with this tls section. */
static struct seen post_with(struct tls_client_config tls)
{
    return post((struct http_client_settings){.tls = &tls}, 1);
}

static void trusted_server_gets_the_body(void **state)
{
    (void)state;
    needs_server();
    const struct tls_client_config tls = {.common = {.ca_file = path_to("ca.pem")}};
    struct seen seen = post((struct http_client_settings){.tls = &tls}, 3);
    assert_string_equal(seen.error, "");
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.body, "/v1/logs 127.0.0.1 TLSv1.3 300000 -");
}

static void ca_and_client_certificate_may_be_inline_pem(void **state)
{
    (void)state;
    needs_server();
    char *ca = text_of("ca.pem");
    char *certificate = text_of("client.pem");
    char *key = text_of("client.key");
    struct seen seen = post_with((struct tls_client_config){
        .common = {.ca_pem = ca, .cert_pem = certificate, .key_pem = key, .max_version = "1.2"}});
    assert_string_equal(seen.body, "/v1/logs 127.0.0.1 TLSv1.2 300000 client");
    mem_free(ca);
    mem_free(certificate);
    mem_free(key);
}

static void client_certificate_may_be_files(void **state)
{
    (void)state;
    needs_server();
    struct seen seen =
        post_with((struct tls_client_config){.common = {.ca_file = path_to("ca.pem"),
                                                        .cert_file = path_to("client.pem"),
                                                        .key_file = path_to("client.key")}});
    assert_string_equal(seen.body, "/v1/logs 127.0.0.1 TLSv1.3 300000 client");
}

/* A path of the same server is followed; the way down to cleartext is not. */
static void redirects_never_leave_https(void **state)
{
    (void)state;
    needs_server();
    const struct tls_client_config tls = {.common = {.ca_file = path_to("ca.pem")}};
    struct http_client_settings settings = {.tls = &tls};
    struct seen seen = post_to("/to?/v1/logs", settings, 2);
    assert_string_equal(seen.body, "/v1/logs 127.0.0.1 TLSv1.3 300000 -");
    seen = post_to("/to?http://127.0.0.1:1/v1/logs?token=secret", settings, 1);
    assert_int_equal(seen.status, 0);
    assert_true(seen.is_permanent);
    assert_string_equal(seen.error,
                        "the back-end redirects from https to http://127.0.0.1:1/v1/logs, where "
                        "the data would be readable on the way; it is not followed");
}

static void unknown_authority_is_refused(void **state)
{
    (void)state;
    needs_server();
    struct seen seen = post_with((struct tls_client_config){.common = {.min_version = "1.2"}});
    assert_int_equal(seen.status, 0);
    assert_non_null(strstr(seen.error, "certificate"));
    seen = post((struct http_client_settings){.tls = NULL}, 1);
    assert_int_equal(seen.status, 0);
}

static void authority_may_come_from_ssl_cert_file(void **state)
{
    (void)state;
    needs_server();
    setenv("SSL_CERT_FILE", path_to("ca.pem"), 1);
    struct seen seen = post_with((struct tls_client_config){.common = {.ca_file = ""}});
    unsetenv("SSL_CERT_FILE");
    assert_int_equal(seen.status, 200);
}

static void the_systems_authorities_may_be_trusted_besides(void **state)
{
    (void)state;
    needs_server();
    struct tls_client_config tls = {.common = {.ca_file = path_to("client.pem")}};
    setenv("SSL_CERT_FILE", path_to("ca.pem"), 1);
    struct seen alone = post_with(tls);
    tls.common.include_system_ca_certs_pool = true;
    struct seen together = post_with(tls);
    unsetenv("SSL_CERT_FILE");
    assert_int_equal(alone.status, 0);
    assert_int_equal(together.status, 200);
}

static void verification_can_be_skipped(void **state)
{
    (void)state;
    needs_server();
    struct seen seen = post_with((struct tls_client_config){.insecure_skip_verify = true});
    assert_int_equal(seen.status, 200);
}

static void overridden_name_is_the_one_that_is_checked(void **state)
{
    (void)state;
    needs_server();
    struct tls_client_config tls = {.common = {.ca_file = path_to("ca.pem")},
                                    .server_name_override = "backend.test"};
    struct seen seen = post_with(tls);
    assert_string_equal(seen.body, "/v1/logs 127.0.0.1 TLSv1.3 300000 -");
    tls.server_name_override = "other.test";
    seen = post_with(tls);
    assert_int_equal(seen.status, 0);
    assert_non_null(strstr(seen.error, "other.test"));
}

/* The server has an ECDSA key, and curves of its library's choice. */
static void versions_suites_and_curves_are_what_was_asked_for(void **state)
{
    static const struct {
        struct tls_config tls;
        const char *version; /* NULL: no connection */
    } rows[] = {
        {{.max_version = "1.2", .cipher_suites = ONE(aes_256)}, "TLSv1.2"},
        {{.max_version = "1.2", .cipher_suites = ONE(aes_256_rsa)}, NULL},
        {{.cipher_suites = ONE(aes_256_rsa)}, "TLSv1.3"},
        {{.cipher_suites = ONE(of_1_3)}, "TLSv1.3"},
        {{.curve_preferences = ONE(p384)}, "TLSv1.3"},
        {{.curve_preferences = ONE(p521)}, "TLSv1.3"},
        {{.min_version = "1.3"}, "TLSv1.3"},
        {{.min_version = "1.0", .max_version = "1.2"}, "TLSv1.2"},
        {{.min_version = "1.0", .max_version = "1.1"}, NULL},
    };
    (void)state;
    needs_server();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tls_client_config tls = {.common = rows[i].tls};
        tls.common.ca_file = path_to("ca.pem");
        struct seen seen = post_with(tls);
        if (rows[i].version == NULL && seen.status != 0)
            fail_msg("row %zu: %s", i, seen.body);
        if (rows[i].version != NULL && strstr(seen.body, rows[i].version) == NULL)
            fail_msg("row %zu: %s%s", i, seen.body, seen.error);
    }
}

static void bad_files_are_reported_at_the_start(void **state)
{
    (void)state;
    needs_server();
    struct error error;
    struct tls_client_config tls = {
        .common = {.cert_file = path_to("client.pem"), .key_file = path_to("server.key")}};
    struct http_client_settings settings = {
        .lane = lane_create(0), .url = "https://127.0.0.1:1/", .user_agent = "test/1", .tls = &tls};
    assert_null(http_client_create(&settings, &error));
    assert_non_null(strstr(error.text, "server.key: its key does not belong to the certificate"));
    lane_destroy(settings.lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trusted_server_gets_the_body),
        cmocka_unit_test(ca_and_client_certificate_may_be_inline_pem),
        cmocka_unit_test(client_certificate_may_be_files),
        cmocka_unit_test(redirects_never_leave_https),
        cmocka_unit_test(unknown_authority_is_refused),
        cmocka_unit_test(authority_may_come_from_ssl_cert_file),
        cmocka_unit_test(the_systems_authorities_may_be_trusted_besides),
        cmocka_unit_test(verification_can_be_skipped),
        cmocka_unit_test(overridden_name_is_the_one_that_is_checked),
        cmocka_unit_test(versions_suites_and_curves_are_what_was_asked_for),
        cmocka_unit_test(bad_files_are_reported_at_the_start),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
