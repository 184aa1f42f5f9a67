/* SPDX-License-Identifier: Apache-2.0 */
/* A strict stand-in for Pyroscope's Push API, /ingest and OTLP endpoint on loopback: decodes each
 * request with protobuf-c, judges labels and profiles by the real server's rules and default
 * limits, and keeps what it stored; of OTLP a line for each Profile that the server can name. It
 * lives on the loop of the lane under test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/slice.h"

struct lane;

enum { PYROSCOPE_STORED_MAX = 256, PYROSCOPE_STEPS_MAX = 64 };

/* One profile that was stored. Strings are allocated. */
struct pyroscope_stored {
    char *labels;  /* "{a="b", …}", sorted */
    char *profile; /* as tests/unit/profiles/support.h describes it */
    int64_t time_ns;
    size_t samples;
    int64_t sum; /* of the first values */
    size_t bytes;
};

struct pyroscope_server {
    struct http_server *server;
    struct lane *lane;
    struct budget budget;
    char url[64];
    unsigned steps[PYROSCOPE_STEPS_MAX]; /* status of the n-th request; 0: by the rules */
    const char *step_message;            /* what those say; NULL: "scripted" */
    const char *step_retry_after;        /* their Retry-After; NULL: none */
    unsigned requests;
    unsigned ends;
    char last_error[512]; /* of the last request that was refused on its merits */
    char path[128];       /* of the last request */
    char query[8192];
    char type_config[1024]; /* of the last form: its part sample_type_config */
    char content_type[64];
    char authorization[256];
    char tenant[64];
    struct pyroscope_stored stored[PYROSCOPE_STORED_MAX];
    size_t stored_count;
    bool has_stopped;
};

/* For what shares its rules: judges a profile and its labels and stores them, or stores a string
 * under labels. */
struct pyroscope_label {
    const char *name;
    const char *value;
};
bool pyroscope_server_take(struct pyroscope_server *server, const struct pyroscope_label *labels,
                           size_t count, struct slice profile);
void pyroscope_server_store_text(struct pyroscope_server *server,
                                 const struct pyroscope_label *labels, size_t count,
                                 const char *text);

struct pyroscope_server *pyroscope_server_create(struct lane *lane);
/* Turns the lane until everything is closed. */
void pyroscope_server_destroy(struct pyroscope_server *server);
