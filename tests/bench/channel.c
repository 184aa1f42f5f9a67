/* SPDX-License-Identifier: Apache-2.0 */
/* Bare sockets and OpenSSL behind one interface: see the header. */
#include "tests/bench/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>
#include <sys/socket.h>

enum { RECORD_BYTES = 16384 };

static void set_blocking(int fd, bool is_blocking)
{
    int flags = fcntl(fd, F_GETFL);

    assert(flags >= 0);
    if (fcntl(fd, F_SETFL, is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) != 0)
        die("fcntl: %s", strerror(errno));
}

static SSL_CTX *shared_context(void)
{
    static SSL_CTX *context;

    if (context != NULL)
        return context;
    context = SSL_CTX_new(TLS_client_method());
    if (context == NULL)
        die("OpenSSL cannot start");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

/* The socket blocks until the handshake is over. */
static SSL *shake_hands(int fd, uint16_t port, const char *alpn)
{
    SSL *tls = SSL_new(shared_context());
    uint8_t name[16];
    size_t size = strlen(alpn);

    assert(size + 1 < sizeof name);
    name[0] = (uint8_t)size;
    memcpy(name + 1, alpn, size);
    set_blocking(fd, true);
    if (tls == NULL || SSL_set_fd(tls, fd) != 1 ||
        SSL_set_alpn_protos(tls, name, (unsigned)size + 1) != 0 || SSL_connect(tls) != 1)
        die("no TLS on port %u", port);
    set_blocking(fd, false);
    return tls;
}

struct channel channel_open(uint16_t port, const char *alpn)
{
    struct channel channel = {.fd = connect_to(port)};

    assert(channel.fd >= 0);
    if (alpn != NULL)
        channel.tls = shake_hands(channel.fd, port, alpn);
    return channel;
}

/* What SSL_read or SSL_write did, as a socket would say it. */
static ssize_t as_socket(const struct channel *channel, int count)
{
    assert(channel->tls != NULL);
    if (count > 0)
        return count;
    int error = SSL_get_error(channel->tls, count);
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
    return -1;
}

/* Copies up to a record's worth of the parts from behind the first skip bytes. */
static size_t gather(uint8_t *record, const struct iovec *parts, unsigned parts_count, size_t skip)
{
    size_t size = 0;

    for (unsigned i = 0; i < parts_count && size < RECORD_BYTES; i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        size_t count = parts[i].iov_len - skip;
        count = count < RECORD_BYTES - size ? count : RECORD_BYTES - size;
        memcpy(record + size, (const uint8_t *)parts[i].iov_base + skip, count);
        size += count;
        skip = 0;
    }
    return size;
}

/* Records are full, as those of real clients are, whatever the parts look like. One that the socket
 * did not take is gathered again from the same parts: callers come back with what is left. */
static ssize_t write_records(struct channel *channel, const struct iovec *parts,
                             unsigned parts_count)
{
    static uint8_t record[RECORD_BYTES];
    size_t sent = 0;

    for (;;) {
        size_t size = gather(record, parts, parts_count, sent);
        if (size == 0)
            return (ssize_t)sent;
        ssize_t count = as_socket(channel, SSL_write(channel->tls, record, (int)size));
        if (count <= 0)
            return sent > 0 ? (ssize_t)sent : count;
        sent += (size_t)count;
    }
}

ssize_t channel_write(struct channel *channel, const struct iovec *parts, unsigned parts_count)
{
    assert(parts_count > 0);
    if (channel->tls != NULL)
        return write_records(channel, parts, parts_count);
    return writev(channel->fd, parts, (int)parts_count);
}

ssize_t channel_read(struct channel *channel, void *data, size_t size)
{
    size_t received = 0;

    assert(size > 0);
    if (channel->tls == NULL)
        return recv(channel->fd, data, size, 0);
    while (received < size) {
        int room = (int)(size - received);
        ssize_t count =
            as_socket(channel, SSL_read(channel->tls, (uint8_t *)data + received, room));
        if (count <= 0)
            return received > 0 ? (ssize_t)received : count;
        received += (size_t)count;
    }
    return (ssize_t)received;
}

void channel_close(struct channel *channel)
{
    assert(channel->fd >= 0);
    SSL_free(channel->tls);
    close(channel->fd);
    *channel = (struct channel){.fd = -1};
}
