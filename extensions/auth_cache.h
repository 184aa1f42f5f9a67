/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of credentials that were checked before, by keyed digests of them, and how
 * much time a lane may spend on checking new ones. One owner, on its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct auth_cache;

enum auth_cached { AUTH_UNKNOWN, AUTH_WAS_RIGHT, AUTH_WAS_WRONG };

/* digest_prepare came before. */
struct auth_cache *auth_cache_create(void);
/* NULL is tolerated. */
void auth_cache_destroy(struct auth_cache *cache);
enum auth_cached auth_cache_find(struct auth_cache *cache, struct slice credentials);
/* Of many, the oldest are forgotten; wrong ones do not push out right ones. */
void auth_cache_add(struct auth_cache *cache, struct slice credentials, bool is_right);
/* Forgets all: the passwords have changed. */
void auth_cache_clear(struct auth_cache *cache);
/* Whether there is time left for another check; auth_cache_spend says how long it took. */
bool auth_cache_may_check(struct auth_cache *cache);
void auth_cache_spend(struct auth_cache *cache, uint64_t spent_ns);
