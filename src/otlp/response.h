/* SPDX-License-Identifier: Apache-2.0 */
/* What back-ends answer: google.rpc.Status and the partial_success of Export…ServiceResponse, read
 * from the bytes without allocating. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct otlp_partial_success {
    int64_t rejected;     /* spans, data points, log records or samples */
    struct slice message; /* inside the body */
};

struct otlp_status {
    int32_t code;
    struct slice message; /* inside the body */
    struct slice body;
};

/* Of the response of any signal; all zero when the field is absent. False when body is malformed.
 */
bool otlp_response_partial_success(struct slice body, struct otlp_partial_success *ret_partial);
/* False when body is no google.rpc.Status. */
bool otlp_response_status(struct slice body, struct otlp_status *ret_status);
/* The details as text, "[]" without any: the type of each, cut to fit. */
void otlp_status_details_text(const struct otlp_status *status, char *text, size_t size);
/* Puts the fields of the details, as they are encoded, one behind the other into room. Returns
 * their size; 0 without any, when body is malformed, and when they do not fit. */
size_t otlp_status_details(struct slice body, uint8_t *room, size_t room_size);
/* RetryInfo among the details of a google.rpc.Status. False when there is none, or body is
 * malformed; its delay may be 0. */
bool otlp_response_retry_delay(struct slice body, uint64_t *ret_delay_ns);
