/* SPDX-License-Identifier: Apache-2.0 */
/* Services whose first spans came a short while ago: their first profile may still be on its way,
 * though others sent theirs long ago. A fixed number of services by hash; one may push out another,
 * which is then new again. Any thread, without locks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/join_limits.h"

struct newcomers {
    /* Some bits of the key, when it came first, when last, in seconds; 0: empty. */
    _Atomic uint64_t places[JOIN_SERVICES_MAX];
};

/* Spans of that service go by. True for JOIN_WARM_UP_NS from the first ones on; after as long
 * without any the service is new again. */
bool newcomers_has(struct newcomers *newcomers, uint64_t key, uint64_t now_ns);
