/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the resources and scopes of a batch of traces that otlp_check has passed. Where an edit has
 * cut the batch into parts, a resource or scope is copied into one piece first, which costs at most
 * the bytes of the batch. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;
struct batch;

/* What is called for each ResourceSpans message, in this order. */
struct span_walker {
    void (*open)(void *arg);
    /* Content of a Resource: once, not at all, or several times, which together are one. */
    void (*resource)(void *arg, struct slice content);
    /* False: its scopes are not wanted. */
    bool (*begin)(void *arg);
    /* Content of a ScopeSpans message. */
    void (*scope)(void *arg, struct slice content);
    /* After its scopes, and only if something of it was copied: forgets what lies in the copies. */
    void (*forget)(void *arg);
    void *arg;
    struct arena *copies;
};

/* Returns how often a resource or a scope was left out for want of memory. */
uint64_t span_walk(const struct span_walker *walker, const struct batch *batch);
