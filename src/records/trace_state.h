/* SPDX-License-Identifier: Apache-2.0 */
/* Consistent probability sampling: thresholds, randomness, and the W3C tracestate that carries them
 * (opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling, W3C Trace Context 3.3).
 * All is read, rounded and written bit for bit as the Go collector does. Pure functions; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

/* Both have 56 bits. An item is sampled when its randomness is at least the threshold. */
enum { SAMPLING_DIGITS = 14 };
#define SAMPLING_NEVER          ((uint64_t)1 << 56)  /* as threshold */
#define SAMPLING_ALWAYS         ((uint64_t)0)        /* the same */
#define SAMPLING_MOST_RANDOM    (SAMPLING_NEVER - 1) /* as randomness: sampled unless never */
#define SAMPLING_RATIO_MIN      0x1p-56
#define TRACE_STATE_BYTES_MAX   1024 /* what is read; longer ones are errors */
#define TRACE_STATE_WRITTEN_MAX (TRACE_STATE_BYTES_MAX + 64)

/* precision: hexadecimal digits from 1 on, 14 at most, more when the ratio is near 0 or 1. False:
 * ratio is not from SAMPLING_RATIO_MIN to 1. */
bool sampling_threshold_of(double ratio, int64_t precision, uint64_t *ret_threshold);
double sampling_ratio_of(uint64_t threshold);
/* A threshold's 1 to 14 digits, trailing zeros omitted. */
bool sampling_read_threshold(struct slice text, uint64_t *ret_threshold);
/* Of the threshold below SAMPLING_NEVER. */
struct slice sampling_write_threshold(uint64_t threshold, char room[SAMPLING_DIGITS]);
/* Exactly 14 digits. */
bool sampling_read_randomness(struct slice text, uint64_t *ret_randomness);
struct slice sampling_write_randomness(uint64_t randomness, char room[SAMPLING_DIGITS]);

enum { TRACE_STATE_MEMBERS_MAX = 32, TRACE_STATE_PAIRS_MAX = 128 };

struct trace_state_pair {
    struct slice key;
    struct slice value;
};

struct trace_state {
    bool has_randomness; /* ot=rv */
    bool has_threshold;  /* ot=th */
    uint64_t randomness;
    uint64_t threshold;
    struct slice randomness_text; /* as they were read, and will be written */
    struct slice threshold_text;
    size_t pairs_count; /* further ones of ot */
    struct trace_state_pair pairs[TRACE_STATE_PAIRS_MAX];
    size_t members_count; /* of other vendors */
    struct trace_state_pair members[TRACE_STATE_MEMBERS_MAX];
};

/* False: it has an error; then the state is what could be read nevertheless. Borrows text. */
bool trace_state_read(struct slice text, struct trace_state *ret_state);
/* ot first, in it rv and th. */
struct slice trace_state_write(const struct trace_state *state, char room[TRACE_STATE_WRITTEN_MAX]);
