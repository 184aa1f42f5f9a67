/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of what the explore page keeps and answers. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

enum {
    /* Spans wait uncompressed until they are this many, or have this many bytes. */
    EXPLORE_OPEN_SPANS_MAX = 16384,
    EXPLORE_OPEN_BYTES_MAX = 1024 * 1024,
    EXPLORE_CONTEXTS_MAX = 4096, /* resources and scopes of one block */
    /* Of a resource with its scope: each block repeats them, and most of it is to be spans. */
    EXPLORE_CONTEXT_BYTES_MAX = EXPLORE_OPEN_BYTES_MAX / 4,
    EXPLORE_SPAN_BYTES_MAX = 4 * 1024 * 1024, /* larger ones are not kept */
    EXPLORE_STRING_BYTES_MAX = 512,           /* of a name in the index; the span has all of it */
    EXPLORE_PROFILES_BYTES_MAX = 1024 * 1024, /* of a window of profiles, before compression */
    EXPLORE_PROFILE_BYTES_MAX = 32 * 1024 * 1024, /* of a request; larger ones are not kept */
    EXPLORE_RING_BATCHES = 1024,                  /* per lane, until the worker takes them */
    EXPLORE_RAW_PART = 4,                         /* of max_bytes: what has not been indexed yet */
    EXPLORE_JOBS_MAX = 8,                         /* queries that wait */
    EXPLORE_QUERY_BYTES_MAX = 8192,               /* of path and query together */
    EXPLORE_RESPONSE_BYTES_MAX = 64 * 1024 * 1024,
    EXPLORE_WORKER_NICE = 10,
    EXPLORE_LIVE_MAX = 16, /* connections that wait for news */
};
#define EXPLORE_BYTES_MIN  (8 * MIB)
#define EXPLORE_QUERY_NS   ((uint64_t)500 * NS_PER_MS) /* of CPU */
#define EXPLORE_SEARCH_NS  ((uint64_t)75 * NS_PER_MS)  /* of CPU, where a part will do */
#define EXPLORE_SAVE_NS    ((uint64_t)5 * NS_PER_S)    /* of what is no block yet */
#define EXPLORE_END_NS     ((uint64_t)2 * NS_PER_S)    /* indexing what waits, at the end */
#define EXPLORE_WATCHED_NS ((uint64_t)60 * NS_PER_S)   /* after a request somebody watches */
