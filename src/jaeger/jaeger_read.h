/* SPDX-License-Identifier: Apache-2.0 */
/* Jaeger's spans to OTLP: PostSpansRequest of collector.proto (jaeger.api_v2), a Batch of
 * jaeger.thrift in TBinaryProtocol, and the call emitBatch of agent.thrift. The mapping is that of
 * the Go collector's translator 0.155, but for what docs/differences.md lists. Pure function; any
 * thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/jaeger/jaeger_types.h"
#include "src/otlp/converted_spans.h"

struct budget;

/* *ret_batch is set with CONVERTED only, the reason otherwise. budget may be NULL. */
enum conversion jaeger_read(enum jaeger_form form, struct slice body, struct budget *budget,
                            struct converted_spans *ret_batch,
                            char reason[CONVERSION_REASON_BYTES_MAX]);
