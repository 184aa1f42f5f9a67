/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the signals. */
#include "src/base/signal_kind.h"

#include <assert.h>

static const char *const names[SIGNAL_KINDS] = {
    [TRACES] = "traces", [METRICS] = "metrics", [LOGS] = "logs", [PROFILES] = "profiles"};
static const char *const items[SIGNAL_KINDS] = {[TRACES] = "spans",
                                                [METRICS] = "metric_points",
                                                [LOGS] = "log_records",
                                                [PROFILES] = "profile_samples"};

const char *signal_name(enum signal_kind signal)
{
    assert(signal < SIGNAL_KINDS);
    return names[signal];
}

const char *signal_items(enum signal_kind signal)
{
    assert(signal < SIGNAL_KINDS);
    return items[signal];
}
