/* SPDX-License-Identifier: Apache-2.0 */
/* Jaeger's spans to OTLP: PostSpansRequest of collector.proto (jaeger.api_v2), a Batch of
 * jaeger.thrift in TBinaryProtocol, and the call emitBatch of agent.thrift. The mapping is that of
 * the Go collector's translator 0.155, but for what docs/differences.md lists. Pure function; any
 * thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/jaeger/jaeger_types.h"

struct budget;
struct buffer;

struct jaeger_batch {
    struct buffer *request; /* the caller's: an ExportTraceServiceRequest; empty without spans */
    uint64_t spans;
    uint64_t messages; /* in the request, as otlp_check counts them, or a few more */
};

/* *ret_batch is set with JAEGER_READ only, the reason otherwise. budget may be NULL. */
enum jaeger_verdict jaeger_read(enum jaeger_form form, struct slice body, struct budget *budget,
                                struct jaeger_batch *ret_batch,
                                char reason[JAEGER_REASON_BYTES_MAX]);
