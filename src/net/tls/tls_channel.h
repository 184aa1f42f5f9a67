/* SPDX-License-Identifier: Apache-2.0 */
/* One TLS connection, client or server, without its socket: turns ciphertext into plaintext and
 * back. The owner moves the bytes; nothing here blocks. On the lane of its context. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct error;
struct tls_channel;
struct tls_context;

enum {
    TLS_NAME_BYTES_MAX = 253, /* of a server's name, RFC 1035 §2.3.4 */
    /* Results of tls_channel_read that are not sizes. */
    TLS_CLOSED = -1, /* the peer has sent close_notify */
    TLS_FAILED = -2, /* tls_channel_error has the reason; the output may hold an alert */
};

/* server_name, for clients: the host name or address that the server's certificate must have; a
 * name is also sent as SNI. server_name_override overrides it. NULL for servers. A client's first
 * flight is in the output at once. NULL: out of memory, or the context's certificates cannot be
 * used. */
struct tls_channel *tls_channel_create(struct tls_context *context, const char *server_name,
                                       struct error *error);
/* NULL is a no-op. */
void tls_channel_destroy(struct tls_channel *channel);

/* Ciphertext from the socket, borrowed until tls_channel_keep. Read it out afterwards:
 *
 *     tls_channel_feed(channel, slice);
 *     while ((count = tls_channel_read(channel, room, sizeof(room))) > 0)
 *         take(room, count);
 *     tls_channel_keep(channel);
 *     … write tls_channel_output to the socket, whatever count is …
 */
void tls_channel_feed(struct tls_channel *channel, struct slice ciphertext);
/* Reads up to size bytes of plaintext. 0: needs more ciphertext, or the handshake is not complete,
 * or (tls_channel_has_input) the rest is for a later turn; TLS_CLOSED and TLS_FAILED are final. Any
 * call may add output. */
ptrdiff_t tls_channel_read(struct tls_channel *channel, void *room, size_t size);
/* Ends the turn. Copies fed bytes that are not read yet, so that their memory can be reused. False:
 * out of memory; close the connection. */
bool tls_channel_keep(struct tls_channel *channel);
/* How much memory that copy takes, until all of it is read; 0: there is none. */
size_t tls_channel_kept(const struct tls_channel *channel);
/* True while tls_channel_read may return plaintext without being fed. */
bool tls_channel_has_input(const struct tls_channel *channel);

/* Encrypts all of it to the output. Only once open. False: it has failed (tls_channel_error), or
 * tls_channel_end was called. */
bool tls_channel_write(struct tls_channel *channel, struct slice plaintext);
/* Ciphertext for the socket, valid until the next call of any other function. */
struct slice tls_channel_output(const struct tls_channel *channel);
/* The socket took the first size bytes of the output. */
void tls_channel_sent(struct tls_channel *channel, size_t size);
/* Adds close_notify to the output; nothing can be written after that. A no-op unless open, or when
 * called again. */
void tls_channel_end(struct tls_channel *channel);

/* The handshake is complete and the peer verified. */
bool tls_channel_is_open(const struct tls_channel *channel);
/* "h2", "http/1.1", or "" if none was agreed on. Once open. */
const char *tls_channel_protocol(const struct tls_channel *channel);
/* Why it failed, for logs and errors. */
const char *tls_channel_error(const struct tls_channel *channel);
/* Servers: it failed because the client sent an HTTP request in cleartext. */
bool tls_channel_met_http(const struct tls_channel *channel);
