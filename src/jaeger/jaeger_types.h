/* SPDX-License-Identifier: Apache-2.0 */
/* What to read. Plain data; any thread. */
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
