/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of an accepted connection: stands between its socket and its protocol (http_connection.h),
 * and is not there in cleartext. On the server's lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

struct http_connection;

/* Waits for the client to shake hands. May close the connection. What it takes of memory is charged
 * to the server's budget: strangers get no more of it than that, however many they are. */
void http_secure_begin(struct http_connection *connection);
/* Ciphertext came. */
void http_secure_receive(struct http_connection *connection, const uint8_t *data, size_t size);
/* As http_connection_write. */
bool http_secure_write(struct http_connection *connection, uv_buf_t *parts, unsigned count);
/* Gives the socket what waits. False: some of it waits still, or the connection is closing. */
bool http_secure_flush(struct http_connection *connection);
/* Says close_notify; the same answer. */
bool http_secure_end(struct http_connection *connection);
/* Reading goes on: so does what was read, but not decrypted, before it paused. */
void http_secure_resume(struct http_connection *connection);
bool http_secure_has_input(const struct http_connection *connection);
/* The deadline has passed before a protocol was known. */
void http_secure_expire(struct http_connection *connection);
/* The socket is closed: gives everything back. Legal in cleartext. */
void http_secure_end_all(struct http_connection *connection);
/* The socket is about to close: close_notify goes out if it can. */
void http_secure_close(struct http_connection *connection);
