/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the join that have no key of their own; the others stand in src/base/limits.h. */
#pragma once

#include "src/base/clock.h"

/* Steps from a span up to its local root; attributes that samples get, and what each may
 * say; services and processes that are known by name; ids that profiles mentioned */
enum {
    JOIN_ANCESTORS_MAX = 64,
    JOIN_ATTRIBUTES_MAX = 16,
    JOIN_BUCKETS_MAX = 32,
    JOIN_VALUE_BYTES_MAX = 1024,
    JOIN_VALUES_MAX = 100000, /* distinct ones of an attribute */
    JOIN_SERVICES_MAX = 4096,
    JOIN_PROCESSES_MAX = 4096,     /* per lane */
    JOIN_SINGLE_TRACES_MAX = 2048, /* names of processes that may have one trace */
    JOIN_PENDING_SERVICES_MAX = 2048,      /* … that send profiles but no spans */
    JOIN_PENDING_PROCESSES_MAX = 64,         /* of these, that a held request waits for */
    JOIN_PENDING_SHARE = 4,        /* of hold_bytes, what such requests may take: a quarter */
    JOIN_SEEN_IDS_MAX = 1 << 16,
    JOIN_LINKS_MAX = 1 << 20, /* spans of a request, beyond which no parents are looked for */
};
/* What goes on, and is looked at, before others have their turn on the lane. */
enum {
    JOIN_TURN_REQUESTS_MAX = 128,
    JOIN_TURN_BYTES_MAX = 1 << 20,
    JOIN_TURN_LOOKS_MAX = 16384,
};
/* Copies of samples that a request gets (count_for), and their bytes. */
enum { JOIN_COPIES_MAX = 1 << 18, JOIN_COPIES_BYTES_MAX = 16 << 20 };
/* Profiles of a request that get URLs: one of two bytes takes about a hundred with it. */
enum { JOIN_URLS_MAX = 1 << 16 };
/* Of one look by time: spans to choose from, spans looked at, slots of time looked in. */
enum { JOIN_CANDIDATES_MAX = 32, JOIN_LOOKS_MAX = 2048, JOIN_SLOTS_MAX = 128 };
/* How long everything is indexed after the first linked profile, and how long spans are waited for
 * after the first profile of a process that has none: the longest time between two profiles of an
 * SDK and some more; how often held profiles are looked at again, and how soon when there is more
 * to do at once; after which time the count of distinct values begins anew. */
#define JOIN_WARM_UP_NS ((uint64_t)75 * NS_PER_S)
#define JOIN_RECHECK_NS ((uint64_t)250 * NS_PER_MS)
#define JOIN_TURN_NS    ((uint64_t)NS_PER_MS)
#define JOIN_EPOCH_NS   ((uint64_t)3600 * NS_PER_S)
/* How much of the time around a span or a profile a URL shows, before and after. */
#define JOIN_VIEW_NS ((uint64_t)30 * NS_PER_S)
/* By how much the clocks of those who send spans and profiles may differ. */
#define JOIN_SKEW_NS ((uint64_t)NS_PER_S)
