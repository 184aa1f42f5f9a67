/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as Zipkin and Jaeger write them, where that is not protobuf: JSON and Thrift. A table says
 * what a message has; it is written with random content, and spoilt on the way. One thread. */
#pragma once

#include "tests/attack/grow.h"

enum spans_encoding { SPANS_JSON, SPANS_BINARY, SPANS_COMPACT };

enum spans_message {
    SPANS_ZIPKIN_V1,        /* a list of spans, as JSON has them */
    SPANS_ZIPKIN_V1_THRIFT, /* the same of zipkinCore.thrift */
    SPANS_ZIPKIN_V2,        /* a list of spans; JSON only */
    SPANS_JAEGER_BATCH,     /* Batch of jaeger.thrift */
    SPANS_JAEGER_CALL,      /* the call emitBatch of agent.thrift */
};

struct spans_maker {
    struct world *world;
    struct pool *pool;
    bool is_valid; /* nothing is spoilt */
    size_t size_max;
};

/* Appends to out. The larger the scale (from 1), the more spans. */
void spans_write(struct spans_maker *maker, enum spans_message message,
                 enum spans_encoding encoding, unsigned scale, struct bytes_out *out);
