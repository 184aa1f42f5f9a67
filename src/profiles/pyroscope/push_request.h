/* SPDX-License-Identifier: Apache-2.0 */
/* push.v1.PushRequest, walked without being decoded as a whole. Slices point into the request. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"
#include "src/profiles/pyroscope/series.h"

enum { PUSH_SERIES_MAX = 4096, PUSH_PROFILES_MAX = 4096 };

struct push_figures {
    size_t series;
    size_t profiles;
};

struct push_series {
    struct series labels;
    bool has_too_many_labels;
    struct wire_reader samples;
};

/* Whether it is well-formed, and how much it holds. False: reason says why not. */
bool push_request_check(struct slice request, struct push_figures *ret_figures,
                        const char **ret_reason);

/* For a request that passed. reader is over the request. False: there are no more. */
bool push_next_series(struct wire_reader *reader, struct push_series *ret_series);
/* The raw_profile of the next sample, pprof or gzip. */
bool push_next_profile(struct push_series *series, struct slice *ret_profile);
