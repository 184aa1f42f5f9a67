/* SPDX-License-Identifier: Apache-2.0 */
/* Converts headers to metadata. On the request's lane. */
#include "src/net/server/http_request_client.h"

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/client_info.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <stdio.h>

enum { METADATA_ROWS_MAX = HTTP_HEADERS_MAX + 2 };

static char *put_row(struct client_metadata *row, const char *name, struct slice value, char *text)
{
    *row = (struct client_metadata){name, text};
    return text + sprintf(text, "%.*s", (int)value.size, (const char *)value.data) + 1;
}

struct client_info *http_request_client(const struct http_request *request, bool is_grpc)
{
    /* Headers that grpc-go does not pass on. */
    static const char *const own[] = {"te",           "grpc-encoding", "grpc-timeout",
                                      "grpc-message", "grpc-status",   "grpc-message-type"};
    struct client_metadata rows[METADATA_ROWS_MAX];
    struct slice host = http_request_host(request);
    struct slice name;
    struct slice value;
    size_t size = 2 * (host.size + 1);
    for (size_t i = 0; http_request_header_at(request, i, &name, &value); i++)
        size += name.size + value.size + 2;
    char *strings = mem_alloc(size);
    char *at = strings;
    size_t count = 0;
    for (size_t i = 0;
         count < METADATA_ROWS_MAX - 2 && http_request_header_at(request, i, &name, &value); i++) {
        bool is_own = slice_equal_text(name, "host");
        for (size_t j = 0; is_grpc && j < sizeof(own) / sizeof(own[0]); j++)
            is_own |= slice_equal_text(name, own[j]);
        if (is_own)
            continue;
        const char *key = at;
        at += sprintf(at, "%.*s", (int)name.size, (const char *)name.data) + 1;
        at = put_row(&rows[count++], key, value, at);
    }
    if (host.size > 0)
        at = put_row(&rows[count++], "host", host, at);
    if (host.size > 0 && is_grpc)
        put_row(&rows[count++], ":authority", host, at);
    struct client_info *client =
        client_info_create(http_request_peer_address(request), rows, count);
    mem_free(strings);
    return client;
}
