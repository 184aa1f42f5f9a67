/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of sockets by the text of their endpoint. Lane 0 only. */
#include "src/net/socket/inherited_listeners.h"

#include "src/base/mem.h"
#include "src/net/socket/endpoint.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct inherited_listener {
    struct inherited_listener *next;
    int fd;
    char *transport;
    char *endpoint;
};

static struct inherited_listener *first;
static bool is_keeping;

static int release(struct inherited_listener *kept)
{
    int fd = kept->fd;
    assert(fd >= 0);
    mem_free(kept->transport);
    mem_free(kept->endpoint);
    mem_free(kept);
    return fd;
}

void inherited_listeners_begin(void)
{
    assert(first == NULL);
    is_keeping = true;
}

void inherited_listeners_end(void)
{
    is_keeping = false;
    while (first != NULL) {
        struct inherited_listener *kept = first;
        first = kept->next;
        endpoint_forget(kept->transport, kept->endpoint);
        close(release(kept));
    }
}

bool inherited_listeners_put(int fd, const char *transport, const char *endpoint)
{
    assert(fd >= 0);
    if (!is_keeping)
        return false;
    struct inherited_listener *kept = mem_alloc(sizeof(*kept));
    *kept = (struct inherited_listener){
        .next = first,
        .fd = fd,
        .transport = mem_copy_text(transport),
        .endpoint = mem_copy_text(endpoint),
    };
    first = kept;
    return true;
}

int inherited_listeners_take(const char *transport, const char *endpoint)
{
    for (struct inherited_listener **link = &first; *link != NULL; link = &(*link)->next) {
        struct inherited_listener *kept = *link;
        if (strcmp(kept->transport, transport) != 0 || strcmp(kept->endpoint, endpoint) != 0)
            continue;
        *link = kept->next;
        return release(kept);
    }
    return -1;
}
