/* SPDX-License-Identifier: Apache-2.0 */
/* The generator's byte stream to what it measures: a non-blocking socket on loopback, bare or under
 * TLS. Both behave as a socket does: short counts, and EAGAIN. */
#pragma once

#include "tests/bench/support.h"

#include <sys/types.h>
#include <sys/uio.h>

struct channel {
    int fd;
    struct ssl_st *tls; /* NULL: cleartext */
};

/* With a name for ALPN it is TLS, and the handshake is done on return; certificates are not
 * checked, which is the client's work alone. */
struct channel channel_open(uint16_t port, const char *alpn);
ssize_t channel_write(struct channel *channel, const struct iovec *parts, unsigned parts_count);
/* Fills data as far as bytes are there: after a short count there are none. 0: the peer ended. */
ssize_t channel_read(struct channel *channel, void *data, size_t size);
void channel_close(struct channel *channel);
