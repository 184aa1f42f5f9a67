/* SPDX-License-Identifier: Apache-2.0 */
/* One blocking GET with time limits. Main thread of its own process. */
#include "src/cli/health_probe.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/base/error.h"

enum { PROBE_TIMEOUT_S = 3, PROBE_TEXT_MAX = 512 };

struct target {
    char authority[PROBE_TEXT_MAX]; /* as in the URL, for the Host header */
    char host[PROBE_TEXT_MAX];
    char port[16];
    char path[PROBE_TEXT_MAX];
};

static bool parse(const char *url, struct target *target, struct error *error)
{
    static const char scheme[] = "http://";
    *target = (struct target){.port = "13133", .path = "/"};
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return error_set(error, "healthcheck: \"%s\" is not an http:// URL", url);
    const char *rest = url + sizeof(scheme) - 1;
    size_t host_size = strcspn(rest, "/");
    const char *path = rest + host_size;
    if (host_size == 0 || host_size >= sizeof(target->host) || strlen(path) >= sizeof(target->path))
        return error_set(error, "healthcheck: \"%s\" has no host, or is too long", url);
    memcpy(target->authority, rest, host_size);
    memcpy(target->host, rest, host_size);
    if (path[0] != '\0')
        snprintf(target->path, sizeof(target->path), "%s", path);
    char *colon = strrchr(target->host, ':');
    if (colon != NULL && strchr(colon, ']') == NULL) {
        snprintf(target->port, sizeof(target->port), "%.15s", colon + 1);
        *colon = '\0';
    }
    /* "[::1]" is "::1" to the resolver. */
    size_t size = strlen(target->host);
    assert(size < PROBE_TEXT_MAX);
    if (size >= 2 && target->host[0] == '[' && target->host[size - 1] == ']') {
        memmove(target->host, target->host + 1, size - 2);
        target->host[size - 2] = '\0';
    }
    if (target->host[0] == '\0')
        return error_set(error, "healthcheck: \"%s\" has no host", url);
    return true;
}

enum health { HEALTHY, UNHEALTHY, UNREACHABLE };

static enum health ask(const char *url, struct error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct timeval limit = {.tv_sec = PROBE_TIMEOUT_S};
    struct target target;
    char text[3 * PROBE_TEXT_MAX];
    unsigned status = 0;
    int fd = -1;
    if (!parse(url, &target, error))
        return UNHEALTHY;
    assert(target.host[0] != '\0');
    errno = EADDRNOTAVAIL; /* if the name resolves to no address */
    if (getaddrinfo(target.host, target.port, &hints, &found) != 0)
        found = NULL;
    for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (found != NULL)
        freeaddrinfo(found);
    if (fd < 0) {
        error_set(error, "healthcheck: cannot connect to %s: %s", url, strerror(errno));
        return UNREACHABLE;
    }
    int size =
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                 target.path, target.authority);
    assert(size > 0 && (size_t)size < sizeof(text));
    ssize_t got = -1;
    if (send(fd, text, (size_t)size, MSG_NOSIGNAL) == size)
        got = recv(fd, text, sizeof(text) - 1, 0);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    if (sscanf(text, "HTTP/1.1 %u", &status) != 1)
        error_set(error, "healthcheck: no HTTP response from %s", url);
    else if (status != 200)
        error_set(error, "healthcheck: %s responds with %u, expected 200", url, status);
    return status == 200 ? HEALTHY : UNHEALTHY;
}

bool health_probe(const char *url, struct error *error)
{
    if (url != NULL)
        return ask(url, error) == HEALTHY;
    enum health health = ask("http://localhost:13133/", error);
    if (health == UNREACHABLE)
        health = ask("http://localhost:8888/metrics", error);
    return health == HEALTHY;
}
