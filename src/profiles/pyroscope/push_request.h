/* SPDX-License-Identifier: Apache-2.0 */
/* push.v1.PushRequest: a walk that does not decode it as a whole, and a reader of its JSON. Slices
 * point into the request. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/otlp/wire.h"
#include "src/profiles/pyroscope/series.h"

enum { PUSH_SERIES_MAX = 4096, PUSH_PROFILES_MAX = 4096 };

struct budget;
struct buffer;

struct push_figures {
    size_t series;
    size_t profiles;
};

struct push_series {
    struct series labels;
    bool has_too_many_labels;
    struct wire_reader samples;
};

/* Checks that the request is well-formed and counts what it holds. False: reason says why not. */
bool push_request_check(struct slice request, struct push_figures *ret_figures,
                        const char **ret_reason);

/* For a request that was checked; reader is over it. False: there are no more. */
bool push_next_series(struct wire_reader *reader, struct push_series *ret_series);
/* The raw_profile of the next sample, pprof or gzip. */
bool push_next_profile(struct push_series *series, struct slice *ret_profile);

enum push_json_verdict {
    PUSH_JSON_READ,
    PUSH_JSON_MALFORMED, /* the reason is valid until this thread's next call */
    PUSH_JSON_BUSY,      /* no memory; retry later */
    PUSH_JSON_TOO_LARGE, /* there never will be: see JSON_TOO_LARGE */
};

/* Converts a PushRequest from JSON, as Connect's clients may send it, to protobuf. Unknown keys are
 * skipped, as by the server. The caller owns *ret_request. */
enum push_json_verdict push_json_read(struct slice json, struct budget *budget,
                                      struct buffer **ret_request, const char **ret_reason);
