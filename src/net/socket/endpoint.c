/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on, split and resolved with the Go collector's rules and error messages.
 * Blocks: start-up only. */
#include "src/net/socket/endpoint.h"

#include "src/base/error.h"

#include <arpa/inet.h>
#include <assert.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static bool copy_part(char *target, size_t capacity, const char *from, size_t size)
{
    assert(capacity > 0);
    if (size >= capacity)
        return false;
    memcpy(target, from, size);
    target[size] = '\0';
    return true;
}

bool endpoint_parse(const char *text, struct endpoint *ret_endpoint, struct error *error)
{
    if (text[0] == '\0') {
        *ret_endpoint = (struct endpoint){.port = "0"};
        return true;
    }
    const char *colon = strrchr(text, ':');
    if (colon == NULL)
        return error_set(error, "address %s: missing port in address", text);
    bool is_bracketed = text[0] == '[';
    const char *host = is_bracketed ? text + 1 : text;
    const char *host_end = is_bracketed ? strchr(text, ']') : colon;
    const char *fault = NULL;
    if (host_end == NULL)
        fault = "missing ']' in address";
    else if (is_bracketed && host_end + 1 != colon)
        fault = host_end[1] == ':' ? "too many colons in address" : "missing port in address";
    else if (!is_bracketed && memchr(text, ':', (size_t)(colon - text)) != NULL)
        fault = "too many colons in address";
    else if (strchr(host, '[') != NULL || strchr(is_bracketed ? colon : text, ']') != NULL)
        fault = "unexpected bracket in address";
    if (fault != NULL)
        return error_set(error, "address %s: %s", text, fault);
    struct endpoint endpoint;
    if (!copy_part(endpoint.host, sizeof(endpoint.host), host, (size_t)(host_end - host)))
        return error_set(error, "address %s: host name too long, at most %d characters", text,
                         ENDPOINT_HOST_MAX - 1);
    if (!copy_part(endpoint.port, sizeof(endpoint.port), colon + 1, strlen(colon + 1)))
        return error_set(error, "address %s: invalid port", colon + 1);
    *ret_endpoint = endpoint;
    return true;
}

static bool resolve_port(const char *port, uint16_t *ret_port, struct error *error)
{
    unsigned number = 0;
    if (port[0] == '\0') {
        *ret_port = 0;
        return true;
    }
    if (port[0] != '\0' && port[strspn(port, "0123456789")] == '\0') {
        for (const char *digit = port; *digit != '\0' && number <= UINT16_MAX; digit++)
            number = number * 10 + (unsigned)(*digit - '0');
        if (number > UINT16_MAX)
            return error_set(error, "address %s: invalid port", port);
        *ret_port = (uint16_t)number;
        return true;
    }
    const struct servent *service = getservbyname(port, "tcp");
    if (service == NULL)
        return error_set(error, "lookup tcp/%s: unknown port", port);
    *ret_port = ntohs((uint16_t)service->s_port);
    return true;
}

static struct endpoint_address any_address(int family, uint16_t port)
{
    struct endpoint_address any = {.size = sizeof(struct sockaddr_in)};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&any.address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&any.address;
    if (family == AF_INET) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        v4->sin_addr.s_addr = htonl(INADDR_ANY);
    } else {
        any.size = sizeof(struct sockaddr_in6);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        v6->sin6_addr = in6addr_any;
    }
    return any;
}

static bool lookup(const char *host, const char *transport, struct endpoint_address *ret_address,
                   struct error *error)
{
    assert(host[0] != '\0');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    if (strcmp(transport, "tcp4") == 0)
        hints.ai_family = AF_INET;
    if (strcmp(transport, "tcp6") == 0)
        hints.ai_family = AF_INET6;
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed == EAI_NONAME)
        return error_set(error, "lookup %s: no such host", host);
    if (failed == EAI_ADDRFAMILY || failed == EAI_NODATA)
        return error_set(error, "address %s: no suitable address", host);
    if (failed != 0)
        return error_set(error, "lookup %s: %s", host, gai_strerror(failed));
    const struct addrinfo *best = found;
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next)
        if (one->ai_family == AF_INET) {
            best = one;
            break;
        }
    assert(best->ai_addrlen <= sizeof(ret_address->address));
    memcpy(&ret_address->address, best->ai_addr, best->ai_addrlen);
    ret_address->size = best->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool endpoint_resolve(const struct endpoint *endpoint, const char *transport,
                      struct endpoint_address *ret_address, struct error *error)
{
    const char *host = endpoint->host;
    struct endpoint_address address = {.size = 0};
    uint16_t port = 0;
    if (!resolve_port(endpoint->port, &port, error))
        return false;
    struct in_addr v4;
    struct in6_addr v6;
    bool is_any_v4 = inet_pton(AF_INET, host, &v4) == 1 && v4.s_addr == htonl(INADDR_ANY);
    bool is_any_v6 = inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
    if (host[0] != '\0' && !is_any_v4 && !is_any_v6) {
        if (!lookup(host, transport, &address, error))
            return false;
        assert(address.address.ss_family == AF_INET || address.address.ss_family == AF_INET6);
        if (address.address.ss_family == AF_INET)
            ((struct sockaddr_in *)&address.address)->sin_port = htons(port);
        else
            ((struct sockaddr_in6 *)&address.address)->sin6_port = htons(port);
        endpoint_print((const struct sockaddr *)&address.address, address.text);
        *ret_address = address;
        return true;
    }
    bool is_dual = false;
    if (strcmp(transport, "tcp4") != 0 && strcmp(transport, "tcp6") != 0) {
        /* IPv4 and IPv6, unless this is a container without IPv6 or IPv4-mapped addresses. */
        int off = 0;
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address = any_address(AF_INET6, 0);
        is_dual = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
                  bind(fd, (const struct sockaddr *)&address.address, address.size) == 0;
        if (fd >= 0)
            close(fd);
    }
    bool is_v6 = is_dual || strcmp(transport, "tcp6") == 0;
    bool has_colon = strchr(host, ':') != NULL;
    *ret_address = any_address(is_v6 ? AF_INET6 : AF_INET, port);
    ret_address->is_dual = is_dual;
    snprintf(ret_address->text, sizeof(ret_address->text), "%s%.64s%s:%u", has_colon ? "[" : "",
             host, has_colon ? "]" : "", port);
    return true;
}

bool endpoint_of_path(const char *path, struct endpoint_address *ret_address, struct error *error)
{
    size_t size = strlen(path);
    if (size == 0 || size > ENDPOINT_PATH_MAX)
        return error_set(error, "%s: found %zu characters, expected a path of 1 to %d", path, size,
                         ENDPOINT_PATH_MAX);
    struct endpoint_address result = {
        .size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (path[0] != '@'))};
    struct sockaddr_un *address = (struct sockaddr_un *)&result.address;
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, size);
    if (path[0] == '@')
        address->sun_path[0] = '\0';
    memcpy(result.text, path, size + 1);
    *ret_address = result;
    return true;
}

void endpoint_forget(const char *transport, const char *endpoint)
{
    if (strcmp(transport, "unix") == 0 && endpoint[0] != '@')
        unlink(endpoint);
}

void endpoint_print_host(const struct sockaddr *address, char text[ENDPOINT_HOST_TEXT_MAX])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    text[0] = '\0';
    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, text, ENDPOINT_HOST_TEXT_MAX);
    } else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, ENDPOINT_HOST_TEXT_MAX);
    } else if (address->sa_family == AF_INET6) {
        char host[INET6_ADDRSTRLEN];
        char zone[IF_NAMESIZE];
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        bool has_zone = v6->sin6_scope_id != 0 && if_indextoname(v6->sin6_scope_id, zone) != NULL;
        snprintf(text, ENDPOINT_HOST_TEXT_MAX, "%s%s%s", host, has_zone ? "%" : "",
                 has_zone ? zone : "");
    }
}

void endpoint_print(const struct sockaddr *address, char text[ENDPOINT_TEXT_MAX])
{
    assert(address->sa_family == AF_INET || address->sa_family == AF_INET6);
    char host[ENDPOINT_HOST_TEXT_MAX];
    endpoint_print_host(address, host);
    bool has_colon = strchr(host, ':') != NULL;
    uint16_t port = address->sa_family == AF_INET
                        ? ((const struct sockaddr_in *)address)->sin_port
                        : ((const struct sockaddr_in6 *)address)->sin6_port;
    snprintf(text, ENDPOINT_TEXT_MAX, "%s%s%s:%u", has_colon ? "[" : "", host, has_colon ? "]" : "",
             ntohs(port));
}
