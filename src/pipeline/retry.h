/* SPDX-License-Identifier: Apache-2.0 */
/* Back-off of one request, by retry_on_failure. Plain value of its owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct retry_config;

struct retry {
    uint64_t started_ns;  /* first attempt */
    uint64_t interval_ns; /* before jitter; 0: no attempt has failed yet */
};

/* now_ns, here and below, is on clock_now_ns's scale. */
void retry_init(struct retry *retry, uint64_t now_ns);
/* How long to wait before the next attempt: interval × uniform(1 ± factor), raised to the server's
 * hint. False when that would end after max_elapsed_time: give up now. random is uniform in [0, 1).
 */
bool retry_next(struct retry *retry, const struct retry_config *config, uint64_t now_ns,
                uint64_t hint_ns, double random, uint64_t *ret_delay_ns);
