/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory rewriting a profiles request takes (profile_merge.h), to reserve it beforehand.
 * Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/profiles/otlp/profile_dictionary.h"

struct profile_measure {
    uint64_t request_bytes;
    uint64_t inlined_bytes; /* of strings that replace references */
    uint64_t fixed_bytes;   /* of the request, without indices: they do not grow */
    uint64_t tables_bytes;  /* of the request, a lower bound: the dictionary */
    uint64_t resources;     /* ResourceProfiles messages, and so on */
    uint64_t scopes;
    uint64_t profiles;
    uint32_t entries[PROFILE_TABLES];
};

/* Peak of the bytes that merging the request alone takes, its index and the result included, the
 * request itself not. */
uint64_t profile_measure_merge(const struct profile_measure *measure);
/* Of a normalized request. */
struct profile_measure profile_measure_of(struct slice request);
/* Reserves what merging the request takes, and `more` bytes; budget_release returns what is left.
 * Reserves nothing when the budget has ample room, as for nearly all requests. */
enum budget_result profile_measure_reserve(struct slice request, uint64_t more,
                                           struct budget *budget, struct budget_reserve *reserve)
    __attribute__((warn_unused_result));
/* Whether the budget (NULL: yes) has room to merge such a request. */
bool profile_measure_fits(struct slice request, const struct budget *budget);
