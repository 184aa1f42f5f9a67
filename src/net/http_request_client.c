/* SPDX-License-Identifier: Apache-2.0 */
/* Headers into metadata. On the request's lane. */
#include "src/net/http_request_client.h"

#include "src/client_info.h"
#include "src/limits.h"
#include "src/mem.h"
#include "src/net/http_server.h"

#include <assert.h>
#include <stdio.h>

enum { METADATA_ROWS_MAX = HTTP_HEADERS_MAX + 1 };

/* Names and values with terminators, as client_info_create wants them. */
static size_t collect_metadata(const struct http_request *request, struct client_metadata *rows,
                               char *text)
{
    assert(rows != NULL && text != NULL);
    struct slice name;
    struct slice value;
    size_t count = 0;
    for (size_t i = 0;
         count < METADATA_ROWS_MAX - 1 && http_request_header_at(request, i, &name, &value); i++) {
        if (slice_equal_text(name, "host"))
            continue;
        rows[count++] = (struct client_metadata){text, text + name.size + 1};
        text += sprintf(text, "%.*s", (int)name.size, (const char *)name.data) + 1;
        text += sprintf(text, "%.*s", (int)value.size, (const char *)value.data) + 1;
    }
    struct slice host = http_request_host(request);
    if (host.size > 0) {
        rows[count++] = (struct client_metadata){"host", text};
        sprintf(text, "%.*s", (int)host.size, (const char *)host.data);
    }
    return count;
}

static size_t metadata_bytes(const struct http_request *request)
{
    assert(request != NULL);
    struct slice name;
    struct slice value;
    size_t size = http_request_host(request).size + 1;
    for (size_t i = 0; http_request_header_at(request, i, &name, &value); i++)
        size += name.size + value.size + 2;
    return size;
}

struct client_info *http_request_client(const struct http_request *request)
{
    assert(request != NULL);
    struct client_metadata rows[METADATA_ROWS_MAX];
    char *text = mem_alloc(metadata_bytes(request));
    size_t count = collect_metadata(request, rows, text);
    struct client_info *client =
        client_info_create(http_request_peer_address(request), rows, count);
    mem_free(text);
    return client;
}
