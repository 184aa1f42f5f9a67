/* SPDX-License-Identifier: Apache-2.0 */
/* How many spans a sampled one stands for: the threshold `th` of the member `ot` in its tracestate
 * (opentelemetry.io/docs/specs/otel/trace/tracestate-handling, W3C Trace Context section 3.3), with
 * the Go collector's limits. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

/* It stands for whole + rest / divisor spans. */
struct adjusted_count {
    bool is_extrapolated; /* it has a threshold */
    uint64_t whole;
    uint64_t rest;
    uint64_t divisor;
};

/* Without a valid threshold: 1. */
struct adjusted_count adjusted_count_read(struct slice trace_state);
/* Rounds up with the probability of the rest, so that sums are right on average. */
uint64_t adjusted_count_draw(const struct adjusted_count *adjusted);
