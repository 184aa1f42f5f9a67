/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is made of, for the files of src/net that build it. On its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "src/base/lane.h"
#include "src/net/server/http_server.h"
#include "src/net/socket/listener.h"

struct http_connection;

enum { HTTP_DATE_SIZE = 30 };

struct http_server {
    struct http_server_settings settings;
    struct listener_member member;
    struct http_connection *connections;
    struct http_server_figures figures;
    uint8_t *read_buffer;   /* LANE_READ_BYTES, shared by all connections, made with the first */
    uint8_t *cipher_buffer; /* TLS_READ_BYTES, likewise, with the first that has TLS */
    uint64_t handshakes_charge; /* of the budget, for connections that shake hands */
    time_t date_second;         /* which date_text shows */
    char date_text[HTTP_DATE_SIZE];
    bool is_stopping;
    bool is_done;
    struct lane_job done_job;
    void (*done)(void *arg);
    void *done_arg;
};

/* A connection is closed for what its peer did, and a stream reset with an error. */
void http_server_count_abort(struct http_server *server);
void http_server_count_reset(struct http_server *server);
/* The Date header's value for now, made at most once per second. */
const char *http_server_date(struct http_server *server);
/* A connection joins, and leaves when its socket is closed. */
void http_server_link(struct http_server *server, struct http_connection *connection);
void http_server_unlink(struct http_server *server, struct http_connection *connection);
