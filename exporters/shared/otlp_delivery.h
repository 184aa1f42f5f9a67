/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of OTLP back-ends that accepted the data: partial success, and bodies that are not an
 * OTLP response. On the exporter's lane. */
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
    counter *odd_responses;   /* NULL: not counted */
    const char *where_key;    /* how the log names the back-end: "url" … */
    const char *where;        /* … and its address */
    const char *profiles_key; /* the log's key for rejected items of profiles */
    bool has_logged_odd;
};

/* Counts a response that is not OTLP, and logs the first one. */
void otlp_delivery_odd(struct otlp_delivery *delivery, const char *reason);
/* Reads an OTLP response in protobuf and logs a partial success, without the secrets. False: it is
 * not one. *ret_rejected: items of the batch that the back-end rejected. */
bool otlp_delivery_take(const struct otlp_delivery *delivery, struct slice response,
                        const struct request_secrets *secrets, const struct batch *batch,
                        uint64_t *ret_rejected);
/* Adds items that were not sent because OTLP cannot express them. */
void otlp_delivery_left_out(struct outcome *outcome, uint64_t items);
