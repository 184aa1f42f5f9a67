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

/* Fills rows, and text with their zero-terminated strings. Returns the number of rows. */
static size_t collect_metadata(const struct http_request *request, bool is_grpc,
                               struct client_metadata *rows, char *text)
{
    /* Headers that grpc-go does not pass on. */
    static const char *const own[] = {"te",           "grpc-encoding", "grpc-timeout",
                                      "grpc-message", "grpc-status",   "grpc-message-type"};
    struct slice name;
    struct slice value;
    size_t count = 0;
    for (size_t i = 0;
         count < METADATA_ROWS_MAX - 2 && http_request_header_at(request, i, &name, &value); i++) {
        bool is_own = slice_equal_text(name, "host");
        for (size_t j = 0; is_grpc && j < sizeof(own) / sizeof(own[0]); j++)
            is_own |= slice_equal_text(name, own[j]);
        if (is_own)
            continue;
        const char *key = text;
        text += sprintf(text, "%.*s", (int)name.size, (const char *)name.data) + 1;
        text = put_row(&rows[count++], key, value, text);
    }
    struct slice host = http_request_host(request);
    if (host.size > 0)
        text = put_row(&rows[count++], "host", host, text);
    if (host.size > 0 && is_grpc)
        put_row(&rows[count++], ":authority", host, text);
    return count;
}

struct client_info *http_request_client(const struct http_request *request, bool is_grpc)
{
    struct client_metadata rows[METADATA_ROWS_MAX];
    struct slice name;
    struct slice value;
    size_t size = 2 * (http_request_host(request).size + 1);
    for (size_t i = 0; http_request_header_at(request, i, &name, &value); i++)
        size += name.size + value.size + 2;
    char *text = mem_alloc(size);
    size_t count = collect_metadata(request, is_grpc, rows, text);
    struct client_info *client =
        client_info_create(http_request_peer_address(request), rows, count);
    mem_free(text);
    return client;
}
