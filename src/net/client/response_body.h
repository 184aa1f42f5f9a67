/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a response while it is received: kept up to a limit, counted beyond it. One owner,
 * one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;

/* What is kept of a response, in pieces of more than RESPONSE_FREE_BYTES, is charged. */
struct response_charge {
    struct budget *budget; /* NULL: nothing is charged */
    uint64_t bytes;
};

/* Before a piece grows from `before` bytes; false: there is no room for the growth. */
bool response_charge_growth(struct response_charge *charge, size_t before, size_t bytes)
    __attribute__((warn_unused_result));
/* Everything is freed. */
void response_charge_return(struct response_charge *charge);

/* Takes the bytes of a body as they come, of any number, instead of their being kept. False: it
 * wants no more of them. */
struct response_sink {
    bool (*take)(struct slice bytes, void *arg); /* NULL: there is none */
    void *arg;
};

struct response_body {
    uint8_t *data; /* NULL: nothing is kept */
    size_t size;
    size_t capacity;
    uint64_t seen; /* bytes received, kept or not */
    bool is_cut;   /* more was received than is kept, or than the sink took */
    struct response_sink sink;
    struct response_charge charge;
};

/* Keeps and allocates at most max bytes in all; out of memory or budget cuts, too. False: more than
 * RESPONSE_DRAIN_BYTES_MAX were received, so that closing is cheaper than reading on; or the sink
 * wants no more. */
bool response_body_add(struct response_body *body, struct slice bytes, size_t max);
/* A no-op on a zeroed struct. The budget stays. */
void response_body_fini(struct response_body *body);
