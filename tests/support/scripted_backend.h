/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 back-end on loopback that responds to its n-th request with the n-th step of a script
 * (the last step again and again). It lives on the loop of the lane under test, so that a test
 * turns both by hand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct lane;
struct scripted_backend;

struct backend_step {
    const char *response;  /* bytes as they are sent */
    size_t response_size;  /* 0: strlen(response) */
    size_t repeated;       /* response is sent once and then this often again */
    bool closes;           /* then the connection is closed */
    bool resets;           /* then the connection is reset */
    bool responds_at_head; /* before the body was read */
    bool closes_unheard;   /* the connection is closed when the request begins to come */
};

struct scripted_backend *scripted_backend_create(struct lane *lane,
                                                 const struct backend_step *steps, size_t count);
/* "http://127.0.0.1:port" */
const char *scripted_backend_url(const struct scripted_backend *backend);
/* Since the beginning. */
unsigned scripted_backend_requests(const struct scripted_backend *backend);
unsigned scripted_backend_connections(const struct scripted_backend *backend);
/* Head and body of the last whole request; the head with a terminator. */
const char *scripted_backend_head(const struct scripted_backend *backend);
const char *scripted_backend_body(const struct scripted_backend *backend, size_t *ret_size);
/* Closes every open connection, keeps listening. */
void scripted_backend_hang_up(struct scripted_backend *backend);
/* Turns the lane until everything is closed. */
void scripted_backend_destroy(struct scripted_backend *backend);
