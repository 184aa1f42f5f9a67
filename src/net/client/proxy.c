/* SPDX-License-Identifier: Apache-2.0 */
/* Proxy settings of the environment. Pure except for getenv; any thread. */
#include "src/net/client/proxy.h"

#include "src/net/syntax/http_url.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NO_PROXY_ENTRY_MAX = 256 };

struct address {
    int family; /* 0: it is a name */
    uint8_t bytes[16];
};

static struct address address_parse(const char *text)
{
    struct address address = {0};
    if (inet_pton(AF_INET, text, address.bytes) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, text, address.bytes) == 1)
        address.family = AF_INET6;
    return address;
}

static bool in_block(const struct address *address, const char *block, long prefix)
{
    struct address network = address_parse(block);
    long bits = network.family == AF_INET ? 32 : 128;
    if (network.family == 0 || network.family != address->family || prefix < 0 || prefix > bits)
        return false;
    size_t whole = (size_t)prefix / 8;
    unsigned rest = (unsigned)prefix % 8;
    if (memcmp(address->bytes, network.bytes, whole) != 0)
        return false;
    unsigned mask = 0xff00U >> rest & 0xff;
    return rest == 0 || ((address->bytes[whole] ^ network.bytes[whole]) & mask) == 0;
}

static bool entry_covers(char *entry, const struct http_url *url)
{
    assert(entry[0] != '\0');
    if (strcmp(entry, "*") == 0)
        return true;
    struct address address = address_parse(url->host);
    char *slash = strchr(entry, '/');
    if (slash != NULL) {
        *slash = '\0';
        return in_block(&address, entry, strtol(slash + 1, NULL, 10));
    }
    char *colon = strrchr(entry, ':');
    if (colon != NULL && (strchr(entry, ':') == colon || colon[-1] == ']')) {
        *colon = '\0';
        if (strtol(colon + 1, NULL, 10) != url->port)
            return false;
    }
    size_t entry_size = strlen(entry);
    if (entry[0] == '[' && entry[entry_size - 1] == ']') {
        entry[entry_size - 1] = '\0';
        entry++;
    }
    if (address.family != 0)
        return in_block(&address, entry, address.family == AF_INET ? 32 : 128);
    /* ".example.com" covers the domains below it, "example.com" that host, too. */
    const char *domain = entry;
    if (domain[0] == '*' && domain[1] == '.')
        domain++;
    bool is_suffix_only = domain[0] == '.';
    size_t domain_size = strlen(domain);
    size_t host_size = strlen(url->host);
    if (!is_suffix_only && strcasecmp(domain, url->host) == 0)
        return true;
    size_t needed = domain_size + (is_suffix_only ? 0 : 1);
    if (domain_size == 0 || host_size <= needed)
        return false;
    const char *tail = url->host + host_size - domain_size;
    return strcasecmp(tail, domain) == 0 && (is_suffix_only || tail[-1] == '.');
}

bool proxy_is_excluded(const struct http_url *url, const char *no_proxy)
{
    while (*no_proxy != '\0') {
        char entry[NO_PROXY_ENTRY_MAX];
        no_proxy += strspn(no_proxy, ", \t");
        size_t size = strcspn(no_proxy, ", \t");
        if (size > 0 && size < sizeof(entry)) {
            memcpy(entry, no_proxy, size);
            entry[size] = '\0';
            if (entry_covers(entry, url))
                return true;
        }
        no_proxy += size;
    }
    return false;
}

static const char *environment(const char *upper, const char *lower)
{
    const char *value = getenv(upper);
    if (value == NULL || value[0] == '\0')
        value = getenv(lower);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *proxy_find(const struct http_url *url, const char *configured)
{
    if (configured != NULL && configured[0] != '\0')
        return configured;
    const char *proxy = url->is_https ? environment("HTTPS_PROXY", "https_proxy")
                                      : environment("HTTP_PROXY", "http_proxy");
    if (proxy == NULL)
        return NULL;
    /* This machine is reached without a proxy. */
    static const uint8_t loopback6[16] = {[15] = 1};
    struct address address = address_parse(url->host);
    bool is_local = address.family == AF_INET    ? address.bytes[0] == 127
                    : address.family == AF_INET6 ? memcmp(address.bytes, loopback6, 16) == 0
                                                 : strcasecmp(url->host, "localhost") == 0;
    if (is_local)
        return NULL;
    const char *no_proxy = environment("NO_PROXY", "no_proxy");
    return no_proxy != NULL && proxy_is_excluded(url, no_proxy) ? NULL : proxy;
}
