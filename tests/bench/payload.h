/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP trace requests as an instrumented HTTP service would send them: one resource, one scope,
 * spans with semantic-convention attributes. Every span has exactly the wanted size on the wire,
 * and its id can be changed in place. */
#pragma once

#include "tests/bench/support.h"

enum { PAYLOAD_SPAN_BYTES_MIN = 200, PAYLOAD_SPAN_BYTES_MAX = 16000, PAYLOAD_SPANS_MAX = 100000 };

struct payload {
    struct byte_buffer body;
    uint32_t *id_offsets; /* of each span's id in body */
    uint32_t spans;
};

/* Spans numbered from first; each, with its tag and length, takes span_bytes. */
struct payload payload_make(uint32_t spans, uint32_t span_bytes, uint64_t first);
void payload_renumber(struct payload *payload, uint64_t first);
/* Sum of span_id_weight over the spans numbered from first: what a sink must find. */
uint64_t payload_weight(uint32_t spans, uint64_t first);
/* One gzip member, made as SDKs do: zlib at level 6. */
struct byte_buffer payload_gzip(const struct payload *payload);
void payload_free(struct payload *payload);
