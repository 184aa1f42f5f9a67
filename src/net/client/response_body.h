/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a response while it is received: kept up to a limit, counted beyond it. One owner,
 * one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct response_body {
    uint8_t *data; /* NULL: nothing is kept */
    size_t size;
    size_t capacity;
    uint64_t seen; /* bytes received, kept or not */
    bool is_cut;   /* more was received than is kept */
};

/* Keeps and allocates at most max bytes in all; out of memory cuts, too. False: more than
 * RESPONSE_DRAIN_BYTES_MAX were received, so that closing is cheaper than reading on. */
bool response_body_add(struct response_body *body, struct slice bytes, size_t max);
/* A no-op on a zeroed struct. */
void response_body_fini(struct response_body *body);
