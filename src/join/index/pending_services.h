/* SPDX-License-Identifier: Apache-2.0 */
/* Services that have sent profiles but no spans, and since when: the join waits for the spans of
 * new ones, not for those of services that never send any. Bounded; the least recently asked-for
 * name is evicted first. Any thread; the lock is held while one entry is read or written. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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
