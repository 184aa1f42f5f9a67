/* SPDX-License-Identifier: Apache-2.0 */
/* Checks series and profiles as a Pyroscope server does, so that clients get its refusals from the
 * receiver. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct error;
struct pprof;
struct series;

/* As the server's own configuration has them; 0: no limit. */
struct upload_limits {
    uint64_t label_names; /* of a series, those that its samples add included */
    uint64_t label_name_bytes;
    uint64_t label_value_bytes;
    uint64_t sample_labels;
    uint64_t older_than_ns; /* before now */
    uint64_t newer_than_ns; /* after now */
};

/* In addition to series_check: what depends on limits. */
bool upload_check_series(const struct series *series, const struct upload_limits *limits,
                         struct error *error);
/* A time of 0 or below means now. */
bool upload_check_time(int64_t time_ns, const struct upload_limits *limits, uint64_t now_ns,
                       struct error *error);
/* Checks a profile of that series. */
bool upload_check_profile(const struct pprof *pprof, const struct series *series,
                          const struct upload_limits *limits, struct error *error);
