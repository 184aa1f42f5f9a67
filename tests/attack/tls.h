/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate for the daemon, and connections to it. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ssl_st;

/* Writes a key and a certificate signed by it to one file. Ends the process when it cannot. */
void tls_make_certificate(const char *path);
/* The client's side over a socket that does not block; the handshake is part of the first write. */
struct ssl_st *tls_open(int fd, bool is_http2);
/* As read(2) and send(2). awaits: writing can go on when the socket has been read. */
ssize_t tls_read(struct ssl_st *tls, void *data, size_t size);
ssize_t tls_write(struct ssl_st *tls, const void *data, size_t size, bool *ret_awaits);
/* NULL is ignored; the socket stays open. */
void tls_close(struct ssl_st *tls);
