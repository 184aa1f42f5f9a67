/* SPDX-License-Identifier: Apache-2.0 */
/* Zipkin's spans to OTLP: bodies of POST /api/v2/spans (a JSON list of spans, or ListOfSpans of
 * zipkin.proto) and of /api/v1/spans (a JSON list, or a list of spans of zipkinCore.thrift in
 * TBinaryProtocol). The mapping is that of the Go collector's translator 0.155 with its feature
 * gates as they are by default, except that nothing is lost which it loses (docs/differences.md).
 * Pure function; any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/converted_spans.h"
#include "src/zipkin/zipkin_types.h"

struct budget;

/* *ret_batch is set with CONVERTED only, the reason otherwise. budget may be NULL. */
enum conversion zipkin_read(const struct zipkin_source *source, struct slice body,
                            struct budget *budget, struct converted_spans *ret_batch,
                            char reason[CONVERSION_REASON_BYTES_MAX]);
