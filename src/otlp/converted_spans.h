/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of other formats (Zipkin's, Jaeger's) make of a body, and how it went. Plain
 * data; any thread. */
#pragma once

#include <stdint.h>

struct buffer;

enum conversion {
    CONVERTED,
    CONVERSION_MALFORMED, /* the reason has the byte, what was found and what was expected */
    CONVERSION_BUSY,      /* no memory now; a retry may succeed */
    CONVERSION_OVERSIZED, /* more than the whole budget, or than OTLP's lengths can say */
};

enum { CONVERSION_REASON_BYTES_MAX = 512 };

struct converted_spans {
    struct buffer *request; /* the caller's: an ExportTraceServiceRequest; empty without spans */
    uint64_t spans;
    uint64_t messages; /* in the request, as otlp_check counts them, or a few more */
};
