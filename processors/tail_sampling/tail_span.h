/* SPDX-License-Identifier: Apache-2.0 */
/* What policies need of spans and resources, read once, when they arrive. The bytes have passed
 * otlp_check. Pure functions over constant policies; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "processors/tail_sampling/tail_policies.h"
#include "src/base/slice.h"

struct tail_span {
    uint8_t trace_id[TAIL_TRACE_ID_BYTES]; /* zeros: none */
    bool is_root;                          /* its parent is empty */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t bytes; /* of its content as the Go collector writes it, which adds empty fields */
};

/* content: of an encoded Span. Adds its bits to bits. */
void tail_span_read(const struct tail_policies *policies, struct slice content,
                    struct tail_span *ret_span, uint64_t *bits);
/* Only the trace id, zeros if it has none. */
void tail_span_read_id(struct slice content, uint8_t ret_id[TAIL_TRACE_ID_BYTES]);

/* The attributes of a Resource, whose bytes may come in several pieces, as protobuf allows. */
struct tail_resource {
    uint64_t seen[TAIL_KEY_WORDS];
};
void tail_resource_begin(struct tail_resource *resource);
/* content: of an encoded Resource. Adds its bits to bits. */
void tail_resource_read(const struct tail_policies *policies, struct tail_resource *resource,
                        struct slice content, uint64_t *bits);
