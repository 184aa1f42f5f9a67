/* SPDX-License-Identifier: Apache-2.0 */
/* Valid requests as trees: every index is right, ids and keys come from a small world that traces
 * and profiles share, so that they find each other. One thread. */
#pragma once

#include "tests/attack/tree.h"
#include "tests/support/random_otlp.h"

enum { WORLD_TRACES = 12, WORLD_SPANS = 8 };

/* What requests of one run speak of. */
struct world {
    struct random_source random;
    uint64_t now_ns; /* their times are around it */
};

/* root is the message itself. The larger the scale (from 1), the more of everything. */
struct node *grow(struct world *world, struct pool *pool, enum form_request request,
                  unsigned scale);
/* A random word of the world: name of a service, a route, a function, an id in hexadecimal … */
struct slice grow_word(struct world *world, struct pool *pool);
/* A random key of attributes and labels; static lifetime. */
const char *grow_key(struct world *world);
