/* SPDX-License-Identifier: Apache-2.0 */
/* What to read, and how it went. Plain data; any thread. */
#pragma once

/* A PostSpansRequest; a Batch in Thrift's binary protocol; the call emitBatch of the Agent's
 * service in either protocol, as in a packet of UDP. */
enum jaeger_form {
    JAEGER_PROTO,
    JAEGER_THRIFT,
    JAEGER_BINARY_CALL,
    JAEGER_COMPACT_CALL,
    JAEGER_FORMS,
};

enum jaeger_verdict {
    JAEGER_READ,
    JAEGER_MALFORMED, /* the reason has the byte, what was found and what was expected */
    JAEGER_BUSY,      /* no memory now; a retry may succeed */
    JAEGER_OVERSIZED, /* more than the whole budget, or than OTLP's lengths can say */
};

enum { JAEGER_REASON_BYTES_MAX = 512 };
