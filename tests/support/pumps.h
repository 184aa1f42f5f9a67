/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of a harness that are threads, where the thread sanitizer looks on: each offers requests, a
 * burst at a time, and reads the metrics of all meanwhile; when all have their results the service
 * stops. The calling thread runs lane 0. */
#pragma once

#include <stddef.h>

#include "tests/support/harness.h"

enum { PUMPS = 2 };

/* Offers a round's requests to the receiver; runs on its lane. */
typedef void (*pump_fn)(struct component *receiver, unsigned lane, size_t round,
                        struct test_request *requests);

struct pump_plan {
    size_t rounds; /* on each lane */
    size_t burst;  /* rounds at a time */
    size_t round_requests;
    pump_fn offer;
};

/* Of a harness on PUMPS lanes, started. Returns when it has stopped in an orderly way; what it
 * offered is gone then. */
void pumps_run(struct harness *harness, const struct pump_plan *plan);
