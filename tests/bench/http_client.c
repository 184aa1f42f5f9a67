/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 connection of the load generator: one request at a time, kept alive. */
#include "tests/bench/client.h"
#include "tests/bench/http1_message.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEAD_BYTES_MAX = 256 };

struct http_client {
    struct client base;
    struct exchange *exchange; /* NULL: idle */
    char head[HEAD_BYTES_MAX];
    size_t head_size;
    size_t sent; /* of head and body */
    struct http1_message reply;
};

static struct http_client *http_client_of(struct client *base)
{
    assert(base->type == &http_client_type);
    return (struct http_client *)base;
}

static struct client *http_client_create(const struct client_options *options)
{
    struct http_client *client = allocate(sizeof *client);

    assert(options->slots == 1);
    client->base = (struct client){
        .type = &http_client_type,
        .options = *options,
        .channel = channel_open(options->port, options->is_tls ? "http/1.1" : NULL),
        .is_writable = true,
    };
    return &client->base;
}

static void http_client_send(struct client *base, struct exchange *exchange)
{
    struct http_client *client = http_client_of(base);

    assert(client->exchange == NULL);
    const struct client_options *options = &base->options;
    int size = snprintf(client->head, sizeof client->head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: %s\r\n"
                        "%s%s%sContent-Length: %zu\r\n\r\n",
                        options->path, options->port, options->type,
                        options->coding == NULL ? "" : "Content-Encoding: ",
                        options->coding == NULL ? "" : options->coding,
                        options->coding == NULL ? "" : "\r\n", exchange->body.size);
    assert(size > 0 && (size_t)size < sizeof client->head);
    client->head_size = (size_t)size;
    client->exchange = exchange;
    client->sent = 0;
    base->in_flight = 1;
    base->has_output = true;
}

static bool http_client_write(struct client *base)
{
    struct http_client *client = http_client_of(base);

    if (!base->has_output || !base->is_writable)
        return true;
    size_t in_head = client->sent < client->head_size ? client->head_size - client->sent : 0;
    size_t in_body = client->sent - (client->head_size - in_head);
    struct bytes body = client->exchange->body;
    struct iovec parts[] = {
        {client->head + client->head_size - in_head, in_head},
        {(void *)(uintptr_t)(body.data + in_body), body.size - in_body},
    };
    ssize_t count = channel_write(&base->channel, parts, 2);
    if (count < 0) {
        base->is_writable = false;
        return errno == EAGAIN;
    }
    client->sent += (size_t)count;
    base->has_output = client->sent < client->head_size + body.size;
    base->is_writable = !base->has_output;
    return true;
}

static enum outcome outcome_of(unsigned status)
{
    if (status == 200)
        return OUTCOME_OK;
    return status == 429 || status == 502 || status == 503 || status == 504 ? OUTCOME_REFUSED
                                                                            : OUTCOME_REJECTED;
}

static void finish(struct http_client *client, enum outcome outcome)
{
    struct exchange *exchange = client->exchange;

    assert(exchange != NULL);
    client->exchange = NULL;
    client->base.in_flight = 0;
    client->base.options.on_done(client->base.options.arg, exchange, outcome);
}

/* One recv() takes a whole response: they are small. A response before the end of the body (a
 * refusal at the head) leaves the connection useless. */
static bool http_client_read(struct client *base)
{
    struct http_client *client = http_client_of(base);
    struct iovec room = http1_room(&client->reply);
    ssize_t count = channel_read(&base->channel, room.iov_base, room.iov_len);
    enum http1_state state = http1_received(&client->reply, count);

    if (state == HTTP1_MORE)
        return true;
    if (state != HTTP1_COMPLETE || client->exchange == NULL)
        return false;
    bool is_cut_short = base->has_output;
    unsigned status = client->reply.status;
    http1_consume(&client->reply);
    finish(client, outcome_of(status));
    return !is_cut_short;
}

static void http_client_destroy(struct client *base)
{
    struct http_client *client = http_client_of(base);

    if (client->exchange != NULL)
        finish(client, OUTCOME_BROKEN);
    channel_close(&base->channel);
    http1_free(&client->reply);
    free(client);
}

const struct client_type http_client_type = {
    .create = http_client_create,
    .send = http_client_send,
    .write = http_client_write,
    .read = http_client_read,
    .destroy = http_client_destroy,
};
