/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the join that have no key of their own; the others are in src/base/limits.h. */
#pragma once

#include "src/base/clock.h"

enum {
    JOIN_ANCESTORS_MAX = 64, /* steps from a span up to its local root */
    JOIN_ATTRIBUTES_MAX = 16,
    JOIN_BUCKETS_MAX = 32,
    JOIN_VALUE_BYTES_MAX = 1024,
    JOIN_VALUES_MAX = 100000, /* distinct values of an attribute */
    JOIN_SERVICES_MAX = 4096,
    JOIN_PROCESSES_MAX = 4096,        /* per lane */
    JOIN_SINGLE_TRACES_MAX = 2048,    /* names of processes that may have one trace */
    JOIN_PENDING_SERVICES_MAX = 2048, /* names that have sent profiles but no spans */
    JOIN_PENDING_PROCESSES_MAX = 64,  /* of a held request */
    JOIN_PENDING_SHARE = 4,           /* such requests may take a quarter of hold_bytes */
    JOIN_SEEN_IDS_MAX = 1 << 16,      /* ids that profiles have named */
    JOIN_COSTS_SHARE = 4,             /* traces whose samples are counted: of index::entries */
    JOIN_LINKS_MAX = 1 << 20,         /* spans of a request beyond which no parents are looked up */
};
/* Work in one turn of the loop before others have theirs. */
enum {
    JOIN_TURN_REQUESTS_MAX = 128,
    JOIN_TURN_BYTES_MAX = 1 << 20,
    JOIN_TURN_LOOKS_MAX = 16384,
    JOIN_TURN_SPANS_MAX = 16384, /* read and marked, of a large request */
};
/* Copies of samples that a request gets (count_for), and their bytes. */
enum { JOIN_COPIES_MAX = 1 << 18, JOIN_COPIES_BYTES_MAX = 16 << 20 };
/* What its Resources get, of services and traces: so much, and so much for each byte. A Resource of
 * twenty bytes may get four thousand. */
enum { JOIN_RESOURCES_BYTES_FREE = 1 << 20, JOIN_RESOURCES_GROWTH_MAX = 4 };
/* Profiles of a request that get URLs: a Profile of two bytes gets about a hundred with its URL.
 * And the bytes of all URLs. */
enum { JOIN_URLS_MAX = 1 << 16, JOIN_URLS_BYTES_MAX = 8 << 20 };
/* For a look-up by time: spans to choose from, spans looked at, time slots looked in. */
enum { JOIN_CANDIDATES_MAX = 32, JOIN_LOOKS_MAX = 2048, JOIN_SLOTS_MAX = 128 };
/* Spans and slots that all look-ups by time of a request look at: about 15 ms. A thousand samples
 * of a process with a thousand spans per second take two thirds of them. */
enum { JOIN_REQUEST_LOOKS_MAX = 3 << 20 };
/* How long all spans are indexed after the first linked profile, and how long profiles wait for the
 * first spans of a process: a little more than the longest time between two profiles of an SDK. */
#define JOIN_WARM_UP_NS ((uint64_t)75 * NS_PER_S)
/* How often held profiles are checked, and how soon again when there is more to do at once. */
#define JOIN_RECHECK_NS ((uint64_t)250 * NS_PER_MS)
#define JOIN_TURN_NS    ((uint64_t)NS_PER_MS)
/* Work of one turn, with that of exporters without a queue, after which no more are released. */
#define JOIN_TURN_WORK_NS ((uint64_t)5 * NS_PER_MS)
/* After this time the count of distinct values starts again from zero. */
#define JOIN_EPOCH_NS ((uint64_t)3600 * NS_PER_S)
/* The time that a URL shows before and after a span or a profile. */
#define JOIN_VIEW_NS ((uint64_t)30 * NS_PER_S)
/* By how much the clocks of span producers and profilers may differ. */
#define JOIN_SKEW_NS ((uint64_t)NS_PER_S)
