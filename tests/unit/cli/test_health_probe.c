/* SPDX-License-Identifier: Apache-2.0 */
/* The health probe against a socket with scripted responses, and URLs without a server. */
#include "src/cli/health_probe.h"

#include "src/base/error.h"
#include "tests/support/skip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct server {
    int fd;
    unsigned port;
    const char *response;
    char request[1024];
    pthread_t thread;
};

static void *respond_once(void *arg)
{
    struct server *server = arg;
    int fd = accept(server->fd, NULL, NULL);
    ssize_t got = recv(fd, server->request, sizeof(server->request) - 1, 0);
    server->request[got > 0 ? got : 0] = '\0';
    send(fd, server->response, strlen(server->response), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

/* False when this machine has no such address. */
static bool start(struct server *server, int family, const char *response)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr *address =
        family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t size = family == AF_INET6 ? sizeof(six) : sizeof(four);
    *server = (struct server){.fd = socket(family, SOCK_STREAM, 0), .response = response};
    if (server->fd < 0 || bind(server->fd, address, size) != 0)
        return false;
    assert_int_equal(listen(server->fd, 1), 0);
    assert_int_equal(getsockname(server->fd, address, &size), 0);
    server->port = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, respond_once, server), 0);
    return true;
}

static void end(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->fd);
}

static void only_200_is_healthy(void **state)
{
    (void)state;
    static const struct {
        const char *response;
        const char *error;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", NULL},
        {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "responds with 503, expected 200"},
        {"SSH-2.0-x\r\n", "no HTTP response"},
        {"", "no HTTP response"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct server server;
        struct error error = {.text = ""};
        char url[64];
        assert_true(start(&server, AF_INET, rows[i].response));
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/ready?x", server.port);
        assert_true(health_probe(url, &error) == (rows[i].error == NULL));
        if (rows[i].error != NULL)
            assert_non_null(strstr(error.text, rows[i].error));
        assert_memory_equal(server.request, "GET /ready?x HTTP/1.1\r\nHost: 127.0.0.1:", 39);
        end(&server);
    }
}

static void an_ipv6_address_stands_in_brackets(void **state)
{
    (void)state;
    struct server server;
    struct error error = {.text = ""};
    char url[64];
    if (!start(&server, AF_INET6, "HTTP/1.1 200 OK\r\n\r\n"))
        skip_because("this machine has no IPv6 loopback");
    snprintf(url, sizeof(url), "http://[::1]:%u", server.port);
    if (!health_probe(url, &error))
        fail_msg("%s", error.text);
    assert_memory_equal(server.request, "GET / HTTP/1.1\r\n", 16);
    end(&server);
}

static void urls_that_lead_nowhere_are_named(void **state)
{
    (void)state;
    static const char *const urls[] = {"https://localhost/", "localhost:13133", "http://",
                                       "http:///path",       "http://:13133/",  "http://[]:1/",
                                       "http://127.0.0.1:1/"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct error error = {.text = ""};
        assert_false(health_probe(urls[i], &error));
        assert_non_null(strstr(error.text, urls[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_200_is_healthy),
        cmocka_unit_test(an_ipv6_address_stands_in_brackets),
        cmocka_unit_test(urls_that_lead_nowhere_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
