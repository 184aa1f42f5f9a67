/* SPDX-License-Identifier: Apache-2.0 */
/* Which services send profiles: known by hashes of what their resources say of them. The profiles
 * side adds, the traces side asks whether a service is worth indexing and marking. Both on any
 * thread, without locks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/join/join_limits.h"

enum { SERVICE_SLOTS = 2 * JOIN_SERVICES_MAX };

struct service_set {
    _Atomic uint64_t slots[SERVICE_SLOTS]; /* key, its lowest two bits being flags; 0: empty */
    _Atomic uint32_t count;
    _Atomic uint32_t unmatched; /* link to spans, but none of theirs has been seen */
    _Atomic bool has_strangers; /* linked profiles of nobody knows whom, or too many services */
    _Atomic uint64_t first_ns;  /* when the first one came; 0: none yet */
};

/* A service sends profiles; is_linked: some of their samples name a span. key 0: it is not known
 * which. */
void service_set_add(struct service_set *set, uint64_t key, bool is_linked, uint64_t now_ns);
bool service_set_has(const struct service_set *set, uint64_t key);
/* Spans of the service go by. */
void service_set_match(struct service_set *set, uint64_t key);
/* Whether spans of that service have been seen; false for one that is not in the set. */
bool service_set_is_matched(const struct service_set *set, uint64_t key);
/* Whether samples of the service have named spans. */
bool service_set_is_linked(const struct service_set *set, uint64_t key);
/* Whether only spans of services in the set are of use by now: some time has passed, and every
 * service with linked profiles is known by its spans. */
bool service_set_is_warm(const struct service_set *set, uint64_t now_ns);
/* Whether spans of the service may have profiles, as far as one knows. */
bool service_set_may_have(const struct service_set *set, uint64_t key);
