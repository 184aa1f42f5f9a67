/* SPDX-License-Identifier: Apache-2.0 */
/* The host and the container as the Docker Engine's API describes them: GET /info and
 * GET /containers/NAME/json over its socket. Asked once, on the main thread, before data comes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "processors/resource_detection/detector.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/client/http1_response_parser.h"
#include "src/otlp/json/json_walk.h"

enum {
    BODY_BYTES_MAX = 4 << 20,
    NAME_BYTES_MAX = 256,
    REQUEST_BYTES_MAX = 1024,
    WORDS_MAX = 256,
    MEMBERS_MAX = 2,
};

#define SCHEMA_URL      "https://opentelemetry.io/schemas/1.40.0"
#define STANDARD_DOCKER "unix:///var/run/docker.sock"

/* ---- JSON ---- */

bool docker_read_members(struct slice json, const char *const *names, size_t count, char **texts)
{
    struct json_walk walk = json_walk_of(json);
    struct json_string key;
    for (size_t i = 0; i < count; i++)
        texts[i] = mem_copy_text("");
    if (!json_walk_object(&walk))
        return false;
    while (json_walk_key(&walk, &key)) {
        char *name = mem_zalloc(key.raw.size + 1);
        struct json_string value;
        size_t at = 0;
        if (key.raw.size > 0)
            json_unescape(&key, (uint8_t *)name);
        while (at < count && strcasecmp(name, names[at]) != 0)
            at++;
        mem_free(name);
        if (at == count) {
            json_walk_skip(&walk);
        } else if (json_walk_string(&walk, &value)) {
            mem_free(texts[at]);
            texts[at] = mem_zalloc(value.raw.size + 1);
            if (value.raw.size > 0)
                json_unescape(&value, (uint8_t *)texts[at]);
        }
    }
    return walk.failure == NULL && json_walk_end(&walk);
}

/* ---- one request ---- */

/* A connection, and how long all requests may take. */
struct docker {
    const char *address; /* DOCKER_HOST, or the usual one */
    uint64_t end_ns;
    int fd; /* -1: none */
    uint8_t *body;
    size_t body_size;
};

/* Waits until the socket is ready. False: the time is over. */
static bool wait_for(const struct docker *docker, short events)
{
    struct pollfd wanted = {.fd = docker->fd, .events = events};
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        uint64_t left_ms = docker->end_ns > now_ns ? (docker->end_ns - now_ns) / NS_PER_MS + 1 : 0;
        if (left_ms == 0)
            return false;
        int ready = poll(&wanted, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
        if (ready > 0)
            return true;
        if (ready == 0 || errno != EINTR)
            return false;
    }
}

/* Returns 0 or an errno. */
static int connect_to(struct docker *docker, const struct sockaddr *address, socklen_t size)
{
    int code = 0;
    socklen_t code_size = sizeof(code);
    docker->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (docker->fd < 0)
        return errno;
    if (connect(docker->fd, address, size) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EAGAIN)
        return errno;
    if (!wait_for(docker, POLLOUT))
        return ETIMEDOUT;
    return getsockopt(docker->fd, SOL_SOCKET, SO_ERROR, &code, &code_size) == 0 ? code : errno;
}

static void disconnect(struct docker *docker)
{
    if (docker->fd >= 0)
        close(docker->fd);
    docker->fd = -1;
}

static bool fail_to_connect(const struct docker *docker, const char *reason, struct error *error)
{
    return error_set(error,
                     "failed to connect to the docker API at %s; check if the path is correct and "
                     "if the daemon is running: %s",
                     docker->address, reason);
}

static bool connect_unix(struct docker *docker, const char *path, struct error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return fail_to_connect(docker, "the path is too long", error);
    memcpy(address.sun_path, path, strlen(path));
    int code = connect_to(docker, (const struct sockaddr *)&address, sizeof(address));
    return code == 0 || fail_to_connect(docker, strerror(code), error);
}

static bool connect_tcp(struct docker *docker, const char *text, struct error *error)
{
    char host[NAME_BYTES_MAX];
    const char *colon = strrchr(text, ':');
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    bool is_v6 = text[0] == '[';
    if (colon == NULL || (size_t)(colon - text) >= sizeof(host))
        return fail_to_connect(docker, "expected tcp://host:port", error);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - 2 * is_v6, text + is_v6);
    int looked = getaddrinfo(host, colon + 1, &hints, &found);
    if (looked != 0)
        return fail_to_connect(docker, gai_strerror(looked), error);
    int code = ECONNREFUSED;
    for (const struct addrinfo *at = found; at != NULL && code != 0; at = at->ai_next) {
        disconnect(docker);
        code = connect_to(docker, at->ai_addr, at->ai_addrlen);
    }
    freeaddrinfo(found);
    return code == 0 || fail_to_connect(docker, strerror(code), error);
}

static bool open_connection(struct docker *docker, struct error *error)
{
    const char *certificates = getenv("DOCKER_CERT_PATH");
    if (strncmp(docker->address, "unix://", 7) == 0)
        return connect_unix(docker, docker->address + 7, error);
    if (strncmp(docker->address, "tcp://", 6) != 0)
        return fail_to_connect(docker, "expected unix:///path or tcp://host:port in DOCKER_HOST",
                               error);
    if (certificates != NULL && certificates[0] != '\0')
        return fail_to_connect(docker,
                               "DOCKER_CERT_PATH asks for TLS, which is not supported here; use "
                               "the unix socket",
                               error);
    return connect_tcp(docker, docker->address + 6, error);
}

static bool take_body(struct slice bytes, void *arg)
{
    struct docker *docker = arg;
    if (bytes.size > BODY_BYTES_MAX - docker->body_size)
        return false;
    docker->body = mem_resize(docker->body, docker->body_size + bytes.size + 1);
    if (bytes.size > 0)
        memcpy(docker->body + docker->body_size, bytes.data, bytes.size);
    docker->body_size += bytes.size;
    return true;
}

static bool send_all(struct docker *docker, const char *text)
{
    size_t size = strlen(text);
    while (size > 0) {
        ssize_t sent = send(docker->fd, text, size, MSG_NOSIGNAL);
        if (sent < 0 && (errno != EAGAIN || !wait_for(docker, POLLOUT)))
            return false;
        if (sent > 0) {
            text += sent;
            size -= (size_t)sent;
        }
    }
    return true;
}

static bool receive(struct docker *docker, struct http1_response *response)
{
    uint8_t room[16384];
    while (response->state != RESPONSE_DONE && response->state != RESPONSE_FAILED) {
        ssize_t got = recv(docker->fd, room, sizeof(room), 0);
        if (got < 0 && (errno != EAGAIN || !wait_for(docker, POLLIN)))
            return false;
        if (got == 0)
            http1_response_end(response);
        else if (got > 0)
            http1_response_feed(response, room, (size_t)got);
    }
    return response->state == RESPONSE_DONE && !response->is_cut;
}

/* What the daemon says of an error, in one line. */
static bool fail_with_words(const struct http1_response *response, struct error *error)
{
    static const char *const names[] = {"message"};
    char *message[1];
    char words[WORDS_MAX];
    docker_read_members(http1_response_body(response), names, 1, message);
    snprintf(words, sizeof(words), "%s", message[0]);
    mem_free(message[0]);
    for (char *at = words; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return error_set(error, "Error response from daemon: %s (status %u)", words, response->status);
}

/* The members of the object at path; the caller frees texts. */
static bool ask(struct docker *docker, const char *path, const char *const *names, size_t count,
                char **texts, struct error *error)
{
    const char *version = getenv("DOCKER_API_VERSION");
    bool has_version = version != NULL && version[0] != '\0';
    char request[REQUEST_BYTES_MAX];
    struct http1_response response;
    int size =
        snprintf(request, sizeof(request),
                 "GET %s%s%s HTTP/1.1\r\nHost: docker\r\nUser-Agent: spanflame/%s\r\n"
                 "Connection: close\r\n\r\n",
                 has_version ? "/v" : "", has_version ? version : "", path, SPANFLAME_VERSION);
    if (size >= REQUEST_BYTES_MAX)
        return error_set(error, "DOCKER_API_VERSION, or the host's name, is too long");
    if (!open_connection(docker, error)) {
        disconnect(docker);
        return false;
    }
    http1_response_init(&response, NULL);
    response.sink = (struct response_sink){.take = take_body, .arg = docker};
    docker->body_size = 0;
    bool is_done = send_all(docker, request) && receive(docker, &response);
    disconnect(docker);
    if (!is_done)
        error_set(error, "the docker API at %s %s", docker->address,
                  clock_now_ns() >= docker->end_ns ? "does not respond in time"
                  : response.status == 0           ? "does not speak HTTP"
                  : response.is_cut && docker->body_size > 0 && response.state == RESPONSE_DONE
                      ? "sends too much"
                      : "closes the connection");
    else if (response.status < 200 || response.status >= 300)
        is_done = fail_with_words(&response, error);
    else if (!docker_read_members(slice_of(docker->body, docker->body_size), names, count, texts))
        is_done = error_set(error,
                            "the docker API at %s does not send a JSON object of the "
                            "expected form",
                            docker->address);
    http1_response_fini(&response);
    return is_done;
}

/* ---- attributes ---- */

static void free_texts(char *texts[MEMBERS_MAX])
{
    for (size_t i = 0; i < MEMBERS_MAX; i++)
        mem_free(texts[i]);
}

static void put_if(struct detected *detected, bool is_wanted, const char *key, const char *text)
{
    if (is_wanted)
        detected_put_text(detected, key, slice_of_text(text));
}

static bool ask_info(struct docker *docker, struct detected *detected,
                     const bool wanted[DOCKER_ATTRIBUTES], struct error *error)
{
    static const char *const names[MEMBERS_MAX] = {"Name", "OSType"};
    char *texts[MEMBERS_MAX] = {NULL, NULL};
    bool is_told = ask(docker, "/info", names, MEMBERS_MAX, texts, error) ||
                   error_prefix(error, "docker: failed to fetch Docker information");
    if (is_told) {
        put_if(detected, wanted[DOCKER_HOST_NAME], "host.name", texts[0]);
        put_if(detected, wanted[DOCKER_OS_TYPE], "os.type", texts[1]);
    }
    free_texts(texts);
    return is_told;
}

static bool ask_container(struct docker *docker, struct detected *detected,
                          const bool wanted[DOCKER_ATTRIBUTES], struct error *error)
{
    static const char *const names[MEMBERS_MAX] = {"Name", "Image"};
    char *texts[MEMBERS_MAX] = {NULL, NULL};
    char host[HOST_NAME_MAX + 1] = "";
    char path[HOST_NAME_MAX + 32];
    if (gethostname(host, sizeof(host) - 1) != 0 || strpbrk(host, "/?#% \r\n") != NULL)
        return error_set(error, "docker: the host's name is not that of a container");
    snprintf(path, sizeof(path), "/containers/%s/json", host);
    bool is_told = ask(docker, path, names, MEMBERS_MAX, texts, error) ||
                   error_prefix(error, "docker: failed to fetch container information");
    if (is_told) {
        put_if(detected, wanted[DOCKER_CONTAINER_NAME], "container.name", texts[0]);
        put_if(detected, wanted[DOCKER_IMAGE_NAME], "container.image.name", texts[1]);
    }
    free_texts(texts);
    return is_told;
}

bool detect_docker(struct detected *detected, const bool wanted[DOCKER_ATTRIBUTES],
                   uint64_t timeout_ns, struct error *error)
{
    const char *address = getenv("DOCKER_HOST");
    struct docker docker = {
        .address = address != NULL && address[0] != '\0' ? address : STANDARD_DOCKER,
        .end_ns = clock_now_ns() + timeout_ns,
        .fd = -1,
    };
    bool wants_container = wanted[DOCKER_CONTAINER_NAME] || wanted[DOCKER_IMAGE_NAME];
    bool is_told = ask_info(&docker, detected, wanted, error) &&
                   (!wants_container || ask_container(&docker, detected, wanted, error));
    mem_free(docker.body);
    detected->schema_url = SCHEMA_URL;
    return is_told;
}
