/* SPDX-License-Identifier: Apache-2.0 */
/* The docker detector against a scripted daemon on a unix socket, and the dynatrace detector
 * against a file. */
#include "processors/resource_detection/detector.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/otlp/wire.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANSWERS_MAX = 2, TEXT_MAX = 2048 };

/* Answers one connection after the other, and keeps the requests. */
struct daemon {
    char directory[64];
    char path[96];
    int listener;
    pthread_t thread;
    const char *answers[ANSWERS_MAX]; /* NULL ends; "": closes without a word */
    bool is_mute;                     /* waits for the client to close instead */
    char requests[ANSWERS_MAX][TEXT_MAX];
};

static void *serve(void *arg)
{
    struct daemon *daemon = arg;
    for (size_t i = 0; i < ANSWERS_MAX && daemon->answers[i] != NULL; i++) {
        int client = accept(daemon->listener, NULL, NULL);
        char *request = daemon->requests[i];
        size_t size = 0;
        while (strstr(request, "\r\n\r\n") == NULL) {
            ssize_t got = read(client, request + size, TEXT_MAX - 1 - size);
            if (got <= 0)
                break;
            size += (size_t)got;
            request[size] = '\0';
        }
        const char *answer = daemon->answers[i];
        char rest[16];
        if (daemon->is_mute)
            while (read(client, rest, sizeof(rest)) > 0)
                continue;
        /* In two writes, as a network may cut it. */
        size_t half = strlen(answer) / 2;
        if (send(client, answer, half, MSG_NOSIGNAL) == (ssize_t)half)
            send(client, answer + half, strlen(answer) - half, MSG_NOSIGNAL);
        close(client);
    }
    return NULL;
}

static void start(struct daemon *daemon, const char *first, const char *second)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char host[128];
    memset(daemon, 0, sizeof(*daemon));
    daemon->answers[0] = first;
    daemon->answers[1] = second;
    snprintf(daemon->directory, sizeof(daemon->directory), "/tmp/test_detect_docker.XXXXXX");
    assert_non_null(mkdtemp(daemon->directory));
    snprintf(daemon->path, sizeof(daemon->path), "%s/s", daemon->directory);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon->path);
    snprintf(host, sizeof(host), "unix://%s", daemon->path);
    setenv("DOCKER_HOST", host, 1);
    daemon->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(daemon->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(daemon->listener, 4), 0);
}

static void end(struct daemon *daemon)
{
    close(daemon->listener);
    unlink(daemon->path);
    rmdir(daemon->directory);
    unsetenv("DOCKER_HOST");
}

/* "key=value;…", or the error. */
static const char *found(bool has_worked, struct detected *detected, const struct error *error)
{
    static char text[TEXT_MAX];
    text[0] = '\0';
    for (size_t i = 0; has_worked && i < detected->count; i++) {
        struct wire_reader reader = wire_reader_of(detected->attributes[i].value);
        struct wire_field field;
        assert_true(wire_read_field(&reader, &field));
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s=%.*s;",
                 (int)detected->attributes[i].key.size,
                 (const char *)detected->attributes[i].key.data, (int)field.bytes.size,
                 (const char *)field.bytes.data);
    }
    if (!has_worked)
        snprintf(text, sizeof(text), "%s", error->text);
    detected_fini(detected);
    return text;
}

static const char *detect(struct daemon *daemon, bool with_container, uint64_t timeout_ns)
{
    const bool wanted[DOCKER_ATTRIBUTES] = {true, true, with_container, with_container};
    struct detected detected = {.schema_url = ""};
    struct error error = {.text = ""};
    assert_int_equal(pthread_create(&daemon->thread, NULL, serve, daemon), 0);
    bool has_worked = detect_docker(&detected, wanted, timeout_ns, &error);
    shutdown(daemon->listener, SHUT_RDWR);
    pthread_join(daemon->thread, NULL);
    return found(has_worked, &detected, &error);
}

#define SECONDS(n) ((n) * (uint64_t)NS_PER_S)
#define INFO                                                                                       \
    "HTTP/1.1 200 OK\r\nApi-Version: 1.51\r\nContent-Type: application/json\r\n"                   \
    "Transfer-Encoding: chunked\r\n\r\n5b\r\n"                                                     \
    "{\"ID\":\"x\",\"Containers\":3,\"Plugins\":{\"Volume\":[\"local\"]},\"OSType\":\"linux\","    \
    "\"Name\":\"big-host\"}\r\n0\r\n\r\n"
#define CONTAINER                                                                                  \
    "HTTP/1.1 200 OK\r\n\r\n{\"Name\":\"/shop\",\"Image\":\"sha256:ab\",\"State\":{\"Name\":1}}"
#define NO_CONTAINER                                                                               \
    "HTTP/1.1 404 Not Found\r\nContent-Length: 37\r\n\r\n{\"message\":\"No such container: "       \
    "here\"}"

static void the_daemon_says_where_we_are(void **state)
{
    struct daemon daemon;
    char expected[TEXT_MAX];
    char host[HOST_NAME_MAX + 1] = "";
    (void)state;
    start(&daemon, INFO, NULL);
    assert_string_equal(detect(&daemon, false, SECONDS(20)), "host.name=big-host;os.type=linux;");
    assert_int_equal(strncmp(daemon.requests[0], "GET /info HTTP/1.1\r\n", 20), 0);
    end(&daemon);

    setenv("DOCKER_API_VERSION", "1.44", 1);
    start(&daemon, INFO, CONTAINER);
    assert_string_equal(detect(&daemon, true, SECONDS(20)),
                        "host.name=big-host;os.type=linux;container.name=/shop;"
                        "container.image.name=sha256:ab;");
    gethostname(host, sizeof(host) - 1);
    snprintf(expected, sizeof(expected), "GET /v1.44/containers/%s/json HTTP/1.1\r\n", host);
    assert_int_equal(strncmp(daemon.requests[1], expected, strlen(expected)), 0);
    unsetenv("DOCKER_API_VERSION");
    end(&daemon);
}

static void what_the_daemon_refuses_is_an_error(void **state)
{
    static const struct {
        const char *first;
        const char *second;
        const char *error;
    } rows[] = {
        {INFO, NO_CONTAINER,
         "docker: failed to fetch container information: Error response from daemon: No such "
         "container: here (status 404)"},
        {"HTTP/1.1 500 E\r\n\r\nnot JSON", NULL,
         "docker: failed to fetch Docker information: Error response from daemon:  (status 500)"},
        {"HTTP/1.1 200 OK\r\n\r\n{\"Name\":1}", NULL, "does not send a JSON object"},
        {"HTTP/1.1 200 OK\r\n\r\n[]", NULL, "does not send a JSON object"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", NULL, "closes the connection"},
        {"SSH-2.0-OpenSSH\r\n", NULL, "does not speak HTTP"},
        {"", NULL, "does not speak HTTP"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct daemon daemon;
        start(&daemon, rows[i].first, rows[i].second);
        const char *text = detect(&daemon, rows[i].second != NULL, SECONDS(20));
        if (strstr(text, rows[i].error) == NULL)
            fail_msg("%zu: %s", i, text);
        end(&daemon);
    }
}

static void a_daemon_that_does_not_respond_ends_with_the_timeout(void **state)
{
    struct daemon daemon;
    (void)state;
    start(&daemon, "", NULL);
    daemon.is_mute = true;
    assert_non_null(strstr(detect(&daemon, false, SECONDS(1) / 20), "does not respond in time"));
    end(&daemon);
}

static void without_a_daemon_there_is_an_error(void **state)
{
    static const char *const rows[][2] = {
        {"unix:///nowhere/to/be/found", "No such file or directory"},
        {"tcp://127.0.0.1:1", "refused"},
        {"tcp://nothing", "expected tcp://host:port"},
        {"ssh://host", "expected unix:///path or tcp://host:port"},
    };
    const bool wanted[DOCKER_ATTRIBUTES] = {true};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct detected detected = {.schema_url = ""};
        struct error error;
        setenv("DOCKER_HOST", rows[i][0], 1);
        assert_false(detect_docker(&detected, wanted, SECONDS(20), &error));
        if (strstr(error.text, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], error.text);
        assert_non_null(strstr(error.text, rows[i][0]));
        detected_fini(&detected);
    }
    setenv("DOCKER_HOST", "tcp://127.0.0.1:1", 1);
    setenv("DOCKER_CERT_PATH", "/certificates", 1);
    struct detected detected = {.schema_url = ""};
    struct error error;
    assert_false(detect_docker(&detected, wanted, SECONDS(20), &error));
    assert_non_null(strstr(error.text, "DOCKER_CERT_PATH asks for TLS"));
    unsetenv("DOCKER_CERT_PATH");
    unsetenv("DOCKER_HOST");
}

static void members_match_as_in_go(void **state)
{
    static const char *const names[] = {"Name", "Image"};
    static const char *const rows[][2] = {
        {"{\"name\":\"a\\u0041\",\"IMAGE\":\"b\",\"x\":[{}]}", "aA|b"},
        {"{\"Name\":null,\"Name\":\"a\",\"Name\":\"b\"}", "b|"},
        {"{}", "|"},
        {"{\"Name\":\"a\"", NULL},
        {"{\"Name\":[]}", NULL},
        {"\"Name\"", NULL},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *texts[2];
        char text[128];
        bool is_read = docker_read_members(slice_of_text(rows[i][0]), names, 2, texts);
        snprintf(text, sizeof(text), "%s|%s", texts[0], texts[1]);
        assert_int_equal(is_read, rows[i][1] != NULL);
        if (is_read)
            assert_string_equal(text, rows[i][1]);
        mem_free(texts[0]);
        mem_free(texts[1]);
    }
}

static void what_oneagent_wrote_is_read(void **state)
{
    char path[] = "/tmp/test_detect_docker.XXXXXX";
    struct detected detected = {.schema_url = ""};
    struct error error;
    (void)state;
    FILE *file = fdopen(mkstemp(path), "w");
    fputs("dt.entity.host=HOST-1\r\nhost.name= a=b \nother=x\nhost.name\ndt.smartscape.host=\n",
          file);
    fclose(file);
    bool has_worked = detect_dynatrace(&detected, path, &error);
    assert_string_equal(found(has_worked, &detected, &error),
                        "dt.entity.host=HOST-1;host.name=a=b;");
    unlink(path);
    has_worked = detect_dynatrace(&detected, path, &error);
    assert_string_equal(found(has_worked, &detected, &error), "");
    has_worked = detect_dynatrace(&detected, "/", &error);
    assert_false(has_worked);
    assert_non_null(strstr(error.text, "dynatrace: cannot read /"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_daemon_says_where_we_are),
        cmocka_unit_test(what_the_daemon_refuses_is_an_error),
        cmocka_unit_test(a_daemon_that_does_not_respond_ends_with_the_timeout),
        cmocka_unit_test(without_a_daemon_there_is_an_error),
        cmocka_unit_test(members_match_as_in_go),
        cmocka_unit_test(what_oneagent_wrote_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
