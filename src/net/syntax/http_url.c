/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 3986 as far as http and https need it. Pure functions; any thread. */
#include "src/net/syntax/http_url.h"

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static char *copy_range(const char *begin, const char *end)
{
    assert(begin <= end);
    size_t size = (size_t)(end - begin);
    char *copy = mem_alloc(size + 1);
    memcpy(copy, begin, size);
    copy[size] = '\0';
    return copy;
}

/* Decodes %XX in place. False: a percent sign without two hex digits, or %00. */
static bool percent_decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in != '\0'; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = http1_hex_digit((uint8_t)in[1]);
        int low = high < 0 ? -1 : http1_hex_digit((uint8_t)in[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return true;
}

/* Whether each percent sign in [begin, end) begins an escape. */
static bool escapes_check(const char *begin, const char *end, const char *part, struct error *error)
{
    assert(begin <= end);
    for (const char *c = begin; c < end; c++)
        if (*c == '%' && (end - c < 3 || http1_hex_digit((uint8_t)c[1]) < 0 ||
                          http1_hex_digit((uint8_t)c[2]) < 0))
            return error_set(
                error,
                "the URL's %s contains \"%.*s\", which is not an escape; write %%25 for a "
                "percent sign",
                part, (int)(end - c < 3 ? end - c : 3), c);
    return true;
}

/* host, host:port, [v6] or [v6]:port in [begin, end). */
static bool host_parse(const char *begin, const char *end, struct http_url *url,
                       struct error *error)
{
    assert(url->host == NULL);
    const char *host_end;
    if (begin >= end)
        return error_set(error, "the URL has no host; expected one as in http://localhost:4318");
    bool is_bracketed = *begin == '[';
    if (is_bracketed) {
        begin++;
        host_end = memchr(begin, ']', (size_t)(end - begin));
        if (host_end == NULL || (host_end + 1 < end && host_end[1] != ':'))
            return error_set(error, "the URL's IPv6 address has no closing bracket before its "
                                    "port, as in http://[::1]:4318");
    } else {
        host_end = memchr(begin, ':', (size_t)(end - begin));
        if (host_end == NULL)
            host_end = end;
    }
    if (!is_bracketed && host_end < end && memchr(host_end + 1, ':', (size_t)(end - host_end - 1)))
        return error_set(error, "the URL's host has several colons; write an IPv6 address in "
                                "brackets, as in http://[::1]:4318");
    if (host_end == begin)
        return error_set(error, "the URL has no host; expected one as in http://localhost:4318");
    url->host = copy_range(begin, host_end);
    /* A reg-name of RFC 3986 without escapes, which resolvers do not know. In brackets "%25"
     * precedes a zone (RFC 6874). */
    static const char marks[] = "-._~!$&'()*+,;=:";
    for (const char *c = url->host; *c != '\0'; c++) {
        if (is_bracketed && strncmp(c, "%25", 3) == 0)
            continue;
        if (*c == '%')
            return error_set(error,
                             "the URL's host contains a percent sign; write the name in ASCII, "
                             "one with other letters as xn--…");
        if (!isalnum((unsigned char)*c) && strchr(marks, *c) == NULL)
            return error_set(error, "the URL's host contains '%c', expected a name or an address",
                             *c);
    }
    percent_decode(url->host);
    const char *port = host_end + (is_bracketed ? 1 : 0);
    if (port < end)
        port++;
    url->authority = copy_range(is_bracketed ? begin - 1 : begin,
                                port < end ? end : host_end + (is_bracketed ? 1 : 0));
    unsigned number = 0;
    for (const char *c = port; c < end; c++) {
        if (*c < '0' || *c > '9')
            return error_set(error, "the URL's port \"%.*s\" is not a number", (int)(end - port),
                             port);
        number = number * 10 + (unsigned)(*c - '0');
        if (number > UINT16_MAX)
            return error_set(error, "the URL's port %.*s is above 65535", (int)(end - port), port);
    }
    if (port == end)
        number = url->is_https ? 443 : 80;
    if (number == 0)
        return error_set(error, "the URL's port is 0; give the port that the server listens on");
    url->port = (uint16_t)number;
    return true;
}

bool http_url_parse(const char *text, struct http_url *ret_url, struct error *error)
{
    struct http_url url = {0};
    const char *rest = text;
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte <= 0x20 || byte >= 0x7f)
            return error_set(
                error,
                "the URL contains byte 0x%02x at position %zu; write it percent-encoded, "
                "as %%%02X",
                byte, (size_t)(c - text), byte);
    }
    if (strlen(text) > HTTP_URL_BYTES_MAX)
        return error_set(error, "the URL has %zu bytes, at most %d are allowed", strlen(text),
                         HTTP_URL_BYTES_MAX);
    if (strncasecmp(text, "http://", 7) == 0)
        rest = text + 7;
    else if (strncasecmp(text, "https://", 8) == 0)
        rest = text + 8;
    else
        return error_set(error, "the URL does not begin with http:// or https://; write the "
                                "scheme, as in http://localhost:4318");
    url.is_https = rest == text + 8;
    const char *end = rest + strcspn(rest, "#");
    const char *authority_end = rest + strcspn(rest, "/?#");
    const char *at = memrchr(rest, '@', (size_t)(authority_end - rest));
    if (at != NULL) {
        url.credentials = copy_range(rest, at);
        if (strchr(url.credentials, ':') == NULL) {
            size_t size = strlen(url.credentials);
            url.credentials = mem_resize(url.credentials, size + 2);
            memcpy(url.credentials + size, ":", 2);
        }
        if (!percent_decode(url.credentials)) {
            error_set(error, "the URL's user and password are not valid percent-encoding");
            goto fail;
        }
    }
    if (!host_parse(at == NULL ? rest : at + 1, authority_end, &url, error))
        goto fail;
    if (!escapes_check(authority_end, authority_end + strcspn(authority_end, "?#"), "path",
                       error) ||
        !escapes_check(end, end + strlen(end), "fragment", error))
        goto fail;
    url.target = mem_alloc((size_t)(end - authority_end) + 2);
    sprintf(url.target, "%s%.*s", authority_end < end && *authority_end == '/' ? "" : "/",
            (int)(end - authority_end), authority_end);
    int path_size = (int)strcspn(authority_end, "?#");
    size_t size = strlen(url.authority) + (size_t)path_size + sizeof("https://");
    url.shown = mem_alloc(size);
    snprintf(url.shown, size, "%s://%s%.*s", url.is_https ? "https" : "http", url.authority,
             path_size, authority_end);
    *ret_url = url;
    return true;
fail:
    http_url_clear(&url);
    return false;
}

void http_url_clear(struct http_url *url)
{
    mem_free(url->host);
    mem_free(url->authority);
    mem_free(url->target);
    mem_free(url->credentials);
    mem_free(url->shown);
    *url = (struct http_url){0};
}

char *http_url_join(const char *base, const char *suffix)
{
    assert(suffix[0] == '/');
    size_t path_size = strcspn(base, "?#");
    size_t query_size = strcspn(base + path_size, "#");
    if (path_size > 0 && base[path_size - 1] == '/')
        suffix++;
    size_t size = path_size + strlen(suffix) + query_size + 1;
    char *joined = mem_alloc(size);
    snprintf(joined, size, "%.*s%s%.*s", (int)path_size, base, suffix, (int)query_size,
             base + path_size);
    return joined;
}

/* Removes "." and ".." segments, in place, from a path that begins with a slash (RFC 3986 §5.2.4).
 * What follows the path stays. */
static void remove_dot_segments(char *path)
{
    assert(path[0] == '/');
    size_t path_size = strcspn(path, "?");
    const char *in = path;
    const char *path_end = path + path_size;
    char *out = path;
    while (in < path_end) {
        size_t size = 1 + strcspn(in + 1, "/?");
        bool is_last = in + size >= path_end;
        bool is_up = size == 3 && in[1] == '.' && in[2] == '.';
        if (is_up || (size == 2 && in[1] == '.')) {
            while (is_up && out > path && *--out != '/')
                continue;
            if (is_last)
                *out++ = '/';
        } else {
            memmove(out, in, size);
            out += size;
        }
        in += size;
    }
    memmove(out, path_end, strlen(path_end) + 1);
}

char *http_url_resolve(const struct http_url *base, const char *target, const char *location)
{
    assert(target[0] == '/');
    /* Drops the fragment; escapes blanks and bytes beyond ASCII. */
    size_t location_size = strcspn(location, "#");
    char *reference = mem_alloc(3 * location_size + 1);
    char *out = reference;
    for (size_t i = 0; i < location_size; i++) {
        unsigned char byte = (unsigned char)location[i];
        if (byte == ' ' || byte >= 0x80)
            out += sprintf(out, "%%%02X", byte);
        else
            *out++ = (char)byte;
    }
    *out = '\0';
    /* [A-Za-z][A-Za-z0-9+.-]*: */
    size_t prefix = 0;
    while (isalnum((unsigned char)reference[prefix]) ||
           (prefix > 0 && reference[prefix] != '\0' && strchr("+.-", reference[prefix]) != NULL))
        prefix++;
    if (isalpha((unsigned char)reference[0]) && reference[prefix] == ':')
        return reference;
    const char *scheme = base->is_https ? "https:" : "http:";
    size_t path_size = strcspn(target, "?");
    size_t kept_size = 0; /* of the target */
    if (reference[0] == '\0')
        kept_size = strlen(target);
    else if (reference[0] == '?')
        kept_size = path_size;
    else if (reference[0] != '/')
        kept_size = (size_t)((const char *)memrchr(target, '/', path_size) - target) + 1;
    size_t size = strlen(scheme) + strlen(base->authority) + kept_size + strlen(reference) + 4;
    char *url = mem_alloc(size);
    if (strncmp(reference, "//", 2) == 0) {
        snprintf(url, size, "%s%s", scheme, reference);
    } else {
        int path_at = snprintf(url, size, "%s//%s", scheme, base->authority);
        snprintf(url + path_at, size - (size_t)path_at, "%.*s%s", (int)kept_size, target,
                 reference);
        remove_dot_segments(url + path_at);
    }
    mem_free(reference);
    return url;
}

bool http_url_is_same_origin(const struct http_url *one, const struct http_url *other)
{
    return one->is_https == other->is_https && one->port == other->port &&
           strcasecmp(one->host, other->host) == 0;
}

char *http_url_basic_auth(const char *credentials)
{
    struct slice bytes = slice_of_text(credentials);
    size_t size = base64_size(bytes.size);
    char *value = mem_alloc(sizeof("Basic ") + size);
    char *digits = stpcpy(value, "Basic ");
    base64_encode(bytes, digits);
    digits[size] = '\0';
    return value;
}
