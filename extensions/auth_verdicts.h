/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of credentials that were checked before, by keyed digests of them, and how
 * much time a lane may spend on checking new ones. One owner, on its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct auth_verdicts;

enum auth_memory { AUTH_UNKNOWN, AUTH_WAS_RIGHT, AUTH_WAS_WRONG };

/* digest_prepare came before. */
struct auth_verdicts *auth_verdicts_create(void);
/* NULL is tolerated. */
void auth_verdicts_destroy(struct auth_verdicts *verdicts);
enum auth_memory auth_verdicts_find(struct auth_verdicts *verdicts, struct slice credentials);
/* Of many, the oldest are forgotten; wrong ones do not push out right ones. */
void auth_verdicts_keep(struct auth_verdicts *verdicts, struct slice credentials, bool is_right);
/* Forgets all: the passwords have changed. */
void auth_verdicts_clear(struct auth_verdicts *verdicts);
/* Whether there is time left for another check; auth_verdicts_spend says how long it took. */
bool auth_verdicts_may_check(struct auth_verdicts *verdicts);
void auth_verdicts_spend(struct auth_verdicts *verdicts, uint64_t spent_ns);
