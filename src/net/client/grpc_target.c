/* SPDX-License-Identifier: Apache-2.0 */
/* Parses gRPC endpoints. Pure functions; any thread. */
#include "src/net/client/grpc_target.h"

#include "src/base/error.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Skips the prefix if *text begins with it. */
static bool skip(const char **text, const char *prefix)
{
    assert(prefix[0] != '\0');
    if (strncmp(*text, prefix, strlen(prefix)) != 0)
        return false;
    *text += strlen(prefix);
    return true;
}

bool grpc_target_parse(const char *text, struct grpc_target *ret_target, struct error *error)
{
    *ret_target = (struct grpc_target){0};
    if (skip(&text, "unix://")) {
        assert(ret_target->host[0] == '\0');
        if (text[0] == '\0')
            return error_set(error, "unix socket path cannot be empty");
        if (strlen(text) >= sizeof(ret_target->path))
            return error_set(error,
                             "the path of the unix socket has %zu characters, at most %zu fit",
                             strlen(text), sizeof(ret_target->path) - 1);
        strcpy(ret_target->path, text);
        strcpy(ret_target->authority, "localhost");
        return true;
    }
    if (skip(&text, "https://"))
        ret_target->is_https = true;
    else if (skip(&text, "passthrough:"))
        ret_target->is_passthrough = skip(&text, "///") || true;
    else if (!skip(&text, "http://") && !skip(&text, "dns:///"))
        (void)skip(&text, "dns://");
    /* The text is not repeated: it may contain a password or token. */
    if (strchr(text, '@') != NULL)
        return error_set(error, "found \"@\", but a gRPC endpoint carries no user and password: "
                                "expected host:port; set headers or auth instead");
    if (strpbrk(text, "?#") != NULL)
        return error_set(error,
                         "found \"%c\", but a gRPC endpoint has no query: expected "
                         "host:port; set headers instead",
                         *strpbrk(text, "?#"));
    if (text[0] == '\0')
        return error_set(error, "requires a non-empty \"endpoint\"");
    assert(ret_target->path[0] == '\0');
    struct endpoint endpoint;
    if (!endpoint_parse(text, &endpoint, error))
        return false;
    const char *port = endpoint.port;
    size_t digits = strspn(port, "0123456789");
    unsigned long number = digits > 5 ? UINT16_MAX + 1 : strtoul(port, NULL, 10);
    if (digits == 0 || port[digits] != '\0' || number > UINT16_MAX)
        return error_set(error, "invalid port \"%s\"", port);
    ret_target->port = (uint16_t)number;
    if (strpbrk(endpoint.host, "/ ") != NULL)
        return error_set(error, "address %s: \"%s\" is not a host name; expected host:port", text,
                         endpoint.host);
    strcpy(ret_target->host, endpoint.host[0] != '\0' ? endpoint.host : "localhost");
    bool has_colon = strchr(ret_target->host, ':') != NULL;
    snprintf(ret_target->authority, sizeof(ret_target->authority), "%s%s%s:%u",
             has_colon ? "[" : "", ret_target->host, has_colon ? "]" : "",
             (unsigned)ret_target->port);
    return true;
}
