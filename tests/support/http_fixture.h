/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server on a lane that the test turns by hand. Its handler does what the path says:
 * /echo responds with the body; /early responds without reading it; /hold keeps the request before
 * the body, /keep after it, until http_fixture_release, /ask by http_request_hold; /peek looks at
 * four bytes and refuses "stop"; /slow takes more time of the clock than a turn's requests may;
 * /large responds with LARGE_RESPONSE_BYTES; /lent does so without a copy; /stream begins a stream
 * and keeps it in `held`; /bye closes. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/budget.h"
#include "src/net/server/http_server.h"

enum { FIXTURE_BODY_MAX = 200 * 1024, LARGE_RESPONSE_BYTES = 8 << 20 };

struct lane;
struct loopback;

struct http_fixture {
    struct lane *lane;
    struct budget budget;
    struct http_server *server;
    const char *address;
    struct http_request *held;
    struct http_server *asks; /* of /ask, until its release */
    bool has_asked;
    unsigned requests;
    unsigned bodies;
    unsigned failures;
    unsigned ends;
    unsigned releases; /* of bodies of /lent */
    unsigned stops;
    bool is_stopping;
    bool has_stopped;
    enum http_failure failure; /* the last one */
};

/* Clock: the fake one when wanted by the test, started before. */
struct http_fixture *http_fixture_create(uint64_t budget_bytes);
/* The same with settings changed by adjust; NULL: none. */
struct http_fixture *http_fixture_create_with(uint64_t budget_bytes,
                                              void (*adjust)(struct http_server_settings *));
/* Stops, turns until done, destroys; the budget must be whole again and every request ended. */
void http_fixture_destroy(struct http_fixture *fixture);
struct loopback *http_fixture_connect(struct http_fixture *fixture);
/* Goes on with the request that /hold (reads its body) or /keep (responds) has kept. */
void http_fixture_release(struct http_fixture *fixture);
/* Turns the lane until so many requests have ended, or fails the test. */
void http_fixture_expect_ends(struct http_fixture *fixture, unsigned ends);
/* Turns the lane until so many requests have begun, or fails the test. */
void http_fixture_expect_requests(struct http_fixture *fixture, unsigned requests);
/* Turns the lane until that many connections are open, or fails the test. */
void http_fixture_expect_connections(struct http_fixture *fixture, uint64_t connections);
/* Begins to stop; has_stopped follows. */
void http_fixture_stop(struct http_fixture *fixture);
