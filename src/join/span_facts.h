/* SPDX-License-Identifier: Apache-2.0 */
/* What the join remembers of a span. Plain data; any thread. */
#pragma once

#include <stdint.h>

/* Kinds of spans that have a remote caller, by OTLP's numbers. */
enum { SPAN_KIND_SERVER = 2, SPAN_KIND_CONSUMER = 5 };

enum span_flag {
    SPAN_KIND_MASK = 7,
    SPAN_IS_ERROR = 1 << 3,
    SPAN_IS_OK = 1 << 4,
    SPAN_TELLS_ROOT = 1 << 5,    /* its SDK says whether the parent is remote */
    SPAN_IS_LOCAL_ROOT = 1 << 6, /* no parent, or one in another process */
    SPAN_CLASS_SHIFT = 8,        /* first digit of an HTTP status; 0: none */
    SPAN_CLASS_MASK = 7 << SPAN_CLASS_SHIFT,
};

/* Ids have the bytes as they are in memory. */
struct span_facts {
    uint64_t trace[2];
    uint64_t span;
    uint64_t parent; /* 0: none */
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t resource; /* a hash: equal for spans of one process */
    uint16_t flags;    /* enum span_flag */
    uint16_t thread;   /* a hash; 0: unknown */
    uint32_t strings;  /* their place in the shard's string ring */
    unsigned shard;    /* set by span_index_find */
};
