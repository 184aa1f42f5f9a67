/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential back-off with jitter, as the Go collector's exporters do it. Pure. */
#include "src/pipeline/retry.h"

#include <assert.h>

#include "src/config/shared/exporter_queue_config.h"

void retry_init(struct retry *retry, uint64_t now_ns)
{
    *retry = (struct retry){.started_ns = now_ns};
}

bool retry_next(struct retry *retry, const struct retry_config *config, uint64_t now_ns,
                uint64_t hint_ns, double random, uint64_t *ret_delay_ns)
{
    assert(random >= 0 && random < 1);
    assert(now_ns >= retry->started_ns);
    if (retry->interval_ns == 0)
        retry->interval_ns = config->initial_interval_ns;
    double spread = 1 + config->randomization_factor * (2 * random - 1);
    uint64_t delay_ns = (uint64_t)((double)retry->interval_ns * spread);
    double grown = (double)retry->interval_ns * config->multiplier;
    /* Written so that NaN, 0 times infinity, ends at the maximum too. */
    retry->interval_ns =
        grown < (double)config->max_interval_ns ? (uint64_t)grown : config->max_interval_ns;
    if (delay_ns < hint_ns)
        delay_ns = hint_ns;
    uint64_t elapsed_ns = now_ns - retry->started_ns;
    uint64_t limit_ns = config->max_elapsed_time_ns > 0 ? config->max_elapsed_time_ns : UINT64_MAX;
    if (elapsed_ns > limit_ns || delay_ns > limit_ns - elapsed_ns)
        return false;
    *ret_delay_ns = delay_ns;
    return true;
}
