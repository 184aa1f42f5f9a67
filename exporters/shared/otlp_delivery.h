/* SPDX-License-Identifier: Apache-2.0 */
/* What both OTLP exporters make of a back-end that took the data: items that it did not want, and
 * answers that are no OTLP response. On the exporter's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/slice.h"

struct batch;
struct component;
struct outcome;
struct request_secrets;

struct otlp_delivery {
    struct component *exporter;
    counter *odd_answers;     /* NULL: not counted */
    const char *where_key;    /* how the log names … */
    const char *where;        /* … the back-end */
    const char *profiles_key; /* what rejected items of profiles are called there */
    bool has_told_odd_answer;
};

/* Says once, and counts each time, that the back-end takes data and answers nonsense. */
void otlp_delivery_odd(struct otlp_delivery *delivery, const char *reason);
/* Reads an OTLP response in protobuf, and logs what it says, without the secrets. False: it is
 * none. *ret_rejected: items of the batch that the back-end did not want. */
bool otlp_delivery_take(const struct otlp_delivery *delivery, struct slice response,
                        const struct request_secrets *secrets, const struct batch *batch,
                        uint64_t *ret_rejected);
/* Adds items that were not sent, because OTLP has no form for them. */
void otlp_delivery_left_out(struct outcome *outcome, uint64_t items);
