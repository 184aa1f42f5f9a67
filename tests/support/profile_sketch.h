/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles requests from a few words, for tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { SKETCH_VALUES_MAX = 4, SKETCH_ATTRIBUTES_MAX = 16 };

struct sketch_sample {
    const char *stack; /* "leaf;caller;main": one location and function each; NULL: none */
    size_t values_count;
    int64_t values[SKETCH_VALUES_MAX];
    size_t timestamps_count;                       /* one nanosecond apart */
    uint64_t time_ns;                              /* the first one; 0: 1 */
    const char *attributes[SKETCH_ATTRIBUTES_MAX]; /* "key=text" or "key=#5", up to NULL */
    const char *trace_id;                          /* of the link: 16 bytes; NULL: none */
    const char *span_id;                           /* 8 bytes */
};

struct sketch_profile {
    const char *type[2]; /* and unit */
    const char *period_type[2];
    int64_t period;
    uint64_t time_ns;
    uint64_t duration_ns;
    size_t samples_count;
    const struct sketch_sample *samples;
    const char *attributes[4]; /* as those of samples */
};

struct sketch {
    const char *resource[SKETCH_ATTRIBUTES_MAX]; /* as attributes */
    size_t profiles_count;
    const struct sketch_profile *profiles;
};

/* The caller frees its data with mem_free. Checked by protobuf-c. */
struct slice sketch_request(const struct sketch *sketch);
