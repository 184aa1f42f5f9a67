/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of services, by hashes of what their resources say: which of them send profiles,
 * which have sent spans only recently, and which have sent profiles but no spans. Any thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/join_limits.h"

/* Services that send profiles. The profiles side adds, the traces side asks whether spans of a
 * service are worth indexing and marking. Lock-free. */
enum { SERVICE_SLOTS = 2 * JOIN_SERVICES_MAX };

struct service_set {
    _Atomic uint64_t slots[SERVICE_SLOTS]; /* key, its lowest two bits being flags; 0: empty */
    _Atomic uint32_t count;
    _Atomic uint32_t unmatched; /* linked services without any spans yet */
    _Atomic bool has_strangers; /* linked profiles of unknown services, or too many services */
    _Atomic uint64_t first_ns;  /* when the first one was added; 0: none yet */
};

/* A service sends profiles; is_linked: some of their samples name a span. key 0: an unknown
 * service. */
void service_set_add(struct service_set *set, uint64_t key, bool is_linked, uint64_t now_ns);
bool service_set_has(const struct service_set *set, uint64_t key);
/* Spans of the service have arrived. */
void service_set_match(struct service_set *set, uint64_t key);
/* Whether the service is in the set and spans of it have arrived. */
bool service_set_is_matched(const struct service_set *set, uint64_t key);
/* Whether samples of the service have named spans. */
bool service_set_is_linked(const struct service_set *set, uint64_t key);
/* Whether only spans of services in the set are of use: some time has passed since the first
 * profile, and every service with linked profiles has sent spans. */
bool service_set_is_warm(const struct service_set *set, uint64_t now_ns);
/* Whether spans of the service may have profiles, as far as is known. */
bool service_set_may_have(const struct service_set *set, uint64_t key);

/* Services whose first spans arrived recently: their first profile may still be on its way.
 * Bounded: one may evict another, which is then new again. Lock-free. */
struct recent_services {
    /* Some bits of the key, seconds of its first and its last spans; 0: empty. */
    _Atomic uint64_t places[JOIN_SERVICES_MAX];
};

/* To be called for spans of a service. True for JOIN_WARM_UP_NS from the first ones on; after as
 * long without spans the service is new again. */
bool recent_services_has(struct recent_services *recent_services, uint64_t key, uint64_t now_ns);

/* Services, or names of processes, that have sent profiles but no spans, and since when: the join
 * waits for the spans of new ones only. Bounded: the one not asked for the longest is evicted
 * first. The lock is held while one entry is read or written. */
struct pending_service {
    uint64_t key; /* 0: free */
    uint64_t first_ns;
    uint64_t last_ns;
};

struct pending_services {
    pthread_mutex_t lock;
    struct pending_service *entries;
};

/* False: no memory. */
bool pending_services_init(struct pending_services *pending_services);
void pending_services_fini(struct pending_services *pending_services);
/* To be called for each profile of a name without known spans. True for JOIN_WARM_UP_NS from the
 * first call on; after as long without a call the name is new again. */
bool pending_services_has(struct pending_services *pending_services, uint64_t key, uint64_t now_ns);
