/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as Zipkin's API v2 takes them (POST /api/v2/spans): a JSON list, or the protobuf message
 * ListOfSpans of zipkin.proto. The mapping is that of the Go collector's translator (zipkinv2, from
 * traces) with its feature gates as they are by default. Pure function; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;

enum zipkin_format { ZIPKIN_JSON, ZIPKIN_PROTO };

enum zipkin_result {
    ZIPKIN_WRITTEN,
    ZIPKIN_NO_MEMORY, /* there may be memory later */
    ZIPKIN_TOO_LARGE, /* the body would be larger than bytes_max, or need that much memory more */
};

struct zipkin_body {
    struct buffer *text; /* the caller's; NULL: no span is left */
    uint64_t written;    /* spans in it */
    uint64_t invalid;    /* spans without a trace id or a span id, which are left out */
};

/* request, encoded traces, has passed otlp_check. Zipkin has no resources: each span carries the
 * attributes of its resource and scope, so the body may be many times larger than the request.
 * *ret_body is set with ZIPKIN_WRITTEN only. budget may be NULL. */
enum zipkin_result zipkin_write(struct slice request, enum zipkin_format format, size_t bytes_max,
                                struct budget *budget, struct zipkin_body *ret_body);
