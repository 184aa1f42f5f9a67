/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers checked credentials by keyed digests, and bounds the time that checking new ones takes.
 * One owner, on its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct auth_cache;

enum auth_cached { AUTH_UNKNOWN, AUTH_WAS_RIGHT, AUTH_WAS_WRONG };

/* Call digest_prepare first. */
struct auth_cache *auth_cache_create(void);
/* NULL is a no-op. */
void auth_cache_destroy(struct auth_cache *cache);
enum auth_cached auth_cache_find(struct auth_cache *cache, struct slice credentials);
/* Adds credentials that are not in the cache. The oldest are evicted; wrong ones never evict right
 * ones. */
void auth_cache_add(struct auth_cache *cache, struct slice credentials, bool is_right);
/* To be called when the passwords change. */
void auth_cache_clear(struct auth_cache *cache);
/* Whether there is time for another check, beside those under way, which will take so long; report
 * its duration by auth_cache_spend. */
bool auth_cache_may_check(struct auth_cache *cache, uint64_t under_way_ns);
void auth_cache_spend(struct auth_cache *cache, uint64_t spent_ns);
