/* SPDX-License-Identifier: Apache-2.0 */
/* Services whose first spans arrived recently: their first profile may still be on its way. A fixed
 * number of services by hash; one may evict another, which is then new again. Any thread,
 * lock-free.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/join_limits.h"

struct recent_services {
    /* Some bits of the key, when it came first, when last, in seconds; 0: empty. */
    _Atomic uint64_t places[JOIN_SERVICES_MAX];
};

/* To be called for spans of a service. True for JOIN_WARM_UP_NS from the first ones on; after as
 * long without spans the service is new again. */
bool recent_services_has(struct recent_services *recent_services, uint64_t key, uint64_t now_ns);
