/* SPDX-License-Identifier: Apache-2.0 */
/* On lane 0. */
#include "extensions/explore/explore_access.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "src/base/hex.h"
#include "src/base/secret.h"
#include "src/net/server/http_server.h"

#define COOKIE_NAME "spanflame_session"

/* A host without its port and brackets. */
static struct slice host_of(struct slice host)
{
    if (host.size > 0 && host.data[0] == '[') {
        const uint8_t *end = memchr(host.data, ']', host.size);
        return end != NULL ? slice_of(host.data + 1, (size_t)(end - host.data) - 1)
                           : slice_of(host.data, 0);
    }
    const uint8_t *colon =
        memchr(host.data != NULL ? host.data : (const uint8_t *)"", ':', host.size);
    return colon != NULL ? slice_of(host.data, (size_t)(colon - host.data)) : host;
}

/* Only digits and points, or with colons: an address, which no attacker's DNS can stand for. */
static bool is_address(struct slice host, bool is_bracketed)
{
    bool is_number = host.size > 0;
    for (size_t i = 0; i < host.size; i++)
        is_number &= (host.data[i] >= '0' && host.data[i] <= '9') || host.data[i] == '.';
    return is_number || is_bracketed;
}

static bool is_loopback(struct slice host)
{
    static const char domain[] = ".localhost";
    /* 127.0.0.1.example.com is a name, which an attacker's DNS can stand for. */
    return slice_equal_nocase(host, "localhost") ||
           (slice_begins_with(host, "127.") && is_address(host, false)) ||
           slice_equal_text(host, "::1") ||
           (host.size > sizeof(domain) &&
            slice_equal_nocase(
                slice_of(host.data + host.size - (sizeof(domain) - 1), sizeof(domain) - 1),
                domain));
}

bool explore_access_is_open(const char *endpoint)
{
    return endpoint[0] != '/' && !is_loopback(host_of(slice_of_text(endpoint)));
}

static bool make_secret(char text[ACCESS_SECRET_TEXT + 1])
{
    uint8_t bytes[ACCESS_SECRET_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return false;
    hex_write(bytes, sizeof(bytes), text);
    text[ACCESS_SECRET_TEXT] = '\0';
    return true;
}

bool explore_access_init(struct explore_access *access, const char *endpoint,
                         bool is_token_required)
{
    *access = (struct explore_access){.endpoint = endpoint, .is_token_required = is_token_required};
    return make_secret(access->token);
}

static bool is_host_known(const struct explore_access *access, struct slice host)
{
    char machine[256] = "";
    bool is_bracketed = host.size > 0 && host.data[0] == '[';
    struct slice name = host_of(host);
    gethostname(machine, sizeof(machine) - 1);
    return is_loopback(name) || is_address(name, is_bracketed) ||
           (name.size > 0 && slice_equal(name, host_of(slice_of_text(access->endpoint)))) ||
           (name.size > 0 && slice_equal_nocase(name, machine));
}

const char *explore_access_refuse(const struct explore_access *access,
                                  const struct http_request *request, bool is_data,
                                  unsigned *ret_status)
{
    struct slice method = http_request_method(request);
    struct slice host = http_request_host(request);
    struct slice origin = http_request_header(request, "origin");
    struct slice site = http_request_header(request, "sec-fetch-site");
    if (!slice_equal_text(method, "GET") && !slice_equal_text(method, "HEAD")) {
        *ret_status = 405;
        return "the explore page only answers GET and HEAD";
    }
    if (!is_host_known(access, host)) {
        *ret_status = 421;
        return "the Host header names a host that this server does not know, as after DNS "
               "rebinding: use localhost, an address, or the host of the key endpoint";
    }
    if (origin.data != NULL) {
        /* scheme://host[:port] */
        const uint8_t *slashes = memmem(origin.data, origin.size, "://", 3);
        size_t skipped = slashes != NULL ? (size_t)(slashes - origin.data) + 3 : 0;
        if (slashes == NULL ||
            !slice_equal(slice_of(origin.data + skipped, origin.size - skipped), host)) {
            *ret_status = 403;
            return "the Origin header names another origin: other pages may not read the data";
        }
    }
    if (is_data && slice_equal_text(site, "cross-site")) {
        *ret_status = 403;
        return "another site asks (Sec-Fetch-Site): other pages may not read the data";
    }
    return NULL;
}

bool explore_access_has_session(const struct explore_access *access,
                                const struct http_request *request)
{
    static const char name[] = COOKIE_NAME "=";
    struct slice cookies = http_request_header(request, "cookie");
    while (cookies.size > 0) {
        const uint8_t *end = memchr(cookies.data, ';', cookies.size);
        size_t size = end != NULL ? (size_t)(end - cookies.data) : cookies.size;
        struct slice cookie = slice_trim(slice_of(cookies.data, size));
        size_t used = end != NULL ? size + 1 : size;
        cookies = slice_of(cookies.data + used, cookies.size - used);
        if (!slice_begins_with(cookie, name))
            continue;
        struct slice value =
            slice_of(cookie.data + sizeof(name) - 1, cookie.size - (sizeof(name) - 1));
        for (size_t i = 0; i < SESSIONS_MAX; i++)
            if (access->sessions[i][0] != '\0' &&
                secret_equal(value, slice_of_text(access->sessions[i])))
                return true;
    }
    return false;
}

bool explore_access_exchange(struct explore_access *access, const struct http_request *request,
                             char ret_cookie[ACCESS_COOKIE_BYTES])
{
    static const char scheme[] = "Bearer ";
    struct slice header = http_request_header(request, "authorization");
    if (!slice_begins_with(header, scheme) ||
        !secret_equal(
            slice_of(header.data + sizeof(scheme) - 1, header.size - (sizeof(scheme) - 1)),
            slice_of_text(access->token)))
        return false;
    char *session = access->sessions[access->sessions_next++ % SESSIONS_MAX];
    if (!make_secret(session) || !make_secret(access->token))
        return false;
    snprintf(ret_cookie, ACCESS_COOKIE_BYTES, COOKIE_NAME "=%s; Path=/; SameSite=Strict; HttpOnly",
             session);
    return true;
}
