/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of sockets by the text of their endpoint. Lane 0 only. */
#include "src/net/socket/kept_sockets.h"

#include "src/base/mem.h"
#include "src/net/socket/endpoint.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct kept_socket {
    struct kept_socket *next;
    int fd;
    char *transport;
    char *endpoint;
};

static struct kept_socket *first;
static bool is_keeping;

static int release(struct kept_socket *kept)
{
    int fd = kept->fd;
    assert(fd >= 0);
    mem_free(kept->transport);
    mem_free(kept->endpoint);
    mem_free(kept);
    return fd;
}

void kept_sockets_begin(void)
{
    assert(first == NULL);
    is_keeping = true;
}

void kept_sockets_end(void)
{
    is_keeping = false;
    while (first != NULL) {
        struct kept_socket *kept = first;
        first = kept->next;
        endpoint_forget(kept->transport, kept->endpoint);
        close(release(kept));
    }
}

bool kept_sockets_put(int fd, const char *transport, const char *endpoint)
{
    assert(fd >= 0);
    if (!is_keeping)
        return false;
    struct kept_socket *kept = mem_alloc(sizeof(*kept));
    *kept = (struct kept_socket){
        .next = first,
        .fd = fd,
        .transport = mem_copy_text(transport),
        .endpoint = mem_copy_text(endpoint),
    };
    first = kept;
    return true;
}

int kept_sockets_take(const char *transport, const char *endpoint)
{
    assert(transport != NULL && endpoint != NULL);
    for (struct kept_socket **link = &first; *link != NULL; link = &(*link)->next) {
        struct kept_socket *kept = *link;
        if (strcmp(kept->transport, transport) != 0 || strcmp(kept->endpoint, endpoint) != 0)
            continue;
        *link = kept->next;
        return release(kept);
    }
    return -1;
}
