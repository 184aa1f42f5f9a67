/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the responses of back-ends: google.rpc.Status and the partial_success of
 * Export…ServiceResponse, without allocating. Pure functions; any thread. */
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

/* For any signal; all zero when the field is absent. False when body is malformed. */
bool otlp_response_partial_success(struct slice body, struct otlp_partial_success *ret_partial);
/* False when body is not a google.rpc.Status. */
bool otlp_response_status(struct slice body, struct otlp_status *ret_status);
/* Writes the types of the details, cut to fit; "[]" without any. */
void otlp_status_details_text(const struct otlp_status *status, char *text, size_t size);
/* Copies the encoded fields of the details into room. Returns their size; 0 without any, when body
 * is malformed, and when they do not fit. */
size_t otlp_status_details(struct slice body, uint8_t *room, size_t room_size);
/* Reads the delay of a RetryInfo among the details of a google.rpc.Status; it may be 0. False when
 * there is none, or body is malformed. */
bool otlp_response_retry_delay(struct slice body, uint64_t *ret_delay_ns);
