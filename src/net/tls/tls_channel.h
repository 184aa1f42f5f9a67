/* SPDX-License-Identifier: Apache-2.0 */
/* One TLS connection without its socket: ciphertext goes in, plaintext comes out, and the other way
 * round. The owner moves the bytes, so nothing here blocks. Client and server; belongs to the lane
 * of its context. */
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
    /* Answers of tls_channel_read that are no sizes. */
    TLS_CLOSED = -1, /* the peer said that no more comes (close_notify) */
    TLS_FAILED = -2, /* tls_channel_error says why; an alert may wait in the output */
};

/* server_name, for clients: the host name or address that the server's certificate is checked for
 * and, when it is a name, that is sent as SNI; server_name_override wins over it. NULL for servers.
 * A client's first flight waits in the output at once. NULL: memory is short, or the certificates
 * that the context holds cannot be used. */
struct tls_channel *tls_channel_create(struct tls_context *context, const char *server_name,
                                       struct error *error);
/* NULL is tolerated. */
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
/* Plaintext into room, at most size bytes; 0: needs more ciphertext (or only shakes hands so far);
 * else TLS_CLOSED or TLS_FAILED, from then on for ever. Any call may add output. */
ptrdiff_t tls_channel_read(struct tls_channel *channel, void *room, size_t size);
/* Copies what was fed and is not read yet, so that its memory can be used anew. False: memory is
 * short, and the connection must be closed. */
bool tls_channel_keep(struct tls_channel *channel);
/* True while tls_channel_read may have plaintext without being fed. */
bool tls_channel_has_input(const struct tls_channel *channel);

/* Encrypts all of it into the output. Only once hands are shaken. False: it has failed
 * (tls_channel_error), or tls_channel_end was called. */
bool tls_channel_write(struct tls_channel *channel, struct slice plaintext);
/* Ciphertext for the socket, until the next call of any other function. */
struct slice tls_channel_output(const struct tls_channel *channel);
/* The socket took the first size bytes of the output. */
void tls_channel_sent(struct tls_channel *channel, size_t size);
/* Adds close_notify to the output; nothing can be written then. Does nothing when hands are not
 * shaken, or when it was called before. */
void tls_channel_end(struct tls_channel *channel);

/* Hands are shaken: the peer is who it must be, and data can flow. */
bool tls_channel_is_open(const struct tls_channel *channel);
/* "h2", "http/1.1", or "" when none was agreed on. Once open. */
const char *tls_channel_protocol(const struct tls_channel *channel);
/* Why it failed, in words for a log or an error text. */
const char *tls_channel_error(const struct tls_channel *channel);
/* Servers: it failed because the first bytes are an HTTP request in cleartext. */
bool tls_channel_met_http(const struct tls_channel *channel);
