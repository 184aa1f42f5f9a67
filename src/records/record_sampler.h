/* SPDX-License-Identifier: Apache-2.0 */
/* Probabilistic sampling of spans and log records, with the decisions of the Go collector's
 * probabilistic_sampler: spans of one trace are kept or dropped alike by any mix of both. One per
 * thread. */
#pragma once

#include "src/otlp/attributes/attribute_list.h"
#include "src/records/record_edit.h"

enum sampling_mode { SAMPLING_HASH_SEED, SAMPLING_EQUALIZING, SAMPLING_PROPORTIONAL };

/* What decided, for the metrics. */
enum sampling_policy {
    SAMPLED_BY_TRACE_ID_HASH,
    SAMPLED_BY_TRACE_ID,
    SAMPLED_BY_RANDOMNESS,
    SAMPLED_BY_PRIORITY,
    SAMPLED_BY_ATTRIBUTE,
    SAMPLED_WITHOUT_RANDOMNESS,
    SAMPLING_POLICIES,
};

struct record_sampler_settings {
    float percentage; /* from 0 on; more than 100 is 100 */
    enum sampling_mode mode;
    uint32_t hash_seed;
    int64_t precision; /* not 0 */
    bool fails_closed;
    /* Log records. */
    bool uses_trace_id;
    struct slice from_attribute; /* empty: none */
    struct slice priority;       /* the attribute with a percentage; empty: none */
};

struct record_sampler {
    struct record_sampler_settings settings; /* borrows the strings */
    bool is_never;
    double ratio;
    uint64_t threshold;                    /* hash_seed, equalizing */
    struct attribute_list list;            /* of the log record at hand */
    uint64_t counts[SAMPLING_POLICIES][2]; /* of the last request: dropped, sampled */
};

void record_sampler_init(struct record_sampler *sampler,
                         const struct record_sampler_settings *settings, struct budget *budget);
void record_sampler_fini(struct record_sampler *sampler);
/* As record_edit_run. */
struct batch *record_sampler_run(struct record_sampler *sampler, struct record_edit *edit,
                                 struct batch *batch);
