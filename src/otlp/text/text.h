/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry as readable text, in the forms of the Go collector's debug exporter. Input has passed
 * otlp_check; output is bounded. Plain values, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/otlp/text/text_buffer.h"

enum {
    TEXT_SPANS_MAX = 20,          /* of a request of profiles */
    TEXT_SPAN_ROWS_MAX = 1 << 18, /* samples that are read for them */
};

struct otlp_text_figures {
    uint64_t resources;
    uint64_t metrics; /* METRICS only */
};
struct otlp_text_figures otlp_text_count(enum signal_kind signal, struct slice request);
/* Writes about one line per item, or every field of it. Profiles are normalized
 * (profile_normalize). */
void otlp_text_write(struct text *text, enum signal_kind signal, struct slice request,
                     bool is_detailed);
/* Writes the spans that samples of a request of profiles are linked to, the busiest first, each
 * with the functions_max functions with the largest self value. Nothing when no sample has a link.
 */
void otlp_text_write_spans(struct text *text, struct slice request, size_t functions_max);
